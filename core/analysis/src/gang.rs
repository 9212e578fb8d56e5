//! Gangs: how far apart their members start, and which barriers time replaces
//!
//! A gang has one first arrival and one constraint, so its jobs of one number arrive at one instant
//! of every clock. Its *skew* at an arrival is the greatest difference between the instants at
//! which two members are dispatched for it.
//!
//! Three bounds, the smallest counts:
//! * A job that takes its whole wcet C completes within its response bound R, and starts at least C
//!   before that. How long it will take changes nothing before it starts. So no member starts later
//!   than R − C after its arrival, none before it, and their clocks differ by the clock error.
//! * Where the CPUs of all members have the same reservations before them, in the same order, all
//!   CPUs decide alike (Nautilus §4.1), but for overheads and what the machine takes. A CPU that is
//!   behind by x starts the member once it has caught up: x, and the releases meanwhile.
//! * One member is always in step.
//!
//! # Assumptions
//! 1. The clocks of two CPUs never differ by more than `clock-error`, drift included.
//! 2. Members keep their wcets, and every job of a reservation takes its whole slice.
//! 3. Declared missing time and reserves are the most that is taken.
//! 4. A barrier is left out if no member ends a superstep after the next one begins on any clock:
//!    worst end + clock error ≤ beginning (the condition of Nautilus §6.2, with bounds in place of
//!    trust). The worst end contains the declared missing time.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use punctual_model::{
    Barrier, Class, Gang, Machine, PolicyKind, Superstep, System, Task, TaskId, readable,
};

use crate::lookup::tasks;
use crate::units::{Span, Work};
use crate::verdict::{BarrierVerdict, GangVerdict, SkewVerdict, TaskVerdict, Term, Test};

/// Steps of a fixed point before the second bound is given up.
const STEPS: u32 = 10_000;

const BY_RESPONSE: Test = Test {
    name: "latest start",
    source: "response bound less own work, on each CPU",
};
const ALIKE: Test = Test {
    name: "equal decisions",
    source: "Nautilus §4.1, with overheads",
};
const ALONE: Test = Test {
    name: "one member",
    source: "nothing to differ from",
};

/// The verdict on every gang. `rows` has the bounds of all tasks. O(members · tasks).
pub(crate) fn verdicts(system: &System, rows: &[TaskVerdict]) -> Vec<GangVerdict> {
    let of = |(place, gang): (usize, &Gang)| GangVerdict {
        gang: place,
        name: gang.name.clone(),
        supersteps: (0..gang.supersteps.len())
            .map(|index| skew(system, rows, gang, index))
            .collect(),
        barriers: gang
            .barriers()
            .map(|barrier| judge(system, rows, (place, gang), barrier))
            .collect(),
    };
    system.gangs.iter().enumerate().map(of).collect()
}

/// The latest start of a job after its arrival.
fn latest_start(system: &System, rows: &[TaskVerdict], id: TaskId) -> Option<Span> {
    let task = system.tasks.get(id.index())?;
    let response = rows.get(id.index())?.response_bound?;
    Some(response.saturating_sub(task.class.budget()?.as_span()))
}

fn skew(system: &System, rows: &[TaskVerdict], gang: &Gang, index: usize) -> SkewVerdict {
    let superstep = &gang.supersteps[index];
    let mut verdict = SkewVerdict {
        name: gang.name_of(index),
        members: superstep.members.clone(),
        bound: None,
        test: BY_RESPONSE,
        terms: Vec::new(),
        explanation: String::new(),
        assumptions: vec!["members keep their wcets, and missing time is as declared".to_string()],
    };
    let clocks = system.machine.clock_error;
    verdict.assumptions.push(match clocks.is_zero() {
        true => "the clocks of all CPUs are equal".into(),
        false => format!("clocks differ by at most {}", readable(clocks.as_ns())),
    });
    if superstep.members.len() < 2 {
        verdict.bound = Some(Span::ZERO);
        verdict.test = ALONE;
        verdict.explanation = "0s: it has one member".into();
        return verdict;
    }
    let alike = alike(system, rows, superstep);
    let by_response = by_response(system, rows, superstep);
    let (reason, behind) = match alike {
        Ok(behind) => (None, Some(behind)),
        Err(reason) => (Some(reason), None),
    };
    let (terms, test) = match (behind, by_response) {
        (Some(alike), Ok(other)) if sum(&alike) <= sum(&other) => (alike, ALIKE),
        (Some(alike), Err(_)) => (alike, ALIKE),
        (_, Ok(other)) => (other, BY_RESPONSE),
        (None, Err(why)) => {
            verdict.explanation = format!("no bound: {why}");
            return verdict;
        }
    };
    verdict.terms = terms;
    if !clocks.is_zero() {
        verdict.terms.push(term("clock error", clocks.as_work()));
    }
    let bound = sum(&verdict.terms);
    verdict.bound = Some(bound);
    verdict.test = test;
    verdict.explanation = explain(bound, &verdict.terms);
    if let Some(reason) = reason {
        verdict
            .assumptions
            .push(format!("its CPUs need not decide alike: {reason}"));
    }
    verdict
}

