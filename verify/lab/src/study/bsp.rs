//! `bsp`: bulk synchronous work under 900 constraints, with barriers and without (Nautilus, §6).
//!
//! P members, each with NE elements: NC computations on each, then NW writes into the elements of
//! the next one in a ring, N times. NE = NC = NW is the grain.
//!
//! # How it is simulated
//! 1. When members execute: the gang of reservations in virtual time, over seven periods.
//! 2. The time of an iteration while all members execute: the barriers of `core/gang`, by steps.
//! 3. With barriers the gang goes on while all members execute. Without, each goes on by itself,
//!    as in the paper: nobody has proved that to be right.
//! 4. By time alone, phases begin at instants of each period. The first waits until the last member
//!    has begun, by the bound of the skew. From then on all execute and spin to each instant, so
//!    phases are as far apart as their work, the clock error and a look at the clock.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use punctual_model::{Class, Span, Work};

use crate::answers::Row;
use crate::costs::Costs;
use crate::crew::{Next, Party, Windows, fly};
use crate::gang::{Form, Gang};
use crate::member::{Member, Operation, Step};
use crate::windows::{Stretch, Stretches, bound, gang, simulate};

/// Members and grains of the study when nobody says otherwise.
pub(crate) const MEMBERS: [u64; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 255];
pub(crate) const GRAINS: [u64; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

/// Slices of each period, in percent.
pub(crate) const SLICES: [u64; 9] = [10, 20, 30, 40, 50, 60, 70, 80, 90];

/// Names of the rows, which have one value for each slice.
pub(crate) const MODES: [&str; 4] = [
    "barriers, tree",
    "barriers, linear",
    "no barriers, not proved",
    "by time",
];
/// Rows of plain threads that the kernel holds to the same period and slice, on Linux.
pub(crate) const HELD: [&str; 4] = [
    "cpu.max, barriers",
    "cpu.max, no barriers",
    "SCHED_DEADLINE, barriers",
    "SCHED_DEADLINE, no barriers",
];
/// Between such a way and the reason for which it refused a slice, in the name of a row.
pub(crate) const REFUSED: &str = " refused: ";
/// The greatest difference of starts that was seen, in picoseconds.
pub(crate) const SKEW: &str = "skew";
/// Whether the constraint is admitted, with the terms of the machine: 1 or 0.
pub(crate) const ADMITTED: &str = "admitted";

/// Periods that are counted: the first is not.
const PERIODS: u64 = 6;

/// Iterations before those that are timed, and timed ones.
const WARM_UP: usize = 4;
const TIMED: usize = 16;

/// Members begin at different instants below this, in picoseconds: one that begins with all
/// others is a case of its own.
const APART: u64 = 1_000_000;

/// Elements of eight bytes on a cache line.
const ON_A_LINE: u64 = 8;

/// The work of one iteration, in picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Phases {
    compute: u64,
    write: u64,
}

impl Phases {
    pub(crate) fn new(costs: &Costs, members: u64, grain: u64) -> Phases {
        // Lines that a neighbour has written are fetched again, and so are those to be written.
        let fetched = if members > 1 {
            grain.div_ceil(ON_A_LINE) * costs.line_ps
        } else {
            0
        };
        Phases {
            compute: grain * grain * costs.element_ps + fetched,
            write: grain * costs.element_ps + fetched,
        }
    }

    fn sum(self) -> u64 {
        self.compute + self.write
    }
}

