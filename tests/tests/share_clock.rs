//! Moving the clock by N ms does what N moves of 1 ms do, to locks, sessions and retention.

use std::sync::Arc;

use ottla_tests::{ACCEPT, Ask, Member, Queue, RELEASE, RENEW};

/// A small generator (xorshift): the same seed, the same sequence.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// One step of a script.
#[derive(Debug, Clone, Copy)]
enum Step {
    Produce(usize),
    Fetch { member: usize, records: i32 },
    Acknowledge { member: usize, kind: i8 },
    Beat(usize),
    Advance { ms: i64, hold: bool },
}

fn script(random: &mut Random) -> Vec<Step> {
    let mut steps = vec![Step::Produce(20)];
    for _ in 0..40 {
        let member = random.below(2) as usize;
        steps.push(match random.below(8) {
            0 => Step::Produce(1 + random.below(5) as usize),
            1 | 2 => Step::Fetch {
                member,
                records: 1 + random.below(6) as i32,
            },
            3 => Step::Acknowledge {
                member,
                kind: [ACCEPT, RELEASE, RENEW][random.below(3) as usize],
            },
            4 => Step::Beat(member),
            _ => Step::Advance {
                ms: random.below(400) as i64,
                hold: random.below(4) == 0,
            },
        });
    }
    steps
}

/// Runs a script and notes everything that can be seen after each step.
async fn run(steps: &[Step], one_by_one: bool) -> Vec<String> {
    let mut queue = Queue::with(&[
        ("share.record.lock.duration.ms", "300"),
        ("share.heartbeat.interval.ms", "100"),
        ("share.session.timeout.ms", "700"),
        ("share.delivery.count.limit", "4"),
    ])
    .await;
    let mut members = [queue.member("a").await, queue.member("b").await];
    let mut held: [Vec<i64>; 2] = [vec![], vec![]];
    let mut seen = vec![];
    for &step in steps {
        let said = match step {
            Step::Produce(records) => {
                queue.admin.timestamp = queue.broker.now();
                queue.produce(records).await.to_string()
            }
            Step::Fetch { member, records } => {
                let ask = Ask::of(queue.at).exactly(records);
                let fetched = members[member].fetch(&ask).await;
                held[member].extend(fetched.offsets(queue.at));
                fetched.acquired(queue.at)
            }
            Step::Acknowledge { member, kind } => match held[member].pop() {
                None => String::new(),
                Some(offset) => acknowledge(&mut members[member], &queue, offset, kind).await,
            },
            Step::Beat(member) => {
                let member = &mut members[member];
                let answer = member.heartbeat(member.member_epoch, None).await;
                if answer.error_code == 0 {
                    member.member_epoch = answer.member_epoch;
                }
                format!("{} {}", answer.error_code, answer.member_epoch)
            }
            Step::Advance { ms, hold } => {
                advance(&queue, ms, hold, one_by_one).await;
                queue.broker.now().to_string()
            }
        };
        let broker = &queue.broker.process.broker;
        let inside = broker.shares.inspect(broker, Queue::GROUP);
        let group = queue.admin.describe_share_group(Queue::GROUP).await;
        let offsets = queue.start_and_lag().await;
        let epochs = (group.group_epoch, group.members.len());
        seen.push(format!(
            "{step:?}: {said}; {epochs:?} {offsets:?} {inside:?}"
        ));
    }
    seen
}

/// All the moves in one go, on a thread that may block.
async fn advance(queue: &Queue, ms: i64, hold: bool, one_by_one: bool) {
    let broker = Arc::clone(&queue.broker.process.broker);
    let walk = tokio::task::spawn_blocking(move || {
        let (times, by) = if one_by_one { (ms, 1) } else { (1, ms) };
        for _ in 0..times {
            broker.deadlines.advance(&broker.clock, by, hold);
        }
    });
    if let Err(error) = walk.await {
        panic!("the clock could not be advanced: {error}");
    }
}

async fn acknowledge(member: &mut Member, queue: &Queue, offset: i64, kind: i8) -> String {
    if member.epoch == 0 {
        return String::new();
    }
    let ask = Ask::new().ack(queue.at, offset, offset, kind);
    let ask = if kind == RENEW { ask.renew() } else { ask };
    let answer = member.acknowledge(&ask).await;
    format!("{:?}", answer.of(queue.at))
}

#[tokio::test]
async fn one_long_advance_does_what_many_of_a_millisecond_do() {
    for seed in 1..=12_u64 {
        let steps = script(&mut Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        let (long, short) = (run(&steps, false).await, run(&steps, true).await);
        for ((long, short), at) in long.iter().zip(&short).zip(0..) {
            assert_eq!(long, short, "seed {seed}, step {at}");
        }
    }
}
