//! Mutated files: a pure function of a seed and of the files that are mutated.

use std::ops::Range;

/// Numbers that readers may stumble over.
const NUMBERS: [&str; 14] = [
    "0",
    "1",
    "2",
    "255",
    "65536",
    "1048576",
    "2147483648",
    "4294967295",
    "36028797018963968",
    "9223372036854775807",
    "18446744073709551615",
    "99999999999999999999",
    "-1",
    "1e400",
];

/// Most bytes of a mutated file.
const MAX_BYTES: usize = 64 << 10;

/// The file of a seed, and the number of the file that it was made of.
pub(super) fn mutated(seed: u64, corpus: &[Vec<u8>]) -> (Vec<u8>, usize) {
    let mut random = Random(seed);
    let from = random.below(corpus.len());
    let mut bytes = corpus[from].clone();
    for _ in 0..[1, 1, 1, 2, 4][random.below(5)] {
        mutate(&mut bytes, &mut random, corpus);
        bytes.truncate(MAX_BYTES);
    }
    (bytes, from)
}

fn mutate(bytes: &mut Vec<u8>, random: &mut Random, corpus: &[Vec<u8>]) {
    if bytes.is_empty() {
        return;
    }
    let (at, other) = (random.below(bytes.len()), random.below(bytes.len()));
    match random.below(16) {
        0 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = random.next().to_le_bytes()[0];
            }
        }
        1 => bytes.truncate(at),
        2 => drop(bytes.drain(at..(at + random.below(40)).min(bytes.len()))),
        3 => {
            let copied = line(bytes, at);
            insert_line(bytes, other, copied);
        }
        4 => {
            let foreign = &corpus[random.below(corpus.len())];
            let copied = line(foreign, random.below(foreign.len()));
            insert_line(bytes, at, copied);
        }
        5 => drop(bytes.drain(line_range(bytes, at))),
        6 | 7 => {
            let copied = bytes[token(bytes, other)].to_vec();
            drop(bytes.splice(token(bytes, at), copied));
        }
        _ => renumber(bytes, at, random),
    }
}

/// Changes the first number behind `at`: by one, or to one of [`NUMBERS`].
fn renumber(bytes: &mut Vec<u8>, at: usize, random: &mut Random) {
    let Some(from) = bytes.iter().skip(at).position(u8::is_ascii_digit) else {
        return;
    };
    let from = at + from;
    let digits = bytes[from..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit());
    let digits = from..from + digits.count();
    let old = std::str::from_utf8(&bytes[digits.clone()]).ok();
    let old = old.and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    let new = match random.below(4) {
        0 => old.saturating_add(1).to_string(),
        1 => old.saturating_sub(1).to_string(),
        _ => NUMBERS[random.below(NUMBERS.len())].to_owned(),
    };
    drop(bytes.splice(digits, new.into_bytes()));
}

/// The line around `at`, with its end.
fn line(bytes: &[u8], at: usize) -> Vec<u8> {
    let mut copied = bytes[line_range(bytes, at)].to_vec();
    if copied.last() != Some(&b'\n') {
        copied.push(b'\n');
    }
    copied
}

/// Inserts a line before the one around `at`.
fn insert_line(bytes: &mut Vec<u8>, at: usize, line: Vec<u8>) {
    let start = line_range(bytes, at).start;
    drop(bytes.splice(start..start, line));
}

fn line_range(bytes: &[u8], at: usize) -> Range<usize> {
    let range = around(bytes, at, |byte| byte != b'\n');
    range.start..(range.end + 1).min(bytes.len())
}

/// The word or the number around `at`.
fn token(bytes: &[u8], at: usize) -> Range<usize> {
    around(bytes, at, |byte| byte.is_ascii_alphanumeric())
}

fn around(bytes: &[u8], at: usize, inside: impl Fn(u8) -> bool) -> Range<usize> {
    let before = bytes[..at].iter().rev().take_while(|byte| inside(**byte));
    let behind = bytes[at..].iter().take_while(|byte| inside(**byte));
    at - before.count()..at + behind.count()
}

/// Steele, Lea and Flood's SplitMix64 (OOPSLA 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`; 0 when that is 0.
    fn below(&mut self, limit: usize) -> usize {
        let limit = u64::try_from(limit).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.next() % limit).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_depends_on_its_seed_and_differs_from_its_file() {
        let corpus = [b"period = \"10ms\"\nwcet = \"2ms\"\n".to_vec()];
        assert_eq!(mutated(7, &corpus), mutated(7, &corpus));
        let all: std::collections::BTreeSet<_> =
            (0..200).map(|seed| mutated(seed, &corpus).0).collect();
        assert!(all.len() > 60, "{}", all.len());
        assert!((0..200).all(|seed| mutated(seed, &[vec![]]).0.is_empty()));
        assert_eq!(mutated(u64::MAX, &corpus), mutated(u64::MAX, &corpus));
    }

    #[test]
    fn a_line_that_is_doubled_stands_between_lines() {
        for at in 0..9 {
            let mut bytes = b"one\ntwo\nx".to_vec();
            let copied = line(&bytes, 4);
            insert_line(&mut bytes, at, copied);
            let text = String::from_utf8(bytes).unwrap_or_default();
            let mut lines: Vec<&str> = text.lines().collect();
            lines.sort_unstable();
            assert_eq!(lines, ["one", "two", "two", "x"], "at {at}");
        }
    }
}
