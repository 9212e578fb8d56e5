//! The pool of all teams: the queue of identities, carriers that sleep, and reserves.
//!
//! As many carriers are active as there are workers (`settings`); threads of the program that are
//! in a region count, too. All further kernel threads are reserves: they lent an identity, and they
//! take the place of a carrier that is still for too long ([`crate::monitor`]).
//!
//! Nothing here touches anything behind the thread pointer: carriers call it with that of others.

use core::cell::Cell;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use punctual_switch::instructions::read_time_stamp;

use crate::asleep::Asleep;
use crate::lock::Lock;
use crate::log;
use crate::parts::{Carrier, Identity, Item, Team};
use crate::settings::settings;
use crate::sys;
use crate::wake_cost;

/// A chain through the parts' own links.
#[derive(Debug)]
pub(crate) struct Lists {
    first: Option<&'static Identity>,
    last: Option<&'static Identity>,
    idle: Option<&'static Carrier>,
    reserve: Option<&'static Carrier>,
    /// All carriers, for the monitor.
    pub(crate) carriers: Vec<&'static Carrier>,
    /// Identities of threads of the program that have ended, with their teams.
    pub(crate) roots: Vec<&'static Identity>,
    /// Chains of free items.
    pub(crate) items: Vec<&'static Item>,
}

// SAFETY: addresses of parts that are never unmade.
unsafe impl Send for Lists {}

pub(crate) static LISTS: Lock<Lists> = Lock::new(Lists {
    first: None,
    last: None,
    idle: None,
    reserve: None,
    carriers: Vec::new(),
    roots: Vec::new(),
    items: Vec::new(),
});

/// Something on a line of the cache of its own: carriers that look for work read these all the
/// time.
#[repr(align(64))]
struct Alone<T>(T);

/// Identities in the queue.
static QUEUED: Alone<AtomicUsize> = Alone(AtomicUsize::new(0));
/// Carriers that sleep and may be woken.
static IDLE: Alone<Asleep> = Alone(Asleep(AtomicUsize::new(0)));
/// Kernel threads that only lend their identity.
static RESERVE: AtomicUsize = AtomicUsize::new(0);
/// Carriers at work, or looking for it.
static ACTIVE: Alone<AtomicUsize> = Alone(AtomicUsize::new(0));
/// All teams that there have been.
static TEAMS: Alone<AtomicPtr<Team>> = Alone(AtomicPtr::new(core::ptr::null_mut()));
/// How many forks this process is away from the one that loaded the library.
static FORKS: AtomicU32 = AtomicU32::new(0);
/// 1 while the monitor looks at the carriers again and again.
pub(crate) static ARMED: AtomicU32 = AtomicU32::new(0);

#[inline]
pub(crate) fn queued() -> usize {
    QUEUED.0.load(Ordering::Relaxed)
}

#[inline]
pub(crate) fn idle() -> usize {
    IDLE.0.count()
}

/// Has the monitor look from time to time.
#[inline]
pub(crate) fn arm() {
    if ARMED.load(Ordering::Relaxed) == 0 && ARMED.swap(1, Ordering::Relaxed) == 0 {
        sys::futex_wake(&ARMED, 1);
    }
}

/// Puts a team on the list of all.
pub(crate) fn list_team(team: &'static Team) {
    let address = core::ptr::from_ref(team).cast_mut();
    team.forks.set(FORKS.load(Ordering::Relaxed));
    let _lists = LISTS.lock();
    team.next
        .store(TEAMS.0.load(Ordering::Relaxed), Ordering::Relaxed);
    TEAMS.0.store(address, Ordering::Release);
}

/// Whether it is still there: a fork has emptied the list for the child.
pub(crate) fn is_listed(team: &Team) -> bool {
    team.forks.get() == FORKS.load(Ordering::Relaxed)
}

/// All teams, the newest first.
pub(crate) fn teams() -> impl Iterator<Item = &'static Team> {
    // SAFETY: teams are never unmade.
    let at = |link: &AtomicPtr<Team>| unsafe { link.load(Ordering::Acquire).as_ref() };
    core::iter::successors(at(&TEAMS.0), move |team| at(&team.next))
}

