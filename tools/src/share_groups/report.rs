//! What a command has found, as text and as JSON.

use std::fmt::{self, Write as _};

use ottla_protocol::{ErrorCode, api_key};
use serde_json::{Value, json};

use super::args::{Groups, Output};
use crate::client::{Cluster, Error};

/// What a command has found.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// Kafka's tables, and what belongs to them.
    pub(super) text: String,
    /// The same as one document.
    pub(super) json: Value,
    /// For stderr, whatever the output is.
    pub(super) notes: String,
    /// Something was not done: the exit status is 1.
    pub(super) failed: bool,
}

impl Report {
    pub(super) fn stdout(&self, output: Output) -> String {
        match output {
            Output::Text => self.text.clone(),
            Output::Json => format!("{:#}\n", self.json),
        }
    }

    /// Adds a line for stderr.
    pub(super) fn note(&mut self, line: &str) {
        self.notes.push_str(line);
        self.notes.push('\n');
    }

    /// Something that was not done, of several that were asked for.
    pub(super) fn fail(&mut self, error: &Error) {
        self.failed = true;
        self.note(&format!("Error: {error}"));
    }
}

/// Adds to a text.
pub(super) fn add(to: &mut String, what: fmt::Arguments<'_>) {
    // Writing to a String does not fail.
    let _ = to.write_fmt(what);
}

/// The groups that are meant; an empty answer to "all" is noted.
pub(super) async fn meant(
    cluster: &mut Cluster,
    groups: &Groups,
    report: &mut Report,
) -> Result<Vec<String>, Error> {
    match groups {
        Groups::Named(named) => Ok(named.clone()),
        Groups::All => {
            let found = cluster.share_groups(&[]).await?;
            if found.is_empty() {
                report.note("There are no share groups.");
            }
            Ok(found.into_keys().collect())
        }
    }
}

/// An error as JSON: the code's name, or null where no broker spoke; and a sentence.
pub(super) fn error_json(error: &Error) -> Value {
    let code = match error.code() {
        ErrorCode::NONE => Value::Null,
        code => json!(code.name()),
    };
    json!({ "code": code, "message": said(error) })
}

/// What a broker said; where it gave a code only, the words that Kafka's tools use.
pub(super) fn said(error: &Error) -> String {
    match error {
        Error::Refused {
            message: Some(message),
            ..
        } if !message.is_empty() => message.clone(),
        Error::Refused { code, .. } => match *code {
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION => {
                "This server does not host this topic-partition.".to_owned()
            }
            ErrorCode::NON_EMPTY_GROUP => "The group is not empty.".to_owned(),
            ErrorCode::GROUP_ID_NOT_FOUND => "The group id does not exist.".to_owned(),
            ErrorCode::GROUP_AUTHORIZATION_FAILED => "Group authorization failed.".to_owned(),
            code => code.name().to_owned(),
        },
        error => error.to_string(),
    }
}

/// Says what a broker lacks when it does not know Ottla's own questions.
pub(super) fn lacking(mut error: Error) -> Error {
    if let Error::Unsupported { key, note, .. } = &mut error {
        let what = match *key {
            api_key::ALTER_SHARE_GROUP_DELIVERY => "pausing and resuming share groups (KIP-1249)",
            api_key::DESCRIBE_SHARE_GROUP_DELIVERY => {
                "circuit breaker, delivery state and letter counts (KIP-1316, KIP-1249)"
            }
            _ => return error,
        };
        *note = Some(format!(": Apache Kafka does not have {what}"));
    }
    error
}

/// `-` for what is not known.
pub(super) fn or_dash(value: i64) -> String {
    if value < 0 {
        "-".to_owned()
    } else {
        value.to_string()
    }
}

/// Null for what is not known.
pub(super) fn or_null(value: i64) -> Value {
    if value < 0 { Value::Null } else { json!(value) }
}
