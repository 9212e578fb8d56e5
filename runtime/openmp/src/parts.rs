//! The parts of the engine: items, threads, identities, members, teams and carriers.
//!
//! ```text
//!   carrier    a kernel thread that carries one identity at a time
//!   identity   a thread in the eyes of the C library: a thread pointer, and all behind it
//!   member     an identity's place in a team: number, deque, implicit item
//!   thread     a stack with a record; several blocked ones of an identity may exist
//!   item       a unit of work: a function, its arguments, its parent
//! ```
//!
//! All of them are made once and used again: an address that somebody still has always leads to
//! one of its kind. Fields are grouped by the one that may touch them: "the carrier" is that of the
//! identity in question (`standing`), and there is one at most.

use core::cell::{Cell, UnsafeCell};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use punctual_switch::{Control, DispatchRecord, RecordCell, SchedulerRecord};

use crate::asleep::{Asleep, Bell};
use crate::barrier::{Barrier, Place};
use crate::deque::Deque;
use crate::lock::Lock;
use crate::log::Log;
use crate::pending::Pending;
use crate::settings::{Controls, MEMBERS, settings};
use crate::standing::{Linked, Standing};

/// The function of a region or of an item.
pub(crate) type Body = unsafe extern "C" fn(*mut u8);

/// Unstarted items of a member: the throttle.
pub(crate) const THROTTLE: usize = 64;
/// Bytes for arguments beside an item; longer ones are allocated.
pub(crate) const ARGUMENTS: usize = 128;
/// Constructs that share work and may be in use at a time, `nowait` ones one behind the other.
pub(crate) const SHARES: usize = 8;

/// Marks of an item.
pub(crate) const FINAL: u32 = 1;
pub(crate) const IMPLICIT: u32 = 2;
/// It is in its parent's table of dependences.
pub(crate) const DEPENDS: u32 = 4;

/// A unit of work. Its creator fills it, then it belongs to the one that runs it.
#[repr(align(64))]
pub(crate) struct Item {
    pub(crate) pending: Pending<Thread>,
    pub(crate) body: Cell<Option<Body>>,
    pub(crate) data: Cell<*mut u8>,
    pub(crate) parent: Cell<Option<&'static Item>>,
    pub(crate) group: Cell<Option<&'static Group>>,
    /// Of an implicit item: its team.
    pub(crate) team: Cell<Option<&'static Team>>,
    pub(crate) marks: Cell<u32>,
    pub(crate) priority: Cell<i32>,
    /// Those of its creator at first.
    pub(crate) controls: Cell<Controls>,
    /// In the record.
    pub(crate) number: Cell<u64>,
    /// On lists of free or spilt ones.
    pub(crate) next: Cell<Option<&'static Item>>,
    /// Arguments that did not fit below, and their layout.
    pub(crate) allocated: Cell<Option<(*mut u8, core::alloc::Layout)>>,
    /// The dependences between its children; made by its body, used under its lock.
    pub(crate) table: AtomicPtr<u8>,
    /// Its place in the table of its parent; used under the lock of that.
    pub(crate) node: Cell<*mut u8>,
    pub(crate) arguments: UnsafeCell<[u64; ARGUMENTS / 8]>,
}

/// A `taskgroup`: it counts items and all that they create, as children of its word.
pub(crate) struct Group {
    pub(crate) pending: Pending<Thread>,
    pub(crate) outer: Option<&'static Group>,
}

/// A stack with a record.
pub(crate) struct Thread {
    pub(crate) record: RecordCell,
    /// The address above the stack; null: the stack is that of a thread of the program.
    pub(crate) top: *mut u8,
    /// By the carrier of its identity.
    pub(crate) identity: Cell<Option<&'static Identity>>,
    pub(crate) member: Cell<Option<&'static Member>>,
    pub(crate) item: Cell<Option<&'static Item>>,
    /// The first item of a fresh one.
    pub(crate) first: Cell<Option<&'static Item>>,
    /// The two words of the C++ library about exceptions, while it does not run.
    pub(crate) exceptions: Cell<[u64; 2]>,
    /// On the list of ready ones, of free ones, of waiters.
    pub(crate) link: AtomicPtr<Thread>,
    /// For what lock it waits.
    pub(crate) waits_at: Cell<usize>,
}

