//! What shared objects of users call stays visible in the command that loads them.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-link-arg-bins=-Wl,--export-dynamic-symbol=punctual_*");
}
