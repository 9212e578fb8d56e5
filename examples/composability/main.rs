//! How much of its neighbour an application sees on this machine: start and finish times compared.
//!
//! `cargo run --release -p punctual --example composability [OUT.svg [SECONDS [ROUNDS]]]`
//!
//! The two decoders of `compose-decoders.toml` run in turns with one thing changed about the
//! neighbour: its task scheduler moves from the core's time into its own (with slots only: who
//! decides on its own supply must have one), and an endless loop joins it. Iteration by iteration,
//! the start and finish times of the application under observation are subtracted. In `sim` the
//! differences are zero; here the plot shows what is left of them, and beside it the same two
//! applications under plain priorities, without slots. Finish times are compared over missing time,
//! too: both runs are played again without the time that the machine took.
//!
//! Source: CompOSe §5.1 and Fig. 7 and 8.

mod measure;
mod plot;

use std::error::Error;
use std::path::Path;

use punctual::model::{SchedulerId, Supply, Trust};
use punctual::{Class, PolicyKind, Priority, System, Task};

use measure::{Difference, compare};

/// An application and its neighbour, by their places in the file.
struct Scenario {
    title: &'static str,
    neighbour: SchedulerId,
    observed: SchedulerId,
}

const SCENARIOS: [Scenario; 2] = [
    Scenario {
        title: "h264, while jpeg changes",
        observed: SchedulerId(0),
        neighbour: SchedulerId(1),
    },
    Scenario {
        title: "jpeg, while h264 changes",
        observed: SchedulerId(1),
        neighbour: SchedulerId(0),
    },
];

/// One line of the result.
pub(crate) struct Series {
    pub(crate) scenario: &'static str,
    pub(crate) sharing: &'static str,
    pub(crate) differences: Vec<Difference>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let out = arguments
        .next()
        .unwrap_or_else(|| "composability.svg".into());
    let seconds = arguments.next().map_or(Ok(2), |text| text.parse())?;
    let rounds: u32 = arguments.next().map_or(Ok(3), |text| text.parse())?;
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/compose-decoders.toml");
    let slots = punctual_spec::load(&file)
        .map_err(|error| error.to_string())?
        .system;
    let mut all = Vec::new();
    for scenario in &SCENARIOS {
        for (sharing, system) in [
            ("slots", slots.clone()),
            ("priorities", priorities(&slots, scenario)),
        ] {
            let quiet = with_trust(&system, scenario.neighbour, Trust::Inline);
            let greedy = with_greed(&moved(&quiet, scenario.neighbour), scenario);
            let mut differences = Vec::new();
            for round in 1..=rounds {
                eprintln!("{}, {sharing}: round {round} of {rounds}", scenario.title);
                differences.extend(compare(&quiet, &greedy, scenario.observed, seconds)?);
            }
            all.push(Series {
                scenario: scenario.title,
                sharing,
                differences,
            });
        }
    }
    println!("{}", measure::table(&all));
    std::fs::write(&out, plot::draw(&all))?;
    println!("\nplotted in {out}");
    Ok(())
}

fn with_trust(system: &System, scheduler: SchedulerId, trust: Trust) -> System {
    let mut system = system.clone();
    system.schedulers[scheduler.index()].trust = trust;
    system
}

/// The scheduler decides in its own time, if it has any: without slots there is nothing to move to.
fn moved(system: &System, scheduler: SchedulerId) -> System {
    match system.schedulers[scheduler.index()].supply {
        Supply::Shared => system.clone(),
        _ => with_trust(system, scheduler, Trust::OwnTime),
    }
}

/// An endless loop joins the neighbour; without slots it is a task like the others.
fn with_greed(system: &System, scenario: &Scenario) -> System {
    let mut system = system.clone();
    let cpu = system.schedulers[scenario.neighbour.index()].cpu;
    let mut greedy = Task::new("greedy", cpu, Class::Aperiodic);
    greedy.scheduler = Some(scenario.neighbour);
    greedy.priority = Priority::new(1);
    system.tasks.push(greedy);
    for task in &mut system.tasks {
        // Whatever it does, its jobs end later.
        if task.scheduler == Some(scenario.neighbour) && task.class.is_real_time() {
            task.work = None;
        }
    }
    system
}

/// The same applications without slots: the neighbour's jobs come first.
fn priorities(slots: &System, scenario: &Scenario) -> System {
    let mut system = slots.clone();
    for cpu in &mut system.cpus {
        cpu.policy = PolicyKind::FixedPriority { preemptive: true };
    }
    for scheduler in &mut system.schedulers {
        scheduler.supply = Supply::Shared;
        scheduler.trust = Trust::Inline;
    }
    system.schedulers[scenario.neighbour.index()].priority = Priority::new(2);
    system
}
