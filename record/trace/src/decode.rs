//! Records from words: what [`crate::Records`] yields.
//!
//! Total: words that no encoder wrote give `None`, never a panic.

use punctual_kern::{
    Ceiling, ChildPick, Constraint, Decision, Event, Message, MissingCause, Next, NodeId,
    NodeTerms, Outcome, Refusal, Request, TraceEvent, WakeCause,
};
use punctual_model::{
    Class, CpuId, Instant, Late, Mode, OnOverrun, Priority, Span, ThreadId, Trust, Work,
};

use crate::form;
use crate::record::Record;
use crate::text::tree;

/// The fields of one record, read in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a> {
    absent: u64,
    words: &'a [u64],
}

impl<'a> Fields<'a> {
    /// The record at the front of `words`: its kind, its fields, its length in words.
    pub(crate) fn split(words: &'a [u64]) -> Option<(u8, Fields<'a>, usize)> {
        let first = *words.first()?;
        let kind = u8::try_from(first & 0xff).ok()?;
        let length = 1 + form::of_kind(kind)?.columns.len();
        let fields = Fields {
            absent: first >> 8,
            words: words.get(1..length)?,
        };
        Some((kind, fields, length))
    }

    pub(crate) fn maybe(&mut self) -> Option<u64> {
        let (first, rest) = self.words.split_first()?;
        let present = self.absent & 1 == 0;
        self.absent >>= 1;
        self.words = rest;
        present.then_some(*first)
    }

    pub(crate) fn small(&mut self) -> Option<u32> {
        u32::try_from(self.maybe()?).ok()
    }

    fn thread(&mut self) -> Option<ThreadId> {
        self.maybe().and_then(thread_of)
    }

    fn node(&mut self) -> Option<NodeId> {
        self.maybe().and_then(node_of)
    }

    fn instant(&mut self) -> Option<Instant> {
        self.maybe().map(Instant::from_ticks)
    }

    pub(crate) fn span(&mut self) -> Option<Span> {
        self.maybe().map(Span::from_ticks)
    }

    pub(crate) fn work(&mut self) -> Option<Work> {
        self.maybe().map(Work::from_ticks)
    }

