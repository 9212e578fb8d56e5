//! Supersteps: phases that all members go through together, apart by barriers or by time
//!
//! By time every phase is one job of the member's guarantee. All members have one first arrival, so
//! a phase begins at one instant of the gang's schedule, and no barrier is needed if
//!
//! ```text
//! worst end of a job + clock error <= period
//! ```
//!
//! on every member ([`Member::prove`]). The worst end is the response bound of the member's CPU, in
//! which declared missing time and the latest start are. A phase that ends late all the same is
//! noticed by its member: by its own clock, before the next phase. Clocks that drift further apart
//! than was counted with are noticed by the run, which compares them in idle time.
//!
//! Source: Nautilus §6.1-6.4.

use core::fmt;
use std::sync::atomic::Ordering;

use punctual_linux::{run_clock_error, run_clocks_apart};
use punctual_model::{Ns, Span, readable};
use punctual_thread::thread;

use crate::{Broken, Member, now};

/// Nothing bounds a response.
const UNBOUNDED: u64 = u64::MAX;

/// Time alone keeps the phases of all members apart, one in each job; or it was said to, by force.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Proof {
    period: Span<Ns>,
    clock_error: Span<Ns>,
    forced: bool,
}

/// Time alone need not keep the phases apart: the barrier is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotApart {
    /// The latest end of a phase of any member; `None`: nothing bounds it.
    pub worst_end: Option<Span<Ns>>,
    /// By how much clocks may differ; `None`: it was not to be measured.
    pub clock_error: Option<Span<Ns>>,
    /// From one phase to the next.
    pub period: Span<Ns>,
}

impl fmt::Display for NotApart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let period = readable(self.period.as_ns());
        match (self.worst_end, self.clock_error) {
            (None, _) => write!(f, "nothing bounds the end of a phase"),
            (_, None) => write!(f, "nobody knows how far clocks differ"),
            (Some(end), Some(error)) => {
                let until = end.saturating_add(error);
                write!(
                    f,
                    "a phase may end at {}, with a clock error of {} at {}, and the next begins at \
                     {period}: {} too early",
                    readable(end.as_ns()),
                    readable(error.as_ns()),
                    readable(until.as_ns()),
                    readable(until.saturating_sub(self.period).as_ns())
                )
            }
        }
    }
}

impl NotApart {
    /// Goes without barriers all the same. Whatever comes out is unsafe, and says so.
    pub fn force(self) -> Proof {
        Proof {
            period: self.period,
            clock_error: self.clock_error.unwrap_or_default(),
            forced: true,
        }
    }
}

/// How phases are kept apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Supersteps {
    /// By a barrier behind each, under any constraint.
    Barriers,
    /// By time: each phase is one job. A phase that ended late is counted.
    Time(Proof),
    /// By time until a phase ends late or clocks differ too much, then by barriers as well.
    TimeThenBarriers(Proof),
}

/// How the phases of a gang were kept apart: the same for all members.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kept {
    /// Phases of any member that ended when the next might have begun without a barrier.
    pub late_ends: u64,
    /// The phase from which on there were barriers, counted from 0; `None`: there were none.
    pub barriers_from: Option<u64>,
    /// The barriers were left out without proof.
    pub forced: bool,
    /// From when on (nanoseconds of the run) clocks were seen to differ by more than the proof
    /// counts with; `None`: they were not.
    pub clocks_apart: Option<u64>,
}

impl Kept {
    /// Whether no phase ended late, by clocks that did not differ too much.
    pub fn in_step(&self) -> bool {
        self.late_ends == 0 && self.clocks_apart.is_none()
    }
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.in_step(), self.late_ends) {
            (true, _) => write!(f, "kept in step")?,
            (false, 0) => write!(f, "not kept in step")?,
            (false, late) => write!(f, "not kept in step: {late} phases ended late")?,
        }
        if let Some(from) = self.clocks_apart {
            let from = readable(from);
            write!(
                f,
                ": from {from} on clocks differ by more than was counted with"
            )?;
        }
        if let Some(from) = self.barriers_from.filter(|_| !self.in_step()) {
            write!(f, ", with barriers from phase {from} on")?;
        }
        if self.forced {
            write!(f, "; unsafe: without proof")?;
        }
        Ok(())
    }
}

