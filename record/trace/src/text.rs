//! The written form of a log: lines of words, versioned, described in `doc/trace-format.md`.
//!
//! One form serves `--record`, `--trace` and tests that compare runs byte for byte. It is made to
//! be read by people and by line-oriented tools: one record per line, the columns separated by one
//! space, free text last on its line. Writing and reading go through the table of `form`,
//! so a record that can be written can be read.

mod gangs;
mod graphs;
mod groups;
mod line;
mod policy;
mod read;
mod read_tables;
mod words;
mod write;

use std::fmt;

pub use line::line;
pub use read::read;
pub use write::{Writer, write};

/// The first line of every log of this version.
pub const FIRST_LINE: &str = "punctual-log 5";

/// What is wrong with a written log, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for LogError {}
