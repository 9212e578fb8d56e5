//! Groups: does the plan that is accepted come true, and does a refusal change nothing?
//!
//! Drawn groups of segments, off line, periodic, asked for and spawned, stand on one to three CPUs,
//! on the whole of one, in slots or behind a server. The analysis plans them, and virtual time
//! executes the plan and answers requests: with the worst case, with early ends, with overruns and
//! with time that nobody has declared. The words of the model judge the segments of a run.

mod answers;
mod draw;
mod look;
mod play;

use punctual::{Faults, MissingTime, RunReport};
use punctual_analysis::{PlanVerdict, Verdict, admit};
use punctual_generate::Random;
use punctual_model::{GroupId, OnOverrun, Request, Span, System};
use punctual_trace::Record;

use crate::describe::describe;
use crate::tally::{Tally, Violation};
pub use look::{Broken, Contradiction, Promise};
use look::{Look, Start, burn, starts};
pub use play::{Misplan, Played};

/// The disturbance of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Disturbed {
    /// All segments take their worst case.
    Nothing,
    /// Segments end early, and the time that the file declares is missing.
    EarlyEnds,
    /// Some segments would take longer than their worst case.
    Overruns,
    /// Time is missing that nobody has declared.
    MissingTime,
}

impl Disturbed {
    /// All of them.
    pub const ALL: [Disturbed; 4] = [
        Disturbed::Nothing,
        Disturbed::EarlyEnds,
        Disturbed::Overruns,
        Disturbed::MissingTime,
    ];
}

/// Draws groups, and tries to prove their planner and their dispatchers wrong.
#[derive(Clone, Debug)]
pub struct GroupJudge {
    /// A seed and an index give a system.
    pub seed: u64,
    /// The mistake of the planner of the simulation; [`rightly`]: none.
    pub misplan: Misplan,
}

/// The planner as it is.
pub fn rightly(_: &mut punctual_sim::Groups) {}

/// One system, disturbed and executed.
#[derive(Clone, Debug)]
pub struct GroupRun {
    /// The system as it was executed.
    pub system: System,
    /// Its run.
    pub played: Played,
    /// Its promise.
    pub promise: Promise,
}

impl GroupJudge {
    /// The system with this number.
    pub fn draw(&self, index: u64) -> System {
        draw::draw(&mut Random::at(self.seed, &[index, 40]))
    }

    /// Executes this system, drawn before and answered so.
    ///
    /// # Errors
    /// Why the run does not begin, or is not complete.
    pub fn play(
        &self,
        (index, system): (u64, &System),
        verdict: &Verdict,
        answer: &PlanVerdict,
        disturbed: Disturbed,
    ) -> Result<GroupRun, String> {
        let random = &mut Random::at(self.seed, &[index, 41, disturbed as u64]);
        let (system, throttled) = worked(random, system, disturbed);
        let faults = faults(random, &system, disturbed);
        let played = play::play(&system, answer, (&faults, index), self.misplan)?;
        let whole = system.schedulers.is_empty() && system.machine.missing_time.is_none();
        let sound = verdict.admitted || whole;
        // A job that is stopped at the end of a slot or a budget needs the processor once more.
        let stops = whole || disturbed != Disturbed::Overruns;
        let in_time = sound && stops && !throttled && disturbed != Disturbed::MissingTime;
        let on_plan = in_time && faults.missing.is_empty();
        Ok(GroupRun {
            system,
            played,
            promise: Promise { in_time, on_plan },
        })
    }

    /// Judges the groups of this system; the kind of the first contradiction.
    pub fn judge(&self, index: u64, tally: &mut Tally) -> Option<Broken> {
        let system = self.draw(index);
        tally.systems += 1;
        let broken = |situation: &str, what: String, system: &System| Violation {
            index,
            situation: situation.into(),
            what,
            system: describe(system),
        };
        if let Err(errors) = system.validate() {
            let violation = broken("drawing", format!("{errors:?}"), &system);
            tally.violations.push(violation);
            return Some(Broken::Run);
        }
        let verdict = admit(&system);
        let verdict = match &verdict {
            Ok(verdict) => verdict,
            Err(error) => {
                *tally.unanswered.entry(error.to_string()).or_default() += 1;
                return None;
            }
        };
        let answer = verdict.plan.as_ref()?;
        match verdict.admitted {
            true => tally.admitted += 1,
            false => tally.refused += 1,
        }
        let other = usize::try_from(index % 3).unwrap_or(0) + 1;
        let mut runs = Vec::with_capacity(2);
        for disturbed in [Disturbed::Nothing, Disturbed::ALL[other]] {
            let name = format!("{disturbed:?}");
            tally.situations += 1;
            match self.situation((index, &system), (verdict, answer), disturbed, tally) {
                Ok(run) => {
                    count(&run, tally);
                    runs.push((name, run));
                }
                Err((kind, what)) => {
                    tally.violations.push(broken(&name, what, &system));
                    return Some(kind);
                }
            }
        }
        for (name, run) in &runs {
            match self.as_the_analysis(run, answer) {
                Ok(0) => {}
                Ok(_) => tally.branch(GROUP_BRANCHES[14].to_owned()),
                Err((kind, what)) => {
                    tally.violations.push(broken(name, what, &system));
                    return Some(kind);
                }
            }
        }
        None
    }

