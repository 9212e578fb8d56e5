//! The whole run at a glance: executed and missing time of each CPU, and the misses.
//!
//! The run is divided into [`BUCKETS`] equal parts, however long it is: the strip has the same size
//! for a second and for a day.

use std::fmt::Write;

use punctual_kern::MissingCause;
use punctual_model::{Instant, readable};

use super::stretch::Drawn;
use super::svg::{Escaped, Scale, clip, float};
use crate::behavior::Behavior;
use crate::log::Log;
use crate::short::{Count, Short};
use crate::summary::RunReport;

/// Parts of a run.
const BUCKETS: usize = 480;
/// Height of a strip, and of the least that shows something.
const HEIGHT: f64 = 32.0;
const LEAST: f64 = 2.0;
/// Most strips.
const MAX_STRIPS: usize = 32;

/// Ticks of something in each part of a run.
struct Buckets {
    end: u64,
    ticks: Vec<u64>,
}

impl Buckets {
    fn new(end: Instant) -> Buckets {
        Buckets {
            end: end.ticks().max(1),
            ticks: vec![0; BUCKETS],
        }
    }

    /// The part that an instant lies in.
    fn at(&self, ticks: u64) -> usize {
        let at = u128::from(ticks) * BUCKETS as u128 / u128::from(self.end);
        usize::try_from(at).unwrap_or(BUCKETS).min(BUCKETS - 1)
    }

    /// Where a part begins.
    fn start(&self, at: usize) -> u64 {
        let start = (at as u128 * u128::from(self.end)).div_ceil(BUCKETS as u128);
        u64::try_from(start).unwrap_or(u64::MAX)
    }

    /// Adds a stretch to the parts that it lies in.
    fn add(&mut self, from: Instant, to: Instant) {
        let (mut from, to) = (from.ticks(), to.ticks().min(self.end));
        while from < to {
            let at = self.at(from);
            let next = self.start(at + 1).max(from + 1).min(to);
            self.ticks[at] += next - from;
            from = next;
        }
    }

    /// The share of each part.
    fn shares(&self) -> Vec<f64> {
        let whole = float(self.end) / float(BUCKETS as u64);
        let share = |ticks: &u64| (float(*ticks) / whole).min(1.0);
        self.ticks.iter().map(share).collect()
    }
}

/// A filled curve of steps: bucket by bucket from one height to another.
fn area(class: &str, steps: impl Iterator<Item = (f64, f64)>) -> String {
    let (mut path, mut last) = (String::new(), None::<(f64, f64, usize)>);
    let mut flush = |(y, height, from): (f64, f64, usize), to: usize| {
        if height > 0.0 {
            let width = to - from;
            put!(path, "M{from} {y:.1}h{width}v{height:.1}h-{width}z");
        }
    };
    let mut at = 0;
    for (y, height) in steps {
        let (y, height) = ((y * 10.0).round() / 10.0, (height * 10.0).round() / 10.0);
        match last {
            Some((old, old_height, _)) if (old, old_height) == (y, height) => {}
            Some(old) => {
                flush(old, at);
                last = Some((y, height, at));
            }
            None => last = Some((y, height, at)),
        }
        at += 1;
    }
    if let Some(old) = last {
        flush(old, at);
    }
    match path.as_str() {
        "" => path,
        path => format!("<path class=\"{class}\" d=\"{path}\"/>"),
    }
}

/// Writes the strips of all CPUs, the misses, the axis, and which parts are drawn in detail.
pub(super) fn write(
    out: &mut String,
    log: &Log,
    behaviors: &[Behavior],
    (report, end, drawn): (&RunReport, Instant, &Drawn),
) {
    put!(
        out,
        "<p class=\"remark\">The whole run: what was executed stands below, what was given back upon \
         it, and missing time hangs from above.</p><div class=\"overview\" data-end=\"{}\">",
        log.ns(end.ticks())
    );
    misses(out, log, report, end);
    for (cpu, behavior) in behaviors.iter().enumerate().take(MAX_STRIPS) {
        strip(out, log, (cpu, behavior, end));
    }
    // Which parts are drawn, and which of them the reader sees.
    let share = |at: Instant| 100.0 * float(at.min(end).ticks()) / float(end.ticks().max(1));
    let place = |from: Instant, to: Instant| {
        let (from, to) = (share(from), share(to));
        format!("style=\"left:{from:.3}%;width:{:.3}%\"", to - from)
    };
    out.push_str("<div class=\"drawn\">");
    for part in &drawn.stretches {
        put!(out, "<i {}></i>", place(part.start, part.end));
    }
    out.push_str("</div><div class=\"axis\">");
    let axis = Scale::linear((0, log.ns(end.ticks())), (0.0, 100.0));
    for tick in axis
        .ticks_of(6.0)
        .into_iter()
        .filter(|tick| axis.place(*tick) < 90.0)
    {
        let x = axis.place(tick);
        put!(
            out,
            "<span style=\"left:{x:.2}%\">{}</span>",
            readable(tick)
        );
    }
    let window = place(drawn.window.start, drawn.window.end);
    putln!(out, "</div><div class=\"view\" {window}></div></div>");
    let hidden = behaviors.len().saturating_sub(MAX_STRIPS);
    if hidden > 0 {
        let hidden = Count(hidden as u64);
        putln!(out, "<p class=\"remark\">… and {hidden} more CPUs.</p>");
    }
}

