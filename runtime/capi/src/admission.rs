//! What admission says: to all that run, and why somebody was refused.

use core::cell::RefCell;
use core::ffi::c_char;
use core::fmt::Write as _;

use ::punctual_thread::NotAdmitted;
use ::punctual_thread::thread::{self, SpawnError};
use punctual_analysis::{Refusal, Verdict, Witness};
use serde_json::{Value, json};

use crate::edge::{answer, write_text};
use crate::status::{punctual_status, punctual_status as Status};

/// How a text is written: what `form` says.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum punctual_form {
    /// Lines for people.
    PUNCTUAL_TEXT = 0,
    /// One JSON value, with the names of `punctual check --json`.
    PUNCTUAL_JSON = 1,
}

/// Why the last call that was refused was refused.
#[derive(Debug)]
pub(crate) enum Why {
    Verdict(Box<Verdict>),
    Words(String),
}

thread_local! {
    static WHY: RefCell<Option<Why>> = const { RefCell::new(None) };
}

/// Keeps the reason for the calling thread.
pub(crate) fn keep_why(why: Why) {
    WHY.replace(Some(why));
}

/// A new thread has been refused nothing yet.
pub(crate) fn forget_why() {
    WHY.take();
}

/// Keeps why there is no thread, or no other constraint, and says which code that is.
pub(crate) fn refused(error: SpawnError) -> Status {
    keep_why(match &error {
        SpawnError::NotAdmitted(why) => why_of(why),
        other => Why::Words(other.to_string()),
    });
    error.into()
}

pub(crate) fn why_of(why: &NotAdmitted) -> Why {
    match why {
        NotAdmitted::Refused(verdict) => Why::Verdict(verdict.clone()),
        other => Why::Words(other.to_string()),
    }
}

/// Why the last call of the calling thread that was refused (`PUNCTUAL_REFUSED`,
/// `PUNCTUAL_NOT_ALLOWED`, `PUNCTUAL_CANNOT_RUN`, and of graphs `PUNCTUAL_INVALID`) was refused:
/// which thread would be late in which situation, and what would mend it. `form` is one of
/// `punctual_form`. The text and its end go to `buffer`, as far as `capacity` bytes go; `length`,
/// if not null, gets the bytes of the whole text without its end, also with `PUNCTUAL_TRUNCATED`;
/// so a null buffer of capacity 0 asks how many. `PUNCTUAL_NOTHING` when nothing was refused. Legal
/// everywhere.
///
/// # Safety
/// `buffer` is null with a capacity of 0, or to that many writable bytes; `length` is null, or to a
/// place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_why(
    form: u32,
    buffer: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> punctual_status {
    answer(|| {
        let said = WHY.with_borrow(|why| {
            let why = why.as_ref().ok_or(Status::PUNCTUAL_NOTHING)?;
            said(form, || text_of(why), || json_of(why))
        })?;
        // SAFETY: as the caller vouches.
        unsafe { write_text(&said, buffer, capacity, length) }
    })
}

/// The promises to the threads of this CPU that have a guarantee, and their grounds. The arguments
/// are those of `punctual_why`. It costs what an analysis costs, on the caller's time. On threads
/// of a run.
///
/// # Safety
/// As for `punctual_why`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_verdict(
    form: u32,
    buffer: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> punctual_status {
    answer(|| {
        let verdict = thread::verdict().map_err(refused)?;
        let said = said(form, || lines(&verdict), || verdict_json(&verdict))?;
        // SAFETY: as the caller vouches.
        unsafe { write_text(&said, buffer, capacity, length) }
    })
}

/// The same in the form that is asked for.
pub(crate) fn said(
    form: u32,
    text: impl FnOnce() -> String,
    json: impl FnOnce() -> Value,
) -> Result<String, Status> {
    match form {
        0 => Ok(text()),
        1 => Ok(json().to_string()),
        _ => Err(Status::PUNCTUAL_INVALID),
    }
}

fn text_of(why: &Why) -> String {
    match why {
        Why::Words(words) => words.clone(),
        Why::Verdict(verdict) => lines(verdict),
    }
}

fn json_of(why: &Why) -> Value {
    match why {
        Why::Words(words) => json!({ "verdict": "none", "reason": words }),
        Why::Verdict(verdict) => verdict_json(verdict),
    }
}

fn lines(verdict: &Verdict) -> String {
    let mut text = verdict.word().to_owned();
    // Writing to a string does not fail.
    for refusal in &verdict.refusals {
        let _ = write!(text, "\n{}: {}", refusal.name, refusal.reason);
        for more in [&refusal.situation, &refusal.advice] {
            if !more.is_empty() {
                let _ = write!(text, "\n  {more}");
            }
        }
    }
    for task in &verdict.tasks {
        let bound = task.response_bound.map_or("no bound".to_owned(), readable);
        let _ = write!(text, "\n{}: done within {bound}, ", task.name);
        let due = task.relative_deadline.map_or("never".to_owned(), readable);
        let _ = write!(text, "due after {due} ({})", task.exactness.name());
    }
    text
}

fn readable(span: punctual_model::Span<punctual_model::Ns>) -> String {
    span.readable().to_string()
}

fn verdict_json(verdict: &Verdict) -> Value {
    let ns = |span: punctual_model::Span<punctual_model::Ns>| span.as_ns();
    let tasks: Vec<Value> = verdict
        .tasks
        .iter()
        .map(|task| {
            json!({
                "name": task.name,
                "response_bound_ns": task.response_bound.map(ns),
                "relative_deadline_ns": task.relative_deadline.map(ns),
                "exactness": task.exactness.name(),
                "test": task.test.to_string(),
                "explanation": task.explanation,
            })
        })
        .collect();
    let refusals: Vec<Value> = verdict
        .refusals
        .iter()
        .map(|r| refusal_json(verdict, r))
        .collect();
    json!({ "format": 1, "verdict": verdict.word(), "tasks": tasks, "refusals": refusals })
}

fn refusal_json(verdict: &Verdict, refusal: &Refusal) -> Value {
    let witness = refusal.witness.map(|witness| match witness {
        Witness::Demand { at, demand, supply } => json!({
            "kind": "demand",
            "at_ns": at.as_ns(),
            "demand_ns": demand.as_ns(),
            "supply_ns": supply.as_ns(),
        }),
        Witness::Response {
            task,
            job,
            offset,
            response,
            deadline,
        } => json!({
            "kind": "response",
            "task": verdict.task(task).map(|task| task.name.as_str()),
            "job": job,
            "offset_ns": offset.as_ns(),
            "response_ns": response.as_ns(),
            "deadline_ns": deadline.as_ns(),
        }),
    });
    let fix = refusal.fix.as_ref().map(|fix| {
        json!({
            "parameter": fix.parameter,
            "from_ns": fix.from.as_ns(),
            "to_ns": fix.to.as_ns(),
        })
    });
    json!({
        "subject": refusal.name,
        "reason": refusal.reason,
        "witness": witness,
        "situation": refusal.situation,
        "fix": fix,
        "advice": refusal.advice,
    })
}
