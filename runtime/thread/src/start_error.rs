//! Why a run did not start, or came to nothing.

use core::fmt;

use punctual_kern::ConfigError;
use punctual_linux::RunError;
use punctual_model::{Ns, Span, readable};

use crate::admission::NotAdmitted;

/// Why there was no run, or nothing came out of it.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// The machine refused something that a run cannot do without.
    Run(RunError),
    /// The first thread's constraint means nothing.
    Config(ConfigError),
    /// There is no memory for a recorder.
    NoRecorder {
        /// How much it wanted.
        bytes: usize,
    },
    /// These libraries keep thread-locals from being new in each thread
    /// ([`crate::Runtime::strict`]).
    StaleLocals {
        /// Their names.
        libraries: Vec<String>,
    },
    /// The first thread asked for a guarantee and does not get it.
    NotAdmitted(NotAdmitted),
    /// The program's own policy for a scheduler could not be made.
    NoPolicy {
        /// The scheduler.
        scheduler: String,
        /// In the words of the one who makes it.
        why: String,
    },
    /// The first thread did not come to its end: it panicked, or the run was ended.
    NoResult {
        /// The messages of panics, with the names of their threads.
        panics: Vec<punctual_linux::Panic>,
    },
    /// The run took all of the time that it might take ([`crate::Runtime::at_most`]).
    Ended {
        /// That time.
        after: Span<Ns>,
    },
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Run(error) => write!(f, "{error}"),
            StartError::Config(error) => write!(f, "{error}"),
            StartError::NoRecorder { bytes } => {
                write!(f, "no memory to record the run: {} MiB", bytes >> 20)
            }
            StartError::StaleLocals { libraries } => {
                let names: Vec<String> = libraries.iter().map(|name| format!("`{name}`")).collect();
                write!(
                    f,
                    "thread-locals are not new in each thread, as those of {} cannot be made new: \
                     set them first, or do without it",
                    names.join(", ")
                )
            }
            StartError::NotAdmitted(why) => write!(f, "{why}"),
            StartError::NoPolicy { scheduler, why } => {
                write!(f, "the policy of `{scheduler}`: {why}")
            }
            StartError::NoResult { panics } => {
                write!(f, "the first thread did not come to its end")?;
                panics
                    .iter()
                    .try_for_each(|p| write!(f, "; `{}` panicked: {}", p.name, p.message))
            }
            StartError::Ended { after } => {
                let after = readable(after.as_ns());
                write!(
                    f,
                    "the run was ended after {after}, and its first thread had not come to its end"
                )
            }
        }
    }
}

impl std::error::Error for StartError {}
