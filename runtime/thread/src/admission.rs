//! Admission of a running system, asked by the thread that wants something.
//!
//! The guaranteed threads of one CPU are a [`System`] of the model. A thread that adds or changes
//! one asks the function that judges the changes of a file ([`admit_transition`]), about the system
//! as it would be. It asks on its own time: the question costs as much as an analysis, and others
//! preempt it. The former terms of a thread count in each answer until the zero-lag instant of its
//! last job has passed, and as long after it as `left` says.
//!
//! A CPU with a tree has its schedulers in the system, too, and each thread is admitted on the
//! supply of its home. `tree` has the changes of a tree, `loan` counts the time of loans,
//! `replaced` has policies that replace others.

mod floor;
#[cfg(test)]
mod histories;
mod left;
mod loan;
mod promises;
mod replaced;
mod tree;

use std::sync::Arc;

use punctual_analysis::{
    AnalysisError, Exactness, Verdict, When, admit, admit_transition_bounds, is_admitted,
};
use punctual_kern::NodeId;
use punctual_linux::Who;
use punctual_model::{
    Class, CpuId, Instant, Machine, Ns, PolicyKind, SchedulerId, Span, System, Task, Work,
};

use crate::constraint::Constraint;
use left::{Former, Past};
use loan::{Loan, less_favourable};
use replaced::Replaced;
use tree::Branch;

pub(crate) use promises::Promises;
pub(crate) use tree::{Moved, PROMOTED};

/// Why a constraint was not granted.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NotAdmitted {
    /// Somebody could be late; the verdict has a witness and a fix.
    Refused(Box<Verdict>),
    /// The parameters mean nothing, e.g. a period of zero.
    Meaningless(String),
    /// The analysis could not finish.
    Analysis(AnalysisError),
    /// The system is fine before the change and after it, but no instant is known at which one may
    /// follow the other while others run.
    NoSafeInstant(String),
    /// A thread with a guarantee would be suspended for longer, or more often, than it has declared
    /// ([`Constraint::suspension`]).
    Undeclared(String),
    /// The scheduler was demoted, or never was.
    NoScheduler(NodeId),
}

/// A granted constraint, by which it is given back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Grant(u64);

/// The promise to the threads of one name on one CPU.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Promise {
    /// The CPU, by its place in the run.
    pub cpu: usize,
    /// The name of the threads.
    pub name: String,
    /// The largest bound of their responses that any verdict gave while they were there; `None`:
    /// one had none.
    pub response_bound: Option<Span<Ns>>,
    /// How that is to be understood.
    pub exactness: Exactness,
}

/// The owner of a task of the system.
#[derive(Clone, Debug)]
struct Owner {
    grant: Grant,
    name: String,
    /// The thread, once it is created.
    thread: Option<Who>,
    /// From its end until its bandwidth is free.
    lag: Span<Ns>,
    /// How long schedulers blocked it, each until when that counts.
    blocked: Vec<(Instant<Ns>, Span<Ns>)>,
}

/// The guarantees of one CPU.
#[derive(Debug)]
pub(crate) struct Admission {
    state: State,
    next: u64,
    /// Places of schedulers at which the policy in the core is not fixed priority.
    others: Vec<usize>,
    promises: Arc<Promises>,
    /// Smaller budgets come to nothing on this machine.
    floor: Work<Ns>,
}

/// The guarantees, with their owners.
#[derive(Clone, Debug)]
struct State {
    system: System,
    /// One per task of the system.
    owners: Vec<Owner>,
    /// One per scheduler of the system.
    branches: Vec<Branch>,
    loans: Vec<Loan>,
    replaced: Vec<Replaced>,
    /// Former terms of threads: another constraint or home, or all before the end. In that order.
    former: Vec<Former>,
    /// The last zero-lag instant of those that were too many to keep.
    unkept: Option<Instant<Ns>>,
}

impl Admission {
    pub(crate) fn new(
        policy: PolicyKind<Ns>,
        machine: Machine,
        promises: Arc<Promises>,
    ) -> Admission {
        let cpu = punctual_model::Cpu {
            name: "0".to_owned(),
            host: None,
            policy,
        };
        let state = State {
            system: System {
                cpus: vec![cpu],
                free_phases: true,
                machine,
                ..System::default()
            },
            owners: Vec::new(),
            branches: Vec::new(),
            loans: Vec::new(),
            replaced: Vec::new(),
            former: Vec::new(),
            unkept: None,
        };
        Admission {
            state,
            next: 0,
            others: Vec::new(),
            promises,
            floor: Work::ZERO,
        }
    }

