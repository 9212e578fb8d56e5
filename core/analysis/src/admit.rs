//! The entry point: bounds, refusals, slack and fixes of a whole system

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cmp::Ordering;

use punctual_model::{self as model, CpuId, PolicyKind, Span, System, TaskId};

use crate::blocking::limits;
use crate::bounds::{self, Basis, Bound};
use crate::component::Component;
use crate::decide;
use crate::error::{AnalysisError, Checked};
use crate::exactness::{self, Doubts};
use crate::largest::Before;
use crate::lookup::{task_name, tasks};
use crate::node::Node;
use crate::plan::Mending;
use crate::precedence::{self, Edge};
use crate::solve::{self, Options, Solution};
use crate::supply::Supply;
use crate::together;
use crate::tree::Solved;
use crate::trials::Trials;
use crate::utilization::{Sum, compare_with_one, parts_per_million};
use crate::verdict::{BetweenSlots, CpuVerdict, Exactness, TaskVerdict, Verdict};
use crate::{
    background, chain, explain, fix, fixed_priority, gang, graph, largest, levels, plan, quick,
    refuse, schedulers, slack,
};

/// Most tasks of a system whose slack is computed; beyond it, each task would take twenty whole
/// analyses.
pub const MAX_TASKS_WITH_SLACK: usize = 256;

/// Decides whether every deadline, requirement and limit of `system` holds, and says why.
///
/// Deterministic and pure: equal systems give equal verdicts. The system is taken to be one that
/// `System::validate` accepts, but for budgets longer than deadlines, which are simply refused.
/// Cost: one response-time analysis or processor-demand test per task, about twenty per task more
/// for the slack of an admitted system, and some hundred per refusal for its fix.
///
/// # Errors
///
/// [`AnalysisError`]: 64-bit nanoseconds overflow, the search does not end within its steps, or
/// the system means nothing. An error is neither an admission nor a refusal.
///
/// # Examples
///
/// ```
/// use punctual_model::{Class, Cpu, CpuId, PolicyKind, Priority, Span, System, Task, TaskId, Work};
///
/// let policy = PolicyKind::FixedPriority { preemptive: true };
/// let mut system = System::default();
/// system.cpus.push(Cpu { name: "0".into(), host: Some(0), policy });
/// for (name, period, wcet, priority) in [("fast", 10, 2, 2), ("slow", 20, 5, 1)] {
///     let period = Span::from_ms(period);
///     let wcet = Work::from_ms(wcet);
///     let class = Class::Periodic { period, wcet, relative_deadline: period };
///     let mut task = Task::new(name, CpuId(0), class);
///     task.priority = Priority::new(priority);
///     system.tasks.push(task);
/// }
/// let verdict = punctual_analysis::admit(&system)?;
/// assert!(verdict.admitted);
/// let slow = verdict.task(TaskId(1)).expect("there are two tasks");
/// assert_eq!(slow.response_bound, Some(Span::from_ms(7)));
/// assert_eq!(slow.explanation, "7ms = 5ms (own slow) + 2ms (fast)");
/// # Ok::<(), punctual_analysis::AnalysisError>(())
/// ```
pub fn admit(system: &System) -> Result<Verdict, AnalysisError> {
    whole(system, Trying::SlackAndFixes)
}

/// The verdict of [`admit`], but without slack: for those who tell why a system is refused, and
/// nothing of one that is admitted.
///
/// # Errors
///
/// [`AnalysisError`] as for [`admit`].
pub fn admit_without_slack(system: &System) -> Result<Verdict, AnalysisError> {
    whole(system, Trying::Fixes)
}

/// The verdict of [`admit`], but without slack and fixes: for those who want bounds, plans and a
/// yes or no. No other parameters are tried for it.
///
/// # Errors
///
/// [`AnalysisError`] as for [`admit`].
pub fn bounds_only(system: &System) -> Result<Verdict, AnalysisError> {
    whole(system, Trying::Nothing)
}

/// Which other parameters a verdict tries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Trying {
    Nothing,
    Fixes,
    SlackAndFixes,
}

