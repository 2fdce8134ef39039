use super::*;

const TWO_IN_SYNC: usize = 2;

fn world(alive: &[i32], min_isr: usize) -> World<'_> {
    World {
        alive,
        min_isr,
        elr: true,
    }
}

/// The leadership once all steps were recorded.
fn settled(from: &Leadership, world: &World<'_>, election: Election) -> Leadership {
    let steps = settle(from, from.clone(), world, election);
    steps
        .into_iter()
        .fold(from.clone(), |now, step| now.after(step))
}

/// A partition whose brokers go up and down as the list says, one set of brokers that are up at a time.
fn history(replicas: &[i32], min_isr: usize, alive: &[&[i32]]) -> Leadership {
    let first = Leadership::new(replicas.to_vec(), replicas.to_vec());
    alive.iter().fold(first, |now, alive| {
        settled(&now, &world(alive, min_isr), Election::Clean)
    })
}

#[test]
fn a_lost_leader_is_replaced_by_the_next_replica_in_sync() {
    let now = history(&[1, 0, 2], 1, &[&[0, 2]]);
    assert_eq!((now.leader, now.leader_epoch), (0, 1));
    assert_eq!(now.isr, [0, 2]);
}

#[test]
fn a_broker_that_is_back_joins_the_isr_and_does_not_lead() {
    let now = history(&[1, 0], 1, &[&[0], &[0, 1]]);
    assert_eq!((now.leader, now.leader_epoch), (0, 1));
    assert_eq!(now.isr, [0, 1]);
}

#[test]
fn a_follower_that_goes_leaves_the_epoch_alone() {
    let now = history(&[0, 1], 1, &[&[0]]);
    assert_eq!((now.leader, now.leader_epoch), (0, 0));
    assert_eq!(now.partition_epoch, 1);
}

#[test]
fn the_last_in_sync_stays_eligible_and_alone_leads_again() {
    let gone = history(&[0, 1], 1, &[&[0], &[]]);
    assert_eq!((gone.leader, gone.isr.as_slice()), (NOBODY, &[][..]));
    assert_eq!(
        (gone.elr.as_slice(), gone.last_known_elr.as_slice()),
        (&[0][..], &[0][..])
    );
    let other = settled(&gone, &world(&[1], 1), Election::Clean);
    assert_eq!(other, gone, "the other one may miss records");
    let back = settled(&other, &world(&[0, 1], 1), Election::Clean);
    assert_eq!((back.leader, back.leader_epoch), (0, 2));
    assert_eq!(back.isr, [0, 1]);
    assert!(back.elr.is_empty() && back.last_known_elr.is_empty());
}

#[test]
fn without_eligible_leaders_the_last_in_sync_stays_in_the_isr() {
    let no_elr = |alive| World {
        alive,
        min_isr: 1,
        elr: false,
    };
    let both = Leadership::new(vec![0, 1], vec![0, 1]);
    let one = settled(&both, &no_elr(&[0]), Election::Clean);
    let gone = settled(&one, &no_elr(&[]), Election::Clean);
    assert_eq!((gone.leader, gone.isr.as_slice()), (NOBODY, &[0][..]));
    assert!(gone.elr.is_empty());
    let other = settled(&gone, &no_elr(&[1]), Election::Clean);
    assert_eq!((other.leader, other.isr.as_slice()), (NOBODY, &[0][..]));
    let back = settled(&other, &no_elr(&[1, 0]), Election::Clean);
    assert_eq!((back.leader, back.isr.as_slice()), (0, &[0, 1][..]));
}

