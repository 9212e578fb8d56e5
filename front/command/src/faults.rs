//! `--fault KIND=VALUE`: what goes wrong in virtual time, in the notation of the command line.

use std::str::FromStr;

use punctual::{Crash, Faults, LongFirings, Misconduct, MissingTime, Overrun};
use punctual_model::{
    ActorId, CpuId, Graph, GraphId, Ns, SchedulerId, Span, System, TaskId, Tile, Trust, When,
};

use crate::input;
use punctual_terminal::ending::Failure;

/// One fault; tasks and CPUs by name, because the file is not read yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// `missing-time=500us/10ms` or `missing-time=500us/10ms@CPU`.
    MissingTime {
        length: Span<Ns>,
        every: Span<Ns>,
        cpu: Option<String>,
    },
    /// `late-timer=100us`.
    LateTimer(Span<Ns>),
    /// `jitter`.
    Jitter,
    /// `overrun=TASK:1.5`, or `overrun=GRAPH.ACTOR:1.5`.
    Overrun { task: String, per_mille: u32 },
    /// `short-firings`.
    ShortFirings,
    /// `crash=TASK@3`.
    Crash { task: String, job: u64 },
    /// `clock-offset=1us`, or `clock-offset=1us@CPU`.
    ClockOffset(Span<Ns>, Option<String>),
    /// `clock-drift=10ppm`, or `clock-drift=10ppm@CPU`: parts per billion.
    ClockDrift(u32, Option<String>),
    /// `cache-delay=20us`.
    CacheDelay(Span<Ns>),
    /// `decision-cost=1us`.
    DecisionCost(Span<Ns>),
    /// `child-loops=NAME`, `child-lies=NAME`, `child-silent=NAME`.
    Child { name: String, does: Misconduct },
}

const KINDS: &str = "missing-time=500us/10ms, late-timer=100us, jitter, overrun=TASK:1.5, overrun=GRAPH.ACTOR:1.5, short-firings, \
     crash=TASK@3, clock-offset=1us, clock-drift=10ppm, \
     cache-delay=20us, decision-cost=1us, child-loops=SCHEDULER, child-lies=SCHEDULER, \
     child-silent=SCHEDULER";

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Fault, String> {
        let (kind, value) = match text.split_once('=') {
            Some((kind, value)) => (kind, Some(value)),
            None => (text, None),
        };
        match (kind, value) {
            ("short-firings", None) => Ok(Fault::ShortFirings),
            ("jitter", None) => Ok(Fault::Jitter),
            ("late-timer", Some(value)) => Ok(Fault::LateTimer(input::duration(value)?)),
            ("cache-delay", Some(value)) => Ok(Fault::CacheDelay(input::duration(value)?)),
            ("decision-cost", Some(value)) => Ok(Fault::DecisionCost(input::duration(value)?)),
            ("child-loops", Some(name)) => Ok(child(name, Misconduct::Loops)),
            ("child-lies", Some(name)) => Ok(child(name, Misconduct::Lies)),
            ("child-silent", Some(name)) => Ok(child(name, Misconduct::Silent)),
            ("missing-time", Some(value)) => missing_time(value),
            ("clock-offset", Some(value)) => {
                let (amount, cpu) = at_cpu(value);
                Ok(Fault::ClockOffset(input::duration(amount)?, cpu))
            }
            ("clock-drift", Some(value)) => {
                let (amount, cpu) = at_cpu(value);
                Ok(Fault::ClockDrift(parts_per_billion(amount)?, cpu))
            }
            ("overrun", Some(value)) => {
                let (task, factor) = value
                    .rsplit_once(':')
                    .ok_or("write the task and a factor: overrun=TASK:1.5")?;
                Ok(Fault::Overrun {
                    task: task.into(),
                    per_mille: per_mille(factor)?,
                })
            }
            ("crash", Some(value)) => {
                let (task, job) = value
                    .rsplit_once('@')
                    .ok_or("write the task and a job: crash=TASK@3")?;
                let job = job
                    .parse()
                    .map_err(|_| format!("`{job}` is not the number of a job"))?;
                Ok(Fault::Crash {
                    task: task.into(),
                    job,
                })
            }
            _ => Err(format!("the faults are {KINDS}")),
        }
    }
}

