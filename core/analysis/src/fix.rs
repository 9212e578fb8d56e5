//! The smallest fix: one parameter, and the value from which on the system is admitted
//!
//! Candidates, in this order; the first kind that mends is taken:
//! 1. the supply of a late task or of its scheduler: more budget, longer slots, a shorter period of
//!    its server; of a server whose budget comes late: less of it, less of those beside it;
//! 2. the wcet of one task of the CPUs concerned: the smallest relative reduction;
//! 3. the deadline, or the required response, of the task that is late; the limit of a chain;
//! 4. the period of one task of the CPUs concerned: the smallest relative increase.
//!
//! # Assumptions
//! 1. The tests are sustainable (Baruah and Burns 2006): a shorter wcet, a later deadline and a
//!    longer period never hurt. So one step short of the border is refused.
//! 2. More budget helps those below and hurts those beside: it is raised in sixteenths of what is
//!    possible until the system is admitted, and then the border before that is found.
//! 3. A period takes the deadline with it where the file does not write one. Everything else
//!    stays as it is written: no value of a fix makes another part of it meaningless, such as a
//!    non-preemptive stretch that is longer than the wcet.

mod supply;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::RefCell;

use punctual_model::{Class, Gang, Requirement, Step, Supply, System, Task, TaskId};

use crate::component::Component;
use crate::error::{AnalysisError, Checked};
use crate::lookup::{in_step, share_ppm, tasks};
use crate::precedence::{self, Edge};
use crate::trials::Trials;
use crate::units::{Span, TICK, Work, border};
use crate::verdict::{Fix, FixTarget, Refusal, Subject, Verdict};

/// Most tasks whose wcet or period is tried for one refusal: those that use most of the processor.
const MAX_CANDIDATES: usize = 16;

impl Fix {
    /// Changes `system` as the fix says.
    pub fn apply(&self, system: &mut System) {
        set(system, self.target, self.to);
    }
}