/// One member's part in so many iterations with two barriers each; it keeps when each was over.
fn party<'g>(
    gang: &'g Gang,
    (cpu, windows): (usize, Windows),
    phases: Phases,
    iterations: usize,
    ends: &'g RefCell<Vec<u64>>,
) -> Option<Party<'g>> {
    let mut member = Member::join(gang).ok()?;
    let (mut passed, mut works) = (0, true);
    let act = move |now| {
        if works {
            works = false;
            let is_computing = passed % 2 == 0;
            if is_computing && passed > 0 {
                ends.borrow_mut().push(now);
            }
            if passed == 2 * iterations {
                return (Next::Over, 0);
            }
            let work = if is_computing {
                phases.compute
            } else {
                phases.write
            };
            return (Next::More, work);
        }
        match member.step(Operation::Barrier) {
            Step::More => (Next::More, 0),
            Step::Wait(wait) => (Next::Wait(gang, wait), 0),
            Step::End(_) => {
                (passed, works) = (passed + 1, true);
                (Next::More, 0)
            }
        }
    };
    Some(Party {
        cpu,
        begin: 1 + cpu as u64 * 137_137 % APART,
        windows,
        act: Box::new(act),
    })
}

/// When each iteration of each member was over, where its CPU executes it in these windows.
pub(crate) fn iterate(
    costs: &Costs,
    windows: Vec<Windows>,
    phases: Phases,
    (form, iterations): (Form, usize),
) -> Result<Vec<Vec<u64>>, String> {
    let gang = Gang::new(windows.len(), form, 1).map_err(|error| error.to_string())?;
    let ends: Vec<RefCell<Vec<u64>>> = windows.iter().map(|_| RefCell::default()).collect();
    let parties = windows.into_iter().enumerate().zip(&ends);
    let parties = parties.map(|(place, ends)| party(&gang, place, phases, iterations, ends));
    let parties: Option<Vec<Party<'_>>> = parties.collect();
    let _ends_of_flights = fly(parties.ok_or("no place")?, costs.rates());
    Ok(ends.into_iter().map(RefCell::into_inner).collect())
}

/// The time of an iteration where all members always execute, in picoseconds.
fn undisturbed(costs: &Costs, members: usize, phases: Phases, form: Form) -> Result<u64, String> {
    // All periods ask for the same.
    static KNOWN: Mutex<BTreeMap<[u64; 6], u64>> = Mutex::new(BTreeMap::new());
    let rates = costs.rates();
    let asked = [
        members as u64,
        u64::from(form == Form::Tree),
        phases.compute,
        phases.write,
        rates.step,
        rates.line,
    ];
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(ps) = known().get(&asked) {
        return Ok(*ps);
    }
    let always = vec![Windows::new(); members];
    let ends = iterate(costs, always, phases, (form, WARM_UP + TIMED))?;
    let last = |iteration: usize| ends.iter().filter_map(|of| of.get(iteration)).max();
    let (first, last) = (last(WARM_UP - 1), last(WARM_UP + TIMED - 1));
    let (first, last) = first.zip(last).ok_or("no iterations")?;
    let each = (last - first) / TIMED as u64;
    let _ = known().insert(asked, each);
    Ok(each)
}

/// The windows of jobs 1 to [`PERIODS`], in picoseconds.
pub(crate) fn windows(stretches: &Stretches) -> Vec<Windows> {
    let of = |member: &Vec<Stretch>| {
        let counted = member
            .iter()
            .filter(|(job, ..)| (1..=PERIODS).contains(job));
        let ps = |ns: i64| 1_000 * u64::try_from(ns).unwrap_or(0);
        counted
            .map(|(_, start, end)| (ps(*start), ps(*end)))
            .collect()
    };
    stretches.iter().map(of).collect()
}

/// How long all members execute at the same time.
fn common(windows: &[Windows]) -> u64 {
    let mut changes: Vec<(u64, i64)> = Vec::new();
    for (start, end) in windows.iter().flatten() {
        changes.push((*start, 1));
        changes.push((*end, -1));
    }
    changes.sort_unstable();
    let all = i64::try_from(windows.len()).unwrap_or(i64::MAX);
    let (mut sum, mut running, mut since) = (0, 0, 0);
    for (at, change) in changes {
        if running == all {
            sum += at - since;
        }
        running += change;
        since = at;
    }
    sum
}

