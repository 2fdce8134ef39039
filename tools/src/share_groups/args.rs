//! The command line of `ottla share-groups`: the flags of Kafka's `kafka-share-groups.sh`, and ours.
//!
//! What goes together, and the words when it does not, are Kafka's as measured on 4.4.0. Kafka lets flags
//! pass that the action does not know (`--delete --dry-run` deletes); here they are refused.

use std::ffi::OsString;

use clap::{Parser, ValueEnum};

use super::reset::datetime;

/// What is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Output {
    /// Kafka's tables.
    #[default]
    Text,
    /// One JSON document.
    Json,
}

#[derive(Clone, Debug, Default, Parser)]
#[command(
    name = "ottla share-groups",
    about = "Lists, describes, deletes, pauses and resumes share groups, and manages their offsets.",
    disable_version_flag = true,
    after_help = "All flags of kafka-share-groups.sh are known; see docs/share-groups.md for examples."
)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each flag of the command line"
)]
pub(super) struct Flags {
    /// The servers to connect to, with commas (required)
    #[arg(long, value_name = "HOST:PORT")]
    pub(super) bootstrap_server: Option<String>,
    /// A properties file: client.id, request.timeout.ms and the like
    #[arg(long, value_name = "FILE")]
    pub(super) command_config: Option<String>,
    /// How long a question may take, in ms
    #[arg(long, value_name = "MS", default_value = "30000")]
    pub(super) timeout: String,
    /// What to print
    #[arg(long, value_enum, default_value = "text")]
    pub(super) output: Output,

    /// List all share groups
    #[arg(long, help_heading = "Actions")]
    pub(super) list: bool,
    /// Describe groups: offsets, or --members, --state, --circuit-breaker, --dlq-topology
    #[arg(long, help_heading = "Actions")]
    pub(super) describe: bool,
    /// Delete groups
    #[arg(long, help_heading = "Actions")]
    pub(super) delete: bool,
    /// Reset the offsets of one group without members: --dry-run or --execute
    #[arg(long, help_heading = "Actions")]
    pub(super) reset_offsets: bool,
    /// Delete the offsets of one group for topics
    #[arg(long, help_heading = "Actions")]
    pub(super) delete_offsets: bool,
    /// Pause the delivery of groups
    #[arg(long, help_heading = "Actions")]
    pub(super) pause: bool,
    /// Resume the delivery of groups
    #[arg(long, help_heading = "Actions")]
    pub(super) resume: bool,
    /// Print the version
    #[arg(long, help_heading = "Actions")]
    pub(super) version: bool,

