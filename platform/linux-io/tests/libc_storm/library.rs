//! Rounds of calls into the C library whose results a thread can check, and what they share.

#![allow(dead_code, unreachable_pub)] // As `common`: each test program uses a part of it.

use core::cell::Cell;
use core::ffi::{CStr, c_char, c_int, c_long, c_void};
use core::ptr::{null, null_mut};
use core::sync::atomic::{AtomicPtr, Ordering};

/// What threads hand each other's blocks through.
const SLOTS: usize = 16;
/// Beyond glibc's first threshold for a mapping of its own.
const LARGE: usize = 200_000;
/// All categories, for `newlocale` and `setlocale`, and what `nl_langinfo` is asked for.
const ALL_MASK: c_int = 0x1fbf;
const ALL: c_int = 6;
const CODESET: c_int = 14;

unsafe extern "C" {
    fn malloc(size: usize) -> *mut c_void;
    fn calloc(count: usize, size: usize) -> *mut c_void;
    fn realloc(block: *mut c_void, size: usize) -> *mut c_void;
    fn free(block: *mut c_void);
    fn fopen(path: *const c_char, mode: *const c_char) -> *mut c_void;
    fn fclose(file: *mut c_void) -> c_int;
    fn fprintf(file: *mut c_void, format: *const c_char, ...) -> c_int;
    fn snprintf(to: *mut c_char, size: usize, format: *const c_char, ...) -> c_int;
    fn strtok(text: *mut c_char, separators: *const c_char) -> *mut c_char;
    fn strtol(text: *const c_char, end: *mut *mut c_char, base: c_int) -> c_long;
    fn newlocale(mask: c_int, name: *const c_char, base: *mut c_void) -> *mut c_void;
    fn freelocale(locale: *mut c_void);
    fn uselocale(locale: *mut c_void) -> *mut c_void;
    fn setlocale(category: c_int, name: *const c_char) -> *mut c_char;
    fn localeconv() -> *const *const c_char;
    fn nl_langinfo(item: c_int) -> *const c_char;
    fn qsort(
        base: *mut c_void,
        count: usize,
        size: usize,
        compare: extern "C" fn(*const c_void, *const c_void) -> c_int,
    );
    fn __errno_location() -> *mut c_int;
}

/// What all threads of a storm share: blocks on their way to be freed by another, and one stream.
#[derive(Debug)]
pub struct Shared {
    blocks: [AtomicPtr<c_void>; SLOTS],
    stream: *mut c_void,
}

// SAFETY: the C library locks the stream in every call; the slots are atomic.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    /// A new stream to the file at `path`.
    pub fn new(path: &CStr) -> Shared {
        // SAFETY: both are C strings.
        let stream = unsafe { fopen(path.as_ptr(), c"w".as_ptr()) };
        assert!(!stream.is_null(), "{path:?} cannot be written");
        Shared {
            blocks: [const { AtomicPtr::new(null_mut()) }; SLOTS],
            stream,
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        for slot in &self.blocks {
            // SAFETY: a block of `malloc` that nobody else has, or null.
            unsafe { free(slot.load(Ordering::Relaxed)) };
        }
        // SAFETY: opened by `new`; nobody writes any more.
        assert_eq!(unsafe { fclose(self.stream) }, 0, "all lines are written");
    }
}

/// The number that line `n` of `thread` ends with.
pub fn mark(thread: u64, n: u64) -> u64 {
    (thread + 1).wrapping_mul(0x9e37_79b9).wrapping_add(n * n) % 1_000_003
}

/// One thread's storm.
#[derive(Debug)]
pub struct Caller<'a> {
    shared: &'a Shared,
    thread: u64,
    /// Rounds done.
    n: u64,
    locale: *mut c_void,
    calls: Cell<u64>,
}

