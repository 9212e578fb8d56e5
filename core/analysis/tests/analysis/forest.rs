//! Bounds under trees, servers, slots and locks are never exceeded in a brute-force simulation

use crate::common::forest::{Feed, Part, longest_responses};
use crate::common::random::Random;
use crate::common::{EDF, FP, empty, span, work};
use punctual_analysis::{admit, is_admitted};
use punctual_model::{
    AtBudgetEnd, Class, CpuId, Mode, Ns, PolicyKind, Priority, Protocol, Resource, ResourceId,
    Scheduler, SchedulerId, Server, ServerKind, Slot, Span, Supply, System, Task, Trust, Use, Work,
};

const FRAME: u64 = 12;
const TDM: PolicyKind<Ns> = PolicyKind::Tdm {
    frame: Span::from_ns(FRAME),
    scheduling: Span::ZERO,
};
const TURNS: PolicyKind<Ns> = PolicyKind::RoundRobin {
    timeslice: Span::from_ns(2),
};

fn pick<T: Copy>(random: &mut Random, list: &[T]) -> T {
    list[usize::try_from(random.within(0, list.len() as u64 - 1)).expect("short")]
}

fn small(random: &mut Random, low: u64, high: u64) -> u32 {
    u32::try_from(random.within(low, high)).expect("small")
}

fn draw_server(random: &mut Random) -> Supply {
    let period = random.within(4, 24);
    Supply::Server(Server {
        kind: pick(random, &ServerKind::ALL),
        budget: work(random.within(1, period.div_ceil(2))),
        period: span(period),
    })
}

/// Slots that nobody has yet; the frame is dealt out in pieces.
fn draw_slots(random: &mut Random, at: &mut u64) -> Option<Vec<Slot<Ns>>> {
    let mut slots = Vec::new();
    for _ in 0..random.within(1, 2) {
        let length = random.within(1, 4);
        if *at + length > FRAME {
            break;
        }
        slots.push(Slot {
            at: span(*at),
            length: span(length),
        });
        *at += length + random.within(0, 2);
    }
    (!slots.is_empty()).then_some(slots)
}

fn draw_schedulers(random: &mut Random, system: &mut System) {
    let mut at = 0;
    for index in 0..random.within(1, 4) {
        let parent = match random.within(0, index.min(system.schedulers.len() as u64)) {
            0 => None,
            above => Some(SchedulerId(u16::try_from(above - 1).expect("few"))),
        };
        let above = parent.map_or(system.cpus[0].policy, |p| {
            system.schedulers[p.index()].policy
        });
        let supply = match above {
            PolicyKind::Tdm { .. } => match draw_slots(random, &mut at) {
                Some(slots) => Supply::Slots(slots),
                None => continue,
            },
            PolicyKind::EarliestDeadlineFirst => draw_server(random),
            _ if random.within(0, 3) == 0 => Supply::Shared,
            _ => draw_server(random),
        };
        system.schedulers.push(Scheduler {
            name: format!("s{}", system.schedulers.len()),
            cpu: CpuId(0),
            parent,
            policy: pick(random, &[FP, FP, EDF, EDF, TURNS]),
            priority: Priority::new(small(random, 1, 9)),
            supply,
            trust: Trust::Inline,
            quota: None,
            receiver: None,
            fallback: None,
            code: None,
        });
    }
}

/// A tree on one CPU; tasks use about half of what there is.
fn draw_tree(random: &mut Random) -> System {
    let mut system = empty(pick(random, &[FP, FP, EDF, TDM]), 1);
    draw_schedulers(random, &mut system);
    let homes = system.schedulers.len() as u64;
    let divided = system.cpus[0].policy == TDM;
    if divided && homes == 0 {
        system.cpus[0].policy = FP;
    }
    for index in 0..random.within(2, 5) {
        let least = u64::from(system.cpus[0].policy == TDM);
        let period = random.within(12, 60);
        let wcet = random.within(1, (period / 10).max(1));
        let class = if random.within(0, 1) == 0 {
            Class::Sporadic {
                min_separation: span(period),
                wcet: work(wcet),
                relative_deadline: span(random.within(period / 2, 2 * period)),
            }
        } else {
            Class::Periodic {
                period: span(period),
                wcet: work(wcet),
                relative_deadline: span(random.within(period / 2, 2 * period)),
            }
        };
        let mut task = Task::new(format!("t{index}"), CpuId(0), class);
        let home = random.within(least, homes);
        task.scheduler = (home > 0).then(|| SchedulerId(u16::try_from(home - 1).expect("few")));
        task.priority = Priority::new(small(random, 1, 6));
        if random.within(0, 4) == 0 {
            task.non_preemptive = work(random.within(0, wcet));
        }
        system.tasks.push(task);
    }
    system
}

