//! Everything that a machine takes for scheduling, term by term, for `punctual doctor --measure`.
//!
//! The terms that admission counts (switch, timer entry, timer set anew, preemption), and beside
//! them the parts that they are made of and how late a CPU wakes up. The proposal follows the rule
//! of [`measure_overheads`](super::measure_overheads); median, 99th percentile and largest sample
//! stand beside it, because they say how much above the proposal comes and goes with the
//! neighbours.

use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use punctual_kern::NoSink;
use punctual_model::Span;

use super::{
    Measured, Overheads, RUN_NS, Samples, Short, TURN_NS, body_ticks, clock, measure_preemption,
    measure_switch, measure_timer, measure_wake, persist, proposed, short_run,
};
use crate::entry::request::open_gate;
use crate::record::body::Body;
use crate::record::input::{RunError, RunOptions};
use crate::record::local::current_light;
use crate::time::clock::clock_rate;
use crate::wait::job;
use crate::wait::notify::Notify;

/// One cost of scheduling on this machine, in nanoseconds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Term {
    /// Its name.
    pub name: &'static str,
    /// From where to where.
    pub meaning: &'static str,
    /// How many samples.
    pub samples: usize,
    /// Their median, 99th percentile and maximum.
    pub quantiles_ns: [u64; 3],
    /// One sample in 300 exceeds this: the quantile of 99.67 in 100.
    pub rare_ns: u64,
    /// The 90th percentile of the quietest quarter, rounded up.
    pub proposed_ns: u64,
    /// What the machine took while it was measured.
    pub missing_ns: u64,
}

/// What [`measure_terms`] found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Terms {
    /// What admission counts.
    pub overheads: Overheads,
    /// Each term.
    pub terms: Vec<Term>,
    /// Terms that could not be measured, and why.
    pub missing: Vec<(&'static str, String)>,
}

impl Term {
    fn new(name: &'static str, meaning: &'static str, measured: &Measured) -> Term {
        let rate = clock_rate().frequency;
        let mut sorted = measured.ticks.clone();
        sorted.sort_unstable();
        // The smallest sample that so many of 300 samples do not exceed.
        let at = |of_300: usize| {
            let rank = (sorted.len() * of_300).div_ceil(300).saturating_sub(1);
            rate.ns_up(sorted.get(rank).copied().unwrap_or(0))
        };
        Term {
            name,
            meaning,
            samples: sorted.len(),
            quantiles_ns: [at(150), at(297), at(300)],
            rare_ns: at(299),
            proposed_ns: proposed(measured),
            missing_ns: measured.missing_ns,
        }
    }
}

/// The proposal of [`Terms::scheduling_time_ns`] is a multiple of this.
const STEP_NS: u64 = 10_000;

impl Terms {
    /// A proposal for the `scheduling-time` of a frame, in nanoseconds, rounded up to 10 us. It has
    /// the late timer of the slot that ends, and both entries, each by [`Term::rare_ns`].
    /// So together they take longer in one of 100 boundaries at most, if boundaries are like the
    /// samples. It leaves out the late timer of the next start, the raise of a program, and
    /// missing time. `None`: one of the parts was not measured.
    pub fn scheduling_time_ns(&self) -> Option<u64> {
        let rare = |name| {
            let term = self.terms.iter().find(|term| term.name == name);
            term.map(|term| term.rare_ns)
        };
        let (late, entry) = (rare("timer-latency")?, rare("dispatch")?);
        let needed = late.saturating_add(entry.saturating_mul(2));
        Some(needed.next_multiple_of(STEP_NS))
    }
}

/// Each term: from where to where.
const TERMS: [(&str, &str); 9] = [
    ("switch", "from thread to thread by a yield"),
    ("timer-entry", "a signal that changes nothing"),
    (
        "timer-anew",
        "a timer set again before it fires, as when a job is done early",
    ),
    (
        "preemption",
        "from the instant it is due to the successor's first instruction",
    ),
    (
        "timer-latency",
        "from that instant to the scheduler's entry",
    ),
    (
        "dispatch",
        "from that entry to the successor's first instruction",
    ),
    (
        "release",
        "from an arrival to the first instruction of its job, which interrupts another",
    ),
    (
        "kick",
        "from a ring on another CPU to the woken thread's first instruction",
    ),
    (
        "wake-late",
        "a thread that gave its CPU away, after the end of its sleep",
    ),
];

