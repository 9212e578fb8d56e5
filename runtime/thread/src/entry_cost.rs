//! The costs of a machine: an entry of the scheduler, and the share of other programs.

use core::convert::Infallible;
use std::sync::{Mutex, PoisonError};

use punctual_linux::{Mode, Overheads, RunError, RunOptions, measure_entry, share_of_others};
use punctual_model::{Machine, Ns, Span, Work};

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

/// The terms of a machine that was measured. Threads come and go: guaranteed work may come to take
/// all of a second, so what the rest of the machine gets of it is reserved from the start.
pub(crate) fn with_share_of_others(overheads: &Overheads) -> Machine {
    let mut machine = overheads.machine();
    if overheads.mode == Mode::RealTime {
        let all = |window: Span<Ns>| Ok::<_, Infallible>(window.as_work());
        let Ok(reserve) = share_of_others(&machine, all);
        machine.reserves.extend(reserve);
    }
    machine
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
