//! The storage of a FIFO, and its two ends.
//!
//! ```text
//!          read          written
//!   --------|##############|-----------     # the reader's tokens
//!    writer's                writer's       both counters count for ever, and wrap
//! ```
//!
//! The writer alone stores `written`, the reader alone `read`; each is on a cache line of its own.
//! Tokens from `read` to `written` are the reader's, all other places the writer's. A claim is one
//! slice: in the storage itself where it does not go around the end, else in memory of the end that
//! claims. Checked in every order of its accesses by `interleave`.

use alloc::collections::TryReserveError;
use alloc::sync::Arc;
use core::cell::Cell;
use core::fmt;

use super::atomic::{AtomicU32, Bytes, Ordering};

/// Two lines, since processors fetch them in pairs.
#[repr(align(128))]
struct Line<T>(T);

struct Shared {
    written: Line<AtomicU32>,
    read: Line<AtomicU32>,
    bytes: Bytes,
    capacity: u32,
    token_size: usize,
}

/// The sizes and the place of a FIFO.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Most tokens in it.
    pub capacity: u32,
    /// Bytes of a token.
    pub token_size: u32,
    /// Most tokens that the writer claims at a time.
    pub longest_write: u32,
    /// Most tokens that the reader claims at a time.
    pub longest_read: u32,
    /// The storage is not in the writer's memory: tokens are copied there at the release.
    pub is_remote_to_writer: bool,
    /// The storage is not in the reader's memory: tokens are copied to it at the claim.
    pub is_remote_to_reader: bool,
}

impl Shape {
    /// A FIFO in the memory of both its ends, which may claim all of it.
    pub const fn new(capacity: u32, token_size: u32) -> Shape {
        Shape {
            capacity,
            token_size,
            longest_write: capacity,
            longest_read: capacity,
            is_remote_to_writer: false,
            is_remote_to_reader: false,
        }
    }
}

/// Why a FIFO could not be made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FifoError {
    /// No capacity, a claim longer than it, or more bytes than the processor can address.
    Shape(Shape),
    /// No memory.
    Memory(TryReserveError),
}

impl fmt::Display for FifoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FifoError::Shape(shape) => write!(
                f,
                "no FIFO of {} tokens of {} bytes with claims of {} and {}",
                shape.capacity, shape.token_size, shape.longest_write, shape.longest_read
            ),
            FifoError::Memory(error) => write!(f, "no memory for a FIFO: {error}"),
        }
    }
}

impl core::error::Error for FifoError {}

/// The copies of one application. No other application uses it, so none waits for another's.
///
/// Here it copies at once. Every copy is of ordinary instructions and calls nothing: a preemption
/// interrupts it at any of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CopyEngine {
    /// Copies so far.
    pub copies: u64,
    /// Bytes of them.
    pub bytes: u64,
}

impl CopyEngine {
    /// From one memory to another of the same length. O(length).
    ///
    /// # Panics
    /// Where the lengths differ.
    #[inline]
    pub fn copy(&mut self, from: &[u8], to: &mut [u8]) {
        assert_eq!(from.len(), to.len(), "a copy of as many bytes");
        super::pieces::copy(from, to);
        self.copies += 1;
        self.bytes += from.len() as u64;
    }
}

/// Makes a FIFO without tokens, with all the memory that it will use.
///
/// # Errors
/// [`FifoError`].
pub fn fifo(shape: Shape) -> Result<(Writer, Reader), FifoError> {
    let token_size = usize::try_from(shape.token_size).unwrap_or(usize::MAX);
    let longest = shape.longest_write.max(shape.longest_read);
    let bytes_of = |tokens: u32| usize::try_from(tokens).ok()?.checked_mul(token_size);
    let all = bytes_of(shape.capacity).filter(|bytes| isize::try_from(*bytes).is_ok());
    let (Some(all), true) = (all, shape.capacity > 0 && longest <= shape.capacity) else {
        return Err(FifoError::Shape(shape));
    };
    // No longer than the capacity, whose bytes are known to fit.
    let own = |tokens: u32| Bytes::try_new(tokens as usize * token_size).map_err(FifoError::Memory);
    let shared = Arc::new(Shared {
        written: Line(AtomicU32::new(0)),
        read: Line(AtomicU32::new(0)),
        bytes: Bytes::try_new(all).map_err(FifoError::Memory)?,
        capacity: shape.capacity,
        token_size,
    });
    let writer = Writer {
        own: own(shape.longest_write)?,
        is_remote: shape.is_remote_to_writer,
        place: 0,
        written: 0,
        read: Cell::new(0),
        claimed: 0,
        is_sent: false,
        shared: Arc::clone(&shared),
    };
    let reader = Reader {
        own: own(shape.longest_read)?,
        is_remote: shape.is_remote_to_reader,
        place: 0,
        read: 0,
        written: Cell::new(0),
        claimed: 0,
        shared,
    };
    Ok((writer, reader))
}

