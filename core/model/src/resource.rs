//! Resources that jobs lock, and the protocols that bound how long they wait for each other.

use alloc::string::String;

use crate::id::ResourceId;
use crate::time::{Ns, Work};

/// Something that one job, or several readers, may use at a time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Resource {
    /// Unique among the resources of a system.
    pub name: String,
    /// The protocol that keeps the wait for it short.
    pub protocol: Protocol,
    /// What becomes of a holder whose server runs out of budget.
    pub at_budget_end: AtBudgetEnd,
}

/// Protocols against unbounded priority inversion.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Protocol {
    /// The holder is as urgent as the most urgent job that waits for it (Sha, Rajkumar and
    /// Lehoczky 1990).
    #[default]
    Inheritance,
    /// The holder is as urgent as the most urgent task that uses it, from the moment it locks.
    ImmediateCeiling,
    /// No job starts unless it could lock everything it may need (Baker 1991).
    StackResource,
    /// The holder is not preempted by its siblings.
    NonPreemptive,
    /// Across CPUs: requests are served first come, first served, and waiting is spinning without
    /// preemption (Gai, Lipari and Di Natale 2001).
    Spin,
    /// Across CPUs: nobody waits, because a plan says who uses it when. For segments of groups only
    /// (Spring §2.2).
    Planned,
}

impl Protocol {
    /// All of them, for readers of files.
    pub const ALL: [Protocol; 6] = [
        Protocol::Inheritance,
        Protocol::ImmediateCeiling,
        Protocol::StackResource,
        Protocol::NonPreemptive,
        Protocol::Spin,
        Protocol::Planned,
    ];

    /// The word for this protocol in files and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Protocol::Inheritance => "inheritance",
            Protocol::ImmediateCeiling => "immediate-ceiling",
            Protocol::StackResource => "srp",
            Protocol::NonPreemptive => "non-preemptive",
            Protocol::Spin => "spin",
            Protocol::Planned => "planned",
        }
    }
}

/// What becomes of a holder whose server runs out of budget.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AtBudgetEnd {
    /// It finishes its section; the next budget pays (Davis and Burns 2006).
    #[default]
    Overrun,
    /// A section that does not fit into what is left is not begun (SIRAP: Behnam et al. 2007).
    CheckFirst,
}

impl AtBudgetEnd {
    /// The word in files and messages.
    pub const fn name(self) -> &'static str {
        match self {
            AtBudgetEnd::Overrun => "overrun",
            AtBudgetEnd::CheckFirst => "check-first",
        }
    }
}

/// One critical section of every job of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Use {
    /// The resource that is locked.
    pub resource: ResourceId,
    /// Longest execution while it is locked, inner sections included.
    pub length: Work<Ns>,
    /// Alone, or with other readers.
    pub mode: Mode,
    /// The resource whose section this one is nested in.
    pub inside: Option<ResourceId>,
}

/// How a resource is locked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// Alone.
    #[default]
    Exclusive,
    /// Together with others that lock it so.
    Shared,
}

impl Mode {
    /// The word in files and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Exclusive => "exclusive",
            Mode::Shared => "shared",
        }
    }
}
