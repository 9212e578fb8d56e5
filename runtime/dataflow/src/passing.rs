//! A tile between slots on which a preempted firing is passed over: each actor is a direct thread
//!
//! ```text
//!   slot begins ──> leader: decides ──> actor a ──(its firing ends)──> leader: idles
//!                                          └──(slot ends, a new one begins)──> leader: decides
//! ```
//!
//! The leader is a direct thread, too. It says from when on a preemption hands over to it: from the
//! end of the slot that it has decided on. So it decides before any instruction of an actor in the
//! next slot. The engine is shared, under a helping lock: an actor that was preempted in the middle
//! of a transition finishes that first. Once somebody stops the tile, firings under way come to
//! their ends, and so do the threads.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use punctual_direct::{self as direct, Choice, DirectError, DirectId, HelpingLock, Scheduler};
use punctual_firing::{Activity, Engine, Observer, Port, State};
use punctual_linux::job;
use punctual_model::Instant;

use crate::actor::{Chosen, Duty, Firing, Inputs, Outputs, Shared as OfTiles};
use crate::between::{AnyScheduler, Between};
use crate::book::{Notes, TileBook};
use crate::ends::{Ends, Gauges, Part};
use crate::meter::Meter;

/// Bytes of an actor's stack.
const STACK: usize = 256 * 1024;

/// Shared by the threads of a tile.
struct Shared {
    engine: Engine<AnyScheduler>,
    /// By actor: the executed ticks at which its firing began, and the entries of its CPU's
    /// scheduler then.
    begun: Vec<(u64, u64)>,
}

type Engines = Arc<HelpingLock<Shared>>;

/// A tile before its run.
pub(crate) struct Passing {
    engine: Engine<AnyScheduler>,
    ends: Ends,
    duties: Vec<Box<dyn Duty>>,
    between: Between,
    book: Arc<TileBook>,
    /// A failure stops the tile: its program waits for it.
    returns: bool,
}

/// Where a thread of the tile fails.
#[derive(Clone)]
struct Failure {
    book: Arc<TileBook>,
    stops: bool,
}

impl Failure {
    fn of(&self, life: impl FnOnce()) {
        if let Err(said) = job::contain(life) {
            self.book.fail(&said);
            if self.stops {
                self.book.stop();
            }
        }
    }
}

impl Passing {
    pub(crate) fn new(
        (engine, ends, duties): (Engine<AnyScheduler>, Ends, Vec<Box<dyn Duty>>),
        between: Between,
        book: Arc<TileBook>,
    ) -> Passing {
        Passing {
            engine,
            ends,
            duties,
            between,
            book,
            returns: false,
        }
    }

    /// The same, for a program that goes on after a failure.
    pub(crate) fn returning(self) -> Passing {
        Passing {
            returns: true,
            ..self
        }
    }

    /// On its light thread, until somebody stops it.
    pub(crate) fn run(mut self) -> Result<(), DirectError> {
        let actors = self.engine.actors();
        let mut scheduler = Scheduler::try_new(actors + 1, STACK)?;
        let choice = Arc::new(Choice::new());
        scheduler.choose_by(Arc::clone(&choice));
        let gauges = Arc::new(self.ends.gauges());
        let others: Vec<Arc<AtomicU64>> = (0..actors).map(|_| Arc::default()).collect();
        let own: Vec<_> = (0..actors).map(|place| self.own_of(place)).collect();
        let shared = Arc::new(HelpingLock::new(Shared {
            engine: self.engine,
            begun: vec![(0, 0); actors],
        }));
        let threads = Arc::new(OnceLock::new());
        let mut leader = Leader {
            shared: Arc::clone(&shared),
            gauges: Arc::clone(&gauges),
            between: self.between,
            choice: Arc::clone(&choice),
            threads: Arc::clone(&threads),
            left: vec![None; actors],
            others: others.clone(),
            notes: Notes::new(Arc::clone(&self.book), Meter::new()),
        };
        let failure = Failure {
            book: Arc::clone(&self.book),
            stops: self.returns,
        };
        let leads = failure.clone();
        let lead = scheduler.spawn(move || {
            leads.of(|| leader.lead());
            while !leads.book.is_stopped() {
                job::checkpoint();
                core::hint::spin_loop();
            }
        })?;
        choice.set_next(lead);
        let mut all = Vec::new();
        let parts = own.into_iter().zip(self.duties).zip(others);
        for (place, (((ends, ports), duty), others)) in parts.enumerate() {
            let meter = Meter::without(others);
            let mut thread = ActorThread {
                place,
                shared: Arc::clone(&shared),
                gauges: Arc::clone(&gauges),
                ends,
                chosen: Chosen::new(&ports),
                ports,
                duty,
                notes: Notes::told(Arc::clone(&self.book), meter),
            };
            let failure = failure.clone();
            all.push(scheduler.spawn(move || failure.of(|| thread.live()))?);
        }
        // Nobody has set it.
        let _ = threads.set(all);
        let _report = scheduler.run();
        Ok(())
    }

