//! Parallel regions: the team, its members, and the end of both.
//!
//! The member that encounters a region becomes the first of a team below it and runs the region's
//! function at once, on its own stack. The others' implicit items are offered: whichever carrier
//! comes first takes one, this one included when it has nothing else to do. A team is kept for the
//! next region of the same member, so a member has the same identity there. While its region runs,
//! another item of that member has another team.

use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, Ordering};

use punctual_switch::instructions::{read_thread_pointer, read_time_stamp};

use crate::carry::{self, Entries, beat, hub, leave, resumed};
use crate::items::arrive;
use crate::me::{add_member, begin_implicit, exceptions, me, set_me};
use crate::meet::{generation, park};
use crate::monitor;
use crate::parts::{After, Body, Carrier, Identity, Item, Member, Team, Thread};
use crate::pool;
use crate::record;
use crate::seek::{self, carrier_of};
use crate::settings::{MEMBERS, settings};
use crate::shares::{self, Loop};
use crate::stack;
use crate::sys;
use crate::wait::{Atop, crowded, looper, wait};
use crate::wake_cost;

/// Cycles of a first member's own part that costs less than to hand another one over; and of one
/// that costs more also where the caches of two CPUs are far from each other.
const SHORT: u64 = 2_000;
const LONG: u64 = 4_000;

/// How many members a region gets: `asked` of its clause, 0 without one.
pub(crate) fn size(identity: &Identity, asked: usize) -> usize {
    let (settings, member) = (settings(), identity.hat());
    let controls = identity.controls();
    let wanted = if asked > 0 { asked } else { controls.threads };
    if wanted <= 1 || member.team.active_level.get() >= controls.levels {
        return 1;
    }
    let free = if controls.dynamic {
        settings.cpus
    } else {
        MEMBERS
    };
    wanted.min(free).min(MEMBERS)
}

/// So many members of those that are wanted as the limit leaves (`OMP_THREAD_LIMIT`): it is for all
/// teams with the same root.
fn allowed(team: &Team, wanted: usize) -> usize {
    let limit = settings().thread_limit;
    let root = team.root.get().filter(|_| limit < usize::MAX && wanted > 1);
    let Some(root) = root else {
        return wanted;
    };
    let allowed = |further: usize| wanted.min(limit.saturating_sub(further)).max(1);
    let more = |further: usize| Some(further + allowed(further) - 1);
    let order = (Ordering::Relaxed, Ordering::Relaxed);
    let before = root.further.fetch_update(order.0, order.1, more);
    before.map_or(wanted, allowed)
}

/// The region of the team is over: others may have its members.
fn allow_others(team: &Team) {
    if settings().thread_limit < usize::MAX
        && let Some(root) = team.root.get()
    {
        let further = team.size.load(Ordering::Relaxed) - 1;
        root.further.fetch_sub(further, Ordering::Relaxed);
    }
}

/// Begins a region of so many members, if the limit allows them: the caller is the first member of
/// the team afterwards.
pub(crate) fn begin(
    identity: &'static Identity,
    size: usize,
    body: Body,
    data: *mut u8,
    of: Option<&Loop>,
) -> &'static Team {
    let outer = identity.hat();
    let team = kept_team(outer).unwrap_or_else(|| new_team(identity, outer));
    let size = allowed(team, size);
    if seek::members(team).len() < size {
        grow(team, size);
    }
    if team.size.load(Ordering::Relaxed) != size {
        // Carriers that look for work read it all the time.
        team.size.store(size, Ordering::Relaxed);
    }
    team.body.set(Some(body));
    team.data.set(data);
    let level = outer.team.active_level.get() + usize::from(size > 1);
    team.active_level.set(level);
    team.opens_with_share.set(of.is_some());
    if let Some(of) = of {
        shares::prepare_first(team, of);
    }
    let first = seek::members(team)[0];
    begin_implicit(first, identity.item.get());
    identity.member.set(Some(first));
    identity.item.set(Some(&first.implicit));
    record::runs(identity, Some(&first.implicit));
    if size > 1 {
        offer(identity, team, size);
    }
    team
}

