//! The tree of a running CPU: schedulers made, moved, funded and taken away.

use core::ffi::{c_char, c_void};

use ::punctual_thread::thread::ThreadRef;
use ::punctual_thread::tree::{Scheduler, Terms, Wait};
use punctual_linux::{ForeignMaker, clock_rate};
use punctual_model::{
    CpuId, Priority, Scheduler as Declared, SchedulerId, Server, ServerKind, Slot, Span, Supply,
    Trust, Work,
};

use crate::admission::refused;
use crate::authority::{Held, SCHEDULERS, forget_the_dead, held, hold, hold_new, recipient};
use crate::constraint::punctual_constraint;
use crate::edge::{all, answer, give, is_place, sized, text};
use crate::policy::{policy, punctual_policy_maker, with_scheduling};
use crate::status::{punctual_status, punctual_status as Status};
use crate::table::Used;
use crate::thread::{create, punctual_body, punctual_thread, with as with_thread};

/// A scheduler, and the authority over its subtree. All zero: none.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct punctual_scheduler {
    /// The library's.
    pub id: u64,
    /// The library's, too.
    pub key: u64,
}

/// A scheduler that budget may be lent to, and nothing else. All zero: none.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct punctual_recipient {
    /// The library's.
    pub id: u64,
    /// The library's, too.
    pub key: u64,
}

/// The supply that a scheduler gets of its parent: the values of `supply` of `punctual_terms`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum punctual_supply {
    /// The processor, whenever it is the most urgent: no budget of its own.
    PUNCTUAL_SHARED = 0,
    /// Full at each period start if something is pending then; budget without work is lost.
    PUNCTUAL_POLLING = 1,
    /// Full at each period start, and kept to the end of the period.
    PUNCTUAL_DEFERRABLE = 2,
    /// Used budget comes back one period after its use began.
    PUNCTUAL_SPORADIC_SERVER = 3,
    /// A deadline that moves with the use of the budget.
    PUNCTUAL_CONSTANT_BANDWIDTH = 4,
    /// Full at each period start; passes whether used or not.
    PUNCTUAL_PERIODIC_RESOURCE = 5,
    /// Slots, of a parent under `PUNCTUAL_TIME_DIVISION`. A run starts with them; none come later.
    PUNCTUAL_SLOTS = 6,
}

/// A part of each frame, which belongs to one scheduler.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct punctual_slot {
    /// From the start of the frame.
    pub at_ns: u64,
    /// Its length.
    pub length_ns: u64,
}

/// The terms on which a scheduler joins a tree. Made by `punctual_served`, `punctual_shared` and
/// `punctual_in_slots` below, which set `size`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct punctual_terms {
    /// `sizeof(punctual_terms)`, by which later versions tell earlier ones.
    pub size: usize,
    /// One of `punctual_supply`.
    pub supply: u32,
    /// Urgency among what its parent orders; a larger number is more urgent.
    pub priority: u32,
    /// Processor time in each period; 0 with `PUNCTUAL_SHARED` and `PUNCTUAL_SLOTS`.
    pub budget_ns: u64,
    /// The period; 0 with `PUNCTUAL_SHARED` and `PUNCTUAL_SLOTS`.
    pub period_ns: u64,
    /// Most threads of its subtree at any one time; 0: as many as there are.
    pub quota: u32,
    /// Its slots, with `PUNCTUAL_SLOTS`; else null.
    pub slots: *const punctual_slot,
    /// How many.
    pub slot_count: usize,
}

/// A scheduler that a run starts with: `schedulers` of `punctual_options`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct punctual_branch {
    /// Its name, by which `punctual_scheduler_find` finds it.
    pub name: *const c_char,
    /// The CPU: 0 for that of the call, from 1 on those beside it.
    pub cpu: u32,
    /// Its parent: 0 for the policy of the CPU, else the place of a branch of the same array,
    /// counted from 1.
    pub parent: u32,
    /// How it orders its threads and children: one of `punctual_policy_kind`.
    pub policy: u32,
    /// For `PUNCTUAL_ROUND_ROBIN` the longest turn, for `PUNCTUAL_TIME_DIVISION` the frame, else 0.
    pub timeslice_ns: u64,
    /// Its terms with its parent.
    pub terms: punctual_terms,
}

