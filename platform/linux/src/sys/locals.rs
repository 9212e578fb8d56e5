//! Where the loader has put the thread-local storage of this program, and what it looks like new.

use core::ffi::{c_int, c_void};

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
    /// Whether objects beside this one and the C library (with its loader) have storage, too.
    pub(crate) has_neighbours: bool,
}

/// The storage that holds `address` in the calling thread; `None`: no object's.
pub(crate) fn storage_around(address: *const u8) -> Option<Storage> {
    struct Search {
        address: usize,
        found: Option<Storage>,
        others: usize,
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
            let size = |n: u64| usize::try_from(n).unwrap_or(0);
            let storage = Storage {
                begin,
                bytes: size(header.p_memsz),
                image: core::ptr::with_exposed_provenance(size(object.dlpi_addr + header.p_vaddr)),
                image_bytes: size(header.p_filesz),
                has_neighbours: false,
            };
            if header.p_type != libc::PT_TLS {
                continue;
            }
            let holds = (begin.addr()..begin.addr() + storage.bytes).contains(&search.address);
            if !begin.is_null() && holds {
                search.found = Some(storage);
            } else if !is_of_the_library(object) {
                search.others += 1;
            }
        }
        0
    }
    let mut search = Search {
        address: address.addr(),
        found: None,
        others: 0,
    };
    // SAFETY: the callback gets the search back, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    let has_neighbours = search.others > 0;
    search.found.map(|storage| Storage {
        has_neighbours,
        ..storage
    })
}

/// Whether the object is the C library or its loader.
fn is_of_the_library(object: &libc::dl_phdr_info) -> bool {
    if object.dlpi_name.is_null() {
        return false;
    }
    // SAFETY: the loader's names end with a zero and live as long as the object.
    let name = unsafe { core::ffi::CStr::from_ptr(object.dlpi_name) }.to_bytes();
    let name = name.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
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