    /// Grants a constraint to a thread of `home` if everybody, it included, is on time then.
    pub(crate) fn add(
        &mut self,
        (name, home): (&str, NodeId),
        constraint: &Constraint,
        now: Instant<Ns>,
    ) -> Result<Grant, NotAdmitted> {
        self.forget_until(now);
        let grant = self.number();
        let mut changed = self.state.clone();
        let mut task = constraint.task(&task_name(name, grant));
        // It may arrive at any instant.
        task.phase = Span::ZERO;
        task.scheduler = changed.place_of(home)?;
        changed.system.tasks.push(task);
        changed.owners.push(Owner {
            grant,
            name: name.to_owned(),
            thread: None,
            lag: constraint.lag(),
            blocked: Vec::new(),
        });
        self.not_below_the_floor(&changed, changed.system.tasks.len() - 1)?;
        if let Some(system) = self.state.joins_quickly(&changed)? {
            self.promises.joined(system, &changed.owners);
            self.state = changed;
            return Ok(grant);
        }
        let verdict = self.state.judge(&changed, now)?;
        self.take(changed, &verdict);
        Ok(grant)
    }

    /// The thread that a constraint was granted to has been created.
    pub(crate) fn bind(&mut self, grant: Grant, thread: Option<Who>) {
        if let Some(place) = self.state.place(grant) {
            self.state.owners[place].thread = thread;
        }
    }

    /// Whether the thread that a constraint was granted to has not ended.
    pub(crate) fn lives(&self, grant: Grant) -> bool {
        self.state.place(grant).is_some()
    }

    /// The thread has ended: its bandwidth is free when its lag is zero.
    pub(crate) fn remove(&mut self, grant: Grant, now: Instant<Ns>) {
        if let Some(place) = self.state.place(grant) {
            // What was held for an exchange that did not begin counts no longer than its lag.
            self.settle(grant, now);
            self.state.was(place, now);
            let _ = self.state.owners.remove(place);
            let _ = self.state.system.tasks.remove(place);
        }
    }

    /// The thread never came to be: its bandwidth is free at once.
    pub(crate) fn withdraw(&mut self, grant: Grant) {
        self.remove(grant, Instant::ZERO);
        self.state.former.retain(|former| former.grant != grant);
    }

    /// The verdict about those that run now.
    pub(crate) fn verdict(&self) -> Result<Verdict, AnalysisError> {
        let mut verdict = admit(&self.state.judged())?;
        self.state.without_entries(&mut verdict);
        // What comes behind stands in for background work.
        verdict.tasks.truncate(self.state.owners.len());
        Ok(verdict)
    }

    fn number(&mut self) -> Grant {
        self.next += 1;
        Grant(self.next - 1)
    }

    /// A state that was judged is the state from now on.
    fn take(&mut self, changed: State, verdict: &Verdict) {
        self.state = changed;
        self.promises.write(&self.state.owners, verdict);
    }

    fn forget_until(&mut self, now: Instant<Ns>) {
        self.state.forget_until(now);
    }
}

impl State {
    fn place(&self, grant: Grant) -> Option<usize> {
        let is_it = |owner: &Owner| owner.grant == grant;
        self.owners.iter().position(is_it)
    }

    fn granted(&self, grant: Grant) -> Result<usize, NotAdmitted> {
        let nothing = || NotAdmitted::Meaningless("nothing was granted".to_owned());
        self.place(grant).ok_or_else(nothing)
    }

    fn forget_until(&mut self, now: Instant<Ns>) {
        self.forget_former(now);
        while let Some(place) = (0..self.loans.len()).find(|place| self.is_loan_over(*place, now)) {
            let _ = self.loans.remove(place);
        }
        self.forget_replaced(now);
        self.forget_branches(now);
    }

