//! The users of what a reader-writer lock guards, and which of them inherits from the waiters.
//!
//! ```text
//!   from the first in line ──inherits──> one user, the first that came
//!   from all others        ──inherits──> that user, or the first in line: it follows chains
//! ```
//!
//! On one CPU one user executes at a time, so it takes no longer when one after the other inherits
//! than when all do at once. When the one that inherits leaves and others still read, the first in
//! line is woken, and blocks on the next.

use punctual_linux::{Monitor, Step, Waiters, Who};

/// The wish of a waiter.
pub(super) const READ: u64 = 0;
pub(super) const WRITE: u64 = 1;
/// The answer to it: it has its wish, or shall look again.
const IN: u64 = 0;
const AGAIN: u64 = 1;

/// So many threads read what a [`super::RwLock`] guards at a time, at most; more wait.
pub const MOST_READERS: usize = 16;

/// The users of the value.
#[derive(Debug)]
pub(super) struct Users {
    writer: Option<Who>,
    /// Without gaps, in the order of coming.
    readers: [Option<Who>; MOST_READERS],
}

impl Users {
    pub(super) const fn nobody() -> Users {
        Users {
            writer: None,
            readers: [None; MOST_READERS],
        }
    }

    /// The one that inherits from those that wait.
    pub(super) fn first(&self) -> Option<Who> {
        self.writer.or(self.readers[0])
    }

    pub(super) fn has(&self, who: Who) -> bool {
        self.writer == Some(who) || self.reading().any(|reader| reader == who)
    }

    fn reading(&self) -> impl Iterator<Item = Who> {
        self.readers.iter().map_while(|&reader| reader)
    }

    fn is_full(&self) -> bool {
        self.readers[MOST_READERS - 1].is_some()
    }

    /// Whether a reader may come in beside those that are in.
    fn may_read(&self) -> bool {
        self.writer.is_none() && !self.is_full()
    }

    /// Lets one in that asks for this, if that is possible; whether it was.
    pub(super) fn let_in(&mut self, who: Who, ask: u64) -> bool {
        let free = match ask {
            WRITE if self.first().is_none() => &mut self.writer,
            READ if self.may_read() => match self.readers.iter_mut().find(|r| r.is_none()) {
                Some(place) => place,
                None => return false,
            },
            _ => return false,
        };
        *free = Some(who);
        true
    }

    fn remove(&mut self, who: Who) {
        if self.writer == Some(who) {
            self.writer = None;
        }
        let place = self.reading().position(|reader| reader == who);
        if let Some(place) = place {
            self.readers[place] = None;
            self.readers[place..].rotate_left(1);
        }
    }
}

/// The caller, a user, leaves, and others may come in. O(waiters) for each that does.
pub(super) fn leave(users: &Monitor<Users, 1>) {
    // It can fail only when the run is over, and then nobody waits.
    let _ = users.critical_section(None, |users, waiters| {
        let me = waiters.me();
        let inherits = users.first() == Some(me);
        users.remove(me);
        let_in(users, waiters, inherits);
        Step::Done(())
    });
}

/// The caller waits no more, and others need not wait behind it. O(waiters) for each that comes in.
pub(super) fn give_up(users: &Monitor<Users, 1>, was_first_in_line: bool) {
    // As above.
    let _ = users.critical_section(None, |users, waiters| {
        let_in(users, waiters, was_first_in_line);
        Step::Done(())
    });
}

/// The caller was first in line, and came in when it was answered. O(waiters), as the following.
pub(super) fn arrive(users: &Monitor<Users, 1>) {
    // As above.
    let _ = users.critical_section(None, |users, waiters| {
        pass_on(users, waiters);
        Step::Done(())
    });
}

/// The caller was first in line, and is in now: the first user inherits what it inherited.
pub(super) fn pass_on(users: &mut Users, waiters: &mut Waiters<'_>) {
    if users.first() != Some(waiters.me()) {
        let_in(users, waiters, true);
    }
}

/// Lets in all that may enter: the most urgent, and as many readers as come before the first
/// writer. The caller's inherited priority passes on to the first user then; or, if that one came
/// before, to the first in line now, which blocks on it.
fn let_in(users: &mut Users, waiters: &mut Waiters<'_>, mut inherits: bool) {
    while let Some((who, ask)) = waiters.most_urgent(0) {
        if !users.let_in(who, ask) {
            if inherits {
                waiters.hand_over(who, AGAIN);
            }
            return;
        }
        if inherits && users.first() == Some(who) {
            inherits = false;
            waiters.hand_over(who, IN);
        } else {
            waiters.answer(who, IN);
        }
    }
}

/// The content of an answer.
pub(super) const fn is_in(answer: u64) -> bool {
    answer == IN
}
