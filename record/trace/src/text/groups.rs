//! The lines of planned groups and of requests for them.

use std::fmt::Write as _;

use super::words::{clip, escape, instant, number, unescape};
use crate::groups::{Fate, GroupInfo, RequestInfo};

/// Writes the line of a group in the head of a log.
pub(super) fn write(text: &mut String, group: &GroupInfo) {
    let when = if group.off_line {
        "off-line"
    } else {
        "on-line"
    };
    // Writing to a string cannot fail.
    let _ = writeln!(text, "group {when} {}", escape(&group.name));
}

/// Reads what is behind `group`.
pub(super) fn read(rest: &str) -> Result<GroupInfo, String> {
    let (when, name) = rest.split_once(' ').unwrap_or((rest, ""));
    Ok(GroupInfo {
        name: unescape(name)?,
        off_line: match when {
            "off-line" => true,
            "on-line" => false,
            _ => return Err(format!("`{}` is not off-line or on-line", clip(when))),
        },
    })
}

/// Writes the line of a request at the end of a log.
pub(super) fn write_request(text: &mut String, request: &RequestInfo) {
    let late = if request.late { "late" } else { "-" };
    let _ = writeln!(
        text,
        "request {} {} {} {} {} {} {late} {} {}",
        request.group,
        request.arrival.ticks(),
        request.asked.ticks(),
        request.answered.ticks(),
        request.fate.name(),
        request.at.ticks(),
        request.executed,
        request.cleaned
    );
}

/// Reads what is behind `request`, in a log of so many groups.
pub(super) fn read_request(groups: usize, rest: &str) -> Result<RequestInfo, String> {
    let fields: Vec<&str> = rest.split(' ').collect();
    let &[
        group,
        arrival,
        asked,
        answered,
        fate,
        at,
        late,
        executed,
        cleaned,
    ] = fields.as_slice()
    else {
        return Err("a request has nine fields".into());
    };
    let when = |word: &str| instant(number(word)?);
    let mut fates = Fate::ALL.into_iter();
    let fate = fates.find(|known| known.name() == fate);
    let group = usize::try_from(number(group)?).ok();
    Ok(RequestInfo {
        group: group
            .filter(|group| *group < groups)
            .ok_or("there is no such group")?,
        arrival: when(arrival)?,
        asked: when(asked)?,
        answered: when(answered)?,
        fate: fate.ok_or_else(|| format!("`{}` becomes of no request", clip(rest)))?,
        at: when(at)?,
        late: match late {
            "late" => true,
            "-" => false,
            _ => return Err(format!("`{}` is not `late` or `-`", clip(late))),
        },
        executed: number(executed)?,
        cleaned: number(cleaned)?,
    })
}