    /// A share group, repeatable
    #[arg(long, value_name = "GROUP", help_heading = "Which groups and topics")]
    pub(super) group: Vec<String>,
    /// All share groups
    #[arg(long, help_heading = "Which groups and topics")]
    pub(super) all_groups: bool,
    /// A topic, or for --reset-offsets some of its partitions, repeatable
    #[arg(
        long,
        value_name = "TOPIC[:0,1]",
        help_heading = "Which groups and topics"
    )]
    pub(super) topic: Vec<String>,
    /// All topics that the group has offsets for
    #[arg(long, help_heading = "Which groups and topics")]
    pub(super) all_topics: bool,

    /// With --list: show states, or only groups in these; with --describe: the group's state
    #[arg(long, value_name = "STATES", num_args = 0..=1, default_missing_value = "", help_heading = "What to show")]
    pub(super) state: Option<String>,
    /// The offsets (what --describe does anyway)
    #[arg(long, help_heading = "What to show")]
    pub(super) offsets: bool,
    /// The members
    #[arg(long, help_heading = "What to show")]
    pub(super) members: bool,
    /// More columns
    #[arg(long, help_heading = "What to show")]
    pub(super) verbose: bool,
    /// Delivery state and circuit breaker
    #[arg(long, help_heading = "What to show")]
    pub(super) circuit_breaker: bool,
    /// The dead letter topic of every group, and what is wrong with it
    #[arg(long, help_heading = "What to show")]
    pub(super) dlq_topology: bool,

    /// To the earliest offset
    #[arg(long, help_heading = "Where to reset to")]
    pub(super) to_earliest: bool,
    /// To the latest offset
    #[arg(long, help_heading = "Where to reset to")]
    pub(super) to_latest: bool,
    /// To where the group is
    #[arg(long, help_heading = "Where to reset to")]
    pub(super) to_current: bool,
    /// To an offset
    #[arg(
        long,
        value_name = "OFFSET",
        allow_negative_numbers = true,
        help_heading = "Where to reset to"
    )]
    pub(super) to_offset: Option<String>,
    /// To the first record from then on: YYYY-MM-DDThh:mm:ss.sss, UTC unless an offset follows
    #[arg(long, value_name = "DATETIME", help_heading = "Where to reset to")]
    pub(super) to_datetime: Option<String>,
    /// To what a file says: topic,partition,offset on each line
    #[arg(long, value_name = "FILE", help_heading = "Where to reset to")]
    pub(super) from_file: Option<String>,
    /// Show the new offsets, change nothing
    #[arg(long, help_heading = "Where to reset to")]
    pub(super) dry_run: bool,
    /// Change the offsets
    #[arg(long, help_heading = "Where to reset to")]
    pub(super) execute: bool,
    /// Print the new offsets as a file for --from-file
    #[arg(long, help_heading = "Where to reset to")]
    pub(super) export: bool,

    /// Why, for people: at most 256 characters (--pause and --resume)
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: Option<String>,
}

/// A command line that was understood and is not wrong in itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(
    clippy::struct_field_names,
    reason = "--command-config is what the flag is called"
)]
pub(super) struct Command {
    pub(super) bootstrap: String,
    pub(super) command_config: Option<String>,
    pub(super) timeout_ms: u64,
    pub(super) output: Output,
    pub(super) action: Action,
}

/// Some groups, or all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Groups {
    All,
    Named(Vec<String>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// `None`: without states; an empty list: all states.
    List(Option<Vec<String>>),
    Describe(View, Groups),
    Delete(Groups),
    Reset(Reset),
    DeleteOffsets {
        group: String,
        topics: Vec<String>,
    },
    Deliver {
        groups: Vec<String>,
        pause: bool,
        reason: Option<String>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    Offsets { verbose: bool },
    Members { verbose: bool },
    State { verbose: bool },
    CircuitBreaker,
    DlqTopology,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reset {
    pub(super) group: String,
    pub(super) scope: Scope,
    pub(super) target: Target,
    pub(super) execute: bool,
    pub(super) export: bool,
}

/// Which partitions to reset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// Those of the topics that the group has offsets for.
    AllTopics,
    /// A topic, and which of its partitions: none named means all.
    Topics(Vec<(String, Vec<i32>)>),
    /// Those that the file names.
    File,
}

/// Where to reset to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Earliest,
    Latest,
    Current,
    Offset(i64),
    /// Milliseconds since the epoch.
    Time(i64),
    File(String),
}

/// What a command line comes to when there is nothing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Instead {
    /// Print this, and be content.
    Print(String),
    /// The command line is wrong, and how.
    Wrong(String),
}

const ACTIONS: &str = "Command must include exactly one action: --list, --describe, --delete, \
--reset-offsets, --delete-offsets, --pause, --resume.";
const STATES: [&str; 3] = ["Stable", "Dead", "Empty"];
/// The longest reason that the protocol takes, in characters.
const REASON_MAX: usize = 256;

/// Reads the arguments behind `share-groups`.
pub(super) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Command, Instead> {
    let name = OsString::from("ottla share-groups");
    let flags = Flags::try_parse_from(std::iter::once(name).chain(arguments)).map_err(|error| {
        let text = error.to_string();
        if error.use_stderr() {
            let first = text.lines().next().unwrap_or_default();
            Instead::Wrong(first.strip_prefix("error: ").unwrap_or(first).to_owned())
        } else {
            Instead::Print(text)
        }
    })?;
    if flags.version {
        return Err(Instead::Print(
            concat!("ottla ", env!("CARGO_PKG_VERSION"), "\n").to_owned(),
        ));
    }
    flags.command().map_err(Instead::Wrong)
}

