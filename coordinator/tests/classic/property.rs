//! Whatever members do and however time passes: every request is answered once, at the right moment,
//! and a group that everybody has left comes to rest.

use std::collections::BTreeMap;

use ottla_coordinator::group::classic::{ClassicGroupState, JoinRequest, Ticket};
use ottla_coordinator::group::plan::GroupErrorKind;
use proptest::prelude::*;

use super::support::{
    GROUP, Shard, blob, leaving, leaving_instance, protocols, request, static_request,
};

const CLIENTS: usize = 5;
const DIALECTS: [&[&str]; 4] = [&["a"], &["a", "b"], &["b", "a"], &["b", "c", "a"]];

#[derive(Clone, Debug)]
enum Call {
    /// Client, which protocols it speaks, whether it has lost its member id.
    Join(usize, usize, bool),
    Sync(usize),
    Beat(usize),
    Leave(usize),
    Advance(i64),
    Restart,
    Break(bool),
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let client = || 0..CLIENTS;
    let call = prop_oneof![
        8 => (client(), 0..DIALECTS.len(), prop::bool::weighted(0.2))
            .prop_map(|(client, dialect, forgets)| Call::Join(client, dialect, forgets)),
        8 => client().prop_map(Call::Sync),
        4 => client().prop_map(Call::Beat),
        2 => client().prop_map(Call::Leave),
        3 => prop_oneof![Just(1i64), 1..5_000i64, 5_000..70_000i64].prop_map(Call::Advance),
        1 => Just(Call::Restart),
        1 => any::<bool>().prop_map(Call::Break),
    ];
    prop::collection::vec(call, 1..120)
}

/// What a client knows: the first two are static members.
#[derive(Clone, Default)]
struct Client {
    member_id: String,
    generation: i32,
    join: Option<Ticket>,
    sync: Option<Ticket>,
}

struct World {
    shard: Shard,
    clients: Vec<Client>,
    generation: i32,
}

impl World {
    fn call(&mut self, call: &Call) {
        match *call {
            Call::Join(client, dialect, forgets) => self.join(client, dialect, forgets),
            Call::Sync(client) => self.sync(client),
            Call::Beat(client) => {
                let Client {
                    member_id,
                    generation,
                    ..
                } = self.clients[client].clone();
                let _ = self.shard.beat(&member_id, generation);
            }
            Call::Leave(client) => self.leave(client),
            Call::Advance(ms) => self.shard.advance(ms),
            Call::Restart => {
                self.shard.restart();
                self.generation = 0;
                for client in &mut self.clients {
                    (client.join, client.sync) = (None, None);
                }
            }
            Call::Break(is_broken) => self.shard.is_broken = is_broken,
        }
        self.hear();
    }

    fn join(&mut self, client: usize, dialect: usize, forgets: bool) {
        if forgets {
            self.clients[client].member_id.clear();
        }
        let base = match client {
            0 => static_request("x"),
            1 => static_request("y"),
            _ => request(""),
        };
        let request = JoinRequest {
            member_id: self.clients[client].member_id.clone(),
            protocols: protocols(DIALECTS[dialect]),
            needs_known_id: client == 4,
            ..base
        };
        let ticket = self.shard.send_join(&request);
        // A join whose record could not be written is answered by the shell.
        self.clients[client].join = Some(ticket).filter(|_| !self.shard.is_broken);
    }

    fn sync(&mut self, client: usize) {
        let Client {
            member_id,
            generation,
            ..
        } = self.clients[client].clone();
        let request = ottla_coordinator::group::classic::SyncRequest {
            group_id: GROUP.to_owned(),
            member_id: member_id.clone(),
            generation,
            assignments: vec![(member_id, blob("own"))],
            ..Default::default()
        };
        let ticket = self.shard.send_sync(&request);
        self.clients[client].sync = Some(ticket).filter(|_| !self.shard.is_broken);
    }

