//! Requests beside a running plan: granted whole and nobody is late, or refused and nothing changes

use punctual_analysis::{
    Exactness, FixTarget, GroupRequest, PlannedSegment, RequestVerdict, RunningPlan, Witness,
    admit, admit_request,
};
use punctual_generate::Random;
use punctual_model::{
    Arrivals, Cpu, Group, GroupId, Heuristic, Importance, Instant, Mode, Ns, Overload, PolicyKind,
    Protocol, Request, Resource, ResourceId, SegmentUse, Span, System, Work,
};

fn at(ns: u64) -> Instant<Ns> {
    Instant::from_ns(ns)
}

/// A chain of segments of one thread, all with the resource alone or none.
fn chain(name: String, deadline: u64, lengths: &[u64], uses: bool) -> Group {
    let mut group = Group::new(name, Span::from_ns(deadline));
    let main = group.thread("main");
    for (at, &length) in lengths.iter().enumerate() {
        let segment = group.segment(format!("s{at}"), main, Work::from_ns(length));
        let resource = ResourceId(0);
        let mode = Mode::Exclusive;
        let used = uses.then_some(SegmentUse { resource, mode });
        group.segments[segment].uses.extend(used);
    }
    group
}

fn on_line(group: Group) -> Group {
    let apart = Span::from_ns(1);
    let request = Request::OnLine {
        arrivals: Arrivals::Every(apart),
        phase: Span::ZERO,
        min_separation: apart,
    };
    Group { request, ..group }
}

fn system(cpus: u16, groups: Vec<Group>) -> System {
    let cpu = |number| Cpu {
        name: format!("c{number}"),
        host: None,
        policy: PolicyKind::Planned,
    };
    let system = System {
        cpus: (0..cpus).map(cpu).collect(),
        resources: vec![Resource {
            name: "r".into(),
            protocol: Protocol::Planned,
            at_budget_end: Default::default(),
        }],
        groups,
        ..System::default()
    };
    assert_eq!(system.validate(), Ok(()));
    system
}

/// One or two CPUs, two periodic groups or one, and four that are asked for.
fn drawn(random: &mut Random) -> System {
    let mut groups = Vec::new();
    for number in 0..6 {
        let count = random.within(1, 3);
        let lengths: Vec<u64> = (0..count).map(|_| random.within(1, 12)).collect();
        let all: u64 = lengths.iter().sum();
        let deadline = all + random.below(60);
        let name = format!("g{number}");
        let mut group = on_line(chain(name, deadline, &lengths, random.happens(500)));
        if number == 0 || number == 1 && random.happens(500) {
            group.request = Request::Periodic {
                period: Span::from_ns([100, 200][random.index(2)]),
            };
        }
        group.importance = Importance(u32::try_from(random.below(3)).unwrap_or(0));
        groups.push(group);
    }
    let mut system = system(1 + u16::from(random.happens(500)), groups);
    let planning = &mut system.planning;
    planning.within = Span::from_ns([0, 4, 20][random.index(3)]);
    planning.backtracks = [0, 100][random.index(2)];
    planning.overload = [Overload::Keep, Overload::Shed][random.index(2)];
    if random.happens(300) {
        planning.evaluation = Work::from_ns(1);
        planning.segment = Some(planning.evaluation);
    }
    system
}

/// The plan of a drawn system before its first instant.
fn running(system: &System) -> Option<RunningPlan> {
    let verdict = admit(system).expect("a verdict");
    let plan = verdict.plan.expect("groups").plan?;
    Some(RunningPlan::new(system, &plan).expect("its own plan"))
}

fn key(one: &PlannedSegment) -> (GroupId, u64, usize) {
    (one.group, one.instance, one.segment)
}

/// The plan holds, segment by segment, by the model alone.
fn is_lawful(system: &System, running: &RunningPlan) {
    let all: Vec<&PlannedSegment> = running.segments().collect();
    for (own, one) in all.iter().enumerate() {
        let group = &system.groups[one.group.index()];
        let segment = &group.segments[one.segment];
        assert!(one.start >= one.arrival);
        assert!(one.end <= one.arrival.saturating_add(group.relative_deadline));
        assert_eq!(one.end.since(one.start), segment.wcet.as_span());
        for other in &all[own + 1..] {
            let apart = one.end <= other.start || other.end <= one.start;
            let theirs = &system.groups[other.group.index()].segments[other.segment];
            let alone = !segment.uses.is_empty() && !theirs.uses.is_empty();
            if one.node == other.node || one.group == other.group || alone {
                assert!(apart, "{one:?} and {other:?}");
            }
            if (one.group, one.instance) == (other.group, other.instance) {
                assert_eq!(one.segment < other.segment, one.end <= other.start);
            }
        }
    }
}

