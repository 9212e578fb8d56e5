//! A verdict as one self-contained HTML page, in the style of the page of a run.

use std::fmt::Write as _;

use punctual_analysis::{CpuVerdict, Refusal, SchedulerVerdict, TaskVerdict, Transition, Verdict};
use punctual_model::{Change, Requirement, Span, System, readable};
use punctual_trace::html::{self, Column, Escaped, bar, no_class, table, text};

use crate::changes::{Judged, words};
use crate::gangs_page;
use crate::graphs_page;
use crate::plans_page;
use crate::verdict_json::home;
use crate::verdict_text::{self, percent};
use crate::words::cpu_name;
use crate::words::span;

/// Most tasks, and most lines of anything else.
const MAX_LINES: usize = 400;
/// Most characters of an explanation.
const MAX_EXPLANATION: usize = 600;

/// The page of the verdict on the file of `origin`.
pub(crate) fn page(origin: &str, judged: &Judged) -> String {
    let (system, verdict) = (&judged.system, &judged.verdict);
    let mut out = String::new();
    let headline = judged.headline(false);
    let (word, headline) = headline.split_once(": ").unwrap_or_default();
    html::begin(&mut out, origin, (word, headline));
    let highest = verdict.cpus.iter().map(|cpu| cpu.utilization_ppm).max();
    let late = verdict.tasks.iter().filter(|task| is_late(system, task));
    let mut facts = vec![(percent(highest.unwrap_or(0)), "highest utilization")];
    if !verdict.tasks.is_empty() {
        facts.push((late.count().to_string(), "tasks that can be late"));
    }
    if !verdict.graphs.is_empty() {
        let slow = verdict.graphs.iter().filter(|g| graphs_page::is_late(g));
        facts.push((slow.count().to_string(), "graphs slower than required"));
    }
    html::facts(&mut out, &facts);
    refusals(&mut out, "Refused", system, &verdict.refusals);
    changes(&mut out, judged);
    if !verdict.tasks.is_empty() {
        tasks(&mut out, system, verdict);
    }
    gangs_page::sections(&mut out, system, verdict);
    graphs_page::sections(&mut out, verdict);
    plans_page::sections(&mut out, system, verdict);
    if !system.requirements.is_empty() {
        html::section(&mut out, "Required", "");
        lines(&mut out, &verdict_text::requirements(system, verdict));
    }
    cpus(&mut out, system, verdict);
    schedulers(&mut out, system, verdict);
    let grounds = verdict_text::grounds(&verdict.tasks);
    if !grounds.is_empty() {
        html::section(
            &mut out,
            "Grounds",
            "The tests, and what they take for granted.",
        );
        lines(&mut out, &grounds);
    }
    let tool = concat!("punctual ", env!("CARGO_PKG_VERSION"));
    html::end(&mut out, tool, "");
    out
}

/// Each line of a text as a paragraph, and the end of the section.
fn lines(out: &mut String, text: &str) {
    for line in text.lines().take(MAX_LINES) {
        let _ = write!(out, "<p class=\"line\">{}</p>", Escaped(line.trim()));
    }
    out.push_str("</section>\n");
}

/// Why the system is refused, with witnesses and ways out.
fn refusals(out: &mut String, title: &str, system: &System, refusals: &[Refusal]) {
    if refusals.is_empty() {
        return;
    }
    let rows: Vec<(&Refusal, String)> = refusals
        .iter()
        .map(|refusal| {
            let words = |witness| verdict_text::witness_text(system, witness);
            (refusal, refusal.witness.map_or_else(String::new, words))
        })
        .collect();
    html::section(
        out,
        title,
        "Each reason, the situation that shows it, and what would mend it.",
    );
    let columns: &[Column<(&Refusal, String)>] = &[
        ("what", "name", |(r, _)| text(&r.name, 60)),
        ("reason", "detail", |(r, _)| {
            text(&r.reason, MAX_EXPLANATION)
        }),
        ("witness", "detail", |(r, witness)| {
            let when = match r.situation.as_str() {
                "" => String::new(),
                when => format!("; seen when {when}"),
            };
            text(&format!("{witness}{when}"), MAX_EXPLANATION)
        }),
        ("fix", "detail", |(r, _)| text(&r.advice, MAX_EXPLANATION)),
    ];
    table(out, columns, (&rows, MAX_LINES, "reasons"), no_class);
    out.push_str("</section>\n");
}

/// From when on each change keeps every promise, or why it is refused.
fn changes(out: &mut String, judged: &Judged) {
    let rows: Vec<(&Change, &Transition)> = judged.changes().collect();
    if rows.is_empty() {
        return;
    }
    html::section(
        out,
        "Changes",
        "What happens while it runs, and from when on every promise is kept.",
    );
    let columns: &[Column<(&Change, &Transition)>] = &[
        ("change", "name", |(change, _)| text(&change.name, 60)),
        ("at", "n", |(change, _)| {
            readable(change.at.as_ns()).to_string()
        }),
        ("when", "", |(_, change)| words(change)),
        ("ground", "detail", |(_, change)| {
            text(&change.ground, MAX_EXPLANATION)
        }),
    ];
    table(out, columns, (&rows, MAX_LINES, "changes"), no_class);
    out.push_str("</section>\n");
    for (change, transition) in rows {
        let title = format!("Refused: change {}", Escaped(&change.name));
        refusals(
            out,
            &title,
            &transition.system,
            &transition.verdict.refusals,
        );
    }
}

/// A task, the name of its home, the longest response that is allowed in nanoseconds, and whether
/// one can be longer.
type TaskRow<'a> = (&'a TaskVerdict, String, Option<u64>, bool);

