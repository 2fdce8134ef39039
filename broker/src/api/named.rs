//! Requests that name the same thing again and again, or more things than there can be: a few bytes of
//! a request must not be worth a whole description each time.

use std::collections::BTreeSet;

/// The most partitions that one request of the control plane may name.
pub(super) const PARTITIONS_MAX: usize = 100_000;

/// What is named, each once, in the order of its first place.
pub(super) fn once<'a, T, K: Ord>(
    named: impl IntoIterator<Item = &'a T>,
    key: impl Fn(&'a T) -> K,
) -> impl Iterator<Item = &'a T>
where
    T: 'a,
{
    let mut seen = BTreeSet::new();
    let named = named.into_iter();
    named.filter(move |&one| seen.insert(key(one)))
}

/// As [`once`], for what is described as a whole only where `is_whole`; the answer to the rest is as
/// long as the question, and is given as often as it is asked.
pub(super) fn whole_once<'a, T, K: Ord>(
    named: &'a [T],
    is_whole: impl Fn(&T) -> bool,
    key: impl Fn(&'a T) -> K,
) -> impl Iterator<Item = &'a T> {
    let mut seen = BTreeSet::new();
    let named = named.iter();
    named.filter(move |&one| !is_whole(one) || seen.insert(key(one)))
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_named_again_is_left_out() {
        let found: Vec<_> = super::once(&["b", "a", "b", "c", "a"], |name| *name).collect();
        assert_eq!(found, [&"b", &"a", &"c"]);
    }
}