/// Whether a carrier may carry members of a team with this root.
pub(crate) fn may_carry(carrier: &Carrier, root: Option<&'static Team>) -> bool {
    match (carrier.root.get(), root) {
        (Some(own), Some(root)) => core::ptr::eq(own, root),
        (Some(_), None) => false,
        (None, _) => carrier.is_pool.get(),
    }
}

/// The root of the team that an identity works for.
pub(crate) fn root_of(identity: &Identity) -> Option<&'static Team> {
    identity
        .member
        .get()
        .and_then(|member| member.team.root.get())
}

/// Gives an identity to the carrier of its own kernel thread.
pub(crate) fn send_home(identity: &'static Identity) {
    let home: &'static Carrier = &identity.own;
    let address = core::ptr::from_ref(identity).cast_mut();
    home.pinned.store(address, Ordering::Release);
    wake_this(home);
}

/// Puts an identity into the queue and wakes somebody for it. A thread of the program outside every
/// active region goes on where it is: nobody would send it home at the end of one.
pub(crate) fn enqueue(identity: &'static Identity) {
    if identity.seat.get().is_none() && identity.own.root.get().is_none() {
        return send_home(identity);
    }
    let root = root_of(identity);
    let mut lists = LISTS.lock();
    identity.queued.set(None);
    match lists.last.replace(identity) {
        Some(last) => last.queued.set(Some(identity)),
        None => lists.first = Some(identity),
    }
    QUEUED.0.fetch_add(1, Ordering::Relaxed);
    drop(lists);
    match IDLE.0.has_some() {
        true => drop(wake(root, 1)),
        false => arm(),
    }
}

/// Takes the first that the carrier may carry.
pub(crate) fn dequeue(carrier: &Carrier) -> Option<&'static Identity> {
    if queued() == 0 {
        return None;
    }
    let mut lists = LISTS.lock();
    let mut before: Option<&'static Identity> = None;
    let mut at = lists.first;
    while let Some(identity) = at {
        at = identity.queued.get();
        if may_carry(carrier, root_of(identity)) {
            match before {
                Some(before) => before.queued.set(at),
                None => lists.first = at,
            }
            if at.is_none() {
                lists.last = before;
            }
            QUEUED.0.fetch_sub(1, Ordering::Relaxed);
            return Some(identity);
        }
        before = Some(identity);
    }
    None
}

/// Wakes a carrier that was taken out of its list, with its bell rung.
fn wake_up(carrier: &Carrier) {
    sys::futex_wake(carrier.bell.word(), 1);
}

/// Wakes up to so many sleeping carriers that may work for this root; has the monitor look, where
/// there are not so many. Returns how many were woken. A fence of the caller's follows what it
/// offers ([`Asleep::has_some`]).
pub(crate) fn wake(root: Option<&'static Team>, count: usize) -> usize {
    let mut left = count;
    while left > 0 && idle() > 0 {
        let Some(carrier) = take_idle(root) else {
            break;
        };
        wake_up(carrier);
        left -= 1;
    }
    if left > 0 {
        arm();
    }
    count - left
}

fn take_idle(root: Option<&'static Team>) -> Option<&'static Carrier> {
    let mut lists = LISTS.lock();
    let before = log::order();
    let found = unlink(&mut lists.idle, |carrier| may_carry(carrier, root))?;
    found.woken.store(before, Ordering::Relaxed);
    IDLE.0.sub();
    Some(found)
}

/// Takes the first that fits out of a chain, and rings its bell. The bell says so under the lock of
/// the chain: rung later, it could meet the next sleep of a carrier that has found work by itself
/// meanwhile. That one would leave its sleep while it is in a chain, and stand in two.
fn unlink(
    first: &mut Option<&'static Carrier>,
    fits: impl Fn(&Carrier) -> bool,
) -> Option<&'static Carrier> {
    let mut before: Option<&'static Carrier> = None;
    let mut at = *first;
    while let Some(carrier) = at {
        let next = carrier.next.get();
        if fits(carrier) {
            match before {
                Some(before) => before.next.set(next),
                None => *first = next,
            }
            carrier.listed.set(false);
            if wake_cost::is_measured() {
                carrier.rung.store(read_time_stamp(), Ordering::Relaxed);
            }
            carrier.bell.ring();
            return Some(carrier);
        }
        before = at;
        at = next;
    }
    None
}

