//! The tables of the page.

use std::fmt::Write;

use super::frame::{Column, more, no_class, places, table, text};
use super::svg::{Escaped, clip, float};
use super::{MAX_LINES, MAX_MISSES, MAX_TASKS};
use crate::short::{Count, Short};
use crate::summary::{
    ActorReport, ChangeReport, CpuReport, GangReport, GraphReport, GroupReport, Miss,
    ResourceReport, RunReport, RunVerdict, SchedulerReport, TaskReport,
};

fn maybe(ns: Option<u64>) -> String {
    ns.map_or_else(|| "–".into(), |ns| Short(ns).to_string())
}

fn count(n: u64) -> String {
    Count(n).to_string()
}

fn short(ns: u64) -> String {
    Short(ns).to_string()
}

/// Tasks, each with a bar of its observations against its bound.
pub(super) fn tasks(out: &mut String, report: &RunReport) {
    let columns: &[Column<TaskReport>] = &[
        ("task", "name", |t| text(&t.name, 60)),
        ("on", "", |t| {
            text(t.scheduler.as_deref().unwrap_or(&t.cpu), 30)
        }),
        ("N", "n", |t| count(t.jobs)),
        ("missed", "n miss", |t| count(t.misses)),
        ("p50", "n", |t| maybe(t.response_ns.p50)),
        ("p99", "n", |t| maybe(t.response_ns.p99)),
        ("max", "n", |t| maybe(t.response_ns.max)),
        ("bound", "n", bound),
        ("machine bound", "n", |t| maybe(t.machine_bound_ns)),
        ("p50, p99, max against the bound", "", bar),
        ("", "remark", remarks),
    ];
    let class = |t: &TaskReport| match (t.misses, t.excused) {
        (0, _) => "",
        (misses, excused) if misses == excused => "excused",
        _ => "missed",
    };
    table(out, columns, (&report.tasks, MAX_TASKS, "tasks"), class);
}

/// Graphs: their iterations beside the bounds, then their actors.
pub(super) fn graphs(out: &mut String, report: &RunReport) {
    let columns: &[Column<GraphReport>] = &[
        ("graph", "name", |g| text(&g.name, 60)),
        ("iterations", "n", |g| count(g.iterations)),
        ("period", "n", |g| maybe(g.period_ns)),
        ("bound", "n", |g| maybe(g.period_bound_ns)),
        ("required", "n", |g| maybe(g.every_ns)),
        ("first output", "n", |g| maybe(g.first_output_ns)),
        ("its bound", "n", |g| maybe(g.first_output_bound_ns)),
        ("latency", "n", |g| maybe(g.latency_ns)),
        ("its bound", "n", |g| maybe(g.latency_bound_ns)),
        ("required", "n", |g| maybe(g.within_ns)),
        ("", "remark miss", |g| {
            match (g.verdict, g.exceeds_bound()) {
                (RunVerdict::Met, false) => String::new(),
                (RunVerdict::Met, true) => "something is above its bound".into(),
                _ => "not as required".into(),
            }
        }),
    ];
    let class = |g: &GraphReport| match g.verdict {
        RunVerdict::Met => "",
        _ => "missed",
    };
    table(out, columns, (&report.graphs, MAX_LINES, "graphs"), class);
    let columns: &[Column<ActorReport>] = &[
        ("actor", "name", |a| text(&a.name, 60)),
        ("on", "", |a| text(&a.on, 30)),
        ("firings", "n", |a| count(a.firings)),
        ("preempted", "n", |a| count(a.preemptions)),
        ("longest", "n max", |a| maybe(a.longest_ns)),
        ("wcet", "n", |a| short(a.wcet_ns)),
    ];
    let class = |a: &ActorReport| match a.longest_ns > Some(a.wcet_ns) {
        true => "over",
        false => "",
    };
    for graph in &report.graphs {
        table(out, columns, (&graph.actors, MAX_LINES, "actors"), class);
    }
}

