//! `punctual verify`: every number of a certificate, derived again.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::ValueHint;
use punctual_certificate::{
    Certificate, Claims, GangClaim, GraphCertificate, PlanCertificate, Wrong,
};
use punctual_model::readable;

use crate::words::count;
use crate::{certify, certify_graphs, certify_plan, input};
use punctual_terminal::ending::{Ended, Ending, Failure};
use punctual_terminal::json::Json;
use punctual_terminal::object;
use punctual_terminal::output::{self, JSON_FORMAT};

/// Derives every number of a certificate again, and compares it with a system file
///
/// No number is derived by the code of `check`; the segments of groups alone are compared with
/// those that `check` plans FILE with. With exit code 1 it names the first number that does not
/// follow.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 valid; 1 something in it is wrong; 2 it cannot be read.\n\n\
    Examples:\n  \
    punctual check examples/two-tasks.toml --certificate two.json\n  \
    punctual verify two.json\n  \
    punctual verify two.json examples/two-tasks.toml   # and it is about this very system"
)]
pub(crate) struct Args {
    /// The certificate; `-` is standard input
    #[arg(value_hint = ValueHint::FilePath)]
    certificate: PathBuf,
    /// The system file that the certificate should describe; `-` is standard input
    #[arg(value_hint = ValueHint::FilePath)]
    file: Option<PathBuf>,
    /// Print the finding as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn execute(args: &Args) -> Ended {
    let text = input::text(&args.certificate)?;
    let unreadable =
        |wrong: Wrong| Failure::input(format!("{}: {wrong}", args.certificate.display()));
    // Its first list says which kind it is; what else is wrong with it, its own reader says.
    let kinds: Option<serde_json::Map<String, serde_json::Value>> =
        serde_json::from_str(&text).ok();
    let has = |list: &str| kinds.as_ref().is_some_and(|kinds| kinds.contains_key(list));
    if has("graphs") {
        let certificate = punctual_certificate::read_graphs(&text).map_err(unreadable)?;
        return graphs(args, &certificate);
    }
    if has("segments") {
        let certificate = punctual_certificate::read_plan(&text).map_err(unreadable)?;
        return plan(args, &certificate);
    }
    let certificate = punctual_certificate::read(&text).map_err(unreadable)?;
    let wrong = match &args.file {
        Some(file) => {
            let system = certify::plain(&input::load(file)?.system);
            punctual_certificate::first_difference(&certificate, &system)
        }
        None => None,
    };
    let elsewhere = wrong.is_some();
    let wrong = wrong.or_else(|| punctual_certificate::verify(&certificate).err());
    let ending = Ending::of(wrong.is_none());
    if args.json {
        output::print_json(&finding(&certificate, wrong.as_ref()))?;
    } else {
        output::print(match &wrong {
            Some(wrong) => format!("{}: {wrong}", words(elsewhere, args)),
            None => format!("valid: {}", what(&certificate)),
        })?;
    }
    Ok(ending)
}

/// The same for the certificate of a file with graphs.
fn graphs(args: &Args, certificate: &GraphCertificate) -> Ended {
    let file = args.file.as_ref().map(|file| input::load(file));
    let difference = file.transpose()?.and_then(|file| {
        let system = &file.system;
        match certify_graphs::plain(system) {
            Ok(graphs) if graphs == certificate.graphs => {
                certify_graphs::other_tasks(system, certificate.rest.as_ref())
            }
            Ok(_) => Some("its graphs are not those of the file".to_string()),
            Err(why) => Some(why),
        }
    });
    let elsewhere = difference.is_some();
    let wrong = difference.or_else(|| {
        let found = punctual_certificate::verify_graphs(certificate).err();
        found.map(|wrong| wrong.to_string())
    });
    told(args, elsewhere, wrong, || {
        let rest = certificate.rest.as_ref();
        format!(
            "the schedules of {} show their periods and latencies{}",
            count(certificate.graphs.len(), "graph"),
            rest.map_or_else(String::new, |rest| format!("; the rest is {}", what(rest)))
        )
    })
}

/// The same for the certificate of a file with groups.
fn plan(args: &Args, certificate: &PlanCertificate) -> Ended {
    let difference = match &args.file {
        Some(file) => other_system(&input::load(file)?.system, certificate)?,
        None => None,
    };
    let elsewhere = difference.is_some();
    let wrong = difference.or_else(|| {
        let found = punctual_certificate::verify_plan(certificate).err();
        found.map(|wrong| wrong.to_string())
    });
    told(args, elsewhere, wrong, || {
        let segments = count(certificate.segments.len(), "segment");
        let rest = certificate.rest.as_ref();
        format!(
            "{segments} on {} are in time, and nobody waits{}",
            count(certificate.cpus.len(), "planned node"),
            rest.map_or_else(String::new, |rest| format!("; the rest is {}", what(rest)))
        )
    })
}

/// Tells whether a certificate that admits is valid, and what it shows.
fn told(
    args: &Args,
    elsewhere: bool,
    wrong: Option<String>,
    shows: impl FnOnce() -> String,
) -> Ended {
    let valid = wrong.is_none();
    if args.json {
        output::print_json(&object! {
            format: JSON_FORMAT,
            valid: valid,
            verdict: valid.then_some("admitted"),
            wrong: wrong,
        })?;
    } else {
        output::print(match &wrong {
            Some(wrong) => format!("{}: {wrong}", words(elsewhere, args)),
            None => format!("valid: admitted; {}", shows()),
        })?;
    }
    Ok(Ending::of(valid))
}

