//! What functions in C may call while the command runs them
//!
//! Nothing in the command calls these itself, so the linker would leave them out. `build.rs` puts
//! them among the symbols against which a shared object is resolved.

use core::ffi::{c_char, c_int};

use punctual_linux::job;

/// A call that takes the name of a resource, and a status.
type Named<R> = unsafe extern "C" fn(*const c_char) -> R;

#[used]
static LOCK: Named<c_int> = job::punctual_lock;
#[used]
static UNLOCK: Named<()> = job::punctual_unlock;
#[used]
static CHECKPOINT: extern "C" fn() -> c_int = job::punctual_checkpoint;
