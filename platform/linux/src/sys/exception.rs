//! Exceptions of C++, as the C++ runtime tells of them: type, and `what()`.
//!
//! The runtime is found by name when there is an exception; without it, or in a program that hides
//! it, an exception has no words. The places in tables of virtual functions are those of the
//! Itanium ABI, which both C++ runtimes of Linux keep.

use core::ffi::{CStr, c_char, c_int, c_void};

use super::symbol;

type Plain = unsafe extern "C" fn() -> *mut c_void;
type Begin = unsafe extern "C" fn(*mut c_void) -> *mut c_void;
type Demangle =
    unsafe extern "C" fn(*const c_char, *mut c_char, *mut usize, *mut c_int) -> *mut c_char;
type Catches =
    unsafe extern "C" fn(*const TypeInfo, *const TypeInfo, *mut *mut c_void, u32) -> bool;
type What = unsafe extern "C" fn(*mut c_void) -> *const c_char;

/// `std::type_info`.
#[repr(C)]
struct TypeInfo {
    functions: *const *const c_void,
    name: *const c_char,
}

/// Where the tables of virtual functions have these.
const CATCHES: usize = 4;
const WHAT: usize = 2;

/// The object of an exception comes behind the unwinder's part, which is so long.
const UNWINDER_BYTES: usize = 32;
/// Classes of exceptions with an object of their own: `GNUCC++\0` and `CLNGC++\0`.
const OF_OWN_OBJECT: [u64; 2] = [0x474e_5543_432b_2b00, 0x434c_4e47_432b_2b00];

/// A function of the C++ runtime.
///
/// # Safety
/// It is of type `F`, a function pointer.
unsafe fn function<F: Copy>(name: &CStr) -> Option<F> {
    let found = symbol(name);
    // SAFETY: as the caller vouches; a function pointer has the size of a data pointer here.
    (!found.is_null()).then(|| unsafe { core::mem::transmute_copy::<*mut c_void, F>(&found) })
}

/// Ends an exception that left a call, and says what it was.
///
/// # Safety
/// The unwinder has handed it over, and nobody else has it.
pub(crate) unsafe fn end_exception(exception: *mut u8) -> String {
    let unnamed = || "an exception left its body".to_owned();
    // SAFETY: functions of these types in every C++ runtime.
    let ends = unsafe {
        function::<Begin>(c"__cxa_begin_catch").zip(function::<Plain>(c"__cxa_end_catch"))
    };
    let Some((begin, end)) = ends else {
        return unnamed();
    };
    // SAFETY: as the caller vouches.
    unsafe { begin(exception.cast()) };
    // SAFETY: an exception is being caught.
    let words = unsafe { words(exception) };
    // SAFETY: the end of the above; the exception may be gone.
    unsafe { end() };
    words.map_or_else(unnamed, |words| {
        format!("an exception left its body: {words}")
    })
}

/// Type and `what()` of the exception that is being caught.
///
/// # Safety
/// It is this one.
unsafe fn words(exception: *mut u8) -> Option<String> {
    // SAFETY: a function of this type.
    let current = unsafe { function::<Plain>(c"__cxa_current_exception_type") }?;
    // SAFETY: no arguments. Null for exceptions of other languages.
    let kind = unsafe { current() }.cast::<TypeInfo>();
    if kind.is_null() {
        return None;
    }
    // SAFETY: a `type_info`, whose name is a string.
    let mangled = unsafe { CStr::from_ptr((*kind).name) };
    // SAFETY: as above.
    let name = unsafe { demangled(mangled) };
    // SAFETY: as the caller vouches.
    Some(match unsafe { what(kind, exception) } {
        Some(what) => format!("{name}: {what}"),
        None => name,
    })
}

/// # Safety
/// The name is that of a type.
unsafe fn demangled(mangled: &CStr) -> String {
    let plain = || mangled.to_string_lossy().into_owned();
    // SAFETY: a function of this type.
    let Some(demangle) = (unsafe { function::<Demangle>(c"__cxa_demangle") }) else {
        return plain();
    };
    let (none, length) = (core::ptr::null_mut(), core::ptr::null_mut());
    // SAFETY: a string; the rest may be null.
    let found = unsafe { demangle(mangled.as_ptr(), none, length, core::ptr::null_mut()) };
    if found.is_null() {
        return plain();
    }
    // SAFETY: a string of the allocator's.
    let name = unsafe { CStr::from_ptr(found) }
        .to_string_lossy()
        .into_owned();
    // SAFETY: as above, and nobody else has it.
    unsafe { libc::free(found.cast()) };
    name
}

/// The words of a `std::exception` of itself.
///
/// # Safety
/// An exception of this type is being caught, which the unwinder knows by this address.
unsafe fn what(kind: *const TypeInfo, exception: *mut u8) -> Option<String> {
    // SAFETY: as the caller vouches: it begins with its class.
    let class = unsafe { exception.cast::<u64>().read() };
    if !OF_OWN_OBJECT.contains(&class) {
        // Thrown again from a `std::exception_ptr`: the object is elsewhere.
        return None;
    }
    let base = symbol(c"_ZTISt9exception").cast::<TypeInfo>();
    if base.is_null() {
        return None;
    }
    let object = exception.wrapping_add(UNWINDER_BYTES).cast::<c_void>();
    let mut of_base = object;
    // SAFETY: a table of virtual functions of the ABI, in which this one is.
    let catches = unsafe { *(*base).functions.add(CATCHES) };
    // SAFETY: as above.
    let catches = unsafe { core::mem::transmute::<*const c_void, Catches>(catches) };
    // SAFETY: both are types, and the object is of the second.
    let is_one = unsafe { catches(base, kind, &mut of_base, 1) };
    is_one.then(|| {
        // SAFETY: a `std::exception` begins with its table of virtual functions.
        let functions = unsafe { *of_base.cast::<*const *const c_void>() };
        // SAFETY: as above.
        let what = unsafe { core::mem::transmute::<*const c_void, What>(*functions.add(WHAT)) };
        // SAFETY: as above; what it returns is a string that lives as long as the exception.
        unsafe { CStr::from_ptr(what(of_base)) }
            .to_string_lossy()
            .into_owned()
    })
}
