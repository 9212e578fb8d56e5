//! One tile of an application, as the body of one light thread

mod contained;

use std::fmt;
use std::sync::Arc;

use punctual_direct::DirectError;
use punctual_firing::{Activity, Engine, RoundRobin, When};
use punctual_linux::{Body, job};
use punctual_model::Graph;

use crate::actor::{self, Duty};
use crate::between::{AnyScheduler, Between};
use crate::book::{Notes, TileBook};
use crate::ends::Ends;
use crate::passing::Passing;
use crate::plain::PlainTile;
use crate::turns::Turns;

/// The actors of one application on one tile.
///
/// In own time it asks its task scheduler after each firing, and looks again where nobody may fire.
/// Between slots it asks once in each slot, at its start, and the rest of the slot after a firing
/// stays empty. Where a firing that a slot's end interrupts is passed over, each actor is a direct
/// thread with storage of its own in a run. Where the core decides, it is one actor of its tile.
pub struct Tile {
    engine: Engine<AnyScheduler>,
    ends: Ends,
    duties: Vec<Box<dyn Duty>>,
    notes: Notes,
    /// The next question goes to the task scheduler.
    decides: bool,
    /// Nobody might fire at the last question, or there was none.
    idle: bool,
    /// It decides between slots; `None`: in own time.
    between: Option<Between>,
    /// It is not real-time: its tasks run to completion, in a run.
    plain: Option<PlainTile>,
    /// The same, also when they have run.
    is_plain: bool,
    /// It decides between slots, also when it has run.
    is_between: bool,
    /// It is one actor, in turns with the others of its tile.
    turns: Option<Turns>,
}

/// When the actors of a tile fire, other than in own time.
#[derive(Default)]
pub(crate) struct Modes {
    pub(crate) between: Option<Between>,
    pub(crate) plain: Option<PlainTile>,
    pub(crate) turns: Option<Turns>,
}

impl fmt::Debug for Tile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tile")
            .field("tile", &self.notes.book.tile)
            .finish_non_exhaustive()
    }
}

impl Tile {
    pub(crate) fn new(
        engine: Engine<AnyScheduler>,
        ends: Ends,
        duties: Vec<Box<dyn Duty>>,
        notes: Notes,
        modes: Modes,
    ) -> Tile {
        Tile {
            engine,
            ends,
            duties,
            notes,
            decides: true,
            idle: true,
            is_between: modes.between.is_some(),
            between: modes.between,
            is_plain: modes.plain.is_some(),
            plain: modes.plain,
            turns: modes.turns,
        }
    }

    /// Its counts and transitions, also for others.
    pub fn book(&self) -> &Arc<TileBook> {
        &self.notes.book
    }

    /// The processor time that belongs to it.
    pub fn tile(&self) -> punctual_model::Tile {
        self.notes.book.tile
    }

    /// Copies so far, and their bytes: tokens that go around the end of their FIFO, or are remote.
    pub fn copies(&self) -> (u64, u64) {
        self.ends.copies()
    }

    /// The next activity, to its end; `false`: nobody may fire now. O(FIFOs of the actor), plus
    /// what its function or the task scheduler takes.
    #[inline]
    pub fn step(&mut self) -> bool {
        if self.is_plain {
            return false;
        }
        let activity = match &mut self.between {
            None if self.turns.is_some() => self.in_turn(),
            None => {
                if self.decides {
                    self.notes.decides(self.idle);
                }
                self.engine.next(&mut self.ends, &mut self.notes)
            }
            Some(_) if !self.idle => self.goes_on(),
            Some(between) => {
                // After a firing the rest of its slot stays empty.
                if !between.begins(self.notes.read().now) {
                    return false;
                }
                self.notes.decides(true);
                // A slot that ended meanwhile: this is the decision of the next one.
                between.begins(self.notes.decided().now);
                self.engine.resumed(&mut self.ends, &mut self.notes)
            }
        };
        self.idle = activity == Activity::Idle;
        self.decides = self.idle || matches!(activity, Activity::Reset(_));
        match activity {
            Activity::Claim(place) => {
                if let Some(rule) = self.engine.rule(place) {
                    self.ends.claim(rule.inputs(), rule.outputs());
                }
            }
            Activity::Compute(place) => {
                self.notes.executes(place);
                if let Some(mut firing) =
                    actor::firing(&self.engine, place, &mut self.ends, &self.notes.course)
                {
                    self.duties[place].fire(&mut firing);
                }
            }
            Activity::Reset(place) => {
                let duty = &mut *self.duties[place];
                if duty.is_variable() {
                    actor::update(&mut self.engine, place, duty);
                }
            }
            Activity::Release(_) | Activity::GoOn(_) => {}
            Activity::Idle => {
                self.notes.idles();
                return false;
            }
        }
        true
    }

    /// The next step of a firing, or of its thread's turn.
    fn in_turn(&mut self) -> Activity {
        if !self.idle {
            return self.engine.next(&mut self.ends, &mut self.notes);
        }
        if let Some(turns) = &self.turns {
            turns.looks();
        }
        self.notes.decides(true);
        self.engine.resumed(&mut self.ends, &mut self.notes)
    }

    /// The next step of a firing between slots. One that ends in a slot which it went on into
    /// leaves the rest of that empty.
    fn goes_on(&mut self) -> Activity {
        let activity = self.engine.next(&mut self.ends, &mut self.notes);
        if let (Activity::Idle, Some(between)) = (activity, &mut self.between) {
            between.begins(self.notes.decided().now);
        }
        activity
    }

    /// Whole firings, one after the other, until `until` says so between two of them.
    pub fn run_until(&mut self, mut until: impl FnMut(&TileBook) -> bool) {
        loop {
            if self.decides {
                job::checkpoint();
                if until(&self.notes.book) {
                    return;
                }
            }
            let fired = !self.idle;
            if !self.step() {
                match &self.turns {
                    Some(turns) => turns.over(fired),
                    None => core::hint::spin_loop(),
                }
            }
        }
    }

    /// Its parts, where preempted firings are passed over. They are gone then.
    fn passing(&mut self) -> Option<Passing> {
        let between = self.between.take_if(|between| between.passes_over)?;
        let nobody = Engine::of(
            &Graph::default(),
            core::iter::empty(),
            When::OwnTime,
            Box::new(RoundRobin) as AnyScheduler,
        );
        let engine = core::mem::replace(&mut self.engine, nobody);
        let ends = core::mem::take(&mut self.ends);
        let parts = (engine, ends, core::mem::take(&mut self.duties));
        Some(Passing::new(parts, between, Arc::clone(self.book())))
    }

    /// In a run: until the end of it.
    fn run(mut self) -> Result<(), DirectError> {
        if let Some(plain) = self.plain {
            return plain.run(&self.notes.book);
        }
        match self.passing() {
            Some(passing) => passing.run(),
            None => {
                self.run_until(|_| false);
                Ok(())
            }
        }
    }

    /// The body of the thread of this tile: it never completes. A panic of an actor or of the task
    /// scheduler ends its application on this tile alone; the rest of its slots stays empty then.
    pub fn body(self) -> Body {
        let book = Arc::clone(self.book());
        let mut tile = Some(self);
        Box::new(move |_| {
            if let Some(tile) = tile.take() {
                // The end of the run goes on through it.
                match job::contain(|| tile.run()) {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => book.fail_with(error.to_string()),
                    Err(said) => book.fail(&said),
                }
            }
            loop {
                job::checkpoint();
                core::hint::spin_loop();
            }
        })
    }
}