fn wcet(task: &Task) -> u64 {
    task.class.budget().map_or(0, Work::as_ns)
}

/// Releases as dense as they may be from a random phase on, or with gaps.
fn feed(random: &mut Random, system: &System, end: u64) -> Feed {
    let mut feed = Feed {
        end,
        salt: random.within(0, 10),
        ..Feed::default()
    };
    for task in &system.tasks {
        let period = task.class.min_separation().map_or(1, Span::as_ns);
        let mut at = random.within(0, period - 1);
        let loose = random.within(0, 3) == 0;
        let mut releases = Vec::new();
        while at < end {
            releases.push(at);
            at += period + if loose { random.within(0, 9) } else { 0 };
        }
        feed.releases.push(releases);
        let budget = wcet(task);
        feed.work.push(budget);
        let section = task.non_preemptive.as_ns().min(budget);
        let from = random.within(0, budget - section);
        feed.stretch.push((from, from + section));
        feed.parts.push(Vec::new());
    }
    feed
}

/// A system in a few lines.
fn told(system: &System) -> String {
    let mut words = format!("{:?}\n", system.cpus[0].policy);
    for s in &system.schedulers {
        let (parent, policy) = (s.parent.map(|p| p.0), s.policy);
        words += &format!(
            "{} on {parent:?} {policy:?} {:?} {:?}\n",
            s.name, s.priority, s.supply
        );
    }
    for t in &system.tasks {
        let home = t.scheduler.map(|s| s.0);
        words += &format!("{} on {home:?} {:?} {:?}", t.name, t.priority, t.class);
        words += &format!(" stretch {:?} uses {:?}\n", t.non_preemptive, t.uses);
    }
    words + &format!("{:?}", system.resources)
}

/// Compares every bound with the longest response of some runs; how many bounds there were.
fn compare(
    random: &mut Random,
    system: &System,
    seed: u64,
    runs: u64,
    place: Place,
) -> (u64, bool) {
    let verdict = admit(system).expect("small numbers");
    let admitted = is_admitted(system).expect("valid");
    assert_eq!(
        verdict.admitted,
        admitted,
        "seed {seed}: {} {:?}",
        told(system),
        verdict.refusals
    );
    let mut bounds = 0;
    for run in 0..runs {
        let mut feed = feed(random, system, 500);
        place(random, system, &mut feed);
        let seen = longest_responses(system, &feed);
        for (row, seen) in verdict.tasks.iter().zip(seen) {
            let Some(bound) = row.response_bound else {
                continue;
            };
            bounds += 1;
            assert!(
                seen <= bound.as_ns(),
                "seed {seed} run {run}: {} took {seen} of {}\n{}\n{feed:?}",
                row.name,
                row.explanation,
                told(system)
            );
        }
    }
    (bounds, admitted)
}

type Place = fn(&mut Random, &System, &mut Feed);

fn no_sections(_: &mut Random, _: &System, _: &mut Feed) {}

#[test]
fn no_job_exceeds_its_bound_under_any_tree() {
    let (mut bounds, mut admitted) = (0, 0);
    for seed in 0..1_500 {
        let mut random = Random::new(seed + 300_000);
        let system = draw_tree(&mut random);
        let found = compare(&mut random, &system, seed, 3, no_sections);
        bounds += found.0;
        admitted += u64::from(found.1);
    }
    assert!(bounds >= 6_000, "only {bounds} bounds");
    assert!((200..1_300).contains(&admitted), "{admitted} admitted");
}

/// Sections one after the other, or one inside the other, at random places of each job.
fn place_sections(random: &mut Random, system: &System, feed: &mut Feed) {
    for (index, task) in system.tasks.iter().enumerate() {
        let mut at = 0;
        let budget = wcet(task);
        let outer: u64 = task
            .uses
            .iter()
            .filter(|u| u.inside.is_none())
            .map(|u| u.length.as_ns())
            .sum();
        let mut spare = budget - outer;
        for (place, section) in task.uses.iter().enumerate() {
            let length = section.length.as_ns();
            let from = if section.inside.is_some() {
                feed.parts[index]
                    .last()
                    .map_or(0, |outer: &Part| outer.from)
            } else {
                let skip = random.within(0, spare);
                spare -= skip;
                at += skip + length;
                at - length
            };
            feed.parts[index].push(Part {
                from,
                to: from + length,
                place,
            });
        }
        // A stretch and a section at once would be held twice.
        if !task.uses.is_empty() {
            feed.stretch[index] = (0, 0);
        }
    }
}

