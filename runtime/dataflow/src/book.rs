//! Counts and transitions of a tile, readable by others while it goes on

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use punctual_firing::{Call, Moved, Observer, State};
use punctual_linux::job;
use punctual_model::{ActorId, Frequency, GraphId, Instant, Ns, Span, Tile, Work};

use crate::actor::Course;
use crate::call_word::{call_of, word_of};
use crate::meter::{Meter, Reading};

/// A firing that executed longer than its wcet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Over {
    /// The actor.
    pub actor: ActorId,
    /// The number of the firing, from 0.
    pub firing: u64,
    /// How long it executed. The scheduler's part of an interruption is in it, unless the firing
    /// looks at the clock all the time.
    pub executed: Work<Ns>,
    /// How often the scheduler of its CPU was entered meanwhile.
    pub interruptions: u64,
}

/// A firing under way that has executed for so many wcets, and for so long, is taken for endless.
const ENDLESS_WCETS: u64 = 4;
const ENDLESS_NS: u64 = 10_000_000;

/// Firings beyond their wcets that are named one by one.
const OVERS: usize = 64;

/// The counts of one actor.
#[derive(Debug)]
pub struct ActorBook {
    /// The actor.
    pub actor: ActorId,
    /// Its name.
    pub name: String,
    /// Of each phase, in ticks.
    wcet: Vec<u64>,
    per_iteration: u64,
    firings: AtomicU64,
    longest: AtomicU64,
    executed: AtomicU64,
    over: AtomicU64,
    /// Ticks that the firing under way had executed when it was interrupted last, where others may
    /// go on before it; 0: there is none.
    under_way: AtomicU64,
    /// Its task has run to completion.
    finished: AtomicBool,
    /// Ticks at which its first and its last whole iteration ended.
    first: AtomicU64,
    last: AtomicU64,
}

impl ActorBook {
    pub(crate) fn new(actor: ActorId, name: &str, wcet: Vec<u64>, per_iteration: u64) -> ActorBook {
        let zero = || AtomicU64::new(0);
        ActorBook {
            actor,
            name: name.to_owned(),
            wcet,
            per_iteration: per_iteration.max(1),
            firings: zero(),
            longest: zero(),
            executed: zero(),
            over: zero(),
            under_way: zero(),
            finished: AtomicBool::new(false),
            first: zero(),
            last: zero(),
        }
    }

    /// Firings that have ended.
    pub fn firings(&self) -> u64 {
        self.firings.load(Ordering::Relaxed)
    }

    /// Firings that executed longer than the wcet of their phase.
    pub fn over(&self) -> u64 {
        self.over.load(Ordering::Relaxed)
    }

    /// Iterations of the graph whose firings of this actor have ended.
    pub fn iterations(&self) -> u64 {
        self.firings() / self.per_iteration
    }

    /// Whether its task has ended.
    pub fn has_finished(&self) -> bool {
        self.finished.load(Ordering::Relaxed)
    }

    pub(crate) fn finish(&self) {
        self.finished.store(true, Ordering::Relaxed);
    }

    /// Its firing was interrupted after it had executed so much, and others may go on.
    pub(crate) fn set_under_way(&self, executed: u64) {
        self.under_way.store(executed, Ordering::Relaxed);
    }

    fn end(&self, firing: u64, executed: u64, now: Instant) -> bool {
        self.firings.store(firing + 1, Ordering::Relaxed);
        let all = self.executed.load(Ordering::Relaxed) + executed;
        self.executed.store(all, Ordering::Relaxed);
        if executed > self.longest.load(Ordering::Relaxed) {
            self.longest.store(executed, Ordering::Relaxed);
        }
        if (firing + 1).is_multiple_of(self.per_iteration) {
            if firing + 1 == self.per_iteration {
                self.first.store(now.ticks(), Ordering::Relaxed);
            }
            self.last.store(now.ticks(), Ordering::Relaxed);
        }
        let phase = usize::try_from(firing % self.wcet.len().max(1) as u64).unwrap_or(0);
        let is_over = self.wcet.get(phase).is_some_and(|&wcet| executed > wcet);
        if is_over {
            let over = self.over() + 1;
            self.over.store(over, Ordering::Relaxed);
        }
        is_over
    }
}

