//! The most that guaranteed work takes of a CPU within a window of time
//!
//! # Assumptions
//! 1. Every job completes by its deadline. A server spends at most its budget in a period.
//! 2. Let no admitted work be pending at s, the last such instant before the window. Work executed
//!    in L behind s arrived in the first x of it, or was executed in the rest. So it is at most
//!    Σ requests of x, plus L − x, for any x. A window that begins later within the same busy
//!    window has no more: it has lost at its start as much as it gains at its end. (Min-plus
//!    convolution of the requests with the processor, Le Boudec and Thiran 2001, Theorem 1.4.3.)
//!    Work without a guarantee that lets nobody in between (its sections and locks) may be under
//!    way at s and later; its longest piece is added once.
//! 3. A job may be pending while the processor idles: it suspends itself, or waits for a
//!    predecessor, a slot or a budget. Then it may have arrived up to its deadline before s.

use alloc::vec::Vec;

use punctual_model::{CpuId, PolicyKind, Scheduler, Supply, System, Task};

use crate::AnalysisError;
use crate::demand::RequestBound;
use crate::error::{Checked, in_range, invalid};
use crate::lookup::{ancestors, node_of, policy_of, schedulers, tasks};
use crate::overhead;
use crate::together;
use crate::units::{Span, Work};

/// The most that guaranteed work, its overheads and the reserves of the machine take of `cpu` in
/// any window of this length, if `system` is admitted. Sufficient: less may be possible. O(n²) for
/// n tasks.
///
/// # Errors
/// [`AnalysisError::Overflow`]: times too large to add up. [`AnalysisError::Invalid`]: references
/// of the system that point at nothing.
pub fn busiest(
    system: &System,
    cpu: CpuId,
    window: punctual_model::Span<punctual_model::Ns>,
) -> Result<Work, AnalysisError> {
    let streams = streams(system, cpu)?;
    let in_the_way = in_the_way(system, cpu);
    let periods = streams.iter().filter_map(|s| s.separation);
    let last = periods.map(|t| window.saturating_sub(window % t));
    let mut least = window.as_work();
    for x in last.chain([window]).filter(|x| !x.is_zero()) {
        let mut executed = window.saturating_sub(x).as_work();
        executed = in_range(executed.checked_add(in_the_way), "the busiest window")?;
        for stream in &streams {
            let requested = stream.request_bound(x)?;
            executed = in_range(executed.checked_add(requested), "the busiest window")?;
        }
        least = least.min(executed);
    }
    Ok(least)
}

/// The longest piece of work without a guarantee that guaranteed work may have to wait for.
fn in_the_way(system: &System, cpu: CpuId) -> Work {
    let here = tasks(system).filter(|(_, task)| task.cpu == cpu && task.class.budget().is_none());
    let pieces = here.flat_map(|(_, task)| {
        let locked = task.uses.iter().map(|declared| declared.length);
        locked.chain([task.non_preemptive])
    });
    pieces.max().unwrap_or(Work::ZERO)
}

/// The requests of a CPU.
fn streams(system: &System, cpu: CpuId) -> Checked<Vec<RequestBound>> {
    let machine = &system.machine;
    let mut reserved = overhead::reserves(machine)?;
    let mut streams = Vec::new();
    for (_, scheduler) in schedulers(system).filter(|(_, s)| s.cpu == cpu) {
        reserved.extend(overhead::server_timers(machine, scheduler)?);
        if let Supply::Server(server) = &scheduler.supply
            && !is_in_server(system, scheduler)
        {
            // The budget of the period before s may be left.
            let carried = server.period;
            let (period, budget) = (Some(server.period), server.budget);
            streams.push(RequestBound::of_jobs(period, budget, carried));
        }
    }
    let behind = together::behind(system)?;
    for ((_, task), is_behind) in tasks(system).zip(behind) {
        if task.cpu == cpu {
            streams.extend(stream_of(system, (task, is_behind))?);
        }
    }
    reserved.extend(together::timers(system, cpu));
    streams.extend(reserved.into_iter().map(|reserved| reserved.requests));
    let never_ends = |stream: &RequestBound| stream.separation.is_some_and(Span::is_zero);
    match streams.iter().any(never_ends) {
        true => Err(invalid("a period is 0s")),
        false => Ok(streams),
    }
}

/// Whether the budget of another server covers that of this one.
fn is_in_server(system: &System, scheduler: &Scheduler) -> bool {
    ancestors(system, scheduler.parent).any(|(_, s)| matches!(s.supply, Supply::Server(_)))
}

