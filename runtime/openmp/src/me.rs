//! The identity of the running code: the one word behind the thread pointer.

use core::cell::Cell;
use core::ffi::c_void;
use core::sync::atomic::{AtomicPtr, Ordering};
use std::sync::OnceLock;

use punctual_switch::instructions::read_thread_pointer;

use crate::parts::{Identity, Item, Member, Team, Thread};
use crate::pool::LISTS;
use crate::settings::{Controls, settings};
use crate::sys;

thread_local! {
    static SELF: Cell<Option<&'static Identity>> = const { Cell::new(None) };
}

/// The identity of the running code; a thread of the program gets one when it first asks.
#[inline]
pub(crate) fn me() -> &'static Identity {
    SELF.with(Cell::get).unwrap_or_else(begin)
}

/// The identity of the running code, if it ever asked.
pub(crate) fn if_known() -> Option<&'static Identity> {
    SELF.with(Cell::get)
}

/// Says whose code this is, for a thread that the engine had made.
pub(crate) fn set_me(identity: &'static Identity) {
    SELF.with(|me| me.set(Some(identity)));
}

#[cold]
fn begin() -> &'static Identity {
    let kept = LISTS.lock().roots.pop();
    let identity = kept.unwrap_or_else(new_root);
    if let Some(item) = identity.item.get() {
        // Not those of the thread that has ended.
        item.controls.set(settings().first);
    }
    let thread = identity.thread.get().expect("a root has a thread");
    let pointer = read_thread_pointer();
    identity.thread_pointer.set(pointer);
    // SAFETY: the record of this thread, which runs; nobody dispatches to it.
    unsafe { (*thread.record.get()).set_thread_pointer(pointer) };
    let kernel_thread = sys::kernel_thread();
    identity
        .own
        .kernel_thread
        .store(kernel_thread, Ordering::Relaxed);
    identity.exceptions.set(exceptions());
    set_me(identity);
    static KEY: OnceLock<Option<u32>> = OnceLock::new();
    if let Some(key) = KEY.get_or_init(|| sys::exit_key(keep_root)) {
        sys::at_exit_of_thread(*key, core::ptr::from_ref(identity).cast_mut().cast());
    }
    identity
}

/// A thread of the program ends: the next one may use what was made for it.
unsafe extern "C" fn keep_root(identity: *mut c_void) {
    // SAFETY: the value that `begin` gave; identities are never unmade.
    let identity: &'static Identity = unsafe { &*identity.cast::<Identity>() };
    SELF.with(|me| me.set(None));
    LISTS.lock().roots.push(identity);
}

/// An identity for a thread of the program, with the team of one that it is outside every region.
fn new_root() -> &'static Identity {
    let identity: &'static Identity = Box::leak(Box::new(Identity::new(false)));
    let thread: &'static Thread = Box::leak(Box::new(Thread::new(core::ptr::null_mut())));
    let team: &'static Team = Box::leak(Box::new(Team::new(None)));
    let member = add_member(team, identity);
    identity.thread.set(Some(thread));
    thread.identity.set(Some(identity));
    identity.carrier.set(Some(&identity.own));
    crate::record::begin();
    crate::record::make_room(&identity.own);
    let address = core::ptr::from_ref(identity).cast_mut();
    identity.own.carries.store(address, Ordering::Relaxed);
    identity.member.set(Some(member));
    begin_implicit(member, None);
    identity.item.set(Some(&member.implicit));
    LISTS.lock().carriers.push(&identity.own);
    identity
}

/// One more place in a team.
pub(crate) fn add_member(team: &'static Team, identity: &'static Identity) -> &'static Member {
    let before = crate::seek::members(team);
    let member: &'static Member = Box::leak(Box::new(Member::new(team, before.len(), identity)));
    let mut longer = before.to_vec();
    longer.push(member);
    // Somebody may still read the old list.
    let longer = Box::into_raw(Box::new(longer));
    team.members.store(longer, Ordering::Release);
    member
}

/// Begins the implicit item of a member, below the item that encountered the region.
pub(crate) fn begin_implicit(member: &'static Member, parent: Option<&'static Item>) {
    let team = member.team;
    let item = &member.implicit;
    item.pending.begin();
    item.parent.set(parent);
    item.group.set(None);
    item.team.set(Some(team));
    crate::record::number(item);
    item.marks.set(crate::parts::IMPLICIT);
    crate::depend::forget_table(item);
    member.singles.set(team.single_base.get());
    member.shares.set(team.share_base.get());
    member.turn.set(Default::default());
    let controls = parent.map_or(settings().first, |parent| inner_controls(parent, team));
    item.controls.set(controls);
    if team.opens_with_share.get() {
        crate::shares::open_first(member);
    }
}

/// The control variables of a region's members: those of the item that encountered it.
fn inner_controls(outer: &Item, team: &Team) -> Controls {
    let mut controls = outer.controls.get();
    let list = &settings().threads_by_level;
    if let Some(&threads) = list.get(team.level).filter(|_| list.len() > 1) {
        controls.threads = threads;
    }
    controls
}

/// The two words of the C++ library about exceptions of the calling thread, where it is loaded.
pub(crate) fn exceptions() -> *mut u64 {
    static FUNCTION: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
    let mut function = FUNCTION.load(Ordering::Relaxed);
    if function.is_null() {
        function = sys::symbol(c"__cxa_get_globals");
        FUNCTION.store(function, Ordering::Relaxed);
    }
    if function.is_null() {
        return core::ptr::null_mut();
    }
    // SAFETY: the function of the C++ ABI by this name.
    unsafe { sys::call_for_address(function) }.cast()
}