/// A request changes what it may, and nothing else.
fn holds(
    system: &System,
    (before, after): (&RunningPlan, &RunningPlan),
    request: &GroupRequest,
    verdict: &RequestVerdict,
) {
    is_lawful(system, after);
    let new =
        |one: &&PlannedSegment| (one.group, one.instance) == (request.group, request.instance);
    let begin = request.now.max(before.cutoff());
    if verdict.refusal.is_some() {
        for one in before.segments().filter(|one| one.end > begin) {
            let stays = after.segments().any(|other| other == one);
            assert!(stays, "a refusal moves {one:?}");
        }
        // It may tell out more of the groups that repeat, and nothing else.
        for one in after.segments() {
            let repeats = matches!(
                system.groups[one.group.index()].request,
                Request::Periodic { .. }
            );
            let stood = before.segments().any(|other| other == one);
            assert!(repeats || stood, "a refusal adds {one:?}");
        }
        assert_eq!(verdict.removed, []);
        return;
    }
    let own = after.segments().filter(new).count();
    assert_eq!(own, system.groups[request.group.index()].segments.len());
    assert!(
        after
            .segments()
            .filter(new)
            .all(|one| one.start >= verdict.cutoff)
    );
    for one in before.segments() {
        let now = after.segments().find(|other| key(other) == key(one));
        let removed = verdict.removed.contains(&(one.group, one.instance));
        match now {
            None => assert!(one.end <= begin || removed, "{one:?} is lost"),
            Some(now) if one.start < verdict.cutoff => assert_eq!(now, one),
            Some(now) => assert!(now.start >= verdict.cutoff && !removed),
        }
    }
    for (group, _) in &verdict.removed {
        let worth = |group: &GroupId| system.groups[group.index()].importance;
        assert!(system.planning.overload == Overload::Shed);
        assert!(worth(group) < worth(&request.group));
    }
}

#[test]
fn a_granted_request_keeps_every_guarantee_and_a_refused_one_changes_nothing() {
    let mut random = Random::new(17);
    let (mut granted, mut refused, mut moved, mut removed) = (0, 0, 0, 0);
    for _ in 0..300 {
        let system = drawn(&mut random);
        let Some(mut plan) = running(&system) else {
            continue;
        };
        let mut now = 0;
        for instance in 0..12 {
            now += random.below(40);
            let asked = (0..6).filter(|own| !system.groups[*own].is_off_line());
            let asked: Vec<usize> = asked.collect();
            let group = asked[random.index(asked.len())];
            let request = GroupRequest {
                group: GroupId(u16::try_from(group).unwrap_or(0)),
                instance,
                arrival: at(now),
                now: at(now),
            };
            let before = plan.clone();
            let verdict = admit_request(&system, &mut plan, &request).expect("a verdict");
            let begin = request.now.max(before.cutoff());
            assert_eq!(verdict.cutoff, begin.saturating_add(system.planning.within));
            assert_eq!(plan.cutoff(), verdict.cutoff);
            holds(&system, (&before, &plan), &request, &verdict);
            match &verdict.refusal {
                None => granted += 1,
                Some(_) => refused += 1,
            }
            removed += verdict.removed.len();
            let stays = |one: &&PlannedSegment| {
                let mut now = plan.segments().filter(|other| key(other) == key(one));
                now.all(|now| now.start == one.start)
            };
            moved += before.segments().filter(|one| !stays(one)).count();
        }
    }
    let all = [granted, refused, moved];
    assert!(all.iter().all(|count| *count > 300), "{all:?}");
    assert!(removed > 5, "{removed}");
}

