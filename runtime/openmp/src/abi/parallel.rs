//! `parallel`, alone and combined with a loop or sections.

use core::ffi::{c_long, c_uint};

use crate::me::me;
use crate::parts::Body;
use crate::region;
use crate::settings::{DYNAMIC, GUIDED, STATIC};
use crate::shares::{self, Loop};

/// A region.
#[unsafe(no_mangle)]
pub extern "C" fn GOMP_parallel(body: Body, data: *mut u8, threads: c_uint, _flags: c_uint) {
    region::run(threads as usize, body, data, None);
}

fn begin(body: Body, data: *mut u8, threads: c_uint, of: Option<&Loop>) {
    let identity = me();
    let size = region::size(identity, threads as usize);
    region::begin(identity, size, body, data, of);
}

/// The old way: the caller runs the function itself, then calls [`GOMP_parallel_end`].
#[unsafe(no_mangle)]
pub extern "C" fn GOMP_parallel_start(body: Body, data: *mut u8, threads: c_uint) {
    begin(body, data, threads, None);
}

/// The end of a region that was begun by one of the `_start` functions.
#[unsafe(no_mangle)]
pub extern "C" fn GOMP_parallel_end() {
    let identity = me();
    region::end(identity, identity.hat().team);
}

fn with_runtime(start: c_long, end: c_long, step: c_long) -> Loop {
    let (kind, chunk) = shares::runtime_schedule(me());
    Loop::signed(start, end, step, kind, chunk)
}

/// Regions that are a loop: with a chunk in the call, and with the schedule of the environment.
macro_rules! parallel_loops {
    ($($name:ident, $start:ident: $kind:expr;)*) => {$(
        /// A region that is a loop.
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(
            body: Body, data: *mut u8, threads: c_uint,
            start: c_long, end: c_long, step: c_long, chunk: c_long, _flags: c_uint,
        ) {
            let of = Loop::signed(start, end, step, $kind, chunk);
            region::run(threads as usize, body, data, Some(&of));
        }
        parallel_loops!(@start $start: $kind);
    )*};
    (@start none: $kind:expr) => {};
    (@start $start:ident: $kind:expr) => {
        /// The same, the old way.
        #[unsafe(no_mangle)]
        pub extern "C" fn $start(
            body: Body, data: *mut u8, threads: c_uint,
            start: c_long, end: c_long, step: c_long, chunk: c_long,
        ) {
            let of = Loop::signed(start, end, step, $kind, chunk);
            begin(body, data, threads, Some(&of));
        }
    };
}
parallel_loops! {
    GOMP_parallel_loop_static, GOMP_parallel_loop_static_start: STATIC;
    GOMP_parallel_loop_dynamic, GOMP_parallel_loop_dynamic_start: DYNAMIC;
    GOMP_parallel_loop_guided, GOMP_parallel_loop_guided_start: GUIDED;
    GOMP_parallel_loop_nonmonotonic_dynamic, none: DYNAMIC;
    GOMP_parallel_loop_nonmonotonic_guided, none: GUIDED;
}

macro_rules! parallel_runtime {
    ($($name:ident),*) => {$(
        /// A region that is a loop with `schedule(runtime)`.
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(
            body: Body, data: *mut u8, threads: c_uint,
            start: c_long, end: c_long, step: c_long, _flags: c_uint,
        ) {
            let of = with_runtime(start, end, step);
            region::run(threads as usize, body, data, Some(&of));
        }
    )*};
}
parallel_runtime!(
    GOMP_parallel_loop_runtime,
    GOMP_parallel_loop_nonmonotonic_runtime,
    GOMP_parallel_loop_maybe_nonmonotonic_runtime
);

/// The old way of a loop with `schedule(runtime)`.
#[unsafe(no_mangle)]
pub extern "C" fn GOMP_parallel_loop_runtime_start(
    body: Body,
    data: *mut u8,
    threads: c_uint,
    start: c_long,
    end: c_long,
    step: c_long,
) {
    let of = with_runtime(start, end, step);
    begin(body, data, threads, Some(&of));
}

fn sections(count: c_uint) -> Loop {
    Loop::signed(1, i64::from(count) + 1, 1, DYNAMIC, 1)
}

/// A region that is sections.
#[unsafe(no_mangle)]
pub extern "C" fn GOMP_parallel_sections(
    body: Body,
    data: *mut u8,
    threads: c_uint,
    count: c_uint,
    _flags: c_uint,
) {
    region::run(threads as usize, body, data, Some(&sections(count)));
}

/// The same, the old way.
#[unsafe(no_mangle)]
pub extern "C" fn GOMP_parallel_sections_start(
    body: Body,
    data: *mut u8,
    threads: c_uint,
    count: c_uint,
) {
    begin(body, data, threads, Some(&sections(count)));
}

fn section(number: Option<(u64, u64)>) -> c_uint {
    let number = number.map_or(0, |(first, _)| first + 1);
    c_uint::try_from(number).unwrap_or_default()
}

/// The first section for the caller, from 1; 0: none is left.
#[unsafe(no_mangle)]
pub extern "C" fn GOMP_sections_start(count: c_uint) -> c_uint {
    let identity = me();
    shares::start(identity, &sections(count));
    section(shares::take(identity.hat()))
}

/// The next section.
#[unsafe(no_mangle)]
pub extern "C" fn GOMP_sections_next() -> c_uint {
    section(shares::take(me().hat()))
}

/// The end of sections, with a barrier.
#[unsafe(no_mangle)]
pub extern "C" fn GOMP_sections_end() {
    shares::leave(me().hat());
    region::barrier();
}

/// The same for sections that can be cancelled: nobody cancels them.
#[unsafe(no_mangle)]
pub extern "C" fn GOMP_sections_end_cancel() -> bool {
    GOMP_sections_end();
    false
}

/// The end of sections without one.
#[unsafe(no_mangle)]
pub extern "C" fn GOMP_sections_end_nowait() {
    shares::leave(me().hat());
}
