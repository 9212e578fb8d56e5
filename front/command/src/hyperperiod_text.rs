//! `punctual check --simulate`: bounds beside what simulating every job has shown.

use std::collections::HashSet;

use punctual_analysis::{Simulation, Verdict, simulate_hyperperiod};
use punctual_model::{Span, System};

use crate::verdict_json;
use crate::verdict_text;
use crate::words::{count, span};
use punctual_terminal::ending::Failure;
use punctual_terminal::json::{Json, list};
use punctual_terminal::object;
use punctual_terminal::output;
use punctual_terminal::table::Table;

/// Prints the verdict and the simulation.
pub(crate) fn print(system: &System, verdict: &Verdict, json: bool) -> Result<(), Failure> {
    let simulation = simulate_hyperperiod(system)
        .map_err(|error| Failure::input(format!("no simulation: {error}")))?;
    if json {
        let simulated = Some(as_json(system, &simulation));
        let verdict = verdict_json::json(system, verdict);
        return output::print_json(&verdict.with("simulation", simulated));
    }
    verdict_text::print(system, verdict, false, false)?;
    output::print(as_text(system, verdict, &simulation))
}

fn as_json(system: &System, simulation: &Simulation) -> Json {
    let rows = simulation.responses.iter().zip(&simulation.reasons);
    let tasks = system.tasks.iter().zip(rows);
    object! {
        jobs: simulation.jobs.len(),
        anomalies: simulation.anomalies,
        tasks: list(tasks, |(task, (response, reason))| object! {
            name: &task.name,
            response_ns: response.map(Span::as_ns),
            exactness: punctual_analysis::Exactness::Simulated.name(),
            reason: reason,
        }),
    }
}

fn as_text(system: &System, verdict: &Verdict, simulation: &Simulation) -> String {
    let mut table = Table::new(&["task", ">bound", ">simulated", ""]);
    for ((task, row), (response, reason)) in system
        .tasks
        .iter()
        .zip(&verdict.tasks)
        .zip(simulation.responses.iter().zip(&simulation.reasons))
    {
        let name = task.name.clone();
        table.row(vec![
            name,
            span(row.response_bound),
            span(*response),
            reason.clone(),
        ]);
    }
    let simulated: HashSet<_> = simulation.jobs.iter().map(|job| job.task).collect();
    let size = format!(
        "{} of {}",
        count(simulation.jobs.len(), "job"),
        count(simulated.len(), "task")
    );
    let mut text = if simulated.is_empty() {
        format!("\nNothing could be simulated until all repeats\n{table}")
    } else {
        format!("\nSimulated until all repeats: {size}, each with its whole wcet\n{table}")
    };
    if simulation.anomalies {
        text += "\nwhere jobs wait for others or are not preempted, shorter ones may be later";
    }
    text
}
