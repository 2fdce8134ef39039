//! Well-formed requests with hostile values, of every API and version: extreme numbers, names that
//! exist and names that do not, the same name twice, nulls. The requests do take effect: topics,
//! groups and members come and go under each other's feet.

use ottla_protocol::guard::{Sample, Variety, sample};
use ottla_tests::{Child, Client, Launch};

use crate::requests::lived;
use crate::support::{Random, alive, frame, served};

/// Names of at most one letter meet each other.
const SHORT: Variety = Variety {
    tags: true,
    elements: 3,
    string: 1,
};

/// The longest names and blobs that there are.
const LONG: Variety = Variety {
    tags: true,
    elements: 1,
    string: i16::MAX as u32,
};

const NUMBERS: [i64; 14] = [
    0,
    1,
    2,
    5,
    10_000,
    -1,
    -2,
    -3,
    i64::MAX,
    i64::MAX - 1,
    i64::MIN,
    i64::MIN + 1,
    1 << 40,
    -(1 << 40),
];

/// Puts a hostile number into its place, as wide as it is there.
fn put(number: i64, place: &mut [u8]) {
    let width = place.len();
    let bits = 8 * width.min(8) as u32;
    let narrow = match number {
        i64::MAX => i64::MAX >> (64 - bits),
        i64::MIN => i64::MIN >> (64 - bits),
        other => other,
    };
    place.fill(0);
    let bytes = narrow.to_be_bytes();
    let kept = &bytes[8 - width.min(8)..];
    place[width - kept.len()..].copy_from_slice(kept);
}

fn hostile(key: i16, version: i16, variety: Variety, random: &mut Random) -> Option<Vec<u8>> {
    let letters = if variety.string > 1 { 1 } else { 2 };
    let mut choose = |n: u32| match n {
        // Letters are few, so that names are the same ones; bytes of numbers are replaced below.
        26 => random.below(letters),
        256 => 0,
        // Of a string either nothing or all of it.
        n if n == variety.string + 1 => u32::from(random.below(5) > 0) * variety.string,
        n => random.below(n),
    };
    let Sample {
        mut body, numbers, ..
    } = sample(key, version, variety, &mut choose)?;
    for (at, width) in numbers {
        if width > 1 {
            let number = NUMBERS[random.below(NUMBERS.len() as u32) as usize];
            put(number, &mut body[at..at + width]);
        }
    }
    Some(body)
}

/// Sends requests of every API and version, several times over, and sees that the broker lives.
async fn survives(launch: Launch, variety: Variety, seeds: std::ops::Range<u64>) {
    let child = launch.start().await;
    let mut bystander = child.client().await;
    for name in ["a", "b"] {
        bystander.create_topic(name, 2).await;
    }
    let apis = served(&mut bystander).await;
    let mut answers = 0;
    let mut all: Vec<(i16, i16)> = apis
        .iter()
        .flat_map(|&(key, first, last)| (first..=last).map(move |version| (key, version)))
        .collect();
    for seed in seeds {
        let mut random = Random::new(seed);
        for at in (1..all.len()).rev() {
            all.swap(at, random.below(at as u32 + 1) as usize);
        }
        for &(key, version) in &all {
            if let Some(body) = hostile(key, version, variety, &mut random) {
                answers += usize::from(answered(&child, key, version, &body).await);
            }
        }
        alive(&mut bystander).await;
        child.advance(100_000).await;
    }
    assert!(answers > 300, "{answers}");
    let used = child.peak_resident_bytes();
    assert!(used < 512 << 20, "{used} bytes");
    alive(&mut bystander).await;
    lived(child).await;
}

/// A request and the end of what the client has to say: nobody waits for what never comes.
async fn answered(child: &Child, key: i16, version: i16, body: &[u8]) -> bool {
    let mut client: Client = child.client().await;
    client.send_bytes(&frame(key, version, 1, body)).await;
    client.finish_sending().await;
    client.receive_or_closed().await.is_some()
}

fn launch() -> Launch {
    Launch::new()
        .set("group.min.session.timeout.ms", "0")
        .set("group.max.session.timeout.ms", &i32::MAX.to_string())
        .set("group.initial.rebalance.delay.ms", "0")
}

#[tokio::test]
async fn hostile_numbers_and_names_that_meet_kill_nobody() {
    survives(launch(), SHORT, 100..112).await;
}

#[tokio::test]
async fn the_longest_names_and_blobs_kill_nobody() {
    survives(launch(), LONG, 200..202).await;
}
