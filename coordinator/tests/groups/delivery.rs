//! Pause and resume in the group's record.

use ottla_coordinator::group::plan::GroupErrorKind;
use ottla_coordinator::group::records::{GroupRecord, Pause, PauseReason};
use ottla_coordinator::group::{MAX_NOTE, ResumeOf};

use crate::support::Shard;

const T: Option<&[&str]> = Some(&["t"]);
const ADMIN: PauseReason = PauseReason::Admin;
const TRIPPED: PauseReason = PauseReason::BreakerTripped;

fn with_member() -> Shard {
    let mut shard = Shard::at_once(&[("t", 1)]);
    shard.beat("a", 0, T).unwrap();
    shard
}

fn pause(shard: &mut Shard, now: i64, reason: PauseReason, note: &str) {
    let plan = shard.groups.share_pause(now, "g", reason, note).unwrap();
    shard.commit(plan);
}

fn resume(shard: &mut Shard, which: ResumeOf) -> bool {
    let plan = shard.groups.share_resume("g", which, "").unwrap();
    let ended = plan.response;
    shard.commit(plan);
    ended
}

fn held(shard: &Shard) -> Option<Pause> {
    let mut pauses = shard.groups.share_pauses();
    pauses.next().and_then(|(_, pause)| pause.cloned())
}

fn of(reason: PauseReason, since: i64, note: &str) -> Pause {
    Pause {
        reason,
        since,
        note: note.to_owned(),
    }
}

#[test]
fn a_pause_is_kept_when_members_come_and_go_and_over_a_replay() {
    let mut shard = with_member();
    pause(&mut shard, 7, ADMIN, "why");
    shard.beat("b", 0, T).unwrap();
    shard.beat("a", -1, None).unwrap();
    assert_eq!(held(&shard), Some(of(ADMIN, 7, "why")));
    shard.groups = shard.replayed();
    assert_eq!(held(&shard), Some(of(ADMIN, 7, "why")));
    assert!(resume(&mut shard, ResumeOf::Any));
    shard.groups = shard.replayed();
    assert_eq!(held(&shard), None);
}

#[test]
fn a_second_pause_changes_the_note_and_not_the_time() {
    let mut shard = with_member();
    pause(&mut shard, 7, ADMIN, "why");
    pause(&mut shard, 9, ADMIN, "other");
    assert_eq!(held(&shard), Some(of(ADMIN, 7, "other")));
    let plan = shard.groups.share_pause(10, "g", ADMIN, "other").unwrap();
    assert!(plan.records.is_empty());
}

#[test]
fn an_administrators_pause_takes_the_place_of_a_trip_and_not_the_other_way_round() {
    let mut shard = with_member();
    pause(&mut shard, 7, TRIPPED, "");
    pause(&mut shard, 8, TRIPPED, "again");
    assert_eq!(held(&shard), Some(of(TRIPPED, 7, "")));
    pause(&mut shard, 9, ADMIN, "mine");
    assert_eq!(held(&shard), Some(of(ADMIN, 9, "mine")));
    pause(&mut shard, 10, TRIPPED, "");
    assert_eq!(held(&shard), Some(of(ADMIN, 9, "mine")));
}

#[test]
fn each_resume_ends_what_it_is_for() {
    let mut shard = with_member();
    pause(&mut shard, 7, ADMIN, "");
    assert!(!resume(&mut shard, ResumeOf::Automatic));
    assert!(resume(&mut shard, ResumeOf::Admin));
    pause(&mut shard, 8, TRIPPED, "");
    assert!(!resume(&mut shard, ResumeOf::Admin));
    assert!(resume(&mut shard, ResumeOf::Automatic));
    assert!(!resume(&mut shard, ResumeOf::Automatic));
}

#[test]
fn what_cannot_be_is_refused_in_clear_words() {
    let shard = with_member();
    let error = shard
        .groups
        .share_resume("g", ResumeOf::Any, "")
        .unwrap_err();
    assert_eq!(error.kind, GroupErrorKind::InvalidRequest);
    assert!(error.message.unwrap().contains("is not paused"));
    let error = shard.groups.share_pause(1, "h", ADMIN, "").unwrap_err();
    assert_eq!(error.kind, GroupErrorKind::GroupIdNotFound);
    let error = shard
        .groups
        .share_resume("h", ResumeOf::Any, "")
        .unwrap_err();
    assert_eq!(error.kind, GroupErrorKind::GroupIdNotFound);
    let long = "é".repeat(MAX_NOTE + 1);
    let error = shard.groups.share_pause(1, "g", ADMIN, &long).unwrap_err();
    assert_eq!(error.kind, GroupErrorKind::InvalidRequest);
    assert!(error.message.unwrap().contains("257"));
    assert!(shard.groups.share_pause(1, "g", ADMIN, &long[2..]).is_ok());
}

#[test]
fn a_group_that_is_deleted_takes_its_pause_with_it() {
    let mut shard = with_member();
    pause(&mut shard, 7, ADMIN, "");
    shard.beat("a", -1, None).unwrap();
    let plan = shard.groups.delete_group("g").unwrap();
    shard.commit(plan);
    shard.beat("a", 0, T).unwrap();
    assert_eq!(held(&shard), None);
    let of_group = |record: &&GroupRecord| matches!(record, GroupRecord::ShareGroup { .. });
    assert!(shard.log.iter().flatten().filter(of_group).count() > 2);
}