    fn own_of(&mut self, place: usize) -> (Ends, [Vec<Port>; 2]) {
        match self.engine.rule(place) {
            Some(rule) => {
                let ports = [rule.inputs().to_vec(), rule.outputs().to_vec()];
                (self.ends.take(rule), ports)
            }
            None => (Ends::default(), [Vec::new(), Vec::new()]),
        }
    }
}

/// The thread that decides.
struct Leader {
    shared: Engines,
    gauges: Arc<Gauges>,
    between: Between,
    choice: Arc<Choice>,
    threads: Arc<OnceLock<Vec<DirectId>>>,
    /// By actor: ticks that the light thread had executed when its firing was interrupted.
    left: Vec<Option<u64>>,
    /// By actor: ticks that others have executed while its firings were interrupted.
    others: Vec<Arc<AtomicU64>>,
    notes: Notes,
}

impl Leader {
    fn lead(&mut self) {
        // The one that has the rest of the slot.
        let mut fires = None;
        loop {
            job::checkpoint();
            if self.notes.book.is_stopped() {
                return self.finish();
            }
            let slot = self.slot_ends();
            if self.between.begins(self.notes.read().now) {
                fires = match self.notes.book.has_failed() {
                    true => None,
                    false => self.decide(slot),
                };
            }
            match fires {
                Some(place) => {
                    let slot = self.slot_ends().unwrap_or(Instant::MAX);
                    fires = self.hand_over(place, slot).then_some(place);
                    if fires.is_none() {
                        self.notes.idles();
                    }
                }
                None => core::hint::spin_loop(),
            }
        }
    }

    /// No firing begins any more. Those under way end, unless an actor has failed.
    fn finish(&mut self) {
        loop {
            let now = self.notes.read().now;
            let book = Arc::clone(&self.notes.book);
            let pen = &mut Pen {
                book: &book,
                at: now,
            };
            let next = match self.shared.lock() {
                Ok(mut shared) if !book.has_failed() => shared.engine.finish(pen),
                _ => None,
            };
            let Some(place) = next else { return };
            self.notes.executes(place);
            if self.hand_over(place, Instant::MAX) {
                // Its thread has ended.
                return;
            }
            self.notes.idles();
        }
    }

    /// The end of the slot that has been decided on.
    fn slot_ends(&self) -> Option<Instant> {
        let start = self.between.decided?;
        Some(self.between.slots.around(start).1)
    }

    /// The actor that has the slot which begins. `before`: the end of the last one.
    fn decide(&mut self, before: Option<Instant>) -> Option<usize> {
        self.notes.decides(true);
        let now = self.notes.decided();
        // A slot that ended meanwhile: this is the decision of the next one.
        self.between.begins(now.now);
        let mut shared = self.shared.lock().ok()?;
        let shared = &mut *shared;
        let book = &*self.notes.book;
        if shared.engine.current().is_some() {
            // An actor may have gone on for a moment behind the end of its slot.
            let at = before.unwrap_or(now.now).min(now.now).max(book.last_at());
            shared.engine.preempted(&mut Pen { book, at });
        }
        let look = &mut Part {
            gauges: &self.gauges,
            own: None,
        };
        let pen = &mut Pen { book, at: now.now };
        let place = match shared.engine.resumed(look, pen) {
            Activity::Claim(place) => {
                let others = self.others[place].load(Ordering::Relaxed);
                let begun = now.executed.ticks().saturating_sub(others);
                shared.begun[place] = (begun, job::entries());
                place
            }
            Activity::GoOn(place) => place,
            _ => {
                self.notes.idles();
                return None;
            }
        };
        self.notes.executes(place);
        Some(place)
    }