    fn leave(&mut self, client: usize) {
        let member_id = std::mem::take(&mut self.clients[client].member_id);
        let leaving = match client {
            0 => leaving_instance(&member_id, "x"),
            1 => leaving_instance("", "y"),
            _ => leaving(&member_id),
        };
        let config = self.shard.config;
        let plan = self
            .shard
            .groups
            .classic_leave(self.shard.now, GROUP, &[leaving], &config);
        let _ = self.shard.commit(plan);
    }

    /// The clients take in what was answered.
    fn hear(&mut self) {
        for client in &mut self.clients {
            if let Some(answer) = client.join.and_then(|ticket| self.shard.joins.get(&ticket)) {
                client.join = None;
                match answer {
                    Ok(joined) => {
                        client.member_id.clone_from(&joined.member_id);
                        client.generation = joined.generation;
                    }
                    Err(refused) if refused.kind == GroupErrorKind::MemberIdRequired => {
                        client.member_id.clone_from(&refused.member_id);
                    }
                    Err(_) => client.member_id.clear(),
                }
            }
            if client
                .sync
                .is_some_and(|t| self.shard.syncs.contains_key(&t))
            {
                client.sync = None;
            }
        }
    }

    /// What a consumer does: it waits for what it has asked, heartbeats, and joins when it must.
    fn work_on(&mut self, client: usize) {
        let Client {
            member_id,
            generation,
            join,
            sync,
        } = self.clients[client].clone();
        if join.is_some() || sync.is_some() {
            return;
        }
        if self.shard.beat(&member_id, generation).is_err() {
            self.call(&Call::Join(client, 1, false));
        } else {
            self.call(&Call::Sync(client));
        }
    }

    fn check(&mut self) -> Result<(), TestCaseError> {
        let state = self.shard.state();
        if self.clients.iter().any(|client| client.join.is_some()) {
            prop_assert_eq!(state, ClassicGroupState::PreparingRebalance);
        }
        if self.clients.iter().any(|client| client.sync.is_some()) {
            prop_assert_eq!(state, ClassicGroupState::CompletingRebalance);
        }
        let joins = self.shard.joins.values();
        let newest = joins.filter_map(|answer| answer.as_ref().ok());
        let newest = newest.map(|joined| joined.generation).max().unwrap_or(0);
        prop_assert!(newest >= self.generation, "generations go on");
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_request_is_answered_once_and_a_forsaken_group_comes_to_rest(
        calls in calls(),
        delay in prop_oneof![Just(0), Just(3_000)],
    ) {
        let mut world = World {
            shard: Shard::new(),
            clients: vec![Client::default(); CLIENTS],
            generation: 0,
        };
        world.shard.config.initial_rebalance_delay_ms = delay;
        for call in &calls {
            world.call(call);
            world.check()?;
        }
        world.shard.is_broken = false;
        world.shard.advance(10_000_000);
        world.hear();
        for client in &world.clients {
            prop_assert!(client.join.is_none() && client.sync.is_none());
        }
        prop_assert!(matches!(
            world.shard.state(),
            ClassicGroupState::Empty | ClassicGroupState::Dead
        ));
        prop_assert_eq!(world.shard.groups.next_deadline(), None);
    }

    #[test]
    fn members_that_work_on_come_to_a_stable_group(calls in calls()) {
        let mut world = World {
            shard: Shard::new(),
            clients: vec![Client::default(); CLIENTS],
            generation: 0,
        };
        for call in &calls {
            world.call(call);
        }
        world.shard.is_broken = false;
        // A rebalance timeout ends what the past has left; then all join and sync as consumers do.
        world.shard.advance(400_000);
        world.hear();
        for _ in 0..6 {
            for client in 0..CLIENTS {
                world.work_on(client);
            }
        }
        prop_assert_eq!(world.shard.state(), ClassicGroupState::Stable);
        prop_assert_eq!(world.shard.members().len(), CLIENTS);
        let described = world.shard.groups.classic_describe(GROUP);
        let mut ids: BTreeMap<&str, usize> = BTreeMap::new();
        for client in &world.clients {
            *ids.entry(&client.member_id).or_default() += 1;
        }
        prop_assert_eq!(ids.len(), CLIENTS);
        world.shard.restart();
        prop_assert_eq!(world.shard.groups.classic_describe(GROUP), described);
    }
}
