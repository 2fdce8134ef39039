//! `ottla share-groups`: lists, describes, deletes, pauses and resumes share groups, and manages their
//! offsets.
//!
//! The flags and the tables are those of Kafka 4.4's `kafka-share-groups.sh`; docs/differences.md says
//! where this tool does better. `--circuit-breaker`, `--dlq-topology`, `--pause`, `--resume` and
//! `--output json` are Ottla's own. It works against any broker of the Kafka protocol, as far as that
//! broker knows the question.

mod args;
mod delete;
mod delivery;
mod describe;
mod list;
mod report;
mod reset;
mod table;
mod topology;

use std::ffi::OsString;

use args::{Action, Command, Instead, Output, View};
use report::{Report, add};

use crate::client::{Cluster, Error, Settings};

/// What a command line came to: nothing was printed yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Printed {
    /// For stdout.
    pub out: String,
    /// For stderr.
    pub err: String,
    /// The exit status: 0 when all of it was done, else 1.
    pub status: u8,
}

/// Does what the arguments behind `share-groups` say.
pub async fn run(arguments: impl IntoIterator<Item = OsString>) -> Printed {
    let command = match args::parse(arguments) {
        Ok(command) => command,
        Err(Instead::Print(out)) => {
            return Printed {
                out,
                ..Printed::default()
            };
        }
        Err(Instead::Wrong(problem)) => {
            return Printed {
                err: format!("{problem}\n`ottla share-groups --help` lists the flags\n"),
                status: 1,
                ..Printed::default()
            };
        }
    };
    let output = command.output;
    let mut notes = String::new();
    match execute(command, &mut notes).await {
        Ok(report) => Printed {
            out: report.stdout(output),
            err: notes + &report.notes,
            status: u8::from(report.failed),
        },
        Err(error) => Printed {
            out: String::new(),
            err: format!("{notes}Error: {error}\n"),
            status: 1,
        },
    }
}

async fn execute(command: Command, notes: &mut String) -> Result<Report, Error> {
    let mut settings = Settings::new(&command.bootstrap)?;
    settings.timeout_ms = command.timeout_ms;
    if let Some(path) = &command.command_config {
        settings.read(path)?;
        for key in &settings.unused {
            add(
                notes,
                format_args!("{path}: {key} has no meaning for this tool\n"),
            );
        }
    }
    let cluster = &mut Cluster::new(settings);
    match &command.action {
        Action::List(states) => list::run(cluster, states.as_deref()).await,
        Action::Describe(view, groups) => match view {
            View::CircuitBreaker => delivery::describe(cluster, groups).await,
            View::DlqTopology => topology::describe(cluster, groups).await,
            _ => describe::run(cluster, *view, groups).await,
        },
        Action::Delete(groups) => delete::groups(cluster, groups).await,
        Action::DeleteOffsets { group, topics } => delete::offsets(cluster, group, topics).await,
        Action::Reset(plan) => reset::run(cluster, plan, command.output == Output::Json).await,
        Action::Deliver {
            groups,
            pause,
            reason,
        } => delivery::alter(cluster, groups, *pause, reason.as_deref()).await,
    }
}