    pub(crate) fn flag(&mut self) -> Option<bool> {
        match self.maybe()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    pub(crate) fn mode(&mut self) -> Option<Mode> {
        match self.maybe()? {
            0 => Some(Mode::Exclusive),
            1 => Some(Mode::Shared),
            _ => None,
        }
    }

    fn cause(&mut self) -> Option<MissingCause> {
        match self.maybe()? {
            0 => Some(MissingCause::Stolen),
            1 => Some(MissingCause::GivenBack),
            _ => None,
        }
    }

    pub(crate) fn constraint(&mut self) -> Option<Constraint> {
        let class = self.maybe()?;
        let (separation, budget, deadline) = (self.span(), self.work(), self.span());
        let class = match class {
            0 => Class::Periodic {
                period: separation?,
                wcet: budget?,
                relative_deadline: deadline?,
            },
            1 => Class::Sporadic {
                min_separation: separation?,
                wcet: budget?,
                relative_deadline: deadline?,
            },
            2 => Class::Reservation {
                period: separation?,
                slice: budget?,
            },
            3 => Class::Once {
                size: budget?,
                relative_deadline: deadline?,
            },
            4 => Class::Aperiodic,
            _ => return None,
        };
        let priority = Priority::new(self.small()?);
        let phase = self.span()?;
        let (late, backlog) = (self.maybe()?, self.small());
        Some(Constraint {
            class,
            priority,
            phase,
            late: match late {
                0 => Late::Queue { backlog: backlog? },
                1 => Late::Skip,
                _ => return None,
            },
            on_overrun: match self.maybe()? {
                0 => OnOverrun::Throttle,
                1 => OnOverrun::Demote,
                2 => OnOverrun::Stop,
                3 => OnOverrun::Signal,
                _ => return None,
            },
            order: self.small()?,
            until: self.instant()?,
            fed: self.flag()?,
        })
    }
}

/// The thread that [`crate::codes::thread_word`] packed.
pub(crate) fn thread_of(word: u64) -> Option<ThreadId> {
    let index = u32::try_from(word & u64::from(u32::MAX)).ok()?;
    let generation = u32::try_from(word >> 32).ok()?;
    Some(ThreadId::new(index, generation))
}

/// The scheduler that [`crate::codes::node_word`] packed.
pub(crate) fn node_of(word: u64) -> Option<NodeId> {
    let index = u16::try_from(word & u64::from(u32::MAX)).ok()?;
    let generation = u16::try_from(word >> 32).ok()?;
    Some(NodeId::new(index, generation))
}

/// The record at the front of `words` and its length; `None` at the end and for nonsense.
#[inline]
pub(crate) fn decode(words: &[u64]) -> Option<(Record, usize)> {
    let (kind, fields, length) = Fields::split(words)?;
    let record = match kind {
        form::TICK..form::CREATED => decode_event(kind, fields)?,
        form::CREATED..form::RUN => Record::Trace(decode_trace(kind, fields)?),
        _ => Record::Decision(decode_decision(kind, fields)?),
    };
    Some((record, length))
}

fn decode_event(kind: u8, mut f: Fields<'_>) -> Option<Record> {
    let now = f.instant()?;
    let event = match kind {
        form::TICK => Event::Tick,
        form::EVENT_MISSING => Event::Missing {
            span: f.span()?,
            cause: f.cause()?,
        },
        form::COMPLETE => Event::Complete,
        form::BLOCK => Event::Block { until: f.instant() },
        form::BLOCK_ON => Event::BlockOn {
            holder: f.thread()?,
            key: f.small()?,
            until: f.instant(),
        },
        form::HAND_OVER => Event::HandOver {
            key: f.small()?,
            from: f.thread()?,
            to: f.thread()?,
        },
        form::RAISE => Event::Raise(ceiling(&mut f)),
        form::YIELD => Event::Yield,
        form::EXIT => Event::Exit,
        form::PROTECT => Event::Protect,
        form::UNPROTECT => Event::Unprotect,
        form::LOCK => Event::Lock {
            resource: f.small()?,
            mode: f.mode()?,
            until: f.instant(),
        },
        form::UNLOCK => Event::Unlock {
            resource: f.small()?,
        },
        form::WAKE => Event::Wake(f.thread()?),
        form::ARRIVE => Event::Arrive {
            thread: f.thread()?,
            arrival: f.instant()?,
        },
        form::CREATE => Event::Create(f.constraint()?),
        form::CHANGE => Event::Change {
            thread: f.thread()?,
            constraint: f.constraint()?,
        },
        form::KILL => Event::Kill(f.thread()?),
        form::CHILD_PICKED => Event::ChildPicked(ChildPick {
            child: f.node()?,
            epoch: f.small()?,
            thread: f.thread(),
            until: f.instant(),
        }),
        form::CREATE_FOR..=form::WAKE_BY | form::LEND => Event::Manage {
            by: f.node()?,
            request: decode_request(kind, f)?,
        },
        form::REMOTE => Event::Remote(Message {
            to: CpuId(u16::try_from(f.maybe()?).ok()?),
            slot: f.small()?,
            frontier: f.maybe()?,
        }),
        _ => return None,
    };
    Some(Record::Event { now, event })
}

fn ceiling(f: &mut Fields<'_>) -> Option<Ceiling> {
    let priority = f.small();
    let absolute_deadline = f.instant();
    Some(Ceiling {
        priority: Priority::new(priority?),
        absolute_deadline: absolute_deadline?,
    })
}

fn decode_request(kind: u8, mut f: Fields<'_>) -> Option<Request> {
    Some(match kind {
        form::CREATE_FOR => Request::Create {
            home: f.node()?,
            constraint: f.constraint()?,
        },
        form::GRANT => Request::Grant {
            thread: f.thread()?,
            to: f.node()?,
        },
        form::REVOKE => Request::Revoke {
            thread: f.thread()?,
        },
        form::PROMOTE => Request::Promote(NodeTerms {
            supply: tree::supply(&mut f)?,
            priority: Priority::new(f.small()?),
            order: f.small()?,
            trust: match f.flag()? {
                false => Trust::Inline,
                true => Trust::OwnTime,
            },
            quota: f.small(),
        }),
        form::DEMOTE => Request::Demote(f.node()?),
        form::LEND => Request::Lend {
            to: f.node()?,
            work: f.work()?,
        },
        form::BLOCK_BY => Request::Block {
            thread: f.thread()?,
            exclusive: f.flag()?,
            until: f.instant(),
        },
        form::WAKE_BY => Request::Wake(f.thread()?),
        _ => return None,
    })
}

fn decode_trace(kind: u8, mut f: Fields<'_>) -> Option<TraceEvent> {
    use TraceEvent as T;
    if kind == form::SWITCHED {
        return Some(T::Switched {
            from: f.thread(),
            to: f.thread(),
            preempted: f.flag()?,
        });
    }
    if kind == form::MISSING {
        return Some(T::Missing {
            span: f.span()?,
            cause: f.cause()?,
        });
    }
    let of_lock = matches!(kind, form::LOCKED..=form::SECTION_OVERRAN | form::POSTPONED);
    let of_thread = of_lock || matches!(kind, form::CAUGHT_UP | form::ORDERED);
    if kind >= form::SERVER_REPLENISHED && !of_thread {
        return decode_tree(kind, f);
    }
    if kind == form::CAUGHT_UP {
        return Some(T::CaughtUp);
    }
    let thread = f.thread()?;
    Some(match kind {
        form::CREATED => T::Created { thread },
        form::ENDED => T::Ended { thread },
        form::CHANGED => T::Changed { thread },
        form::REPLENISHED => T::Replenished {
            thread,
            budget: f.work()?,
        },
        form::WOKEN => T::Woken {
            thread,
            cause: match f.maybe()? {
                0 => WakeCause::Wake,
                1 => WakeCause::EarlyWake,
                2 => WakeCause::Timeout,
                3 => WakeCause::Predecessors,
                4 => WakeCause::Lock,
                5 => WakeCause::Supply,
                _ => return None,
            },
        },
        form::LOCKED..=form::SECTION_OVERRAN | form::POSTPONED => decode_lock(kind, thread, f)?,
        form::ORDERED => T::Ordered {
            thread,
            background: f.flag()?,
            priority: Priority::new(f.small()?),
            deadline: f.instant()?,
            release: f.instant()?,
            yielded: f.flag()?,
        },
        _ => decode_job(kind, thread, f)?,
    })
}

fn decode_lock(kind: u8, thread: ThreadId, mut f: Fields<'_>) -> Option<TraceEvent> {
    use TraceEvent as T;
    let resource = f.small()?;
    Some(match kind {
        form::LOCKED => T::Locked {
            thread,
            resource,
            mode: f.mode()?,
        },
        form::WAITS => T::Waits {
            thread,
            resource,
            mode: f.mode()?,
        },
        form::POSTPONED => T::Postponed { thread, resource },
        form::UNLOCKED => T::Unlocked { thread, resource },
        form::SECTION_OVERRAN => T::SectionOverran { thread, resource },
        _ => return None,
    })
}

fn decode_tree(kind: u8, mut f: Fields<'_>) -> Option<TraceEvent> {
    use TraceEvent as T;
    Some(match kind {
        form::SERVER_REPLENISHED => T::ServerReplenished {
            node: f.node()?,
            budget: f.work()?,
        },
        form::SERVER_EXHAUSTED => T::ServerExhausted { node: f.node()? },
        form::CHILD_CHARGED => T::ChildCharged {
            node: f.node()?,
            work: f.work()?,
        },
        form::MOVED => T::Moved {
            thread: f.thread()?,
            home: f.node()?,
        },
        form::PROMOTED => T::Promoted {
            node: f.node()?,
            parent: f.node()?,
        },
        form::SCHEDULER_ENDED => T::SchedulerEnded { node: f.node()? },
        form::LENT => T::Lent {
            from: f.node()?,
            to: f.node()?,
            work: f.work()?,
        },
        form::QUEUED => T::Queued {
            node: f.node()?,
            priority: Priority::new(f.small()?),
            deadline: f.instant()?,
            release: f.instant()?,
            budget: f.work(),
        },
        form::UNQUEUED => T::Unqueued {
            node: f.node()?,
            budget: f.work(),
        },
        _ => return None,
    })
}

fn decode_job(kind: u8, thread: ThreadId, mut f: Fields<'_>) -> Option<TraceEvent> {
    use TraceEvent as T;
    let job = f.maybe()?;
    Some(match kind {
        form::RELEASED => T::Released {
            thread,
            job,
            arrival: f.instant()?,
            deadline: f.instant()?,
        },
        form::SKIPPED => T::Skipped { thread, job },
        form::LOST => T::Lost { thread, job },
        form::STARTED => T::Started {
            thread,
            job,
            budget: f.work(),
        },
        form::COMPLETED => T::Completed {
            thread,
            job,
            outcome: match f.maybe()? {
                0 => Outcome::Done,
                1 => Outcome::Stopped,
                2 => Outcome::Aborted,
                3 => Outcome::Short,
                _ => return None,
            },
            arrival: f.instant()?,
            deadline: f.instant()?,
            received: f.work()?,
        },
        form::OVERRAN => T::Overran { thread, job },
        form::THROTTLED => T::Throttled { thread, job },
        form::DEMOTED => T::Demoted { thread, job },
        form::BLOCKED => T::Blocked {
            thread,
            job,
            for_predecessors: f.flag()?,
        },
        _ => return None,
    })
}

fn decode_decision(kind: u8, mut f: Fields<'_>) -> Option<Decision> {
    let next = match kind {
        form::RUN | form::RUN_REFUSING => Next::Thread(f.thread()?),
        form::RUN_CHILD | form::RUN_CHILD_REFUSING => Next::RunChild(node_of(f.maybe()?)?),
        form::IDLE | form::IDLE_REFUSING => Next::Idle,
        _ => return None,
    };
    let arm = f.instant();
    let refused = match kind {
        form::RUN_REFUSING | form::IDLE_REFUSING | form::RUN_CHILD_REFUSING => {
            let (why, what) = (f.maybe()?, f.maybe());
            Some(match why {
                0 => Refusal::StaleThread(thread_of(what?)?),
                1 => Refusal::NobodyRuns,
                2 => Refusal::NoThreadLeft,
                3 => Refusal::NotSporadic(thread_of(what?)?),
                4 => Refusal::NoSuchSlot(u32::try_from(what?).ok()?),
                5 => Refusal::InvalidConstraint,
                6 => Refusal::NoSuchNode(node_of(what?)?),
                7 => Refusal::NoNodeLeft,
                8 => Refusal::TooDeep(node_of(what?)?),
                9 => Refusal::NotAParent(node_of(what?)?),
                10 => Refusal::QuotaExhausted(node_of(what?)?),
                11 => Refusal::NotDeciding(node_of(what?)?),
                12 => Refusal::StalePick(node_of(what?)?),
                13 => Refusal::NotItsOwn(thread_of(what?)?),
                14 => Refusal::NotReady(thread_of(what?)?),
                15 => Refusal::NotItsChild(node_of(what?)?),
                16 => Refusal::OnlyRootCreates(node_of(what?)?),
                17 => Refusal::BlockedByTrusted(thread_of(what?)?),
                18 => Refusal::NotGrantable(node_of(what?)?),
                19 => Refusal::NotDeclared(u32::try_from(what?).ok()?),
                20 => Refusal::AlreadyHeld(u32::try_from(what?).ok()?),
                21 => Refusal::NotHeld(u32::try_from(what?).ok()?),
                22 => Refusal::NestedTooDeep(u32::try_from(what?).ok()?),
                23 => Refusal::Deadlock(u32::try_from(what?).ok()?),
                24 => Refusal::NotASibling(node_of(what?)?),
                25 => Refusal::TooLittleBudget(node_of(what?)?),
                26 => Refusal::UsesResources(thread_of(what?)?),
                _ => return None,
            })
        }
        _ => None,
    };
    Some(Decision { next, arm, refused })
}