fn child(name: &str, does: Misconduct) -> Fault {
    let name = name.into();
    Fault::Child { name, does }
}

/// An amount, and the CPU behind it.
fn at_cpu(value: &str) -> (&str, Option<String>) {
    match value.split_once('@') {
        Some((amount, cpu)) => (amount, Some(cpu.into())),
        None => (value, None),
    }
}

/// `10ppm` or `0.5ppm` as parts per billion: at most three digits behind the point.
fn parts_per_billion(text: &str) -> Result<u32, String> {
    let number = text
        .strip_suffix("ppm")
        .ok_or("write parts per million, such as 10ppm")?;
    per_mille(number).map_err(|_| format!("`{text}` is not a drift such as 10ppm"))
}

fn missing_time(value: &str) -> Result<Fault, String> {
    let (amount, cpu) = at_cpu(value);
    let reserve = input::missing_time(amount)?;
    Ok(Fault::MissingTime {
        length: reserve.budget.as_span(),
        every: reserve.period,
        cpu,
    })
}

/// `1.5` as 1500: at most three digits behind the point, so nothing is rounded.
fn per_mille(text: &str) -> Result<u32, String> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let thousandths = (digits(whole) && digits(fraction) && fraction.len() <= 3)
        .then(|| format!("{whole}{fraction:0<3}").parse().ok())
        .flatten();
    thousandths.ok_or_else(|| format!("`{text}` is not a factor such as 1.5"))
}

/// All faults together, with names resolved in `system`.
pub(crate) fn resolve(faults: &[Fault], system: &System) -> Result<Faults, Failure> {
    let mut all = Faults::default();
    for fault in faults {
        match fault {
            Fault::Jitter => all.jitter = true,
            Fault::ShortFirings => {
                if system.graphs.is_empty() {
                    let what = "--fault short-firings: the file has no graph";
                    return Err(Failure::input(what).with_help("it shortens firings of actors"));
                }
                all.short_firings = true;
            }
            Fault::LateTimer(span) => all.late_timer = *span,
            Fault::CacheDelay(span) => all.cache_delay = span.as_work(),
            Fault::DecisionCost(span) => {
                if system.schedulers.iter().all(|s| s.trust != Trust::OwnTime) {
                    let what = "--fault decision-cost: no scheduler of the file decides itself";
                    return Err(Failure::input(what)
                        .with_help("it applies to schedulers with `trust = \"own-time\"`"));
                }
                all.decision_cost = span.as_work();
            }
            Fault::Child { name, does } => all.children.push((find_child(system, name)?, *does)),
            Fault::ClockOffset(most, cpu) => {
                let cpu = cpu.as_deref().map(|name| find_cpu(system, name));
                all.clock_offsets.push((cpu.transpose()?, *most));
            }
            Fault::ClockDrift(most, cpu) => {
                let cpu = cpu.as_deref().map(|name| find_cpu(system, name));
                all.clock_drifts.push((cpu.transpose()?, *most));
            }
            Fault::MissingTime { length, every, cpu } => {
                let cpu = cpu
                    .as_deref()
                    .map(|name| find_cpu(system, name))
                    .transpose()?;
                all.missing.push(MissingTime {
                    cpu,
                    length: *length,
                    every: *every,
                });
            }
            Fault::Overrun { task, per_mille } => {
                if let Some((graph, actor)) = find_actor(system, task)? {
                    all.long_firings.push(LongFirings {
                        graph,
                        actor,
                        per_mille: *per_mille,
                    });
                    continue;
                }
                let task = find_task(system, task)?;
                all.overruns.push(Overrun {
                    task,
                    per_mille: *per_mille,
                });
            }
            Fault::Crash { task, job } => {
                all.crashes.push(Crash {
                    task: find_task(system, task)?,
                    job: *job,
                });
            }
        }
    }
    Ok(all)
}

fn find_task(system: &System, name: &str) -> Result<TaskId, Failure> {
    let tasks = system.tasks.iter().map(|task| task.name.as_str());
    find("task", name, (0..).map(TaskId).zip(tasks))
}

