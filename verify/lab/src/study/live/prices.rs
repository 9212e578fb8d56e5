//! Prices of the primitive steps on this machine.

use std::hint::black_box;
use std::time::Instant;

use punctual_gang::{Form, Gang, Member, Operation, Step};
use punctual_linux::{RunOptions, measure_clock_offset, measure_terms};
use punctual_model::{Machine, Ns, Span, Work};
use punctual_rivals::{Place, lines};
use punctual_terminal::origin;
use punctual_thread::{Constraint, Runtime, thread};

use super::bsp::computed;
use super::{LIMIT, LONGEST, POLICY, two_cpus};
use crate::answers::quantile;
use crate::costs::Costs;

/// Batches of what is timed by batches, and admissions.
const SAMPLES: usize = 300;
/// Times of one batch.
const BATCH: u64 = 1_000;
/// Rounds of clocks that are compared.
const CLOCKS: usize = 20;

/// The period of the thread whose constraint changes.
const PERIOD: Span<Ns> = Span::from_ms(1);

/// Measures all prices; a few seconds.
pub(crate) fn costs() -> Result<Costs, String> {
    let [first, second] = two_cpus()?;
    let terms = measure_terms(first, Some(second), &RunOptions::default());
    let terms = terms.map_err(|error| error.to_string())?;
    let term = |name: &str| {
        let found = terms.terms.iter().find(|term| term.name == name);
        found.ok_or_else(|| format!("`{name}` was not measured"))
    };
    let preemption = term("preemption")?;
    let [p50, p99, _] = preemption.quantiles_ns;
    Ok(Costs {
        machine: machine(),
        line_ps: line(first, second)?,
        step_ps: step()?,
        admission_ns: admission(first)?,
        element_ps: element(),
        entry_ns: term("timer-entry")?.quantiles_ns[0],
        switch_ns: term("switch")?.proposed_ns,
        timer_ns: term("timer-entry")?.proposed_ns,
        preemption_ns: preemption.proposed_ns,
        late_ns: p99 - p50,
        clock_error_ns: clock_error(first, second)?,
    })
}

/// Processor, kernel and date, in one line.
fn machine() -> String {
    let named = ["processor", "cpus", "kernel", "date"];
    let facts = origin::of_run("punctual study");
    let of = |name: &str| {
        let found = facts.iter().find(|(fact, _)| fact == name)?;
        Some(match name {
            "processor" | "date" => found.1.clone(),
            "cpus" => format!("{} CPUs", found.1),
            _ => format!("Linux {}", found.1),
        })
    };
    let facts: Vec<String> = named.into_iter().filter_map(of).collect();
    facts.join(", ")
}

fn median(mut samples: Vec<u64>) -> u64 {
    samples.sort_unstable();
    quantile(&samples, 50).max(1)
}

/// Picoseconds of each unit of a batch, which does so many.
fn batches(mut batch: impl FnMut() -> u64) -> u64 {
    let mut samples = Vec::new();
    for _ in 0..SAMPLES {
        let begin = Instant::now();
        let units = batch().max(1);
        let ps = begin.elapsed().as_nanos() * 1_000 / u128::from(units);
        samples.push(u64::try_from(ps).unwrap_or(u64::MAX));
    }
    median(samples)
}

/// Half of there and back.
fn line(first: u32, second: u32) -> Result<u64, String> {
    let place = Place {
        cpu: first as usize,
        other: Some(second as usize),
        real_time: false,
    };
    let round_trips = lines::there_and_back(place)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a round trip is no longer than a batch"
    )]
    let ps = round_trips.into_iter().map(|ns| (ns * 500.0) as u64);
    Ok(median(ps.collect()))
}

/// Of a member that is alone in its gang: nobody takes its lines.
fn step() -> Result<u64, String> {
    let gang = Gang::new(1, Form::Linear, 1).map_err(|error| error.to_string())?;
    let mut member = Member::join(&gang).map_err(|error| error.to_string())?;
    Ok(batches(|| {
        let mut steps = 0;
        for _ in 0..BATCH {
            loop {
                steps += 1;
                if let Step::End(outcome) = member.step(Operation::Barrier) {
                    let _ = black_box(outcome);
                    break;
                }
            }
        }
        steps
    }))
}

fn element() -> u64 {
    let computations = usize::try_from(BATCH).unwrap_or(1);
    batches(|| {
        let _ = black_box(computed(black_box(1.0), computations));
        BATCH
    })
}

/// The change of a thread's constraint, as each member of a gang asks for it.
fn admission(cpu: u32) -> Result<[u64; 11], String> {
    let runtime = Runtime::on(cpu, POLICY)
        .terms(Machine::default())
        .at_most(LONGEST)
        .main(Constraint::aperiodic(1));
    let changes = || -> Result<Vec<u64>, String> {
        let constraint = |us| Constraint::reservation(PERIOD, Work::from_us(us)).priority(5);
        let body = || while thread::wait_next_period().is_ok() {};
        let asking = thread::spawn("asking", constraint(50), body);
        let asking = asking.map_err(|error| error.to_string())?;
        let now = || thread::now().map_or(0, |now| now.as_ns());
        let mut samples = Vec::new();
        for turn in 0..SAMPLES as u64 {
            let asked = constraint(50 + 50 * (turn % 2));
            let begin = now();
            asking.change(asked).map_err(|error| error.to_string())?;
            samples.push(now() - begin);
            // Until the former constraint counts no more.
            thread::sleep(Span::from_ns(3 * PERIOD.as_ns()));
        }
        let _ended = asking.kill_within(LIMIT);
        Ok(samples)
    };
    let mut samples = runtime
        .start(changes)
        .map_err(|error| error.to_string())?
        .result?;
    samples.sort_unstable();
    // Those above the last hundredth were interrupted.
    Ok(std::array::from_fn(|decile| {
        quantile(&samples, if decile < 10 { 10 * decile } else { 99 })
    }))
}

/// The largest difference that was seen, with its error.
fn clock_error(first: u32, second: u32) -> Result<u64, String> {
    let rate = punctual_linux::clock_rate().frequency;
    let measured = (0..CLOCKS).filter_map(|_| measure_clock_offset(first, second));
    // What is beyond the error is known and taken off.
    let error = measured.map(|offset| rate.ns_up(2 * offset.error)).min();
    error.ok_or_else(|| "the CPUs do not answer each other in time".into())
}