    /// The system that the analysis is asked about. In a tree every scheduler may have background
    /// work, which uses up budgets; on a single level it has no influence on anything.
    fn judged(&self) -> System {
        let mut system = self.system.clone();
        self.count_replaced(&mut system);
        if self.branches.is_empty() {
            return system;
        }
        let schedulers = system.schedulers.len();
        let places = (0..schedulers).map(|place| Some(SchedulerId(small(place))));
        for place in core::iter::once(None).chain(places) {
            let policy = match place {
                None => system.cpus[0].policy,
                Some(id) => system.schedulers[id.index()].policy,
            };
            if !matches!(policy, PolicyKind::Tdm { .. }) {
                let at = place.map_or("cpu".to_owned(), |id| id.0.to_string());
                let name = format!("background:{at}:node");
                let mut task = Task::new(name, CpuId(0), Class::Aperiodic);
                task.scheduler = place;
                system.tasks.push(task);
            }
        }
        self.count_loans(&mut system);
        system
    }

    /// The system that a thread joins, where nothing but the system after it counts and a yes is
    /// enough: it has no schedulers, and nothing that has left still has an effect. `None`: judge
    /// it, for a verdict with a witness and a fix if it is refused.
    fn joins_quickly(&self, changed: &State) -> Result<Option<System>, NotAdmitted> {
        let plain = self.branches.is_empty() && self.loans.is_empty() && self.replaced.is_empty();
        if !plain || !self.former.is_empty() || self.unkept.is_some() {
            return Ok(None);
        }
        let after = changed.judged();
        meaning(&after)?;
        let admitted = is_admitted(&after).map_err(NotAdmitted::Analysis)?;
        Ok(admitted.then_some(after))
    }

    /// Judges that this state becomes another, and in case of loans also what is left to the
    /// lenders: the verdict is the less favourable one for each task.
    fn judge(&self, changed: &State, now: Instant<Ns>) -> Result<Verdict, NotAdmitted> {
        at_once(self.judge_when(changed, now)?)
    }

    /// The same where the change can wait until something is idle.
    fn judge_when(
        &self,
        changed: &State,
        now: Instant<Ns>,
    ) -> Result<(Verdict, Option<Idle>), NotAdmitted> {
        let mut after = changed.judged();
        let Past {
            systems: mut past,
            deadlines_only,
        } = self.counts(&after, now)?;
        let (mut verdict, mut idle) = judge(&past, after.clone())?;
        changed.without_entries(&mut verdict);
        if deadlines_only {
            changed.promise_deadlines(&mut verdict);
        }
        if !changed.loans.is_empty() {
            for system in past.iter_mut().chain([&mut after]) {
                changed.take_loans(system)?;
            }
            let (mut others, also) = judge(&past, after)?;
            changed.without_entries(&mut others);
            less_favourable(&mut verdict, others);
            idle = Idle::both(idle, also);
        }
        Ok((verdict, idle))
    }
}

/// A part of the tree that has to be idle before a change.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Idle {
    /// A scheduler of the system; `None`: the CPU's own.
    scheduler: Option<String>,
    /// Why.
    ground: String,
}

impl Idle {
    fn both(a: Option<Idle>, b: Option<Idle>) -> Option<Idle> {
        match (a, b) {
            (Some(a), Some(b)) if a.scheduler != b.scheduler => Some(Idle {
                scheduler: None,
                ..a
            }),
            (a, b) => a.or(b),
        }
    }
}

fn small(place: usize) -> u16 {
    u16::try_from(place).unwrap_or(u16::MAX)
}

/// Names of tasks are unique and simple, those of threads need not be.
fn task_name(name: &str, grant: Grant) -> String {
    format!("{}:{}", simple(name), grant.0)
}

fn simple(name: &str) -> String {
    let simple = |c: char| match c {
        '_' | '-' | '.' | ':' => c,
        c if c.is_ascii_alphanumeric() => c,
        _ => '-',
    };
    name.chars().map(simple).collect()
}

/// Whether a system means anything.
pub(crate) fn meaning(system: &System) -> Result<(), NotAdmitted> {
    system.validate().map_err(|errors| {
        let all: Vec<String> = errors.iter().map(ToString::to_string).collect();
        NotAdmitted::Meaningless(all.join("; "))
    })
}