/// Has others begin the implicit items of all members but the first.
fn offer(identity: &'static Identity, team: &'static Team, size: usize) {
    let own = &identity.own;
    if identity.seat.get().is_none() && own.root.get().is_none() {
        team.is_outermost.set(true);
        own.root.set(team.root.get());
        pool::enter(own);
    }
    let by = core::ptr::from_ref(carrier_of(identity)).cast_mut();
    if team.offered_by.load(Ordering::Relaxed) != by {
        team.offered_by.store(by, Ordering::Relaxed);
    }
    team.offered_at.set(read_time_stamp());
    let region = &team.unclaimed.region;
    region.store(region.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    for (index, word) in team.unclaimed.words.iter().enumerate() {
        let before = index * 64;
        if before >= size {
            break;
        }
        let here = (size - before).min(64);
        let bits = if here == 64 {
            u64::MAX
        } else {
            (1 << here) - 1
        };
        let first = u64::from(index == 0);
        // Whoever takes a bit sees all that was written about the region.
        word.store(bits & !first, Ordering::Release);
    }
    core::sync::atomic::fence(Ordering::SeqCst);
    pool::fill(size);
    // Every carrier may be busy with something else.
    pool::arm();
    let wanted = (size - 1).min(settings().workers.saturating_sub(1));
    if wanted > 0 && pool::idle() > 0 {
        pool::wake(team.root.get(), wanted);
    }
}

/// Ends the region that the caller began: waits until everything of it is done.
pub(crate) fn end(identity: &'static Identity, team: &'static Team) {
    let first = seek::members(team)[0];
    if team.size.load(Ordering::Relaxed) > 1 {
        let was_short = team.is_short.load(Ordering::Relaxed);
        let bound = if was_short { LONG } else { SHORT };
        // A CPU whose counter is behind makes it huge.
        let taken = read_time_stamp().wrapping_sub(team.offered_at.get());
        let is_short = taken < bound;
        if is_short != was_short {
            team.is_short.store(is_short, Ordering::Relaxed);
        }
    }
    let passed = generation(team);
    arrive(identity, first);
    let is_done = || generation(team) != passed;
    wait(identity, Atop::Any, is_done, |thread| {
        park(first, thread, passed)
    });
    if team.is_outermost.replace(false) {
        let home: &'static Carrier = &identity.own;
        if !core::ptr::eq(carrier_of(identity), home) {
            leave(identity, After::Home);
        }
        home.root.set(None);
        pool::exit(home);
    }
    team.share_base.set(first.shares.get());
    team.single_base.set(first.singles.get());
    let outer = team
        .outer
        .expect("a region has a member that encountered it");
    identity.member.set(Some(outer));
    identity.item.set(first.implicit.parent.get());
    allow_others(team);
    team.spare.set(outer.below.replace(Some(team)));
}

/// Runs a region as a whole.
pub(crate) fn run(asked: usize, body: Body, data: *mut u8, of: Option<&Loop>) {
    let identity = me();
    let size = size(identity, asked);
    let team = begin(identity, size, body, data, of);
    // SAFETY: the compiler's function, with the data that it is for.
    unsafe { body(data) };
    end(identity, team);
}

/// A barrier inside a region.
pub(crate) fn barrier() {
    let identity = me();
    let member = identity.hat();
    let team = member.team;
    beat(identity);
    let passed = generation(team);
    arrive(identity, member);
    let is_done = || generation(team) != passed;
    wait(identity, Atop::Any, is_done, |thread| {
        park(member, thread, passed)
    });
    member.implicit.pending.begin();
}

/// A team below a member that no region uses. Those of before a fork have no members any more.
fn kept_team(outer: &'static Member) -> Option<&'static Team> {
    loop {
        let team = outer.below.take()?;
        outer.below.set(team.spare.take());
        if pool::is_listed(team) {
            return Some(team);
        }
    }
}

#[cold]
fn new_team(identity: &'static Identity, outer: &'static Member) -> &'static Team {
    let team: &'static Team = Box::leak(Box::new(Team::new(Some(outer))));
    team.root.set(Some(outer.team.root.get().unwrap_or(team)));
    add_member(team, identity);
    pool::list_team(team);
    team
}

/// Done once in a process, before its first region with several members.
fn prepare_process() {
    static PREPARED: AtomicBool = AtomicBool::new(false);
    carry::set_entries(Entries {
        member: begin_member,
        looper,
    });
    if !PREPARED.swap(true, Ordering::Relaxed) && settings().counts {
        sys::at_exit(say_counts);
    }
    monitor::start();
}

/// Says how often something could not be had as it should be.
extern "C" fn say_counts() {
    let (stacks, refused) = stack::counts();
    let (crowded, replaced, spin) = (crowded(), monitor::replaced(), wake_cost::cycles());
    let workers = settings().workers;
    sys::say(&format!(
        "punctual-openmp: {workers} workers, {stacks} stacks, {refused} refused, {crowded} items on a waiting stack, \
         {replaced} carriers replaced, spins of {spin} cycles at most"
    ));
}

/// Has the C library make a kernel thread for each further member.
#[cold]
fn grow(team: &'static Team, size: usize) {
    prepare_process();
    while seek::members(team).len() < size {
        let identity: &'static Identity = Box::leak(Box::new(Identity::new(true)));
        let seat = add_member(team, identity);
        identity.seat.set(Some(seat));
        identity.member.set(Some(seat));
        identity
            .draw
            .set(identity.draw.get().wrapping_add(seat.number as u64));
        let argument = core::ptr::from_ref(identity).cast_mut().cast();
        if !sys::start_thread(serve, argument) {
            let number = seat.number;
            sys::end_program(&format!(
                "punctual-openmp: the C library could not make thread {number} of {size} of a team"
            ));
        }
        let started = &identity.own.kernel_thread;
        while started.load(Ordering::Acquire) == 0 {
            sys::futex_wait(started, 0);
        }
    }
}

/// A kernel thread of the pool: lends its identity, then carries whatever there is to carry.
extern "C" fn serve(argument: *mut c_void) -> *mut c_void {
    // SAFETY: `grow` gave the address of an identity.
    let identity: &'static Identity = unsafe { &*argument.cast::<Identity>() };
    set_me(identity);
    let pointer = read_thread_pointer();
    identity.thread_pointer.set(pointer);
    identity.exceptions.set(exceptions());
    let carrier = &identity.own;
    carrier.hub_exists.set(true);
    // SAFETY: the record of this thread, which runs; nobody dispatches to it yet.
    unsafe { (*carrier.hub.get()).set_thread_pointer(pointer) };
    record::make_room(carrier);
    pool::LISTS.lock().carriers.push(carrier);
    identity.hat().team.waiting.add_before_a_fence();
    identity.standing.let_go();
    let seat = identity.hat();
    record::freed(carrier, identity, seat.team, seat.number);
    pool::list_reserve(carrier);
    let started = &carrier.kernel_thread;
    started.store(sys::kernel_thread(), Ordering::Release);
    sys::futex_wake(started, 1);
    pool::sleep(carrier);
    hub(carrier)
}

/// Where the implicit item of a member begins, on a fresh stack.
unsafe extern "C" fn begin_member(argument: *mut u8) -> ! {
    // SAFETY: `fresh` gave the address of the thread.
    let thread: &'static Thread = unsafe { &*argument.cast::<Thread>() };
    let identity = thread
        .identity
        .get()
        .expect("a fresh thread has an identity");
    resumed(identity);
    let member = identity.seat.get().expect("a member of a team has a seat");
    let team = member.team;
    let first = seek::members(team)[0];
    let parent: Option<&'static Item> = first.implicit.parent.get();
    identity.member.set(Some(member));
    begin_implicit(member, parent);
    identity.item.set(Some(&member.implicit));
    record::runs(identity, Some(&member.implicit));
    if let Some(body) = team.body.get() {
        // SAFETY: the compiler's function, with the data that it is for.
        unsafe { body(team.data.get()) };
    }
    arrive(identity, member);
    carry::end(identity)
}

/// How many members the team of the caller has.
pub(crate) fn team_size() -> usize {
    me().hat().team.size.load(Ordering::Relaxed)
}