/// The member that an identity is at the moment. Its carrier sets it, others may look.
#[derive(Debug)]
pub(crate) struct Hat(AtomicPtr<Member>);

impl Hat {
    pub(crate) const fn none() -> Hat {
        Hat(AtomicPtr::new(core::ptr::null_mut()))
    }

    #[inline]
    pub(crate) fn get(&self) -> Option<&'static Member> {
        // SAFETY: members are never unmade.
        unsafe { self.0.load(Ordering::Relaxed).as_ref() }
    }

    #[inline]
    pub(crate) fn set(&self, member: Option<&'static Member>) {
        let address = member.map_or(core::ptr::null(), core::ptr::from_ref);
        self.0.store(address.cast_mut(), Ordering::Relaxed);
    }
}

/// A thread in the eyes of the C library.
pub(crate) struct Identity {
    pub(crate) standing: Standing<Thread>,
    /// By the carrier.
    pub(crate) thread_pointer: Cell<u64>,
    pub(crate) carrier: Cell<Option<&'static Carrier>>,
    pub(crate) thread: Cell<Option<&'static Thread>>,
    pub(crate) member: Hat,
    pub(crate) item: Cell<Option<&'static Item>>,
    /// Threads that became ready, the oldest first.
    pub(crate) oldest: Cell<*mut Thread>,
    pub(crate) exceptions: Cell<*mut u64>,
    pub(crate) free: Cell<Option<&'static Item>>,
    pub(crate) free_count: Cell<usize>,
    pub(crate) draw: Cell<u64>,
    /// Threads of it that wait for something.
    pub(crate) blocked: Cell<usize>,
    /// Fixed when it is made: its place in the team that owns it; none for threads of the program.
    pub(crate) seat: Cell<Option<&'static Member>>,
    /// In the record: the order before somebody took it.
    pub(crate) taken: AtomicU64,
    /// The carrier of its own kernel thread.
    pub(crate) own: Carrier,
    /// In the queue. By the lock of the pool.
    pub(crate) queued: Cell<Option<&'static Identity>>,
}

/// A place in a team. Others read its first line.
#[repr(C, align(64))]
pub(crate) struct Member {
    pub(crate) team: &'static Team,
    pub(crate) number: usize,
    pub(crate) identity: &'static Identity,
    pub(crate) deque: Deque<Item, THROTTLE>,
    pub(crate) implicit: Item,
    /// The thread that waits at the barrier, and has left its carrier.
    pub(crate) parked: Place<Thread>,
    /// By the carrier.
    /// Teams that no region of it uses, by [`Team::spare`]: blocked items of a member may have a
    /// region each.
    pub(crate) below: Cell<Option<&'static Team>>,
    pub(crate) singles: Cell<u64>,
    pub(crate) shares: Cell<u64>,
    pub(crate) turn: Cell<Turn>,
    pub(crate) lengths: UnsafeCell<Vec<usize>>,
}

/// Where a member is in the loop that it shares.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turn {
    /// The construct it is in, by its slot.
    pub(crate) slot: usize,
    /// Static schedules: how many chunks it has had.
    pub(crate) trips: u64,
    /// Ordered loops: the number of its chunk, and whether its turn has come already.
    pub(crate) chunk: u64,
    pub(crate) has_chunk: bool,
}

/// One construct whose work the members share.
#[repr(align(64))]
pub(crate) struct Share {
    /// Which construct it serves: twice its number when free for it, one more when it is ready.
    pub(crate) serves: AtomicU64,
    /// How many members have left it.
    pub(crate) left: AtomicUsize,
    /// By the one who found it free; constant while it is ready.
    pub(crate) count: Cell<u64>,
    pub(crate) chunk: Cell<u64>,
    pub(crate) begin: Cell<u64>,
    pub(crate) end: Cell<u64>,
    pub(crate) step: Cell<u64>,
    pub(crate) kind: Cell<u32>,
    /// The first iteration that nobody has.
    pub(crate) next: Line,
    /// Ordered loops: the chunk whose turn has come, by its number; how many chunks there are.
    pub(crate) ordered: AtomicU64,
    pub(crate) turn: Lock<()>,
    pub(crate) chunks: AtomicU64,
    /// Threads that wait for their turn, or for the place to be free; how many.
    pub(crate) waiters: Lock<Vec<&'static Thread>>,
    pub(crate) waiting: AtomicUsize,
}

