//! Other code for a scheduler that decides on its own supply.
//!
//! ```text
//!   beside     a program's new policy stands beside the child, made by who asks
//!   next       the core has said yes: the child takes it when it looks next, on its own supply
//!   old        what was replaced, until who asks takes it away; nothing is freed in an entry
//! ```
//!
//! From the second on the core lets no answer of the old one count
//! (`punctual_kern::Request::Replace`).

use core::fmt;

use punctual_child::ChildScheduler;
use punctual_kern::Policy;

/// A policy of a program's own.
type Own = Box<dyn Policy + Send>;

/// A policy of a program's own on its way to a scheduler, and those on the way back.
#[derive(Default)]
pub struct OwnCode {
    new: Option<Own>,
    old: Vec<Own>,
}

impl fmt::Debug for OwnCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OwnCode { new, old } = self;
        let (new, old) = (new.is_some(), old.len());
        f.debug_struct("OwnCode")
            .field("new", &new)
            .field("old", &old)
            .finish()
    }
}

impl OwnCode {
    /// This one is to decide.
    pub fn new(policy: Own) -> OwnCode {
        OwnCode {
            new: Some(policy),
            // All that a child ever keeps, twice: before and after.
            old: Vec::with_capacity(2 * MOST_OLD),
        }
    }
}

/// One that had not been taken yet, and the one that was.
const MOST_OLD: usize = 2;

/// The code that is to take the place of a child's.
pub(crate) struct Successor {
    beside: Option<Own>,
    next: Option<Own>,
    /// How many of those that the child was made with come first.
    planned: u32,
    old: Vec<Own>,
}

impl Successor {
    pub(crate) fn none() -> Successor {
        Successor {
            beside: None,
            next: None,
            planned: 0,
            old: Vec::with_capacity(MOST_OLD),
        }
    }

    /// Changes what stands beside for what is in `place`, and hands over what was replaced.
    pub(crate) fn shelve(&mut self, place: &mut OwnCode) {
        core::mem::swap(&mut self.beside, &mut place.new);
        place.old.append(&mut self.old);
    }

    /// The core has let another policy come.
    pub(crate) fn permit(&mut self) {
        match self.beside.take() {
            Some(own) => self.old.extend(self.next.replace(own)),
            None => self.planned = self.planned.saturating_add(1),
        }
    }

    /// The child takes what is there for it. Whether anything was.
    pub(crate) fn give(&mut self, code: &mut ChildScheduler) -> bool {
        let planned = core::mem::take(&mut self.planned);
        for _ in 0..planned {
            code.take_next();
        }
        let own = self.next.take().map(|own| code.replace(own));
        let came = planned > 0 || own.is_some();
        self.old.extend(own);
        came
    }
}