/// Observations of one constraint.
struct Seen {
    /// While all execute, and while the one that executes least does.
    common: u64,
    least: u64,
    elapsed: u64,
    skew: u64,
    bound: Option<u64>,
}

fn observe(
    costs: &Costs,
    members: u64,
    (period, slice): (u64, u64),
    seed: u64,
) -> Result<Seen, String> {
    let class = Class::Reservation {
        period: Span::from_ns(period),
        slice: Work::from_ns(slice),
    };
    let count = usize::try_from(members).unwrap_or(usize::MAX);
    let system = gang(costs, count, class);
    // The bound is that of any two members.
    let bound = bound(&gang(costs, count.min(2), class))?;
    let stretches = simulate(&system, costs, period * (PERIODS + 1), seed)?;
    let skews = super::skew::skews(&stretches, PERIODS + 1);
    let windows = windows(&stretches);
    let executed = windows
        .iter()
        .map(|all| all.iter().map(|(start, end)| end - start).sum());
    Ok(Seen {
        common: common(&windows),
        least: executed.min().unwrap_or(0),
        elapsed: 1_000 * period * PERIODS,
        skew: 1_000 * skews.into_iter().max().unwrap_or(0),
        bound: bound.map(|ns| 1_000 * ns),
    })
}

/// So much longer an iteration takes where only a part of the time is there. 0: nothing is done.
fn stretched(iteration: u64, elapsed: u64, part: u64) -> u64 {
    let scaled = u128::from(iteration) * u128::from(elapsed);
    let longer = scaled.checked_div(u128::from(part)).unwrap_or(0);
    u64::try_from(longer).unwrap_or(u64::MAX)
}

/// Iterations whose phases begin at instants of each period, each `apart` behind the end of the one
/// before. 0: not one fits in.
fn by_time(phases: Phases, (period, slice): (u64, u64), (bound, apart): (Option<u64>, u64)) -> u64 {
    let Some(bound) = bound else { return 0 };
    let length = phases.sum() + 2 * apart;
    // The first phase begins when even the last member has begun.
    let fit = slice.saturating_sub(bound) / length;
    period.checked_div(fit).unwrap_or(0)
}