fn kind_of(supply: u32) -> Result<Option<ServerKind>, Status> {
    Ok(match supply {
        0 | IN_SLOTS => None,
        1 => Some(ServerKind::Polling),
        2 => Some(ServerKind::Deferrable),
        3 => Some(ServerKind::Sporadic),
        4 => Some(ServerKind::ConstantBandwidth),
        5 => Some(ServerKind::PeriodicResource),
        _ => return Err(Status::PUNCTUAL_INVALID),
    })
}

fn server(from: &punctual_terms) -> Result<Option<Server<punctual_model::Ns>>, Status> {
    let (budget, period) = (Work::from_ns(from.budget_ns), Span::from_ns(from.period_ns));
    match kind_of(from.supply)? {
        None if from.budget_ns == 0 && from.period_ns == 0 => Ok(None),
        None => Err(Status::PUNCTUAL_INVALID),
        Some(kind) => Ok(Some(Server {
            kind,
            budget,
            period,
        })),
    }
}

const IN_SLOTS: u32 = punctual_supply::PUNCTUAL_SLOTS as u32;

fn has_slots(from: &punctual_terms) -> bool {
    from.supply == IN_SLOTS || !from.slots.is_null() || from.slot_count > 0
}

/// # Safety
/// The slots are null, or as many as it says.
unsafe fn supply(from: &punctual_terms) -> Result<Supply, Status> {
    let server = server(from)?;
    match (from.supply, has_slots(from)) {
        (IN_SLOTS, _) => {}
        (_, false) => return Ok(server.map_or(Supply::Shared, Supply::Server)),
        (_, true) => return Err(Status::PUNCTUAL_INVALID),
    }
    // SAFETY: as the caller vouches.
    let slots = unsafe { all(from.slots, from.slot_count) }?;
    let slots = slots.iter().map(|slot| Slot {
        at: Span::from_ns(slot.at_ns),
        length: Span::from_ns(slot.length_ns),
    });
    Ok(Supply::Slots(slots.collect()))
}

fn quota(from: &punctual_terms) -> Option<u32> {
    Some(from.quota).filter(|quota| *quota > 0)
}

/// The terms of one that joins a tree while it runs.
pub(crate) fn terms(from: &punctual_terms) -> Result<Terms, Status> {
    if has_slots(from) {
        return Err(Status::PUNCTUAL_INVALID);
    }
    let terms = match server(from)? {
        None => Terms::shared(),
        Some(server) => Terms::server(server.kind, (server.budget, server.period)),
    };
    let terms = terms.priority(from.priority);
    Ok(quota(from).map_or(terms, |quota| terms.quota(quota)))
}

/// The tree that a run starts with, and the time that its slots leave between them.
///
/// # Safety
/// `from` is null with a `count` of 0, or to that many branches, each with a name.
pub(crate) unsafe fn tree(
    (from, count): (*const punctual_branch, usize),
    scheduling_ns: u64,
) -> Result<Vec<Declared>, Status> {
    if from.is_null() && count > 0 {
        return Err(Status::PUNCTUAL_INVALID);
    }
    let mut tree = Vec::new();
    for place in 0..count {
        let branch = from.wrapping_add(place);
        is_place(branch)?;
        // SAFETY: one of as many branches (the caller).
        let branch = unsafe { branch.read() };
        if branch.terms.size != size_of::<punctual_terms>() {
            return Err(Status::PUNCTUAL_INVALID);
        }
        // SAFETY: as the caller vouches.
        let name = unsafe { text(branch.name) }?.into_owned();
        let small = |number: u32| u16::try_from(number).map_err(|_| Status::PUNCTUAL_INVALID);
        let parent = match small(branch.parent)? {
            0 => None,
            place if usize::from(place) <= count => Some(SchedulerId(place - 1)),
            _ => return Err(Status::PUNCTUAL_INVALID),
        };
        tree.push(Declared {
            name,
            cpu: CpuId(small(branch.cpu)?),
            parent,
            policy: with_scheduling(policy(branch.policy, branch.timeslice_ns)?, scheduling_ns),
            priority: Priority::new(branch.terms.priority),
            // SAFETY: as the caller vouches.
            supply: unsafe { supply(&branch.terms) }?,
            trust: Trust::Inline,
            quota: quota(&branch.terms),
            receiver: None,
            fallback: None,
            code: None,
        });
    }
    Ok(tree)
}