impl Caller<'_> {
    /// To be called on the thread that then makes the rounds.
    pub fn new(shared: &Shared, thread: u64) -> Caller<'_> {
        let mut caller = Caller {
            shared,
            thread,
            n: 0,
            locale: null_mut(),
            calls: Cell::new(0),
        };
        caller.renew_locale();
        caller
    }

    /// Rounds done so far, which is also the number of lines written.
    pub fn rounds(&self) -> u64 {
        self.n
    }

    /// A round of calls, each with its result checked; how many it was. Ends by a panic when a
    /// result is wrong.
    pub fn round(&mut self) -> u64 {
        let before = self.calls.get();
        // A number that no call of a round sets: another thread's call must not either.
        let own = 10_000 + c_int::try_from(self.thread).expect("small");
        // SAFETY: the address is that of this thread's own variable.
        unsafe { *__errno_location() = own };
        self.allocate();
        self.cut();
        self.print();
        if self.n.is_multiple_of(8) {
            self.sort();
        }
        self.look_at_locale();
        // SAFETY: as above.
        assert_eq!(unsafe { *__errno_location() }, own, "another's errno");
        if self.n.is_multiple_of(64) {
            self.renew_locale();
        }
        self.n += 1;
        self.calls.get() - before
    }

    fn count(&self, calls: u64) {
        self.calls.set(self.calls.get() + calls);
    }

    /// A block for somebody, a block of somebody; and one that grows.
    fn allocate(&self) {
        let n = usize::try_from(self.n).expect("64 bits");
        let size = if n % 1_000 == 999 {
            LARGE
        } else {
            32 + n * 37 % 2_000
        };
        // SAFETY: any size; the result is looked at.
        let block = fill(unsafe { malloc(size) }, size);
        let found = self.shared.blocks[n % SLOTS].swap(block, Ordering::AcqRel);
        check(found);
        // SAFETY: what was in the slot is nobody else's now.
        unsafe { free(found) };
        // SAFETY: any numbers; the result is looked at.
        let zeroed = unsafe { calloc(4, 16) };
        assert!(!zeroed.is_null());
        // SAFETY: 64 bytes that `calloc` has set.
        assert_eq!(unsafe { zeroed.cast::<[u64; 8]>().read() }, [0; 8]);
        let small = fill(zeroed, 64);
        // SAFETY: a block of this thread's own.
        let grown = unsafe { realloc(small, size + 64) };
        assert!(!grown.is_null());
        check(grown);
        // SAFETY: as above.
        unsafe { free(grown) };
        self.count(5);
    }

    /// Numbers printed into a text, cut at its commas, and read again.
    fn cut(&self) {
        let numbers = [0, 1, 2].map(|k| mark(self.thread, self.n + k));
        let [a, b, c] = numbers;
        let mut text: [c_char; 64] = [0; 64];
        // SAFETY: the text has this room; three numbers for three conversions.
        let length = unsafe { snprintf(text.as_mut_ptr(), 64, c"%lu,%lu,,%lu".as_ptr(), a, b, c) };
        assert!(length > 0);
        let mut from = text.as_mut_ptr();
        for number in numbers {
            // SAFETY: the text on the first call, null afterwards: this thread's place.
            let piece = unsafe { strtok(from, c",".as_ptr()) };
            assert!(!piece.is_null(), "a piece of the text is gone");
            // SAFETY: a C string inside the text.
            let read = unsafe { strtol(piece, null_mut(), 10) };
            assert_eq!(u64::try_from(read), Ok(number), "another's text");
            from = null_mut();
        }
        // SAFETY: as above.
        assert!(unsafe { strtok(null_mut(), c",".as_ptr()) }.is_null());
        self.count(8);
    }

    /// A line into the stream that all share.
    fn print(&self) {
        let (thread, n) = (self.thread, self.n);
        let format = c"%lu %lu %lu\n".as_ptr();
        // SAFETY: an open stream; three numbers for three conversions.
        let written = unsafe { fprintf(self.shared.stream, format, thread, n, mark(thread, n)) };
        assert!(written > 0);
        self.count(1);
    }

    /// The library calls back into the program, which calls the library.
    fn sort(&self) {
        let mut numbers: [u64; 12] = core::array::from_fn(|k| mark(self.n, k as u64));
        let mut expected = numbers;
        expected.sort_unstable();
        // SAFETY: so many numbers of this size.
        unsafe { qsort(numbers.as_mut_ptr().cast(), 12, 8, compare) };
        assert_eq!(numbers, expected);
        self.count(1);
    }

    /// The locale is this thread's, and the global one nobody's.
    fn look_at_locale(&self) {
        // SAFETY: a locale of this thread's own; null asks.
        unsafe { uselocale(self.locale) };
        // SAFETY: reads this thread's locale; the text is static.
        let codeset = unsafe { CStr::from_ptr(nl_langinfo(CODESET)) };
        assert_eq!(codeset, codeset_of(self.thread), "another's locale");
        // SAFETY: the first field of `struct lconv` is the decimal point.
        let point = unsafe { CStr::from_ptr(*localeconv()) };
        assert_eq!(point, c".");
        // SAFETY: null asks for the name of the global locale.
        let global = unsafe { CStr::from_ptr(setlocale(ALL, null())) };
        assert_eq!(global, c"C");
        self.count(4);
    }

    fn renew_locale(&mut self) {
        let name = if self.thread.is_multiple_of(2) {
            c"C"
        } else {
            c"C.UTF-8"
        };
        // SAFETY: a C string; no base.
        let new = unsafe { newlocale(ALL_MASK, name.as_ptr(), null_mut()) };
        assert!(!new.is_null(), "no locale {name:?}");
        // SAFETY: the old one is left for the new one.
        unsafe { uselocale(new) };
        if !self.locale.is_null() {
            // SAFETY: this thread's own, and not in use any more.
            unsafe { freelocale(self.locale) };
        }
        self.locale = new;
        // SAFETY: sets what is set, under the library's lock.
        assert!(!unsafe { setlocale(ALL, c"C".as_ptr()) }.is_null());
        self.count(4);
    }
}

