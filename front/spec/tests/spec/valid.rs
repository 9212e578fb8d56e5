//! Valid files: every key arrives in the model, with its default when it is absent.

use punctual_model::{
    ActorId, Arrivals, AtBudgetEnd, Class, CpuId, Importance, Instant, Late, Mode, Ns, OnOverrun,
    OrderRule, Place, PolicyKind, Priority, Protocol, Requirement, ResourceId, Scheduler,
    SchedulerId, Server, ServerKind, Share, Slot, Span, Supply, System, Task, TaskId, Tile, Trust,
    Use, Work, WorkSource,
};

fn load(name: &str) -> System {
    let path = format!("{}/tests/valid/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    punctual_spec::load(path)
        .unwrap_or_else(|error| panic!("{error}"))
        .system
}

fn task<'a>(system: &'a System, name: &str) -> &'a Task {
    system
        .tasks
        .iter()
        .find(|task| task.name == name)
        .expect("the task")
}

#[test]
fn cpus_keep_their_order_their_hosts_and_their_policies() {
    let system = load("every-class");
    let cpus: Vec<_> = system
        .cpus
        .iter()
        .map(|cpu| (cpu.name.as_str(), cpu.host, cpu.policy))
        .collect();
    let timeslice = Span::from_us(2_500);
    assert_eq!(
        cpus,
        [
            (
                "0",
                Some(0),
                PolicyKind::FixedPriority { preemptive: false }
            ),
            ("left", Some(1), PolicyKind::RoundRobin { timeslice }),
            ("right", None, PolicyKind::EarliestDeadlineFirst),
        ]
    );
}

#[test]
fn every_key_of_a_periodic_task_arrives() {
    let system = load("every-class");
    let filter = task(&system, "filter");
    assert_eq!(
        filter.class,
        Class::Periodic {
            period: Span::from_ms(10),
            wcet: Work::from_ms(2),
            relative_deadline: Span::from_ms(12),
        }
    );
    assert_eq!(filter.phase, Span::from_ms(1));
    assert_eq!(filter.priority, Priority::new(u32::MAX));
    assert_eq!(filter.importance, Importance(3));
    assert_eq!(filter.jitter, Span::from_us(100));
    assert_eq!(filter.late, Late::Queue { backlog: 2 });
    assert_eq!(filter.on_overrun, OnOverrun::Demote);
    assert_eq!(
        (filter.max_suspension, filter.suspensions),
        (Span::from_us(500), 2)
    );
    assert_eq!(filter.non_preemptive, Work::from_us(50));
    let work = WorkSource::Call {
        symbol: "filter_step".into(),
        library: "libfilter.so".into(),
    };
    assert_eq!(filter.work, Some(work));
}

#[test]
fn precedence_names_tasks_that_come_later_too() {
    let system = load("every-class");
    let control = task(&system, "control");
    let ids = |names: &[&str]| -> Vec<TaskId> {
        let place = |name: &&str| system.tasks.iter().position(|task| task.name == **name);
        let id = |name| TaskId(u32::try_from(place(name).expect("the task")).expect("small"));
        names.iter().map(id).collect()
    };
    assert_eq!(control.after, ids(&["filter"]));
    assert_eq!(control.follows, ids(&["control", "boot"]));
    assert_eq!(control.late, Late::Skip);
    assert_eq!(control.on_overrun, OnOverrun::Stop);
    assert_eq!(
        control.suspensions, 1,
        "a length without a number means once"
    );
    assert_eq!(
        control.work,
        Some(WorkSource::Function("plant::control".into()))
    );
}

#[test]
fn every_source_of_arrivals_arrives() {
    let system = load("every-class");
    let arrivals = |name| &task(&system, name).arrivals;
    assert_eq!(
        *arrivals("button"),
        Arrivals::Random {
            mean: Span::from_ms(8)
        }
    );
    let at = [1_000, 1_000, 7_250].map(Instant::from_us);
    assert_eq!(*arrivals("packet"), Arrivals::At(at.into()));
    assert_eq!(*arrivals("call"), Arrivals::External);
    assert_eq!(*arrivals("densest"), Arrivals::Every(Span::from_ms(50)));
    assert_eq!(*arrivals("pulse"), Arrivals::Every(Span::from_ms(60)));
    assert_eq!(task(&system, "button").on_overrun, OnOverrun::Signal);
}