/// The scheduler of a handle.
pub(crate) fn find(handle: punctual_scheduler) -> Result<Used<'static, Held<Scheduler>>, Status> {
    held(&SCHEDULERS, (handle.id, handle.key))
}

fn handle_of(scheduler: Scheduler) -> Result<punctual_scheduler, Status> {
    let (id, key) = hold(&SCHEDULERS, scheduler)?;
    Ok(punctual_scheduler { id, key })
}

fn handle_of_new(
    make: impl FnOnce() -> Result<Scheduler, Status>,
) -> Result<punctual_scheduler, Status> {
    let (id, key) = hold_new(&SCHEDULERS, make)?;
    Ok(punctual_scheduler { id, key })
}

/// The root of the tree of the caller's CPU: its own policy, with authority over the whole tree. It
/// is given to the first thread of the CPU, once; `PUNCTUAL_NOT_YOURS` to anybody else. On threads
/// of a run.
///
/// # Safety
/// `scheduler` is null, or to a place for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_scheduler_root(
    scheduler: *mut punctual_scheduler,
) -> punctual_status {
    answer(|| {
        is_place(scheduler)?;
        let root = handle_of_new(|| Scheduler::root().map_err(refused))?;
        // SAFETY: as the caller vouches.
        unsafe { give(scheduler, root) }
    })
}

/// The scheduler of a name below another one, however deep it is; `PUNCTUAL_STALE` when there is
/// none. On threads of its CPU.
///
/// # Safety
/// `name` is null or a string; `found` is null, or to a place for a scheduler.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_scheduler_find(
    scheduler: punctual_scheduler,
    name: *const c_char,
    found: *mut punctual_scheduler,
) -> punctual_status {
    answer(|| {
        is_place(found)?;
        // SAFETY: as the caller vouches.
        let name = unsafe { text(name) }?;
        let child = find(scheduler)?.it.child(&name).map_err(refused)?;
        let child = handle_of(child)?;
        // SAFETY: as the caller vouches.
        unsafe { give(found, child) }
    })
}

/// A new scheduler below another one, which orders by fixed priority, if everybody stays on time
/// beside its server. `PUNCTUAL_REFUSED` (`punctual_why` says why), `PUNCTUAL_NO_SCHEDULER_LEFT`
/// (`promotions` of `punctual_options`), `PUNCTUAL_INVALID` for terms that mean nothing there. On
/// threads of its CPU.
///
/// # Safety
/// `name` is null or a string; `asks` is null or to terms; `child` is null, or to a place for a
/// scheduler.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_scheduler_promote(
    scheduler: punctual_scheduler,
    name: *const c_char,
    asks: *const punctual_terms,
    child: *mut punctual_scheduler,
) -> punctual_status {
    answer(|| {
        is_place(child)?;
        // SAFETY: as the caller vouches.
        let (name, asks) = unsafe { (text(name)?, sized(asks)?) };
        let terms = terms(&asks)?;
        let entry = find(scheduler)?;
        let made = handle_of_new(|| entry.it.promote(&name, terms).map_err(refused))?;
        // SAFETY: as the caller vouches.
        unsafe { give(child, made) }
    })
}

