//! Ottla, as a library.
