//! The client matrix with krafka: `clients BOOTSTRAP NAME`. `clients BOOTSTRAP TOPIC COUNT` prints records of partition 0 instead.

mod library;
mod records;

use anyhow::{Context, Result, ensure};
use library::{Library, Member, Start};
use records::{Content, headed, large, nulls, plain};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const PARTITIONS: i32 = 4;
const PER_PARTITION: i64 = 50;
const FIRST_TIMESTAMP: i64 = 1_700_000_000_000;
const LIMIT: Duration = Duration::from_secs(20);

/// Waits until a condition holds.
macro_rules! until {
    ($what:expr, $condition:expr) => {{
        let deadline = Instant::now() + LIMIT;
        while !$condition {
            ensure!(Instant::now() < deadline, "not in time: {}", $what);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }};
}

fn report(capability: &str, outcome: Result<()>) {
    match outcome {
        Ok(()) => println!("ok {capability}"),
        Err(error) => println!(
            "FAIL {capability}: {}",
            format!("{error:#}").replace('\n', " ")
        ),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let bootstrap = args.next().context("usage: clients BOOTSTRAP NAME")?;
    let name = args.next().context("usage: clients BOOTSTRAP NAME")?;
    if let Some(count) = args.next() {
        return show(&Library::open(&bootstrap).await?, &name, count.parse()?).await;
    }
    println!("version {}", version()?);
    let scenario = Scenario {
        library: Library::open(&bootstrap).await?,
        name,
    };
    scenario.producing().await;
    scenario.grouping().await;
    scenario.seeking().await;
    scenario.administering().await;
    Ok(())
}

async fn show(library: &Library, topic: &str, count: usize) -> Result<()> {
    fn text(bytes: Option<&[u8]>) -> String {
        bytes.map_or("null".into(), |b| String::from_utf8_lossy(b).into_owned())
    }
    for (_, (key, value, headers)) in library.read(topic, count, Start::Beginning).await? {
        print!("{} {}", text(key.as_deref()), text(value.as_deref()));
        for (name, value) in &headers {
            print!(" {name}={}", text(value.as_deref()));
        }
        println!();
    }
    Ok(())
}

/// The version in the lock file that this program is built with.
fn version() -> Result<&'static str> {
    let lock = include_str!("../Cargo.lock");
    let (_, rest) = lock
        .split_once("name = \"krafka\"\nversion = \"")
        .context("krafka is not locked")?;
    rest.split('"').next().context("no version")
}

fn everywhere(offset: i64) -> BTreeSet<(i32, i64)> {
    (0..PARTITIONS)
        .map(|partition| (partition, offset))
        .collect()
}

struct Scenario {
    library: Library,
    name: String,
}

impl Scenario {
    fn topic(&self, suffix: &str) -> String {
        format!("{}-{suffix}", self.name)
    }

    async fn written(
        &self,
        suffix: &str,
        codec: &str,
        count: usize,
        content: fn(usize) -> Content,
        idempotent: bool,
    ) -> Result<()> {
        let topic = self.topic(suffix);
        let want: Vec<Content> = (0..count).map(content).collect();
        self.library
            .produce(&topic, codec, want.clone(), idempotent, 0)
            .await?;
        let got = self.library.read(&topic, count, Start::Beginning).await?;
        ensure!(got.len() == count, "{} records, want {count}", got.len());
        for (i, (want, got)) in want.into_iter().zip(got).enumerate() {
            ensure!(
                got == (i as i64, want),
                "record {i}: offset {}, headers {:?}",
                got.0,
                got.1.2
            );
        }
        Ok(())
    }

    async fn producing(&self) {
        for codec in ["none", "gzip", "snappy", "lz4", "zstd"] {
            report(codec, self.written(codec, codec, 300, plain, false).await);
        }
        report(
            "nulls",
            self.written("nulls", "none", 40, nulls, false).await,
        );
        report(
            "headers",
            self.written("headers", "none", 40, headed, false).await,
        );
        report("5 MB", self.written("large", "none", 1, large, false).await);
        report(
            "idempotence",
            self.written("idempotence", "none", 300, plain, true).await,
        );
    }

    async fn join(&self) -> Result<Member> {
        self.library.member(&self.name, &self.topic("group")).await
    }

    async fn produce_everywhere(&self) -> Result<()> {
        for partition in 0..PARTITIONS {
            let record = (None, Some("more".into()), Vec::new());
            self.library
                .produce(&self.topic("group"), "none", vec![record], false, partition)
                .await?;
        }
        Ok(())
    }

    async fn grouping(&self) {
        let members = match (self.join().await, self.join().await) {
            (Ok(one), Ok(two)) => (one, two),
            (Err(error), _) | (_, Err(error)) => return report("two members", Err(error)),
        };
        report("two members", self.two_members(&members).await);
        report("take-over", self.take_over(&members).await);
        report("restart", self.restart(&members.0).await);
    }

    async fn two_members(&self, (one, two): &(Member, Member)) -> Result<()> {
        let all = (PARTITIONS as usize) * (PER_PARTITION as usize);
        until!(
            "partitions for both",
            one.assigned().await.len() == 2 && two.assigned().await.len() == 2
        );
        until!("every record", one.seen().union(&two.seen()).count() == all);
        one.commit().await?;
        two.commit().await?;
        self.produce_everywhere().await?;
        until!(
            "new records by both",
            everywhere(PER_PARTITION).is_subset(&(&one.seen() | &two.seen()))
        );
        Ok(())
    }

    async fn take_over(&self, (one, two): &(Member, Member)) -> Result<()> {
        two.commit().await?;
        two.close().await?;
        until!(
            "all partitions",
            one.assigned().await.len() == PARTITIONS as usize
        );
        self.produce_everywhere().await?;
        until!(
            "new records of all partitions",
            everywhere(PER_PARTITION + 1).is_subset(&one.seen())
        );
        Ok(())
    }

    async fn restart(&self, one: &Member) -> Result<()> {
        one.commit().await?;
        one.close().await?;
        self.produce_everywhere().await?;
        let three = self.join().await?;
        let want = everywhere(PER_PARTITION + 2);
        until!("new records", want.is_subset(&three.seen()));
        ensure!(
            three.seen() == want,
            "records after the commit: {:?}",
            three.seen()
        );
        three.close().await
    }

    async fn first(&self, start: Start, want: &str) -> Result<()> {
        let got = self.library.read(&self.topic("seek"), 1, start).await?;
        let value = got[0].1.1.as_deref();
        ensure!(value == Some(want.as_bytes()), "{value:?}, want {want}");
        Ok(())
    }

    async fn seeking(&self) {
        let offset = self.first(Start::Offset(42), "seek-42").await;
        let both = match offset {
            Ok(()) => self.first(Start::Beginning, "seek-0").await,
            Err(error) => Err(error),
        };
        report("seek", both);
        let timestamp = Start::Timestamp(FIRST_TIMESTAMP + 59_500);
        report("timestamps", self.first(timestamp, "seek-60").await);
    }

    async fn administering(&self) {
        report("topics", self.topics().await);
        report("configs", self.configs().await);
        report("groups", self.groups().await);
        report("delete group", self.delete_group().await);
        report("delete records", self.delete_records().await);
    }

    async fn topics(&self) -> Result<()> {
        let made = self.topic("made");
        self.library.create_topic(&made, 3).await?;
        until!(
            "the topic is listed",
            self.library.topics().await?.contains(&made)
        );
        let partitions = self.library.partitions(&made).await?;
        ensure!(partitions == 3, "{partitions} partitions");
        self.library.delete_topic(&made).await?;
        until!(
            "the topic is gone",
            !self.library.topics().await?.contains(&made)
        );
        Ok(())
    }

    async fn configs(&self) -> Result<()> {
        let got = self
            .library
            .config(&self.topic("large"), "max.message.bytes")
            .await?;
        ensure!(
            got.as_deref() == Some("6000000"),
            "max.message.bytes {got:?}"
        );
        Ok(())
    }

    async fn groups(&self) -> Result<()> {
        let groups = self.library.groups().await?;
        ensure!(groups.contains(&self.name), "not in {groups:?}");
        let state = self.library.group_state(&self.name).await?;
        ensure!(state == "Empty", "state {state}");
        Ok(())
    }

    async fn delete_group(&self) -> Result<()> {
        self.library.delete_group(&self.name).await?;
        ensure!(
            !self.library.groups().await?.contains(&self.name),
            "still listed"
        );
        Ok(())
    }

    async fn delete_records(&self) -> Result<()> {
        let first = self.library.delete_records(&self.topic("seek"), 10).await?;
        ensure!(first == 10, "first offset {first}");
        self.first(Start::Beginning, "seek-10").await
    }
}
