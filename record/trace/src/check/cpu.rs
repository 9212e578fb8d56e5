//! One CPU, entry by entry.

use punctual_kern::{Decision, Event, Next, NodeId, Request, TraceEvent};
use punctual_model::{Instant, Span, ThreadId};

use super::lenders::Lenders;
use super::locks::Locks;
use super::manage::Asked;
use super::node::{Node, ROOT};
use super::order::Entity;
use super::precedence::History;
use super::thread::Thread;
use super::{MAX_LISTED, Rule, Violation};
use crate::log::Log;
use crate::record::Record;

/// Checks the records of one CPU; the history serves the check of precedence.
pub(super) fn check(log: &Log, cpu: usize) -> (Vec<Violation>, History) {
    let mut check = CpuCheck::new(log, cpu);
    for (now, record) in &log.cpus[cpu].records {
        if check.violations.len() >= MAX_LISTED {
            check.history.known_until = check.now;
            break;
        }
        match record {
            Record::Event { event, .. } => check.begin(now, event),
            Record::Trace(change) => check.change(change),
            Record::Decision(decision) => check.end(decision),
        }
    }
    if check.event.is_some() {
        check.violation(
            Rule::EntriesAreWhole,
            "the last entry has no decision".into(),
        );
    }
    if let Some(lost_from) = log.cpus[cpu].lost_from {
        check.history.known_until = check.history.known_until.min(lost_from);
    }
    (check.violations, check.history)
}

/// The state of a CPU as its records tell it.
pub(super) struct CpuCheck<'a> {
    pub(super) log: &'a Log,
    pub(super) cpu: usize,
    pub(super) threads: Vec<Thread>,
    pub(super) nodes: Vec<Node>,
    pub(super) running: Option<ThreadId>,
    /// Who ran when this entry began.
    before: Option<ThreadId>,
    /// The scheduler that decides on its own supply since the last decision.
    pub(super) deciding: Option<usize>,
    pub(super) now: Instant,
    /// Up to when time is charged; the last entry that served what was due, and the one before it.
    last: Instant,
    served: Instant,
    pub(super) entered: Instant,
    /// An entry has been late: some orders may not be known from then on.
    pub(super) was_late: bool,
    missing: Span,
    pub(super) armed: Option<Instant>,
    /// The event of the entry that is open.
    pub(super) event: Option<Event>,
    switched: bool,
    /// Servers whose budget ended in this entry, which the core has not said yet.
    pub(super) exhausted: Vec<usize>,
    pub(super) asked: Asked,
    pub(super) locks: Locks,
    pub(super) lenders: Lenders,
    pub(super) history: History,
    violations: Vec<Violation>,
}

impl<'a> CpuCheck<'a> {
    fn new(log: &'a Log, cpu: usize) -> Self {
        let plan = &log.plan.cpus[cpu];
        let threads = plan
            .threads
            .iter()
            .enumerate()
            .map(|(index, (_, constraint))| {
                let index = u32::try_from(index).unwrap_or(u32::MAX);
                let home = plan.homes.get(index as usize).copied().unwrap_or(0);
                let home = usize::from(home).min(plan.nodes.len());
                Thread::new(ThreadId::new(index, 0), *constraint, (home, Instant::ZERO))
            });
        CpuCheck {
            log,
            cpu,
            threads: threads.collect(),
            nodes: Node::all(plan),
            running: None,
            before: None,
            deciding: None,
            now: Instant::ZERO,
            last: Instant::ZERO,
            served: Instant::ZERO,
            entered: Instant::ZERO,
            was_late: false,
            missing: Span::ZERO,
            armed: None,
            event: None,
            switched: false,
            exhausted: Vec::new(),
            asked: Asked::default(),
            locks: Locks::new(plan),
            lenders: Lenders::new(plan),
            history: History::new(plan),
            violations: Vec::new(),
        }
    }

    pub(super) fn violation(&mut self, rule: Rule, detail: String) {
        self.violations.push(Violation {
            rule,
            cpu: self.log.cpus[self.cpu].name.clone(),
            now: self.now,
            detail,
        });
    }

    /// A thread in messages: its task, or its number.
    pub(super) fn name(&self, thread: usize) -> String {
        let id = self.threads.get(thread).map(|thread| thread.id);
        match id.and_then(|id| self.log.task_of(self.cpu, id).map(|_| id)) {
            Some(id) => self.log.task_name(self.cpu, id).into(),
            None => format!("thread {thread}"),
        }
    }