/// `GRAPH.ACTOR` with the name of a graph; `None`: it is a task.
fn find_actor(system: &System, name: &str) -> Result<Option<(GraphId, ActorId)>, Failure> {
    let Some((graph, actor)) = name.split_once('.') else {
        return Ok(None);
    };
    let mut graphs = (0..).map(GraphId).zip(&system.graphs);
    let Some((id, found)) = graphs.find(|(_, known)| known.name == graph) else {
        return Ok(None);
    };
    let names = found.actors.iter().map(|actor| actor.name.as_str());
    let actor = find("actor", actor, (0..).map(ActorId).zip(names))?;
    Ok(Some((id, actor)))
}

/// Only a scheduler that decides on its own supply has code that can misbehave, and a graph that
/// does so in its slots.
fn find_child(system: &System, name: &str) -> Result<SchedulerId, Failure> {
    let own = |graph: &Graph, tile: Tile| graph.when_on(tile) != When::Inline;
    let graphs = system.graphs.iter();
    let tiles = graphs.flat_map(|graph| {
        let tiles = graph.actors.iter().map(|actor| actor.tile);
        tiles.filter(|&tile| own(graph, tile))
    });
    let tiles: Vec<_> = tiles.map(|tile| tile.scheduler).collect();
    let all = (0..).map(SchedulerId).zip(&system.schedulers);
    let own_time = all
        .filter(|(id, scheduler)| scheduler.trust == Trust::OwnTime || tiles.contains(&Some(*id)));
    let own_time = own_time.map(|(id, scheduler)| (id, scheduler.name.as_str()));
    find("own-time scheduler", name, own_time)
}

fn find_cpu(system: &System, name: &str) -> Result<CpuId, Failure> {
    let cpus = system.cpus.iter().map(|cpu| cpu.name.as_str());
    find("CPU", name, (0..).map(CpuId).zip(cpus))
}

/// The one of this name, or the mistake with the names that there are.
fn find<'a, Id>(
    what: &str,
    name: &str,
    all: impl Iterator<Item = (Id, &'a str)> + Clone,
) -> Result<Id, Failure> {
    let found = all.clone().find(|(_, other)| *other == name);
    found
        .map(|(id, _)| id)
        .ok_or_else(|| unknown(what, name, all.map(|(_, name)| name)))
}

fn unknown<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str>) -> Failure {
    let known = known.take(20).collect::<Vec<_>>().join(", ");
    let known = if known.is_empty() { "none" } else { &known };
    Failure::input(format!(
        "--fault names the {what} `{name}`, which the file does not have"
    ))
    .with_help(format!("it has {known}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_read_as_they_are_documented() {
        let span = Span::from_us;
        let missing = |cpu| Fault::MissingTime {
            length: span(500),
            every: span(10_000),
            cpu,
        };
        let overrun = |per_mille| Fault::Overrun {
            task: "a:b".into(),
            per_mille,
        };
        for (text, fault) in [
            ("jitter", Fault::Jitter),
            ("short-firings", Fault::ShortFirings),
            ("late-timer=100us", Fault::LateTimer(span(100))),
            ("cache-delay=20us", Fault::CacheDelay(span(20))),
            ("decision-cost=1us", Fault::DecisionCost(span(1))),
            ("child-lies=app", child("app", Misconduct::Lies)),
            ("missing-time=500us/10ms", missing(None)),
            (
                "missing-time=500us/10ms@Core0",
                missing(Some("Core0".into())),
            ),
            ("clock-offset=100us", Fault::ClockOffset(span(100), None)),
            (
                "clock-drift=10ppm@b",
                Fault::ClockDrift(10_000, Some("b".into())),
            ),
            ("clock-drift=0.5ppm", Fault::ClockDrift(500, None)),
            ("overrun=a:b:1.5", overrun(1_500)),
            ("overrun=a:b:2", overrun(2_000)),
            (
                "crash=a@3",
                Fault::Crash {
                    task: "a".into(),
                    job: 3,
                },
            ),
        ] {
            assert_eq!(text.parse(), Ok(fault), "{text}");
        }
        let wrong = [
            "",
            "jitter=1",
            "overrun=a",
            "overrun=a:1.5555",
            "overrun=a:-1",
            "crash=a@b",
            "clock-offset=1",
            "clock-drift=10",
        ];
        for text in wrong {
            assert!(text.parse::<Fault>().is_err(), "{text}");
        }
    }
}