impl Shared {
    /// The bytes of so many tokens; those of a claim fit.
    #[inline]
    fn bytes_of(&self, tokens: u32) -> usize {
        tokens as usize * self.token_size
    }

    /// The place so many tokens behind another.
    #[inline]
    fn behind(&self, place: u32, tokens: u32) -> u32 {
        let room = self.capacity - place;
        if tokens < room {
            place + tokens
        } else {
            tokens - room
        }
    }

    /// How many of these tokens stand before the end of the storage.
    #[inline]
    fn before_end(&self, place: u32, tokens: u32) -> u32 {
        tokens.min(self.capacity - place)
    }

    /// # Safety
    /// The tokens from `place` on, as many as `to` takes, are the caller's.
    #[inline]
    unsafe fn copy_out(&self, place: u32, tokens: u32, to: &mut [u8], engine: &mut CopyEngine) {
        let first = self.bytes_of(self.before_end(place, tokens));
        let (head, tail) = to.split_at_mut(first);
        // SAFETY: as the caller vouches.
        engine.copy(
            unsafe { self.bytes.read(self.bytes_of(place), first) },
            head,
        );
        if !tail.is_empty() {
            // SAFETY: as above.
            engine.copy(unsafe { self.bytes.read(0, tail.len()) }, tail);
        }
    }

    /// # Safety
    /// The places from `place` on, as many as `from` fills, are the caller's.
    #[inline]
    unsafe fn copy_in(&self, place: u32, tokens: u32, from: &[u8], engine: &mut CopyEngine) {
        let first = self.bytes_of(self.before_end(place, tokens));
        let (head, tail) = from.split_at(first);
        // SAFETY: as the caller vouches.
        engine.copy(head, unsafe {
            self.bytes.write(self.bytes_of(place), first)
        });
        if !tail.is_empty() {
            // SAFETY: as above.
            engine.copy(tail, unsafe { self.bytes.write(0, tail.len()) });
        }
    }
}

/// The end that hands tokens on. One thread has it.
pub struct Writer {
    shared: Arc<Shared>,
    /// Memory for claims that go around the end, or whose storage is remote.
    own: Bytes,
    is_remote: bool,
    /// Where the next token goes.
    place: u32,
    written: u32,
    /// The reader's counter as it was seen last.
    read: Cell<u32>,
    claimed: u32,
    /// The claim has been copied to the storage.
    is_sent: bool,
}

impl Writer {
    /// Places without a token. O(1).
    #[inline]
    pub fn space(&self) -> u32 {
        // The reader is done with what this counter leaves to the writer.
        self.read.set(self.shared.read.0.load(Ordering::Acquire));
        self.seen()
    }

    #[inline]
    fn seen(&self) -> u32 {
        self.shared.capacity - self.written.wrapping_sub(self.read.get())
    }

    /// Reserves places for so many tokens, in all; `false`: there is no space yet, or there never
    /// is so much. O(1).
    #[inline]
    pub fn claim(&mut self, tokens: u32) -> bool {
        let fits = self.shared.bytes_of(tokens) <= self.own.len();
        let is_there = fits && (self.seen() >= tokens || self.space() >= tokens);
        if is_there {
            self.claimed = tokens;
            self.is_sent = false;
        }
        is_there
    }

    /// The bytes of the places that are claimed, in one piece, with old content. O(1).
    #[inline]
    pub fn claimed(&mut self) -> &mut [u8] {
        let (place, len) = (self.place, self.shared.bytes_of(self.claimed));
        if self.is_copied() {
            // SAFETY: this end alone reaches its own memory, and is borrowed.
            return unsafe { self.own.write(0, len) };
        }
        let shared = &*self.shared;
        // SAFETY: the writer's places: `claim` has seen that the reader is done with them, and the
        // reader does not look at them before `release`.
        unsafe { shared.bytes.write(shared.bytes_of(place), len) }
    }

    /// Whether what is claimed is not in the storage itself.
    #[inline]
    fn is_copied(&self) -> bool {
        self.is_remote || self.shared.before_end(self.place, self.claimed) < self.claimed
    }

