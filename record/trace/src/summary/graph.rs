//! Graphs: the doings of their actors, beside the bounds of the verdict and the requirements.

use std::fmt;

use punctual_dataflow::{Fraction, Rates, firings_per_iteration, outputs};
use punctual_kern::Next;
use punctual_model::{Actor, Graph, Span, Tile, When, Work};

use super::RunVerdict;
use super::starts::{self, StartReport};
use super::waiting::{self, Last};
use crate::graphs::{Call, GraphInfo, Moved, State};
use crate::log::{Log, Mode};
use crate::record::Record;
use crate::short::{Count, Short};

/// A graph as it was seen, beside its promises.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct GraphReport {
    /// From the file.
    pub name: String,
    /// Its rates depend on data: it has no iterations.
    pub varies: bool,
    /// `false`: its actors are tasks that run to completion, and it has no iterations.
    pub real_time: bool,
    /// No actor of it has ever fired, although all its threads were chosen and the run was recorded
    /// to its end.
    pub silent: bool,
    /// Where it is silent: actors that had tokens and space for their first firing, as
    /// `ACTOR on TILE`. Their task schedulers never chose them.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Vec::is_empty"))]
    pub passed_over: Vec<String>,
    /// Tasks that wait for ever, and for whom.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub deadlock: Option<String>,
    /// Iterations whose outputs are all there.
    pub iterations: u64,
    /// From one iteration to the next over the later half of them, rounded up; `None`: too few.
    pub period_ns: Option<u64>,
    /// The longest distance of two iterations that follow each other.
    pub longest_period_ns: Option<u64>,
    /// From the start until every output has fired once.
    pub first_output_ns: Option<u64>,
    /// The longest time from the start of an iteration's period to its last output. Periods are
    /// those required, or those of the bound.
    pub latency_ns: Option<u64>,
    /// The bound of the period, rounded up.
    pub period_bound_ns: Option<u64>,
    /// The bound of the first output.
    pub first_output_bound_ns: Option<u64>,
    /// The bound of the latency.
    pub latency_bound_ns: Option<u64>,
    /// The longest period allowed.
    pub every_ns: Option<u64>,
    /// The longest latency allowed.
    pub within_ns: Option<u64>,
    /// Kept or broken. Of a required period: each iteration that is due has come, at the latest
    /// when the bounds say.
    pub verdict: RunVerdict,
    /// In the order of the file.
    pub actors: Vec<ActorReport>,
}

/// An actor and its firings.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ActorReport {
    /// From the file.
    pub name: String,
    /// Its scheduler, or its CPU.
    pub on: String,
    /// Firings that ended, or the rounds of a task that runs to completion.
    pub firings: u64,
    /// The rounds after which such a task has finished.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub times: Option<u32>,
    /// Its state at the end, where it runs to completion.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub state: Option<&'static str>,
    /// The FIFO for which it waits at the end.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub waits_for: Option<String>,
    /// How often the end of a slot interrupted one.
    pub preemptions: u64,
    /// The longest execution of a firing; where copies take virtual time, of its
    /// computation alone.
    pub longest_ns: Option<u64>,
    /// The longest wcet of its phases.
    pub wcet_ns: u64,
    /// Firings that executed longer than the wcet of their phase, where it is real-time.
    pub longer: u64,
    /// The first of them.
    pub longer_firings: Vec<LongFiring>,
    /// How long after they were due its firings started; `None`: when they were due is not known.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub starts: Option<StartReport>,
}

/// A firing that executed longer than the wcet of its phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct LongFiring {
    /// Its number, from 0.
    pub firing: u64,
    /// How long it executed; where copies take virtual time, its computation alone.
    pub executed_ns: u64,
    /// The wcet of its phase.
    pub wcet_ns: u64,
}

/// So many firings of an actor beyond their wcets are named.
const NAMED: usize = 5;

/// The doings of one actor.
#[derive(Clone, Default)]
struct Seen {
    /// When its firings ended: their tokens had been handed on.
    ends: Vec<u64>,
    longest: Option<u64>,
    /// Of each phase.
    wcets: Vec<u64>,
    longer: u64,
    longer_firings: Vec<LongFiring>,
    preemptions: u64,
    /// Of the firing under way: executed until the transition before, and since when it executes.
    executed: u64,
    since: Option<u64>,
    last: Last,
}

