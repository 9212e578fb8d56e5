//! The seam to policies: which ready thread runs next.

use punctual_model::{Instant, Priority, ThreadId, Work};

/// What a policy may know about a ready thread. It never sees the thread itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Attributes {
    /// Urgency from the file.
    pub priority: Priority,
    /// Absolute deadline by which to order: that of the job, later when the job lives on a later
    /// job's budget. [`Instant::MAX`] without a deadline.
    pub absolute_deadline: Instant,
    /// Arrival of the job: the first tie-break.
    pub release: Instant,
    /// Order in the file: the last tie-break.
    pub order: u32,
}

/// A policy's choice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "the processor goes to whom the policy chose"]
pub struct Pick {
    /// Who runs; `None`: nobody that this policy orders.
    pub entity: Option<ThreadId>,
    /// Ask again at this instant at the latest (the end of a turn, the start of a slot); `None`:
    /// until something happens.
    pub until: Option<Instant>,
}

impl Pick {
    /// Nobody wants to run.
    pub const NOBODY: Pick = Pick {
        entity: None,
        until: None,
    };

    /// This one, until something happens.
    #[inline]
    pub const fn run(entity: ThreadId) -> Pick {
        Pick {
            entity: Some(entity),
            until: None,
        }
    }
}

/// Decides which of the ready entities of one scheduler runs next.
///
/// An entity is a thread, or a child scheduler that stands among them under an index of its own;
/// the policy need not know which. The core keeps the states, the jobs and the budgets; a policy
/// keeps an order of ready entities, usually a [`crate::ReadyQueue`]. Contract:
/// * `wake` and `block` alternate for each thread; a thread that runs stays in the ready set.
/// * `charge` comes before anything else of an entry, `pick` last, once or more.
/// * `pick` returns an entity of the ready set, or nobody only when that set is empty (work
///   conservation; a policy that idles on purpose says so in its documentation, and says until
///   when). Called again at the same instant without a change in between, it returns the same.
///   The fast path in trees may ask, and leave it to the slow path to ask again.
/// * A step that stands for several calls and a pick (`yield_to_next`, `wake_to_run`,
///   `block_to_next`, `let_inherit`, `hand_to`) says only who runs: the core sets no timer for the
///   end of a turn. So a policy takes it only where its `pick` would name the same entity with
///   `until` as `None`; one with turns of a length leaves them as they are. A policy that passes
///   calls on to another one passes these on too, or none of them.
/// * No method allocates; each costs at most O(log n).
/// * A policy depends on its calls alone: no clock, no randomness of its own.
///
/// Methods with a default body are for policies with state beyond the order.
pub trait Policy {
    /// A thread comes into this policy's care, not ready yet.
    fn attach(&mut self, thread: ThreadId) {
        let _ = thread;
    }

    /// A thread leaves for good; it is not ready.
    fn detach(&mut self, thread: ThreadId) {
        let _ = thread;
    }

    /// A thread becomes ready.
    fn wake(&mut self, thread: ThreadId, attributes: &Attributes);

    /// A thread is no longer ready (it blocks, has no job, or no budget).
    fn block(&mut self, thread: ThreadId);

    /// A ready thread's attributes have changed (the priority that it inherits by a lock).
    fn update(&mut self, thread: ThreadId, attributes: &Attributes) {
        self.block(thread);
        self.wake(thread, attributes);
    }

    /// A ready thread goes on with a new budget and its attributes: a point of preemption also
    /// where it is not preempted otherwise, since others count on one budget at a time. It keeps
    /// its turn where there are turns.
    fn renew(&mut self, thread: ThreadId, attributes: &Attributes) {
        self.block(thread);
        self.wake(thread, attributes);
    }

    /// The running thread lets others of the same urgency go first.
    fn yield_now(&mut self, thread: ThreadId) {
        let _ = thread;
    }

    /// Charge, yield and pick in one step, where the order of a queue alone decides: the running
    /// thread yields, and the thread that [`Policy::pick`] would choose now runs until something
    /// changes. `None`: charges or the time count too, and nothing has happened. A policy may
    /// always answer `None`; the core then makes the three calls.
    #[inline]
    fn yield_to_next(&mut self, thread: ThreadId) -> Option<ThreadId> {
        let _ = thread;
        None
    }

    /// Charge, wake and pick in one step, where the order of a queue alone decides: a thread that
    /// becomes ready goes before all others, so that [`Policy::pick`] would choose it now until
    /// something changes. `false`: it does not, or charges or the time count too, and nothing has
    /// happened. A policy may always answer `false`; the core then makes the three calls. It is
    /// also asked where nobody is ready: then a thread goes before all others in any case.
    #[inline]
    fn wake_to_run(&mut self, thread: ThreadId, attributes: &Attributes) -> bool {
        let _ = (thread, attributes);
        false
    }

