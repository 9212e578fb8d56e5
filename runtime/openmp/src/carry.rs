//! Carriers: which identity a kernel thread carries, and the switches between threads.
//!
//! A carrier decides in its *hub*, a stack of its own. A thread that has to wait, and for which
//! nothing of its identity goes on, leaves for the hub; the hub lets go of the identity and looks
//! for another one. The hub runs with the thread pointer of the identity that it carried last, so
//! that nothing has to be changed twice. Therefore it touches nothing behind that pointer.

use core::sync::atomic::Ordering;

use punctual_switch::instructions::{pause, read_time_stamp};
use punctual_switch::{
    Control, DispatchRecord, Entry, RecordCell, dispatch_by_system_call, dispatch_call,
};

use crate::parts::{After, Carrier, Identity, Thread};
use crate::pool;
use crate::record::{self, Kind};
use crate::seek::{
    bit, carrier_of, has_items, is_in, is_unclaimed, may_start, next, sees_unclaimed, serves_short,
    short_regions, take,
};
use crate::settings::settings;
use crate::stack;
use crate::wake_cost;

/// Bytes at the top of a stack for its [`Thread`].
const HEAD: usize = size_of::<Thread>().next_multiple_of(64);
/// Of the stack of a hub.
const HUB_STACK: usize = 64 << 10;

/// Cycles between two looks of an idle carrier, where regions are short.
const APART: u64 = 6_000;
/// Cycles for which members that were just offered are left to the one that offered them.
const MOMENT: u64 = 1_000;
/// So many moments at most.
const MOMENTS: usize = 8;

/// The functions that fresh threads begin in, one per purpose; they come from the layers above.
#[derive(Debug)]
pub(crate) struct Entries {
    /// Runs the implicit item of a member.
    pub(crate) member: Entry,
    /// Runs unstarted items until none is left.
    pub(crate) looper: Entry,
}

static ENTRIES: std::sync::OnceLock<Entries> = std::sync::OnceLock::new();

/// Says where fresh threads begin.
pub(crate) fn set_entries(entries: Entries) {
    // The same ones every time.
    let _ = ENTRIES.set(entries);
}

fn entries() -> &'static Entries {
    ENTRIES.get().expect("set before the first region")
}

/// How long somebody has looked for work in vain.
#[derive(Debug)]
pub(crate) struct Patience {
    until: u64,
}

impl Patience {
    pub(crate) fn new() -> Patience {
        Patience { until: 0 }
    }

    /// Begins anew.
    pub(crate) fn reset(&mut self) {
        self.until = 0;
    }

    /// Whether looking on would cost more than a wake-up.
    pub(crate) fn is_over(&mut self) -> bool {
        let now = read_time_stamp();
        if self.until == 0 {
            let budget = if settings().spins {
                wake_cost::cycles()
            } else {
                0
            };
            self.until = now + budget;
        }
        now >= self.until
    }
}

/// Goes from one record to another.
fn switch(carrier: &'static Carrier, from: &RecordCell, to: &RecordCell) {
    let scheduler = &raw const carrier.scheduler;
    let epoch = carrier.scheduler.epoch();
    // SAFETY: (1) `from` is the record of the running code, and `to` was left by a dispatch or is
    // fresh; both, and the stacks behind them, are never unmade. (2) No signal preempts this
    // scheduler: its epoch stays the same. (3) Nothing is borrowed across the call but parts that
    // are shared anyway. (4) Without the right to set the thread pointer, the kernel does it.
    let _ = unsafe {
        if settings().fast_pointer {
            dispatch_call(scheduler, from.get(), to.get(), epoch)
        } else {
            dispatch_by_system_call(scheduler, from.get(), to.get(), epoch)
        }
    };
}

fn with_record(cell: &RecordCell, change: impl FnOnce(&mut DispatchRecord)) {
    // SAFETY: the record of a thread that does not run, or of the hub; its carrier alone is here.
    change(unsafe { &mut *cell.get() });
}

/// Keeps what belongs to a thread that is about to leave.
fn save(identity: &Identity, thread: &Thread) {
    thread.member.set(identity.member.get());
    thread.item.set(identity.item.get());
    let words = identity.exceptions.get();
    if !words.is_null() {
        // SAFETY: two words in the storage of the identity, which the caller carries.
        thread
            .exceptions
            .set(unsafe { words.cast::<[u64; 2]>().read() });
    }
}

/// The opposite, for the thread that goes on.
fn restore(identity: &'static Identity, thread: &'static Thread) {
    identity.thread.set(Some(thread));
    identity.member.set(thread.member.get());
    identity.item.set(thread.item.get());
    let words = identity.exceptions.get();
    if !words.is_null() {
        // SAFETY: as in `save`.
        unsafe { words.cast::<[u64; 2]>().write(thread.exceptions.get()) };
    }
    record::runs(identity, thread.item.get());
}

