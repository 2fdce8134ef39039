use super::*;

/// Groups as `name`, sources with commas, topic of letters.
fn map(groups: &[(&str, &str, &str)]) -> Map {
    let mut map = Map {
        rules: Rules {
            prefix: "dlq.".to_owned(),
            auto_create: false,
        },
        ..Map::default()
    };
    for (name, sources, dlq) in groups {
        let sources = sources.split(',').filter(|name| !name.is_empty());
        let entry = Entry {
            sources: sources.map(str::to_owned).collect(),
            dlq: (*dlq).to_owned(),
            ..Entry::default()
        };
        map.groups.insert((*name).to_owned(), entry);
        if !dlq.is_empty() {
            let topic = Topic {
                exists: true,
                flag: true,
                compacted: false,
            };
            map.topics.insert((*dlq).to_owned(), topic);
        }
    }
    map
}

fn cycles(groups: &[(&str, &str, &str)]) -> Vec<String> {
    map(groups)
        .cycles()
        .iter()
        .map(|cycle| arrows(cycle))
        .collect()
}

#[test]
fn letters_that_could_come_back_are_found_over_several_groups() {
    assert_eq!(
        cycles(&[("g", "orders", "dlq.orders"), ("h", "dlq.orders", "dlq.h")]),
        [""; 0]
    );
    assert_eq!(cycles(&[("g", "t", "t")]), ["t -[g]-> t"]);
    assert_eq!(
        cycles(&[
            ("a", "dlq.c,x", "dlq.a"),
            ("b", "dlq.a", "dlq.b"),
            ("c", "dlq.b,y", "dlq.c"),
            ("none", "dlq.a", ""),
        ]),
        ["dlq.a -[b]-> dlq.b -[c]-> dlq.c -[a]-> dlq.a"]
    );
    assert_eq!(
        cycles(&[("a", "p,q", "p"), ("b", "p", "q")]),
        ["p -[a]-> p", "q -[a]-> p -[b]-> q"]
    );
}

#[test]
fn what_keeps_letters_from_being_written_is_said() {
    let mut map = map(&[("g", "orders", "letters"), ("h", "dlq.h", "dlq.h")]);
    assert_eq!(
        map.problems("g"),
        ["letters does not begin with the prefix dlq.: no letter is written"]
    );
    assert_eq!(
        map.problems("h"),
        ["the group reads dlq.h itself: no letter of it is written"]
    );
    map.rules.prefix.clear();
    map.topics.insert(
        "letters".to_owned(),
        Topic {
            exists: true,
            flag: false,
            compacted: true,
        },
    );
    assert_eq!(
        map.problems("g"),
        [
            "letters does not have errors.deadletterqueue.group.enable=true: no letter is written",
            "letters is compacted: letters without a key cannot be written"
        ]
    );
    map.topics.insert("letters".to_owned(), Topic::default());
    assert_eq!(
        map.problems("g").len(),
        1,
        "missing, and not made on demand"
    );
    map.rules.auto_create = true;
    assert_eq!(map.problems("g"), [""; 0]);
}

#[test]
fn sharing_against_isolation_is_a_problem_of_both() {
    let mut map = map(&[
        ("g", "a", "dlq.x"),
        ("h", "b", "dlq.x"),
        ("i", "c", "dlq.y"),
    ]);
    assert_eq!(map.sharing("g"), ["h"]);
    assert_eq!(map.problems("g"), [""; 0]);
    if let Some(entry) = map.groups.get_mut("h") {
        entry.isolation = Some(true);
    }
    for (group, other) in [("g", "h"), ("h", "g")] {
        let text = format!("dlq.x is shared with {other}, against {ISOLATION}");
        assert_eq!(map.problems(group), [text]);
    }
    assert_eq!(map.problems("i"), [""; 0]);
}
