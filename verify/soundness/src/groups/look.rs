//! A run of groups, held against the words of the model

use std::collections::BTreeMap;

use punctual_model::{Group, GroupId, Instant, Mode, Ns, Span, Spawn, System, Work, WorkSource};
use punctual_sim::{Execution, GroupOutcome};

use super::play::Played;

/// A rule or promise that a run breaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Broken {
    /// A rule of the log.
    Rule(punctual_rules::Rule),
    /// Two execute together that may not.
    Exclusion,
    /// A segment starts before its release or its answer.
    Release,
    /// A segment starts before one that it comes after.
    Precedence,
    /// A segment ends before it has done its work.
    Cut,
    /// Somebody is killed by nobody, or lives on.
    Kill,
    /// Somebody who is in no plan executes, or in part only.
    Fate,
    /// A segment starts later than planned.
    Plan,
    /// Somebody is late, or lost.
    Deadline,
    /// A request that is refused moves somebody.
    Refusal,
    /// The analysis answers a request in another way.
    Answer,
    /// A CPU refuses a step of its plan.
    Step,
    /// There is no whole run.
    Run,
}

/// A contradiction, and what was seen.
pub type Contradiction = (Broken, String);

/// The promise of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Promise {
    /// Nobody who is granted is late.
    pub in_time: bool,
    /// No segment starts later than planned, or after its group was killed.
    pub on_plan: bool,
}

/// One segment that was executed.
#[derive(Clone, Copy, Debug)]
struct One {
    /// Its outcome, and its place in its group.
    outcome: usize,
    place: usize,
    cleans: bool,
    at: Execution,
}

/// A run, and the system that it is a run of.
pub(super) struct Look<'a> {
    system: &'a System,
    played: &'a Played,
    promise: Promise,
    end: Instant,
    all: Vec<One>,
}