    /// Charge, block and pick in one step, where the order of a queue alone decides: the running
    /// thread is no longer ready, and the thread that [`Policy::pick`] would choose now runs until
    /// something changes. `None`: nobody else is ready, or charges or the time count too, and
    /// nothing has happened. A policy may always answer `None`; the core then makes the three
    /// calls.
    #[inline]
    fn block_to_next(&mut self, thread: ThreadId) -> Option<ThreadId> {
        let _ = thread;
        None
    }

    /// Charge, block, update and pick in one step, where the order of a queue alone decides. The
    /// running thread has these attributes, and is no longer ready; `to` has them from now on, and
    /// runs until something changes. `false`: nothing has happened. A policy may always answer
    /// `false`.
    #[inline]
    fn let_inherit(&mut self, thread: ThreadId, attributes: &Attributes, to: ThreadId) -> bool {
        let _ = (thread, attributes, to);
        false
    }

    /// The way back from [`Policy::let_inherit`]: the running thread is as urgent as `from` says,
    /// and less than `to` says, which becomes ready, runs, and would be chosen by [`Policy::pick`]
    /// until something changes. `false`: nothing has happened. A policy may always answer `false`.
    #[inline]
    fn hand_to(&mut self, from: (ThreadId, &Attributes), to: (ThreadId, &Attributes)) -> bool {
        let _ = (from, to);
        false
    }

    /// The running thread has executed for this long.
    fn charge(&mut self, thread: ThreadId, work: Work) {
        let _ = (thread, work);
    }

    /// Who runs from now on. The core may ask more than once at one instant.
    fn pick(&mut self, now: Instant) -> Pick;

    /// Whether this policy orders work without guarantees too. A policy that gives every entity
    /// time of its own (TDM) does: nobody else may use what an owner leaves idle.
    fn orders_background(&self) -> bool {
        false
    }

    /// How urgent something with these attributes is, larger first; 64 bits, so that a deadline
    /// fits. Others compare by it without asking ([`crate::Tree::preempts`]). A policy that lets
    /// nobody preempt by urgency finds all equal.
    fn urgency(&self, attributes: &Attributes) -> u64 {
        let _ = attributes;
        0
    }
}

/// Any policy behind a pointer is a policy: for policies chosen at run time.
impl<P: Policy + ?Sized> Policy for alloc::boxed::Box<P> {
    fn attach(&mut self, thread: ThreadId) {
        (**self).attach(thread);
    }
    fn detach(&mut self, thread: ThreadId) {
        (**self).detach(thread);
    }
    fn wake(&mut self, thread: ThreadId, attributes: &Attributes) {
        (**self).wake(thread, attributes);
    }
    fn block(&mut self, thread: ThreadId) {
        (**self).block(thread);
    }
    fn update(&mut self, thread: ThreadId, attributes: &Attributes) {
        (**self).update(thread, attributes);
    }
    fn renew(&mut self, thread: ThreadId, attributes: &Attributes) {
        (**self).renew(thread, attributes);
    }
    fn yield_now(&mut self, thread: ThreadId) {
        (**self).yield_now(thread);
    }
    fn yield_to_next(&mut self, thread: ThreadId) -> Option<ThreadId> {
        (**self).yield_to_next(thread)
    }
    fn wake_to_run(&mut self, thread: ThreadId, attributes: &Attributes) -> bool {
        (**self).wake_to_run(thread, attributes)
    }
    fn block_to_next(&mut self, thread: ThreadId) -> Option<ThreadId> {
        (**self).block_to_next(thread)
    }
    fn let_inherit(&mut self, thread: ThreadId, attributes: &Attributes, to: ThreadId) -> bool {
        (**self).let_inherit(thread, attributes, to)
    }
    fn hand_to(&mut self, from: (ThreadId, &Attributes), to: (ThreadId, &Attributes)) -> bool {
        (**self).hand_to(from, to)
    }
    fn charge(&mut self, thread: ThreadId, work: Work) {
        (**self).charge(thread, work);
    }
    fn pick(&mut self, now: Instant) -> Pick {
        (**self).pick(now)
    }
    fn orders_background(&self) -> bool {
        (**self).orders_background()
    }
    fn urgency(&self, attributes: &Attributes) -> u64 {
        (**self).urgency(attributes)
    }
}
