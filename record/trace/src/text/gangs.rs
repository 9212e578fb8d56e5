//! The lines of gangs and clocks.

use std::fmt::Write as _;

use punctual_model::{Clock, Span, TaskId};

use super::words::{clip, escape, number, unescape};
use crate::gangs::GangInfo;

/// No clock is further off, in nanoseconds: over two years.
const FURTHEST: i64 = 1 << 56;
/// No clock gains or loses half of the time.
const FASTEST: i64 = 500_000_000;

/// Writes the line of a gang in the head of a log.
pub(super) fn write(text: &mut String, gang: &GangInfo) {
    let bound = gang.bound.map(|bound| bound.as_ns().to_string());
    let members: Vec<String> = gang.members.iter().map(|task| task.0.to_string()).collect();
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "gang {} {} {} {} {}",
        gang.clock_error.as_ns(),
        bound.as_deref().unwrap_or("-"),
        apart(gang),
        members.join(","),
        escape(&gang.name)
    );
}

/// How its last barrier is replaced: `-`, or the span, with `!` where nothing proves it.
fn apart(gang: &GangInfo) -> String {
    let mark = if gang.forced { "!" } else { "" };
    let within = gang
        .ends_within
        .map(|span| format!("{}{mark}", span.as_ns()));
    within.unwrap_or_else(|| "-".into())
}

/// Reads what is behind `gang`.
pub(super) fn read(rest: &str) -> Result<GangInfo, String> {
    let fields: Vec<&str> = rest.splitn(5, ' ').collect();
    let &[error, bound, within, members, name] = fields.as_slice() else {
        return Err("a gang has a clock error, a bound, an end, members and a name".into());
    };
    let span = |word: &str| match word {
        "-" => Ok(None),
        word => number(word).map(|ns| Some(Span::from_ns(ns))),
    };
    let forced = within.strip_suffix('!');
    if forced == Some("-") {
        return Err("no barrier is left out, so none is forced".into());
    }
    let task = |word: &str| {
        let task = u32::try_from(number(word)?);
        task.map(TaskId)
            .map_err(|_| "no task has such a number".to_string())
    };
    let members = members.split(',').filter(|word| !word.is_empty());
    Ok(GangInfo {
        name: unescape(name)?,
        members: members.map(task).collect::<Result<_, _>>()?,
        bound: span(bound)?,
        clock_error: Span::from_ns(number(error)?),
        ends_within: span(forced.unwrap_or(within))?,
        forced: forced.is_some(),
    })
}

/// Writes the line of a clock that is not the true one.
pub(super) fn write_clock(text: &mut String, clock: Clock) {
    if !clock.is_true() {
        let _ = writeln!(text, "clock {} {}", clock.offset_ns, clock.drift_ppb);
    }
}

/// Reads what is behind `clock`.
pub(super) fn read_clock(rest: &str) -> Result<Clock, String> {
    let bad = || format!("`{}` is no clock", clip(rest));
    let (offset, drift) = rest.split_once(' ').ok_or_else(bad)?;
    let field = |text: &str, most: i64| {
        let number: i64 = text.parse().map_err(|_| bad())?;
        let canonical = number.to_string() == text && number.unsigned_abs() <= most.unsigned_abs();
        canonical.then_some(number).ok_or_else(bad)
    };
    Ok(Clock {
        offset_ns: field(offset, FURTHEST)?,
        drift_ppb: field(drift, FASTEST)?,
    })
}
