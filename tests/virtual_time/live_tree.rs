//! Trees that change while they run: every promise is kept, and wrong rules are found.
//!
//! Random systems declare random changes: tasks and schedulers come, go, come again, move, get
//! other constraints, servers and policies. Each change is carried out when the analysis says.
//! No job may be late, and none may take longer than was promised for the whole run.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod draw;

pub(crate) use draw::named;

use std::collections::BTreeMap;

use punctual_analysis::{Transition, When, admit_changes, admit_transition};
use punctual_generate::Dice;
use punctual_kern::{Decision, Plan, Sink, TraceEvent};
use punctual_model::{
    Class, Cpu, CpuId, Frequency, Instant, Ns, PolicyKind, SchedulerId, Span, Stage, Step, System,
    Task, TaskId, Work,
};
use punctual_policy::AnyPolicy;
use punctual_sim::{CpuInput, Faults, Options};
use punctual_tables::{Carry, Tables};

const EDF: PolicyKind<Ns> = PolicyKind::EarliestDeadlineFirst;
pub(crate) const LENGTH: Span<Ns> = Span::from_ns(900);

/// The longest responses by thread, and the first thing that went wrong.
#[derive(Default)]
struct Watch {
    longest: BTreeMap<usize, u64>,
    wrong: Option<String>,
    carried: u64,
}

impl Sink for Watch {
    fn trace(&mut self, now: Instant, event: TraceEvent) {
        if let TraceEvent::Completed {
            thread,
            job,
            arrival,
            deadline,
            ..
        } = event
        {
            let response = now.since(arrival).ticks();
            let longest = self.longest.entry(thread.index()).or_default();
            *longest = response.max(*longest);
            if now > deadline {
                let late = format!("job {job} of {thread:?} is late at {now:?}, {deadline:?}");
                self.wrong.get_or_insert(late);
            }
        }
    }

    fn decision(&mut self, now: Instant, decision: &Decision) {
        if let Some(refusal) = decision.refused {
            let refused = format!("at {now:?} the core refuses: {}", refusal.words());
            self.wrong.get_or_insert(refused);
        }
    }

    fn begin(&mut self, entry: &punctual_kern::Entry<'_>) {
        use punctual_kern::Event::{Change, Manage};
        self.carried += u64::from(matches!(entry.event, Change { .. } | Manage { .. }));
    }
}

fn carry(system: &System, transition: &Transition) -> Carry {
    let named = |name: &String| system.schedulers.iter().position(|s| s.name == *name);
    match (transition.when, &transition.idle) {
        (When::AtOnce | When::ZeroLag, _) => Carry::Soon,
        (When::Idle, None) => Carry::WhenIdle,
        (When::Idle, Some(idle)) => {
            let place = named(idle).unwrap();
            Carry::WhenBelowIdle(SchedulerId(u16::try_from(place).unwrap()))
        }
        (When::Never, _) => Carry::Never,
    }
}

/// Flies the system; `bend` may spoil its plan.
fn fly(system: &System, carry: &[Carry], bend: impl Fn(&mut Plan)) -> Watch {
    let mut tables = Tables::new(system, Frequency::NANOSECONDS);
    tables.set_duration(system, LENGTH);
    let mut plans = tables.plans(system, Some(LENGTH), carry);
    plans.iter_mut().for_each(bend);
    let options = Options {
        duration: LENGTH,
        seed: 7,
        faults: Faults::default(),
        plans,
    };
    let input = CpuInput {
        shard: tables.cpus[0]
            .build_for(&options.plans[0], AnyPolicy::new)
            .unwrap(),
        sink: Watch::default(),
    };
    let outcome = punctual_sim::run(system, &tables, vec![input], &options, &mut ()).unwrap();
    outcome.cpus.into_iter().next().unwrap().sink
}

/// The longest response that is promised for the whole run.
fn promised(system: &System, transitions: &[Transition], task: &Task) -> Option<u64> {
    let start = punctual::admit(system).unwrap();
    let done = || transitions.iter().filter(|t| t.when != When::Never);
    let rows = done().map(|t| &t.verdict).chain([&start]);
    let rows = rows.flat_map(|verdict| &verdict.tasks);
    let steady = rows
        .filter(|row| row.name == task.name)
        .map(|row| row.response_bound);
    let between = done().flat_map(|t| &t.meanwhile);
    let between = between
        .filter(|(name, _)| *name == task.name)
        .map(|(_, bound)| *bound);
    let all: Vec<_> = steady.chain(between).collect();
    let known: Option<Vec<_>> = all.into_iter().collect();
    known?.into_iter().max().map(Span::as_ns)
}

