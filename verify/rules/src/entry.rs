//! One CPU, entry by entry: each has an event, changes and a decision.

use std::fmt;

use punctual_kern::{Decision, Event, Next, NodeId, Request, TraceEvent};
use punctual_model::{Instant, Span, ThreadId};
use punctual_trace::{Log, Record, RecordedEntry};

use crate::agenda::Agenda;
use crate::node::{CPU, Node, ROOT};
use crate::queue::Entity;
use crate::resource::Locks;
use crate::thread::Thread;
use crate::{MAX_LISTED, Rule, Violation};

/// Judges the records of one CPU.
pub(crate) fn judge(log: &Log, cpu: usize) -> Vec<Violation> {
    let mut judge = Judge::new(log, cpu);
    let (mut open, mut changes) = (None, Vec::new());
    for (_, record) in &log.cpus[cpu].records {
        if judge.violations.len() >= MAX_LISTED {
            break;
        }
        match (record, open.take()) {
            (Record::Entry(entry), before) => {
                if before.is_some() {
                    judge.is_broken("leaves an entry without a decision");
                }
                open = Some(entry);
                changes.clear();
            }
            (Record::Trace(change), Some(entry)) => {
                changes.push(change);
                open = Some(entry);
            }
            (Record::Decision(decision), Some(entry)) => judge.entry(&entry, &changes, decision),
            (other, None) => judge.is_broken(format_args!("has {other:?} outside of an entry")),
        }
    }
    if open.is_some() {
        judge.is_broken("leaves its last entry without a decision");
    }
    judge.violations
}

/// The state of a CPU as its records state it.
pub(crate) struct Judge<'a> {
    pub(crate) log: &'a Log,
    pub(crate) cpu: usize,
    pub(crate) threads: Vec<Thread>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) locks: Locks,
    pub(crate) running: Option<ThreadId>,
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

    // The entry that is open: its event, the thread that ran when it began, whether the processor
    // or the tree has changed in it, and what a child has to pay for deciding.
    pub(crate) event: Event,
    /// The last instant at which the running thread got back the cost of an entry.
    pub(crate) spared: Instant,
    /// The busy window of the CPU, counted.
    pub(crate) window: u64,
    pub(crate) before: Option<usize>,
    pub(crate) switched: bool,
    pub(crate) tree_changed: bool,
    pub(crate) pays: Option<(usize, u64)>,
    /// The segments of plans, as staged.
    pub(crate) agenda: Agenda,
    violations: Vec<Violation>,
}

impl<'a> Judge<'a> {
    fn new(log: &'a Log, cpu: usize) -> Self {
        let tables = &log.tables.cpus[cpu];
        let threads = (0..).zip(&tables.threads).map(|(index, (_, constraint))| {
            let home = tables.homes.get(index as usize).copied().unwrap_or(0);
            let home = usize::from(home).min(tables.nodes.len());
            Thread::new(ThreadId::new(index, 0), *constraint, home, Instant::ZERO)
        });
        Judge {
            log,
            cpu,
            threads: threads.collect(),
            nodes: Node::all(tables),
            locks: Locks::new(tables),
            running: None,
            deciding: None,
            now: Instant::ZERO,
            last: Instant::ZERO,
            armed: None,
            arm: None,
            was_late: false,
            event: Event::Tick,
            spared: Instant::ZERO,
            window: 0,
            before: None,
            switched: false,
            tree_changed: false,
            pays: None,
            agenda: Agenda::default(),
            violations: Vec::new(),
        }
    }

    /// What must hold of a thread or a scheduler, or else it breaks a rule: `what` it does.
    pub(crate) fn must(&mut self, holds: bool, rule: Rule, who: Entity, what: impl fmt::Display) {
        if !holds {
            self.accuse(rule, who, what);
        }
    }

    /// A thread or a scheduler broke a rule.
    pub(crate) fn accuse(&mut self, rule: Rule, who: Entity, what: impl fmt::Display) {
        self.violations.push(Violation {
            rule,
            cpu: self.log.cpus[self.cpu].name.clone(),
            now: self.now,
            detail: format!("{} {what}", self.name(who)),
        });
    }

    pub(crate) fn is_broken(&mut self, what: impl fmt::Display) {
        self.accuse(Rule::EntriesAreWhole, CPU, what);
    }