    /// Hands the first tokens of the claim on, and gives up the rest of it. More than are claimed
    /// are not there to be handed on. O(1), and O(bytes) where they have to be copied.
    #[inline]
    pub fn release(&mut self, tokens: u32, engine: &mut CopyEngine) {
        debug_assert!(tokens <= self.claimed, "released without a claim");
        let tokens = tokens.min(self.claimed);
        if self.is_copied() && !self.is_sent {
            self.copy_to_storage(tokens, engine);
        }
        self.claimed = 0;
        self.hand_on(tokens);
    }

    /// Copies the claim to the storage, where it is not there already: the release that follows is
    /// O(1). O(bytes).
    pub fn send(&mut self, engine: &mut CopyEngine) {
        if self.is_copied() {
            self.copy_to_storage(self.claimed, engine);
        }
        self.is_sent = true;
    }

    #[cold]
    fn copy_to_storage(&self, tokens: u32, engine: &mut CopyEngine) {
        let shared = &*self.shared;
        // SAFETY: nobody writes this end's own memory meanwhile; the places are claimed.
        unsafe {
            let from = self.own.read(0, shared.bytes_of(tokens));
            shared.copy_in(self.place, tokens, from, engine);
        }
    }

    #[inline]
    fn hand_on(&mut self, tokens: u32) {
        self.place = self.shared.behind(self.place, tokens);
        self.written = self.written.wrapping_add(tokens);
        // Whoever sees the counter sees the tokens.
        self.shared.written.0.store(self.written, Ordering::Release);
    }

    /// Copies tokens from a buffer into the FIFO, all or none; `false`: there is no space yet, or
    /// there never is so much, or the buffer has no whole number of tokens. Gives up a claim.
    /// O(bytes).
    #[inline]
    pub fn write(&mut self, from: &[u8], engine: &mut CopyEngine) -> bool {
        let Some(tokens) = self.shared.tokens_in(from.len()) else {
            return false;
        };
        if self.seen() < tokens && self.space() < tokens {
            return false;
        }
        // A claim would now name places of the reader.
        self.claimed = 0;
        // SAFETY: the writer's places, as in `claimed`.
        unsafe { self.shared.copy_in(self.place, tokens, from, engine) };
        self.hand_on(tokens);
        true
    }

    /// Bytes of a token.
    pub fn token_size(&self) -> usize {
        self.shared.token_size
    }

    /// The numbers of this FIFO.
    pub fn gauge(&self) -> Gauge {
        Gauge {
            shared: Arc::clone(&self.shared),
        }
    }
}

/// The numbers of a FIFO, for one that has neither end.
///
/// On the thread of an end its number (tokens for the reader, space for the writer) is what that
/// end would see. Anywhere else it is what was so a moment ago.
#[derive(Clone)]
pub struct Gauge {
    shared: Arc<Shared>,
}

impl fmt::Debug for Gauge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gauge")
            .field("tokens", &self.tokens())
            .finish_non_exhaustive()
    }
}

impl Gauge {
    /// Most tokens that it holds.
    pub fn capacity(&self) -> u32 {
        self.shared.capacity
    }

    /// Tokens that are there. O(1), and once more for each time that its reader comes between.
    #[inline]
    pub fn tokens(&self) -> u32 {
        let (read, written) = (&self.shared.read.0, &self.shared.written.0);
        loop {
            // What is written is looked at behind what is read: so it is never less.
            let before = read.load(Ordering::Acquire);
            let tokens = written.load(Ordering::Acquire).wrapping_sub(before);
            if read.load(Ordering::Relaxed) == before {
                return tokens;
            }
        }
    }

    /// Places without a token. O(1), and once more for each time that its writer comes between.
    #[inline]
    pub fn space(&self) -> u32 {
        let (read, written) = (&self.shared.read.0, &self.shared.written.0);
        loop {
            let before = written.load(Ordering::Relaxed);
            let tokens = before.wrapping_sub(read.load(Ordering::Acquire));
            if written.load(Ordering::Relaxed) == before {
                return self.shared.capacity.saturating_sub(tokens);
            }
        }
    }
}

impl Shared {
    /// How many tokens a buffer has, if it is a whole number of at most the capacity.
    #[inline]
    fn tokens_in(&self, bytes: usize) -> Option<u32> {
        let whole = self.token_size > 0 && bytes.is_multiple_of(self.token_size);
        let tokens = whole.then(|| bytes / self.token_size)?;
        let tokens = u32::try_from(tokens).ok()?;
        (tokens <= self.capacity).then_some(tokens)
    }
}

