use super::*;

fn sites(up: &[(i32, Option<&str>)]) -> Sites {
    Sites {
        registered: (0..8).collect(),
        up: up
            .iter()
            .map(|(id, rack)| (*id, rack.map(str::to_owned)))
            .collect(),
    }
}

fn counts(placed: &[Vec<i32>]) -> BTreeMap<i32, usize> {
    let mut counts = BTreeMap::new();
    for id in placed.iter().flatten() {
        *counts.entry(*id).or_default() += 1;
    }
    counts
}

#[test]
fn partitions_and_leaders_are_spread_evenly() {
    let sites = sites(&[(0, None), (1, None), (2, None)]);
    let placed = spread(0..6, 2, &sites, 1);
    assert_eq!(placed[0], [1, 2]);
    assert!(counts(&placed).values().all(|&count| count == 4));
    let leaders: Vec<Vec<i32>> = placed.iter().map(|p| vec![p[0]]).collect();
    assert!(counts(&leaders).values().all(|&count| count == 2));
}

#[test]
fn replicas_are_in_different_racks_while_there_are_any() {
    let brokers = [
        (0, Some("a")),
        (1, Some("a")),
        (2, Some("b")),
        (3, Some("b")),
    ];
    let rack = |id: i32| brokers[id as usize].1;
    for start in 0..4 {
        let placed = spread(0..8, 2, &sites(&brokers), start);
        assert!(
            placed.iter().all(|p| rack(p[0]) != rack(p[1])),
            "{placed:?}"
        );
        assert!(counts(&placed).values().all(|&count| count == 4));
        for replicas in spread(0..8, 3, &sites(&brokers), start) {
            let in_a = replicas.iter().filter(|&&id| rack(id) == Some("a")).count();
            assert!((1..=2).contains(&in_a), "{replicas:?}");
        }
    }
}

#[test]
fn racks_of_different_sizes_all_hold_a_replica() {
    let brokers = [
        (0, Some("a")),
        (1, Some("a")),
        (2, Some("a")),
        (3, Some("b")),
        (4, None),
    ];
    for replicas in spread(0..10, 3, &sites(&brokers), 0) {
        assert!(
            replicas.contains(&3) && replicas.contains(&4),
            "{replicas:?}"
        );
    }
    for mut replicas in spread(0..10, 5, &sites(&brokers), 0) {
        replicas.sort_unstable();
        assert_eq!(replicas, [0, 1, 2, 3, 4]);
    }
}

#[test]
fn stopped_brokers_follow_where_those_that_are_up_do_not_suffice() {
    let sites = Sites {
        registered: vec![0, 1, 2, 3],
        ..sites(&[(1, None), (2, Some("a"))])
    };
    let placed = spread(0..4, 3, &sites, 0);
    assert!(
        placed
            .iter()
            .all(|p| !matches!(p[..2], [0 | 3, _] | [_, 0 | 3]))
    );
    assert_eq!(
        counts(&placed),
        BTreeMap::from([(0, 2), (1, 4), (2, 4), (3, 2)])
    );
    assert!(check_factor(4, &sites).is_ok());
    assert!(check_factor(5, &sites).is_err());
    let nobody = Sites {
        up: vec![],
        ..sites
    };
    assert!(check_factor(1, &nobody).is_err());
}

#[test]
fn a_list_may_name_a_stopped_broker_but_not_only_stopped_ones() {
    let sites = sites(&[(0, None), (1, None)]);
    let check = |lists: &[&[i32]]| {
        let lists: Vec<Vec<i32>> = lists.iter().map(|l| l.to_vec()).collect();
        check_replica_lists(&lists, 0, None, &sites)
    };
    assert_eq!(check(&[&[7, 0], &[1, 7]]), Ok(()));
    for lists in [
        &[&[0][..], &[7]][..],
        &[&[0], &[0, 1]],
        &[&[]],
        &[&[0, 0]],
        &[&[9]],
    ] {
        let refused = check(lists).map_err(|error| error.code);
        assert_eq!(
            refused,
            Err(ErrorCode::INVALID_REPLICA_ASSIGNMENT),
            "{lists:?}"
        );
    }
}
