//! The name under which programs find the shared library.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libpunctual.so.0");
}
