//! The results of a study as a table: sums over rounds, events and constraints.

use std::collections::BTreeMap;

use punctual_model::readable;
use punctual_terminal::table::Table;

use crate::answers::{Row, quantile, real};
use crate::asked::{Asked, Question};
use crate::bsp::{ADMITTED, MODES, REFUSED, SLICES};
use crate::{plans, slots};

/// The table of a study's rows.
pub(crate) fn table(asked: &Asked, rows: &[Row]) -> Table {
    match &asked.question {
        Question::Clocks { .. } => clocks(rows),
        Question::GangAdmission { .. } => admissions(rows),
        Question::Skew { .. } => skews(rows),
        Question::Bsp { .. } => work(rows),
        Question::Slots { .. } => slots::table(rows),
        of => plans::table(of, rows),
    }
}

fn words(ns: u64) -> String {
    readable(ns).to_string()
}

fn of_ps(ps: u64) -> String {
    match ps {
        0 => "-".into(),
        ps if ps < 1_000_000 => format!("{:.3}ns", real(ps) / 1_000.0),
        ps => words(ps / 1_000),
    }
}

/// All rows of one name and circumstance as one, values behind values.
pub(crate) fn joined(rows: &[Row]) -> Vec<Row> {
    let mut places: BTreeMap<(&str, &[u64]), usize> = BTreeMap::new();
    let mut all: Vec<Row> = Vec::new();
    for row in rows {
        let place = *places.entry((&row.name, &row.at)).or_insert(all.len());
        match all.get_mut(place) {
            Some(found) => found.values.extend(&row.values),
            None => all.push(row.clone()),
        }
    }
    all
}

fn clocks(rows: &[Row]) -> Table {
    let mut table = Table::new(&["clocks", ">measured", ">p50", ">p99", ">max"]);
    for row in joined(rows) {
        let mut sorted = row.values;
        sorted.sort_unstable();
        let at = |percent| of_ps(quantile(&sorted, percent).max(1));
        table.row(vec![
            row.name,
            sorted.len().to_string(),
            at(50),
            at(99),
            at(100),
        ]);
    }
    table
}

/// Least, mean and greatest of rounds that have each.
pub(crate) fn extremes(row: &Row) -> (u64, u64, u64) {
    let (rounds, _) = row.values.as_chunks::<3>();
    let least = rounds.iter().map(|of| of[0]).min().unwrap_or(0);
    let sum: u64 = rounds.iter().map(|of| of[1]).sum();
    let greatest = rounds.iter().map(|of| of[2]).max().unwrap_or(0);
    (least, sum / (rounds.len() as u64).max(1), greatest)
}

fn admissions(rows: &[Row]) -> Table {
    let mut table = Table::new(&[
        "step, form, gangs",
        ">members",
        ">least",
        ">mean",
        ">greatest",
    ]);
    for row in joined(rows) {
        let (least, mean, greatest) = extremes(&row);
        let members = row.at(0).to_string();
        let [least, mean, greatest] = [least, mean, greatest].map(words);
        table.row(vec![row.name, members, least, mean, greatest]);
    }
    table
}

/// The skews of a row, sorted, behind the bound.
pub(crate) fn sorted_skews(row: &Row) -> (u64, Vec<u64>) {
    let (bound, skews) = row
        .values
        .split_first()
        .map_or((0, &[][..]), |(b, s)| (*b, s));
    let mut skews = skews.to_vec();
    skews.sort_unstable();
    (bound, skews)
}

fn skews(rows: &[Row]) -> Table {
    let columns = [
        "correction, load",
        ">members",
        ">events",
        ">p50",
        ">p99",
        ">max",
        ">bound",
        ">beyond",
    ];
    let mut table = Table::new(&columns);
    for row in rows {
        let (bound, skews) = sorted_skews(row);
        let beyond = skews
            .iter()
            .filter(|skew| bound > 0 && **skew > bound)
            .count();
        let bound = if bound == 0 { "-".into() } else { words(bound) };
        let at = |percent| words(quantile(&skews, percent));
        table.row(vec![
            row.name.clone(),
            row.at(0).to_string(),
            skews.len().to_string(),
            at(50),
            at(99),
            at(100),
            bound,
            beyond.to_string(),
        ]);
    }
    table
}

/// One mode at one size and grain, over all constraints.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sum {
    /// (period in microseconds, slice in percent, picoseconds of an iteration), where something is
    /// done.
    pub(crate) points: Vec<(u64, u64, u64)>,
    /// Picoseconds of an iteration of aperiodic members.
    pub(crate) free: Option<u64>,
    /// Constraints under which nothing is done.
    pub(crate) nothing: u64,
}

/// By members, grain and mode.
pub(crate) type Sums = BTreeMap<(u64, u64, String), Sum>;

/// The results of `bsp`.
pub(crate) fn of_work(rows: &[Row]) -> Sums {
    let mut sums = Sums::new();
    for row in rows.iter().filter(|row| row.at(1) > 0) {
        let sum = sums
            .entry((row.at(0), row.at(1), row.name.clone()))
            .or_default();
        if row.at(2) == 0 {
            sum.free = row.values.first().copied();
            continue;
        }
        for (slice, ps) in SLICES.iter().zip(&row.values) {
            match ps {
                0 => sum.nothing += 1,
                ps => sum.points.push((row.at(2), *slice, *ps)),
            }
        }
    }
    sums
}

