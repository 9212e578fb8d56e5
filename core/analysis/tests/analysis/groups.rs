//! Planned groups: lawful plans that repeat, certain refusals, and growth
//!
//! A refusal is certain where it says so, a fix was planned with, and a segment may grow as far as
//! its row says.

use punctual_analysis::{
    AnalysisError, Exactness, FixTarget, Plan, Subject, Verdict, Witness, admit, is_admitted,
};
use punctual_generate::Random;
use punctual_model::{
    Arrivals, Cpu, CpuId, Group, GroupId, Instant, Mode, Ns, PolicyKind, Protocol, Request,
    Reserve, Resource, ResourceId, Scheduler, SchedulerId, SegmentUse, Slot, Span, Spawn, Supply,
    System, Trust, Work,
};

fn ms(n: u64) -> Span<Ns> {
    Span::from_ms(n)
}

fn work(n: u64) -> Work<Ns> {
    Work::from_ms(n)
}

/// So many planned CPUs and two planned resources.
fn system(cpus: u16, groups: Vec<Group>) -> System {
    let cpu = |number| Cpu {
        name: format!("c{number}"),
        host: None,
        policy: PolicyKind::Planned,
    };
    let resource = |name: &str| Resource {
        name: name.into(),
        protocol: Protocol::Planned,
        at_budget_end: Default::default(),
    };
    let system = System {
        cpus: (0..cpus).map(cpu).collect(),
        resources: vec![resource("r0"), resource("r1")],
        groups,
        ..System::default()
    };
    assert_eq!(system.validate(), Ok(()));
    system
}

/// A chain of segments of one thread, all with a resource or none.
fn chain(name: &str, deadline: u64, lengths: &[u64], resource: Option<u16>) -> Group {
    let mut group = Group::new(name, ms(deadline));
    let main = group.thread("main");
    for (at, &length) in lengths.iter().enumerate() {
        let segment = group.segment(format!("s{at}"), main, work(length));
        let uses = resource.map(|resource| SegmentUse {
            resource: ResourceId(resource),
            mode: Mode::Exclusive,
        });
        group.segments[segment].uses.extend(uses);
    }
    group
}

fn periodic(group: Group, period: u64) -> Group {
    Group {
        request: Request::Periodic { period: ms(period) },
        ..group
    }
}

fn plan(verdict: &Verdict) -> &Plan {
    let answer = verdict.plan.as_ref().expect("there are groups");
    answer.plan.as_ref().expect("it is admitted")
}

/// Starts in milliseconds, by group and segment.
fn starts(verdict: &Verdict) -> Vec<(u16, usize, u64)> {
    let all = plan(verdict).segments.iter();
    all.map(|s| (s.group.0, s.segment, s.start.as_ns() / 1_000_000))
        .collect()
}

/// The plan and its part that repeats once more: every two segments, by the model alone.
fn is_lawful(system: &System, plan: &Plan) {
    let mut all = plan.segments.clone();
    let from = Instant::ZERO.saturating_add(plan.repeats_from);
    for again in plan.segments.iter().filter(|s| s.arrival >= from) {
        let mut again = again.clone();
        for at in [&mut again.arrival, &mut again.start, &mut again.end] {
            *at = at.saturating_add(plan.period);
        }
        again.instance += 1_000_000;
        all.push(again);
    }
    for (at, one) in all.iter().enumerate() {
        let group = &system.groups[one.group.index()];
        let segment = &group.segments[one.segment];
        assert!(one.start >= one.arrival.saturating_add(group.release));
        assert!(one.end <= one.arrival.saturating_add(group.relative_deadline));
        assert!(one.end.since(one.start) >= segment.wcet.as_span());
        for other in &all[at + 1..] {
            let apart = one.end <= other.start || other.end <= one.start;
            let theirs = &system.groups[other.group.index()].segments[other.segment];
            let shared = |mine: &SegmentUse| {
                let mut uses = theirs.uses.iter().filter(|u| u.resource == mine.resource);
                uses.any(|u| u.mode == Mode::Exclusive || mine.mode == Mode::Exclusive)
            };
            let thread = one.group == other.group && segment.thread == theirs.thread;
            if one.node == other.node || thread || segment.uses.iter().any(shared) {
                assert!(apart, "{one:?} and {other:?}");
            }
            if one.group == other.group && one.instance == other.instance {
                if group.predecessors(one.segment).any(|p| p == other.segment) {
                    assert!(other.end <= one.start);
                }
                if group.predecessors(other.segment).any(|p| p == one.segment) {
                    assert!(one.end <= other.start);
                }
            }
        }
    }
}

