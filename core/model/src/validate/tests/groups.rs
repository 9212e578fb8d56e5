//! Planned groups that no plan could have, and nodes that nothing could plan.

use alloc::vec;
use alloc::vec::Vec;

use super::resources::{resource, section};
use super::trees::{FIXED_PRIORITY, scheduler, server, tree};
use super::{mistake, ms, periodic, sporadic};
use crate::{
    Arrivals, Change, Class, Cpu, CpuId, Fault, Group, GroupId, Importance, Instant, Machine, Mode,
    Overload, PolicyKind, Protocol, Request, ResourceId, SchedulerId, SegmentUse, Spawn, Step,
    System, Task, TaskId, Trust, Work,
};

const FIRST: GroupId = GroupId(0);

fn work(n: u64) -> Work<crate::Ns> {
    Work::from_ms(n)
}

/// Three segments of one thread, the middle one alone with a table.
fn group(name: &str) -> Group {
    let mut group = Group::new(name, ms(100));
    let main = group.thread("main");
    group.segment("compute", main, work(10));
    let moves = group.segment("move", main, work(20));
    group.segment("correct", main, work(10));
    group.segments[moves].uses.push(SegmentUse {
        resource: ResourceId(0),
        mode: Mode::Exclusive,
    });
    group
}

/// Two planned CPUs, one under fixed priorities, and a table.
fn planned(groups: impl Into<Vec<Group>>) -> System {
    let cpu = |name: &str, policy| Cpu {
        name: name.into(),
        host: None,
        policy,
    };
    System {
        cpus: vec![
            cpu("a", PolicyKind::Planned),
            cpu("b", PolicyKind::Planned),
            cpu("c", FIXED_PRIORITY),
        ],
        resources: vec![resource("table", Protocol::Planned)],
        groups: groups.into(),
        ..System::default()
    }
}

/// The mistake of a system of one group that is changed so.
fn after(change: impl FnOnce(&mut Group)) -> (Fault, alloc::string::String) {
    let mut group = group("g");
    change(&mut group);
    mistake(&planned([group]))
}

#[test]
fn a_group_that_can_be_planned_is_no_mistake() {
    let system = planned([group("g")]);
    assert_eq!(system.validate(), Ok(()));
    let cpus: Vec<CpuId> = system.planned_nodes().iter().map(|n| n.cpu).collect();
    assert_eq!(cpus, [CpuId(0), CpuId(1)]);
    let of = |at| group("g").predecessors(at).collect::<Vec<_>>();
    assert_eq!([of(0), of(1), of(2)], [vec![], vec![0], vec![1]]);
}

#[test]
fn instants_of_a_group_lie_in_their_order() {
    let at = |key| Fault::Group(FIRST, key);
    assert_eq!(after(|g| g.release = ms(100)).0, at("deadline"));
    let every = |n| Request::Periodic { period: ms(n) };
    assert_eq!(after(|g| g.request = every(99)).0, at("deadline"));
    let on_line = |arrivals| Request::OnLine {
        arrivals,
        phase: ms(0),
        min_separation: ms(10),
    };
    let back = vec![Instant::from_ms(2), Instant::from_ms(1)];
    for wrong in [
        Arrivals::Every(ms(0)),
        Arrivals::Random { mean: ms(9) },
        Arrivals::At(back),
    ] {
        assert_eq!(after(|g| g.request = on_line(wrong)).0, at("arrivals"));
    }
    // The last moments that mean something.
    let mut group = group("g");
    (group.request, group.release) = (every(100), ms(80));
    assert_eq!(planned([group]).validate(), Ok(()));
}

#[test]
fn segments_have_lengths_that_a_plan_can_hold() {
    let at = |at, key| Fault::Segment(FIRST, at, key);
    assert_eq!(after(|g| g.segments[0].wcet = work(0)).0, at(0, "wcet"));
    assert_eq!(after(|g| g.segments[1].wcet = work(101)).0, at(1, "wcet"));
    assert_eq!(
        after(|g| g.segments[0].wcet_away = Some(work(20))).0,
        at(0, "wcet-away")
    );
    assert_eq!(
        after(|g| g.segments[0].cleanup = work(10)).0,
        at(0, "cleanup")
    );
    // The floor: an entry, and setting a thread back.
    let mut system = planned([group("g")]);
    system.machine = Machine {
        timer: work(4),
        ..Machine::default()
    };
    system.planning.reset = work(6);
    assert_eq!(system.validate(), Ok(()));
    system.groups[0].segments[1].cleanup = work(11);
    let (fault, message) = mistake(&system);
    assert_eq!(fault, at(1, "cleanup"), "{message}");
    system.groups[0].segments[1].cleanup = work(10);
    assert_eq!(system.validate(), Ok(()));
    system.planning.reset = work(7);
    system.groups[0].segments[1].cleanup = work(0);
    let errors = system.validate().expect_err("two segments below the floor");
    let faults: Vec<Fault> = errors.into_iter().map(|e| e.fault).collect();
    assert_eq!(faults, [at(0, "wcet"), at(2, "wcet")]);
}