/// The verdict about a change that cannot wait.
fn at_once((verdict, idle): (Verdict, Option<Idle>)) -> Result<Verdict, NotAdmitted> {
    match idle {
        None => Ok(verdict),
        Some(idle) => Err(NotAdmitted::NoSafeInstant(idle.ground)),
    }
}

/// Judges that a running system becomes another now, or when something is idle. The verdict counts
/// the jobs of both while they may meet.
fn judge(past: &[System], after: System) -> Result<(Verdict, Option<Idle>), NotAdmitted> {
    meaning(&after)?;
    let transition = admit_transition_bounds(past, after).map_err(NotAdmitted::Analysis)?;
    let mut verdict = transition.verdict;
    let idle = match transition.when {
        When::AtOnce | When::ZeroLag => None,
        When::Idle => Some(Idle {
            scheduler: transition.idle,
            ground: transition.ground,
        }),
        When::Never => return Err(NotAdmitted::Refused(Box::new(verdict))),
    };
    for row in &mut verdict.tasks {
        let mut meanwhile = transition.meanwhile.iter();
        if let Some((_, bound)) = meanwhile.find(|(name, _)| *name == row.name) {
            let both = row.response_bound.zip(*bound);
            row.response_bound = both.map(|(a, b)| a.max(b));
        }
    }
    Ok((verdict, idle))
}

impl core::fmt::Display for NotAdmitted {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            NotAdmitted::Refused(verdict) => {
                let first = verdict.refusals.first();
                let (name, reason) =
                    first.map_or(("", "refused"), |r| (r.name.as_str(), r.reason.as_str()));
                write!(f, "not admitted: {name}: {reason}")
            }
            NotAdmitted::Meaningless(what) => write!(f, "the constraint means nothing: {what}"),
            NotAdmitted::Analysis(error) => write!(f, "the analysis could not finish: {error}"),
            NotAdmitted::NoSafeInstant(why) => write!(f, "no safe instant for the change: {why}"),
            NotAdmitted::Undeclared(what) => write!(f, "not declared: {what}"),
            NotAdmitted::NoScheduler(_) => write!(f, "the scheduler was demoted, or never was"),
        }
    }
}

