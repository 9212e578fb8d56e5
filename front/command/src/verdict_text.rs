//! A verdict for people: the answer first, then the figures, then why.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use punctual_analysis::{
    BetweenSlots, CpuVerdict, GraphVerdict, QuickAnswer, Refusal, SchedulerVerdict, SliceVerdict,
    TaskVerdict, Verdict, Witness,
};
use punctual_model::{Ns, Requirement, Share, Span, System, readable};

use crate::verdict_json::{self, home};
use crate::words::{count, cpu_name, span, task_name};
use crate::{gangs, graphs, plans};
use punctual_terminal::ending::Failure;
use punctual_terminal::output::{self, styled};
use punctual_terminal::table::Table;

const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::Red.on_default().bold();
const HEADING: Style = Style::new().bold();

/// Prints a verdict: as JSON, the answer alone, or all of it.
pub(crate) fn print(
    system: &System,
    verdict: &Verdict,
    json: bool,
    quiet: bool,
) -> Result<(), Failure> {
    let coloured = output::colour_stdout();
    match (json, quiet) {
        (true, _) => output::print_json(&verdict_json::json(system, verdict)),
        (false, true) => output::print(headline(system, verdict, &[], coloured)),
        (false, false) => {
            let headline = headline(system, verdict, &[], coloured);
            let text = body(system, verdict, coloured);
            output::print(format!("{headline}\n{text}"))
        }
    }
}

/// The answer in one line. `changes` are those that are refused.
pub(crate) fn headline(
    system: &System,
    verdict: &Verdict,
    changes: &[&str],
    coloured: bool,
) -> String {
    let tasks = count(system.tasks.len(), "task");
    let others = [graphs::size(verdict), plans::size(system)];
    let mut parts: Vec<String> = others.into_iter().flatten().collect();
    if parts.is_empty() || !system.tasks.is_empty() {
        parts.insert(0, tasks);
    }
    let parts = parts.join(" and ");
    let size = format!("{parts} on {}", count(system.cpus.len(), "CPU"));
    let refused = styled("refused", BAD, coloured);
    if !verdict.admitted {
        let reasons = count(verdict.refusals.len(), "reason");
        format!("{refused}: {size}, {reasons}")
    } else if changes.is_empty() {
        let required = |graph: &GraphVerdict| graph.every.or(graph.within).is_some();
        let demanded = verdict.graphs.iter().any(required);
        let held = match (system.tasks.is_empty(), demanded) {
            _ if !system.requirements.is_empty() => "every deadline and requirement holds",
            (false, false) => "every deadline holds",
            (false, true) => "every deadline and requirement holds",
            (true, _) if !system.groups.is_empty() => "every deadline holds",
            (true, true) => "every requirement holds",
            (true, false) if verdict.graphs.is_empty() => "every deadline holds",
            (true, false) if verdict.graphs.iter().any(|graph| graph.period.is_none()) => {
                "no graph stops whose rates are known"
            }
            (true, false) => "every graph goes on for ever",
        };
        format!("{}: {size}, {held}", styled("admitted", GOOD, coloured))
    } else {
        let what = if changes.len() == 1 {
            "change"
        } else {
            "changes"
        };
        let names = changes.join(", ");
        format!("{refused}: {size}, every deadline holds at the start, refused {what}: {names}")
    }
}

