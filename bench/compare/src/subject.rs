//! The system that is compared, as every rival needs it.

use punctual::{Class, Ns, Priority, Span, System};
use punctual_model::{Fault, Late, PolicyKind, TaskId, WorkSource};
use punctual_spec::Description;
use punctual_terminal::ending::Failure;

/// Priorities of the threads under SCHED_FIFO begin here, as those of a run do, if there is room.
const FIRST_PRIORITY: usize = 50;
/// The largest that SCHED_FIFO has is left to threads that watch over others.
const LAST_PRIORITY: usize = 98;

/// A system, and the same as periodic threads.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) system: System,
    pub(crate) tasks: Vec<Periodic>,
    /// Its most urgent task.
    pub(crate) urgent: usize,
    /// Where the priorities of SCHED_FIFO come from.
    pub(crate) priorities: &'static str,
    /// Limits of the rivals, in words.
    pub(crate) remarks: Vec<String>,
}

/// A periodic task; times are nanoseconds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Periodic {
    pub(crate) name: String,
    /// Its place among the CPUs of the file, and the host's number of that CPU.
    pub(crate) cpu: usize,
    pub(crate) host: u32,
    pub(crate) period: u64,
    pub(crate) phase: u64,
    pub(crate) relative_deadline: u64,
    pub(crate) wcet: u64,
    pub(crate) skips: bool,
    pub(crate) work: Work,
    /// Under SCHED_FIFO.
    pub(crate) priority: u32,
}

/// The work of a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Work {
    /// It executes for so long.
    Burn(u64),
    /// It calls this function of the shipped workloads.
    Function(String),
}

impl Periodic {
    /// Releases in [0, `duration`).
    pub(crate) fn releases(&self, duration: u64) -> u64 {
        match duration.checked_sub(self.phase) {
            None | Some(0) => 0,
            Some(rest) => rest.div_ceil(self.period.max(1)),
        }
    }

    /// The work of a job that nobody has seen to its end.
    pub(crate) fn declared(&self) -> u64 {
        match self.work {
            Work::Burn(ns) => ns,
            Work::Function(_) => self.wcet,
        }
    }
}

impl Subject {
    /// Reads a system as a set of periodic threads.
    ///
    /// # Errors
    /// When it has something that threads of the kernel have no counterpart of.
    pub(crate) fn of(description: &Description, hosts: &[u32]) -> Result<Subject, Failure> {
        let mut system = description.system.clone();
        let at = |place: Fault, message: String, help: &str| {
            Failure::diagnostics(vec![description.diagnostic(&place, message, help.into())])
        };
        if !hosts.is_empty() {
            if hosts.len() != system.cpus.len() {
                let message = format!(
                    "the file has {} CPUs, not {}",
                    system.cpus.len(),
                    hosts.len()
                );
                return Err(Failure::input(message).with_help("give --cpu a number for each"));
            }
            for (cpu, host) in system.cpus.iter_mut().zip(hosts) {
                cpu.host = Some(*host);
            }
        }
        plain(&system, &at)?;
        let mut tasks = Vec::new();
        for (index, task) in (0_u32..).zip(&system.tasks) {
            let host = system.cpus[task.cpu.index()].host.ok_or_else(|| {
                let name = &system.cpus[task.cpu.index()].name;
                Failure::input(format!("CPU `{name}` names no CPU of this machine"))
                    .with_help("say `host = 0` in its section, or --cpu 0")
            })?;
            tasks.push(periodic((TaskId(index), task), host, &at)?);
        }
        if tasks.is_empty() {
            return Err(Failure::input("the file has no tasks"));
        }
        let priorities = prioritize(&system, &mut tasks)?;
        let urgency = |(at, task): &(usize, &Periodic)| (task.priority, usize::MAX - at);
        let urgent = tasks.iter().enumerate().max_by_key(urgency);
        let urgent = urgent.map_or(0, |(at, _)| at);
        let remarks = remarks(&system, &tasks);
        Ok(Subject {
            system,
            tasks,
            urgent,
            priorities,
            remarks,
        })
    }

    /// The longest relative deadline.
    pub(crate) fn longest_deadline(&self) -> u64 {
        let deadlines = self.tasks.iter().map(|task| task.relative_deadline);
        deadlines.max().unwrap_or(0)
    }

    /// The CPUs of this machine that it uses.
    pub(crate) fn hosts(&self) -> Vec<u32> {
        self.system.cpus.iter().filter_map(|cpu| cpu.host).collect()
    }

