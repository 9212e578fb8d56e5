//! Graphs: is every iteration over by its bound, on all slots and offsets, whoever fires how long?
//!
//! A drawn graph is executed on its tiles by the engine that platforms use: with firings of worst
//! length and with shorter ones, and with frames that begin anywhere. The end of iteration i must
//! not be later than the latency and i − 1 periods of the verdict. Small ones are tried from every
//! combination of the offsets of their frames.

use punctual::{Faults, SimOptions, Workloads, simulate_unjudged};
use punctual_analysis::{Exactness, GraphVerdict, admit};
use punctual_generate::{Random, draw_graph_system};
use punctual_model::{
    ActorId, Graph, OrderRule, PolicyKind, Preempted, Span, Supply, System, When,
};
use punctual_trace::{Log, State};

use crate::tally::{Tally, Violation};

/// Iterations that are observed.
const ITERATIONS: u64 = 6;

/// Most combinations of offsets that are tried one by one.
const MAX_COMBINATIONS: u64 = 400;

/// What an analysis says of the only graph of a system; `None`: nothing.
pub type GraphAnalysis = fn(&System) -> Option<GraphVerdict>;

/// The analysis of the project.
pub fn graph_analysis(system: &System) -> Option<GraphVerdict> {
    admit(system).ok()?.graphs.into_iter().next()
}

/// Draws graphs, and tries to prove an analysis of them wrong.
#[derive(Clone, Debug)]
pub struct GraphJudge {
    /// A seed and an index give a system.
    pub seed: u64,
    /// What is judged.
    pub analysis: GraphAnalysis,
}

/// The lengths of firings in a situation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lengths {
    Worst,
    Shorter(u64),
}

impl GraphJudge {
    /// The system with this number. Every fourth is small: its times are a few nanoseconds. Every
    /// fourth has firings of more than one turn of a thread.
    pub fn draw(&self, index: u64) -> System {
        let scale = match index % 4 {
            0 => 1,
            1 => When::TURN.as_ns() / 10,
            _ => 1_000,
        };
        draw_graph_system(&mut Random::at(self.seed, &[index, 20]), scale)
    }

    /// Judges what the analysis says of this system.
    pub fn judge(&self, index: u64, tally: &mut Tally) {
        let system = self.draw(index);
        tally.systems += 1;
        if let Err(errors) = system.validate() {
            let what = format!("a drawn system is invalid: {errors:?}");
            tally
                .violations
                .push(violation(index, "drawing", what, &system));
            return;
        }
        let Some(claim) = (self.analysis)(&system) else {
            *tally.unanswered.entry("no verdict".into()).or_default() += 1;
            return;
        };
        if claim.period.is_none() || claim.latency.is_none() {
            tally.refused += 1;
            return;
        }
        tally.admitted += 1;
        for branch in branches(&system, &claim) {
            *tally.branches.entry(branch.into()).or_default() += 1;
        }
        let random = &mut Random::at(self.seed, &[index, 21]);
        let drawn = random.bits();
        let mut situations = vec![
            ("worst firings", system.clone(), Lengths::Worst),
            ("shorter firings", system.clone(), Lengths::Shorter(drawn)),
        ];
        for lengths in [Lengths::Worst, Lengths::Shorter(drawn)] {
            let moved = |tile: usize, frame: u64| tile_offset(random, tile, frame);
            let shifted = shifted(&system, moved);
            situations.extend(shifted.map(|system| ("other offsets", system, lengths)));
        }
        if let Some(all) = all_offsets(&system) {
            tally.exhausted += 1;
            let all = all.into_iter();
            situations.extend(all.map(|system| ("each offset", system, Lengths::Worst)));
        }
        for (name, situation, lengths) in situations {
            tally.situations += 1;
            if let Err(what) = contradiction(&situation, &claim, lengths) {
                tally
                    .violations
                    .push(violation(index, name, what, &situation));
                return;
            }
        }
    }
}

fn tile_offset(random: &mut Random, _: usize, frame: u64) -> u64 {
    random.below(frame)
}

fn violation(index: u64, situation: &str, what: String, system: &System) -> Violation {
    Violation {
        index,
        situation: situation.into(),
        what,
        system: described(system),
    }
}

fn described(system: &System) -> String {
    format!("{:#?}", (&system.cpus, &system.schedulers, &system.graphs))
}

