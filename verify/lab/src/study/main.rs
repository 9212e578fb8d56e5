//! `punctual study`: costs and skews of gangs, the planner of groups, lengths of slots.
//!
//! In virtual time the very steps of `core/gang` are taken, each at the price that it has on this
//! machine; on Linux two CPUs do the same for real. Every table and every drawing says which.

#![forbid(unsafe_code)]

extern crate alloc;

// Three modules are the files of `core/gang`, compiled over the words of `atomic` here, which tell
// their accesses (note 0070).
#[allow(dead_code, unreachable_pub)] // A file of the crate `gang`: public there, and more than a study calls.
#[path = "../../../../core/gang/src/admission.rs"]
mod admission;
mod answers;
mod asked;
mod atomic;
mod bsp;
mod charts;
mod costs;
mod crew;
#[allow(dead_code, unreachable_pub)] // As `admission`: public in `gang`, and more than a study calls.
#[path = "../../../../core/gang/src/gang.rs"]
mod gang;
mod gang_admission;
mod lines;
mod live;
#[allow(dead_code, unreachable_pub)] // As `admission`: public in `gang`, and more than a study calls.
#[path = "../../../../core/gang/src/member.rs"]
mod member;
mod plans;
mod skew;
mod slots;
mod sums;
mod windows;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ValueHint;
use serde::Serialize;

use answers::{Found, Row, World};
use asked::{Asked, Question};
use costs::Costs;
use punctual_lab::command::{self, MergeArgs, Part, Shown};
use punctual_lab::{Shard, Study, results, svg};
use punctual_terminal::ending::{Ended, Ending, Failure};
use punctual_terminal::output;

