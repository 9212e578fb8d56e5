//! Rounds one after the other, each watched: totals, and how to repeat what went wrong.

use std::io::Read;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use punctual_generate::Random;
use rustix::process::Pid;

use crate::Cli;
use crate::chaos::Chaos;
use crate::fly::Report;

/// A round that has not ended this long after its time is ended, and counts as a violation.
const PATIENCE: Duration = Duration::from_secs(90);

/// What all rounds so far came to.
#[derive(Debug, Default)]
struct Totals {
    rounds: u64,
    real_time: u64,
    cut: u64,
    sum: Report,
    signals: u64,
    stops: u64,
    violations: u64,
}

/// Flies rounds until the time is over or Ctrl-C; fails on any violation.
pub(crate) fn supervise(cli: &Cli) -> ExitCode {
    let stop = Arc::new(AtomicBool::new(false));
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // Without it Ctrl-C ends this at once, and rounds end by themselves.
        let _ = signal_hook::flag::register(signal, Arc::clone(&stop));
    }
    let start = Instant::now();
    let length = Duration::from_secs_f64((cli.minutes * 60.0).max(0.0));
    let mut totals = Totals::default();
    let mut seed = cli.seed;
    while !stop.load(Ordering::Relaxed) {
        match round(cli, seed, &stop, &mut totals) {
            Some(report) => add(cli, seed, &report, &mut totals),
            None if stop.load(Ordering::Relaxed) => break,
            None => return ExitCode::from(3),
        }
        seed += 1;
        if cli.once || start.elapsed() >= length {
            break;
        }
    }
    println!("{}", totals.line(start.elapsed()));
    if totals.violations == 0 && totals.rounds > 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// One round in a process of its own; `None`: it could not be, or was interrupted.
fn round(cli: &Cli, seed: u64, stop: &AtomicBool, totals: &mut Totals) -> Option<Report> {
    let mut command = Command::new(std::env::current_exe().ok()?);
    command.args(["--fly", "--seed", &seed.to_string()]);
    command.args(["--round-ms", &cli.round_ms.to_string()]);
    command.args(cli.best_effort.then_some("--best-effort"));
    if let Some(cpu) = cli.cpu {
        command.args(["--cpu", &cpu.to_string()]);
    }
    if let Some(path) = &cli.keep {
        command.arg("--keep").arg(path);
    }
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            eprintln!("soak: cannot start a round: {error}");
            return None;
        }
    };
    let pid = Pid::from_child(&child);
    let random = Random::at(seed, &[3]);
    let mut chaos = (!cli.calm).then(|| Chaos::new(pid, random));
    let limit = Duration::from_millis(cli.round_ms) + PATIENCE;
    let disturbed = Duration::from_millis(cli.round_ms);
    let ended = watch(&mut child, (limit, disturbed), &mut chaos, stop);
    if let Some(chaos) = chaos {
        totals.signals += chaos.signals;
        totals.stops += chaos.stops;
    }
    let mut said = String::new();
    let read = child
        .stdout
        .take()
        .map(|mut out| out.read_to_string(&mut said));
    if stop.load(Ordering::Relaxed) {
        return None;
    }
    let report = read.and_then(|_| serde_json::from_str(&said).ok());
    Some(match (ended, report) {
        (Some(status), Some(report)) if status.success() => report,
        (ended, _) => Report {
            violations: vec![how_it_ended(ended)],
            ..Report::default()
        },
    })
}

fn how_it_ended(ended: Option<ExitStatus>) -> String {
    match ended {
        Some(status) => format!("the round's process died: {status}"),
        None => "the round did not come back".to_owned(),
    }
}

/// Waits for the end of a round and disturbs it meanwhile; `None`: it had to be ended.
fn watch(
    child: &mut Child,
    (limit, disturbed): (Duration, Duration),
    chaos: &mut Option<Chaos>,
    stop: &AtomicBool,
) -> Option<ExitStatus> {
    let start = Instant::now();
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        if stop.load(Ordering::Relaxed) || start.elapsed() > limit {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        match chaos {
            Some(chaos) if start.elapsed() < disturbed => chaos.act(),
            _ => {
                // The rest is checking, which nobody need be disturbed in.
                if let Some(chaos) = chaos {
                    chaos.end_hogs();
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

fn add(cli: &Cli, seed: u64, report: &Report, totals: &mut Totals) {
    totals.add(report);
    let verdict = if report.violations.is_empty() {
        "ok"
    } else {
        "VIOLATED"
    };
    println!(
        "seed {seed}: {verdict}, {} preemptions, {} operations: {}",
        report.preemptions, report.operations, report.name
    );
    for violation in &report.violations {
        println!("    {violation}");
    }
    if !report.violations.is_empty() {
        let mut again = format!("cargo xtask soak --once --seed {seed}");
        if cli.round_ms != 2_000 {
            again += &format!(" --round-ms {}", cli.round_ms);
        }
        if let Some(cpu) = cli.cpu {
            again += &format!(" --cpu {cpu}");
        }
        for (given, option) in [(cli.best_effort, " --best-effort"), (cli.calm, " --calm")] {
            again += if given { option } else { "" };
        }
        println!("    again: {again}");
    }
}

impl Totals {
    fn add(&mut self, report: &Report) {
        let sum = &mut self.sum;
        self.rounds += 1;
        self.real_time += u64::from(report.real_time);
        self.cut += u64::from(report.cut);
        self.violations += report.violations.len() as u64;
        sum.preemptions += report.preemptions;
        sum.entries += report.entries;
        sum.switches += report.switches;
        sum.deferrals += report.deferrals;
        sum.deferred_max_ns = sum.deferred_max_ns.max(report.deferred_max_ns);
        sum.missing_ns += report.missing_ns;
        sum.nested += report.nested;
        sum.operations += report.operations;
        sum.caught += report.caught;
        sum.changes += report.changes;
        sum.refused += report.refused;
        sum.own += report.own;
        sum.fell_back += report.fell_back;
        sum.gangs += report.gangs;
        for (sum, more) in sum.of_gangs.iter_mut().zip(report.of_gangs) {
            *sum += more;
        }
        sum.replayed += report.replayed;
    }

    fn line(&self, elapsed: Duration) -> String {
        let sum = &self.sum;
        let minutes = elapsed.as_secs_f64() / 60.0;
        #[expect(clippy::cast_precision_loss, reason = "a rate to be read")]
        let rate = sum.preemptions as f64 / minutes.max(1e-3);
        format!(
            "soak: {} rounds in {minutes:.1} min ({} real-time, {} cut), {} preemptions \
             ({rate:.0} a minute), {} entries, {} switches, {} operations, {} hand-overs, {} \
             changes of trees and {} refused, {} policies of children replaced, {} children fell back, {} gangs ({} admissions, {} \
             refused, {} operations broken by a death), {} deferrals (longest {} ns), {} nested signals, {} signals and {} stops from outside, \
             {} ms missing, {} records replayed; {} violations",
            self.rounds,
            self.real_time,
            self.cut,
            sum.preemptions,
            sum.entries,
            sum.switches,
            sum.operations,
            sum.caught,
            sum.changes,
            sum.refused,
            sum.own,
            sum.fell_back,
            sum.gangs,
            sum.of_gangs[0],
            sum.of_gangs[1],
            sum.of_gangs[2],
            sum.deferrals,
            sum.deferred_max_ns,
            sum.nested,
            self.signals,
            self.stops,
            sum.missing_ns / 1_000_000,
            sum.replayed,
            self.violations
        )
    }
}