/// Measures on one host CPU, and kicks between it and `other`, in less than half a second on a
/// machine that lets it, under the class that a run would have.
///
/// # Errors
/// As for [`run()`](crate::run()).
pub fn measure_terms(
    host: u32,
    other: Option<u32>,
    options: &RunOptions,
) -> Result<Terms, RunError> {
    let (switches, mode) = persist(|| measure_switch(host, options))?;
    let preemptions = persist(|| measure_preemption(host, options))?;
    let early = RunOptions {
        early_ns: preemptions.early_ns(),
        ..options.clone()
    };
    let timers = persist(|| measure_timer(host, &early))?;
    let wakes = measure_wake(host, options, mode)?;
    let anew = persist(|| measure_anew(host, options)).unwrap_or_default();
    let counted = [&switches, &timers, &preemptions.first, &anew];
    let overheads = Overheads::of(counted, early.early_ns, mode);
    // What nobody counts on may fail: who else uses these CPUs under real-time priority can keep a
    // run from ending, and the last needs two of them.
    let releases = persist(|| measure_release(host, options)).map_err(|error| error.to_string());
    let kicks = match other {
        None => Err("this process may use one CPU only".to_owned()),
        Some(other) => persist(|| measure_kick(host, other, options)).map_err(|e| e.to_string()),
    };
    let all = [
        Ok(switches),
        Ok(timers),
        Ok(anew),
        Ok(preemptions.first),
        Ok(preemptions.timer),
        Ok(preemptions.dispatch),
        releases,
        kicks,
        Ok(wakes),
    ];
    let (mut terms, mut missing) = (Vec::new(), Vec::new());
    for ((name, meaning), measured) in TERMS.into_iter().zip(all) {
        match measured {
            Ok(measured) if measured.ticks.is_empty() => {
                missing.push((
                    name,
                    "it did not happen: the machine was too busy".to_owned(),
                ));
            }
            Ok(measured) => terms.push(Term::new(name, meaning, &measured)),
            Err(why) => missing.push((name, why)),
        }
    }
    Ok(Terms {
        overheads,
        terms,
        missing,
    })
}

/// How much the running thread loses when its timer is set anew before it fires: the call, and the
/// interrupt that comes all the same where the hardware is not set back. No entry falls in between.
pub(super) fn measure_anew(host: u32, options: &RunOptions) -> Result<Measured, RunError> {
    /// The timer is set for so long after the call, and set anew half-way.
    const FIRST_NS: u64 = 60_000;
    /// Then it is set for so long after the first instant; until half of that an interrupt counts.
    const BEHIND_NS: u64 = 40_000;
    let samples = Samples::new();
    let timed = samples.clone();
    let body: Body = Box::new(move |_| {
        let Some(light) = current_light() else { return };
        // SAFETY: the host outlives its threads.
        let host = unsafe { &*light.host() };
        let set = |ns| {
            host.gate.close();
            host.retry_in(ns);
            open_gate(host);
        };
        let clock = clock();
        let ticks = |ns| Span::from_ticks(clock_rate().frequency.ticks_up(ns));
        let [half, around] = [FIRST_NS / 2, BEHIND_NS / 2].map(ticks);
        let end = body_ticks();
        while job::now_ticks() < end {
            let entered = job::entries();
            set(FIRST_NS);
            let middle = clock.now().saturating_add(half);
            while clock.now() < middle {}
            let call = clock.now();
            set(FIRST_NS / 2 + BEHIND_NS);
            let mut last = clock.now();
            let took = last.since(call);
            let mut gap = Span::ZERO;
            let first = middle.saturating_add(half);
            while last < first.saturating_add(around) {
                let now = clock.now();
                if now.saturating_add(around) > first {
                    gap = gap.max(now.since(last));
                }
                last = now;
            }
            if job::entries() == entered {
                timed.push(took.saturating_add(gap).ticks());
            }
            // The entry that it fires for sees to all that is due in this run.
            while job::entries() == entered {}
        }
    });
    let short = Short::of(host, vec![body], RUN_NS);
    let flown = short_run(vec![(short, NoSink)], options)?;
    Ok(Measured::new(samples, flown.missing_ns))
}

/// How late the first instruction of an urgent job is that interrupts one who computes.
fn measure_release(host: u32, options: &RunOptions) -> Result<Measured, RunError> {
    let samples = Samples::new();
    let timed = samples.clone();
    let rate = clock_rate().frequency;
    let urgent: Body = Box::new(move |job| {
        let now = job::now_ticks();
        timed.push(now.saturating_sub(rate.ticks_up(job.arrival_ns)));
    });
    let short = Short {
        arrivals: RUN_NS / TURN_NS,
        urgent: Some(urgent),
        ..Short::of(host, vec![busy()], RUN_NS)
    };
    let flown = short_run(vec![(short, NoSink)], options)?;
    Ok(Measured::new(samples, flown.missing_ns))
}

