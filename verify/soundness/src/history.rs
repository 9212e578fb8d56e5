//! Systems that change: the judgement of their transitions against what runs show.
//!
//! The changes are judged once, for no judgement depends on instants or phases. Then the system is
//! simulated with other phases and other instants of its changes, each of which comes when the
//! judgement says. No job may be late, and none may take longer than was promised for the run.

use punctual_analysis::{AnalysisError, Transition, Verdict, When, admit, admit_changes};
use punctual_generate::Random;
use punctual_model::{Change, Instant, Ns, SchedulerId, Span, Stage as Parts, Step, System, Task};

use crate::changes::draw;
use crate::describe::describe;
use crate::judge::without_names;
use crate::observe::observe;
use crate::situation::{Situation, Stage, scatter, worst_work};
use crate::tally::{Tally, Violation};

/// From a system that declares changes to their judgements.
pub type Transitions = fn(&System) -> Result<Vec<Transition>, AnalysisError>;

/// The judgement that everyone uses.
///
/// # Errors
/// As `punctual_analysis::admit_changes`.
pub fn transitions(system: &System) -> Result<Vec<Transition>, AnalysisError> {
    admit_changes(system)
}

/// Situations of each system.
const ROUNDS: u64 = 6;
/// Of so many systems one has its logs held against the rules of scheduling.
const CHECKED_EVERY: u64 = 10;

/// Draws systems that change and judges a judgement of transitions by them.
#[derive(Clone, Debug)]
pub struct History {
    /// Seed of everything.
    pub seed: u64,
    /// The judgement.
    pub transitions: Transitions,
}

impl History {
    /// Draws system number `index`; `None`: it does not change.
    pub fn draw(&self, index: u64) -> Option<System> {
        draw(&mut Random::at(self.seed, &[index, 2]))
    }

    /// Draws system number `index`, asks, and tries to contradict.
    pub fn judge(&self, index: u64, tally: &mut Tally) {
        let Some(system) = self.draw(index) else {
            return;
        };
        let start = admit(&Parts::at_start(&system).system());
        let (Ok(start), Ok(transitions)) = (start, (self.transitions)(&system)) else {
            return;
        };
        if !start.admitted {
            return;
        }
        tally.histories += 1;
        note_branches(tally, &system, &transitions);
        let stage = Stage {
            system: &system,
            seed: index,
            check_rules: index.is_multiple_of(CHECKED_EVERY),
            fund: punctual_analysis::funding,
        };
        let bounds = system.tasks.iter();
        let bounds = bounds.map(|task| promised(&start, &transitions, task));
        let bounds: Vec<Option<Span<Ns>>> = bounds.collect();
        let mut random = Random::at(self.seed, &[index, 3]);
        for round in 0..ROUNDS {
            let mut situation = situation(&stage, round, &mut random);
            situation.look.transitions = Some(transitions.clone());
            tally.situations += 1;
            if let Some(what) = contradiction(&situation, &bounds) {
                let said = transitions.iter().map(|t| (t.when, &t.idle, &t.ground));
                let said: Vec<_> = said.collect();
                tally.violations.push(Violation {
                    index,
                    situation: format!("with changes, {}", situation.name),
                    what: format!("{what}; judged {said:?}"),
                    system: describe(&situation.system),
                });
                return;
            }
        }
    }
}

/// The longest response that is promised for the whole run; `None`: nothing is.
fn promised(start: &Verdict, transitions: &[Transition], task: &Task) -> Option<Span<Ns>> {
    let done = || transitions.iter().filter(|t| t.when != When::Never);
    let verdicts = done().map(|t| &t.verdict).chain([start]);
    let rows = verdicts.flat_map(|verdict| &verdict.tasks);
    let rows = rows.filter(|row| row.name == task.name);
    let between = done().flat_map(|t| &t.meanwhile);
    let between = between.filter(|(name, _)| *name == task.name);
    let all = rows.map(|row| row.response_bound);
    let all: Option<Vec<_>> = all.chain(between.map(|(_, bound)| *bound)).collect();
    all?.into_iter().max()
}

