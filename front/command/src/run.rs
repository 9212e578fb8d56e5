//! `punctual run`: for real, on the CPUs of this machine, and the bound beside what was observed.

use std::path::PathBuf;

use clap::ValueHint;
use punctual::analysis::Transition;
use punctual::graph::Applications;
use punctual::{ChildPolicies, Error, GivenTerms, LiveOptions, Verdict};
use punctual_capi::application_of_file;
use punctual_linux::clock_rate;
use punctual_model::{Ns, Reserve, Span, System};

use crate::flags::Flags;
use crate::progress::Bar;
use crate::{input, outcome, verdict_text, workloads};
use punctual_spec::Description;
use punctual_terminal::ending::{Ended, Ending, Failure};
use punctual_terminal::interrupt::Interrupt;
use punctual_terminal::platform::Given;
use punctual_terminal::{origin, output};

/// Runs a system on this machine, if it is admitted here
///
/// Admission uses the file's terms and this machine's measured overheads and reserves. With the
/// permission for SCHED_FIFO and locked memory the run is in real time. Without it, the run is
/// labelled best-effort and lists its losses; `punctual doctor` prints the commands that mend them.
/// Ctrl-C ends the run early, with its report.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 met or excused; 1 refused or missed; 2 bad input; 3 failure of \
    the run.\n\n\
    Examples:\n  \
    punctual run examples/rosace.toml --for 10s\n  \
    punctual run examples/two-tasks.toml --for 10s --json\n  \
    punctual run plant.toml --report plant.html --trace plant.pftrace --record plant.log\n  \
    punctual run plant.toml --platform here.toml        # terms measured at a quieter hour\n  \
    punctual run plant.toml --sample 1ms                # see more of what a hypervisor takes\n  \
    punctual run plant.toml --missing-time 500us/10ms   # count on what this machine takes"
)]
pub(crate) struct Args {
    /// The system file; `-` is standard input
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    #[command(flatten)]
    pub(crate) flags: Flags,
    /// Run the system even if it is not admitted
    #[arg(long)]
    force: bool,
    /// Declare missing time: at most so much in any window of that length, e.g. 500us/10ms
    #[arg(long, value_name = "BUDGET/PERIOD", value_parser = input::missing_time)]
    missing_time: Option<Reserve>,
    /// Look this often, e.g. every 1ms, for time that the machine takes from a running job. The
    /// default is 20ms, the shortest 50us. Each look costs a timer entry, which admission counts
    #[arg(long, value_name = "DURATION", value_parser = input::duration)]
    sample: Option<Span<Ns>>,
    /// While a CPU has nothing but jobs that wait for predecessors, let it look for these until
    /// their deadlines instead of sleeping: such jobs begin sooner, and nobody else has that time
    #[arg(long)]
    look: bool,
    /// Take this machine's terms from a file that `punctual doctor --measure --platform` wrote
    /// earlier, instead of measuring them now
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    platform: Option<PathBuf>,
}

pub(crate) fn execute(args: &Args) -> Ended {
    let flags = &args.flags;
    let mut description = input::load(&args.file)?;
    if let Some(missing) = &args.missing_time {
        description.system.machine.missing_time = Some(missing.clone());
    }
    let given = args.platform.as_deref().map(Given::load).transpose()?;
    let system = &description.system;
    let start = &punctual::at_start(system);
    let verdict = input::bounds(start)?;
    if !verdict.admitted {
        if !args.force {
            return refuse(start, &input::admit(start)?, flags, "");
        }
        output::remark(format!(
            "remark: {}; forced",
            verdict_text::headline(start, &verdict, &[], false)
        ));
    }
    let interrupt = Interrupt::listen()?;
    let mut promised = flags.outputs.promise(&args.file)?;
    let policies = ChildPolicies::of_file(system, &description.base, clock_rate().frequency)
        .map_err(|error| outcome::failure(&error, &description))?;
    let options = LiveOptions {
        policies,
        applications: applications_of(&description)?,
        duration: flags.duration,
        seed: flags.seed,
        force: args.force,
        stop: interrupt.flag(),
        source: description.origin().into(),
        base: description.base.clone(),
        fingerprint: origin::of_run("punctual"),
        terms: given.as_ref().map(|given| GivenTerms {
            machine: given.machine.clone(),
            from: given.origin.describe(),
        }),
        sample: args.sample,
        look: args.look,
        record: promised.stream(),
    };
    if let Some(asked) = args.sample.filter(|_| !flags.outputs.quiet) {
        remark_sample(asked);
    }
    if let Some(terms) = options.terms.as_ref().filter(|_| !flags.outputs.quiet) {
        output::remark(format!("remark: with the terms of {}", terms.from));
    }
    let bar = Bar::new("run", flags.outputs.quiet);
    let log = punctual::run(
        system,
        &options,
        &mut workloads::shipped(),
        &mut |progress| {
            bar.show(progress);
            true
        },
    );
    bar.clear();
    let log = match log {
        Err(Error::Refused(verdict)) => {
            let with = match given {
                Some(_) => " with the terms of the platform file",
                None => MEASURED,
            };
            return refuse(start, &verdict, flags, with);
        }
        Err(Error::ChangeRefused(change)) => return refuse_change(&change, flags),
        log => log.map_err(|error| outcome::failure(&error, &description))?,
    };
    let report = outcome::judge(&log, &interrupt);
    outcome::tell(&log, &report, &flags.outputs, promised)
}

/// The applications whose actors are functions in C.
fn applications_of(description: &Description) -> Result<Applications, Failure> {
    let applications = Applications::default();
    for graph in &description.system.graphs {
        let made = application_of_file(graph, &description.base);
        let failed = |error| outcome::failure(&Error::Application(error), description);
        made.map_err(failed)?
            .into_iter()
            .for_each(|made| applications.bring(made));
    }
    Ok(applications)
}

/// How a refusal by measured terms comes about, and the way out of it.
const MEASURED: &str = " with the overheads measured on this machine just now (terms of a quieter \
    hour: `punctual doctor --measure --platform here.toml`, then `run --platform here.toml`)";

/// Says how often the run really looks, when that is not as asked.
fn remark_sample(asked: Span<Ns>) {
    let in_force = punctual::sample_in_force(asked);
    if in_force != asked {
        let us = in_force.as_ns() / 1_000;
        output::remark(format!(
            "remark: looks every {us}us, which is as near to --sample as it can be"
        ));
    }
}

/// One of the file's changes is refused here: why the system after it is, and nothing runs.
fn refuse_change(change: &Transition, flags: &Flags) -> Ended {
    output::remark(format!(
        "not run: a change is refused here: {} (`punctual check` says more; --force runs without it)",
        change.ground
    ));
    refuse(&change.system, &change.verdict, flags, "")
}

/// The same explanation as of `check`, and nothing runs.
fn refuse(system: &System, verdict: &Verdict, flags: &Flags, with: &str) -> Ended {
    verdict_text::print(system, verdict, flags.outputs.json, flags.outputs.quiet)?;
    if !flags.outputs.quiet {
        output::remark(format!(
            "not run: refused{with}; --force runs it all the same"
        ));
    }
    Ok(Ending::Bad)
}
