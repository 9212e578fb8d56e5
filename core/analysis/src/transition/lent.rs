//! Budget that a scheduler transfers to a sibling until its own period ends
//!
//! Two systems stand for the time of a transfer, and both must be admitted:
//! 1. *For all others* the borrower has its own budget, and once as much work as was transferred,
//!    at its own place in the order of their parent. The lender has its whole budget, because its
//!    other periods are as ever.
//! 2. *For the tasks below the lender* one of its periods has less by the transferred budget. In
//!    any window its supply is less by that once, at most. Under preemptive fixed priority that is
//!    as if a most urgent task of the lender worked so long, once. Under other policies the
//!    budget is taken to be smaller in each period; a refusal then has no witness.
//!
//! So nobody who was promised something needs what is transferred: to the borrower it is
//! background work. Both count on until their CPU is idle, and no later change comes before the
//! lender's period has ended (`punctual_kern::Plan`).
//!
//! # Assumptions
//! 1. Their parent orders by preemptive fixed priority, and the lender's server is deferrable.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use punctual_model::{
    Change, Class, CpuId, Ns, PolicyKind, Priority, SchedulerId, Span, Stage, Step, Supply, System,
    Task,
};

use super::lives::{Part, Places, erased};
use super::{Bounds, Difference, Judge, Transition, When, judge, node};
use crate::admit::is_admitted;
use crate::error::AnalysisError;
use crate::units::{Work, border};
use crate::verdict::{Fix, FixTarget, Refusal, Subject, Verdict};

/// Work without a deadline has this one, because its analysis wants one.
const NEVER: Span<Ns> = Span::from_ms(3_600_000);

/// No fix proposes less, to those who want at least so much.
const LEAST: Work = Work::from_us(1);

const GROUND: &str = "all are admitted beside the borrower that has more, and those below the \
                      lender with that much less, once";

/// A transfer that may still have an effect.
#[derive(Clone, Debug)]
pub(super) struct Loan {
    /// Of the borrowed work, as a task of the analysis.
    name: String,
    /// Of the missing budget, as a task of the analysis.
    missing: String,
    /// Its place among the changes of the file.
    place: usize,
    change: String,
    from: String,
    to: String,
    cpu: CpuId,
    work: Work,
}

/// All of them.
#[derive(Default)]
pub(super) struct Lent(Vec<Loan>);

/// The transfers of a change. `stage` has the schedulers before it.
pub(super) fn loans(stage: &Stage<'_>, (place, change): (usize, &Change)) -> Vec<Loan> {
    let name = |id: SchedulerId| stage.scheduler(id).map(|s| (s.name.clone(), s.cpu));
    let steps = change.steps.iter().filter_map(|step| match *step {
        Step::Transfer { from, to, budget } => Some((name(from)?, name(to)?, budget)),
        _ => None,
    });
    let loans = steps.map(|((from, cpu), (to, _), work)| Loan {
        name: format!("the budget that {to} borrows in {}", change.name),
        missing: format!("the budget that {from} transfers in {}", change.name),
        place,
        change: change.name.clone(),
        from,
        to,
        cpu,
        work,
    });
    loans.collect()
}

impl Lent {
    /// Judges the step to `after` from the last system of `past`, and the loans beside it.
    pub(super) fn judge(
        &self,
        (past, new): (&[System], &[Loan]),
        after: System,
        places: &Places,
        admit: Judge,
    ) -> Result<Transition, AnalysisError> {
        if self.0.is_empty() && new.is_empty() {
            return judge(past, after, places, admit);
        }
        let counted = with_borrowed(&after, new);
        let mut transition = judge(past, counted.clone(), places, admit)?;
        if transition.when == When::Never {
            return smaller(new, transition, &after);
        }
        let all: Vec<Loan> = self.0.iter().chain(new).cloned().collect();
        let mut left = judge_left((past, &all), &counted, places, admit)?;
        let fresh = left.when == When::Never && !self.0.is_empty();
        if fresh {
            // Former loans count no more once the CPU is idle.
            left = judge_left((past, new), &counted, places, admit)?;
        }
        if left.when == When::Never {
            return smaller(new, left, &after);
        }
        transition.meanwhile = longest([&transition, &left], &all);
        if !new.is_empty() {
            transition.ground = GROUND.into();
        }
        if fresh || [transition.when, left.when].contains(&When::Idle) {
            let earlier = "the system before it may still count beside it";
            if transition.when != When::Idle || !new.is_empty() {
                transition.ground = match left.when {
                    When::Idle if !fresh && new.is_empty() => left.ground,
                    _ => earlier.into(),
                };
            }
            (transition.when, transition.idle) = (When::Idle, None);
        } else if left.when == When::ZeroLag {
            transition.when = When::ZeroLag;
        }
        transition.verdict.tasks.truncate(after.tasks.len());
        transition.system = after;
        Ok(transition)
    }

