//! The command line, turned into one checked value.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Parser, Subcommand};

use crate::config::{
    AlterOp, ConfigError, Configs, OpKind, Origin, ResourceType, StaticConfig, World,
    check_topic_name, environment, file,
};

/// Why the process ends before it serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// What to print: to stdout if `status` is 0, else as the last line on stderr.
    pub text: String,
    /// The exit status: 0 for `--help`, 2 for a wrong flag, else that of [`ConfigError`].
    pub status: u8,
}

impl From<ConfigError> for Exit {
    fn from(error: ConfigError) -> Self {
        Self {
            status: error.exit_status(),
            text: error.text,
        }
    }
}

/// What to do.
#[derive(Clone, Debug)]
pub enum Command {
    /// Serve, until told to stop.
    Serve(Box<Startup>),
    /// Run the tool for share groups, with these arguments.
    ShareGroups(Vec<OsString>),
    /// Print the version.
    Version,
}

/// A topic that is there from the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeedTopic {
    /// Its name.
    pub name: String,
    /// Its partitions; `None`: `num.partitions`.
    pub partitions: Option<i32>,
}

/// The configs that a group has from the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeedGroup {
    /// Its name.
    pub name: String,
    /// Checked keys and values.
    pub configs: Vec<(String, String)>,
}

/// Everything that the process was told to do.
#[derive(Clone, Debug)]
pub struct Startup {
    /// The configuration.
    pub statics: Arc<StaticConfig>,
    /// Topics to make, if they are not there.
    pub topics: Vec<SeedTopic>,
    /// Group configs to set.
    pub groups: Vec<SeedGroup>,
    /// A file to make once everything is served.
    pub ready_file: Option<PathBuf>,
    /// What to log: a level, or a filter such as `info,ottla::config=debug`.
    pub log: String,
    /// One readable line for each thing that is probably not meant.
    pub warnings: Vec<String>,
    /// `CLUSTER_ID`, which the apache/kafka image formats its storage with.
    pub cluster_id: Option<String>,
}

#[derive(Debug, Parser)]
#[command(
    name = "ottla",
    version,
    about = "Kafka's little sister: a small, fast broker for development and tests",
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Sub>,
    #[command(flatten)]
    serve: ServeArgs,
}

#[derive(Debug, Subcommand)]
enum Sub {
    /// Serve (the same as no command)
    Serve(Box<ServeArgs>),
    /// List, describe, delete, pause and resume share groups, and manage their offsets, of any broker
    // Its own parser knows its flags, so that their words are the tool's alone.
    #[command(disable_help_flag = true)]
    ShareGroups {
        /// `ottla share-groups --help` lists them
        #[arg(
            trailing_var_arg = true,
            allow_hyphen_values = true,
            value_name = "FLAGS"
        )]
        flags: Vec<OsString>,
    },
    /// Print the version
    Version,
}

#[derive(Debug, Args)]
struct ServeArgs {
    /// Address to serve on, repeatable; a name makes a listener of its own; port 0 is any
    #[arg(long, value_name = "[NAME://]HOST:PORT")]
    listen: Vec<String>,
    /// Address that clients are told, by the listener's name; default: the one that they used
    #[arg(long, value_name = "[NAME://]HOST:PORT")]
    advertise: Vec<String>,
    /// Address of metrics, page and admin API, or none [default: 127.0.0.1:9644]
    #[arg(long, value_name = "HOST:PORT")]
    admin_listen: Option<String>,
    /// Where to keep records [default: in memory, gone with the process]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<String>,
    /// A Kafka server.properties
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// One line of a server.properties, repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// A topic to make, repeatable
    #[arg(long, value_name = "NAME[:PARTITIONS]")]
    topic: Vec<String>,
    /// A config of a group, repeatable
    #[arg(long, value_name = "NAME:KEY=VALUE")]
    group: Vec<String>,
    /// How many logical brokers to serve [default: 1]
    #[arg(long, value_name = "N")]
    brokers: Option<i32>,
    /// Which defaults hold: desk or kafka [default: desk]
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// A file to make once everything is served
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
    /// What to log: error, warn, info, debug, trace, or a filter
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log: String,
}

/// Reads the command line and the environment.
pub fn parse(
    arguments: impl IntoIterator<Item = OsString>,
    variables: impl IntoIterator<Item = (String, String)>,
) -> Result<Command, Exit> {
    let cli = Cli::try_parse_from(arguments).map_err(usage)?;
    let serve = match cli.command {
        Some(Sub::Version) => return Ok(Command::Version),
        Some(Sub::ShareGroups { flags }) => return Ok(Command::ShareGroups(flags)),
        Some(Sub::Serve(serve)) => *serve,
        None => cli.serve,
    };
    Ok(Command::Serve(Box::new(startup(serve, variables)?)))
}

/// Clap's help as it is; its errors as one line.
fn usage(error: clap::Error) -> Exit {
    if !error.use_stderr() {
        return Exit {
            text: error.to_string(),
            status: 0,
        };
    }
    let rendered = error.to_string();
    let first = rendered.lines().next().unwrap_or_default();
    let problem = first.strip_prefix("error: ").unwrap_or(first);
    Exit {
        text: format!("{problem}; `ottla --help` lists the flags"),
        status: 2,
    }
}