    /// The same tasks on the same CPUs under fixed priority, without what only Punctual has.
    pub(crate) fn as_threads(&self) -> System {
        let mut system = System {
            cpus: self.system.cpus.clone(),
            ..System::default()
        };
        for cpu in &mut system.cpus {
            cpu.policy = PolicyKind::FixedPriority { preemptive: true };
        }
        for (task, periodic) in self.system.tasks.iter().zip(&self.tasks) {
            let mut thread = punctual::Task::new(&task.name, task.cpu, task.class);
            thread.phase = Span::from_ns(periodic.phase);
            thread.priority = Priority::new(periodic.priority);
            thread.late = match periodic.skips {
                true => Late::Skip,
                // A thread does every job, however late it is.
                false => Late::Queue {
                    backlog: u32::MAX / 2,
                },
            };
            system.tasks.push(thread);
        }
        system
    }
}

/// A mistake at a place of the file.
type At<'a> = dyn Fn(Fault, String, &str) -> Failure + 'a;

/// Periodic tasks right on CPUs, under a policy that priorities can stand for.
fn plain(system: &System, at: &At<'_>) -> Result<(), Failure> {
    let help = "compare takes periodic tasks that stand on their CPUs, without resources";
    if !system.schedulers.is_empty() || !system.resources.is_empty() {
        let message = "threads of the kernel have no schedulers and resources of this file".into();
        return Err(at(Fault::System, message, help));
    }
    for (index, cpu) in (0_u16..).zip(&system.cpus) {
        let place = Fault::Cpu(punctual::CpuId(index), "policy");
        if !matches!(
            cpu.policy,
            PolicyKind::FixedPriority { preemptive: true } | PolicyKind::EarliestDeadlineFirst
        ) {
            let message = format!("SCHED_FIFO cannot stand for `{}`", cpu.policy.name());
            let help = "compare takes CPUs under `fixed-priority` or `edf`";
            return Err(at(place, message, help));
        }
    }
    Ok(())
}

fn periodic(
    (id, task): (TaskId, &punctual::Task),
    host: u32,
    at: &At<'_>,
) -> Result<Periodic, Failure> {
    let Class::Periodic {
        period,
        wcet,
        relative_deadline,
    } = task.class
    else {
        let message = format!("`{}` is not periodic", task.name);
        return Err(at(
            Fault::Task(id, "class"),
            message,
            "compare takes periodic tasks",
        ));
    };
    if task.suspensions > 0 || !task.jitter.is_zero() || !task.non_preemptive.is_zero() {
        let message = format!(
            "`{}` waits, jitters or is not preemptible by declaration",
            task.name
        );
        return Err(at(
            Fault::Task(id, "class"),
            message,
            "compare takes plain periodic tasks",
        ));
    }
    let work = match &task.work {
        Some(WorkSource::Burn(work)) => Work::Burn(work.as_ns()),
        None => Work::Burn(wcet.as_ns()),
        Some(WorkSource::Function(name)) => Work::Function(name.clone()),
        Some(WorkSource::Call { .. } | WorkSource::Command(_)) => {
            let message = format!("the work of `{}` is code that only `run` calls", task.name);
            let help = "compare takes work that burns, or a function of this program";
            return Err(at(Fault::Task(id, "work"), message, help));
        }
    };
    let ns = |span: Span<Ns>| span.as_ns();
    Ok(Periodic {
        name: task.name.clone(),
        cpu: task.cpu.index(),
        host,
        period: ns(period),
        phase: ns(task.phase),
        relative_deadline: ns(relative_deadline),
        wcet: wcet.as_ns(),
        skips: task.late == Late::Skip,
        work,
        priority: 0,
    })
}

