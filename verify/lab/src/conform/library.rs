//! A policy in C, checked by this program in a second process: it may print, crash and loop.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, exit};
use std::sync::OnceLock;
use std::time::Duration;
use std::{env, fs};

use punctual_conform::{Answer, Claims, Options, harness};
use punctual_kern::{Attributes, Pick, Policy};
use punctual_linux::{ForeignMaker, ForeignPolicy, foreign_policy};
use punctual_model::{Frequency, Instant, ThreadId, Work};

use super::child::Limit;
use super::package::{judge, no_folder};
use punctual_terminal::ending::Failure;

/// The variables that tell the second process of the policy: object, function, claims, and the file
/// for the reason why there is no policy.
const VARIABLES: [&str; 4] = [
    "PUNCTUAL_CONFORM_LIBRARY",
    "PUNCTUAL_CONFORM_SYMBOL",
    "PUNCTUAL_CONFORM_CLAIMS",
    "PUNCTUAL_CONFORM_REASON",
];

/// The policy of this process, which is the second.
static SUBJECT: OnceLock<Subject> = OnceLock::new();

/// What the second process checks.
struct Subject {
    maker: ForeignMaker,
    symbol: String,
    /// Where it says why it cannot.
    reason: PathBuf,
}

/// A policy in C as the user names it.
#[derive(Debug)]
pub(super) struct Library {
    pub(super) path: PathBuf,
    pub(super) symbol: String,
    /// Words that were read once.
    pub(super) claims: String,
    /// Longest time of one history, its shrinking included.
    pub(super) patience: Duration,
}

/// Checks a policy in a process of its own, the only one that loads it.
pub(super) fn check(
    library: &Library,
    options: &Options,
    limit: &Limit,
) -> Result<Answer, Failure> {
    let path = Path::new(".").join(&library.path);
    let path = path.canonicalize().map_err(|error| {
        let path = library.path.display();
        Failure::input(format!("cannot read `{path}`: {error}"))
    })?;
    let folder = tempfile::tempdir().map_err(no_folder)?;
    let reason = folder.path().join("reason");
    let mut command = Command::new(env::current_exe().map_err(no_folder)?);
    let told = [
        path.as_os_str(),
        library.symbol.as_ref(),
        library.claims.as_ref(),
        reason.as_os_str(),
    ];
    command.envs(VARIABLES.into_iter().zip(told));
    let told = (options, library.patience);
    let answer = judge(command, &library.symbol, told, folder.path(), limit);
    match fs::read_to_string(&reason) {
        Ok(reason) => Err(Failure::input(reason)),
        Err(_) => answer,
    }
}

/// What this process does when it is the one that checks; `None`: it is not.
pub(super) fn harness_of_library() -> Option<ExitCode> {
    let library = env::var_os(VARIABLES[0])?;
    let [_, symbol, claims, reason] = VARIABLES.map(|name| env::var_os(name).unwrap_or_default());
    let (symbol, reason) = (symbol.to_string_lossy().into_owned(), PathBuf::from(reason));
    let claims = match claims.to_string_lossy().parse() {
        Ok(claims) => claims,
        Err(error) => give_up(&reason, &format!("{error}")),
    };
    let maker = match foreign_policy(Path::new(&library), &symbol) {
        Ok(maker) => maker,
        Err(error) => give_up(&reason, &error.to_string()),
    };
    let _ = SUBJECT.set(Subject {
        maker,
        symbol,
        reason,
    });
    Some(harness(&claims, Judged::new))
}

/// Ends this process with the reason why it checks nothing.
fn give_up(file: &Path, reason: &str) -> ! {
    if fs::write(file, reason).is_err() {
        eprintln!("{reason}");
    }
    exit(2)
}

/// The policy of this process, made anew for each history.
struct Judged(ForeignPolicy);

impl Judged {
    fn new(threads: usize) -> Judged {
        let Some(subject) = SUBJECT.get() else {
            unreachable!("the harness begins when it is set");
        };
        match subject.maker.make(threads, Frequency::NANOSECONDS) {
            Ok(policy) => Judged(policy),
            Err(reason) => give_up(&subject.reason, &format!("`{}`: {reason}", subject.symbol)),
        }
    }
}

impl Policy for Judged {
    fn wake(&mut self, thread: ThreadId, attributes: &Attributes) {
        self.0.wake(thread, attributes);
    }
    fn block(&mut self, thread: ThreadId) {
        self.0.block(thread);
    }
    fn update(&mut self, thread: ThreadId, attributes: &Attributes) {
        self.0.update(thread, attributes);
    }
    fn renew(&mut self, thread: ThreadId, attributes: &Attributes) {
        self.0.renew(thread, attributes);
    }
    fn yield_now(&mut self, thread: ThreadId) {
        self.0.yield_now(thread);
    }
    fn charge(&mut self, thread: ThreadId, work: Work) {
        self.0.charge(thread, work);
    }
    fn pick(&mut self, now: Instant) -> Pick {
        self.0.pick(now)
    }
}

/// Claims in words, as they are handed on.
pub(super) fn claims_in_words(text: Option<&str>) -> Result<String, Failure> {
    let Some(text) = text else {
        return Ok(String::new());
    };
    let read = text.parse::<Claims>();
    read.map_err(|error| Failure::input(error.to_string()))?;
    Ok(text.into())
}