/// What stands below the headline: refusals, CPUs, tasks, requirements, explanations.
pub(crate) fn body(system: &System, verdict: &Verdict, coloured: bool) -> String {
    let heading = |text| styled(text, HEADING, coloured);
    let others = !verdict.graphs.is_empty() || verdict.plan.is_some();
    let has_tasks = !verdict.tasks.is_empty() || !others;
    let mut text = String::new();
    for refusal in &verdict.refusals {
        let _ = write!(text, "\n{}", refusal_text(system, refusal, coloured));
    }
    let _ = write!(text, "\n{}", cpu_table(system, &verdict.cpus));
    if !verdict.schedulers.is_empty() {
        let _ = write!(text, "\n{}", scheduler_table(system, &verdict.schedulers));
        let slices = verdict.schedulers.iter().filter_map(|s| s.slice.as_ref());
        for slice in slices {
            let what = match slice.is_guaranteed {
                true => "guaranteed",
                false => "background",
            };
            let SliceVerdict { by, to, reason, .. } = slice;
            let _ = writeln!(text, "slice of {by} for {to}: {what}, {reason}");
        }
    }
    for cpu in &verdict.cpus {
        if let Some(words) = between_slots(cpu) {
            let _ = write!(text, "\ncpu {}: {words}\n", cpu.name);
        }
    }
    if has_tasks {
        let _ = write!(text, "\n{}", task_table(system, &verdict.tasks));
    }
    if !system.requirements.is_empty() {
        let _ = write!(
            text,
            "\n{}\n{}",
            heading("Required"),
            requirements(system, verdict)
        );
    }
    if has_tasks {
        let _ = write!(text, "\n{}\n{}", heading("Why"), reasons(&verdict.tasks));
        let _ = write!(
            text,
            "\n{}\n{}",
            heading("Grounds"),
            grounds(&verdict.tasks)
        );
    }
    text += &gangs::text(system, verdict, coloured);
    text += &graphs::text(verdict, coloured);
    text += &plans::text(system, verdict, coloured);
    text.truncate(text.trim_end().len());
    text
}

pub(crate) fn refusal_text(system: &System, refusal: &Refusal, coloured: bool) -> String {
    let mut text = format!(
        "{}: {}\n",
        styled(&refusal.name, BAD, coloured),
        refusal.reason
    );
    if let Some(witness) = refusal.witness {
        let _ = writeln!(text, "  witness: {}", witness_text(system, witness));
        if !refusal.situation.is_empty() {
            let _ = writeln!(text, "  seen when {}", refusal.situation);
        }
    }
    if !refusal.advice.is_empty() {
        let _ = writeln!(text, "  fix: {}", refusal.advice);
    }
    text
}

pub(crate) fn witness_text(system: &System, witness: Witness) -> String {
    match witness {
        Witness::Demand { at, demand, supply } => format!(
            "by {} work of {} is due, and the processor supplies {}",
            readable(at.as_ns()),
            readable(demand.as_ns()),
            readable(supply.as_ns())
        ),
        Witness::Response {
            task,
            job,
            offset,
            response,
            deadline,
        } => {
            let name = task_name(system, task);
            let released = match offset {
                Span::ZERO => String::new(),
                offset => format!(
                    ", released {} later than the others",
                    readable(offset.as_ns())
                ),
            };
            let (response, deadline) = (readable(response.as_ns()), readable(deadline.as_ns()));
            format!("job {job} of {name}{released} takes {response} where {deadline} is allowed")
        }
    }
}

fn cpu_table(system: &System, cpus: &[CpuVerdict]) -> Table {
    let mut table = Table::new(&["cpu", "policy", ">utilization", ">limit", "quick answers"]);
    let limit = system.machine.limits.utilization;
    for cpu in cpus {
        let policy = system
            .cpus
            .get(cpu.cpu.index())
            .map_or("", |cpu| cpu.policy.name());
        table.row(vec![
            cpu.name.clone(),
            policy.into(),
            percent(cpu.utilization_ppm),
            if limit == Share::WHOLE {
                "100 %".into()
            } else {
                percent(u64::from(limit.ppm()))
            },
            quick_answers(cpu),
        ]);
    }
    table
}

fn scheduler_table(system: &System, schedulers: &[SchedulerVerdict]) -> Table {
    let mut table = Table::new(&[
        "scheduler",
        "policy",
        "below",
        ">utilization",
        ">budget by",
        "supply",
    ]);
    for row in schedulers {
        let Some(scheduler) = system.schedulers.get(row.scheduler.index()) else {
            continue;
        };
        let above = scheduler
            .parent
            .and_then(|parent| system.schedulers.get(parent.index()));
        table.row(vec![
            row.name.clone(),
            scheduler.policy.name().into(),
            above.map_or_else(
                || format!("cpu.{}", cpu_name(system, row.cpu)),
                |above| above.name.clone(),
            ),
            percent(row.utilization_ppm),
            span(row.budget_bound),
            row.explanation.clone(),
        ]);
    }
    table
}