impl<'a> Look<'a> {
    pub(super) fn new(system: &'a System, played: &'a Played, promise: Promise) -> Look<'a> {
        let orders: Vec<Vec<usize>> = system.groups.iter().map(Group::in_order).collect();
        let mut all = Vec::new();
        for (outcome, of) in played.outcomes.iter().enumerate() {
            let order = &orders[of.kind];
            for (&place, at) in order.iter().zip(&of.executions) {
                let cleans = false;
                all.extend(at.map(|at| One {
                    outcome,
                    place,
                    cleans,
                    at,
                }));
            }
            all.extend(of.cleaned.iter().map(|&(own, at)| One {
                outcome,
                place: order[own],
                cleans: true,
                at,
            }));
        }
        Look {
            system,
            played,
            promise,
            end: played.log.header.end,
            all,
        }
    }

    /// # Errors
    /// The first contradiction, in words.
    pub(super) fn judge(&self) -> Result<(), Contradiction> {
        if let Some(rule) = punctual_rules::check(&self.played.log).first() {
            let words = format!("a rule is broken: {rule}");
            return Err((Broken::Rule(rule.rule), words));
        }
        for (number, one) in self.all.iter().enumerate() {
            let others = &self.all[number + 1..];
            if let Some(other) = others.iter().find(|other| self.collide(one, other)) {
                let words = format!("{} beside {}", self.name(one), self.name(other));
                return Err((Broken::Exclusion, words));
            }
            if one.cleans {
                self.handler(one)?;
            } else {
                self.segment(one)?;
                self.killed_by(one)?;
            }
        }
        for outcome in &self.played.outcomes {
            self.fate(outcome)?;
        }
        Ok(())
    }

    fn group(&self, outcome: usize) -> &'a Group {
        &self.system.groups[self.played.outcomes[outcome].kind]
    }

    fn name(&self, one: &One) -> String {
        let group = self.group(one.outcome);
        let name = &group.segments[one.place].name;
        let segment = match one.cleans {
            true => format!("a handler for {name}"),
            false => name.clone(),
        };
        let (cpu, from, to) = (one.at.cpu, one.at.start.ticks(), one.at.end.ticks());
        let arrival = self.played.outcomes[one.outcome].arrival.ticks();
        format!(
            "{segment} of {} from {arrival}, on {cpu} in [{from}, {to}], planned at {}",
            group.name,
            one.at.planned.ticks()
        )
    }

    /// Whether two were executed together and may not be: on one CPU, by one thread, or with a
    /// resource that one of them has alone.
    fn collide(&self, one: &One, other: &One) -> bool {
        if one.at.end <= other.at.start || other.at.end <= one.at.start {
            return false;
        }
        if one.at.cpu == other.at.cpu {
            return true;
        }
        let (a, b) = (self.group(one.outcome), self.group(other.outcome));
        let (own, theirs) = (&a.segments[one.place], &b.segments[other.place]);
        if a.name == b.name && own.thread == theirs.thread {
            return true;
        }
        // A handler has no resources.
        if one.cleans || other.cleans {
            return false;
        }
        own.uses.iter().any(|a| {
            let same = theirs.uses.iter().filter(|b| a.resource == b.resource);
            let alone = |mode| mode == Mode::Exclusive;
            same.into_iter().any(|b| alone(a.mode) || alone(b.mode))
        })
    }

    /// A segment came when it might, after all that it comes after, and was executed whole.
    fn segment(&self, one: &One) -> Result<(), Contradiction> {
        let outcome = &self.played.outcomes[one.outcome];
        let group = self.group(one.outcome);
        let segment = &group.segments[one.place];
        let must = |holds: bool, broken: Broken, what: &str| match holds {
            true => Ok(()),
            false => Err((broken, format!("{} {what}", self.name(one)))),
        };
        let released = ticks_after(outcome.arrival, group.release);
        must(
            one.at.start >= released,
            Broken::Release,
            "starts before its release",
        )?;
        let answered = outcome.requested == outcome.arrival && group.is_off_line()
            || one.at.start >= outcome.answered;
        must(
            answered,
            Broken::Release,
            "starts before its request is answered",
        )?;
        for before in group.predecessors(one.place) {
            let done = self.ended_before(one.outcome, before, one.at.start);
            must(
                done,
                Broken::Precedence,
                "starts before what it comes after",
            )?;
        }
        if let Some((parent, spawning)) = self.parent(one.outcome) {
            // A parent that was killed has been passed over.
            let killed = self.played.outcomes[parent].killed;
            let killed = killed.is_some_and(|at| at <= one.at.start);
            let done = killed || self.ended_before(parent, spawning, one.at.start);
            must(done, Broken::Precedence, "starts before what spawns it")?;
        }
        let away = group.threads[segment.thread].home;
        let away = away.is_some_and(|home| home.index() != one.at.cpu);
        let budget = match (away, segment.wcet_away) {
            (true, Some(away)) => away,
            _ => segment.wcet,
        };
        let work = match segment.work {
            Some(WorkSource::Burn(work)) => work.min(budget),
            _ => budget,
        };
        let took = one.at.end.since(one.at.start).ticks();
        must(
            took >= work.as_ns(),
            Broken::Cut,
            "was cut before it had done its work",
        )?;
        // A CPU that was away hears of a kill when it goes on.
        let dead = self.promise.on_plan && outcome.killed.is_some_and(|at| at < one.at.start);
        must(!dead, Broken::Kill, "starts after its group was killed")?;
        let late = self.promise.on_plan && one.at.start > one.at.planned;
        must(!late, Broken::Plan, "starts later than planned")?;
        let deadline = ticks_after(outcome.arrival, group.relative_deadline);
        let late = self.promise.in_time && one.at.end > deadline;
        must(
            !late,
            Broken::Deadline,
            "ends behind the deadline of its group",
        )
    }

    /// A handler comes after the kill, in the place of a segment that never executes.
    fn handler(&self, one: &One) -> Result<(), Contradiction> {
        let outcome = &self.played.outcomes[one.outcome];
        let killed = outcome.killed.is_some_and(|at| at <= one.at.start);
        let own = |other: &&One| (other.outcome, other.place) == (one.outcome, one.place);
        match killed && self.all.iter().filter(own).count() == 1 {
            true => Ok(()),
            false => Err((
                Broken::Kill,
                format!("{} is not in its place", self.name(one)),
            )),
        }
    }

    /// The groups that a segment kills, of those that arrived with it, are over when it ends. One
    /// that it spawns at its end comes behind that.
    fn killed_by(&self, one: &One) -> Result<(), Contradiction> {
        let own = &self.played.outcomes[one.outcome];
        // The dead kill nobody. A CPU that was away tells of its segments when it goes on.
        if own.killed.is_some() || !self.promise.on_plan {
            return Ok(());
        }
        let named = &self.group(one.outcome).segments[one.place].kills;
        let is_named = |other: &&GroupOutcome| {
            let plan = other.refused.is_none() && other.removed.is_none();
            let there = plan && other.answered < one.at.end && other.origin == own.origin;
            there && named.iter().any(|kind| kind.index() == other.kind)
        };
        for other in self.played.outcomes.iter().filter(is_named) {
            let ends = [other.killed, other.done];
            if !ends.iter().flatten().any(|at| *at <= one.at.end) {
                let words = format!("{} kills, and lives on: {other:?}", self.name(one));
                return Err((Broken::Kill, words));
            }
        }
        Ok(())
    }

    /// Whether a segment that kills groups of this kind has ended at that instant.
    fn is_killed_at(&self, at: Instant, kind: usize) -> bool {
        self.all.iter().filter(|one| !one.cleans).any(|one| {
            let named = &self.group(one.outcome).segments[one.place].kills;
            one.at.end == at && named.iter().any(|of| of.index() == kind)
        })
    }

    /// Whether a segment of an outcome has ended by then.
    fn ended_before(&self, outcome: usize, place: usize, by: Instant) -> bool {
        let of = |one: &&One| one.outcome == outcome && one.place == place;
        let found = self.all.iter().find(of);
        found.is_some_and(|one| one.at.end <= by)
    }

    /// The outcome and the segment with which an outcome was planned.
    fn parent(&self, outcome: usize) -> Option<(usize, usize)> {
        let own = &self.played.outcomes[outcome];
        let child = GroupId(u16::try_from(own.kind).ok()?);
        let (parent, place) = self
            .system
            .groups
            .iter()
            .enumerate()
            .find_map(|(at, group)| {
                let mut spawns = group.segments.iter().map(|segment| &segment.spawn);
                let dependent = Some(Spawn::Dependent { group: child });
                Some((at, spawns.position(|spawn| *spawn == dependent)?))
            })?;
        let all = self.played.outcomes.iter().enumerate();
        let mut family = all.filter(|(_, other)| other.family == own.family);
        let found = family.find(|(_, other)| other.kind == parent)?;
        Some((found.0, place))
    }

    /// A granted group ends in time, or was killed, or removed as it may be.
    fn fate(&self, outcome: &GroupOutcome) -> Result<(), Contradiction> {
        let group = &self.system.groups[outcome.kind];
        let must = |holds: bool, broken: Broken, what: &str| match holds {
            true => Ok(()),
            false => Err((broken, format!("{} {what}: {outcome:?}", group.name))),
        };
        let executed = outcome.executions.iter().any(Option::is_some);
        if outcome.refused.is_some() {
            return must(!executed, Broken::Fate, "was refused, and executes");
        }
        if let Some(at) = outcome.removed {
            must(!executed, Broken::Fate, "was removed, and executes")?;
            let may = self.may_be_removed(outcome, at);
            return must(may, Broken::Fate, "was removed, and for nobody");
        }
        if let Some(at) = outcome.killed {
            let by = self.is_killed_at(at, outcome.kind);
            must(by, Broken::Kill, "was killed, and by nobody")?;
        }
        if outcome.done.is_some() {
            let whole = outcome.executions.iter().all(Option::is_some);
            must(whole, Broken::Fate, "is done, and has not executed all")?;
        }
        if !self.promise.in_time {
            return Ok(());
        }
        must(!outcome.missed, Broken::Deadline, "is late")?;
        let deadline = ticks_after(outcome.arrival, group.relative_deadline);
        let over = outcome.done.is_some() || outcome.killed.is_some();
        must(
            over || deadline > self.end,
            Broken::Deadline,
            "was granted, and is lost",
        )
    }

    /// Whether somebody more important was granted in place of one that was removed.
    fn may_be_removed(&self, outcome: &GroupOutcome, at: Instant) -> bool {
        let worth = |family: usize| {
            let all = self.played.outcomes.iter();
            // The killed are in no plan any more.
            let dead = |other: &&GroupOutcome| other.killed.is_some_and(|killed| killed <= at);
            let own = all.filter(|other| other.family == family && !dead(other));
            own.map(|other| self.system.groups[other.kind].importance)
                .max()
        };
        let granted = |other: &&GroupOutcome| {
            other.refused.is_none() && other.requested <= at && at <= other.answered
        };
        let sheds = self.system.planning.overload == punctual_model::Overload::Shed;
        let mut others = self.played.outcomes.iter().filter(granted);
        sheds && others.any(|other| worth(other.family) > worth(outcome.family))
    }
}

fn ticks_after(arrival: Instant, later: Span<Ns>) -> Instant {
    arrival.saturating_add(Span::from_ticks(later.as_ns()))
}

/// Kind, arrival and place of a segment, and its planned start.
pub(super) type Start = ((usize, u64, usize), u64);

/// The plan of a run as it was executed.
pub(super) fn starts(played: &Played) -> BTreeMap<(usize, u64, usize), u64> {
    let mut starts = BTreeMap::new();
    for outcome in &played.outcomes {
        for (place, one) in outcome.executions.iter().enumerate() {
            let Some(one) = one else { continue };
            let key = (outcome.kind, outcome.arrival.ticks(), place);
            let _ = starts.insert(key, one.planned.ticks());
        }
    }
    starts
}

/// The work of a segment that ends early.
pub(super) const fn burn(ns: u64) -> Option<WorkSource> {
    Some(WorkSource::Burn(Work::from_ns(ns)))
}