/// Gangs: the skew of their members beside its bound.
pub(super) fn gangs(out: &mut String, report: &RunReport) {
    let columns: &[Column<GangReport>] = &[
        ("gang", "name", |g| text(&g.name, 60)),
        ("members", "n", |g| count(g.members.len() as u64)),
        ("arrivals", "n", |g| count(g.skew_ns.n)),
        ("skew p50", "n", |g| maybe(g.skew_ns.p50)),
        ("p99", "n", |g| maybe(g.skew_ns.p99)),
        ("max", "n max", |g| maybe(g.skew_ns.max)),
        ("bound", "n", |g| maybe(g.bound_ns)),
        ("beyond it", "n", |g| count(g.beyond)),
        ("late ends", "n", |g| count(g.late_ends)),
        ("", "remark miss", remark_on),
    ];
    let class = |g: &GangReport| match g.beyond > 0 || g.not_in_step || g.forced {
        false => "",
        true => "over",
    };
    table(out, columns, (&report.gangs, MAX_LINES, "gangs"), class);
}

/// Planned groups: the ends of their requests.
pub(super) fn groups(out: &mut String, report: &RunReport) {
    let columns: &[Column<GroupReport>] = &[
        ("group", "name", |g| text(&g.name, 60)),
        ("requests", "n", |g| count(g.requests)),
        ("guaranteed", "n", |g| count(g.guaranteed)),
        ("refused", "n", |g| count(g.refused)),
        ("out of time", "n", |g| count(g.out_of_time)),
        ("shed", "n", |g| count(g.shed)),
        ("killed", "n", |g| count(g.killed)),
        ("done", "n", |g| count(g.done)),
        ("late", "n", |g| count(g.late)),
        ("ended after p50", "n", |g| maybe(g.ends_ns.p50)),
        ("max", "n max", |g| maybe(g.ends_ns.max)),
    ];
    let class = |g: &GroupReport| match g.late {
        0 => "",
        _ => "missed",
    };
    table(out, columns, (&report.groups, MAX_LINES, "groups"), class);
}

/// What the result of a gang is to be read with.
fn remark_on(gang: &GangReport) -> String {
    let from = gang.clocks_differ_from_ns;
    let clocks =
        from.map(|from| format!("from {} on clocks differ by more than allowed", short(from)));
    let step = gang.not_in_step.then(|| "not kept in step".to_string());
    let forced = gang
        .forced
        .then(|| "unsafe: its barrier was left out without proof".to_string());
    let all = [clocks, step, forced].into_iter().flatten();
    all.collect::<Vec<_>>().join("; ")
}

/// The changes of the run.
pub(super) fn changes(out: &mut String, report: &RunReport) {
    let columns: &[Column<ChangeReport>] = &[
        ("change", "name", |c| text(&c.name, 60)),
        ("asked for", "n", |c| short(c.at_ns)),
        ("done", "n", |c| maybe(c.done_ns)),
        ("when", "", |c| text(&c.when, 20)),
        ("ground", "detail", |c| text(&c.ground, 200)),
        ("", "remark", |c| match (&c.refused, c.done_ns) {
            (Some(refused), _) => text(&format!("refused by the scheduler: {refused}"), 200),
            (None, None) if c.when == "never" => "refused".into(),
            (None, None) => "not done before the run ended".into(),
            (None, Some(_)) => String::new(),
        }),
    ];
    table(
        out,
        columns,
        (&report.changes, MAX_LINES, "changes"),
        no_class,
    );
}

fn bound(t: &TaskReport) -> String {
    let bound = maybe(t.bound_ns);
    match t.exactness.as_deref() {
        Some(exactness @ ("exact" | "sufficient" | "simulated")) => {
            format!("<span title=\"{exactness}\">{bound}</span>")
        }
        _ => bound,
    }
}

