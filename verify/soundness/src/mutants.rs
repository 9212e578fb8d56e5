//! Analyses that are wrong on purpose: a soundness run that does not find them proves nothing.
//!
//! Each makes one of the classic mistakes. Most change the system before they ask the real
//! analysis, so that nothing in the analysis knows of them. The last ones ask it, and give those
//! who overrun other budgets than it counts on.

use punctual_analysis::{AnalysisError, funding};
use punctual_generate::Feature;
use punctual_model::{
    Class, Funding, Ns, PolicyKind, Priority, Server, ServerKind, Span, Supply, System, Task, Work,
};

use crate::claim::{Analysis, Claim, Fund, analysis};

/// A wrong analysis.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// What it does wrong.
    pub mistake: &'static str,
    /// What systems must have for the mistake to show.
    pub features: &'static [Feature],
    /// The wrong claims.
    pub analysis: Analysis,
    /// Or the wrong budgets.
    pub fund: Fund,
}

/// All of them.
pub const ALL: [Mutant; 23] = [
    Mutant {
        mistake: "rounds the number of interfering jobs down",
        features: &[],
        analysis: floor_for_ceil,
        fund: funding,
    },
    Mutant {
        mistake: "forgets release jitter of the others",
        features: &[Feature::Jitter],
        analysis: without_jitter_of_others,
        fund: funding,
    },
    Mutant {
        mistake: "forgets blocking by sections and resources",
        features: &[Feature::Section, Feature::Resources],
        analysis: without_blocking,
        fund: funding,
    },
    Mutant {
        mistake: "looks only at the first job of a busy window",
        features: &[],
        analysis: first_job_only,
        fund: funding,
    },
    Mutant {
        mistake: "forgets that jobs suspend themselves",
        features: &[Feature::Suspension],
        analysis: without_suspension,
        fund: funding,
    },
    Mutant {
        mistake: "forgets reserves and missing time",
        features: &[Feature::Reserves, Feature::MissingTime],
        analysis: without_takings,
        fund: funding,
    },
    Mutant {
        mistake: "forgets that tasks wait for predecessors",
        features: &[Feature::Precedence, Feature::SeveralCpus],
        analysis: without_precedence,
        fund: funding,
    },
    Mutant {
        mistake: "takes the deadline of every task for its period",
        features: &[],
        analysis: implicit_deadlines,
        fund: funding,
    },
    Mutant {
        mistake: "halves the time in which a server gives nothing",
        features: &[Feature::Servers],
        analysis: halved_blackout,
        fund: funding,
    },
    Mutant {
        mistake: "lets slices be paid by the parent of their giver",
        features: &[Feature::Servers, Feature::Slices],
        analysis: slices_beside_their_giver,
        fund: funding,
    },
    Mutant {
        mistake: "bounds work on a slice by all that its giver has",
        features: &[Feature::Slices],
        analysis: all_of_the_giver,
        fund: funding,
    },
    Mutant {
        mistake: "forgets that a slice takes time from the others of its giver",
        features: &[Feature::Slices],
        analysis: without_slices,
        fund: funding,
    },
    Mutant {
        mistake: "quarters the time in which a slice gives nothing",
        features: &[Feature::Slices],
        analysis: slices_at_once,
        fund: funding,
    },
    Mutant {
        mistake: "takes a slice for the most urgent work of its giver",
        features: &[Feature::Slices],
        analysis: slices_first,
        fund: funding,
    },
    Mutant {
        mistake: "lets releases share a timer entry whose phases are not congruent",
        features: &[Feature::Overheads, Feature::Phases],
        analysis: without_phases,
        fund: funding,
    },
    Mutant {
        mistake: "lets sporadic releases share the timer entry of others",
        features: &[Feature::Overheads, Feature::Sporadic],
        analysis: sporadic_by_clock,
        fund: funding,
    },
    Mutant {
        mistake: "forgets the timers of budgets",
        features: &[Feature::Overheads],
        analysis: without_budget_timer,
        fund: funding,
    },
    Mutant {
        mistake: "funds each job with an entry and a preemption that are counted once for several",
        features: &[Feature::Overheads],
        analysis,
        fund: all_that_a_job_may_pay,
    },
    Mutant {
        mistake: "lets jobs use the grace of their budgets for nothing",
        features: &[Feature::Overheads],
        analysis,
        fund: grace_for_nothing,
    },
    Mutant {
        mistake: "stops jobs that overrun for nothing",
        features: &[Feature::Overheads],
        analysis,
        fund: stops_for_nothing,
    },
    Mutant {
        mistake: "lets jobs execute what their preemptions cost others in cold caches",
        features: &[Feature::Overheads],
        analysis,
        fund: cold_caches_for_nothing,
    },
    Mutant {
        mistake: "gives an interrupted thread back three times what an entry takes",
        features: &[Feature::Overheads],
        analysis,
        fund: entries_thrice,
    },
    Mutant {
        mistake: "forgets the locks of tasks in servers",
        features: &[Feature::ServerLocks],
        analysis: without_locks_in_servers,
        fund: funding,
    },
];

