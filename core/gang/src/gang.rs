//! The words of a gang
//!
//! `state` alone decides: a round is over when `state` has left it, and broken when `state` says so
//! in it. Every other word is written by one member, counts, or is a bell that rings when there is
//! something to look at.

use alloc::vec::Vec;
use core::fmt;

use crate::atomic::{AtomicU64, Ordering};

/// The most members that a gang may have.
pub const MOST: usize = 4096;

/// A node of the tree has so many children.
const CHILDREN: usize = 4;

/// The way of the news between members.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// One shared counter, and one word that everyone waits for: O(n) for the last.
    Linear,
    /// Everyone waits for a word of their own and tells at most four others: O(log n).
    Tree,
}

/// The reason why a gang is broken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Why {
    /// The member has left.
    Left = 1,
    /// It panicked.
    Panicked = 2,
    /// It was cancelled.
    Cancelled = 3,
    /// Its processor was taken away for good.
    Abandoned = 4,
    /// Another member waited for it up to its limit.
    Late = 5,
    /// It began another operation than the rest.
    Mismatch = 6,
    /// It destroyed the gang. Named is member 0 where somebody outside did.
    Destroyed = 7,
}

const WHYS: [Why; 7] = [
    Why::Left,
    Why::Panicked,
    Why::Cancelled,
    Why::Abandoned,
    Why::Late,
    Why::Mismatch,
    Why::Destroyed,
];

/// The end of a gang, by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Broken {
    /// The place of the member that broke it.
    pub member: usize,
    /// The reason.
    pub why: Why,
}

/// A word that a member waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Word {
    /// The one that everyone waits for (linear).
    State,
    /// The bell of a place (tree).
    Bell(usize),
}

/// To be waited for: the word has another value than `seen`, or soon has. An earlier or later step
/// does no harm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wait {
    /// The word.
    pub word: Word,
    /// Its value when the member looked.
    pub seen: u64,
}

/// Nobody can join.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JoinError {
    /// A gang has 1 to [`MOST`] members.
    Members,
    /// Every place is taken.
    Full,
    /// The gang is broken or destroyed.
    Broken(Broken),
    /// There is no memory for its words.
    Memory,
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JoinError::Members => write!(f, "a gang has 1 to {MOST} members"),
            JoinError::Full => write!(f, "every place of the gang is taken"),
            JoinError::Broken(broken) => {
                write!(
                    f,
                    "the gang is broken: member {} {:?}",
                    broken.member, broken.why
                )
            }
            JoinError::Memory => write!(f, "there is no memory for the gang"),
        }
    }
}

impl core::error::Error for JoinError {}

/// A constraint as words, in an encoding of the runtime's.
pub type Attached = [u64; 8];

/// A word on a cache line of its own.
#[derive(Debug)]
#[repr(align(64))]
struct Line<T>(T);

/// The words of one place.
#[derive(Debug)]
struct Place {
    /// The round that its member is in, the operation, and how far it is ([`Mark`]).
    mark: AtomicU64,
    /// Its contribution, or that of its subtree.
    value: AtomicU64,
    /// Rung when there may be news for this place: counts [`Ring`]s of each kind.
    bell: AtomicU64,
    /// The value of a round, for this place, from the one above.
    answer: AtomicU64,
}

/// The news of a bell, and what is added to its word. Each kind counts in bits of its own. A kind
/// that overflows only rings another one, which does no harm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub(crate) enum Ring {
    /// From above: the round is over. The lowest 32 bits count like rounds.
    Told = 1,
    /// From below: a member has come, with everyone below it.
    Came = 1 << 32,
    /// From anybody: look at `state`.
    Alarm = 1 << 48,
}

impl Ring {
    /// Whether the one above has told that `round` is over, by the word of a bell.
    pub(crate) fn has_told(bell: u64, round: u32) -> bool {
        bell & u64::from(u32::MAX) == u64::from(round.wrapping_add(1))
    }

    /// The alarms of a bell.
    pub(crate) fn alarms(bell: u64) -> u64 {
        bell / Ring::Alarm as u64
    }
}

/// How far a member is in a round: `round | operation | coming or in`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mark {
    pub(crate) round: u32,
    pub(crate) tag: u32,
    /// It has been counted, with everyone below it.
    pub(crate) is_in: bool,
}

impl Mark {
    fn word(self) -> u64 {
        u64::from(self.round) << 32 | u64::from(self.tag) << 2 | (1 + u64::from(self.is_in))
    }
}

/// The decision about a round, as a word: `round | why | place`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct State {
    pub(crate) round: u32,
    pub(crate) broken: Option<Broken>,
}

impl State {
    fn word(self) -> u64 {
        let broken = self
            .broken
            .map_or(0, |broken| (broken.why as u64) << 16 | broken.member as u64);
        u64::from(self.round) << 32 | broken
    }