fn remarks(t: &TaskReport) -> String {
    let counts = [
        ("over budget", t.overruns),
        ("skipped", t.skipped),
        ("lost", t.lost),
        ("unfinished", t.unfinished),
        ("excused", t.excused),
    ];
    let shown = counts.iter().filter(|(_, n)| *n > 0);
    let mut parts: Vec<String> = shown
        .map(|(what, n)| format!("{} {what}", Count(*n)))
        .collect();
    if t.exceeds_bound() {
        parts.push("max above its bound".into());
    }
    parts.join(", ")
}

/// Observations as marks on a bar whose end is the bound.
fn bar(t: &TaskReport) -> String {
    let limit = t.machine_bound_ns.or(t.bound_ns);
    let (Some(limit), Some(max)) = (limit, t.response_ns.max) else {
        return String::new();
    };
    let observed = [t.response_ns.p50, t.response_ns.p99].map(|ns| ns.unwrap_or(0));
    let [p50, p99, end, bound] = places([observed[0], observed[1], max, limit]);
    let over = if max > limit { " over" } else { "" };
    format!(
        "<svg class=\"bar{over}\" viewBox=\"0 0 164 12\" width=\"164\" height=\"12\" role=\"img\" \
         aria-label=\"max is {} % of the bound\"><rect class=\"track\" x=\"0\" y=\"4\" \
         width=\"160\" height=\"4\" rx=\"2\"/><rect class=\"p99\" x=\"0\" y=\"4\" width=\"{p99}\" \
         height=\"4\" rx=\"2\"/><rect class=\"p50\" x=\"0\" y=\"4\" width=\"{p50}\" height=\"4\" \
         rx=\"2\"/><rect class=\"max\" x=\"{}\" y=\"1\" width=\"2\" height=\"10\"/>\
         <rect class=\"bound\" x=\"{bound}\" y=\"0\" width=\"2\" height=\"12\"/></svg>",
        u128::from(max) * 100 / u128::from(limit.max(1)),
        end.saturating_sub(1)
    )
}

/// The misses that the page lists, in the order of the report; those that are not excused go before
/// others.
pub(super) fn listed(report: &RunReport) -> Vec<Miss> {
    let late = report.misses.iter().filter(|miss| !miss.excused).count();
    let (mut late, mut excused) = (MAX_MISSES, MAX_MISSES.saturating_sub(late));
    let listed = report.misses.iter().filter(|miss| {
        let left = if miss.excused {
            &mut excused
        } else {
            &mut late
        };
        let some = *left > 0;
        *left -= usize::from(some);
        some
    });
    listed.cloned().collect()
}

/// How many misses have each cause, as bars; they add up to all misses.
fn causes(out: &mut String, report: &RunReport) {
    let mut causes: Vec<(&str, u64, u64)> = Vec::new();
    for miss in &report.misses {
        let (name, excused) = (miss.cause.name(), u64::from(miss.excused));
        match causes.iter_mut().find(|(cause, ..)| *cause == name) {
            Some((_, count, of_them)) => (*count, *of_them) = (*count + 1, *of_them + excused),
            None => causes.push((name, 1, excused)),
        }
    }
    causes.sort_by_key(|(_, count, _)| std::cmp::Reverse(*count));
    if report.misses_not_listed > 0 {
        causes.push(("not told apart", report.misses_not_listed, 0));
    }
    let most = causes.iter().map(|(_, count, _)| *count).max().unwrap_or(1);
    out.push_str("<dl class=\"causes\">");
    for (cause, count, excused) in causes {
        let share = |n: u64| float(n) * 100.0 / float(most.max(1));
        let words = match excused {
            0 => String::new(),
            n if n == count => ", excused".into(),
            n => format!(", {} excused", Count(n)),
        };
        put!(
            out,
            "<div><dt>{cause}</dt><dd><i style=\"width:{:.1}%\"></i>\
             <i class=\"excuse\" style=\"width:{:.1}%\"></i></dd><dd>{}{words}</dd></div>",
            share(count - excused),
            share(excused),
            Count(count)
        );
    }
    out.push_str("</dl>");
}