fn term(what: impl Into<String>, each: Work) -> Term {
    Term {
        what: what.into(),
        count: 1,
        each,
    }
}

fn sum(terms: &[Term]) -> Span {
    let each = terms.iter().map(|term| term.each.as_ns());
    Span::from_ns(each.fold(0, u64::saturating_add))
}

fn explain(bound: Span, terms: &[Term]) -> String {
    let bound = readable(bound.as_ns());
    if terms.is_empty() {
        return format!("{bound}: all members decide at one instant");
    }
    let parts = terms
        .iter()
        .map(|term| format!("{} ({})", readable(term.each.as_ns()), term.what));
    format!("{bound} = {}", parts.collect::<Vec<_>>().join(" + "))
}

/// The latest start of all members: none starts before its arrival.
fn by_response(
    system: &System,
    rows: &[TaskVerdict],
    superstep: &Superstep,
) -> Result<Vec<Term>, String> {
    let mut latest: Option<(Span, &str)> = None;
    for id in &superstep.members {
        let name = system.tasks.get(id.index()).map_or("", |task| &task.name);
        let Some(start) = latest_start(system, rows, *id) else {
            return Err(format!("nothing bounds the response of `{name}`"));
        };
        if latest.is_none_or(|(before, _)| before < start) {
            latest = Some((start, name));
        }
    }
    let latest = latest.filter(|(start, _)| !start.is_zero());
    let term = latest.map(|(start, name)| term(format!("latest start of {name}"), start.as_work()));
    Ok(term.into_iter().collect())
}

/// Something that goes before a member: how often, how much, and how much of it differs from CPU
/// to CPU.
#[derive(Clone, Copy, Debug)]
struct Before {
    period: Span,
    work: Work,
    differs: Work,
    /// No release of it falls between an arrival of the member and the next.
    aligned: bool,
}

/// All of a task that decides beside a member: its class, its phase, its priority, and whether it
/// stands before the member in the file, so that it goes first of equally urgent jobs.
type Key = (Class<punctual_model::Ns>, u64, u32, bool);

/// By how much one CPU of a superstep may be behind another, where all decide alike; or why they
/// need not.
fn alike(
    system: &System,
    rows: &[TaskVerdict],
    superstep: &Superstep,
) -> Result<Vec<Term>, String> {
    let mut first: Option<Vec<Key>> = None;
    let mut most: Option<Span> = None;
    for id in &superstep.members {
        let Some(member) = system.tasks.get(id.index()) else {
            return Err("a member is not there".into());
        };
        let response = rows.get(id.index()).and_then(|row| row.response_bound);
        let ended = response.zip(member.class.min_separation());
        if ended.is_none_or(|(response, period)| response > period) {
            return Err("a member may begin behind its job before".into());
        }
        let above = above(system, *id, member)?;
        let key = |(other, task): &(TaskId, &Task)| -> Key {
            let phase = task.phase.as_ns();
            (task.class, phase, task.priority.number(), other < id)
        };
        let keys: Vec<_> = above.iter().map(key).collect();
        match &first {
            None => first = Some(keys),
            Some(other) if *other != keys => {
                return Err("different work goes before the members".into());
            }
            Some(_) => {}
        }
        let Some(behind) = behind(system, member, &above) else {
            return Err("what goes before them leaves no time".into());
        };
        most = most.max(Some(behind));
    }
    let most = most.filter(|behind| !behind.is_zero());
    let what = "overheads, and what the machine takes on one CPU alone";
    let terms = most.map(|behind| term(what, behind.as_work()));
    Ok(terms.into_iter().collect())
}

