//! Things by number: what C programs hold instead of pointers.
//!
//! A handle is the generation of a place and its index. The state of a place is one word:
//!
//! ```text
//!   63          32 31   30 29              0
//!   [ generation ][ phase ][ users ........ ]
//!
//!   phase: vacant -> making -> alive -> leaving -> making -> vacant
//! ```
//!
//! Who uses a thing is counted from before it is looked at until after, so it is never destroyed
//! under a caller's hands, from whatever kernel thread; the last user of one that is leaving takes
//! it away. Places stay where they are: memory is taken in blocks that are never given back.
//!
//! INV-C1: the value of a place is there and shared while its phase is `ALIVE` or `LEAVING`; while
//! it is `MAKING` (also a moment before `vacant`) it is exclusively that of whoever brought it
//! there, which from `LEAVING` is possible only with nobody counted.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ops::Deref;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::OnceLock;

use crate::edge::{give, is_place};
use crate::status::{Answer, punctual_status as Status};

const PHASE: u64 = 0b11 << 30;
const MAKING: u64 = 0b01 << 30;
const ALIVE: u64 = 0b10 << 30;
const LEAVING: u64 = 0b11 << 30;
const USERS: u64 = (1 << 30) - 1;
const GENERATION: u64 = 1 << 32;

/// Places of the first block; each one after has twice as many.
const FIRST: usize = 64;
/// Enough for a million things.
const BLOCKS: usize = 14;

struct Place<T> {
    state: AtomicU64,
    value: UnsafeCell<MaybeUninit<T>>,
}

/// Things of one kind, by number.
pub(crate) struct Table<T> {
    blocks: [OnceLock<Box<[Place<T>]>>; BLOCKS],
    /// Where the search for a vacant place begins.
    hint: AtomicUsize,
}

// SAFETY: a value is shared between those that are counted and exclusive otherwise (INV-C1), and
// may be dropped on another kernel thread than it was made on.
unsafe impl<T: Send + Sync> Sync for Table<T> {}

/// A thing that goes unless it is kept.
pub(crate) struct Reserved<'a, T> {
    entry: Used<'a, T>,
    is_kept: bool,
}

impl<'a, T> Reserved<'a, T> {
    pub(crate) fn of(entry: Used<'a, T>) -> Reserved<'a, T> {
        Reserved {
            entry,
            is_kept: false,
        }
    }

    pub(crate) fn entry(&self) -> &T {
        &self.entry
    }

    pub(crate) fn keep(&mut self) {
        self.is_kept = true;
    }
}

impl<T> Drop for Reserved<'_, T> {
    fn drop(&mut self) {
        if !self.is_kept {
            self.entry.retire();
        }
    }
}

/// A place in the phase `MAKING`: vacant again unless something is made there.
struct Claimed<'a, T>(&'a Place<T>);

impl<'a, T> Claimed<'a, T> {
    fn keep(self) -> &'a Place<T> {
        let place = self.0;
        core::mem::forget(self);
        place
    }
}

impl<T> Drop for Claimed<'_, T> {
    fn drop(&mut self) {
        let _ = self.0.state.fetch_sub(MAKING, Ordering::Release);
    }
}

/// A thing in use.
pub(crate) struct Used<'a, T> {
    table: &'a Table<T>,
    place: &'a Place<T>,
    handle: u64,
}

impl<T> Table<T> {
    pub(crate) const fn new() -> Table<T> {
        Table {
            blocks: [const { OnceLock::new() }; BLOCKS],
            hint: AtomicUsize::new(0),
        }
    }

    /// Takes a thing in; its handle, which is never 0. O(places) at worst, allocates when none is
    /// vacant.
    pub(crate) fn insert(&self, value: T) -> Result<u64, Status> {
        self.insert_with(|| Ok(value))
    }

    /// As [`Table::insert`], of a thing that is made once there is a place for it.
    pub(crate) fn insert_with(
        &self,
        make: impl FnOnce() -> Result<T, Status>,
    ) -> Result<u64, Status> {
        let (index, mine, claimed) = self.claim()?;
        let value = make()?;
        let place = claimed.keep();
        // SAFETY: the claim brought the phase to `MAKING` (INV-C1).
        unsafe { (*place.value.get()).write(value) };
        // Somebody with a stale handle may be counted for a moment: an addition, no store.
        place.state.fetch_add(ALIVE - MAKING, Ordering::Release);
        self.hint.store(index + 1, Ordering::Relaxed);
        let number = u64::try_from(index).unwrap_or(u64::MAX) & (GENERATION - 1);
        Ok(mine & !(GENERATION - 1) | number)
    }

