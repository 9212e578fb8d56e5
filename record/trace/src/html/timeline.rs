//! The timeline: the executions of each task, in a film that scrolls sideways and can be zoomed.
//!
//! One row per task, one band per CPU, one drawing per stretch of the run ([`super::stretch`]):
//!
//! ```text
//!   task
//!   ^-----####-------#####|        ^ release, - pending, # executing, | deadline
//! ```
//!
//! Times are percentages of their stretch, so that zooming is one width for all of them: the page
//! does without scripts, and the script that it has (`page.js`) only sets that width and scrolls.

use std::fmt::Write;

use punctual_kern::{Grant, MissingCause};
use punctual_model::{Instant, Span, readable};

use super::overview;
use super::stretch::{Drawn, MAX_SHAPES, Spot, Stretch, drawn, spots};
use super::svg::{Escaped, Scale, clip, float};
use crate::behavior::{Behavior, JobRecord};
use crate::log::Log;
use crate::short::{Count, Short};
use crate::summary::{Miss, RunReport};

/// Heights of a row and of the heading of a band, and the space below one.
pub(super) const ROW: f64 = 34.0;
const BAND: f64 = 24.0;
const SPACE: f64 = 8.0;
/// Where in its row a task is drawn: below its name.
pub(super) const TOP: f64 = 14.0;
/// Room for the labels of time.
const AXIS: f64 = 18.0;
/// Most rows.
const MAX_ROWS: usize = 48;
/// Shapes are chosen by an estimate; beyond this many none is drawn.
const LIMIT: usize = MAX_SHAPES / 3 * 4;
/// How wide the first window is, and how far apart labels of time are.
const WINDOW_WIDTH: f64 = 1_000.0;
const LABEL_WIDTH: f64 = 110.0;

/// Writes the section. Returns which of the misses have a place in it, by their numbers.
pub(super) fn write(
    out: &mut String,
    log: &Log,
    behaviors: &[Behavior],
    (report, misses): (&RunReport, &[Miss]),
) -> Vec<usize> {
    let end = behaviors.iter().map(|b| b.end).max().unwrap_or_default();
    if behaviors.iter().all(|b| b.jobs.is_empty()) || end == Instant::ZERO {
        return Vec::new();
    }
    let spots = spots(log, behaviors, misses);
    let mut urgent: Vec<&Spot> = spots.iter().collect();
    urgent.sort_by_key(|spot| (spot.excused, spot.job.arrival));
    let drawn = drawn(log, behaviors, &urgent, end);
    out.push_str("<section><h2>Timeline</h2>");
    overview::write(out, log, behaviors, (report, end, &drawn));
    out.push_str(LEGEND);
    let tables = &log.tables.cpus;
    if tables
        .iter()
        .any(|cpu| !cpu.nodes.is_empty() || !cpu.resources.is_empty())
    {
        out.push_str(TREE_LEGEND);
    }
    out.push_str(TOOLS);
    let linked = film(out, log, behaviors, (&drawn, &spots, end));
    out.push_str("</section>\n");
    linked
}

/// Says how much of the run is drawn.
fn film_remark(out: &mut String, log: &Log, drawn: &Drawn, end: Instant) {
    let of = |ticks| Short(log.ns(ticks));
    let shown: u64 = drawn.stretches.iter().map(Stretch::ticks).sum();
    let what = match drawn.stretches.len() {
        1 if shown >= end.ticks() => "The whole run is drawn".to_string(),
        n => {
            let (all, shown, n) = (of(end.ticks()), of(shown), Count(n as u64));
            let stretches = if n.0 == 1 { "stretch" } else { "stretches" };
            format!("Of {all} this page draws {shown} in {n} {stretches}, around misses first")
        }
    };
    putln!(
        out,
        "<p class=\"remark\">{what}. First in view: {}, {} from {} on.</p>",
        Escaped(&drawn.why),
        of(drawn.window.ticks()),
        of(drawn.window.start.ticks())
    );
}