/// How the system of a certificate differs from that of a file, but for the places of segments.
fn other_system(
    system: &punctual_model::System,
    certificate: &PlanCertificate,
) -> Result<Option<String>, Failure> {
    match &certificate.rest {
        Some(rest) => {
            let found = punctual_certificate::first_difference(rest, &certify::plain(system));
            if let Some(wrong) = found {
                return Ok(Some(wrong.to_string()));
            }
        }
        None if certify_plan::has_deadlines(system) => {
            return Ok(Some(
                "it says nothing of the tasks beside the groups".into(),
            ));
        }
        None => {}
    }
    let verdict = input::bounds(system)?;
    let own = match certify_plan::certificate(system, &verdict, None) {
        Ok(own) => own,
        Err(why) => return Ok(Some(why)),
    };
    let named = |parts: &PlanCertificate| (parts.cpus.clone(), parts.resources.clone());
    let repeats = |parts: &PlanCertificate| (parts.repeats_from, parts.period);
    if named(&own) != named(certificate) || repeats(&own) != repeats(certificate) {
        return Ok(Some(
            "its nodes, its resources, or when it repeats are not those of the file".into(),
        ));
    }
    let (ours, theirs) = (by_name(&own), by_name(certificate));
    let differs = ours.iter().zip(&theirs).find(|(own, other)| own != other);
    Ok(match differs {
        Some((own, _)) => Some(format!("segment `{}` is another one in the file", own.0)),
        None if ours.len() != theirs.len() => Some("it has other segments".into()),
        None => None,
    })
}

/// A segment by name, with all that its place depends on: its numbers, its resources, and the
/// segments before it.
type Named<'a> = (&'a str, [u64; 3], Vec<(usize, bool)>, Vec<&'a str>);

/// The segments by name.
fn by_name(parts: &PlanCertificate) -> Vec<Named<'_>> {
    let name = |at: &usize| {
        parts
            .segments
            .get(*at)
            .map_or("?", |segment| &*segment.name)
    };
    let all = parts.segments.iter().map(|segment| {
        let numbers = [segment.release, segment.wcet, segment.deadline];
        let uses = segment.uses.iter().map(|used| (used.resource, used.alone));
        let mut after: Vec<&str> = segment.after.iter().map(name).collect();
        after.sort_unstable();
        (&*segment.name, numbers, uses.collect(), after)
    });
    let mut all: Vec<_> = all.collect();
    all.sort_unstable();
    all
}

/// How a finding begins: about the pair of files, or about the certificate alone.
fn words(elsewhere: bool, args: &Args) -> String {
    match args.file.as_ref().filter(|_| elsewhere) {
        Some(file) => format!("about another system than {}", file.display()),
        None => "not valid".into(),
    }
}

fn finding(certificate: &Certificate, wrong: Option<&Wrong>) -> Json {
    let verdict = match certificate.claims {
        Claims::Admitted { .. } => "admitted",
        Claims::Overdue(_) | Claims::Late(_) => "refused",
    };
    object! {
        format: JSON_FORMAT,
        valid: wrong.is_none(),
        verdict: wrong.is_none().then_some(verdict),
        wrong: wrong.map(Wrong::to_string),
    }
}

/// A line for each superstep of a gang, and for each barrier.
fn of_gang(gang: &GangClaim, text: &mut String) {
    for step in &gang.supersteps {
        let (name, skew) = (&step.superstep, readable(step.skew));
        let members = count(step.latest.len(), "member");
        let _ = write!(
            text,
            "\n  {members} of {name} start within {skew} of each other"
        );
    }
    for barrier in &gang.barriers {
        let (before, next) = (&barrier.before, &barrier.next);
        let [end, clocks, begins] =
            [barrier.end, barrier.clocks, barrier.begins].map(|ns| readable(ns).to_string());
        let decided = if barrier.left_out { "goes" } else { "stays" };
        let _ = write!(
            text,
            "\n  the barrier {before} - {next} {decided}: {before} ends by {end}, clocks differ by \
             {clocks}, {next} begins at {begins}"
        );
    }
}

fn what(certificate: &Certificate) -> String {
    match &certificate.claims {
        Claims::Admitted {
            nodes,
            required,
            gangs,
            ..
        } => {
            let entities = nodes.iter().map(|node| node.entities.len()).sum::<usize>();
            let mut text = format!(
                "admitted; {} on {} and {} follow from the system",
                count(entities, "bound"),
                count(nodes.len(), "node"),
                count(required.len(), "requirement")
            );
            for gang in gangs {
                of_gang(gang, &mut text);
            }
            text
        }
        Claims::Overdue(claim) => format!(
            "refused; on cpu.{} by {} ns {} ns are due and {} ns can be done",
            claim.cpu, claim.at, claim.demand, claim.supply
        ),
        Claims::Late(claim) => format!(
            "refused; a job of {} can take {} ns where {} ns are allowed",
            claim.task, claim.response, claim.allowed
        ),
    }
}
