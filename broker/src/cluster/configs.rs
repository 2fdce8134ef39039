//! Stored configurations: how they change, and what groups make of them.

use std::sync::{Arc, PoisonError};

use super::controller::Cluster;
use super::image::{Image, Topic};
use crate::config::{ConfigChange, GroupConfig, Isolation, Refusal, ResourceType};
use crate::error_code::ApiError;
use crate::features::SHARE_PAUSE_VERSION;
use crate::records::MetadataChange;

/// Group configurations that are kept resolved at most.
const GROUPS_KEPT: usize = 10_000;

/// What became of the resources of a request, in their order.
pub type Altered = Vec<Result<(), ApiError>>;

impl Image {
    /// Whether delivery to share groups can be paused.
    pub fn can_pause(&self) -> bool {
        self.features
            .get(SHARE_PAUSE_VERSION)
            .is_some_and(|&level| level > 0)
    }
}

impl Cluster {
    /// Stores what `plan` makes of the image, for each resource of a request the changes or why there are
    /// none; nobody else changes the image meanwhile, and what holds does so as a whole. Also says
    /// whether any partition got a leader by it.
    pub fn alter_configs(
        &self,
        validate_only: bool,
        now: i64,
        plan: impl FnOnce(&Image) -> Vec<Result<Vec<ConfigChange>, Refusal>>,
    ) -> (Altered, bool) {
        let log = self.log_guard();
        let mut planned = {
            let image = self.image();
            let mut planned = plan(&image);
            image.configs.isolate(self.first, &mut planned);
            planned
        };
        let taken = planned.iter_mut().flatten();
        let changes: Vec<ConfigChange> = taken.flat_map(std::mem::take).collect();
        let altered = planned.into_iter().map(|plan| plan.map(|_| ()));
        let mut altered: Altered = altered.map(|plan| plan.map_err(ApiError::from)).collect();
        if validate_only || changes.is_empty() {
            return (altered, false);
        }
        let concerned = self.concerned_leaders(&changes);
        let changes = changes.into_iter().map(MetadataChange::Config).collect();
        let stored = self
            .commit(&log, changes, now)
            .and_then(|()| self.settle(&log, &concerned, now));
        match stored {
            Ok(moved) => (altered, moved),
            Err(error) => {
                for result in altered.iter_mut().filter(|result| result.is_ok()) {
                    *result = Err(error.clone());
                }
                (altered, false)
            }
        }
    }

    /// The topics whose leaders depend on what is changed.
    fn concerned_leaders(&self, changes: &[ConfigChange]) -> Vec<Arc<Topic>> {
        let keys = ["min.insync.replicas", "unclean.leader.election.enable"];
        let image = self.image();
        let mut topics = vec![];
        for change in changes.iter().filter(|c| keys.contains(&&*c.key)) {
            match change.resource {
                ResourceType::Topic => topics.extend(image.topics.get(&*change.name).cloned()),
                ResourceType::Broker => return image.topics.values().cloned().collect(),
                _ => {}
            }
        }
        topics
    }

    /// What a group runs with.
    pub fn group_config(&self, group: &str) -> Arc<GroupConfig> {
        let kept = self
            .snapshots
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = kept.groups.get(group) {
            return Arc::clone(config);
        }
        drop(kept);
        let image = self.image();
        let isolation = self.isolation_in(&image);
        let mut config = image.configs.group(self.first, group);
        config.dlq_conflict = isolation.refused(group);
        if !image.can_pause() {
            config.share.delivery_paused = false;
            config.share.dlq_breaker_enable = false;
            config.share.dlq_timeout_pause_enable = false;
        }
        let config = Arc::new(config);
        let mut kept = self
            .snapshots
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if kept.groups.len() >= GROUPS_KEPT {
            kept.groups.clear();
        }
        kept.groups.insert(group.to_owned(), Arc::clone(&config));
        config
    }

    /// Who uses which dead-letter topic.
    pub fn isolation(&self) -> Arc<Isolation> {
        self.isolation_in(&self.image())
    }

    /// Made once after each change; the image's guard keeps it from growing old meanwhile.
    fn isolation_in(&self, image: &Image) -> Arc<Isolation> {
        let kept = self
            .snapshots
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(isolation) = &kept.isolation {
            return Arc::clone(isolation);
        }
        drop(kept);
        let isolation = Arc::new(image.configs.isolation(self.first));
        let mut kept = self
            .snapshots
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        kept.isolation = Some(Arc::clone(&isolation));
        isolation
    }

    /// Names in the log what of the groups' configurations does not hold, as this process finds it.
    pub(super) fn report_groups(&self) {
        let isolation = self.isolation();
        let disabled = "dead letters are off";
        if let Some(reason) = isolation.rest_refused() {
            tracing::error!("{disabled} for every group without configs of its own: {reason}");
        }
        for (group, reason) in isolation.all_refused() {
            tracing::error!(group, "{disabled}: {reason}");
        }
        let image = self.image();
        if image.can_pause() {
            return;
        }
        for problem in image.configs.without_pause(self.first, None) {
            tracing::error!("ottla.group.default has no effect: {problem}");
        }
        for group in image.configs.stored_names(ResourceType::Group) {
            for problem in image.configs.without_pause(self.first, Some(group)) {
                tracing::error!(group, "a stored config has no effect: {problem}");
            }
        }
    }
}