/// A word on a cache line of its own.
#[repr(align(64))]
pub(crate) struct Line(pub(crate) AtomicU64);

/// A team, used again for every region that its first member encounters.
///
/// Carriers that look for work read the first line and `unclaimed`. Words that are written in every
/// region are on others.
#[repr(C, align(64))]
pub(crate) struct Team {
    /// The outermost team around it; set once, before anybody sees it.
    pub(crate) root: Cell<Option<&'static Team>>,
    pub(crate) size: AtomicUsize,
    /// All members that there have been; only grows.
    pub(crate) members: AtomicPtr<Vec<&'static Member>>,
    /// Items that have a priority, or did not fit into a deque.
    pub(crate) spilt: AtomicUsize,
    /// The next team on the list of all, and how many forks there were before it came there.
    pub(crate) next: AtomicPtr<Team>,
    pub(crate) forks: Cell<u32>,
    /// The first member's own part of the last region was short: the others' are left to it for a
    /// while.
    pub(crate) is_short: AtomicBool,
    /// The carrier that offered the members of the region.
    pub(crate) offered_by: AtomicPtr<Carrier>,
    pub(crate) level: usize,
    pub(crate) unclaimed: Unclaimed,
    pub(crate) barrier: Barrier,
    /// Members that wait and that nobody carries.
    pub(crate) waiting: Asleep,
    /// Of a root: members beside the first ones of all regions below it and its own, as far as they
    /// are limited.
    pub(crate) further: AtomicUsize,
    pub(crate) spill: Lock<Vec<&'static Item>>,
    pub(crate) singles: AtomicU64,
    pub(crate) copied: AtomicPtr<u8>,
    pub(crate) shares: [Share; SHARES],
    pub(crate) outer: Option<&'static Member>,
    /// By the first member, between regions.
    /// The time stamp of the offer.
    pub(crate) offered_at: Cell<u64>,
    /// The outermost region with several members of a thread of the program.
    pub(crate) is_outermost: Cell<bool>,
    pub(crate) active_level: Cell<usize>,
    pub(crate) body: Cell<Option<Body>>,
    pub(crate) data: Cell<*mut u8>,
    pub(crate) share_base: Cell<u64>,
    pub(crate) single_base: Cell<u64>,
    pub(crate) opens_with_share: Cell<bool>,
    /// By the carrier of its first member: the next one that no region uses.
    pub(crate) spare: Cell<Option<&'static Team>>,
}

/// The members that nobody has begun, on cache lines of their own.
#[repr(C, align(64))]
pub(crate) struct Unclaimed {
    /// The region that they are of, by its number.
    pub(crate) region: AtomicU64,
    /// A bit each.
    pub(crate) words: [AtomicU64; MEMBERS / 64],
}

/// The wish of a thread that leaves its carrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum After {
    /// Nothing: it has told somebody who makes it ready.
    Left,
    /// It is ready again, and others are to be carried first.
    Yielded,
    /// It has ended.
    Ended,
    /// To be carried by the kernel thread that it began on.
    Home,
}

