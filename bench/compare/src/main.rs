//! `punctual compare`: one system as Punctual and as threads of the kernel, in turns.
#![forbid(unsafe_code)]

mod counterfactual;
mod load;
mod ours;
mod page;
mod report;
mod round;
mod runaway;
mod sign;
mod subject;
mod sum;
mod text;
mod theirs;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::ValueHint;
use punctual::{GivenTerms, Ns, Span};
use punctual_rivals::periodic::Class;
use punctual_terminal::ending::{Ended, Ending, Failure};
use punctual_terminal::input::{duration, refuse_overwriting};
use punctual_terminal::interrupt::Interrupt;
use punctual_terminal::output::{self, PromisedFile};
use punctual_terminal::platform::Given;
use punctual_trace::RunVerdict;

use load::{Kind, Load};
use ours::Setting;
use report::Report;
use round::{Rival, Round, Series};
use runaway::Runaway;
use subject::Subject;
use sum::{Several, Sum};

/// Compares a system under Punctual with the same as threads of the kernel, in turns
///
/// Each round runs the system three times: as Punctual, as threads under SCHED_FIFO and as threads
/// under SCHED_DEADLINE. They do the same work on the same CPUs and sleep to absolute instants, and
/// each is first in turn. A rival that the kernel refuses has a row with the reason.
///
/// `missed` counts every late, lost and skipped job. `own` leaves out those that are late with the
/// time that the machine took and not without it, by the same judge for Punctual and SCHED_FIFO.
/// Threads of the kernel do not see why they wake up late, so theirs lie between two figures.
#[derive(Debug, clap::Parser)]
#[command(
    name = "punctual compare",
    override_usage = "punctual compare [OPTIONS] <FILE>...",
    version,
    after_help = "Exit codes: 0 met or excused under Punctual; 1 refused or missed; 2 bad input; 3 failure of a run; 130 ended by Ctrl-C, with the rounds \
    that were finished.\n\n\
    Examples:\n  \
    punctual compare examples/two-tasks.toml\n  \
    punctual compare plant.toml --rounds 10 --load cpu,fork,memory,network\n  \
    punctual compare plant.toml --runaway fast            # and let one body loop for ever\n  \
    punctual compare plant.toml --report plant.html       # the same as a page\n  \
    punctual compare a.toml b.toml c.toml                 # a line for each, and their sum"
)]
struct Args {
    /// The system file: periodic tasks on CPUs under fixed priority or EDF. Several are compared
    /// one after the other, and added up
    #[arg(required_unless_present = "be_load", value_name = "FILE", value_hint = ValueHint::FilePath)]
    files: Vec<PathBuf>,
    /// How many rounds
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// How long each rival runs in a round, e.g. 4s
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    duration: Option<Span<Ns>>,
    /// Load beside all rounds, made of ordinary processes
    #[arg(long, value_name = "KINDS", value_delimiter = ',', value_enum)]
    load: Vec<Kind>,
    /// The CPUs of this machine to run on, one for each of the file; overrides the file
    #[arg(long, value_name = "CPUS", value_delimiter = ',')]
    cpu: Vec<u32>,
    /// Afterwards, for a second each, let a body of this task loop for ever
    #[arg(long, value_name = "TASK")]
    runaway: Option<String>,
    /// Take the terms of this machine from a platform file (`doctor --measure --platform`)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    platform: Option<PathBuf>,
    /// Compare even if Punctual does not admit the system
    #[arg(long)]
    force: bool,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
    /// Write the figures as one HTML page
    #[arg(long, value_name = "OUT.html", visible_alias = "out")]
    report: Option<PathBuf>,
    /// Print no progress and no remarks
    #[arg(long, short)]
    quiet: bool,
    /// Be load: this program starts itself so
    #[arg(long, hide = true)]
    be_load: Option<Kind>,
}

/// How long each rival runs when nobody says it.
const USUAL: Span<Ns> = Span::from_ms(4_000);
/// Between the rivals, and for the preparation of each, the load may live so much longer.
const SLACK: Duration = Duration::from_secs(120);

