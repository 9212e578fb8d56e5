//! Planned groups of files: executed as guaranteed, also when others are refused or removed.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;

use punctual::{Log, SimOptions, Span, System, Workloads, judge, simulate};
use punctual_model::{Arrivals, Importance, Instant, Overload, Request};
use punctual_trace::{Fate, RequestInfo, RunVerdict};

use crate::common::examples::{example, is_replayed, obeys_the_rules};

const SECOND: u64 = 1_000_000_000;

fn run(system: &System, seed: u64) -> Log {
    let options = SimOptions {
        seed: Some(seed),
        ..SimOptions::default()
    };
    simulate(system, &options, &mut Workloads::new(), &mut |_| true).unwrap()
}

/// The requests of a group.
fn of<'l>(log: &'l Log, name: &str) -> Vec<&'l RequestInfo> {
    let group = log
        .groups
        .iter()
        .position(|group| group.name == name)
        .unwrap();
    log.requests
        .iter()
        .filter(|request| request.group == group)
        .collect()
}

/// One reaction of the vehicle: the turn and the halt for the object that it saw.
#[derive(Default)]
struct Reaction<'l> {
    turn: Option<&'l RequestInfo>,
    halt: Option<&'l RequestInfo>,
}

/// How many turns and halts there were; every reaction has exactly one of them, in its time.
fn reactions(log: &Log, seed: u64) -> (u32, u32, u32) {
    let mut reactions: BTreeMap<Instant<_>, Reaction<'_>> = BTreeMap::new();
    for react in of(log, "react") {
        assert_eq!(react.fate, Fate::Done, "seed {seed}: {react:?}");
        reactions.entry(react.arrival).or_default();
    }
    for turn in of(log, "turn") {
        reactions.get_mut(&turn.arrival).unwrap().turn = Some(turn);
    }
    for halt in of(log, "halt") {
        reactions.get_mut(&halt.arrival).unwrap().halt = Some(halt);
    }
    let (mut turns, mut halts, mut refused) = (0, 0, 0);
    for (arrival, Reaction { turn, halt }) in reactions {
        let halt = halt.unwrap();
        let after = |request: &RequestInfo| request.at.since(arrival).ticks();
        let turned = turn.is_some_and(|turn| {
            assert!(
                turn.executed == 0 || turn.fate == Fate::Done,
                "seed {seed}: {turn:?}"
            );
            turn.fate == Fate::Done && after(turn) <= 2 * SECOND
        });
        let halted = halt.fate == Fate::Done;
        assert_eq!(halted, halt.executed > 0, "seed {seed}: {halt:?}");
        let in_time = (2 * SECOND..=4 * SECOND).contains(&after(halt));
        assert!(!halted || in_time, "seed {seed}: {halt:?}");
        assert!(turned != halted, "seed {seed}: {turn:?} {halt:?}");
        turns += u32::from(turned);
        halts += u32::from(halted);
        refused += u32::from(turn.is_some_and(|turn| turn.fate == Fate::Refused));
    }
    (turns, halts, refused)
}

#[test]
fn a_vehicle_turns_or_halts_and_never_both_or_neither_also_when_the_turn_is_refused() {
    let system = example("vehicle");
    let seeds = std::env::var("VEHICLE_SEEDS").ok();
    let seeds = seeds.map_or(20, |seeds| seeds.parse().unwrap());
    let mut sum = (0, 0, 0);
    for seed in 0..seeds {
        let log = run(&system, seed);
        let (turns, halts, refused) = reactions(&log, seed);
        sum = (sum.0 + turns, sum.1 + halts, sum.2 + refused);
        if seed < 3 {
            is_replayed("vehicle", &log);
            obeys_the_rules("vehicle", &log);
            assert_eq!(judge(&log).verdict, RunVerdict::Met);
        }
    }
    println!("{} turns, {} halts, {} turns refused", sum.0, sum.1, sum.2);
    assert!(sum.0 > 20 && sum.1 > 0 && sum.2 > 0, "{sum:?}");
}