    fn read(word: u64) -> State {
        let low = word.to_le_bytes();
        let why = usize::from(low[2]);
        let broken = why.checked_sub(1).and_then(|why| WHYS.get(why));
        State {
            round: (word >> 32) as u32,
            broken: broken.map(|why| Broken {
                member: usize::from(u16::from_le_bytes([low[0], low[1]])),
                why: *why,
            }),
        }
    }
}

/// The words that the members of a gang share.
#[derive(Debug)]
pub struct Gang {
    form: Form,
    generation: u64,
    state: Line<AtomicU64>,
    /// Attempts to take a place.
    joined: Line<AtomicU64>,
    /// Arrivals in all rounds (linear).
    count: Line<AtomicU64>,
    /// Departures from all rounds that ask for their order (linear).
    departures: Line<AtomicU64>,
    result: Line<AtomicU64>,
    /// An admission is under way.
    lock: Line<AtomicU64>,
    attached: Line<[AtomicU64; 8]>,
    places: Vec<Line<Place>>,
}

impl Gang {
    /// A gang of `members` places, none of them taken. Its operations begin to end when all are.
    /// `generation` tells gangs of one name apart. O(members).
    ///
    /// # Errors
    /// [`JoinError::Members`], [`JoinError::Memory`].
    pub fn new(members: usize, form: Form, generation: u64) -> Result<Gang, JoinError> {
        if !(1..=MOST).contains(&members) {
            return Err(JoinError::Members);
        }
        let mut places = Vec::new();
        places
            .try_reserve_exact(members)
            .map_err(|_| JoinError::Memory)?;
        places.extend((0..members).map(|_| {
            Line(Place {
                mark: AtomicU64::new(0),
                value: AtomicU64::new(0),
                bell: AtomicU64::new(0),
                answer: AtomicU64::new(0),
            })
        }));
        let word = || Line(AtomicU64::new(0));
        Ok(Gang {
            form,
            generation,
            state: word(),
            joined: word(),
            count: word(),
            departures: word(),
            result: word(),
            lock: word(),
            attached: Line(core::array::from_fn(|_| AtomicU64::new(0))),
            places,
        })
    }

    /// How many members it has when it is complete.
    pub fn members(&self) -> usize {
        self.places.len()
    }

    /// Its form.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Tells it apart from others of its name.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Takes the next free place. A place is taken once in the life of a gang. O(1).
    pub(crate) fn take_place(&self) -> Result<usize, JoinError> {
        if let Some(broken) = self.broken() {
            return Err(JoinError::Broken(broken));
        }
        let place = self.joined.0.fetch_add(1, Ordering::Relaxed);
        match usize::try_from(place) {
            Ok(place) if place < self.members() => Ok(place),
            _ => Err(JoinError::Full),
        }
    }

    /// The member that broke the gang, if one did.
    pub fn broken(&self) -> Option<Broken> {
        State::read(self.state.0.load(Ordering::Relaxed)).broken
    }

    /// The present value of a word that a member waits for.
    pub fn look(&self, word: Word) -> u64 {
        match word {
            Word::State => self.state.0.load(Ordering::Relaxed),
            Word::Bell(place) => self.bell(place),
        }
    }

    /// Ends the gang in the name of a member that is no more, from wherever that is known. The
    /// member that broke it first stays the one. Everyone who waits is told. O(members).
    pub fn end(&self, broken: Broken) {
        self.break_by(broken);
    }

    pub(crate) fn break_by(&self, broken: Broken) {
        let mut word = self.state.0.load(Ordering::Relaxed);
        loop {
            let state = State::read(word);
            if state.broken.is_some() {
                break;
            }
            let next = State {
                broken: Some(broken),
                ..state
            };
            let state = &self.state.0;
            let result =
                state.compare_exchange(word, next.word(), Ordering::Relaxed, Ordering::Relaxed);
            match result {
                Ok(_) => break,
                Err(now) => word = now,
            }
        }
        if self.form == Form::Tree {
            (0..self.members()).for_each(|place| self.ring(place, Ring::Alarm));
        }
    }

    /// Whether `round` has ended, as everyone sees it; and the word.
    pub(crate) fn decided(&self, round: u32) -> (Option<Result<(), Broken>>, u64) {
        let word = self.state.0.load(Ordering::Acquire);
        let state = State::read(word);
        let decided = match (state.round == round, state.broken) {
            (false, _) => Some(Ok(())),
            (true, Some(broken)) => Some(Err(broken)),
            (true, None) => None,
        };
        (decided, word)
    }