/// Transitions that others may read while more come: the first ones, up to a capacity.
#[derive(Debug)]
struct Transitions {
    /// Two words each: the instant; place, state and number.
    words: Vec<[AtomicU64; 2]>,
    /// Of tasks that run to completion, beside each: the call that it is, or 0.
    calls: Vec<AtomicU64>,
    count: AtomicUsize,
    /// Ticks from which on none was kept; 0: all were.
    lost_from: AtomicU64,
}

const NUMBER_BITS: u32 = 40;
const STATE_BITS: u32 = 8;
/// In the bits of the state.
const PREEMPTED: u64 = 1 << 7;

/// The record of one tile of an application. Its tile writes it, anybody reads it.
#[derive(Debug)]
pub struct TileBook {
    /// The name of the graph.
    pub graph: String,
    /// The tile.
    pub tile: Tile,
    /// Its actors, in the order of the file.
    pub actors: Vec<ActorBook>,
    frequency: Frequency,
    transitions: Transitions,
    overs: Mutex<Vec<Over>>,
    /// The activity: one of [`activity`], or a place and [`activity::ACTOR`].
    activity: AtomicU32,
    since: AtomicU64,
    decisions: AtomicU64,
    refused: AtomicU64,
    fault: Mutex<Option<String>>,
    failed: AtomicBool,
    stopped: AtomicBool,
}

mod activity {
    pub(super) const IDLE: u32 = 0;
    pub(super) const DECIDING: u32 = 1;
    pub(super) const ACTOR: u32 = 2;
}

fn relaxed(word: &AtomicU64) -> u64 {
    word.load(Ordering::Relaxed)
}

impl TileBook {
    pub(crate) fn new(
        (graph, tile): (&str, Tile),
        actors: Vec<ActorBook>,
        transitions: usize,
        frequency: Frequency,
    ) -> TileBook {
        let mut words = Vec::new();
        words.resize_with(transitions, <[AtomicU64; 2]>::default);
        TileBook {
            graph: graph.to_owned(),
            tile,
            actors,
            frequency,
            transitions: Transitions {
                words,
                calls: Vec::new(),
                count: AtomicUsize::new(0),
                lost_from: AtomicU64::new(0),
            },
            overs: Mutex::new(Vec::with_capacity(OVERS)),
            activity: AtomicU32::new(activity::IDLE),
            since: AtomicU64::new(0),
            decisions: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            fault: Mutex::new(None),
            failed: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
        }
    }

    /// Firings of the actor with this name that have ended; 0 where it is elsewhere.
    pub fn firings(&self, actor: &str) -> u64 {
        let named = self.actors.iter().find(|book| book.name == actor);
        named.map_or(0, ActorBook::firings)
    }

    /// The longest wcet among the phases of an actor.
    pub fn wcet(&self, actor: &ActorBook) -> Work<Ns> {
        self.work(actor.wcet.iter().copied().max().unwrap_or(0))
    }

    /// The longest execution of a firing of an actor.
    pub fn longest(&self, actor: &ActorBook) -> Work<Ns> {
        self.work(relaxed(&actor.longest))
    }

    /// The execution of all firings of an actor.
    pub fn executed(&self, actor: &ActorBook) -> Work<Ns> {
        self.work(relaxed(&actor.executed))
    }

    /// The distance of the ends of an actor's iterations, in the mean: from the first to the last.
    /// `None` before two have ended.
    pub fn period(&self, actor: &ActorBook) -> Option<Span<Ns>> {
        let more = actor.iterations().checked_sub(1).filter(|&more| more > 0)?;
        let ticks = relaxed(&actor.last).saturating_sub(relaxed(&actor.first));
        Some(Span::from_ns(self.frequency.ns_down(ticks / more)))
    }