#[test]
fn segments_use_planned_resources_and_come_after_each_other_in_no_circle() {
    let at = |at, key| Fault::Segment(FIRST, at, key);
    let mut system = planned([group("g")]);
    system.resources[0].protocol = Protocol::Spin;
    assert_eq!(mistake(&system).0, at(1, "uses"));
    assert_eq!(
        after(|g| g.segments[1].uses[0].resource = ResourceId(7)).0,
        at(1, "uses")
    );
    assert_eq!(
        after(|g| {
            let twice = g.segments[1].uses[0];
            g.segments[1].uses.push(twice);
        })
        .0,
        at(1, "uses")
    );
    assert_eq!(after(|g| g.segments[1].after = vec![9]).0, at(1, "after"));
    let (fault, message) = after(|g| g.segments[0].after = vec![2]);
    assert_eq!(fault, at(0, "after"));
    assert_eq!(
        message,
        "group `g`: segment `compute` comes after `correct`, which comes after `move`, which comes \
         after `compute`"
    );
    assert_eq!(after(|g| g.segments[1].after = vec![1]).0, at(1, "after"));
}

#[test]
fn a_process_has_one_home_and_it_executes_segments() {
    let at = |key| Fault::GroupThread(FIRST, 0, key);
    assert_eq!(after(|g| g.threads[0].home = Some(CpuId(2))).0, at("home"));
    let mut others = [group("g"), group("h")];
    for (place, group) in others.iter_mut().enumerate() {
        group.threads[0].process = "robot".into();
        group.threads[0].home = Some(CpuId(u16::try_from(place).unwrap_or(0)));
    }
    let (fault, _) = mistake(&planned(others.clone()));
    assert_eq!(fault, Fault::GroupThread(GroupId(1), 0, "home"));
    others[1].threads[0].home = others[0].threads[0].home;
    others[1].segments[0].wcet_away = Some(work(15));
    assert_eq!(planned(others).validate(), Ok(()));
}

#[test]
fn a_spawned_group_has_one_parent_and_a_way_up_to_one_that_arrives() {
    let family = |change: &dyn Fn(&mut [Group; 3])| {
        let mut groups = ["react", "turn", "halt"].map(group);
        groups[1].request = Request::Spawned;
        groups[2].request = Request::Spawned;
        groups[0].segments[0].spawn = Some(Spawn::Independent {
            groups: vec![GroupId(1)],
            max_wait: ms(5),
        });
        groups[0].segments[1].spawn = Some(Spawn::Dependent { group: GroupId(2) });
        groups[1].segments[0].kills = vec![GroupId(2)];
        change(&mut groups);
        planned(groups)
    };
    assert_eq!(family(&|_| ()).validate(), Ok(()));
    let fault = |change: &dyn Fn(&mut [Group; 3])| mistake(&family(change)).0;
    let orphan = fault(&|g| g[0].segments[0].spawn = None);
    assert_eq!(orphan, Fault::Group(GroupId(1), "request"));
    let arrives = Request::Once { at: Instant::ZERO };
    let arrives = fault(&move |g| g[2].request = arrives.clone());
    assert_eq!(arrives, Fault::Segment(FIRST, 1, "spawns"));
    let twice = fault(&|g| g[1].segments[1].spawn = Some(Spawn::Dependent { group: GroupId(2) }));
    assert_eq!(twice, Fault::Segment(GroupId(1), 1, "spawns"));
    let own = fault(&|g| g[1].segments[0].kills = vec![GroupId(1)]);
    assert_eq!(own, Fault::Segment(GroupId(1), 0, "kills"));
    let repeats = fault(&|g| {
        g[0].request = Request::Periodic { period: ms(100) };
        g[2].relative_deadline = ms(101);
    });
    assert_eq!(repeats, Fault::Group(GroupId(2), "deadline"));
    let waits = fault(&|g| {
        g[0].segments[0].spawn = Some(Spawn::Independent {
            groups: vec![GroupId(1)],
            max_wait: ms(91),
        });
    });
    assert_eq!(waits, Fault::Segment(FIRST, 0, "wcet"));
}