fn main() -> ExitCode {
    punctual_terminal::run(execute, |args| args.json)
}

fn execute(args: &Args) -> Ended {
    if let Some(kind) = args.be_load {
        return load::be(kind, args.duration);
    }
    let given = args.platform.as_deref().map(Given::load).transpose()?;
    let systems = args.files.iter().map(|file| System::load(file, args));
    let systems: Vec<System> = systems.collect::<Result<_, _>>()?;
    if systems.len() > 1 && (args.runaway.is_some() || args.report.is_some()) {
        return Err(Failure::input("--runaway and --report are about one file")
            .with_help("compare the files one by one, or read --json"));
    }
    let page = args.report.as_deref().map(|path| {
        let files = args.files.iter();
        let kept = files.map(|file| refuse_overwriting(path, file));
        kept.collect::<Result<(), _>>()?;
        PromisedFile::open(path)
    });
    let page = page.transpose()?;
    if cfg!(debug_assertions) && !args.quiet {
        output::remark("remark: this build is not optimised, and its figures mean little");
    }
    if let Some(given) = given.as_ref().filter(|_| !args.quiet) {
        let terms = given.origin.describe();
        output::remark(format!("remark: with the terms of {terms}"));
    }
    let interrupt = Interrupt::listen()?;
    // All of them first: a file that is refused costs no figures of those before it.
    let admitted = systems
        .iter()
        .map(|one| admit(&one.subject, given.as_ref(), args));
    let admitted: Option<Vec<GivenTerms>> = admitted.collect::<Result<_, _>>()?;
    let Some(terms) = admitted else {
        return Ok(Ending::Bad);
    };
    let mut reports = Vec::new();
    let mut failure = None;
    for (system, terms) in systems.iter().zip(terms) {
        if interrupt.is_wanted() {
            break;
        }
        match compare(system, terms, &interrupt, args) {
            Ok(report) => reports.push(report),
            Err(error) if reports.is_empty() => return Err(error),
            Err(error) => {
                failure = Some(error.beside_result());
                break;
            }
        }
    }
    let all = Sum::of(&reports, args.files.len());
    tell((&reports, &all), args, page)?;
    match failure {
        Some(failure) => Err(failure),
        None if interrupt.is_wanted() => Ok(Ending::Stopped),
        None => Ok(Ending::of(all.verdict != RunVerdict::Missed)),
    }
}

/// A file that is compared.
struct System {
    subject: Subject,
    runaway: Option<usize>,
    source: String,
    base: PathBuf,
}

impl System {
    fn load(file: &Path, args: &Args) -> Result<System, Failure> {
        let description = punctual_terminal::input::system(file)?;
        if !description.system.graphs.is_empty() {
            let what = "this file has a graph, which no thread of the kernel executes";
            return Err(Failure::input(what).with_help("`punctual run` executes it"));
        }
        let subject = Subject::of(&description, &args.cpu)?;
        leave_one_cpu(&subject)?;
        let runaway = args.runaway.as_deref();
        let runaway = runaway.map(|name| task_of(&subject, name)).transpose()?;
        Ok(System {
            runaway,
            source: description.origin().into(),
            base: description.base.clone(),
            subject,
        })
    }
}

/// All rounds of one file.
fn compare(
    system: &System,
    terms: GivenTerms,
    interrupt: &Interrupt,
    args: &Args,
) -> Result<Report, Failure> {
    let subject = &system.subject;
    let setting = Setting {
        duration: args.duration.unwrap_or(USUAL).as_ns(),
        force: args.force,
        terms,
        source: system.source.clone(),
        base: system.base.clone(),
        stop: interrupt.flag(),
    };
    let _load = Load::start(&args.load, lifetime(args, &setting))?;
    let series = rounds(subject, &setting, args)?;
    let runaway = match system.runaway {
        Some(at) if !interrupt.is_wanted() => Some(runs_away(subject, &setting, at)?),
        _ => None,
    };
    // Cut off, it would blame nobody.
    let runaway = runaway.filter(|_| !interrupt.is_wanted());
    let asked = (args.rounds, args.load.as_slice());
    Ok(Report::new(subject, &setting, asked, &series, runaway))
}

