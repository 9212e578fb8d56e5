//! A shard with a memory of what it reported.

use punctual_kern::{
    Capacity, Ceiling, Constraint, Decision, Entry, Event, Next, Shard, Sink, TraceEvent, Tree,
};
use punctual_model::{Class, Instant, Late, OnOverrun, Priority, Span, ThreadId, Work};
use punctual_policy::FixedPriority;

#[derive(Default)]
pub(crate) struct Log(pub(crate) Vec<(u64, TraceEvent)>);

impl Sink for Log {
    fn trace(&mut self, now: Instant, event: TraceEvent) {
        self.0.push((now.ticks(), event));
    }
}

/// A fixed-priority shard; threads are named by their index.
pub(crate) struct Driver {
    pub(crate) shard: Shard<FixedPriority>,
    pub(crate) log: Log,
}

pub(crate) fn constraint(class: Class, priority: u32) -> Constraint {
    Constraint {
        class,
        priority: Priority::new(priority),
        phase: Span::ZERO,
        late: Late::default(),
        on_overrun: OnOverrun::default(),
        order: 100 - priority,
        until: Instant::MAX,
        fed: false,
    }
}

pub(crate) fn periodic(wcet: u64, period: u64, priority: u32) -> Constraint {
    let class = Class::Periodic {
        period: Span::from_ticks(period),
        wcet: Work::from_ticks(wcet),
        relative_deadline: Span::from_ticks(period),
    };
    constraint(class, priority)
}

impl Driver {
    pub(crate) fn new(constraints: &[Constraint]) -> Driver {
        let capacity = Capacity::for_threads(8);
        let mut shard = Shard::new(Tree::new(capacity, FixedPriority::new(capacity.threads)));
        for constraint in constraints {
            let _ = shard.attach(*constraint).unwrap();
        }
        Driver {
            shard,
            log: Log::default(),
        }
    }

    pub(crate) fn at(&mut self, now: u64, event: Event) -> Decision {
        self.enter(&Entry::at(Instant::from_ticks(now), &event))
    }

    pub(crate) fn enter(&mut self, entry: &Entry<'_>) -> Decision {
        let decision = self.shard.handle_entry(entry, &mut self.log);
        assert_eq!(self.shard.check(), Ok(()));
        decision
    }

    /// The running thread's ceiling changes with the event.
    pub(crate) fn raised(
        &mut self,
        now: u64,
        ceiling: Option<Ceiling>,
        event: Event,
    ) -> Option<usize> {
        let entry = Entry {
            ceiling: Some(ceiling),
            ..Entry::at(Instant::from_ticks(now), &event)
        };
        let _ = self.enter(&entry);
        self.shard.running().map(ThreadId::index)
    }

    /// Who runs after the event: an index, or nobody.
    pub(crate) fn runs(&mut self, now: u64, event: Event) -> Option<usize> {
        match self.at(now, event).next {
            Next::Thread(id) => Some(id.index()),
            _ => None,
        }
    }
}

pub(crate) fn id(index: u32) -> ThreadId {
    ThreadId::new(index, 0)
}