/// Rows for one period of so many microseconds, 0 for aperiodic members: of each mode and grain a
/// row with the picoseconds of an iteration for each slice, and rows about the constraint itself.
pub(crate) fn unit(
    costs: &Costs,
    (members, period_us): (u64, u64),
    grains: &[u64],
    seed: u64,
) -> Result<Vec<Row>, String> {
    let count = usize::try_from(members).unwrap_or(usize::MAX);
    let mut seen = Vec::new();
    let period = 1_000 * period_us;
    for slice in SLICES.iter().filter(|_| period > 0) {
        let constraint = (period, period * slice / 100);
        seen.push((constraint, observe(costs, members, constraint, seed)?));
    }
    let mut rows = Vec::new();
    for grain in grains {
        let phases = Phases::new(costs, members, *grain);
        let tree = undisturbed(costs, count, phases, Form::Tree)?;
        let linear = undisturbed(costs, count, phases, Form::Linear)?;
        let at = [members, *grain, period_us];
        if period == 0 {
            rows.push(Row::new(MODES[0], &at, vec![tree]));
            rows.push(Row::new(MODES[1], &at, vec![linear]));
            continue;
        }
        let mut modes = [const { Vec::new() }; MODES.len()];
        for ((period, slice), seen) in &seen {
            let constraint = (1_000 * period, 1_000 * slice);
            modes[0].push(stretched(tree, seen.elapsed, seen.common));
            modes[1].push(stretched(linear, seen.elapsed, seen.common));
            modes[2].push(stretched(phases.sum(), seen.elapsed, seen.least));
            let apart = 1_000 * costs.clock_error_ns + costs.step_ps;
            modes[3].push(by_time(phases, constraint, (seen.bound, apart)));
        }
        rows.extend(
            MODES
                .iter()
                .zip(modes)
                .map(|(mode, values)| Row::new(*mode, &at, values)),
        );
    }
    if period > 0 {
        let at = [members, 0, period_us];
        let skews = seen.iter().map(|(_, seen)| seen.skew).collect();
        let admitted = seen.iter().map(|(_, seen)| u64::from(seen.bound.is_some()));
        rows.push(Row::new(SKEW, &at, skews));
        rows.push(Row::new(ADMITTED, &at, admitted.collect()));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::costs::sample;

    #[test]
    fn what_all_members_execute_is_what_they_have_in_common() {
        let windows = [vec![(0, 10), (20, 30)], vec![(5, 25)]];
        assert_eq!(common(&windows), 10);
        assert_eq!(common(&windows[..1]), 20);
    }

    #[test]
    fn rates_follow_utilization_and_barriers_that_go_are_gained() {
        let rows = unit(&sample(), (8, 2_000), &[1, 128], 1).expect("rates");
        let free = unit(&sample(), (8, 0), &[1, 128], 1).expect("rates");
        let row = |rows: &[Row], mode: usize, grain: u64| {
            let found = rows
                .iter()
                .find(|row| row.name == MODES[mode] && row.at(1) == grain);
            found.expect("a row").values.clone()
        };
        for mode in [0, 1] {
            let whole = row(&free, mode, 128)[0];
            for (slice, taken) in SLICES.iter().zip(row(&rows, mode, 128)) {
                let share = whole * 100 / taken;
                // A hundredth of the period is lost where members differ.
                assert!(
                    share <= *slice && share + 1 >= *slice,
                    "{slice} %: {share} %"
                );
            }
        }
        // The coarsest: 90 % without barriers are as good as all of the time with them.
        assert!(row(&rows, 2, 128)[8] <= row(&free, 0, 128)[0] * 112 / 100);
        // The finest: barriers are most of it.
        assert!(row(&rows, 2, 1)[8] * 3 < row(&rows, 0, 1)[8]);
        let admitted = rows.iter().find(|row| row.name == ADMITTED).expect("a row");
        assert_eq!(admitted.values, [1; 9]);
    }

    #[test]
    fn the_fast_answer_is_that_of_every_step_in_its_window() {
        let costs = sample();
        let constraint = (500_000, 250_000);
        let class = Class::Reservation {
            period: Span::from_ns(constraint.0),
            slice: Work::from_ns(constraint.1),
        };
        let stretches = simulate(&gang(&costs, 4, class), &costs, 7 * constraint.0, 5);
        let windows = windows(&stretches.expect("a simulation"));
        let seen = observe(&costs, 4, constraint, 5).expect("a simulation");
        for (grain, form) in [(1, Form::Tree), (16, Form::Linear), (128, Form::Tree)] {
            let phases = Phases::new(&costs, 4, grain);
            let free = undisturbed(&costs, 4, phases, form).expect("iterations");
            let fast = stretched(free, seen.elapsed, seen.common);
            let ends = iterate(&costs, windows.clone(), phases, (form, 1_000_000));
            let done = ends.expect("iterations").iter().map(Vec::len).min();
            let each = seen.elapsed / done.expect("members") as u64;
            assert!(
                each.abs_diff(fast) * 100 <= 3 * fast,
                "{grain} {form:?}: {each} {fast}"
            );
        }
    }

    #[test]
    fn phases_by_time_are_as_far_apart_as_their_work_and_the_clocks() {
        let phases = Phases {
            compute: 3_000,
            write: 1_000,
        };
        // 90,000 less 10,000, in pieces of 4,000 + 2 * 8,000.
        let time = |slice, bound| by_time(phases, (100_000, slice), (bound, 8_000));
        assert_eq!(time(90_000, Some(10_000)), 100_000 / 4);
        assert_eq!(time(29_000, Some(10_000)), 0);
        assert_eq!(time(90_000, None), 0);
    }
}
