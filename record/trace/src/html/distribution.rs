//! Response-time distributions, each against its bound.

use std::fmt::Write;

use super::MAX_DISTRIBUTIONS;
use super::svg::{Escaped, Scale, clip, float};
use crate::behavior::Behavior;
use crate::log::Log;
use crate::short::{Count, Short};
use crate::summary::{RunReport, TaskReport};

const WIDTH: f64 = 340.0;
const HEIGHT: f64 = 124.0;
const LEFT: f64 = 8.0;
const TOP: f64 = 22.0;
const BOTTOM: f64 = 104.0;
const LABEL: f64 = 40.0;
const BINS: usize = 64;
/// A bound this many times the largest observation leaves a linear axis empty.
const FAR: u64 = 8;

/// Writes a drawing per task that has observations; the closest to its bound first when there are
/// too many.
pub(super) fn write(out: &mut String, log: &Log, behaviors: &[Behavior], report: &RunReport) {
    let mut tasks: Vec<usize> = (0..report.tasks.len())
        .filter(|&task| report.tasks[task].response_ns.n > 0)
        .collect();
    let hidden = tasks.len().saturating_sub(MAX_DISTRIBUTIONS);
    if hidden > 0 {
        tasks.sort_by_key(|&task| std::cmp::Reverse(closeness(&report.tasks[task])));
        tasks.truncate(MAX_DISTRIBUTIONS);
        tasks.sort_unstable();
    }
    let responses = collect(log, behaviors, report.tasks.len(), &tasks);
    out.push_str("<div class=\"cards\">");
    for &task in &tasks {
        card(
            out,
            &report.tasks[task],
            &responses[task],
            report.duration_ns,
        );
    }
    out.push_str("</div>\n");
    if hidden > 0 {
        let hidden = Count(hidden as u64);
        putln!(
            out,
            "<p class=\"remark\">… and {hidden} tasks farther from their bounds.</p>"
        );
    }
}

/// The largest observation, in thousandths of the bound.
fn closeness(task: &TaskReport) -> u128 {
    let bound = task.machine_bound_ns.or(task.bound_ns).unwrap_or(u64::MAX);
    u128::from(task.response_ns.max.unwrap_or(0)) * 1_000 / u128::from(bound.max(1))
}

/// Responses in nanoseconds by task, for the tasks that are drawn.
fn collect(log: &Log, behaviors: &[Behavior], tasks: usize, drawn: &[usize]) -> Vec<Vec<u64>> {
    let mut responses = vec![Vec::new(); tasks];
    for (cpu, behavior) in behaviors.iter().enumerate() {
        for job in &behavior.jobs {
            let Some(task) = log.task_of(cpu, job.thread) else {
                continue;
            };
            if let Some(response) = job.response_time()
                && drawn.binary_search(&task.index()).is_ok()
            {
                responses[task.index()].push(log.ns(response.ticks()));
            }
        }
    }
    responses
}

fn card(out: &mut String, t: &TaskReport, responses: &[u64], duration_ns: u64) {
    let q = t.response_ns;
    let max = q.max.unwrap_or(0);
    let bounds = [t.bound_ns, t.machine_bound_ns];
    let farthest = bounds.into_iter().flatten().max().unwrap_or(0);
    let place = (LEFT, WIDTH - 2.0 * LEFT);
    let scale = if farthest / FAR > max {
        let least = responses.iter().min().copied().unwrap_or(1);
        Scale::logarithmic((least / 2, farthest.saturating_add(farthest / 5)), place)
    } else {
        let end = farthest.max(max);
        Scale::linear((0, end.saturating_add(end / 12)), place)
    };
    put!(
        out,
        "<figure><figcaption><b title=\"{}\">{}</b><span>N {} in {} · max {}</span></figcaption>\
         <svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"Responses of {}\">",
        Escaped(&t.name),
        Escaped(&clip(&t.name, 28)),
        Count(q.n),
        Short(duration_ns),
        Short(max),
        Escaped(&clip(&t.name, 60))
    );
    axis(out, &scale);
    bars(out, &scale, responses, t.machine_bound_ns.or(t.bound_ns));
    put!(
        out,
        "<line class=\"axis\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{BOTTOM}\" y2=\"{BOTTOM}\"/>",
        WIDTH - LEFT
    );
    let file = t.bound_ns.map(|ns| (ns, "bound", "bound"));
    let machine = t.machine_bound_ns.filter(|ns| Some(*ns) != t.bound_ns);
    let machine = machine.map(|ns| (ns, "bound machine", "machine bound"));
    for (line, (ns, class, name)) in file.into_iter().chain(machine).enumerate() {
        bound(out, scale.place(ns), float(line as u64), (class, name, ns));
    }
    out.push_str("</svg></figure>\n");
}

/// Round times, with labels where these have room.
fn axis(out: &mut String, scale: &Scale) {
    for tick in scale.ticks() {
        let x = scale.place(tick);
        put!(
            out,
            "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{BOTTOM}\"/>"
        );
        if tick == 0 || (LABEL / 2.0..WIDTH - LABEL / 2.0).contains(&x) {
            put!(
                out,
                "<text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
                BOTTOM + 14.0,
                Short(tick)
            );
        }
    }
}

/// Bars whose heights are logarithms of counts.
fn bars(out: &mut String, scale: &Scale, responses: &[u64], bound: Option<u64>) {
    let mut counts = [(0_u64, false); BINS];
    let width = (WIDTH - 2.0 * LEFT) / float(BINS as u64);
    for &response in responses {
        let place = scale.place(response);
        let bin = (0..BINS - 1).take_while(|&bin| LEFT + width * float(bin as u64 + 1) <= place);
        let (count, over) = &mut counts[bin.count()];
        *count += 1;
        *over |= bound.is_some_and(|bound| response > bound);
    }
    let most = counts.iter().map(|(count, _)| *count).max().unwrap_or(1);
    let full = float(most + 1).ln();
    for (bin, (count, over)) in counts.into_iter().enumerate().filter(|(_, (n, _))| *n > 0) {
        let height = (float(count + 1).ln() / full * (BOTTOM - TOP - 6.0)).max(2.0);
        let class = if over { "run late" } else { "run" };
        put!(
            out,
            "<rect class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{height:.1}\">\
             <title>{} jobs</title></rect>",
            LEFT + width * float(bin as u64) + 0.4,
            BOTTOM - height,
            width - 0.8,
            Count(count)
        );
    }
}

fn bound(out: &mut String, x: f64, line: f64, (class, name, ns): (&str, &str, u64)) {
    let (anchor, dx) = if x > WIDTH / 2.0 {
        ("end", -4.0)
    } else {
        ("start", 4.0)
    };
    put!(
        out,
        "<line class=\"{class}\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"4\" y2=\"{BOTTOM}\"/>\
         <text class=\"label\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{name} {}</text>",
        x + dx,
        11.0 + 12.0 * line,
        Short(ns)
    )
}
