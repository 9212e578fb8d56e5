//! Everything that can stop a run, by the party that can mend it.

use std::fmt;

use punctual_analysis::{AnalysisError, Transition, Verdict};
use punctual_graph::GraphError;
use punctual_model::{ModelError, TaskId};
use punctual_sim::SimError;
use punctual_thread::{StartError, UnknownFunction};

/// Why there is no result.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The system is meaningless (mend the file or the program).
    Model(Vec<ModelError>),
    /// The analysis could not finish, e.g. because a number overflows (mend the file).
    Analysis(AnalysisError),
    /// The system is not admitted, and nobody insisted (mend the system, or force it).
    Refused(Box<Verdict>),
    /// A change that the system declares is not admitted, and nobody insisted (mend the change, or
    /// force the run, which does without it).
    ChangeRefused(Box<Transition>),
    /// A file names a function that nobody registered (mend either).
    UnknownFunction(UnknownFunction),
    /// A policy was given for a scheduler that does not decide on its own supply, or is not there
    /// (mend the program or the system).
    NotOwnTime(String),
    /// The code of a scheduler cannot be had.
    PolicyCode {
        /// The name of the scheduler.
        scheduler: String,
        /// Why.
        reason: String,
    },
    /// A graph cannot be executed so.
    Application(GraphError),
    /// Neither the file nor the caller says how long to run.
    NoDuration,
    /// A planned group on a machine: virtual time alone executes these (simulate).
    Group(String),
    /// A segment of a group with a function, which virtual time does not call (mend the file).
    SegmentFunction {
        /// The group.
        group: String,
        /// The segment.
        segment: String,
    },
    /// A CPU without a host can only be simulated (mend the file).
    NoHost(String),
    /// A shared object or its function could not be had (mend the file, or build it).
    Foreign {
        /// The task whose work it is.
        task: TaskId,
        /// The cause.
        error: punctual_linux::ForeignError,
    },
    /// A program could not be started (mend the file, or install it).
    Program {
        /// The task whose work it is.
        task: TaskId,
        /// The cause.
        error: punctual_linux::ProgramError,
    },
    /// The kernel gave no thread for the body of a task (free some).
    KernelThread {
        /// The task.
        task: TaskId,
        /// The cause.
        error: std::io::Error,
    },
    /// The core refused the tables.
    Config(punctual_kern::ConfigError),
    /// The machine refused something that a run cannot do without.
    Run(punctual_linux::RunError),
    /// Not enough memory to record a run of this length (shorten it).
    OutOfMemory {
        /// The need of one CPU's recorder.
        bytes: usize,
    },
    /// Virtual time refused.
    Sim(SimError),
    /// A run of threads did not start.
    Start(StartError),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Model(errors) => {
                for (i, error) in errors.iter().enumerate() {
                    let separator = if i == 0 { "" } else { "\n" };
                    write!(f, "{separator}{error}")?;
                }
                Ok(())
            }
            Error::Analysis(error) => write!(f, "the analysis could not finish: {error}"),
            Error::Refused(verdict) => {
                let names: Vec<&str> = verdict.refusals.iter().map(|r| r.name.as_str()).collect();
                write!(f, "not admitted: {}", names.join(", "))
            }
            Error::ChangeRefused(transition) => {
                write!(f, "a change is not admitted: {}", transition.ground)
            }
            Error::UnknownFunction(error) => write!(f, "{error}"),
            Error::NotOwnTime(name) => write!(
                f,
                "no scheduler `{name}` decides on its own supply: give it `trust = \"own-time\"`"
            ),
            Error::PolicyCode { scheduler, reason } => {
                write!(f, "the code of scheduler `{scheduler}`: {reason}")
            }
            Error::Application(error) => write!(f, "{error}"),
            Error::NoDuration => {
                write!(
                    f,
                    "how long? Say `for = \"10s\"` in [run], or give a duration"
                )
            }
            Error::Group(name) => write!(
                f,
                "group `{name}`: planned groups are executed in virtual time only"
            ),
            Error::SegmentFunction { group, segment } => write!(
                f,
                "group `{group}`: virtual time calls no function for segment `{segment}`: give it \
                 `work = {{ burn = \"...\" }}`, or no `work`"
            ),
            Error::NoHost(name) => write!(
                f,
                "CPU `{name}` has no host CPU: add `host = 0` to [cpu.{name}], or simulate"
            ),
            Error::Foreign { error, .. } => write!(f, "{error}"),
            Error::Program { error, .. } => write!(f, "{error}"),
            Error::KernelThread { error, .. } => {
                write!(f, "no kernel thread for the body of a task: {error}")
            }
            Error::Config(error) => write!(f, "{error}"),
            Error::Run(error) => write!(f, "{error}"),
            Error::OutOfMemory { bytes } => {
                write!(
                    f,
                    "no memory to record the run: {} MiB needed per CPU",
                    bytes >> 20
                )
            }
            Error::Sim(error) => write!(f, "{error}"),
            Error::Start(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<AnalysisError> for Error {
    fn from(error: AnalysisError) -> Self {
        Error::Analysis(error)
    }
}

impl From<UnknownFunction> for Error {
    fn from(error: UnknownFunction) -> Self {
        Error::UnknownFunction(error)
    }
}

impl From<SimError> for Error {
    fn from(error: SimError) -> Self {
        Error::Sim(error)
    }
}

impl From<punctual_linux::RunError> for Error {
    fn from(error: punctual_linux::RunError) -> Self {
        Error::Run(error)
    }
}
