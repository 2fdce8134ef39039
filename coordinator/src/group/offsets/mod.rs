//! Committed offsets: committing and fetching them, deleting them, and their end by time.

mod commit;
mod delete;
mod expiry;
mod rules;
mod table;

pub use commit::{CommitRequest, OffsetToCommit, metadata_fits};
pub use delete::OffsetsToDelete;
pub use expiry::OffsetRules;
pub use table::{CommittedOffset, GroupOffsets, OffsetTable};
