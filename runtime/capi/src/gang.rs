//! Gangs: threads on several CPUs that act together and are admitted together.

use core::cell::RefCell;
use core::ffi::{c_char, c_int, c_void};

use ::punctual_thread::thread::SpawnError;
use punctual_gang_thread::{
    Broken, Correction, CreateError, Form, Gang, JoinError, Kept, Member, NotAll, Options, Proof,
    Refused, Supersteps, Waiting, Why as Reason,
};
use punctual_model::Span;

use crate::admission::{Why, keep_why, why_of};
use crate::constraint::{constraint, punctual_constraint};
use crate::edge::{answer, give, is_place, is_place_or_null, offer, sized, text};
use crate::status::{punctual_status, punctual_status as Status};
use crate::table::Table;

static GANGS: Table<Gang> = Table::new();

/// A gang. All zero: none.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct punctual_gang {
    /// The library's.
    pub id: u64,
}

/// How a gang is made. Made by `punctual_gang_of` below, which sets `size`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct punctual_gang_options {
    /// `sizeof(punctual_gang_options)`, by which later versions tell earlier ones.
    pub size: usize,
    /// How many members it has when it is complete, up to 4096.
    pub members: u32,
    /// 0: one counter that all share, for few members. 1: a tree, whose rounds take log n.
    pub tree: u32,
    /// 0: members spin while they wait, which is for those alone on their CPU. Else they sleep so
    /// long between two looks.
    pub sleep_ns: u64,
    /// A member that is silent for so long is named, and the gang is broken. 0: a second.
    pub limit_ns: u64,
}

/// How values are reduced to one: `with` of `punctual_gang_reduce`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum punctual_reduction {
    /// Their sum, modulo 2^64.
    PUNCTUAL_SUM = 0,
    /// The least.
    PUNCTUAL_LEAST = 1,
    /// The greatest.
    PUNCTUAL_GREATEST = 2,
    /// The bits that all have.
    PUNCTUAL_AND = 3,
    /// The bits that any has.
    PUNCTUAL_OR = 4,
}

/// How the first arrivals of members are brought together: `correction` of `punctual_gang_admit`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum punctual_correction {
    /// One instant for all: the latest at which any member can begin, and `ns` after it.
    PUNCTUAL_AGREED = 0,
    /// Each member at the end of its own admission; the i-th of n to be released (n - i) times `ns`
    /// later, as in Nautilus. `punctual_gang_departure_delay` measures that.
    PUNCTUAL_BY_ORDER = 1,
    /// Each member at the end of its own admission.
    PUNCTUAL_UNCORRECTED = 2,
}

/// How the phases of a gang are kept apart: `how` of `punctual_gang_supersteps`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum punctual_apart {
    /// By a barrier behind each.
    PUNCTUAL_BARRIERS = 0,
    /// By time, if that is proved: each phase is one job.
    PUNCTUAL_BY_TIME = 1,
    /// The same, with barriers as well once a phase has ended late.
    PUNCTUAL_TIME_THEN_BARRIERS = 2,
    /// By time without proof: the result is unsafe.
    PUNCTUAL_FORCED = 3,
}

/// How the phases of a gang were kept apart: the same for all members.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct punctual_kept {
    /// Phases of any member that ended when the next might have begun without a barrier. 0, with
    /// `clocks_apart` at its greatest: the gang was kept in step.
    pub late_ends: u64,
    /// The phase from which on there were barriers; `UINT64_MAX`: there were none.
    pub barriers_from: u64,
    /// From when on (nanoseconds of the run) clocks were seen to differ by more than the proof
    /// counts with, so that the gang was not kept in step; `UINT64_MAX`: they were not.
    pub clocks_apart: u64,
    /// 1: the barriers were left out without proof.
    pub forced: c_int,
}

/// A phase of a gang: `iteration` and `phase` count from 0.
pub type punctual_phase =
    Option<unsafe extern "C" fn(argument: *mut c_void, iteration: u64, phase: u64)>;

thread_local! {
    /// The gangs that the calling thread is a member of. Who ends leaves them.
    static MEMBERSHIPS: RefCell<Vec<(u64, Member)>> = const { RefCell::new(Vec::new()) };
}

/// A membership in use by its thread. It is kept also when the call is unwound.
struct Mine {
    gang: u64,
    member: Option<Member>,
}

impl Mine {
    fn of(gang: punctual_gang) -> Result<Mine, Status> {
        let _ = GANGS.get(gang.id)?;
        let mine = MEMBERSHIPS.with_borrow_mut(|all| {
            let at = all.iter().position(|(id, _)| *id == gang.id)?;
            Some(all.swap_remove(at).1)
        });
        let member = Some(mine.ok_or(Status::PUNCTUAL_NOT_HELD)?);
        let gang = gang.id;
        Ok(Mine { gang, member })
    }