#[test]
fn periodic_groups_have_a_plan_that_repeats_and_others_one_in_front_of_it() {
    let table = periodic(chain("table", 80, &[15, 30, 10], Some(0)), 100);
    let look = periodic(chain("look", 50, &[10], Some(0)), 50);
    let alone = system(2, vec![table.clone(), look.clone()]);
    let verdict = admit(&alone).expect("a verdict");
    assert!(verdict.admitted, "{:?}", verdict.refusals);
    let found = plan(&verdict);
    assert_eq!((found.repeats_from, found.period), (Span::ZERO, ms(100)));
    // Two instances of one, three segments of the other.
    assert_eq!(found.segments.len(), 5);
    is_lawful(&alone, found);

    // Work that arrives once ends at 230 ms, so the plan repeats from the next multiple on.
    let mut once = chain("once", 200, &[20, 20], Some(0));
    once.request = Request::Once {
        at: Instant::from_ms(30),
    };
    let both = system(2, vec![table, look, once]);
    let verdict = admit(&both).expect("a verdict");
    let found = plan(&verdict);
    assert_eq!((found.repeats_from, found.period), (ms(300), ms(100)));
    assert_eq!(found.segments.len(), 4 * 5 + 2);
    is_lawful(&both, found);
    let last = found.segments.iter().rev().find(|s| s.group == GroupId(0));
    assert_eq!(last.map(|s| s.instance), Some(3));
    let answer = verdict.plan.as_ref().expect("groups");
    assert_eq!(answer.groups[2].instances, 1);
    assert!(is_admitted(&both).expect("an answer"));
}

#[test]
fn a_dependent_child_is_planned_behind_its_parent_and_counts_from_its_arrival() {
    let mut react = chain("react", 20, &[5, 1], None);
    react.segments[0].spawn = Some(Spawn::Dependent { group: GroupId(1) });
    let mut halt = chain("halt", 40, &[10], None);
    halt.request = Request::Spawned;
    let verdict = admit(&system(2, vec![react.clone(), halt.clone()])).expect("a verdict");
    assert_eq!(starts(&verdict), [(0, 0, 0), (0, 1, 5), (1, 0, 5)]);
    halt.release = ms(20);
    let verdict = admit(&system(1, vec![react, halt])).expect("a verdict");
    assert_eq!(starts(&verdict), [(0, 0, 0), (0, 1, 5), (1, 0, 20)]);
}

#[test]
fn a_group_that_is_killed_is_told_how_long_it_goes_on_at_most() {
    let mut killer = chain("killer", 100, &[5], None);
    killer.segments[0].kills.push(GroupId(1));
    let killed = chain("killed", 100, &[10, 20, 15], None);
    let verdict = admit(&system(2, vec![killer, killed])).expect("a verdict");
    let words = verdict.plan.expect("there are groups").groups;
    let bound = "; a kill ends it at its next boundary, 20ms later at the latest (`s1`)";
    assert!(words[1].explanation.ends_with(bound), "{words:?}");
    assert!(!words[0].explanation.contains("kill"), "{words:?}");
}

#[test]
fn what_is_asked_for_on_line_is_not_in_the_plan_and_its_wait_is_its_parents() {
    let mut parent = periodic(chain("parent", 20, &[5, 1], None), 100);
    parent.segments[0].spawn = Some(Spawn::Independent {
        groups: vec![GroupId(1), GroupId(2)],
        max_wait: ms(3),
    });
    let child = |name, deadline, length| Group {
        request: Request::Spawned,
        ..chain(name, deadline, &[length], Some(0))
    };
    let groups = vec![parent, child("much", 90, 50), child("less", 90, 9)];
    let verdict = admit(&system(1, groups.clone())).expect("a verdict");
    // 5 ms, and two answers of at most 3 ms.
    assert_eq!(starts(&verdict), [(0, 0, 0), (0, 1, 11)]);
    let rows = &verdict.plan.as_ref().expect("groups").groups;
    assert_eq!((rows[1].off_line, rows[1].ends), (false, Some(ms(62))));
    // Of a child that never fits the row says so, and the file is admitted.
    let mut never = groups;
    never[1].relative_deadline = ms(61);
    let verdict = admit(&system(1, never)).expect("a verdict");
    assert!(verdict.admitted);
    let row = &verdict.plan.as_ref().expect("groups").groups[1];
    assert!(
        row.ends.is_none() && row.explanation.contains("none that arrives"),
        "{row:?}"
    );
}