/// One mark for each part of the run in which jobs were released that missed.
fn misses(out: &mut String, log: &Log, report: &RunReport, end: Instant) {
    if report.misses.is_empty() {
        return;
    }
    let buckets = Buckets::new(end);
    let mut counts = vec![(0_u64, 0_u64); BUCKETS];
    let hertz = u128::from(log.tables.frequency.hertz());
    for miss in &report.misses {
        let ticks = u128::from(miss.release_ns) * hertz / 1_000_000_000;
        let at = buckets.at(u64::try_from(ticks).unwrap_or(u64::MAX));
        let (late, excused) = &mut counts[at];
        *if miss.excused { excused } else { late } += 1;
    }
    let all = report.misses.len() as u64;
    let excused = report.misses.iter().filter(|miss| miss.excused).count() as u64;
    let words = match excused {
        0 => format!("misses: {}", Count(all)),
        n => format!("misses: {}, of them {} excused", Count(all), Count(n)),
    };
    let mark = |some: bool| if some { (0.0, 10.0) } else { (0.0, 0.0) };
    put!(
        out,
        "<p class=\"strip\"><span>{words}</span></p><svg class=\"marks\" viewBox=\"0 0 {BUCKETS} 10\" \
         preserveAspectRatio=\"none\" role=\"img\"><title>When jobs were released that missed</title>{}{}</svg>",
        area(
            "excuse",
            counts
                .iter()
                .map(|(late, excused)| mark(*late == 0 && *excused > 0))
        ),
        area("late", counts.iter().map(|(late, _)| mark(*late > 0)))
    );
}

/// The strip of a CPU, bucket by bucket.
fn strip(out: &mut String, log: &Log, (cpu, b, end): (usize, &Behavior, Instant)) {
    let mut executed = Buckets::new(end);
    let (mut stolen, mut given) = (Buckets::new(end), Buckets::new(end));
    for segment in &b.segments {
        executed.add(segment.start, segment.end);
    }
    let mut longest = 0;
    for gap in &b.missing {
        match gap.cause {
            MissingCause::Stolen => {
                longest = longest.max(gap.end.since(gap.start).ticks());
                stolen.add(gap.start, gap.end);
            }
            MissingCause::GivenBack => given.add(gap.start, gap.end),
        }
    }
    let (executed, stolen, given) = (executed.shares(), stolen.shares(), given.shares());
    let name = clip(&log.cpus[cpu].name, 30);
    let gaps = match longest {
        0 => String::new(),
        ticks => format!("; longest gap {}", Short(log.ns(ticks))),
    };
    let seen = |share: f64| {
        if share > 0.0 {
            (share * HEIGHT).max(LEAST)
        } else {
            0.0
        }
    };
    let below = |(done, back): (&f64, &f64)| {
        let (done, back) = (done * HEIGHT, back * HEIGHT);
        (HEIGHT - done - back, back)
    };
    put!(
        out,
        "<p class=\"strip\"><span>CPU {}{gaps}</span></p><svg class=\"lane\" viewBox=\"0 0 {BUCKETS} {HEIGHT}\" \
         preserveAspectRatio=\"none\" role=\"img\"><title>What CPU {} executed over the run</title>{}{}{}</svg>",
        Escaped(&name),
        Escaped(&name),
        area(
            "run",
            executed
                .iter()
                .map(|share| (HEIGHT * (1.0 - share), HEIGHT * share))
        ),
        area("given", executed.iter().zip(&given).map(below)),
        area("missing", stolen.iter().map(|share| (0.0, seen(*share))))
    );
}
