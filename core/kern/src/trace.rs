//! What happened, as values: every change of state that the core makes.
//!
//! The core tells a [`Sink`] each event it takes, each change it makes, and each decision. That is
//! enough to derive every decision again and to check the predicates of the field from outside.

use punctual_model::{Instant, Mode, PolicyKind, Priority, ThreadId, Work};
use punctual_order::{FallbackCause, Next, NodeId};

use crate::event::{Decision, Entry, Event};

/// Where the core reports. All methods default to nothing, so a sink costs what it uses.
pub trait Sink {
    /// An entry is about to be handled.
    #[inline]
    fn begin(&mut self, entry: &Entry<'_>) {
        let _ = entry;
    }

    /// An entry has served so many timers of threads. A timer need not change anything that is
    /// told.
    #[inline]
    fn served(&mut self, timers: usize) {
        let _ = timers;
    }

    /// A state has changed.
    #[inline]
    fn trace(&mut self, now: Instant, event: TraceEvent) {
        let _ = (now, event);
    }

    /// The entry has been handled.
    #[inline]
    fn decision(&mut self, now: Instant, decision: &Decision) {
        let _ = (now, decision);
    }

    /// A whole entry at once, as most entries of a busy CPU are: `next` runs until `arm`, in place
    /// of `left`, which stays ready ([`TraceEvent::Switched`]); or `None`, as it did before. Means
    /// the same as the three calls.
    #[inline]
    fn entry(
        &mut self,
        now: Instant,
        event: &Event,
        left: Option<ThreadId>,
        run: (ThreadId, Option<Instant>),
    ) {
        self.entry_in_parts(now, event, left, run);
    }

    /// A whole entry at once in which one thread becomes ready, or waits, and so another one runs:
    /// `change` is [`TraceEvent::Woken`] or [`TraceEvent::Blocked`], and `run` says who ran, who
    /// runs from now on, and until when. Means the same as the four calls.
    #[inline]
    fn entry_of_change(
        &mut self,
        now: Instant,
        event: &Event,
        change: TraceEvent,
        run: (ThreadId, ThreadId, Option<Instant>),
    ) {
        self.entry_of_change_in_parts(now, event, change, run);
    }

    /// [`Sink::entry_of_change`] as the four calls.
    #[inline]
    fn entry_of_change_in_parts(
        &mut self,
        now: Instant,
        event: &Event,
        change: TraceEvent,
        run: (ThreadId, ThreadId, Option<Instant>),
    ) {
        self.begin(&Entry::at(now, event));
        self.trace(now, change);
        self.turn(now, !matches!(change, TraceEvent::Blocked { .. }), run);
    }

    /// [`Sink::entry_of_change`] in which more is told of a thread: that it is queued by another
    /// key besides; that a job was released and starts; that its job and it have ended.
    #[inline]
    fn entry_of_changes(
        &mut self,
        now: Instant,
        event: &Event,
        changes: (TraceEvent, TraceEvent),
        run: (ThreadId, ThreadId, Option<Instant>),
    ) {
        self.entry_of_changes_in_parts(now, event, changes, run);
    }

    /// [`Sink::entry_of_changes`] as the five calls.
    #[inline]
    fn entry_of_changes_in_parts(
        &mut self,
        now: Instant,
        event: &Event,
        (change, other): (TraceEvent, TraceEvent),
        run: (ThreadId, ThreadId, Option<Instant>),
    ) {
        self.begin(&Entry::at(now, event));
        self.trace(now, change);
        self.trace(now, other);
        let leaves = matches!(
            change,
            TraceEvent::Blocked { .. } | TraceEvent::Completed { .. }
        );
        self.turn(now, !leaves, run);
    }

    /// [`Sink::entry_of_change`] in which a thread is created, its first job is released, and
    /// starts.
    #[inline]
    fn entry_of_birth(
        &mut self,
        now: Instant,
        event: &Event,
        changes: (TraceEvent, TraceEvent, TraceEvent),
        run: (ThreadId, ThreadId, Option<Instant>),
    ) {
        self.entry_of_birth_in_parts(now, event, changes, run);
    }

