//! `punctual doctor`: what this machine can promise, by trying it, and the command that mends it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anstyle::{AnsiColor, Style};
use punctual_linux::{Gaps, Mend, Probe, RunOptions, Status, Term, Terms};
use punctual_model::{Ns, Span, readable};

use crate::{input, platform_file, words};
use punctual_terminal::ending::{Ended, Ending, Failure};
use punctual_terminal::json::{Json, list};
use punctual_terminal::machine::{self, Fact};
use punctual_terminal::object;
use punctual_terminal::output::{self, JSON_FORMAT, PromisedFile, styled};

/// Tries what this machine can promise, and prints the command that mends each finding
///
/// This command changes nothing. A finding is no failure: the verdict is `real-time` or
/// `best-effort`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 with or without findings; 2 bad input; 3 the machine could not be \
    looked at.\n\n\
    Examples:\n  \
    punctual doctor                        # a second of looking\n  \
    punctual doctor --measure --for 10s    # overheads and missing time as well\n  \
    punctual doctor --measure --platform here.toml   # terms for `run --platform here.toml`\n  \
    punctual doctor --try-kernel           # what its fair server and throttling do here\n  \
    punctual doctor --fix-script | sudo sh # read it first"
)]
pub(crate) struct Args {
    /// Measure as well: the costs of a switch, a timer entry and a preemption, and the missing time
    #[arg(long)]
    measure: bool,
    /// Try for ten seconds what the kernel takes at once from a CPU under SCHED_FIFO
    #[arg(long)]
    try_kernel: bool,
    /// With --measure: how long to look for missing time
    #[arg(long = "for", value_name = "DURATION", value_parser = input::duration, default_value = "3s")]
    duration: Span<Ns>,
    /// With --measure: write the terms as a file that `check` and `run` take with --platform
    #[arg(long, value_name = "FILE", requires = "measure")]
    platform: Option<PathBuf>,
    /// The host CPU to look at; the last one that may be used, by default
    #[arg(long)]
    cpu: Option<u32>,
    /// Print the findings as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print only the mending commands, as a shell script
    #[arg(long, conflicts_with = "json")]
    fix_script: bool,
}

/// Findings, measurements, and the machine that they are about.
struct Findings {
    verdict: &'static str,
    machine: Vec<Fact>,
    cpu: u32,
    probes: Vec<Probe>,
    /// What `--measure` adds.
    measured: Option<(Terms, Gaps)>,
}

pub(crate) fn execute(args: &Args) -> Ended {
    let cpus = punctual_linux::allowed_cpus()
        .map_err(|error| Failure::run(format!("the CPUs of this process: {error}")))?;
    let last = || cpus.last().copied();
    let cpu = args.cpu.or_else(last);
    let cpu = cpu.ok_or_else(|| Failure::run("no CPU may be used"))?;
    if !cpus.contains(&cpu) {
        return Err(other_cpu(cpu, &cpus));
    }
    let file = args.platform.as_deref().map(PromisedFile::open);
    let file = file.transpose()?;
    let mut probes = punctual_linux::probe(cpu);
    if args.try_kernel {
        probes.extend(punctual_linux::try_kernel(cpu));
    }
    let measured = if args.measure {
        // The quietest of the others, by the same guess as for the one itself.
        let other = cpus.iter().rev().find(|&&other| other != cpu);
        let (terms, gaps) = measure(cpu, other.copied(), args.duration)?;
        if let Some(file) = file {
            let text = platform_file::propose(cpu, &terms, &gaps);
            file.fill(|out| out.write_all(text.as_bytes()))?;
        }
        Some((terms, gaps))
    } else {
        None
    };
    let findings = Findings::new(cpu, probes, measured);
    if args.json {
        output::print_json(&findings.json())?;
    } else if args.fix_script {
        output::print(findings.script())?;
    } else {
        output::print(findings.render(output::colour_stdout()))?;
    }
    Ok(Ending::Good)
}

/// A CPU was named that is not there, or not for this process.
fn other_cpu(cpu: u32, allowed: &[u32]) -> Failure {
    let is_there = Path::new(&format!("/sys/devices/system/cpu/cpu{cpu}")).exists();
    let message = match is_there {
        true => format!("CPU {cpu} is not in the affinity mask of this process"),
        false => format!("this machine has no CPU {cpu}"),
    };
    let allowed: Vec<String> = allowed.iter().map(u32::to_string).collect();
    Failure::input(message).with_help(format!("name one of {}", allowed.join(", ")))
}

fn measure(cpu: u32, other: Option<u32>, duration: Span<Ns>) -> Result<(Terms, Gaps), Failure> {
    let terms = punctual_linux::measure_terms(cpu, other, &RunOptions::default())
        .map_err(|error| Failure::run(format!("cannot measure on CPU {cpu}: {error}")))?;
    Ok((terms, punctual_linux::scan_gaps(cpu, duration.as_ns())))
}

impl Findings {
    fn new(cpu: u32, probes: Vec<Probe>, measured: Option<(Terms, Gaps)>) -> Findings {
        let fails = probes.iter().any(|probe| probe.status == Status::Fail);
        Findings {
            verdict: if fails { "best-effort" } else { "real-time" },
            machine: machine::facts(),
            cpu,
            probes,
            measured,
        }
    }