/// The requests of a task; `None`: it has no guarantee of its own, or its server covers it.
fn stream_of(system: &System, (task, is_behind): (&Task, bool)) -> Checked<Option<RequestBound>> {
    let Some(budget) = task.class.budget() else {
        return Ok(None);
    };
    let above = || ancestors(system, task.scheduler);
    if above().any(|(_, s)| matches!(s.supply, Supply::Server(_))) {
        return Ok(None);
    }
    let policy = policy_of(system, node_of(task))?;
    let cost = overhead::cost(system, policy, (task, is_behind), budget)?.computing()?;
    let is_held_up = !task.max_suspension.is_zero()
        || !task.after.is_empty()
        || !task.follows.is_empty()
        || matches!(policy, PolicyKind::Tdm { .. })
        || above().any(|(_, s)| s.supply != Supply::Shared);
    let carried = match task.class.relative_deadline() {
        Some(deadline) if is_held_up => deadline,
        _ => Span::ZERO,
    };
    let jitter = in_range(task.jitter.checked_add(carried), "the busiest window")?;
    let jobs = RequestBound::of_jobs(task.class.min_separation(), cost, jitter);
    Ok(Some(RequestBound {
        once: together::overrun(system, task),
        ..jobs
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use punctual_model::{Class, Cpu, Server, ServerKind, Trust};

    fn task(period: u64, wcet: u64) -> Task {
        let class = Class::Periodic {
            period: Span::from_ns(period),
            wcet: Work::from_ns(wcet),
            relative_deadline: Span::from_ns(period),
        };
        Task::new("t", CpuId(0), class)
    }

    fn system(tasks: Vec<Task>) -> System {
        System {
            cpus: vec![Cpu {
                name: "0".into(),
                host: None,
                policy: PolicyKind::EarliestDeadlineFirst,
            }],
            tasks,
            ..System::default()
        }
    }

    fn of(system: &System, window: u64) -> u64 {
        let busiest = busiest(system, CpuId(0), Span::from_ns(window));
        busiest.expect("small numbers").as_ns()
    }

    #[test]
    fn a_window_takes_what_arrives_in_it_and_its_own_length_at_most() {
        let mut both = system(vec![task(10, 2), task(15, 3)]);
        assert_eq!([1, 5, 10, 30].map(|l| of(&both, l)), [1, 5, 5, 12]);
        // What arrives right before its end is not executed in it.
        assert_eq!(of(&both, 31), 13);
        // Each job pays a timer entry and two switches.
        both.machine.timer = Work::from_ns(1);
        // Each task may overrun once, by a grace of two and an entry, and one has begun.
        assert_eq!(of(&both, 300), 120 + 50 + 9);
        both.machine.switch = Work::from_ns(1);
        assert_eq!(of(&both, 300), 120 + 50 + 9 + 100);
        both.machine.reserves.push(punctual_model::Reserve {
            name: "r".into(),
            budget: Work::from_ns(1),
            period: Span::from_ns(30),
        });
        // Behind each taking a timer may fire early, where there are budgets.
        assert_eq!(of(&both, 300), 299);
        assert_eq!(
            busiest(&both, CpuId(1), Span::from_ns(30)),
            Ok(Work::from_ns(1))
        );
    }

    #[test]
    fn a_section_of_background_work_delays_guaranteed_work_into_the_window() {
        let mut one = system(vec![task(10, 5)]);
        let mut background = Task::new("b", CpuId(0), Class::Aperiodic);
        background.non_preemptive = Work::from_ns(4);
        one.tasks.push(background);
        // Released at 2, 12: the first waits for the section until 6, and is executed until 11.
        assert_eq!([11, 13].map(|l| of(&one, l)), [10, 12]);
        one.tasks[0].class = Class::Periodic {
            period: Span::ZERO,
            wcet: Work::from_ns(1),
            relative_deadline: Span::from_ns(1),
        };
        assert!(busiest(&one, CpuId(0), Span::from_ns(9)).is_err());
    }

    #[test]
    fn a_job_that_waits_is_executed_beside_the_next() {
        let one = system(vec![task(10, 2)]);
        assert_eq!(of(&one, 4), 2);
        let change = |change: fn(&mut Task)| {
            let mut system = one.clone();
            change(&mut system.tasks[0]);
            of(&system, 4)
        };
        assert_eq!(change(|task| task.max_suspension = Span::from_ns(1)), 4);
        assert_eq!(change(|task| task.jitter = Span::from_ns(7)), 4);
        assert_eq!(change(|task| task.jitter = Span::from_ns(6)), 2);
        assert_eq!(
            change(|task| task.after = vec![punctual_model::TaskId(0)]),
            4
        );
    }

    #[test]
    fn a_server_covers_its_tasks_and_may_spend_two_budgets_at_once() {
        let mut served = system(vec![task(10, 2), task(20, 1)]);
        served.schedulers.push(Scheduler {
            name: "s".into(),
            cpu: CpuId(0),
            parent: None,
            policy: PolicyKind::EarliestDeadlineFirst,
            priority: punctual_model::Priority::new(1),
            supply: Supply::Server(Server {
                kind: ServerKind::Deferrable,
                budget: Work::from_ns(3),
                period: Span::from_ns(10),
            }),
            trust: Trust::Inline,
            quota: None,
            receiver: None,
            fallback: None,
            code: None,
        });
        served.tasks[0].scheduler = Some(punctual_model::SchedulerId(0));
        assert_eq!([7, 10].map(|l| of(&served, l)), [7, 7]);
    }
}
