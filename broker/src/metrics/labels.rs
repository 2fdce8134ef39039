//! Labels that several families have.

use prometheus_client::encoding::EncodeLabelSet;

/// A group by its id.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct GroupLabel {
    pub(crate) group: String,
}

/// Something about a group that has a reason.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ReasonLabel {
    pub(crate) group: String,
    pub(crate) reason: &'static str,
}
