//! Benchmarks only: the criterion kernels are in `benches/`, the comparison with Apache Kafka is
//! `cargo xtask bench compare`.
