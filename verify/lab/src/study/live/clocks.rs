//! How far apart the clocks of two CPUs are, in picoseconds.

use punctual_linux::{allowed_cpus, clock_rate, measure_clock_offset};

use crate::answers::Row;

/// Tries of a measurement that the machine keeps from coming to its end.
const TRIES: usize = 100;

/// A measurement with a larger error, in picoseconds, was interrupted and says nothing.
const LARGEST_ERROR: u64 = 1_000_000;

/// A row for each pair of CPUs: so many differences, and the largest errors that they may have.
pub(super) fn unit(rounds: u64) -> Result<Vec<Row>, String> {
    let cpus = allowed_cpus().map_err(|error| error.to_string())?;
    let mut rows = Vec::new();
    let hertz = clock_rate().frequency.hertz().max(1);
    let ps = |ticks: u64| {
        let ps = u128::from(ticks) * 1_000_000_000_000 / u128::from(hertz);
        u64::try_from(ps).unwrap_or(u64::MAX)
    };
    for (place, first) in cpus.iter().enumerate() {
        for second in &cpus[place + 1..] {
            let (mut apart, mut errors) = (Vec::new(), Vec::new());
            for _ in 0..rounds {
                let offsets = (0..TRIES).filter_map(|_| measure_clock_offset(*first, *second));
                let mut tries = offsets.filter(|offset| ps(offset.error) <= LARGEST_ERROR);
                let offset = tries
                    .next()
                    .ok_or("the CPUs do not answer each other in time")?;
                apart.push(ps(offset.ticks.unsigned_abs()));
                errors.push(ps(offset.error));
            }
            let pair = [u64::from(*first), u64::from(*second)];
            let name = format!("difference of the clocks of CPU {first} and CPU {second}");
            rows.push(Row::new(name, &pair, apart));
            let name = format!("error of that, CPU {first} and CPU {second}");
            rows.push(Row::new(name, &pair, errors));
        }
    }
    match rows.is_empty() {
        true => Err("this process may use one CPU only".into()),
        false => Ok(rows),
    }
}