fn codeset_of(thread: u64) -> &'static CStr {
    if thread.is_multiple_of(2) {
        c"ANSI_X3.4-1968"
    } else {
        c"UTF-8"
    }
}

extern "C" fn compare(a: *const c_void, b: *const c_void) -> c_int {
    // SAFETY: any size; given back at once.
    unsafe { free(malloc(24)) };
    // SAFETY: elements of the array of numbers.
    let (a, b) = unsafe { (a.cast::<u64>().read(), b.cast::<u64>().read()) };
    a.cmp(&b) as c_int
}

/// Writes size and pattern into a new block of at least 32 bytes.
fn fill(block: *mut c_void, size: usize) -> *mut c_void {
    assert!(!block.is_null() && block.addr().is_multiple_of(16));
    let seed = (block.addr() >> 4) as u64;
    let words = block.cast::<u64>();
    for (k, word) in [size as u64, seed, seed ^ size as u64]
        .into_iter()
        .enumerate()
    {
        // SAFETY: the block has at least 32 bytes.
        unsafe { words.add(k).write(word) };
    }
    // SAFETY: the last whole word of the block.
    unsafe { words.add(size / 8 - 1).write(!seed) };
    block
}

/// Finds what `fill` wrote, or null.
fn check(block: *mut c_void) {
    if block.is_null() {
        return;
    }
    let words = block.cast::<u64>();
    // SAFETY: a block that `fill` wrote to.
    let [size, seed, both] = unsafe { words.cast::<[u64; 3]>().read() };
    assert_eq!(both, size ^ seed, "a block was written to by another");
    let last = usize::try_from(size / 8).expect("a size") - 1;
    // SAFETY: the last word of the block, by its size, which the three words agree on.
    assert_eq!(unsafe { words.add(last).read() }, !seed, "its end, too");
}
