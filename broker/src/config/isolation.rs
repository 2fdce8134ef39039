//! `share.group.dlq.strict.isolation` (draft KIP-1316): which groups' dead letters go to the same topic, and
//! whether one of them wants it alone.
//!
//! A topic is used by every group whose config names it, members or not. A default for all groups that names
//! a topic makes it the topic of groups that nobody has heard of yet: it is shared from the start.

use std::collections::BTreeMap;

use super::Configs;
use super::alter::{ConfigChange, Refusal, ResourceType};
use super::configs::Own;
use super::table::{self, Scope};

const TOPIC: &str = "errors.deadletterqueue.topic.name";
const STRICT: &str = "share.group.dlq.strict.isolation";

/// What one group's config says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Wish {
    /// The topic for dead letters; empty is none.
    topic: String,
    /// Whether it is to be the group's alone.
    strict: bool,
    /// Which of the two lines are the group's own; the others are defaults for all groups.
    own_topic: bool,
    own_strict: bool,
}

/// Two groups that cannot both have what their configs say; `None` is every group without configs of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Conflict {
    topic: String,
    strict: Option<String>,
    other: Option<String>,
    text: String,
}

impl Conflict {
    /// The groups and the topic; the text may change with the lines that say so.
    fn parties(&self) -> (&str, Option<&str>, Option<&str>) {
        (&self.topic, self.strict.as_deref(), self.other.as_deref())
    }
}

/// Who uses which dead-letter topic.
#[derive(Clone, Debug, Default)]
pub struct Isolation {
    /// The groups with configs of their own.
    groups: BTreeMap<String, Wish>,
    /// All others.
    rest: Wish,
    /// The groups of `groups` by topic.
    users: BTreeMap<String, Vec<String>>,
    /// Whether any group wants its topic alone; if not, nothing else is kept.
    any: bool,
}

impl Isolation {
    /// What holds on broker `id`, the configs in `instead` in the place of what their groups have stored.
    fn with(configs: &Configs, id: i32, instead: &BTreeMap<String, Own>) -> Self {
        let none = Own::new();
        let rest = configs.wish(id, &none);
        let stored = configs.stored_names(ResourceType::Group).into_iter();
        let stored = stored.filter(|name| !instead.contains_key(*name));
        let stored = stored.map(|name| {
            let own = configs.stored(ResourceType::Group, name);
            (name, own.unwrap_or(&none))
        });
        let instead = instead.iter().map(|(name, own)| (name.as_str(), own));
        let all: Vec<(&str, &Own)> = stored.chain(instead).collect();
        if !rest.strict && !all.iter().any(|(_, own)| own.contains_key(STRICT)) {
            return Self::default();
        }
        let groups: BTreeMap<String, Wish> = all
            .into_iter()
            .map(|(name, own)| (name.to_owned(), configs.wish(id, own)))
            .collect();
        let mut users: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, wish) in &groups {
            let users = users.entry(wish.topic.clone()).or_default();
            users.push(name.clone());
        }
        Self {
            any: rest.strict || groups.values().any(|wish| wish.strict),
            groups,
            rest,
            users,
        }
    }

    /// Why the dead letters of `group` go nowhere: it wants its topic alone, and does not have it so.
    pub fn refused(&self, group: &str) -> Option<String> {
        let wish = self.wish_of(Some(group));
        if !self.any || !wish.strict {
            return None;
        }
        let mut others = self.sharers(group);
        others.next().map(|other| self.text(Some(group), other))
    }

    /// The groups with configs of their own whose dead letters go nowhere, each with the reason.
    pub fn all_refused(&self) -> Vec<(&str, String)> {
        let groups = self.groups.keys();
        groups
            .filter_map(|group| Some((group.as_str(), self.refused(group)?)))
            .collect()
    }

    /// Why no group without configs of its own has dead letters.
    pub fn rest_refused(&self) -> Option<String> {
        let contradiction = self.any && self.rest.strict && !self.rest.topic.is_empty();
        contradiction.then(|| self.text(None, None))
    }

    /// The other groups whose config names the topic of `group`.
    fn sharers<'a>(&'a self, group: &str) -> impl Iterator<Item = Option<&'a str>> {
        let topic = &self.wish_of(Some(group)).topic;
        let users = self.users.get(topic).map_or(&[][..], Vec::as_slice);
        let users = if topic.is_empty() { &[] } else { users };
        let rest = !topic.is_empty() && *topic == self.rest.topic;
        let group = group.to_owned();
        let named = users.iter().filter(move |user| **user != group);
        let named = named.map(|user| Some(user.as_str()));
        named.chain(rest.then_some(None))
    }

    /// Every conflict that `group` is part of.
    fn conflicts(&self, group: &str) -> Vec<Conflict> {
        if !self.any {
            return Vec::new();
        }
        let this = self.wish_of(Some(group));
        let mut found = Vec::new();
        for other in self.sharers(group) {
            let pairs = [
                (this.strict, Some(group), other),
                (self.wish_of(other).strict, other, Some(group)),
            ];
            for (strict, of, with) in pairs {
                if strict {
                    found.push(Conflict {
                        topic: this.topic.clone(),
                        strict: of.map(str::to_owned),
                        other: with.map(str::to_owned),
                        text: self.text(of, with),
                    });
                }
            }
        }
        found
    }

    fn wish_of(&self, group: Option<&str>) -> &Wish {
        group
            .and_then(|group| self.groups.get(group))
            .unwrap_or(&self.rest)
    }

    /// Both groups, and the lines of which one must go.
    fn text(&self, strict: Option<&str>, other: Option<&str>) -> String {
        let wish = self.wish_of(strict);
        let topic = &wish.topic;
        let named = line(
            &format!("{TOPIC}={topic}"),
            self.wish_of(other).own_topic,
            other,
        );
        let wanted = line(&format!("{STRICT}=true"), wish.own_strict, strict);
        format!(
            "{} has {STRICT}=true, but its dead-letter topic '{topic}' is also that of {}. Delete \
             {named}, or delete {wanted}",
            capital(&who(strict)),
            who(other)
        )
    }
}

