//! Groups in virtual time: what the plan guarantees, and logs that break it

use punctual_generate::Dice;
use punctual_model::{
    Arrivals, Class, CpuId, Frequency, Importance, Instant, Mode, OnOverrun, PolicyKind, Span,
    System, Task, TaskId, ThreadId, Work,
};
use punctual_planner::{Capacities, Overload, Search, Use};
use punctual_policy::AnyPolicy;
use punctual_rules::{Rule, check};
use punctual_sim::{
    CpuInput, Execution, Faults, GroupKind, GroupOutcome, Groups, Guests, MissingTime, OffLine,
    Options, SegmentKind, run_with,
};
use punctual_tables::{CpuTables, Tables};
use punctual_trace::{Header, Log, Mode as LogMode, Recorder, replay, text};

use crate::common::cpu;

const RESOURCES: usize = 2;
const FLOWS: usize = 5;
const END: u64 = 1_500;

/// What disturbs a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Disturbed {
    Nothing,
    MissingTime,
    Overruns,
}

fn ticks(ticks: u64) -> Span {
    Span::from_ticks(ticks)
}

/// One to four segments of three flows, by and by dearer; some kill or ask for another kind.
fn kind(dice: &mut Dice, kinds: usize, disturbed: Disturbed) -> GroupKind {
    let mut segments: Vec<SegmentKind> = Vec::new();
    for place in 0..1 + dice.index(4) {
        let flow = dice.index(FLOWS);
        let wcet = 2 + dice.below(10);
        let mut uses = vec![Use {
            resource: RESOURCES + flow,
            mode: Mode::Exclusive,
        }];
        for resource in 0..RESOURCES {
            let mode = [Mode::Shared, Mode::Exclusive][dice.index(2)];
            uses.extend(dice.one_in(3).then_some(Use { resource, mode }));
        }
        let own = (0..place).rev().find(|&one| segments[one].flow == flow);
        let other = (place > 0 && dice.one_in(3)).then(|| dice.index(place));
        let after = own.into_iter().chain(other.filter(|&one| Some(one) != own));
        let overruns = disturbed == Disturbed::Overruns && dice.one_in(6);
        let executes = match overruns {
            true => wcet + 1 + dice.below(9),
            false => [wcet, 1 + dice.below(wcet)][dice.index(2)],
        };
        let rarely = |dice: &mut Dice| {
            let one = dice.one_in(10).then(|| dice.index(kinds));
            one.into_iter().collect::<Vec<usize>>()
        };
        segments.push(SegmentKind {
            flow,
            release: ticks(dice.below(20)),
            deadline: ticks(60 + dice.below(120)),
            wcet: Work::from_ticks(wcet),
            budgets: [Work::from_ticks(wcet); 2],
            uses,
            location: None,
            after: after.collect(),
            executes: Some(Work::from_ticks(executes)),
            cleanup: Work::from_ticks([0, 1 + dice.below(wcet)][dice.index(2)]),
            spawns: None,
            kills: rarely(dice),
            asks: rarely(dice),
        });
    }
    GroupKind {
        importance: Importance(u32::try_from(dice.below(3)).unwrap_or(0)),
        max_wait: dice.one_in(3).then(|| ticks(4 + dice.below(20))),
        off_line: false,
        segments,
    }
}

/// A system whose tasks are the flows on each CPU, and one that fills gaps.
fn system(cpus: usize) -> System {
    let mut system = System::default();
    for number in 0..cpus {
        system.cpus.push(cpu(&number.to_string(), PolicyKind::Fifo));
    }
    for flow in 0..FLOWS {
        for on in (0..).map(CpuId).take(cpus) {
            let class = Class::Sporadic {
                min_separation: Span::from_ns(1),
                wcet: Work::from_ns(1),
                relative_deadline: Span::from_ns(1),
            };
            let mut task = Task::new(format!("{flow} on {}", on.0), on, class);
            task.arrivals = Arrivals::External;
            task.on_overrun = OnOverrun::Stop;
            system.tasks.push(task);
        }
    }
    for on in (0..).map(CpuId).take(cpus) {
        let name = format!("background {}", on.0);
        system.tasks.push(Task::new(name, on, Class::Aperiodic));
    }
    system
}

fn groups(dice: &mut Dice, cpus: usize, disturbed: Disturbed) -> Groups {
    let capacities = Capacities::new(60, cpus, RESOURCES + FLOWS);
    let kinds = 6;
    let mut requests = Vec::new();
    let mut now = 0;
    while now < END - 400 {
        requests.push((Instant::from_ticks(now), dice.index(kinds)));
        now += dice.below(25);
    }
    let threads = |_| {
        (0..)
            .map(|flow| ThreadId::new(flow, 0))
            .take(FLOWS)
            .collect()
    };
    Groups {
        capacities,
        executors: (0..cpus).map(|cpu| (cpu, threads(cpu))).collect(),
        bound: ticks(1 + dice.below(8)),
        search: Search::default(),
        pace: None,
        overload: [Overload::Keep, Overload::Shed][dice.index(2)],
        kinds: (0..kinds).map(|_| kind(dice, kinds, disturbed)).collect(),
        plan: OffLine::default(),
        requests,
    }
}

