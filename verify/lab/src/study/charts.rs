//! The results of a study as drawings, which say whether they are of virtual time or of Linux.

use punctual_lab::svg::{Axis, Chart, Mark, Series};

use crate::answers::{Row, World, quantile, real};
use crate::asked::{Asked, Question};
use crate::bsp::{HELD, MODES};
use crate::gang_admission::{FORMS, GANGS, STEPS};
use crate::skew::{CORRECTIONS, LOADS, SPARED};
use crate::sums::{Sum, extremes, joined, of_work, sorted_skews};
use crate::{plans, slots};

/// The drawings of a study's rows.
pub(crate) fn of(asked: &Asked, rows: &[Row]) -> Vec<Chart> {
    let mut charts = match &asked.question {
        Question::Clocks { .. } => clocks(rows),
        Question::GangAdmission { members, .. } => admissions(&joined(rows), members),
        Question::Skew { members, .. } => skews(rows, members, asked.world),
        Question::Bsp { .. } => work(rows),
        Question::Slots { .. } => return slots::charts(rows),
        of => return plans::charts(of, rows),
    };
    let machine = &asked.costs.machine;
    let world = match asked.world {
        World::Sim => format!("Virtual time, with prices of: {machine}"),
        World::Linux => format!("Linux: {machine}"),
    };
    for chart in &mut charts {
        chart.notes.insert(0, world.clone());
    }
    charts
}

fn series(name: impl Into<String>, mark: Mark, style: usize, points: Vec<(f64, f64)>) -> Series {
    Series {
        name: name.into(),
        mark,
        style,
        points,
    }
}

/// How often each difference was seen.
fn clocks(rows: &[Row]) -> Vec<Chart> {
    let of = |row: Row| {
        let mut sorted = row.values;
        sorted.sort_unstable();
        // Those above the last hundredth would press all others together.
        let most = quantile(&sorted, 99).max(1);
        let width = most.div_ceil(50);
        let mut counts = vec![0_u64; usize::try_from(most / width).unwrap_or(0) + 1];
        for value in sorted.iter().filter(|value| **value <= most) {
            counts[usize::try_from(value / width).unwrap_or(0)] += 1;
        }
        let bars = (0_u32..).zip(&counts).map(|(bar, count)| {
            let middle = (f64::from(bar) + 0.5) * real(width) / 1_000.0;
            (middle, real(*count))
        });
        let beyond = sorted.iter().filter(|value| **value > most).count();
        Chart {
            title: format!("{} (as Nautilus, Fig. 3)", row.name),
            notes: vec![format!(
                "{} measurements; {beyond} above the last hundredth, the largest {:.0} ns, are not drawn",
                sorted.len(),
                real(sorted.last().copied().unwrap_or(0)) / 1_000.0
            )],
            x: Axis::linear("nanoseconds"),
            y: Axis::linear("measurements"),
            series: vec![series("", Mark::Bars, 0, bars.collect())],
        }
    };
    joined(rows).into_iter().map(of).collect()
}

fn sizes(members: &[u64]) -> Vec<f64> {
    members.iter().map(|members| real(*members)).collect()
}

/// The values of rows of one name over members.
fn over_members(rows: &[Row], name: &str, value: impl Fn(&Row) -> f64) -> Vec<(f64, f64)> {
    let named = rows.iter().filter(|row| row.name == name);
    named.map(|row| (real(row.at(0)), value(row))).collect()
}

fn admissions(rows: &[Row], members: &[u64]) -> Vec<Chart> {
    let us = |ns: u64| (real(ns) / 1_000.0).max(0.001);
    let one = |step: &str| {
        let mut all = Vec::new();
        for (style, (_, form)) in FORMS.iter().enumerate() {
            let name = format!("{step}, {form}, {}", GANGS[0]);
            let points = |value: fn((u64, u64, u64)) -> u64| {
                over_members(rows, &name, |row| us(value(extremes(row))))
            };
            all.push(series(
                format!("{form}, mean"),
                Mark::Line,
                style,
                points(|all| all.1),
            ));
            all.push(series(
                format!("{form}, least and greatest"),
                Mark::Thin,
                style,
                points(|all| all.0),
            ));
            all.push(series("", Mark::Thin, style, points(|all| all.2)));
        }
        all.retain(|series| !series.points.is_empty());
        Chart {
            title: format!("Admission of a gang: {step} (as Nautilus, Fig. 10)"),
            notes: Vec::new(),
            x: Axis::log("members").at(&sizes(members)),
            y: Axis::log("microseconds"),
            series: all,
        }
    };
    let mut charts: Vec<Chart> = STEPS.iter().map(|step| one(step)).collect();
    let mut all = Vec::new();
    for (_, form) in FORMS {
        for gangs in &GANGS[1..] {
            let greatest = |gangs: &str| {
                let name = format!("{}, {form}, {gangs}", STEPS[5]);
                over_members(rows, &name, |row| us(extremes(row).2))
            };
            let (two, alone) = (greatest(gangs), greatest(GANGS[0]));
            let ratios = two
                .iter()
                .zip(&alone)
                .map(|((x, two), (_, one))| (*x, two / one));
            all.push(series(
                format!("{form}: {gangs}"),
                Mark::Line,
                all.len(),
                ratios.collect(),
            ));
        }
    }
    if all.iter().any(|series| !series.points.is_empty()) {
        charts.push(Chart {
            title: "Two gangs admitted at once".into(),
            notes: Vec::new(),
            x: Axis::log("members of each").at(&sizes(members)),
            y: Axis::linear("greatest time, in times of one gang"),
            series: all,
        });
    }
    charts
}

