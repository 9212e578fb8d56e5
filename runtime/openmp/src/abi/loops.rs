//! `for`: loops whose iterations the members share.

use core::ffi::{c_long, c_ulonglong};

use crate::carry::beat;
use crate::me::me;
use crate::parts::Identity;
use crate::region;
use crate::settings::{DYNAMIC, GUIDED, STATIC};
use crate::shares::{self, Loop};

/// Where the compiler wants the first value and the one to stop at.
type Place<T> = *mut T;

/// Writes a range down; whether there was one.
///
/// # Safety
/// Both places belong to the caller.
unsafe fn give<T>(
    identity: &Identity,
    part: Option<(u64, u64)>,
    places: [Place<T>; 2],
    convert: impl Fn(u64) -> T,
) -> bool {
    beat(identity);
    let Some(part) = part else {
        return false;
    };
    let (first, end) = shares::values(identity.hat(), part);
    for (place, value) in places.into_iter().zip([first, end]) {
        // SAFETY: the compiler's variables.
        unsafe { place.write(convert(value)) };
    }
    true
}

fn next(identity: &'static Identity, ordered: bool) -> Option<(u64, u64)> {
    match ordered {
        true => shares::take_ordered(identity),
        false => shares::take(identity.hat()),
    }
}

fn start_signed(of: &Loop, ordered: bool, first: *mut c_long, end: *mut c_long) -> bool {
    let identity = me();
    shares::start(identity, of);
    let part = next(identity, ordered);
    // SAFETY: the compiler's variables.
    unsafe { give(identity, part, [first, end], u64::cast_signed) }
}

fn start_unsigned(
    of: &Loop,
    ordered: bool,
    first: *mut c_ulonglong,
    end: *mut c_ulonglong,
) -> bool {
    let identity = me();
    shares::start(identity, of);
    let part = next(identity, ordered);
    // SAFETY: the compiler's variables.
    unsafe { give(identity, part, [first, end], |value| value) }
}

macro_rules! loops {
    ($($start:ident, $next:ident, $ull_start:ident, $ull_next:ident: $kind:expr, $ordered:expr;)*) => {$(
        /// Begins a loop with a chunk; whether the caller has iterations.
        #[unsafe(no_mangle)]
        pub extern "C" fn $start(
            start: c_long, end: c_long, step: c_long, chunk: c_long,
            first: *mut c_long, last: *mut c_long,
        ) -> bool {
            start_signed(&Loop::signed(start, end, step, $kind, chunk), $ordered, first, last)
        }

        /// The same for unsigned values.
        #[unsafe(no_mangle)]
        pub extern "C" fn $ull_start(
            up: bool, start: c_ulonglong, end: c_ulonglong, step: c_ulonglong, chunk: c_ulonglong,
            first: *mut c_ulonglong, last: *mut c_ulonglong,
        ) -> bool {
            let of = Loop::unsigned(up, [start, end], step, $kind, chunk);
            start_unsigned(&of, $ordered, first, last)
        }
        nexts!($next, $ull_next: $ordered);
    )*};
}

macro_rules! nexts {
    ($next:ident, $ull_next:ident: $ordered:expr) => {
        /// The next iterations for the caller.
        #[unsafe(no_mangle)]
        pub extern "C" fn $next(first: *mut c_long, end: *mut c_long) -> bool {
            let identity = me();
            let part = next(identity, $ordered);
            // SAFETY: the compiler's variables.
            unsafe { give(identity, part, [first, end], u64::cast_signed) }
        }

        /// The same for unsigned values.
        #[unsafe(no_mangle)]
        pub extern "C" fn $ull_next(first: *mut c_ulonglong, end: *mut c_ulonglong) -> bool {
            let identity = me();
            let part = next(identity, $ordered);
            // SAFETY: the compiler's variables.
            unsafe { give(identity, part, [first, end], |value| value) }
        }
    };
}