/// Misses, after a count of their causes; those that `linked` names lead to their places.
pub(super) fn misses(out: &mut String, report: &RunReport, (misses, linked): (&[Miss], &[usize])) {
    causes(out, report);
    let rows: Vec<(usize, &Miss, bool)> = misses
        .iter()
        .enumerate()
        .map(|(at, miss)| (at, miss, linked.contains(&at)))
        .collect();
    let columns: &[Column<(usize, &Miss, bool)>] = &[
        ("task", "name", |(_, m, _)| text(&m.task, 60)),
        ("job", "n", |(at, m, linked)| match linked {
            true => format!("<a href=\"#miss-{at}\">{}</a>", Count(m.job)),
            false => count(m.job),
        }),
        ("release", "n", |(_, m, _)| short(m.release_ns)),
        ("late by", "n", |(_, m, _)| {
            maybe(u64::try_from(m.lateness_ns).ok())
        }),
        ("cause", "", |(_, m, _)| {
            let (cause, excused) = (m.cause.name(), if m.excused { ", excused" } else { "" });
            format!("<span class=\"cause {cause}\">{cause}</span>{excused}")
        }),
        ("detail", "detail", |(_, m, _)| text(&m.detail, 600)),
    ];
    table(out, columns, (&rows, MAX_MISSES, "misses"), no_class);
    let hidden = (report.misses.len() - misses.len()) as u64 + report.misses_not_listed;
    more(out, hidden, "misses");
}

/// CPUs with their counters.
pub(super) fn cpus(out: &mut String, report: &RunReport) {
    let elapsed = u128::from(report.elapsed_ns.max(1));
    let busy = |c: &CpuReport| u128::from(c.executed_ns) * 1_000 / elapsed;
    let rows = report.cpus.iter().map(|cpu| (cpu, busy(cpu)));
    let rows: Vec<(&CpuReport, u128)> = rows.collect();
    let columns: &[Column<(&CpuReport, u128)>] = &[
        ("CPU", "name", |(c, _)| Escaped(&id(c)).to_string()),
        ("policy", "", |(c, _)| c.policy.into()),
        ("busy", "n", |(_, busy)| {
            format!("{}.{} %", busy / 10, busy % 10)
        }),
        ("decisions", "n", |(c, _)| count(c.decisions)),
        ("switches", "n", |(c, _)| count(c.switches)),
        ("preemptions", "n", |(c, _)| count(c.preemptions)),
        ("deferral", "n", |(c, _)| deferred(c)),
        ("latest entry", "n", |(c, _)| short(c.late_max_ns)),
        ("missing time", "n", |(c, _)| short(c.missing_time_ns)),
        ("longest gap", "n", |(c, _)| short(c.missing_time_max_ns)),
        ("given back", "n", |(c, _)| short(c.given_back_ns)),
    ];
    table(out, columns, (&rows, MAX_LINES, "CPUs"), no_class);
    for cpu in report.cpus.iter().take(MAX_LINES) {
        let (id, method) = (clip(&cpu.id, 30), method(cpu));
        let (id, method) = (Escaped(&id), Escaped(&method));
        putln!(
            out,
            "<p class=\"remark\">CPU {id}: missing time measured by {method}</p>"
        );
    }
    for (cpu, seen) in report
        .cpus
        .iter()
        .take(MAX_LINES)
        .filter_map(|c| Some((c, c.boundaries?)))
    {
        let id = clip(&cpu.id, 30);
        putln!(out, "<p class=\"remark\">CPU {}: {seen}</p>", Escaped(&id));
    }
    let counters = report.cpus.iter().take(MAX_LINES);
    for (cpu, counter) in counters.flat_map(|c| c.counters.iter().take(20).map(move |n| (c, n))) {
        let (name, value) = (clip(&counter.name, 80), Count(counter.value));
        let id = clip(&cpu.id, 30);
        putln!(
            out,
            "<p class=\"remark\">CPU {}: {} {value}</p>",
            Escaped(&id),
            Escaped(&name)
        );
    }
}

