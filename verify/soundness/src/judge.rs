//! One system after the other: the analysis' claim against what schedules show.

use punctual_analysis::{Exactness, FixTarget, Verdict};
use punctual_generate::{Drawn, Feature, Mix, Random, Scale};
use punctual_model::{Ns, PolicyKind, Requirement, Span, System, TaskId};

use crate::claim::{Analysis, Claim, Fund};
use crate::describe::describe;
use crate::exhaustive::all_phases;
use crate::observe::{Seen, observe};
use crate::situation::{Situation, Stage, late_with};
use crate::tally::{Tally, Violation};
use crate::tightness;
use crate::witness::{Confirmation, confirm};

/// Of so many systems one is small and tried from all phases.
const SMALL_EVERY: u64 = 20;
/// Of so many systems one has its logs held against the rules of scheduling.
const CHECKED_EVERY: u64 = 25;

/// Draws systems and judges an analysis by them.
#[derive(Clone, Debug)]
pub struct Judge {
    /// Seed of everything.
    pub seed: u64,
    /// What systems are drawn from.
    pub features: Vec<Feature>,
    /// What is judged.
    pub analysis: Analysis,
    /// The budgets of those who overrun where the machine takes time for itself.
    pub fund: Fund,
}

impl Judge {
    /// Draws system number `index`.
    pub fn draw(&self, index: u64) -> Drawn {
        let mut mix = Mix::of(&self.features);
        if index.is_multiple_of(SMALL_EVERY) {
            mix.scale = Scale::Tiny;
            mix.most_tasks = 4;
        }
        mix.draw(&mut Random::at(self.seed, &[index, 0]))
    }

    /// Draws system number `index`, asks the analysis, and tries to contradict it.
    pub fn judge(&self, index: u64, tally: &mut Tally) {
        let drawn = self.draw(index);
        tally.systems += 1;
        let claim = (self.analysis)(&drawn.system);
        let place = match &claim {
            Ok(claim) if claim.admitted => 0,
            Ok(_) => 1,
            Err(_) => 2,
        };
        for feature in &drawn.features {
            tally.features.entry(feature.name()).or_default()[place] += 1;
        }
        let claim = match claim {
            Ok(claim) => claim,
            Err(error) => {
                *tally.unanswered.entry(error.to_string()).or_default() += 1;
                return;
            }
        };
        let case = Case {
            index,
            stage: Stage {
                system: &drawn.system,
                seed: index,
                check_rules: index.is_multiple_of(CHECKED_EVERY),
                fund: self.fund,
            },
            claim: &claim,
            is_plain: drawn.features.is_empty(),
        };
        let mut random = Random::at(self.seed, &[index, 1]);
        case.compare_with_the_fast_answer(tally);
        if claim.admitted {
            tally.admitted += 1;
            case.try_to_contradict(&mut random, tally);
        } else {
            tally.refused += 1;
            case.confirm_refusals(&mut random, tally);
        }
    }
}

/// One system with its claim.
struct Case<'a> {
    index: u64,
    stage: Stage<'a>,
    claim: &'a Claim,
    is_plain: bool,
}

