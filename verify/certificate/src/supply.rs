//! The sure supply of a node: the longest time in which a supply has done an amount of work
//!
//! * A whole CPU, less what the machine takes: ⌈(t + J)/T⌉ of each reserve in any window of length
//!   t.
//! * Slots of a frame: a window that begins at the worst slot end, then slot by slot.
//! * A server that gets its budget Q in every period T: nothing for the blackout, then Q per
//!   period, at once. The blackout is 2(T − Q) when budget waits or passes whatever is ready (Shin
//!   and Lee 2003), and 2T − Q when it is lost as soon as nothing is. It is 2T − Q as well where a
//!   rest of it may come late (constant-bandwidth servers: `node`).

use crate::Why;

/// No number of a certificate is larger: about 146 years.
pub(crate) const LIMIT: u128 = 1 << 62;
/// Most steps of an iteration that is certified.
const MAX_STEPS: u32 = 200_000;

/// A stream of jobs or reserves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stream {
    /// None: a single one.
    pub(crate) separation: Option<u128>,
    pub(crate) cost: u128,
    pub(crate) jitter: u128,
    /// Taken once beyond that.
    pub(crate) once: u128,
}

impl Stream {
    /// Most work released in a window of this length.
    pub(crate) fn requested(&self, window: u128) -> u128 {
        self.work(self.releases(window))
    }

    /// Most work of so many jobs.
    pub(crate) fn work(&self, jobs: u128) -> u128 {
        let once = if jobs > 0 { self.once } else { 0 };
        jobs.saturating_mul(self.cost).saturating_add(once)
    }

    /// Most releases in a window of this length.
    pub(crate) fn releases(&self, window: u128) -> u128 {
        match self.separation {
            _ if window == 0 => 0,
            None => 1,
            Some(separation) => (window + self.jitter).div_ceil(separation),
        }
    }
}

/// The supply that a node runs on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Supply {
    /// A whole CPU, less these.
    Whole(Vec<Stream>),
    /// Starts and lengths within a frame, in order.
    Slots(u128, Vec<(u128, u128)>),
    /// Budget and period after a blackout.
    Server {
        budget: u128,
        period: u128,
        blackout: u128,
    },
}

impl Supply {
    /// The least time in which `work` is surely done.
    pub(crate) fn time_for(&self, work: u128) -> Result<u128, Why> {
        if work == 0 {
            return Ok(0);
        }
        match self {
            Supply::Whole(reserves) => climb(work, |t| Ok(work.saturating_add(taken(reserves, t)))),
            Supply::Slots(frame, slots) => time_in_slots(*frame, slots, work),
            Supply::Server {
                budget,
                period,
                blackout,
            } => {
                if *budget == 0 {
                    return Err(Why::new("a server without budget"));
                }
                let before = (work - 1) / budget;
                let rest = work - before * budget;
                in_range(
                    before
                        .saturating_mul(*period)
                        .saturating_add(blackout + rest),
                )
            }
        }
    }
}

/// The reserved demand in a window of this length.
pub(crate) fn taken(reserves: &[Stream], window: u128) -> u128 {
    let taken = reserves.iter().map(|reserve| reserve.requested(window));
    taken.fold(0, u128::saturating_add)
}

fn time_in_slots(frame: u128, slots: &[(u128, u128)], work: u128) -> Result<u128, Why> {
    let per_frame: u128 = slots.iter().map(|slot| slot.1).sum();
    if per_frame == 0 {
        return Err(Why::new("an owner without slots"));
    }
    let frames = (work - 1) / per_frame;
    let rest = work - frames * per_frame;
    // From each slot end, through the slots that follow, until the rest is done.
    let from = |first: usize| {
        let start = slots[first].0 + slots[first].1;
        let mut missing = rest;
        for step in 1..=slots.len() {
            let (at, length) = slots[(first + step) % slots.len()];
            let at = if first + step >= slots.len() {
                at + frame
            } else {
                at
            };
            if missing <= length {
                return at + missing - start;
            }
            missing -= length;
        }
        frame
    };
    let worst = (0..slots.len()).map(from).max().unwrap_or(frame);
    in_range(frames.saturating_mul(frame).saturating_add(worst))
}

/// The least `t >= start` with `f(t) <= t`, for a function that never falls.
pub(crate) fn climb(
    start: u128,
    mut f: impl FnMut(u128) -> Result<u128, Why>,
) -> Result<u128, Why> {
    let mut t = start;
    for _ in 0..MAX_STEPS {
        let next = in_range(f(t)?)?;
        if next <= t {
            return Ok(t);
        }
        t = next;
    }
    Err(Why::new("an iteration without end in sight"))
}

pub(crate) fn in_range(value: u128) -> Result<u128, Why> {
    if value <= LIMIT {
        Ok(value)
    } else {
        Err(Why::new("a number beyond 146 years"))
    }
}
