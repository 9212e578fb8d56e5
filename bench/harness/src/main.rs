//! `punctual bench`: what every primitive costs here, beside its rival in the same run.
//!
//! Absolute times on a shared machine mean little; a ratio against a rival of the same run outlives
//! them. Samples are means of batches, so that reading the clock does not show.

#![forbid(unsafe_code)]

mod analysis;
mod answering;
mod counting;
mod dataflow;
mod direct;
mod edge;
mod figure;
mod gangs;
mod io;
mod kern;
mod live;
mod locking;
mod managing;
mod planning;
mod preempting;
mod replacing;
mod sharing;
mod sim;
mod slots;
mod switching;
mod told;
mod yielding;

use std::env;
use std::process::ExitCode;

use figure::{Bench, Figure};
use punctual_count::windows;
use punctual_terminal::ending::{Ended, Ending, Failure};
use punctual_terminal::interrupt::Interrupt;
use punctual_terminal::{machine, output};

/// Measures every primitive and its rivals on this machine
///
/// `switch.POLICY.N` is a yield of N equals that switches, `wake.POLICY.N` one half of a wake-up
/// and the wait for the next past N threads, both with everything that a run has;
/// `switch.core.POLICY.N` is that yield without the platform: no gate, no timer, storage that the
/// threads share. `tree.switch.D` is the yield of two threads of a scheduler D levels below the
/// CPU's own, each level on a server. `tree.grant`, `tree.promote`, `tree.own_time` and
/// `capability.switch` are of the core alone, as `policy.swap.N` is.
/// `switch.direct` is the dispatch by itself, `switch.direct_full` the same with clock, charge and
/// record. `policy.swap.N` is another policy for a CPU with N ready threads, from the request to
/// its first decision. `dataflow.decision` is a decision of a graph with the claims and releases of
/// its firing, `dataflow.firing` the same in a run with its books, `dataflow.pass.N` a question
/// about N actors of which none may fire. `gang.barrier.FORM.WAY.N`, `gang.reduce.FORM.N` and
/// `gang.admit.FORM.N` are one round of N members on as many CPUs, `gang.skew.WAY` is how far apart
/// two of them start. `plan.N.k` is the plan of N segments with a window of k; `plan.within.T.N` is
/// the processor time of an answer about N segments in the time T, and `tight` are full CPUs.
///
/// Each figure is the median, the 99th percentile and the largest of n samples (means of
/// batches, or single observations). Beside it stand the time that the machine took meanwhile,
/// the instructions of one operation (counted by single steps in a process of its own, without the
/// kernel's and those of libraries; `-`: the end of the text says why not), and how many times
/// longer each rival takes in the same run. A rival that is not there is
/// skipped, with the reason. The figures are taken under SCHED_FIFO where that is permitted; a
/// remark names each refusal.
#[derive(Debug, clap::Parser)]
#[command(
    name = "punctual bench",
    version,
    after_help = "Examples:\n  \
    punctual bench                 # all figures, a minute or two\n  \
    punctual bench switch          # those with `switch` in their name, ten turns beside rivals\n  \
    punctual bench wake --turns 1  # one turn: a tenth of the time, and a ratio without spread\n  \
    punctual bench --json > here.json"
)]
struct Args {
    /// Take only the figures whose name contains this
    filter: Option<String>,
    /// So many turns of each primitive and its rivals, whose ratios are told with their spread: 10
    /// with a filter, else 1
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1000))]
    turns: Option<u16>,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
    /// Print no progress and no remarks
    #[arg(long, short)]
    quiet: bool,
}

/// Turns of what somebody asks for by name.
const TURNS: usize = 10;

fn main() -> ExitCode {
    if let Some(failure) = failure_of_child(all) {
        output::remark(failure);
        return ExitCode::FAILURE;
    }
    if let Some(good) = punctual_rivals::barriers::is_answered() {
        return if good {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        };
    }
    punctual_terminal::run(execute, |args| args.json)
}

fn execute(args: &Args) -> Ended {
    let filter = args.filter.as_deref().unwrap_or("");
    let mut benches = all();
    let names: Vec<&str> = benches.iter().map(|bench| bench.name.as_str()).collect();
    if !names.iter().any(|name| name.contains(filter)) {
        return Err(
            Failure::input(format!("no figure has `{filter}` in its name"))
                .with_help(format!("the figures are {}", names.join(", "))),
        );
    }
    if cfg!(debug_assertions) && !args.quiet {
        output::remark("remark: this build is not optimised, and its figures mean nothing");
    }
    benches.retain(|bench| bench.name.contains(filter));
    let turns = match (args.turns, &args.filter) {
        (Some(turns), _) => turns.into(),
        (None, Some(_)) => TURNS,
        (None, None) => 1,
    };
    let interrupt = Interrupt::listen()?;
    let mut figures = Vec::new();
    let mut ending = Ending::Good;
    let count = benches.len();
    for (index, bench) in benches.into_iter().enumerate() {
        if interrupt.is_wanted() {
            output::remark(format!(
                "stopped by request after {index} of {count} figures"
            ));
            ending = Ending::Stopped;
            break;
        }
        if !args.quiet {
            output::remark(format!("[{}/{count}] {}", index + 1, bench.name));
        }
        match bench.measure(turns, || !interrupt.is_wanted()) {
            Ok(figure) => {
                let figure = figure.with_count(bench.count());
                for remark in figure.remarks() {
                    output::remark(format!("remark: {remark}"));
                }
                figures.push(figure);
            }
            Err(reason) => output::remark(format!("remark: not measured here: {reason}")),
        }
    }
    tell(&figures, args.json)?;
    Ok(ending)
}

/// Everything that is measured, in the order of the layers.
fn all() -> Vec<Bench> {
    let parts = [
        kern::benches(),
        sim::benches(),
        analysis::benches(),
        planning::benches(),
        answering::benches(),
        direct::benches(),
        switching::benches(),
        locking::benches(),
        sharing::benches(),
        preempting::benches(),
        managing::benches(),
        replacing::benches(),
        slots::benches(),
        io::benches(),
        edge::benches(),
        dataflow::benches(),
        gangs::benches(),
    ];
    parts.into_iter().flatten().collect()
}

fn tell(figures: &[Figure], json: bool) -> Result<(), Failure> {
    let facts = machine::facts();
    if json {
        output::print_json(&figure::Report::new(&facts, figures))?;
    } else {
        output::print(figure::render(&facts, figures))?;
    }
    Ok(())
}

/// Steps through one of `rows`, if this process was started for that: then it ends meanwhile, and
/// returns from here only with the reason why it did not.
pub(crate) fn failure_of_child(rows: fn() -> Vec<Bench>) -> Option<String> {
    if let Err(why) = punctual_count::execute_if_child() {
        return Some(why);
    }
    let arguments: Vec<String> = env::args().skip(1).take(2).collect();
    let [first, name] = arguments.as_slice() else {
        return None;
    };
    (first == counting::CHILD).then(|| match step(rows(), name) {
        Ok(()) => format!("`{name}` has too few batches"),
        Err(why) => why,
    })
}

fn step(rows: Vec<Bench>, name: &str) -> Result<(), String> {
    let mut rows = rows.into_iter();
    let row = rows.find(|row| row.name == name);
    let row = row.ok_or_else(|| format!("there is no row `{name}`"))?;
    windows::prepare().map_err(|error| format!("nothing can be stepped: {error}"))?;
    row.step()
}