    fn member(&mut self) -> Result<&mut Member, Status> {
        self.member.as_mut().ok_or(Status::PUNCTUAL_NOT_HELD)
    }
}

impl Drop for Mine {
    fn drop(&mut self) {
        if let Some(member) = self.member.take() {
            MEMBERSHIPS.with_borrow_mut(|all| all.push((self.gang, member)));
        }
    }
}

/// Keeps the name of the member that broke the gang.
fn broken(broken: Broken) -> Status {
    let Broken { member, why } = broken;
    let how = match why {
        Reason::Left => "has left",
        Reason::Panicked => "panicked",
        Reason::Cancelled => "was cancelled",
        Reason::Abandoned => "was abandoned",
        Reason::Late => "did not come in time",
        Reason::Mismatch => "began another operation than the others",
        Reason::Destroyed => "(or somebody outside) destroyed it",
    };
    keep_why(Why::Words(format!(
        "the gang is broken: member {member} {how}"
    )));
    Status::PUNCTUAL_BROKEN
}

/// Keeps why no member is admitted.
fn not_all(why: NotAll) -> Status {
    match why {
        NotAll::Broken(who) => broken(who),
        NotAll::Refused(refused) => {
            let Refused { why, .. } = &*refused;
            keep_why(match why {
                SpawnError::NotAdmitted(why) => why_of(why),
                _ => Why::Words(refused.to_string()),
            });
            why.clone().into()
        }
    }
}

/// Makes a gang under a name that no living gang has, of which up to 256 live at a time.
/// `PUNCTUAL_BUSY` when one of this name lives, `PUNCTUAL_NO_MEMORY` when as many live as may.
/// Legal everywhere.
///
/// # Safety
/// `gang` is null, or to a place for one; `name` is null or a string; `options` is null or to
/// options.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_gang_create(
    gang: *mut punctual_gang,
    name: *const c_char,
    options: *const punctual_gang_options,
) -> punctual_status {
    answer(|| {
        // SAFETY: as the caller vouches.
        let (name, from) = unsafe { (text(name)?, sized(options)?) };
        let form = match from.tree {
            0 => Form::Linear,
            1 => Form::Tree,
            _ => return Err(Status::PUNCTUAL_INVALID),
        };
        let options = Options {
            form,
            waiting: match from.sleep_ns {
                0 => Waiting::Spin,
                sleep => Waiting::Sleep(Span::from_ns(sleep)),
            },
            limit: match from.limit_ns {
                0 => Options::default().limit,
                limit => Span::from_ns(limit),
            },
        };
        let members = usize::try_from(from.members).unwrap_or(usize::MAX);
        let make = || {
            Gang::create(&name, members, options).map_err(|why| match why {
                CreateError::Taken => Status::PUNCTUAL_BUSY,
                CreateError::Gang(JoinError::Members) => Status::PUNCTUAL_INVALID,
                _ => Status::PUNCTUAL_NO_MEMORY,
            })
        };
        // SAFETY: as the caller vouches.
        unsafe { GANGS.create(gang, |id| punctual_gang { id }, make) }
    })
}

/// `gang` gets the living gang that `punctual_gang_create` made under `name`, so that a thread
/// without its handle may join it. `PUNCTUAL_UNKNOWN` when none of that name lives: it was never
/// made, is broken or destroyed. O(gangs). Legal everywhere.
///
/// # Safety
/// `gang` is null, or to a place for one; `name` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_gang_named(
    gang: *mut punctual_gang,
    name: *const c_char,
) -> punctual_status {
    answer(|| {
        is_place(gang)?;
        // SAFETY: as the caller vouches.
        let name = unsafe { text(name)? };
        let found = Gang::named(&name).ok_or(Status::PUNCTUAL_UNKNOWN)?;
        let mut id = None;
        GANGS.each(|known| {
            if known.generation() == found.generation() {
                id = Some(known.number());
            }
        });
        let id = id.ok_or(Status::PUNCTUAL_UNKNOWN)?;
        // SAFETY: as the caller vouches.
        unsafe { give(gang, punctual_gang { id }) }
    })
}

/// Ends a gang: its members are told, and its name is free. Legal everywhere.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_gang_destroy(gang: punctual_gang) -> punctual_status {
    answer(|| {
        GANGS.get(gang.id)?.clone().destroy();
        GANGS.remove(gang.id)
    })
}

