//! `punctual conform`: holds a policy to its contract and to its author's claims.
//!
//! A shipped policy is checked in this process. A policy of somebody's crate is checked by a small
//! program that is made for it, built with the crate, and run: it may print, panic and loop. One in
//! C is checked by this program in a second process.

#![forbid(unsafe_code)]

mod builtin;
mod child;
mod library;
mod package;
mod subject;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use punctual_conform::{Answer, Broken, Claims, Options, Report};
use punctual_model::{Ns, Span};
use serde::Serialize;

use builtin::Builtin;
use child::Limit;
use library::Library;
use package::Policy;
use punctual_terminal::ending::{Ended, Ending, Failure};
use punctual_terminal::interrupt::Interrupt;
use punctual_terminal::{input, output};

/// Looks for a history that breaks a policy, and shows the shortest
///
/// Histories come from a seed: first calls of the policy's methods, in any order that its contract
/// allows, then events of the scheduler core, then a tree with a child scheduler that answers
/// nonsense. The promises of every policy are always checked, the others when the policy claims
/// them.
#[derive(Debug, clap::Parser)]
#[command(
    name = "punctual conform",
    version,
    after_help = "Exit codes: 0 nothing broke it; 1 broken; 2 there is no such policy, or its \
    crate does not build; 3 failure.\n\n\
    Claims are words with commas: an order (fixed-priority, deadline, fifo), what decides ties \
    (release, turns), idles, non-preemptive. Or a path: my_crate::CLAIMS.\n\n\
    Examples:\n  \
    punctual conform --crate . --policy my_crate::MyPolicy\n  \
    punctual conform --crate . --policy my_crate::Turns --claims fixed-priority,turns\n  \
    punctual conform --crate . --policy my_crate::My --make 'my_crate::My::of(capacity, 10)'\n  \
    punctual conform --library ./libpolicy.so --symbol earliest_deadline --claims deadline\n  \
    punctual conform --builtin edf --histories 100000 --seed 7"
)]
struct Args {
    /// The folder of the crate with the policy
    #[arg(long = "crate", value_name = "FOLDER", requires = "policy")]
    krate: Option<PathBuf>,
    /// The policy's path in its crate, such as my_crate::MyPolicy; made by its new(capacity)
    #[arg(long, value_name = "TYPE", requires = "krate")]
    policy: Option<String>,
    /// A Rust expression that makes the policy for `capacity` threads, in place of new(capacity)
    #[arg(long, value_name = "EXPRESSION", requires = "policy")]
    make: Option<String>,
    /// The shared object with a policy in C
    #[arg(long, value_name = "FILE", requires = "symbol", conflicts_with_all = ["krate", "builtin"])]
    library: Option<PathBuf>,
    /// The function of the shared object that makes the policy
    #[arg(long, value_name = "NAME", requires = "library")]
    symbol: Option<String>,
    /// Check a shipped policy
    #[arg(long, value_name = "NAME", conflicts_with = "krate")]
    builtin: Option<Builtin>,
    /// A promise that the policy claims; a shipped one claims those of its documentation
    #[arg(long, value_name = "WORDS|PATH")]
    claims: Option<String>,
    /// Histories of calls, as many of events, and a tenth of that of a tree
    #[arg(
        long,
        default_value_t = Options::default().histories,
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    histories: u64,
    /// Steps of each history
    #[arg(
        long,
        default_value_t = 80,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    steps: u32,
    /// Threads at any one time
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..=26))]
    threads: u8,
    /// Seed of the first history
    #[arg(long, default_value_t = Options::default().seed)]
    seed: u64,
    /// Longest time of the whole, building included
    #[arg(long, value_name = "DURATION", default_value = "600s", value_parser = input::duration)]
    within: Span<Ns>,
    /// Longest time of one history; it takes microseconds, and shrinking it tries thousands
    #[arg(long, value_name = "DURATION", default_value = "20s", value_parser = input::duration)]
    patience: Span<Ns>,
    /// Use nothing that is not on this machine
    #[arg(long)]
    offline: bool,
    /// Print the finding as JSON
    #[arg(long)]
    json: bool,
    /// Print the first line alone, without remarks
    #[arg(long, short)]
    quiet: bool,
}

