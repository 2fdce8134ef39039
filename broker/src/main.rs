//! The `ottla` binary: command line in, a serving broker out.

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use ottla::builder;
use ottla::cli::{self, Command, Startup};
use ottla::clock::{self, Clock};
use ottla::process::Process;
use ottla::seed::Seeds;
use tracing_subscriber::EnvFilter;

/// How long a stop may take, in milliseconds; a disk that is busy does not hold it up.
const STOP_LIMIT_MS: u64 = 900;

/// Reads of cold pages block a worker for a moment; so there are at least this many.
const WORKERS_MIN: usize = 4;

fn main() -> ExitCode {
    match cli::parse(std::env::args_os(), std::env::vars()) {
        Ok(Command::Version) => {
            say(&format!("ottla {}", env!("CARGO_PKG_VERSION")));
            ExitCode::SUCCESS
        }
        Ok(Command::Serve(startup)) => serve(*startup),
        Ok(Command::ShareGroups(arguments)) => share_groups(arguments),
        Err(exit) if exit.status == 0 => {
            say(exit.text.trim_end());
            ExitCode::SUCCESS
        }
        Err(exit) => fail(&exit.text, exit.status),
    }
}

/// One line on stdout.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // Nobody may be reading: then there is nobody to tell.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

fn fail(line: &str, status: u8) -> ExitCode {
    let _ = writeln!(std::io::stderr().lock(), "ottla: {line}");
    ExitCode::from(status)
}

fn share_groups(arguments: Vec<OsString>) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let printed = match runtime {
        Ok(runtime) => runtime.block_on(ottla_tools::share_groups::run(arguments)),
        Err(error) => return fail(&format!("the runtime could not be started: {error}"), 1),
    };
    // Nobody may be reading, as in `say`.
    let _ = write!(std::io::stderr().lock(), "{}", printed.err);
    let mut out = std::io::stdout().lock();
    let _ = write!(out, "{}", printed.out).and_then(|()| out.flush());
    ExitCode::from(printed.status)
}

fn serve(startup: Startup) -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(&startup.log))
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .init();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(cores.max(WORKERS_MIN))
        .enable_all()
        .build();
    let outcome = runtime
        .context("the runtime could not be started")
        .and_then(|runtime| {
            let outcome = runtime.block_on(run(startup));
            // A disk that is busy does not hold up the exit.
            runtime.shutdown_background();
            outcome
        });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&format!("{error:#}"), 1),
    }
}

async fn run(startup: Startup) -> anyhow::Result<()> {
    for warning in &startup.warnings {
        tracing::warn!("{warning}");
    }
    let mut options = builder::store_options(&startup.statics);
    options.cluster_id = startup.cluster_id.clone();
    if options.data_dir.is_none() {
        tracing::info!(
            "records are kept in memory, {} MiB at most, and go with the process; keep them with --data-dir DIR",
            options.memory_max_bytes >> 20
        );
    }
    let stop = stop_signal()?;
    let seeds = Seeds {
        topics: startup.topics.clone(),
        groups: startup.groups.clone(),
    };
    let statics = Arc::clone(&startup.statics);
    let process = builder::start(statics, options, Clock::real(), &seeds).await?;
    announce(&process, &startup)?;
    stop.await;
    tracing::info!("stopping");
    match clock::wire_timeout(STOP_LIMIT_MS, process.shutdown()).await {
        Some(stopped) => Ok(stopped?),
        None => {
            // As after a kill: nothing that was acknowledged is lost, and the next start looks.
            tracing::warn!(
                "the disk is busy: the data is not synced, and the next start recovers it"
            );
            Ok(())
        }
    }
}

/// The one line on stdout, and the ready file.
fn announce(process: &Process, startup: &Startup) -> anyhow::Result<()> {
    let bootstrap = process.bootstrap();
    let admin = process
        .admin_address()
        .map_or_else(String::new, |at| format!(" admin=http://{at}"));
    say(&format!("ready bootstrap.servers={bootstrap}{admin}"));
    match &startup.ready_file {
        Some(path) => ottla::config::file::write(path, &format!("{bootstrap}\n"))
            .with_context(|| format!("the ready file {} could not be written", path.display())),
        None => Ok(()),
    }
}

/// Resolves on SIGTERM or SIGINT.
fn stop_signal() -> anyhow::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            biased;
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
