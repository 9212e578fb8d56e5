//! Calls of FIFOs as words, which others read meanwhile

use punctual_firing::Call;

/// A call of a FIFO in one word, which is not 0.
pub(crate) fn word_of(call: Call, goes_on: bool) -> u64 {
    let (writes, fifo, count) = match call {
        Call::Read(fifo, count) => (0, fifo, count),
        Call::Write(fifo, count) => (1, fifo, count),
    };
    let fifo = u64::from(fifo) & ((1 << 29) - 1);
    1 << 63 | writes << 62 | u64::from(goes_on) << 61 | fifo << 32 | u64::from(count)
}

pub(crate) fn call_of(word: u64) -> Option<(Call, bool)> {
    let fifo = u32::try_from((word >> 32) & ((1 << 29) - 1)).ok()?;
    let count = u32::try_from(word & u64::from(u32::MAX)).ok()?;
    let call = match word >> 62 & 1 {
        0 => Call::Read(fifo, count),
        _ => Call::Write(fifo, count),
    };
    (word >> 63 == 1).then_some((call, word >> 61 & 1 == 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_the_same_after_it_has_been_a_word() {
        for call in [
            Call::Read(0, 0),
            Call::Write(7, u32::MAX),
            Call::Read((1 << 29) - 1, 3),
        ] {
            for goes_on in [false, true] {
                assert_eq!(call_of(word_of(call, goes_on)), Some((call, goes_on)));
            }
        }
        assert_eq!(call_of(0), None);
    }
}