/// Studies costs and skews of gangs, how well groups are planned, and lengths of slots
///
/// In virtual time the steps of a gang cost what they cost on this machine; with `--on linux` two
/// CPUs of it do the same for real. The results are lines of JSON; a run that was ended goes on
/// where its file ends.
#[derive(Debug, clap::Parser)]
#[command(
    name = "punctual study",
    version,
    after_help = "Examples:\n  \
    punctual study costs > here.toml                      # prices of this machine, for all shards\n  \
    punctual study gang-admission --costs here.toml --out admission.jsonl --plot admission.svg\n  \
    punctual study skew --on linux --out live.jsonl --plot live.html\n  \
    punctual study bsp --costs here.toml --out part-3.jsonl --shard 3/8\n  \
    punctual study bsp --on linux --grains 1,128 --periods-us 0,1000,10000 --rivals\n  \
    punctual study plan-homes --out homes.jsonl --plot homes.svg   # the seed alone decides\n  \
    punctual study merge part-*.jsonl --out whole.jsonl --plot whole.svg"
)]
struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Clock differences between the CPUs of this machine
    Clocks {
        /// Measurements of each pair of CPUs
        #[arg(long, value_name = "N", default_value_t = 1_000)]
        rounds: u64,
        #[command(flatten)]
        run: RunArgs,
    },
    /// Join, election, admission, final barrier and local change, over members
    GangAdmission {
        /// Sizes of gangs; 2 to 255 when left out
        #[arg(long, value_delimiter = ',', value_name = "N,...")]
        members: Option<Vec<u64>>,
        /// Admissions of each size
        #[arg(long, value_name = "N", default_value_t = 20)]
        rounds: u64,
        #[command(flatten)]
        run: RunArgs,
    },
    /// How far apart members start: without correction, with the paper's, with ours
    Skew {
        /// Sizes of gangs; 2 to 255 when left out
        #[arg(long, value_delimiter = ',', value_name = "N,...")]
        members: Option<Vec<u64>>,
        /// Arrivals that are observed
        #[arg(long, value_name = "N", default_value_t = 500)]
        events: u64,
        #[command(flatten)]
        run: RunArgs,
    },
    /// Bulk synchronous work under 900 constraints, with barriers and without
    Bsp {
        /// Sizes of gangs; 1 to 255 when left out
        #[arg(long, value_delimiter = ',', value_name = "N,...")]
        members: Option<Vec<u64>>,
        /// Elements, computations on each, and writes; 1 to 128 when left out
        #[arg(long, value_delimiter = ',', value_name = "N,...")]
        grains: Option<Vec<u64>>,
        /// Periods in microseconds, 0 for aperiodic members; 100 to 10,000 when left out
        #[arg(long, value_delimiter = ',', value_name = "US,...")]
        periods_us: Option<Vec<u64>>,
        /// The same work in plain threads held by `cpu.max` and SCHED_DEADLINE as well
        #[arg(long)]
        rivals: bool,
        #[command(flatten)]
        run: RunArgs,
    },
    /// Sets of segments that are planned, of those that have a plan, by rule, window and backtracks
    PlanSuccess {
        /// Sets of each setting
        #[arg(long, value_name = "N", default_value_t = 4_000)]
        sets: u64,
        #[command(flatten)]
        run: RunArgs,
    },
    /// Switches within a process, with the heuristic that prefers them and without
    PlanSwitches {
        /// That a thread is in the process of the one before, in thousandths; 0 to 1,000 when left
        /// out
        #[arg(long, value_delimiter = ',', value_name = "N,...")]
        probabilities: Option<Vec<u64>>,
        #[command(flatten)]
        runs: Runs,
        #[command(flatten)]
        run: RunArgs,
    },
    /// Groups accepted where segments execute at home only, and where they start early
    PlanHomes {
        /// Mean distances of arrivals, in tenths of a group's work; 50 and 25 when left out
        #[arg(long, value_delimiter = ',', value_name = "N,...")]
        loads: Option<Vec<u64>>,
        /// Relative deadlines, in hundredths of a group's work; 100 to 500 when left out
        #[arg(long, value_delimiter = ',', value_name = "N,...")]
        multipliers: Option<Vec<u64>>,
        #[command(flatten)]
        runs: Runs,
        #[command(flatten)]
        run: RunArgs,
    },
    /// Evaluations and time of an answer, over the time allowed and the number of segments
    PlanTimes {
        /// Microseconds allowed; 10 to 10,000 when left out
        #[arg(long, value_delimiter = ',', value_name = "US,...")]
        allowed_us: Option<Vec<u64>>,
        /// Numbers of segments; 5 to 1,000 when left out
        #[arg(long, value_delimiter = ',', value_name = "N,...")]
        sizes: Option<Vec<u64>>,
        /// Sets of each
        #[arg(long, value_name = "N", default_value_t = 20)]
        sets: u64,
        /// Nanoseconds of an evaluation; `punctual bench plan` has times of whole plans
        #[arg(long, value_name = "NS", default_value_t = 25)]
        evaluation_ns: u64,
        /// Nanoseconds of a segment beside its evaluations
        #[arg(long, value_name = "NS", default_value_t = 150)]
        segment_ns: u64,
        /// Part of the allowed time that is not planned with, in percent
        #[arg(long, value_name = "PERCENT", default_value_t = 10)]
        margin_percent: u64,
        #[command(flatten)]
        run: RunArgs,
    },
    /// Finishing times of decoders over the length of their slots, by task scheduler
    Slots {
        /// Lengths of a slot in cycles; 10,000 to 300,000 when left out
        #[arg(long, value_delimiter = ',', value_name = "CYCLES,...")]
        lengths: Option<Vec<u64>>,
        #[command(flatten)]
        run: RunArgs,
    },
    /// Measures what the primitive steps cost here, and prints it as TOML
    Costs,
    /// Joins the results of all shards: the same bytes as of one run
    Merge(MergeArgs),
}

#[derive(Debug, clap::Args)]
struct RunArgs {
    /// Where: in virtual time, or on two CPUs of this machine
    #[arg(long, value_enum, value_name = "WORLD")]
    on: Option<World>,
    /// Prices of the primitive steps; those in the file of results, else measured here
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    costs: Option<PathBuf>,
    /// Seed of all that is drawn
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Append the results to this file; one that holds a part of them is completed
    #[arg(long, value_name = "OUT", default_value = "study.jsonl")]
    out: PathBuf,
    #[command(flatten)]
    part: Part,
    #[command(flatten)]
    shown: Shown,
}