impl Flags {
    fn command(self) -> Result<Command, String> {
        let bootstrap = self
            .bootstrap_server
            .clone()
            .ok_or("Missing required argument \"[bootstrap-server]\"")?;
        let timeout_ms = self
            .timeout
            .parse::<u64>()
            .map_err(|_| format!("Cannot parse argument '{}' of option timeout", self.timeout))?;
        let action = self.action()?;
        Ok(Command {
            bootstrap,
            command_config: self.command_config,
            timeout_ms,
            output: self.output,
            action,
        })
    }

    fn action(&self) -> Result<Action, String> {
        let actions = [
            ("list", self.list),
            ("describe", self.describe),
            ("delete", self.delete),
            ("reset-offsets", self.reset_offsets),
            ("delete-offsets", self.delete_offsets),
            ("pause", self.pause),
            ("resume", self.resume),
        ];
        let mut chosen = actions.iter().filter(|(_, is)| *is);
        let (Some((action, _)), None) = (chosen.next(), chosen.next()) else {
            return Err(ACTIONS.to_owned());
        };
        let parsed = match *action {
            "list" => self.list_action(),
            "describe" => self.describe_action(),
            "delete" => self.delete_action(),
            "reset-offsets" => self.reset_action().map(Action::Reset),
            "delete-offsets" => self.delete_offsets_action(),
            _ => self.delivery_action(),
        }?;
        self.only_what_fits(action)?;
        Ok(parsed)
    }

    /// Refuses flags that have no meaning for the action.
    fn only_what_fits(&self, action: &str) -> Result<(), String> {
        let reset = &["reset-offsets"][..];
        let describe = &["describe"][..];
        let uses: [(&str, bool, &[&str]); 20] = [
            (
                "group",
                !self.group.is_empty(),
                &[
                    "describe",
                    "delete",
                    "reset-offsets",
                    "delete-offsets",
                    "pause",
                    "resume",
                ],
            ),
            ("all-groups", self.all_groups, &["describe", "delete"]),
            (
                "topic",
                !self.topic.is_empty(),
                &["reset-offsets", "delete-offsets"],
            ),
            ("all-topics", self.all_topics, reset),
            ("state", self.state.is_some(), &["list", "describe"]),
            ("offsets", self.offsets, describe),
            ("members", self.members, describe),
            ("verbose", self.verbose, describe),
            ("circuit-breaker", self.circuit_breaker, describe),
            ("dlq-topology", self.dlq_topology, describe),
            ("to-earliest", self.to_earliest, reset),
            ("to-latest", self.to_latest, reset),
            ("to-current", self.to_current, reset),
            ("to-offset", self.to_offset.is_some(), reset),
            ("to-datetime", self.to_datetime.is_some(), reset),
            ("from-file", self.from_file.is_some(), reset),
            ("dry-run", self.dry_run, reset),
            ("execute", self.execute, reset),
            ("export", self.export, reset),
            ("reason", self.reason.is_some(), &["pause", "resume"]),
        ];
        for (flag, is, fits) in uses {
            if is && !fits.contains(&action) {
                return Err(apart(flag, action));
            }
        }
        Ok(())
    }

    fn list_action(&self) -> Result<Action, String> {
        let Some(text) = &self.state else {
            return Ok(Action::List(None));
        };
        let mut states = Vec::new();
        for named in text.split(',').map(str::trim).filter(|s| !s.is_empty()) {
            let known = STATES.iter().find(|s| s.eq_ignore_ascii_case(named));
            let known = known.ok_or_else(|| {
                let valid = STATES.join(", ");
                format!("Invalid state list '{text}'. Valid states are: {valid}")
            })?;
            states.push((*known).to_owned());
        }
        Ok(Action::List(Some(states)))
    }

