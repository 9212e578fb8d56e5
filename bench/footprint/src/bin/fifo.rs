//! The image of FIFOs alone
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
// SAFETY: the entry of an image that nothing else is linked with; no other has this name.
#[unsafe(no_mangle)]
extern "C" fn _start() {
    punctual_footprint::keep_fifo();
}

#[cfg(not(target_os = "none"))]
fn main() {
    punctual_footprint::keep_fifo();
}