#[test]
fn the_other_classes_have_their_parameters() {
    let system = load("every-class");
    assert_eq!(
        task(&system, "decoder").class,
        Class::Reservation {
            period: Span::from_ms(40),
            slice: Work::from_ms(10)
        }
    );
    let boot = task(&system, "boot");
    assert_eq!(
        boot.class,
        Class::Once {
            size: Work::from_ms(1),
            relative_deadline: Span::from_ms(100)
        }
    );
    assert_eq!(
        (boot.phase, boot.priority),
        (Span::from_ms(5), Priority::new(7))
    );
    let log = task(&system, "log");
    assert_eq!((log.class, log.late), (Class::Aperiodic, Late::default()));
    assert_eq!(log.work, Some(WorkSource::Burn(Work::from_ms(1_000))));
}

#[test]
fn given_keys_win_over_named_defaults_and_join_them() {
    let machine = load("machine").machine;
    assert_eq!(
        machine.limits.utilization,
        Share::try_from_ppm(875_000).expect("a share")
    );
    let reserves: Vec<_> = machine
        .reserves
        .iter()
        .map(|reserve| (reserve.name.as_str(), reserve.budget, reserve.period))
        .collect();
    assert_eq!(
        reserves,
        [
            ("sporadic", Work::from_us(10), Span::from_us(100)),
            ("aperiodic", Work::from_ms(1), Span::from_ms(20)),
            ("fair-server", Work::from_us(600), Span::from_ms(10)),
        ]
    );
}

#[test]
fn overheads_and_missing_time_arrive() {
    let system = load("machine");
    let machine = &system.machine;
    assert_eq!(machine.switch, Work::from_us(1));
    assert_eq!(machine.timer, Work::from_ns(800));
    assert_eq!(machine.budget_timer, Work::from_ns(700));
    assert_eq!(machine.preemption, Work::from_us(4));
    assert_eq!(machine.cache_delay, Work::from_us(10));
    let missing = machine.missing_time.as_ref().expect("missing time");
    assert_eq!(
        (missing.budget, missing.period),
        (Work::from_us(50), Span::from_ms(10))
    );
    assert_eq!(system.run.seed, Some(u64::MAX));
    assert_eq!(system.tasks[0].name, "über.wachung:1");
}

#[test]
fn nautilus_alone_leaves_79_percent() {
    let text =
        "[system]\ncpus = [0]\n[cpu.0]\npolicy = \"edf\"\n[machine]\ndefaults = \"nautilus\"\n";
    let machine = punctual_spec::parse(text, "n.toml")
        .expect("valid")
        .system
        .machine;
    let reserved: u64 = machine
        .reserves
        .iter()
        .map(|r| r.budget.as_ns() * 1_000_000 / r.period.as_ns())
        .sum();
    assert_eq!(
        u64::from(machine.limits.utilization.ppm()) - reserved,
        790_000
    );
}

#[test]
fn what_is_absent_is_zero_or_whole() {
    let text = "[system]\ncpus = [3]\n[cpu.3]\npolicy = \"round-robin\"\n";
    let system = punctual_spec::parse(text, "n.toml").expect("valid").system;
    assert_eq!(system.machine, punctual_model::Machine::default());
    assert_eq!(system.cpus[0].host, Some(3));
    let timeslice = Span::from_ms(10);
    assert_eq!(system.cpus[0].policy, PolicyKind::RoundRobin { timeslice });
    assert_eq!(system.run, punctual_model::RunOptions::default());
}