impl Case<'_> {
    fn violation(&self, tally: &mut Tally, situation: &str, system: &System, what: String) {
        tally.violations.push(Violation {
            index: self.index,
            situation: situation.into(),
            what,
            system: describe(system),
        });
    }

    /// Those who ask often get the same answer.
    fn compare_with_the_fast_answer(&self, tally: &mut Tally) {
        let system = self.stage.system;
        if self.claim.verdict.is_none() {
            return;
        }
        let fast = punctual_analysis::is_admitted(system);
        if fast != Ok(self.claim.admitted) {
            let what = format!("admit says {}, is_admitted {fast:?}", self.claim.admitted);
            self.violation(tally, "two answers", system, what);
        }
    }

    /// Simulates all situations; the first violation of a system is enough.
    fn try_to_contradict(&self, random: &mut Random, tally: &mut Tally) {
        let mut longest = vec![0_u64; self.stage.system.tasks.len()];
        for situation in self.stage.situations(random) {
            tally.situations += 1;
            match observe(&situation.system, &situation.look) {
                Ok(seen) => {
                    if let Some(what) = self.contradiction(&situation, &seen) {
                        let system = &situation.system;
                        return self.violation(tally, &situation.name, system, what);
                    }
                    self.note_longest(&mut longest, &situation, &seen);
                }
                Err(what) => {
                    return self.violation(tally, &situation.name, &situation.system, what);
                }
            }
        }
        if self.index.is_multiple_of(SMALL_EVERY) && !self.exhaust(&mut longest, tally) {
            return;
        }
        if let Some(verdict) = &self.claim.verdict {
            note_branches(tally, self.stage.system, verdict);
            self.note_sharpness(tally, verdict, &longest);
        }
    }

    /// All phases; whether nothing was contradicted.
    fn exhaust(&self, longest: &mut [u64], tally: &mut Tally) -> bool {
        let mut found = None;
        let tried = all_phases(&self.stage, |situation, seen| {
            self.note_longest(longest, situation, seen);
            match self.contradiction(situation, seen) {
                Some(what) => {
                    found = Some((situation.name.clone(), situation.system.clone(), what));
                    false
                }
                None => true,
            }
        });
        match (tried, found) {
            (_, Some((name, system, what))) => self.violation(tally, &name, &system, what),
            (Err(what), None) => self.violation(tally, "all phases", self.stage.system, what),
            (Ok(tried), None) => {
                tally.situations += tried;
                tally.exhausted += u64::from(tried > 0);
                return true;
            }
        }
        false
    }

    /// The longest responses, but for tasks that nothing is promised here.
    fn note_longest(&self, longest: &mut [u64], situation: &Situation, seen: &Seen) {
        let spared = late_with(self.stage.system, &situation.culprits);
        for ((longest, task), spared) in longest.iter_mut().zip(&seen.tasks).zip(spared) {
            if !spared {
                *longest = (*longest).max(task.longest.map_or(0, |l| l.0));
            }
        }
    }

    /// What in a schedule is not as claimed.
    fn contradiction(&self, situation: &Situation, seen: &Seen) -> Option<String> {
        let spared = late_with(self.stage.system, &situation.culprits);
        let spared = |task: usize| spared[task];
        for (index, task) in seen.tasks.iter().enumerate().filter(|(i, _)| !spared(*i)) {
            let name = &self.stage.system.tasks[index].name;
            if let Some(job) = task.missed {
                return Some(format!("admitted, and job {job} of {name} is late"));
            }
            let (Some((longest, job)), Some(bound)) = (task.longest, self.claim.bounds[index])
            else {
                continue;
            };
            if longest > bound.as_ns() {
                let bound = bound.as_ns();
                return Some(format!("job {job} of {name} took {longest}, bound {bound}"));
            }
        }
        if let Some(rule) = seen.broken_rules.first() {
            return Some(format!("the log breaks a rule: {rule}"));
        }
        self.broken_requirement(situation, seen, spared)
    }

    fn broken_requirement(
        &self,
        situation: &Situation,
        seen: &Seen,
        spared: impl Fn(usize) -> bool,
    ) -> Option<String> {
        let tasks = &self.stage.system.tasks;
        let name = |task: &TaskId| tasks[task.index()].name.as_str();
        for (index, requirement) in self.stage.system.requirements.iter().enumerate() {
            let (who, words, within, seen) = match requirement {
                Requirement::Response { task, within } => {
                    let longest = seen.tasks[task.index()].longest.map(|l| l.0);
                    (vec![*task], "responds within", within, longest)
                }
                // Differences count what jobs surely execute, which shorter work is not.
                Requirement::Jitter { task, within } if situation.as_described => {
                    let seen = &seen.tasks[task.index()];
                    let difference = seen.longest.zip(seen.shortest).map(|(l, s)| l.0 - s);
                    (vec![*task], "varies by", within, difference)
                }
                Requirement::Chain { tasks, within } => {
                    let within = self.chain_bound(index).unwrap_or(within);
                    let words = "takes from end to end";
                    (tasks.clone(), words, within, seen.chains[index])
                }
                Requirement::Jitter { .. } => continue,
            };
            let over = seen.filter(|seen| *seen > within.as_ns());
            if let (Some(seen), false) = (over, who.iter().any(|t| spared(t.index()))) {
                let names: Vec<&str> = who.iter().map(name).collect();
                let (names, within) = (names.join(" -> "), within.as_ns());
                return Some(format!("{names} {words} {within}, and {seen} was seen"));
            }
        }
        None
    }

    /// What the analysis says of a required chain, which is sharper than what is required.
    fn chain_bound(&self, requirement: usize) -> Option<&Span<Ns>> {
        let chains = &self.claim.verdict.as_ref()?.chains;
        let mine = chains.iter().find(|c| c.requirement == requirement)?;
        mine.bound.as_ref()
    }

    fn confirm_refusals(&self, random: &mut Random, tally: &mut Tally) {
        let Some(verdict) = &self.claim.verdict else {
            return;
        };
        note_branches(tally, self.stage.system, verdict);
        for refusal in &verdict.refusals {
            let word = match confirm(&self.stage, verdict, refusal, random) {
                Ok(Confirmation::NotExact) => "refused by a test that is only sufficient",
                Ok(Confirmation::NoWitness) => "exact, without a witness to simulate",
                Ok(Confirmation::TooLong) => "exact, with a witness too long to simulate",
                Ok(Confirmation::NeedsReserves) => "exact, with reserves that cannot be placed",
                Ok(Confirmation::Confirmed) => "exact, and the witness misses",
                Ok(Confirmation::OthersFirst) => "exact, and a reservation is late before",
                Ok(Confirmation::Contradicted) => {
                    let what = format!("refused as exact, and nothing is late: {refusal:?}");
                    let system = self.stage.system;
                    self.violation(tally, &refusal.situation, system, what);
                    "exact, and the witness does not miss"
                }
                Err(what) => {
                    self.violation(tally, "witness", self.stage.system, what);
                    "exact, and not simulated"
                }
            };
            *tally.witnesses.entry(word).or_default() += 1;
        }
    }

    /// Bounds over the longest observations. Plain systems under fixed priority reach exact ones.
    fn note_sharpness(&self, tally: &mut Tally, verdict: &Verdict, longest: &[u64]) {
        for (row, &seen) in verdict.tasks.iter().zip(longest) {
            let (Some(bound), true) = (row.response_bound.map(|b| b.as_ns()), seen > 0) else {
                continue;
            };
            let exact = row.exactness == Exactness::Exact;
            let ratio = u128::from(bound) * 1_000 / u128::from(seen);
            let ratio = u32::try_from(ratio).unwrap_or(u32::MAX);
            let task = &self.stage.system.tasks[row.task.index()];
            let supply = tightness::supply_of(self.stage.system, task);
            if let Some(branch) = tightness::lock_branch(self.stage.system, task) {
                tally.branch(branch);
            }
            for sharpness in [
                tally.sharpness.entry(row.test.name.into()).or_default(),
                tally.supplies.entry(supply).or_default(),
            ] {
                sharpness.ratios.push(ratio);
                sharpness.exact += u64::from(exact);
            }
            let policy = self.stage.system.cpus[row.cpu.index()].policy;
            let fixed = policy == PolicyKind::FixedPriority { preemptive: true };
            if self.is_plain && exact && fixed && seen < bound {
                let what = format!("{} has the exact bound {bound}, and takes {seen}", row.name);
                self.violation(tally, "all released together", self.stage.system, what);
            }
        }
    }
}

