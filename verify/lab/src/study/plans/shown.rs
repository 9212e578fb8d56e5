//! The studies of plans as tables and drawings.

use punctual_lab::svg::{Axis, Chart, Mark, Series};
use punctual_terminal::table::Table;

use super::interval;
use super::success::{Column, SETTINGS, columns};
use super::{homes, switches};
use crate::answers::{Row, real};
use crate::asked::Question;

/// Of each run one of its four numbers as a share of another, in percent. Runs of none are left
/// out.
pub(super) fn shares(row: &Row, (part, whole): (usize, usize)) -> Vec<f64> {
    let (runs, _) = row.values.as_chunks::<4>();
    let share = |run: &[u64; 4]| 100.0 * real(run[part]) / real(run[whole]);
    runs.iter()
        .filter(|run| run[whole] > 0)
        .map(share)
        .collect()
}

fn found<'a>(rows: &'a [Row], name: &str, at: &[u64]) -> Option<&'a Row> {
    rows.iter().find(|row| row.name == name && row.at == at)
}

/// The table of a study of plans.
pub(crate) fn table(question: &Question, rows: &[Row]) -> Table {
    match question {
        Question::PlanSwitches { .. } => runs(rows, &switches::NAMES, "fast switches"),
        Question::PlanHomes { .. } => runs(rows, &homes::NAMES, "accepted"),
        Question::PlanTimes { .. } => times(rows),
        _ => success(rows),
    }
}

/// Ours and the prototype's share of a search in each setting, in percent.
fn success(rows: &[Row]) -> Table {
    let mut head = vec!["search".to_owned()];
    for (used, laxity) in SETTINGS {
        head.push(format!(">.{}, .{:02}", used / 100, laxity / 10));
        head.push(">prototype".into());
    }
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let mut table = Table::new(&head);
    for Column {
        name, prototype, ..
    } in columns()
    {
        let mut cells = vec![name.to_owned()];
        for (number, (used, laxity)) in SETTINGS.into_iter().enumerate() {
            let row = found(rows, name, &[used, laxity]);
            cells.push(row.map_or("-".into(), |row| format!("{:.1}", success_of(row))));
            cells.push(prototype.map_or("-".into(), |shares| shares[number].to_string()));
        }
        table.row(cells);
    }
    table
}

fn success_of(row: &Row) -> f64 {
    match row.values[..] {
        [planned, sets, ..] => 100.0 * real(planned) / real(sets.max(1)),
        _ => 0.0,
    }
}

/// A row per circumstance: the share of each kind with its interval, and the gain run by run.
fn runs(rows: &[Row], names: &[&str; 2], what: &str) -> Table {
    let [first, second] = names.map(|name| format!(">{what}, {name}"));
    let mut table = Table::new(&[
        "at", ">runs", ">groups", &first, &second, ">gain", ">refused",
    ]);
    for one in rows.iter().filter(|row| row.name == names[0]) {
        let Some(other) = found(rows, names[1], &one.at) else {
            continue;
        };
        let [before, after] = [one, other].map(|row| shares(row, (0, 1)));
        let gains: Vec<f64> = after.iter().zip(&before).map(|(a, b)| a - b).collect();
        let words = |values: &[f64]| {
            let (mean, half) = interval(values);
            format!("{mean:.1} ± {half:.1}")
        };
        // Requests are the last number of a run of switches, and the second one of homes.
        let last = if names == &switches::NAMES {
            (2, 3)
        } else {
            (0, 1)
        };
        let sum = |row: &Row, of: usize| row.values.iter().skip(of).step_by(4).sum::<u64>();
        let refused = [one, other].map(|row| sum(row, last.1) - sum(row, last.0));
        let count = one.values.len() / 4;
        table.row(vec![
            one.at
                .iter()
                .map(u64::to_string)
                .collect::<Vec<_>>()
                .join(", "),
            count.to_string(),
            format!("{:.1}", real(sum(one, last.1)) / real(count as u64)),
            words(&before),
            words(&after),
            words(&gains),
            format!("{}, {}", refused[0], refused[1]),
        ]);
    }
    table
}

/// Of a row of answers: the longest, in nanoseconds.
fn greatest(row: &Row) -> u64 {
    let (answers, _) = row.values.as_chunks::<4>();
    answers.iter().map(|answer| answer[3]).max().unwrap_or(0)
}

fn times(rows: &[Row]) -> Table {
    let mut table = Table::new(&[
        ">allowed",
        ">segments",
        ">window",
        ">evaluations, most",
        ">time, most",
        ">of allowed",
        ">planned",
        ">none found",
        ">out of time",
    ]);
    for row in rows {
        let (answers, _) = row.values.as_chunks::<4>();
        let of = |kind| {
            answers
                .iter()
                .filter(|answer| answer[0] == kind)
                .count()
                .to_string()
        };
        let most = |at: usize| answers.iter().map(|answer| answer[at]).max().unwrap_or(0);
        table.row(vec![
            format!("{}us", row.at(0)),
            row.at(1).to_string(),
            most(1).to_string(),
            most(2).to_string(),
            format!("{:.1}us", real(most(3)) / 1e3),
            format!("{:.0} %", real(most(3)) / real(row.at(0).max(1)) / 10.0),
            of(0),
            of(1),
            of(2),
        ]);
    }
    table
}

