//! Thread-locals as a new thread finds them, in storages that others have used.
//!
//! ```text
//!   storage of this library:   | initialised ... | LOCAL | ... zero |
//!                                copied from the   kept    cleared
//!                                object's image
//!   storage of other objects:  | initialised ...         | ... zero |
//! ```
//!
//! A thread of the pool lives in a storage that was made before the run. When it ends, the
//! destructors of its thread-locals run, as in any thread; then those of all objects become again
//! what they are in a new thread. Our own words stay, and so do those of the C library (the caches
//! of its allocator above all), which belong to the record. Nothing becomes new beside a library
//! that makes keys of `pthread_setspecific`: it may have chained its thread-locals to others, and
//! waits for a destructor that is not called. An allocator that is linked into the program cannot
//! be told from it, and must not be there.

use core::ops::Range;
use std::sync::OnceLock;

use punctual_switch::instructions::read_thread_pointer;

use crate::record::local::{Local, local};
use crate::record::outcome::Loss;
use crate::sys::locals::{Storage, storages};

/// A storage, seen from our own words.
#[derive(Clone, Debug)]
struct Part {
    /// Where it begins; the same in every thread.
    begin: isize,
    bytes: usize,
    /// The address of what its first bytes are at first.
    image: usize,
    image_bytes: usize,
    /// Where our own words lie in it, or nothing at its end.
    kept: Range<usize>,
}

impl Part {
    fn of(storage: &Storage, words: *const u8) -> Part {
        let kept = match storage.holds(words) {
            true => {
                let first = words.addr() - storage.begin.addr();
                first..first + size_of::<Local>()
            }
            false => storage.bytes..storage.bytes,
        };
        Part {
            begin: storage
                .begin
                .addr()
                .wrapping_sub(words.addr())
                .cast_signed(),
            bytes: storage.bytes,
            image: storage.image.expose_provenance(),
            image_bytes: storage.image_bytes,
            kept,
        }
    }
}

/// A stretch of a storage, seen from our own words: so many bytes are copied into it from an image,
/// and so many behind them are cleared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stretch {
    begin: isize,
    image: usize,
    copied: usize,
    cleared: usize,
}

impl Part {
    /// The stretches that become new: before our own words, and behind them.
    fn stretches(&self) -> impl Iterator<Item = Stretch> {
        let around = [0..self.kept.start, self.kept.end..self.bytes];
        let stretch = |bytes: Range<usize>| {
            let (copied, cleared) = split(&bytes, self.image_bytes);
            Stretch {
                begin: self.begin.wrapping_add_unsigned(bytes.start),
                image: self.image + copied.start,
                copied: copied.len(),
                cleared: cleared.len(),
            }
        };
        around
            .map(stretch)
            .into_iter()
            .filter(|s| s.copied + s.cleared > 0)
    }
}

/// This program's storages.
#[derive(Debug)]
struct Template {
    stretches: Vec<Stretch>,
    /// Our own words, from the thread pointer.
    words: i64,
}

/// Else the names of those whose thread-locals cannot be made new; the C library keeps its own.
static TEMPLATE: OnceLock<Result<Template, Vec<String>>> = OnceLock::new();

fn here() -> *const u8 {
    local(|words: &Local| core::ptr::from_ref(words).cast())
}

fn distance(address: usize, from: u64) -> i64 {
    (address as u64).wrapping_sub(from).cast_signed()
}

/// Looks the storages up, before a run. In a new thread, in which those are there whose place is
/// the same in every thread, and no others.
pub(crate) fn find() {
    let _ = TEMPLATE.get_or_init(|| {
        let look = || {
            let words = here();
            let found = storages(words);
            let stretches = |storage| Part::of(storage, words).stretches().collect::<Vec<_>>();
            let fresh = Template {
                stretches: found.known.iter().flat_map(stretches).collect(),
                words: distance(words.addr(), read_thread_pointer()),
            };
            let has_ours = found.known.iter().any(|storage| storage.holds(words));
            match found.others.is_empty() && has_ours {
                true => Ok(fresh),
                false => Err(found.others),
            }
        };
        // Without a thread nothing is known, and nothing is made new.
        let looking = std::thread::Builder::new().spawn(look);
        let found = looking.ok().and_then(|looking| looking.join().ok());
        found.unwrap_or_else(|| Err(Vec::new()))
    });
}

