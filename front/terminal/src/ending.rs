//! How a command ends: the exit codes of every command, and what is said about a failure.

use std::fmt;

use punctual_spec::Diagnostic;
use serde::Serialize;

/// A command that has done its work; the verdict decides between the first two exit codes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// Admitted, met or excused: 0.
    Good,
    /// Refused or missed: 1.
    Bad,
    /// There is a result, but it is not whole: 3. The recording ended early, or the work failed.
    Broken,
    /// The user ended it; what was finished is printed: 130, as of any program that Ctrl-C ends. A
    /// run that is ended is a shorter run, and says what was seen instead.
    Stopped,
}

/// The code that a shell reports for a program that Ctrl-C ended.
pub const ENDED_BY_CTRL_C: u8 = 130;

impl Ending {
    /// Good when `good`.
    pub fn of(good: bool) -> Ending {
        if good { Ending::Good } else { Ending::Bad }
    }

    /// The code for the shell.
    pub fn code(self) -> u8 {
        match self {
            Ending::Good => 0,
            Ending::Bad => 1,
            Ending::Broken => 3,
            Ending::Stopped => ENDED_BY_CTRL_C,
        }
    }
}

/// Who has to act on a failure, which decides about the exit code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Blame {
    /// The input is bad: 2.
    Input,
    /// The run itself failed (permission, memory, disk): 3.
    Run,
    /// Nobody: the user ended it before there was anything to print: 130.
    Nobody,
}

/// Why a command could not do its work.
#[derive(Clone, Debug)]
pub struct Failure {
    blame: Blame,
    message: String,
    help: Option<String>,
    diagnostics: Vec<Diagnostic>,
    /// The result of the command is on standard output.
    is_beside_result: bool,
}

/// The answer of every command.
pub type Ended = Result<Ending, Failure>;

impl Failure {
    fn of(blame: Blame, message: impl Into<String>) -> Failure {
        Failure {
            blame,
            message: message.into(),
            help: None,
            diagnostics: vec![],
            is_beside_result: false,
        }
    }

    /// Bad input that has no place in a file.
    pub fn input(message: impl Into<String>) -> Failure {
        Failure::of(Blame::Input, message)
    }

    /// Mistakes of a system file.
    pub fn diagnostics(diagnostics: Vec<Diagnostic>) -> Failure {
        let message = match diagnostics.as_slice() {
            [only] => only.message.clone(),
            several => format!("{} mistakes in the system file", several.len()),
        };
        Failure {
            diagnostics,
            ..Failure::of(Blame::Input, message)
        }
    }

    /// A failure of the run itself.
    pub fn run(message: impl Into<String>) -> Failure {
        Failure::of(Blame::Run, message)
    }

    /// The user ended it.
    pub fn stopped(message: impl Into<String>) -> Failure {
        Failure::of(Blame::Nobody, message)
    }

    /// The same with a remedy.
    pub fn with_help(mut self, help: impl Into<String>) -> Failure {
        self.help = Some(help.into());
        self
    }

    /// The same after the result was printed, for example of a page that cannot be written: a
    /// program that reads JSON gets one value, and the failure by the exit code.
    pub fn beside_result(mut self) -> Failure {
        self.is_beside_result = true;
        self
    }

    /// Whether the result was printed all the same.
    pub fn is_beside_result(&self) -> bool {
        self.is_beside_result
    }

    /// The code for the shell.
    pub fn code(&self) -> u8 {
        match self.blame {
            Blame::Input => 2,
            Blame::Run => 3,
            Blame::Nobody => ENDED_BY_CTRL_C,
        }
    }

    /// For people: what is wrong, where, and how to mend it.
    pub fn render(&self, colour: bool) -> String {
        if !self.diagnostics.is_empty() {
            let each = self
                .diagnostics
                .iter()
                .map(|diagnostic| diagnostic.render(colour));
            return each.collect::<Vec<_>>().join("\n\n");
        }
        let mut text = format!("error: {}", self.message);
        if let Some(help) = &self.help {
            text.push_str("\n  = help: ");
            text.push_str(help);
        }
        text
    }

    /// For programs: the object that takes the place of a command's JSON.
    pub fn json(&self) -> FailureJson<'_> {
        FailureJson {
            format: crate::output::JSON_FORMAT,
            error: &self.message,
            help: self.help.as_deref(),
            diagnostics: &self.diagnostics,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

/// The JSON of a command that could not do its work.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FailureJson<'a> {
    format: u32,
    error: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<&'a str>,
    diagnostics: &'a [Diagnostic],
}
