//! The work of `bsp` in plain threads that the kernel holds to the same period and slice.
//!
//! The two members meet at the barriers of `core/gang`, spinning, as Punctual's do. Nothing but
//! time ends a flight, so that one whose members never execute together ends, too.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use punctual_gang::{Form, Gang, Member, Operation, Outcome, Step};
use punctual_rivals::throttled::{Throttle, held};

use super::bsp::{LOOKS, MEMBERS, PERIODS, Task, computed};
use super::{PART_OF_OTHERS, two_cpus};
use crate::answers::Row;
use crate::bsp::{HELD, REFUSED, SLICES};

/// A flight takes at least so long: the kernel looks at budgets every few milliseconds.
const LEAST: Duration = Duration::from_millis(60);

/// Flights of threads that nothing holds: others may take their CPUs.
const FREE: usize = 3;

/// As [`HELD`], two of each.
const WAYS: [Throttle; 2] = [Throttle::Quota, Throttle::Deadline];

/// Rows of [`HELD`] for a period, and of each reason for which the kernel refused a slice. Period
/// 0: nothing holds the threads.
pub(super) fn unit(members: u64, period_us: u64, grains: &[u64]) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    let mut refused: Vec<Row> = Vec::new();
    for grain in grains {
        let at = [members, *grain, period_us];
        for (number, name) in HELD.into_iter().enumerate() {
            let task = Task {
                grain: usize::try_from(*grain).unwrap_or(1),
                has_barriers: number % 2 == 0,
            };
            if period_us == 0 {
                rows.push(Row::new(name, &at, vec![free(task)?]));
                continue;
            }
            let mut values = Vec::new();
            for (index, slice) in SLICES.into_iter().enumerate() {
                let constraint = (1_000 * period_us, 10 * period_us * slice);
                let flown = fly(WAYS[number / 2], constraint, task);
                if let Err(why) = &flown {
                    note(&mut refused, (name, why), (members, period_us), index);
                }
                values.push(flown.unwrap_or(0));
            }
            rows.push(Row::new(name, &at, values));
        }
    }
    rows.extend(refused);
    Ok(rows)
}

/// A slice was refused, once or again, in a row by its reason.
fn note(
    refused: &mut Vec<Row>,
    (name, why): (&str, &str),
    (members, period_us): (u64, u64),
    index: usize,
) {
    let way = name.split(',').next().unwrap_or(name);
    let name = format!("{way}{REFUSED}{why}");
    let at = refused
        .iter()
        .position(|row| row.name == name)
        .unwrap_or_else(|| {
            refused.push(Row::new(
                name,
                &[members, 0, period_us],
                vec![0; SLICES.len()],
            ));
            refused.len() - 1
        });
    refused[at].values[index] = 1;
}

/// The elements of both, and the words of their gang.
struct Ring {
    elements: [Vec<AtomicU64>; MEMBERS],
    gang: Gang,
}

/// Picoseconds of an iteration that nothing holds: the least of some flights.
fn free(task: Task) -> Result<u64, String> {
    let flights: Result<Vec<u64>, String> = (0..FREE)
        .map(|_| fly(Throttle::Free, (0, 0), task))
        .collect();
    Ok(flights?.into_iter().min().unwrap_or(0))
}

/// Picoseconds of an iteration; 0: none was done in all of the flight.
fn fly(way: Throttle, constraint: (u64, u64), task: Task) -> Result<u64, String> {
    let cpus = two_cpus()?.map(|cpu| cpu as usize);
    let elements = || {
        (0..task.grain)
            .map(|_| AtomicU64::new(1.0_f64.to_bits()))
            .collect()
    };
    let ring = Arc::new(Ring {
        elements: [elements(), elements()],
        gang: Gang::new(MEMBERS, Form::Tree, 1).map_err(|error| error.to_string())?,
    });
    let long = LEAST.max(Duration::from_nanos(PERIODS * constraint.0));
    let work = move |place| ring.work(place, task, long);
    let all = held(way, &cpus, constraint, work)?;
    std::thread::sleep(long / u32::try_from(PART_OF_OTHERS).unwrap_or(1));
    let each = |(count, ns): &(u64, u64)| (1_000 * ns).checked_div(*count).unwrap_or(0);
    let is_idle = all.iter().any(|(count, _)| *count == 0);
    Ok(if is_idle {
        0
    } else {
        all.iter().map(each).max().unwrap_or(0)
    })
}

impl Ring {
    /// Iterations of a member, and its nanoseconds for them.
    fn work(&self, place: usize, task: Task, long: Duration) -> (u64, u64) {
        let begin = Instant::now();
        let until = begin + long;
        let (own, next) = (&self.elements[place], &self.elements[(place + 1) % MEMBERS]);
        let mut done = 0;
        if let Ok(mut member) = Member::join(&self.gang) {
            let mut meets = || !task.has_barriers || meet(&mut member, until);
            while done % LOOKS != 0 || Instant::now() < until {
                for element in own {
                    let value = f64::from_bits(element.load(Ordering::Relaxed));
                    element.store(computed(value, task.grain).to_bits(), Ordering::Relaxed);
                }
                if !meets() {
                    break;
                }
                for (own, next) in own.iter().zip(next) {
                    next.store(own.load(Ordering::Relaxed), Ordering::Relaxed);
                }
                if !meets() {
                    break;
                }
                done += 1;
            }
        }
        let ns = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        (done, ns)
    }
}

/// Waits for the other member, at most until an instant.
fn meet(member: &mut Member<&Gang>, until: Instant) -> bool {
    loop {
        match member.step(Operation::Barrier) {
            Step::More => {}
            Step::End(outcome) => return matches!(outcome, Outcome::Done(_)),
            Step::Wait(wait) => {
                while member.gang().look(wait.word) == wait.seen {
                    if Instant::now() >= until {
                        return false;
                    }
                    std::hint::spin_loop();
                }
            }
        }
    }
}