struct Run {
    log: Log,
    groups: Groups,
    outcomes: Vec<GroupOutcome>,
}

fn run(seed: u64, disturbed: Disturbed) -> Run {
    let dice = &mut Dice::new(seed);
    let cpus = 1 + dice.index(3);
    let groups = groups(dice, cpus, disturbed);
    let system = system(cpus);
    let mut tables = Tables::new(&system, Frequency::NANOSECONDS);
    let planned: Vec<TaskId> = (0..).map(TaskId).take(FLOWS * cpus).collect();
    tables.add_agendas(&planned, 120);
    let duration = Span::from_ns(END);
    tables.set_duration(&system, duration);
    let mut faults = Faults::default();
    if disturbed == Disturbed::MissingTime {
        faults.missing.push(MissingTime {
            cpu: None,
            length: Span::from_ns(1 + dice.below(9)),
            every: Span::from_ns(40 + dice.below(60)),
        });
    }
    punctual_sim::prepare(&system, &mut tables, &faults);
    let input = |cpu: &CpuTables| CpuInput {
        shard: cpu.build(AnyPolicy::new).expect("valid tables"),
        sink: Recorder::with_capacity(1 << 18).expect("memory"),
    };
    let options = Options {
        duration,
        seed,
        faults,
        plans: Vec::new(),
    };
    let guests = Guests {
        groups: Some(groups.clone()),
        ..Guests::default()
    };
    let inputs = tables.cpus.iter().map(input).collect();
    let outcome = run_with(&system, &tables, inputs, guests, &options, &mut ());
    let outcome = outcome.expect("it runs");
    let header = Header {
        platform: "sim".into(),
        mode: LogMode::Virtual,
        duration,
        end: outcome.end,
        ..Header::default()
    };
    let mut log = Log::new(header, &system, tables);
    for (at, cpu) in outcome.cpus.into_iter().enumerate() {
        let _ = log.add_cpu(&system.cpus[at].name, None, cpu.sink);
    }
    Run {
        log,
        groups,
        outcomes: outcome.groups,
    }
}

/// Each segment that was executed: its group and place, and when.
fn executed(run: &Run) -> Vec<(usize, usize, Execution)> {
    let outcomes = run.outcomes.iter().enumerate();
    let of = |(group, outcome): (usize, &GroupOutcome)| {
        let all = outcome.executions.iter().enumerate();
        let done = all.filter_map(move |(place, one)| one.map(|one| (group, place, one)));
        done.collect::<Vec<_>>()
    };
    outcomes.flat_map(of).collect()
}

/// Whether executions excluded each other and came in order, by what was asked alone.
fn judge(run: &Run, seed: u64) {
    let segment =
        |group: usize, place: usize| &run.groups.kinds[run.outcomes[group].kind].segments[place];
    let all = executed(run);
    for (at, &(group, place, one)) in all.iter().enumerate() {
        let own = segment(group, place);
        for &(other_group, other_place, other) in &all[at + 1..] {
            let apart = one.end <= other.start || other.end <= one.start;
            let theirs = segment(other_group, other_place);
            let conflict = own.uses.iter().any(|a| {
                let with = theirs.uses.iter().filter(|b| a.resource == b.resource);
                with.into_iter()
                    .any(|b| a.mode == Mode::Exclusive || b.mode == Mode::Exclusive)
            });
            let together = !apart && (conflict || one.cpu == other.cpu);
            assert!(
                !together,
                "seed {seed}: {own:?} {one:?} beside {theirs:?} {other:?}"
            );
        }
        for &before in &own.after {
            let before = run.outcomes[group].executions[before];
            let done = before.is_some_and(|before| before.end <= one.start);
            assert!(done, "seed {seed}: {own:?} at {one:?} before {before:?}");
        }
        let released = run.outcomes[group].arrival.saturating_add(own.release);
        assert!(
            one.start >= released,
            "seed {seed}: {one:?} before {released:?}"
        );
    }
}

#[derive(Default, Debug)]
struct Counts {
    done: u32,
    refused: u32,
    removed: u32,
    killed: u32,
    cleaned: u32,
    early: u32,
    late: u32,
}

