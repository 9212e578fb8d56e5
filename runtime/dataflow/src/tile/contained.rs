//! A tile in the hands of a program, on a thread of the program's own

use punctual_linux::job;

use super::Tile;

impl Tile {
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

    /// As [`Tile::run_until`], to the end of the application where an actor or the task scheduler
    /// fails: it fires no more on this tile.
    ///
    /// # Errors
    /// In words: which of them failed, in this call or before.
    pub fn run_contained(&mut self, mut until: impl FnMut() -> bool) -> Result<(), String> {
        self.while_whole(|tile| tile.run_until(|_| until()))
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
