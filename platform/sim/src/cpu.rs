//! One virtual CPU: its shard, what its threads execute, and the next thing that happens to it.

mod obey;
mod resume;
mod threads;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use punctual_child::ChildScheduler;
use punctual_kern::{
    Decision, Entry, Event, Front, Message, MissingCause, Next, NodeId, Plan, Policy, Shard, Sink,
    Uncharged,
};
use punctual_model::{CpuId, Instant, Span, TaskId, ThreadId, Work};
use punctual_tables::CpuTables;

use crate::agendas::Order;
use crate::body::{Act, Nudges, Step};
use crate::child::{Child, children};
use crate::doing::Doing;
use crate::faults::Faults;
use crate::parts::{Completion, Counters, CpuInput};
use crate::random::Random;
use crate::recorded::Gap;
use crate::{NEVER, RATE};
use resume::end_of;
use threads::{Feed, Times};

pub(crate) use threads::Threads;

/// A standstill that is still to come, then repeats.
struct Standstill {
    at: Instant,
    length: Span,
    every: Span,
}

pub(crate) struct Cpu<'a, P, S> {
    shard: Shard<P>,
    pub(crate) sink: S,
    tasks: Vec<TaskId>,
    doing: Vec<Doing<'a>>,
    pub(crate) nudges: Nudges,
    running: Option<ThreadId>,
    children: Vec<Child>,
    /// Nothing has been due here but timers, ends of sections and arrivals, and no change is to
    /// come.
    is_plain: bool,
    /// Which of them decides.
    deciding: Option<usize>,
    /// When the running section of work or decision ends, if nothing intervenes, and when its timer
    /// comes; [`NEVER`]: not by itself.
    section_end: Instant,
    timer: Instant,
    /// When the core wanted its timer.
    armed: Option<Instant>,
    feeds: Vec<Feed<'a>>,
    inbox: VecDeque<(Instant, Message)>,
    /// Of the planner of groups.
    orders: VecDeque<(Instant, Order)>,
    /// By number: the work behind a segment.
    segments: BTreeMap<u64, Work>,
    /// Next arrivals: release, order of the thread, feed, arrival.
    arrivals: BinaryHeap<Reverse<(Instant, u32, usize, Instant)>>,
    standstills: Vec<Standstill>,
    /// Those of a recorded run, the next one last.
    gaps: Vec<Gap>,
    /// Missing time to report with the next entry, and the instant before which nothing is seen.
    unreported: Uncharged,
    asleep_until: Instant,
    /// The changes while it runs.
    plan: Plan,
    late_timer: Span,
    cache_delay: Work,
    timer_cost: Span,
    budget_timer_cost: Span,
    random: Random,
    pub(crate) counters: Counters,
}

impl<'a, P: Policy, S: Sink> Cpu<'a, P, S> {
    pub(crate) fn new(
        threads: Threads<'a>,
        tables: &CpuTables,
        CpuInput { shard, sink }: CpuInput<P, S>,
        codes: Vec<ChildScheduler>,
        (faults, seed): (&Faults, u64),
    ) -> Self {
        let tasks: Vec<TaskId> = tables.threads.iter().map(|(task, _)| *task).collect();
        let Threads {
            doing,
            feeds,
            mut gaps,
            plan,
        } = threads;
        gaps.reverse();
        let random = Random::new(seed, 1 + u64::from(tables.cpu.0));
        let mut cpu = Cpu {
            shard,
            sink,
            tasks,
            doing,
            nudges: Nudges::default(),
            running: None,
            children: children(tables, codes, faults),
            is_plain: false,
            deciding: None,
            section_end: NEVER,
            timer: Instant::ZERO,
            armed: None,
            feeds,
            inbox: VecDeque::new(),
            orders: VecDeque::new(),
            segments: BTreeMap::new(),
            arrivals: BinaryHeap::new(),
            standstills: Vec::new(),
            gaps,
            plan,
            unreported: Uncharged::NONE,
            asleep_until: Instant::ZERO,
            late_timer: faults.late_timer.ticks_up(RATE),
            cache_delay: faults.cache_delay.ticks_up(RATE),
            timer_cost: faults.timer_cost.ticks_up(RATE).as_span(),
            budget_timer_cost: faults.budget_timer_cost.ticks_up(RATE).as_span(),
            random,
            counters: Counters::default(),
        };
        for feed in 0..cpu.feeds.len() {
            cpu.feed_next(feed);
        }
        cpu.note_standstills(tables.cpu, faults);
        let stands_still = !cpu.gaps.is_empty() || !cpu.standstills.is_empty();
        cpu.is_plain = !stands_still && cpu.plan.is_over();
        cpu
    }