/// The end that takes tokens. One thread has it.
pub struct Reader {
    shared: Arc<Shared>,
    /// Memory for claims that go around the end, or whose storage is remote.
    own: Bytes,
    is_remote: bool,
    /// Where the next token is.
    place: u32,
    read: u32,
    /// The writer's counter as it was seen last.
    written: Cell<u32>,
    claimed: u32,
}

impl Reader {
    /// Tokens that are there. O(1).
    #[inline]
    pub fn tokens(&self) -> u32 {
        // The tokens up to this counter are seen from here on.
        self.written
            .set(self.shared.written.0.load(Ordering::Acquire));
        self.seen()
    }

    #[inline]
    fn seen(&self) -> u32 {
        self.written.get().wrapping_sub(self.read)
    }

    /// Makes so many tokens, in all, one slice in the reader's memory; `false`: they are not there
    /// yet, or never are. O(1), and O(bytes) where they have to be copied.
    #[inline]
    pub fn claim(&mut self, tokens: u32, engine: &mut CopyEngine) -> bool {
        let fits = self.shared.bytes_of(tokens) <= self.own.len();
        let are_there = fits && (self.seen() >= tokens || self.tokens() >= tokens);
        if are_there {
            self.claimed = tokens;
            if self.is_copied() {
                self.fetch(engine);
            }
        }
        are_there
    }

    #[cold]
    fn fetch(&mut self, engine: &mut CopyEngine) {
        let shared = &*self.shared;
        // SAFETY: this end alone reaches its own memory; the tokens are claimed.
        unsafe {
            let to = self.own.write(0, shared.bytes_of(self.claimed));
            shared.copy_out(self.place, self.claimed, to, engine);
        }
    }

    #[inline]
    fn is_copied(&self) -> bool {
        self.is_remote || self.shared.before_end(self.place, self.claimed) < self.claimed
    }

    /// The bytes of the tokens that are claimed, in one piece. O(1).
    #[inline]
    pub fn claimed(&self) -> &[u8] {
        let shared = &*self.shared;
        let len = shared.bytes_of(self.claimed);
        if self.is_copied() {
            // SAFETY: nobody writes this end's own memory while it is borrowed.
            return unsafe { self.own.read(0, len) };
        }
        // SAFETY: the reader's tokens: `claim` has seen that the writer is done with them, and the
        // writer does not touch them before `release`.
        unsafe { shared.bytes.read(shared.bytes_of(self.place), len) }
    }

    /// Gives the places of the first tokens back, and gives up the rest of the claim. O(1).
    #[inline]
    pub fn release(&mut self, tokens: u32) {
        debug_assert!(tokens <= self.claimed, "released without a claim");
        let tokens = tokens.min(self.claimed);
        self.claimed = 0;
        self.give_back(tokens);
    }

    #[inline]
    fn give_back(&mut self, tokens: u32) {
        self.place = self.shared.behind(self.place, tokens);
        self.read = self.read.wrapping_add(tokens);
        // Whoever sees the counter may write where the tokens were.
        self.shared.read.0.store(self.read, Ordering::Release);
    }

    /// Moves tokens into a buffer, as many as it takes, or none; `false`: they are not there yet,
    /// or never are, or the buffer takes no whole number of tokens. Gives up a claim. O(bytes).
    #[inline]
    pub fn read(&mut self, into: &mut [u8], engine: &mut CopyEngine) -> bool {
        let Some(tokens) = self.shared.tokens_in(into.len()) else {
            return false;
        };
        if self.seen() < tokens && self.tokens() < tokens {
            return false;
        }
        // A claim would now name places of the writer.
        self.claimed = 0;
        // SAFETY: the reader's tokens, as in `claimed`.
        unsafe { self.shared.copy_out(self.place, tokens, into, engine) };
        self.give_back(tokens);
        true
    }

    /// Bytes of a token.
    pub fn token_size(&self) -> usize {
        self.shared.token_size
    }

    /// The numbers of this FIFO.
    pub fn gauge(&self) -> Gauge {
        Gauge {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Writer");
        shown.field("space", &self.seen());
        shown.field("claimed", &self.claimed).finish()
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Reader");
        shown.field("tokens", &self.seen());
        shown.field("claimed", &self.claimed).finish()
    }
}
