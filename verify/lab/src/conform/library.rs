//! A policy in C, checked by this program in a second process: it may print, crash and loop.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::OnceLock;
use std::time::Duration;

use punctual_conform::{Answer, Claims, Options, harness};
use punctual_kern::{Attributes, Pick, Policy};
use punctual_linux::{ForeignMaker, ForeignPolicy, foreign_policy};
use punctual_model::{Frequency, Instant, ThreadId, Work};

use super::child::Limit;
use super::package::{judge, no_folder};
use punctual_terminal::ending::Failure;

/// The variables that tell the second process of the policy: object, function, claims.
const VARIABLES: [&str; 3] = [
    "PUNCTUAL_CONFORM_LIBRARY",
    "PUNCTUAL_CONFORM_SYMBOL",
    "PUNCTUAL_CONFORM_CLAIMS",
];

/// The policy of this process.
static MAKER: OnceLock<ForeignMaker> = OnceLock::new();

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

/// Checks a policy in a process of its own.
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
    let maker = foreign_policy(&path, &library.symbol);
    let maker = maker.map_err(|error| Failure::input(error.to_string()))?;
    let made = maker.make(options.threads, Frequency::NANOSECONDS);
    drop(made.map_err(|reason| Failure::input(format!("`{}`: {reason}", library.symbol)))?);
    let folder = tempfile::tempdir().map_err(no_folder)?;
    let mut command = Command::new(env::current_exe().map_err(no_folder)?);
    let told = [
        path.as_os_str(),
        library.symbol.as_ref(),
        library.claims.as_ref(),
    ];
    command.envs(VARIABLES.into_iter().zip(told));
    let told = (options, library.patience);
    judge(command, &library.symbol, told, folder.path(), limit)
}

/// What this process does when it is the one that checks; `None`: it is not.
pub(super) fn harness_of_library() -> Option<ExitCode> {
    let [library, symbol, claims] = VARIABLES.map(env::var_os);
    let (library, symbol) = (library?, symbol?.into_string().ok()?);
    let claims = claims?.into_string().ok()?.parse().unwrap_or_default();
    let maker = foreign_policy(Path::new(&library), &symbol).ok()?;
    let _ = MAKER.set(maker);
    Some(harness::<Judged>(&claims, Judged::new))
}

/// The policy of this process, made anew for each history; one that cannot be made names nobody.
struct Judged(Option<ForeignPolicy>);

impl Judged {
    fn new(threads: usize) -> Judged {
        let made = MAKER
            .get()
            .map(|maker| maker.make(threads, Frequency::NANOSECONDS));
        Judged(made.and_then(Result::ok))
    }

    fn tell(&mut self, call: impl FnOnce(&mut ForeignPolicy)) {
        if let Some(policy) = &mut self.0 {
            call(policy);
        }
    }
}

impl Policy for Judged {
    fn wake(&mut self, thread: ThreadId, attributes: &Attributes) {
        self.tell(|policy| policy.wake(thread, attributes));
    }
    fn block(&mut self, thread: ThreadId) {
        self.tell(|policy| policy.block(thread));
    }
    fn update(&mut self, thread: ThreadId, attributes: &Attributes) {
        self.tell(|policy| policy.update(thread, attributes));
    }
    fn renew(&mut self, thread: ThreadId, attributes: &Attributes) {
        self.tell(|policy| policy.renew(thread, attributes));
    }
    fn yield_now(&mut self, thread: ThreadId) {
        self.tell(|policy| policy.yield_now(thread));
    }
    fn charge(&mut self, thread: ThreadId, work: Work) {
        self.tell(|policy| policy.charge(thread, work));
    }
    fn pick(&mut self, now: Instant) -> Pick {
        self.0
            .as_mut()
            .map_or(Pick::NOBODY, |policy| policy.pick(now))
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