/// The text or the JSON, and the page.
fn tell(
    (reports, all): (&[Report], &Sum),
    args: &Args,
    page: Option<PromisedFile>,
) -> Result<(), Failure> {
    let one = match (reports, args.files.len()) {
        ([one], 1) => Some(one),
        _ => None,
    };
    // The file first: a reader of standard output that left must not cost it. Nor does a file that
    // cannot be written cost the figures.
    let kept = page.zip(one).map_or(Ok(()), |(file, one)| {
        file.fill(|out| out.write_all(page::page(one).as_bytes()))
    });
    match (args.json, one) {
        (true, Some(one)) => output::print_json(one)?,
        (true, None) => output::print_json(&Several::new(reports, all))?,
        (false, Some(one)) => output::print(text::render(one, args.quiet).trim_end())?,
        (false, None) => {
            let each = reports.iter().map(|one| text::render(one, args.quiet));
            let each: String = each.map(|text| text + "\n").collect();
            output::print(format!("{each}{all}").trim_end())?;
        }
    }
    kept.map_err(Failure::beside_result)
}

/// Threads under SCHED_FIFO that compute for ever must not get all of the machine.
fn leave_one_cpu(subject: &Subject) -> Result<(), Failure> {
    let cpus = punctual_linux::allowed_cpus()
        .map_err(|error| Failure::run(format!("which CPUs may be used is not known: {error}")))?;
    let hosts = subject.hosts();
    if let Some(absent) = hosts.iter().find(|host| !cpus.contains(host)) {
        let message = format!("CPU {absent} is none of those that may be used here: {cpus:?}");
        return Err(Failure::input(message).with_help("name others with --cpu"));
    }
    if cpus.iter().all(|cpu| hosts.contains(cpu)) {
        let message = "the system takes every CPU that may be used here";
        let help = "compare keeps one CPU free, lest a body that loops take the machine";
        return Err(Failure::run(message).with_help(help));
    }
    Ok(())
}

fn task_of(subject: &Subject, name: &str) -> Result<usize, Failure> {
    let place = subject.tasks.iter().position(|task| task.name == name);
    place.ok_or_else(|| {
        let names: Vec<&str> = subject
            .tasks
            .iter()
            .map(|task| task.name.as_str())
            .collect();
        Failure::input(format!("no task is named `{name}`"))
            .with_help(format!("the tasks are {}", names.join(", ")))
    })
}

/// Takes this machine's terms from the file, or measures them once for all rounds. `None`: the
/// system is refused and not forced.
fn admit(
    subject: &Subject,
    given: Option<&Given>,
    args: &Args,
) -> Result<Option<GivenTerms>, Failure> {
    let failed = |error: punctual::Error| Failure::run(error.to_string());
    let terms = given.map(|given| &given.machine);
    let admitted = punctual::admit_here(&subject.system, terms).map_err(failed)?;
    let verdict = match admitted.file.admitted {
        true => &admitted.machine,
        false => &admitted.file,
    };
    if !verdict.admitted {
        let reasons = verdict
            .refusals
            .iter()
            .map(|refusal| refusal.reason.to_string());
        let reasons: Vec<String> = reasons.take(3).collect();
        let remark = format!("Punctual refuses this system here: {}", reasons.join("; "));
        if !args.force {
            let failure = Failure::input(remark).with_help(
                "`punctual check` says what would be admitted; terms of a quieter hour: --platform; \
                 --force compares all the same",
            );
            output::remark(failure.render(output::colour_stderr()));
            if args.json {
                output::print_json(&failure.json())?;
            }
            return Ok(None);
        }
        output::remark(format!("remark: {remark}; forced"));
    }
    if let Some(given) = given {
        return Ok(Some(GivenTerms {
            machine: given.machine.clone(),
            from: given.origin.describe(),
        }));
    }
    let machine = admitted
        .overheads
        .as_ref()
        .map(punctual::Overheads::machine);
    Ok(Some(GivenTerms {
        machine: machine.unwrap_or_default(),
        from: "a measurement before the first round".into(),
    }))
}