/// A scheduler below another one is none any more, nor are those below it: their threads fall back
/// to its parent. `PUNCTUAL_REFUSED` when somebody would be late then; `PUNCTUAL_HAS_JOB` while one
/// of its threads with a guarantee is in the middle of a job. On threads of its CPU.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_scheduler_demote(
    scheduler: punctual_scheduler,
    child: punctual_scheduler,
) -> punctual_status {
    answer(|| {
        let (above, below) = (find(scheduler)?, find(child)?);
        above.it.demote(&below.it).map_err(refused)?;
        drop((above, below));
        forget_the_dead();
        Ok(())
    })
}

/// `punctual_thread_create_with` in the care of a scheduler, admitted on its supply: only the root
/// creates threads, and the quotas of this scheduler and of those above it answer
/// (`PUNCTUAL_QUOTA`). On threads of its CPU.
///
/// # Safety
/// As for `punctual_thread_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_scheduler_create(
    scheduler: punctual_scheduler,
    thread: *mut punctual_thread,
    name: *const c_char,
    asks: *const punctual_constraint,
    on_fault: u32,
    body: punctual_body,
    argument: *mut c_void,
) -> punctual_status {
    answer(|| {
        let home = find(scheduler)?;
        let home = Some(&home.it);
        // SAFETY: as the caller vouches.
        unsafe { create(thread, (name, asks), (on_fault, body, argument), home) }
    })
}

/// Another policy, one of `punctual_policy_kind`, orders what a scheduler orders, from now on,
/// if everybody is on time under it; `timeslice_ns` is 0 but with `PUNCTUAL_ROUND_ROBIN`. Jobs,
/// budgets, and what threads hold or are lent stay as they are. `PUNCTUAL_REFUSED` when somebody
/// could be late; `PUNCTUAL_HAS_JOB` while a thread with a guarantee that has to be between two
/// jobs is in the middle of one, and `PUNCTUAL_BUSY` while one waits for a lock in the old order:
/// ask again. `PUNCTUAL_NOT_REPLACEABLE` where a scheduler divides time into slots, or hands on
/// declared resources in another order. One that decides on its own supply has the policy there, as
/// by `punctual_scheduler_replace_with`. On threads of its CPU.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_scheduler_replace(
    scheduler: punctual_scheduler,
    by: u32,
    timeslice_ns: u64,
) -> punctual_status {
    answer(|| {
        let policy = policy(by, timeslice_ns)?;
        find(scheduler)?.it.replace(policy).map_err(refused)
    })
}

/// A policy of the program's own orders the threads of a scheduler from its next decision on, in
/// place of the one that decides on its supply now, if everybody is on time under the order that it
/// `claims` to keep, which is one of `punctual_policy_kind` (`timeslice_ns` as above). `make` makes
/// it during the call (`punctual_policy.h`): `PUNCTUAL_INVALID` when it makes none. The one before
/// is destroyed in a later call, or after the run. When the call fails nothing has changed, and the
/// new one is destroyed: `PUNCTUAL_REFUSED` and `PUNCTUAL_HAS_JOB` as above;
/// `PUNCTUAL_NOT_REPLACEABLE` also where the core decides for the scheduler. On threads of its CPU.
///
/// # Safety
/// `make` is null or keeps the contract of `punctual_policy.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_scheduler_replace_with(
    scheduler: punctual_scheduler,
    claims: u32,
    timeslice_ns: u64,
    make: punctual_policy_maker,
) -> punctual_status {
    answer(|| {
        let claims = policy(claims, timeslice_ns)?;
        let own = find(scheduler)?;
        let own = &own.it;
        let make = make.ok_or(Status::PUNCTUAL_INVALID)?;
        let threads = own.most_threads().map_err(refused)?;
        // SAFETY: as the caller vouches.
        let made = unsafe { ForeignMaker::of(make) }.make(threads, clock_rate().frequency);
        let made = made.map_err(|_| Status::PUNCTUAL_INVALID)?;
        own.replace_with(claims, move |_| made).map_err(refused)
    })
}

