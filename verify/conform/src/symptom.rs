//! What was seen to be wrong, before it has its name.

/// Why a thread that was picked is not ready.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Why {
    /// It never was, or its place belongs to another thread now.
    Foreign,
    /// It has blocked, or completed its job.
    Left,
    /// It has no budget.
    Exhausted,
}

/// What was seen. Shrinking keeps it; the name may need experiments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Symptom {
    /// A pick that is not ready.
    NotReady(Why),
    /// Nobody runs, and somebody ready would never run again.
    Lost,
    /// Nobody runs although somebody is ready (and would run later).
    Idle,
    /// Somebody more urgent was passed over.
    Order,
    /// An equal that goes first was passed over.
    Tie,
    /// A second turn before an equal's first, or a turn without end among equals.
    Turns,
    /// A job that had begun was preempted.
    Preempted,
    /// Two answers to one question.
    Unstable,
    /// The twin answered differently.
    Twin,
    /// More work than the budget.
    BeyondBudget,
    /// A choice until an instant that has come.
    TurnEnd,
    /// A wake-up that came before its block was lost by the core.
    LostWakeUp,
    /// What a child answers changes what others see, or is believed.
    Uncontained,
    /// A panic.
    Panic,
}

/// A symptom with the words that explain it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Violation {
    pub(crate) symptom: Symptom,
    /// What is wrong, with the names of the threads.
    pub(crate) detail: String,
    /// For a pick that has left: telling the policy again that it left takes it away.
    pub(crate) left_twice: bool,
}

impl Violation {
    pub(crate) fn new(symptom: Symptom, detail: String) -> Violation {
        Violation {
            symptom,
            detail,
            left_twice: false,
        }
    }
}