fn tasks(out: &mut String, system: &System, verdict: &Verdict) {
    html::section(
        out,
        "Tasks",
        "Bounds against deadlines and required responses. A bound is the sum of its terms.",
    );
    let row = |task| {
        (
            task,
            home(system, task),
            allowed(system, task),
            is_late(system, task),
        )
    };
    let rows: Vec<TaskRow> = verdict.tasks.iter().map(row).collect();
    let columns: &[Column<TaskRow>] = &[
        ("task", "name", |(t, ..)| text(&t.name, 60)),
        ("on", "", |(_, home, ..)| text(home, 60)),
        ("bound", "n max", |(t, ..)| span(t.response_bound)),
        ("allowed", "n", |(_, _, allowed, _)| {
            span(allowed.map(Span::from_ns))
        }),
        ("bound against allowed", "", |(t, _, allowed, _)| {
            match (t.response_bound, allowed) {
                (Some(bound), Some(allowed)) => bar(bound.as_ns(), *allowed),
                (None, Some(_)) => "no bound".into(),
                (_, None) => String::new(),
            }
        }),
        ("slack", "n", |(t, ..)| {
            t.slack.map_or("-".into(), |slack| slack.to_string())
        }),
        ("exactness", "", |(t, ..)| match t.response_bound {
            Some(_) => t.exactness.name().into(),
            None => "-".into(),
        }),
        ("why", "detail", |(t, ..)| {
            text(&t.explanation, MAX_EXPLANATION)
        }),
    ];
    let class = |(.., late): &TaskRow| if *late { "over" } else { "" };
    table(out, columns, (&rows, MAX_LINES, "tasks"), class);
    out.push_str("</section>\n");
}

fn cpus(out: &mut String, system: &System, verdict: &Verdict) {
    html::section(
        out,
        "CPUs",
        "Utilization, with everything that is promised.",
    );
    let limit = u64::from(system.machine.limits.utilization.ppm());
    let policy = |cpu: &CpuVerdict| {
        let of_system = system.cpus.get(cpu.cpu.index());
        of_system.map_or("", |cpu| cpu.policy.name())
    };
    let row = |cpu| (cpu, policy(cpu), limit);
    let rows: Vec<(&CpuVerdict, &str, u64)> = verdict.cpus.iter().map(row).collect();
    let columns: &[Column<(&CpuVerdict, &str, u64)>] = &[
        ("CPU", "name", |(c, ..)| text(&c.name, 60)),
        ("policy", "", |(_, policy, _)| (*policy).into()),
        ("utilization", "n max", |(c, ..)| percent(c.utilization_ppm)),
        ("limit", "n", |(.., limit)| percent(*limit)),
        ("utilization against limit", "", |(c, _, limit)| {
            bar(c.utilization_ppm, *limit)
        }),
        ("quick answers", "detail", |(c, ..)| {
            let between = verdict_text::between_slots(c);
            let words = between.unwrap_or_else(|| verdict_text::quick_answers(c));
            text(&words, MAX_EXPLANATION)
        }),
    ];
    let class = |(c, _, limit): &(&CpuVerdict, &str, u64)| match c.utilization_ppm > *limit {
        true => "over",
        false => "",
    };
    table(out, columns, (&rows, MAX_LINES, "CPUs"), class);
    out.push_str("</section>\n");
}

/// A scheduler with its policy and the name above it.
type SchedulerRow<'a> = (&'a SchedulerVerdict, &'static str, String);

fn schedulers(out: &mut String, system: &System, verdict: &Verdict) {
    if verdict.schedulers.is_empty() {
        return;
    }
    html::section(
        out,
        "Schedulers",
        "What each may count on, and what it needs.",
    );
    let row = |row| {
        let row: &SchedulerVerdict = row;
        let scheduler = system.schedulers.get(row.scheduler.index())?;
        let above = scheduler
            .parent
            .and_then(|p| system.schedulers.get(p.index()));
        let above = above.map(|above| above.name.clone());
        let above = above.unwrap_or_else(|| format!("cpu.{}", cpu_name(system, row.cpu)));
        Some((row, scheduler.policy.name(), above))
    };
    let rows: Vec<SchedulerRow> = verdict.schedulers.iter().filter_map(row).collect();
    let columns: &[Column<SchedulerRow>] = &[
        ("scheduler", "name", |(s, ..)| text(&s.name, 60)),
        ("policy", "", |(_, policy, _)| (*policy).into()),
        ("below", "", |(.., above)| text(above, 60)),
        ("utilization", "n", |(s, ..)| percent(s.utilization_ppm)),
        ("supply", "n", |(s, ..)| percent(s.supply_ppm)),
        ("utilization against supply", "", |(s, ..)| {
            bar(s.utilization_ppm, s.supply_ppm)
        }),
        ("budget by", "n", |(s, ..)| span(s.budget_bound)),
        ("why", "detail", |(s, ..)| {
            text(&s.explanation, MAX_EXPLANATION)
        }),
    ];
    table(out, columns, (&rows, MAX_LINES, "schedulers"), no_class);
    out.push_str("</section>\n");
}

/// Whether a response can be longer than is allowed.
fn is_late(system: &System, task: &TaskVerdict) -> bool {
    let bound = task.response_bound.map(Span::as_ns);
    allowed(system, task).is_some_and(|allowed| bound.is_none_or(|bound| bound > allowed))
}

/// The longest response that deadline and requirements allow, in nanoseconds.
fn allowed(system: &System, task: &TaskVerdict) -> Option<u64> {
    let within = system
        .requirements
        .iter()
        .filter_map(|requirement| match requirement {
            &Requirement::Response {
                task: whose,
                within,
            } => (whose == task.task).then_some(within),
            Requirement::Chain { .. } | Requirement::Jitter { .. } => None,
        });
    within.chain(task.relative_deadline).min().map(Span::as_ns)
}