/// The stretches side by side, behind the names of their rows.
fn film(
    out: &mut String,
    log: &Log,
    behaviors: &[Behavior],
    (drawn, spots, end): (&Drawn, &[Spot], Instant),
) -> Vec<usize> {
    film_remark(out, log, drawn, end);
    let bands = Bands::of(log);
    // Pixels per microsecond.
    let scale = WINDOW_WIDTH * 1e3 / float(log.ns(drawn.window.ticks()).max(1));
    put!(
        out,
        "<div class=\"film\" tabindex=\"0\" role=\"region\" aria-label=\"Timeline: scrolls sideways\" \
         data-scale=\"{scale:.9}\" data-from=\"{}\" data-to=\"{}\" style=\"--scale:{scale:.9}\">",
        log.ns(drawn.window.start.ticks()),
        log.ns(drawn.window.end.ticks())
    );
    bands.names(out, log);
    let (mut linked, mut shapes, mut before) = (Vec::new(), 0, Instant::ZERO);
    for stretch in &drawn.stretches {
        if stretch.start > before {
            gap(out, log, stretch.start.since(before));
        }
        before = stretch.end;
        let mut drawing = Drawing::new(log, stretch, shapes);
        drawing.bands(behaviors, &bands);
        shapes = drawing.shapes;
        drawing.put(out, bands.height, scale);
        for spot in spots.iter().filter(|spot| drawing.shows(&spot.job)) {
            if let Some(y) = bands.row(spot.cpu, spot.job.thread.index()) {
                drawing.spot(out, spot, y);
                linked.push(spot.number);
            }
        }
        out.push_str("</div>\n");
    }
    if before < end {
        gap(out, log, end.since(before));
    }
    out.push_str("</div>\n");
    if bands.hidden > 0 {
        let hidden = Count(bands.hidden as u64);
        put!(
            out,
            "<p class=\"remark\">… and {hidden} more tasks, not drawn.</p>"
        );
    }
    if shapes >= LIMIT {
        out.push_str("<p class=\"remark\">Too much happens here to draw all of it.</p>");
    }
    linked
}

/// Between stretches: the length that is not drawn.
fn gap(out: &mut String, log: &Log, length: Span) {
    let length = Short(log.ns(length.ticks()));
    put!(
        out,
        "<div class=\"gap\" title=\"{length} not drawn\"><span>… {length}</span></div>"
    );
}

const TOOLS: &str = "<p class=\"tools\" hidden><button data-do=\"earlier\">← earlier</button> \
    <button data-do=\"later\">later →</button> <button data-do=\"in\">+ closer</button> \
    <button data-do=\"out\">− wider</button> <button data-do=\"previous\">previous miss</button> \
    <button data-do=\"next\">next miss</button> <span>Keys: ← → + − p n. Or drag over the whole run \
    above.</span></p>\n";

const LEGEND: &str = "<p class=\"legend\">\
    <span><svg width=\"14\" height=\"14\"><path class=\"release\" d=\"M7 13V3M4 6l3-3 3 3\"/></svg> release</span> \
    <span><svg width=\"14\" height=\"14\"><path class=\"deadline\" d=\"M7 1v10M4 8l3 3 3-3\"/></svg> deadline</span> \
    <span><svg width=\"22\" height=\"14\"><rect class=\"run\" y=\"1\" width=\"22\" height=\"12\"/></svg> executing</span> \
    <span><svg width=\"22\" height=\"14\"><rect class=\"pending\" y=\"5\" width=\"22\" height=\"4\"/></svg> pending</span> \
    <span><svg width=\"22\" height=\"14\"><rect class=\"late\" y=\"1\" width=\"22\" height=\"12\"/></svg> late job</span> \
    <span><svg width=\"22\" height=\"14\"><rect class=\"missing\" width=\"22\" height=\"14\"/></svg> missing time</span> \
    <span><svg width=\"22\" height=\"14\"><rect class=\"given\" width=\"22\" height=\"14\"/></svg> given back</span></p>\n";

const TREE_LEGEND: &str = "<p class=\"legend\">\
    <span><svg width=\"22\" height=\"14\"><rect class=\"slot\" width=\"22\" height=\"14\"/></svg> its slots</span> \
    <span><svg width=\"22\" height=\"14\"><rect class=\"starved\" width=\"22\" height=\"14\"/></svg> its server has no budget</span> \
    <span><svg width=\"22\" height=\"14\"><path class=\"left\" d=\"M0 14V2L16 14V6L22 14z\"/></svg> budget that is left</span> \
    <span><svg width=\"22\" height=\"14\"><rect class=\"hold\" y=\"9\" width=\"22\" height=\"3\"/></svg> holds a resource</span> \
    <span><svg width=\"22\" height=\"14\"><rect class=\"waits\" y=\"5\" width=\"22\" height=\"4\"/></svg> waits for one</span></p>\n";

