//! One access made wrong on purpose: with a weaker order, or left out.
//!
//! Words report where they are accessed. A first run of a model collects those places; then each
//! mistake that could have been made at one of them is made, and the model runs again.

use core::cell::{Cell, RefCell};
use core::fmt;
use core::panic::Location;
use std::collections::BTreeMap;

/// What can be wrong about an access.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Mistake {
    /// It orders nothing.
    Relaxed,
    /// It orders nothing when it fails (of an exchange that may fail).
    RelaxedOnFailure,
    /// It does not happen (of a store or a fence).
    LeftOut,
}

const MISTAKES: [Mistake; 3] = [
    Mistake::Relaxed,
    Mistake::RelaxedOnFailure,
    Mistake::LeftOut,
];

/// A mistake at a place in the sources.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Mutant {
    /// The file.
    pub file: &'static str,
    /// The line.
    pub line: u32,
    column: u32,
    /// What is wrong there.
    pub mistake: Mistake,
}

impl fmt::Display for Mutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.rsplit_once("../");
        let file = file.map_or(self.file, |(_, file)| file);
        write!(f, "{file}:{}: {:?}", self.line, self.mistake)
    }
}

thread_local! {
    /// The mistake that is made now.
    static MADE: Cell<Option<Mutant>> = const { Cell::new(None) };
    /// Those that could be made, and how often their places were met.
    static MET: RefCell<BTreeMap<Mutant, u64>> = const { RefCell::new(BTreeMap::new()) };
}

/// Whether `mistake` is to be made at `place`. Called by the words.
pub(crate) fn is_made(place: &'static Location<'static>, mistake: Mistake) -> bool {
    let mutant = Mutant {
        file: place.file(),
        line: place.line(),
        column: place.column(),
        mistake,
    };
    MET.with_borrow_mut(|met| *met.entry(mutant).or_default() += 1);
    MADE.get() == Some(mutant)
}

/// Runs `model` as it is; returns what it returned and the mistakes that could be made in it. Those
/// in the models themselves (of this crate) do not count.
pub fn collect<R>(model: impl FnOnce() -> R) -> (R, Vec<Mutant>) {
    MADE.set(None);
    MET.take();
    let result = model();
    let met = MET.take().into_keys();
    let places = ["/platform/", "/switch/", "/record/", "/runtime/", "/gang/"];
    let ours = |mutant: &Mutant| places.iter().any(|place| mutant.file.contains(place));
    (result, met.filter(ours).collect())
}

/// Makes a mistake from now on.
pub fn make(mutant: Mutant) {
    MADE.set(Some(mutant));
}

impl Mutant {
    /// What [`Mutant::read`] reads.
    pub fn words(&self) -> [String; 4] {
        let [line, column] = [self.line, self.column].map(|number| number.to_string());
        let mistake = MISTAKES.iter().position(|mistake| *mistake == self.mistake);
        [
            self.file.to_string(),
            line,
            column,
            mistake.unwrap_or_default().to_string(),
        ]
    }

    /// From the words of [`Mutant::words`].
    pub fn read(words: &[String]) -> Option<Mutant> {
        let [file, line, column, mistake] = words else {
            return None;
        };
        Some(Mutant {
            // One for each process.
            file: Box::leak(file.clone().into_boxed_str()),
            line: line.parse().ok()?,
            column: column.parse().ok()?,
            mistake: *MISTAKES.get(mistake.parse::<usize>().ok()?)?,
        })
    }
}