    /// [`Sink::entry_of_birth`] as the six calls.
    #[inline]
    fn entry_of_birth_in_parts(
        &mut self,
        now: Instant,
        event: &Event,
        (created, released, started): (TraceEvent, TraceEvent, TraceEvent),
        run: (ThreadId, ThreadId, Option<Instant>),
    ) {
        self.begin(&Entry::at(now, event));
        self.trace(now, created);
        self.trace(now, released);
        self.trace(now, started);
        self.turn(now, true, run);
    }

    /// A whole entry at once in which a job is released on an idle CPU, starts and runs, or the one
    /// that runs ends: `changes` are [`TraceEvent::Released`] and [`TraceEvent::Started`], or
    /// [`TraceEvent::Completed`] alone. Means the same as the single calls.
    #[inline]
    fn entry_of_job(
        &mut self,
        now: Instant,
        event: &Event,
        changes: (TraceEvent, Option<TraceEvent>),
        run: Run,
    ) {
        self.entry_of_job_in_parts(now, event, changes, run);
    }

    /// [`Sink::entry_of_job`] as the single calls.
    #[inline]
    fn entry_of_job_in_parts(
        &mut self,
        now: Instant,
        event: &Event,
        (change, started): (TraceEvent, Option<TraceEvent>),
        (from, to, arm): Run,
    ) {
        self.begin(&Entry::at(now, event));
        self.trace(now, change);
        if let Some(started) = started {
            self.trace(now, started);
        }
        let preempted = false;
        let switched = TraceEvent::Switched {
            from,
            to,
            preempted,
        };
        self.trace(now, switched);
        let (next, refused) = (to.map_or(Next::Idle, Next::Thread), None);
        self.decision(now, &Decision { next, arm, refused });
    }

    /// A switch and its decision, reported.
    #[inline]
    fn turn(
        &mut self,
        now: Instant,
        preempted: bool,
        (from, to, arm): (ThreadId, ThreadId, Option<Instant>),
    ) {
        let switched = TraceEvent::Switched {
            from: Some(from),
            to: Some(to),
            preempted,
        };
        self.trace(now, switched);
        let (next, refused) = (Next::Thread(to), None);
        self.decision(now, &Decision { next, arm, refused });
    }

    /// [`Sink::entry`] as the three calls.
    #[inline]
    fn entry_in_parts(
        &mut self,
        now: Instant,
        event: &Event,
        left: Option<ThreadId>,
        (next, arm): (ThreadId, Option<Instant>),
    ) {
        self.begin(&Entry::at(now, event));
        if left.is_some() {
            let switched = TraceEvent::Switched {
                from: left,
                to: Some(next),
                preempted: true,
            };
            self.trace(now, switched);
        }
        let (next, refused) = (Next::Thread(next), None);
        self.decision(now, &Decision { next, arm, refused });
    }
}

/// The threads before and after (`None`: nobody), and the instant of the next timer.
pub type Run = (Option<ThreadId>, Option<ThreadId>, Option<Instant>);

/// Reports nothing, costs nothing.
#[derive(Clone, Copy, Default, Debug)]
pub struct NoSink;

impl Sink for NoSink {}