impl Seen {
    /// A transition; `computed`: only the computation counts, since copies are no part of a wcet.
    fn moved(&mut self, at: u64, moved: &Moved, computed: bool) {
        if let Some(since) = self.since.take() {
            self.executed += at.saturating_sub(since);
        }
        let waits = moved.call.filter(|(_, goes_on)| !goes_on);
        self.last = Last {
            state: moved.state,
            waits: waits.map(|(call, _)| call),
        };
        if waits.is_some() {
            return;
        }
        match (moved.state, moved.preempted) {
            (State::Idle, _) => {
                self.executed = 0;
                return;
            }
            (_, true) => self.preemptions += 1,
            // One that was interrupted there has ended before.
            (State::Reset, false) if moved.firing < self.ends.len() as u64 => {}
            (State::Reset, false) => {
                self.compare();
                self.ends.push(at);
                self.longest = self.longest.max(Some(self.executed));
            }
            (State::Run | State::Finished, false) => {
                if moved.firing > self.ends.len() as u64 {
                    self.ends.push(at);
                    self.longest = self.longest.max(Some(self.executed));
                    self.executed = 0;
                }
                if moved.state == State::Finished {
                    return;
                }
            }
            (State::Claim | State::Compute | State::Release, false) => {}
        }
        let counts = !computed || moved.state == State::Compute;
        self.since = (counts && !moved.preempted).then_some(at);
    }
}

impl Seen {
    fn of(actor: &Actor) -> Seen {
        Seen {
            wcets: actor.wcet.iter().map(|wcet| wcet.as_ns()).collect(),
            ..Seen::default()
        }
    }

    /// The firing under way is over.
    fn compare(&mut self) {
        let firing = self.ends.len();
        let Some(&wcet_ns) = self.wcets.get(firing % self.wcets.len().max(1)) else {
            return;
        };
        if self.executed > wcet_ns {
            self.longer += 1;
            if self.longer_firings.len() < NAMED {
                self.longer_firings.push(LongFiring {
                    firing: firing as u64,
                    executed_ns: self.executed,
                    wcet_ns,
                });
            }
        }
    }
}

/// All graphs. O(transitions + tiles · records).
pub(super) fn graphs(log: &Log) -> Vec<GraphReport> {
    let actors = |info: &GraphInfo| info.graph.actors.iter().map(Seen::of).collect();
    let mut seen: Vec<Vec<Seen>> = log.graphs.iter().map(actors).collect();
    for moved in log.cpus.iter().flat_map(|cpu| &cpu.moves) {
        let of_graph = seen.get_mut(moved.graph.index());
        if let Some(actor) = of_graph.and_then(|all| all.get_mut(moved.actor.index())) {
            // A live tile copies by itself, as part of the firing.
            let copies = log.graphs[moved.graph.index()].graph.copies;
            let computed = copies.is_some() && log.header.mode == Mode::Virtual;
            actor.moved(log.ns(moved.at.ticks()), moved, computed);
        }
    }
    let lost = log.cpus.iter().filter_map(|cpu| cpu.lost_from).min();
    let end = lost.unwrap_or(log.header.end);
    let all = log.graphs.iter().zip(&seen);
    let report = |(info, seen): (&GraphInfo, &Vec<Seen>)| {
        let until = info.lost_from.unwrap_or(end).min(end);
        report(log, info, seen, log.ns(until.ticks()))
    };
    let mut all: Vec<GraphReport> = all.map(report).collect();
    let whole = lost.is_none() && log.header.stopped.is_none();
    for (at, (info, report)) in log.graphs.iter().zip(&mut all).enumerate() {
        if whole && info.lost_from.is_none() {
            let moves = log.cpus.iter().flat_map(|cpu| &cpu.moves);
            let moves = moves.filter(|moved| moved.graph.index() == at);
            look_at_end((info, &seen[at]), moves, report);
            // The run may have ended before its first slots.
            report.silent &= was_chosen(log, info);
            if report.silent {
                report.passed_over = passed_over(&info.graph, report);
            }
        }
    }
    all
}

