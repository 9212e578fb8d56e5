//! What is flown in a round: a system by chance, and what each of its threads plays.
//!
//! Everything follows from one seed. Times are those at which a signal-driven scheduler just keeps
//! up (periods from 250 us, turns from 20 us): the aim is as many preemptions as possible in as
//! many places as possible, not that anybody meets a deadline.

use punctual_generate::Random;
use punctual_model::{
    Arrivals, Class, Cpu, CpuId, Fallback, Late, Ns, OnOverrun, PolicyKind, Priority, Scheduler,
    SchedulerId, Server, ServerKind, Slot, Span, Supply, System, Task, Trust, Work,
};

use crate::manner::Manner;
use crate::pair::Medium;

/// Threads that are prepared for those who create some, by CPU.
pub(crate) const POOL: usize = 24;
/// Members of the barrier of a CPU.
pub(crate) const BARRIER: usize = 3;

/// What a thread does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// Ends the round and looks at what is left: one on each CPU, the first.
    Conductor,
    /// Any operation on what the CPU shares, again and again or a few per job.
    Player,
    /// One side of a game for two.
    Side { game: usize, side: usize },
    /// Meets the others at the barrier.
    Member,
    /// Rings the bell of the other CPU and hears its own.
    Ringer,
    /// Burns time and needs more than it said.
    Burner,
    /// Changes the tree of its CPU.
    Manager,
}

/// One round.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) system: System,
    /// By task.
    pub(crate) roles: Vec<Role>,
    /// The media of the games for two of each CPU.
    pub(crate) games: Vec<Vec<Medium>>,
    /// By scheduler: how its code behaves, if it decides on its own supply.
    pub(crate) manners: Vec<Manner>,
    /// Schedulers and slices that each CPU has room for beside those of the start; 0: its tree
    /// stays as it is.
    pub(crate) spare: Vec<u16>,
    /// Longest turn of background work among equals.
    pub(crate) turn_us: u64,
    /// In a few words.
    pub(crate) name: String,
}

/// Draws the round of a seed, on these host CPUs or the last of them.
pub(crate) fn draw(seed: u64, hosts: &[u32]) -> Scenario {
    let mut random = Random::at(seed, &[1]);
    let both = hosts.len() > 1 && random.happens(600);
    let from = if both {
        hosts.len() - 2
    } else {
        hosts.len() - 1
    };
    let turn_us = random.within(20, 40);
    let mut scenario = Scenario {
        system: System::default(),
        roles: Vec::new(),
        games: Vec::new(),
        manners: Vec::new(),
        spare: Vec::new(),
        turn_us,
        name: String::new(),
    };
    let mut names = Vec::new();
    for (index, host) in (0_u16..).zip(&hosts[from..]) {
        names.push(add_cpu(&mut scenario, &mut random, CpuId(index), *host));
    }
    scenario.name = format!("{}, turns of {turn_us} us", names.join(" | "));
    scenario
}

/// Draws one CPU; returns its shape in words.
fn add_cpu(scenario: &mut Scenario, random: &mut Random, cpu: CpuId, host: u32) -> String {
    let first = scenario.system.schedulers.len();
    let (policy, below, name) = shape(random, cpu, first);
    scenario.system.cpus.push(Cpu {
        name: cpu.0.to_string(),
        host: Some(host),
        policy,
    });
    let mut homes: Vec<Option<SchedulerId>> = Vec::new();
    if !matches!(policy, PolicyKind::Tdm { .. }) {
        homes.push(None);
    }
    for mut scheduler in below {
        let manner = manner(&mut scheduler, random);
        scenario.manners.push(manner);
        homes.push(Some(SchedulerId(small(scenario.system.schedulers.len()))));
        scenario.system.schedulers.push(scheduler);
    }
    let changes = random.happens(600);
    let room = u16::try_from(random.within(1, 12)).unwrap_or(1);
    scenario.spare.push(if changes { room } else { 0 });
    let mut cast = Cast {
        scenario,
        random,
        cpu,
        homes,
    };
    cast.all();
    let manners = scenario.manners[first..].iter();
    let told = manners.filter(|manner| **manner != Manner::Honest);
    let told: String = told
        .map(|manner| format!(", one {}", manner.name()))
        .collect();
    name + &told + if changes { ", changing" } else { "" }
}

/// The manner of a scheduler that decides on its own supply. One that goes wrong for good has a
/// fallback.
fn manner(scheduler: &mut Scheduler, random: &mut Random) -> Manner {
    if scheduler.trust != Trust::OwnTime {
        return Manner::Honest;
    }
    let manner = match random.happens(300) {
        true => Manner::Honest,
        false => *random.pick(&Manner::ALL).unwrap_or(&Manner::Honest),
    };
    if manner.ends() || random.happens(300) {
        scheduler.fallback = Some(Fallback {
            policy: leaf(random),
            after: 1 + u32::try_from(random.below(4)).unwrap_or(0),
        });
    }
    manner
}