/// Notes a scheduling point, for the monitor.
#[inline]
pub(crate) fn beat(identity: &Identity) {
    let beat = &carrier_of(identity).beat;
    beat.store(beat.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// The first act of a thread that was given the processor.
pub(crate) fn resumed(identity: &'static Identity) {
    bury(carrier_of(identity));
}

/// Keeps the stack of a thread that ended, now that nobody stands on it.
fn bury(carrier: &Carrier) {
    if let Some(dead) = carrier.dead.take() {
        dead.link.store(carrier.cache.get(), Ordering::Relaxed);
        carrier.cache.set(core::ptr::from_ref(dead).cast_mut());
    }
}

/// A thread that will begin in `entry`; `None`: there is no stack for it.
pub(crate) fn fresh(
    carrier: &Carrier,
    identity: &'static Identity,
    entry: Entry,
) -> Option<&'static Thread> {
    let thread = cached(carrier).or_else(|| {
        let top = stack::try_new(settings().stack)?.wrapping_sub(HEAD);
        let place = top.cast::<Thread>();
        // SAFETY: the highest bytes of a stack that nobody uses yet, aligned as its top is.
        unsafe { place.write(Thread::new(top)) };
        // SAFETY: just written; stacks are never unmapped.
        Some(unsafe { &*place })
    })?;
    let pointer = identity.thread_pointer.get();
    let argument = core::ptr::from_ref(thread).cast_mut().cast();
    // SAFETY: the stack below its head is the thread's own, the storage is that of the identity,
    // and neither is ever unmade.
    let record =
        unsafe { DispatchRecord::prepare(thread.top, pointer, Control::Kept, entry, argument) };
    with_record(&thread.record, |place| *place = record);
    thread.identity.set(Some(identity));
    thread.member.set(identity.member.get());
    thread.item.set(None);
    thread.exceptions.set([0; 2]);
    Some(thread)
}

fn cached(carrier: &Carrier) -> Option<&'static Thread> {
    // SAFETY: the cache holds threads whose stacks nobody stands on; they are never unmade.
    let thread = unsafe { carrier.cache.get().as_ref() }?;
    carrier.cache.set(thread.link.load(Ordering::Relaxed));
    Some(thread)
}

/// Gives a fresh thread back that never ran.
pub(crate) fn unused(carrier: &Carrier, thread: &'static Thread) {
    thread.link.store(carrier.cache.get(), Ordering::Relaxed);
    carrier.cache.set(core::ptr::from_ref(thread).cast_mut());
}