fn total(disturbed: Disturbed, seeds: u64) -> Counts {
    let mut counts = Counts::default();
    for seed in 0..seeds {
        let run = run(seed, disturbed);
        assert_eq!(check(&run.log), [], "seed {seed}");
        judge(&run, seed);
        let replayed = replay(&run.log, AnyPolicy::new);
        assert!(replayed.is_ok(), "seed {seed}: {:?}", replayed.err());
        for outcome in &run.outcomes {
            let gone = outcome.removed.is_some() || outcome.killed.is_some();
            // The run ends when all would be done if no time were missing.
            let late = disturbed == Disturbed::MissingTime
                && outcome.requested >= Instant::from_ticks(END - 300);
            let fine = outcome.refused.is_some() || gone || outcome.done.is_some() || late;
            assert!(
                fine,
                "seed {seed}: a group that was guaranteed is lost: {outcome:?}"
            );
            if outcome.removed.is_some() || outcome.refused.is_some() {
                assert!(
                    outcome.executions.iter().all(Option::is_none),
                    "seed {seed}"
                );
            }
            let missed = outcome.missed && disturbed == Disturbed::Nothing;
            assert!(!missed, "seed {seed}: {outcome:?}");
            counts.done += u32::from(outcome.done.is_some());
            counts.refused += u32::from(outcome.refused.is_some());
            counts.removed += u32::from(outcome.removed.is_some());
            counts.killed += u32::from(outcome.killed.is_some());
            counts.cleaned += u32::try_from(outcome.cleaned.len()).unwrap_or(0);
            for one in outcome.executions.iter().flatten() {
                counts.early += u32::from(one.start < one.planned);
                counts.late += u32::from(one.start > one.planned);
            }
        }
    }
    counts
}

#[test]
fn no_group_that_is_admitted_misses_and_no_segment_starts_later_than_planned() {
    let counts = total(Disturbed::Nothing, 300);
    assert_eq!(counts.late, 0, "{counts:?}");
    let seen = [counts.done, counts.refused, counts.killed, counts.early];
    assert!(seen.iter().all(|&count| count > 500), "{counts:?}");
    assert!(counts.removed > 50 && counts.cleaned > 20, "{counts:?}");
}

#[test]
fn missing_time_makes_plans_late_and_never_wrong() {
    let counts = total(Disturbed::MissingTime, 150);
    assert!(counts.late > 500, "{counts:?}");
}

#[test]
fn an_overrun_is_stopped_and_hurts_nobody_else() {
    let counts = total(Disturbed::Overruns, 150);
    assert_eq!(counts.late, 0, "{counts:?}");
    assert!(counts.done > 500, "{counts:?}");
}

/// A log breaks this rule when lines of a kind are changed: all that `change` takes, or the first.
fn rejected(rule: Rule, kind: &str, all: bool, change: impl Fn(&mut Vec<String>) -> bool) {
    let run = run(1, Disturbed::Nothing);
    let mut bytes = Vec::new();
    text::write(&run.log, &mut bytes).expect("memory takes it");
    let written = String::from_utf8(bytes).expect("text");
    let mut changed = false;
    let mut lines = Vec::new();
    for line in written.lines() {
        let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let is_it = words.get(1).is_some_and(|word| word == kind);
        if is_it && (all || !changed) {
            changed |= change(&mut words);
        }
        lines.push(words.join(" "));
    }
    assert!(changed, "there is no such {kind}");
    let changed = lines.join("\n") + "\n";
    let log = text::read(&mut changed.as_bytes()).expect("a log that is read");
    let found = check(&log);
    let broken = found.iter().any(|violation| violation.rule == rule);
    assert!(broken, "{rule:?} is kept with another {kind}: {found:?}");
}

fn number(words: &[String], place: usize) -> u64 {
    let word = words.get(place + 2).and_then(|word| word.parse().ok());
    word.unwrap_or(0)
}

fn set(words: &mut [String], place: usize, to: u64) -> bool {
    words[place + 2] = to.to_string();
    true
}

#[test]
fn a_plan_that_is_not_followed_is_rejected() {
    // Another number, or a start that is not told of its plan.
    rejected(Rule::PlanFollowed, "segment-started", false, |words| {
        let next = number(words, 0) + 1;
        set(words, 0, next)
    });
    // A release after the start, a cutoff before it, a kill of somebody else.
    rejected(Rule::PlanFollowed, "plan-stage", true, |words| {
        let later = number(words, 4) + 1;
        set(words, 3, later)
    });
    rejected(Rule::PlanFollowed, "plan-hold", true, |words| {
        words[3] != "-" && set(words, 1, 0)
    });
    rejected(Rule::PlanFollowed, "plan-kill", true, |words| {
        set(words, 1, 59)
    });
}

#[test]
fn a_segment_that_does_not_wait_for_others_is_rejected() {
    rejected(Rule::PlanNeeds, "plan-need", true, |words| {
        set(words, 2, 9_999)
    });
}

#[test]
fn a_start_after_the_planned_one_is_rejected_where_nothing_disturbs() {
    rejected(Rule::PlanInTime, "plan-stage", true, |words| {
        // One that starts as soon as it is in force.
        let now = number(words, 0);
        now > 0 && number(words, 4) == now && set(words, 4, 0)
    });
}