/// A kernel thread that carries identities.
pub(crate) struct Carrier {
    pub(crate) hub: RecordCell,
    pub(crate) scheduler: SchedulerRecord,
    /// Of a thread of the program: the team whose members alone it carries.
    pub(crate) root: Cell<Option<&'static Team>>,
    pub(crate) is_pool: Cell<bool>,
    pub(crate) hub_exists: Cell<bool>,
    pub(crate) kernel_thread: AtomicU32,
    /// By the carrier itself.
    pub(crate) after: Cell<After>,
    pub(crate) dead: Cell<Option<&'static Thread>>,
    /// Taken by the thread that leaves, to be carried next.
    pub(crate) chosen: Cell<Option<&'static Identity>>,
    pub(crate) cache: Cell<*mut Thread>,
    /// Read by the monitor.
    pub(crate) carries: AtomicPtr<Identity>,
    pub(crate) beat: AtomicU64,
    /// Whether it counts among those at work; by the pool.
    pub(crate) place: AtomicU32,
    /// An identity that only this carrier may take.
    pub(crate) pinned: AtomicPtr<Identity>,
    /// It sleeps here.
    pub(crate) bell: Bell,
    /// The time stamp of the last ring, while wake-ups are measured.
    pub(crate) rung: AtomicU64,
    /// By the lock of the pool: on the list of sleeping ones or of reserves.
    pub(crate) listed: Cell<bool>,
    pub(crate) next: Cell<Option<&'static Carrier>>,
    /// Its record; and the order before the one who woke it took it from a list.
    pub(crate) log: Cell<Option<&'static Log>>,
    pub(crate) woken: AtomicU64,
    /// By the monitor.
    pub(crate) last_beat: Cell<u64>,
    pub(crate) still_since: Cell<u64>,
    pub(crate) was_reported: Cell<bool>,
}

macro_rules! shared {
    ($($name:ident),*) => {$(
        // SAFETY: fields that are not atomic are touched by one at a time, as their groups say;
        // `standing`, a lock or a publishing store hands them on.
        unsafe impl Sync for $name {}

        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(stringify!($name))
            }
        }
    )*};
}
shared!(Item, Group, Thread, Identity, Member, Share, Team, Carrier);

impl Linked for Thread {
    fn link(&self) -> &AtomicPtr<Thread> {
        &self.link
    }
}

impl Item {
    pub(crate) fn new() -> Item {
        Item {
            pending: Pending::new(),
            body: Cell::new(None),
            data: Cell::new(core::ptr::null_mut()),
            parent: Cell::new(None),
            group: Cell::new(None),
            team: Cell::new(None),
            marks: Cell::new(0),
            priority: Cell::new(0),
            controls: Cell::new(settings().first),
            number: Cell::new(0),
            next: Cell::new(None),
            allocated: Cell::new(None),
            table: AtomicPtr::new(core::ptr::null_mut()),
            node: Cell::new(core::ptr::null_mut()),
            arguments: UnsafeCell::new([0; ARGUMENTS / 8]),
        }
    }

    #[inline]
    pub(crate) fn has(&self, mark: u32) -> bool {
        self.marks.get() & mark != 0
    }
}

impl Thread {
    /// A thread on the stack below `top`.
    pub(crate) fn new(top: *mut u8) -> Thread {
        Thread {
            record: RecordCell::new(DispatchRecord::running(0, Control::Kept)),
            top,
            identity: Cell::new(None),
            member: Cell::new(None),
            item: Cell::new(None),
            first: Cell::new(None),
            exceptions: Cell::new([0; 2]),
            link: AtomicPtr::new(core::ptr::null_mut()),
            waits_at: Cell::new(0),
        }
    }
}

impl Carrier {
    pub(crate) fn new(is_pool: bool) -> Carrier {
        Carrier {
            hub: RecordCell::new(DispatchRecord::running(0, Control::Kept)),
            scheduler: SchedulerRecord::new(core::ptr::null_mut()),
            root: Cell::new(None),
            is_pool: Cell::new(is_pool),
            hub_exists: Cell::new(false),
            kernel_thread: AtomicU32::new(0),
            after: Cell::new(After::Left),
            dead: Cell::new(None),
            chosen: Cell::new(None),
            cache: Cell::new(core::ptr::null_mut()),
            carries: AtomicPtr::new(core::ptr::null_mut()),
            beat: AtomicU64::new(0),
            place: AtomicU32::new(0),
            pinned: AtomicPtr::new(core::ptr::null_mut()),
            bell: Bell::new(),
            rung: AtomicU64::new(0),
            listed: Cell::new(false),
            next: Cell::new(None),
            log: Cell::new(None),
            woken: AtomicU64::new(0),
            last_beat: Cell::new(0),
            still_since: Cell::new(0),
            was_reported: Cell::new(false),
        }
    }
}