/// Where the rows of the CPUs are.
struct Bands {
    of_cpu: Vec<Band>,
    height: f64,
    /// Schedulers and tasks without room.
    hidden: usize,
}

/// The rows of a CPU.
struct Band {
    /// Where its first row begins.
    top: f64,
    /// The schedulers with a supply of their own, by place.
    nodes: Vec<usize>,
    /// How many threads have a row below them.
    threads: usize,
}

impl Band {
    /// Where the row of a thread begins.
    fn row(&self, thread: usize) -> f64 {
        self.top + ROW * float((self.nodes.len() + thread) as u64)
    }

    fn bottom(&self) -> f64 {
        self.row(self.threads)
    }
}

impl Bands {
    fn of(log: &Log) -> Bands {
        let (mut y, mut room, mut hidden) = (0.0, MAX_ROWS, 0);
        let mut of_cpu = Vec::new();
        for tables in log.tables.cpus.iter().take(log.cpus.len()) {
            let supplied = tables.nodes.iter().zip(1..);
            let supplied = supplied.filter(|(node, _)| node.terms.supply != Grant::Shared);
            let mut nodes: Vec<usize> = supplied.map(|(_, at)| at).collect();
            let all = nodes.len() + tables.threads.len();
            nodes.truncate(room);
            let threads = tables.threads.len().min(room - nodes.len());
            let rows = nodes.len() + threads;
            (room, hidden) = (room - rows, hidden + all - rows);
            of_cpu.push(Band {
                top: y + BAND,
                nodes,
                threads,
            });
            if rows > 0 {
                y += BAND + ROW * float(rows as u64) + SPACE;
            }
        }
        Bands {
            of_cpu,
            height: y,
            hidden,
        }
    }

    /// The bands that have rows.
    fn shown(&self) -> impl Iterator<Item = (usize, &Band)> {
        let all = self.of_cpu.iter().enumerate();
        all.filter(|(_, band)| band.bottom() > band.top)
    }

    /// Where the row of a thread begins, if it has one.
    fn row(&self, cpu: usize, thread: usize) -> Option<f64> {
        let band = self.of_cpu.get(cpu)?;
        (thread < band.threads).then(|| band.row(thread))
    }

    /// The names, which stay where they are while the drawings move below them.
    fn names(&self, out: &mut String, log: &Log) {
        out.push_str("<div class=\"names\">");
        for (cpu, band) in self.shown() {
            let tables = &log.tables.cpus[cpu];
            let name = clip(&log.cpus[cpu].name, 30);
            let policy = tables.policy.name();
            put!(
                out,
                "<b style=\"top:{:.0}px\">CPU {}, {policy}</b>",
                band.top + 4.0 - BAND,
                Escaped(&name)
            );
            for (row, at) in (0_u64..).zip(&band.nodes) {
                let scheduler = log.node_name(cpu, *at);
                let policy = tables.nodes.get(at - 1).map_or("", |n| n.policy.name());
                let supply = format!(", {policy}: its supply");
                name_of_row(out, band.top + ROW * float(row), (scheduler, &supply));
            }
            for thread in 0..band.threads {
                let home = tables.homes.get(thread).copied();
                let home = home.map(usize::from).filter(|home| *home > 0);
                let on = home.map(|home| format!(" on {}", log.node_name(cpu, home)));
                let task = log.place_name(cpu, thread);
                name_of_row(out, band.row(thread), (&task, &on.unwrap_or_default()));
            }
        }
        out.push_str("</div>");
    }
}

fn name_of_row(out: &mut String, y: f64, (name, more): (&str, &str)) {
    put!(
        out,
        "<span style=\"top:{y:.0}px\" title=\"{}{}\">{}<i>{}</i></span>",
        Escaped(&clip(name, 200)),
        Escaped(&clip(more, 200)),
        Escaped(&clip(name, 32)),
        Escaped(&clip(more, 36))
    );
}

