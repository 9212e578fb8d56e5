//! `punctual sim`: the same system in virtual time, with any number of CPUs and faults from a seed.

use std::path::PathBuf;

use clap::ValueHint;
use punctual::{ChildPolicies, Error, SimOptions};
use punctual_analysis::{AnalysisError, Transition, Verdict, admit_changes_by, bounds_only};
use punctual_model::{Frequency, System};

use crate::faults::{self, Fault};
use crate::flags::Flags;
use crate::patience::Patience;
use crate::progress::Bar;
use crate::{input, outcome, workloads};
use punctual_terminal::ending::Ended;
use punctual_terminal::interrupt::Interrupt;
use punctual_terminal::{origin, output};

/// Runs a system in virtual time, with faults if you like
///
/// A simulation needs no hardware, and one seed gives one trace, byte for byte. A system that is
/// not admitted runs too, so that its misses can be seen.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 met or excused; 1 missed; 2 bad input; 3 failure.\n\n\
    Examples:\n  \
    punctual sim examples/two-tasks.toml --for 10s\n  \
    punctual sim examples/waters2019.toml --for 2s --report waters.html\n  \
    punctual sim plant.toml --for 1s --seed 7 --fault missing-time=500us/10ms --fault jitter\n  \
    punctual sim plant.toml --for 1s --fault overrun=control:1.5 --trace plant.pftrace"
)]
pub(crate) struct Args {
    /// The system file; `-` is standard input
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    #[command(flatten)]
    pub(crate) flags: Flags,
    /// Inject a fault: missing-time=500us/10ms (or 500us/10ms@CPU), late-timer=100us, jitter,
    /// overrun=TASK:1.5 (or GRAPH.ACTOR:1.5), short-firings, crash=TASK@JOB, cache-delay=20us,
    /// clock-offset=1us (or 1us@CPU: exactly that, on that CPU), clock-drift=10ppm (or @CPU), and
    /// for schedulers of own time decision-cost=1us, child-loops=NAME, child-lies=NAME,
    /// child-silent=NAME; may be given several times
    #[arg(long = "fault", value_name = "KIND")]
    faults: Vec<Fault>,
}

pub(crate) fn execute(args: &Args) -> Ended {
    let flags = &args.flags;
    let description = input::load(&args.file)?;
    flags.outputs.refuse_wrong(&args.file)?;
    let faults = faults::resolve(&args.faults, &description.system)?;
    let interrupt = Interrupt::listen()?;
    let policies = ChildPolicies::of_file(
        &description.system,
        &description.base,
        Frequency::NANOSECONDS,
    )
    .map_err(|error| outcome::failure(&error, &description))?;
    let patience = Patience::begin("judging", flags.outputs.quiet, &interrupt)?;
    let (verdict, transitions) = judged(&description.system)
        .map_err(|error| outcome::failure(&Error::from(error), &description))?;
    drop(patience);
    // From here on Ctrl-C leaves a report, and files that are not empty.
    let mut promised = flags.outputs.promise(&args.file)?;
    let options = SimOptions {
        policies,
        duration: flags.duration,
        seed: flags.seed,
        faults,
        source: description.origin().into(),
        fingerprint: origin::of_simulation(),
        verdict: Some(verdict),
        transitions: Some(transitions),
        record: promised.stream(),
    };
    let bar = Bar::new("sim", flags.outputs.quiet);
    let log = punctual::simulate(
        &description.system,
        &options,
        &mut workloads::shipped(),
        &mut |progress| {
            bar.show(progress);
            !interrupt.is_wanted()
        },
    );
    bar.clear();
    let log = log.map_err(|error| outcome::failure(&error, &description))?;
    let report = outcome::judge(&log, &interrupt);
    // The threads of graphs come after the tasks of the file, and graphs have bounds of their own.
    let mut declared = report.tasks.iter().take(description.system.tasks.len());
    if !flags.outputs.quiet && declared.any(|task| task.bound_ns.is_none()) {
        output::remark("remark: some tasks have no bound (`punctual check` says why)");
    }
    outcome::tell(&log, &report, &flags.outputs, promised)
}

/// The bounds that stand beside what is seen, from the start and after each change. A report has
/// neither slack nor fixes.
fn judged(system: &System) -> Result<(Verdict, Vec<Transition>), AnalysisError> {
    let start = bounds_only(&punctual::at_start(system))?;
    Ok((start, admit_changes_by(system, bounds_only)?))
}
