//! `cargo xtask soak`: random live runs under chaos, with every checker on.
//!
//! Each round is a process of its own, watched and disturbed by this one, and follows from a seed.
#![forbid(unsafe_code)]

mod book;
mod chaos;
mod draw;
mod field;
mod fly;
mod gangs;
mod manage;
mod manner;
mod pair;
mod supervise;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Parser;

/// Random live runs under chaos: nothing lost, nothing twice, every rule kept.
#[derive(Parser, Debug)]
#[command(
    name = "cargo xtask soak",
    after_help = "Examples:\n  cargo xtask soak --minutes 10\n  \
        cargo xtask soak --once --seed 38        that round again"
)]
pub(crate) struct Cli {
    /// How long, in minutes
    #[arg(long, default_value_t = 1.0)]
    minutes: f64,
    /// Seed of the first round; the next has the next number
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only the round of --seed
    #[arg(long)]
    once: bool,
    /// Length of a round, in milliseconds
    #[arg(long, default_value_t = 2_000)]
    round_ms: u64,
    /// Only on this host CPU
    #[arg(long)]
    cpu: Option<u32>,
    /// Do not ask for real-time priority
    #[arg(long)]
    best_effort: bool,
    /// Nothing from outside: no signals, stops and hogs
    #[arg(long)]
    calm: bool,
    /// Write the records of a round that was violated here, in the text form
    #[arg(long, value_name = "FILE")]
    keep: Option<PathBuf>,
    /// Fly the round of --seed in this process (how rounds are started)
    #[arg(long, hide = true)]
    fly: bool,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    if !cli.fly {
        return supervise::supervise(&cli);
    }
    // What the chaos sends is received, on whichever kernel thread it hits.
    for signal in [signal_hook::consts::SIGUSR1, signal_hook::consts::SIGUSR2] {
        let _ = signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)));
    }
    let hosts = cli.cpu.map_or_else(allowed_cpus, |cpu| vec![cpu]);
    let report = match gangs::is_one(cli.seed, &hosts) {
        true => gangs::fly(&cli, &hosts),
        false => fly::fly(&cli, &hosts),
    };
    let told = serde_json::to_writer(std::io::stdout(), &report)
        .map_err(std::io::Error::from)
        .and_then(|()| writeln!(std::io::stdout()));
    if told.is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// The host CPUs that this process may use, in order.
fn allowed_cpus() -> Vec<u32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let bounds = |range: &str| -> Option<(u32, u32)> {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some((first.trim().parse().ok()?, last.trim().parse().ok()?))
    };
    let ranges = list.unwrap_or("0").split(',').filter_map(bounds);
    ranges.flat_map(|(first, last)| first..=last).collect()
}