/// A config line, and whose it is.
fn line(text: &str, own: bool, group: Option<&str>) -> String {
    match group.filter(|_| own) {
        Some(group) => format!("{text} of group '{group}'"),
        None => format!("ottla.group.default.{text} of the broker"),
    }
}

fn who(group: Option<&str>) -> String {
    group.map_or_else(
        || "every group without a dead-letter topic of its own".to_owned(),
        |group| format!("group '{group}'"),
    )
}

fn capital(text: &str) -> String {
    let (first, rest) = text.split_at(1);
    first.to_ascii_uppercase() + rest
}

impl Configs {
    /// Who uses which dead-letter topic, as broker `id` resolves groups.
    pub fn isolation(&self, id: i32) -> Isolation {
        Isolation::with(self, id, &BTreeMap::new())
    }

    fn wish(&self, id: i32, own: &Own) -> Wish {
        let of = |key: &str| {
            let def = table::find(Scope::Group, key)?;
            let text = self.own_text(def, own);
            let is_own = text.is_some();
            Some((text.or_else(|| self.inherited(id, def))?, is_own))
        };
        let (topic, own_topic) = of(TOPIC).unwrap_or_default();
        let (strict, own_strict) = of(STRICT).unwrap_or_default();
        Wish {
            topic,
            strict: strict == "true",
            own_topic,
            own_strict,
        }
    }

    /// Refuses the changes of a request after which two groups would share a topic that one of them wants
    /// alone. Looked at is what holds once the whole request is done; a group that is refused keeps what
    /// it has, so that what is left is looked at again. A conflict that was there before refuses nothing.
    pub fn isolate(&self, id: i32, results: &mut [Result<Vec<ConfigChange>, Refusal>]) {
        let before = self.isolation(id);
        loop {
            let after = Isolation::with(self, id, &self.wanted(results));
            let mut refused = false;
            for result in results.iter_mut() {
                let Some(group) = result.as_ref().ok().and_then(|changes| regrouped(changes))
                else {
                    continue;
                };
                let old = before.conflicts(group);
                let fresh = |conflict: &Conflict| {
                    !old.iter().any(|old| old.parties() == conflict.parties())
                };
                if let Some(conflict) = after.conflicts(group).into_iter().find(fresh) {
                    *result = Err(Refusal::config(conflict.text));
                    refused = true;
                }
            }
            if !refused {
                return;
            }
        }
    }

    /// The configs that the groups would have whose dead letters change.
    fn wanted(&self, results: &[Result<Vec<ConfigChange>, Refusal>]) -> BTreeMap<String, Own> {
        let mut wanted = BTreeMap::new();
        for changes in results.iter().flatten() {
            let Some(group) = regrouped(changes) else {
                continue;
            };
            let own: &mut Own = wanted.entry(group.to_owned()).or_insert_with(|| {
                let stored = self.stored(ResourceType::Group, group);
                stored.cloned().unwrap_or_default()
            });
            for change in changes {
                match &change.value {
                    Some(value) => own.insert(change.key.clone(), value.clone()),
                    None => own.remove(&change.key),
                };
            }
        }
        wanted
    }
}

/// The group, if these changes of one resource concern who uses a dead-letter topic.
fn regrouped(changes: &[ConfigChange]) -> Option<&str> {
    let concerns = |change: &&ConfigChange| {
        change.resource == ResourceType::Group && [TOPIC, STRICT].contains(&change.key.as_str())
    };
    changes
        .iter()
        .find(concerns)
        .map(|change| change.name.as_str())
}