    fn describe_action(&self) -> Result<Action, String> {
        let shown = [
            ("members", self.members),
            ("offsets", self.offsets),
            ("state", self.state.is_some()),
            ("circuit-breaker", self.circuit_breaker),
            ("dlq-topology", self.dlq_topology),
        ];
        let groups = self.groups()?;
        let groups = match groups {
            None if self.dlq_topology => Groups::All,
            None => {
                let text = "Option [describe] takes one of these options: [all-groups], [group]";
                return Err(text.to_owned());
            }
            Some(groups) => groups,
        };
        if shown.iter().filter(|(_, is)| *is).count() > 1 {
            let text = "Option [describe] takes at most one of these options: [members], [offsets], \
[state], [circuit-breaker], [dlq-topology]";
            return Err(text.to_owned());
        }
        if self.state.as_ref().is_some_and(|value| !value.is_empty()) {
            return Err("Option [describe] does not take a value for [state]".to_owned());
        }
        let verbose = self.verbose;
        let view = match shown.iter().find(|(_, is)| *is).map(|(name, _)| *name) {
            Some("members") => View::Members { verbose },
            Some("state") => View::State { verbose },
            Some("circuit-breaker") => View::CircuitBreaker,
            Some("dlq-topology") => View::DlqTopology,
            _ => View::Offsets { verbose },
        };
        if verbose && matches!(view, View::CircuitBreaker | View::DlqTopology) {
            let flag = if self.circuit_breaker {
                "circuit-breaker"
            } else {
                "dlq-topology"
            };
            return Err(apart("verbose", flag));
        }
        Ok(Action::Describe(view, groups))
    }

    /// What `--group` and `--all-groups` say; sorted, each once.
    fn groups(&self) -> Result<Option<Groups>, String> {
        if self.all_groups && !self.group.is_empty() {
            return Err(apart("group", "all-groups"));
        }
        if self.all_groups {
            return Ok(Some(Groups::All));
        }
        let mut groups = self.group.clone();
        groups.sort();
        groups.dedup();
        Ok((!groups.is_empty()).then_some(Groups::Named(groups)))
    }

    fn delete_action(&self) -> Result<Action, String> {
        let groups = self
            .groups()?
            .ok_or("Option [delete] takes the options [group] or [all-groups].")?;
        if !self.topic.is_empty() || self.all_topics {
            let text = "Option [delete] does not take the options [topic] or [all-topics].";
            return Err(text.to_owned());
        }
        Ok(Action::Delete(groups))
    }

    fn delete_offsets_action(&self) -> Result<Action, String> {
        if self.group.is_empty() || self.topic.is_empty() {
            let text = "Option [delete-offsets] takes the following options: [group], [topic]";
            return Err(text.to_owned());
        }
        let mut topics = self.topic.clone();
        topics.sort();
        topics.dedup();
        Ok(Action::DeleteOffsets {
            group: self.one_group("delete-offsets")?,
            topics,
        })
    }

    fn one_group(&self, action: &str) -> Result<String, String> {
        match &self.group[..] {
            [one] => Ok(one.clone()),
            [] => Err(format!("Option [{action}] takes the option: [group]")),
            _ => {
                Err("Found multiple arguments for option group, but you asked for only one".into())
            }
        }
    }

    fn delivery_action(&self) -> Result<Action, String> {
        let action = if self.pause { "pause" } else { "resume" };
        let Some(Groups::Named(groups)) = self.groups()? else {
            return Err(format!("Option [{action}] takes the option: [group]"));
        };
        let reason = self.reason.clone().filter(|reason| !reason.is_empty());
        let length = reason.as_ref().map_or(0, |reason| reason.chars().count());
        if length > REASON_MAX {
            return Err(format!(
                "Option [reason] takes at most {REASON_MAX} characters; this one has {length}"
            ));
        }
        Ok(Action::Deliver {
            groups,
            pause: self.pause,
            reason,
        })
    }