/// How long load may live at most.
fn lifetime(args: &Args, setting: &Setting) -> Duration {
    let each = Duration::from_nanos(setting.duration) + Duration::from_secs(2);
    each * (args.rounds + 1) * 3 + SLACK
}

/// All rounds; those that were cut off are left out.
fn rounds(subject: &Subject, setting: &Setting, args: &Args) -> Result<Vec<Series>, Failure> {
    let new = |rival| Series {
        rival,
        rounds: Vec::new(),
        refused: None,
    };
    let mut series: Vec<Series> = Rival::ALL.into_iter().map(new).collect();
    let stopped = || setting.stop.load(std::sync::atomic::Ordering::Relaxed);
    for round in 0..args.rounds as usize {
        for rival in (0..Rival::ALL.len()).map(|place| Rival::at(round, place)) {
            let Some(one) = series.iter_mut().find(|one| one.rival == rival) else {
                continue;
            };
            if stopped() || one.refused.is_some() {
                continue;
            }
            if !args.quiet {
                let name = rival.name();
                output::remark(format!("[{}/{}] {name}", round + 1, args.rounds));
            }
            match turn(subject, setting, rival)? {
                Ok(_) if stopped() => {}
                Ok(done) => one.rounds.push(done),
                Err(why) => one.refused = Some(why),
            }
        }
    }
    let taken_part = series.iter().filter(|one| one.refused.is_none());
    let whole = taken_part.map(|one| one.rounds.len()).min().unwrap_or(0);
    for one in &mut series {
        one.rounds.truncate(whole);
    }
    Ok(series)
}

/// One rival in one round. Punctual fails for good; a rival may be refused.
fn turn(
    subject: &Subject,
    setting: &Setting,
    rival: Rival,
) -> Result<Result<Round, String>, Failure> {
    let class = match rival {
        Rival::Punctual => {
            let round = ours::round(subject, &subject.system, setting, &mut ours::shipped());
            return round
                .map(Ok)
                .map_err(|error| Failure::run(error.to_string()));
        }
        Rival::Fifo => Class::Fifo,
        Rival::Deadline => Class::Deadline,
    };
    let stop = Arc::clone(&setting.stop);
    Ok(theirs::round(
        subject,
        class,
        (setting.duration, &stop),
        None,
    ))
}

fn runs_away(subject: &Subject, setting: &Setting, at: usize) -> Result<Runaway, Failure> {
    runaway::run(subject, setting, at).map_err(|error| Failure::run(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn load(text: &str) -> Result<Vec<Kind>, String> {
        let args = Args::try_parse_from(["compare", "f.toml", "--load", text]);
        args.map(|args| args.load)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn load_is_a_list_of_kinds() {
        assert_eq!(load("cpu"), Ok(vec![Kind::Cpu]));
        let all = vec![Kind::Cpu, Kind::Fork, Kind::Memory, Kind::Network];
        assert_eq!(load("cpu,fork,memory,network"), Ok(all));
        for wrong in ["", "cpu,", "disk", "cpu fork"] {
            let told = load(wrong).expect_err(wrong);
            assert!(
                told.contains("possible values: cpu, fork, memory, network"),
                "{told}"
            );
        }
    }

    #[test]
    fn a_file_is_wanted_unless_it_is_load() {
        assert!(Args::try_parse_from(["compare"]).is_err());
        assert!(Args::try_parse_from(["compare", "--be-load", "cpu"]).is_ok());
        assert!(Args::try_parse_from(["compare", "f.toml", "--rounds", "0"]).is_err());
    }
}