impl Identity {
    pub(crate) fn new(is_pool: bool) -> Identity {
        Identity {
            standing: Standing::new(),
            thread_pointer: Cell::new(0),
            carrier: Cell::new(None),
            thread: Cell::new(None),
            member: Hat::none(),
            item: Cell::new(None),
            oldest: Cell::new(core::ptr::null_mut()),
            exceptions: Cell::new(core::ptr::null_mut()),
            free: Cell::new(None),
            free_count: Cell::new(0),
            draw: Cell::new(0x2545_f491_4f6c_dd1d),
            blocked: Cell::new(0),
            seat: Cell::new(None),
            taken: AtomicU64::new(0),
            own: Carrier::new(is_pool),
            queued: Cell::new(None),
        }
    }

    /// The control variables of the running item.
    pub(crate) fn controls(&self) -> Controls {
        let item = self.item.get();
        item.map_or(settings().first, |item| item.controls.get())
    }

    /// The place that the running code has in its team.
    #[inline]
    pub(crate) fn hat(&self) -> &'static Member {
        // Set before any code of the identity runs.
        self.member
            .get()
            .expect("an identity that runs has a place in a team")
    }
}

impl Member {
    pub(crate) fn new(team: &'static Team, number: usize, identity: &'static Identity) -> Member {
        Member {
            team,
            number,
            identity,
            deque: Deque::new(),
            implicit: Item::new(),
            parked: Place::new(),
            below: Cell::new(None),
            singles: Cell::new(0),
            shares: Cell::new(0),
            turn: Cell::new(Turn::default()),
            lengths: UnsafeCell::new(Vec::new()),
        }
    }
}

impl Share {
    fn new(number: usize) -> Share {
        Share {
            serves: AtomicU64::new(2 * number as u64),
            left: AtomicUsize::new(0),
            count: Cell::new(0),
            chunk: Cell::new(1),
            begin: Cell::new(0),
            end: Cell::new(0),
            step: Cell::new(1),
            kind: Cell::new(0),
            next: Line(AtomicU64::new(0)),
            ordered: AtomicU64::new(0),
            turn: Lock::new(()),
            chunks: AtomicU64::new(0),
            waiters: Lock::new(Vec::new()),
            waiting: AtomicUsize::new(0),
        }
    }
}

impl Team {
    /// A team below a member; `None`: that of a thread of the program outside every region.
    pub(crate) fn new(outer: Option<&'static Member>) -> Team {
        Team {
            root: Cell::new(None),
            further: AtomicUsize::new(0),
            outer,
            level: outer.map_or(0, |outer| outer.team.level + 1),
            is_outermost: Cell::new(false),
            active_level: Cell::new(0),
            size: AtomicUsize::new(1),
            body: Cell::new(None),
            data: Cell::new(core::ptr::null_mut()),
            share_base: Cell::new(0),
            single_base: Cell::new(0),
            opens_with_share: Cell::new(false),
            members: AtomicPtr::new(Box::into_raw(Box::default())),
            unclaimed: Unclaimed {
                region: AtomicU64::new(0),
                words: core::array::from_fn(|_| AtomicU64::new(0)),
            },
            barrier: Barrier::new(),
            waiting: Asleep(AtomicUsize::new(0)),
            spilt: AtomicUsize::new(0),
            spill: Lock::new(Vec::new()),
            shares: core::array::from_fn(Share::new),
            singles: AtomicU64::new(0),
            copied: AtomicPtr::new(core::ptr::null_mut()),
            next: AtomicPtr::new(core::ptr::null_mut()),
            forks: Cell::new(0),
            is_short: AtomicBool::new(false),
            offered_by: AtomicPtr::new(core::ptr::null_mut()),
            offered_at: Cell::new(0),
            spare: Cell::new(None),
        }
    }
}