#[test]
fn refusals_are_exact_by_a_necessary_test_or_after_all_orders_and_have_a_fix_that_was_planned() {
    let refused = |system: &System| {
        let mut verdict = admit(system).expect("a verdict");
        assert!(!verdict.admitted && !is_admitted(system).expect("an answer"));
        let refusal = verdict.refusals.remove(0);
        let Subject::Group(id) = refusal.subject else {
            panic!("{refusal:?}");
        };
        let row = &verdict.plan.as_ref().expect("groups").groups[id.index()];
        if let Some(fix) = &refusal.fix {
            let mut mended = system.clone();
            fix.apply(&mut mended);
            assert!(admit(&mended).expect("a verdict").admitted, "{fix}");
        }
        (row.exactness, refusal)
    };
    // More of a resource than there is time: 3 · 20 ms in 50 ms, on three CPUs.
    let group = |name| chain(name, 50, &[20], Some(0));
    let (exactness, refusal) = refused(&system(3, vec![group("a"), group("b"), group("c")]));
    assert_eq!(exactness, Exactness::Exact);
    let witness = Witness::Demand {
        at: ms(50),
        demand: work(60),
        supply: work(50),
    };
    assert_eq!(refusal.witness, Some(witness), "{refusal:?}");
    let fix = refusal.fix.expect("a later deadline");
    assert_eq!(
        (fix.target, fix.to),
        (FixTarget::GroupDeadline(GroupId(2)), ms(60))
    );
    // A chain that is too long for its deadline, in every plan.
    let (exactness, refusal) = refused(&system(3, vec![chain("long", 50, &[20, 20, 20], None)]));
    assert_eq!(exactness, Exactness::Exact, "{refusal:?}");
    // Two that could each be in time, and no order of both: neither test sees it.
    let mut late = chain("late", 30, &[17], None);
    late.release = ms(5);
    let early = chain("early", 14, &[5], None);
    let mut middle = chain("middle", 22, &[6], None);
    middle.release = ms(12);
    let (exactness, refusal) = refused(&system(1, vec![late, early, middle]));
    assert_eq!(exactness, Exactness::Exact, "{refusal:?}");
    assert!(
        refusal.reason.contains("all orders were tried"),
        "{refusal:?}"
    );
    // With an overhead the same is not said to be certain.
    let mut costly = system(3, vec![chain("long", 50, &[20, 20, 20], None)]);
    costly.machine.switch = Work::from_us(1);
    assert_eq!(refused(&costly).0, Exactness::Sufficient);
    // A periodic group has no later deadline than its period: the segment gets shorter.
    let full = periodic(chain("full", 100, &[60], Some(0)), 100);
    let other = periodic(chain("other", 100, &[50], Some(0)), 100);
    let (_, refusal) = refused(&system(2, vec![full, other]));
    let fix = refusal.fix.expect("a shorter segment");
    assert!(matches!(fix.target, FixTarget::SegmentWcet(..)), "{fix:?}");
}

