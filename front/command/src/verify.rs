//! `punctual verify`: every number of a certificate, derived again.

use std::path::PathBuf;

use punctual_certificate::{Certificate, Claims, GraphCertificate, Wrong};

use crate::words::count;
use crate::{certify, certify_graphs, input};
use punctual_terminal::ending::{Ended, Ending, Failure};
use punctual_terminal::json::Json;
use punctual_terminal::object;
use punctual_terminal::output::{self, JSON_FORMAT};

/// Derives every number of a certificate again, and compares it with a system file
///
/// This command shares no code with `check`. With exit code 1 it names the first number that does
/// not follow.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 valid; 1 something in it is wrong; 2 it cannot be read.\n\n\
    Examples:\n  \
    punctual check examples/two-tasks.toml --certificate two.json\n  \
    punctual verify two.json\n  \
    punctual verify two.json examples/two-tasks.toml   # and it is about this very system"
)]
pub(crate) struct Args {
    /// The certificate
    certificate: PathBuf,
    /// The system file that the certificate should describe
    file: Option<PathBuf>,
    /// Print the finding as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn execute(args: &Args) -> Ended {
    let text = input::text(&args.certificate)?;
    if let Ok(certificate) = punctual_certificate::read_graphs(&text) {
        return graphs(args, &certificate);
    }
    let certificate = punctual_certificate::read(&text)
        .map_err(|wrong| Failure::input(format!("{}: {wrong}", args.certificate.display())))?;
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
    let system = args.file.as_ref().map(|file| input::load(file));
    let about = system
        .transpose()?
        .map(|file| certify_graphs::plain(&file.system));
    let difference = about.and_then(|about| match about {
        Ok(graphs) if graphs == certificate.graphs => None,
        Ok(_) => Some("its graphs are not those of the file".to_string()),
        Err(why) => Some(why),
    });
    let elsewhere = difference.is_some();
    let wrong = difference.or_else(|| {
        let found = punctual_certificate::verify_graphs(certificate).err();
        found.map(|wrong| wrong.to_string())
    });
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
            None => format!(
                "valid: admitted; the schedules of {} show their periods and latencies",
                count(certificate.graphs.len(), "graph")
            ),
        })?;
    }
    Ok(Ending::of(valid))
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

fn what(certificate: &Certificate) -> String {
    match &certificate.claims {
        Claims::Admitted {
            nodes, required, ..
        } => {
            let entities = nodes.iter().map(|node| node.entities.len()).sum::<usize>();
            format!(
                "admitted; {} on {} and {} follow from the system",
                count(entities, "bound"),
                count(nodes.len(), "node"),
                count(required.len(), "requirement")
            )
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