    /// A scheduler in messages, or a thread: its task, or its number.
    pub(crate) fn name(&self, who: Entity) -> String {
        let thread = match who {
            Entity::Node(node) => return self.log.node_name(self.cpu, node).into(),
            Entity::Thread(thread) => thread,
        };
        let id = self.threads.get(thread).map(|thread| thread.id);
        match id.map_or("?", |id| self.log.task_name(self.cpu, id)) {
            "?" => format!("thread {thread}"),
            name => name.into(),
        }
    }

    /// The place of a thread; `None` for one that does not exist.
    pub(crate) fn find(&self, id: ThreadId) -> Option<usize> {
        let thread = self.threads.get(id.index())?;
        (thread.id == id && !thread.dead).then_some(id.index())
    }

    pub(crate) fn thread(&mut self, id: ThreadId) -> Option<&mut Thread> {
        self.find(id).map(|thread| &mut self.threads[thread])
    }

    /// The place of a node; `None` for one that does not exist.
    pub(crate) fn node(&self, id: NodeId) -> Option<usize> {
        let node = self.nodes.get(id.index())?;
        let present = id.index() == ROOT || node.parent.is_some();
        (present && node.generation == id.generation()).then_some(id.index())
    }

    /// The instant when this much has passed.
    pub(crate) fn after(&self, ticks: u64) -> Instant {
        self.now.saturating_add(Span::from_ticks(ticks))
    }

    /// Whether the core wants to be back at or before this instant.
    pub(crate) fn is_armed_by(&self, at: Instant) -> bool {
        self.arm.is_some_and(|arm| arm <= at)
    }

    /// The core must want to be back at or before `end`, which is the end of `what`.
    pub(crate) fn ends(&mut self, end: Instant, rule: Rule, who: Entity, what: &str) {
        let what = format_args!("has nothing armed for the end of {what}");
        self.must(self.is_armed_by(end), rule, who, what);
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
        due.iter().for_each(|change| self.change(*change));
        self.ask(event, decision.refused);
        if decision.refused.is_none() {
            self.take(event);
        }
        rest.iter().for_each(|change| self.change(*change));
        self.end(decision);
    }

    /// Charges time to the thread that ran.
    fn begin(&mut self, entry: &RecordedEntry) {
        let RecordedEntry { now, event, .. } = *entry;
        let before = self.now;
        let what = format_args!("has {now:?} after {before:?}");
        self.must(now >= before, Rule::TimeRunsForward, CPU, what);
        let thread = self.running.and_then(|id| self.find(id));
        (self.now, self.event, self.before) = (now, event, thread);
        (self.switched, self.tree_changed) = (false, false);
        let (interval, missing) = (now.since(self.last), entry.missing.total());
        let what = format_args!("misses {missing:?} of an interval of {interval:?}");
        self.must(missing <= interval, Rule::MissingWithinInterval, CPU, what);
        let executed = interval.saturating_sub(missing).ticks();
        let decided = self.deciding.filter(|_| executed > 0);
        self.pays = decided.map(|child| (child, executed)).or(self.pays);
        if let Some(thread) = thread {
            self.charge(thread, executed);
        }
        let from = thread.map(|t| self.threads[t].queue).or(self.deciding);
        if let Some(from) = from.filter(|_| executed > 0) {
            self.charge_supply(from, executed, thread);
        }
        if let (Some(ceiling), Some(thread)) = (entry.ceiling, thread) {
            self.threads[thread].ceiling = ceiling;
        }
        self.last = now;
    }