    fn reset_action(&self) -> Result<Reset, String> {
        match (self.dry_run, self.execute) {
            (true, true) => {
                let text = "Option [reset-offsets] only accepts one of [execute] and [dry-run]";
                return Err(text.to_owned());
            }
            (false, false) => {
                let text = "Option [reset-offsets] takes the option: [execute] or [dry-run]";
                return Err(text.to_owned());
            }
            _ => {}
        }
        self.groups()?;
        let group = self.one_group("reset-offsets")?;
        let target = self.target()?;
        let scope = self.scope(&target)?;
        Ok(Reset {
            group,
            scope,
            target,
            execute: self.execute,
            export: self.export,
        })
    }

    fn target(&self) -> Result<Target, String> {
        let named = [
            ("to-earliest", self.to_earliest),
            ("to-latest", self.to_latest),
            ("to-current", self.to_current),
            ("to-offset", self.to_offset.is_some()),
            ("to-datetime", self.to_datetime.is_some()),
            ("from-file", self.from_file.is_some()),
        ];
        let mut named = named.iter().filter(|(_, is)| *is).map(|(name, _)| *name);
        if let (Some(one), Some(other)) = (named.next(), named.next()) {
            return Err(apart(one, other));
        }
        if let Some(text) = &self.to_offset {
            let offset = text
                .parse()
                .map_err(|_| format!("Cannot parse argument '{text}' of option to-offset"))?;
            return Ok(Target::Offset(offset));
        }
        if let Some(text) = &self.to_datetime {
            return datetime::parse(text)
                .map(Target::Time)
                .map_err(|problem| format!("Option [to-datetime]: {problem}"));
        }
        if let Some(path) = &self.from_file {
            return Ok(Target::File(path.clone()));
        }
        match (self.to_earliest, self.to_latest, self.to_current) {
            (true, ..) => Ok(Target::Earliest),
            (_, true, _) => Ok(Target::Latest),
            (.., true) => Ok(Target::Current),
            _ => Err(
                "Option [reset-offsets] takes one of these options: [from-file], [to-current], \
[to-datetime], [to-earliest], [to-latest], [to-offset]"
                    .to_owned(),
            ),
        }
    }

    fn scope(&self, target: &Target) -> Result<Scope, String> {
        if self.all_topics && !self.topic.is_empty() {
            return Err(apart("topic", "all-topics"));
        }
        if matches!(target, Target::File(_)) {
            let other = [
                ("topic", !self.topic.is_empty()),
                ("all-topics", self.all_topics),
            ];
            return match other.iter().find(|(_, is)| *is) {
                Some((name, _)) => Err(apart(name, "from-file")),
                None => Ok(Scope::File),
            };
        }
        if self.all_topics {
            return Ok(Scope::AllTopics);
        }
        if self.topic.is_empty() {
            let text = "Option [reset-offsets] takes one of these options: [all-topics], [from-file], [topic]";
            return Err(text.to_owned());
        }
        let topics = self.topic.iter().map(|text| partitions(text));
        Ok(Scope::Topics(topics.collect::<Result<_, _>>()?))
    }
}

/// `topic` or `topic:0,1`.
fn partitions(text: &str) -> Result<(String, Vec<i32>), String> {
    let Some((topic, listed)) = text.split_once(':') else {
        return Ok((text.to_owned(), Vec::new()));
    };
    let number = |part: &str| {
        let number = part.trim().parse::<i32>().ok().filter(|n| *n >= 0);
        number.ok_or_else(|| format!("Invalid partition '{part}' specified in topic arg '{text}'"))
    };
    let listed: Result<Vec<i32>, String> = listed.split(',').map(number).collect();
    Ok((topic.to_owned(), listed?))
}

fn apart(one: &str, other: &str) -> String {
    format!("Option \"[{one}]\" can't be used with option \"[{other}]\"")
}

#[cfg(test)]
#[path = "args_tests.rs"]
mod tests;
