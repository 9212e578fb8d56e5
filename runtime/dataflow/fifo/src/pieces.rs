//! Copies that call nothing.
//!
//! A preemption that finds a thread in the C library waits until it is left. So a long copy must
//! not be one call of `memcpy`, whatever the compiler thinks of the loop.

use core::sync::atomic::{Ordering, compiler_fence};

/// Copies as much as both have, by instructions of its own. O(bytes). It is there once: code for a
/// microcontroller is small.
#[inline(never)]
pub(super) fn copy(from: &[u8], to: &mut [u8]) {
    let (from, to) = copy_by::<64>(from, to);
    let (from, to) = copy_by::<8>(from, to);
    let _ = copy_by::<1>(from, to);
}

/// Copies pieces of this length; the rest of both.
#[inline]
fn copy_by<'a, const PIECE: usize>(
    mut from: &'a [u8],
    mut to: &'a mut [u8],
) -> (&'a [u8], &'a mut [u8]) {
    while let (Some((piece, more)), true) = (from.split_first_chunk(), to.len() >= PIECE) {
        let (place, room) = to.split_at_mut(PIECE);
        if let Ok(place) = <&mut [u8; PIECE]>::try_from(place) {
            *place = *piece;
        }
        // Else the pieces become one call again.
        compiler_fence(Ordering::SeqCst);
        (from, to) = (more, room);
    }
    (from, to)
}

#[cfg(test)]
mod tests {
    use super::copy;
    use std::vec::Vec;

    #[test]
    fn every_byte_is_copied_and_no_other() {
        let from: Vec<u8> = (0..=255).collect();
        for begin in 0..9 {
            for length in 0..200 {
                let mut to = [7; 256];
                copy(&from[begin..begin + length], &mut to[3..3 + length]);
                assert_eq!(&to[3..3 + length], &from[begin..begin + length]);
                assert!(
                    to[..3]
                        .iter()
                        .chain(&to[3 + length..])
                        .all(|&byte| byte == 7)
                );
            }
        }
    }
}