    pub(super) fn find(&self, id: ThreadId) -> Option<usize> {
        let thread = self.threads.get(id.index())?;
        (thread.id == id).then_some(id.index())
    }

    fn begin(&mut self, now: Instant, event: Event) {
        if self.event.is_some() {
            self.violation(Rule::EntriesAreWhole, "an entry has no decision".into());
        }
        if now < self.now {
            let (is, was) = (now.ticks(), self.now.ticks());
            self.violation(Rule::TimeRunsForward, format!("{is} comes after {was}"));
        }
        self.now = now;
        self.event = Some(event);
        self.switched = false;
        self.before = self.running;
        if matches!(event, Event::Missing { .. }) {
            return;
        }
        let executed = now.since(self.last).saturating_sub(self.missing);
        self.settle_idle();
        self.child_decided(executed.ticks());
        self.charge(executed.ticks());
        let thread = self.running.and_then(|id| self.find(id));
        if let Some(from) = thread.map(|t| self.threads[t].queue).or(self.deciding)
            && !executed.is_zero()
        {
            self.charge_supply(from, (executed.ticks(), thread));
            if let Some(thread) = thread {
                self.locks.charge(thread, executed.ticks());
            }
        }
        self.pass_before();
        self.last = now;
        self.missing = Span::ZERO;
        if let Event::Raise(ceiling) = event {
            return self.raised_to(ceiling);
        }
        (self.entered, self.served) = (self.served, now);
        self.ask(event);
        self.take(event);
    }