fn whole(system: &System, trying: Trying) -> Checked<Verdict> {
    let mut verdict = bounds_of_tasks(system)?;
    let edges = precedence::edges(system);
    let seeks_fixes = trying != Trying::Nothing;
    if verdict.admitted && trying == Trying::SlackAndFixes {
        add_slack(system, &edges, &mut verdict)?;
    } else if !verdict.admitted && seeks_fixes {
        fix::add_fixes(system, &edges, &mut verdict)?;
    }
    let (graphs, refusals) = graph::verdicts(system, seeks_fixes)?;
    verdict.admitted &= refusals.is_empty();
    verdict.graphs = graphs;
    verdict.refusals.extend(refusals);
    let mending = match (seeks_fixes, verdict.admitted) {
        (false, _) => Mending::Unasked,
        (true, false) => Mending::InVain,
        (true, true) => Mending::Sought,
    };
    let (plan, refusals) = plan::verdicts(system, mending)?;
    verdict.admitted &= refusals.is_empty();
    plan::add_utilization(system, plan.as_ref(), &mut verdict.cpus);
    verdict.plan = plan;
    verdict.refusals.extend(refusals);
    Ok(verdict)
}

/// The time in front of the slots of a CPU, and its part of each frame. O(tasks + schedulers).
fn between_slots(system: &System, cpu: CpuId) -> Option<BetweenSlots> {
    let PolicyKind::Tdm { frame, scheduling } = system.cpus.get(cpu.index())?.policy else {
        return None;
    };
    let tasks = system.tasks.iter().filter(|task| task.cpu == cpu);
    let of_tasks = tasks.filter(|task| task.scheduler.is_none());
    let schedulers = system.schedulers.iter().filter(|s| s.cpu == cpu);
    let of_schedulers = schedulers.filter_map(|scheduler| match &scheduler.supply {
        model::Supply::Slots(slots) if scheduler.parent.is_none() => Some(slots.len()),
        _ => None,
    });
    let slots: usize = of_tasks
        .map(|task| task.slots.len())
        .chain(of_schedulers)
        .sum();
    let slots = u64::try_from(slots).unwrap_or(u64::MAX);
    let all = Span::from_ns(scheduling.as_ns().saturating_mul(slots));
    (!all.is_zero()).then_some(BetweenSlots {
        each: scheduling,
        all,
        frame,
    })
}

/// The row of one task with every term of its bound, without slack; the verdict folds sums of more
/// than 64 terms. `None`: there is no such task. It costs as much as a verdict without slack and
/// fixes.
///
/// # Errors
///
/// [`AnalysisError`] as for [`admit`].
pub fn explained(system: &System, task: TaskId) -> Result<Option<TaskVerdict>, AnalysisError> {
    let verdict = bounds_of(system, Some(task))?;
    let mut rows = verdict.tasks.into_iter();
    Ok(rows.find(|row| row.task == task))
}

/// The verdict about tasks, schedulers and gangs, without slack and fixes; it says nothing of
/// graphs and groups.
pub(crate) fn bounds_of_tasks(system: &System) -> Checked<Verdict> {
    bounds_of(system, None)
}

fn bounds_of(system: &System, whole: Option<TaskId>) -> Checked<Verdict> {
    check(system)?;
    let edges = precedence::edges(system);
    let solution = solve::solve(system, &edges, &Options::all(&bounds::query()))?;
    let mut verdict = Verdict {
        admitted: true,
        tasks: rows(system, &edges, &solution, whole)?,
        cpus: Vec::new(),
        schedulers: Vec::new(),
        chains: Vec::new(),
        jitters: chain::jitters(system, &solution),
        graphs: Vec::new(),
        gangs: Vec::new(),
        plan: None,
        refusals: Vec::new(),
    };
    for solved in &solution.nodes {
        let node = &solved.node;
        if node.is_cpu() {
            verdict.cpus.push(CpuVerdict {
                cpu: node.cpu,
                name: system.cpus[node.cpu.index()].name.clone(),
                utilization_ppm: parts_per_million(node.ratios()),
                quick: quick::answers(node),
                between_slots: between_slots(system, node.cpu),
            });
        }
    }
    verdict.refusals = limits::refusals(system);
    let refusals = refuse::refusals(system, &solution.nodes)?;
    verdict.refusals.extend(refusals);
    verdict.gangs = gang::verdicts(system, &verdict.tasks);
    verdict.schedulers = schedulers::verdicts(system, &solution.nodes);
    verdict.chains = chain::chains(system, &solution, &verdict.tasks)?;
    let late = chain::refusals(&verdict.chains, &verdict.jitters);
    verdict.refusals.extend(late);
    verdict.admitted = verdict.refusals.is_empty();
    Ok(verdict)
}