    /// A vacant place becomes the caller's: its index and its state.
    fn claim(&self) -> Result<(usize, u64, Claimed<'_, T>), Status> {
        let known: usize = self.known();
        let hint = self.hint.load(Ordering::Relaxed);
        let order = (0..known).map(|step| (hint + step) % known.max(1));
        let grown = || known..known + FIRST.max(known + FIRST);
        for index in order.chain(grown()) {
            let Some(place) = self.place_or_grow(index) else {
                break;
            };
            let before = place.state.load(Ordering::Relaxed);
            let mine = (before & !USERS & !PHASE).wrapping_add(GENERATION) | MAKING;
            let is_vacant = before & (PHASE | USERS) == 0;
            if !is_vacant || mine & !(GENERATION - 1) == 0 || !exchange(place, before, mine) {
                continue;
            }
            return Ok((index, mine, Claimed(place)));
        }
        Err(Status::PUNCTUAL_NO_MEMORY)
    }

    /// Makes a thing for C: `place` gets what `handle` makes of its number, unless the place is
    /// no place; then nothing is made.
    ///
    /// # Safety
    /// As for [`give`].
    pub(crate) unsafe fn create<H>(
        &self,
        place: *mut H,
        handle: fn(u64) -> H,
        make: impl FnOnce() -> Result<T, Status>,
    ) -> Answer {
        is_place(place)?;
        let id = self.insert(make()?)?;
        // SAFETY: as the caller vouches.
        unsafe { give(place, handle(id)) }
    }

    /// A thing, in use until the result is dropped. Two atomic additions.
    #[inline]
    pub(crate) fn get(&self, handle: u64) -> Result<Used<'_, T>, Status> {
        let place = self.find(handle).ok_or(Status::PUNCTUAL_STALE)?;
        let seen = place.state.load(Ordering::Relaxed);
        if !is_alive(seen, handle) {
            return Err(Status::PUNCTUAL_STALE);
        }
        let seen = place.state.fetch_add(1, Ordering::Acquire);
        let used = Used {
            table: self,
            place,
            handle,
        };
        match is_alive(seen, handle) {
            true => Ok(used),
            // The count is taken back.
            false => Err(Status::PUNCTUAL_STALE),
        }
    }

    /// Takes a thing out that nobody uses, and drops it.
    pub(crate) fn remove(&self, handle: u64) -> Result<(), Status> {
        let used = self.get(handle)?;
        let mine = handle & !(GENERATION - 1) | ALIVE | 1;
        match exchange(used.place, mine, mine | LEAVING) {
            true => Ok(()),
            false if used.is_alive() => Err(Status::PUNCTUAL_BUSY),
            false => Err(Status::PUNCTUAL_STALE),
        }
    }

    /// Every thing that is alive, in use meanwhile.
    pub(crate) fn each(&self, mut look: impl FnMut(&Used<'_, T>)) {
        let blocks = self.blocks.iter().map_while(OnceLock::get);
        let places = blocks.flat_map(|block| block.iter());
        for (index, place) in (0..).zip(places) {
            let state = place.state.load(Ordering::Relaxed);
            if let Ok(used) = self.get(state & !(GENERATION - 1) | index) {
                look(&used);
            }
        }
    }

    /// Places that there is memory for.
    fn known(&self) -> usize {
        let blocks = self.blocks.iter().map_while(OnceLock::get);
        blocks.map(|block| block.len()).sum()
    }

    fn find(&self, handle: u64) -> Option<&Place<T>> {
        let index = usize::try_from(handle & (GENERATION - 1)).ok()?;
        let (block, offset) = split(index);
        self.blocks.get(block)?.get()?.get(offset)
    }

    fn place_or_grow(&self, index: usize) -> Option<&Place<T>> {
        let (block, offset) = split(index);
        let vacant = || Place {
            state: AtomicU64::new(0),
            value: UnsafeCell::new(MaybeUninit::uninit()),
        };
        let make = || (0..FIRST << block).map(|_| vacant()).collect();
        self.blocks.get(block)?.get_or_init(make).get(offset)
    }

    /// One user less.
    #[inline]
    fn leave(&self, place: &Place<T>) {
        let before = place.state.fetch_sub(1, Ordering::Release);
        if before & (PHASE | USERS) == LEAVING | 1 {
            take_away(place, before - 1);
        }
    }
}

/// The count has come to 0 while `LEAVING`: `state`.
#[cold]
fn take_away<T>(place: &Place<T>, state: u64) {
    // Somebody with a stale handle may be counted again for a moment, and then also comes here:
    // the one who changes the phase drops the value.
    if exchange(place, state, state & !PHASE | MAKING) {
        // SAFETY: nobody looks while the phase is `MAKING`, and this call brought it there from
        // `LEAVING`, with nobody counted (INV-C1).
        unsafe { (*place.value.get()).assume_init_drop() };
        place.state.fetch_sub(MAKING, Ordering::Release);
    }
}

/// The block of a place and its offset there.
#[inline]
fn split(index: usize) -> (usize, usize) {
    let block = (index / FIRST + 1).ilog2() as usize;
    (block, index - FIRST * ((1 << block) - 1))
}