/// A parameter in its place.
enum Field<'a> {
    Span(&'a mut Span),
    Work(&'a mut Work),
    /// A period, and the deadline that equals it.
    Both(&'a mut Span, &'a mut Span),
}

/// Sets a parameter, of all members of a gang where it is theirs.
fn set(system: &mut System, target: FixTarget, value: Span) {
    let all: Vec<FixTarget> = match target {
        FixTarget::Budget(task) => each(in_step(system, task), FixTarget::Budget),
        FixTarget::Deadline(task) => each(in_step(system, task), FixTarget::Deadline),
        FixTarget::Period(task) => each(of_gang(system, task), FixTarget::Period),
        _ => Vec::from([target]),
    };
    for target in all {
        set_one(system, target, value);
    }
}

fn each(tasks: Vec<TaskId>, target: fn(TaskId) -> FixTarget) -> Vec<FixTarget> {
    tasks.into_iter().map(target).collect()
}

/// The tasks that have one period with this: its gang, or it alone.
fn of_gang(system: &System, task: TaskId) -> Vec<TaskId> {
    let mut gangs = system.gangs.iter();
    let own = gangs.find(|gang| gang.members().any(|member| member == task));
    own.map_or_else(|| Vec::from([task]), |gang| gang.members().collect())
}

fn set_one(system: &mut System, target: FixTarget, value: Span) {
    match field(system, target) {
        Some(Field::Span(span)) => *span = value,
        Some(Field::Work(work)) => *work = value.as_work(),
        Some(Field::Both(period, deadline)) => (*period, *deadline) = (value, value),
        None => {}
    }
}

/// The value of a parameter; `None`: there is none.
fn get(system: &mut System, target: FixTarget) -> Option<Span> {
    Some(match field(system, target)? {
        Field::Span(span) | Field::Both(span, _) => *span,
        Field::Work(work) => work.as_span(),
    })
}

/// Makes a parameter of a changed system again what it is in the original, where it is `value`.
fn restore(changed: &mut System, original: &System, target: FixTarget, value: Option<Span>) {
    let tasks = match target {
        FixTarget::Budget(task) | FixTarget::Deadline(task) => in_step(original, task),
        FixTarget::Period(task) => of_gang(original, task),
        FixTarget::TaskSlotLength(task, _) => Vec::from([task]),
        // Nothing but this value was set.
        _ => {
            if let Some(value) = value {
                set(changed, target, value);
            }
            return;
        }
    };
    for task in tasks {
        let place = task.index();
        changed.tasks[place].clone_from(&original.tasks[place]);
    }
}

fn field(system: &mut System, target: FixTarget) -> Option<Field<'_>> {
    Some(match target {
        FixTarget::Budget(task) => Field::Work(system.tasks[task.index()].class.budget_mut()?),
        FixTarget::Deadline(task) => {
            Field::Span(system.tasks[task.index()].class.relative_deadline_mut()?)
        }
        FixTarget::Period(task) => period_of(system.tasks.get_mut(task.index())?)?,
        FixTarget::Within(index) => match system.requirements.get_mut(index)? {
            Requirement::Response { within, .. }
            | Requirement::Chain { within, .. }
            | Requirement::Jitter { within, .. } => Field::Span(within),
        },
        FixTarget::GroupDeadline(id) => {
            Field::Span(&mut system.groups.get_mut(id.index())?.relative_deadline)
        }
        FixTarget::SegmentWcet(id, position) => {
            let segments = &mut system.groups.get_mut(id.index())?.segments;
            Field::Work(&mut segments.get_mut(position)?.wcet)
        }
        FixTarget::Transfer(change) => {
            let steps = &mut system.changes.get_mut(change)?.steps;
            Field::Work(steps.iter_mut().find_map(|step| match step {
                Step::Transfer { budget, .. } => Some(budget),
                _ => None,
            })?)
        }
        FixTarget::TaskSlotLength(task, position) => {
            let slots = &mut system.tasks.get_mut(task.index())?.slots;
            Field::Span(&mut slots.get_mut(position)?.length)
        }
        FixTarget::ServerBudget(id)
        | FixTarget::ServerPeriod(id)
        | FixTarget::SlotLength(id, _) => {
            let supply = &mut system.schedulers.get_mut(id.index())?.supply;
            match (supply, target) {
                (Supply::Server(server), FixTarget::ServerBudget(_)) => {
                    Field::Work(&mut server.budget)
                }
                (Supply::Server(server), FixTarget::ServerPeriod(_)) => {
                    Field::Span(&mut server.period)
                }
                (Supply::Slots(slots), FixTarget::SlotLength(_, position)) => {
                    Field::Span(&mut slots.get_mut(position)?.length)
                }
                _ => return None,
            }
        }
    })
}

/// The period of a task, and its deadline where the file lets it follow.
fn period_of(task: &mut Task) -> Option<Field<'_>> {
    let follows = !task.own_deadline;
    Some(match &mut task.class {
        Class::Periodic {
            period,
            relative_deadline,
            ..
        } => match follows && *period == *relative_deadline {
            true => Field::Both(period, relative_deadline),
            false => Field::Span(period),
        },
        Class::Reservation { period, .. }
        | Class::Sporadic {
            min_separation: period,
            ..
        } => Field::Span(period),
        Class::Once { .. } | Class::Aperiodic => return None,
    })
}

/// The gang of a task, and its superstep there.
fn gang_of(system: &System, task: TaskId) -> Option<(&Gang, usize)> {
    system.gangs.iter().find_map(|gang| {
        let mut supersteps = gang.supersteps.iter();
        let place = supersteps.position(|superstep| superstep.members.contains(&task))?;
        Some((gang, place))
    })
}