    /// One run of a system, judged.
    fn situation(
        &self,
        (index, system): (u64, &System),
        (verdict, answer): (&Verdict, &PlanVerdict),
        disturbed: Disturbed,
        tally: &mut Tally,
    ) -> Result<GroupRun, Contradiction> {
        let run = self.play((index, system), verdict, answer, disturbed);
        let run = run.map_err(|what| (Broken::Run, what))?;
        self.contradiction(&run, verdict)?;
        if disturbed == Disturbed::Nothing {
            let tried = self.without_the_refused(&run, (index, answer))?;
            tally.branch(GROUP_BRANCHES[10 + usize::from(!tried)].to_owned());
        }
        Ok(run)
    }

    /// Each request is answered as by the analysis beside the same plan: how many were compared.
    /// The analysis is told of starts, ends and kills.
    ///
    /// # Errors
    /// The first answer that differs.
    pub fn as_the_analysis(
        &self,
        run: &GroupRun,
        answer: &PlanVerdict,
    ) -> Result<u64, Contradiction> {
        if !run.promise.on_plan {
            return Ok(0);
        }
        let compared = answers::compare(&run.system, answer, &run.played);
        compared.map_err(|what| (Broken::Answer, what))
    }

    /// Holds a run against its promise, and against the words of the model.
    ///
    /// # Errors
    /// The first contradiction, in words.
    pub fn contradiction(&self, run: &GroupRun, verdict: &Verdict) -> Result<(), Contradiction> {
        Look::new(&run.system, &run.played, run.promise).judge()?;
        if let Some(step) = refused_step(&run.played) {
            let words = format!("a CPU refuses a step of its plan: {step}");
            return Err((Broken::Step, words));
        }
        if verdict.admitted && run.promise.in_time {
            let report = RunReport::new(&run.played.log);
            let own = report.tasks.iter().take(run.system.tasks.len());
            if let Some(late) = own.into_iter().find(|task| task.misses > 0) {
                let words = format!("{} is late {} times", late.name, late.misses);
                return Err((Broken::Deadline, words));
            }
        }
        Ok(())
    }

    /// The last request was refused: without it all others are planned at the same instants.
    /// `false`: there was no such request, or there is a later one without it.
    fn without_the_refused(
        &self,
        run: &GroupRun,
        (index, answer): (u64, &PlanVerdict),
    ) -> Result<bool, Contradiction> {
        let asked = run.played.outcomes.iter().filter(|outcome| {
            let request = &run.system.groups[outcome.kind].request;
            matches!(request, Request::OnLine { .. })
        });
        let Some(last) = asked.max_by_key(|outcome| outcome.requested) else {
            return Ok(false);
        };
        let is_last = |played: &Played| {
            let mut others = played.outcomes.iter().filter(|other| *other != last);
            !others.any(|other| other.requested >= last.requested)
        };
        if last.refused.is_none() || !is_last(&run.played) {
            return Ok(false);
        }
        let kind = last.kind;
        let unasked = |groups: &mut punctual_sim::Groups| {
            (self.misplan)(groups);
            let last = groups.requests.iter().rposition(|one| one.1 == kind);
            let _ = last.map(|last| groups.requests.remove(last));
        };
        let again = play::play(&run.system, answer, (&Faults::default(), index), unasked);
        let again = again.map_err(|what| (Broken::Run, what))?;
        // Nothing is held back without it. So a segment may end earlier and ask for a child while
        // requests are still planned.
        if !is_last(&again) {
            return Ok(false);
        }
        // One that is refused has executed nothing.
        match moved(&run.played, &again).or_else(|| moved(&again, &run.played)) {
            Some(one) => {
                let words = format!("a request that is refused moves a segment: {one:?}");
                Err((Broken::Refusal, words))
            }
            None => Ok(true),
        }
    }
}