/// The claim of the analysis about a changed system, whatever it required beyond deadlines.
fn changed(system: &System, change: impl Fn(&mut System)) -> Result<Claim, AnalysisError> {
    let mut system = system.clone();
    change(&mut system);
    let mut claim = analysis(&system)?;
    claim.verdict = None;
    Ok(claim)
}

/// Each task's bound from a system that was changed for that task alone; admitted when all of them
/// keep their deadlines.
fn changed_for_each(
    system: &System,
    change: impl Fn(&mut Task, bool),
) -> Result<Claim, AnalysisError> {
    let mut bounds = Vec::new();
    for own in 0..system.tasks.len() {
        let claim = changed(system, |system| {
            for (index, task) in system.tasks.iter_mut().enumerate() {
                change(task, index == own);
            }
        })?;
        bounds.push(claim.bounds[own]);
    }
    Ok(by_deadlines(system, bounds))
}

/// Admitted when every bound keeps its deadline and its required responses.
fn by_deadlines(system: &System, bounds: Vec<Option<Span<Ns>>>) -> Claim {
    let in_time = |(task, bound): (&Task, &Option<Span<Ns>>)| {
        let deadline = task.class.relative_deadline();
        deadline.is_none_or(|deadline| bound.is_some_and(|bound| bound <= deadline))
    };
    Claim {
        admitted: system.requirements.is_empty() && system.tasks.iter().zip(&bounds).all(in_time),
        bounds,
        verdict: None,
    }
}

/// R = C + Σ ⌊R/T⌋·C for ⌈R/T⌉, on one CPU under preemptive fixed priority; elsewhere no answer.
fn floor_for_ceil(system: &System) -> Result<Claim, AnalysisError> {
    let fixed = PolicyKind::FixedPriority { preemptive: true };
    if system.cpus.iter().any(|cpu| cpu.policy != fixed) {
        let what = "this mutant knows fixed priority alone".into();
        return Err(AnalysisError::Invalid { what });
    }
    let numbers = |task: &Task| {
        let cost = task.class.budget().map_or(0, Work::as_ns);
        let separation = task.class.min_separation().map_or(u64::MAX, Span::as_ns);
        (cost, separation)
    };
    let mut bounds = Vec::new();
    for (index, own) in system.tasks.iter().enumerate() {
        let interfering = system.tasks.iter().enumerate().filter(|(other, task)| {
            let equal = task.priority == own.priority;
            *other != index && (task.priority.is_higher_than(own.priority) || equal)
        });
        let interfering: Vec<_> = interfering.map(|(_, task)| numbers(task)).collect();
        let (cost, separation) = numbers(own);
        let mut response = cost;
        let mut steps = 0;
        let settled = loop {
            let next = cost
                + interfering
                    .iter()
                    .map(|(c, t)| response / t * c)
                    .sum::<u64>();
            steps += 1;
            if next == response || response > separation.saturating_mul(4) || steps > 10_000 {
                break next == response;
            }
            response = next;
        };
        bounds.push(settled.then(|| Span::from_ns(response)));
    }
    Ok(by_deadlines(system, bounds))
}