pub(crate) fn parameter(system: &System, target: FixTarget) -> String {
    let key = |task: TaskId, key: &str| match gang_of(system, task) {
        Some((gang, superstep)) if key != "period" => {
            format!("gang.{}.{key}", gang.name_of(superstep))
        }
        Some((gang, _)) => format!("gang.{}.{key}", gang.name),
        None => format!("task.{}.{key}", system.tasks[task.index()].name),
    };
    match target {
        FixTarget::Budget(task) => match system.tasks[task.index()].class {
            Class::Reservation { .. } => key(task, "slice"),
            Class::Once { .. } => key(task, "size"),
            _ => key(task, "wcet"),
        },
        FixTarget::Deadline(task) => key(task, "deadline"),
        FixTarget::Period(task) => match system.tasks[task.index()].class {
            Class::Sporadic { .. } => key(task, "min-separation"),
            _ => key(task, "period"),
        },
        FixTarget::ServerBudget(_)
        | FixTarget::ServerPeriod(_)
        | FixTarget::SlotLength(..)
        | FixTarget::TaskSlotLength(..) => supply::parameter(system, target),
        FixTarget::GroupDeadline(id) => {
            format!("group.{}.deadline", system.groups[id.index()].name)
        }
        FixTarget::SegmentWcet(id, position) => {
            let name = &system.groups[id.index()].name;
            format!("group.{name}.segments[{position}].wcet")
        }
        FixTarget::Transfer(change) => {
            let change = system.changes.get(change);
            format!("change.{}.transfer.budget", change.map_or("", |c| &c.name))
        }
        FixTarget::Within(index) => {
            let kind = system.requirements.get(index).map_or("", Requirement::name);
            let same = |r: &&Requirement| r.name() == kind;
            let before = system.requirements.iter().take(index).filter(same).count();
            format!("require.{kind}[{before}].within")
        }
    }
}

/// The search for fixes of one component of CPUs.
struct Search<'a> {
    system: &'a System,
    edges: &'a [Edge],
    component: &'a Component,
    trials: &'a Trials,
    /// A copy of the system, in which one parameter at a time is another.
    changed: &'a RefCell<System>,
    /// The fixes by one wcet or one period that were looked for: they mend the whole component, so
    /// they are the same for each of its refusals.
    found: RefCell<Vec<(FixTarget, Option<Fix>)>>,
    /// The tasks that use most of the processor, those that use most first.
    largest: Vec<TaskId>,
}