/// The thread that runs items for this identity.
pub(crate) fn fresh_looper(identity: &'static Identity) -> Option<&'static Thread> {
    fresh(carrier_of(identity), identity, entries().looper)
}

/// Leaves the running thread for another one of the same identity. It has told somebody who makes
/// it ready again.
pub(crate) fn leave_for(identity: &'static Identity, to: &'static Thread) {
    let from = identity.thread.get().expect("running code has a thread");
    save(identity, from);
    restore(identity, to);
    switch(carrier_of(identity), &from.record, &to.record);
    resumed(identity);
}

/// The same for good: the thread has ended.
pub(crate) fn end_for(identity: &'static Identity, to: &'static Thread) -> ! {
    let from = identity.thread.get().expect("running code has a thread");
    let carrier = carrier_of(identity);
    carrier.dead.set(Some(from));
    restore(identity, to);
    switch(carrier, &from.record, &to.record);
    // Its record is made anew before anybody dispatches to it.
    std::process::abort()
}

/// Leaves the running thread for the hub.
pub(crate) fn leave(identity: &'static Identity, after: After) {
    let from = identity.thread.get().expect("running code has a thread");
    let carrier = carrier_of(identity);
    save(identity, from);
    carrier.after.set(after);
    if after == After::Ended {
        carrier.dead.set(Some(from));
    }
    if !carrier.hub_exists.replace(true) {
        prepare_hub(carrier);
    }
    let pointer = identity.thread_pointer.get();
    with_record(&carrier.hub, |hub| hub.set_thread_pointer(pointer));
    switch(carrier, &from.record, &carrier.hub);
    resumed(identity);
}

/// Leaves for good.
pub(crate) fn end(identity: &'static Identity) -> ! {
    leave(identity, After::Ended);
    std::process::abort()
}

/// The hub of a thread of the program, which runs its own code on its own stack.
fn prepare_hub(carrier: &'static Carrier) {
    let Some(top) = stack::try_new(HUB_STACK) else {
        crate::sys::end_program("punctual-openmp: no memory for the stack of a carrier");
    };
    let argument = core::ptr::from_ref(carrier).cast_mut().cast();
    // SAFETY: a stack of its own; the thread pointer is set before every dispatch to the hub.
    let record = unsafe { DispatchRecord::prepare(top, 0, Control::Kept, enter_hub, argument) };
    with_record(&carrier.hub, |place| *place = record);
}

unsafe extern "C" fn enter_hub(argument: *mut u8) -> ! {
    // SAFETY: `prepare_hub` gave the address of a carrier.
    let carrier: &'static Carrier = unsafe { &*argument.cast::<Carrier>() };
    // SAFETY: identities are never unmade.
    let identity = unsafe { carrier.carries.load(Ordering::Relaxed).as_ref() };
    if let Some(identity) = identity
        && came_back(carrier, identity)
    {
        go_on(carrier, identity);
    }
    hub(carrier)
}

/// Carries one identity after the other, and sleeps in between.
pub(crate) fn hub(carrier: &'static Carrier) -> ! {
    loop {
        keep_place(carrier);
        match carrier.chosen.take().or_else(|| next(carrier, false)) {
            Some(identity) => carry(carrier, identity),
            None => idle_away(carrier),
        }
    }
}

/// Sees to it that as many carriers look for work as there are workers.
fn keep_place(carrier: &'static Carrier) {
    if !pool::take_place_again(carrier) || (carrier.is_pool.get() && pool::is_surplus(carrier)) {
        pass_on(carrier);
        pool::be_reserve(carrier);
    }
}

/// Looks a while, then sleeps until woken.
fn idle_away(carrier: &'static Carrier) {
    let mut patience = Patience::new();
    let mut regions = short_regions(carrier);
    while !patience.is_over() {
        rest(carrier);
        if let Some(identity) = next(carrier, true) {
            return carry(carrier, identity);
        }
        // As long as short regions come, one may be longer than the last.
        let now = short_regions(carrier);
        if now != regions {
            patience.reset();
            regions = now;
        }
    }
    pool::list_idle(carrier);
    record::note(carrier, Kind::Asleep, [0; 3]);
    if let Some(identity) = next(carrier, true) {
        if !pool::unlist_idle(carrier) {
            // The one who woke this carrier may have meant other work.
            pool::wake(pool::root_of(identity), 1);
        }
        woken(carrier);
        return carry(carrier, identity);
    }
    pool::sleep(carrier);
    woken(carrier);
}

/// The time between two looks. A look takes lines of the cache away from those that offer work. So
/// where regions were short of late, looks are apart: a member whose own part is short begins the
/// others' parts by itself, which is cheaper than to hand them over.
fn rest(carrier: &Carrier) {
    if !serves_short(carrier) {
        return pause();
    }
    pause_for(APART, || !carrier.pinned.load(Ordering::Relaxed).is_null());
    let mut seen = sees_unclaimed(carrier);
    // As long as they become fewer, somebody begins one after the other.
    for _ in 0..MOMENTS {
        let Some(before) = seen else {
            return;
        };
        pause_for(MOMENT, || false);
        seen = sees_unclaimed(carrier);
        if seen == Some(before) {
            return;
        }
    }
}

fn pause_for(cycles: u64, is_over: impl Fn() -> bool) {
    let until = read_time_stamp() + cycles;
    while read_time_stamp() < until && !is_over() {
        pause();
    }
}

/// Lets another carrier have what this one has taken and does not carry.
fn pass_on(carrier: &Carrier) {
    if let Some(chosen) = carrier.chosen.take() {
        pool::enqueue(chosen);
    }
}

fn woken(carrier: &Carrier) {
    let before = carrier.woken.load(Ordering::Relaxed);
    record::note(carrier, Kind::Woken, [before, 0, 0]);
}

fn carry(carrier: &'static Carrier, identity: &'static Identity) {
    hold(carrier, identity);
    go_on(carrier, identity);
}

/// From now on the carrier has an identity that it took.
fn hold(carrier: &'static Carrier, identity: &'static Identity) {
    identity.carrier.set(Some(carrier));
    set_carried(carrier, Some(identity));
    if record::is_on() {
        let before = identity.taken.load(Ordering::Relaxed);
        let address = core::ptr::from_ref(identity).addr() as u64;
        record::note(carrier, Kind::Carried, [address, before, 0]);
    }
}

fn set_carried(carrier: &Carrier, identity: Option<&'static Identity>) {
    let address = identity.map_or(core::ptr::null_mut(), |identity| {
        core::ptr::from_ref(identity).cast_mut()
    });
    carrier.carries.store(address, Ordering::Relaxed);
}

/// Runs the threads of an identity until none of them can go on.
fn go_on(carrier: &'static Carrier, identity: &'static Identity) {
    loop {
        let Some(thread) = choose(carrier, identity) else {
            if let_go(carrier, identity) {
                return;
            }
            continue;
        };
        // It goes on: others may have what it was to be left for.
        pass_on(carrier);
        let beat = carrier.beat.load(Ordering::Relaxed);
        carrier.beat.store(beat + 1, Ordering::Relaxed);
        restore(identity, thread);
        switch(carrier, &carrier.hub, &thread.record);
        if !came_back(carrier, identity) {
            return;
        }
    }
}

/// Does as the thread that left has asked; whether the identity stays with this carrier.
fn came_back(carrier: &Carrier, identity: &'static Identity) -> bool {
    bury(carrier);
    record::note(carrier, Kind::Hub, [0; 3]);
    match carrier.after.get() {
        After::Left | After::Ended => return true,
        After::Yielded => {
            set_carried(carrier, None);
            pool::enqueue(identity);
            return false;
        }
        After::Home => {}
    }
    let thread = identity.thread.get().expect("a thread that left");
    thread.link.store(identity.oldest.get(), Ordering::Relaxed);
    identity.oldest.set(core::ptr::from_ref(thread).cast_mut());
    set_carried(carrier, None);
    pool::send_home(identity);
    false
}

/// The oldest thread of the identity that is ready.
pub(crate) fn next_ready(identity: &Identity) -> Option<&'static Thread> {
    if identity.oldest.get().is_null() {
        let mut newest = identity.standing.take_ready();
        // SAFETY: threads are never unmade; the list is this carrier's alone now.
        while let Some(thread) = unsafe { newest.as_ref() } {
            newest = thread.link.load(Ordering::Relaxed);
            thread.link.store(identity.oldest.get(), Ordering::Relaxed);
            identity.oldest.set(core::ptr::from_ref(thread).cast_mut());
        }
    }
    // SAFETY: as above.
    let thread = unsafe { identity.oldest.get().as_ref() }?;
    identity.oldest.set(thread.link.load(Ordering::Relaxed));
    Some(thread)
}