/// Systems that are admitted at the start, with what the analysis says of their changes.
fn admitted(seed: u64, draws: u64) -> impl Iterator<Item = (u64, System, Vec<Transition>)> {
    (0..draws).filter_map(move |draw_number| {
        let mut dice = Dice::new(seed + draw_number);
        let system = draw::draw(&mut dice)?;
        let start = punctual::at_start(&system);
        if !punctual::admit(&start).ok()?.admitted {
            return None;
        }
        let transitions = admit_changes(&system).ok()?;
        Some((draw_number, system, transitions))
    })
}

/// Counts the slices that come and go.
fn count_slices(
    system: &System,
    transitions: &[Transition],
    tried: &mut BTreeMap<&'static str, u64>,
) {
    let is_slice = |id: SchedulerId| system.schedulers[id.index()].receiver.is_some();
    for (change, transition) in system.changes.iter().zip(transitions) {
        for step in &change.steps {
            let key = match (step, transition.when) {
                (_, When::Never) => continue,
                (Step::Join(id), When::Idle) if is_slice(*id) => "delegates when idle",
                (Step::Join(id), _) if is_slice(*id) => "delegates at once or at zero lag",
                (Step::Leave(id), When::Idle) if is_slice(*id) => "takes back when idle",
                (Step::Leave(id), _) if is_slice(*id) => "takes back at once or at zero lag",
                _ => continue,
            };
            *tried.entry(key).or_default() += 1;
        }
    }
}

#[test]
fn no_job_is_late_and_no_bound_is_exceeded_when_trees_change_as_the_analysis_allows() {
    let mut tried: BTreeMap<&str, u64> =
        BTreeMap::from([("delegates when idle", 0), ("takes back when idle", 0)]);
    let (mut flown, mut carried, mut came) = (0, 0, 0);
    for (seed, system, transitions) in admitted(1_000, 6_000) {
        let carry: Vec<Carry> = transitions.iter().map(|t| carry(&system, t)).collect();
        let watch = fly(&system, &carry, |_| {});
        let said: Vec<_> = transitions.iter().map(|t| (t.when, &t.ground)).collect();
        assert_eq!(watch.wrong, None, "seed {seed}: {said:?} {system:#?}");
        for (index, (task, _)) in Tables::new(&system, Frequency::NANOSECONDS).cpus[0]
            .threads
            .iter()
            .enumerate()
        {
            let absent = punctual_model::Stage::at_start(&system)
                .task(*task)
                .is_none();
            let task = &system.tasks[task.index()];
            let sporadic = matches!(task.class, Class::Sporadic { .. });
            let runs = watch.longest.contains_key(&index);
            came += u64::from(absent && sporadic && runs);
            let longest = watch.longest.get(&index).copied().unwrap_or(0);
            let bound = promised(&system, &transitions, task);
            let kept = bound.is_none_or(|bound| longest <= bound);
            assert!(
                kept,
                "seed {seed}: {longest} {bound:?} {said:?} {system:#?}"
            );
        }
        flown += 1;
        carried += watch.carried;
        let words = [
            "joins",
            "leaves",
            "covers",
            "bandwidth",
            "together",
            "moves",
            "meet",
            "supply",
            "two policies",
        ];
        for word in words {
            let with = transitions.iter().filter(|t| t.ground.contains(word));
            *tried.entry(word).or_default() += with.count() as u64;
        }
        count_slices(&system, &transitions, &mut tried);
        let inside = transitions.iter().filter(|t| t.idle.is_some()).count();
        *tried.entry("inside").or_default() += inside as u64;
        let refused = transitions.iter().filter(|t| t.when == When::Never).count();
        *tried.entry("refused").or_default() += refused as u64;
    }
    assert!(flown > 500 && carried > 1_000, "{flown} {carried}");
    assert!(came > 50, "sporadic tasks that came and ran: {came}");
    assert!(tried.values().all(|&n| n > 2), "{tried:?}");
}