impl<'a> Search<'a> {
    fn new(
        system: &'a System,
        edges: &'a [Edge],
        component: &'a Component,
        (trials, changed): (&'a Trials, &'a RefCell<System>),
    ) -> Search<'a> {
        let mut search = Search {
            system,
            edges,
            component,
            trials,
            changed,
            found: RefCell::default(),
            largest: Vec::new(),
        };
        let tasks = tasks(system).map(|(id, _)| id);
        let mut tasks: Vec<TaskId> = tasks.filter(|&id| search.is_candidate(id)).collect();
        tasks.sort_by_key(|task| core::cmp::Reverse(share_ppm(&system.tasks[task.index()])));
        tasks.truncate(MAX_CANDIDATES);
        search.largest = tasks;
        search
    }

    /// The answer of `ask` about the system with this value of one parameter.
    fn with<T>(&self, target: FixTarget, value: Span, ask: impl FnOnce(&System) -> T) -> T {
        let mut changed = self.changed.borrow_mut();
        let now = get(&mut changed, target);
        set(&mut changed, target, value);
        let answer = ask(&changed);
        restore(&mut changed, self.system, target, now);
        answer
    }

    fn now(&self, target: FixTarget) -> Option<Span> {
        get(&mut self.changed.borrow_mut(), target)
    }

    fn admits(&self, target: FixTarget, value: Span) -> Checked<bool> {
        self.with(target, value, |changed| {
            // Deadlines and periods decide which precedence is consistent.
            let edges = match target {
                FixTarget::Deadline(_) | FixTarget::Period(_) => &precedence::edges(changed)[..],
                _ => self.edges,
            };
            self.trials.admit(changed, edges, self.component)
        })
    }

    /// The value nearest to `end` with which the system means something.
    fn meaningful(&self, target: FixTarget, now: Span, end: Span) -> Checked<Span> {
        let means = |value| -> Checked<bool> {
            self.trials.pay(self.system)?;
            Ok(self.with(target, value, |changed| changed.validate().is_ok()))
        };
        match means(end)? || !means(now)? {
            true => Ok(end),
            false => border(end, now, means),
        }
    }

    /// The value next to the refused ones that admits.
    fn between(&self, target: FixTarget, refused: Span, admitted: Span) -> Checked<Span> {
        border(refused, admitted, |value| self.admits(target, value))
    }

    /// The same where the end of the range may be too much: in sixteenths of the way.
    fn step_by_step(&self, target: FixTarget, end: Span) -> Checked<Option<Fix>> {
        let Some(now) = self.now(target) else {
            return Ok(None);
        };
        let mut refused = now;
        for step in 1..=16 {
            let way = u128::from(now.abs_diff(end).as_ns()) * step / 16;
            let way = u64::try_from(way).map_or(Span::MAX, Span::from_ns);
            let value = if end > now {
                now.saturating_add(way)
            } else {
                now.saturating_sub(way)
            };
            if value != refused && self.admits(target, value)? {
                let to = self.between(target, refused, value)?;
                return Ok(Some(self.told(target, now, to)));
            }
            refused = value;
        }
        Ok(None)
    }

    fn told(&self, target: FixTarget, from: Span, to: Span) -> Fix {
        Fix {
            target,
            parameter: parameter(self.system, target),
            from,
            to,
        }
    }

    /// The value nearest to the present one that admits, between it and its `end`: bisection.
    fn fix(&self, target: FixTarget, end: fn(Span) -> Span) -> Checked<Option<Fix>> {
        let Some(now) = self.now(target) else {
            return Ok(None);
        };
        let end = self.meaningful(target, now, end(now))?;
        if now == end || !self.admits(target, end)? {
            return Ok(None);
        }
        let to = self.between(target, now, end)?;
        Ok(Some(self.told(target, now, to)))
    }

    /// Whether it is a real-time task of the component; one member of a gang stands for all.
    fn is_candidate(&self, task: TaskId) -> bool {
        let it = &self.system.tasks[task.index()];
        it.class.is_real_time()
            && self.component.contains(it.cpu)
            && in_step(self.system, task).first() == Some(&task)
    }

    /// Those whose wcet or period is tried: the late one first, then those that use most.
    fn candidates(&self, own: Option<TaskId>) -> Vec<TaskId> {
        let own = own.filter(|&task| self.is_candidate(task));
        let others = self
            .largest
            .iter()
            .copied()
            .filter(|&task| Some(task) != own);
        own.into_iter().chain(others).take(MAX_CANDIDATES).collect()
    }

    /// [`Search::fix`], once for each wcet or period.
    fn fix_once(&self, target: FixTarget, end: fn(Span) -> Span) -> Checked<Option<Fix>> {
        let known = |(of, fix): &(FixTarget, Option<Fix>)| (*of == target).then(|| fix.clone());
        if let Some(fix) = self.found.borrow().iter().find_map(known) {
            return Ok(fix);
        }
        let fix = self.fix(target, end)?;
        let is_common = match target {
            FixTarget::Budget(task) | FixTarget::Period(task) => self.largest.contains(&task),
            _ => false,
        };
        if is_common {
            self.found.borrow_mut().push((target, fix.clone()));
        }
        Ok(fix)
    }

    /// The fix with the smallest relative change among the same parameter of several tasks.
    fn smallest(
        &self,
        targets: impl Iterator<Item = FixTarget>,
        end: fn(Span) -> Span,
    ) -> Checked<Option<Fix>> {
        let mut best: Option<Fix> = None;
        for target in targets {
            let Some(fix) = self.fix_once(target, end)? else {
                continue;
            };
            if best.as_ref().is_none_or(|b| is_smaller(&fix, b)) {
                best = Some(fix);
            }
        }
        Ok(best)
    }

    /// The smallest fix that was found for another refusal of the component, which it mends whole:
    /// it is known when no trials are left, too.
    fn known(&self) -> Option<Fix> {
        let found = self.found.borrow();
        let known = |is_of: fn(FixTarget) -> bool| {
            let all = found.iter().filter(|(target, _)| is_of(*target));
            let fixes = all.filter_map(|(_, fix)| fix.clone());
            fixes.reduce(|best, fix| if is_smaller(&fix, &best) { fix } else { best })
        };
        known(|target| matches!(target, FixTarget::Budget(_)))
            .or_else(|| known(|target| matches!(target, FixTarget::Period(_))))
    }

    fn search(&self, refusal: &Refusal) -> Checked<Option<Fix>> {
        self.trials.are_left()?;
        for (target, end) in supply::candidates(self.system, refusal.subject) {
            if let Some(fix) = self.step_by_step(target, end)? {
                return Ok(Some(fix));
            }
        }
        let own = match refusal.subject {
            Subject::Task(task) => Some(task),
            Subject::Cpu(_)
            | Subject::Scheduler(_)
            | Subject::Requirement(_)
            | Subject::Graph(_)
            | Subject::Group(_) => None,
        };
        let candidates = self.candidates(own);
        let budgets = candidates.iter().map(|&task| FixTarget::Budget(task));
        if let Some(fix) = self.smallest(budgets, |_| TICK)? {
            return Ok(Some(fix));
        }
        if let Some(task) = own {
            let within = self.system.requirements.iter().enumerate();
            let within = within.filter(|(_, r)| match r {
                Requirement::Response { task: t, .. } => *t == task,
                Requirement::Chain { .. } | Requirement::Jitter { .. } => false,
            });
            let within = within.map(|(index, _)| FixTarget::Within(index));
            for target in within.chain([FixTarget::Deadline(task)]) {
                if let Some(fix) = self.fix(target, far)? {
                    return Ok(Some(fix));
                }
            }
        }
        if let Subject::Requirement(index) = refusal.subject {
            let target = FixTarget::Within(index);
            if let Some(fix) = self.fix(target, far)? {
                return Ok(Some(fix));
            }
        }
        let periods = candidates.iter().map(|&task| FixTarget::Period(task));
        self.smallest(periods, far)
    }
}

