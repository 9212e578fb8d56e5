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
        "gang {} {} {} {}",
        gang.clock_error.as_ns(),
        bound.as_deref().unwrap_or("-"),
        members.join(","),
        escape(&gang.name)
    );
}

/// Reads what is behind `gang`.
pub(super) fn read(rest: &str) -> Result<GangInfo, String> {
    let fields: Vec<&str> = rest.splitn(4, ' ').collect();
    let &[error, bound, members, name] = fields.as_slice() else {
        return Err("a gang has a clock error, a bound, members and a name".into());
    };
    let task = |word: &str| {
        let task = u32::try_from(number(word)?);
        task.map(TaskId)
            .map_err(|_| "no task has such a number".to_string())
    };
    let members = members.split(',').filter(|word| !word.is_empty());
    Ok(GangInfo {
        name: unescape(name)?,
        members: members.map(task).collect::<Result<_, _>>()?,
        bound: match bound {
            "-" => None,
            bound => Some(Span::from_ns(number(bound)?)),
        },
        clock_error: Span::from_ns(number(error)?),
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
        let canonical = number.to_string() == text && number.abs() <= most;
        canonical.then_some(number).ok_or_else(bad)
    };
    Ok(Clock {
        offset_ns: field(offset, FURTHEST)?,
        drift_ppb: field(drift, FASTEST)?,
    })
}