    fn note_standstills(&mut self, cpu: CpuId, faults: &Faults) {
        for fault in faults
            .missing
            .iter()
            .filter(|f| f.cpu.is_none_or(|c| c == cpu))
        {
            let every = fault.every.ticks_up(RATE);
            let phase = self.random.span(every);
            let drawn = Instant::ZERO.saturating_add(phase);
            let from = faults.missing_from.map(|at| at.ticks_up(RATE));
            self.standstills.push(Standstill {
                at: from.unwrap_or(drawn),
                length: fault.length.ticks_up(RATE),
                every: every.max(Span::from_ticks(1)),
            });
        }
    }

    fn feed_next(&mut self, index: usize) {
        let feed = &mut self.feeds[index];
        let order = self.tasks[feed.thread as usize].0;
        let times = match &mut feed.times {
            Times::Declared(times) => times,
            Times::Recorded(times) => {
                let next = times.next();
                let entry = next.map(|(release, at)| Reverse((release, order, index, at)));
                return self.arrivals.extend(entry);
            }
        };
        let Some(arrival) = times
            .next()
            .map(|at| at.ticks_up(RATE))
            .filter(|&at| at < feed.until)
        else {
            return;
        };
        let jitter = if feed.jitter.is_zero() {
            Span::ZERO
        } else {
            self.random.span(feed.jitter)
        };
        let release = arrival.saturating_add(jitter).max(feed.not_before);
        self.arrivals
            .push(Reverse((release, order, index, arrival)));
    }

    pub(crate) fn unsettled(&self) -> bool {
        self.shard.unsettled() > 0
    }

    /// Whether a timer was due before `at` that has not come: it is late, or the processor stands
    /// still.
    pub(crate) fn owes_timer_before(&self, at: Instant) -> bool {
        self.armed.is_some_and(|armed| armed < at)
    }

    /// Whether an arrival is still to be fed.
    pub(crate) fn has_arrivals(&self) -> bool {
        !self.arrivals.is_empty()
    }

    /// When something happens here next; [`NEVER`]: nothing does.
    #[inline]
    pub(crate) fn next_instant(&self) -> Instant {
        let arrival = self.arrivals.peek().map(|Reverse((at, ..))| *at);
        let own = self.timer.min(self.section_end);
        let own = own.min(arrival.unwrap_or(NEVER));
        match self.is_plain {
            true => own,
            false => own.min(self.told()).max(self.asleep_until),
        }
    }

    /// When it does next what others tell it, or a change.
    #[inline]
    fn told(&self) -> Instant {
        if self.inbox.is_empty() && self.orders.is_empty() && self.plan.is_over() {
            return NEVER;
        }
        self.told_first()
    }

    #[cold]
    fn told_first(&self) -> Instant {
        let message = self.inbox.front().map(|(at, _)| *at);
        let order = self.orders.front().map(|(at, _)| *at);
        let all = [message, order, self.plan.due()];
        all.into_iter().flatten().min().unwrap_or(NEVER)
    }

    /// Lets the processor stand still if a standstill begins before `next`; then the next instant
    /// has changed and must be asked for again.
    #[inline]
    pub(crate) fn stand_still(&mut self, next: Instant) -> bool {
        if self.is_plain || (self.gaps.is_empty() && self.standstills.is_empty()) {
            return false;
        }
        let Some((at, length, cause)) = self.take_standstill(next) else {
            return false;
        };
        self.take(at.max(self.asleep_until), (length, cause));
        true
    }

    /// The next standstill that begins before `next`.
    fn take_standstill(&mut self, next: Instant) -> Option<(Instant, Span, MissingCause)> {
        if let Some(gap) = self.gaps.pop_if(|gap| gap.at < next) {
            return Some((gap.at, gap.length, gap.cause));
        }
        let fault = self.standstills.iter_mut().min_by_key(|fault| fault.at)?;
        if fault.at >= next {
            return None;
        }
        let begins = fault.at.max(self.asleep_until);
        let again = fault.at.saturating_add(fault.every);
        fault.at = again.max(begins.saturating_add(fault.length));
        Some((begins, fault.length, MissingCause::Stolen))
    }