/// Whether a thread of a graph was chosen on each tile. One that looks and finds nothing has no
/// stretch of execution in virtual time.
fn was_chosen(log: &Log, info: &GraphInfo) -> bool {
    let mut tiles = info.graph.actors.iter().map(|actor| actor.tile);
    tiles.all(|tile| {
        let place = place(log, tile);
        let name = format!("{} on {place}", info.graph.name);
        let of_actors: Vec<String> = match info.graph.when_on(tile) {
            When::Inline => {
                let here = info.graph.actors.iter().filter(|actor| actor.tile == tile);
                let name = |name: &str| format!("{}.{name} on {place}", info.graph.name);
                here.map(|actor| name(&actor.name)).collect()
            }
            When::OwnTime | When::BetweenSlots(_) => vec![name],
        };
        let cpu = tile.cpu.index();
        let is_its = |(_, record)| match record {
            Record::Decision(decision) => match decision.next {
                Next::Thread(thread) => {
                    let name = log.task_name(cpu, thread);
                    of_actors.iter().any(|of_actor| name == *of_actor)
                }
                _ => false,
            },
            _ => false,
        };
        log.cpus
            .get(cpu)
            .is_some_and(|cpu| cpu.records.iter().any(is_its))
    })
}

/// The actors of a graph that could fire when nothing had fired: tasks that run to completion begin
/// without tokens.
fn passed_over(graph: &Graph, report: &GraphReport) -> Vec<String> {
    let first = |rates: &[u32]| rates.first().copied().unwrap_or(0);
    let could = |at: usize| {
        graph.plain
            || graph.fifos.iter().all(|fifo| {
                let has_tokens = fifo.to.index() != at || fifo.initial >= first(&fifo.consume);
                let space = fifo.capacity.unwrap_or(u32::MAX);
                let space = space.saturating_sub(fifo.initial);
                has_tokens && (fifo.from.index() != at || space >= first(&fifo.produce))
            })
    };
    let actors = report.actors.iter().enumerate();
    let actors = actors.filter(|(at, _)| could(*at));
    actors
        .map(|(_, actor)| format!("{} on {}", actor.name, actor.on))
        .collect()
}

/// Whether a graph never began, or waits for ever.
fn look_at_end<'a>(
    (info, seen): (&GraphInfo, &[Seen]),
    moves: impl Iterator<Item = &'a Moved>,
    report: &mut GraphReport,
) {
    let mut tokens = waiting::at_first(&info.graph);
    report.silent = true;
    // CPU by CPU: the sums at the end do not depend on the order, but no sum is below zero.
    let mut reads = Vec::new();
    for moved in moves {
        report.silent = false;
        match moved.call {
            Some((call @ Call::Read(..), true)) => reads.push(call),
            Some((call @ Call::Write(..), true)) => waiting::take(&mut tokens, call),
            _ => {}
        }
    }
    for call in reads {
        waiting::take(&mut tokens, call);
    }
    let last: Vec<Last> = seen.iter().map(|seen| seen.last).collect();
    report.deadlock = waiting::for_ever(&info.graph, &last, &tokens);
}

fn report(log: &Log, info: &GraphInfo, seen: &[Seen], until: u64) -> GraphReport {
    let graph = &info.graph;
    let ends = iterations(info, seen);
    let bound = info.bound.as_ref();
    let period = bound.map(|bound| bound.period);
    let every = graph.every.map(|every| Fraction::whole(every.as_ns()));
    // The analysis measures latencies against the longer of both.
    let against = every
        .max(period)
        .filter(|_| every.is_some() || bound.is_some());
    let latency = against.and_then(|period| latency(&ends, period));
    let first = outputs(graph)
        .into_iter()
        .map(|actor| seen[actor].ends.first());
    let first: Option<Vec<&u64>> = first.collect();
    let ns = |span: Option<Span<_>>| span.map(Span::as_ns);
    let within = ns(graph.within);
    let late = within.is_some_and(|within| latency.is_some_and(|latency| latency > within));
    let slow = every.is_some_and(|every| is_slow(info, &ends, every, until));
    let actor = |(actor, seen): (&Actor, &Seen)| ActorReport {
        name: actor.name.clone(),
        on: place(log, actor.tile),
        firings: seen.ends.len() as u64,
        times: actor.times,
        state: graph.plain.then(|| seen.last.state.name(false)),
        waits_for: waiting::reason(graph, &seen.last),
        preemptions: seen.preemptions,
        longest_ns: seen.longest,
        wcet_ns: actor
            .wcet
            .iter()
            .map(|wcet| Work::as_ns(*wcet))
            .max()
            .unwrap_or(0),
        longer: seen.longer,
        longer_firings: seen.longer_firings.clone(),
        starts: None,
    };
    GraphReport {
        name: graph.name.clone(),
        varies: graph.varying().is_some(),
        real_time: !graph.plain,
        silent: false,
        passed_over: Vec::new(),
        deadlock: None,
        iterations: ends.len() as u64,
        period_ns: mean_period(&ends[ends.len().saturating_sub(1) / 2..]).map(Fraction::rounded_up),
        longest_period_ns: ends.windows(2).map(|two| two[1] - two[0]).max(),
        first_output_ns: first.and_then(|all| all.into_iter().max().copied()),
        latency_ns: latency,
        period_bound_ns: period.map(Fraction::rounded_up),
        first_output_bound_ns: bound.and_then(|bound| ns(bound.first_output)),
        latency_bound_ns: bound.and_then(|bound| ns(bound.latency)),
        every_ns: ns(graph.every),
        within_ns: within,
        verdict: match late || slow {
            true => RunVerdict::Missed,
            false => RunVerdict::Met,
        },
        actors: graph.actors.iter().zip(seen).map(actor).collect(),
    }
}