/// A thread of a scheduler's own goes into the care of its child `to`. `PUNCTUAL_REFUSED` when
/// somebody would be late then; `PUNCTUAL_HAS_JOB` while the thread has a guarantee and is in the
/// middle of a job. On threads of its CPU.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_scheduler_grant(
    scheduler: punctual_scheduler,
    thread: punctual_thread,
    to: punctual_scheduler,
) -> punctual_status {
    answer(|| {
        let (from, to) = (find(scheduler)?, find(to)?);
        with_thread(thread, |thread| {
            from.it.grant(thread, &to.it).map_err(refused)
        })
    })
}

/// A thread that some scheduler below has comes back, however deep it is; otherwise as
/// `punctual_scheduler_grant`. On threads of its CPU.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_scheduler_revoke(
    scheduler: punctual_scheduler,
    thread: punctual_thread,
) -> punctual_status {
    answer(|| {
        let entry = find(scheduler)?;
        with_thread(thread, |thread| entry.it.revoke(thread).map_err(refused))
    })
}

/// The handle by which siblings lend a scheduler budget. On threads of a run.
///
/// # Safety
/// `to_lend` is null, or to a place for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_scheduler_recipient(
    scheduler: punctual_scheduler,
    to_lend: *mut punctual_recipient,
) -> punctual_status {
    answer(|| {
        is_place(to_lend)?;
        let (id, key) = (scheduler.id, find(scheduler)?.to_lend);
        // SAFETY: as the caller vouches.
        unsafe { give(to_lend, punctual_recipient { id, key }) }
    })
}

/// Budget of a scheduler goes to a sibling until the end of the lender's period.
/// `PUNCTUAL_NO_BUDGET` when it has not that much left; `PUNCTUAL_REFUSED` when somebody would be
/// late without it here, or with it there. On threads of its CPU.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_scheduler_lend(
    scheduler: punctual_scheduler,
    to: punctual_recipient,
    work_ns: u64,
) -> punctual_status {
    answer(|| {
        let (from, to) = (find(scheduler)?, recipient((to.id, to.key))?);
        let work = Work::from_ns(work_ns);
        from.it.lend(&to, work).map_err(refused)
    })
}

/// A thread of a scheduler's subtree waits, for `within_ns` at most. With `exclusive` 1 only this
/// scheduler and those above it may wake it. A thread with a guarantee waits only as its constraint
/// declares (`suspension_ns`), else `PUNCTUAL_REFUSED`; `PUNCTUAL_NOT_READY` when it has nothing to
/// run. On threads of its CPU.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_scheduler_block(
    scheduler: punctual_scheduler,
    thread: punctual_thread,
    within_ns: u64,
    exclusive: u32,
) -> punctual_status {
    answer(|| {
        let wait = match within_ns {
            u64::MAX => Wait::until_woken(),
            most => Wait::within(Span::from_ns(most)),
        };
        let wait = match exclusive {
            0 => wait,
            1 => wait.exclusive(),
            _ => return Err(Status::PUNCTUAL_INVALID),
        };
        let entry = find(scheduler)?;
        let thread = with_thread(thread, |thread| Ok(ThreadRef::from(thread)))?;
        entry.it.block(thread, wait).map_err(refused)
    })
}

/// A thread of a scheduler's subtree goes on; `PUNCTUAL_BLOCKED` when a more trusted scheduler has
/// blocked it for itself. A scheduling point. On threads of its CPU.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_scheduler_wake(
    scheduler: punctual_scheduler,
    thread: punctual_thread,
) -> punctual_status {
    answer(|| {
        let entry = find(scheduler)?;
        let thread = with_thread(thread, |thread| Ok(ThreadRef::from(thread)))?;
        entry.it.wake(thread).map_err(refused)
    })
}
