//! Messages from thread to thread, by value.

use core::ffi::c_void;

use ::punctual_thread::sync::{Queue, SendError};
use punctual_model::{Ns, Span};

use crate::edge::{answer, give, is_place};
use crate::status::{Answer, punctual_status, punctual_status as Status};
use crate::table::Table;
use crate::time::on_a_thread;

static QUEUES: Table<Entry> = Table::new();

/// The longest message in bytes; a longer one is sent as a pointer.
pub const PUNCTUAL_MESSAGE_BYTES: usize = 256;

/// The longest line, in messages.
pub const PUNCTUAL_QUEUE_MESSAGES: usize = 1 << 20;

/// A queue. All zero: none.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct punctual_queue {
    /// The library's.
    pub id: u64,
}

struct Entry {
    bytes: usize,
    line: Line,
}

impl Entry {
    /// Whether a message can be there.
    fn is_message(&self, place: *const c_void) -> Answer {
        match place.is_null() && self.bytes > 0 {
            true => Err(Status::PUNCTUAL_INVALID),
            false => Ok(()),
        }
    }
}

/// Messages take the least of three sizes that they fit in.
enum Line {
    Small(Queue<[u8; 16]>),
    Middle(Queue<[u8; 64]>),
    Large(Queue<[u8; PUNCTUAL_MESSAGE_BYTES]>),
}

/// Whose threads use a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reach {
    /// Those of the CPU of its first use.
    OneCpu,
    /// Those of every CPU of a run.
    AllCpus,
}

impl Reach {
    fn queue<T: Send>(self, messages: usize) -> Queue<T> {
        match self {
            Reach::OneCpu => Queue::new(messages),
            Reach::AllCpus => Queue::cross_cpu(messages),
        }
    }
}

/// Does the same with a queue of any of the three sizes.
macro_rules! of_any_size {
    ($line:expr, $queue:ident => $what:expr) => {
        match $line {
            Line::Small($queue) => $what,
            Line::Middle($queue) => $what,
            Line::Large($queue) => $what,
        }
    };
}

impl Line {
    fn new(bytes: usize, messages: usize, reach: Reach) -> Line {
        match bytes {
            0..=16 => Line::Small(reach.queue(messages)),
            17..=64 => Line::Middle(reach.queue(messages)),
            _ => Line::Large(reach.queue(messages)),
        }
    }
}

/// Makes a queue for `messages` messages of `message_bytes` each, at most `PUNCTUAL_QUEUE_MESSAGES`
/// and `PUNCTUAL_MESSAGE_BYTES`; its memory is taken here and once. A queue of 0 messages is a
/// meeting: the sender waits for the receiver. Legal everywhere; it belongs to the CPU of its first
/// use.
///
/// # Safety
/// `queue` is null, or to a place for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_queue_create(
    queue: *mut punctual_queue,
    message_bytes: usize,
    messages: usize,
) -> punctual_status {
    // SAFETY: as the caller vouches.
    answer(|| unsafe { create(queue, message_bytes, messages, Reach::OneCpu) })
}

/// `punctual_queue_create` for threads of every CPU of a run; waiting threads are served in
/// the order of coming. Legal everywhere.
///
/// # Safety
/// `queue` is null, or to a place for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_queue_create_cross_cpu(
    queue: *mut punctual_queue,
    message_bytes: usize,
    messages: usize,
) -> punctual_status {
    // SAFETY: as the caller vouches.
    answer(|| unsafe { create(queue, message_bytes, messages, Reach::AllCpus) })
}

/// # Safety
/// `queue` is null, or to a place for one.
unsafe fn create(
    queue: *mut punctual_queue,
    message_bytes: usize,
    messages: usize,
    reach: Reach,
) -> Answer {
    let make = || match message_bytes > PUNCTUAL_MESSAGE_BYTES || messages > PUNCTUAL_QUEUE_MESSAGES
    {
        true => Err(Status::PUNCTUAL_INVALID),
        false => Ok(Entry {
            bytes: message_bytes,
            line: Line::new(message_bytes, messages, reach),
        }),
    };
    // SAFETY: as the caller vouches.
    unsafe { QUEUES.create(queue, |id| punctual_queue { id }, make) }
}

/// Ends a queue and drops what is in it; `PUNCTUAL_BUSY` while somebody waits at it. Legal
/// everywhere.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_queue_destroy(queue: punctual_queue) -> punctual_status {
    answer(|| QUEUES.remove(queue.id))
}

/// Sends a copy of the message at `message`; waits for room for `within_ns` at most. A scheduling
/// point when it waits, or when a more urgent thread waits for the message. On threads of a run.
///
/// # Safety
/// `message` is null, or to as many readable bytes as a message of this queue has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_queue_send(
    queue: punctual_queue,
    message: *const c_void,
    within_ns: u64,
) -> punctual_status {
    answer(|| {
        let queue = QUEUES.get(queue.id)?;
        queue.is_message(message)?;
        let (from, most) = (message.cast::<u8>(), Span::from_ns(within_ns));
        // SAFETY: the message has as many bytes (the caller).
        unsafe { of_any_size!(&queue.line, line => send(line, from, queue.bytes, most)) }
    })
}

/// Receives a message into `message`; waits for one for `within_ns` at most. A scheduling point
/// when it waits. On threads of a run.
///
/// # Safety
/// `message` is null, or to as many writable bytes as a message of this queue has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_queue_receive(
    queue: punctual_queue,
    message: *mut c_void,
    within_ns: u64,
) -> punctual_status {
    answer(|| {
        let queue = QUEUES.get(queue.id)?;
        queue.is_message(message)?;
        let (to, most) = (message.cast::<u8>(), Span::from_ns(within_ns));
        // SAFETY: the place has as many bytes (the caller).
        unsafe { of_any_size!(&queue.line, line => receive(line, to, queue.bytes, most)) }
    })
}

/// Messages in the line, those of waiting senders not counted. On threads of its CPU.
///
/// # Safety
/// `length` is null, or to a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_queue_length(
    queue: punctual_queue,
    length: *mut usize,
) -> punctual_status {
    answer(|| {
        is_place(length)?;
        on_a_thread()?;
        let queue = QUEUES.get(queue.id)?;
        let found = of_any_size!(&queue.line, line => line.len());
        let found = found.ok_or(Status::PUNCTUAL_OTHER_CPU)?;
        // SAFETY: as the caller vouches.
        unsafe { give(length, found) }
    })
}

/// # Safety
/// `from` is to `bytes` readable bytes, unless that is 0; `bytes` is at most N.
unsafe fn send<const N: usize>(
    line: &Queue<[u8; N]>,
    from: *const u8,
    bytes: usize,
    most: Span<Ns>,
) -> Answer {
    let mut message = [0; N];
    if bytes > 0 {
        // SAFETY: as the caller vouches; the array is our own.
        unsafe { core::ptr::copy_nonoverlapping(from, message.as_mut_ptr(), bytes) };
    }
    let sent = line.send_within(message, most);
    sent.map_err(|SendError { why, .. }| why.into())
}

/// # Safety
/// `to` is to `bytes` writable bytes, unless that is 0; `bytes` is at most N.
unsafe fn receive<const N: usize>(
    line: &Queue<[u8; N]>,
    to: *mut u8,
    bytes: usize,
    most: Span<Ns>,
) -> Answer {
    let message = line.receive_within(most)?;
    if bytes > 0 {
        // SAFETY: as the caller vouches; the array is our own.
        unsafe { core::ptr::copy_nonoverlapping(message.as_ptr(), to, bytes) };
    }
    Ok(())
}