#[test]
fn a_number_with_leading_zeros_is_a_name() {
    let text = "[system]\ncpus = [\"007\"]\n[cpu.007]\npolicy = \"fifo\"\n";
    let system = punctual_spec::parse(text, "n.toml").expect("valid").system;
    assert_eq!(system.cpus[0].host, None);
}

fn scheduler<'a>(system: &'a System, name: &str) -> &'a Scheduler {
    let mut schedulers = system.schedulers.iter();
    schedulers
        .find(|scheduler| scheduler.name == name)
        .expect("the scheduler")
}

fn slot(at_us: u64, length_us: u64) -> Slot<Ns> {
    Slot {
        at: Span::from_us(at_us),
        length: Span::from_us(length_us),
    }
}

#[test]
fn schedulers_keep_their_order_and_find_parents_that_come_later() {
    let system = load("composed");
    let names = system
        .schedulers
        .iter()
        .map(|scheduler| scheduler.name.as_str());
    assert_eq!(
        names.take(4).collect::<Vec<_>>(),
        ["inner", "outer", "plain", "video"]
    );
    let inner = scheduler(&system, "inner");
    assert_eq!(
        (inner.parent, inner.cpu),
        (Some(SchedulerId(1)), CpuId(0)),
        "the CPU is that of the root"
    );
    assert_eq!(scheduler(&system, "outer").parent, None);
    assert_eq!(scheduler(&system, "audio").cpu, CpuId(1));
    let server = task(&system, "server");
    assert_eq!(
        (server.scheduler, server.cpu),
        (Some(SchedulerId(0)), CpuId(0))
    );
    assert_eq!(task(&system, "watch").scheduler, None);
}

#[test]
fn every_key_of_a_scheduler_arrives() {
    let system = load("composed");
    let inner = scheduler(&system, "inner");
    let timeslice = Span::from_ms(1);
    assert_eq!(inner.policy, PolicyKind::RoundRobin { timeslice });
    assert_eq!(inner.priority, Priority::new(3));
    assert_eq!((inner.trust, inner.quota), (Trust::OwnTime, Some(1)));
    let outer = scheduler(&system, "outer");
    assert_eq!(
        outer.policy,
        PolicyKind::FixedPriority { preemptive: false }
    );
    let plain = scheduler(&system, "plain");
    assert_eq!(
        (&plain.supply, plain.trust, plain.quota),
        (&Supply::Shared, Trust::Inline, None)
    );
}

#[test]
fn every_kind_of_server_arrives() {
    let system = load("composed");
    for (name, kind, budget) in [
        ("inner", ServerKind::Sporadic, 1),
        ("outer", ServerKind::Deferrable, 4),
        ("stream", ServerKind::ConstantBandwidth, 3),
        ("poll", ServerKind::Polling, 1),
        ("resource", ServerKind::PeriodicResource, 1),
    ] {
        let server = Server {
            kind,
            budget: Work::from_ms(budget),
            period: Span::from_ms(10),
        };
        assert_eq!(scheduler(&system, name).supply, Supply::Server(server));
    }
}

#[test]
fn frames_and_slots_arrive_for_schedulers_and_for_tasks() {
    let system = load("composed");
    let tdm = |frame, scheduling| PolicyKind::Tdm {
        frame: Span::from_us(frame),
        scheduling: Span::from_us(scheduling),
    };
    assert_eq!(system.cpus[1].policy, tdm(10_000, 20));
    let video = scheduler(&system, "video");
    assert_eq!(video.policy, tdm(5_000, 0));
    assert_eq!(
        video.supply,
        Supply::Slots(vec![slot(0, 2_000), slot(5_000, 2_000)])
    );
    assert_eq!(task(&system, "watch").slots, [slot(9_000, 500)]);
    assert_eq!(task(&system, "sensor").slots, []);
}