/// The drawings of a study of plans.
pub(crate) fn charts(question: &Question, rows: &[Row]) -> Vec<Chart> {
    match question {
        Question::PlanSwitches { .. } => vec![compared(
            rows,
            &switches::NAMES,
            "Switches that are fast (as Spring, Fig. 13)".into(),
            ("probability of the same process", "percent of switches", 0),
            1_000.0,
        )],
        Question::PlanHomes { .. } => {
            let of = |(figure, load): (u32, &u64)| {
                let rows: Vec<Row> = rows
                    .iter()
                    .filter(|row| row.at(0) == *load)
                    .cloned()
                    .collect();
                let title = format!(
                    "Groups accepted, load {}.{} (as Spring, Fig. {figure})",
                    load / 10,
                    load % 10
                );
                let axes = ("deadline multiplier", "percent of groups", 1);
                compared(&rows, &homes::NAMES, title, axes, 100.0)
            };
            (14..).zip(&homes::LOADS).map(of).collect()
        }
        Question::PlanTimes { .. } => answers(rows),
        _ => vec![over_windows(rows)],
    }
}

/// Two lines of means between those of their intervals.
fn compared(
    rows: &[Row],
    names: &[&str; 2],
    title: String,
    (x, y, at): (&str, &str, usize),
    unit: f64,
) -> Chart {
    let mut all = Vec::new();
    for (style, name) in names.iter().enumerate() {
        let named = || rows.iter().filter(|row| row.name == *name);
        let points = |side: f64| {
            let point = |row: &Row| {
                let (mean, half) = interval(&shares(row, (0, 1)));
                (real(row.at(at)) / unit, mean + side * half)
            };
            named().map(point).collect()
        };
        let line = |name: String, mark, side| Series {
            name,
            mark,
            style,
            points: points(side),
        };
        all.push(line((*name).into(), Mark::Line, 0.0));
        all.push(line(format!("{name}: 95 % interval"), Mark::Thin, -1.0));
        all.push(line(String::new(), Mark::Thin, 1.0));
    }
    let runs = rows.first().map_or(0, |row| row.values.len() / 4);
    Chart {
        title,
        notes: vec![format!("A point is the mean of {runs} runs, on 3 CPUs.")],
        x: Axis::linear(x),
        y: Axis::linear(y).at(&[0.0, 20.0, 40.0, 60.0, 80.0, 100.0]),
        series: all,
    }
}

/// Greatest evaluations over sizes, a line for each time allowed, and the time charged for them.
fn answers(rows: &[Row]) -> Vec<Chart> {
    let mut allowed: Vec<u64> = rows.iter().map(|row| row.at(0)).collect();
    allowed.dedup();
    let series = |value: &dyn Fn(&Row) -> f64| {
        let of = |(style, us): (usize, &u64)| {
            let named = rows
                .iter()
                .filter(|row| row.at(0) == *us && value(row) > 0.0);
            Series {
                name: format!("{us} us allowed"),
                mark: Mark::Line,
                style,
                points: named.map(|row| (real(row.at(1)), value(row))).collect(),
            }
        };
        let all = allowed.iter().enumerate().map(of);
        all.filter(|series| !series.points.is_empty())
            .collect::<Vec<_>>()
    };
    let chart = |title: &str, y: &str, note: &str, series| Chart {
        title: title.into(),
        notes: vec![note.into()],
        x: Axis::log("segments"),
        y: Axis::log(y),
        series,
    };
    let window = |row: &Row| {
        let (answers, _) = row.values.as_chunks::<4>();
        real(answers.iter().map(|answer| answer[1]).max().unwrap_or(0))
    };
    vec![
        chart(
            "Time of an answer (as Spring, Fig. 11 and 12)",
            "microseconds, greatest of all sets",
            "Evaluations are counted, and each is charged at its price. A line ends where no window fits.",
            series(&|row| real(greatest(row)) / 1e3),
        ),
        chart(
            "The window that the allowed time has room for",
            "segments looked at for each place",
            "As wide as the plan is long: all segments are looked at.",
            series(&window),
        ),
    ]
}

/// Success over the window in each setting.
fn over_windows(rows: &[Row]) -> Chart {
    let windows = [
        (3.0, "k = 3"),
        (5.0, "k = 5"),
        (7.0, "k = 7"),
        (10.0, "k = 10"),
    ];
    let of = |(style, (used, laxity)): (usize, (u64, u64))| {
        let point =
            |(k, name): (f64, &str)| Some((k, success_of(found(rows, name, &[used, laxity])?)));
        Series {
            name: format!("uses {} %, deadlines {} %", used / 10, laxity / 10),
            mark: Mark::Line,
            style,
            points: windows.into_iter().filter_map(point).collect(),
        }
    };
    Chart {
        title: "Sets that are planned, by d + 4 s over the window".into(),
        notes: vec![
            "Each set fills 3 CPUs without a gap, so a plan exists. A resource is used in so many"
                .into(),
            "percent of draws; deadlines reach so far behind the end.".into(),
        ],
        x: Axis::linear("segments looked at for each place").at(&[0.0, 3.0, 5.0, 7.0, 10.0]),
        y: Axis::linear("percent of sets").at(&[0.0, 20.0, 40.0, 60.0, 80.0, 100.0]),
        series: SETTINGS.into_iter().enumerate().map(of).collect(),
    }
}
