//! Where the loader has put the thread-local storage of this program, and what it looks like new.

use core::ffi::{CStr, c_int, c_void};

/// The storage of one object in the calling thread, and its image.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Storage {
    /// Where it begins in the calling thread.
    pub(crate) begin: *mut u8,
    /// How long it is.
    pub(crate) bytes: usize,
    /// What its first bytes are in a new thread; the others are 0.
    pub(crate) image: *const u8,
    /// How many.
    pub(crate) image_bytes: usize,
}

impl Storage {
    /// Whether `address` lies in it.
    pub(crate) fn holds(&self, address: *const u8) -> bool {
        (self.begin.addr()..self.begin.addr() + self.bytes).contains(&address.addr())
    }
}

/// The storages of this program in the calling thread.
#[derive(Debug, Default)]
pub(crate) struct Storages {
    /// Of the object that an address lies in, of the program itself and of the C++ runtime, whose
    /// thread-locals are plain words: as many of them as there are.
    pub(crate) known: Vec<Storage>,
    /// Objects beside those and the C library (with its loader) that have storage, too; and those
    /// that get theirs in each thread when it is first used, somewhere else each time. By name.
    pub(crate) others: Vec<String>,
}

/// The storages of this program, as they are in a new thread: to be called in one, because what is
/// not there yet is told by that. `address` lies in a thread-local of the calling thread.
pub(crate) fn storages(address: *const u8) -> Storages {
    struct Search {
        address: *const u8,
        found: Storages,
    }
    unsafe extern "C" fn visit(
        object: *mut libc::dl_phdr_info,
        _size: usize,
        data: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader passes a valid object.
        let object = unsafe { &*object };
        // SAFETY: `data` is the search below, which outlives the iteration.
        let search = unsafe { &mut *data.cast::<Search>() };
        let begin = object.dlpi_tls_data.cast::<u8>();
        for index in 0..usize::from(object.dlpi_phnum) {
            // SAFETY: the loader vouches for `dlpi_phnum` headers.
            let header = unsafe { &*object.dlpi_phdr.add(index) };
            if header.p_type != libc::PT_TLS {
                continue;
            }
            let size = |n: u64| usize::try_from(n).unwrap_or(0);
            let storage = Storage {
                begin,
                bytes: size(header.p_memsz),
                image: core::ptr::with_exposed_provenance(size(object.dlpi_addr + header.p_vaddr)),
                image_bytes: size(header.p_filesz),
            };
            let name = name_of(object);
            let is_known = storage.holds(search.address) || is_plain(name);
            if !begin.is_null() && is_known {
                search.found.known.push(storage);
            } else if !is_of_the_library(name) {
                let name = match name.is_empty() {
                    true => "the program".to_owned(),
                    false => String::from_utf8_lossy(name).into_owned(),
                };
                search.found.others.push(name);
            }
        }
        0
    }
    let found = Storages::default();
    let mut search = Search { address, found };
    // SAFETY: the callback gets the search back, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.found
}

/// The last part of the object's path; empty: the program itself.
fn name_of(object: &libc::dl_phdr_info) -> &[u8] {
    if object.dlpi_name.is_null() {
        return b"";
    }
    // SAFETY: the loader's names end with a zero and live as long as the object.
    let name = unsafe { CStr::from_ptr(object.dlpi_name) }.to_bytes();
    name.rsplit(|&byte| byte == b'/').next().unwrap_or_default()
}

/// Whether the object is the program itself, or the C++ runtime.
fn is_plain(name: &[u8]) -> bool {
    name.is_empty() || name.starts_with(b"libstdc++.so")
}

/// Whether the object is the C library or its loader.
fn is_of_the_library(name: &[u8]) -> bool {
    name.starts_with(b"libc.so") || name.starts_with(b"libc-") || name.starts_with(b"ld-")
}

/// Where the area for restartable sequences lies that the C library has registered with the kernel
/// for each of its threads, counted from the thread pointer; `None`: it has registered none.
pub(crate) fn rseq_offset() -> Option<isize> {
    let size = super::symbol(c"__rseq_size").cast::<u32>();
    let offset = super::symbol(c"__rseq_offset").cast::<isize>();
    if size.is_null() || offset.is_null() {
        return None;
    }
    // SAFETY: two numbers of the C library (2.35 or later), set before the program began.
    let (size, offset) = unsafe { (*size, *offset) };
    (size > 0).then_some(offset)
}
