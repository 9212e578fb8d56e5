//! Forks: the child has one kernel thread, and finds every list whole.
//!
//! A child that was forked inside a region can leave its `critical`s and locks, begin regions of
//! its own, `exec` and end. The other members of that region are not there: at a barrier of it, or
//! at a lock that one of them holds, the child waits for ever, as with threads of the C library.

use core::sync::atomic::Ordering;

use crate::locks;
use crate::me::if_known;
use crate::monitor;
use crate::pool::{self, LISTS};
use crate::seek::carrier_of;
use crate::sys;

/// The loader calls it: a program may fork before it calls anything here, while another thread of
/// it does.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = prepare;

extern "C" fn prepare() {
    sys::around_fork(before, after, begin_child);
}

unsafe extern "C" fn before() {
    locks::hold_lists();
    LISTS.hold();
}

unsafe extern "C" fn after() {
    LISTS.let_go();
    locks::let_go_of_lists();
}

/// The next region of the child makes a team anew.
unsafe extern "C" fn begin_child() {
    LISTS.let_go();
    locks::let_go_of_lists();
    pool::forget_others();
    monitor::forget();
    let identity = if_known();
    locks::forget_others(identity);
    let Some(identity) = identity else {
        return;
    };
    // It may not be that of its own kernel thread.
    let carrier = carrier_of(identity);
    carrier
        .kernel_thread
        .store(sys::kernel_thread(), Ordering::Relaxed);
    LISTS.lock().carriers.push(carrier);
    if pool::is_active(carrier) {
        pool::enter(carrier);
    }
}