/// Which branches of the analysis were taken: its tests, the terms of bounds, the doubts, the
/// assumptions, the kinds of refusals. Names of tasks and figures are taken out of the words.
fn note_branches(tally: &mut Tally, system: &System, verdict: &Verdict) {
    for row in &verdict.tasks {
        let exactness = row.exactness.name();
        tally.branch(format!("test: {} ({exactness})", row.test.name));
        for term in &row.terms {
            tally.branch(format!("term: {}", without_names(system, &term.what)));
        }
        for assumption in &row.assumptions {
            let words = without_names(system, assumption);
            let kind = if words.starts_with("not exact: ") {
                ""
            } else {
                "assumed: "
            };
            tally.branch(format!("{kind}{words}"));
        }
    }
    for chain in &verdict.chains {
        let exactness = chain.exactness.name();
        tally.branch(format!("test: {} ({exactness})", chain.test.name));
        for handover in &chain.handovers {
            tally.branch(format!("hand-over: {}", handover.how.name()));
        }
    }
    for slice in verdict.schedulers.iter().filter_map(|s| s.slice.as_ref()) {
        let how = match slice.is_guaranteed {
            true => "guaranteed",
            false => "background",
        };
        tally.branch(format!("slice: {how}"));
    }
    for refusal in &verdict.refusals {
        let witness = match refusal.witness {
            None => "without a witness",
            Some(punctual_analysis::Witness::Demand { .. }) => "with a demand",
            Some(punctual_analysis::Witness::Response { .. }) => "with a response",
        };
        tally.branch(format!("refusal: {witness}"));
        let fix = refusal.fix.as_ref().map_or("none", |fix| match fix.target {
            FixTarget::Budget(_) => "budget",
            FixTarget::Deadline(_) => "deadline",
            FixTarget::Period(_) => "period",
            FixTarget::Within(_) => "within",
            FixTarget::ServerBudget(_) => "server budget",
            FixTarget::ServerPeriod(_) => "server period",
            FixTarget::SlotLength(..) | FixTarget::TaskSlotLength(..) => "slot length",
            FixTarget::GroupDeadline(_) => "deadline of a group",
            FixTarget::SegmentWcet(..) => "wcet of a segment",
            FixTarget::Transfer(_) => "transferred budget",
        });
        tally.branch(format!("fix: {fix}"));
    }
}

/// Words with the names of this system and all figures replaced by `_`.
pub(crate) fn without_names(system: &System, words: &str) -> String {
    let named = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        let is = |name: &String| name == word;
        word.starts_with(|c: char| c.is_ascii_digit())
            || system.tasks.iter().map(|t| &t.name).any(is)
            || system.schedulers.iter().map(|s| &s.name).any(is)
            || system.resources.iter().map(|r| &r.name).any(is)
            || system.machine.reserves.iter().map(|r| &r.name).any(is)
    };
    let words = words
        .split(' ')
        .map(|word| if named(word) { "_" } else { word });
    words.collect::<Vec<_>>().join(" ")
}
