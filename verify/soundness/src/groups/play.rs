//! A system with groups in virtual time: its log, and what became of each request

use punctual::{Faults, group_terms};
use punctual_analysis::PlanVerdict;
use punctual_model::{Frequency, Span, System};
use punctual_policy::AnyPolicy;
use punctual_sim::{CpuInput, GroupOutcome, Groups, Guests, Options, run_with};
use punctual_tables::{CpuTables, Tables};
use punctual_trace::{Header, Log, Mode, Recorder};

use super::draw::DURATION;

/// Memory for the log of one CPU.
const LOG_BYTES: usize = 1 << 19;

/// Makes the planner of a simulation wrong.
pub type Misplan = fn(&mut Groups);

/// One run.
#[derive(Clone, Debug)]
pub struct Played {
    /// All that the shards did.
    pub log: Log,
    /// The requests, in the order in which they were planned.
    pub outcomes: Vec<GroupOutcome>,
}

/// Executes the groups of a system with the plan of its verdict.
///
/// # Errors
/// Why the run does not begin, or is not complete.
pub(super) fn play(
    system: &System,
    answer: &PlanVerdict,
    (faults, seed): (&Faults, u64),
    change: impl Fn(&mut Groups),
) -> Result<Played, String> {
    let planned = system.planned_threads();
    let lowered = system.with_planned_threads();
    let duration = Span::from_ns(DURATION);
    let mut tables = Tables::new(&lowered, Frequency::NANOSECONDS);
    let terms = group_terms(answer);
    let with_threads = (&*lowered, &*planned);
    let mut groups = Groups::of_system(with_threads, &tables, &terms, (duration, seed));
    change(&mut groups);
    let (tasks, room) = groups.agendas(&planned);
    tables.add_agendas(&tasks, room);
    tables.set_duration(&lowered, duration);
    punctual_sim::prepare(&lowered, &mut tables, faults);
    let input = |cpu: &CpuTables| {
        let shard = cpu.build(AnyPolicy::new).ok()?;
        let sink = Recorder::with_capacity(LOG_BYTES).ok()?;
        Some(CpuInput { shard, sink })
    };
    let inputs: Option<Vec<_>> = tables.cpus.iter().map(input).collect();
    let inputs = inputs.ok_or("a shard or its recorder is not built")?;
    let options = Options {
        duration,
        seed,
        faults: faults.clone(),
        plans: Vec::new(),
    };
    let guests = Guests {
        groups: Some(groups),
        ..Guests::default()
    };
    let outcome = run_with(&lowered, &tables, inputs, guests, &options, &mut ());
    let outcome = outcome.map_err(|error| error.to_string())?;
    let header = Header {
        platform: "sim".into(),
        mode: Mode::Virtual,
        duration,
        end: outcome.end,
        ..Header::default()
    };
    let mut log = Log::new(header, &lowered, tables);
    for (at, cpu) in outcome.cpus.into_iter().enumerate() {
        let cpu = log.add_cpu(&lowered.cpus[at].name, None, cpu.sink);
        if cpu.lost_from.is_some() {
            return Err(format!("the log of {} is too small", cpu.name));
        }
    }
    Ok(Played {
        log,
        outcomes: outcome.groups,
    })
}
