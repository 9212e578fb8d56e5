//! Planned groups: sections become what the model has, and back; mistakes have their places.

use punctual_model::{
    Arrivals, CpuId, Group, GroupId, Heuristic, Importance, Instant, Locality, Mode, Ns, OnOverrun,
    Overload, Planning, PolicyKind, Protocol, Request, ResourceId, SegmentUse, Span, Spawn, System,
    Work, WorkSource,
};
use punctual_spec::{parse, write};

use crate::mistakes::check;

const FILE: &str = "\
[system]
cpus = [\"a\", \"b\"]

[cpu.a]
policy = \"planned\"

[cpu.b]
policy = \"planned\"

[resource.table]
protocol = \"planned\"

[group.react]
request = \"on-line\"
arrivals = { random = \"10s\" }
min-separation = \"5s\"
phase = \"1s\"
deadline = \"4s\"
importance = 2
on-overrun = \"stop\"
threads = [{ name = \"main\", process = \"vehicle\", home = \"cpu.b\" }]
segments = [
    { name = \"see\", wcet = \"100ms\", wcet-away = \"120ms\" },
    { name = \"ask\", wcet = \"10ms\", spawns = { independent = [\"turn\"], max-wait = \"1ms\" } },
    { name = \"go\", wcet = \"10ms\", spawns = { dependent = \"halt\" } },
    { name = \"log\", thread = \"log\", wcet = \"1ms\", after = [\"see\"] },
]

[group.turn]
request = \"spawned\"
deadline = \"2s\"
segments = [{ name = \"kill\", wcet = \"1ms\", kills = [\"halt\"], work = { burn = \"500us\" } }]

[group.halt]
request = \"spawned\"
release = \"2s\"
deadline = \"4s\"
segments = [{ name = \"brake\", wcet = \"9ms\", uses = [{ resource = \"table\", mode = \"shared\" }], cleanup = \"2ms\" }]

[group.table]
request = \"periodic\"
period = \"100ms\"
segments = [{ name = \"move\", wcet = \"20ms\", uses = [{ resource = \"table\" }] }]

[group.first]
request = \"once\"
at = \"3ms\"
deadline = \"90ms\"
segments = [{ name = \"main\", wcet = \"20ms\" }]

[planning]
heuristic = \"deadline-and-work\"
factor = 2
window = 7
backtracks = 5
within = \"1ms\"
margin = \"100us\"
evaluation = \"1us\"
segment = \"15us\"
overload = \"shed\"
locality = \"only-local\"
within-process = true
process-switch = \"20us\"
reset = \"5us\"
";

fn read(text: &str) -> System {
    match parse(text, "groups.toml") {
        Ok(description) => description.system,
        Err(mistakes) => panic!("{}", mistakes[0]),
    }
}

#[test]
fn a_section_is_a_group_with_its_threads_segments_and_children() {
    let system = read(FILE);
    assert_eq!(system.cpus[0].policy, PolicyKind::Planned);
    assert_eq!(system.resources[0].protocol, Protocol::Planned);
    let [react, turn, halt, table, first] = &system.groups[..] else {
        panic!("{:?}", system.groups);
    };
    let second = |n: u64| Span::<Ns>::from_ms(n * 1_000);
    let on_line = Request::OnLine {
        arrivals: Arrivals::Random { mean: second(10) },
        phase: second(1),
        min_separation: second(5),
    };
    assert_eq!(react.request, on_line);
    assert_eq!(
        (react.importance, react.on_overrun),
        (Importance(2), OnOverrun::Stop)
    );
    let threads: Vec<_> = react
        .threads
        .iter()
        .map(|t| (&*t.name, &*t.process, t.home))
        .collect();
    let home = Some(CpuId(1));
    assert_eq!(
        threads,
        [("main", "vehicle", home), ("log", "react.log", None)]
    );
    assert_eq!(react.segments[0].wcet_away, Some(Work::from_ms(120)));
    assert_eq!(react.segments[3].after, [0]);
    let asks = Spawn::Independent {
        groups: vec![GroupId(1)],
        max_wait: Span::from_ms(1),
    };
    assert_eq!(react.segments[1].spawn, Some(asks));
    let goes = Spawn::Dependent { group: GroupId(2) };
    assert_eq!(react.segments[2].spawn, Some(goes));
    assert_eq!(turn.segments[0].kills, [GroupId(2)]);
    let burn = WorkSource::Burn(Work::from_us(500));
    assert_eq!(turn.segments[0].work, Some(burn));
    assert_eq!(
        (halt.release, halt.relative_deadline),
        (second(2), second(4))
    );
    assert_eq!(halt.segments[0].cleanup, Work::from_ms(2));
    let shared = SegmentUse {
        resource: ResourceId(0),
        mode: Mode::Shared,
    };
    assert_eq!(halt.segments[0].uses, [shared]);
    // A periodic group ends with its period unless it says otherwise.
    assert_eq!(table.relative_deadline, Span::from_ms(100));
    let at = Instant::from_ms(3);
    assert_eq!(first.request, Request::Once { at });
    let planning = Planning {
        heuristic: Heuristic::DeadlineAndWork { factor: 2 },
        window: Some(7),
        backtracks: 5,
        within: Span::from_ms(1),
        margin: Span::from_us(100),
        evaluation: Work::from_us(1),
        segment: Some(Work::from_us(15)),
        overload: Overload::Shed,
        locality: Locality::OnlyLocal,
        within_process: true,
        process_switch: Work::from_us(20),
        reset: Work::from_us(5),
    };
    assert_eq!(system.planning, planning);
}

#[test]
fn what_is_written_is_read_as_the_same() {
    let system = read(FILE);
    assert_eq!(read(&write(&system)), system, "{}", write(&system));
    // And at its defaults.
    let mut plain = Group::new("plain", Span::from_ms(1));
    let main = plain.thread("main");
    plain.segment("main", main, Work::from_us(1));
    let plain = System {
        groups: vec![plain],
        planning: Planning::default(),
        ..system
    };
    let text = write(&plain);
    assert!(!text.contains("[planning]"), "{text}");
    assert_eq!(read(&text), plain, "{text}");
}

/// A test for each file of `mistakes`.
macro_rules! mistakes {
    ($($name:ident $file:literal;)+) => {$(
        #[test]
        fn $name() {
            check($file);
        }
    )+};
}

mistakes! {
    a_planned_node_needs_supply "planned-node-with-shared-supply";
    a_planned_resource_is_no_lock "planned-resource-that-a-task-locks";
    circles_have_no_plan "group-in-a-circle";
    segments_reach_the_floor "segment-below-the-floor";
    names_are_known "group-with-wrong-names";
}
