//! Planned groups in a run: how many were guaranteed, refused, shed, killed, done and late.

use std::fmt;

use punctual_model::readable;

use crate::groups::{Fate, RequestInfo};
use crate::log::Log;
use crate::quantiles::Quantiles;

/// One group.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct GroupReport {
    /// Its name.
    pub name: String,
    /// It is planned before the run.
    pub off_line: bool,
    /// Its arrivals: instances of the plan, or requests.
    pub requests: u64,
    /// Those that were granted.
    pub guaranteed: u64,
    /// Those for which no plan was found.
    pub refused: u64,
    /// Those that could not be answered in time.
    pub out_of_time: u64,
    /// Guaranteed ones that made room for more important ones, before they began.
    pub shed: u64,
    /// Guaranteed ones that were killed.
    pub killed: u64,
    /// Guaranteed ones whose segments were all executed.
    pub done: u64,
    /// Guaranteed ones that were not over when the run ended.
    pub open: u64,
    /// Guaranteed ones of which a segment ended after its deadline, or had not ended by then.
    pub late: u64,
    /// Handlers that were executed in place of segments.
    pub cleaned: u64,
    /// From arrival to the end of the last segment, of those that are done.
    pub ends_ns: Quantiles,
}

impl GroupReport {
    /// Whether what was promised of it was not kept.
    pub(super) fn is_broken(&self) -> bool {
        self.late > 0 || self.off_line && self.refused + self.out_of_time > 0
    }
}

impl fmt::Display for GroupReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let when = match self.off_line {
            true => "off line",
            false => "on line",
        };
        write!(
            f,
            "group {}: {when}, {} of {} guaranteed",
            self.name, self.guaranteed, self.requests
        )?;
        let counts = [
            ("refused", self.refused),
            ("out of time", self.out_of_time),
            ("shed", self.shed),
            ("killed", self.killed),
            ("not over", self.open),
            ("handlers executed", self.cleaned),
        ];
        for (word, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
            write!(f, ", {count} {word}")?;
        }
        write!(f, ", {} done, ", self.done)?;
        match self.late {
            0 => write!(f, "none late")?,
            late => write!(f, "{late} LATE")?,
        }
        let ns = |value: Option<u64>| value.map_or("-".into(), |ns| readable(ns).to_string());
        if self.ends_ns.n > 0 {
            let (p50, max) = (ns(self.ends_ns.p50), ns(self.ends_ns.max));
            write!(f, "; ended after p50 {p50}, max {max}")?;
        }
        Ok(())
    }
}

/// All groups of a run. O(groups · requests).
pub(super) fn groups(log: &Log) -> Vec<GroupReport> {
    let report = |(at, info): (usize, &crate::groups::GroupInfo)| {
        let own: Vec<&RequestInfo> = log.requests.iter().filter(|r| r.group == at).collect();
        let count = |of: &dyn Fn(&RequestInfo) -> bool| own.iter().filter(|r| of(r)).count() as u64;
        let of_fate = |fate: Fate| count(&|request| request.fate == fate);
        let done = own.iter().filter(|request| request.fate == Fate::Done);
        let ends = done.map(|request| log.ns(request.at.since(request.arrival).ticks()));
        let mut ends: Vec<u64> = ends.collect();
        GroupReport {
            name: info.name.clone(),
            off_line: info.off_line,
            requests: own.len() as u64,
            guaranteed: count(&|request| request.fate.is_granted()),
            refused: of_fate(Fate::Refused),
            out_of_time: of_fate(Fate::OutOfTime),
            shed: of_fate(Fate::Shed),
            killed: of_fate(Fate::Killed),
            done: of_fate(Fate::Done),
            open: of_fate(Fate::Open),
            late: count(&|request| request.late),
            cleaned: own.iter().map(|request| request.cleaned).sum(),
            ends_ns: Quantiles::of(&mut ends),
        }
    };
    log.groups.iter().enumerate().map(report).collect()
}