impl std::error::Error for NotAdmitted {}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) const ROOT: NodeId = NodeId::ROOT;

    pub(super) fn half(period_ms: u64) -> Constraint {
        let period = Span::from_ms(period_ms);
        Constraint::periodic(period, Work::from_ns(period.as_ns() / 2))
    }

    pub(super) fn at(ms: u64) -> Instant<Ns> {
        Instant::from_ns(ms * 1_000_000)
    }

    pub(super) fn edf() -> Admission {
        let policy = PolicyKind::EarliestDeadlineFirst;
        Admission::new(policy, Machine::default(), Arc::default())
    }

    #[test]
    fn a_full_cpu_refuses_with_a_witness_and_stays_as_it_was() {
        let mut cpu = edf();
        cpu.add(("a", ROOT), &half(10), at(0)).expect("half");
        cpu.add(("a", ROOT), &half(20), at(0))
            .expect("the other half, under the same name");
        let refused = cpu.add(("c", ROOT), &half(40), at(0));
        let Err(NotAdmitted::Refused(verdict)) = refused else {
            panic!("{refused:?}");
        };
        assert!(!verdict.refusals.is_empty());
        assert!(
            cpu.verdict()
                .is_ok_and(|v| v.admitted && v.tasks.len() == 2)
        );
    }

    #[test]
    fn bandwidth_of_a_thread_that_has_ended_is_free_only_when_its_lag_is_zero() {
        let mut cpu = edf();
        let first = cpu.add(("a", ROOT), &half(10), at(0)).expect("half");
        cpu.add(("b", ROOT), &half(10), at(0))
            .expect("the other half");
        cpu.remove(first, at(5));
        assert!(cpu.add(("c", ROOT), &half(10), at(14)).is_err());
        assert!(cpu.add(("c", ROOT), &half(10), at(15)).is_ok());
    }

    #[test]
    fn a_promise_is_the_largest_bound_of_a_name_while_it_lived() {
        let policy = PolicyKind::FixedPriority { preemptive: true };
        let promises: Arc<Promises> = Arc::default();
        let mut cpu = Admission::new(policy, Machine::default(), Arc::clone(&promises));
        let light = |period_ms, priority| {
            let wcet = Work::from_ms(1);
            Constraint::periodic(Span::from_ms(period_ms), wcet).priority(priority)
        };
        let low = cpu.add(("low", ROOT), &light(20, 1), at(0)).expect("alone");
        let high = cpu.add(("high", ROOT), &light(10, 2), at(0)).expect("two");
        cpu.remove(high, at(0));
        cpu.add(("third", ROOT), &light(20, 0), at(30))
            .expect("two again");
        cpu.remove(low, at(30));
        cpu.add(("fourth", ROOT), &light(20, 3), at(40))
            .expect("still taken");
        let promises = promises.read();
        let bounds = promises.iter().map(|p| (p.name.as_str(), p.response_bound));
        let ms = |n| Some(Span::from_ms(n));
        let expected = [
            ("low", ms(2)),
            ("high", ms(1)),
            ("third", ms(3)),
            ("fourth", ms(1)),
        ];
        assert_eq!(bounds.collect::<Vec<_>>(), expected);
    }

    /// A change that the core has done.
    pub(super) fn change(
        cpu: &mut Admission,
        grant: Grant,
        constraint: &Constraint,
        now: Instant<Ns>,
    ) -> Result<(), NotAdmitted> {
        let changed = cpu.replaces(grant, constraint, now)?;
        cpu.accept(Some(changed), now);
        Ok(())
    }

    #[test]
    fn a_change_is_judged_like_a_new_thread() {
        let mut cpu = edf();
        let first = cpu.add(("a", ROOT), &half(10), at(0)).expect("half");
        cpu.add(("b", ROOT), &half(10), at(0))
            .expect("the other half");
        assert!(change(&mut cpu, first, &half(20), at(1)).is_ok());
        let all = Constraint::periodic(Span::from_ms(10), Work::from_ms(9));
        assert!(change(&mut cpu, first, &all, at(2)).is_err());
        let nothing = Constraint::periodic(Span::ZERO, Work::from_ms(9));
        let meaningless = cpu.add(("c", ROOT), &nothing, at(3));
        assert!(matches!(meaningless, Err(NotAdmitted::Meaningless(_))));
    }

    #[test]
    fn the_lag_counts_from_the_instant_at_which_the_core_has_done_it() {
        let tenths = |n| Constraint::periodic(Span::from_ms(10), Work::from_ms(n));
        let mut cpu = edf();
        let a = cpu.add(("a", ROOT), &tenths(9), at(0)).expect("alone");
        let changed = cpu.replaces(a, &tenths(1), at(1)).expect("less");
        cpu.accept(Some(changed), at(5));
        assert!(cpu.add(("c", ROOT), &tenths(9), at(14)).is_err());
        assert!(cpu.add(("c", ROOT), &tenths(9), at(15)).is_ok());
    }

    #[test]
    fn a_thread_that_never_came_to_be_takes_nothing() {
        let mut cpu = edf();
        let first = cpu.add(("a", ROOT), &half(10), at(0)).expect("half");
        cpu.add(("b", ROOT), &half(10), at(0)).expect("the other");
        cpu.remove(first, at(0));
        cpu.withdraw(first);
        assert!(cpu.add(("c", ROOT), &half(10), at(0)).is_ok());
    }

    #[test]
    fn names_of_threads_are_not_those_of_what_is_made_up() {
        let mut cpu = Admission::new(
            PolicyKind::FixedPriority { preemptive: true },
            Machine::default(),
            Arc::default(),
        );
        let scheduler = punctual_model::Scheduler {
            name: "s".to_owned(),
            cpu: CpuId(0),
            parent: None,
            policy: PolicyKind::FixedPriority { preemptive: true },
            priority: punctual_model::Priority::new(9),
            supply: punctual_model::Supply::Shared,
            trust: punctual_model::Trust::Inline,
            quota: None,
            receiver: None,
            fallback: None,
            code: None,
        };
        let tree = [(NodeId::new(1, 0), ROOT, scheduler)];
        cpu.plant(tree.into_iter()).expect("planted");
        for name in ["background", "background"] {
            let added = cpu.add((name, ROOT), &half(100).priority(1), at(0));
            assert!(added.is_ok(), "{added:?}");
        }
    }
}
