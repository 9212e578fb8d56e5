//! Several systems compared: a line for each, and their sum.

use std::fmt;

use punctual_terminal::output::JSON_FORMAT;
use punctual_terminal::table::Table;
use punctual_trace::RunVerdict;
use serde::Serialize;

use crate::report::Report;
use crate::round::{Figures, Rival};
use crate::text;

/// The sum of several files.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Sum {
    /// The worst of all; a file without a round is missed.
    #[serde(skip)]
    pub(crate) verdict: RunVerdict,
    #[serde(skip)]
    files: Vec<(String, Vec<Counts>)>,
    /// Of each rival that ran all files.
    rivals: Vec<Counts>,
    /// Rivals that the kernel refused for some file: they have no sum.
    refused: Vec<Rival>,
}

/// The counts of one rival.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
struct Counts {
    name: Rival,
    #[serde(skip)]
    is_refused: bool,
    jobs: u64,
    misses: u64,
    own_misses: Option<u64>,
    own_misses_at_least: Option<u64>,
    missing_time_ns: Option<u64>,
    processor_ns: u64,
}

/// The JSON of `compare` for several files.
#[derive(Serialize)]
pub(crate) struct Several<'a> {
    format: u32,
    verdict: RunVerdict,
    files: &'a [Report],
    sum: &'a Sum,
}

impl<'a> Several<'a> {
    pub(crate) fn new(files: &'a [Report], sum: &'a Sum) -> Several<'a> {
        Several {
            format: JSON_FORMAT,
            verdict: sum.verdict,
            files,
            sum,
        }
    }
}

impl Sum {
    /// The sum of so many files, of which there are these reports.
    pub(crate) fn of(reports: &[Report], wanted: usize) -> Sum {
        let worst = reports.iter().map(|one| one.verdict);
        let worst = worst.reduce(RunVerdict::worse);
        let whole = reports.len() == wanted;
        let of = |rival: Rival| {
            let each = reports.iter().flat_map(|one| &one.rivals);
            each.filter(move |one| one.name == rival)
        };
        let (refused, ran): (Vec<Rival>, Vec<Rival>) = Rival::ALL
            .into_iter()
            .partition(|rival| of(*rival).any(|one| one.refused.is_some()));
        let sum = |rival: &Rival| of(*rival).map(Counts::of).reduce(Counts::plus);
        Sum {
            verdict: worst.filter(|_| whole).unwrap_or(RunVerdict::Missed),
            files: reports
                .iter()
                .map(|one| {
                    (
                        one.source.clone(),
                        one.rivals.iter().map(Counts::of).collect(),
                    )
                })
                .collect(),
            rivals: ran.iter().filter_map(sum).collect(),
            refused,
        }
    }
}

impl Counts {
    fn of(figures: &Figures) -> Counts {
        Counts {
            name: figures.name,
            is_refused: figures.refused.is_some(),
            jobs: figures.jobs,
            misses: figures.misses,
            own_misses: figures.own_misses,
            own_misses_at_least: figures.own_misses_at_least,
            missing_time_ns: figures.missing_time_ns,
            processor_ns: figures.processor_ns,
        }
    }

    fn plus(self, other: Counts) -> Counts {
        let both = |a: Option<u64>, b: Option<u64>| Some(a? + b?);
        Counts {
            jobs: self.jobs + other.jobs,
            misses: self.misses + other.misses,
            own_misses: both(self.own_misses, other.own_misses),
            own_misses_at_least: both(self.own_misses_at_least, other.own_misses_at_least),
            missing_time_ns: both(self.missing_time_ns, other.missing_time_ns),
            processor_ns: self.processor_ns + other.processor_ns,
            ..self
        }
    }

    fn row(&self, of: &str) -> Vec<String> {
        let name = self.name.name().to_owned();
        if self.is_refused {
            return vec![of.into(), name, "refused".into()];
        }
        vec![
            of.into(),
            name,
            self.jobs.to_string(),
            self.misses.to_string(),
            text::between(self.own_misses_at_least, self.own_misses),
            text::time(self.missing_time_ns),
            text::time(Some(self.processor_ns)),
        ]
    }
}

/// The verdict, a table of all files, and a word on rivals without a sum.
impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: {} files\n",
            text::word(self.verdict),
            self.files.len()
        )?;
        let columns = [
            "file",
            "",
            ">jobs",
            ">missed",
            ">own",
            ">missing",
            ">processor",
        ];
        let mut table = Table::new(&columns);
        let files = self.files.iter().map(|(of, rivals)| (of.as_str(), rivals));
        for (of, rivals) in files.chain([("sum", &self.rivals)]) {
            for (at, counts) in rivals.iter().enumerate() {
                table.row(counts.row(if at == 0 { of } else { "" }));
            }
        }
        write!(f, "{table}")?;
        for rival in &self.refused {
            writeln!(f, "  {} has no sum: some file was refused", rival.name())?;
        }
        Ok(())
    }
}
