//! Pausing and resuming the delivery of a share group (KIP-1249, a draft): what its record holds.

use super::coordinator::GroupCoordinator;
use super::plan::GroupErrorKind::InvalidRequest;
use super::plan::{GroupError, Plan};
use super::records::{GroupRecord, Pause, PauseReason};
use super::share_group::ShareGroup;
use crate::types::Ts;

/// The most characters of what may be said about a pause or a resume.
pub const MAX_NOTE: usize = 256;

/// Which pause a resume ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResumeOf {
    /// Any; without one it is refused.
    Any,
    /// One by an administrator; otherwise nothing happens.
    Admin,
    /// One that time may end; otherwise nothing happens.
    Automatic,
}

impl GroupCoordinator {
    /// Pauses a group from `now` on.
    ///
    /// A pause by an administrator takes the place of any other one; of an earlier one of theirs it
    /// changes the note alone. A pause for another reason leaves any that is there.
    pub fn share_pause(
        &self,
        now: Ts,
        group_id: &str,
        reason: PauseReason,
        note: &str,
    ) -> Result<Plan<()>, GroupError> {
        check_note(note)?;
        let group = self.existing_share_group(group_id)?;
        let held = group.value.pause.as_ref();
        let since = match held {
            Some(held) if held.reason == reason => held.since,
            _ => now,
        };
        let stays = held.is_some() && reason != PauseReason::Admin;
        let pause = Pause {
            reason,
            since,
            note: note.to_owned(),
        };
        let mut plan = Plan::answer(());
        if !stays && held != Some(&pause) {
            plan.records.push(with_pause(group, Some(pause)));
        }
        Ok(plan)
    }

    /// Ends a group's pause; answers whether there was one to end.
    pub fn share_resume(
        &self,
        group_id: &str,
        which: ResumeOf,
        note: &str,
    ) -> Result<Plan<bool>, GroupError> {
        check_note(note)?;
        let group = self.existing_share_group(group_id)?;
        let reason = group.value.pause.as_ref().map(|pause| pause.reason);
        let ends = match (which, reason) {
            (ResumeOf::Any, None) => {
                let text = format!("Share group {group_id} is not paused.");
                return Err(GroupError::new(InvalidRequest, text));
            }
            (ResumeOf::Any, Some(_)) => true,
            (ResumeOf::Admin, reason) => reason == Some(PauseReason::Admin),
            (ResumeOf::Automatic, reason) => reason.is_some_and(PauseReason::may_end_by_itself),
        };
        let mut plan = Plan::answer(ends);
        if ends {
            plan.records.push(with_pause(group, None));
        }
        Ok(plan)
    }

    /// The pause that a group's record holds.
    pub fn share_pause_of(&self, group_id: &str) -> Result<Option<&Pause>, GroupError> {
        let group = self.existing_share_group(group_id)?;
        Ok(group.value.pause.as_ref())
    }

    /// Every share group, and the pause that its record holds.
    pub fn share_pauses(&self) -> impl Iterator<Item = (&str, Option<&Pause>)> {
        self.share_groups()
            .map(|group| (group.id.as_str(), group.value.pause.as_ref()))
    }
}

fn check_note(note: &str) -> Result<(), GroupError> {
    let length = note.chars().count();
    if length <= MAX_NOTE {
        return Ok(());
    }
    let text = format!("The reason has {length} characters; at most {MAX_NOTE} are allowed.");
    Err(GroupError::new(InvalidRequest, text))
}

fn with_pause(group: &ShareGroup, pause: Option<Pause>) -> GroupRecord {
    let mut value = group.value.clone();
    value.pause = pause;
    GroupRecord::ShareGroup {
        group_id: group.id.clone(),
        value: Some(value),
    }
}
