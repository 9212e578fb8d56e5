//! One CPU, entry by entry: each has an event, changes and a decision.

use std::fmt;

use punctual_kern::{Decision, Event, Next, NodeId, Request, TraceEvent};
use punctual_model::{Instant, Span, ThreadId};
use punctual_trace::{Log, Record, RecordedEntry};

use crate::node::{Asked, Node, ROOT};
use crate::queue::{Entity, Key};
use crate::resource::Locks;
use crate::thread::Thread;
use crate::{MAX_LISTED, Rule, Violation};

/// Judges the records of one CPU.
pub(crate) fn judge(log: &Log, cpu: usize) -> Vec<Violation> {
    let mut judge = Judge::new(log, cpu);
    let mut open: Option<(RecordedEntry, Vec<TraceEvent>)> = None;
    for (_, record) in &log.cpus[cpu].records {
        if judge.violations.len() >= MAX_LISTED {
            break;
        }
        match (record, open.take()) {
            (Record::Entry(entry), before) => {
                if before.is_some() {
                    judge.is_broken("an entry has no decision".into());
                }
                open = Some((entry, Vec::new()));
            }
            (Record::Trace(change), Some((entry, mut changes))) => {
                changes.push(change);
                open = Some((entry, changes));
            }
            (Record::Decision(decision), Some((entry, changes))) => {
                judge.entry(&entry, &changes, decision);
            }
            (other, None) => judge.is_broken(format!("{other:?} outside of an entry")),
        }
    }
    if open.is_some() {
        judge.is_broken("the last entry has no decision".into());
    }
    judge.violations
}

/// The state of a CPU as its records state it.
pub(crate) struct Judge<'a> {
    pub(crate) log: &'a Log,
    pub(crate) cpu: usize,
    pub(crate) threads: Vec<Thread>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) running: Option<ThreadId>,
    /// The thread that ran when this entry began.
    before: Option<ThreadId>,
    /// The scheduler that decides on its own supply since the last decision.
    pub(crate) deciding: Option<usize>,
    pub(crate) now: Instant,
    /// Up to when time is charged.
    pub(crate) last: Instant,
    pub(crate) armed: Option<Instant>,
    /// When the core wants to be back after the entry that ends.
    pub(crate) arm: Option<Instant>,
    /// An entry has been late.
    pub(crate) was_late: bool,
    /// The event of the entry that is open.
    pub(crate) event: Option<Event>,
    switched: bool,
    pub(crate) asked: Asked,
    pub(crate) locks: Locks,
    violations: Vec<Violation>,
}

impl<'a> Judge<'a> {
    fn new(log: &'a Log, cpu: usize) -> Self {
        let plan = &log.plan.cpus[cpu];
        let threads = (0..).zip(&plan.threads).map(|(index, (_, constraint))| {
            let home = plan.homes.get(index as usize).copied().unwrap_or(0);
            let home = usize::from(home).min(plan.nodes.len());
            Thread::new(ThreadId::new(index, 0), *constraint, home, Instant::ZERO)
        });
        Judge {
            log,
            cpu,
            threads: threads.collect(),
            nodes: Node::all(plan),
            running: None,
            before: None,
            deciding: None,
            now: Instant::ZERO,
            last: Instant::ZERO,
            armed: None,
            arm: None,
            was_late: false,
            event: None,
            switched: false,
            asked: Asked::default(),
            locks: Locks::new(plan),
            violations: Vec::new(),
        }
    }

    pub(crate) fn violation(&mut self, rule: Rule, detail: String) {
        self.violations.push(Violation {
            rule,
            cpu: self.log.cpus[self.cpu].name.clone(),
            now: self.now,
            detail,
        });
    }

    /// A thread broke a rule.
    pub(crate) fn accuse(&mut self, rule: Rule, thread: usize, what: impl fmt::Display) {
        self.violation(rule, format!("{} {what}", self.name(thread)));
    }

    /// A scheduler broke a rule.
    pub(crate) fn accuse_node(&mut self, rule: Rule, node: usize, what: impl fmt::Display) {
        self.violation(rule, format!("{} {what}", self.node_name(node)));
    }