/// The work that goes before a member on its CPU: reservations alone.
fn above<'a>(
    system: &'a System,
    id: TaskId,
    member: &Task,
) -> Result<Vec<(TaskId, &'a Task)>, String> {
    let cpu = member.cpu;
    if member.scheduler.is_some() || system.schedulers.iter().any(|s| s.cpu == cpu) {
        return Err("a CPU of it has schedulers below its own".into());
    }
    if !system.changes.is_empty() {
        return Err("the system changes while it runs".into());
    }
    let on_tile = |graph: &punctual_model::Graph| graph.actors.iter().any(|a| a.tile.cpu == cpu);
    if system.graphs.iter().any(on_tile) {
        return Err("a CPU of it executes a graph".into());
    }
    let here = tasks(system).filter(|(other, task)| task.cpu == cpu && *other != id);
    let here: Vec<(TaskId, &Task)> = here.collect();
    let holds = |task: &Task| !task.non_preemptive.is_zero() || !task.uses.is_empty();
    if here.iter().any(|(_, task)| holds(task)) {
        return Err("less urgent work may hold a CPU of it".into());
    }
    if !member.after.is_empty() || !member.follows.is_empty() {
        return Err("its members wait for others".into());
    }
    let policy = system.cpus.get(cpu.index()).map(|cpu| cpu.policy);
    let real = here.into_iter().filter(|(_, t)| t.class.is_real_time());
    let above: Vec<(TaskId, &Task)> = match policy {
        Some(PolicyKind::FixedPriority { preemptive: true }) => {
            let least = member.priority;
            let above = real.filter(|(_, task)| !least.is_higher_than(task.priority));
            let above: Vec<(TaskId, &Task)> = above.collect();
            if above.iter().any(|(_, task)| task.priority == least) {
                return Err("others on its CPUs are as urgent".into());
            }
            above
        }
        Some(PolicyKind::EarliestDeadlineFirst) => {
            if !matches!(member.class, Class::Reservation { .. }) {
                return Err("its own jobs may be shorter on one CPU".into());
            }
            real.collect()
        }
        _ => return Err("the policy of a CPU of it is neither priorities nor EDF".into()),
    };
    let endless = |task: &Task| matches!(task.class, Class::Reservation { .. });
    match above.iter().find(|(_, task)| !endless(task)) {
        Some((_, task)) => Err(format!("jobs of `{}` may be shorter on one CPU", task.name)),
        None => Ok(above),
    }
}

/// By how much a CPU may be behind one that has no overheads, at the start of a member. `None`:
/// no bound within the steps.
fn behind(system: &System, member: &Task, above: &[(TaskId, &Task)]) -> Option<Span> {
    let machine = &system.machine;
    let own = member.class.min_separation()?;
    let differs = overhead(machine);
    let mut before = Vec::new();
    for (_, task) in above {
        let period = task.class.min_separation()?;
        let apart = task.phase.abs_diff(member.phase);
        let multiple = |span: Span| span.as_ns().checked_rem(own.as_ns()) == Some(0);
        before.push(Before {
            period,
            work: task.class.budget()?.checked_add(differs)?,
            differs,
            aligned: multiple(period) && multiple(apart),
        });
    }
    // Entries for the releases of everybody else on the CPU.
    let others = system.tasks.iter().filter(|task| task.cpu == member.cpu);
    for task in others.filter(|_| !machine.timer.is_zero()) {
        before.extend(task.class.min_separation().map(|period| Before {
            period,
            work: machine.timer,
            differs: machine.timer,
            aligned: false,
        }));
    }
    let taken = machine.reserves.iter().chain(&machine.missing_time);
    before.extend(taken.map(|reserve| Before {
        period: reserve.period,
        work: reserve.budget,
        differs: reserve.budget,
        aligned: false,
    }));
    let everything = |item: &Before| Some(item.work);
    let window = fixed_point(Work::from_ns(1), &before, everything)?;
    let mut start = differs;
    for item in &before {
        start = start.checked_add(demand(item, window, item.differs)?)?;
    }
    if start.is_zero() {
        return Some(Span::ZERO);
    }
    let meanwhile = |item: &Before| (!item.aligned).then_some(item.work);
    let behind = fixed_point(start, &before, meanwhile)?;
    // Beyond the next arrival the aligned ones are released as well.
    if behind.checked_add(window)? > own {
        return fixed_point(start, &before, everything);
    }
    Some(behind)
}

/// All that one job may cost beyond its work, on one CPU and not on another, and what its budget
/// may have beyond it.
fn overhead(machine: &Machine) -> Work {
    let parts = [
        machine.stretch(),
        machine.stretch(),
        machine.timer,
        machine.timer,
        machine.timer,
        machine.budget_timer,
        machine.timer.max(machine.preemption),
    ];
    parts.into_iter().fold(Work::ZERO, Work::saturating_add)
}