/// Whether thread-locals are made new at the end of a thread: where other libraries have some, too,
/// destructors would run that nobody undoes, and the next thread would use what was destroyed.
pub(crate) fn resets() -> bool {
    TEMPLATE.get().is_some_and(Result::is_ok)
}

/// The libraries whose thread-locals keep those of the program from being new in each thread that
/// is created during a run; none: they are new. Before a run; starts a thread for a moment, once.
pub fn libraries_with_locals() -> Vec<String> {
    find();
    let found = TEMPLATE.get().and_then(|found| found.as_ref().err());
    found.cloned().unwrap_or_default()
}

/// The price of libraries that have thread-locals of their own, where threads of a pool follow one
/// another.
pub(crate) fn loss() -> Option<Loss> {
    let others = TEMPLATE.get()?.as_ref().err()?;
    let names: Vec<String> = others.iter().map(|name| format!("`{name}`")).collect();
    (!names.is_empty()).then(|| Loss {
        what: "new thread-locals",
        detail: format!(
            "a thread finds in its thread-locals what an earlier one on its place of the pool left \
             there, as those of {} cannot be made new: set them first",
            names.join(", ")
        ),
    })
}

/// Makes the calling thread's thread-locals new. O(their bytes). Where the loader has put the
/// storage of this library somewhere else in each thread (it was loaded by a running program), it
/// stays as it is.
///
/// # Safety
/// No value of a thread-local of this thread is used any more, and its destructors have run.
pub(crate) unsafe fn reset() {
    punctual_linux_io::begin_thread();
    let Some(Ok(fresh)) = TEMPLATE.get() else {
        return;
    };
    let pointer = read_thread_pointer();
    let words = here();
    if distance(words.addr(), pointer) != fresh.words {
        return;
    }
    for stretch in &fresh.stretches {
        let begin = words.wrapping_offset(stretch.begin).cast_mut();
        let image = core::ptr::with_exposed_provenance::<u8>(stretch.image);
        // SAFETY: (1) both lie in a storage of this thread that the loader made of that many
        // bytes, at the same distance in every thread, and beside our own words; (2) the image
        // is the loader's own, and as long as it says; (3) nobody else reads or writes this
        // thread's storage, and it does not use what it held, as the caller vouches.
        unsafe {
            core::ptr::copy_nonoverlapping(image, begin, stretch.copied);
            begin.add(stretch.copied).write_bytes(0, stretch.cleared);
        }
    }
}

/// The bytes of a part that the image has, and those that it has not.
fn split(part: &Range<usize>, image: usize) -> (Range<usize>, Range<usize>) {
    let border = image.clamp(part.start, part.end);
    (part.start..border, border..part.end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;

    thread_local! {
        static ONCE: Cell<u64> = const { Cell::new(0xABCD) };
        static ZERO: Cell<u64> = const { Cell::new(0) };
    }

    #[test]
    fn thread_locals_become_what_they_are_in_a_new_thread_and_ours_stay() {
        find();
        let thread = std::thread::spawn(|| {
            ONCE.set(1);
            ZERO.set(2);
            let mark = core::ptr::without_provenance(8);
            local(|words| words.host.set(mark));
            // SAFETY: nothing here uses the values across the call, and they have no destructors.
            unsafe { reset() };
            let kept = local(|words| words.host.replace(core::ptr::null()));
            (ONCE.get(), ZERO.get(), kept.addr())
        });
        assert_eq!(thread.join().ok(), Some((0xABCD, 0, 8)));
    }

    #[test]
    fn a_part_is_split_where_the_image_ends() {
        assert_eq!(split(&(0..8), 16), (0..8, 8..8));
        assert_eq!(split(&(8..32), 16), (8..16, 16..32));
        assert_eq!(split(&(24..32), 16), (24..24, 24..32));
    }
}