    /// The transitions so far as those of this graph, the oldest first, and the instant from which
    /// on none was kept. O(transitions).
    pub fn transitions(&self, graph: GraphId) -> (Vec<Moved>, Option<Instant>) {
        let count = self.transitions.count.load(Ordering::Acquire);
        let kept = self.transitions.words.iter().take(count);
        let calls = self.transitions.calls.iter().map(relaxed);
        let kept = kept.zip(calls.chain(core::iter::repeat(0)));
        let moved = kept.filter_map(|([at, what], call)| {
            let moved = self.read(graph, relaxed(at), relaxed(what))?;
            let call = call_of(call);
            Some(Moved { call, ..moved })
        });
        let lost = relaxed(&self.transitions.lost_from);
        (
            moved.collect(),
            (lost > 0).then(|| Instant::from_ticks(lost)),
        )
    }

    fn read(&self, graph: GraphId, at: u64, what: u64) -> Option<Moved> {
        let place = usize::try_from(what >> (NUMBER_BITS + STATE_BITS)).ok()?;
        let state = (what >> NUMBER_BITS) & ((1 << STATE_BITS) - 1);
        Some(Moved {
            at: Instant::from_ticks(at),
            actor: self.actors.get(place)?.actor,
            graph,
            firing: what & ((1 << NUMBER_BITS) - 1),
            preempted: state & PREEMPTED != 0,
            state: *State::ALL.get(usize::try_from(state & !PREEMPTED).ok()?)?,
            call: None,
        })
    }

    /// Keeps a transition. Threads of one CPU call it, one at a time.
    #[inline]
    pub(crate) fn keep(&self, at: Instant, place: usize, firing: u64, state: (State, bool)) {
        let transitions = &self.transitions;
        let kept = transitions.count.load(Ordering::Relaxed);
        let Some([when, what]) = transitions.words.get(kept) else {
            return self.lose(at);
        };
        let number = firing & ((1 << NUMBER_BITS) - 1);
        let place = (place as u64) << (NUMBER_BITS + STATE_BITS);
        let state = state.0 as u64 | if state.1 { PREEMPTED } else { 0 };
        when.store(at.ticks(), Ordering::Relaxed);
        what.store(place | state << NUMBER_BITS | number, Ordering::Relaxed);
        transitions.count.store(kept + 1, Ordering::Release);
    }

    /// Room for the calls of tasks that run to completion.
    pub(crate) fn keep_calls(&mut self) {
        let count = self.transitions.words.len();
        self.transitions
            .calls
            .resize_with(count, AtomicU64::default);
    }

    /// Keeps a call of a FIFO, whose task stays in its state.
    pub(crate) fn keep_call(
        &self,
        at: Instant,
        (place, rounds): (usize, u64),
        call: Call,
        goes_on: bool,
    ) {
        let kept = self.transitions.count.load(Ordering::Relaxed);
        if let Some(word) = self.transitions.calls.get(kept) {
            word.store(word_of(call, goes_on), Ordering::Relaxed);
        }
        self.keep(at, place, rounds, (State::Run, false));
    }

    /// There is no room for a transition.
    #[cold]
    fn lose(&self, at: Instant) {
        let lost_from = &self.transitions.lost_from;
        if relaxed(lost_from) == 0 {
            lost_from.store(at.ticks().max(1), Ordering::Relaxed);
        }
    }

    /// Whether another transition would be kept.
    #[inline]
    fn has_room(&self) -> bool {
        self.transitions.count.load(Ordering::Relaxed) < self.transitions.words.len()
    }

    /// The instant of the last transition.
    pub(crate) fn last_at(&self) -> Instant {
        let kept = self.transitions.count.load(Ordering::Relaxed);
        let words = self.transitions.words.get(kept.wrapping_sub(1));
        Instant::from_ticks(words.map_or(0, |[when, _]| relaxed(when)))
    }

    /// An answer of the task scheduler was refused.
    pub(crate) fn refuse(&self) {
        let refused = relaxed(&self.refused) + 1;
        self.refused.store(refused, Ordering::Relaxed);
    }