fn without_jitter_of_others(system: &System) -> Result<Claim, AnalysisError> {
    changed_for_each(system, |task, own| {
        if !own {
            task.jitter = Span::ZERO;
        }
    })
}

fn without_blocking(system: &System) -> Result<Claim, AnalysisError> {
    changed(system, |system| {
        for task in &mut system.tasks {
            task.non_preemptive = Work::ZERO;
            task.uses.clear();
        }
        system.resources.clear();
    })
}

fn without_locks_in_servers(system: &System) -> Result<Claim, AnalysisError> {
    changed(system, |changed| {
        for task in &mut changed.tasks {
            let home = task
                .scheduler
                .and_then(|id| system.schedulers.get(id.index()));
            if home.is_some_and(|home| matches!(home.supply, Supply::Server(_))) {
                task.uses.clear();
            }
        }
    })
}

/// The own jobs after the first come too late to be seen.
fn first_job_only(system: &System) -> Result<Claim, AnalysisError> {
    changed_for_each(system, |task, own| {
        let late = |period: Span<Ns>| period.checked_mul(1_000).unwrap_or(period);
        match &mut task.class {
            Class::Periodic { period, .. } | Class::Reservation { period, .. } if own => {
                *period = late(*period);
            }
            Class::Sporadic { min_separation, .. } if own => {
                *min_separation = late(*min_separation);
            }
            _ => {}
        }
    })
}

fn without_suspension(system: &System) -> Result<Claim, AnalysisError> {
    changed(system, |system| {
        for task in &mut system.tasks {
            task.max_suspension = Span::ZERO;
            task.suspensions = 0;
        }
    })
}

fn without_takings(system: &System) -> Result<Claim, AnalysisError> {
    changed(system, |system| {
        system.machine.missing_time = None;
        system.machine.reserves.clear();
    })
}

fn without_precedence(system: &System) -> Result<Claim, AnalysisError> {
    changed(system, |system| {
        for task in &mut system.tasks {
            task.after.clear();
            task.follows.clear();
        }
    })
}

fn without_phases(system: &System) -> Result<Claim, AnalysisError> {
    changed(system, |system| {
        for task in &mut system.tasks {
            task.phase = Span::ZERO;
        }
    })
}

fn sporadic_by_clock(system: &System) -> Result<Claim, AnalysisError> {
    changed(system, |system| {
        for task in &mut system.tasks {
            if let Class::Sporadic {
                min_separation: period,
                wcet,
                relative_deadline,
            } = task.class
            {
                task.class = Class::Periodic {
                    period,
                    wcet,
                    relative_deadline,
                };
            }
        }
    })
}

fn without_budget_timer(system: &System) -> Result<Claim, AnalysisError> {
    changed(system, |system| {
        system.machine.budget_timer = Work::ZERO;
    })
}

fn all_that_a_job_may_pay(system: &System) -> Result<Funding, AnalysisError> {
    let machine = &system.machine;
    let timers = machine.timer.saturating_add(machine.budget_timer);
    let each = machine.stretch().saturating_add(timers);
    Ok(Funding {
        stretches: vec![each; system.tasks.len()],
        ..Funding::default()
    })
}

fn grace_for_nothing(system: &System) -> Result<Funding, AnalysisError> {
    let mut funding = funding(system)?;
    let grace = core::mem::take(&mut funding.grace);
    for stretch in &mut funding.stretches {
        *stretch = stretch.saturating_add(grace);
    }
    Ok(funding)
}

fn stops_for_nothing(system: &System) -> Result<Funding, AnalysisError> {
    Ok(Funding {
        stop: Work::ZERO,
        ..funding(system)?
    })
}

fn cold_caches_for_nothing(system: &System) -> Result<Funding, AnalysisError> {
    Ok(Funding {
        cache_delay: Work::ZERO,
        ..funding(system)?
    })
}

fn entries_thrice(system: &System) -> Result<Funding, AnalysisError> {
    let funding = funding(system)?;
    let entry = Work::from_ns(funding.entry.as_ns().saturating_mul(3));
    Ok(Funding { entry, ..funding })
}