    pub(crate) fn is_broken(&mut self, what: String) {
        self.violation(Rule::EntriesAreWhole, what);
    }

    /// A thread in messages: its task, or its number.
    pub(crate) fn name(&self, thread: usize) -> String {
        let id = self.threads.get(thread).map(|thread| thread.id);
        match id.filter(|id| self.log.task_of(self.cpu, *id).is_some()) {
            Some(id) => self.log.task_name(self.cpu, id).into(),
            None => format!("thread {thread}"),
        }
    }

    /// A scheduler in messages.
    pub(crate) fn node_name(&self, node: usize) -> String {
        self.log.node_name(self.cpu, node).into()
    }

    pub(crate) fn find(&self, id: ThreadId) -> Option<usize> {
        let thread = self.threads.get(id.index())?;
        (thread.id == id).then_some(id.index())
    }

    pub(crate) fn find_alive(&self, id: ThreadId) -> Option<usize> {
        self.find(id).filter(|&thread| !self.threads[thread].dead)
    }

    /// Whether the core wants to be back before this much has passed.
    pub(crate) fn is_armed_within(&self, ticks: u64) -> bool {
        self.is_armed_by(self.now.saturating_add(Span::from_ticks(ticks)))
    }

    /// Whether the core wants to be back at or before this instant.
    pub(crate) fn is_armed_by(&self, at: Instant) -> bool {
        self.arm.is_some_and(|arm| arm <= at)
    }

    /// The place of a node; `None` for one that does not exist.
    pub(crate) fn node(&self, id: NodeId) -> Option<usize> {
        let node = self.nodes.get(id.index())?;
        let present = node.alive && node.generation == id.generation();
        present.then_some(id.index())
    }

    /// The thread that ran when this entry began, by its id.
    pub(crate) fn before_id(&self) -> Option<ThreadId> {
        self.before
    }

    /// The thread that ran when this entry began.
    pub(crate) fn before(&self) -> Option<usize> {
        self.before.and_then(|id| self.find(id))
    }

    /// How late this entry is.
    pub(crate) fn lateness(&self) -> u64 {
        self.armed.map_or(0, |armed| self.now.since(armed).ticks())
    }

    fn entry(&mut self, entry: &RecordedEntry, changes: &[TraceEvent], decision: Decision) {
        let event = entry.event;
        self.begin(entry);
        // What was due before a late entry's event comes before it, and what was charged.
        let caught_up = changes.iter().position(|c| *c == TraceEvent::CaughtUp);
        let charged = || changes.iter().position(|c| !is_charge(c));
        let due = caught_up.map(|at| at + 1).or_else(charged);
        let (due, rest) = changes.split_at(due.unwrap_or(changes.len()));
        for change in due {
            self.change(*change);
        }
        self.ask(event);
        self.take(event);
        for change in rest {
            self.change(*change);
        }
        self.end(event, decision);
        self.event = None;
    }

    /// Charges time to the thread that ran.
    fn begin(&mut self, entry: &RecordedEntry) {
        let RecordedEntry { now, event, .. } = *entry;
        if now < self.now {
            let (is, was) = (now.ticks(), self.now.ticks());
            self.violation(Rule::TimeRunsForward, format!("{is} comes after {was}"));
        }
        self.now = now;
        self.event = Some(event);
        self.switched = false;
        self.before = self.running;
        let (interval, missing) = (now.since(self.last), entry.missing.total());
        if missing > interval {
            let (is, most) = (missing.ticks(), interval.ticks());
            let what = format!("{is} ticks missing in an interval of {most}");
            self.violation(Rule::MissingWithinInterval, what);
        }
        let executed = interval.saturating_sub(missing).ticks();
        self.child_decided(executed);
        self.charge(executed);
        let thread = self.running.and_then(|id| self.find(id));
        let from = thread.map(|t| self.threads[t].queue).or(self.deciding);
        if let Some(from) = from.filter(|_| executed > 0) {
            self.charge_supply(from, executed, thread);
            if let Some(thread) = thread {
                self.locks.charge(thread, executed);
            }
        }
        self.last = now;
        let running = self.running.and_then(|id| self.find(id));
        if let (Some(ceiling), Some(thread)) = (entry.ceiling, running) {
            self.threads[thread].ceiling = ceiling;
        }
    }

