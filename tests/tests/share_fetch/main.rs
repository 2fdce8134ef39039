//! ShareFetch: what is acquired, in which entries, and when a waiting fetch is answered.

mod answers;
mod logs;
mod modes;
mod waiting;