    /// The effect of an event before any change that is told.
    fn take(&mut self, event: Event) {
        let running = self.running.and_then(|id| self.find(id));
        match (event, running) {
            (Event::Protect, Some(thread)) => self.threads[thread].in_section = true,
            (Event::Unprotect, Some(thread)) => {
                self.threads[thread].in_section = false;
                self.unprotect(thread);
            }
            (Event::Yield, Some(thread)) if self.threads[thread].current.is_some() => {
                let at = self.threads[thread].queue;
                self.forget_answer(at);
                if !self.nodes[at].decides() {
                    self.nodes[at]
                        .queue
                        .yields(Entity::Thread(thread), self.now);
                }
            }
            (Event::Manage { request, .. }, _) => {
                if let Request::Replace { node, policy } = request
                    && let Some(at) = self.node(node)
                {
                    self.nodes[at].next = Some(policy);
                }
            }
            (Event::Agenda(step), _) => self.agenda.take(&step),
            (Event::ChildFailed(child), _) => self.gave_up(child),
            (Event::HandOver { key, from, to }, _) => self.handed_over(key, (from, to)),
            (Event::Lock { resource, mode, .. }, Some(thread)) => {
                self.threads[thread].request = Some((resource, mode));
            }
            (Event::Arrive { thread, arrival }, _) => {
                let arrival = arrival.min(self.now);
                if let Some(t) = self.thread(thread) {
                    t.fed += u64::from(arrival < t.constraint.until);
                }
            }
            (Event::Change { thread, constraint }, _) => {
                if let Some(t) = self.thread(thread) {
                    t.change = Some(constraint);
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, decision: Decision) {
        let (next, child) = match decision.next {
            Next::Thread(thread) => (Some(thread), None),
            Next::RunChild(node) => (None, Some(node)),
            _ => (None, None),
        };
        let ran = std::mem::replace(&mut self.running, next);
        let what = "decides for another thread than the one that runs";
        self.must(next == ran, Rule::OneThreadRuns, CPU, what);
        self.arm = decision.arm;
        self.answered(decision.refused);
        self.deciding = child.and_then(|node| self.node(node));
        self.patience_passes();
        self.releases_are_in_time(true);
        self.deferrals_are_told();
        self.keys_are_right();
        self.schedulers_are_raised();
        self.locks_are_passed_on();
        self.supply_is_told();
        let chosen = next.and_then(|id| self.find(id));
        let entity = chosen
            .map(Entity::Thread)
            .or(self.deciding.map(Entity::Node));
        if entity.is_none() && (next.is_some() || child.is_some()) {
            let what = "runs a thread or a scheduler that does not exist";
            self.accuse(Rule::OnlyReadyRuns, CPU, what);
        } else {
            self.choice(entity);
        }
        self.schedulers_are_queued();
        if let Some(thread) = chosen.filter(|&t| self.threads[t].ready) {
            self.running_is_funded(thread);
            self.section_is_armed(thread);
        }
        self.releases_are_in_time(false);
        if decision.next == Next::Idle {
            self.end_busy_window();
        }
        self.armed = match decision.arm {
            // More was due than an entry serves: the next one, at once, is as late as this.
            Some(arm) if arm <= self.now => Some(self.armed.map_or(arm, |before| before.min(arm))),
            arm => arm,
        };
    }

    pub(crate) fn switch(&mut self, from: Option<ThreadId>, to: Option<ThreadId>, preempts: bool) {
        let left = from.and_then(|id| self.find(id));
        let still_ready = left.is_some_and(|t| self.threads[t].ready);
        let again = std::mem::replace(&mut self.switched, true);
        let before = std::mem::replace(&mut self.running, to);
        let right = from == before && from != to && !again && preempts == still_ready;
        let what = format_args!("goes from {from:?} to {to:?} ({preempts}) while {before:?} runs");
        self.must(right, Rule::OneThreadRuns, CPU, what);
        if let Some(to) = to.and_then(|id| self.find(id)) {
            let preempted = left.filter(|_| preempts && self.event != Event::Yield);
            self.move_cache_delay(preempted, to);
        }
    }

    pub(crate) fn created(&mut self, id: ThreadId) {
        let (home, constraint) = match self.event {
            Event::Create(constraint) => (NodeId::ROOT, constraint),
            Event::Manage {
                request: Request::Create { home, constraint },
                ..
            } => (home, constraint),
            _ => return self.is_broken("creates a thread that nobody asked for"),
        };
        let home = self.node(home).unwrap_or(ROOT);
        let place = id.index()..self.threads.len().min(id.index() + 1);
        if id.index() <= self.threads.len() {
            let thread = Thread::new(id, constraint, home, self.now);
            drop(self.threads.splice(place, [thread]));
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

/// An amount or an instant in messages.
pub(crate) struct InTicks(pub Option<u64>);

impl fmt::Display for InTicks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(ticks) => write!(f, "{ticks} ticks"),
            None => f.write_str("none"),
        }
    }
}