/// How much is simulated for a point.
#[derive(Debug, clap::Args)]
struct Runs {
    /// Runs of each point, at least 5
    #[arg(long, value_name = "N", default_value_t = 50)]
    runs: u64,
    /// Seconds in which groups arrive
    #[arg(long, value_name = "N", default_value_t = 200)]
    seconds: u64,
}

impl Args {
    /// Whether a failure is told to a program.
    fn json(&self) -> bool {
        match &self.action {
            Action::Clocks { run, .. }
            | Action::GangAdmission { run, .. }
            | Action::Skew { run, .. }
            | Action::Bsp { run, .. }
            | Action::PlanSuccess { run, .. }
            | Action::PlanSwitches { run, .. }
            | Action::PlanHomes { run, .. }
            | Action::PlanTimes { run, .. }
            | Action::Slots { run, .. } => run.shown.json,
            Action::Merge(merge) => merge.shown.json,
            Action::Costs => false,
        }
    }
}

fn main() -> ExitCode {
    punctual_terminal::run(execute, Args::json)
}

fn execute(args: &Args) -> Ended {
    let or = |given: &Option<Vec<u64>>, all: &[u64]| given.clone().unwrap_or_else(|| all.to_vec());
    match &args.action {
        Action::Clocks { rounds, run } => {
            answer(Question::Clocks { rounds: *rounds }, World::Linux, run)
        }
        Action::GangAdmission {
            members,
            rounds,
            run,
        } => {
            let members = or(members, run.sizes(&gang_admission::MEMBERS));
            let rounds = *rounds;
            answer(Question::GangAdmission { members, rounds }, World::Sim, run)
        }
        Action::Skew {
            members,
            events,
            run,
        } => {
            let members = or(members, run.sizes(&skew::MEMBERS));
            let events = *events;
            answer(Question::Skew { members, events }, World::Sim, run)
        }
        Action::Bsp {
            members,
            grains,
            periods_us,
            rivals,
            run,
        } => {
            let all: Vec<u64> = (0..=100).map(|tenths| 100 * tenths).collect();
            let question = Question::Bsp {
                members: or(members, run.sizes(&bsp::MEMBERS)),
                grains: or(grains, &bsp::GRAINS),
                periods_us: or(periods_us, &all),
                rivals: *rivals,
            };
            answer(question, World::Sim, run)
        }
        Action::PlanSuccess { .. }
        | Action::PlanSwitches { .. }
        | Action::PlanHomes { .. }
        | Action::PlanTimes { .. } => plan(&args.action),
        Action::Slots { lengths, run } => {
            let lengths = or(lengths, &slots::LENGTHS);
            answer(Question::Slots { lengths }, World::Sim, run)
        }
        Action::Costs => {
            let costs = live::costs().map_err(Failure::run)?;
            let text = toml::to_string(&costs);
            let text = text.map_err(|error| Failure::run(format!("no TOML: {error}")))?;
            output::print(text.trim_end())?;
            Ok(Ending::Good)
        }
        Action::Merge(merge) => command::join::<Asked>(merge, |asked, lines, shown| {
            show(&asked, lines, true, Shard::WHOLE, shown)
        }),
    }
}

