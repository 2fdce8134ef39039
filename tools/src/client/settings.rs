//! What `--bootstrap-server` and `--command-config` say.

use crate::files;

/// A setting that cannot be meant, in one sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SettingsError(pub String);

/// How to reach a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Addresses to begin with, `host:port` each.
    pub bootstrap: Vec<String>,
    /// What the client calls itself.
    pub client_id: Option<String>,
    /// How long one request may take, in milliseconds.
    pub request_timeout_ms: u64,
    /// How long one connection may take to open, in milliseconds.
    pub connect_timeout_ms: u64,
    /// How long a question may take with all its attempts, in milliseconds.
    pub timeout_ms: u64,
    /// How long to wait before asking again, in milliseconds.
    pub retry_backoff_ms: u64,
    /// Settings that were read and have no meaning here.
    pub unused: Vec<String>,
}

impl Settings {
    /// The defaults of Kafka's tools. `bootstrap` is a list with commas.
    pub fn new(bootstrap: &str) -> Result<Self, SettingsError> {
        let listed = bootstrap.split(',').map(str::trim);
        let bootstrap = listed
            .filter(|address| !address.is_empty())
            .map(address)
            .collect::<Result<Vec<_>, _>>()?;
        if bootstrap.is_empty() {
            return Err(SettingsError(
                "--bootstrap-server: no address; write HOST:PORT".to_owned(),
            ));
        }
        Ok(Self {
            bootstrap,
            client_id: Some("ottla-share-groups".to_owned()),
            request_timeout_ms: 30_000,
            connect_timeout_ms: 10_000,
            timeout_ms: 30_000,
            retry_backoff_ms: 100,
            unused: Vec::new(),
        })
    }

    /// Takes the settings of a properties file.
    pub fn read(&mut self, path: &str) -> Result<(), SettingsError> {
        let problem = |what: String| SettingsError(format!("--command-config {path}: {what}"));
        let text = files::read(path).map_err(problem)?;
        for (key, value) in properties(&text) {
            self.apply(&key, &value).map_err(problem)?;
        }
        Ok(())
    }

    fn apply(&mut self, key: &str, value: &str) -> Result<(), String> {
        let ms = || {
            value.parse::<u64>().map_err(|_| {
                format!("{key}={value}: a number of milliseconds is wanted, 0 or more")
            })
        };
        match key {
            "client.id" => self.client_id = (!value.is_empty()).then(|| value.to_owned()),
            "request.timeout.ms" => self.request_timeout_ms = ms()?,
            "default.api.timeout.ms" => self.timeout_ms = ms()?,
            "socket.connection.setup.timeout.ms" => self.connect_timeout_ms = ms()?,
            "retry.backoff.ms" => self.retry_backoff_ms = ms()?,
            "security.protocol" if value.eq_ignore_ascii_case("PLAINTEXT") => {}
            "security.protocol" => {
                return Err(format!(
                    "{key}={value}: this tool speaks PLAINTEXT only; use a PLAINTEXT listener, or Kafka's own tool"
                ));
            }
            _ if key.starts_with("sasl.") || key.starts_with("ssl.") => {
                return Err(format!(
                    "{key}: this tool speaks PLAINTEXT only, without SASL and TLS; take the line out, or use Kafka's own tool"
                ));
            }
            _ => self.unused.push(key.to_owned()),
        }
        Ok(())
    }
}

/// `[NAME://]host:port`, as `host:port`.
fn address(text: &str) -> Result<String, SettingsError> {
    let plain = text.split_once("://").map_or(text, |(_, rest)| rest);
    let parts = plain.rsplit_once(':');
    match parts.and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?))) {
        Some((host, port)) if !host.is_empty() && port != 0 => Ok(format!("{host}:{port}")),
        _ => Err(SettingsError(format!(
            "--bootstrap-server {text}: write HOST:PORT"
        ))),
    }
}

/// The lines of a properties file: `key=value`, `key: value`, `#` and `!` begin a comment, and a
/// backslash at the end of a line joins it with the next.
fn properties(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let mut line = line.trim_start().to_owned();
        if line.is_empty() || line.starts_with(['#', '!']) {
            continue;
        }
        while line.ends_with('\\') {
            line.pop();
            line.push_str(lines.next().unwrap_or_default().trim_start());
        }
        let at = line.find(|c: char| c == '=' || c == ':' || c.is_whitespace());
        let (key, value) = line.split_at(at.unwrap_or(line.len()));
        let value = value.trim_start();
        let value = value.strip_prefix(['=', ':']).unwrap_or(value).trim();
        found.push((key.to_owned(), value.to_owned()));
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn addresses_are_listed_with_commas() {
        let settings = Settings::new("PLAINTEXT://a:1, [::1]:9092,").unwrap();
        assert_eq!(settings.bootstrap, ["a:1", "[::1]:9092"]);
        for wrong in ["", ",", "a", "a:", ":1", "a:0", "a:99999", "a:b"] {
            assert!(Settings::new(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_properties_file_says_what_it_says_in_java() {
        let text = "# c\n! c\n\nclient.id = me\nrequest.timeout.ms:5\n  a\\\n  b c\n";
        let pair = |k: &str, v: &str| (k.to_owned(), v.to_owned());
        let expected = [
            pair("client.id", "me"),
            pair("request.timeout.ms", "5"),
            pair("ab", "c"),
        ];
        assert_eq!(properties(text), expected);
    }

    #[test]
    fn what_needs_tls_or_sasl_is_refused_and_the_rest_is_noted() {
        let mut settings = Settings::new("a:1").unwrap();
        for (key, value) in [
            ("security.protocol", "SASL_SSL"),
            ("sasl.mechanism", "PLAIN"),
            ("ssl.truststore.location", "x"),
            ("request.timeout.ms", "soon"),
        ] {
            let refused = settings.apply(key, value).unwrap_err();
            assert!(refused.starts_with(key), "{refused}");
        }
        settings.apply("security.protocol", "PLAINTEXT").unwrap();
        settings.apply("metadata.max.age.ms", "1").unwrap();
        assert_eq!(settings.unused, ["metadata.max.age.ms"]);
    }
}
