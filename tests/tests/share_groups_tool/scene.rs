//! Two topics and three groups: one with a member, one that has left, one with a long name.

use ottla_tests::{Client, Embedded, Member};
use ottla_tools::share_groups::{Printed, run};

/// The group with a long name.
pub(crate) const LONG: &str = "alpha-with-a-long-group-name";
/// The member id of the group `live`.
pub(crate) const MEMBER: &str = "lPMKnEjFTEiNK699m2ekBA";

/// The broker, its groups, and who keeps them alive.
pub(crate) struct Scene {
    pub(crate) broker: Embedded,
    pub(crate) admin: Client,
    pub(crate) live: Member,
}

impl Scene {
    /// `orders` with three records in each of two partitions, `pay` with three in one; `live` reads
    /// `orders`, `empty` was at the end of both, [`LONG`] has one record of `pay` to go.
    pub(crate) async fn start() -> Self {
        let broker = Embedded::start().await;
        let mut admin = broker.client().await;
        admin.create_topic("orders", 2).await;
        admin.create_topic("pay", 1).await;
        for (topic, partition) in [("orders", 0), ("orders", 1), ("pay", 0)] {
            let values = ["v1", "v2", "v3"];
            admin.produce_values(topic, partition, &values).await;
        }
        let mut client = broker.client().await;
        client.client_id = Some("console-share-consumer".to_owned());
        let mut live = Member::new(client, "live", MEMBER);
        live.join(&["orders"]).await;
        let scene = Self {
            broker,
            admin,
            live,
        };
        for (group, topics, offset) in [
            ("empty", "--topic orders --topic pay", 3),
            (LONG, "--topic pay", 2),
        ] {
            let line =
                format!("--reset-offsets --group {group} {topics} --to-offset {offset} --execute");
            let printed = scene.tool(&line).await;
            assert_eq!(printed.status, 0, "{printed:?}");
        }
        scene
    }

    /// Runs the tool with the flags of a line, words between spaces.
    pub(crate) async fn tool(&self, line: &str) -> Printed {
        tool_at(&self.broker.address().to_string(), line).await
    }

    /// What it prints to stdout; nothing may fail.
    pub(crate) async fn out(&self, line: &str) -> String {
        let printed = self.tool(line).await;
        assert_eq!(printed.status, 0, "{line}: {printed:?}");
        printed.out
    }

    /// What it prints to stdout and stderr when it fails.
    pub(crate) async fn fails(&self, line: &str) -> (String, String) {
        let printed = self.tool(line).await;
        assert_eq!(printed.status, 1, "{line}: {printed:?}");
        (printed.out, printed.err)
    }

    /// The document that it prints with `--output json`.
    pub(crate) async fn json(&self, line: &str) -> serde_json::Value {
        let out = self.out(&format!("{line} --output json")).await;
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{line}: {error}: {out}"))
    }

    /// A group of another kind, by a commit without members.
    pub(crate) async fn classic_group(&mut self, name: &'static str) {
        self.admin.commit(name, "pay", &[(0, 1)]).await;
    }
}

/// Runs the tool against an address.
pub(crate) async fn tool_at(address: &str, line: &str) -> Printed {
    let words = ["--bootstrap-server", address].into_iter();
    run(words.chain(line.split_whitespace()).map(Into::into)).await
}
