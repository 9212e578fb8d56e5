//! The flags that commands about runs share: what to cover, and where to write it down.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use punctual_model::{Ns, Span};
use punctual_trace::{Log, RunReport};

use crate::export::{self, Format};
use crate::input;
use punctual_terminal::ending::Failure;
use punctual_terminal::output::PromisedFile;

/// What `sim` and `run` cover, and where they write it down.
#[derive(Debug, clap::Args)]
pub(crate) struct Flags {
    /// Cover the releases of a time this long, e.g. 10s; overrides the file
    #[arg(long = "for", value_name = "DURATION", value_parser = input::duration)]
    pub(crate) duration: Option<Span<Ns>>,
    /// Seed of everything drawn at random; overrides the file
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) outputs: Outputs,
}

/// Where the report of a run goes, and the run itself.
#[derive(Debug, clap::Args)]
pub(crate) struct Outputs {
    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a trace; by ending: .pftrace Perfetto, .csv one line per job, else text
    #[arg(long, value_name = "OUT")]
    trace: Vec<PathBuf>,
    /// Write the log while the run goes on, for `punctual report`, `replay` and `diff`
    #[arg(long, value_name = "LOG")]
    record: Option<PathBuf>,
    /// Write the report as one HTML page
    #[arg(long, value_name = "OUT.html")]
    report: Option<PathBuf>,
    /// Exit with 1 when missing time excuses the misses, too
    #[arg(long)]
    pub(crate) strict: bool,
    /// Print the verdict and its reasons alone, without progress and remarks
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// The files that a run will write, open.
#[derive(Debug)]
pub(crate) struct Promised(Vec<(Format, PromisedFile)>);

impl Outputs {
    /// Opens the files, so that a wrong path costs no run. `source` is not overwritten.
    pub(crate) fn promise(&self, source: &Path) -> Result<Promised, Failure> {
        self.refuse_wrong(source)?;
        let files = self.wanted().into_iter().map(|(format, path)| {
            let file = PromisedFile::open(path)?;
            Ok((format, file))
        });
        Ok(Promised(files.collect::<Result<_, _>>()?))
    }

    /// Refuses wrong paths, and touches no file.
    pub(crate) fn refuse_wrong(&self, source: &Path) -> Result<(), Failure> {
        let wanted = self.wanted();
        for (index, (_, path)) in wanted.iter().enumerate() {
            if wanted.iter().take(index).any(|(_, other)| other == path) {
                let twice = format!("{} is to be written twice", path.display());
                return Err(Failure::input(twice).with_help("name two files"));
            }
            input::refuse_overwriting(path, source)?;
            PromisedFile::refuse_wrong(path)?;
        }
        Ok(())
    }

    fn wanted(&self) -> Vec<(Format, &PathBuf)> {
        let traces = self
            .trace
            .iter()
            .map(|path| (Format::by_ending(path), path));
        let log = self.record.iter().map(|path| (Format::Log, path));

        let page = self.report.iter().map(|path| (Format::Page, path));
        traces.chain(log).chain(page).collect()
    }
}

impl Promised {
    /// The file of the log, to be written while the run goes on; `None`: none is asked for, or it
    /// is none that can be read back, and is written after the run.
    pub(crate) fn stream(&mut self) -> Option<Arc<File>> {
        let mut files = self.0.iter_mut();
        let (_, log) = files.find(|(format, _)| *format == Format::Log)?;
        log.stream().map(Arc::new)
    }

    /// Writes all files: one that cannot be written does not cost the others.
    pub(crate) fn keep(self, log: &Log, report: &RunReport) -> Result<(), Failure> {
        let mut kept = Ok(());
        for (format, file) in self.0 {
            kept = kept.and(file.fill(|out| export::write(format, log, report, out)));
        }
        kept
    }
}