    /// Does what happens at `now`. Returns the completion of a job, if that is what it is.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn step(&mut self, now: Instant) -> Option<Completion> {
        if self.section_end <= now && !self.arrival_goes_first(now) {
            return self.end_section(now);
        }
        // A job that ends at this instant ended in time. Anything else might be held back.
        let is_told = !self.is_plain && self.told() <= now;
        if is_told && self.listen(now) {
            return None;
        }
        // What arrives at the instant of a change finds it done.
        let changes = is_told && self.plan.due().is_some_and(|due| due <= now);
        if let Some(&Reverse((release, _, feed, arrival))) = self.arrivals.peek()
            && release <= now
            && !changes
        {
            let _ = self.arrivals.pop();
            let thread = ThreadId::new(self.feeds[feed].thread, 0);
            self.feed_next(feed);
            self.enter(now, &Event::Arrive { thread, arrival });
            self.pay(now, self.timer_cost);
            return None;
        }
        // The entry that begins a run is no timer's.
        let begins = self.armed.is_none();
        match self.is_plain {
            true => self.tick(now),
            false => self.enter(now, &Event::Tick),
        }
        if !begins {
            self.pay(now, self.timer_cost);
        }
        None
    }

    /// The timer has come where nothing else may be due.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn tick(&mut self, now: Instant) {
        match self.shard.release_front(now, &mut self.sink) {
            Front::Chosen(arm) => {
                self.save_progress(now);
                self.follow(now, self.shard.running(), arm);
            }
            Front::Turn(turn) => {
                self.save_progress(now);
                self.follow(now, Some(turn.next), Some(turn.arm));
            }
            Front::Closed => self.enter(now, &Event::Tick),
        }
    }

    /// Does what another CPU or the planner has told it, the planner first.
    #[cold]
    fn listen(&mut self, now: Instant) -> bool {
        if let Some((_, order)) = self.orders.pop_front_if(|(at, _)| *at <= now) {
            self.obey(now, order);
            return true;
        }
        let message = self.inbox.pop_front_if(|(at, _)| *at <= now);
        if let Some((_, message)) = message {
            self.enter(now, &Event::Remote(message));
        }
        message.is_some()
    }

    /// An entry takes so long. The timer is set behind it: a budget ends so much later.
    #[inline]
    fn pay(&mut self, now: Instant, cost: Span) {
        if !cost.is_zero() {
            self.pay_apart(now, cost);
        }
    }

    #[cold]
    fn pay_apart(&mut self, now: Instant, cost: Span) {
        self.take(now, (cost, MissingCause::Stolen));
        let due = self.shard.next_timer().unwrap_or(Instant::MAX);
        let armed = self.armed.as_mut().into_iter();
        for set in armed.chain([&mut self.timer]) {
            *set = set.saturating_add(cost).min(due).max(*set);
        }
    }

    /// Nobody gets this time.
    fn take(&mut self, from: Instant, (length, cause): (Span, MissingCause)) {
        self.is_plain = false;
        self.asleep_until = from.saturating_add(length);
        self.unreported.add(Uncharged::of(cause, length));
        self.section_end = self.section_end.saturating_add(length);
    }

    /// Whether an arrival of this instant comes before what the running body does in it: what is
    /// locked in an instant keeps nobody away who arrives in it.
    fn arrival_goes_first(&self, now: Instant) -> bool {
        let arrives = (self.arrivals.peek()).is_some_and(|Reverse((at, ..))| *at <= now);
        let step = self
            .running
            .and_then(|id| self.doing[id.index()].step.as_ref());
        arrives && self.deciding.is_none() && step.is_some_and(|step| step.act.locks())
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn end_section(&mut self, now: Instant) -> Option<Completion> {
        if let Some(child) = self.deciding {
            let answer = self.children[child].answer(now)?;
            self.section_end = NEVER;
            self.enter(now, &answer);
            return None;
        }
        let id = self.running?;
        let doing = &mut self.doing[id.index()];
        let act = doing.step.as_ref()?.act;
        if act == Act::Complete {
            return Some(self.complete(now, id));
        }
        let Some(event) = act.event(now) else {
            let work = doing.ask(now, &mut self.nudges).work;
            self.section_end = end_of(now, work);
            return None;
        };
        doing.step = None;
        if act.ends_job() {
            doing.job = None;
        }
        self.section_end = NEVER;
        self.enter(now, &event);
        None
    }

    /// The running job is done.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn complete(&mut self, now: Instant, id: ThreadId) -> Completion {
        let arrival = self.shard.job_arrival(id).unwrap_or(now);
        let task = self.tasks[id.index()];
        let doing = &mut self.doing[id.index()];
        let job = doing.job.take().unwrap_or(0);
        doing.step = None;
        self.section_end = NEVER;
        let front = match self.is_plain {
            true => self.shard.complete_front(now, &mut self.sink),
            false => Front::Closed,
        };
        match front {
            Front::Chosen(arm) => self.follow(now, self.shard.running(), arm),
            _ => self.enter(now, &Event::Complete),
        }
        self.pay(now, self.budget_timer_cost);
        Completion {
            task,
            job,
            arrival,
            now,
        }
    }

    /// One entry of the scheduler, and those of changes whose time it is.
    #[inline(never)]
    pub(crate) fn enter(&mut self, now: Instant, event: &Event) {
        let _ = self.enter_once(now, event);
        if !self.is_plain && !self.plan.is_over() {
            self.enter_planned(now);
        }
    }

    /// One entry of the scheduler, and what follows from its decision.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn enter_once(&mut self, now: Instant, event: &Event) -> Decision {
        self.save_progress(now);
        let decision = match self.is_plain || self.unreported.is_zero() {
            true => {
                let entry = Entry::at(now, event);
                self.shard.handle_entry(&entry, &mut self.sink)
            }
            false => self.enter_late(now, event),
        };
        if let (Event::ChildPicked(pick), Some(child)) = (event, self.deciding) {
            let overtaken = self.shard.epoch(pick.child) != Some(pick.epoch);
            self.children[child].hear(decision.refused, overtaken);
        }
        let (next, child) = match decision.next {
            Next::Thread(id) => (Some(id), None),
            Next::RunChild(node) => (None, Some(node)),
            Next::Idle => (None, None),
        };
        self.follow(now, next, decision.arm);
        if let Some(node) = child {
            self.section_end = self.let_decide(now, node);
        }
        decision
    }

    /// The same, out of the way of other entries, which are cheaper then.
    #[cold]
    #[inline(never)]
    fn enter_apart(&mut self, now: Instant, event: &Event) -> Decision {
        self.enter_once(now, event)
    }

    /// An entry that reports missing time.
    #[cold]
    #[inline(never)]
    fn enter_late(&mut self, now: Instant, event: &Event) -> Decision {
        let missing = core::mem::take(&mut self.unreported);
        for (_, span) in missing.by_cause() {
            self.counters.missing(span);
        }
        let entry = Entry {
            missing,
            ..Entry::at(now, event)
        };
        self.shard.handle_slowly(entry, &mut self.sink)
    }

    /// Keeps how far the running body or child is.
    fn save_progress(&mut self, now: Instant) {
        if self.section_end == NEVER {
            return;
        }
        let left = self.section_end.since(now);
        if let Some(child) = self.deciding {
            self.children[child].pause(left);
        }
        if let Some(id) = self.running
            && let Some(step) = &mut self.doing[id.index()].step
        {
            step.work = Some(left.as_work());
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn follow(&mut self, now: Instant, next: Option<ThreadId>, arm: Option<Instant>) {
        self.counters.decisions += 1;
        let switched = next != self.running;
        if switched {
            self.counters.switches += 1;
            self.leave(now);
        }
        (self.running, self.deciding) = (next, None);
        self.section_end = match next {
            Some(id) => self
                .start(now, id)
                .unwrap_or_else(|| self.resume(now, id, switched)),
            None => NEVER,
        };
        self.armed = arm;
        self.timer = arm.unwrap_or(NEVER);
        if !self.late_timer.is_zero() && arm.is_some_and(|at| at > now) {
            let late = self.random.span(self.late_timer);
            self.timer = self.timer.saturating_add(late);
        }
    }

    /// The processor goes to another than the one that ran.
    #[inline]
    fn leave(&mut self, now: Instant) {
        if let Some(before) = self.running {
            let doing = &mut self.doing[before.index()];
            if doing.is_own() {
                doing.switched_out(now);
            }
        }
    }

    /// A scheduler decides on its own supply; when it is done.
    #[cold]
    #[inline(never)]
    fn let_decide(&mut self, now: Instant, node: NodeId) -> Instant {
        let place = self.children.iter().position(|child| child.is(node));
        let Some(place) = place else { return NEVER };
        self.deciding = Some(place);
        let child = &mut self.children[place];
        child.decides_for(node);
        child.resume(now, &self.shard).unwrap_or(NEVER)
    }

    /// Another CPU's body says that the waiting work of this task's ends now.
    pub(crate) fn be_nudged(&mut self, task: TaskId, now: Instant) {
        let Some(id) = self.running.filter(|id| self.tasks[id.index()] == task) else {
            return;
        };
        let step = &mut self.doing[id.index()].step;
        if step.is_some_and(|step| step.work.is_none() || step.act == Act::Poll) {
            *step = step.map(|Step { act, .. }| Step {
                work: Some(Work::ZERO),
                act,
            });
            self.section_end = now;
        }
    }

    /// Whether other CPUs are to hear of something.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        self.shard.has_message() || !self.nudges.is_empty()
    }

    pub(crate) fn take_message(&mut self) -> Option<Message> {
        self.shard.take_message()
    }

    /// A message of another CPU, seen when this processor sees anything again.
    pub(crate) fn hear(&mut self, now: Instant, message: Message) {
        self.is_plain = false;
        self.inbox.push_back((now, message));
    }
}
