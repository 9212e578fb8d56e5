//! The verdicts on gangs, for people and for programs.

use std::fmt::Write as _;

use anstyle::Style;
use punctual_analysis::{BarrierVerdict, GangVerdict, SkewVerdict, Subject, Verdict};
use punctual_model::{Ns, Span, System};

use crate::words::{count, cpu_name, span, task_name};
use punctual_terminal::json::{Json, list};
use punctual_terminal::object;
use punctual_terminal::output::styled;
use punctual_terminal::table::Table;

const HEADING: Style = Style::new().bold();
/// Most CPUs that a text names.
const NAMED: usize = 8;

/// All gangs in words.
pub(crate) fn text(system: &System, verdict: &Verdict, coloured: bool) -> String {
    let mut text = String::new();
    for gang in &verdict.gangs {
        let heading = styled(&format!("Gang {}", gang.name), HEADING, coloured);
        let _ = writeln!(text, "\n{heading}");
        let _ = writeln!(text, "{}", decision(system, verdict, gang));
        let mut table = Table::new(&["superstep", ">members", ">skew", "test"]);
        for superstep in &gang.supersteps {
            table.row(vec![
                superstep.name.clone(),
                superstep.members.len().to_string(),
                span(superstep.bound),
                superstep.test.to_string(),
            ]);
        }
        let _ = write!(text, "{table}");
        for superstep in &gang.supersteps {
            let _ = writeln!(
                text,
                "  why: skew of {}: {}",
                superstep.name, superstep.explanation
            );
            for assumption in &superstep.assumptions {
                let _ = writeln!(text, "  taken for granted: {assumption}");
            }
        }
        for barrier in &gang.barriers {
            let BarrierVerdict { before, next, .. } = barrier;
            let _ = writeln!(text, "  barrier {before} - {next}: {}", barrier.reason);
        }
    }
    text
}

/// One answer for all members.
pub(crate) fn decision(system: &System, verdict: &Verdict, gang: &GangVerdict) -> String {
    let members = gang.supersteps.iter().map(|step| step.members.len());
    let members = count(members.max().unwrap_or(0), "CPU");
    let refused = refused_on(system, verdict, gang);
    if refused.is_empty() {
        return format!("admitted on {members}: all members, or none");
    }
    let mut named = refused.join(", ");
    if refused.len() > NAMED {
        named = format!(
            "{} and {} more",
            refused[..NAMED].join(", "),
            refused.len() - NAMED
        );
    }
    format!("refused on CPU {named}: no member of it on {members} is admitted")
}

/// The CPUs of its members that are refused.
fn refused_on(system: &System, verdict: &Verdict, gang: &GangVerdict) -> Vec<String> {
    let members = gang.supersteps.iter().flat_map(|step| &step.members);
    let cpus = members.filter_map(|id| Some(system.tasks.get(id.index())?.cpu));
    let mut cpus: Vec<_> = cpus.collect();
    cpus.sort_unstable();
    cpus.dedup();
    let of_task = |id: &punctual_model::TaskId| system.tasks.get(id.index()).map(|task| task.cpu);
    let refused = |cpu: &punctual_model::CpuId| {
        let mut reasons = verdict.refusals.iter();
        reasons.any(|refusal| match refusal.subject {
            Subject::Task(id) => of_task(&id) == Some(*cpu),
            Subject::Cpu(id) => id == *cpu,
            Subject::Scheduler(id) => {
                let scheduler = system.schedulers.get(id.index());
                scheduler.is_some_and(|scheduler| scheduler.cpu == *cpu)
            }
            Subject::Requirement(index) => {
                let tasks = system.requirements.get(index).map(|all| all.tasks());
                tasks.is_some_and(|all| all.iter().any(|id| of_task(id) == Some(*cpu)))
            }
            Subject::Graph(_) | Subject::Group(_) => false,
        })
    };
    let refused = cpus.into_iter().filter(refused);
    refused.map(|cpu| cpu_name(system, cpu)).collect()
}

/// All gangs for programs; `None` without gangs.
pub(crate) fn json(system: &System, verdict: &Verdict) -> Option<Json> {
    let of = |gang: &GangVerdict| {
        object! {
            name: &gang.name,
            refused_on: refused_on(system, verdict, gang),
            supersteps: list(&gang.supersteps, |step| of_superstep(system, step)),
            barriers: list(&gang.barriers, of_barrier),
        }
    };
    (!verdict.gangs.is_empty()).then(|| list(&verdict.gangs, of))
}

fn of_superstep(system: &System, superstep: &SkewVerdict) -> Json {
    let names = superstep.members.iter().map(|id| task_name(system, *id));
    object! {
        name: &superstep.name,
        members: names.collect::<Vec<String>>(),
        skew_bound_ns: superstep.bound.map(Span::as_ns),
        test: superstep.test.to_string(),
        terms: list(&superstep.terms, |term| object! {
            what: &term.what,
            ns: term.each.as_ns(),
        }),
        explanation: &superstep.explanation,
        assumptions: &superstep.assumptions,
    }
}

fn of_barrier(barrier: &BarrierVerdict) -> Json {
    let ns = |span: Option<Span<Ns>>| span.map(Span::as_ns);
    object! {
        before: &barrier.before,
        next: &barrier.next,
        left_out: barrier.left_out,
        worst_end_ns: ns(barrier.worst_end),
        clock_error_ns: barrier.clock_error.as_ns(),
        begins_ns: ns(barrier.begins),
        reason: &barrier.reason,
    }
}