/// The studies of plans.
fn plan(action: &Action) -> Ended {
    let or = |given: &Option<Vec<u64>>, all: &[u64]| given.clone().unwrap_or_else(|| all.to_vec());
    let (question, run) = match action {
        Action::PlanSwitches {
            probabilities,
            runs: Runs { runs, seconds },
            run,
        } => {
            let question = Question::PlanSwitches {
                probabilities: or(probabilities, &plans::PROBABILITIES),
                runs: *runs,
                seconds: *seconds,
            };
            (question, run)
        }
        Action::PlanHomes {
            loads,
            multipliers,
            runs: Runs { runs, seconds },
            run,
        } => {
            let question = Question::PlanHomes {
                loads: or(loads, &plans::LOADS),
                multipliers: or(multipliers, &plans::MULTIPLIERS),
                runs: *runs,
                seconds: *seconds,
            };
            (question, run)
        }
        Action::PlanTimes {
            allowed_us,
            sizes,
            sets,
            evaluation_ns,
            segment_ns,
            margin_percent,
            run,
        } => {
            let question = Question::PlanTimes {
                allowed_us: or(allowed_us, &plans::ALLOWED_US),
                sizes: or(sizes, &plans::SIZES),
                sets: *sets,
                pacing: plans::Pacing {
                    evaluation_ns: *evaluation_ns,
                    segment_ns: *segment_ns,
                    margin_percent: *margin_percent,
                },
            };
            (question, run)
        }
        Action::PlanSuccess { sets, run } => (Question::PlanSuccess { sets: *sets }, run),
        _ => return Err(Failure::input("this is no study of plans")),
    };
    answer(question, World::Sim, run)
}

impl RunArgs {
    /// The sizes of a study, of which Linux has one.
    fn sizes<'a>(&self, all: &'a [u64]) -> &'a [u64] {
        match self.on {
            Some(World::Linux) => &[2],
            _ => all,
        }
    }

    /// Prices from a file, from the results that are there already, or measured now.
    fn prices(&self) -> Result<Costs, Failure> {
        if let Some(path) = &self.costs {
            return Costs::read(path);
        }
        match results::study_of::<Asked>(&self.out) {
            Some(asked) => Ok(asked.costs),
            None => live::costs().map_err(|what| {
                Failure::run(format!("prices cannot be measured here: {what}"))
                    .with_help("`punctual study costs > FILE` elsewhere, and --costs FILE here")
            }),
        }
    }
}

fn answer(question: Question, usual: World, run: &RunArgs) -> Ended {
    let mut asked = Asked {
        question,
        world: run.on.unwrap_or(usual),
        seed: run.seed,
        costs: costs::smallest(),
    };
    // A question that makes no sense is told before anything is measured.
    asked.check()?;
    asked.costs = if asked.question.has_prices() {
        run.prices()?
    } else if run.costs.is_some() {
        return Err(Failure::input("--costs: this study has no prices"));
    } else {
        costs::none()
    };
    // Two measurements at once would disturb each other.
    let threads = if asked.world == World::Linux {
        Some(1)
    } else {
        run.part.threads
    };
    let part = Part {
        shard: run.part.shard,
        threads,
    };
    let shown = &run.shown;
    command::run(asked, &run.out, &part, shown.quiet, |asked, lines, all| {
        show(&asked, lines, all, part.shard, shown)
    })
}

fn show(
    asked: &Asked,
    lines: Vec<Found>,
    complete: bool,
    shard: Shard,
    shown: &Shown,
) -> Result<(), Failure> {
    let rows: Vec<Row> = lines.into_iter().flat_map(|found| found.rows).collect();
    if let Some(path) = &shown.plot {
        draw(asked, &rows, path)?;
    }
    if shown.json {
        return output::print_json(&Summary {
            format: output::JSON_FORMAT,
            study: asked,
            shard: shard.to_string(),
            complete,
            rows: &rows,
        });
    }
    if shown.quiet {
        return Ok(());
    }
    output::print(sums::table(asked, &rows))
}

fn draw(asked: &Asked, rows: &[Row], path: &Path) -> Result<(), Failure> {
    let title = format!("punctual study {}", asked.question.name());
    svg::write(&charts::of(asked, rows), &title, path)
}

/// The output of `study --json`.
#[derive(Debug, Serialize)]
struct Summary<'a> {
    format: u32,
    study: &'a Asked,
    shard: String,
    complete: bool,
    rows: &'a [Row],
}
