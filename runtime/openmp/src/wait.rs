//! Waiting: other work first, then a short look around, then another identity.
//!
//! At a scheduling point an identity goes on with the oldest of its threads that became ready. Else
//! it begins the newest of its own unstarted items, or else one of another member's. It tries each
//! queue once, from a random one on.
//!
//! An item is begun on top of the waiting thread only where that thread needs it anyway. That is a
//! child at a `taskwait`, one of the group at the end of a `taskgroup`, any at a barrier. Others
//! begin on a fresh stack. So no thread that could go on lies below one that cannot, and a stack
//! grows by the nesting of the program, never by stolen work.

use core::sync::atomic::{AtomicUsize, Ordering};

use punctual_policy::every_queue_once;
use punctual_switch::instructions::pause;

use crate::carry::{
    Patience, beat, end, end_for, fresh_looper, leave, leave_for, make_ready, next_ready, resumed,
    unused,
};
use crate::deque::Stolen;
use crate::items;
use crate::parts::{After, Group, Identity, Item, Member, Thread};
use crate::pool;
use crate::record;
use crate::seek::{carrier_of, elsewhere, is_in, members};
use crate::settings::settings;

/// Which items may begin on top of a waiting thread.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Atop {
    /// All of the team.
    Any,
    /// Children of this one.
    Children(&'static Item),
    /// Those of this group.
    Group(&'static Group),
    /// None.
    Nothing,
}

impl Atop {
    fn allows(self, item: &Item) -> bool {
        match self {
            Atop::Any => true,
            Atop::Children(parent) => item
                .parent
                .get()
                .is_some_and(|it| core::ptr::eq(it, parent)),
            Atop::Group(group) => item.group.get().is_some_and(|it| core::ptr::eq(it, group)),
            Atop::Nothing => false,
        }
    }
}

/// Looks for the end of a wait between two looks for other work.
const PAUSES: usize = 8;

/// Items that began on a waiting thread because there was no stack.
static CROWDED: AtomicUsize = AtomicUsize::new(0);

/// How many did.
pub(crate) fn crowded() -> usize {
    CROWDED.load(Ordering::Relaxed)
}

/// Waits until `is_done`. `register` says who waits to somebody who will make the thread ready
/// again; it answers `false` when there is nothing to wait for any more.
pub(crate) fn wait(
    identity: &'static Identity,
    atop: Atop,
    is_done: impl Fn() -> bool,
    register: impl Fn(&'static Thread) -> bool,
) {
    let mut patience = Patience::new();
    let mut has_looked = false;
    while !is_done() {
        beat(identity);
        let thread = identity.thread.get().expect("running code has a thread");
        if let Some(ready) = next_ready(identity) {
            if register(thread) {
                blocked(identity, atop, || leave_for(identity, ready));
            } else {
                give_back_ready(identity, ready);
            }
            continue;
        }
        if let Some(item) = find(identity, atop) {
            begin(identity, item, atop, &register);
            patience.reset();
            continue;
        }
        let other = elsewhere(identity);
        if other.is_something() || patience.is_over() {
            if register(thread) {
                other.follows(identity);
                blocked(identity, atop, || leave(identity, After::Left));
                patience.reset();
            } else {
                other.give_back();
            }
            continue;
        }
        has_looked = true;
        // Looks for other work take lines of the cache from those that have it.
        for _ in 0..PAUSES {
            pause();
            if is_done() {
                break;
            }
        }
    }
    if has_looked {
        record::runs(identity, identity.item.get());
    }
}

/// Leaves, and counts as blocked meanwhile, unless at a barrier: the task scheduling constraint
/// does not look at items that wait there.
fn blocked(identity: &Identity, atop: Atop, leave: impl FnOnce()) {
    let counts = usize::from(!matches!(atop, Atop::Any));
    identity.blocked.set(identity.blocked.get() + counts);
    leave();
    identity.blocked.set(identity.blocked.get() - counts);
}

fn give_back_ready(identity: &Identity, ready: &'static Thread) {
    ready.link.store(identity.oldest.get(), Ordering::Relaxed);
    identity.oldest.set(core::ptr::from_ref(ready).cast_mut());
}

/// Begins an item: on top of the running thread if it may, else on a fresh stack.
fn begin(
    identity: &'static Identity,
    item: &'static Item,
    atop: Atop,
    register: &impl Fn(&'static Thread) -> bool,
) {
    if atop.allows(item) {
        return items::run(identity, item);
    }
    let Some(looper) = fresh_looper(identity) else {
        CROWDED.fetch_add(1, Ordering::Relaxed);
        return items::run(identity, item);
    };
    let thread = identity.thread.get().expect("running code has a thread");
    if register(thread) {
        looper.first.set(Some(item));
        blocked(identity, atop, || leave_for(identity, looper));
    } else {
        unused(carrier_of(identity), looper);
        items::offer(identity.hat(), item);
    }
}

/// Lets what is ready of this identity go on first, or else begins one item on a fresh stack.
pub(crate) fn yield_once(identity: &'static Identity) {
    beat(identity);
    let register = |thread: &'static Thread| {
        make_ready(thread);
        true
    };
    let thread = identity.thread.get().expect("running code has a thread");
    if let Some(ready) = next_ready(identity) {
        register(thread);
        return blocked(identity, Atop::Nothing, || leave_for(identity, ready));
    }
    if let Some(item) = find(identity, Atop::Nothing) {
        begin(identity, item, Atop::Nothing, &register);
        return;
    }
    let other = elsewhere(identity);
    if other.is_something() {
        // Others of its carrier first: it stands at the end of their queue.
        register(thread);
        other.follows(identity);
        blocked(identity, Atop::Nothing, || leave(identity, After::Yielded));
    }
}

/// Where a fresh thread begins that runs items.
pub(crate) unsafe extern "C" fn looper(argument: *mut u8) -> ! {
    // SAFETY: `fresh` gave the address of the thread.
    let thread: &'static Thread = unsafe { &*argument.cast::<Thread>() };
    let identity = thread
        .identity
        .get()
        .expect("a fresh thread has an identity");
    resumed(identity);
    let mut patience = Patience::new();
    let mut item = thread.first.take();
    loop {
        beat(identity);
        if let Some(item) = item.take() {
            items::run(identity, item);
            patience.reset();
        }
        if let Some(ready) = next_ready(identity) {
            end_for(identity, ready);
        }
        item = find(identity, Atop::Any);
        if item.is_none() {
            let other = elsewhere(identity);
            if other.is_something() || patience.is_over() {
                other.follows(identity);
                end(identity);
            }
            pause();
        }
    }
}

/// The next unstarted item for an identity.
fn find(identity: &'static Identity, atop: Atop) -> Option<&'static Item> {
    let before = record::order();
    let found = look(identity, atop);
    record::looked(identity, before, found);
    found
}

/// One look around. The region that the member looked for may be over, and the next one smaller. An
/// item keeps its region from its end: with an item in hand, the member sees the right size.
fn look(identity: &'static Identity, atop: Atop) -> Option<&'static Item> {
    let member = identity.hat();
    let item = is_in(member).then(|| any(identity, member, atop))??;
    if is_in(member) {
        return Some(item);
    }
    items::spill(member, item);
    items::announce(member);
    None
}

/// An item of the team.
fn any(identity: &'static Identity, member: &'static Member, atop: Atop) -> Option<&'static Item> {
    if settings().strict && !matches!(atop, Atop::Any) {
        return own_below(identity, member);
    }
    if settings().strict && identity.blocked.get() > 0 {
        return None;
    }
    items::unspill(member)
        .or_else(|| own(member))
        .or_else(|| steal(identity, member))
}

fn own(member: &Member) -> Option<&'static Item> {
    // SAFETY: items are never unmade.
    member.deque.pop().map(|item| unsafe { &*item })
}

/// Under the task scheduling constraint: a waiting item's member begins only what is below it.
fn own_below(identity: &Identity, member: &'static Member) -> Option<&'static Item> {
    let waiting = identity.item.get()?;
    let item = own(member)?;
    let parents = core::iter::successors(item.parent.get(), |parent| parent.parent.get());
    if parents
        .into_iter()
        .any(|parent| core::ptr::eq(parent, waiting))
    {
        return Some(item);
    }
    let address = core::ptr::from_ref(item).cast_mut();
    if member.deque.push(address).is_err() {
        items::spill(member, item);
    }
    None
}

/// One of another member's, the oldest there.
fn steal(identity: &Identity, me: &Member) -> Option<&'static Item> {
    let team = me.team;
    let size = team.size.load(Ordering::Relaxed);
    let all = members(team);
    // SAFETY: scratch room of this member, whose carrier alone is here.
    let lengths = unsafe { &mut *me.lengths.get() };
    for _ in 0..size {
        lengths.clear();
        lengths.extend(all.iter().take(size).map(|member| member.deque.len()));
        let victim = every_queue_once(lengths, me.number, pool::draw(&identity.draw))?;
        match all[victim].deque.steal() {
            // SAFETY: items are never unmade.
            Stolen::One(item) => return Some(unsafe { &*item }),
            Stolen::Nothing | Stolen::Lost => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::me::{add_member, begin_implicit, me};
    use crate::parts::Team;

    #[test]
    fn a_member_that_the_region_does_not_have_leaves_the_items_alone() {
        let root = me();
        let team: &'static Team = Box::leak(Box::new(Team::new(Some(root.hat()))));
        let [first, second] = [0; 2].map(|_| {
            let identity: &'static Identity = Box::leak(Box::new(Identity::new(true)));
            let member = add_member(team, identity);
            identity.member.set(Some(member));
            begin_implicit(member, root.item.get());
            member
        });
        let item: &'static Item = Box::leak(Box::new(Item::new()));
        items::spill(first, item);
        team.size.store(1, Ordering::Relaxed);
        assert!(look(second.identity, Atop::Any).is_none());
        assert!(team.spilt.load(Ordering::Relaxed) == 1, "it is there still");
        team.size.store(2, Ordering::Relaxed);
        let found = look(second.identity, Atop::Any).expect("it is in the region now");
        assert!(core::ptr::eq(found, item));
    }
}