/// When the iterations were complete: each output had fired as often as in all of them.
fn iterations(info: &GraphInfo, seen: &[Seen]) -> Vec<u64> {
    if !info.graph.is_analysed() {
        return Vec::new();
    }
    let Ok(Rates::Consistent(firings)) = firings_per_iteration(&info.graph) else {
        return Vec::new();
    };
    let of_actor = |actor: usize| {
        let each = usize::try_from(firings[actor]).unwrap_or(usize::MAX).max(1);
        seen[actor]
            .ends
            .chunks_exact(each)
            .filter_map(|firings| firings.last().copied())
    };
    let outputs = outputs(&info.graph).into_iter().map(of_actor);
    let all: Option<Vec<u64>> = outputs
        .map(Iterator::collect::<Vec<u64>>)
        .reduce(|a, b| a.into_iter().zip(b).map(|(a, b)| a.max(b)).collect());
    all.unwrap_or_default()
}

fn mean_period(ends: &[u64]) -> Option<Fraction> {
    let (first, last) = (ends.first()?, ends.last()?);
    Fraction::new(last - first, ends.len() as u64 - 1)
}

/// The longest time from the start of an iteration's period to its end.
fn latency(ends: &[u64], period: Fraction) -> Option<u64> {
    let after = |(k, end): (u128, &u64)| {
        let start = k * u128::from(period.numerator()) / u128::from(period.denominator());
        u64::try_from(u128::from(*end).saturating_sub(start)).unwrap_or(u64::MAX)
    };
    (0..).zip(ends).map(after).max()
}

/// Whether iterations come later than one in each `every`, as far as can be said at `until`.
fn is_slow(info: &GraphInfo, ends: &[u64], every: Fraction, until: u64) -> bool {
    let promised = info.bound.as_ref().filter(|bound| bound.period <= every);
    match promised.and_then(|bound| bound.latency) {
        Some(latency) => {
            let latest = u128::from(latency.as_ns());
            let due = |k: usize| k as u128 * u128::from(every.numerator()) + latest;
            let late = ends
                .iter()
                .enumerate()
                .any(|(k, end)| u128::from(*end) > due(k));
            late || due(ends.len()) < u128::from(until)
        }
        None => mean_period(ends).is_none_or(|period| period > every),
    }
}

fn place(log: &Log, tile: Tile) -> String {
    let scheduler = tile.scheduler.and_then(|id| log.schedulers.get(id.index()));
    let cpu = || log.cpus.get(tile.cpu.index()).map(|cpu| &cpu.name);
    scheduler.or_else(cpu).map_or("?".into(), String::clone)
}

impl GraphReport {
    /// A mistake of the application itself, in words.
    pub(super) fn fault(&self) -> Option<String> {
        let name = &self.name;
        if let Some(waits) = &self.deadlock {
            return Some(format!("graph {name} stops for ever: {waits}"));
        }
        let why = match self.passed_over.join(", ") {
            none if none.is_empty() => "none has tokens and space for its first firing".into(),
            some => format!("the task scheduler never chose {some}"),
        };
        let fired = format!("graph {name}: none of its actors has ever fired; {why}");
        self.silent.then_some(fired)
    }

    /// Whether something was seen that the verdict excludes: an output later than its bound, or a
    /// firing above its wcet.
    pub fn exceeds_bound(&self) -> bool {
        let pairs = [
            (self.first_output_ns, self.first_output_bound_ns),
            (self.latency_ns, self.latency_bound_ns),
        ];
        let above = |(seen, bound)| matches!((seen, bound), (Some(a), Some(b)) if a > b);
        let is_longer = self.actors.iter().any(|actor| actor.longer > 0);
        is_longer || pairs.into_iter().any(above)
    }
}

