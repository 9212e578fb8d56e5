//! Self-timed execution: everybody fires as soon as it may, until a state comes again
//!
//! Parts in which everybody waits for everybody have finitely many states, so one comes again; the
//! time between, over the iterations between, is the period of the part. The slowest part sets the
//! period of the graph. States are compared where one actor has completed an iteration.
//!
//! Source: Ghamarian et al. 2006 (throughput analysis of synchronous data flow graphs).

use alloc::collections::{BTreeMap, BinaryHeap};
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

use crate::components::components;
use crate::error::DataflowError;
use crate::fraction::Fraction;
use crate::timed::Timed;
use crate::tokens::Tokens;

/// Most firings that are executed.
pub const MAX_STEPS: u64 = 5_000_000;
/// Most numbers that the remembered states of a part consist of together.
pub const MAX_STATE_WORDS: u64 = 4_000_000;

/// The period of an iteration, by executing each part of the graph until a state comes again. The
/// graph must not stop ([`crate::deadlock`]). O(firings until then · log).
///
/// # Errors
///
/// [`DataflowError::TooLong`] beyond [`MAX_STEPS`] or [`MAX_STATE_WORDS`],
/// [`DataflowError::Overflow`] beyond 64 bits of time.
pub fn period_by_states(timed: &Timed) -> Result<Fraction, DataflowError> {
    let (part_of, parts) = components(timed.actors(), &timed.dependences());
    let mut members = vec![Vec::new(); parts];
    for (actor, &part) in part_of.iter().enumerate() {
        members[part].push(actor);
    }
    let mut steps = MAX_STEPS;
    let mut slowest = Fraction::whole(0);
    for members in &members {
        slowest = slowest.max(period_of_part(&timed.part(members), &mut steps)?);
    }
    Ok(slowest)
}

fn period_of_part(part: &Timed, steps: &mut u64) -> Result<Fraction, DataflowError> {
    let fewest = (0..part.actors()).min_by_key(|&actor| part.firings[actor]);
    let Some(reference) = fewest else {
        return Ok(Fraction::whole(0));
    };
    let mut run = Run::new(part, None);
    let mut known: BTreeMap<Vec<u64>, (u64, u64)> = BTreeMap::new();
    let mut words: u64 = 0;
    let mut seen = 0;
    loop {
        let ended = run.advance()?;
        *steps = steps
            .checked_sub(ended)
            .filter(|_| ended > 0)
            .ok_or(DataflowError::TooLong {
                what: "the execution until a state comes again",
                limit: MAX_STEPS,
            })?;
        let iterations = run.ended[reference] / part.firings[reference];
        if iterations == seen {
            continue;
        }
        seen = iterations;
        let key = run.key();
        words = words.saturating_add(key.len() as u64);
        if words > MAX_STATE_WORDS {
            return Err(DataflowError::TooLong {
                what: "the search for a state that comes again",
                limit: MAX_STATE_WORDS,
            });
        }
        if let Some((time, before)) = known.insert(key, (run.now, iterations)) {
            let period = Fraction::new(run.now - time, iterations - before);
            return period.ok_or(DataflowError::Overflow { what: "a period" });
        }
    }
}

/// The instant at which every output has fired once, when all fire as soon as they may from 0 on.
/// O(firings of an iteration · log).
///
/// # Errors
///
/// [`DataflowError::Overflow`] beyond 64 bits of time.
pub fn first_output(timed: &Timed) -> Result<u64, DataflowError> {
    // A first output needs nothing of a second iteration.
    let mut run = Run::new(timed, Some(timed.firings.clone()));
    let mut missing = timed.outputs.clone();
    while !missing.is_empty() {
        if run.advance()? == 0 {
            break;
        }
        missing.retain(|&actor| run.ended[actor] == 0);
    }
    Ok(run.now)
}

/// An execution in progress.
struct Run<'a> {
    state: Tokens<'a>,
    /// Firings that each actor may still start; `None`: any number.
    left: Option<Vec<u64>>,
    now: u64,
    /// Ends to come, by time.
    ends: BinaryHeap<Reverse<(u64, usize)>>,
    ended: Vec<u64>,
}

impl<'a> Run<'a> {
    fn new(timed: &'a Timed, left: Option<Vec<u64>>) -> Run<'a> {
        let mut run = Run {
            state: Tokens::at_first(timed),
            left,
            now: 0,
            ends: BinaryHeap::new(),
            ended: vec![0; timed.actors()],
        };
        for actor in 0..timed.actors() {
            // The time of an iteration fits, and so does the first end of a firing.
            let _ = run.start(actor);
        }
        run
    }

    fn start(&mut self, actor: usize) -> Result<(), DataflowError> {
        let left = self.left.as_ref().map(|left| left[actor]);
        if left == Some(0) || !self.state.may_start(actor) {
            return Ok(());
        }
        if let Some(left) = &mut self.left {
            left[actor] -= 1;
        }
        let end = self.now.checked_add(self.state.time(actor));
        let end = end.ok_or(DataflowError::Overflow {
            what: "the time of an execution",
        })?;
        self.state.start(actor);
        self.ends.push(Reverse((end, actor)));
        Ok(())
    }

    /// Goes to the next end, with all ends of that instant, and starts whom it can; returns how
    /// many firings ended.
    fn advance(&mut self) -> Result<u64, DataflowError> {
        let mut affected = Vec::new();
        let mut ended = 0;
        while let Some(&Reverse((time, actor))) = self.ends.peek() {
            if ended > 0 && time > self.now {
                break;
            }
            self.ends.pop();
            self.now = time;
            self.state.end(actor);
            self.ended[actor] += 1;
            ended += 1;
            affected.extend(self.state.affected(actor));
        }
        affected.sort_unstable();
        affected.dedup();
        for actor in affected {
            self.start(actor)?;
        }
        Ok(ended)
    }

    /// The state as numbers: tokens, phases, turns, and how long each firing still takes.
    fn key(&self) -> Vec<u64> {
        let mut key = self.state.key();
        let tokens = key.len();
        key.resize(tokens + self.ended.len(), 0);
        for &Reverse((end, actor)) in &self.ends {
            key[tokens + actor] = end - self.now;
        }
        key
    }
}