impl Member {
    /// Whether time alone keeps apart phases of one job each, under the constraint of the gang's
    /// admission ([`Member::admit`]): one answer for all.
    ///
    /// # Errors
    /// As [`Member::barrier`].
    pub fn prove(&mut self) -> Result<Result<Proof, NotApart>, Broken> {
        let guarantee = self.guarantee();
        let task = guarantee.map(|guarantee| guarantee.constraint().task("phase"));
        let bound = guarantee.and_then(|guarantee| guarantee.response_bound().ok().flatten());
        let own = bound.map_or(UNBOUNDED, Span::as_ns);
        let worst = self.reduce(own, u64::max)?;
        let class = task
            .map(|task| task.class)
            .filter(|class| class.runs_per_job());
        let period = class.and_then(|class| class.min_separation());
        let period = period.unwrap_or_default();
        let found = NotApart {
            worst_end: (worst < UNBOUNDED).then(|| Span::from_ns(worst)),
            clock_error: run_clock_error().map(Span::from_ns),
            period,
        };
        let (Some(end), Some(clock_error)) = (found.worst_end, found.clock_error) else {
            return Ok(Err(found));
        };
        Ok(match end.saturating_add(clock_error) <= period {
            true => Ok(Proof {
                period,
                clock_error,
                forced: false,
            }),
            false => Err(found),
        })
    }

    /// Goes through `iterations` times `phases` phases: calls `work` with the number of the
    /// iteration and of the phase in it. Kept apart by time, the first phase is the present job of
    /// the calling thread, which is the same for all members, as behind [`Member::admit`].
    /// All members call it, with the same numbers. At its end the members agree on [`Kept`].
    ///
    /// # Errors
    /// As [`Member::barrier`]; also by time a member that is no more is named, at the end.
    pub fn supersteps(
        &mut self,
        how: Supersteps,
        (iterations, phases): (u64, u64),
        work: &mut dyn FnMut(u64, u64),
    ) -> Result<Kept, Broken> {
        let all = iterations.saturating_mul(phases);
        let mut walk = Walk {
            done: 0,
            all,
            late: 0,
            phases,
            work,
        };
        let (proof, falls_back) = match how {
            Supersteps::Barriers => {
                while walk.goes_on() {
                    self.barrier()?;
                }
                return Ok(Kept {
                    late_ends: 0,
                    barriers_from: Some(0),
                    forced: false,
                    clocks_apart: None,
                });
            }
            Supersteps::Time(proof) => (proof, false),
            Supersteps::TimeThenBarriers(proof) => (proof, true),
        };
        self.by_time(&mut walk, proof, falls_back);
        let barriers_from = match falls_back {
            true => self.then_by_barriers(&mut walk)?,
            false => None,
        };
        let late_ends = self.reduce(walk.late, u64::wrapping_add)?;
        let apart = self.reduce(run_clocks_apart().unwrap_or(u64::MAX), u64::min)?;
        Ok(Kept {
            late_ends,
            barriers_from,
            forced: proof.forced,
            clocks_apart: (apart < u64::MAX).then_some(apart),
        })
    }

    /// One phase in each job, without a word to anybody.
    fn by_time(&self, walk: &mut Walk<'_>, proof: Proof, falls_back: bool) {
        let first = thread::current_job().map_or(0, |job| job.arrival_ns);
        let period = proof.period.as_ns();
        let told = &self.late;
        while !(falls_back && told.load(Ordering::Relaxed)) && walk.goes_on() {
            let next = first.saturating_add(period.saturating_mul(walk.done));
            if now().saturating_add(proof.clock_error.as_ns()) > next {
                walk.late += 1;
                told.store(true, Ordering::Relaxed);
            }
            if falls_back && run_clocks_apart().is_some() {
                told.store(true, Ordering::Relaxed);
            }
            if walk.done < walk.all {
                let _ = thread::wait_next_period();
            }
        }
    }

    /// Everyone goes as far as the first has come; from there on there are barriers. `None`: all
    /// had gone through all phases.
    fn then_by_barriers(&mut self, walk: &mut Walk<'_>) -> Result<Option<u64>, Broken> {
        let from = self.reduce(walk.done, u64::max)?;
        while walk.done < from && walk.goes_on() {}
        self.barrier()?;
        while walk.goes_on() {
            self.barrier()?;
            if walk.done < walk.all {
                let _ = thread::wait_next_period();
            }
        }
        Ok((from < walk.all).then_some(from))
    }
}

/// The way through the phases.
struct Walk<'a> {
    done: u64,
    all: u64,
    late: u64,
    phases: u64,
    work: &'a mut dyn FnMut(u64, u64),
}

impl Walk<'_> {
    /// Goes through one phase; `false`: there is none left.
    fn goes_on(&mut self) -> bool {
        if self.done >= self.all {
            return false;
        }
        (self.work)(self.done / self.phases, self.done % self.phases);
        self.done += 1;
        true
    }
}