/// Whether `system` is admitted, without bounds, slack or fixes: the same answer as [`admit`], for
/// those who ask often. It stops at the first miss, and where the analysis does not end within its
/// steps it answers `false`.
///
/// # Errors
///
/// [`AnalysisError::Invalid`] as for [`admit`].
pub fn is_admitted(system: &System) -> Result<bool, AnalysisError> {
    check(system)?;
    let edges = precedence::edges(system);
    for component in Component::all(system, &edges) {
        if !decide::admits(system, &edges, &component, &bounds::query())? {
            return Ok(false);
        }
    }
    Ok(graph::are_admitted(system)? && plan::are_admitted(system)?)
}

/// References that the analysis follows without asking again.
pub(crate) fn check(system: &System) -> Checked<()> {
    schedulers::check(system)?;
    for task in &system.tasks {
        if task.cpu.index() >= system.cpus.len() {
            let what = format!("`{}` is placed on a CPU that does not exist", task.name);
            return Err(AnalysisError::Invalid { what });
        }
        let known = |id: &TaskId| id.index() < system.tasks.len();
        if !task.after.iter().chain(&task.follows).all(known) {
            let what = format!("`{}` waits for a task that does not exist", task.name);
            return Err(AnalysisError::Invalid { what });
        }
    }
    Ok(())
}

/// The rows of all tasks; the sum of `whole` is not folded.
fn rows(
    system: &System,
    edges: &[Edge],
    solution: &Solution,
    whole: Option<TaskId>,
) -> Checked<Vec<TaskVerdict>> {
    let rows = tasks(system).map(|(id, task)| background::row(system, task, id));
    let mut rows: Vec<TaskVerdict> = rows.collect();
    for Solved { node, bounds } in &solution.nodes {
        let doubts = Doubts::of(system, node, bounds);
        let unknown = waits_unknown(system, node, solution);
        let unbounded = bounds.iter().any(Option::is_none);
        let loads = unbounded.then(|| levels::loads(node)).flatten();
        let before = largest::before(node, bounds);
        let supply = explain::supply(node).map(|supply| format!("; supply: {supply}"));
        for (place, (entity, &bound)) in node.entities.iter().zip(bounds).enumerate() {
            let Some(task) = entity.who.task() else {
                continue;
            };
            let row = &mut rows[task.index()];
            let before = before[place].as_ref().filter(|_| whole != Some(task));
            let words = Words {
                doubts: &doubts,
                fold: whole != Some(task),
                before,
            };
            fill(row, system, (node, place), bound, &words)?;
            if bound.is_none() {
                let load = loads.as_ref().and_then(|loads| loads.get(place));
                row.explanation = no_bound(node, place, load);
            }
            if let Some(supply) = &supply {
                row.explanation += supply;
            }
            if solution.waiting[row.task.index()].is_none() {
                row.explanation = unbounded_wait(system, edges, row.task);
            }
            if row.exactness == Exactness::Exact
                && let Some(name) = unknown
            {
                row.exactness = Exactness::Sufficient;
                row.assumptions.push(format!(
                    "not exact: how long {name} waits for its predecessors is not known"
                ));
            }
        }
    }
    together::explain(system, &mut rows)?;
    Ok(rows)
}

/// Someone on this node whose wait for predecessors has no bound.
fn waits_unknown<'a>(system: &'a System, node: &Node, solution: &Solution) -> Option<&'a str> {
    let unknown = |task: &TaskId| {
        let waiting = solution.waiting.get(task.index());
        waiting.is_some_and(Option::is_none)
    };
    let mut tasks = node.all_entities().filter_map(|c| c.who.task());
    tasks.find(unknown).map(|task| task_name(system, task))
}

