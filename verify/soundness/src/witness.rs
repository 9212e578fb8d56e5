//! Exact refusals: does the counter-example that they name really miss?

use punctual_analysis::{Exactness, Refusal, Subject, Verdict, Witness};
use punctual_generate::Random;
use punctual_model::{Class, CpuId, Instant, Machine, Ns, PolicyKind, Span, Supply, System, Task};

use crate::observe::{Seen, observe};
use crate::phases::{Alignment, Blocker, blockers, common_instant};
use crate::situation::{Offset, Stage, supply_ends};

/// Longest counter-example that is simulated, in jobs.
const MOST_JOBS: u64 = 20_000;

/// What became of a refusal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Confirmation {
    /// The verdict does not say that it is exact.
    NotExact,
    /// It names no counter-example that a schedule could show.
    NoWitness,
    /// The counter-example is too long to simulate.
    TooLong,
    /// It needs the machine to take its time at instants that a simulation cannot choose.
    NeedsReserves,
    /// The schedule misses as it says.
    Confirmed,
    /// A reservation is late before, and what it then sheds spares the task that is refused.
    OthersFirst,
    /// The schedule does not.
    Contradicted,
}

/// Whether every task that a refusal speaks of is judged by an exact test.
fn is_exact(system: &System, verdict: &Verdict, subject: Subject) -> bool {
    let exact = |task: usize| verdict.tasks[task].exactness == Exactness::Exact;
    match subject {
        Subject::Task(task) => exact(task.index()),
        // Budgets count in full there, whether anyone uses them or not.
        Subject::Cpu(cpu) if has_servers(system, cpu) => false,
        Subject::Cpu(cpu) => {
            let there = |t: &usize| system.tasks[*t].cpu == cpu;
            let mut tasks = (0..system.tasks.len())
                .filter(there)
                .filter(|&t| system.tasks[t].class.is_real_time())
                .peekable();
            tasks.peek().is_some() && tasks.all(exact)
        }
        Subject::Requirement(_) | Subject::Scheduler(_) | Subject::Graph(_) | Subject::Group(_) => {
            false
        }
    }
}

fn has_servers(system: &System, cpu: CpuId) -> bool {
    let mut here = system.schedulers.iter().filter(|s| s.cpu == cpu);
    here.any(|s| matches!(s.supply, Supply::Server(_)))
}

/// Whether the machine would have to take its time just within the slots, which a standstill that
/// repeats cannot do.
fn needs_chosen_takings(system: &System, subject: Subject) -> bool {
    let machine = &system.machine;
    let takes = machine.missing_time.is_some() || !machine.reserves.is_empty();
    let cpu = match subject {
        Subject::Task(task) => system.tasks[task.index()].cpu,
        Subject::Cpu(cpu) => cpu,
        _ => return false,
    };
    takes && matches!(system.cpus[cpu.index()].policy, PolicyKind::Tdm { .. })
}

/// Simulates the situation of a refusal's witness.
///
/// # Errors
/// What the simulation says when it does not start.
pub(crate) fn confirm(
    stage: &Stage<'_>,
    verdict: &Verdict,
    refusal: &Refusal,
    random: &mut Random,
) -> Result<Confirmation, String> {
    if !is_exact(stage.system, verdict, refusal.subject) {
        return Ok(Confirmation::NotExact);
    }
    if needs_chosen_takings(stage.system, refusal.subject) {
        return Ok(Confirmation::NeedsReserves);
    }
    let Some(witness) = refusal.witness else {
        return Ok(Confirmation::NoWitness);
    };
    let (length, own) = match witness {
        Witness::Demand { at, .. } => (at, None),
        Witness::Response {
            task,
            offset,
            response,
            ..
        } => (
            offset.saturating_add(response),
            Some((task.index(), offset.as_ns())),
        ),
    };
    if jobs_within(stage.system, length) > MOST_JOBS {
        return Ok(Confirmation::TooLong);
    }
    let starts = starts(stage.system, refusal.subject, random);
    let mut others = false;
    // The witness names neither the section that has begun before (none, or one of these), nor
    // where in a frame it happens, nor whether those who wait for others keep their distance.
    for blocker in [None].into_iter().chain(candidates(stage.system)) {
        for start in &starts {
            for together in [true, false] {
                let at = start.after(common_instant(stage.system, blocker));
                let alignment = Alignment { at, blocker, own };
                let seen = play(stage, length, alignment, together, random.bits())?;
                if shows(&seen, &witness) {
                    return Ok(Confirmation::Confirmed);
                }
                others |= seen.tasks.iter().any(|t| t.missed.is_some());
            }
        }
    }
    let sheds = |task: &Task| matches!(task.class, Class::Reservation { .. });
    if others && stage.system.tasks.iter().any(sheds) {
        return Ok(Confirmation::OthersFirst);
    }
    if reserves(&stage.system.machine) > 1 {
        return Ok(Confirmation::NeedsReserves);
    }
    Ok(Confirmation::Contradicted)
}