    fn json(&self) -> Json {
        object! {
            format: JSON_FORMAT,
            verdict: self.verdict,
            machine: list(&self.machine, |fact| object! { name: fact.name, value: &fact.value }),
            cpu: self.cpu,
            probes: list(&self.probes, |probe| object! {
                name: probe.name,
                status: word(probe.status),
                value: &probe.value,
                why: probe.why,
                fix: probe.mend.as_ref().map(Mend::text),
                by: probe.mend.as_ref().map(Mend::kind),
            }),
            measured: self.measured.as_ref().map(|(terms, gaps)| measured_json(terms, gaps)),
        }
    }

    fn render(&self, coloured: bool) -> String {
        let bad = self
            .probes
            .iter()
            .filter(|probe| probe.status != Status::Ok)
            .count();
        let mut text = format!(
            "{}: CPU {} of this machine, {bad} of {} to look at\n\n",
            self.verdict,
            self.cpu,
            words::count(self.probes.len(), "finding")
        );
        for fact in &self.machine {
            let _ = writeln!(text, "  {:9} {}", fact.name, fact.value);
        }
        text.push('\n');
        let width = self
            .probes
            .iter()
            .map(|probe| probe.name.len())
            .max()
            .unwrap_or(0);
        for probe in &self.probes {
            let colour = match probe.status {
                Status::Ok => AnsiColor::Green,
                Status::Warn => AnsiColor::Yellow,
                Status::Fail => AnsiColor::Red,
            };
            let status = styled(
                &format!("{:4}", word(probe.status)),
                colour.on_default(),
                coloured,
            );
            let _ = writeln!(text, "  {status}  {:width$}  {}", probe.name, probe.value);
            if probe.status != Status::Ok {
                let _ = writeln!(text, "        {:width$}  {}", "", probe.why);
            }
            if let Some(mend) = &probe.mend {
                let with = match mend {
                    Mend::Container(_) => "start the container with ",
                    Mend::Command(_) | Mend::ByHand(_) => "",
                };
                let how = styled(mend.text(), Style::new().bold(), coloured);
                let _ = writeln!(text, "        {:width$}  mend: {with}{how}", "");
            }
        }
        if let Some((terms, gaps)) = &self.measured {
            let _ = write!(text, "\n{}", measured_text(terms, gaps));
        }
        text.truncate(text.trim_end().len());
        text
    }

    /// What a shell with the rights to do so would run.
    fn script(&self) -> String {
        let mut text = String::from("#!/bin/sh\n# Made by `punctual doctor --fix-script`.\n");
        for probe in &self.probes {
            let Some(mend) = &probe.mend else {
                continue;
            };
            let _ = writeln!(text, "\n# {} is {}: {}", probe.name, probe.value, probe.why);
            let _ = match mend {
                Mend::Command(command) => writeln!(text, "{command}"),
                Mend::Container(options) => {
                    writeln!(text, "# Not from here. Start the container with {options}")
                }
                Mend::ByHand(what) => writeln!(text, "# By hand: {what}"),
            };
        }
        text.truncate(text.trim_end().len());
        text
    }
}

fn word(status: Status) -> &'static str {
    match status {
        Status::Ok => "ok",
        Status::Warn => "warn",
        Status::Fail => "fail",
    }
}

fn measured_json(terms: &Terms, gaps: &Gaps) -> Json {
    let of_term = |term: &Term| {
        let [p50_ns, p99_ns, max_ns] = term.quantiles_ns;
        object! {
            name: term.name,
            meaning: term.meaning,
            proposed_ns: term.proposed_ns,
            p50_ns: p50_ns,
            p99_ns: p99_ns,
            max_ns: max_ns,
            samples: term.samples,
            missing_time_ns: term.missing_ns,
        }
    };
    let overheads = &terms.overheads;
    let wake_late = terms.terms.iter().find(|term| term.name == "wake-late");
    object! {
        switch_ns: overheads.switch_ns,
        timer_ns: overheads.timer_ns,
        preemption_ns: overheads.preemption_ns,
        wake_late_ns: wake_late.map_or(0, |term| term.proposed_ns),
        scheduling_time_ns: terms.scheduling_time_ns(),
        mode: platform_file::mode(overheads.mode),
        terms: list(&terms.terms, of_term),
        not_measured: list(&terms.missing, |(name, why)| object! { name: *name, why: why }),
        gaps: gaps.count,
        gaps_total_ns: gaps.total_ns,
        gaps_longest_ns: gaps.longest_ns,
        gaps_densest_10ms_ns: gaps.densest_ns,
        observed_ns: gaps.observed_ns,
    }
}

fn measured_text(terms: &Terms, gaps: &Gaps) -> String {
    let missing_ppm = u128::from(gaps.total_ns) * 1_000_000 / u128::from(gaps.observed_ns.max(1));
    let mut text = String::new();
    for line in platform_file::table(terms).lines() {
        let _ = writeln!(text, "  {line}");
    }
    let _ = writeln!(
        text,
        "  proposed: the 90th percentile of the quietest quarter, {}\n\n  \
         missing time: {} in {} gaps, {} ppm of {}; the longest {}, at most {} in any 10 ms",
        platform_file::mode(terms.overheads.mode),
        readable(gaps.total_ns),
        gaps.count,
        missing_ppm,
        readable(gaps.observed_ns),
        readable(gaps.longest_ns),
        readable(gaps.densest_ns),
    );
    if let Some(ns) = terms.scheduling_time_ns() {
        let _ = writeln!(
            text,
            "  slots: proposed for a frame is scheduling-time = \"{}\", the late timer and both \
             entries of a boundary\n  \
             (of each what one sample in 300 exceeds); a late start, the raise of a program and \
             missing time come on top",
            readable(ns),
        );
    }
    text
}
