//! Does a log obey the rules of scheduling? The predicates of the field, over what the log states.
//!
//! The vocabulary is that of Prosa's `behavior` and `model` folders: one thread runs per CPU; only
//! pending jobs run; the processor idles only when nothing is ready (work conserving); among ready
//! entities the policy's order holds; budgets and supply by windows; exclusion; precedence; release
//! instants and completions. A log states by which key each entity is queued, so order is a
//! comparison of keys; each key is derived again from the model where the model gives it. Runs in
//! virtual time and on a live machine are judged alike: an entry after its armed instant is late,
//! and only there is a budget exceeded lawfully.

mod agenda;
mod budget;
mod change;
mod choice;
mod delegate;
mod entry;
mod firing;
mod gang;
mod job;
mod key;
mod lock;
mod manage;
mod node;
mod plain;
mod planned;
mod precedence;
mod queue;
mod resource;
mod server;
mod supply;
mod thread;

use std::fmt;

use punctual_model::Instant;
use punctual_trace::Log;

/// Most violations listed per CPU; one broken entry breaks many after it.
const MAX_LISTED: usize = 100;

/// A rule that every run obeys.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Rule {
    /// Instants never decrease.
    TimeRunsForward,
    /// An entry is one event, its changes, one decision.
    EntriesAreWhole,
    /// At most one thread runs, the one of the last decision (invariant I2).
    OneThreadRuns,
    /// The thread that runs is ready: it has a job, does not wait, has budget.
    OnlyReadyRuns,
    /// Nobody is ready and has supply while the processor idles (Prosa: `work_conserving`). Nor
    /// does a tile idle while a task of it that runs to completion can go on.
    WorkConserving,
    /// In each scheduler from the CPU's own down, the most urgent that is ready and has supply is
    /// chosen, as the policy orders them; real-time work first.
    PolicyOrder,
    /// Nobody runs on a server without budget; what comes and goes is what the server's kind says.
    SupplyRespected,
    /// In a slot runs its owner alone, and nobody between slots.
    SlotRespected,
    /// A resource has one exclusive holder, or readers, or nobody; locked by who declared and
    /// asked.
    LocksExclude,
    /// Nobody waits for what is free, nor for supply that is there.
    LocksPassOn,
    /// A section is as long as declared, or is lent nothing any more.
    SectionsBounded,
    /// A child that decides on its own supply runs what it lawfully answered; anything else it
    /// answers is refused with its reason, and it pays for deciding.
    ChildAnswersChecked,
    /// A scheduler acts on its own subtree alone, within its quota.
    PowerRespected,
    /// No scheduler delegates more than its supply, also where slices end and come again; a thread
    /// on a slice that ends goes on on the supply of its own scheduler (INV-TIME).
    TimeConserved,
    /// No thread executes more than its allotments, one per release (invariant I4).
    BudgetRespected,
    /// A job starts when the jobs that it depends on are done.
    PrecedenceRespected,
    /// Jobs are released at their instants, in order, none left out.
    ReleasesInTime,
    /// Arrival, deadline and received work of a job fit together from release to completion.
    JobArithmetic,
    /// Every released job starts in order and ends once, or is pending at the end.
    JobsEndOnce,
    /// Missing time lies within the interval that it is taken from.
    MissingWithinInterval,
    /// An actor goes from state to state as CompOSe's Fig. 5 says, or as Fig. 6 where it runs to
    /// completion; one is active on a tile at a time.
    ActorStates,
    /// A firing begins when its tokens and its space are there. A task that runs to completion
    /// waits for a FIFO when they are not.
    FiringRules,
    /// No more tokens leave a FIFO than came, and no more are in it than it holds.
    TokensConserved,
    /// The firings of a tile begin in their static order, where it has one.
    StaticOrder,
    /// The members of a gang arrive at one instant of their clocks, and start within the bound of
    /// their skew where nothing disturbs them.
    GangInStep,
    /// The segments of a CPU are executed in the order of the plan in force, each once, by its
    /// thread and with its wcet as budget. Those of a dead group are not, but for its handlers.
    /// None starts before its release, or behind the cutoff of a plan that is being made.
    PlanFollowed,
    /// A segment starts when all segments that it needs are done, on whatever CPU: those before it
    /// on its CPU, on a resource with which it conflicts, and by precedence.
    PlanNeeds,
    /// Where no time is missing and nobody overran, no segment starts later than planned.
    PlanInTime,
}

impl Rule {
    /// The rule in a word, for messages and tests.
    pub const fn name(self) -> &'static str {
        match self {
            Rule::TimeRunsForward => "time-runs-forward",
            Rule::EntriesAreWhole => "entries-are-whole",
            Rule::OneThreadRuns => "one-thread-runs",
            Rule::OnlyReadyRuns => "only-ready-runs",
            Rule::WorkConserving => "work-conserving",
            Rule::PolicyOrder => "policy-order",
            Rule::SupplyRespected => "supply-respected",
            Rule::SlotRespected => "slot-respected",
            Rule::LocksExclude => "locks-exclude",
            Rule::LocksPassOn => "locks-pass-on",
            Rule::SectionsBounded => "sections-bounded",
            Rule::ChildAnswersChecked => "child-answers-checked",
            Rule::PowerRespected => "power-respected",
            Rule::TimeConserved => "time-conserved",
            Rule::BudgetRespected => "budget-respected",
            Rule::PrecedenceRespected => "precedence-respected",
            Rule::ReleasesInTime => "releases-in-time",
            Rule::JobArithmetic => "job-arithmetic",
            Rule::JobsEndOnce => "jobs-end-once",
            Rule::MissingWithinInterval => "missing-within-interval",
            Rule::ActorStates => "actor-states",
            Rule::FiringRules => "firing-rules",
            Rule::TokensConserved => "tokens-conserved",
            Rule::StaticOrder => "static-order",
            Rule::GangInStep => "gang-in-step",
            Rule::PlanFollowed => "plan-followed",
            Rule::PlanNeeds => "plan-needs",
            Rule::PlanInTime => "plan-in-time",
        }
    }
}

/// A rule broken somewhere.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// Which rule.
    pub rule: Rule,
    /// Name of the CPU.
    pub cpu: String,
    /// The instant of the entry.
    pub now: Instant,
    /// The mistake, with the values.
    pub detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rule, cpu, now) = (self.rule.name(), &self.cpu, self.now.ticks());
        write!(f, "{rule}: CPU {cpu}, tick {now}: {}", self.detail)
    }
}

/// Judges a log; empty when it obeys every rule. Violations stand in order of CPU and time, those
/// of precedence, graphs and gangs last; at most a hundred per CPU. O(records · threads of a CPU):
/// for proof, not for speed.
pub fn check(log: &Log) -> Vec<Violation> {
    let mut violations = Vec::new();
    let cpus = log.cpus.len().min(log.tables.cpus.len());
    for cpu in 0..cpus {
        let found = entry::judge(log, cpu);
        violations.extend(found.into_iter().take(MAX_LISTED));
    }
    let of_precedence = precedence::judge(log, cpus);
    violations.extend(of_precedence.into_iter().take(MAX_LISTED));
    violations.extend(firing::judge(log).into_iter().take(MAX_LISTED));
    violations.extend(plain::judge(log).into_iter().take(MAX_LISTED));
    violations.extend(gang::judge(log, cpus).into_iter().take(MAX_LISTED));
    violations.extend(planned::judge(log, cpus).into_iter().take(MAX_LISTED));
    violations
}
