//! An allocator and a panic for an image without an operating system

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicUsize, Ordering};

const ROOM: usize = 16 << 10;

#[repr(align(16))]
struct Memory(UnsafeCell<[u8; ROOM]>);

/// Hands out memory before the start, and takes none back.
struct Bump {
    memory: Memory,
    used: AtomicUsize,
}

// SAFETY: no two callers are given the same bytes.
unsafe impl Sync for Bump {}

// SAFETY: each answer is null or bytes of `memory` behind all that were given before; `used` never
// falls, and its update tells two callers apart.
unsafe impl GlobalAlloc for Bump {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let start = |used: usize| used.checked_next_multiple_of(layout.align().min(16));
        let after =
            |used| Some(start(used)?.checked_add(layout.size())?).filter(|&end| end <= ROOM);
        let order = Ordering::Relaxed;
        let taken = self.used.fetch_update(order, order, after).ok();
        match taken.and_then(start) {
            Some(at) if layout.align() <= 16 => self.memory.0.get().cast::<u8>().wrapping_add(at),
            _ => core::ptr::null_mut(),
        }
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static MEMORY: Bump = Bump {
    memory: Memory(UnsafeCell::new([0; ROOM])),
    used: AtomicUsize::new(0),
};

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}