/// How many take time of their own. In virtual time one that finds another at it waits and keeps
/// its distance from then on, so several may take less than the analysis counts.
fn reserves(machine: &Machine) -> usize {
    machine.missing_time.iter().count() + machine.reserves.len()
}

fn jobs_within(system: &System, length: Span<Ns>) -> u64 {
    let separations = system.tasks.iter().filter_map(|t| t.class.min_separation());
    separations
        .map(|t| length.as_ns() / t.as_ns().max(1) + 1)
        .fold(0, u64::saturating_add)
}

fn candidates(system: &System) -> Vec<Option<Blocker>> {
    let mut all: Vec<Blocker> = (0..system.tasks.len())
        .flat_map(|own| blockers(system, own))
        .collect();
    all.sort_by_key(|b| (b.task, b.lead, b.ahead));
    all.dedup();
    all.into_iter().map(Some).collect()
}

/// Anywhere, or where a slot that its tasks live in ends.
fn starts(system: &System, subject: Subject, random: &mut Random) -> Vec<Offset> {
    let mut all = vec![Offset { at: 0, cycle: 1 }];
    for (index, task) in system.tasks.iter().enumerate() {
        let concerned = match subject {
            Subject::Task(id) => id.index() == index,
            Subject::Cpu(cpu) => task.cpu == cpu,
            _ => false,
        };
        if concerned {
            all.extend(supply_ends(system, task, random));
        }
    }
    all
}

fn play(
    stage: &Stage<'_>,
    length: Span<Ns>,
    alignment: Alignment,
    together: bool,
    seed: u64,
) -> Result<Seen, String> {
    let mut system = stage.system.clone();
    let own = alignment.own.map(|(task, offset)| {
        let cycle = system.tasks[task].class.min_separation();
        (task, cycle.map_or(offset, |t| offset % t.as_ns().max(1)))
    });
    let alignment = Alignment { own, ..alignment };
    let at = alignment.at;
    if together {
        alignment.apply_to_each(&mut system);
    } else {
        alignment.apply(&mut system);
    }
    let mut situation = stage.situation("witness".into(), system, at);
    situation.look.duration = Span::from_ns(at.saturating_add(length.as_ns()) + 1);
    situation.look.seed = seed;
    situation.look.faults.missing_from = Some(Instant::from_ns(at));
    observe(&situation.system, &situation.look)
}

/// A demand that is not met means some miss; a response means that one, at least so long.
fn shows(seen: &Seen, witness: &Witness) -> bool {
    match witness {
        Witness::Demand { .. } => seen.tasks.iter().any(|t| t.missed.is_some()),
        Witness::Response { task, response, .. } => {
            let seen = &seen.tasks[task.index()];
            // A slice that came short has no response, but it is late.
            let long = seen
                .longest
                .is_some_and(|(longest, _)| longest >= response.as_ns());
            long || seen.missed.is_some()
        }
    }
}