#[test]
fn resources_and_the_sections_on_them_arrive() {
    let system = load("composed");
    let resources: Vec<_> = system
        .resources
        .iter()
        .map(|resource| {
            let (protocol, end) = (resource.protocol, resource.at_budget_end);
            (resource.name.as_str(), protocol, end)
        })
        .collect();
    assert_eq!(
        resources,
        [
            ("bus", Protocol::ImmediateCeiling, AtBudgetEnd::CheckFirst),
            ("log", Protocol::Inheritance, AtBudgetEnd::Overrun),
            ("table", Protocol::StackResource, AtBudgetEnd::Overrun),
            ("port", Protocol::NonPreemptive, AtBudgetEnd::Overrun),
            ("board", Protocol::Spin, AtBudgetEnd::Overrun),
        ]
    );
    let section = |resource, length, mode, inside: Option<u16>| Use {
        resource: ResourceId(resource),
        length: Work::from_us(length),
        mode,
        inside: inside.map(ResourceId),
    };
    assert_eq!(
        task(&system, "sensor").uses,
        [
            section(0, 1_000, Mode::Exclusive, None),
            section(1, 500, Mode::Exclusive, Some(0)),
            section(3, 250, Mode::Exclusive, Some(1)),
            section(0, 1_000, Mode::Shared, None),
        ]
    );
}

#[test]
fn responses_chains_and_jitters_arrive() {
    let system = load("composed");
    let id = |name: &str| {
        let place = system.tasks.iter().position(|task| task.name == name);
        TaskId(u32::try_from(place.expect("the task")).expect("small"))
    };
    assert_eq!(
        system.requirements,
        [
            Requirement::Response {
                task: id("sensor"),
                within: Span::from_ms(20)
            },
            Requirement::Chain {
                tasks: vec![id("sensor"), id("control")],
                within: Span::from_ms(60)
            },
            Requirement::Jitter {
                task: id("watch"),
                within: Span::ZERO
            },
        ]
    );
}

#[test]
fn every_key_of_a_graph_arrives() {
    let system = load("graphs");
    let graph = &system.graphs[0];
    assert_eq!((graph.name.as_str(), graph.actors.len()), ("decoder", 3));
    let slots = Tile {
        cpu: CpuId(0),
        scheduler: Some(SchedulerId(0)),
    };
    let read = &graph.actors[0];
    assert_eq!((read.name.as_str(), read.tile), ("read", slots));
    assert_eq!(read.wcet, [Work::from_ms(1), Work::from_ms(2)]);
    assert_eq!(read.work, Some(WorkSource::Burn(Work::from_us(500))));
    assert_eq!(graph.actors[1].tile, Tile::cpu(CpuId(1)));
    let samples = &graph.fifos[0];
    assert_eq!((samples.from, samples.to), (ActorId(0), ActorId(1)));
    assert_eq!(
        (&samples.produce[..], &samples.consume[..]),
        (&[1, 3][..], &[2][..])
    );
    assert_eq!(
        (samples.initial, samples.capacity, samples.token_size),
        (0, Some(8), 64)
    );
    assert_eq!(samples.place, Place::Producer);
    let frames = &graph.fifos[1];
    assert_eq!((&frames.produce[..], frames.capacity), (&[1][..], None));
    assert_eq!(frames.place, Place::Memory);
    let state = &graph.fifos[2];
    assert_eq!(
        (state.from, state.to, state.initial),
        (ActorId(1), ActorId(1), 1)
    );
    assert_eq!(state.place, Place::Consumer);
    let order = &graph.orders[0];
    assert_eq!(order.tile, Tile::cpu(CpuId(1)));
    assert_eq!(
        order.by,
        OrderRule::Static([1, 2, 1, 2].map(ActorId).to_vec())
    );
    let shows = &graph.actors[2];
    assert_eq!((shows.reads_shm, shows.writes_shm), (4_096, 12));
    let copies = graph.copies.expect("it copies");
    assert_eq!(
        (copies.latency, copies.bytes_per_us),
        (Span::from_us(2), 400)
    );
    assert_eq!(graph.every, Some(Span::from_ms(40)));
    assert_eq!(graph.within, Some(Span::from_ms(80)));
    assert_eq!(
        (system.graphs[1].every, system.graphs[1].within),
        (None, None)
    );
}