    /// What an event does by itself, before anything is told to have changed.
    fn take(&mut self, event: Event) {
        let now = self.now;
        match event {
            Event::Protect | Event::Unprotect => {
                if let Some(thread) = self.running.and_then(|id| self.find(id)) {
                    // What was due before a late entry comes before its event.
                    let late = self.lateness() > 0;
                    let section = &mut self.threads[thread].in_section;
                    *section = event == Event::Protect && (*section || !late);
                    if event == Event::Unprotect && !self.locks.shields(thread) {
                        self.unprotect(thread);
                    }
                }
            }
            Event::Yield => {
                let running = self.running.and_then(|id| self.find(id));
                if let Some(thread) = running {
                    let queue = self.threads[thread].queue;
                    if self.nodes[queue].own_time {
                        self.forget_answer(queue);
                        self.stir(queue);
                    } else if !self.threads[thread].low {
                        self.gives_way(thread);
                    }
                }
            }
            Event::HandOver { .. } => self.handed_over(event),
            Event::Lock {
                resource,
                mode,
                until,
            } => {
                if let Some(thread) = self.running.and_then(|id| self.find(id)) {
                    let t = &mut self.threads[thread];
                    (t.request, t.lock_until) = (Some((resource, mode)), until);
                }
            }
            Event::Arrive { thread, arrival } => {
                if let Some(thread) = self.find(thread) {
                    let t = &mut self.threads[thread];
                    t.fed += u64::from(arrival.min(now) < t.constraint.until);
                }
            }
            Event::Change { thread, constraint } => {
                if let Some(thread) = self.find(thread) {
                    self.threads[thread].change = Some(constraint);
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, decision: Decision) {
        let Some(event) = self.event.take() else {
            return self.violation(Rule::EntriesAreWhole, "a decision without an event".into());
        };
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
        if matches!(event, Event::Missing { .. }) {
            return;
        }
        self.answered(event, decision.refused);
        if matches!(event, Event::Raise(_)) {
            // Nothing is served and nobody chosen: the next entry is at once.
            return;
        }
        if let (Event::Lock { .. }, Some(_)) = (event, decision.refused)
            && let Some(thread) = self.before.and_then(|id| self.find(id))
        {
            self.threads[thread].request = None;
        }
        if event == Event::Protect && decision.refused.is_none() && self.lateness() > 0 {
            self.protect_late();
        }
        self.deciding = child.and_then(|node| self.node(node));
        if let (Event::Change { thread, .. }, Some(_)) = (event, decision.refused)
            && let Some(thread) = self.find(thread)
        {
            self.threads[thread].change = None;
        }
        self.nothing_overdue(decision.arm);
        self.refresh_urgency();
        self.supply_is_told();
        self.locks_are_passed_on();
        self.take_rests();
        self.doubt_rests();
        self.supply_is_armed(decision.arm);
        let chosen = next.and_then(|id| self.find(id));
        if (next.is_some() && chosen.is_none()) || (child.is_some() && self.deciding.is_none()) {
            let what = "a thread or a scheduler runs that does not exist".into();
            self.violation(Rule::OnlyReadyRuns, what);
        } else {
            let thread = chosen.map(|t| Entity::Thread(self.threads[t].id));
            self.choice(thread.or(self.deciding.map(Entity::Node)), decision.arm);
        }
        if let Some(thread) = chosen.filter(|&t| self.threads[t].ready) {
            self.running_is_funded(thread, decision.arm);
            self.section_is_armed(thread, decision.arm);
        }
        self.releases_are_armed(decision.arm);
        self.armed = match decision.arm {
            // More was due than an entry serves: the next one, at once, is as late as this.
            Some(arm) if arm <= self.now => Some(self.armed.map_or(arm, |before| before.min(arm))),
            arm => arm,
        };
    }

    /// The thread that ran has begun a section in a late entry.
    fn protect_late(&mut self) {
        if let Some(thread) = self.before.and_then(|id| self.find(id)) {
            let t = &mut self.threads[thread];
            t.in_section = t.ready;
        }
    }

    fn change(&mut self, change: TraceEvent) {
        let Some(event) = self.event else {
            let what = format!("{change:?} outside of an entry");
            return self.violation(Rule::EntriesAreWhole, what);
        };
        match change {
            TraceEvent::Missing { span, .. } => self.take_missing(span, event),
            TraceEvent::Switched {
                from,
                to,
                preempted,
            } => self.switch((from, to), preempted),
            TraceEvent::ServerReplenished { node, budget } => match self.node(node) {
                Some(node) => self.server_replenished(node, budget),
                None => self.no_such_scheduler(),
            },
            TraceEvent::ServerExhausted { node } => match self.node(node) {
                Some(node) => self.server_exhausted(node),
                None => self.no_such_scheduler(),
            },
            TraceEvent::ChildCharged { node, work } => match self.node(node) {
                Some(node) => self.child_charged(node, work),
                None => self.no_such_scheduler(),
            },
            TraceEvent::Lent { from, to, work } => self.lent(from, to, work),
            TraceEvent::Promoted { node, parent } => self.promoted(node, parent),
            TraceEvent::SchedulerEnded { node } => match self.node(node) {
                Some(node) => self.scheduler_ended(node),
                None => self.no_such_scheduler(),
            },
            TraceEvent::Created { thread } => self.created(thread, event),
            _ => self.of_thread(change),
        }
    }

    pub(super) fn no_such_scheduler(&mut self) {
        let what = "a change of a scheduler that does not exist".into();
        self.violation(Rule::EntriesAreWhole, what);
    }

    /// How late this entry is.
    pub(super) fn lateness(&self) -> u64 {
        self.armed.map_or(0, |armed| self.now.since(armed).ticks())
    }

    fn take_missing(&mut self, span: Span, event: Event) {
        self.missing = self.missing.saturating_add(span);
        let interval = self.now.since(self.last);
        let announced = matches!(event, Event::Missing { span: all, .. } if span <= all);
        if self.missing > interval || !announced {
            let (is, most) = (self.missing.ticks(), interval.ticks());
            let what = format!("{is} ticks missing in an interval of {most}");
            self.violation(Rule::MissingWithinInterval, what);
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

    fn created(&mut self, id: ThreadId, event: Event) {
        let (home, constraint) = match event {
            Event::Create(constraint) => (NodeId::ROOT, constraint),
            Event::Manage {
                request: Request::Create { home, constraint },
                ..
            } => (home, constraint),
            _ => {
                let what = "a thread was created that nobody asked for".into();
                return self.violation(Rule::EntriesAreWhole, what);
            }
        };
        let home = self.node(home).unwrap_or(ROOT);
        let thread = Thread::new(id, constraint, (home, self.now));
        let index = id.index();
        if index < self.threads.len() {
            self.threads[index] = thread;
        } else if index == self.threads.len() {
            self.threads.push(thread);
        }
    }
}
