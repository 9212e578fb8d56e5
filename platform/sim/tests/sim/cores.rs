//! Independent CPUs on several cores of the host: the same bytes.

use crate::common::{Tape, periodic, system};
use punctual_model::{CpuId, Frequency, PolicyKind, Span, System, TaskId};
use punctual_policy::AnyPolicy;
use punctual_sim::{
    CpuInput, Faults, MissingTime, Options, Outcome, Overrun, prepare, run, run_on_cores,
};
use punctual_tables::{CpuTables, Tables};

const CPUS: u16 = 5;

/// Five CPUs with three tasks each; those of the first two wait for each other.
fn five_cpus() -> System {
    let mut s = system(usize::from(CPUS), PolicyKind::EarliestDeadlineFirst);
    for cpu in 0..CPUS {
        for (number, period) in (1_u64..).zip([40, 70, 110]) {
            let mut task = periodic(&format!("{cpu}.{number}"), 9 + number, period, period);
            task.cpu = CpuId(cpu);
            task.jitter = Span::from_ns(u64::from(cpu));
            s.tasks.push(task);
        }
    }
    s.tasks[3].after = vec![TaskId(0)];
    s
}

/// Faults of several kinds, drawn from the seed.
fn faults() -> Faults {
    Faults {
        jitter: true,
        late_timer: Span::from_ns(3),
        overruns: vec![Overrun {
            task: TaskId(7),
            per_mille: 1_300,
        }],
        missing: vec![MissingTime {
            cpu: None,
            length: Span::from_ns(6),
            every: Span::from_ns(500),
        }],
        ..Faults::default()
    }
}

/// The same simulation on so many cores, or in turn; it goes on while `goes_on` says so.
fn simulate(cores: Option<usize>, goes_on: bool) -> Outcome<Tape> {
    let s = five_cpus();
    let options = Options {
        duration: Span::from_us(200),
        seed: 9,
        faults: faults(),
        plans: Vec::new(),
    };
    let mut tables = Tables::new(&s, Frequency::NANOSECONDS);
    tables.set_duration(&s, options.duration);
    prepare(&s, &mut tables, &options.faults);
    let input = |cpu: &CpuTables| CpuInput {
        shard: cpu.build(AnyPolicy::new).expect("valid tables"),
        sink: Tape::default(),
    };
    let inputs = tables.cpus.iter().map(input).collect();
    let outcome = match cores {
        None => run(&s, &tables, inputs, &options, &mut ()),
        Some(cores) => {
            let given = (&options, cores);
            run_on_cores(&s, &tables, inputs, Vec::new(), given, &mut |_| goes_on)
        }
    };
    outcome.expect("a valid system")
}

#[test]
fn independent_cpus_on_several_cores_do_what_they_do_in_turn() {
    let in_turn = simulate(None, true);
    let jobs = |cpu: usize| in_turn.cpus[cpu].sink.responses(0).len();
    assert!((0..usize::from(CPUS)).all(|cpu| jobs(cpu) > 1_000));
    assert!(in_turn.cpus[0].counters.missing_total > Span::ZERO);
    for cores in [1, 2, 3, 16] {
        assert!(simulate(Some(cores), true) == in_turn, "{cores} cores");
    }
}

#[test]
fn a_simulation_on_several_cores_ends_early_when_it_is_to() {
    let stopped = simulate(Some(2), false);
    assert!(stopped.stopped);
    // The group that asked first executed no more than up to its first question.
    let whole = simulate(None, true);
    let jobs = |of: &Outcome<Tape>, cpu: usize| of.cpus[cpu].sink.responses(0).len();
    assert!((0..usize::from(CPUS)).any(|cpu| jobs(&stopped, cpu) < jobs(&whole, cpu)));
    assert_eq!(stopped.cpus.len(), usize::from(CPUS));
    let cpus: Vec<CpuId> = stopped.cpus.iter().map(|cpu| cpu.cpu).collect();
    assert_eq!(cpus, (0..CPUS).map(CpuId).collect::<Vec<_>>());
}