    /// The time up to the end of a slot is this actor's. Returns when its firing has ended
    /// (`false`), or when it was interrupted and its slot is over (`true`).
    fn hand_over(&mut self, place: usize, slot: Instant) -> bool {
        let Some(&thread) = self.threads.get().and_then(|all| all.get(place)) else {
            return false;
        };
        let others = &self.others[place];
        if let Some(left) = self.left[place].take() {
            let more = self.notes.read().executed.ticks().saturating_sub(left);
            others.store(others.load(Ordering::Relaxed) + more, Ordering::Relaxed);
        }
        self.choice.set_from(slot);
        direct::yield_to(thread);
        self.choice.set_from(Instant::MAX);
        let left = self.notes.read().executed.ticks();
        let Ok(shared) = self.shared.lock() else {
            return false;
        };
        let state = shared.engine.state(place);
        let goes_on = state.is_some_and(|(state, _)| state != State::Idle);
        if goes_on {
            self.left[place] = Some(left);
            let not_its_own = others.load(Ordering::Relaxed) + shared.begun[place].0;
            let executed = left.saturating_sub(not_its_own);
            self.notes.book.actors[place].set_under_way(executed);
        }
        goes_on
    }
}

/// Writes down what a decision does, at its instant.
struct Pen<'a> {
    book: &'a TileBook,
    at: Instant,
}

impl Observer for Pen<'_> {
    fn moved(&mut self, place: usize, firing: u64, state: State, preempted: bool) {
        self.book.keep(self.at, place, firing, (state, preempted));
    }

    fn refused(&mut self, _answer: usize) {
        self.book.refuse();
    }
}

/// The thread of an actor.
struct ActorThread {
    place: usize,
    shared: Engines,
    gauges: Arc<Gauges>,
    ends: Ends,
    /// Those of its rule: inputs and outputs, with the rates of the firing under way.
    ports: [Vec<Port>; 2],
    duty: Box<dyn Duty>,
    /// By its update.
    chosen: Chosen,
    notes: Notes,
}

impl ActorThread {
    /// Firing after firing, each handed over by the leader, until somebody stops the tile.
    fn live(&mut self) {
        loop {
            job::checkpoint();
            match self.begin() {
                Some((number, phase)) => self.fire(number, phase),
                None if self.notes.book.is_stopped() => return,
                None => {}
            }
            // To the leader.
            direct::yield_now();
        }
    }

    /// The number and the phase of the firing that has been decided on; `None`: there is none.
    fn begin(&mut self) -> Option<(u64, usize)> {
        let shared = self.shared.lock().ok()?;
        let state = shared.engine.state(self.place)?;
        let rule = shared.engine.rule(self.place)?;
        for (own, ports) in self.ports.iter_mut().zip([rule.inputs(), rule.outputs()]) {
            for (own, port) in own.iter_mut().zip(ports) {
                own.rate = port.rate;
            }
        }
        let (executed, entries) = shared.begun[self.place];
        self.notes.begin(executed, entries);
        let firing = (shared.engine.firings(self.place)?, rule.phase());
        let begins = state.0 == State::Claim && !self.notes.book.has_failed();
        begins.then_some(firing)
    }

    fn fire(&mut self, number: u64, phase: usize) {
        let [inputs, outputs] = &self.ports;
        self.ends.claim(inputs, outputs);
        self.next();
        let [inputs, outputs] = &self.ports;
        let (readers, writers, (memories, copies)) = self.ends.split();
        self.duty.fire(&mut Firing {
            inputs: Inputs {
                ports: inputs,
                readers,
            },
            outputs: Outputs {
                ports: outputs,
                writers,
            },
            number,
            phase,
            shared: OfTiles { memories, copies },
            course: &self.notes.course,
        });
        self.next();
        // The lock is not held for as long as tokens are copied.
        self.ends.send(&self.ports[1]);
        self.next();
        if self.duty.is_variable() {
            // Nor for as long as its update takes: the leader decides meanwhile.
            self.chosen.ask(&mut *self.duty);
            if let Ok(mut shared) = self.shared.lock() {
                self.chosen.give(&mut shared.engine, self.place);
            }
        }
        self.next();
        self.notes.book.actors[self.place].set_under_way(0);
    }

    /// Its next state.
    fn next(&mut self) {
        let Ok(mut shared) = self.shared.lock() else {
            return;
        };
        if self.notes.book.is_stopped() && self.notes.book.has_failed() {
            // Nobody decides any more who goes on: what its firing did is lost.
            return;
        }
        let fifos = &mut Part {
            gauges: &self.gauges,
            own: Some(&mut self.ends),
        };
        // Between slots it does not decide.
        let _activity = shared.engine.next(fifos, &mut self.notes);
    }
}
