//! `cargo xtask soundness`: random systems, admitted and then simulated.
#![forbid(unsafe_code)]

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use punctual_analysis::funding;
use punctual_generate::Feature;
use punctual_soundness::{
    COMPLETE_FROM, History, Judge, Tally, analysis, describe, judge_gangs, judge_graphs,
    judge_groups, loose, missing, mutants, over_all_cores, report, transitions, wrong_changes,
};

/// Systems that a mutant may take to be found.
const MUTANT_SYSTEMS: u64 = 20_000;

/// Random systems, admitted and then simulated: is anything that was promised not kept?
#[derive(Parser)]
#[command(name = "cargo xtask soundness")]
struct Cli {
    /// How many systems
    #[arg(long, default_value_t = 10_000)]
    systems: u64,
    /// Seed of everything; a seed and the number of a system give that system
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Also let wrong analyses be judged: each must be found
    #[arg(long)]
    mutants: bool,
    /// Only these features of systems, by their words in the report; all when left out
    #[arg(long, value_name = "FEATURE,...", value_delimiter = ',', value_parser = feature)]
    features: Vec<Feature>,
    /// Judge so many graphs instead of systems of tasks
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["systems", "features", "only"])]
    graphs: Option<u64>,
    /// Judge so many gangs instead of systems of tasks
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["systems", "features", "only", "graphs"])]
    gangs: Option<u64>,
    /// Judge so many systems with planned groups instead of systems of tasks
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["systems", "features", "only", "graphs", "gangs"])]
    groups: Option<u64>,
    /// Only this system, with its verdict
    #[arg(long, value_name = "NUMBER")]
    only: Option<u64>,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let (seed, mutants) = (cli.seed, cli.mutants);
    let graphs = cli.graphs.map(|count| judge_graphs(count, seed, mutants));
    let gangs = || cli.gangs.map(|count| judge_gangs(count, seed, mutants));
    let groups = || cli.groups.map(|count| judge_groups(count, seed, mutants));
    if let Some((text, sound)) = graphs.or_else(gangs).or_else(groups) {
        let printed = writeln!(std::io::stdout(), "{text}").is_ok();
        return ExitCode::from(if !sound { 1 } else { u8::from(!printed) * 3 });
    }
    let judge = Judge {
        seed: cli.seed,
        features: if cli.features.is_empty() {
            Feature::ALL.to_vec()
        } else {
            cli.features.clone()
        },
        analysis,
        fund: funding,
    };
    if let Some(index) = cli.only {
        return one(&cli, &judge, index);
    }
    let history = History {
        seed: cli.seed,
        transitions,
    };
    let tally = over_all_cores(cli.systems, |index, tally| {
        judge.judge(index, tally);
        if changes(&cli) {
            history.judge(index, tally);
        }
    });
    let mut text = report(&tally);
    let untaken = untaken(&cli, &tally);
    for branch in &untaken {
        text += &format!("\nNEVER TAKEN: {branch}");
    }
    let loose = match is_complete(&cli) {
        true => loose(&tally),
        false => Vec::new(),
    };
    for supply in &loose {
        text += &format!("\nTOO LOOSE: {supply}");
    }
    if !untaken.is_empty() || !loose.is_empty() {
        text += "\n\n";
    }
    let missed = if cli.mutants {
        let (words, missed) = judge_mutants(cli.seed);
        text += &words;
        missed
    } else {
        0
    };
    text += &format!(
        "{} systems, {} admitted, {} violations, seed {}",
        tally.systems,
        tally.admitted,
        tally.violations.len(),
        cli.seed
    );
    let printed = writeln!(std::io::stdout(), "{text}").is_ok();
    let expected = untaken.is_empty() && loose.is_empty();
    let sound = tally.violations.is_empty() && missed == 0 && expected;
    match (sound, printed) {
        (false, _) => ExitCode::from(1),
        (true, false) => ExitCode::from(3),
        (true, true) => ExitCode::SUCCESS,
    }
}

/// Whether systems that change are judged beside the others.
fn changes(cli: &Cli) -> bool {
    cli.features.is_empty()
}

/// Whether a run is long enough for what is expected of all features together.
fn is_complete(cli: &Cli) -> bool {
    cli.features.is_empty() && cli.systems >= COMPLETE_FROM
}

/// Branches that a run of this length should have taken; of some features alone no run does.
fn untaken(cli: &Cli, tally: &Tally) -> Vec<&'static str> {
    if is_complete(cli) {
        missing(tally)
    } else {
        Vec::new()
    }
}

fn feature(word: &str) -> Result<Feature, String> {
    let found = Feature::ALL.into_iter().find(|f| f.name() == word);
    found.ok_or_else(|| {
        let names: Vec<_> = Feature::ALL.iter().map(|f| f.name()).collect();
        format!("the features are {}", names.join(", "))
    })
}

/// Draws, prints and judges a single system.
fn one(cli: &Cli, judge: &Judge, index: u64) -> ExitCode {
    let drawn = judge.draw(index);
    let mut tally = Tally::default();
    judge.judge(index, &mut tally);
    if changes(cli) {
        let (seed, transitions) = (cli.seed, transitions);
        History { seed, transitions }.judge(index, &mut tally);
    }
    let names: Vec<_> = drawn.features.iter().map(|f| f.name()).collect();
    let mut text = format!("system {index}: {}\n", names.join(", "));
    text += &describe(&drawn.system);
    text += &format!("{:#?}\n", analysis(&drawn.system).map(|c| c.verdict));
    text += &report(&tally);
    let printed = write!(std::io::stdout(), "{text}").is_ok();
    ExitCode::from(u8::from(!tally.violations.is_empty() || !printed))
}

/// How each mutant was found, and how many were not.
fn judge_mutants(seed: u64) -> (String, u32) {
    let mut text = String::from("\nwrong analyses:\n");
    let mut missed = 0;
    for mutant in mutants::ALL {
        let judge = Judge {
            seed,
            features: mutant.features.to_vec(),
            analysis: mutant.analysis,
            fund: mutant.fund,
        };
        let mut tally = Tally::default();
        for index in 0..MUTANT_SYSTEMS {
            judge.judge(index, &mut tally);
            if !tally.violations.is_empty() {
                break;
            }
        }
        text += &found(mutant.mistake, &tally, &mut missed);
    }
    for wrong in wrong_changes::ALL {
        let transitions = wrong.transitions;
        let history = History { seed, transitions };
        let mut tally = Tally::default();
        for index in 0..MUTANT_SYSTEMS {
            history.judge(index, &mut tally);
            if !tally.violations.is_empty() {
                break;
            }
        }
        text += &found(wrong.mistake, &tally, &mut missed);
    }
    text.push('\n');
    (text, missed)
}

/// How a mistake was found, if it was.
fn found(mistake: &str, tally: &Tally, missed: &mut u32) -> String {
    match tally.violations.first() {
        Some(v) => format!(
            "  found after {:>4} systems: {mistake} ({}: {})\n",
            v.index + 1,
            v.situation,
            v.what
        ),
        None => {
            *missed += 1;
            format!("  NOT FOUND: {mistake}\n")
        }
    }
}