/// A thread that only computes.
fn busy() -> Body {
    Box::new(|_| {
        let end = body_ticks();
        while job::now_ticks() < end {
            core::hint::spin_loop();
        }
    })
}

/// How long after a ring on `other` the thread on `host` executes that waits for it, while another
/// one computes there. One ring per turn.
fn measure_kick(host: u32, other: u32, options: &RunOptions) -> Result<Measured, RunError> {
    let samples = Samples::new();
    let timed = samples.clone();
    let notify = Arc::new(OnceLock::new());
    let rung = Arc::new(AtomicU64::new(0));
    let (theirs, stamp) = (Arc::clone(&notify), Arc::clone(&rung));
    let waits: Body = Box::new(move |_| {
        let Some(notify) = Notify::new() else { return };
        let notify = theirs.get_or_init(|| notify);
        while notify.wait(None).is_ok() {
            let now = job::now_ticks();
            timed.push(now.saturating_sub(stamp.load(Ordering::Acquire)));
        }
    });
    let turn = clock_rate().frequency.ticks_up(TURN_NS);
    let notifies: Body = Box::new(move |_| {
        let (mut next, mut now, end) = (0, 0, body_ticks());
        while now < end {
            now = job::now_ticks();
            if now >= next
                && let Some(notify) = notify.get()
            {
                next = now + turn;
                rung.store(job::now_ticks(), Ordering::Release);
                if notify.notify().is_err() {
                    return;
                }
            }
            core::hint::spin_loop();
        }
    });
    let there = Short {
        ranked: true,
        ..Short::of(host, vec![busy(), waits], RUN_NS)
    };
    let here = Short::of(other, vec![notifies], RUN_NS);
    let flown = short_run(vec![(there, NoSink), (here, NoSink)], options)?;
    Ok(Measured::new(samples, flown.missing_ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::outcome::Mode;
    use crate::sys;

    #[test]
    fn every_term_is_measured_or_says_why_not() {
        let mut cpus = sys::allowed_cpus().expect("known");
        let host = cpus.pop().expect("one");
        let found = measure_terms(host, cpus.pop(), &RunOptions::default()).expect("measured");
        assert_eq!(found.terms.len() + found.missing.len(), 9);
        assert!(found.missing.iter().all(|(_, why)| !why.is_empty()));
        for term in &found.terms {
            let [p50, p99, max] = term.quantiles_ns;
            assert!(p50 <= p99 && p99 <= max, "{term:?}");
            assert!(term.proposed_ns <= max, "{term:?}");
            assert!(term.samples > 0, "{term:?}");
        }
    }

    #[test]
    fn the_proposed_time_between_slots_is_a_late_timer_and_both_entries() {
        let term = |name, rare| Term {
            name,
            meaning: "",
            samples: 1,
            quantiles_ns: [0, 0, 1_000_000],
            rare_ns: rare,
            proposed_ns: 0,
            missing_ns: 0,
        };
        let of = |terms| Terms {
            overheads: Overheads::of([&Measured::default(); 4], 0, Mode::RealTime),
            terms,
            missing: Vec::new(),
        };
        let [late, entry] = [term("timer-latency", 61_000), term("dispatch", 14_000)];
        assert_eq!(
            of(vec![late.clone(), entry]).scheduling_time_ns(),
            Some(90_000)
        );
        assert_eq!(of(vec![late]).scheduling_time_ns(), None);
    }

    #[test]
    fn quantiles_are_the_smallest_samples_that_so_many_do_not_exceed() {
        let ticks: Vec<u64> = (1..=200).rev().collect();
        let term = Term::new(
            "x",
            "y",
            &Measured {
                ticks,
                missing_ns: 3,
            },
        );
        let ns = |ticks| clock_rate().frequency.ns_up(ticks);
        assert_eq!(term.quantiles_ns, [100, 198, 200].map(ns));
        assert_eq!(term.rare_ns, ns(200), "of 200 samples none is rarer");
        let ticks: Vec<u64> = (1..=600).collect();
        let more = Measured {
            ticks,
            missing_ns: 0,
        };
        assert_eq!(Term::new("x", "y", &more).rare_ns, ns(598));
        // The quietest quarter is the last one: 1 to 50.
        assert_eq!((term.proposed_ns, term.samples), (ns(45), 200));
        assert_eq!(term.missing_ns, 3);
    }
}
