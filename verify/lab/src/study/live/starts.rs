//! When two members on two CPUs start.

use punctual::{GivenTerms, LiveOptions, Workloads};
use punctual_gang::Form;
use punctual_gang_thread::{Gang, Options, Waiting};
use punctual_model::{Class, Machine, Span, System, TaskId, Work};
use punctual_thread::{Constraint, Runtime, thread};
use punctual_trace::{Behavior, Log};

use super::{LIMIT, LONGEST, POLICY, Told, two_cpus};
use crate::answers::Row;
use crate::costs::Costs;
use crate::skew::{CORRECTIONS, FIRST, LOADS, SPARED, skews};
use crate::windows::{Stretch, Stretches, bound, gang, with_neighbours};

const MEMBERS: usize = 2;
const PERIOD: u64 = 1_000_000;
const WORK: u64 = 100_000;
/// Barriers whose distance of release is measured.
const BARRIERS: usize = 50;

/// The instants at which both members of a gang were let go by each of many barriers, in their
/// order of release.
fn releases() -> Result<Vec<[u64; 2]>, String> {
    let options = Options {
        form: Form::Linear,
        waiting: Waiting::Spin,
        limit: LIMIT,
    };
    let name = format!("study of starts {}", std::process::id());
    let gang = Gang::create(&name, MEMBERS, options).map_err(|error| error.to_string())?;
    let [first, second] = two_cpus()?;
    let (theirs, (teller, told)) = (gang.clone(), Told::both());
    let passes = |gang: &Gang| -> Result<Vec<(usize, u64)>, String> {
        let mut member = gang.join().map_err(|error| error.to_string())?;
        let mut all = Vec::with_capacity(BARRIERS);
        for _ in 0..BARRIERS {
            let order = member.ordered_barrier();
            let now = thread::now().map_or(0, |now| now.as_ns());
            all.push((order.map_err(|broken| format!("{broken:?}"))?, now));
        }
        // A member that leaves breaks the gang: nobody does before all are through.
        member.barrier().map_err(|broken| format!("{broken:?}"))?;
        Ok(all)
    };
    let runtime = Runtime::on(first, POLICY)
        .terms(Machine::default())
        .at_most(LONGEST)
        .main(Constraint::aperiodic(1))
        .and(second, POLICY, move || teller.tell(passes(&theirs)));
    let both = runtime.start(move || (passes(&gang), told.hear()));
    let (ours, theirs) = both.map_err(|error| error.to_string())?.result;
    let (ours, theirs) = (ours?, theirs??);
    let pair = |((order, one), (_, other)): (&(usize, u64), &(usize, u64))| match order {
        0 => [*one, *other],
        _ => [*other, *one],
    };
    Ok(ours.iter().zip(&theirs).map(pair).collect())
}

/// Rows as in virtual time; the missing time of the CPUs apart.
pub(super) fn unit(costs: &Costs, events: u64) -> Result<Vec<Row>, String> {
    let class = Class::Periodic {
        period: Span::from_ns(PERIOD),
        wcet: Work::from_ns(WORK),
        relative_deadline: Span::from_ns(PERIOD),
    };
    let releases = releases()?;
    let (last, before) = releases.split_last().ok_or("no barriers")?;
    // Who is named first does not matter between two CPUs; what is measured is signed.
    let mut apart: Vec<u64> = before
        .iter()
        .map(|[first, second]| second.saturating_sub(*first))
        .collect();
    apart.sort_unstable();
    let delta = crate::answers::quantile(&apart, 50);
    let distance = last[1].saturating_sub(last[0]);
    let mut rows = Vec::new();
    for (load, load_name) in LOADS.iter().enumerate() {
        for (correction, name) in CORRECTIONS.iter().enumerate() {
            let system = gang(costs, MEMBERS, class);
            let mut system = if load == 0 {
                system
            } else {
                with_neighbours(system)
            };
            let in_step = bound(&system)?;
            let phases = match correction {
                0 => [0, distance],
                1 => [2 * delta, distance + delta],
                _ => [0, 0],
            };
            for (task, phase) in system.tasks.iter_mut().zip(phases) {
                task.phase = Span::from_ns(FIRST + phase);
            }
            let (stretches, missing) = fly(system, costs, events)?;
            let mut values = vec![in_step.map_or(0, |bound| bound + phases[0].abs_diff(phases[1]))];
            values.extend(skews(&stretches, events));
            rows.push(Row::new(format!("{name}, {load_name}"), &[2], values));
            let name = format!("{name}, {load_name}{SPARED}");
            let spared = spared(&stretches, &missing);
            let mut values = vec![in_step.map_or(0, |bound| bound + phases[0].abs_diff(phases[1]))];
            values.extend(skews(&spared, events));
            rows.push(Row::new(name, &[2], values));
        }
    }
    Ok(rows)
}

/// Intervals in which a CPU was away, of each CPU.
type Gaps = Vec<Vec<(i64, i64)>>;

/// Runs a gang for real: stretches of execution of its members, and when their CPUs were away.
fn fly(mut system: System, costs: &Costs, events: u64) -> Result<(Stretches, Gaps), String> {
    for (cpu, host) in system.cpus.iter_mut().zip(two_cpus()?) {
        cpu.host = Some(host);
    }
    // Without the gang: its phases may differ here.
    system.gangs.clear();
    system.machine = Machine::default();
    let options = LiveOptions {
        duration: Some(Span::from_ns(PERIOD * (events + 1))),
        force: true,
        source: "study of starts".into(),
        terms: Some(GivenTerms {
            machine: costs.terms(),
            from: costs.machine.clone(),
        }),
        ..LiveOptions::default()
    };
    let log = punctual::run(&system, &options, &mut Workloads::new(), &mut |_| true);
    let log = log.map_err(|error| error.to_string())?;
    Ok((0..MEMBERS).map(|cpu| of_cpu(&log, cpu)).unzip())
}

/// Stretches of execution, and intervals of missing time.
type OfCpu = (Vec<Stretch>, Vec<(i64, i64)>);

fn of_cpu(log: &Log, cpu: usize) -> OfCpu {
    let behavior = Behavior::new(log, cpu);
    let ns = |ticks: u64| i64::try_from(log.ns(ticks)).unwrap_or(i64::MAX);
    let member = TaskId(u32::try_from(cpu).unwrap_or(u32::MAX));
    let segments = behavior.segments.iter().filter_map(|segment| {
        let job = behavior.jobs.get(segment.job?)?;
        let is_member = log.task_of(cpu, segment.thread) == Some(member);
        let (start, end) = (ns(segment.start.ticks()), ns(segment.end.ticks()));
        // By arrival, not by number: a CPU that was away may have left jobs out.
        let number = log.ns(job.arrival.ticks()) / PERIOD;
        is_member.then_some((number, start, end))
    });
    let gaps = behavior.missing.iter();
    let gaps = gaps.map(|gap| (ns(gap.start.ticks()), ns(gap.end.ticks())));
    (segments.collect(), gaps.collect())
}

/// Without the jobs of members whose CPU was away in the period before they started.
fn spared(stretches: &Stretches, missing: &Gaps) -> Stretches {
    let period = i64::try_from(PERIOD).unwrap_or(i64::MAX);
    let of = |(member, gaps): (&Vec<Stretch>, &Vec<(i64, i64)>)| {
        let is_spared = |start: i64| {
            !gaps
                .iter()
                .any(|(from, to)| *to > start - period && *from < start)
        };
        let mut member = member.clone();
        member.retain(|(_, start, _)| is_spared(*start));
        member
    };
    stretches.iter().zip(missing).map(of).collect()
}