#[test]
fn replicas_that_leave_an_isr_under_its_minimum_are_eligible() {
    let now = history(&[0, 1, 2], TWO_IN_SYNC, &[&[0, 1]]);
    assert!(now.elr.is_empty(), "two are enough");
    let now = history(&[0, 1, 2], TWO_IN_SYNC, &[&[0, 1], &[0]]);
    assert_eq!(
        (now.isr.as_slice(), now.elr.as_slice()),
        (&[0][..], &[1][..])
    );
    let now = history(&[0, 1, 2], TWO_IN_SYNC, &[&[0, 1], &[0], &[], &[1]]);
    assert_eq!((now.leader, now.isr.as_slice()), (1, &[1][..]));
    assert_eq!(now.elr, [0]);
    let now = history(
        &[0, 1, 2],
        TWO_IN_SYNC,
        &[&[0, 1], &[0], &[], &[1], &[1, 2]],
    );
    assert_eq!(now.isr, [1, 2]);
    assert!(now.elr.is_empty(), "two are enough again");
}

#[test]
fn an_unclean_election_takes_any_that_is_up_and_lets_it_recover() {
    let gone = history(&[0, 1, 2], 1, &[&[0], &[], &[2]]);
    assert_eq!(gone.leader, NOBODY);
    let steps = settle(&gone, gone.clone(), &world(&[2], 1), Election::Unclean);
    let recovering: Vec<_> = steps.iter().map(|step| step.recovering).collect();
    assert_eq!(recovering, [Some(true), Some(false)]);
    let led = settled(&gone, &world(&[2], 1), Election::Unclean);
    assert_eq!((led.leader, led.isr.as_slice()), (2, &[2][..]));
    let nobody = settled(&gone, &world(&[], 1), Election::Unclean);
    assert_eq!(nobody.leader, NOBODY);
}

#[test]
fn an_unclean_election_prefers_who_holds_everything() {
    let now = history(&[0, 1, 2], 1, &[&[1, 2]]);
    let same = settled(&now, &world(&[1, 2], 1), Election::Unclean);
    assert_eq!(same, now);
}

#[test]
fn the_preferred_replica_leads_again_when_it_is_asked_to() {
    let now = history(&[0, 1], 1, &[&[1], &[0, 1]]);
    assert_eq!(now.leader, 1);
    let elected = settled(&now, &world(&[0, 1], 1), Election::Preferred);
    assert_eq!((elected.leader, elected.leader_epoch), (0, 2));
    let down = history(&[0, 1], 1, &[&[1]]);
    let same = settled(&down, &world(&[1], 1), Election::Preferred);
    assert_eq!(same, down, "it is not up");
}

/// Every order in which three brokers come and go: what holds afterwards.
#[test]
fn whoever_comes_and_goes_the_rules_hold() {
    let sets: [&[i32]; 8] = [&[], &[0], &[1], &[2], &[0, 1], &[0, 2], &[1, 2], &[0, 1, 2]];
    for min_isr in 1..=3 {
        for elr in [true, false] {
            for election in [Election::Clean, Election::Unclean] {
                let world = |alive| World {
                    alive,
                    min_isr,
                    elr,
                };
                let mut all = vec![Leadership::new(vec![2, 0, 1], vec![2, 0, 1])];
                for _ in 0..3 {
                    let each = all.iter().flat_map(|from| {
                        sets.map(|alive| {
                            let next = settled(from, &world(alive), election);
                            check(from, &next, alive);
                            let again = settled(&next, &world(alive), election);
                            assert_eq!(again, next, "nothing is left to do");
                            next
                        })
                    });
                    all = each.collect();
                }
            }
        }
    }
}

fn check(from: &Leadership, next: &Leadership, alive: &[i32]) {
    assert!(next.leader_epoch >= from.leader_epoch);
    assert!(!next.recovering);
    if next.leader != from.leader {
        assert!(next.leader_epoch > from.leader_epoch);
    }
    if next.leader == NOBODY {
        return;
    }
    assert!(alive.contains(&next.leader) && next.isr.contains(&next.leader));
    let mut up = alive.to_vec();
    let mut isr = next.isr.clone();
    up.sort_unstable();
    isr.sort_unstable();
    assert_eq!(isr, up, "who is up is in sync");
    assert!(next.elr.iter().all(|r| !next.isr.contains(r)));
}
