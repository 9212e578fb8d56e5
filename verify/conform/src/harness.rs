//! What the program that `punctual conform` generates for a user's crate consists of.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{env, fs, thread};

use punctual_kern::Policy;
use serde::{Deserialize, Serialize};

use crate::claims::Claims;
use crate::history::{check_observed, retell};
use crate::level::{Level, Options};
use crate::property::Property;
use crate::report::{Broken, Report};

/// How often the watch looks, at most.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Lines kept of a history that does not end: its last ones.
const SHOWN_LINES: usize = 30;

/// What a harness writes to the file that it is given.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Answer {
    /// Nothing broke the policy.
    Conforms(Report),
    /// Something did.
    Broken(Broken),
}

/// The whole of a program that checks one policy: arguments are the [`Options`] as JSON, the
/// longest time of one history in milliseconds, and the file for the [`Answer`]. The policy may
/// print what it likes.
///
/// A history that takes longer is a finding of its own, [`Property::DoesNotReturn`], and ends the
/// process: a call that does not come back cannot be ended alone.
pub fn harness<P: Policy + 'static>(claims: &Claims, make: fn(usize) -> P) -> ExitCode {
    let Some((options, limit, answer)) = arguments() else {
        eprintln!("this program is started by `punctual conform`");
        return ExitCode::from(2);
    };
    let watch = Arc::new(Watch::default());
    let seen = Arc::clone(&watch);
    let (path, claims) = (answer.clone(), *claims);
    thread::spawn(move || {
        let last = seen.look(limit);
        let broken = does_not_return(claims, make, options, last, limit);
        let _ = write(&Answer::Broken(broken), &path);
        std::process::exit(0);
    });
    let result = check_observed(&claims, make, &options, |level, seed| {
        watch.begin(level, seed)
    });
    let found = match result {
        Ok(report) => Answer::Conforms(report),
        Err(broken) => Answer::Broken(broken),
    };
    write(&found, &answer)
}

/// Runs the history that does not end once more, on a thread that is left to itself, and keeps what
/// is heard of it.
fn does_not_return<P: Policy + 'static>(
    claims: Claims,
    make: fn(usize) -> P,
    options: Options,
    last: (Level, u64),
    limit: Duration,
) -> Broken {
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        let make = |entities| Box::new(make(entities)) as Box<dyn Policy>;
        retell(&claims, &make, &options, last, &sender);
    });
    let mut history: Vec<String> = Vec::new();
    let ended = loop {
        match lines.recv_timeout(limit) {
            Ok(line) => history.push(line),
            Err(RecvTimeoutError::Timeout) => break false,
            Err(RecvTimeoutError::Disconnected) => break true,
        }
    };
    let detail = if ended {
        // It was while shrinking that something did not end: this history is longer, and does.
        history.clear();
        format!(
            "a shorter history than that of this seed takes more than {} ms",
            limit.as_millis()
        )
    } else {
        format!("this call has not come back for {} ms", limit.as_millis())
    };
    let found_in = history.len();
    let shown = history.split_off(found_in.saturating_sub(SHOWN_LINES));
    Broken {
        property: Property::DoesNotReturn,
        detail,
        level: last.0,
        seed: last.1,
        found_in,
        shortest: shown.len(),
        history: shown,
    }
}

fn arguments() -> Option<(Options, Duration, PathBuf)> {
    let mut arguments = env::args_os().skip(1);
    let options = serde_json::from_str(arguments.next()?.to_str()?).ok()?;
    let limit = arguments.next()?.to_str()?.parse().ok()?;
    let answer = PathBuf::from(arguments.next()?);
    Some((options, Duration::from_millis(limit), answer))
}

fn write(answer: &Answer, path: &PathBuf) -> ExitCode {
    let text = serde_json::to_string(answer).map_err(std::io::Error::other);
    match text.and_then(|text| fs::write(path, text)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot write {}: {error}", path.display());
            ExitCode::from(3)
        }
    }
}

/// Looks at how far the check is, from beside it.
#[derive(Default)]
struct Watch {
    /// Histories begun.
    begun: AtomicU64,
    /// The one that was begun last.
    last: Mutex<Option<(Level, u64)>>,
}

impl Watch {
    fn begin(&self, level: Level, seed: u64) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some((level, seed));
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    /// Comes back when one history takes longer than `limit`, shrinking it included: which one.
    fn look(&self, limit: Duration) -> (Level, u64) {
        let pause = LOOK_EVERY.min(limit);
        let (mut before, mut waited) = (0, Duration::ZERO);
        loop {
            thread::sleep(pause);
            waited += pause;
            let begun = self.begun.load(Ordering::Relaxed);
            if begun != before {
                (before, waited) = (begun, Duration::ZERO);
            } else if waited >= limit {
                let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
                return last.unwrap_or((Level::Seam, 0));
            }
        }
    }
}
