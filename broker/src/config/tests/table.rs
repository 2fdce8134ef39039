use crate::config::table::{self, Scope, Type, Valid};
use crate::config::value::check;
use crate::config::{Profile, broker, group, profile, topic};

fn all_scopes() -> [Scope; 4] {
    [
        Scope::Broker,
        Scope::Topic,
        Scope::Group,
        Scope::ClientMetrics,
    ]
}

#[test]
fn rows_are_sorted_so_that_they_are_found() {
    let ours = all_scopes().map(table::ours);
    for rows in all_scopes().map(table::rows).into_iter().chain(ours) {
        assert!(rows.windows(2).all(|pair| pair[0].name < pair[1].name));
    }
    assert!(
        profile::DIFFERENCES
            .windows(2)
            .all(|pair| pair[0].key < pair[1].key)
    );
    for scope in all_scopes() {
        for row in table::all(scope) {
            assert_eq!(
                table::find(scope, row.name).map(|found| found.name),
                Some(row.name)
            );
        }
    }
}

#[test]
fn the_table_has_every_config_of_kafka_4_4() {
    let count = |scope, internal| {
        table::rows(scope)
            .iter()
            .filter(|row| row.internal == internal)
            .count()
    };
    assert_eq!(
        (count(Scope::Broker, false), count(Scope::Broker, true)),
        (350, 29)
    );
    assert_eq!(
        (count(Scope::Topic, false), count(Scope::Topic, true)),
        (37, 1)
    );
    assert_eq!(
        (count(Scope::Group, false), count(Scope::Group, true)),
        (21, 6)
    );
    assert_eq!(count(Scope::ClientMetrics, false), 3);
}

#[test]
fn every_default_is_valid() {
    for scope in all_scopes() {
        for row in table::all(scope) {
            if let Some(default) = row.default {
                assert_eq!(check(row, default).as_deref(), Ok(default), "{}", row.name);
            }
        }
    }
}

#[test]
fn every_synonym_is_a_broker_config_of_a_type_that_fits() {
    for row in table::rows(Scope::Topic)
        .iter()
        .chain(table::rows(Scope::Group))
    {
        for (synonym, factor) in row.synonyms {
            let broker = table::find(Scope::Broker, synonym).unwrap();
            let widens = *factor > 1 || row.kind == Type::Long;
            let picks = row.name == "streams.assignor.name";
            assert!(
                broker.kind == row.kind || widens || picks,
                "{} from {synonym}",
                row.name
            );
        }
    }
}

#[test]
fn snapshots_read_keys_that_exist() {
    let scopes: [(Scope, &[&[&str]]); 3] = [
        (
            Scope::Broker,
            &[
                broker::TopicDefaults::KEYS,
                broker::NetworkConfig::KEYS,
                broker::LogDefaults::KEYS,
                broker::OffsetsConfig::KEYS,
                broker::ShareStateConfig::KEYS,
                broker::TransactionConfig::KEYS,
                broker::ClassicGroupBounds::KEYS,
                broker::ConsumerGroupBounds::KEYS,
                broker::ShareGroupBounds::KEYS,
                broker::StreamsGroupBounds::KEYS,
                broker::ReplicationConfig::KEYS,
            ],
        ),
        (Scope::Topic, &[topic::TopicConfig::KEYS]),
        (
            Scope::Group,
            &[
                group::ConsumerGroupConfig::KEYS,
                group::ShareGroupConfig::KEYS,
                group::StreamsGroupConfig::KEYS,
            ],
        ),
    ];
    for (scope, snapshots) in scopes {
        for key in snapshots.iter().copied().flatten() {
            assert!(table::find(scope, key).is_some(), "{key}");
        }
    }
}

#[test]
fn the_desk_profile_changes_existing_configs_within_their_ranges() {
    for row in profile::DIFFERENCES {
        let def = table::find(Scope::Broker, row.key).unwrap();
        assert_ne!(def.default, Some(row.value), "{}", row.key);
        let wide = def.with_range(Profile::Desk.valid_of(Scope::Broker, row.key, def.valid));
        assert!(check(&wide, row.value).is_ok(), "{}", row.key);
    }
    for row in profile::WIDER_RANGES {
        let def = table::find(row.scope, row.key).unwrap();
        assert_ne!(def.valid, row.valid, "{}", row.key);
        assert_ne!(def.valid, Valid::Any, "{}", row.key);
    }
}

#[test]
fn every_key_of_ours_is_documented() {
    assert!(
        all_scopes()
            .into_iter()
            .flat_map(table::ours)
            .all(|row| !row.documentation().is_empty())
    );
}