fn skews(rows: &[Row], members: &[u64], world: World) -> Vec<Chart> {
    let us = |ns: u64| (real(ns) / 1_000.0).max(0.001);
    let mut charts = Vec::new();
    // The paper's figure has eight members.
    let size = members.iter().copied().filter(|size| *size <= 8).max();
    let size = size.or(members.first().copied()).unwrap_or(0);
    for load in LOADS {
        let of = |(style, correction): (usize, &&str)| {
            // On Linux events with missing time are apart, and only the others are drawn.
            let [all, spared] = ["", SPARED].map(|more| format!("{correction}, {load}{more}"));
            let named = |name: &str| {
                let mut of_size = rows.iter().filter(|row| row.at(0) == size);
                of_size.find(|row| row.name == name)
            };
            let found = named(&spared).or(named(&all));
            let skews = found.map_or(&[][..], |row| row.values.get(1..).unwrap_or(&[]));
            let points = (0_u32..)
                .zip(skews)
                .map(|(event, skew)| (f64::from(event), us(*skew)));
            series(*correction, Mark::Points, style, points.collect())
        };
        charts.push(Chart {
            title: format!("Difference of starts by event, {size} members, {load} (as Fig. 11)"),
            notes: vec!["A dot is the largest difference of starts at one event.".into()],
            x: Axis::linear("event"),
            y: match world {
                World::Sim => Axis::linear("microseconds"),
                World::Linux => Axis::log("microseconds, without events with missing time"),
            },
            series: CORRECTIONS.iter().enumerate().map(of).collect(),
        });
    }
    for load in LOADS.iter().filter(|_| members.len() > 1) {
        let mut all = Vec::new();
        for (style, correction) in CORRECTIONS.iter().enumerate() {
            let name = format!("{correction}, {load}");
            let points = |percent| {
                let value = move |row: &Row| us(quantile(&sorted_skews(row).1, percent)).max(0.001);
                over_members(rows, &name, value)
            };
            all.push(series(
                format!("{correction}: p50"),
                Mark::Line,
                style,
                points(50),
            ));
            all.push(series(
                format!("{correction}: least and greatest"),
                Mark::Thin,
                style,
                points(0),
            ));
            all.push(series("", Mark::Thin, style, points(100)));
        }
        let name = format!("{}, {load}", CORRECTIONS[2]);
        let bound = over_members(rows, &name, |row| us(sorted_skews(row).0));
        let bound: Vec<(f64, f64)> = bound.into_iter().filter(|(_, us)| *us > 0.0).collect();
        all.push(series("ours: bound of the verdict", Mark::Line, 4, bound));
        charts.push(Chart {
            title: format!("Difference of starts by members, {load} (as Fig. 12)"),
            notes: Vec::new(),
            x: Axis::log("members").at(&sizes(members)),
            y: Axis::log("microseconds"),
            series: all,
        });
    }
    charts
}

fn work(rows: &[Row]) -> Vec<Chart> {
    let sums = of_work(rows);
    let members = sums.keys().map(|(members, ..)| *members).max().unwrap_or(0);
    let grains = || sums.keys().filter(|key| key.0 == members).map(|key| key.1);
    let mut ends: Vec<u64> = grains().max().into_iter().chain(grains().min()).collect();
    ends.dedup();
    let sum = |grain: u64, mode: usize| sums.get(&(members, grain, MODES[mode].to_owned()));
    let mut charts = Vec::new();
    for (figure, grain) in [13, 14].into_iter().zip(&ends) {
        let Some(with) = sum(*grain, 0) else { continue };
        charts.push(rate(with, (figure, members, *grain)));
    }
    for (figure, grain) in [15, 16].into_iter().zip(&ends) {
        let Some(with) = sum(*grain, 0) else { continue };
        let others = (2..MODES.len()).filter_map(|mode| Some((mode, sum(*grain, mode)?)));
        charts.push(benefit(with, others, (figure, members, *grain)));
    }
    for grain in &ends {
        let named = |name: &str| sums.get(&(members, *grain, name.to_owned()));
        charts.extend(held(named, (members, *grain)));
    }
    charts
}

