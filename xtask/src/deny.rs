//! `cargo deny`: licences, bans and sources of everything in the lockfile.

use anyhow::{Context, Result};
use std::path::PathBuf;
use std::process::Stdio;

use crate::args::Args;
use crate::{dirs, process};

const VERSION: &str = "0.20.2";

pub(crate) fn run(args: &Args) -> Result<()> {
    args.allow(&["advisories"])?;
    check(&install()?, args.has("advisories"))
}

/// The installed cargo-deny, built first if it is missing (minutes on two cores).
pub(crate) fn install() -> Result<PathBuf> {
    let root = dirs::tool_cache().join(format!("cargo-deny-{VERSION}"));
    let program = root.join("bin").join("cargo-deny");
    if !program.exists() {
        let build = dirs::target().join("cargo-deny");
        process::run(
            process::cargo()
                .args([
                    "install",
                    "cargo-deny",
                    "--version",
                    VERSION,
                    "--locked",
                    "--quiet",
                ])
                .arg("--debug") // compiles in half the time, and checks in a second all the same
                .arg("--root")
                .arg(&root)
                .arg("--target-dir")
                .arg(&build)
                .env("CARGO_BUILD_JOBS", "1"),
        )?;
        std::fs::remove_dir_all(&build).with_context(|| build.display().to_string())?;
    }
    Ok(program)
}

/// Advisories need the public advisory database, so they are a command of their own.
pub(crate) fn check(program: &PathBuf, advisories: bool) -> Result<()> {
    let mut deny = process::command(program);
    deny.args([
        "--workspace",
        "--locked",
        "check",
        "--hide-inclusion-graph",
        "bans",
        "licenses",
        "sources",
    ]);
    if advisories {
        deny.arg("advisories");
    }
    process::run(deny.stdout(Stdio::inherit()))
}