#[test]
fn a_run_with_changes_obeys_every_rule_and_is_replayed_and_played_again() {
    let (mut carried, mut supplied, mut reordered) = (0, 0, 0);
    for (seed, mut system, transitions) in admitted(90_000, 600) {
        // The library counts in the units of files.
        system.run.duration = Some(LENGTH);
        let options = punctual::SimOptions::default();
        let mut none = punctual::Workloads::new();
        let log = punctual::simulate(&system, &options, &mut none, &mut |_| true).unwrap();
        let broken = punctual_rules::check(&log);
        assert!(broken.is_empty(), "seed {seed}: {broken:?} {system:#?}");
        assert!(punctual::replay(&log).is_ok(), "seed {seed}");
        let mut text = Vec::new();
        punctual_trace::text::write(&log, &mut text).unwrap();
        let read = punctual_trace::text::read(&mut &text[..]).unwrap();
        assert!(read == log, "seed {seed}");
        let report = punctual::judge(&log);
        // The arrivals of a sporadic task stay as they are; a new separation may drop some.
        assert!(report.misses.is_empty(), "seed {seed}: {report}");
        let kept = report.tasks.iter().all(|task| !task.exceeds_bound());
        assert!(kept, "seed {seed}: {report} {system:#?}");
        assert_eq!(report.changes.len(), transitions.len());
        carried += report
            .changes
            .iter()
            .filter(|c| c.done_ns.is_some())
            .count();
        let of_supply = transitions.iter().filter(|t| t.ground.contains("supply"));
        supplied += of_supply.count();
        let policies = log.cpus[0].records.iter();
        let policies = policies.filter(|(_, record)| {
            use punctual_trace::Record::Trace;
            matches!(record, Trace(TraceEvent::PolicyReplaced { .. }))
        });
        reordered += policies.count();
        // Its changes come at the recorded instants, if not in the same place within them.
        let again = punctual::what_if(&log, &[], &mut |_| true).unwrap().log;
        let again = punctual::judge(&again);
        assert!(again.misses.is_empty(), "seed {seed}: {again}");
        let jobs = |report: &punctual::RunReport| -> u64 {
            report.tasks.iter().map(|task| task.jobs).sum()
        };
        assert_eq!(jobs(&again), jobs(&report), "seed {seed}");
    }
    assert!(carried > 100 && supplied > 2, "{carried} {supplied}");
    assert!(reordered > 10, "policies that were replaced: {reordered}");
}

/// How many runs go wrong when the plan of admitted systems is spoiled so.
fn found(
    carry_as: impl Fn(&System, &[Transition]) -> Vec<Carry>,
    bend: impl Fn(&mut Plan),
) -> usize {
    let wrong = admitted(50_000, 3_000).filter(|(_, system, transitions)| {
        fly(system, &carry_as(system, transitions), &bend)
            .wrong
            .is_some()
    });
    wrong.count()
}

fn honest(system: &System, transitions: &[Transition]) -> Vec<Carry> {
    transitions.iter().map(|t| carry(system, t)).collect()
}

#[test]
fn a_change_that_does_not_wait_for_the_idle_cpu_is_found() {
    let hasty = |_: &System, transitions: &[Transition]| {
        let soon = |t: &Transition| match t.when {
            When::Never => Carry::Never,
            _ => Carry::Soon,
        };
        transitions.iter().map(soon).collect()
    };
    assert!(found(hasty, |_| {}) > 0);
}

#[test]
fn a_refused_change_that_is_carried_out_is_found() {
    let careless =
        |_: &System, transitions: &[Transition]| vec![Carry::WhenIdle; transitions.len()];
    assert!(found(careless, |_| {}) > 0);
}

#[test]
fn a_task_that_moves_in_the_midst_of_a_job_is_found() {
    let at_once = |plan: &mut Plan| {
        plan.steps_mut()
            .iter_mut()
            .for_each(|step| step.quiet.clear())
    };
    assert!(found(honest, at_once) > 0);
}

/// Two tasks fill a CPU; one of them stops at 5, and another comes at 6.
pub(crate) fn stop_and_start() -> System {
    let periodic = |name: &str, (wcet, period, deadline): (u64, u64, u64)| {
        let class = Class::Periodic {
            period: Span::from_ns(period),
            wcet: Work::from_ns(wcet),
            relative_deadline: Span::from_ns(deadline),
        };
        Task::new(name, CpuId(0), class)
    };
    let cpu = Cpu {
        name: "0".into(),
        host: None,
        policy: EDF,
    };
    System {
        cpus: vec![cpu],
        tasks: vec![
            periodic("goes", (5, 10, 10)),
            periodic("stays", (5, 10, 10)),
            periodic("comes", (2, 10, 4)),
        ],
        changes: vec![
            named(0, 5, vec![Step::Stop(TaskId(0))]),
            named(1, 6, vec![Step::Start(TaskId(2))]),
        ],
        ..System::default()
    }
}

#[test]
fn what_stopped_just_before_still_counts_when_another_starts() {
    let system = stop_and_start();
    let transitions = admit_changes(&system).unwrap();
    let when: Vec<When> = transitions.iter().map(|t| t.when).collect();
    assert_eq!(when, [When::AtOnce, When::Idle]);
    // Alone each of the two would be at once.
    let mut stage = Stage::at_start(&system);
    stage.apply(&system.changes[0]).unwrap();
    let before = stage.system();
    stage.apply(&system.changes[1]).unwrap();
    let forgets = admit_transition(&[before], stage.system()).unwrap();
    assert_eq!(forgets.when, When::AtOnce);
    let honest = fly(&system, &honest(&system, &transitions), |_| {});
    assert_eq!(honest.wrong, None);
    let late = fly(&system, &[Carry::Soon; 2], |_| {}).wrong;
    assert!(late.is_some_and(|late| late.contains("late")));
}