/// A CPU's own policy and the schedulers below it, of which the first has number `first`.
fn shape(
    random: &mut Random,
    cpu: CpuId,
    first: usize,
) -> (PolicyKind<Ns>, Vec<Scheduler>, String) {
    let (policy, count) = match random.below(10) {
        0..4 => (leaf(random), 0),
        4..8 => (parent(random), random.within(1, 3)),
        _ => {
            let frame = Span::from_us(random.within(3, 12) * 100);
            let scheduling = Span::from_us(random.below(2) * 10);
            (PolicyKind::Tdm { frame, scheduling }, random.within(2, 3))
        }
    };
    let mut words = vec![policy.name().to_owned()];
    let mut below = Vec::new();
    for place in 0..count {
        let mut policy_below = leaf(random);
        let own_time = random.happens(300);
        if own_time && policy_below == (PolicyKind::FixedPriority { preemptive: false }) {
            policy_below = PolicyKind::EarliestDeadlineFirst;
        }
        let supply = match policy {
            PolicyKind::Tdm { frame, scheduling } => {
                Supply::Slots(slots((frame, scheduling), (place, count)))
            }
            _ => supply(random, count),
        };
        words.push(format!(
            "{}{} on {}",
            if own_time { "own-time " } else { "" },
            policy_below.name(),
            match &supply {
                Supply::Shared => "its parent's time",
                Supply::Server(server) => server.kind.name(),
                Supply::Slots(_) => "slots",
            }
        ));
        below.push(Scheduler {
            name: format!("s{}", first as u64 + place),
            cpu,
            parent: None,
            policy: policy_below,
            priority: Priority::new(20 + u32::try_from(random.below(40)).unwrap_or(0)),
            supply,
            trust: if own_time {
                Trust::OwnTime
            } else {
                Trust::Inline
            },
            quota: None,
            receiver: None,
            fallback: None,
            code: None,
        });
    }
    (policy, below, words.join(" over "))
}

/// A policy that orders threads.
pub(crate) fn leaf(random: &mut Random) -> PolicyKind<Ns> {
    match random.below(6) {
        0 => PolicyKind::Fifo,
        1 => PolicyKind::RoundRobin {
            timeslice: Span::from_ns(1_000 * (random.within(20, 60))),
        },
        2 => PolicyKind::FixedPriority { preemptive: false },
        3 => PolicyKind::EarliestDeadlineFirst,
        _ => PolicyKind::FixedPriority { preemptive: true },
    }
}

/// A policy that orders servers.
fn parent(random: &mut Random) -> PolicyKind<Ns> {
    match random.below(3) {
        0 => PolicyKind::EarliestDeadlineFirst,
        _ => PolicyKind::FixedPriority { preemptive: true },
    }
}

/// A server with its share of nine tenths of the time.
fn supply(random: &mut Random, count: u64) -> Supply {
    let period = random.within(3, 20) * 100;
    let kind = *random
        .pick(&ServerKind::ALL)
        .unwrap_or(&ServerKind::Polling);
    Supply::Server(Server {
        kind,
        budget: Work::from_us(period * 9 / (10 * count)),
        period: Span::from_us(period),
    })
}

/// Equal parts of the frame.
fn slots((frame, scheduling): (Span<Ns>, Span<Ns>), (place, count): (u64, u64)) -> Vec<Slot<Ns>> {
    let part = frame.as_ns() / count;
    vec![Slot {
        at: Span::from_ns(part * place),
        length: Span::from_ns(part.saturating_sub(scheduling.as_ns())),
    }]
}

/// The threads of one CPU in the making.
struct Cast<'a> {
    scenario: &'a mut Scenario,
    random: &'a mut Random,
    cpu: CpuId,
    homes: Vec<Option<SchedulerId>>,
}

