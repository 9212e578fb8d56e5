//! Items: made, run, and ended.
//!
//! An item keeps its parent in memory: each has a reference of its own and one for every child
//! that is not gone. So an implicit item that has given up its reference is gone when the last
//! item below it is, and a barrier counts that.

use core::alloc::Layout;
use core::sync::atomic::Ordering;

use crate::carry::make_ready;
use crate::depend;
use crate::meet::arrive_at;
use crate::parts::{ARGUMENTS, Body, DEPENDS, FINAL, IMPLICIT, Identity, Item, Member, Thread};
use crate::pending::{CHILD, REFERENCE};
use crate::pool::LISTS;
use crate::record;

/// Free items that an identity keeps; beyond it, half of them go to all.
const KEPT: usize = 128;

/// An item from the list of free ones.
pub(crate) fn obtain(identity: &Identity) -> &'static Item {
    match identity.free.get() {
        Some(item) => {
            identity.free.set(item.next.get());
            identity.free_count.set(identity.free_count.get() - 1);
            item
        }
        None => replenish(identity),
    }
}

#[cold]
fn replenish(identity: &Identity) -> &'static Item {
    let chain = LISTS.lock().items.pop();
    let Some(first) = chain else {
        return Box::leak(Box::new(Item::new()));
    };
    identity.free.set(first.next.get());
    identity.free_count.set(KEPT / 2 - 1);
    first
}

/// Puts an item onto the list of free ones.
fn put_back(identity: &Identity, item: &'static Item) {
    if let Some((place, layout)) = item.allocated.take() {
        // SAFETY: allocated with this layout, and nobody has the address any more.
        unsafe { std::alloc::dealloc(place, layout) };
    }
    depend::forget_table(item);
    item.next.set(identity.free.replace(Some(item)));
    let count = identity.free_count.get() + 1;
    identity.free_count.set(count);
    if count > KEPT {
        give_away(identity);
    }
}

#[cold]
fn give_away(identity: &Identity) {
    let chain = identity.free.take();
    let mut at = chain;
    for _ in 1..KEPT / 2 {
        at = at.and_then(|item| item.next.get());
    }
    if let Some(last) = at {
        identity.free.set(last.next.replace(None));
        identity
            .free_count
            .set(identity.free_count.get() - KEPT / 2);
    }
    if let Some(first) = chain {
        LISTS.lock().items.push(first);
    }
}

/// Room for the arguments of an item: so many bytes, so aligned.
pub(crate) fn room(item: &Item, bytes: usize, align: usize) -> *mut u8 {
    let align = align.max(1);
    if bytes <= ARGUMENTS && align <= 64 {
        let place = item.arguments.get().cast::<u8>();
        let aligned = place.wrapping_add(place.align_offset(align));
        if aligned.addr() - place.addr() + bytes <= ARGUMENTS {
            return aligned;
        }
    }
    let Ok(layout) = Layout::from_size_align(bytes.max(1), align) else {
        crate::sys::end_program("punctual-openmp: arguments of an item that no memory could hold");
    };
    // SAFETY: not of size zero.
    let place = unsafe { std::alloc::alloc(layout) };
    if place.is_null() {
        crate::sys::end_program("punctual-openmp: no memory for the arguments of an item");
    }
    item.allocated.set(Some((place, layout)));
    place
}

/// Fills an item in: a child of the running one.
pub(crate) fn fill(item: &'static Item, parent: &'static Item, body: Body, data: *mut u8) {
    item.pending.begin();
    item.body.set(Some(body));
    item.data.set(data);
    item.parent.set(Some(parent));
    item.group.set(parent.group.get());
    item.marks.set(parent.marks.get() & FINAL);
    item.priority.set(0);
    item.controls.set(parent.controls.get());
}

/// Counts an item that will be run later with its parent and its group.
pub(crate) fn count(item: &Item) {
    if let Some(parent) = item.parent.get() {
        parent.pending.add(REFERENCE | CHILD);
    }
    if let Some(group) = item.group.get() {
        group.pending.add(CHILD);
    }
}

/// Runs an item's body on the running thread.
fn run_body(identity: &'static Identity, item: &'static Item) {
    let before = identity.item.replace(Some(item));
    record::runs(identity, Some(item));
    if let Some(body) = item.body.get() {
        // SAFETY: the compiler's function, with the arguments that were made for it.
        unsafe { body(item.data.get()) };
    }
    identity.item.set(before);
    record::runs(identity, before);
}

