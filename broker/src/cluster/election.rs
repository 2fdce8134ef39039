//! Who leads: what becomes of a partition when brokers come and go, and when a leader is asked for. Pure.
//!
//! Storage is shared by the logical brokers, so a replica whose broker is up follows at once: it is in
//! sync as soon as there is a leader. Who may lead is as in Kafka (KIP-966): a replica in the ISR, or an
//! eligible one while the ISR is empty; any other only in an unclean election.

use super::leadership::{Leadership, LeadershipChange, NOBODY, without};

/// What an election looks at beside the partition.
#[derive(Debug, Clone, Copy)]
pub struct World<'a> {
    /// The brokers that are up.
    pub alive: &'a [i32],
    /// `min.insync.replicas` of the topic.
    pub min_isr: usize,
    /// Whether eligible leader replicas are kept (feature `eligible.leader.replicas.version`).
    pub elr: bool,
}

/// Which replicas an election may choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Election {
    /// Only where there is no leader, among those that hold everything.
    Clean,
    /// The preferred replica, if it holds everything; else as `Clean`.
    Preferred,
    /// As `Clean`, and if there is none, any that is up.
    Unclean,
}

/// What follows from who is up, step by step as Kafka's controller and the leader record it: first the
/// brokers that are down leave the ISR and a lost leader is replaced, then the replicas that are up
/// follow the leader, and a reassignment whose new replicas are in sync is over.
///
/// The changes lead from `now`, which may differ from `recorded`: a reassignment that was just begun.
pub fn settle(
    recorded: &Leadership,
    now: Leadership,
    world: &World<'_>,
    election: Election,
) -> Vec<LeadershipChange> {
    let led = lead(recorded, now, world, election);
    let followed = follow(&led, world);
    let steps = [recorded.change_to(&led), led.change_to(&followed)];
    steps.into_iter().flatten().collect()
}

fn lead(
    recorded: &Leadership,
    now: Leadership,
    world: &World<'_>,
    election: Election,
) -> Leadership {
    let mut next = now;
    shrink(&mut next, world);
    elect(&mut next, world, election);
    finish_step(recorded, &mut next, world);
    next
}

fn follow(led: &Leadership, world: &World<'_>) -> Leadership {
    let mut next = led.clone();
    if next.leader == NOBODY {
        return next;
    }
    next.recovering = false;
    for &replica in &led.replicas {
        if world.alive.contains(&replica) && !next.isr.contains(&replica) {
            next.isr.push(replica);
        }
    }
    if finish_reassignment(&mut next) {
        // The leader may be one of the replicas that are gone.
        elect(&mut next, world, Election::Clean);
    }
    finish_step(led, &mut next, world);
    next
}

/// Who stays eligible, and whether a new epoch begins: with another leader, and when a replica goes.
fn finish_step(before: &Leadership, next: &mut Leadership, world: &World<'_>) {
    keep_eligible(before, next, world);
    let replica_gone = before.replicas.iter().any(|r| !next.replicas.contains(r));
    let epoch = next.leader != before.leader || replica_gone;
    next.leader_epoch = before.leader_epoch + i32::from(epoch);
}

/// Brokers that are down leave the ISR. Without eligible leaders the last one stays in it, since it
/// alone may lead again.
fn shrink(next: &mut Leadership, world: &World<'_>) {
    let up = next.isr.iter().copied();
    let left: Vec<i32> = up.filter(|r| world.alive.contains(r)).collect();
    if world.elr || !left.is_empty() {
        next.isr = left;
    } else {
        let last = if next.isr.contains(&next.leader) {
            Some(next.leader)
        } else {
            next.isr.first().copied()
        };
        next.isr = last.into_iter().collect();
    }
}

fn elect(next: &mut Leadership, world: &World<'_>, election: Election) {
    let clean = |r: i32| {
        let in_sync = next.isr.contains(&r) || next.isr.is_empty() && next.elr.contains(&r);
        in_sync && world.alive.contains(&r)
    };
    let candidates = next.replicas.clone();
    let preferred = candidates.first().copied();
    let preferred = preferred.filter(|&r| election == Election::Preferred && clean(r));
    let stays = Some(next.leader).filter(|&r| next.replicas.contains(&r) && clean(r));
    let found = preferred
        .or(stays)
        .or_else(|| candidates.iter().copied().find(|&r| clean(r)));
    if let Some(leader) = found {
        if !next.isr.contains(&leader) {
            next.isr = vec![leader];
        }
        next.leader = leader;
        return;
    }
    let unclean = candidates.iter().find(|r| world.alive.contains(r));
    match unclean.filter(|_| election == Election::Unclean) {
        Some(&leader) => {
            next.leader = leader;
            next.isr = vec![leader];
            next.recovering = true;
        }
        None => next.leader = NOBODY,
    }
}

/// A reassignment is over once the ISR holds all replicas that it adds.
fn finish_reassignment(next: &mut Leadership) -> bool {
    let isr = without(&next.isr, &next.removing);
    let all_in = next.adding.iter().all(|r| isr.contains(r));
    if !next.is_reassigning() || isr.is_empty() || !all_in {
        return false;
    }
    next.replicas = next.target();
    next.isr = isr;
    next.adding.clear();
    next.removing.clear();
    true
}

/// Replicas that leave an ISR which is under its minimum stay eligible. When it runs empty, the leader
/// is remembered: it is the last one that is known to have held everything.
fn keep_eligible(before: &Leadership, next: &mut Leadership, world: &World<'_>) {
    let enough = next.isr.len() >= world.min_isr.min(next.replicas.len());
    if !world.elr || enough {
        next.elr.clear();
        next.last_known_elr.clear();
        return;
    }
    let mut elr: Vec<i32> = before.isr.iter().chain(&before.elr).copied().collect();
    elr.retain(|r| !next.isr.contains(r) && next.replicas.contains(r));
    elr.sort_unstable();
    elr.dedup();
    if !next.isr.is_empty() {
        let known = &mut next.last_known_elr;
        known.retain(|r| !elr.contains(r) && !next.isr.contains(r));
    } else if !before.isr.is_empty() && before.leader != NOBODY {
        next.last_known_elr = vec![before.leader];
    }
    next.elr = elr;
}

#[cfg(test)]
#[path = "election_tests.rs"]
mod tests;
