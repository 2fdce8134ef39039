//! The one command of the repository: `cargo xtask COMMAND`.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a command line program that times and talks"
)]

mod args;
mod bench;
mod ci;
mod clients;
mod conformance;
mod deny;
mod dirs;
mod letters;
mod loom;
mod matrix;
mod process;
mod report;
mod soak;
mod tidy;

use args::Args;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  test                      everything that CI runs; installs what it needs
  tidy                      the rules of the source tree
  deny [--advisories]       licences, bans and sources of the dependencies
  loom [--unbounded]        the concurrency models, preemption bound 3 or none
  conformance SUITE...      Apache Kafka's own tests against the broker
      [--full]              with the release binary; writes docs/conformance.md
      [--filter TEXT] [--jobs N] [--broker CMD] [--keep]
      [--dead-letters]      with a dead-letter topic for every group
  letters [--record]        dead letters beside those of a real Kafka; --record keeps Kafka's as the expected ones
  soak [--hours N]          72 hours of the broker's time with dead letters, trips and outages, the clock moved
  clients                   unmodified clients and Kafka's tools against the broker; writes docs/clients.md
      [--filter TEXT] [--broker CMD] [--keep]
  bench compare             Ottla and Apache Kafka in one run; writes docs/performance.md
      [--rounds N] [--records N]
  bench kernels [FILTER]    the criterion kernels; writes docs/performance.md
  bench first-poll          how soon a new group has its first record; writes docs/performance.md
";

fn main() -> std::process::ExitCode {
    let mut words = std::env::args().skip(1);
    let command = words.next().unwrap_or_default();
    let outcome = Args::parse(words).and_then(|args| match command.as_str() {
        "test" => ci::run(&args),
        "tidy" => tidy::run(&args),
        "deny" => deny::run(&args),
        "loom" => loom::run(&args),
        "conformance" => conformance::run(&args),
        "letters" => letters::run(&args),
        "soak" => soak::run(&args),
        "clients" => clients::run(&args),
        "bench" => bench::run(&args),
        _ => anyhow::bail!("{USAGE}"),
    });
    match outcome {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask {command}: {error:#}");
            std::process::ExitCode::FAILURE
        }
    }
}
