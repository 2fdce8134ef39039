//! What the more important Kafka keys mean, in a sentence; by name.

/// The sentence for a Kafka key, or an empty text.
pub(super) fn of(_name: &str) -> &'static str {
    ""
}
