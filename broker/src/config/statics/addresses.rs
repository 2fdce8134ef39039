//! Where the process listens: each broker's listeners, and the admin server's.

use std::collections::BTreeMap;

use super::{Origin, StaticConfig};
use crate::config::ConfigError;
use crate::config::listener::{self, HostPort, Listener, ListenerTexts};
use crate::config::value;

impl StaticConfig {
    /// Where the admin server listens; `None`: there is none.
    pub fn admin_listener(&self) -> Result<Option<HostPort>, ConfigError> {
        const KEY: &str = "ottla.admin.listener";
        let text = self.text(self.first_id, KEY).unwrap_or_default();
        if text == "none" {
            return Ok(None);
        }
        HostPort::parse(text.strip_prefix("http://").unwrap_or(&text))
            .map(Some)
            .ok_or_else(|| ConfigError::value(KEY, &text, "it is written HOST:PORT, or none"))
    }

    /// The listeners of broker `id`.
    pub fn listeners(&self, id: i32) -> Result<Vec<Listener>, ConfigError> {
        let mut protocols = self
            .text(id, "listener.security.protocol.map")
            .unwrap_or_default();
        // A flag beats what a file says about one broker.
        let flag = self
            .settings
            .get("listeners")
            .is_some_and(|s| s.origin == Origin::Flag);
        let own = self
            .listeners
            .get(&id)
            .filter(|s| !flag || s.origin == Origin::Flag);
        let own = own.map(|setting| setting.value.clone());
        let key = if own.is_some() {
            format!("ottla.listeners.{id}")
        } else {
            "listeners".into()
        };
        let shared = own.is_none() && !self.overridden(id, "listeners");
        let listeners = own
            .clone()
            .or_else(|| self.text(id, "listeners"))
            .unwrap_or_default();
        let advertised = own
            .clone()
            .or_else(|| self.text(id, "advertised.listeners"));
        if !self.settings.contains_key("listener.security.protocol.map") {
            // Without a map of the user's own, a name that is no protocol is a plaintext listener.
            for entry in value::list(&listeners) {
                let name = entry
                    .split_once("://")
                    .map_or("PLAINTEXT", |(name, _)| name);
                if !protocols
                    .to_ascii_uppercase()
                    .contains(&format!("{}:", name.to_ascii_uppercase()))
                {
                    protocols = format!("{protocols},{name}:PLAINTEXT");
                }
            }
        }
        let mut resolved = listener::resolve(&ListenerTexts {
            key: &key,
            listeners: &listeners,
            advertised: advertised.as_deref(),
            own: own.is_some(),
            protocols: &protocols,
            controllers: &self
                .text(id, "controller.listener.names")
                .unwrap_or_default(),
            inter_broker: self.text(id, "inter.broker.listener.name").as_deref(),
        })?;
        if shared {
            for listener in &mut resolved {
                shift(&mut listener.bind, id - self.first_id, &key)?;
                if let Some(told) = &mut listener.advertised
                    && !self.overridden(id, "advertised.listeners")
                {
                    shift(told, id - self.first_id, "advertised.listeners")?;
                }
            }
        }
        Ok(resolved)
    }

    fn overridden(&self, id: i32, key: &str) -> bool {
        self.overrides
            .get(&id)
            .is_some_and(|own| own.contains_key(key))
    }

    /// No two brokers on one address.
    pub(super) fn check_ports(&self) -> Result<(), ConfigError> {
        let mut taken: BTreeMap<(String, u16), i32> = BTreeMap::new();
        for id in self.broker_ids() {
            for listener in self.listeners(id)? {
                let HostPort { host, port } = listener.bind;
                if port == 0 {
                    continue;
                }
                if let Some(other) = taken.insert((host, port), id) {
                    return Err(ConfigError::invalid(format!(
                        "brokers {other} and {id} would both listen on port {port}: set \
                         ottla.listeners.{id}=NAME://HOST:PORT"
                    )));
                }
            }
        }
        Ok(())
    }
}

fn shift(address: &mut HostPort, by: i32, key: &str) -> Result<(), ConfigError> {
    if address.port == 0 {
        return Ok(());
    }
    let port = u16::try_from(i32::from(address.port) + by).map_err(|_| {
        ConfigError::invalid(format!(
            "{key}: port {} leaves no room for {by} more brokers: choose a lower one",
            address.port
        ))
    })?;
    address.port = port;
    Ok(())
}
