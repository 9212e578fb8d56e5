//! Memory that the tiles of one application share: copied from and to, and never borrowed
//!
//! It is remote to all of them (CompOSe §4.4, `readSHM` and `writeSHM`). Words are atomics that
//! order nothing, so two tiles that copy the same bytes at once get a mixture, and no more than
//! that. A token that is handed on after a copy tells its reader that the copy is done.
//!
//! A copy is a loop over words and calls nothing but for less than a word at either end. So a
//! preemption interrupts it at any of them: nothing of it has to be left first, however long it is.

use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a word.
const WORD: usize = 8;

/// Shared bytes, zero at first.
pub(crate) struct Memory {
    words: Box<[AtomicU64]>,
    bytes: usize,
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Memory({} bytes)", self.bytes)
    }
}

impl Memory {
    /// `None`: there is no room for so many bytes.
    pub(crate) fn try_new(bytes: usize) -> Option<Memory> {
        let mut words = Vec::new();
        let count = bytes.div_ceil(WORD);
        words.try_reserve_exact(count).ok()?;
        words.resize_with(count, AtomicU64::default);
        Some(Memory {
            words: words.into_boxed_slice(),
            bytes,
        })
    }

    /// The words that hold these bytes, and the offset in the first; `None`: not all are in it.
    fn words_of(&self, at: usize, count: usize) -> Option<(&[AtomicU64], usize)> {
        let end = at.checked_add(count).filter(|end| *end <= self.bytes)?;
        Some((&self.words[at / WORD..end.div_ceil(WORD)], at % WORD))
    }

    /// Copies bytes out, all or none: `false` where they are not all there. O(bytes).
    pub(crate) fn read(&self, at: usize, into: &mut [u8]) -> bool {
        let Some((words, offset)) = self.words_of(at, into.len()) else {
            return false;
        };
        let head = into.len().min((WORD - offset) % WORD);
        let (head, rest) = into.split_at_mut(head);
        let mut words = words.iter();
        if !head.is_empty() {
            let word = words.next().map_or(0, |word| word.load(Ordering::Relaxed));
            let ours = word.to_le_bytes();
            head.copy_from_slice(&ours[offset..offset + head.len()]);
        }
        for (to, word) in rest.chunks_mut(WORD).zip(words) {
            let word = word.load(Ordering::Relaxed).to_le_bytes();
            match <&mut [u8; WORD]>::try_from(&mut *to) {
                Ok(to) => *to = word,
                Err(_) => to.copy_from_slice(&word[..to.len()]),
            }
        }
        true
    }

    /// Copies bytes in, all or none. O(bytes).
    pub(crate) fn write(&self, at: usize, from: &[u8]) -> bool {
        let Some((words, offset)) = self.words_of(at, from.len()) else {
            return false;
        };
        let (head, rest) = from.split_at(from.len().min((WORD - offset) % WORD));
        let mut words = words.iter();
        if !head.is_empty()
            && let Some(word) = words.next()
        {
            change(word, offset, head);
        }
        for (from, word) in rest.chunks(WORD).zip(words) {
            match <&[u8; WORD]>::try_from(from) {
                Ok(from) => word.store(u64::from_le_bytes(*from), Ordering::Relaxed),
                Err(_) => change(word, 0, from),
            }
        }
        true
    }
}

/// Changes some bytes of a word. Another tile may change others of it meanwhile: then it is tried
/// again.
fn change(word: &AtomicU64, offset: usize, bytes: &[u8]) {
    let with = |old: u64| {
        let mut new = old.to_le_bytes();
        new[offset..offset + bytes.len()].copy_from_slice(bytes);
        Some(u64::from_le_bytes(new))
    };
    // It changes always.
    let _ = word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, with);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_where_they_were_put_and_nowhere_else() {
        let memory = Memory::try_new(37).expect("small");
        let mut model = [0_u8; 37];
        let mut next = 0_u8;
        for at in 0..=37 {
            for count in 0..=37 - at {
                let bytes: Vec<u8> = (0..count)
                    .map(|_| {
                        next = next.wrapping_add(7);
                        next
                    })
                    .collect();
                assert!(memory.write(at, &bytes));
                model[at..at + count].copy_from_slice(&bytes);
                let mut all = [0; 37];
                assert!(memory.read(0, &mut all));
                assert_eq!(all, model, "{count} bytes at {at}");
                let mut part = vec![0; count];
                assert!(memory.read(at, &mut part));
                assert_eq!(part, bytes);
            }
        }
    }

    #[test]
    fn what_is_not_all_there_is_not_copied() {
        let memory = Memory::try_new(10).expect("small");
        assert!(
            !memory.write(5, &[1; 6]) && !memory.write(11, &[]) && !memory.write(usize::MAX, &[1])
        );
        let mut into = [9; 11];
        assert!(!memory.read(0, &mut into) && into == [9; 11]);
        assert!(memory.read(10, &mut []) && memory.read(0, &mut into[..10]));
        assert_eq!(into, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]);
        assert!(Memory::try_new(usize::MAX).is_none());
    }

    #[test]
    fn two_tiles_that_write_parts_of_one_word_lose_nothing() {
        let memory = &Memory::try_new(8).expect("small");
        let rounds = if cfg!(miri) { 50 } else { 20_000 };
        std::thread::scope(|scope| {
            for half in [0_usize, 4] {
                scope.spawn(move || {
                    for round in 0_u32..rounds {
                        assert!(memory.write(half, &round.to_le_bytes()));
                        let mut seen = [0; 4];
                        assert!(memory.read(half, &mut seen));
                        assert_eq!(u32::from_le_bytes(seen), round);
                    }
                });
            }
        });
    }
}