impl GraphReport {
    fn width(&self, of: fn(&ActorReport) -> &str, least: usize) -> usize {
        let names = self.actors.iter().map(|actor| of(actor).chars().count());
        names.max().unwrap_or(0).max(least)
    }

    /// Firings that executed longer than their wcets, by name.
    fn longer(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for actor in &self.actors {
            let name = &actor.name;
            for one in &actor.longer_firings {
                let (firing, executed) = (one.firing, Short(one.executed_ns));
                let wcet = Short(one.wcet_ns);
                writeln!(
                    f,
                    "  firing {firing} of {name} executed {executed}, longer than its wcet {wcet}"
                )?;
            }
            match actor.longer - actor.longer_firings.len() as u64 {
                0 => {}
                more => writeln!(f, "  ... and {} more of {name}", Count(more))?,
            }
        }
        Ok(())
    }

    /// The actors of a real-time application, and their starts.
    fn firings(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = |ns: Option<u64>| ns.map_or("-".into(), |ns| Short(ns).to_string());
        let (name, on) = (self.width(|a| &a.name, 5), self.width(|a| &a.on, 2));
        writeln!(
            f,
            "  {:name$}  {:on$} {:>9} {:>9} {:>9} {:>9}",
            "actor", "on", "firings", "preempted", "longest", "wcet"
        )?;
        for actor in &self.actors {
            let long = match actor.longer {
                0 => String::new(),
                n => format!("  {} LONGER THAN THEIR WCET", Count(n)),
            };
            writeln!(
                f,
                "  {:name$}  {:on$} {:>9} {:>9} {:>9} {:>9}{long}",
                actor.name,
                actor.on,
                Count(actor.firings),
                Count(actor.preemptions),
                short(actor.longest_ns),
                short(Some(actor.wcet_ns)),
            )?;
        }
        let rows = self.actors.iter();
        let rows = rows.map(|actor| (&*actor.name, &*actor.on, actor.starts));
        starts::table(f, (name.max(7), on), rows)
    }

    /// The tasks of an application that is not real-time.
    fn tasks(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, on) = (self.width(|a| &a.name, 4), self.width(|a| &a.on, 2));
        writeln!(
            f,
            "  {:name$}  {:on$} {:>9} {:>9} {:>9} {:>9}  {:8}  waits for",
            "task", "on", "rounds", "of", "preempted", "longest", "state"
        )?;
        let maybe = |value: Option<String>| value.unwrap_or("-".into());
        for task in &self.actors {
            let times = maybe(task.times.map(|times| Count(times.into()).to_string()));
            let longest = maybe(task.longest_ns.map(|ns| Short(ns).to_string()));
            let line = format!(
                "  {:name$}  {:on$} {:>9} {times:>9} {:>9} {longest:>9}  {:8}  {}",
                task.name,
                task.on,
                Count(task.firings).to_string(),
                Count(task.preemptions).to_string(),
                task.state.unwrap_or("-"),
                task.waits_for.as_deref().unwrap_or_default(),
            );
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

impl fmt::Display for GraphReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = |ns: Option<u64>| ns.map_or("-".into(), |ns| Short(ns).to_string());
        let (iterations, verdict) = (Count(self.iterations), self.verdict.name());
        if !self.real_time {
            let name = &self.name;
            writeln!(f, "graph {name}: not real-time, nothing is promised of it")?;
            return self.tasks(f);
        }
        let size = match self.varies {
            true => "its rates depend on data".to_string(),
            false => format!("{iterations} iterations"),
        };
        writeln!(f, "graph {}: {size}, {verdict}", self.name)?;
        writeln!(
            f,
            "  {:21} {:>9} {:>9} {:>9}",
            "", "seen", "bound", "required"
        )?;
        let rows = [
            (
                "period",
                self.period_ns,
                self.period_bound_ns,
                self.every_ns,
            ),
            (
                "first output",
                self.first_output_ns,
                self.first_output_bound_ns,
                None,
            ),
            (
                "latency",
                self.latency_ns,
                self.latency_bound_ns,
                self.within_ns,
            ),
        ];
        for (name, seen, bound, required) in rows {
            let [seen, bound, required] = [seen, bound, required].map(short);
            writeln!(f, "  {name:21} {seen:>9} {bound:>9} {required:>9}")?;
        }
        self.firings(f)?;
        self.longer(f)?;
        match self.exceeds_bound() {
            true => writeln!(f, "  something is above its bound"),
            false => Ok(()),
        }
    }
}