fn main() -> ExitCode {
    if let Some(ending) = library::harness_of_library() {
        return ending;
    }
    punctual_terminal::run(execute, |args| args.json)
}

fn execute(args: &Args) -> Ended {
    let options = Options {
        histories: args.histories,
        steps: usize::try_from(args.steps).unwrap_or(usize::MAX),
        threads: usize::from(args.threads),
        seed: args.seed,
    };
    if let (Some(path), Some(symbol)) = (&args.library, &args.symbol) {
        let library = Library {
            path: path.clone(),
            symbol: symbol.clone(),
            claims: library::claims_in_words(args.claims.as_deref())?,
            patience: Duration::from_nanos(args.patience.as_ns()),
        };
        let interrupt = Interrupt::listen()?;
        let limit = Limit::new(Duration::from_nanos(args.within.as_ns()), interrupt);
        let answer = library::check(&library, &options, &limit)?;
        return print(args, symbol, &answer);
    }
    let (name, answer) = match (&args.builtin, &args.krate, &args.policy) {
        (Some(builtin), _, _) => {
            let claims = args.claims.as_deref().map(words).transpose()?;
            (builtin.name(), builtin.check(claims, &options))
        }
        (None, Some(krate), Some(path)) => {
            let policy = Policy {
                path: path.clone(),
                make: args.make.clone(),
                claims: claims_as_code(args.claims.as_deref())?,
                patience: Duration::from_nanos(args.patience.as_ns()),
            };
            let interrupt = Interrupt::listen()?;
            let limit = Limit::new(Duration::from_nanos(args.within.as_ns()), interrupt);
            if !args.quiet {
                output::remark(format!("building {path} with the kit"));
            }
            let subject = subject::find(krate, args.offline, &limit)?;
            let answer = package::check(&subject, &policy, &options, args.offline, &limit)?;
            (path.clone(), answer)
        }
        _ => {
            return Err(Failure::input(
                "name a policy: --builtin, --library and --symbol, or --crate and --policy",
            ));
        }
    };
    print(args, &name, &answer)
}

fn words(text: &str) -> Result<Claims, Failure> {
    text.parse()
        .map_err(|error: punctual_conform::ClaimsError| Failure::input(error.to_string()))
}

/// Claims as an expression of Rust: a path stays what it is, words are read where they arrive.
fn claims_as_code(text: Option<&str>) -> Result<String, Failure> {
    match text {
        None => Ok("punctual_conform::Claims::ANY_ORDER".into()),
        Some(path) if path.contains("::") => Ok(path.into()),
        Some(text) => {
            words(text)?;
            Ok(format!("{text:?}.parse().expect(\"words that were read\")"))
        }
    }
}

fn print(args: &Args, name: &str, answer: &Answer) -> Ended {
    if args.json {
        output::print_json(&FindingJson::new(name, answer))?;
    } else {
        let text = match answer {
            Answer::Conforms(report) => report.to_string(),
            Answer::Broken(broken) => broken.to_string(),
        };
        let text = if args.quiet {
            text.lines().next().unwrap_or_default()
        } else {
            text.as_str()
        };
        output::print(format!("{name} {text}"))?;
    }
    Ok(Ending::of(matches!(answer, Answer::Conforms(_))))
}

/// What `conform --json` prints.
#[derive(Debug, Serialize)]
struct FindingJson<'a> {
    format: u32,
    policy: &'a str,
    verdict: &'static str,
    #[serde(flatten)]
    report: Option<&'a Report>,
    #[serde(flatten)]
    broken: Option<&'a Broken>,
    #[serde(skip_serializing_if = "Option::is_none")]
    promise: Option<&'static str>,
}

impl<'a> FindingJson<'a> {
    fn new(policy: &'a str, answer: &'a Answer) -> FindingJson<'a> {
        let (report, broken) = match answer {
            Answer::Conforms(report) => (Some(report), None),
            Answer::Broken(broken) => (None, Some(broken)),
        };
        FindingJson {
            format: output::JSON_FORMAT,
            policy,
            verdict: if broken.is_some() {
                "broken"
            } else {
                "conforms"
            },
            report,
            broken,
            promise: broken.map(|broken| broken.property.promise()),
        }
    }
}
