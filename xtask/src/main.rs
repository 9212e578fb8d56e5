//! Chores of the workspace: `cargo xtask test | tidy | soak | bench | install | ...`.
//!
//! Everything that continuous integration does can be done here by the same command. Each chore
//! works from any folder of the workspace, as root and as an ordinary user.
#![forbid(unsafe_code)]

mod api;
mod count;
mod examples;
mod flights;
mod footprint;
mod fuzz;
mod idle;
mod install;
mod interleave;
mod live;
mod miri;
mod openmp;
mod pages;
mod programs;
mod replays;
mod soak;
mod soundness;
mod step;
mod storm;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::workspace::Workspace;

/// Chores of the Punctual workspace.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Check everything: format, lints, house rules, tests, documents, embedded build, examples
    #[command(
        after_help = "Examples:\n  cargo xtask test            everything, before a push\n  \
        cargo xtask test --quick    while working\n  \
        cargo xtask test --unprivileged   the live tests again as an ordinary user (needs root)"
    )]
    Test(TestOptions),
    /// Check the house rules alone: import edges, placement, sizes, links, words
    Tidy,
    /// Compare the public items of the API crates with doc/api, or write them there
    #[command(after_help = "Examples:\n  cargo xtask api\n  cargo xtask api --set")]
    Api(api::ApiOptions),
    /// Feed every command that reads a file with mutated ones, under limits of time and memory
    #[command(
        after_help = "Examples:\n  cargo xtask fuzz                          20,000 inputs of each reader\n  \
        cargo xtask fuzz log diff --seed 50000    other inputs of two of them\n  \
        cargo xtask fuzz --seconds 3              each for three seconds at most"
    )]
    Fuzz(fuzz::FuzzOptions),
    /// Draw random systems, admit them, simulate the admitted ones: is every promise kept?
    #[command(after_help = "Examples:\n  cargo xtask soundness --systems 100000\n  \
        cargo xtask soundness --systems 10000 --seed 7 --mutants\n  \
        cargo xtask soundness --graphs 100000\n  \
        cargo xtask soundness --groups 10000 --mutants\n  \
        cargo xtask soundness --only 4711        that system, with its verdict")]
    Soundness(soundness::SoundnessOptions),
    /// Fly random systems live under chaos: nothing lost, nothing twice, every rule kept?
    Soak(soak::SoakOptions),
    /// The words that CPUs and signals share: every order, and every mistake in one access
    Loom,
    /// The portable code under Miri, which notices undefined behaviour (needs a nightly with it)
    #[command(after_help = "Examples:\n  cargo xtask miri\n  cargo xtask miri punctual-capi")]
    Miri(miri::MiriOptions),
    /// Count the instructions of every operation and hold them against `bench/ceilings.toml`
    #[command(
        after_help = "Examples:\n  cargo xtask count              all rows, in under a minute\n  \
        cargo xtask count live.queue   rows whose names contain this\n  \
        cargo xtask count --misses     misses of a cache of 1 MiB, in one to five minutes\n  \
        cargo xtask count --set        what is counted now and 1 % become the ceiling"
    )]
    Count(count::CountOptions),
    /// Weigh the engine of graphs and its FIFOs as built for a microcontroller
    Size,
    /// Measure every primitive and its rival in one run (`punctual bench`, built as for users)
    #[command(
        after_help = "Examples:\n  cargo xtask bench\n  cargo xtask bench switch --json\n  \
        cargo xtask bench omp    constructs of OpenMP, on this library and on others"
    )]
    Bench(BenchOptions),
    /// Record every example live, replay it, and ask what EDF would have done
    #[command(after_help = "Example:\n  cargo xtask replay-all --seconds 10")]
    ReplayAll(replays::ReplayOptions),
    /// Make report pages and look in Chromium for text that collides or is cut, on wide and narrow
    /// screens
    #[command(
        after_help = "Example:\n  cargo xtask pages    # needs Chromium; it says so where none is"
    )]
    Pages,
    /// Four light threads in the C library, preempted every 50 us; then without deferral
    #[command(after_help = "Example:\n  cargo xtask storm --operations 10000000")]
    Storm(storm::StormOptions),
    /// Build the commands and the C library and put them, header and pkg-config file under a prefix
    #[command(
        after_help = "Examples:\n  cargo xtask install                            under /usr/local\n  \
        cargo xtask install --prefix ~/.local --try    for one user, and tried with the examples\n  \
        cargo xtask install --prefix ~/.local --remove taken away again"
    )]
    Install(install::InstallOptions),
}