#[test]
fn where_nothing_runs_a_request_is_the_admission_of_one_arrival() {
    let mut random = Random::new(18);
    let (mut granted, mut refused) = (0, 0);
    for _ in 0..300 {
        let mut group = chain("g".into(), 1, &[], false);
        let second = group.thread("second");
        let (mut of_thread, mut all) = ([0, 0], 0);
        for number in 0..random.within(2, 5) {
            let (thread, length) = (random.index(2) * second, random.within(1, 12));
            let own = group.segment(format!("s{number}"), thread, Work::from_ns(length));
            let (resource, mode) = (ResourceId(0), Mode::Exclusive);
            let used = random.happens(500).then_some(SegmentUse { resource, mode });
            group.segments[own].uses.extend(used);
            of_thread[thread] += length;
            all += length;
        }
        let longest = of_thread[0].max(of_thread[1]);
        group.relative_deadline = Span::from_ns(random.within(longest, all + 3));
        let mut system = system(1 + u16::from(random.happens(500)), vec![group]);
        // Every order is tried by both, however long that takes.
        system.planning.backtracks = u64::MAX;
        let verdict = admit(&system).expect("a verdict");
        let request = GroupRequest {
            group: GroupId(0),
            instance: 0,
            arrival: at(0),
            now: at(0),
        };
        let mut nothing = RunningPlan::default();
        let answer = admit_request(&system, &mut nothing, &request).expect("a verdict");
        assert_eq!(answer.refusal.is_none(), verdict.admitted);
        match verdict.plan.and_then(|answer| answer.plan) {
            Some(plan) => {
                granted += 1;
                let mut own: Vec<PlannedSegment> = nothing.segments().cloned().collect();
                own.sort_by_key(|one| (one.start, one.node));
                assert_eq!(own, plan.segments);
            }
            None => {
                refused += 1;
                let own = answer.refusal.map(|one| (one.reason, one.witness, one.fix));
                let whole = verdict.refusals.into_iter().next();
                assert_eq!(own, whole.map(|one| (one.reason, one.witness, one.fix)));
            }
        }
    }
    assert!(granted > 50 && refused > 50, "{granted} {refused}");
}

/// A request at an instant, for a group that arrives then.
fn ask(system: &System, plan: &mut RunningPlan, group: u16, now: u64) -> RequestVerdict {
    let request = GroupRequest {
        group: GroupId(group),
        instance: 0,
        arrival: at(now),
        now: at(now),
    };
    admit_request(system, plan, &request).expect("a verdict")
}

#[test]
fn a_segment_takes_its_own_time_of_a_planner_and_that_of_24_evaluations_if_nobody_says_it() {
    let mut file = system(1, vec![on_line(chain("asked".into(), 99, &[10], false))]);
    file.planning.evaluation = Work::from_ns(1);
    for (segment, least) in [(None, 25), (Some(1), 2), (Some(40), 41)] {
        file.planning.segment = segment.map(Work::from_ns);
        let mut granted = |within| {
            file.planning.within = Span::from_ns(within);
            let answer = ask(&file, &mut RunningPlan::default(), 0, 0);
            answer.refusal.is_none()
        };
        assert!(granted(least) && !granted(least - 1), "{segment:?}");
    }
}

#[test]
fn the_dead_are_taken_out_when_a_request_is_granted_and_not_before() {
    let first = on_line(chain("first".into(), 20, &[10, 10], false));
    let second = on_line(chain("second".into(), 25, &[15], false));
    let third = on_line(chain("third".into(), 15, &[14], false));
    // A cutoff behind the start of the second segment, or a handler there, keeps its place.
    for (within, handler, room) in [(0, 0, true), (9, 0, false), (0, 4, false)] {
        let mut file = system(1, vec![first.clone(), second.clone(), third.clone()]);
        file.planning.within = Span::from_ns(within);
        file.groups[0].relative_deadline = Span::from_ns(20 + within);
        file.groups[0].segments[1].cleanup = Work::from_ns(handler);
        let mut plan = RunningPlan::default();
        assert_eq!(ask(&file, &mut plan, 0, 0).refusal, None);
        let now = within + 2;
        let alive = ask(&file, &mut plan.clone(), 1, now);
        assert!(alive.refusal.is_some());
        assert!(plan.killed((GroupId(0), 0), at(now)));
        assert!(!plan.killed((GroupId(1), 0), at(now)));
        let mut refused = plan.clone();
        assert!(ask(&file, &mut refused, 2, now).refusal.is_some());
        assert_eq!(refused.segments().count(), 2);
        let dead = ask(&file, &mut plan, 1, now);
        assert_eq!(dead.refusal.is_none(), room, "{within} {handler}: {dead:?}");
        let left: Vec<_> = plan.segments().map(key).collect();
        let own = |segment| (GroupId(0), 0, segment);
        match room {
            true => assert_eq!(left, [own(0), (GroupId(1), 0, 0)]),
            false => assert_eq!(left, [own(0), own(1)]),
        }
    }
}

