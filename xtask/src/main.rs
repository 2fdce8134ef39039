//! The one command of the repository.
fn main() {}