#[test]
fn a_child_is_held_against_the_period_of_the_group_that_it_is_planned_with() {
    let mut first = group("first");
    first.request = Request::Periodic { period: ms(100) };
    let groups = vec![GroupId(1)];
    first.segments[0].spawn = Some(Spawn::Independent {
        groups,
        max_wait: ms(1),
    });
    let (mut second, mut third) = (group("second"), group("third"));
    second.request = Request::Spawned;
    second.segments[0].spawn = Some(Spawn::Dependent { group: GroupId(2) });
    third.request = Request::Spawned;
    third.relative_deadline = ms(150);
    let mut system = planned([first, second, third]);
    assert_eq!(system.validate(), Ok(()));
    // Planned with it from top to bottom, it ends within the period.
    system.groups[0].segments[0].spawn = Some(Spawn::Dependent { group: GroupId(1) });
    assert!(system.validate().is_err());
}

#[test]
fn planning_has_a_window_a_margin_below_its_time_and_somebody_to_shed() {
    let fault = |change: &dyn Fn(&mut System)| {
        let mut system = planned([group("g"), group("h")]);
        change(&mut system);
        mistake(&system).0
    };
    let window = fault(&|s| s.planning.window = Some(0));
    assert_eq!(window, Fault::Planning("window"));
    let margin = fault(&|s| s.planning.margin = ms(1));
    assert_eq!(margin, Fault::Planning("margin"));
    let shed = fault(&|s| s.planning.overload = Overload::Shed);
    assert_eq!(shed, Fault::Planning("overload"));
    let mut system = planned([group("g"), group("h")]);
    system.planning.overload = Overload::Shed;
    system.groups[1].importance = Importance(1);
    assert_eq!(system.validate(), Ok(()));
}

#[test]
fn a_planned_node_has_supply_of_its_own_and_no_other_real_time_work() {
    let mut nodes = tree(vec![scheduler("p", 0, None)]);
    nodes.schedulers[0].policy = PolicyKind::Planned;
    let at = |key| Fault::Scheduler(SchedulerId(0), key);
    assert_eq!(mistake(&nodes).0, at("policy"));
    nodes.schedulers[0].supply = server(5, 10);
    assert_eq!(nodes.validate(), Ok(()));
    let mut own_time = nodes.clone();
    own_time.schedulers[0].trust = Trust::OwnTime;
    assert_eq!(mistake(&own_time).0, at("trust"));
    let mut two = nodes.clone();
    two.cpus[0].policy = PolicyKind::Planned;
    let errors = two.validate().expect_err("two planned nodes on one CPU");
    let faults: Vec<Fault> = errors.into_iter().map(|e| e.fault).collect();
    assert_eq!(faults, [at("policy"), at("on")]);

    let with = |task: Task| System {
        tasks: vec![task],
        ..planned([group("g")])
    };
    assert_eq!(
        with(Task::new("b", CpuId(0), Class::Aperiodic)).validate(),
        Ok(())
    );
    for task in [periodic("t", 0, 100, 1), sporadic("t", 0)] {
        assert_eq!(mistake(&with(task)).0, Fault::Task(TaskId(0), "on"));
    }
    let locks = Task {
        uses: vec![section(0, 1, None)],
        ..periodic("t", 2, 100, 10)
    };
    assert_eq!(mistake(&with(locks)).0, Fault::Use(TaskId(0), 0));
    let nobody = System {
        cpus: tree(vec![]).cpus,
        ..planned([group("g")])
    };
    assert_eq!(mistake(&nobody).0, Fault::Group(FIRST, "segments"));
}

#[test]
fn planned_nodes_stay_as_they_are() {
    let with = |step| System {
        changes: vec![Change {
            name: "later".into(),
            at: Instant::from_ms(5),
            steps: vec![step],
        }],
        ..planned([group("g")])
    };
    for step in [
        Step::ReorderCpu(CpuId(0), FIXED_PRIORITY),
        Step::ReorderCpu(CpuId(2), PolicyKind::Planned),
    ] {
        assert_eq!(mistake(&with(step)).0, Fault::ChangeStep(0, 0));
    }
}