#[derive(Args)]
struct TestOptions {
    /// Format, lints, house rules and the tests inside the crates only
    #[arg(long)]
    quick: bool,
    /// Only the live tests, as the user `nobody`; for a root who wants to know what others see
    #[arg(long, conflicts_with = "quick")]
    unprivileged: bool,
    /// Also build the program of `cargo xtask count`, in time that the tests leave
    #[arg(long, conflicts_with_all = ["quick", "unprivileged"])]
    counter: bool,
}

#[derive(Args)]
struct BenchOptions {
    /// Only the figures whose name contains this
    filter: Option<String>,
    /// One JSON object on standard output
    #[arg(long)]
    json: bool,
    /// `omp`: how often each library has its turn
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// `omp`: BOLT's library, to be measured too
    #[arg(long, value_name = "FILE")]
    bolt: Option<std::path::PathBuf>,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let workspace = match Workspace::find() {
        Ok(workspace) => workspace,
        Err(message) => {
            eprintln!("xtask: {message}");
            return ExitCode::from(3);
        }
    };
    let passed = match cli.chore {
        Chore::Test(options) if options.unprivileged => live::run_as_nobody(&workspace),
        Chore::Test(options) => test::run(&workspace, options.quick, options.counter),
        Chore::Tidy => tidy::run(&workspace),
        Chore::Api(options) => api::run(&workspace, &options),
        Chore::Fuzz(options) => fuzz::run(&workspace, &options),
        Chore::Soundness(options) => soundness::run(&workspace, &options),
        Chore::Soak(options) => soak::run(&workspace, &options),
        Chore::Loom => interleave::run(&workspace),
        Chore::Miri(options) => miri::run(&workspace, &options),
        Chore::Size => test::weigh(&workspace),
        Chore::Count(options) => count::run(&workspace, &options),
        Chore::Bench(options) => bench(&workspace, &options),
        Chore::Pages => pages::run(&workspace),
        Chore::ReplayAll(options) => replays::run(&workspace, &options),
        Chore::Storm(options) => storm::run(&workspace, &options),
        Chore::Install(options) => install::run(&workspace, &options),
    };
    if passed {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn bench(workspace: &Workspace, options: &BenchOptions) -> bool {
    if options.filter.as_deref() == Some("omp") {
        let bolt = options.bolt.as_deref();
        return openmp::bench(workspace, options.rounds.max(1), bolt, options.json);
    }
    let mut command = workspace.cargo();
    command.args([
        "run",
        "--quiet",
        "--profile=dist",
        "--package=punctual-bench",
        "--",
    ]);
    command.args(options.filter.as_deref());
    command.args(options.json.then_some("--json"));
    let measured = step::passes_in_the_open(command);
    // The foreign rivals of the analysis and of the simulator: neither is linked into the command.
    let analysis = options
        .filter
        .as_deref()
        .is_none_or(|f| f.contains("analysis"));
    if !analysis || options.json {
        return measured;
    }
    let mut rivals = workspace.cargo();
    rivals.args([
        "run",
        "--quiet",
        "--profile=dist",
        "--package",
        "punctual-soundness",
    ]);
    rivals.args(["--bin", "analysis-speed"]);
    step::passes_in_the_open(rivals) && measured
}