/// One stretch.
pub(super) struct Drawing<'a> {
    pub(super) log: &'a Log,
    pub(super) stretch: &'a Stretch,
    scale: Scale,
    /// Digits behind the point of a percentage: about ten nanoseconds.
    digits: usize,
    shapes: usize,
    pub(super) body: String,
}

impl<'a> Drawing<'a> {
    fn new(log: &'a Log, stretch: &'a Stretch, shapes: usize) -> Drawing<'a> {
        let length = log.ns(stretch.ticks());
        Drawing {
            log,
            stretch,
            scale: Scale::linear((0, length), (0.0, 100.0)),
            digits: (length.max(1).ilog10() as usize)
                .saturating_sub(3)
                .clamp(2, 7),
            shapes,
            body: String::new(),
        }
    }

    /// A place as a percentage of the stretch.
    pub(super) fn x(&self, at: Instant) -> f64 {
        let since = at.since(self.stretch.start);
        self.scale.place(self.log.ns(since.ticks()))
    }

    fn shows(&self, job: &JobRecord) -> bool {
        self.stretch.start <= job.arrival && job.arrival < self.stretch.end
    }

    /// The stretch with its axis; its element stays open.
    fn put(&self, out: &mut String, height: f64, scale: f64) {
        let (from, to) = (self.stretch.start.ticks(), self.stretch.end.ticks());
        let (from, length) = (self.log.ns(from), self.log.ns(to - from));
        put!(
            out,
            "<div class=\"stretch\" data-from=\"{from}\" data-length=\"{length}\" \
             style=\"--us:{:.3}\"><svg width=\"100%\" height=\"{:.0}\" role=\"img\">\
             <title>The schedule from {} on, for {}</title><g class=\"ticks\">",
            float(length) / 1e3,
            height + AXIS,
            Short(from),
            Short(length)
        );
        let width = scale * float(length) / 1e3;
        let axis = Scale::linear((from, from + length), (0.0, 100.0));
        // A label stands on the right of its line, and needs room there.
        let last = 100.0 * (1.0 - LABEL_WIDTH / 2.0 / width.max(1.0));
        for tick in axis.ticks_of(width / LABEL_WIDTH) {
            let x = axis.place(tick);
            put!(
                out,
                "<line x1=\"{x:.4}%\" x2=\"{x:.4}%\" y2=\"{:.0}\"/>",
                height + AXIS
            );
            if x <= last {
                put!(
                    out,
                    "<text x=\"{x:.4}%\" dx=\"4\" y=\"{:.0}\">{}</text>",
                    height + AXIS - 4.0,
                    readable(tick)
                );
            }
        }
        put!(out, "</g>{}</svg>", self.body)
    }

    /// The place of a miss, for links to it.
    fn spot(&self, out: &mut String, spot: &Spot, y: f64) {
        let from = self.x(spot.job.arrival);
        let over = spot.job.ended.unwrap_or(self.stretch.end);
        let width = self.x(over.max(spot.job.absolute_deadline)) - from;
        put!(
            out,
            "<a class=\"spot\" id=\"miss-{}\" style=\"left:{from:.4}%;width:{width:.4}%;\
             top:{y:.0}px\"></a>",
            spot.number
        );
    }

    fn bands(&mut self, behaviors: &[Behavior], bands: &Bands) {
        for (cpu, band) in bands.shown() {
            if let Some(behavior) = behaviors.get(cpu) {
                self.band(cpu, behavior, band);
            }
        }
    }

    fn band(&mut self, cpu: usize, b: &Behavior, band: &Band) {
        let (rows, row) = (band.threads, |thread| band.row(thread));
        let all = 1..=band.nodes.len() + rows;
        for y in all.map(|at| band.top + ROW * float(at as u64) - 2.0) {
            put!(
                self.body,
                "<line class=\"row\" x2=\"100%\" y1=\"{y:.0}\" y2=\"{y:.0}\"/>"
            );
        }
        for (at, node) in (0_u64..).zip(&band.nodes) {
            self.scheduler(cpu, b, (*node, band.top + ROW * float(at) + TOP));
        }
        for thread in 0..rows {
            self.slots(cpu, (thread, row(thread) + TOP));
        }
        self.gaps(b, (band.top, band.bottom()));
        let shown = |j: &&JobRecord| {
            let end = j.ended.unwrap_or(b.end);
            j.thread.index() < rows && j.arrival < self.stretch.end && end >= self.stretch.start
        };
        let jobs: Vec<JobRecord> = b.jobs.iter().filter(shown).copied().collect();
        for job in &jobs {
            self.job(job, b.end, row(job.thread.index()) + TOP);
        }
        // Executions stand above the arrows, so that a microsecond beside a release shows.
        for job in &jobs {
            self.marks(job, b.end, row(job.thread.index()) + TOP);
        }
        for segment in b.segments_in(self.stretch.start, self.stretch.end) {
            let thread = segment.thread.index();
            if thread < rows {
                let late = segment.job.is_some_and(|at| b.jobs[at].missed(b.end));
                let job = segment.job.map(|at| b.jobs[at].index);
                let y = row(thread) + TOP;
                self.run((segment.start, segment.end), y, late, job);
            }
        }
        self.locks(cpu, b, (band.row(0), rows))
    }

    pub(super) fn counted(&mut self) -> bool {
        self.shapes += 1;
        self.shapes <= LIMIT
    }

    fn gaps(&mut self, b: &Behavior, (top, bottom): (f64, f64)) {
        let first = b.missing.partition_point(|m| m.end <= self.stretch.start);
        for gap in b.missing[first..]
            .iter()
            .take_while(|m| m.start < self.stretch.end)
        {
            let (class, what) = match gap.cause {
                MissingCause::Stolen => ("missing", "missing"),
                MissingCause::GivenBack => ("given", "given back"),
            };
            let length = Short(self.log.ns(gap.end.since(gap.start).ticks()));
            let title = format!("{length} {what}");
            self.rect(class, (gap.start, gap.end), (top, bottom - top), &title);
        }
    }

    /// The stretch from arrival to completion.
    fn job(&mut self, job: &JobRecord, end: Instant, y: f64) {
        if job.absolute_deadline != Instant::MAX {
            let ended = job.ended.unwrap_or(end);
            self.rect("pending", (job.arrival, ended), (y + 8.0, 4.0), "");
        }
    }

    /// A stretch of time in a row, with what is said of it.
    pub(super) fn rect(
        &mut self,
        class: &str,
        (from, to): (Instant, Instant),
        (y, height): (f64, f64),
        title: &str,
    ) {
        if !self.counted() {
            return;
        }
        let (x, digits) = (self.x(from), self.digits);
        let width = self.x(to) - x;
        put!(
            self.body,
            "<rect class=\"{class}\" x=\"{x:.digits$}%\" y=\"{y:.0}\" width=\"{width:.digits$}%\" \
             height=\"{height:.0}\""
        );
        if title.is_empty() {
            self.body.push_str("/>");
        } else {
            put!(self.body, "><title>{}</title></rect>", Escaped(title));
        }
    }

    fn run(&mut self, of: (Instant, Instant), y: f64, late: bool, job: Option<u64>) {
        let class = if late { "late" } else { "run" };
        let length = Short(self.log.ns(of.1.since(of.0).ticks()));
        let job = job.map_or_else(String::new, |job| format!("job {}: ", Count(job)));
        self.rect(class, of, (y + 4.0, 12.0), &format!("{job}{length}"));
    }

    /// Release and deadline.
    fn marks(&mut self, job: &JobRecord, end: Instant, y: f64) {
        let (start, to) = (self.stretch.start, self.stretch.end);
        let class = match job.missed(end) {
            true => " class=\"missed\"",
            false => "",
        };
        let marks = [
            (job.arrival, "up", ""),
            (job.absolute_deadline, "down", class),
        ];
        for (at, symbol, class) in marks {
            if start <= at && at <= to && self.counted() {
                let (x, digits) = (self.x(at), self.digits);
                put!(
                    self.body,
                    "<use href=\"#{symbol}\"{class} x=\"{x:.digits$}%\" y=\"{y:.0}\"/>"
                );
            }
        }
    }
}