#[inline]
fn is_alive(state: u64, handle: u64) -> bool {
    let generation = !(GENERATION - 1);
    state & (generation | PHASE) == (handle & generation) | ALIVE && handle & generation != 0
}

fn exchange<T>(place: &Place<T>, before: u64, after: u64) -> bool {
    let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
    let state = &place.state;
    state
        .compare_exchange(before, after, success, failure)
        .is_ok()
}

impl<T> Used<'_, T> {
    fn is_alive(&self) -> bool {
        is_alive(self.place.state.load(Ordering::Relaxed), self.handle)
    }

    /// Takes it out: whoever is the last to use it drops it. `false` when somebody else did.
    pub(crate) fn retire(&self) -> bool {
        let mut state = self.place.state.load(Ordering::Relaxed);
        while is_alive(state, self.handle) {
            if exchange(self.place, state, state | LEAVING) {
                return true;
            }
            state = self.place.state.load(Ordering::Relaxed);
        }
        false
    }

    /// The number by which it is found.
    pub(crate) fn number(&self) -> u64 {
        self.handle
    }

    /// Keeps it in use after this is dropped, until [`Table::put_back`].
    pub(crate) fn keep(self) {
        core::mem::forget(self);
    }

    /// The end of a [`Used::keep`].
    pub(crate) fn put_back(&self) {
        self.table.leave(self.place);
    }
}

impl<T> Deref for Used<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: counted, and it was alive when it was (INV-C1).
        unsafe { (*self.place.value.get()).assume_init_ref() }
    }
}

impl<T> Drop for Used<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.table.leave(self.place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_handle_names_one_thing_and_nothing_afterwards() {
        let table = Table::new();
        let first = table.insert("first").expect("room");
        assert_eq!(table.get(first).map(|used| *used).ok(), Some("first"));
        assert_eq!(table.remove(first), Ok(()));
        assert_eq!(table.remove(first), Err(Status::PUNCTUAL_STALE));
        let handles: Vec<u64> = (0..200).map(|_| table.insert("x").expect("room")).collect();
        assert!(table.get(first).is_err() && !handles.contains(&first));
        let mut alive = 0;
        table.each(|_| alive += 1);
        assert_eq!(alive, 200);
    }

    #[test]
    fn nothing_is_made_where_there_is_no_place_for_it() {
        let table: Table<u8> = Table::new();
        let failed = table.insert_with(|| Err(Status::PUNCTUAL_REFUSED));
        assert_eq!(failed, Err(Status::PUNCTUAL_REFUSED));
        let places = FIRST * ((1 << BLOCKS) - 1);
        for _ in 0..places {
            table.insert(1).expect("the place of what failed is vacant");
        }
        let more = table.insert_with(|| panic!("made for nobody"));
        assert_eq!(more, Err(Status::PUNCTUAL_NO_MEMORY));
    }

    #[test]
    fn numbers_that_were_never_given_name_nothing() {
        let table = Table::new();
        let given = table.insert(7).expect("room");
        for bit in 0..64 {
            assert!(table.get(given ^ (1 << bit)).is_err(), "bit {bit}");
        }
        for number in [0, 1, u64::MAX, GENERATION, PHASE, ALIVE] {
            assert!(number == given || table.get(number).is_err());
        }
    }

    #[test]
    fn what_is_in_use_is_busy_and_the_last_user_takes_away_what_is_retired() {
        let (table, value) = (Table::new(), Arc::new(()));
        let handle = table.insert(Arc::clone(&value)).expect("room");
        let used = table.get(handle).expect("alive");
        assert_eq!(table.remove(handle), Err(Status::PUNCTUAL_BUSY));
        assert!(used.retire() && !used.retire());
        assert!(table.get(handle).is_err());
        assert_eq!(Arc::strong_count(&value), 2, "somebody uses it");
        drop(used);
        assert_eq!(Arc::strong_count(&value), 1);
    }

    #[test]
    fn kernel_threads_that_make_use_and_destroy_lose_and_double_nothing() {
        let table: Table<Arc<()>> = Table::new();
        let value = Arc::new(());
        let last = AtomicU64::new(0);
        // An interpreter (`cargo xtask miri`) takes a thousand times as long.
        let rounds = if cfg!(miri) { 30 } else { 20_000 };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..rounds {
                        let handle = table.insert(Arc::clone(&value)).expect("room");
                        let other = last.swap(handle, Ordering::Relaxed);
                        drop(table.get(other));
                        if let Ok(used) = table.get(handle) {
                            used.retire();
                        }
                        let _ = table.remove(other);
                    }
                });
            }
        });
        let _ = table.remove(last.load(Ordering::Relaxed));
        assert_eq!(Arc::strong_count(&value), 1);
        assert!(table.known() <= 448, "places are used again");
    }
}
