//! The buckets of histograms.

use prometheus_client::metrics::histogram::Histogram;

/// Of times in milliseconds, from a tenth to half a minute.
pub(super) fn milliseconds() -> Histogram {
    Histogram::new([
        0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 2500.0,
        5000.0, 10_000.0, 30_000.0,
    ])
}

/// Of percents.
pub(super) fn percent() -> Histogram {
    Histogram::new([
        1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 100.0,
    ])
}

/// Of numbers of records.
pub(super) fn records() -> Histogram {
    Histogram::new([1.0, 5.0, 10.0, 50.0, 100.0, 500.0, 1000.0, 5000.0])
}