#[test]
fn lengths_have_overheads_reserves_and_the_supply_of_their_node() {
    let group = || periodic(chain("g", 100, &[4, 4], None), 100);
    let second = |system: &System| {
        let verdict = admit(system).expect("a verdict");
        let found = &plan(&verdict).segments;
        is_lawful(system, plan(&verdict));
        found[1].start.since(found[0].start)
    };
    let mut plain = system(1, vec![group()]);
    assert_eq!(second(&plain), ms(4));
    plain.machine.switch = Work::from_us(10);
    plain.machine.timer = Work::from_us(5);
    assert_eq!(second(&plain), Span::from_us(4_025));
    // 1 ms may be taken in any 10 ms.
    let mut taken = system(1, vec![group()]);
    taken.machine.missing_time = Some(Reserve {
        name: "missing".into(),
        budget: work(1),
        period: ms(10),
    });
    assert_eq!(second(&taken), ms(5));
    // Slots of 2 ms in every 5 ms: 3 ms without, 2 with, 3 without, 2 with.
    let mut slotted = system(1, vec![group()]);
    slotted.cpus[0].policy = PolicyKind::Tdm {
        frame: ms(5),
        scheduling: Span::ZERO,
    };
    slotted.schedulers.push(Scheduler {
        name: "plan".into(),
        cpu: CpuId(0),
        parent: None,
        policy: PolicyKind::Planned,
        priority: Default::default(),
        supply: Supply::Slots(vec![Slot {
            at: Span::ZERO,
            length: ms(2),
        }]),
        trust: Trust::Inline,
        quota: None,
        receiver: None,
        fallback: None,
        code: None,
    });
    assert_eq!(slotted.validate(), Ok(()));
    assert_eq!(slotted.planned_nodes()[0].scheduler, Some(SchedulerId(0)));
    assert_eq!(second(&slotted), ms(10));
}

/// Up to six segments of up to three groups on two CPUs, with a resource that most use.
pub(crate) fn drawn(random: &mut Random) -> System {
    let mut groups = Vec::new();
    for number in 0..1 + random.below(3) {
        let lengths: Vec<u64> = (0..1 + random.below(2))
            .map(|_| 1 + random.below(9))
            .collect();
        let resource = (random.below(3) > 0).then_some(0);
        let all: u64 = lengths.iter().sum();
        let mut group = chain(
            &format!("g{number}"),
            all + random.below(20),
            &lengths,
            resource,
        );
        if random.below(2) == 0 {
            group = periodic(group, 40);
        }
        groups.push(group);
    }
    system(2, groups)
}

#[test]
fn random_plans_are_lawful_and_segments_may_grow_as_far_as_they_say() {
    let mut random = Random::new(16);
    let (mut admitted, mut grown) = (0, 0);
    for _ in 0..400 {
        let system = drawn(&mut random);
        let verdict = admit(&system).expect("a verdict");
        assert_eq!(is_admitted(&system), Ok(verdict.admitted));
        if !verdict.admitted {
            continue;
        }
        admitted += 1;
        is_lawful(&system, plan(&verdict));
        for (group, row) in verdict
            .plan
            .as_ref()
            .expect("groups")
            .groups
            .iter()
            .enumerate()
        {
            for (at, slack) in row.slack.iter().enumerate() {
                let mut longer = system.clone();
                let wcet = slack.slack.grown(slack.wcet).expect("in range");
                longer.groups[group].segments[at].wcet = wcet;
                grown += u32::from(wcet > slack.wcet);
                let again = admit(&longer).expect("a verdict");
                assert!(again.admitted, "{longer:?}");
            }
        }
    }
    assert!(admitted > 100 && grown > 100, "{admitted} {grown}");
}

#[test]
fn a_plan_beyond_its_limits_is_no_verdict() {
    let many = periodic(chain("many", 1, &[1], None), 1);
    let long = periodic(chain("long", 30_000, &[1], None), 30_000);
    let answer = admit(&system(2, vec![many, long]));
    assert!(
        matches!(answer, Err(AnalysisError::Unsupported { .. })),
        "{answer:?}"
    );
}

/// A period that is short beside the others', or beside a long deadline, is counted before it is
/// written out: this would be some 10^12 arrivals.
#[test]
fn more_arrivals_than_a_plan_may_have_fill_no_memory() {
    let short = || periodic(chain("short", 1, &[1], None), 1);
    let long = 1_000_000_000_000;
    let mut asked = chain("asked", long, &[1], None);
    asked.request = Request::OnLine {
        arrivals: Arrivals::At(vec![Instant::ZERO]),
        phase: Span::ZERO,
        min_separation: Span::ZERO,
    };
    let beside = [
        periodic(chain("long", 2, &[1], None), long),
        chain("once", long, &[1], None),
        asked,
    ];
    for other in beside {
        let name = other.name.clone();
        let refused = admit(&system(2, vec![short(), other]));
        let Err(AnalysisError::Unsupported { what }) = refused else {
            panic!("{name}: {refused:?}");
        };
        assert!(what.contains("more than 20000 segments"), "{what}");
    }
}