fn demand(item: &Before, window: Span, each: Work) -> Option<Work> {
    let jobs = window.as_ns().div_ceil(item.period.as_ns().max(1));
    each.as_ns().checked_mul(jobs).map(Work::from_ns)
}

/// The least x with x = start + the work of all that is released in x.
fn fixed_point(
    start: Work,
    before: &[Before],
    work: impl Fn(&Before) -> Option<Work>,
) -> Option<Span> {
    let mut now = start.as_span();
    for _ in 0..STEPS {
        let mut next = start;
        for item in before {
            if let Some(each) = work(item) {
                next = next.checked_add(demand(item, now, each)?)?;
            }
        }
        if next.as_span() == now {
            return Some(now);
        }
        now = next.as_span();
    }
    None
}

/// The last end of a superstep, and the member that has it; or a member whose end nothing bounds.
fn worst_end<'a>(
    system: &'a System,
    rows: &[TaskVerdict],
    superstep: &Superstep,
) -> Result<Option<(Span, &'a str)>, &'a str> {
    let mut latest: Option<(Span, &str)> = None;
    for id in &superstep.members {
        let (Some(task), Some(row)) = (system.tasks.get(id.index()), rows.get(id.index())) else {
            continue;
        };
        let response = row.response_bound;
        let end = response.and_then(|response| response.checked_add(task.phase));
        let end = end.ok_or(task.name.as_str())?;
        if latest.is_none_or(|(before, _)| before < end) {
            latest = Some((end, &task.name));
        }
    }
    Ok(latest)
}

/// Whether time alone keeps two supersteps apart.
fn judge(
    system: &System,
    rows: &[TaskVerdict],
    (place, gang): (usize, &Gang),
    barrier: Barrier,
) -> BarrierVerdict {
    let mut verdict = BarrierVerdict {
        barrier,
        before: gang.name_of(barrier.before),
        next: gang.name_of(barrier.next),
        left_out: false,
        worst_end: None,
        begins: None,
        gap: None,
        forced: false,
        clock_error: system.machine.clock_error,
        reason: String::new(),
    };
    let task = |superstep: usize| {
        let member = gang.supersteps.get(superstep)?.members.first()?;
        system.tasks.get(member.index())
    };
    let instants = task(barrier.before).zip(task(barrier.next));
    let Some((last, next)) = instants else {
        verdict.reason = "it has no members".into();
        return verdict;
    };
    let begins = match barrier.wraps() {
        true => next
            .class
            .min_separation()
            .and_then(|period| next.phase.checked_add(period)),
        false => Some(next.phase),
    };
    verdict.gap = begins.and_then(|begins| begins.checked_sub(last.phase));
    if !system.changes.is_empty() {
        verdict.reason = "kept: the system changes while it runs".into();
        return verdict;
    }
    let origin = task(0).map_or(Span::ZERO, |first| first.phase);
    verdict.begins = begins.map(|begins| begins.saturating_sub(origin));
    let ended = match worst_end(system, rows, &gang.supersteps[barrier.before]) {
        Ok(ended) => ended,
        Err(name) => {
            verdict.reason = format!("kept: nothing bounds the end of {name}");
            return verdict;
        }
    };
    let (Some((end, name)), Some(begins)) = (ended, verdict.begins) else {
        return verdict;
    };
    let end = end.saturating_sub(origin);
    verdict.worst_end = Some(end);
    let clocks = system.machine.clock_error;
    let until = end.saturating_add(clocks);
    verdict.left_out = until <= begins;
    let [ends, clocks, until_text, begins_text] =
        [end, clocks, until, begins].map(|span| readable(span.as_ns()).to_string());
    verdict.reason = match verdict.left_out {
        true => format!(
            "left out: {name} ends by {ends}, with a clock error of {clocks} by {until_text}, and \
             {} begins at {begins_text}",
            verdict.next
        ),
        false => format!(
            "kept: {name} may end at {ends}, with a clock error of {clocks} at {until_text}, and \
             {} begins at {begins_text}: {} too early",
            verdict.next,
            readable(until.saturating_sub(begins).as_ns())
        ),
    };
    if !system.has_barrier(place, barrier) {
        verdict.reason += " (its tasks do not wait for each other)";
    }
    verdict
}

/// The same system without the waits of barriers that time replaces: these never make anybody wait.
/// O(members²) for each barrier.
pub fn without_needless_barriers(system: &System, verdict: &[GangVerdict]) -> System {
    let mut changed = system.clone();
    for gang in verdict {
        for barrier in gang.barriers.iter().filter(|barrier| barrier.left_out) {
            changed.leave_out_barrier(gang.gang, barrier.barrier);
        }
    }
    changed
}
