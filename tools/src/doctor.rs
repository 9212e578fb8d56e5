//! `punctual doctor`: what this machine can promise, by trying it, and the command that mends it.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use punctual_linux::{Gaps, Overheads, Probe, RunOptions, Status};
use punctual_model::{Span, readable};
use serde::Serialize;

use crate::bench::quiet_cpu;
use crate::ending::{Ended, Ending, Failure};
use crate::machine::{self, Fact};
use crate::output::{self, JSON_FORMAT, styled};
use crate::{input, verdict_text};

/// Tries what this machine can promise, and prints the command that mends each finding
///
/// Changes nothing. A finding is no failure: read the verdict, `real-time` or `best-effort`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 whatever was found; 2 bad input; 3 the machine could not be \
    looked at.\n\n\
    Examples:\n  \
    punctual doctor                        # a second of looking\n  \
    punctual doctor --measure --for 10s    # overheads and missing time as well\n  \
    punctual doctor --fix-script | sudo sh # read it first"
)]
pub(crate) struct Args {
    /// Measure as well: what a switch, a timer entry and a preemption cost, and the missing time
    #[arg(long)]
    measure: bool,
    /// With --measure: how long to look for missing time
    #[arg(long = "for", value_name = "DURATION", value_parser = input::duration, default_value = "3s")]
    duration: Span,
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
#[derive(Clone, PartialEq, Debug, Serialize)]
struct Findings {
    format: u32,
    verdict: &'static str,
    machine: Vec<Fact>,
    cpu: u32,
    probes: Vec<ProbeJson>,
    measured: Option<Measured>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
struct ProbeJson {
    name: &'static str,
    status: &'static str,
    value: String,
    why: &'static str,
    fix: Option<String>,
}

/// What `--measure` adds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
struct Measured {
    switch_ns: u64,
    timer_ns: u64,
    preemption_ns: u64,
    wake_late_ns: u64,
    gaps: u64,
    gaps_total_ns: u64,
    gaps_longest_ns: u64,
    observed_ns: u64,
}

pub(crate) fn execute(args: &Args) -> Ended {
    let cpu = match args.cpu {
        Some(cpu) => cpu,
        None => quiet_cpu().map_err(Failure::run)?,
    };
    let probes = punctual_linux::probe(cpu);
    let measured = if args.measure {
        Some(measure(cpu, args.duration)?)
    } else {
        None
    };
    let findings = Findings::new(cpu, &probes, measured);
    if args.json {
        output::print_json(&findings)?;
    } else if args.fix_script {
        output::print(findings.script())?;
    } else {
        output::print(findings.render(output::colour_stdout()))?;
    }
    Ok(Ending::Good)
}

fn measure(cpu: u32, duration: Span) -> Result<Measured, Failure> {
    let overheads: Overheads = punctual_linux::measure_overheads(cpu, &RunOptions::default())
        .map_err(|error| Failure::run(format!("cannot measure on CPU {cpu}: {error}")))?;
    let gaps: Gaps = punctual_linux::scan_gaps(cpu, duration.as_ns());
    Ok(Measured {
        switch_ns: overheads.switch_ns,
        timer_ns: overheads.timer_ns,
        preemption_ns: overheads.preemption_ns,
        wake_late_ns: overheads.wake_late_ns,
        gaps: gaps.count,
        gaps_total_ns: gaps.total_ns,
        gaps_longest_ns: gaps.longest_ns,
        observed_ns: gaps.observed_ns,
    })
}

impl Findings {
    fn new(cpu: u32, probes: &[Probe], measured: Option<Measured>) -> Findings {
        let fails = probes.iter().any(|probe| probe.status == Status::Fail);
        let probe = |probe: &Probe| ProbeJson {
            name: probe.name,
            status: match probe.status {
                Status::Ok => "ok",
                Status::Warn => "warn",
                Status::Fail => "fail",
            },
            value: probe.value.clone(),
            why: probe.why,
            fix: probe.fix.clone(),
        };
        Findings {
            format: JSON_FORMAT,
            verdict: if fails { "best-effort" } else { "real-time" },
            machine: machine::facts(),
            cpu,
            probes: probes.iter().map(probe).collect(),
            measured,
        }
    }

    fn render(&self, coloured: bool) -> String {
        let bad = self
            .probes
            .iter()
            .filter(|probe| probe.status != "ok")
            .count();
        let mut text = format!(
            "{}: CPU {} of this machine, {bad} of {} to look at\n\n",
            self.verdict,
            self.cpu,
            verdict_text::count(self.probes.len(), "finding")
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
                "ok" => AnsiColor::Green,
                "warn" => AnsiColor::Yellow,
                _ => AnsiColor::Red,
            };
            let status = styled(
                &format!("{:4}", probe.status),
                colour.on_default(),
                coloured,
            );
            let _ = writeln!(text, "  {status}  {:width$}  {}", probe.name, probe.value);
            if probe.status != "ok" {
                let _ = writeln!(text, "        {:width$}  {}", "", probe.why);
            }
            if let Some(fix) = &probe.fix {
                let fix = styled(fix, Style::new().bold(), coloured);
                let _ = writeln!(text, "        {:width$}  mend: {fix}", "");
            }
        }
        if let Some(measured) = &self.measured {
            let _ = write!(text, "\n{}", measured.render());
        }
        text.truncate(text.trim_end().len());
        text
    }

    /// What a shell with the rights to do so would run.
    fn script(&self) -> String {
        let mut text = String::from("#!/bin/sh\n# Made by `punctual doctor --fix-script`.\n");
        for probe in &self.probes {
            if let Some(fix) = &probe.fix {
                let _ = writeln!(
                    text,
                    "\n# {} is {}: {}\n{fix}",
                    probe.name, probe.value, probe.why
                );
            }
        }
        text.truncate(text.trim_end().len());
        text
    }
}

impl Measured {
    fn render(&self) -> String {
        let missing_ppm =
            u128::from(self.gaps_total_ns) * 1_000_000 / u128::from(self.observed_ns.max(1));
        format!(
            "  switch {}, timer entry {}, preemption {}, sleep late by {} (90th percentile of the quietest round)\n  \
             missing time: {} in {} gaps, {} ppm of {}; the longest {}\n",
            readable(self.switch_ns),
            readable(self.timer_ns),
            readable(self.preemption_ns),
            readable(self.wake_late_ns),
            readable(self.gaps_total_ns),
            self.gaps,
            missing_ppm,
            readable(self.observed_ns),
            readable(self.gaps_longest_ns),
        )
    }
}