    /// Ends `round`, with `result`, for everyone; not if it is broken.
    pub(crate) fn release(&self, round: u32) {
        let now = State {
            round,
            broken: None,
        };
        let next = State {
            round: round.wrapping_add(1),
            broken: None,
        };
        let state = &self.state.0;
        // Broken meanwhile: the next look says so.
        let _ = state.compare_exchange(
            now.word(),
            next.word(),
            Ordering::Release,
            Ordering::Relaxed,
        );
    }

    pub(crate) fn set_mark(&self, place: usize, mark: Mark) {
        self.places[place]
            .0
            .mark
            .store(mark.word(), Ordering::Release);
    }

    /// Whether the member of `place` has come, and with which operation.
    pub(crate) fn mark_is(&self, place: usize, mark: Mark) -> Result<bool, ()> {
        let word = self.places[place].0.mark.load(Ordering::Acquire);
        let coming = Mark {
            is_in: false,
            ..mark
        };
        if word == mark.word() {
            return Ok(true);
        }
        let has_begun = word != 0 && word >> 32 == u64::from(mark.round);
        let is_same = word == coming.word()
            || word
                == Mark {
                    is_in: true,
                    ..mark
                }
                .word();
        if has_begun && !is_same {
            return Err(());
        }
        Ok(!mark.is_in && is_same)
    }

    /// The member that the rest waits for: everyone below it has come.
    pub(crate) fn missing(&self, round: u32) -> Option<usize> {
        (0..self.members()).rev().find(|place| {
            let word = self.places[*place].0.mark.load(Ordering::Relaxed);
            word >> 32 != u64::from(round) || word & 3 != 2
        })
    }

    pub(crate) fn set_value(&self, place: usize, value: u64) {
        self.places[place].0.value.store(value, Ordering::Relaxed);
    }

    pub(crate) fn value(&self, place: usize) -> u64 {
        self.places[place].0.value.load(Ordering::Relaxed)
    }

    pub(crate) fn set_result(&self, value: u64) {
        self.result.0.store(value, Ordering::Relaxed);
    }

    pub(crate) fn result(&self) -> u64 {
        self.result.0.load(Ordering::Relaxed)
    }

    /// Counts an arrival: its order among those of this round.
    pub(crate) fn arrive(&self) -> usize {
        self.in_round(self.count.0.fetch_add(1, Ordering::AcqRel))
    }

    /// Counts a departure: its order among those of this round.
    pub(crate) fn depart(&self) -> usize {
        self.in_round(self.departures.0.fetch_add(1, Ordering::Relaxed))
    }

    fn in_round(&self, number: u64) -> usize {
        let order = number % self.members() as u64;
        usize::try_from(order).unwrap_or(0)
    }

    /// Locks the gang, then attaches one word of the constraint at a time; `true` when all are.
    /// Only the elected member does so, and one admission of a gang is over before the next begins.
    pub(crate) fn attach(&self, constraint: &Attached, done: usize) -> bool {
        match done.checked_sub(1) {
            None => self.lock.0.store(1, Ordering::Relaxed),
            Some(word) => self.attached.0[word].store(constraint[word], Ordering::Relaxed),
        }
        done == constraint.len()
    }

    /// The words as they are, for members behind the barrier.
    pub(crate) fn being_attached(&self) -> Attached {
        core::array::from_fn(|word| self.attached.0[word].load(Ordering::Relaxed))
    }

    pub(crate) fn unlock(&self) {
        self.lock.0.store(0, Ordering::Relaxed);
    }

    /// Whether an admission is under way, or was when the gang broke.
    pub fn is_locked(&self) -> bool {
        self.lock.0.load(Ordering::Relaxed) != 0
    }

    pub(crate) fn bell(&self, place: usize) -> u64 {
        let bell = &self.places.get(place).map(|place| &place.0.bell);
        bell.map_or(0, |bell| bell.load(Ordering::Acquire))
    }

    pub(crate) fn ring(&self, place: usize, ring: Ring) {
        let bell = &self.places[place].0.bell;
        bell.fetch_add(ring as u64, Ordering::Release);
    }

    /// The value of a round, as the one above has passed it on before it rang.
    pub(crate) fn answer(&self, place: usize) -> u64 {
        self.places[place].0.answer.load(Ordering::Relaxed)
    }

    pub(crate) fn set_answer(&self, place: usize, value: u64) {
        self.places[place].0.answer.store(value, Ordering::Relaxed);
    }

    /// The place above; `None` at the root.
    pub(crate) fn parent(place: usize) -> Option<usize> {
        Some(place.checked_sub(1)? / CHILDREN)
    }

    /// The places below.
    pub(crate) fn children(&self, place: usize) -> core::ops::Range<usize> {
        let first = (place * CHILDREN + 1).min(self.members());
        first..(first + CHILDREN).min(self.members())
    }
}
