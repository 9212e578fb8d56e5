//! The cost of an entry of the scheduler, for runs that measure nothing else.

use std::sync::{Mutex, PoisonError};

use punctual_linux::{RunError, RunOptions, measure_entry};
use punctual_model::{Ns, Work};

/// No budget of so much is refused for the costs of entries: an entry takes some microseconds, so
/// one that seems to take more was measured while the machine was busy with something else.
const MOST_FLOOR_NS: u64 = 200_000;

/// The cost of an entry on a host CPU, in real time or not.
type Measured = ((u32, bool), u64);

/// The cost of an entry on a host CPU, measured once in this process; `None`: it is not known, and
/// the next run tries again.
pub(crate) fn entry_ns(host: u32, options: &RunOptions) -> Result<Option<u64>, RunError> {
    static MEASURED: Mutex<Vec<Measured>> = Mutex::new(Vec::new());
    let measured = || MEASURED.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (host, options.real_time);
    let known = measured().iter().find(|(of, _)| *of == key).copied();
    if let Some((_, entry)) = known {
        return Ok(Some(entry));
    }
    let entry = measure_entry(host, options)?;
    measured().extend(entry.map(|entry| (key, entry)));
    Ok(entry)
}

/// The least budget with which a thread gets anywhere: two entries. Nothing where none is known.
pub(crate) fn floor_of(entry: Option<u64>) -> Work<Ns> {
    let two = entry.unwrap_or_default().saturating_mul(2);
    Work::from_ns(two.min(MOST_FLOOR_NS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_floor_is_two_entries_and_not_what_a_busy_machine_took() {
        assert_eq!(floor_of(None), Work::ZERO);
        assert_eq!(floor_of(Some(4_000)), Work::from_us(8));
        assert_eq!(floor_of(Some(3_000_000)), Work::from_us(200));
        assert_eq!(floor_of(Some(u64::MAX)), Work::from_us(200));
    }
}
