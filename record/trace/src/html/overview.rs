//! The whole run at a glance: executed and missing time of each CPU, and the misses.
//!
//! The run is divided into [`BUCKETS`] equal parts, however long it is: the strip has the same size
//! for a second and for a day.

use std::fmt::Write;

use punctual_kern::MissingCause;
use punctual_model::{Instant, readable};

use super::stretch::Drawn;
use super::svg::{Escaped, Scale, clip, float};
use crate::behavior::{Behavior, Segment};
use crate::log::Log;
use crate::short::{Count, Short};
use crate::summary::{RunReport, SchedulerReport};

/// Parts of a run.
const BUCKETS: usize = 480;
/// Height of a strip, and of the least that shows something.
const HEIGHT: f64 = 32.0;
const LEAST: f64 = 2.0;
/// A gap is long if the longest is less than so many times as long.
const LONG: u64 = 10;
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
    changes(out, log, report, end);
    let mut room = MAX_STRIPS;
    let mut hidden = 0;
    for (cpu, behavior) in behaviors.iter().enumerate() {
        let supplied = report.schedulers.iter();
        let supplied = supplied.filter(|s| s.cpu == log.cpus[cpu].name && s.granted_ns.is_some());
        let all = 1 + supplied.clone().count();
        hidden += all.saturating_sub(room);
        if room > 0 {
            strip(out, log, (cpu, behavior, end));
        }
        for scheduler in supplied.take(room.saturating_sub(1)) {
            supply(out, log, (cpu, behavior, end), scheduler);
        }
        room = room.saturating_sub(all);
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
    if hidden > 0 {
        let hidden = Count(hidden as u64);
        putln!(
            out,
            "<p class=\"remark\">… and {hidden} more CPUs and schedulers.</p>"
        );
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

/// One mark for each part of the run in which something was changed.
fn changes(out: &mut String, log: &Log, report: &RunReport, end: Instant) {
    if report.changes.is_empty() {
        return;
    }
    let buckets = Buckets::new(end);
    let mut done = vec![false; BUCKETS];
    let hertz = u128::from(log.tables.frequency.hertz());
    for at in report.changes.iter().filter_map(|change| change.done_ns) {
        let ticks = u128::from(at) * hertz / 1_000_000_000;
        done[buckets.at(u64::try_from(ticks).unwrap_or(u64::MAX))] = true;
    }
    let mark = |some: &bool| if *some { (0.0, 10.0) } else { (0.0, 0.0) };
    put!(
        out,
        "<p class=\"strip\"><span>changes: {}</span></p><svg class=\"marks\" viewBox=\"0 0 {BUCKETS} \
         10\" preserveAspectRatio=\"none\" role=\"img\"><title>When something was changed</title>{}</svg>",
        Count(report.changes.len() as u64),
        area("change", done.iter().map(mark))
    );
}

/// The strip of a CPU, bucket by bucket.
fn strip(out: &mut String, log: &Log, (cpu, b, end): (usize, &Behavior, Instant)) {
    let mut executed = Buckets::new(end);
    let (mut stolen, mut given) = (Buckets::new(end), Buckets::new(end));
    for segment in &b.segments {
        executed.add(segment.start, segment.end);
    }
    let mut peaks = vec![0_u64; BUCKETS];
    for gap in &b.missing {
        match gap.cause {
            MissingCause::Stolen => {
                let peak = &mut peaks[stolen.at(gap.start.ticks())];
                *peak = gap.end.since(gap.start).ticks().max(*peak);
                stolen.add(gap.start, gap.end);
            }
            MissingCause::GivenBack => given.add(gap.start, gap.end),
        }
    }
    let (executed, stolen, given) = (executed.shares(), stolen.shares(), given.shares());
    let name = clip(&log.cpus[cpu].name, 30);
    let longest = peaks.iter().copied().max().unwrap_or(0);
    let gaps = match longest {
        0 => String::new(),
        ticks => format!("; longest gap {}", Short(log.ns(ticks))),
    };
    // A long gap is seen, however short it is beside the run.
    let seen = |(share, peak): (&f64, &u64)| match *peak > longest / LONG {
        true => (0.0, (share * HEIGHT).max(LEAST)),
        false => (0.0, share * HEIGHT),
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
        area("missing", stolen.iter().zip(&peaks).map(seen))
    );
}

/// The strip of a scheduler with a supply of its own: what its subtree executed, the share that it
/// is granted, and from above the time in which it had no budget.
fn supply(
    out: &mut String,
    log: &Log,
    (cpu, b, end): (usize, &Behavior, Instant),
    scheduler: &SchedulerReport,
) {
    let nodes = 1..b.nodes.len();
    let Some(node) = nodes
        .clone()
        .find(|at| log.node_name(cpu, *at) == scheduler.name)
    else {
        return;
    };
    let up = |at: &usize| b.nodes.get(*at)?.parent;
    let lineage = |at| std::iter::successors(Some(at), up).take(b.nodes.len());
    let below: Vec<bool> = (0..b.nodes.len())
        .map(|at| lineage(at).any(|above| above == node))
        .collect();
    let homes = &log.tables.cpus[cpu].homes;
    let home = |segment: &Segment| match segment.job.and_then(|at| b.jobs.get(at)) {
        Some(job) => job.home,
        None => homes
            .get(segment.thread.index())
            .map_or(0, |home| usize::from(*home)),
    };
    let (mut executed, mut starved) = (Buckets::new(end), Buckets::new(end));
    for segment in b
        .segments
        .iter()
        .filter(|s| below.get(home(s)) == Some(&true))
    {
        executed.add(segment.start, segment.end);
    }
    for stretch in b.starved.iter().filter(|s| s.node == node) {
        starved.add(stretch.start, stretch.end);
    }
    let elapsed = float(log.ns(end.ticks()).max(1));
    let granted = match (scheduler.budget_ns, scheduler.period_ns) {
        (Some(budget), Some(period)) => float(budget) / float(period.max(1)),
        _ => float(scheduler.granted_ns.unwrap_or(0)) / elapsed,
    };
    let granted = granted.min(1.0);
    let used = float(scheduler.executed_ns) / elapsed;
    let name = clip(&scheduler.name, 30);
    put!(
        out,
        "<p class=\"strip\"><span>{}: granted {:.1} % (line), used {:.1} %</span></p>\
         <svg class=\"lane\" viewBox=\"0 0 {BUCKETS} {HEIGHT}\" preserveAspectRatio=\"none\" \
         role=\"img\"><title>The supply of {} over the run</title>{}{}<path class=\"granted\" \
         d=\"M0 {:.1}H{BUCKETS}\"/></svg>",
        Escaped(&name),
        granted * 100.0,
        used * 100.0,
        Escaped(&name),
        area(
            "run",
            executed
                .shares()
                .iter()
                .map(|share| (HEIGHT * (1.0 - share), HEIGHT * share))
        ),
        area(
            "starved",
            starved.shares().iter().map(|share| (0.0, HEIGHT * share))
        ),
        HEIGHT * (1.0 - granted)
    );
}