/// A segment that was executed in one of two runs, and is planned elsewhere or missing in the
/// other. A kill may come earlier there, and then it is not executed.
fn moved(one: &Played, other: &Played) -> Option<Start> {
    let (own, theirs) = (starts(one), starts(other));
    let is_killed = |start: &Start| {
        let mut same = other
            .outcomes
            .iter()
            .filter(|outcome| (outcome.kind, outcome.arrival.ticks()) == (start.0.0, start.0.1));
        same.any(|outcome| outcome.killed.is_some())
    };
    own.into_iter().find(|start| match theirs.get(&start.0) {
        Some(planned) => *planned != start.1,
        None => !is_killed(start),
    })
}

/// The first step of a plan that a shard has refused.
fn refused_step(played: &Played) -> Option<String> {
    for cpu in &played.log.cpus {
        let mut last = None;
        for (_, record) in &cpu.records {
            match record {
                Record::Entry(entry) => last = Some(entry.event),
                Record::Decision(decision) => {
                    let refused = decision
                        .refused
                        .filter(|_| matches!(last, Some(punctual::kern::Event::Agenda(_))));
                    if let Some(refused) = refused {
                        return Some(format!("{refused:?} of {last:?}"));
                    }
                }
                Record::Trace(_) => {}
            }
        }
    }
    None
}

/// The work of segments in this situation, and whether one may take time that it has not.
fn worked(random: &mut Random, system: &System, disturbed: Disturbed) -> (System, bool) {
    let mut system = system.clone();
    let mut throttled = false;
    for group in &mut system.groups {
        for segment in &mut group.segments {
            let wcet = segment.wcet.as_ns();
            let away = segment.wcet_away.map_or(wcet, |away| away.as_ns());
            segment.work = match disturbed {
                Disturbed::EarlyEnds if random.happens(600) => burn(random.within(1, wcet)),
                Disturbed::Overruns if random.happens(200) => {
                    throttled |= group.on_overrun != OnOverrun::Stop;
                    burn(away + random.within(1, 100))
                }
                Disturbed::Overruns if random.happens(300) => burn(random.within(1, wcet)),
                _ => None,
            };
        }
    }
    (system, throttled)
}

fn faults(random: &mut Random, system: &System, disturbed: Disturbed) -> Faults {
    let mut faults = Faults::default();
    let declared = system.machine.missing_time.as_ref();
    match (disturbed, declared) {
        (Disturbed::EarlyEnds, Some(missing)) => faults.missing.push(MissingTime {
            cpu: None,
            length: missing.budget.as_span(),
            every: missing.period,
        }),
        (Disturbed::MissingTime, _) => faults.missing.push(MissingTime {
            cpu: None,
            length: Span::from_ns(random.within(1, 90)),
            every: Span::from_ns(random.within(200, 900)),
        }),
        _ => {}
    }
    faults
}

/// Counts what a long run must have seen.
pub(crate) const GROUP_BRANCHES: [&str; 15] = [
    "group: done",
    "group: refused",
    "group: out of time",
    "group: removed for another",
    "group: killed",
    "group: cleaned up",
    "group: child planned with its parent",
    "group: child asked for",
    "segment: started early",
    "segment: started late",
    "run again without the request that was refused",
    "run once",
    "group: its parent would wait too long",
    "group: planned in the time that is allowed",
    "requests answered as by the analysis beside the plan",
];

fn count(run: &GroupRun, tally: &mut Tally) {
    let mut seen = [false; GROUP_BRANCHES.len()];
    for (place, outcome) in run.played.outcomes.iter().enumerate() {
        let out_of_time =
            |refusal: &punctual_sim::Refusal| refusal.why == punctual_sim::Why::OutOfTime;
        seen[0] |= outcome.done.is_some();
        seen[1] |= outcome.refused.is_some();
        seen[2] |= outcome.refused.as_ref().is_some_and(out_of_time);
        seen[3] |= outcome.removed.is_some();
        seen[4] |= outcome.killed.is_some();
        seen[5] |= !outcome.cleaned.is_empty();
        seen[6] |= outcome.family != place;
        seen[7] |= outcome.origin != outcome.family;
        let at_once = outcome
            .refused
            .as_ref()
            .is_some_and(|no| out_of_time(no) && no.evaluations == 0);
        let child = run
            .system
            .longest_wait(GroupId(u16::try_from(outcome.kind).unwrap_or(u16::MAX)));
        seen[12] |= at_once && child.is_some_and(|most| most < run.system.planning.within);
        seen[13] |= !at_once
            && !run.system.planning.evaluation.is_zero()
            && outcome.answered > outcome.requested;
        for one in outcome.executions.iter().flatten() {
            seen[8] |= one.start < one.planned;
            seen[9] |= one.start > one.planned;
        }
    }
    for (branch, _) in GROUP_BRANCHES.iter().zip(seen).filter(|(_, seen)| *seen) {
        tally.branch((*branch).to_owned());
    }
}
