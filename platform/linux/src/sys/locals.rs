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
    /// Of the object that an address lies in, of the program itself, of the C++ runtime, and of all
    /// others beside the C library that are told of the end of a thread by destructors alone.
    pub(crate) known: Vec<Storage>,
    /// Objects that may be told otherwise, by the destructor of a key: they may have chained their
    /// storage to that of others. And objects that get theirs in each thread when it is first used,
    /// somewhere else each time. By name.
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
            if is_of_the_library(name) {
                continue;
            }
            let is_known = storage.holds(search.address) || is_plain(name);
            if !begin.is_null() && (is_known || !makes_keys(object)) {
                search.found.known.push(storage);
            } else {
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

/// Whether the object names the functions that make keys of `pthread_setspecific`, whose values
/// and destructors outlive a light thread. One that cannot be looked into does.
fn makes_keys(object: &libc::dl_phdr_info) -> bool {
    const NAMES: [&[u8]; 2] = [b"\0pthread_key_create\0", b"\0tss_create\0"];
    let holds = |text: &[u8], name: &[u8]| text.windows(name.len()).any(|window| window == name);
    names_of(object).is_none_or(|text| NAMES.iter().any(|name| holds(text, name)))
}

/// The names that the loader looks up for the object, with zeros between them.
fn names_of(object: &libc::dl_phdr_info) -> Option<&[u8]> {
    const NAMES: i64 = 5; // `DT_STRTAB`
    const LENGTH: i64 = 10; // `DT_STRSZ`
    // SAFETY: the loader vouches for `dlpi_phnum` headers.
    let headers =
        unsafe { core::slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into()) };
    let dynamic = headers
        .iter()
        .find(|header| header.p_type == libc::PT_DYNAMIC)?;
    let begin = usize::try_from(object.dlpi_addr + dynamic.p_vaddr).ok()?;
    let entries: *const [i64; 2] = core::ptr::with_exposed_provenance(begin);
    let most = usize::try_from(dynamic.p_memsz).ok()? / size_of::<[i64; 2]>();
    // SAFETY: the segment is mapped as long as the object, which the loader holds for the visit.
    let entries = unsafe { core::slice::from_raw_parts(entries, most) };
    let value = |kind: i64| entries.iter().find(|entry| entry[0] == kind).map(|e| e[1]);
    let (names, length) = (value(NAMES)?.cast_unsigned(), value(LENGTH)?);
    // The loader has made an address of it, but for objects that it may not write to.
    let names = match names < object.dlpi_addr {
        true => object.dlpi_addr + names,
        false => names,
    };
    let names: *const u8 = core::ptr::with_exposed_provenance(usize::try_from(names).ok()?);
    // SAFETY: as above; the loader itself reads the names there.
    Some(unsafe { core::slice::from_raw_parts(names, usize::try_from(length).ok()?) })
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