fn startup(
    serve: ServeArgs,
    variables: impl IntoIterator<Item = (String, String)>,
) -> Result<Startup, ConfigError> {
    let variables: Vec<_> = variables.into_iter().collect();
    let cluster_id = variables.iter().find(|(name, _)| name == "CLUSTER_ID");
    let cluster_id = cluster_id
        .map(|(_, id)| id.clone())
        .filter(|id| !id.is_empty());
    let from_file = match &serve.config {
        Some(path) => file::read(path)?,
        None => file::FileSettings::default(),
    };
    let mut warnings = from_file.warnings;
    let mut settings = from_file.settings;
    settings.extend(environment::settings(variables));
    for pair in &serve.set {
        let (key, value) = pair
            .split_once('=')
            .filter(|(key, _)| !key.is_empty())
            .ok_or_else(|| ConfigError::invalid(format!("--set {pair}: write --set KEY=VALUE")))?;
        settings.push((key.trim().to_owned(), value.to_owned(), Origin::Set));
    }
    settings.extend(flags(&serve));
    let statics = Arc::new(StaticConfig::new(settings)?);
    warnings.extend(statics.warnings().iter().cloned());
    Ok(Startup {
        topics: serve
            .topic
            .iter()
            .map(|text| seed_topic(text))
            .collect::<Result<_, _>>()?,
        groups: seed_groups(&statics, &serve.group)?,
        statics,
        ready_file: serve.ready_file,
        log: serve.log,
        warnings,
        cluster_id,
    })
}

/// What flags of their own set.
fn flags(serve: &ServeArgs) -> Vec<(String, String, Origin)> {
    let mut found = Vec::new();
    let mut set = |key: &str, value: Option<String>| {
        found.extend(value.map(|value| (key.to_owned(), value, Origin::Flag)));
    };
    set("ottla.brokers", serve.brokers.map(|n| n.to_string()));
    set("ottla.profile", serve.profile.clone());
    set("ottla.admin.listener", serve.admin_listen.clone());
    set("log.dirs", serve.data_dir.clone());
    set("listeners", named(&serve.listen));
    set("advertised.listeners", named(&serve.advertise));
    found
}

/// Addresses as a list of listeners; those without a name are called PLAINTEXT, `PLAINTEXT_2` and so on.
fn named(addresses: &[String]) -> Option<String> {
    let mut unnamed = 0;
    let mut name = |address: &String| {
        if address.contains("://") {
            return address.clone();
        }
        unnamed += 1;
        match unnamed {
            1 => format!("PLAINTEXT://{address}"),
            n => format!("PLAINTEXT_{n}://{address}"),
        }
    };
    let listed: Vec<_> = addresses.iter().map(&mut name).collect();
    (!listed.is_empty()).then(|| listed.join(","))
}

fn seed_topic(text: &str) -> Result<SeedTopic, ConfigError> {
    let problem = |problem: &str| ConfigError::invalid(format!("--topic {text}: {problem}"));
    let (name, partitions) = match text.split_once(':') {
        Some((name, number)) => {
            let number = number.parse::<i32>().ok().filter(|n| *n > 0);
            (
                name,
                Some(number.ok_or_else(|| problem("write --topic NAME:PARTITIONS"))?),
            )
        }
        None => (text, None),
    };
    check_topic_name(name).map_err(|refusal| problem(&refusal.message.unwrap_or_default()))?;
    Ok(SeedTopic {
        name: name.to_owned(),
        partitions,
    })
}

/// The seeds of each group, checked as if they were altered.
fn seed_groups(
    statics: &Arc<StaticConfig>,
    texts: &[String],
) -> Result<Vec<SeedGroup>, ConfigError> {
    let mut groups: BTreeMap<String, Vec<AlterOp>> = BTreeMap::new();
    for text in texts {
        // A value may hold a colon, and so may a group's name: the key begins at the last before the `=`.
        let parsed = text.split_once('=').and_then(|(left, value)| {
            let (name, key) = left.rsplit_once(':')?;
            (!name.is_empty()).then(|| (name, key.trim(), value))
        });
        let (name, key, value) = parsed.ok_or_else(|| {
            ConfigError::invalid(format!("--group {text}: write --group NAME:KEY=VALUE"))
        })?;
        let ops = groups.entry(name.to_owned()).or_default();
        ops.retain(|op| op.key != key);
        let value = Some(value.to_owned());
        ops.push(AlterOp {
            key: key.to_owned(),
            kind: OpKind::Set,
            value,
        });
    }
    let configs = Configs::new(statics.clone());
    let world = World {
        broker: statics.broker_ids()[0],
        topic_exists: &|_| false,
        elr: false,
        pause: true,
        loggers: &[],
    };
    let check = |(name, ops): (String, Vec<AlterOp>)| {
        let changes = configs
            .incremental_alter(&world, ResourceType::Group.wire(), &name, &ops)
            .map_err(|refusal| {
                let problem = refusal.message.unwrap_or_default();
                ConfigError::invalid(format!("--group {name}: {problem}"))
            })?;
        let set = changes
            .into_iter()
            .filter_map(|change| Some((change.key, change.value?)));
        Ok(SeedGroup {
            name,
            configs: set.collect(),
        })
    };
    groups.into_iter().map(check).collect()
}

#[cfg(test)]
#[path = "cli_tests.rs"]
mod tests;