fn id(cpu: &CpuReport) -> String {
    let name = clip(&cpu.id, 30);
    match cpu.host {
        Some(host) if host.to_string() != name => format!("{name} (host {host})"),
        _ => name,
    }
}

fn deferred(cpu: &CpuReport) -> String {
    match cpu.deferrals {
        0 => "0".into(),
        n => {
            let p99 = cpu.deferral_ns.p99.unwrap_or(0);
            let longest = Short(cpu.deferred_max_ns);
            format!("{} (p99 {}, max {longest})", Count(n), Short(p99))
        }
    }
}

fn method(cpu: &CpuReport) -> String {
    match cpu.missing_method.as_str() {
        "" => "nothing".into(),
        method => {
            let by = cpu.missing_time_by.to_string();
            let by = if by.is_empty() {
                by
            } else {
                format!("; taken by: {by}")
            };
            format!(
                "{}, ±{}{by}",
                clip(method, 200),
                Short(cpu.missing_error_ns)
            )
        }
    }
}

/// The fingerprint.
pub(super) fn machine(out: &mut String, report: &RunReport) {
    out.push_str("<dl class=\"machine\">");
    for fact in report.machine.iter().take(MAX_LINES) {
        let (name, value) = (clip(&fact.name, 60), clip(&fact.value, 300));
        put!(
            out,
            "<dt>{}</dt><dd>{}</dd>",
            Escaped(&name),
            Escaped(&value)
        );
    }
    out.push_str("</dl>\n");
}

/// Schedulers below CPUs.
pub(super) fn schedulers(out: &mut String, report: &RunReport) {
    let columns: &[Column<SchedulerReport>] = &[
        ("scheduler", "name", |s| text(&s.name, 60)),
        ("on", "", |s| text(&s.on, 60)),
        ("policy", "", |s| s.policy.into()),
        ("supply", "", |s| match (s.budget_ns, s.period_ns) {
            (Some(budget), Some(period)) => {
                format!("{} {} in {}", s.supply, Short(budget), Short(period))
            }
            _ => s.supply.into(),
        }),
        ("granted", "n", |s| maybe(s.granted_ns)),
        ("executed", "n", |s| short(s.executed_ns)),
        ("exhausted", "n", |s| count(s.exhausted)),
        ("waited for budget", "n", |s| short(s.starved_ns)),
        ("decisions of its own", "n", |s| {
            match (s.trust, s.refused) {
                ("own-time", 0) => count(s.decisions),
                ("own-time", refused) => {
                    format!("{} ({} refused)", Count(s.decisions), Count(refused))
                }
                _ => "–".into(),
            }
        }),
        ("deciding", "n", |s| short(s.deciding_ns)),
        ("other policies", "", |s| {
            match (&s.fell_back, s.policies_replaced) {
                (Some(fell), _) => {
                    let at = Short(fell.at_ns);
                    format!("{} since {at}: {}", fell.policy, fell.reason())
                }
                (None, 0) => "–".into(),
                (None, replaced) => format!("{} replaced", Count(replaced)),
            }
        }),
    ];
    let rows = (report.schedulers.as_slice(), MAX_LINES, "schedulers");
    table(out, columns, rows, no_class);
}

/// Resources.
pub(super) fn resources(out: &mut String, report: &RunReport) {
    let columns: &[Column<ResourceReport>] = &[
        ("resource", "name", |r| text(&r.name, 60)),
        ("CPU", "", |r| text(&r.cpu, 30)),
        ("protocol", "", |r| r.protocol.into()),
        ("locked", "n", |r| count(r.locks)),
        ("held at most", "n", |r| short(r.held_max_ns)),
        ("waited for", "n", |r| count(r.waits)),
        ("longest wait", "n", |r| short(r.wait_max_ns)),
        ("longer than declared", "n", |r| count(r.overran)),
    ];
    let rows = (report.resources.as_slice(), MAX_LINES, "resources");
    table(out, columns, rows, no_class);
}
