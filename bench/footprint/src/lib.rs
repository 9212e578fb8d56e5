//! All calls of a FIFO, kept in an image for a microcontroller.
//!
//! `cargo xtask size` links two images with this crate and weighs them. Each function is kept by
//! its address, as a program that calls it would keep it. Where there is no operating system, the
//! crate is also the allocator of the image, and its panic.

#![no_std]

use core::hint::black_box;

use punctual_fifo::{CopyEngine, FifoError, Reader, Shape, Writer, fifo};

#[cfg(target_os = "none")]
mod bare;

/// Keeps all calls of FIFOs in the image.
#[inline]
pub fn keep_fifo() {
    black_box::<fn(Shape) -> Result<(Writer, Reader), FifoError>>(fifo);
    black_box::<fn(&Writer) -> u32>(Writer::space);
    black_box::<fn(&mut Writer, u32) -> bool>(Writer::claim);
    black_box::<fn(&mut Writer) -> &mut [u8]>(Writer::claimed);
    black_box::<fn(&mut Writer, u32, &mut CopyEngine)>(Writer::release);
    black_box::<fn(&mut Writer, &[u8], &mut CopyEngine) -> bool>(Writer::write);
    black_box::<fn(Writer)>(drop);
    black_box::<fn(&Reader) -> u32>(Reader::tokens);
    black_box::<fn(&mut Reader, u32, &mut CopyEngine) -> bool>(Reader::claim);
    black_box::<fn(&Reader) -> &[u8]>(Reader::claimed);
    black_box::<fn(&mut Reader, u32)>(Reader::release);
    black_box::<fn(&mut Reader, &mut [u8], &mut CopyEngine) -> bool>(Reader::read);
    black_box::<fn(Reader)>(drop);
}
