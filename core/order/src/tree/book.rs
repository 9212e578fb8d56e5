//! The book of a node, in debug builds: the work that was executed on it, and its loans.

pub(super) use kept::Book;

/// The work that was executed on a node, in debug builds: INV-TIME is about it.
#[cfg(debug_assertions)]
mod kept {
    use punctual_model::Work;

    /// All of it since the node exists.
    #[derive(Clone, Copy, Debug, Default)]
    pub(in crate::tree) struct Book {
        /// In its own queues; below it; below children that have ended.
        own: Work,
        executed: Work,
        ended: Work,
        /// Borrowed; used of that; let pass.
        borrowed: Work,
        used: Work,
        forgone: Work,
    }

    fn add(sum: &mut Work, work: Work) {
        *sum = sum.saturating_add(work);
    }

    impl Book {
        pub(in crate::tree) fn executes(&mut self, work: Work) {
            add(&mut self.own, work);
        }

        pub(in crate::tree) fn pays(&mut self, work: Work) {
            add(&mut self.executed, work);
        }

        pub(in crate::tree) fn executed(&self) -> Work {
            self.executed
        }

        pub(in crate::tree) fn inherits(&mut self, work: Work) {
            add(&mut self.ended, work);
        }

        pub(in crate::tree) fn borrows(&mut self, work: Work) {
            add(&mut self.borrowed, work);
        }

        pub(in crate::tree) fn uses(&mut self, work: Work) {
            add(&mut self.used, work);
        }

        pub(in crate::tree) fn forgoes(&mut self, work: Work) {
            add(&mut self.forgone, work);
        }

        pub(in crate::tree) fn check(
            &self,
            left: Work,
            below: impl Iterator<Item = Book>,
        ) -> Result<(), &'static str> {
            let below = below.fold(Work::ZERO, |sum, book| sum.saturating_add(book.executed));
            let all = below.saturating_add(self.own).saturating_add(self.ended);
            if all != self.executed {
                return Err("INV-TIME: what is executed below is executed on each one above");
            }
            let parts = self.used.saturating_add(self.forgone);
            match parts.saturating_add(left) == self.borrowed {
                true => Ok(()),
                false => Err("INV-TIME: what is borrowed is used once, or passes"),
            }
        }
    }
}

/// Release builds keep no book.
#[cfg(not(debug_assertions))]
mod kept {
    use punctual_model::Work;

    #[derive(Clone, Copy, Debug, Default)]
    pub(in crate::tree) struct Book;

    #[expect(clippy::unused_self, reason = "the interface of debug builds")]
    impl Book {
        pub(in crate::tree) fn executes(&mut self, _: Work) {}
        pub(in crate::tree) fn pays(&mut self, _: Work) {}
        pub(in crate::tree) fn executed(&self) -> Work {
            Work::ZERO
        }
        pub(in crate::tree) fn inherits(&mut self, _: Work) {}
        pub(in crate::tree) fn borrows(&mut self, _: Work) {}
        pub(in crate::tree) fn uses(&mut self, _: Work) {}
        pub(in crate::tree) fn forgoes(&mut self, _: Work) {}
        pub(in crate::tree) fn check(
            &self,
            _: Work,
            _: impl Iterator<Item = Book>,
        ) -> Result<(), &'static str> {
            Ok(())
        }
    }
}
