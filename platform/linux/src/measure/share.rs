//! The part of each second that guaranteed work must leave to the rest of the system
//!
//! As admission sees it; `entry::give_back` is where a run does it.

use punctual_model::{Machine, Ns, Reserve, Span, Work};

use crate::entry::give_back::{ONE_IN, SLICE_NS};
use crate::record::input::SHARE_OF_OTHERS;
use crate::record::limits::WAKE_MARGIN_NS;

/// What a CPU sleeps in any window of [`WINDOW_NS`]. The kernel takes 50 ms by force of a second in
/// which it did not get them, and stops the class for as long after 950 ms.
const SHARE_NS: u64 = WINDOW_NS / ONE_IN;
const WINDOW_NS: u64 = 1_000_000_000;
/// The length of a slice.
pub const SLICE: Work<Ns> = Work::from_ns(SLICE_NS);
/// What a CPU sleeps in one.
const SLEEP_NS: u64 = SLICE_NS - WAKE_MARGIN_NS;

/// The slices that a run gives out of the time of guaranteed work, by what that may take of such a
/// window of time at most ([`GiveBack::Slices`](crate::GiveBack) with this period). `None`: it
/// leaves enough. A slice costs a switch away and back, and its end is as late as a preemption.
///
/// # Errors
/// Those of `busiest`.
pub fn share_of_others<E>(
    machine: &Machine,
    busiest: impl FnOnce(Span<Ns>) -> Result<Work<Ns>, E>,
) -> Result<Option<Reserve>, E> {
    let busiest = busiest(Span::from_ns(WINDOW_NS))?;
    let left = WINDOW_NS.saturating_sub(busiest.as_ns());
    let lacking = SHARE_NS.saturating_sub(left);
    if lacking == 0 {
        return Ok(None);
    }
    let slices = lacking.div_ceil(SLEEP_NS);
    let period = WINDOW_NS / slices;
    let around = machine.switch.saturating_add(machine.switch);
    let budget = Work::from_ns(SLICE_NS)
        .saturating_add(around)
        .saturating_add(machine.preemption);
    Ok(Some(Reserve {
        name: SHARE_OF_OTHERS.to_owned(),
        // Where more was measured than there is, nothing fits beside it: that is a refusal.
        budget: budget.min(Work::from_ns(period)),
        period: Span::from_ns(period),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_make_up_for_what_the_load_does_not_leave() {
        let machine = Machine {
            switch: Work::from_us(1),
            preemption: Work::from_us(10),
            ..Machine::default()
        };
        let of = |busiest_ms| {
            let busiest = |_| Ok::<_, ()>(Work::from_ms(busiest_ms));
            let reserve = share_of_others(&machine, busiest).expect("it is known")?;
            Some((reserve.budget.as_ns(), reserve.period.as_ns()))
        };
        assert_eq!([0, 850, 937].map(of), [None; 3]);
        // 12.5 ms are lacking: 24 sleeps of 540 us.
        assert_eq!(of(950), Some((612_000, 41_666_666)));
        assert_eq!(of(1_000), Some((612_000, 8_620_689)));
        assert_eq!(of(5_000), of(1_000));
    }
}
