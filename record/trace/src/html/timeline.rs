//! The timeline: who executed when, in the stretch of the run that matters most.
//!
//! One row per task, one band per CPU:
//!
//! ```text
//!   task  ^-----####-------#####|        ^ release, - pending, # executing, | deadline
//! ```

use std::fmt::Write;

use punctual_kern::MissingCause;
use punctual_model::Instant;

use super::svg::{Escaped, Scale, clip, time_axis};
use super::window::{Window, windows};
use crate::behavior::{Behavior, JobRecord};
use crate::log::Log;
use crate::short::{Count, Short};
use crate::summary::Miss;

/// Size of the drawing, in units of its view box.
const WIDTH: f64 = 1_100.0;
const LABELS: f64 = 150.0;
pub(super) const ROW: f64 = 26.0;
const BAND: f64 = 28.0;
/// Most rows, and most shapes in one drawing.
const MAX_ROWS: usize = 48;
const MAX_SHAPES: usize = 4_000;

/// Writes the section.
pub(super) fn write(out: &mut String, log: &Log, behaviors: &[Behavior], misses: &[Miss]) {
    let end = behaviors.iter().map(|b| b.end).max().unwrap_or_default();
    if behaviors.iter().all(|b| b.jobs.is_empty()) || end == Instant::ZERO {
        return;
    }
    put!(out, "<section><h2>Timeline</h2>{LEGEND}");
    let tables = &log.tables.cpus;
    if tables
        .iter()
        .any(|cpu| !cpu.nodes.is_empty() || !cpu.resources.is_empty())
    {
        out.push_str(TREE_LEGEND);
    }
    for window in windows(log, behaviors, misses, end) {
        draw(out, log, behaviors, &window);
    }
    out.push_str("</section>\n");
}

/// Draws one stretch.
fn draw(out: &mut String, log: &Log, behaviors: &[Behavior], window: &Window) {
    let length = log.ns(window.end.since(window.start).ticks());
    putln!(
        out,
        "<p class=\"remark\">{}: {} from {} on.</p>",
        Escaped(&window.why),
        Short(length),
        Short(log.ns(window.start.ticks()))
    );
    let mut drawing = Drawing {
        log,
        window,
        scale: Scale::linear((0, length), (LABELS, WIDTH - LABELS - 24.0)),
        shapes: 0,
        body: String::new(),
    };
    let (height, hidden) = drawing.bands(behaviors);
    let sign = if window.start > Instant::ZERO {
        "+"
    } else {
        ""
    };
    put!(
        out,
        "<div class=\"wide\"><svg class=\"timeline\" viewBox=\"0 0 {WIDTH} {:.0}\" role=\"img\" \
         aria-label=\"Timeline of the schedule\">",
        height + 24.0
    );
    time_axis(out, &drawing.scale, (4.0, height), sign);
    out.push_str(&drawing.body);
    out.push_str("</svg></div>");
    if hidden > 0 {
        let hidden = Count(hidden as u64);
        put!(
            out,
            "<p class=\"remark\">… and {hidden} more tasks, not drawn.</p>"
        );
    }
    if drawing.shapes >= MAX_SHAPES {
        out.push_str("<p class=\"remark\">Too much happens here to draw all of it.</p>");
    }
}

const LEGEND: &str = "<p class=\"legend\">\
    <svg width=\"14\" height=\"14\"><path class=\"release\" d=\"M7 13V3M4 6l3-3 3 3\"/></svg> release \
    <svg width=\"14\" height=\"14\"><path class=\"deadline\" d=\"M7 1v10M4 8l3 3 3-3\"/></svg> deadline \
    <svg width=\"22\" height=\"14\"><rect class=\"run\" y=\"1\" width=\"22\" height=\"12\" rx=\"2\"/></svg> \
    executing <svg width=\"22\" height=\"14\"><rect class=\"pending\" y=\"5\" width=\"22\" height=\"4\"/></svg> \
    pending <svg width=\"22\" height=\"14\"><rect class=\"run late\" y=\"1\" width=\"22\" height=\"12\" rx=\"2\"/>\
    </svg> late job <svg width=\"22\" height=\"14\"><rect class=\"missing\" width=\"22\" height=\"14\"/></svg> \
    missing time <svg width=\"22\" height=\"14\"><rect class=\"given\" width=\"22\" height=\"14\"/></svg> given back</p>\n";