    /// Firings beyond their wcets, the first ones by name.
    pub fn overs(&self) -> Vec<Over> {
        self.overs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Decisions of the task scheduler, and how many of its answers were refused.
    pub fn decisions(&self) -> (u64, u64) {
        (relaxed(&self.decisions), relaxed(&self.refused))
    }

    /// The end of the application on this tile: a panic of an actor or of the task scheduler, or
    /// such a function that has not returned for longer than `patience` at `now`.
    pub fn fault(&self, now: Instant, patience: Span<Ns>) -> Option<String> {
        let said = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(said) = &*said {
            return Some(said.clone());
        }
        let since = now.since(Instant::from_ticks(relaxed(&self.since)));
        let ns = self.frequency.ns_down(since.ticks());
        let busy = self.activity.load(Ordering::Relaxed);
        if let Some(who) = self.who(busy).filter(|_| ns > patience.as_ns()) {
            return Some(format!("{who} has not returned for {} ms", ns / 1_000_000));
        }
        self.actors.iter().find_map(|actor| self.endless(actor))
    }

    /// An actor that was passed over again and again in one firing.
    fn endless(&self, actor: &ActorBook) -> Option<String> {
        let executed = self.work(relaxed(&actor.under_way)).as_ns();
        let longest = self.wcet(actor).as_ns().saturating_mul(ENDLESS_WCETS);
        let (name, ms) = (&actor.name, executed / 1_000_000);
        let said = || format!("the actor `{name}` has not returned after {ms} ms of execution");
        (executed > longest.max(ENDLESS_NS)).then(said)
    }

    /// The end of the last firing or look, after which the active function was called.
    pub fn since(&self) -> Instant {
        Instant::from_ticks(relaxed(&self.since))
    }

    fn who(&self, activity: u32) -> Option<String> {
        match activity {
            activity::IDLE => None,
            activity::DECIDING => Some("the task scheduler".to_owned()),
            actor => {
                let place = usize::try_from(actor - activity::ACTOR).ok()?;
                Some(format!("the actor `{}`", self.actors.get(place)?.name))
            }
        }
    }

    /// Its application ends here, before anything executes or in its midst.
    pub(crate) fn fail_with(&self, message: String) {
        let mut said = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        *said = Some(message);
        self.failed.store(true, Ordering::Relaxed);
        self.activity.store(activity::IDLE, Ordering::Relaxed);
    }

    /// Without the lock: a thread of its own tile may have been interrupted with it.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Has the calls of FIFOs of its tasks wait no more, and move nothing any more, for good. Where
    /// preempted firings are passed over, no firing begins any more.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// The active function panicked.
    pub(crate) fn fail(&self, message: &str) {
        let who = self.who(self.activity.load(Ordering::Relaxed));
        let who = who.unwrap_or_else(|| "the tile".to_owned());
        self.fail_with(format!("{who} panicked: {message}"));
    }

    fn work(&self, ticks: u64) -> Work<Ns> {
        Work::from_ns(self.frequency.ns_up(ticks))
    }
}

/// The pen of a tile.
#[derive(Debug)]
pub(crate) struct Notes {
    pub(crate) book: std::sync::Arc<TileBook>,
    pub(crate) course: Course,
    /// Entries of the scheduler of this CPU when the firing under way began.
    entries: u64,
    /// Since when the scheduler decides: a firing begins there.
    decides: Reading,
}

impl Notes {
    pub(crate) fn new(book: std::sync::Arc<TileBook>, meter: Meter) -> Notes {
        Notes {
            book,
            course: Course::new(meter),
            entries: 0,
            decides: Reading::default(),
        }
    }

    /// Of an actor whose preemptions another tells, who knows who went on meanwhile.
    pub(crate) fn told(book: std::sync::Arc<TileBook>, meter: Meter) -> Notes {
        let mut notes = Notes::new(book, meter);
        notes.course.is_told = true;
        notes
    }