/// The cost of the wake ahead of slots, in words.
pub(crate) fn between_slots(cpu: &CpuVerdict) -> Option<String> {
    let BetweenSlots { each, all, frame } = cpu.between_slots?;
    let part = all.as_ns().saturating_mul(1_000_000) / frame.as_ns().max(1);
    let (each, all, frame) = (each.readable(), all.readable(), frame.readable());
    Some(format!(
        "{each} in front of each slot are nobody's, {all} in every {frame} ({}): the next slot is \
         decided in them and its program woken, so it begins at its start",
        percent(part)
    ))
}

pub(crate) fn quick_answers(cpu: &CpuVerdict) -> String {
    let answers = cpu.quick.iter().filter_map(|quick| match quick.answer {
        QuickAnswer::Admits => Some(format!("{} admits", quick.test.name)),
        QuickAnswer::CannotTell => Some(format!("{} cannot tell", quick.test.name)),
        QuickAnswer::DoesNotApply(_) => None,
    });
    answers.collect::<Vec<_>>().join(", ")
}

fn task_table(system: &System, tasks: &[TaskVerdict]) -> Table {
    let mut table = Table::new(&["task", "on", ">bound", ">deadline", ">slack", "exactness"]);
    for task in tasks {
        table.row(vec![
            task.name.clone(),
            home(system, task),
            span(task.response_bound),
            span(task.relative_deadline),
            task.slack.map_or("-".into(), |slack| slack.to_string()),
            if task.response_bound.is_some() {
                task.exactness.name()
            } else {
                "-"
            }
            .into(),
        ]);
    }
    table
}

pub(crate) fn requirements(system: &System, verdict: &Verdict) -> String {
    let mut text = String::new();
    for requirement in &system.requirements {
        let Requirement::Response { task, within } = requirement else {
            continue;
        };
        let Some(row) = verdict.task(*task) else {
            continue;
        };
        text += &demanded(&row.name, "responds within", *within, row.response_bound);
    }
    for chain in &verdict.chains {
        text += &demanded(&chain.name, "takes at most", chain.within, chain.bound);
        let _ = writeln!(
            text,
            "    {} ({})",
            chain.explanation,
            chain.exactness.name()
        );
    }
    for jitter in &verdict.jitters {
        let what = "differs in its responses by at most";
        text += &demanded(&jitter.name, what, jitter.within, jitter.bound);
        let _ = writeln!(text, "    {}", jitter.explanation);
    }
    text
}

fn demanded(name: &str, what: &str, within: Span<Ns>, bound: Option<Span<Ns>>) -> String {
    let holds = match bound {
        Some(bound) if bound <= within => "holds",
        _ => "does not hold",
    };
    let (within, bound) = (readable(within.as_ns()), span(bound));
    format!("  {name} {what} {within}: {holds} ({bound})\n")
}

fn reasons(tasks: &[TaskVerdict]) -> String {
    let mut text = String::new();
    for task in tasks {
        let _ = writeln!(text, "  {}: {}", task.name, task.explanation);
    }
    text
}

/// The tests and what they take for granted, each once, with the tasks that it is about.
pub(crate) fn grounds(tasks: &[TaskVerdict]) -> String {
    let mut said: Vec<(String, Vec<&str>)> = Vec::new();
    let mut say = |what: String, name| match said.iter_mut().find(|(known, _)| *known == what) {
        Some((_, names)) => names.push(name),
        None => said.push((what, vec![name])),
    };
    for task in tasks.iter().filter(|task| task.response_bound.is_some()) {
        say(format!("by {}", task.test), task.name.as_str());
    }
    for task in tasks {
        for assumption in &task.assumptions {
            say(assumption.clone(), task.name.as_str());
        }
    }
    let mut text = String::new();
    for (what, names) in said {
        let whose = if names.len() == tasks.len() {
            "all".into()
        } else {
            names.join(", ")
        };
        let _ = writeln!(text, "  {whose}: {what}");
    }
    text
}

/// Parts per million as a percentage, rounded up to a tenth.
pub(crate) fn percent(ppm: u64) -> String {
    let tenths = ppm.div_ceil(1_000);
    format!("{}.{} %", tenths / 10, tenths % 10)
}
