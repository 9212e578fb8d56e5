//! `punctual export`: a graph of a system file in the XML of SDF3.

use std::path::PathBuf;

use crate::input;
use clap::ValueHint;
use punctual_terminal::ending::{Ended, Ending, Failure};
use punctual_terminal::output;

/// Prints a graph of a system file in the XML of SDF3
///
/// Actors, FIFOs, rates, times, capacities and token sizes are kept. Tiles, orders, work, places,
/// copies and requirements have no place there. Actors of SDF3 overlap with themselves: each gets a
/// channel to itself with one token, unless it has one, and `import` takes that back.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 printed; 2 the file has mistakes, or no such graph; 3 nothing could be written.\n\n\
    Examples:\n  \
    punctual export examples/graph-h263.toml > decoder.xml\n  \
    punctual export plant.toml --graph decoder"
)]
pub(crate) struct Args {
    /// The system file; `-` is standard input
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Which graph, where the file has several
    #[arg(long, value_name = "NAME")]
    graph: Option<String>,
}

pub(crate) fn execute(args: &Args) -> Ended {
    let graphs = input::load(&args.file)?.system.graphs;
    let names = || {
        let names: Vec<&str> = graphs.iter().map(|graph| &*graph.name).collect();
        format!("its graphs: {}", names.join(", "))
    };
    let found = match (&args.graph, &graphs[..]) {
        (_, []) => return Err(Failure::input("this file has no graph")),
        (None, [one]) => one,
        (None, _) => {
            let failure = Failure::input("this file has several graphs");
            return Err(failure.with_help(format!("say which by --graph; {}", names())));
        }
        (Some(name), all) => all
            .iter()
            .find(|graph| graph.name == *name)
            .ok_or_else(|| {
                Failure::input(format!("there is no graph `{name}`")).with_help(names())
            })?,
    };
    if found.plain {
        let name = &found.name;
        let what = format!("graph `{name}` is not real-time, and SDF3 knows no such graph");
        return Err(
            Failure::input(what).with_help("remove `real-time = false` to export its rates")
        );
    }
    if let Some(actor) = found.varying() {
        let name = &found.actors[actor.index()].name;
        let what = format!("actor `{name}` varies with its data, and SDF3 knows no such rates");
        return Err(Failure::input(what).with_help("remove `varies` to export its longest output"));
    }
    output::print(punctual_spec::write_sdf3(found).trim_end())?;
    Ok(Ending::Good)
}
