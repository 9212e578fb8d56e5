//! One tile of an application, as the body of one light thread

mod contained;

use std::fmt;
use std::sync::Arc;

use punctual_firing::{Activity, Engine, TaskScheduler};
use punctual_linux::{Body, job};

use crate::actor::{self, Duty};
use crate::book::{Notes, TileBook};
use crate::ends::Ends;

pub(crate) type AnyScheduler = Box<dyn TaskScheduler + Send>;

/// The actors of one application on one tile. It decides in its own time: after each firing it asks
/// its task scheduler, and where nobody may fire it looks again.
pub struct Tile {
    engine: Engine<AnyScheduler>,
    ends: Ends,
    duties: Vec<Box<dyn Duty>>,
    notes: Notes,
    /// The next question goes to the task scheduler.
    decides: bool,
    /// Nobody might fire at the last question, or there was none.
    idle: bool,
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
    ) -> Tile {
        Tile {
            engine,
            ends,
            duties,
            notes,
            decides: true,
            idle: true,
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
        if self.decides {
            self.notes.decides(self.idle);
        }
        let activity = self.engine.next(&mut self.ends, &mut self.notes);
        self.idle = activity == Activity::Idle;
        self.decides = self.idle || matches!(activity, Activity::Reset(_));
        match activity {
            Activity::Claim(place) => {
                if let Some(rule) = self.engine.rule(place) {
                    self.ends.claim(rule);
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

    /// Whole firings, one after the other, until `until` says so between two of them.
    pub fn run_until(&mut self, mut until: impl FnMut(&TileBook) -> bool) {
        loop {
            if self.decides {
                job::checkpoint();
                if until(&self.notes.book) {
                    return;
                }
            }
            if !self.step() {
                core::hint::spin_loop();
            }
        }
    }

    /// The body of the thread of this tile: it never completes. A panic of an actor or of the task
    /// scheduler ends its application on this tile alone; the rest of its slots stays empty then.
    pub fn body(mut self) -> Body {
        Box::new(move |_| {
            if !self.book().has_failed() {
                // The end of the run goes on through it.
                if let Err(said) = job::contain(|| self.run_until(|_| false)) {
                    self.book().fail(&said);
                }
            }
            loop {
                job::checkpoint();
                core::hint::spin_loop();
            }
        })
    }
}