/// Runs an item that was counted, and ends it.
pub(crate) fn run(identity: &'static Identity, item: &'static Item) {
    let group = item.group.get();
    run_body(identity, item);
    if item.has(DEPENDS) {
        release_dependents(identity, item);
    }
    if let Some(group) = group {
        tell(group.pending.sub(CHILD).waiter);
    }
    let parent = item.parent.get();
    if !item.pending.is_last() {
        // Items below it are not gone.
        if let Some(parent) = parent {
            tell(parent.pending.sub(CHILD).waiter);
        }
        return release(identity, item);
    }
    put_back(identity, item);
    if let Some(parent) = parent {
        let less = parent.pending.sub(REFERENCE | CHILD);
        tell(less.waiter);
        if less.is_over {
            gone(identity, parent);
        }
    }
}

/// Runs an item that was not counted: its creator goes on when the body has returned.
pub(crate) fn run_at_once(identity: &'static Identity, item: &'static Item) {
    run_body(identity, item);
    if item.pending.is_last() {
        return put_back(identity, item);
    }
    if let Some(parent) = item.parent.get() {
        parent.pending.add(REFERENCE);
    }
    release(identity, item);
}

#[inline]
fn tell(waiter: Option<*mut Thread>) {
    if let Some(thread) = waiter {
        // SAFETY: threads are never unmade, and this one has registered and left.
        make_ready(unsafe { &*thread });
    }
}

/// Gives up a reference.
fn release(identity: &'static Identity, item: &'static Item) {
    if item.pending.sub(REFERENCE).is_over {
        gone(identity, item);
    }
}

/// Nothing is left of an item: its parent may be next.
fn gone(identity: &'static Identity, item: &'static Item) {
    let mut at = item;
    loop {
        if at.has(IMPLICIT) {
            if let Some(team) = at.team.get() {
                arrive_at(team);
            }
            return;
        }
        let parent = at.parent.get();
        put_back(identity, at);
        match parent {
            Some(parent) if parent.pending.sub(REFERENCE).is_over => at = parent,
            _ => return,
        }
    }
}

/// The member has come to a barrier: it has arrived when everything below it is gone, too.
pub(crate) fn arrive(identity: &'static Identity, member: &'static Member) {
    release(identity, &member.implicit);
}

fn release_dependents(identity: &'static Identity, item: &'static Item) {
    let parent = item.parent.get();
    let freed = parent.map(|parent| depend::complete(parent, item));
    for next in freed.into_iter().flatten() {
        if next.body.get().is_none() {
            // It stands for one who waits for others' items.
            tell(next.pending.sub(CHILD).waiter);
        } else {
            offer(identity.hat(), next);
        }
    }
}

/// Puts an item where members look for unstarted ones.
pub(crate) fn offer(member: &'static Member, item: &'static Item) {
    record::number(item);
    // The item may be another's, and over, as soon as it is there.
    let number = item.number.get();
    let address = core::ptr::from_ref(item).cast_mut();
    if item.priority.get() > 0 || member.deque.push(address).is_err() {
        spill(member, item);
    }
    if record::is_on() {
        record::offered(member, number);
        let woken = announce(member);
        record::announced(member, number, woken);
    } else {
        announce(member);
    }
}

/// Has one look that would not look by itself; how many were woken.
#[inline]
pub(crate) fn announce(member: &Member) -> usize {
    let team = member.team;
    match team.waiting.has_some() {
        true => crate::pool::wake(team.root.get(), 1),
        false => 0,
    }
}

/// The list of those that have a priority or found no room: the most urgent last, and of equal ones
/// the oldest.
pub(crate) fn spill(member: &Member, item: &'static Item) {
    let team = member.team;
    let mut spill = team.spill.lock();
    let priority = item.priority.get();
    let at = spill.partition_point(|other| other.priority.get() < priority);
    spill.insert(at, item);
    team.spilt.store(spill.len(), Ordering::Relaxed);
}

/// The most urgent of that list.
pub(crate) fn unspill(member: &Member) -> Option<&'static Item> {
    let team = member.team;
    if team.spilt.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let mut spill = team.spill.lock();
    let item = spill.pop();
    team.spilt.store(spill.len(), Ordering::Relaxed);
    item
}

/// Fills in an item without a body: somebody waits through it for others' items.
pub(crate) fn fill_stand_in(item: &'static Item, parent: &'static Item) {
    item.pending.begin();
    item.body.set(None);
    item.parent.set(Some(parent));
    item.group.set(None);
    item.marks.set(0);
}

/// The wait is over: those that were held up by it alone can begin.
pub(crate) fn end_stand_in(
    identity: &'static Identity,
    item: &'static Item,
    freed: Vec<&'static Item>,
) {
    freed
        .into_iter()
        .for_each(|next| offer(identity.hat(), next));
    put_back(identity, item);
}