impl Cast<'_> {
    fn all(&mut self) {
        self.add(Role::Conductor, Class::Aperiodic, 50);
        if self.scenario.spare.last().is_some_and(|room| *room > 0) {
            self.add(Role::Manager, Class::Aperiodic, 49);
        }
        for _ in 0..self.random.within(2, 5) {
            let class = self.by_the_clock();
            let priority = self.priority();
            self.add(Role::Player, class, priority);
        }
        for _ in 0..self.random.within(2, 4) {
            let priority = self.priority();
            self.add(Role::Player, Class::Aperiodic, 1 + priority % 3);
        }
        let mut media = Vec::new();
        for game in 0..usize::try_from(self.random.within(1, 3)).unwrap_or(1) {
            media.push(Medium::ALL[self.random.index(Medium::ALL.len())]);
            for side in 0..2 {
                let priority = self.priority();
                let role = Role::Side { game, side };
                self.add(role, Class::Aperiodic, 1 + priority % 4);
            }
        }
        self.scenario.games.push(media);
        if self.random.happens(500) {
            for _ in 0..BARRIER {
                let priority = self.priority();
                self.add(Role::Member, Class::Aperiodic, 1 + priority % 3);
            }
        }
        self.add(Role::Ringer, Class::Aperiodic, 3);
        if self.random.happens(400) {
            let class = self.by_the_clock();
            self.add(Role::Burner, class, 1);
        }
        // Who only computes is preempted at every turn, and whenever anybody else comes.
        let home = self.homes[self.random.index(self.homes.len())];
        for _ in 0..2 {
            self.add(Role::Burner, Class::Aperiodic, 1);
            if let Some(task) = self.scenario.system.tasks.last_mut() {
                task.scheduler = home;
            }
        }
    }

    fn priority(&mut self) -> u32 {
        u32::try_from(self.random.within(1, 90)).unwrap_or(1)
    }

    /// Periodic or sporadic work, a reservation, or work that is done once: a few per cent each. A
    /// budget below the cost of a few entries would be eaten up by them.
    fn by_the_clock(&mut self) -> Class<Ns> {
        let period = self.random.within(250, 2_000);
        let work = Work::from_us((period * self.random.within(3, 12) / 100).max(30));
        let period = Span::from_us(period);
        match self.random.below(8) {
            0 => Class::Reservation {
                period,
                slice: work,
            },
            1 => Class::Once {
                size: work,
                relative_deadline: period,
            },
            2 => Class::Sporadic {
                min_separation: period,
                wcet: work,
                relative_deadline: period,
            },
            _ => Class::Periodic {
                period,
                wcet: work,
                relative_deadline: period,
            },
        }
    }

    fn add(&mut self, role: Role, class: Class<Ns>, priority: u32) {
        let number = self.scenario.roles.len();
        let mut task = Task::new(format!("t{number}"), self.cpu, class);
        task.priority = Priority::new(priority);
        // The conductor stands as high as possible: it has to come when all is over.
        task.scheduler = match role {
            Role::Conductor | Role::Manager => self.homes[0],
            _ => self.homes[self.random.index(self.homes.len())],
        };
        if class.is_real_time() {
            task.phase = Span::from_us(self.random.below(500));
            task.late = match self.random.below(3) {
                0 => Late::Skip,
                _ => Late::Queue { backlog: 8 },
            };
            task.on_overrun = match (role, self.random.below(3)) {
                // Only burners can end anywhere: players would leave their books open.
                (Role::Burner, _) => OnOverrun::Stop,
                (_, 0) => OnOverrun::Throttle,
                (_, 1) => OnOverrun::Demote,
                _ => OnOverrun::Signal,
            };
        }
        if let Class::Sporadic { min_separation, .. } = class {
            // Half of the gaps are shorter than allowed: those wait.
            task.arrivals = Arrivals::Every(Span::from_ns(min_separation.as_ns() * 3 / 4));
        }
        self.scenario.system.tasks.push(task);
        self.scenario.roles.push(role);
    }
}

fn small(n: usize) -> u16 {
    u16::try_from(n).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_is_a_system_that_means_something() {
        for seed in 0..2_000 {
            let scenario = draw(seed, &[0, 1]);
            let valid = scenario.system.validate();
            assert!(valid.is_ok(), "seed {seed}: {valid:?}");
            assert_eq!(scenario.system.tasks.len(), scenario.roles.len());
        }
    }

    #[test]
    fn every_policy_server_class_and_medium_is_drawn() {
        let rounds: Vec<Scenario> = (0..300).map(|seed| draw(seed, &[0, 1])).collect();
        let text = format!("{rounds:?}");
        for word in [
            "Fifo",
            "RoundRobin",
            "Earliest",
            "Tdm",
            "OwnTime",
            "Sporadic",
        ] {
            assert!(text.contains(word), "{word}");
        }
        for kind in ServerKind::ALL {
            assert!(text.contains(&format!("kind: {kind:?}")), "{kind:?}");
        }
        for manner in Manner::ALL {
            assert!(text.contains(&format!("{manner:?}")), "{manner:?}");
        }
        assert!(text.contains("Manager"));
        for medium in Medium::ALL {
            assert!(text.contains(&format!("{medium:?}")), "{medium:?}");
        }
        assert!(rounds.iter().any(|round| round.system.cpus.len() == 1));
        assert!(rounds.iter().any(|round| round.system.cpus.len() == 2));
    }
}