/// Makes the calling thread a member; `place`, if not null, gets its place, from 0 in the order of
/// joining. A thread that ends leaves its gangs, which breaks them for the rest. `PUNCTUAL_FULL`
/// when every place is taken, `PUNCTUAL_ALREADY_HELD` when it is one already, `PUNCTUAL_BROKEN`. On
/// threads of a run.
///
/// # Safety
/// `place` is null, or to a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_gang_join(
    gang: punctual_gang,
    place: *mut u32,
) -> punctual_status {
    answer(|| {
        is_place_or_null(place)?;
        let is_in = MEMBERSHIPS.with_borrow(|all| all.iter().any(|(id, _)| *id == gang.id));
        let known = GANGS.get(gang.id)?;
        if is_in {
            return Err(Status::PUNCTUAL_ALREADY_HELD);
        }
        let member = known.join().map_err(|why| match why {
            JoinError::Broken(who) => broken(who),
            JoinError::Full => Status::PUNCTUAL_FULL,
            _ => Status::PUNCTUAL_NO_MEMORY,
        })?;
        let at = u32::try_from(member.place()).unwrap_or(u32::MAX);
        MEMBERSHIPS.with_borrow_mut(|all| all.push((gang.id, member)));
        // SAFETY: as the caller vouches.
        unsafe { offer(place, at) }
    })
}

/// Leaves a gang, which breaks it for the rest. A constraint of its admission ends: the thread is
/// background work from the zero-lag instant of its job on, and returns then. On threads of a run.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_gang_leave(gang: punctual_gang) -> punctual_status {
    answer(|| {
        drop(Mine::of(gang)?.member.take());
        Ok(())
    })
}

/// Does something as the member that the calling thread is.
fn as_member<T>(
    gang: punctual_gang,
    does: impl FnOnce(&mut Member) -> Result<T, Broken>,
) -> Result<T, Status> {
    let mut mine = Mine::of(gang)?;
    does(mine.member()?).map_err(broken)
}

/// Waits until all members have come; `order`, if not null, gets the order of release, from 0.
/// `PUNCTUAL_BROKEN` with the member that is no more (`punctual_why`), here and below. A scheduling
/// point. On threads of a run.
///
/// # Safety
/// `order` is null, or to a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_gang_barrier(
    gang: punctual_gang,
    order: *mut u32,
) -> punctual_status {
    answer(|| {
        is_place_or_null(order)?;
        let at = as_member(gang, Member::ordered_barrier)?;
        // SAFETY: as the caller vouches.
        unsafe { offer(order, u32::try_from(at).unwrap_or(u32::MAX)) }
    })
}

/// `elected` gets the place of the member with the highest bid, the first among equals. A
/// scheduling point. On threads of a run.
///
/// # Safety
/// `elected` is null, or to a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_gang_elect(
    gang: punctual_gang,
    bid: u32,
    elected: *mut u32,
) -> punctual_status {
    answer(|| {
        is_place(elected)?;
        let place = as_member(gang, |member| member.elect(bid))?;
        // SAFETY: as the caller vouches.
        unsafe { offer(elected, u32::try_from(place).unwrap_or(u32::MAX)) }
    })
}

/// `result` gets the values of all members, reduced by `with`, one of `punctual_reduction`. A
/// scheduling point. On threads of a run.
///
/// # Safety
/// `result` is null, or to a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_gang_reduce(
    gang: punctual_gang,
    with: u32,
    value: u64,
    result: *mut u64,
) -> punctual_status {
    answer(|| {
        is_place(result)?;
        let fold: fn(u64, u64) -> u64 = match with {
            0 => u64::wrapping_add,
            1 => u64::min,
            2 => u64::max,
            3 => |a, b| a & b,
            4 => |a, b| a | b,
            _ => return Err(Status::PUNCTUAL_INVALID),
        };
        let reduced = as_member(gang, |member| member.reduce(value, fold))?;
        // SAFETY: as the caller vouches.
        unsafe { offer(result, reduced) }
    })
}

/// `result` gets the value of the member at `root`. A scheduling point. On threads of a run.
///
/// # Safety
/// `result` is null, or to a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_gang_broadcast(
    gang: punctual_gang,
    root: u32,
    value: u64,
    result: *mut u64,
) -> punctual_status {
    answer(|| {
        is_place(result)?;
        let root = usize::try_from(root).unwrap_or(usize::MAX);
        let said = as_member(gang, |member| member.broadcast(root, value))?;
        // SAFETY: as the caller vouches.
        unsafe { offer(result, said) }
    })
}

