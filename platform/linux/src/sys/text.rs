//! Where code lies, as the loader knows it.

use core::ffi::{CStr, c_char, c_int, c_void};

use super::symbol;

/// Where the code of a function of the C library begins and ends; `None`: it has none by that name.
pub(crate) fn function_range(name: &CStr) -> Option<(u64, u64)> {
    const WITH_SYMBOL: c_int = 1;
    unsafe extern "C" {
        // `libc` does not declare it.
        fn dladdr1(
            address: *const c_void,
            object: *mut libc::Dl_info,
            extra: *mut *mut c_void,
            flags: c_int,
        ) -> c_int;
    }
    let begin = symbol(name);
    let mut object = core::mem::MaybeUninit::uninit();
    let mut found: *mut c_void = core::ptr::null_mut();
    // SAFETY: any address may be asked for; both places for the answers are valid.
    let known = unsafe { dladdr1(begin, object.as_mut_ptr(), &raw mut found, WITH_SYMBOL) };
    // SAFETY: null, or the symbol's entry in its object, which stays loaded.
    let entry = unsafe { found.cast::<libc::Elf64_Sym>().as_ref() }?;
    let begin = begin.addr() as u64;
    (known != 0).then_some((begin, begin + entry.st_size))
}

/// A loaded object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Object {
    /// Where it begins.
    pub(crate) begin: usize,
    /// Its file, as the loader names it.
    pub(crate) file: String,
}

/// The object that an address lies in; `None`: in none.
pub(crate) fn object_of(address: *const ()) -> Option<Object> {
    let mut object = core::mem::MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: any address may be asked for; the place for the answer is valid.
    let known = unsafe { libc::dladdr(address.cast(), object.as_mut_ptr()) };
    if known == 0 {
        return None;
    }
    // SAFETY: the loader has filled it in.
    let object = unsafe { object.assume_init() };
    let file = match object.dli_fname.is_null() {
        true => String::new(),
        // SAFETY: the loader's names are C strings.
        false => unsafe { CStr::from_ptr(object.dli_fname) }
            .to_string_lossy()
            .into_owned(),
    };
    let begin = object.dli_fbase.addr();
    Some(Object { begin, file })
}

/// Whether a symbol's address is a stub in the program, which calls a function of a library by it.
/// A program that does not move has one for each function whose address it takes.
pub(crate) fn is_stub(address: *const ()) -> bool {
    const SYMBOL: c_int = 1; // `RTLD_DL_SYMENT`
    let mut object = core::mem::MaybeUninit::<libc::Dl_info>::uninit();
    let mut entry: *mut c_void = core::ptr::null_mut();
    // SAFETY: any address may be asked for; both places for the answer are valid.
    let known =
        unsafe { libc::dladdr1(address.cast(), object.as_mut_ptr(), &raw mut entry, SYMBOL) };
    let entry = entry.cast::<libc::Elf64_Sym>();
    // SAFETY: the loader's entry of a symbol of a loaded object.
    known != 0 && unsafe { entry.as_ref() }.is_some_and(|symbol| symbol.st_shndx == 0)
}

/// Executable ranges of the loaded objects whose file name `select` accepts.
pub(crate) fn text_ranges(mut select: impl FnMut(&[u8]) -> bool) -> Vec<(u64, u64)> {
    struct Search<'a> {
        select: &'a mut dyn FnMut(&[u8]) -> bool,
        found: Vec<(u64, u64)>,
    }
    unsafe extern "C" fn visit(
        object: *mut libc::dl_phdr_info,
        _size: usize,
        data: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader passes a valid object.
        let object = unsafe { &*object };
        // SAFETY: `data` is the search below, which outlives the iteration.
        let search = unsafe { &mut *data.cast::<Search<'_>>() };
        let name: *const c_char = object.dlpi_name;
        if name.is_null() {
            return 0;
        }
        // SAFETY: the loader's names are C strings.
        if !(search.select)(unsafe { CStr::from_ptr(name) }.to_bytes()) {
            return 0;
        }
        for index in 0..usize::from(object.dlpi_phnum) {
            // SAFETY: the loader vouches for `dlpi_phnum` headers.
            let header = unsafe { &*object.dlpi_phdr.add(index) };
            if header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_X != 0 {
                let begin = object.dlpi_addr + header.p_vaddr;
                search.found.push((begin, begin + header.p_memsz));
            }
        }
        0
    }
    let mut search = Search {
        select: &mut select,
        found: Vec::new(),
    };
    // SAFETY: the callback gets the search back, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.found
}