/// The ways by which the responses of a verdict came about.
fn branches(system: &System, claim: &GraphVerdict) -> Vec<&'static str> {
    let Some(graph) = system.graphs.first() else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for (id, actor) in (0..).map(ActorId).zip(&graph.actors) {
        let order = graph.order_on(actor.tile);
        found.push(match order.map(|order| (&order.by, order.when)) {
            None if actor.tile.scheduler.is_none() => "graph: by turns on a whole CPU",
            None => "graph: by turns in own time",
            Some((_, When::Inline)) => "graph: threads of the core",
            Some((OrderRule::Static(_), _)) => "graph: a static order",
            Some((OrderRule::Tdm(_), _)) => "graph: slots with owners",
            Some((_, When::BetweenSlots(Preempted::Continues))) => {
                "graph: between slots, continues"
            }
            Some(_) => "graph: between slots, passed over",
        });
        found.extend(copying(graph, id));
        if actor.wcet.len() > 1 {
            found.push("graph: an actor with phases");
        }
    }
    if claim.exactness == Exactness::Exact {
        found.push("graph: an exact period");
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// The copies of one actor.
fn copying(graph: &Graph, id: ActorId) -> Vec<&'static str> {
    let phases = || 0..graph.phases(id);
    let claims = phases().any(|at| !graph.claim_time(id, at).is_zero());
    let releases = phases().any(|at| !graph.release_time(id, at).is_zero());
    let order = graph.order_on(graph.actors[id.index()].tile);
    let passes = order.is_some_and(|o| o.when == When::BetweenSlots(Preempted::PassedOver));
    let all = [
        (claims, "graph: a claim that copies"),
        (releases, "graph: a release that copies"),
        (
            passes && (claims || releases),
            "graph: copies where firings are passed over",
        ),
    ];
    let taken = all.into_iter().filter(|(taken, _)| *taken);
    taken.map(|(_, name)| name).collect()
}

/// The branches that a long run takes.
pub(crate) const GRAPH_BRANCHES: [&str; 12] = [
    "graph: a claim that copies",
    "graph: a release that copies",
    "graph: copies where firings are passed over",
    "graph: a static order",
    "graph: an actor with phases",
    "graph: an exact period",
    "graph: between slots, continues",
    "graph: between slots, passed over",
    "graph: by turns in own time",
    "graph: by turns on a whole CPU",
    "graph: slots with owners",
    "graph: threads of the core",
];

/// The system with its frames begun elsewhere; `None`: a slot would lie across the end of one.
fn shifted(system: &System, mut offset: impl FnMut(usize, u64) -> u64) -> Option<System> {
    let mut system = system.clone();
    for (tile, scheduler) in system.schedulers.iter_mut().enumerate() {
        let cpu = &system.cpus[scheduler.cpu.index()];
        let (PolicyKind::Tdm { frame, .. }, Supply::Slots(slots)) =
            (cpu.policy, &mut scheduler.supply)
        else {
            continue;
        };
        let by = offset(tile, frame.as_ns());
        for slot in slots.iter_mut() {
            let at = (slot.at.as_ns() + by) % frame.as_ns();
            if at + slot.length.as_ns() > frame.as_ns() {
                return None;
            }
            slot.at = Span::from_ns(at);
        }
        slots.sort_unstable_by_key(|slot| slot.at);
    }
    Some(system)
}

/// A small system with its frames begun at every combination of instants that keeps slots whole;
/// `None`: there are too many.
fn all_offsets(system: &System) -> Option<Vec<System>> {
    let frames = system.schedulers.iter().map(|scheduler| {
        let cpu = &system.cpus[scheduler.cpu.index()];
        match cpu.policy {
            PolicyKind::Tdm { frame, .. } => frame.as_ns(),
            _ => 1,
        }
    });
    let frames: Vec<u64> = frames.collect();
    // An offset common to all changes nothing but the start.
    let others = frames.get(1..).unwrap_or_default();
    let count = others
        .iter()
        .try_fold(1_u64, |all, &f| all.checked_mul(f))?;
    if frames.is_empty() || count > MAX_COMBINATIONS {
        return None;
    }
    let combination = |mut number: u64| {
        shifted(system, |tile, frame| {
            if tile == 0 {
                return 0;
            }
            let offset = number % frame;
            number /= frame;
            offset
        })
    };
    Some((0..count).filter_map(combination).collect())
}