/// Whether a fix changes its parameter by a smaller part than the other.
fn is_smaller(fix: &Fix, other: &Fix) -> bool {
    let change = |f: &Fix| u128::from(f.from.abs_diff(f.to).as_ns());
    let [mine, theirs] = [fix, other].map(|f| u128::from(f.from.as_ns()));
    change(fix) * theirs < change(other) * mine
}

/// A thousand times the present value: a fix beyond would be none.
fn far(now: Span) -> Span {
    now.saturating_mul(1_000)
}

/// The component that a refusal speaks of.
fn place(system: &System, components: &[Component], subject: Subject) -> Option<usize> {
    let of_task = |task: TaskId| system.tasks.get(task.index()).map(|t| t.cpu);
    let cpu = match subject {
        Subject::Task(task) => of_task(task)?,
        Subject::Cpu(cpu) => cpu,
        Subject::Scheduler(id) => system.schedulers.get(id.index())?.cpu,
        Subject::Graph(_) | Subject::Group(_) => return None,
        Subject::Requirement(index) => {
            let task = system
                .requirements
                .get(index)
                .and_then(|r| r.tasks().first());
            of_task(*task?)?
        }
    };
    components.iter().position(|c| c.contains(cpu))
}

/// Gives every refusal its fix, or says why it has none. About 40 decisions per candidate, as long
/// as there are trials.
pub(crate) fn add_fixes(system: &System, edges: &[Edge], verdict: &mut Verdict) -> Checked<()> {
    let components = Component::all(system, edges);
    let trials = Trials::new();
    let mut admitted = Vec::with_capacity(components.len());
    for component in &components {
        admitted.push(trials.admit(system, edges, component).unwrap_or(false));
    }
    let changed = RefCell::new(system.clone());
    let mut searches: Vec<Option<Search<'_>>> = components.iter().map(|_| None).collect();
    for refusal in &mut verdict.refusals {
        let Some(mine) = place(system, &components, refusal.subject) else {
            continue;
        };
        let search = searches[mine].get_or_insert_with(|| {
            Search::new(system, edges, &components[mine], (&trials, &changed))
        });
        let found = match search.search(refusal) {
            Err(AnalysisError::TooLong { .. }) => match search.known() {
                None => {
                    refusal.advice =
                        "whether a single parameter mends it would take too long to search".into();
                    continue;
                }
                known => known,
            },
            found => found?,
        };
        let mut others = admitted.iter().enumerate();
        let others = others.any(|(index, ok)| index != mine && !ok);
        refusal.advice = match (&found, others) {
            (Some(fix), false) => format!("{fix} mends it"),
            (Some(fix), true) => format!(
                "no single parameter mends the whole system, for other CPUs are refused as well; \
                 {fix} mends this one"
            ),
            (None, _) => "no single parameter mends it: it takes changes to several tasks, or \
                          another placement"
                .into(),
        };
        refusal.fix = found.filter(|_| !others);
    }
    Ok(())
}