#[test]
fn a_thread_asks_for_less_and_less_until_it_is_granted() {
    let log = run(&example("less-and-less"), 2);
    obeys_the_rules("less-and-less", &log);
    let asked = ["camera", "whole", "part", "middle"].map(|name| of(&log, name));
    let with = |place: usize, fate| asked[place].iter().filter(move |one| one.fate == fate);
    let done = [0, 1, 2, 3].map(|place| with(place, Fate::Done).count());
    assert_eq!(done[0], done[1] + done[2] + done[3]);
    assert!(done.iter().all(|&count| count > 0), "{done:?}");
    assert_eq!(asked[1].len(), done[0]);
    for place in [1, 2] {
        // The next one is asked for when the refusal is there.
        let refused: Vec<_> = with(place, Fate::Refused)
            .map(|one| (one.arrival, one.answered))
            .collect();
        let next: Vec<_> = asked[place + 1]
            .iter()
            .map(|one| (one.arrival, one.asked))
            .collect();
        assert_eq!(refused, next);
    }
}

#[test]
fn a_less_important_group_gives_way_and_only_where_the_file_says_so() {
    let mut system = example("linear-table");
    system.planning.overload = Overload::Shed;
    // Both are asked for while it runs; the table is wanted at the same time.
    let at = |ms: u64| Request::OnLine {
        arrivals: Arrivals::At(vec![Instant::from_ns(ms * 1_000_000)]),
        phase: Span::ZERO,
        min_separation: Span::ZERO,
    };
    system.groups[0].request = at(2);
    system.groups[0].importance = Importance(1);
    system.groups[1].request = at(1);
    system.groups[1].relative_deadline = Span::from_ms(40);
    // It looks at the table last, alone, and there is no time for both.
    system.groups[1].release = Span::from_ms(10);
    system.groups[1].segments[0].uses[0].mode = punctual_model::Mode::Exclusive;
    system.groups[0].relative_deadline = Span::from_ms(56);
    let log = run(&system, 0);
    let fates: Vec<Fate> = log.requests.iter().map(|request| request.fate).collect();
    assert_eq!(fates, [Fate::Shed, Fate::Done], "{:?}", log.requests);
    obeys_the_rules("shed", &log);
    // Without importance the second one is refused.
    system.planning.overload = Overload::Keep;
    let log = run(&system, 0);
    let fates: Vec<Fate> = log.requests.iter().map(|request| request.fate).collect();
    assert_eq!(fates, [Fate::Done, Fate::Refused], "{:?}", log.requests);
}

/// The fates of a parent, its dependent child and a more important group that leaves no time for
/// the child; the parent may begin so many milliseconds after it arrived.
fn fates_of_a_family(release_ms: u64, importance_of_child: u32) -> [Fate; 3] {
    let text = format!(
        "[system]\ncpus = [\"a\"]\n[cpu.a]\npolicy = \"planned\"\n\
         [planning]\nwithin = \"5ms\"\noverload = \"shed\"\n\
         [group.parent]\nrequest = \"on-line\"\narrivals = {{ at = [\"1ms\"] }}\n\
         release = \"{release_ms}ms\"\ndeadline = \"130ms\"\n\
         segments = [{{ name = \"ask\", wcet = \"10ms\", spawns = {{ dependent = \"child\" }} }}]\n\
         [group.child]\nrequest = \"spawned\"\nrelease = \"50ms\"\ndeadline = \"130ms\"\n\
         importance = {importance_of_child}\n\
         segments = [{{ name = \"act\", wcet = \"60ms\" }}]\n\
         [group.urgent]\nrequest = \"on-line\"\narrivals = {{ at = [\"10ms\"] }}\nrelease = \"50ms\"\n\
         deadline = \"110ms\"\nimportance = 2\n\
         segments = [{{ name = \"act\", wcet = \"50ms\" }}]\n[run]\nfor = \"300ms\"\n"
    );
    let system = punctual_spec::parse(&text, "family.toml").unwrap().system;
    let log = run(&system, 0);
    obeys_the_rules("family", &log);
    assert_eq!(judge(&log).verdict, RunVerdict::Met, "{:?}", log.requests);
    ["parent", "child", "urgent"].map(|name| match of(&log, name).as_slice() {
        [request] => request.fate,
        all => panic!("{name}: {all:?}"),
    })
}

#[test]
fn a_family_is_removed_whole_if_none_of_it_has_begun_and_is_as_important_as_its_most_important_member()
 {
    let removed = [Fate::Shed, Fate::Shed, Fate::Done];
    let kept = [Fate::Done, Fate::Done, Fate::Refused];
    assert_eq!(fates_of_a_family(30, 1), removed);
    // The parent has begun when the other one asks.
    assert_eq!(fates_of_a_family(0, 1), kept);
    // The child is as important.
    assert_eq!(fates_of_a_family(30, 2), kept);
}
