//! Thread-local storage of a light thread: a control block that the C library takes for a thread.
//!
//! Why: design note 0003. The block comes from the C library's own allocator for such blocks, so
//! `thread_local!`, `errno`, the allocator's caches, locales and stdio locks are each light
//! thread's own. What the C library offers no function for, is done here:
//!
//! ```text
//!   fs -> +0x00  own address          written here
//!         +0x08  dynamic thread vector written by the allocator
//!         +0x10  own address          written here
//!         +0x18  several threads?     copied
//!         +0x28  stack guard          copied: one value per process, in every function's epilogue
//!         +0x30  pointer guard        copied: one value per process
//!         +tid   thread id            a number of its own that no kernel thread has
//!         +list  links of all threads to itself: the child of a fork takes itself off a list
//!         +rseq  processor number     "not registered": the kernel knows only the host thread's
//! ```
//!
//! The thread id is unique because the C library's recursive locks (the loader's, and those of
//! programs) compare it: with the host thread's id two light threads would both "own" such a lock.

use core::ffi::c_void;
use core::sync::atomic::{AtomicI32, Ordering};
use std::sync::OnceLock;

use punctual_switch::instructions::read_thread_pointer;

use crate::sys;

/// Control words of the x86-64 TLS ABI and of glibc, which has kept them since 2.3.
const SELF_0: usize = 0x00;
const SELF_1: usize = 0x10;
const MULTIPLE_THREADS: usize = 0x18;
const STACK_GUARD: usize = 0x28;
const POINTER_GUARD: usize = 0x30;
/// `struct rseq` of the kernel: the processor number follows the start number.
const RSEQ_CPU_ID: usize = 4;
const RSEQ_CPU_ID_UNINITIALIZED: i32 = -1;

/// Above every kernel thread's id (PID_MAX_LIMIT is 2^22), below the bits that futexes use.
static NEXT_ID: AtomicI32 = AtomicI32::new(0x1000_0000);

type Allocate = unsafe extern "C" fn(*mut c_void) -> *mut c_void;
type Deallocate = unsafe extern "C" fn(*mut c_void, bool);
type Plain = unsafe extern "C" fn();

/// What the C library gives for threads that it does not start itself.
#[derive(Clone, Copy, Debug)]
pub struct Library {
    allocate: Allocate,
    deallocate: Deallocate,
    call_destructors: Plain,
    initialise_character_tables: Plain,
    tid_offset: usize,
    list_offset: usize,
    rseq_offset: Option<isize>,
}

impl Library {
    /// Looks the functions up, once per process.
    ///
    /// # Errors
    /// The name of what is missing: then this C library is not one that light threads can run on.
    pub fn find() -> Result<Library, &'static str> {
        static FOUND: OnceLock<Result<Library, &'static str>> = OnceLock::new();
        *FOUND.get_or_init(|| {
            let (tid, list) = (c"_thread_db_pthread_tid", c"_thread_db_pthread_list");
            let tid_offset = field(tid, 32).ok_or("_thread_db_pthread_tid")?;
            let list_offset = field(list, 128).ok_or("_thread_db_pthread_list")?;
            // SAFETY: the symbols are functions of these types in every glibc that has them.
            unsafe {
                Ok(Library {
                    allocate: function(c"_dl_allocate_tls", "_dl_allocate_tls")?,
                    deallocate: function(c"_dl_deallocate_tls", "_dl_deallocate_tls")?,
                    call_destructors: function(c"__call_tls_dtors", "__call_tls_dtors")?,
                    initialise_character_tables: function(c"__ctype_init", "__ctype_init")?,
                    tid_offset,
                    list_offset,
                    rseq_offset: rseq_offset(),
                })
            }
        })
    }

    /// To be called first on a new light thread.
    pub fn begin_thread(&self) {
        // SAFETY: sets thread-locals of the calling thread.
        unsafe { (self.initialise_character_tables)() };
    }

    /// To be called last on a light thread: runs the destructors of its thread-locals.
    pub fn end_thread(&self) {
        // SAFETY: the thread runs nothing of the program afterwards.
        unsafe { (self.call_destructors)() };
    }
}

/// Where a field of so many bits lies in a thread's control block: the library tells debuggers.
fn field(name: &core::ffi::CStr, bits: u32) -> Option<usize> {
    // Size in bits, count, offset.
    let descriptor = sys::symbol(name).cast::<[u32; 3]>();
    if descriptor.is_null() {
        return None;
    }
    // SAFETY: the symbol is glibc's, and of this layout since libthread_db exists.
    let [size, _, offset] = unsafe { *descriptor };
    (size == bits).then_some(offset as usize)
}