/// A change of state. Jobs are numbered from 0 within their thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceEvent {
    /// A thread exists.
    Created {
        /// Its id.
        thread: ThreadId,
    },
    /// A thread has ended.
    Ended {
        /// Its id.
        thread: ThreadId,
    },
    /// A thread's new constraint is in force.
    Changed {
        /// Its id.
        thread: ThreadId,
    },
    /// A job is released.
    Released {
        /// Whose.
        thread: ThreadId,
        /// Which.
        job: u64,
        /// When it arrived, from where responses are measured (for policed arrivals: when the
        /// separation allowed it).
        arrival: Instant,
        /// Its absolute deadline; [`Instant::MAX`] without one.
        deadline: Instant,
    },
    /// A release found the job before unfinished and was dropped (`late = "skip"`).
    Skipped {
        /// Whose.
        thread: ThreadId,
        /// Which.
        job: u64,
    },
    /// A release found the backlog full and was dropped.
    Lost {
        /// Whose.
        thread: ThreadId,
        /// Which.
        job: u64,
    },
    /// A job has become ready for the first time (its turn has come and its predecessors are done).
    Started {
        /// Whose.
        thread: ThreadId,
        /// Which.
        job: u64,
        /// The budget it starts with.
        budget: Option<Work>,
    },
    /// A job is over.
    Completed {
        /// Whose.
        thread: ThreadId,
        /// Which.
        job: u64,
        /// How it ended.
        outcome: Outcome,
        /// As in `Released`.
        arrival: Instant,
        /// As in `Released`.
        deadline: Instant,
        /// The work it received.
        received: Work,
    },
    /// A job has used its budget and is not done (at most once per job).
    Overran {
        /// Whose.
        thread: ThreadId,
        /// Which.
        job: u64,
    },
    /// A thread has no budget until its next replenishment.
    Throttled {
        /// Whose.
        thread: ThreadId,
        /// Its job.
        job: u64,
    },
    /// A thread has budget again.
    Replenished {
        /// Whose.
        thread: ThreadId,
        /// How much now.
        budget: Work,
    },
    /// A job goes on below all real-time work.
    Demoted {
        /// Whose.
        thread: ThreadId,
        /// Which.
        job: u64,
    },
    /// A thread waits.
    Blocked {
        /// Who.
        thread: ThreadId,
        /// Its job.
        job: u64,
        /// For predecessors (else: by its own request).
        for_predecessors: bool,
    },
    /// A thread no longer waits.
    Woken {
        /// Who.
        thread: ThreadId,
        /// Why.
        cause: WakeCause,
    },
    /// The processor changes hands; `None` is idle.
    Switched {
        /// Who ran.
        from: Option<ThreadId>,
        /// Who runs.
        to: Option<ThreadId>,
        /// The one who ran is still ready.
        preempted: bool,
    },
    /// A scheduler has spent its supply on deciding.
    ChildCharged {
        /// Which.
        node: NodeId,
        /// How much.
        work: Work,
    },
    /// A scheduler has lent budget to a sibling.
    Lent {
        /// Whose budget it was.
        from: NodeId,
        /// Whose it is.
        to: NodeId,
        /// How much.
        work: Work,
    },
    /// A thread is in the care of another scheduler.
    Moved {
        /// Which thread.
        thread: ThreadId,
        /// Which scheduler.
        home: NodeId,
    },
    /// A scheduler exists.
    Promoted {
        /// Which.
        node: NodeId,
        /// Below which.
        parent: NodeId,
    },
    /// A scheduler has another server.
    Supplied {
        /// Which.
        node: NodeId,
    },
    /// A scheduler exists no more.
    SchedulerEnded {
        /// Which; those below it end with it.
        node: NodeId,
    },
    /// A scheduler that decided on its own supply does so no more: the built-in policy that it
    /// named is told of its threads from now on.
    FellBack {
        /// Which scheduler.
        node: NodeId,
        /// Why.
        cause: FallbackCause,
    },
    /// Another policy orders what a scheduler orders, from this entry's decision on.
    PolicyReplaced {
        /// Which scheduler.
        node: NodeId,
        /// The order that the new policy keeps.
        policy: PolicyKind,
    },
    /// A thread holds a resource.
    Locked {
        /// Who.
        thread: ThreadId,
        /// Number of the resource on its shard.
        resource: u32,
        /// Alone, or with other readers.
        mode: Mode,
    },
    /// A thread waits for a resource.
    Waits {
        /// Who.
        thread: ThreadId,
        /// Number of the resource on its shard.
        resource: u32,
        /// Alone, or with other readers.
        mode: Mode,
    },
    /// A thread does not begin a section that does not fit into the supply of its scheduler.
    Postponed {
        /// Who.
        thread: ThreadId,
        /// Number of the resource on its shard.
        resource: u32,
    },
    /// A thread no longer holds a resource: it gave it back, or its job or the thread has ended.
    Unlocked {
        /// Who.
        thread: ThreadId,
        /// Number of the resource on its shard.
        resource: u32,
    },
    /// A thread holds a resource for longer than it declared: it goes on with the urgency that it
    /// has without it.
    SectionOverran {
        /// Who.
        thread: ThreadId,
        /// Number of the resource on its shard.
        resource: u32,
    },
    /// A scheduler's server has budget that it did not have.
    ServerReplenished {
        /// Whose.
        node: NodeId,
        /// How much now.
        budget: Work,
    },
    /// A scheduler's server has used its budget: the subtree waits for the next.
    ServerExhausted {
        /// Whose.
        node: NodeId,
    },
    /// The entry is late: what was told of it so far was due before its event, which takes effect
    /// here.
    CaughtUp,
    /// A job lives on the allotment of a later release from now on, and counts as released then.
    Deferred {
        /// The thread of the job.
        thread: ThreadId,
        /// That release; the job's own, if that is later.
        release: Instant,
        /// Its deadline.
        deadline: Instant,
    },
    /// The key by which a ready thread is queued now, where it is another than its own, or was.
    Ordered {
        /// Which.
        thread: ThreadId,
        /// Below all real-time work.
        background: bool,
        /// Its priority.
        priority: Priority,
        /// Its absolute deadline.
        deadline: Instant,
        /// The release by which ties are broken.
        release: Instant,
        /// It stands behind its equals, because it yielded.
        yielded: bool,
    },
    /// A scheduler is queued among its siblings by this key.
    Queued {
        /// Which.
        node: NodeId,
        /// Its priority.
        priority: Priority,
        /// The deadline of its server; [`Instant::MAX`] without one.
        deadline: Instant,
        /// Since when it wants to run: breaks ties.
        release: Instant,
        /// What its server has left.
        budget: Option<Work>,
    },
    /// A segment of the plan in force starts: the job that its thread releases now.
    SegmentStarted {
        /// Which of this CPU.
        number: u64,
        /// Whose.
        thread: ThreadId,
        /// Its group is dead: it cleans up instead.
        cleans: bool,
    },
    /// A segment of a dead group is passed over.
    SegmentSkipped {
        /// Which of this CPU.
        number: u64,
    },
    /// A scheduler is not queued any more, or its budget has become less without being used.
    Unqueued {
        /// Which.
        node: NodeId,
        /// What its server has left.
        budget: Option<Work>,
    },
}

impl TraceEvent {
    /// The budget of a scheduler's server is used up, or more than it was.
    #[cold]
    pub(crate) fn budget(node: NodeId, budget: Work) -> TraceEvent {
        match budget.is_zero() {
            true => TraceEvent::ServerExhausted { node },
            false => TraceEvent::ServerReplenished { node, budget },
        }
    }
}

/// How a job ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It completed (a reservation: received its slice, or did not want all of it).
    Done,
    /// It was stopped by its overrun rule.
    Stopped,
    /// Its thread ended first.
    Aborted,
    /// A reservation wanted its whole slice and did not get it in its period.
    Short,
}

/// Why a thread no longer waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WakeCause {
    /// Somebody woke it.
    Wake,
    /// The wake-up had come before it blocked, so it did not wait at all.
    EarlyWake,
    /// Its timeout came.
    Timeout,
    /// Its predecessors are done.
    Predecessors,
    /// The resource that it waited for is free, or its own already.
    Lock,
    /// Its scheduler may have the supply that its section needs.
    Supply,
}