impl Sum {
    /// The largest distance of rate from utilization, in parts of the latter: 0.03 are 3 %. Only
    /// periods of at least so many microseconds count.
    pub(crate) fn deviation(&self, free: u64, from_us: u64) -> Option<f64> {
        let counted = self.points.iter().filter(|(period, ..)| *period >= from_us);
        let of = counted.map(|(_, slice, ps)| {
            let rate = real(free) / real(*ps);
            (rate / (real(*slice) / 100.0) - 1.0).abs()
        });
        of.reduce(f64::max)
    }

    /// Constraints whose rate is within so many hundredths of their utilization.
    pub(crate) fn within(&self, percent: f64) -> Option<usize> {
        let free = real(self.at_full_time()?);
        let is_within = |(_, slice, ps): &&(u64, u64, u64)| {
            let share = free / real(*ps) / (real(*slice) / 100.0);
            (share - 1.0).abs() * 100.0 <= percent
        };
        Some(self.points.iter().filter(is_within).count())
    }

    /// Picoseconds of an iteration at full utilization: of aperiodic members, else the median of
    /// the longest period, over its slices.
    fn at_full_time(&self) -> Option<u64> {
        let longest = self.points.iter().map(|(period, ..)| *period).max();
        let of_longest = self.points.iter().filter(|of| Some(of.0) == longest);
        let mut scaled: Vec<u64> = of_longest.map(|(_, slice, ps)| ps * slice / 100).collect();
        scaled.sort_unstable();
        let median = scaled.get(scaled.len() / 2).copied();
        self.free.or(median).filter(|ps| *ps > 0)
    }
}

fn work(rows: &[Row]) -> Table {
    let sums = of_work(rows);
    let columns = [
        ">members",
        ">grain",
        "mode",
        ">constraints",
        ">aperiodic",
        ">at 90 %",
        ">off, 100us",
        ">off, 1ms",
        ">within 3 %",
        ">10 %",
        ">gain at least",
        ">at most",
    ];
    let mut table = Table::new(&columns);
    for ((members, grain, mode), sum) in &sums {
        let with = sums.get(&(*members, *grain, MODES[0].to_owned()));
        let free = sum.free.or(with.and_then(|with| with.free));
        let best = sum.points.iter().filter(|(_, slice, _)| *slice == 90);
        let best = best.map(|(.., ps)| *ps).min();
        let off = |from| {
            let off = sum.free.and_then(|free| sum.deviation(free, from));
            off.map_or("-".into(), |off| format!("{:.1} %", off * 100.0))
        };
        let within = |percent| {
            let within = sum.within(percent);
            within.map_or("-".into(), |count| count.to_string())
        };
        let gains = with
            .filter(|_| sum.free.is_none() && MODES.contains(&mode.as_str()))
            .map(|with| gains(with, sum));
        let (least, most) = gains.flatten().unzip();
        let gain = |gain: Option<f64>| gain.map_or("-".into(), |g| format!("{:.0} %", g * 100.0));
        table.row(vec![
            members.to_string(),
            grain.to_string(),
            mode.clone(),
            format!(
                "{} of {}",
                sum.points.len(),
                sum.points.len() as u64 + sum.nothing
            ),
            of_ps(free.unwrap_or(0)),
            of_ps(best.unwrap_or(0)),
            off(100),
            off(1_000),
            within(3.0),
            within(10.0),
            gain(least),
            gain(most),
        ]);
    }
    let of_analysis = rows.iter().filter(|row| row.name == ADMITTED);
    let of_analysis = of_analysis.flat_map(|row| &row.values);
    let refused = of_analysis.filter(|value| **value == 0).count() as u64;
    // Of rivals, with the kernel's reason.
    let all = [("constraints refused", refused)];
    for (why, count) in all.into_iter().chain(refusals(rows)) {
        let (nothing, count) = (String::new, count.to_string());
        table.row(vec![nothing(), nothing(), why.into(), count]);
    }
    table
}

/// Constraints that the kernel refused to hold a rival to, by its reason.
fn refusals(rows: &[Row]) -> BTreeMap<&str, u64> {
    let mut all = BTreeMap::new();
    for row in rows.iter().filter(|row| row.name.contains(REFUSED)) {
        *all.entry(row.name.as_str()).or_insert(0) += row.values.iter().sum::<u64>();
    }
    all
}

/// How much faster one is than the other under the same constraint, least and most: 0.2 are 20 %.
pub(crate) fn gains(with: &Sum, without: &Sum) -> Option<(f64, f64)> {
    let times: BTreeMap<(u64, u64), u64> = with
        .points
        .iter()
        .map(|(period, slice, ps)| ((*period, *slice), *ps))
        .collect();
    let gain = |(period, slice, ps): &(u64, u64, u64)| {
        Some(real(*times.get(&(*period, *slice))?) / real(*ps) - 1.0)
    };
    let gains: Vec<f64> = without.points.iter().filter_map(gain).collect();
    let least = gains.iter().copied().reduce(f64::min)?;
    Some((least, gains.iter().copied().reduce(f64::max)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_within_some_hundredths_of_its_utilization_is_counted() {
        let mut sum = Sum {
            points: vec![(100, 50, 2_400), (1_000, 50, 2_000), (1_000, 90, 1_150)],
            ..Sum::default()
        };
        // Without aperiodic members: 2,000 at a half, 1,150 at nine tenths are 1,000 and 1,035.
        assert_eq!(sum.at_full_time(), Some(1_035));
        sum.free = Some(1_000);
        let within = [1.0, 4.0, 10.0, 20.0].map(|percent| sum.within(percent));
        assert_eq!(within, [Some(1), Some(2), Some(2), Some(3)]);
        assert_eq!(Sum::default().within(3.0), None);
    }
}