/// Other phases, other instants, in some rounds shorter jobs before the changes, or one task that
/// overruns.
fn situation(stage: &Stage<'_>, round: u64, random: &mut Random) -> Situation {
    let mut system = stage.system.clone();
    worst_work(&mut system);
    if round > 0 {
        scatter(random, &mut system);
    }
    let mut at = 0;
    let most = if random.happens(500) { 12 } else { 80 };
    for change in &mut system.changes {
        at += random.within(1, most);
        change.at = Instant::from_ns(at);
    }
    let mut situation = stage.situation(format!("round {round}"), system, at);
    situation.look.seed = random.bits();
    situation.look.faults.dense_jitter = round.is_multiple_of(2);
    situation.look.faults.jitter = true;
    if round == 1 {
        stage.let_one_overrun(&mut situation, random);
    }
    situation
}

/// A promise that a schedule of this situation does not keep.
fn contradiction(situation: &Situation, bounds: &[Option<Span<Ns>>]) -> Option<String> {
    let seen = match observe(&situation.system, &situation.look) {
        Ok(seen) => seen,
        Err(what) => return Some(what),
    };
    if let Some(refused) = seen.refused {
        return Some(format!("the core refuses: {refused}"));
    }
    for (index, task) in seen.tasks.iter().enumerate() {
        if situation.culprits.contains(&index) {
            continue;
        }
        let name = &situation.system.tasks[index].name;
        if let Some(job) = task.missed {
            return Some(format!("admitted, and job {job} of {name} is late"));
        }
        if let (Some((longest, job)), Some(bound)) = (task.longest, bounds[index])
            && longest > bound.as_ns()
        {
            let bound = bound.as_ns();
            return Some(format!("job {job} of {name} took {longest}, bound {bound}"));
        }
    }
    let rule = seen.broken_rules.first();
    rule.map(|rule| format!("the log breaks a rule: {rule}"))
}

/// The rules by which changes were judged, and the forms of those that were admitted.
fn note_branches(tally: &mut Tally, system: &System, transitions: &[Transition]) {
    for (change, transition) in system.changes.iter().zip(transitions) {
        let when = transition.when.name();
        if transition.when == When::Never {
            tally.branch(format!("transition: {when}"));
            note_refused(tally, change, transition);
            continue;
        }
        let inside = if transition.idle.is_some() {
            " inside one supply"
        } else {
            ""
        };
        let ground = without_names(system, &transition.ground);
        tally.branch(format!("transition: {when}{inside}: {ground}"));
        tally.changes += 1;
        for step in &change.steps {
            tally.branch(format!("change: {}", form(system, step)));
        }
    }
}

/// How a transfer was refused.
fn note_refused(tally: &mut Tally, change: &Change, transition: &Transition) {
    let transfers = |step: &Step| matches!(step, Step::Transfer { .. });
    if !change.steps.iter().any(transfers) {
        return;
    }
    let refusal = transition.verdict.refusals.first();
    let fix = match refusal.is_some_and(|refusal| refusal.fix.is_some()) {
        true => "less would be admitted",
        false => "nothing would be admitted",
    };
    tally.branch(format!("transfer: refused, {fix}"));
    if transition.ground.contains("nothing left of its period") {
        tally.branch("transfer: refused, the lender has nothing left".into());
    }
}

fn form(system: &System, step: &Step) -> &'static str {
    let is_slice = |id: &SchedulerId| system.schedulers[id.index()].receiver.is_some();
    match step {
        Step::Join(id) if is_slice(id) => "a slice is delegated",
        Step::Leave(id) if is_slice(id) => "a slice is taken back",
        Step::Join(_) => "a scheduler starts",
        Step::Leave(_) => "a scheduler stops",
        Step::Supply(..) => "another server",
        Step::Reorder(..) => "another policy of a scheduler",
        Step::ReorderCpu(..) => "another policy of a CPU",
        Step::Constrain(..) => "another constraint",
        Step::Move(..) => "a task moves",
        Step::Transfer { .. } => "budget is transferred",
        Step::Stop(_) => "a task stops",
        Step::Start(_) => "a task starts",
    }
}
