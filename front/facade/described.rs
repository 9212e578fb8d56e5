//! How a live run went, as its log says it.

use punctual_linux::{ClockOffset, Ending};
use punctual_model::{Frequency, Instant, Ns, Span, System};
use punctual_trace::{Header, Log, Mode, Recorder};

use crate::counted::counters;

/// How it ran, what it did not get, how it ended.
pub(crate) fn describe(outcome: &punctual_linux::Outcome<Recorder>, header: &mut Header) {
    header.mode = match outcome.mode {
        punctual_linux::Mode::RealTime => Mode::RealTime,
        punctual_linux::Mode::BestEffort => Mode::BestEffort,
    };
    let waits = outcome.cpus.iter().flat_map(|cpu| &cpu.waits);
    let lost = outcome
        .lost
        .iter()
        .chain(waits)
        .map(|loss| format!("{}: {}", loss.what, loss.detail));
    header.lost = lost.collect();
    header.stopped = match outcome.ending {
        Ending::Complete => None,
        Ending::Stopped => Some("stopped by request".to_string()),
        Ending::Watchdog => Some("the watchdog ended it: it exceeded its time".to_string()),
    };
    let panics = outcome
        .panics
        .iter()
        .map(|p| format!("{} panicked: {}", p.name, p.message));
    header.faults = panics.collect();
}

/// Whether the clocks kept the error that the verdict counts with.
pub(crate) fn describe_clocks(
    outcome: &punctual_linux::Outcome<Recorder>,
    counted: Span<Ns>,
    header: &mut Header,
) {
    let residues = outcome.offsets.iter().flatten().map(|o| o.residue());
    let mut residues: Vec<u64> = residues.collect();
    residues.sort_unstable();
    let two = residues.iter().rev().take(2).copied();
    let apart = outcome.frequency.ns_up(two.fold(0, u64::saturating_add));
    header.clocks_apart = match apart > counted.as_ns() {
        true => Some(Instant::ZERO),
        false => outcome.clocks.apart_ns.map(Instant::from_ns),
    };
    if outcome.offsets.iter().any(Option::is_none) {
        let lost = "clocks: how far apart two CPUs are was not to be had in time";
        header.lost.push(lost.to_string());
    }
}

/// How it ran, and the records and counts of each CPU.
pub(crate) fn take_records(
    outcome: punctual_linux::Outcome<Recorder>,
    system: &System,
    log: &mut Log,
) {
    describe(&outcome, &mut log.header);
    let compared = Some(outcome.clocks.compared).filter(|compared| *compared > 0);
    let mut seen = compared.map(|compared| ("comparisons of clocks".to_string(), compared));
    let of_system = system.cpus.iter().zip(outcome.offsets);
    for ((at, cpu), (named, offset)) in outcome.cpus.into_iter().enumerate().zip(of_system) {
        let one = log.add_cpu(&named.name, named.host, cpu.sink);
        one.counters = counters((&cpu.counters, cpu.takers), outcome.missing);
        let clocks = clock_counters(offset, outcome.frequency);
        let others = &mut one.counters.others;
        match at {
            0 => others.extend(seen.take()),
            _ => others.extend(clocks),
        }
    }
}

/// How far the clock of a CPU was ahead of that of the first, in magnitude, and the error of that.
fn clock_counters(offset: Option<ClockOffset>, frequency: Frequency) -> Vec<(String, u64)> {
    let Some(offset) = offset else {
        return Vec::new();
    };
    let ns = |ticks: u64| frequency.ns_up(ticks);
    vec![
        (
            "clock offset, ns".to_string(),
            ns(offset.ticks.unsigned_abs()),
        ),
        ("clock error, ns".to_string(), ns(offset.error)),
    ]
}