fn link(first: &mut Option<&'static Carrier>, carrier: &'static Carrier) {
    carrier.bell.silence();
    carrier.next.set(first.replace(carrier));
    carrier.listed.set(true);
}

/// Says that a carrier is about to sleep. It looks around once more afterwards.
pub(crate) fn list_idle(carrier: &'static Carrier) {
    let mut lists = LISTS.lock();
    link(&mut lists.idle, carrier);
    IDLE.0.add();
}

/// Takes that back; `false`: somebody has woken it meanwhile.
pub(crate) fn unlist_idle(carrier: &'static Carrier) -> bool {
    let mut lists = LISTS.lock();
    let before = log::order();
    let found = unlink(&mut lists.idle, |other| core::ptr::eq(other, carrier));
    if found.is_some() {
        carrier.woken.store(before, Ordering::Relaxed);
        IDLE.0.sub();
    }
    found.is_some()
}

/// Sleeps until the bell rings.
pub(crate) fn sleep(carrier: &Carrier) {
    let mut has_slept = false;
    while !carrier.bell.has_rung() {
        has_slept = sys::futex_wait(carrier.bell.word(), 0);
    }
    // A clock that another CPU reads differently says nothing.
    if has_slept && wake_cost::is_measured() {
        let rung = carrier.rung.load(Ordering::Relaxed);
        let cycles = read_time_stamp().checked_sub(rung);
        cycles
            .filter(|_| rung > 0)
            .into_iter()
            .for_each(wake_cost::note);
    }
}

/// Wakes a carrier for something that it alone may take.
pub(crate) fn wake_this(carrier: &'static Carrier) {
    if unlist_idle(carrier) {
        wake_up(carrier);
    }
}

/// It does not count: a reserve, or a thread of the program outside every region.
const NONE: u32 = 0;
/// It counts.
const ACTIVE_HERE: u32 = 1;
/// It counted until the monitor gave its place to another.
const REPLACED: u32 = 2;

fn move_place(carrier: &Carrier, from: u32, to: u32) -> bool {
    let order = (Ordering::Relaxed, Ordering::Relaxed);
    let moved = carrier.place.compare_exchange(from, to, order.0, order.1);
    moved.is_ok()
}

/// Whether a carrier is one of those at work.
pub(crate) fn is_active(carrier: &Carrier) -> bool {
    carrier.place.load(Ordering::Relaxed) == ACTIVE_HERE
}

/// Becomes a reserve: it is to sleep afterwards, until a place is free.
pub(crate) fn list_reserve(carrier: &'static Carrier) {
    carrier.place.store(NONE, Ordering::Relaxed);
    let mut lists = LISTS.lock();
    link(&mut lists.reserve, carrier);
    RESERVE.fetch_add(1, Ordering::Relaxed);
}

/// Becomes a reserve until a place is free.
pub(crate) fn be_reserve(carrier: &'static Carrier) {
    list_reserve(carrier);
    sleep(carrier);
}

/// Puts a reserve to work, also beyond the number of workers; whether there was one.
pub(crate) fn activate_one() -> bool {
    let mut lists = LISTS.lock();
    let Some(carrier) = unlink(&mut lists.reserve, |_| true) else {
        return false;
    };
    RESERVE.fetch_sub(1, Ordering::Relaxed);
    ACTIVE.0.fetch_add(1, Ordering::Relaxed);
    carrier.place.store(ACTIVE_HERE, Ordering::Relaxed);
    drop(lists);
    wake_up(carrier);
    true
}