fn unbounded_wait(system: &System, edges: &[Edge], task: TaskId) -> String {
    let from = edges.iter().filter(|e| e.to == task && !e.consistent);
    let names: Vec<&str> = from.map(|e| task_name(system, e.from)).collect();
    format!(
        "no bound: it waits for {}, whose completion nothing bounds",
        names.join(", ")
    )
}

/// All that the words of a row are made of.
struct Words<'a> {
    doubts: &'a Doubts<'a>,
    /// Whether a long sum is folded.
    fold: bool,
    /// All that goes before its worst job, where that is known already.
    before: Option<&'a Before>,
}

fn fill(
    row: &mut TaskVerdict,
    system: &System,
    (node, place): (&Node, usize),
    bound: Option<Bound>,
    words: &Words<'_>,
) -> Checked<()> {
    let entity = &node.entities[place];
    let allowed = decide::allowed_of(system, entity);
    row.response_bound = bound.map(|b| b.response);
    row.test = explain::test_of(node, entity, bound.map(|b| b.basis));
    let reasons = words.doubts.about(place, allowed);
    row.exactness = if reasons.is_empty() {
        Exactness::Exact
    } else {
        Exactness::Sufficient
    };
    row.assumptions = exactness::assumptions(node);
    row.assumptions
        .extend(reasons.into_iter().map(|r| format!("not exact: {r}")));
    if let Some(bound) = bound {
        if let Basis::Job(worst) = bound.basis {
            row.terms = explain::terms(system, node, (place, &worst), words.fold, words.before)?;
        }
        row.explanation = explain::bound(node, place, &bound, &row.terms);
    }
    Ok(())
}

/// Why nothing bounds a response; `load`: its share and those of all that goes before it, where
/// they are known already.
fn no_bound(node: &Node, place: usize, load: Option<&Sum>) -> String {
    if node.supply == Supply::Nothing {
        return match node.scheduler {
            None => "no bound: a resource on its CPU is used in a way that nothing bounds".into(),
            Some(_) => "no bound: nothing is sure of the supply of its scheduler".into(),
        };
    }
    let known = load.and_then(|sum| Some((sum.compare_with_one()?, sum.parts_per_million())));
    let (load, needed) = match (known, node.policy) {
        (Some(known), _) => known,
        (None, PolicyKind::Fifo | PolicyKind::FixedPriority { .. }) => {
            let query = fixed_priority::query(node, place, None);
            (
                compare_with_one(query.ratios()),
                parts_per_million(query.ratios()),
            )
        }
        _ => (node.load(), parts_per_million(node.ratios_with_missing())),
    };
    if load == Ordering::Greater {
        let needed = explain::percent(needed);
        match node.supply {
            Supply::Dedicated => format!(
                "no bound: with everything that may go before it, it needs {needed} of the CPU"
            ),
            _ => format!(
                "no bound: with everything that may go before it, and what its scheduler does not \
                 get, it needs {needed} of the CPU"
            ),
        }
    } else {
        "no bound: its busy window does not end within the steps of the analysis".to_string()
    }
}

fn add_slack(system: &System, edges: &[Edge], verdict: &mut Verdict) -> Checked<()> {
    if system.tasks.len() > MAX_TASKS_WITH_SLACK {
        for row in &mut verdict.tasks {
            row.assumptions.push(format!(
                "slack is not computed for systems of more than {MAX_TASKS_WITH_SLACK} tasks"
            ));
        }
        return Ok(());
    }
    let trials = Trials::new();
    for component in Component::all(system, edges) {
        for row in &mut verdict.tasks {
            if !component.contains(row.cpu) {
                continue;
            }
            match slack::of(system, edges, &component, &trials, row.task) {
                Err(AnalysisError::TooLong { .. }) => row
                    .assumptions
                    .push("slack is not computed: it would take too long to search".into()),
                found => row.slack = found?,
            }
        }
    }
    Ok(())
}