/// Executes a system and compares it with what was claimed; the contradiction, if there is one.
fn contradiction(system: &System, claim: &GraphVerdict, lengths: Lengths) -> Result<(), String> {
    let (Some(period), Some(latency)) = (claim.period, claim.latency) else {
        return Ok(());
    };
    let bound = |iteration: u64| {
        let periods = u128::from(iteration) * u128::from(period.numerator());
        let periods = periods / u128::from(period.denominator());
        u128::from(latency.as_ns()) + periods
    };
    let duration = u64::try_from(bound(ITERATIONS)).map_err(|_| "too long".to_string())?;
    let seed = match lengths {
        Lengths::Worst => 0,
        Lengths::Shorter(seed) => seed,
    };
    let options = SimOptions {
        duration: Some(Span::from_ns(duration)),
        seed: Some(seed),
        faults: Faults {
            short_firings: lengths != Lengths::Worst,
            ..Faults::default()
        },
        ..SimOptions::default()
    };
    let log = simulate_unjudged(system, &options, &mut Workloads::new(), &mut |_| true)
        .map_err(|error| format!("the simulation does not start: {error}"))?;
    let broken = punctual_rules::check(&log);
    if let Some(rule) = broken.first() {
        return Err(format!("a rule is broken: {rule}"));
    }
    let graph = &system.graphs[0];
    for output in outputs(graph) {
        let firings = claim.actors[output.index()].firings.unwrap_or(1);
        let ends = ends(&log, output);
        for iteration in 0..ITERATIONS {
            let last = usize::try_from(firings * (iteration + 1) - 1).unwrap_or(usize::MAX);
            let by = bound(iteration);
            let end = ends.get(last).copied();
            if end.is_none_or(|end| u128::from(end) > by) {
                let name = &graph.actors[output.index()].name;
                let end = end.map_or("not over".to_string(), |end| format!("over at {end}ns"));
                return Err(format!(
                    "iteration {} of `{name}` is {end}, and was to be over by {by}ns ({lengths:?})",
                    iteration + 1
                ));
            }
        }
    }
    exact_first_output(graph, &log, claim, lengths)
}

/// Where a verdict is exact, firings of worst length reach its first output exactly.
fn exact_first_output(
    graph: &punctual_model::Graph,
    log: &Log,
    claim: &GraphVerdict,
    lengths: Lengths,
) -> Result<(), String> {
    let Some(first) = claim.first_output else {
        return Ok(());
    };
    let firsts = outputs(graph)
        .into_iter()
        .map(|id| ends(log, id).first().copied());
    let seen = firsts.collect::<Option<Vec<u64>>>();
    let seen = seen.and_then(|ends| ends.into_iter().max());
    let exact = claim.exactness == Exactness::Exact && lengths == Lengths::Worst;
    match seen {
        Some(seen) if seen > first.as_ns() || (exact && seen != first.as_ns()) => Err(format!(
            "every output has fired once at {seen}ns, and {first:?} was said ({lengths:?})"
        )),
        _ => Ok(()),
    }
}

/// The actors that hand nothing on to others; all where every one does.
fn outputs(graph: &punctual_model::Graph) -> Vec<ActorId> {
    let all: Vec<ActorId> = (0..).map(ActorId).take(graph.actors.len()).collect();
    let hands_on = |id: &ActorId| {
        let mut written = graph.fifos.iter().filter(|fifo| fifo.from == *id);
        written.any(|fifo| fifo.to != *id)
    };
    let last: Vec<ActorId> = all.iter().copied().filter(|id| !hands_on(id)).collect();
    if last.is_empty() { all } else { last }
}

/// The instants at which firings of an actor have handed on their tokens, in order.
fn ends(log: &Log, actor: ActorId) -> Vec<u64> {
    let moves = log.cpus.iter().flat_map(|cpu| &cpu.moves);
    let ends = moves
        .filter(|moved| moved.actor == actor && moved.state == State::Reset && !moved.preempted);
    let mut seen = None;
    let mut instants = Vec::new();
    for end in ends {
        // A reset that was preempted comes again.
        if seen != Some(end.firing) {
            instants.push(end.at.ticks());
        }
        seen = Some(end.firing);
    }
    instants
}
