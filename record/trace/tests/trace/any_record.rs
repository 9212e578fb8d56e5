//! Records of every kind, with any values.
#![allow(clippy::unwrap_used)] // A test may stop at the first surprise.

use punctual_kern::{AgendaStep, PlannedSegment};
use punctual_kern::{Ceiling, ChildPick, Constraint, Grant, NodeId, NodeTerms, Request};
use punctual_kern::{Decision, Message, Next, Outcome};
use punctual_kern::{Event, Refusal, TraceEvent, WakeCause};
use punctual_model::{CpuId, Instant, Mode, Span, ThreadId, Work};
use punctual_model::{PolicyKind, Priority, Server, ServerKind, Trust};
use punctual_trace::{Log, RecordedEntry};

const OUTCOMES: [Outcome; 4] = [
    Outcome::Done,
    Outcome::Stopped,
    Outcome::Aborted,
    Outcome::Short,
];
const WAKES: [WakeCause; 6] = [
    WakeCause::Wake,
    WakeCause::EarlyWake,
    WakeCause::Timeout,
    WakeCause::Predecessors,
    WakeCause::Lock,
    WakeCause::Supply,
];
const MODES: [Mode; 2] = [Mode::Exclusive, Mode::Shared];

/// Steele, Lea and Flood's SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % n as u64).unwrap()
    }

    /// Small, large and extreme numbers alike.
    pub(crate) fn number(&mut self) -> u64 {
        let bits = self.below(65);
        if bits == 64 {
            u64::MAX
        } else {
            self.next() & ((1 << bits) - 1)
        }
    }

    pub(crate) fn small(&mut self) -> u32 {
        u32::try_from(self.number() >> 32).unwrap()
    }

    pub(crate) fn instant(&mut self) -> Instant {
        Instant::from_ticks(self.number())
    }

    pub(crate) fn thread(&mut self) -> ThreadId {
        let generation = if self.next().is_multiple_of(4) {
            self.small()
        } else {
            0
        };
        // What happened can name no thread that the CPU has no room for.
        ThreadId::new(self.small() % 6, generation)
    }

    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    pub(crate) fn node(&mut self) -> NodeId {
        let generation = u16::try_from(self.below(3)).unwrap();
        NodeId::new(u16::try_from(self.small() >> 16).unwrap(), generation)
    }

    pub(crate) fn maybe<T>(&mut self, value: T) -> Option<T> {
        self.next().is_multiple_of(2).then_some(value)
    }

    pub(crate) fn terms(&mut self) -> NodeTerms {
        let server = Grant::Server(Server {
            kind: self.pick(&ServerKind::ALL),
            budget: Work::from_ticks(self.number().max(1)),
            period: Span::from_ticks(self.number().max(1)),
        });
        let (quota, receiver) = (self.small(), self.node());
        NodeTerms {
            supply: self.pick(&[Grant::Shared, Grant::Slots, server]),
            priority: Priority::new(self.small()),
            order: self.small(),
            trust: self.pick(&[Trust::Inline, Trust::OwnTime]),
            quota: self.maybe(quota),
            receiver: self.maybe(receiver),
        }
    }

    /// What schedulers ask and answer.
    pub(crate) fn tree_event(&mut self, constraint: Constraint) -> Event {
        let (by, node, thread) = (self.node(), self.node(), self.thread());
        let (until, work) = (self.instant(), Work::from_ticks(self.number()));
        let until = self.maybe(until);
        let exclusive = self.next().is_multiple_of(2);
        let picked = ChildPick {
            child: node,
            epoch: self.small(),
            thread: self.maybe(thread),
            until,
        };
        let terms = self.terms();
        let home = node;
        let requests = [
            Request::Create { home, constraint },
            Request::Grant { thread, to: node },
            Request::Revoke { thread },
            Request::Promote(terms),
            Request::Demote(node),
            Request::Lend { to: node, work },
            Request::Block {
                thread,
                exclusive,
                until,
            },
            Request::Wake(thread),
            Request::Replace {
                node,
                policy: PolicyKind::EarliestDeadlineFirst,
            },
        ];
        let request = self.pick(&requests);
        self.pick(&[
            Event::ChildPicked(picked),
            Event::Manage { by, request },
            Event::Manage { by, request },
        ])
    }

    pub(crate) fn entry(&mut self, now: Instant, log: &Log) -> RecordedEntry {
        let mut entry = RecordedEntry::at(now, self.event(log));
        if self.next().is_multiple_of(3) {
            entry.missing.stolen = Span::from_ticks(self.number());
        }
        if self.next().is_multiple_of(3) {
            entry.missing.given_back = Span::from_ticks(self.number());
        }
        let until = self.next().is_multiple_of(2).then(|| self.instant());
        if self.next().is_multiple_of(3) {
            entry.ceiling = Some(until.map(|absolute_deadline| Ceiling {
                priority: Priority::new(self.small()),
                absolute_deadline,
            }));
        }
        entry
    }

    pub(crate) fn event(&mut self, log: &Log) -> Event {
        let constraint = log.tables.cpus[0].threads[self.below(6)].1;
        let until = (self.next().is_multiple_of(2)).then(|| self.instant());
        let (thread, arrival) = (self.thread(), self.instant());
        let (resource, mode) = (self.small(), self.pick(&MODES));
        let of_tree = self.tree_event(constraint);
        let segment = self.segment(thread);
        let message = Message {
            to: CpuId(7),
            slot: self.small(),
            frontier: self.number(),
        };
        self.pick(&[
            Event::Tick,
            Event::Complete,
            Event::Block { until },
            Event::Yield,
            Event::Exit,
            Event::Protect,
            Event::Unprotect,
            Event::Wake(thread),
            Event::Arrive { thread, arrival },
            Event::Create(constraint),
            Event::Change { thread, constraint },
            Event::Kill(thread),
            Event::Remote(message),
            Event::Lock {
                resource,
                mode,
                until,
            },
            Event::Unlock { resource },
            Event::BlockOn {
                holder: thread,
                key: resource,
                until,
            },
            Event::Agenda(AgendaStep::Hold { cutoff: until }),
            Event::Agenda(AgendaStep::Stage(segment)),
            Event::Agenda(AgendaStep::Need {
                slot: resource,
                frontier: message.frontier,
            }),
            Event::Agenda(AgendaStep::Commit {
                from: message.frontier,
            }),
            Event::Agenda(AgendaStep::Kill {
                group: resource,
                cleans: until.map(Instant::ticks),
            }),
            Event::HandOver {
                key: resource,
                from: thread,
                to: thread,
            },
            of_tree,
            of_tree,
            of_tree,
        ])
    }

    fn segment(&mut self, thread: ThreadId) -> PlannedSegment {
        let mut instant = || Instant::from_ticks(self.number());
        let (earliest, start, deadline) = (instant(), instant(), instant());
        PlannedSegment {
            number: self.number(),
            thread,
            earliest,
            start,
            wcet: Work::from_ticks(self.number()),
            deadline,
            group: self.small(),
            cleanup: Work::from_ticks(self.number()),
        }
    }

    /// What schedulers and locks change.
    pub(crate) fn tree_change(&mut self) -> TraceEvent {
        use TraceEvent as T;
        let (thread, node, parent) = (self.thread(), self.node(), self.node());
        let (work, resource) = (Work::from_ticks(self.number()), self.small());
        let mode = self.pick(&MODES);
        self.pick(&[
            T::SegmentStarted {
                number: work.ticks(),
                thread,
                cleans: resource % 2 == 0,
            },
            T::SegmentSkipped {
                number: work.ticks(),
            },
            T::ServerReplenished { node, budget: work },
            T::ServerExhausted { node },
            T::ChildCharged { node, work },
            T::Moved { thread, home: node },
            T::Promoted { node, parent },
            T::SchedulerEnded { node },
            T::Lent {
                from: node,
                to: parent,
                work,
            },
            T::Locked {
                thread,
                resource,
                mode,
            },
            T::Waits {
                thread,
                resource,
                mode,
            },
            T::Unlocked { thread, resource },
            T::SectionOverran { thread, resource },
            T::Postponed { thread, resource },
            T::CaughtUp,
            T::Deferred {
                thread,
                release: Instant::MAX,
                deadline: Instant::from_ticks(work.ticks()),
            },
            T::Ordered {
                thread,
                background: mode == Mode::Shared,
                priority: Priority::new(resource),
                deadline: Instant::from_ticks(work.ticks()),
                release: Instant::MAX,
                yielded: mode == Mode::Exclusive,
            },
            T::Queued {
                node,
                priority: Priority::new(resource),
                deadline: Instant::MAX,
                release: Instant::from_ticks(work.ticks()),
                budget: (resource > 3).then_some(work),
            },
            T::Unqueued {
                node,
                budget: (resource > 3).then_some(work),
            },
            T::PolicyReplaced {
                node,
                policy: PolicyKind::RoundRobin {
                    timeslice: Span::from_ticks(work.ticks()),
                },
            },
        ])
    }

    pub(crate) fn change(&mut self) -> TraceEvent {
        use TraceEvent as T;
        let (thread, job, arrival) = (self.thread(), self.number(), self.instant());
        let (deadline, work) = (self.instant(), Work::from_ticks(self.number()));
        let (budget, flag) = (
            (self.next().is_multiple_of(2)).then_some(work),
            self.next().is_multiple_of(2),
        );
        let from = flag.then(|| self.thread());
        let of_tree = self.tree_change();
        let (outcome, cause) = (self.pick(&OUTCOMES), self.pick(&WAKES));
        self.pick(&[
            T::Created { thread },
            T::Ended { thread },
            T::Changed { thread },
            T::Released {
                thread,
                job,
                arrival,
                deadline,
            },
            T::Skipped { thread, job },
            T::Lost { thread, job },
            T::Started {
                thread,
                job,
                budget,
            },
            T::Completed {
                thread,
                job,
                outcome,
                arrival,
                deadline,
                received: work,
            },
            T::Overran { thread, job },
            T::Throttled { thread, job },
            T::Replenished {
                thread,
                budget: work,
            },
            T::Demoted { thread, job },
            T::Blocked {
                thread,
                job,
                for_predecessors: flag,
            },
            T::Woken { thread, cause },
            T::Switched {
                from,
                to: budget.map(|_| thread),
                preempted: flag,
            },
            of_tree,
            of_tree,
            of_tree,
        ])
    }

    pub(crate) fn decision(&mut self) -> Decision {
        let (thread, slot, node) = (self.thread(), self.small(), self.node());
        Decision {
            next: self.pick(&[Next::Idle, Next::Thread(thread), Next::RunChild(node)]),
            arm: (self.next().is_multiple_of(2)).then(|| self.instant()),
            refused: self.pick(&[
                None,
                Some(Refusal::StaleThread(thread)),
                Some(Refusal::NobodyRuns),
                Some(Refusal::NoThreadLeft),
                Some(Refusal::NotSporadic(thread)),
                Some(Refusal::NoSuchSlot(slot)),
                Some(Refusal::InvalidConstraint),
                Some(Refusal::NotDeclared(slot)),
                Some(Refusal::AlreadyHeld(slot)),
                Some(Refusal::NotHeld(slot)),
                Some(Refusal::NestedTooDeep(slot)),
                Some(Refusal::Deadlock(slot)),
                Some(Refusal::UsesResources(thread)),
                Some(Refusal::NoSuchNode(node)),
                Some(Refusal::NoNodeLeft),
                Some(Refusal::TooDeep(node)),
                Some(Refusal::NotAParent(node)),
                Some(Refusal::QuotaExhausted(node)),
                Some(Refusal::NotDeciding(node)),
                Some(Refusal::StalePick(node)),
                Some(Refusal::NotItsOwn(thread)),
                Some(Refusal::NotReady(thread)),
                Some(Refusal::NotItsChild(node)),
                Some(Refusal::NotASibling(node)),
                Some(Refusal::TooLittleBudget(node)),
                Some(Refusal::OnlyRootCreates(node)),
                Some(Refusal::BlockedByTrusted(thread)),
                Some(Refusal::NotGrantable(node)),
                Some(Refusal::NotReplaceable(node)),
                Some(Refusal::NothingShelved(node)),
                Some(Refusal::BeingReplaced(node)),
            ]),
        }
    }
}