/// How much of its own rate at full utilization each has, with barriers: Punctual, and plain
/// threads that the kernel holds to the same. `None`: there are no such threads.
fn held<'a>(
    named: impl Fn(&str) -> Option<&'a Sum>,
    (members, grain): (u64, u64),
) -> Option<Chart> {
    named(HELD[0])?;
    let mut all = Vec::new();
    for (style, name) in [MODES[0], HELD[0], HELD[2]].into_iter().enumerate() {
        let Some(sum) = named(name) else { continue };
        let free = real(sum.free?);
        let points = sum.points.iter();
        let points = points.map(|(_, slice, ps)| (real(*slice), 100.0 * free / real(*ps)));
        all.push(series(name, Mark::Points, style, points.collect()));
    }
    let line = vec![(0.0, 0.0), (100.0, 100.0)];
    all.push(series("proportional", Mark::Thin, 4, line));
    Some(Chart {
        title: format!(
            "Throttled with barriers, {members} members, grain {grain} (beside Fig. 13, 14)"
        ),
        notes: vec![
            "A point on the line has its share. Members that seldom execute together are below it."
                .into(),
        ],
        x: Axis::linear("slice in percent of the period").at(&[0.0, 20.0, 40.0, 60.0, 80.0, 100.0]),
        y: Axis::linear("percent of the rate of aperiodic members"),
        series: all,
    })
}

fn rate(with: &Sum, (figure, members, grain): (u32, u64, u64)) -> Chart {
    let per_second = |ps: u64| 1e12 / real(ps.max(1));
    let (long, short): (Vec<_>, Vec<_>) = with
        .points
        .iter()
        .partition(|(period, ..)| *period >= 1_000);
    let points = |points: Vec<&(u64, u64, u64)>| {
        points
            .into_iter()
            .map(|(_, slice, ps)| (real(*slice), per_second(*ps)))
            .collect()
    };
    let mut all = vec![
        series("periods below 1 ms", Mark::Points, 1, points(short)),
        series("periods from 1 ms on", Mark::Points, 0, points(long)),
    ];
    if let Some(free) = with.free.map(per_second) {
        let line = vec![(0.0, 0.0), (100.0, free)];
        all.push(series("aperiodic", Mark::Points, 4, vec![(100.0, free)]));
        all.push(series("proportional", Mark::Thin, 4, line));
    }
    Chart {
        title: format!("Rate with barriers, {members} members, grain {grain} (as Fig. {figure})"),
        notes: Vec::new(),
        x: Axis::linear("slice in percent of the period").at(&[0.0, 20.0, 40.0, 60.0, 80.0, 100.0]),
        y: Axis::linear("iterations per second"),
        series: all,
    }
}

fn benefit<'a>(
    with: &Sum,
    others: impl Iterator<Item = (usize, &'a Sum)>,
    (figure, members, grain): (u32, u64, u64),
) -> Chart {
    let us = |ps: u64| (real(ps) / 1e6).max(1e-6);
    let mut all = Vec::new();
    for (mode, without) in others {
        let mut points = Vec::new();
        for (period, slice, ps) in &without.points {
            let same = with
                .points
                .iter()
                .find(|of| (of.0, of.1) == (*period, *slice));
            points.extend(same.map(|of| (us(*ps), us(of.2))));
        }
        all.push(series(MODES[mode], Mark::Points, mode - 2, points));
    }
    let times = all
        .iter()
        .flat_map(|series| series.points.iter().flat_map(|(x, y)| [*x, *y]));
    let (low, high) = times.fold((f64::INFINITY, 0.0), |(low, high), time| {
        (f64::min(low, time), f64::max(high, time))
    });
    if low < high {
        all.push(series(
            "equal",
            Mark::Thin,
            4,
            vec![(low, low), (high, high)],
        ));
    }
    if let Some(free) = with.free.map(us) {
        all.push(series(
            "aperiodic, with barriers",
            Mark::Points,
            4,
            vec![(free, free)],
        ));
    }
    Chart {
        title: format!("Without barriers, {members} members, grain {grain} (as Fig. {figure})"),
        notes: vec!["A constraint above the line is faster without barriers.".into()],
        x: Axis::log("microseconds of an iteration without barriers"),
        y: Axis::log("microseconds of an iteration with barriers"),
        series: all,
    }
}