/// # Safety
/// The symbol, if there is one, is a function of type `F`, and `F` is a function pointer.
unsafe fn function<F: Copy>(
    symbol: &core::ffi::CStr,
    name: &'static str,
) -> Result<F, &'static str> {
    let found = sys::symbol(symbol);
    if found.is_null() {
        return Err(name);
    }
    // SAFETY: as the caller vouches; a function pointer has the size of a data pointer here.
    Ok(unsafe { core::mem::transmute_copy::<*mut c_void, F>(&found) })
}

/// Where the restartable-sequence area lies from the thread pointer; `None` before glibc 2.35.
fn rseq_offset() -> Option<isize> {
    let offset = sys::symbol(c"__rseq_offset").cast::<isize>();
    if offset.is_null() {
        return None;
    }
    // SAFETY: the symbol is a `ptrdiff_t` of the C library.
    Some(unsafe { *offset })
}

/// One light thread's storage; given back when dropped.
#[derive(Debug)]
pub struct Storage {
    block: *mut u8,
    library: Library,
}

impl Storage {
    /// Storage for one more thread; `None` without memory.
    pub fn try_new(library: Library) -> Option<Storage> {
        // SAFETY: a null argument asks for a new block.
        let block = unsafe { (library.allocate)(core::ptr::null_mut()) }.cast::<u8>();
        if block.is_null() {
            return None;
        }
        let storage = Storage { block, library };
        let mine = read_thread_pointer() as *const u8;
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the block is as large as a thread's control block, all offsets lie inside it
        // (the first five by the ABI, the others by the library's own word), the fields are
        // aligned, and nobody else knows the block yet. The calling thread's block is as large.
        unsafe {
            block.add(SELF_0).cast::<*mut u8>().write(block);
            block.add(SELF_1).cast::<*mut u8>().write(block);
            copy_word::<u32>(mine, block, MULTIPLE_THREADS);
            copy_word::<u64>(mine, block, STACK_GUARD);
            copy_word::<u64>(mine, block, POINTER_GUARD);
            block.add(library.tid_offset).cast::<i32>().write(id);
            let list = block.add(library.list_offset);
            list.cast::<[*mut u8; 2]>().write([list, list]);
            if let Some(offset) = library.rseq_offset {
                let area = block.offset(offset);
                area.add(RSEQ_CPU_ID)
                    .cast::<i32>()
                    .write(RSEQ_CPU_ID_UNINITIALIZED);
            }
        }
        Some(storage)
    }

    /// The thread pointer of the thread that owns this storage.
    pub fn thread_pointer(&self) -> u64 {
        self.block.addr() as u64
    }
}

/// # Safety
/// `offset` lies in both blocks, aligned for `T`.
unsafe fn copy_word<T: Copy>(from: *const u8, to: *mut u8, offset: usize) {
    // SAFETY: as the caller vouches.
    unsafe {
        to.add(offset)
            .cast::<T>()
            .write(from.add(offset).cast::<T>().read())
    };
}

impl Drop for Storage {
    fn drop(&mut self) {
        // SAFETY: the thread has ended (the owner of one that might run again forgets the storage),
        // and the block came from the same library's allocator.
        unsafe { (self.library.deallocate)(self.block.cast(), true) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_knows_the_thread_id_where_the_descriptor_says() {
        let library = Library::find().expect("glibc");
        let mine = read_thread_pointer() as *const u8;
        // SAFETY: the offset lies in this thread's own block.
        let tid = unsafe { mine.add(library.tid_offset).cast::<i32>().read() };
        assert_eq!(
            format!("{:?}", sys::current_thread()),
            format!("Tid({tid})")
        );
    }

    #[test]
    fn every_storage_has_its_own_address_and_id() {
        let library = Library::find().expect("glibc");
        let make = || Storage::try_new(library).expect("memory");
        let (a, b) = (make(), make());
        // SAFETY: inside the blocks.
        let id = |s: &Storage| unsafe { s.block.add(library.tid_offset).cast::<i32>().read() };
        assert_ne!(a.thread_pointer(), b.thread_pointer());
        assert_ne!(id(&a), id(&b));
        assert!(id(&a) > 1 << 22, "no kernel thread has this id");
    }
}