/// Priorities of SCHED_FIFO: the order of the file, else that of the deadlines. Equal ones stay
/// equal.
fn prioritize(system: &System, tasks: &mut [Periodic]) -> Result<&'static str, Failure> {
    let is_edf = |cpu: usize| system.cpus[cpu].policy == PolicyKind::EarliestDeadlineFirst;
    // A larger key is more urgent; each CPU has its own order.
    let key = |at: usize, task: &Periodic| match is_edf(task.cpu) {
        true => u64::MAX - task.relative_deadline,
        false => u64::from(system.tasks[at].priority.number()),
    };
    let keys: Vec<(usize, u64)> = tasks
        .iter()
        .enumerate()
        .map(|(at, t)| (t.cpu, key(at, t)))
        .collect();
    for (at, task) in tasks.iter_mut().enumerate() {
        let mut below: Vec<u64> = keys
            .iter()
            .filter(|(cpu, key)| *cpu == task.cpu && *key < keys[at].1)
            .map(|(_, key)| *key)
            .collect();
        below.sort_unstable();
        below.dedup();
        task.priority = u32::try_from(below.len()).unwrap_or(u32::MAX);
    }
    let levels = tasks
        .iter()
        .map(|task| task.priority as usize + 1)
        .max()
        .unwrap_or(1);
    let first = match FIRST_PRIORITY + levels - 1 <= LAST_PRIORITY {
        true => FIRST_PRIORITY,
        false => 1,
    };
    if first + levels - 1 > LAST_PRIORITY {
        let message = format!("{levels} priorities on a CPU are more than SCHED_FIFO has");
        return Err(Failure::input(message).with_help("compare takes up to 98"));
    }
    for task in tasks.iter_mut() {
        task.priority += u32::try_from(first).unwrap_or(1);
    }
    let edf = system
        .cpus
        .iter()
        .enumerate()
        .filter(|(at, _)| is_edf(*at))
        .count();
    Ok(match edf {
        0 => "the priorities of the file",
        edf if edf == system.cpus.len() => "deadline-monotonic, because the file says EDF",
        _ => "those of the file; deadline-monotonic where it says EDF",
    })
}

fn remarks(system: &System, tasks: &[Periodic]) -> Vec<String> {
    let mut remarks = Vec::new();
    if system
        .tasks
        .iter()
        .any(|t| !t.after.is_empty() || !t.follows.is_empty())
    {
        remarks.push("nothing but priorities keeps precedence among threads of the kernel".into());
    }
    if tasks
        .iter()
        .any(|task| matches!(task.work, Work::Function(_)))
    {
        remarks
            .push("gaps inside functions of the file are not seen in threads of the kernel".into());
    }
    if !system.requirements.is_empty() {
        remarks.push("[require] is not compared: deadlines are".into());
    }
    remarks
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn subject(text: &str) -> Result<Subject, Failure> {
        let description = punctual_spec::parse(text, "test.toml").expect("a system");
        Subject::of(&description, &[])
    }

    const TWO: &str = "[system]\ncpus = [0]\n[cpu.0]\npolicy = \"edf\"\n\
        [task.slow]\nclass = \"periodic\"\non = \"cpu.0\"\nperiod = \"20ms\"\nwcet = \"5ms\"\n\
        phase = \"1ms\"\n\
        [task.fast]\nclass = \"periodic\"\non = \"cpu.0\"\nperiod = \"10ms\"\nwcet = \"2ms\"\n";

    #[test]
    fn deadlines_make_the_priorities_where_the_file_says_edf() {
        let subject = subject(TWO).expect("a subject");
        let priorities: Vec<u32> = subject.tasks.iter().map(|t| t.priority).collect();
        assert_eq!(priorities, [50, 51]);
        assert_eq!(subject.urgent, 1);
        assert!(subject.priorities.contains("EDF"));
    }

    #[test]
    fn releases_count_from_the_phase_and_end_before_the_duration() {
        let subject = subject(TWO).expect("a subject");
        let [slow, fast] = &subject.tasks[..] else {
            panic!("two tasks")
        };
        assert_eq!(fast.releases(20_000_000), 2);
        assert_eq!(fast.releases(20_000_001), 3);
        // At 1 ms, and at 21 ms.
        assert_eq!(
            [21_000_000, 21_000_001, 1_000_000].map(|d| slow.releases(d)),
            [1, 2, 0]
        );
    }

    #[test]
    fn other_classes_are_refused_at_their_place() {
        let other = TWO.replacen("\"periodic\"", "\"reservation\"", 1);
        let other = other.replacen("wcet = \"5ms\"", "slice = \"5ms\"", 1);
        let refused = subject(&other).expect_err("a reservation").to_string();
        assert!(refused.contains("`slow` is not periodic"), "{refused}");
    }

    #[test]
    fn the_sets_of_the_published_comparison_can_be_compared() {
        let root = env!("CARGO_MANIFEST_DIR");
        let sets = ["sets/audio.toml", "sets/robot.toml", "sets/twenty.toml"];
        for set in sets.into_iter().chain(["../../examples/rosace.toml"]) {
            let description = punctual_spec::load(Path::new(root).join(set)).expect(set);
            let subject = Subject::of(&description, &[]).expect(set);
            let verdict = punctual::admit(&subject.system).expect(set);
            assert!(verdict.admitted, "{set}");
        }
    }
}
