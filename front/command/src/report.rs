//! `punctual report`: a recorded run, or the verdict on a system, as one page.

use std::io::IsTerminal;
use std::path::PathBuf;

use clap::ValueHint;
use punctual_trace::Log;

use crate::changes::Judged;
use crate::export::{self, Format};
use crate::{input, logfile, outcome, verdict_page};
use punctual_terminal::ending::{Ended, Ending, Failure};
use punctual_terminal::interrupt::Interrupt;
use punctual_terminal::output;
use punctual_terminal::output::PromisedFile;

/// Makes one self-contained HTML page of a log, or of the verdict on a system file
///
/// The page goes to standard output, unless that is a terminal: there the report is shown as text.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: as of the run or the verdict that is reported.\n\n\
    Examples:\n  \
    punctual run examples/rosace.toml --for 10s --record flight.log\n  \
    punctual report flight.log --out flight.html\n  \
    punctual report flight.log > flight.html\n  \
    punctual report flight.log --trace flight.pftrace   # for ui.perfetto.dev\n  \
    punctual report examples/waters2019.toml --out verdict.html"
)]
pub(crate) struct Args {
    /// A log (of `run --record`) or a system file; `-` is standard input
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Write the page to this file, and the report as text to standard output
    #[arg(long, value_name = "OUT.html", visible_alias = "report")]
    out: Option<PathBuf>,
    /// Write a trace of the log; by ending: .pftrace Perfetto, .csv one line per job, else text
    #[arg(long, value_name = "OUT")]
    trace: Option<PathBuf>,
    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Exit with 1 when missing time excuses the misses, too
    #[arg(long)]
    strict: bool,
    /// With --out: print the verdict and its reasons alone
    #[arg(long, short)]
    quiet: bool,
}

pub(crate) fn execute(args: &Args) -> Ended {
    for file in args.out.iter().chain(&args.trace) {
        input::refuse_overwriting(file, &args.file)?;
    }
    // What cannot be read is told by the reader of system files, which knows all the ways.
    match logfile::try_load(&args.file)? {
        Some(log) => report_log(args, &log),
        None if args.trace.is_some() => {
            let message = format!("{} is not a log", args.file.display());
            Err(Failure::input(message).with_help("a system file has no trace; `sim` makes one"))
        }
        None => report_verdict(args),
    }
}

fn report_log(args: &Args, log: &Log) -> Ended {
    let report = outcome::judge(log, &Interrupt::listen()?);
    // A file that cannot be written does not cost the verdict.
    let mut kept = Ok(());
    for (format, path) in [
        args.trace
            .as_deref()
            .map(|path| (Format::by_ending(path), path)),
        args.out.as_deref().map(|path| (Format::Page, path)),
    ]
    .into_iter()
    .flatten()
    {
        let filled = PromisedFile::open(path)
            .and_then(|file| file.fill(|out| export::write(format, log, &report, out)));
        kept = kept.and(filled);
    }
    if args.json || args.out.is_some() || args.trace.is_some() || is_terminal() {
        outcome::print(&report, args.json, args.quiet)?;
    } else {
        output::print(punctual_trace::html::page(log, &report))?;
    }
    kept.map_err(Failure::beside_result)?;
    Ok(outcome::ending_of(&report, args.strict))
}

fn report_verdict(args: &Args) -> Ended {
    let description = input::load(&args.file)?;
    let judged = Judged::new(description.system.clone())?;
    let page = || verdict_page::page(description.origin(), &judged);
    let kept = args.out.as_ref().map_or(Ok(()), |path| {
        PromisedFile::open(path)?.fill(|out| out.write_all(page().as_bytes()))
    });
    if args.json {
        output::print_json(&judged.json())?;
    } else if args.out.is_some() || is_terminal() {
        judged.print(args.quiet && args.out.is_some())?;
    } else {
        output::print(page())?;
    }
    kept.map_err(Failure::beside_result)?;
    Ok(Ending::of(judged.admitted()))
}

fn is_terminal() -> bool {
    std::io::stdout().is_terminal()
}