/// The thread of the identity that goes on, or a fresh one.
fn choose(carrier: &'static Carrier, identity: &'static Identity) -> Option<&'static Thread> {
    if let Some(thread) = next_ready(identity) {
        return Some(thread);
    }
    if let Some(seat) = identity.seat.get()
        && is_unclaimed(seat)
    {
        let (word, bit) = bit(seat);
        let Some(thread) = fresh(carrier, identity, entries().member) else {
            crate::sys::end_program("punctual-openmp: no memory for the stack of a member");
        };
        // What the first member wrote about the region is seen from here on.
        let unclaimed = &seat.team.unclaimed.words[word];
        if unclaimed.load(Ordering::Acquire) == bit {
            // The last one: whoever has its identity alone clears it.
            unclaimed.store(0, Ordering::Relaxed);
        } else {
            unclaimed.fetch_and(!bit, Ordering::Acquire);
        }
        return Some(thread);
    }
    let member = identity.hat();
    let may = may_start(identity) && is_in(member) && has_items(member.team);
    may.then(|| fresh(carrier, identity, entries().looper))
        .flatten()
}

/// Lets go of an identity of which nothing can run; `false`: something came meanwhile.
fn let_go(carrier: &'static Carrier, identity: &'static Identity) -> bool {
    let (team, number) = (identity.hat().team, identity.hat().number);
    let seat = identity.seat.get();
    set_carried(carrier, None);
    let address = core::ptr::from_ref(identity).addr() as u64;
    record::note(carrier, Kind::Frees, [address, 0, 0]);
    team.waiting.add_before_a_fence();
    identity.standing.let_go();
    let came = identity.standing.has_ready() || seat.is_some_and(is_unclaimed);
    record::freed(carrier, identity, team, number);
    if came && take(identity) {
        // Another carrier may have had it meanwhile.
        hold(carrier, identity);
        return false;
    }
    true
}

/// A blocked thread can go on: its identity runs it, here or elsewhere.
pub(crate) fn make_ready(thread: &'static Thread) {
    // Set since it blocked.
    let identity = thread
        .identity
        .get()
        .expect("a blocked thread has an identity");
    let before = record::order();
    if identity.standing.make_ready(thread) {
        identity.taken.store(before, Ordering::Relaxed);
        identity.hat().team.waiting.sub();
        pool::enqueue(identity);
    } else {
        pool::arm();
    }
}

#[cfg(test)]
mod tests;
