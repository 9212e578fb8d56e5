//! A tile in the hands of a program, on a thread of the program's own

use std::sync::Arc;

use punctual_linux::job;
use punctual_model::{System, Tile as TileId};

use super::Tile;
use crate::between::Between;
use crate::meter::Meter;
use crate::slots::Slots;

impl Tile {
    /// Whether it decides once in each of its slots.
    pub fn is_between_slots(&self) -> bool {
        self.is_between
    }

    /// Whether the core decides on it: it is one of its actors.
    pub fn is_inline(&self) -> bool {
        self.turns.is_some()
    }

    /// Gives it the slots of `home` in a system, which its thread has from now on. A firing that
    /// was interrupted goes on in them. One that has been executed for good needs none. `false`: it
    /// decides in own time, or there are none.
    /// O(schedulers + n log n slots).
    pub fn settle(&mut self, system: &System, home: TileId) -> bool {
        let slots = Slots::of(system, home, Meter::new().frequency());
        match (&mut self.between, slots) {
            (Some(between), Some(slots)) => {
                *between = Between::new(slots, between.passes_over);
                true
            }
            (None, Some(_)) => self.is_between,
            _ => false,
        }
    }

    /// One whole firing, or what is left of it; `false`: nobody may fire now. O(FIFOs of the
    /// actor), plus what its function and the task scheduler take.
    ///
    /// # Errors
    /// In words: an actor or the task scheduler has failed, in this call or before.
    pub fn fire(&mut self) -> Result<bool, String> {
        self.while_whole(|tile| {
            while tile.step() {
                if tile.decides {
                    return true;
                }
            }
            false
        })
    }

    /// Whether it has tasks that run to completion.
    pub fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// Its tasks, once: until all have ended, or [`crate::TileBook::stop`] ends their calls.
    fn complete(&mut self) -> Result<(), String> {
        let Some(plain) = self.plain.take() else {
            return Ok(());
        };
        let book = Arc::clone(self.book());
        let ran = self.while_whole(|_| {
            let ran = plain.run(&book);
            // Perhaps they ended because their thread is to end.
            job::checkpoint();
            ran
        });
        if let Err(error) = ran? {
            book.fail_with(error.to_string());
        }
        match book.has_failed() {
            true => self.while_whole(|_| ()),
            false => Ok(()),
        }
    }

    /// Its actors as threads of one, once: until [`crate::TileBook::stop`], and the ends of firings
    /// that are under way then.
    fn pass(&mut self) -> Result<(), String> {
        let book = Arc::clone(self.book());
        let ran = self.while_whole(|tile| match tile.passing() {
            Some(passing) => passing.returning().run(),
            None => Ok(()),
        });
        if let Err(error) = ran? {
            book.fail_with(error.to_string());
        }
        self.while_whole(|_| ())
    }

    /// As [`Tile::run_until`], to the end of the application where an actor or the task scheduler
    /// fails: it fires no more on this tile. One with tasks executes them once, to their ends, and
    /// one that passes firings over is executed once, whatever `until` says
    /// ([`crate::TileBook::stop`]).
    ///
    /// # Errors
    /// In words: which of them failed, in this call or before.
    pub fn run_contained(&mut self, mut until: impl FnMut() -> bool) -> Result<(), String> {
        let continues = self
            .between
            .as_ref()
            .is_some_and(|between| !between.passes_over);
        match (self.is_plain, self.is_between && !continues) {
            (true, _) => self.complete(),
            (_, true) => self.pass(),
            _ => self.while_whole(|tile| tile.run_until(|_| until())),
        }
    }

    fn while_whole<R>(&mut self, call: impl FnOnce(&mut Tile) -> R) -> Result<R, String> {
        if !self.book().has_failed() {
            // The end of the job or of the run goes on through it.
            match job::contain(|| call(self)) {
                Ok(result) => return Ok(result),
                Err(said) => self.book().fail(&said),
            }
        }
        let said = self.book().fault(Default::default(), Default::default());
        Err(said.unwrap_or_default())
    }
}