loops! {
    GOMP_loop_static_start, GOMP_loop_static_next,
        GOMP_loop_ull_static_start, GOMP_loop_ull_static_next: STATIC, false;
    GOMP_loop_dynamic_start, GOMP_loop_dynamic_next,
        GOMP_loop_ull_dynamic_start, GOMP_loop_ull_dynamic_next: DYNAMIC, false;
    GOMP_loop_guided_start, GOMP_loop_guided_next,
        GOMP_loop_ull_guided_start, GOMP_loop_ull_guided_next: GUIDED, false;
    GOMP_loop_nonmonotonic_dynamic_start, GOMP_loop_nonmonotonic_dynamic_next,
        GOMP_loop_ull_nonmonotonic_dynamic_start, GOMP_loop_ull_nonmonotonic_dynamic_next:
        DYNAMIC, false;
    GOMP_loop_nonmonotonic_guided_start, GOMP_loop_nonmonotonic_guided_next,
        GOMP_loop_ull_nonmonotonic_guided_start, GOMP_loop_ull_nonmonotonic_guided_next:
        GUIDED, false;
    GOMP_loop_ordered_static_start, GOMP_loop_ordered_static_next,
        GOMP_loop_ull_ordered_static_start, GOMP_loop_ull_ordered_static_next: STATIC, true;
    GOMP_loop_ordered_dynamic_start, GOMP_loop_ordered_dynamic_next,
        GOMP_loop_ull_ordered_dynamic_start, GOMP_loop_ull_ordered_dynamic_next: DYNAMIC, true;
    GOMP_loop_ordered_guided_start, GOMP_loop_ordered_guided_next,
        GOMP_loop_ull_ordered_guided_start, GOMP_loop_ull_ordered_guided_next: GUIDED, true;
}

macro_rules! runtime_loops {
    ($($start:ident, $next:ident, $ull_start:ident, $ull_next:ident: $ordered:expr;)*) => {$(
        /// Begins a loop with `schedule(runtime)`.
        #[unsafe(no_mangle)]
        pub extern "C" fn $start(
            start: c_long, end: c_long, step: c_long, first: *mut c_long, last: *mut c_long,
        ) -> bool {
            let (kind, chunk) = shares::runtime_schedule(me());
            start_signed(&Loop::signed(start, end, step, kind, chunk), $ordered, first, last)
        }

        /// The same for unsigned values.
        #[unsafe(no_mangle)]
        pub extern "C" fn $ull_start(
            up: bool, start: c_ulonglong, end: c_ulonglong, step: c_ulonglong,
            first: *mut c_ulonglong, last: *mut c_ulonglong,
        ) -> bool {
            let (kind, chunk) = shares::runtime_schedule(me());
            let chunk = chunk.cast_unsigned();
            let of = Loop::unsigned(up, [start, end], step, kind, chunk);
            start_unsigned(&of, $ordered, first, last)
        }
        nexts!($next, $ull_next: $ordered);
    )*};
}

runtime_loops! {
    GOMP_loop_runtime_start, GOMP_loop_runtime_next,
        GOMP_loop_ull_runtime_start, GOMP_loop_ull_runtime_next: false;
    GOMP_loop_nonmonotonic_runtime_start, GOMP_loop_nonmonotonic_runtime_next,
        GOMP_loop_ull_nonmonotonic_runtime_start, GOMP_loop_ull_nonmonotonic_runtime_next: false;
    GOMP_loop_maybe_nonmonotonic_runtime_start, GOMP_loop_maybe_nonmonotonic_runtime_next,
        GOMP_loop_ull_maybe_nonmonotonic_runtime_start,
        GOMP_loop_ull_maybe_nonmonotonic_runtime_next: false;
    GOMP_loop_ordered_runtime_start, GOMP_loop_ordered_runtime_next,
        GOMP_loop_ull_ordered_runtime_start, GOMP_loop_ull_ordered_runtime_next: true;
}

/// The end of a loop, with a barrier.
#[unsafe(no_mangle)]
pub extern "C" fn GOMP_loop_end() {
    shares::leave(me().hat());
    region::barrier();
}

/// The same for a loop that can be cancelled: nobody cancels it.
#[unsafe(no_mangle)]
pub extern "C" fn GOMP_loop_end_cancel() -> bool {
    GOMP_loop_end();
    false
}

/// The end of a loop without one.
#[unsafe(no_mangle)]
pub extern "C" fn GOMP_loop_end_nowait() {
    shares::leave(me().hat());
}

/// The part of an iteration that comes in the order of iterations.
#[unsafe(no_mangle)]
pub extern "C" fn GOMP_ordered_start() {
    let identity = me();
    beat(identity);
    shares::wait_for_turn(identity);
}

/// Its end: the chunk is through when the caller asks for the next.
#[unsafe(no_mangle)]
pub extern "C" fn GOMP_ordered_end() {}