    /// The effect of an event before any change that is told.
    fn take(&mut self, event: Event) {
        let now = self.now;
        let running = self.running.and_then(|id| self.find(id));
        match (event, running) {
            (Event::Protect, Some(thread)) => self.threads[thread].in_section = true,
            (Event::Unprotect, Some(thread)) => {
                self.threads[thread].in_section = false;
                self.unprotect_outside(thread);
            }
            (Event::Yield, Some(thread)) if self.threads[thread].current.is_some() => {
                let (at, id) = (self.threads[thread].queue, self.threads[thread].id);
                self.forget_answer(at);
                if !self.nodes[at].own_time {
                    self.nodes[at].queue.yields(Entity::Thread(id), now);
                }
            }
            (Event::HandOver { .. }, _) => self.handed_over(event),
            (Event::Lock { resource, mode, .. }, Some(thread)) => {
                self.threads[thread].request = Some((resource, mode));
            }
            (Event::Arrive { thread, arrival }, _) => {
                if let Some(thread) = self.find(thread) {
                    let t = &mut self.threads[thread];
                    t.fed += u64::from(arrival.min(now) < t.constraint.until);
                }
            }
            (Event::Change { thread, constraint }, _) => {
                if let Some(thread) = self.find(thread) {
                    self.threads[thread].change = Some(constraint);
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, event: Event, decision: Decision) {
        let (next, child) = match decision.next {
            Next::Thread(thread) => (Some(thread), None),
            Next::RunChild(node) => (None, Some(node)),
            _ => (None, None),
        };
        if next != self.running {
            let what = "the decision names another thread than the one that runs";
            self.violation(Rule::OneThreadRuns, what.into());
            self.running = next;
        }
        self.arm = decision.arm;
        self.answered(event, decision.refused);
        self.settle(event, decision);
        self.deciding = child.and_then(|node| self.node(node));
        self.releases_are_in_time(true);
        self.deferrals_are_told();
        self.keys_are_right();
        self.schedulers_are_raised();
        self.locks_are_passed_on();
        self.supply_is_told();
        let chosen = next.and_then(|id| self.find(id));
        if (next.is_some() && chosen.is_none()) || (child.is_some() && self.deciding.is_none()) {
            let what = "a thread or a scheduler runs that does not exist".into();
            self.violation(Rule::OnlyReadyRuns, what);
        } else {
            let thread = chosen.map(|t| Entity::Thread(self.threads[t].id));
            self.choice(thread.or(self.deciding.map(Entity::Node)));
        }
        self.schedulers_are_queued();
        if let Some(thread) = chosen.filter(|&t| self.threads[t].ready) {
            self.running_is_funded(thread);
            self.section_is_armed(thread);
        }
        self.releases_are_in_time(false);
        self.armed = match decision.arm {
            // More was due than an entry serves: the next one, at once, is as late as this.
            Some(arm) if arm <= self.now => Some(self.armed.map_or(arm, |before| before.min(arm))),
            arm => arm,
        };
    }

    /// A refused event has not happened.
    fn settle(&mut self, event: Event, decision: Decision) {
        let refused = decision.refused;
        if refused.is_none() {
            return;
        }
        match event {
            Event::Lock { .. } => {
                if let Some(thread) = self.before() {
                    self.threads[thread].request = None;
                }
            }
            Event::Change { thread, .. } => {
                if let Some(thread) = self.find(thread) {
                    self.threads[thread].change = None;
                }
            }
            _ => {}
        }
    }

    fn change(&mut self, change: TraceEvent) {
        use TraceEvent as T;
        let node = match change {
            T::ServerReplenished { node, .. }
            | T::ServerExhausted { node }
            | T::ChildCharged { node, .. }
            | T::SchedulerEnded { node }
            | T::Queued { node, .. }
            | T::Unqueued { node, .. } => self.node(node),
            _ => Some(ROOT),
        };
        let Some(node) = node else {
            return self.is_broken("a change of a scheduler that does not exist".into());
        };
        match change {
            T::Switched {
                from,
                to,
                preempted,
            } => self.switch((from, to), preempted),
            T::ServerReplenished { budget, .. } => self.server_replenished(node, budget),
            T::ServerExhausted { .. } => self.server_exhausted(node),
            T::ChildCharged { work, .. } => self.child_charged(node, work),
            T::Lent { from, to, work } => self.lent(from, to, work),
            T::Promoted { node, parent } => self.promoted(node, parent),
            T::SchedulerEnded { .. } => self.scheduler_ended(node),
            T::Created { thread } => self.created(thread),
            T::CaughtUp => {}
            T::Queued { .. } | T::Unqueued { .. } => self.queued(node, change),
            _ => self.of_thread(change),
        }
    }

    /// By which key a scheduler is queued among its siblings, if it is.
    fn queued(&mut self, at: usize, change: TraceEvent) {
        let Some(parent) = self.nodes[at].parent else {
            return self.is_broken("the CPU's own scheduler is queued".into());
        };
        let entity = Entity::Node(at);
        match change {
            TraceEvent::Unqueued { budget, .. } => {
                self.budget_is(at, budget);
                self.nodes[parent].queue.leave(entity);
            }
            TraceEvent::Queued {
                priority,
                deadline,
                release,
                budget,
                ..
            } => {
                self.budget_is(at, budget);
                let key = Key {
                    background: false,
                    priority,
                    deadline,
                    release,
                    rank: self.nodes[at].rank,
                };
                let before = self.nodes[parent].queue.key(entity);
                let wakes = before.is_none() && release > Instant::ZERO;
                self.supply_is_due(at, deadline, wakes.then_some(release));
                if release > self.now {
                    let what = format!("counts from {}", release.ticks());
                    self.accuse_node(Rule::PolicyOrder, at, what);
                }
                self.wakes(parent);
                let queue = &mut self.nodes[parent].queue;
                match before {
                    None => queue.enter(entity, key, Some(self.now)),
                    Some(old) => {
                        if old.deadline != deadline {
                            queue.renew(entity);
                        }
                        queue.order(entity, key, false);
                    }
                }
            }
            _ => {}
        }
    }

    fn switch(&mut self, (from, to): (Option<ThreadId>, Option<ThreadId>), preempted: bool) {
        let still_ready = from
            .and_then(|id| self.find(id))
            .is_some_and(|t| self.threads[t].ready && !self.threads[t].dead);
        if from != self.running || from == to || self.switched || preempted != still_ready {
            let what = format!(
                "switched from {from:?} to {to:?} (preempted: {preempted}) while {:?} runs",
                self.running
            );
            self.violation(Rule::OneThreadRuns, what);
        }
        self.switched = true;
        self.running = to;
    }

    fn created(&mut self, id: ThreadId) {
        let (home, constraint) = match self.event {
            Some(Event::Create(constraint)) => (NodeId::ROOT, constraint),
            Some(Event::Manage {
                request: Request::Create { home, constraint },
                ..
            }) => (home, constraint),
            _ => return self.is_broken("a thread was created that nobody asked for".into()),
        };
        let home = self.node(home).unwrap_or(ROOT);
        let thread = Thread::new(id, constraint, home, self.now);
        let index = id.index();
        if index < self.threads.len() {
            self.threads[index] = thread;
        } else if index == self.threads.len() {
            self.threads.push(thread);
        }
    }
}

/// Whether this may come of what was executed before an entry.
fn is_charge(change: &TraceEvent) -> bool {
    use TraceEvent::{ChildCharged, SectionOverran, ServerExhausted};
    matches!(
        change,
        ChildCharged { .. } | SectionOverran { .. } | ServerExhausted { .. }
    )
}