#[test]
fn a_refused_request_is_exact_with_its_witness_and_has_a_fix_with_which_it_is_granted() {
    let mut loops = chain("loop".into(), 20, &[10], false);
    loops.request = Request::Periodic {
        period: Span::from_ns(100),
    };
    let asked = |deadline| on_line(chain("asked".into(), deadline, &[20], false));
    let file = |deadline| system(1, vec![loops.clone(), asked(deadline)]);
    let refused = file(25);
    let answer = ask(&refused, &mut running(&refused).expect("a plan"), 1, 0);
    assert_eq!(answer.row.exactness, Exactness::Exact);
    let refusal = answer.refusal.expect("30 by 25 are too much");
    let (demand, supply) = (Work::from_ns(30), Work::from_ns(25));
    let witness = Witness::Demand {
        at: Span::from_ns(25),
        demand,
        supply,
    };
    assert_eq!(refusal.witness, Some(witness));
    let fix = refusal.fix.expect("a later deadline");
    assert_eq!(fix.target, FixTarget::GroupDeadline(GroupId(1)));
    assert_eq!((fix.from.as_ns(), fix.to.as_ns()), (25, 30));
    let mended = file(30);
    let answer = ask(&mended, &mut running(&mended).expect("a plan"), 1, 0);
    assert_eq!(
        (answer.refusal, answer.row.ends),
        (None, Some(Span::from_ns(30)))
    );

    // At 4 the loop executes until 10, whatever is asked for.
    let exact = file(26);
    let answer = ask(&exact, &mut running(&exact).expect("a plan"), 1, 4);
    assert_eq!(
        (answer.refusal, answer.row.ends),
        (None, Some(Span::from_ns(26)))
    );
    assert_eq!(answer.row.slack[0].slack.to_string(), "0.0 %");
    let answer = ask(&refused, &mut running(&refused).expect("a plan"), 1, 4);
    assert_eq!(answer.row.exactness, Exactness::Exact);
    let reason = answer.refusal.map(|refusal| refusal.reason);
    assert!(
        reason
            .as_ref()
            .is_some_and(|words| words.ends_with("in every plan")),
        "{reason:?}"
    );

    // It has ended before its time, and the plan was told.
    let mut told = running(&refused).expect("a plan");
    assert!(told.ended((GroupId(0), 0), 0, at(4)));
    assert!(
        !told.ended((GroupId(0), 0), 0, at(4)),
        "it has ended already"
    );
    assert_eq!(
        ask(&refused, &mut told, 1, 4).row.ends,
        Some(Span::from_ns(20))
    );
}

#[test]
fn what_has_started_early_is_not_moved_for_a_request() {
    let mut late = chain("late".into(), 90, &[10], false);
    late.release = Span::from_ns(2);
    late.request = Request::Once { at: at(0) };
    let mut first = chain("first".into(), 30, &[30], false);
    first.request = Request::Once { at: at(0) };
    let mut asked = on_line(chain("asked".into(), 50, &[20], false));
    asked.relative_deadline = Span::from_ns(20);
    let mut system = system(1, vec![first, late, asked]);
    system.planning.heuristic = Heuristic::Deadline;
    let plan = running(&system).expect("a plan");
    // As planned, `late` is behind 30 and gives way.
    let mut early = plan.clone();
    assert!(early.ended((GroupId(0), 0), 0, at(5)));
    let mut moved = early.clone();
    assert_eq!(
        ask(&system, &mut moved, 2, 5).row.ends,
        Some(Span::from_ns(20))
    );
    // It has started at 5, so nothing else starts before 15.
    assert!(early.started((GroupId(1), 0), 0, at(5)));
    let answer = ask(&system, &mut early, 2, 5);
    assert!(answer.refusal.is_some(), "{answer:?}");
    let starts: Vec<u64> = early.segments().map(|one| one.start.as_ns()).collect();
    assert_eq!(starts, [5]);
}

#[test]
fn a_request_for_nobody_or_beside_the_plan_of_another_system_is_an_error() {
    let one = system(1, vec![on_line(chain("a".into(), 9, &[1], false))]);
    let mut nothing = RunningPlan::default();
    let request = GroupRequest {
        group: GroupId(1),
        instance: 0,
        arrival: at(0),
        now: at(0),
    };
    assert!(admit_request(&one, &mut nothing, &request).is_err());
    let mut group = chain("a".into(), 9, &[1, 1], false);
    group.request = Request::Once { at: at(0) };
    let other = system(1, vec![group]);
    let plan = admit(&other)
        .expect("a verdict")
        .plan
        .and_then(|plan| plan.plan);
    let plan = plan.expect("it is admitted");
    let mut longer = other;
    let more = longer.groups[0].segment("more", 0, Work::from_ns(1));
    assert_eq!(more, 2);
    assert!(RunningPlan::new(&longer, &plan).is_err());
}
