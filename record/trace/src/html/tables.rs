//! The tables of the page.

use std::fmt::{self, Write};

use super::svg::{Escaped, clip};
use super::{MAX_LINES, MAX_MISSES, MAX_TASKS};
use crate::short::{Count, Short};
use crate::summary::{CpuReport, RunReport, TaskReport};

fn maybe(ns: Option<u64>) -> String {
    ns.map_or_else(|| "–".into(), |ns| Short(ns).to_string())
}

/// Says what a table leaves out.
fn more(out: &mut String, hidden: u64, what: &str) -> fmt::Result {
    if hidden == 0 {
        return Ok(());
    }
    let hidden = Count(hidden);
    writeln!(
        out,
        "<p class=\"remark\">… and {hidden} more {what} (all in the JSON).</p>"
    )
}

/// Tasks, each with a bar of its observations against its bound.
pub(super) fn tasks(out: &mut String, report: &RunReport) -> fmt::Result {
    out.push_str(
        "<div class=\"wide\"><table><thead><tr><th>task</th><th>on</th><th class=\"n\">N</th>\
         <th class=\"n\">missed</th><th class=\"n\">p50</th><th class=\"n\">p99</th>\
         <th class=\"n\">max</th><th class=\"n\">bound</th><th class=\"n\">machine bound</th>\
         <th>p50, p99, max against the bound</th><th></th></tr></thead><tbody>\n",
    );
    for t in report.tasks.iter().take(MAX_TASKS) {
        let class = match (t.misses, t.excused) {
            (0, _) => "",
            (misses, excused) if misses == excused => " class=\"excused\"",
            _ => " class=\"missed\"",
        };
        let q = t.response_ns;
        write!(
            out,
            "<tr{class}><td class=\"name\">{}</td><td>{}</td><td class=\"n\">{}</td>\
             <td class=\"n miss\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
             <td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td>",
            Escaped(&clip(&t.name, 60)),
            Escaped(&clip(t.scheduler.as_deref().unwrap_or(&t.cpu), 30)),
            Count(t.jobs),
            Count(t.misses),
            maybe(q.p50),
            maybe(q.p99),
            maybe(q.max),
            bound(t),
            maybe(t.machine_bound_ns)
        )?;
        bar(out, t)?;
        writeln!(out, "</td><td class=\"remark\">{}</td></tr>", remarks(t))?;
    }
    out.push_str("</tbody></table></div>\n");
    more(
        out,
        report.tasks.len().saturating_sub(MAX_TASKS) as u64,
        "tasks",
    )
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
fn bar(out: &mut String, t: &TaskReport) -> fmt::Result {
    let limit = t.machine_bound_ns.or(t.bound_ns);
    let (Some(limit), Some(max)) = (limit, t.response_ns.max) else {
        return Ok(());
    };
    let whole = u128::from(limit.max(max).max(1));
    let place = |ns: Option<u64>| u128::from(ns.unwrap_or(0)) * 160 / whole;
    let (p50, p99, end) = (
        place(t.response_ns.p50),
        place(t.response_ns.p99),
        place(Some(max)),
    );
    let bound = place(Some(limit));
    let over = if max > limit { " over" } else { "" };
    write!(
        out,
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

/// Misses, after a count of their causes.
pub(super) fn misses(out: &mut String, report: &RunReport) -> fmt::Result {
    let mut causes: Vec<(&str, u64)> = Vec::new();
    for miss in &report.misses {
        let name = miss.cause.name();
        match causes.iter_mut().find(|(cause, _)| *cause == name) {
            Some((_, count)) => *count += 1,
            None => causes.push((name, 1)),
        }
    }
    out.push_str("<p class=\"causes\">");
    for (cause, count) in causes {
        write!(
            out,
            "<span class=\"cause {cause}\">{cause} {}</span> ",
            Count(count)
        )?;
    }
    out.push_str(
        "</p><div class=\"wide\"><table><thead><tr><th>task</th><th class=\"n\">job</th>\
         <th class=\"n\">release</th><th class=\"n\">late by</th><th>cause</th><th>detail</th></tr>\
         </thead><tbody>\n",
    );
    for miss in report.misses.iter().take(MAX_MISSES) {
        let cause = miss.cause.name();
        let late = match u64::try_from(miss.lateness_ns) {
            Ok(late) => Short(late).to_string(),
            Err(_) => "–".into(),
        };
        writeln!(
            out,
            "<tr><td class=\"name\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
             <td class=\"n\">{late}</td><td><span class=\"cause {cause}\">{cause}</span></td>\
             <td class=\"detail\">{}</td></tr>",
            Escaped(&clip(&miss.task, 60)),
            Count(miss.job),
            Short(miss.release_ns),
            Escaped(&clip(&miss.detail, 600))
        )?;
    }
    out.push_str("</tbody></table></div>\n");
    let hidden = report.misses.len().saturating_sub(MAX_MISSES) as u64 + report.misses_not_listed;
    more(out, hidden, "misses")
}

/// CPUs with their counters.
pub(super) fn cpus(out: &mut String, report: &RunReport) -> fmt::Result {
    out.push_str(
        "<div class=\"wide\"><table><thead><tr><th>CPU</th><th>policy</th><th class=\"n\">busy</th>\
         <th class=\"n\">decisions</th><th class=\"n\">switches</th><th class=\"n\">preemptions</th>\
         <th class=\"n\">deferral</th><th class=\"n\">latest entry</th>\
         <th class=\"n\">missing time</th><th class=\"n\">longest gap</th>\
         <th class=\"n\">given back</th><th>measured by</th></tr></thead><tbody>\n",
    );
    for cpu in report.cpus.iter().take(MAX_LINES) {
        let busy = u128::from(cpu.executed_ns) * 1_000 / u128::from(report.elapsed_ns.max(1));
        writeln!(
            out,
            "<tr><td class=\"name\">{}</td><td>{}</td><td class=\"n\">{}.{} %</td>\
             <td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
             <td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
             <td class=\"n\">{}</td><td class=\"n\">{}</td><td>{}</td></tr>",
            Escaped(&id(cpu)),
            cpu.policy,
            busy / 10,
            busy % 10,
            Count(cpu.decisions),
            Count(cpu.switches),
            Count(cpu.preemptions),
            deferred(cpu),
            Short(cpu.late_max_ns),
            Short(cpu.missing_time_ns),
            Short(cpu.missing_time_max_ns),
            Short(cpu.given_back_ns),
            Escaped(&method(cpu))
        )?;
    }
    out.push_str("</tbody></table></div>\n");
    let counters = report.cpus.iter().take(MAX_LINES);
    for (cpu, counter) in counters.flat_map(|c| c.counters.iter().take(20).map(move |n| (c, n))) {
        let (name, value) = (clip(&counter.name, 80), Count(counter.value));
        let id = clip(&cpu.id, 30);
        writeln!(
            out,
            "<p class=\"remark\">CPU {}: {} {value}</p>",
            Escaped(&id),
            Escaped(&name)
        )?;
    }
    more(
        out,
        report.cpus.len().saturating_sub(MAX_LINES) as u64,
        "CPUs",
    )
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
        "" => "–".into(),
        method => format!("{}, ±{}", clip(method, 40), Short(cpu.missing_error_ns)),
    }
}

/// The fingerprint.
pub(super) fn machine(out: &mut String, report: &RunReport) -> fmt::Result {
    out.push_str("<dl class=\"machine\">");
    for fact in report.machine.iter().take(MAX_LINES) {
        let (name, value) = (clip(&fact.name, 60), clip(&fact.value, 300));
        write!(
            out,
            "<dt>{}</dt><dd>{}</dd>",
            Escaped(&name),
            Escaped(&value)
        )?;
    }
    out.push_str("</dl>\n");
    Ok(())
}

/// Schedulers below CPUs.
pub(super) fn schedulers(out: &mut String, report: &RunReport) -> fmt::Result {
    out.push_str(
        "<div class=\"wide\"><table><thead><tr><th>scheduler</th><th>on</th><th>policy</th>\
         <th>supply</th><th class=\"n\">granted</th><th class=\"n\">executed</th>\
         <th class=\"n\">exhausted</th><th class=\"n\">waited for budget</th>\
         <th class=\"n\">decisions of its own</th><th class=\"n\">deciding</th></tr></thead><tbody>\n",
    );
    for s in report.schedulers.iter().take(MAX_LINES) {
        let supply = match (s.budget_ns, s.period_ns) {
            (Some(budget), Some(period)) => {
                format!("{} {} in {}", s.supply, Short(budget), Short(period))
            }
            _ => s.supply.into(),
        };
        let decisions = match (s.trust, s.refused) {
            ("own-time", 0) => Count(s.decisions).to_string(),
            ("own-time", refused) => {
                format!("{} ({} refused)", Count(s.decisions), Count(refused))
            }
            _ => "–".into(),
        };
        writeln!(
            out,
            "<tr><td class=\"name\">{}</td><td>{}</td><td>{}</td><td>{supply}</td>\
             <td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
             <td class=\"n\">{}</td><td class=\"n\">{decisions}</td><td class=\"n\">{}</td></tr>",
            Escaped(&clip(&s.name, 60)),
            Escaped(&clip(&s.on, 60)),
            s.policy,
            maybe(s.granted_ns),
            Short(s.executed_ns),
            Count(s.exhausted),
            Short(s.starved_ns),
            Short(s.deciding_ns)
        )?;
    }
    out.push_str("</tbody></table></div>\n");
    let hidden = report.schedulers.len().saturating_sub(MAX_LINES) as u64;
    more(out, hidden, "schedulers")
}

/// Resources.
pub(super) fn resources(out: &mut String, report: &RunReport) -> fmt::Result {
    out.push_str(
        "<div class=\"wide\"><table><thead><tr><th>resource</th><th>CPU</th><th>protocol</th>\
         <th class=\"n\">locked</th><th class=\"n\">held at most</th><th class=\"n\">waited for</th>\
         <th class=\"n\">longest wait</th><th class=\"n\">longer than declared</th></tr></thead><tbody>\n",
    );
    for r in report.resources.iter().take(MAX_LINES) {
        writeln!(
            out,
            "<tr><td class=\"name\">{}</td><td>{}</td><td>{}</td><td class=\"n\">{}</td>\
             <td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
             <td class=\"n\">{}</td></tr>",
            Escaped(&clip(&r.name, 60)),
            Escaped(&clip(&r.cpu, 30)),
            r.protocol,
            Count(r.locks),
            Short(r.held_max_ns),
            Count(r.waits),
            Short(r.wait_max_ns),
            Count(r.overran)
        )?;
    }
    out.push_str("</tbody></table></div>\n");
    let hidden = report.resources.len().saturating_sub(MAX_LINES) as u64;
    more(out, hidden, "resources")
}
