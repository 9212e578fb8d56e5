//! A strict run has what it would else report as lost: thread-locals that are new in each thread.

use punctual_linux::libraries_with_locals;

use crate::runtime::Runtime;
use crate::start_error::StartError;

impl Runtime {
    /// Whether the run does not begin where a library keeps thread-locals from being new in each
    /// thread ([`StartError::StaleLocals`]). Else the outcome names it, among what was refused.
    #[must_use]
    pub fn strict(mut self, strict: bool) -> Runtime {
        self.strict = strict;
        self
    }

    /// # Errors
    /// It is strict, and they are not.
    pub(crate) fn has_new_locals(&self) -> Result<(), StartError> {
        let libraries = match self.strict {
            true => libraries_with_locals(),
            false => Vec::new(),
        };
        match libraries.is_empty() {
            true => Ok(()),
            false => Err(StartError::StaleLocals { libraries }),
        }
    }
}