    /// The system after a transition runs. Nothing before an idle instant has an effect after it,
    /// and the new loans count from now on.
    pub(super) fn follow(
        &mut self,
        past: &mut Vec<System>,
        transition: &Transition,
        new: Vec<Loan>,
    ) {
        let after = &transition.system;
        if let (When::Idle, Some(before)) = (transition.when, past.last()) {
            // Borrowed work leaves with no step of the change.
            let before = erased(before, |part| self.is_borrowed(part));
            let mut cpus = Difference::between(&before, after).cpus;
            cpus.extend(new.iter().map(|loan| loan.cpu));
            for old in past.iter_mut() {
                *old = match &transition.idle {
                    Some(name) => erased(old, |part| node::is_below(old, part, name)),
                    None => erased(old, |part| cpus.contains(&part.cpu())),
                };
            }
            if transition.idle.is_none() {
                self.0.retain(|loan| !cpus.contains(&loan.cpu));
            }
        }
        past.push(with_borrowed(after, &new));
        self.0.extend(new);
    }

    fn is_borrowed(&self, part: Part<'_>) -> bool {
        match part {
            Part::Task(task) => self.0.iter().any(|loan| loan.name == task.name),
            Part::Scheduler(_) => false,
        }
    }
}

/// Borrowed work is a task of its own beside the borrower, which arrives once.
fn with_borrowed(system: &System, loans: &[Loan]) -> System {
    let mut system = system.clone();
    for loan in loans {
        let Some(borrower) = system.schedulers.iter().find(|s| s.name == loan.to) else {
            continue;
        };
        let class = Class::Once {
            size: loan.work,
            relative_deadline: NEVER,
        };
        let mut task = Task::new(loan.name.clone(), loan.cpu, class);
        task.scheduler = borrower.parent;
        task.priority = borrower.priority;
        system.tasks.push(task);
    }
    system
}

/// The system with less for the lenders, whose tasks have something to count on; as an error a
/// lender that is taken to have nothing.
fn left_to_lenders(system: &System, loans: &[Loan]) -> Result<System, SchedulerId> {
    let mut system = system.clone();
    for loan in loans {
        let named = |s: &punctual_model::Scheduler| s.name == loan.from;
        let Some(place) = system.schedulers.iter().position(named) else {
            continue;
        };
        let id = SchedulerId(u16::try_from(place).unwrap_or(u16::MAX));
        let is_below = |home| {
            let parent = |id: &SchedulerId| system.schedulers.get(id.index())?.parent;
            let mut up = core::iter::successors(home, parent);
            up.any(|above| above == id)
        };
        // Work without a promise goes on later.
        let promised = |task: &Task| task.class.relative_deadline().is_some();
        let own = |task: &Task| loans.iter().any(|loan| loan.missing == task.name);
        let mut tasks = system.tasks.iter().filter(|task| !own(task));
        if !tasks.any(|task| promised(task) && is_below(task.scheduler)) {
            continue;
        }
        if has_most_urgent(&system, id, loans) {
            let class = Class::Once {
                size: loan.work,
                relative_deadline: NEVER,
            };
            let mut task = Task::new(loan.missing.clone(), loan.cpu, class);
            task.scheduler = Some(id);
            task.priority = MOST;
            system.tasks.push(task);
        } else if let Supply::Server(server) = &mut system.schedulers[place].supply {
            server.budget = server.budget.saturating_sub(loan.work);
            if server.budget.is_zero() {
                return Err(id);
            }
        }
    }
    Ok(system)
}

/// More urgent than the tasks of any lender to which [`has_most_urgent`] applies.
const MOST: Priority = Priority::new(u32::MAX);

/// Whether this scheduler may have a task that goes before all others below it. Two such tasks may
/// be as urgent as each other.
fn has_most_urgent(system: &System, id: SchedulerId, loans: &[Loan]) -> bool {
    let tasks = system.tasks.iter().filter(|t| t.scheduler == Some(id));
    let tasks = tasks.filter(|t| loans.iter().all(|loan| loan.missing != t.name));
    let children = system.schedulers.iter().filter(|s| s.parent == Some(id));
    let mut priorities = tasks
        .map(|t| t.priority)
        .chain(children.map(|s| s.priority));
    let policy = system.schedulers.get(id.index()).map(|s| s.policy);
    policy == Some(PolicyKind::FixedPriority { preemptive: true }) && priorities.all(|p| p != MOST)
}

/// One answer about the lenders. An answer that is not about the very system has no witness.
fn judge_left(
    (past, loans): (&[System], &[Loan]),
    counted: &System,
    places: &Places,
    admit: Judge,
) -> Result<Transition, AnalysisError> {
    let mut systems = past.iter().chain([counted]);
    let left = systems.try_fold(Vec::new(), |mut left, system| {
        left.push(left_to_lenders(system, loans)?);
        Ok::<_, SchedulerId>(left)
    });
    match left {
        Ok(mut left) => match left.pop() {
            Some(after) => {
                let left = judge(&left, after, places, admit)?;
                Ok(as_in_each_period(where_short(left, loans), counted))
            }
            None => judge(past, counted.clone(), places, admit),
        },
        Err(lender) => nothing_left(counted, lender, admit),
    }
}

