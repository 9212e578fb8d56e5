//! A policy in words: its name, then its options, in ticks.

use std::fmt::{self, Write};

use punctual_model::{PolicyKind, Span};

use super::words::{clip, number};

/// Writes the name and the options, each after a space.
pub(super) fn write(f: &mut impl Write, policy: PolicyKind) -> fmt::Result {
    write!(f, " {}", policy.name())?;
    match policy {
        PolicyKind::FixedPriority { preemptive: false } => write!(f, " non-preemptive"),
        PolicyKind::RoundRobin { timeslice } => write!(f, " {}", timeslice.ticks()),
        PolicyKind::Tdm { frame, scheduling } => {
            write!(f, " {} {}", frame.ticks(), scheduling.ticks())
        }
        PolicyKind::FixedPriority { preemptive: true }
        | PolicyKind::EarliestDeadlineFirst
        | PolicyKind::Fifo
        | PolicyKind::Planned => Ok(()),
    }
}

/// Reads what [`write`] wrote.
pub(super) fn read(words: &[&str]) -> Result<PolicyKind, String> {
    let span = |text: &str| number(text).map(Span::from_ticks);
    let kind = match words {
        ["fifo"] => PolicyKind::Fifo,
        ["planned"] => PolicyKind::Planned,
        ["edf"] => PolicyKind::EarliestDeadlineFirst,
        ["fixed-priority"] => PolicyKind::FixedPriority { preemptive: true },
        ["fixed-priority", "non-preemptive"] => PolicyKind::FixedPriority { preemptive: false },
        ["round-robin", timeslice] => PolicyKind::RoundRobin {
            timeslice: span(timeslice)?,
        },
        ["tdm", frame, scheduling] => PolicyKind::Tdm {
            frame: span(frame)?,
            scheduling: span(scheduling)?,
        },
        _ => return Err(format!("`{}` is no policy", clip(&words.join(" ")))),
    };
    Ok(kind)
}