/// Admits all members under the constraint of the one at place 0, or none, and returns in the first
/// job of the calling thread, which `punctual_thread_create` has made. `correction` is one of
/// `punctual_correction`; `arrival_ns`, if not null, gets the arrival of that job. A gang that is
/// admitted changes its constraint so; each member finishes its job under the former one.
///
/// `PUNCTUAL_REFUSED` for all when one CPU refuses (`punctual_why` has its verdict), and
/// `PUNCTUAL_BROKEN` when a member is no more: each has the constraint that it had then, or none
/// where that is broken. On threads of a run.
///
/// # Safety
/// `asks` is null or to a constraint; `arrival_ns` is null, or to a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_gang_admit(
    gang: punctual_gang,
    asks: *const punctual_constraint,
    correction: u32,
    ns: u64,
    arrival_ns: *mut u64,
) -> punctual_status {
    answer(|| {
        is_place_or_null(arrival_ns)?;
        // SAFETY: as the caller vouches.
        let asks = constraint(&unsafe { sized(asks) }?)?;
        let span = Span::from_ns(ns);
        let correction = match correction {
            0 => Correction::Agreed(span),
            1 => Correction::ByOrder(span),
            2 => Correction::None,
            _ => return Err(Status::PUNCTUAL_INVALID),
        };
        let mut mine = Mine::of(gang)?;
        let admitted = mine.member()?.admit(asks, correction).map_err(not_all)?;
        // SAFETY: as the caller vouches.
        unsafe { offer(arrival_ns, admitted.arrival.as_ns()) }
    })
}

/// Ends the constraint of the gang's admission for the calling thread alone: it is background work
/// from the zero-lag instant of its job on, and returns then. The others are not moved by it. On
/// threads of a run.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_gang_give_back(gang: punctual_gang) -> punctual_status {
    answer(|| {
        Mine::of(gang)?.member()?.give_back();
        Ok(())
    })
}

/// `delay_ns` gets the mean delay from one departure from a barrier to the next, over `rounds` of
/// them: for `PUNCTUAL_BY_ORDER`. All members call it. A scheduling point. On threads of a run.
///
/// # Safety
/// `delay_ns` is null, or to a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_gang_departure_delay(
    gang: punctual_gang,
    rounds: u32,
    delay_ns: *mut u64,
) -> punctual_status {
    answer(|| {
        is_place(delay_ns)?;
        let delay = as_member(gang, |member| member.departure_delay(rounds))?;
        // SAFETY: as the caller vouches.
        unsafe { offer(delay_ns, delay.as_ns()) }
    })
}

/// Goes through `iterations` times `phases` phases: calls `work` with `argument` for each, kept
/// apart as `how` says, one of `punctual_apart`. All members call it with the same numbers; by time
/// behind `punctual_gang_admit`, in its first job. `kept`, if not null, gets what came of it.
/// `PUNCTUAL_REFUSED` when time alone need not keep them apart (`punctual_why` says what is
/// missing). A scheduling point. On threads of a run.
///
/// # Safety
/// `work` is null, or may be called with `argument` on this thread; `kept` is null, or to a place
/// for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_gang_supersteps(
    gang: punctual_gang,
    how: u32,
    iterations: u64,
    phases: u64,
    work: punctual_phase,
    argument: *mut c_void,
    kept: *mut punctual_kept,
) -> punctual_status {
    answer(|| {
        is_place_or_null(kept)?;
        let work = work.ok_or(Status::PUNCTUAL_INVALID)?;
        if phases == 0 || how > 3 {
            return Err(Status::PUNCTUAL_INVALID);
        }
        let mut mine = Mine::of(gang)?;
        let member = mine.member()?;
        let how = match how {
            0 => Supersteps::Barriers,
            1 => Supersteps::Time(proof(member, false)?),
            2 => Supersteps::TimeThenBarriers(proof(member, false)?),
            _ => Supersteps::Time(proof(member, true)?),
        };
        // SAFETY: as the caller vouches.
        let mut each = |iteration, phase| unsafe { work(argument, iteration, phase) };
        let done = member.supersteps(how, (iterations, phases), &mut each);
        let Kept {
            late_ends,
            barriers_from,
            forced,
            clocks_apart,
        } = done.map_err(broken)?;
        let done = punctual_kept {
            late_ends,
            barriers_from: barriers_from.unwrap_or(u64::MAX),
            forced: c_int::from(forced),
            clocks_apart: clocks_apart.unwrap_or(u64::MAX),
        };
        // SAFETY: as the caller vouches.
        unsafe { offer(kept, done) }
    })
}

/// That time alone keeps the phases apart; forced, where it need not.
fn proof(member: &mut Member, forced: bool) -> Result<Proof, Status> {
    match member.prove().map_err(broken)? {
        Ok(proof) => Ok(proof),
        Err(missing) if forced => Ok(missing.force()),
        Err(missing) => {
            keep_why(Why::Words(missing.to_string()));
            Err(Status::PUNCTUAL_REFUSED)
        }
    }
}
