//! Dead letters (KIP-1191).
mod copy;
mod counts;
mod ledger;
mod record;
mod retry;