    /// The task scheduler is asked, after a firing or once more. The last reading of the clock in a
    /// firing is that of the decision, too.
    #[inline]
    pub(crate) fn decides(&mut self, once_more: bool) {
        if once_more {
            self.decides = self.course.meter.read();
            let now = self.decides.now.ticks();
            self.book.since.store(now, Ordering::Relaxed);
        }
        self.active(activity::DECIDING);
        let decisions = relaxed(&self.book.decisions) + 1;
        self.book.decisions.store(decisions, Ordering::Relaxed);
    }

    /// A firing begins, or began when its thread had executed so many ticks and the scheduler of
    /// its CPU had been entered so often.
    #[inline]
    pub(crate) fn begin(&mut self, executed: u64, entries: u64) {
        self.course.begun.set(executed);
        self.course.aside.set(0);
        self.course.away.borrow_mut().clear();
        self.entries = entries;
    }

    /// The last reading of a decision, or of the end of a firing.
    #[inline]
    pub(crate) fn decided(&self) -> Reading {
        self.decides
    }

    pub(crate) fn read(&self) -> Reading {
        self.course.meter.read()
    }

    #[inline]
    pub(crate) fn executes(&self, place: usize) {
        let place = u32::try_from(place).unwrap_or(u32::MAX - activity::ACTOR);
        self.active(place + activity::ACTOR);
    }

    /// A call of a FIFO comes: its task has not executed in vain so far.
    pub(crate) fn calls(&self, now: Reading) {
        self.book.since.store(now.now.ticks(), Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn idles(&self) {
        self.active(activity::IDLE);
    }

    #[inline]
    fn active(&self, activity: u32) {
        self.book.activity.store(activity, Ordering::Relaxed);
    }

    #[inline]
    fn keep(&self, at: Instant, place: usize, firing: u64, state: (State, bool)) {
        self.book.keep(at, place, firing, state);
    }

    pub(crate) fn end_firing(&mut self, place: usize, firing: u64, now: Reading) {
        let Some(actor) = self.book.actors.get(place) else {
            return;
        };
        let course = &self.course;
        let not_its_own = course.begun.get().saturating_add(course.aside.get());
        let executed = now.executed.ticks().saturating_sub(not_its_own);
        if actor.end(firing, executed, now.now) {
            let over = Over {
                actor: actor.actor,
                firing,
                executed: self.book.work(executed),
                interruptions: job::entries().saturating_sub(self.entries),
            };
            self.name(over);
        }
    }

    #[cold]
    fn name(&self, over: Over) {
        // Whoever reads it holds it for a moment, perhaps on this very CPU: then it is not named.
        if let Ok(mut overs) = self.book.overs.try_lock()
            && overs.len() < OVERS
        {
            overs.push(over);
        }
    }
}

impl Observer for Notes {
    #[inline]
    fn moved(&mut self, place: usize, firing: u64, state: State, _preempted: bool) {
        if !self.book.has_room() && !matches!(state, State::Claim | State::Idle) {
            // Tokens that it hands on from here on are not in the log.
            if relaxed(&self.book.transitions.lost_from) == 0 {
                self.book.lose(self.course.meter.read().now);
            }
            return;
        }
        let now = match state {
            State::Claim => self.decides,
            _ => self.course.meter.read(),
        };
        match state {
            State::Claim => self.begin(now.executed.ticks(), job::entries()),
            State::Release => {
                let away = core::mem::take(&mut *self.course.away.borrow_mut());
                for &(from, to) in &away {
                    self.keep(from, place, firing, (State::Compute, true));
                    self.keep(to, place, firing, (State::Compute, false));
                }
                // Its memory goes back.
                *self.course.away.borrow_mut() = away;
            }
            State::Idle => {
                self.end_firing(place, firing.saturating_sub(1), now);
                self.book.since.store(now.now.ticks(), Ordering::Relaxed);
                self.decides = now;
            }
            _ => {}
        }
        self.keep(now.now, place, firing, (state, false));
    }

    fn refused(&mut self, _answer: usize) {
        self.book.refuse();
    }
}