/// A witness is seen where these budgets are short.
fn where_short(mut left: Transition, loans: &[Loan]) -> Transition {
    let short = |name: &str| loans.iter().find(|loan| loan.missing == name);
    let short = left
        .system
        .tasks
        .iter()
        .filter_map(|task| short(&task.name));
    let short = short.map(|loan| {
        format!(
            "; the next budget of {} is {} short",
            loan.from,
            loan.work.readable()
        )
    });
    let short: String = short.collect();
    let refusals = left.verdict.refusals.iter_mut();
    for refusal in refusals.filter(|refusal| refusal.witness.is_some()) {
        refusal.situation.push_str(&short);
    }
    left
}

/// A refusal says how it counted a lender that is taken to have less in each period.
fn as_in_each_period(mut left: Transition, counted: &System) -> Transition {
    let both = left.system.schedulers.iter().zip(&counted.schedulers);
    let smaller = both.filter(|(less, whole)| less.supply != whole.supply);
    let names: Vec<&str> = smaller.map(|(less, _)| less.name.as_str()).collect();
    if names.is_empty() {
        return left;
    }
    let how = format!(
        "counted as if {} had less in each period, which no run shows",
        names.join(" and ")
    );
    for refusal in &mut left.verdict.refusals {
        (refusal.witness, refusal.situation) = (None, String::new());
        refusal.reason = format!("{}, {how}", refusal.reason);
    }
    if left.when == When::Never {
        left.ground = format!("{}, {how}", left.ground);
    }
    left
}

/// The answer where tasks with a deadline are taken to have nothing.
fn nothing_left(
    system: &System,
    lender: SchedulerId,
    admit: Judge,
) -> Result<Transition, AnalysisError> {
    let verdict = admit(system)?;
    let name = system
        .schedulers
        .get(lender.index())
        .map_or("", |s| &s.name);
    let reason = format!(
        "scheduler `{name}` would have nothing left of its period for the tasks with a deadline \
         below it, counted as if in each period, which no run shows"
    );
    let refusal = Refusal::new(Subject::Scheduler(lender), name, reason.clone());
    Ok(Transition {
        when: When::Never,
        idle: None,
        ground: reason,
        system: system.clone(),
        verdict: Verdict {
            admitted: false,
            refusals: vec![refusal],
            ..verdict
        },
        meanwhile: Bounds::new(),
    })
}

/// A refused transfer, with the most that would not be refused.
fn smaller(
    new: &[Loan],
    mut refused: Transition,
    after: &System,
) -> Result<Transition, AnalysisError> {
    let [loan] = new else {
        return Ok(refused);
    };
    let admits = |work: Work| {
        let less = [Loan {
            work,
            ..loan.clone()
        }];
        let counted = with_borrowed(after, &less);
        match left_to_lenders(&counted, &less) {
            Ok(left) => Ok::<_, AnalysisError>(is_admitted(&counted)? && is_admitted(&left)?),
            Err(_) => Ok(false),
        }
    };
    let most = border(loan.work, Work::ZERO, admits)?;
    let nothing = most.is_zero() || most < LEAST && loan.work >= LEAST;
    let fix = (!nothing).then(|| Fix {
        target: FixTarget::Transfer(loan.place),
        parameter: format!("change.{}.transfer.budget", loan.change),
        from: loan.work.as_span(),
        to: most.as_span(),
    });
    let advice = match &fix {
        Some(fix) => format!("{fix} mends it"),
        None => nothing_to_give(loan, after)?,
    };
    for refusal in &mut refused.verdict.refusals {
        refusal.fix.clone_from(&fix);
        refusal.advice.clone_from(&advice);
    }
    Ok(refused)
}

/// Why nothing worth a transfer can be transferred.
fn nothing_to_give(loan: &Loan, after: &System) -> Result<String, AnalysisError> {
    let least = [Loan {
        work: loan.work.min(LEAST),
        ..loan.clone()
    }];
    let (from, to) = (&loan.from, &loan.to);
    let cause = match is_admitted(&with_borrowed(after, &least))? {
        true => format!("the tasks of {from} need all its budget"),
        false => format!("tasks that {to} goes before have no time to spare"),
    };
    Ok(format!("nothing can be transferred there: {cause}"))
}

/// The longest responses of each task in these answers, together.
fn longest(of: [&Transition; 2], loans: &[Loan]) -> Bounds {
    let mut all: BTreeMap<&str, Option<Span<Ns>>> = BTreeMap::new();
    for transition in of {
        let rows = transition.verdict.tasks.iter();
        let rows = rows.map(|row| (&row.name, row.response_bound));
        let meanwhile = transition.meanwhile.iter();
        for (name, bound) in rows.chain(meanwhile.map(|(name, bound)| (name, *bound))) {
            let known = all.entry(name).or_insert(bound);
            *known = known.zip(bound).map(|(a, b)| a.max(b));
        }
    }
    let own = |name: &&str| {
        loans
            .iter()
            .all(|l| l.name != **name && l.missing != **name)
    };
    let all = all.into_iter().filter(|(name, _)| own(name));
    all.map(|(name, bound)| (name.into(), bound)).collect()
}