fn draw_resources(random: &mut Random, system: &mut System, shared: bool) {
    let edf = |system: &System, task: &Task| {
        task.scheduler.map_or(system.cpus[0].policy, |s| {
            system.schedulers[s.index()].policy
        }) == EDF
    };
    for r in 0..random.within(1, 3) {
        let id = ResourceId(u16::try_from(r).expect("few"));
        let first = usize::try_from(random.within(0, system.tasks.len() as u64 - 1)).expect("few");
        let home = system.tasks[first].scheduler;
        let by_deadline = edf(system, &system.tasks[first]);
        let protocol = match random.within(0, 3) {
            _ if shared => Protocol::ImmediateCeiling,
            0 => Protocol::NonPreemptive,
            1 if by_deadline => Protocol::StackResource,
            1 => Protocol::ImmediateCeiling,
            _ => Protocol::Inheritance,
        };
        system.resources.push(Resource {
            name: format!("r{r}"),
            protocol,
            at_budget_end: pick(random, &[AtBudgetEnd::Overrun, AtBudgetEnd::CheckFirst]),
        });
        for task in 0..system.tasks.len() {
            let model = &system.tasks[task];
            let here = shared || model.scheduler == home;
            let used: u64 = model.uses.iter().map(|u| u.length.as_ns()).sum();
            if !here || used >= wcet(model) || (task != first && random.within(0, 2) == 0) {
                continue;
            }
            let nested = protocol == Protocol::Inheritance
                && random.within(0, 1) == 0
                && model.uses.last().is_some_and(|u| {
                    u.inside.is_none()
                        && system.resources[u.resource.index()].protocol == Protocol::Inheritance
                });
            let (inside, most) = match model.uses.last() {
                Some(outer) if nested => (Some(outer.resource), outer.length.as_ns()),
                _ => (None, wcet(model) - used),
            };
            system.tasks[task].uses.push(Use {
                resource: id,
                length: work(random.within(1, most)),
                mode: if random.within(0, 3) == 0 {
                    Mode::Shared
                } else {
                    Mode::Exclusive
                },
                inside,
            });
        }
    }
}

#[test]
fn no_job_exceeds_its_bound_with_locks_in_a_tree() {
    let (mut bounds, mut admitted) = (0, 0);
    for seed in 0..1_500 {
        let mut random = Random::new(seed + 600_000);
        let mut system = draw_tree(&mut random);
        for task in &mut system.tasks {
            task.non_preemptive = Work::ZERO;
            if let Class::Periodic { wcet, .. } | Class::Sporadic { wcet, .. } = &mut task.class {
                *wcet = work(random.within(1, 6));
            }
        }
        draw_resources(&mut random, &mut system, false);
        let found = compare(&mut random, &system, seed, 3, place_sections);
        bounds += found.0;
        admitted += u64::from(found.1);
    }
    assert!(bounds >= 6_000, "only {bounds} bounds");
    assert!((100..1_300).contains(&admitted), "{admitted} admitted");
}

#[test]
fn no_job_exceeds_its_bound_with_ceilings_shared_between_nodes() {
    let (mut bounds, mut admitted) = (0, 0);
    for seed in 0..1_000 {
        let mut random = Random::new(seed + 900_000);
        let mut system = draw_tree(&mut random);
        system.cpus[0].policy = FP;
        for scheduler in &mut system.schedulers {
            scheduler.policy = FP;
            if let Supply::Slots(_) = scheduler.supply {
                scheduler.supply = draw_server(&mut random);
            }
        }
        for task in &mut system.tasks {
            task.non_preemptive = Work::ZERO;
        }
        draw_resources(&mut random, &mut system, true);
        let found = compare(&mut random, &system, seed, 3, place_sections);
        bounds += found.0;
        admitted += u64::from(found.1);
    }
    assert!(bounds >= 3_000, "only {bounds} bounds");
    assert!((50..950).contains(&admitted), "{admitted} admitted");
}