fn implicit_deadlines(system: &System) -> Result<Claim, AnalysisError> {
    changed(system, |system| {
        for task in &mut system.tasks {
            if let Class::Periodic {
                period,
                wcet,
                relative_deadline,
            } = &mut task.class
            {
                *relative_deadline = (*period).max(wcet.as_span());
            }
        }
    })
}

/// The same share in half the period gives half the blackout.
fn halved_blackout(system: &System) -> Result<Claim, AnalysisError> {
    let even = |server: &Server<Ns>| {
        let plain = server.kind != ServerKind::ConstantBandwidth;
        plain && server.budget.as_ns().is_multiple_of(2) && server.period.as_ns().is_multiple_of(2)
    };
    changed(system, |system| {
        for scheduler in &mut system.schedulers {
            if let Supply::Server(server) = &mut scheduler.supply
                && even(server)
            {
                server.budget = Work::from_ns(server.budget.as_ns() / 2);
                server.period = Span::from_ns(server.period.as_ns() / 2);
            }
        }
    })
}

/// Tasks on slices as if each slice came four times as often, out of the whole CPU.
fn slices_at_once(system: &System) -> Result<Claim, AnalysisError> {
    let real = analysis(system)?;
    let mut claim = changed(system, |system| {
        for slice in &mut system.schedulers {
            if let (true, Supply::Server(server)) = (slice.receiver.is_some(), &mut slice.supply) {
                (slice.receiver, slice.parent) = (None, None);
                slice.priority = Priority::new(u32::MAX);
                server.budget = Work::from_ns(server.budget.as_ns().div_ceil(4));
                server.period = Span::from_ns((server.period.as_ns() / 4).max(1));
            }
        }
    })?;
    for (index, task) in system.tasks.iter().enumerate() {
        if !on_slice(system, task) {
            claim.bounds[index] = real.bounds[index];
        }
    }
    claim.admitted = real.admitted;
    Ok(claim)
}

/// Whether a task executes on a slice.
fn on_slice(system: &System, task: &Task) -> bool {
    let home = task
        .scheduler
        .and_then(|home| system.schedulers.get(home.index()));
    home.is_some_and(|home| home.receiver.is_some())
}

fn slices_beside_their_giver(system: &System) -> Result<Claim, AnalysisError> {
    changed(system, |system| {
        for index in 0..system.schedulers.len() {
            if system.schedulers[index].receiver.take().is_some() {
                let giver = system.schedulers[index].parent;
                let above = giver.and_then(|giver| system.schedulers[giver.index()].parent);
                system.schedulers[index].parent = above;
            }
        }
    })
}

fn all_of_the_giver(system: &System) -> Result<Claim, AnalysisError> {
    changed(system, |system| {
        for slice in &mut system.schedulers {
            if slice.receiver.take().is_some() {
                slice.supply = Supply::Shared;
            }
        }
    })
}

/// The bounds of all that is on no slice, in a system whose slices are empty and all but free.
fn without_slices(system: &System) -> Result<Claim, AnalysisError> {
    let real = analysis(system)?;
    let mut claim = changed(system, |changed| {
        for slice in &mut changed.schedulers {
            if let (true, Supply::Server(server)) = (slice.receiver.is_some(), &mut slice.supply) {
                server.budget = Work::from_ns(1);
            }
        }
        for (task, original) in changed.tasks.iter_mut().zip(&system.tasks) {
            if on_slice(system, original) {
                task.class = Class::Aperiodic;
            }
        }
    })?;
    for (index, task) in system.tasks.iter().enumerate() {
        if on_slice(system, task) {
            claim.bounds[index] = real.bounds[index];
        }
    }
    Ok(claim)
}

fn slices_first(system: &System) -> Result<Claim, AnalysisError> {
    changed(system, |system| {
        for slice in &mut system.schedulers {
            if slice.receiver.is_some() {
                slice.priority = Priority::new(u32::MAX);
            }
        }
    })
}
