//! What functions in C may call while the command runs them
//!
//! Nothing in the command calls these itself, so the linker would leave them out. `build.rs` puts
//! them among the symbols against which a shared object is resolved.

use core::ffi::{c_char, c_int, c_void};

use punctual_capi as c;

/// A call that takes the name of a resource.
type Named = unsafe extern "C" fn(*const c_char) -> c::punctual_status;

#[used]
static LOCK: [Named; 3] = [
    c::punctual_lock,
    c::punctual_lock_shared,
    c::punctual_unlock,
];
/// A call that copies tokens of a firing.
#[used]
static READ_FIFO: unsafe extern "C" fn(u32, *mut c_void, u32) -> c::punctual_status =
    c::punctual_read_fifo;
#[used]
static WRITE_FIFO: unsafe extern "C" fn(u32, *const c_void, u32) -> c::punctual_status =
    c::punctual_write_fifo;
#[used]
static LOCK_WITHIN: unsafe extern "C" fn(*const c_char, u64) -> c::punctual_status =
    c::punctual_lock_within;
#[used]
static CHECKPOINT: extern "C" fn() -> c::punctual_status = c::punctual_checkpoint;
#[used]
static HAS_OVERRUN: extern "C" fn() -> c_int = c::punctual_has_overrun;
#[used]
static BURN: extern "C" fn(u64) -> c::punctual_status = c::punctual_burn;
#[used]
static NOW: unsafe extern "C" fn(*mut u64) -> c::punctual_status = c::punctual_now;
#[used]
static WORDS: extern "C" fn(i32) -> *const c_char = c::punctual_strerror;