const TREE_LEGEND: &str = "<p class=\"legend\">\
    <svg width=\"22\" height=\"14\"><rect class=\"slot\" width=\"22\" height=\"14\"/></svg> its slots \
    <svg width=\"22\" height=\"14\"><rect class=\"starved\" width=\"22\" height=\"14\"/></svg> its server \
    has no budget <svg width=\"22\" height=\"14\"><rect class=\"hold\" y=\"9\" width=\"22\" height=\"3\"/>\
    </svg> holds a resource <svg width=\"22\" height=\"14\"><rect class=\"waits\" y=\"5\" width=\"22\" \
    height=\"4\"/></svg> waits for one</p>\n";

pub(super) struct Drawing<'a> {
    pub(super) log: &'a Log,
    pub(super) window: &'a Window,
    scale: Scale,
    shapes: usize,
    pub(super) body: String,
}

impl Drawing<'_> {
    pub(super) fn x(&self, at: Instant) -> f64 {
        let since = at.since(self.window.start);
        self.scale.place(self.log.ns(since.ticks()))
    }

    /// All CPUs; returns the height and how many tasks found no room.
    fn bands(&mut self, behaviors: &[Behavior]) -> (f64, usize) {
        let (mut y, mut rows, mut hidden) = (0.0, 0, 0);
        for (cpu, behavior) in behaviors.iter().enumerate() {
            let threads = self
                .log
                .tables
                .cpus
                .get(cpu)
                .map_or(0, |tables| tables.threads.len());
            let shown = threads.min(MAX_ROWS - rows);
            hidden += threads - shown;
            if shown == 0 {
                continue;
            }
            rows += shown;
            self.band(cpu, behavior, (y, shown));
            y += BAND + ROW * super::svg::float(shown as u64) + 8.0;
        }
        (y, hidden)
    }

    fn band(&mut self, cpu: usize, b: &Behavior, (y, rows): (f64, usize)) {
        let name = clip(&self.log.cpus[cpu].name, 30);
        let policy = self.log.tables.cpus[cpu].policy.name();
        let top = y + BAND;
        let row = |thread: usize| top + ROW * super::svg::float(thread as u64);
        put!(
            self.body,
            "<text class=\"cpu\" x=\"0\" y=\"{:.1}\">CPU {}, {policy}</text>",
            y + 19.0,
            Escaped(&name)
        );
        for thread in 0..rows {
            let task = self.log.place_name(cpu, thread);
            let home = self.log.tables.cpus[cpu].homes.get(thread).copied();
            let on = match home.map(usize::from).filter(|home| *home > 0) {
                Some(home) => format!("{task} on {}", self.log.node_name(cpu, home)),
                None => task.clone(),
            };
            let y = row(thread) + ROW - 4.0;
            put!(
                self.body,
                "<line class=\"row\" x1=\"{LABELS}\" x2=\"{WIDTH}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
                 <text class=\"task\" x=\"{:.1}\" y=\"{:.1}\"><title>{}</title>{}</text>",
                LABELS - 8.0,
                y - 4.0,
                Escaped(&on),
                Escaped(&clip(&task, 20))
            );
        }
        for thread in 0..rows {
            self.supply(cpu, b, (thread, row(thread)));
        }
        self.gaps(b, (top, row(rows)));
        let shown = |j: &&JobRecord| {
            let end = j.ended.unwrap_or(b.end);
            j.thread.index() < rows && j.arrival < self.window.end && end >= self.window.start
        };
        // Jobs are in order of release; those before the window are skipped by their ends.
        let jobs: Vec<JobRecord> = b.jobs.iter().filter(shown).copied().collect();
        for job in &jobs {
            self.job(job, b.end, row(job.thread.index()));
        }
        // Executions stand above the arrows, so that a microsecond beside a release shows.
        for job in &jobs {
            self.marks(job, b.end, row(job.thread.index()));
        }
        for segment in b.segments_in(self.window.start, self.window.end) {
            let thread = segment.thread.index();
            if thread < rows {
                let late = segment.job.is_some_and(|at| b.jobs[at].missed(b.end));
                let job = segment.job.map(|at| b.jobs[at].index);
                self.run((segment.start, segment.end), row(thread), late, job);
            }
        }
        self.locks(cpu, b, (top, rows))
    }

    pub(super) fn counted(&mut self) -> bool {
        self.shapes += 1;
        self.shapes <= MAX_SHAPES
    }

    fn gaps(&mut self, b: &Behavior, (top, bottom): (f64, f64)) {
        let first = b.missing.partition_point(|m| m.end <= self.window.start);
        for gap in b.missing[first..]
            .iter()
            .take_while(|m| m.start < self.window.end)
        {
            let (class, what) = match gap.cause {
                MissingCause::Stolen => ("missing", "missing"),
                MissingCause::GivenBack => ("given", "given back"),
            };
            let length = Short(self.log.ns(gap.end.since(gap.start).ticks()));
            let title = format!("{length} {what}");
            self.stretch(class, (gap.start, gap.end), (top, bottom - top), &title);
        }
    }

    /// The stretch from arrival to completion.
    fn job(&mut self, job: &JobRecord, end: Instant, y: f64) {
        if job.absolute_deadline == Instant::MAX || !self.counted() {
            return;
        }
        let (x, end) = (self.x(job.arrival), self.x(job.ended.unwrap_or(end)));
        put!(
            self.body,
            "<rect class=\"pending\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"4\"/>",
            y + ROW - 12.0,
            (end - x).max(0.5)
        )
    }

    /// A stretch of time in a row, with what is said of it.
    pub(super) fn stretch(
        &mut self,
        class: &str,
        (from, to): (Instant, Instant),
        (y, height): (f64, f64),
        title: &str,
    ) {
        if !self.counted() {
            return;
        }
        let (x, end) = (self.x(from), self.x(to));
        put!(
            self.body,
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{height:.1}\">\
             <title>{}</title></rect>",
            (end - x).max(0.8),
            Escaped(title)
        )
    }

    fn run(&mut self, (from, to): (Instant, Instant), y: f64, late: bool, job: Option<u64>) {
        if !self.counted() {
            return;
        }
        let (x, end) = (self.x(from), self.x(to));
        let class = if late { "run late" } else { "run" };
        let length = Short(self.log.ns(to.since(from).ticks()));
        let job = job.map_or_else(String::new, |job| format!("job {}: ", Count(job)));
        put!(
            self.body,
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"13\" rx=\"1.5\">\
             <title>{job}{length}</title></rect>",
            y + ROW - 17.0,
            (end - x).max(2.0)
        )
    }

    /// Release and deadline.
    fn marks(&mut self, job: &JobRecord, end: Instant, y: f64) {
        let (start, to) = (self.window.start, self.window.end);
        let inside = |at: Instant| start <= at && at <= to;
        let (top, bottom) = (y + 2.0, y + ROW - 4.0);
        if inside(job.arrival) && self.counted() {
            let x = self.x(job.arrival);
            put!(
                self.body,
                "<path class=\"release\" d=\"M{x:.1} {bottom:.1}V{top:.1}m-2.5 3.5l2.5-3.5 2.5 3.5\"/>"
            );
        }
        if inside(job.absolute_deadline) && self.counted() {
            let x = self.x(job.absolute_deadline);
            let class = if job.missed(end) {
                "deadline missed"
            } else {
                "deadline"
            };
            put!(
                self.body,
                "<path class=\"{class}\" d=\"M{x:.1} {top:.1}V{bottom:.1}m-2.5-3.5l2.5 3.5 2.5-3.5\"/>"
            );
        }
    }
}