/// Puts reserves to work until there are as many carriers as workers, or as `wanted`.
pub(crate) fn fill(wanted: usize) {
    let limit = settings().workers.min(wanted);
    while ACTIVE.0.load(Ordering::Relaxed) < limit && RESERVE.load(Ordering::Relaxed) > 0 {
        if !activate_one() {
            break;
        }
    }
}

/// Whether this carrier is one more than there are workers; then it does not count any more.
pub(crate) fn is_surplus(carrier: &Carrier) -> bool {
    let limit = settings().workers;
    if ACTIVE.0.load(Ordering::Relaxed) <= limit || !move_place(carrier, ACTIVE_HERE, NONE) {
        return false;
    }
    let less = |active: usize| (active > limit).then(|| active - 1);
    let order = (Ordering::Relaxed, Ordering::Relaxed);
    let surplus = ACTIVE.0.fetch_update(order.0, order.1, less).is_ok();
    if !surplus {
        carrier.place.store(ACTIVE_HERE, Ordering::Relaxed);
    }
    surplus
}

/// A thread of the program carries from now on.
pub(crate) fn enter(carrier: &Carrier) {
    carrier.place.store(ACTIVE_HERE, Ordering::Relaxed);
    ACTIVE.0.fetch_add(1, Ordering::Relaxed);
}

/// A thread of the program carries no more.
pub(crate) fn exit(carrier: &Carrier) {
    if carrier.place.swap(NONE, Ordering::Relaxed) == ACTIVE_HERE {
        ACTIVE.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Takes the place of a carrier away; whether it had one.
pub(crate) fn replace(carrier: &Carrier) -> bool {
    let replaced = move_place(carrier, ACTIVE_HERE, REPLACED);
    if replaced {
        ACTIVE.0.fetch_sub(1, Ordering::Relaxed);
    }
    replaced
}

/// A carrier that was replaced wants to count again. A thread of the program does in any case.
/// `false`: there is no place, and it has to be a reserve.
pub(crate) fn take_place_again(carrier: &Carrier) -> bool {
    if carrier.place.load(Ordering::Relaxed) != REPLACED {
        return true;
    }
    let limit = settings().workers;
    let always = !carrier.is_pool.get();
    let more = |active: usize| (always || active < limit).then(|| active + 1);
    let order = (Ordering::Relaxed, Ordering::Relaxed);
    let has_place = ACTIVE.0.fetch_update(order.0, order.1, more).is_ok();
    if has_place {
        carrier.place.store(ACTIVE_HERE, Ordering::Relaxed);
    }
    has_place
}

/// A number drawn at random from a state that only the caller changes.
pub(crate) fn draw(state: &Cell<u64>) -> u64 {
    let mut x = state.get();
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    state.set(x);
    x
}

/// Forgets every carrier, sleeper and team: in the child of a fork, which has one kernel thread.
pub(crate) fn forget_others() {
    // Members that nobody has begun are begun in the parent.
    let words = teams().flat_map(|team| &team.unclaimed.words);
    words.for_each(|word| word.store(0, Ordering::Relaxed));
    let mut lists = LISTS.lock();
    (lists.first, lists.last, lists.idle, lists.reserve) = (None, None, None, None);
    lists.carriers.clear();
    for word in [&QUEUED.0, &IDLE.0.0, &RESERVE, &ACTIVE.0] {
        word.store(0, Ordering::Relaxed);
    }
    TEAMS.0.store(core::ptr::null_mut(), Ordering::Relaxed);
    FORKS.fetch_add(1, Ordering::Relaxed);
    ARMED.store(0, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_who_wakes_late_does_not_end_the_next_sleep() {
        let carrier: &'static Carrier = Box::leak(Box::new(Carrier::new(true)));
        let mut idle = None;
        link(&mut idle, carrier);
        let taken_out = unlink(&mut idle, |_| true).expect("it is there");
        // It has found work by itself, and is about to sleep again.
        link(&mut idle, carrier);
        wake_up(taken_out);
        assert!(!carrier.bell.has_rung(), "it sleeps on");
        assert!(unlink(&mut idle, |_| true).is_some() && idle.is_none());
        assert!(carrier.bell.has_rung());
    }
}
