//! `skew`: how far apart the members of a gang start (Nautilus, Fig. 11 and 12).
//!
//! Three gangs with the same constraint. *none*: each member's first arrival is when the final
//! barrier let it go. *paper*: the i-th of n that it let go waits (n − i) Δ longer, where Δ is what
//! was measured between two of them in another admission. *ours*: all have agreed on one instant.

use punctual_model::{Class, Span, Work};

use crate::answers::Row;
use crate::costs::Costs;
use crate::gang::Form;
use crate::gang_admission::{Times, admit};
use crate::windows::{Stretches, bound, gang, simulate, with_neighbours};

/// Members of the study when nobody says otherwise.
pub(crate) const MEMBERS: [u64; 8] = [2, 4, 8, 16, 32, 64, 128, 255];

pub(crate) const CORRECTIONS: [&str; 3] = ["none", "paper", "ours"];
pub(crate) const LOADS: [&str; 2] = ["alone", "beside a neighbour"];
/// Behind the name of a row, which has then only events before which no CPU was away.
pub(crate) const SPARED: &str = ": without events with missing time";

/// The constraint of the members.
const PERIOD: u64 = 1_000_000;
const WORK: u64 = 200_000;

/// All first arrivals are so late that timers release them, as all later ones.
pub(crate) const FIRST: u64 = 100_000;

/// First arrivals, in nanoseconds, from when and in which order members were let go.
fn arrivals(times: &[Times], correction: usize, delta_ps: u64) -> Vec<u64> {
    let members = times.len() as u64;
    let released = times.iter().map(|times| times.released.get());
    let first = released.clone().min().unwrap_or(0);
    let of = |(times, at): (&Times, u64)| {
        let waits = members - times.order.get() as u64;
        match correction {
            0 => at - first,
            1 => at - first + waits * delta_ps,
            _ => 0,
        }
    };
    let arrivals = times.iter().zip(released).map(of);
    arrivals.map(|ps| FIRST + ps / 1_000).collect()
}

/// The mean distance of two members that a final barrier lets go, in picoseconds.
fn delta(times: &[Times]) -> u64 {
    let released = times.iter().map(|times| times.released.get());
    let (first, last) = (released.clone().min(), released.max());
    let spread = first.zip(last).map_or(0, |(first, last)| last - first);
    spread / (times.len() as u64).saturating_sub(1).max(1)
}

/// For each job that all members have started: the greatest difference of their starts.
pub(crate) fn skews(stretches: &Stretches, events: u64) -> Vec<u64> {
    let mut starts: Vec<(i64, i64, usize)> = Vec::new();
    for member in stretches {
        let mut last = None;
        for (job, start, _) in member {
            if last.replace(*job) == Some(*job) {
                continue;
            }
            let at = usize::try_from(*job).unwrap_or(usize::MAX);
            if at < usize::try_from(events).unwrap_or(0) {
                if starts.len() <= at {
                    starts.resize(at + 1, (i64::MAX, i64::MIN, 0));
                }
                let (low, high, count) = &mut starts[at];
                (*low, *high, *count) = ((*low).min(*start), (*high).max(*start), *count + 1);
            }
        }
    }
    let whole = starts
        .iter()
        .filter(|(.., count)| *count == stretches.len());
    whole.map(|(low, high, _)| high.abs_diff(*low)).collect()
}

/// A row for each correction and load: the bound, then the skew at each event, in nanoseconds. A
/// bound of 0 is none.
pub(crate) fn unit(
    costs: &Costs,
    members: u64,
    events: u64,
    seed: u64,
) -> Result<Vec<Row>, String> {
    let count = usize::try_from(members).unwrap_or(usize::MAX);
    let class = Class::Periodic {
        period: Span::from_ns(PERIOD),
        wcet: Work::from_ns(WORK),
        relative_deadline: Span::from_ns(PERIOD),
    };
    // The paper's scheme is linear; what it measures comes from another admission.
    let linear = (Form::Linear, 0);
    let delta = delta(&admit(costs, count, linear, seed + 1_000)?);
    let times = admit(costs, count, linear, seed)?;
    let mut rows = Vec::new();
    for (load, load_name) in LOADS.iter().enumerate() {
        let system = gang(costs, count, class);
        let system = if load == 0 {
            system
        } else {
            with_neighbours(system)
        };
        let in_step = bound(&system)?;
        for (correction, name) in CORRECTIONS.iter().enumerate() {
            let arrivals = arrivals(&times, correction, delta);
            let mut system = system.clone();
            for (task, phase) in system.tasks.iter_mut().zip(&arrivals) {
                task.phase = Span::from_ns(*phase);
            }
            let least = arrivals.iter().min().copied().unwrap_or(0);
            let apart = arrivals.iter().max().map_or(0, |most| most - least);
            let duration = PERIOD * (events + 1) + least + apart;
            let stretches = simulate(&system, costs, duration, seed)?;
            let mut values = vec![in_step.map_or(0, |bound| bound + apart)];
            values.extend(skews(&stretches, events));
            rows.push(Row::new(format!("{name}, {load_name}"), &[members], values));
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answers::quantile;
    use crate::costs::sample;

    #[test]
    fn ours_is_in_step_the_paper_s_nearly_and_without_correction_the_bias_grows_with_the_members() {
        let rows = |members| unit(&sample(), members, 30, 1).expect("skews");
        let (few, many) = (rows(4), rows(64));
        for row in few.iter().chain(&many) {
            assert_eq!(row.values.len(), 31, "{row:?}");
            let (bound, seen) = (row.values[0], row.values[1..].iter().max());
            assert!(bound > 0 && seen <= Some(&bound), "{row:?}");
        }
        let median = |rows: &[Row], name: &str| {
            let row = rows.iter().find(|row| row.name == name).expect("a row");
            let mut skews = row.values[1..].to_vec();
            skews.sort_unstable();
            quantile(&skews, 50)
        };
        assert!(median(&many, "none, alone") > 3 * median(&few, "none, alone"));
        assert!(median(&many, "paper, alone") < median(&many, "none, alone"));
        // Lateness of timers is most of both.
        let (ours, paper) = (median(&many, "ours, alone"), median(&many, "paper, alone"));
        assert!(ours * 100 <= paper * 105, "{ours} {paper}");
        assert!(median(&many, "ours, alone") <= sample().late_ns + sample().clock_error_ns);
    }

    #[test]
    fn only_jobs_that_all_members_have_started_have_a_skew() {
        let of =
            |starts: &[(u64, i64)]| starts.iter().map(|(job, at)| (*job, *at, at + 5)).collect();
        let members = vec![of(&[(0, 10), (0, 30), (1, 110)]), of(&[(0, 17), (2, 210)])];
        assert_eq!(skews(&members, 10), [7]);
    }
}
