//! Gangs of two members on two CPUs, beside the barriers of others.
//!
//! A barrier is *spinning* or *blocking* (a member sleeps between two looks). *By time* there is no
//! barrier: a member reads the clock and sees that its phase may begin, and that is all there is to
//! measure.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use punctual::{GivenTerms, LiveOptions, Workloads};
use punctual_count::crews::Crew;
use punctual_gang::{
    Admission, Admitted, Attached, Form, Gang as Words, LocalScheduler, Member as Party, Operation,
    Progress,
};
use punctual_gang_thread::{Gang, Member, Options, Waiting};
use punctual_linux::{Body, clock_rate};
use punctual_model::{
    Class, Cpu, CpuId, Machine, Ns, PolicyKind, Priority, Span, System, Task, Work, WorkSource,
};
use punctual_rivals::{barriers, lines};
use punctual_thread::{Constraint, Runtime, thread};
use punctual_trace::{Behavior, Log};

use super::counting::{Counted, TWO_CPUS, batch, units};
use super::figure::{Bench, Measured, time};
use super::live::{Live, Notebook, place};
use super::switching::rival;

/// Rounds of one sample, and samples.
const ROUNDS: u32 = 50;
const SAMPLES: usize = if cfg!(debug_assertions) { 10 } else { 1_000 };
/// A blocking member sleeps for so long between two looks.
const NAP: Span<Ns> = Span::from_us(20);
/// Starts of a figure of skews.
const STARTS: u64 = if cfg!(debug_assertions) { 20 } else { 2_000 };
/// Two readings of the clock in a spinning loop are some 20 ns apart. Between two that are further
/// apart than this the loop was not executed.
const HOLE_NS: u64 = 500;
/// A member that is silent for so long is named, and the figure fails.
const LIMIT: Span<Ns> = Span::from_ms(5_000);

const POLICY: PolicyKind<Ns> = PolicyKind::FixedPriority { preemptive: true };

pub(super) fn benches() -> Vec<Bench> {
    let forms = [(Form::Linear, "linear"), (Form::Tree, "tree")];
    let mut all = Vec::new();
    for (form, name) in forms {
        let barrier = |waiting, how: &str| {
            let name = format!("gang.barrier.{name}.{how}.2");
            Bench::in_cycles(name, move || rounds(form, waiting, meet)).counted(Counted::by(
                move || alone(form, |crew| crew.round(Operation::Barrier).map(drop)),
            ))
        };
        all.push(beside(barrier(Waiting::Spin, "spin")));
        all.push(beside(barrier(Waiting::Sleep(NAP), "block")));
        let reduce = move || rounds(form, Waiting::Spin, sum);
        let counted = move || alone(form, |crew| crew.round(SUM).map(drop));
        let reduce = Bench::in_cycles(format!("gang.reduce.{name}.2"), reduce);
        all.push(reduce.counted(Counted::by(counted)));
        let admit = move || admissions(form);
        let admit = Bench::in_cycles(format!("gang.admit.{name}.2"), admit);
        all.push(admit.counted(Counted::by(move || alone(form, |crew| crew.admit()))));
    }
    let by_time = Bench::in_cycles("gang.barrier.time.2", by_time);
    all.push(beside(by_time.counted(Counted::by(read_clock))));
    all.push(
        Bench::in_cycles("gang.skew.spin", spinning_starts)
            .counted(Counted::Not(TWO_CPUS))
            .against("a line there and back", rival(lines::there_and_back)),
    );
    let timed = Bench::in_cycles("gang.skew.timer", timed_starts);
    all.push(timed.counted(Counted::Not(TWO_CPUS)));
    all
}

/// The barriers of others.
fn beside(bench: Bench) -> Bench {
    use barriers::Waiting::{Active, Passive};
    bench
        .against("pthread barrier", rival(barriers::pthread))
        .against(
            "libgomp, active",
            rival(|place| barriers::openmp("libgomp.so.1", Active, place)),
        )
        .against(
            "libgomp, passive",
            rival(|place| barriers::openmp("libgomp.so.1", Passive, place)),
        )
        .against(
            "libomp, active",
            rival(|place| barriers::openmp("libomp.so.5", Active, place)),
        )
        .against(
            "libomp, passive",
            rival(|place| barriers::openmp("libomp.so.5", Passive, place)),
        )
        .against("MPI", rival(barriers::mpi))
}

/// Both CPUs of a figure.
fn two_cpus() -> Result<[u32; 2], String> {
    let place = place()?;
    let other = place.other.ok_or("it takes two CPUs")?;
    let cpu = |cpu: usize| u32::try_from(cpu).map_err(|error| error.to_string());
    Ok([cpu(place.cpu)?, cpu(other)?])
}

/// The results of two first threads.
type Both<T> = [T; 2];

/// Has the first threads of two CPUs do the same, each with its place.
fn both<T: Send + 'static>(
    act: impl Fn(usize) -> Result<T, String> + Send + Sync + 'static,
) -> Result<(Both<T>, Vec<String>), String> {
    both_counted(act).map(|(results, notes, _)| (results, notes))
}

/// As [`both`], with the decisions of the scheduler in all of the run.
fn both_counted<T: Send + 'static>(
    act: impl Fn(usize) -> Result<T, String> + Send + Sync + 'static,
) -> Result<(Both<T>, Vec<String>, u64), String> {
    let [first, second] = two_cpus()?;
    let act = Arc::new(act);
    let theirs = Arc::clone(&act);
    let kept: Arc<Mutex<Option<Result<T, String>>>> = Arc::default();
    let (there, done) = (Arc::clone(&kept), Arc::new(AtomicBool::new(false)));
    let is_done = Arc::clone(&done);
    let runtime = Runtime::on(first, POLICY)
        .terms(Machine::default())
        .main(Constraint::aperiodic(1))
        .and(second, POLICY, move || {
            let result = theirs(1);
            *there.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
            done.store(true, Ordering::Release);
        });
    let ended = runtime.start(move || {
        let result = act(0);
        // Its end is the end of the run.
        let begin = thread::now();
        let is_late = || {
            thread::now()
                .zip(begin)
                .is_some_and(|(now, begin)| now.since(begin) > LIMIT)
        };
        while !is_done.load(Ordering::Acquire) && !is_late() {
            thread::sleep(Span::from_us(200));
        }
        result
    });
    let ended = ended.map_err(|error| error.to_string())?;
    let notes = match ended.is_real_time() {
        true => Vec::new(),
        false => vec!["without real-time priority".to_owned()],
    };
    let theirs = kept.lock().unwrap_or_else(PoisonError::into_inner).take();
    let theirs = theirs.ok_or("the other member did not come to its end")??;
    let decisions = ended.outcome.cpus.iter().map(|cpu| cpu.counters.decisions);
    let decisions = decisions.sum();
    Ok(([ended.result?, theirs], notes, decisions))
}

fn measured(samples: Vec<f64>, notes: Vec<String>) -> Measured {
    Measured {
        samples,
        notes,
        ..Measured::default()
    }
}

fn meet(member: &mut Member) -> Result<(), String> {
    member.barrier().map_err(|broken| format!("{broken:?}"))
}

fn sum(member: &mut Member) -> Result<(), String> {
    let sum = member.reduce(1, u64::wrapping_add);
    match sum.map_err(|broken| format!("{broken:?}"))? {
        2 => Ok(()),
        other => Err(format!("the sum of two ones is {other}")),
    }
}

/// A number that tells gangs of this process apart.
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// Rounds of two members that do nothing else.
fn rounds(
    form: Form,
    waiting: Waiting,
    round: fn(&mut Member) -> Result<(), String>,
) -> Result<Measured, String> {
    let options = Options {
        form,
        waiting,
        limit: LIMIT,
    };
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("bench {} {number}", std::process::id());
    let gang = Gang::create(&name, 2, options).map_err(|error| error.to_string())?;
    // A blocking barrier takes as long as a nap.
    let samples = if waiting == Waiting::Spin {
        SAMPLES
    } else {
        SAMPLES.div_ceil(10)
    };
    let ([ours, _], notes) = both(move |_| {
        let mut member = gang.join().map_err(|error| error.to_string())?;
        let mut all = Vec::with_capacity(samples);
        for number in 0..=samples {
            let mut done = Ok(());
            let ns = time(ROUNDS, || {
                for _ in 0..ROUNDS {
                    if done.is_ok() {
                        done = round(&mut member);
                    }
                }
            });
            done?;
            // The first one touches everything for the first time.
            if number > 0 {
                all.push(ns);
            }
        }
        // To leave would break the gang for the other one.
        meet(&mut member)?;
        Ok(all)
    })?;
    Ok(measured(ours, notes))
}

const SUM: Operation = Operation::Reduce {
    value: 1,
    fold: u64::wrapping_add,
};

/// Rounds of both members by one thread, for their instructions: the protocol for each of them,
/// without the looks of a member that waits for another CPU.
fn alone(form: Form, round: impl Fn(&mut Crew) -> Result<(), String>) -> Result<(), String> {
    let gang = Words::new(2, form, 1).map_err(|error| error.to_string())?;
    let mut crew = Crew::join(&gang)?;
    let rounds = units(ROUNDS);
    loop {
        let mut done = Ok(());
        batch(2 * rounds, || {
            for _ in 0..rounds {
                done = round(&mut crew);
            }
        });
        done?;
    }
}

/// The clock of a run, again and again.
fn read_clock() -> Result<(), String> {
    let notebook = Notebook::default();
    let kept = notebook.clone();
    let rounds = units(ROUNDS);
    let body: Body = Box::new(move |_| {
        let read = || {
            for _ in 0..rounds {
                let _ = std::hint::black_box(thread::now());
            }
        };
        kept.take_all(SAMPLES, || Ok(time(rounds, read)));
    });
    Live::measuring(1, body).run(&notebook).map(drop)
}

/// A member that needs no barrier: it reads the clock and sees that its phase may begin.
fn by_time() -> Result<Measured, String> {
    let ([ours, _], notes) = both(|_| {
        let mut all = Vec::with_capacity(SAMPLES);
        let begins = thread::now().ok_or("no run")?;
        let mut late = 0_u64;
        for _ in 0..SAMPLES {
            all.push(time(ROUNDS, || {
                for _ in 0..ROUNDS {
                    late += u64::from(thread::now() < Some(begins));
                }
            }));
        }
        match late {
            0 => Ok(all),
            _ => Err("the clock went backwards".into()),
        }
    })?;
    Ok(measured(ours, notes))
}

/// A local scheduler that admits everything.
struct Free;

impl LocalScheduler for Free {
    fn admit(&mut self, _constraint: &Attached) -> Result<(), u32> {
        Ok(())
    }

    fn readmit(&mut self) {}

    fn correct_phase(&mut self, _order: usize, _members: usize) {}
}

/// Admissions of two members whose local schedulers cost nothing: the protocol.
fn admissions(form: Form) -> Result<Measured, String> {
    let gang = Arc::new(Words::new(2, form, 1).map_err(|error| error.to_string())?);
    let ([ours, _], notes) = both(move |_| {
        let mut member = Party::join(&*gang).map_err(|error| error.to_string())?;
        let mut all = Vec::with_capacity(SAMPLES);
        for number in 0..=SAMPLES {
            let mut done = Ok(());
            let ns = time(1, || done = admit(&mut member));
            done?;
            if number > 0 {
                all.push(ns);
            }
        }
        // To leave would break the gang for the other one.
        admit(&mut member)?;
        Ok(all)
    })?;
    Ok(measured(ours, notes))
}

fn admit(member: &mut Party<&Words>) -> Result<(), String> {
    let mut admission = Admission::new([1; 8]);
    let begin = thread::now();
    loop {
        match admission.step(member, &mut Free) {
            Progress::More => {}
            Progress::Wait(wait) => {
                while member.gang().look(wait.word) == wait.seen {
                    let is_late = thread::now().zip(begin);
                    if is_late.is_some_and(|(now, begin)| now.since(begin) > LIMIT) {
                        let _named = member.accuse();
                        break;
                    }
                    std::hint::spin_loop();
                }
            }
            Progress::End(Admitted::All { .. }) => return Ok(()),
            Progress::End(end) => return Err(format!("it is not admitted: {end:?}")),
        }
    }
}

/// A start by spinning.
#[derive(Clone, Copy)]
struct Start {
    at: u64,
    /// How long before it the clock was read last, in the same loop; 0: the member came too late to
    /// spin, so nothing says why.
    behind: u64,
}

/// The remark beside the figure of spinning starts: the same without a hole at the instant.
/// Such a hole is the kernel's, the hypervisor's, or a decision of the scheduler.
fn without_holes(starts: &Both<Vec<Start>>, decisions: u64) -> String {
    let [ours, theirs] = starts;
    let pairs = ours.iter().zip(theirs);
    let is_whole = |(one, other): &(&Start, &Start)| one.behind.max(other.behind) <= HOLE_NS;
    let whole = pairs.filter(is_whole);
    let mut apart: Vec<u64> = whole
        .map(|(one, other)| one.at.abs_diff(other.at))
        .collect();
    apart.sort_unstable();
    let rank = (apart.len() * 99).div_ceil(100).max(1) - 1;
    let p99 = apart.get(rank).copied().unwrap_or(0);
    let (of, holes) = (apart.len(), ours.len() - apart.len());
    let is_late = |start: &&Start| start.behind == 0;
    let late = starts.iter().flatten().filter(is_late).count();
    let cycles = real(p99) * clock_rate().frequency.hertz() as f64 / 1e9;
    format!(
        "p99 is {cycles:.0} cycles ({p99} ns) of {of} starts whose readings at the instant are at \
         most {HOLE_NS} ns apart; {holes} have a hole, {late} members came too late to spin; \
         {decisions} decisions of the scheduler in all"
    )
}

/// Two CPUs spin to one instant of the run: the difference of the first clock readings behind it.
fn spinning_starts() -> Result<Measured, String> {
    let options = Options {
        limit: LIMIT,
        ..Options::default()
    };
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("bench {} {number}", std::process::id());
    let gang = Gang::create(&name, 2, options).map_err(|error| error.to_string())?;
    let (starts, mut notes, decisions) = both_counted(move |_| {
        let mut member = gang.join().map_err(|error| error.to_string())?;
        let now = || thread::now().map_or(0, |now| now.as_ns());
        let mut all = Vec::with_capacity(usize::try_from(STARTS).unwrap_or(0));
        for _ in 0..STARTS {
            // The latest, and a margin.
            let latest = member.reduce(now(), u64::max);
            let at = latest.map_err(|broken| format!("{broken:?}"))? + 20_000;
            let mut start = Start {
                at: now(),
                behind: 0,
            };
            while start.at < at {
                let before = start.at;
                start.at = now();
                start.behind = start.at - before;
            }
            all.push(start);
        }
        meet(&mut member)?;
        Ok(all)
    })?;
    notes.push(without_holes(&starts, decisions));
    let [ours, theirs] = &starts;
    let pairs = ours.iter().zip(theirs);
    let apart = pairs.map(|(one, other)| real(one.at.abs_diff(other.at)));
    Ok(measured(apart.collect(), notes))
}

/// A count as a figure needs it.
fn real(ns: u64) -> f64 {
    ns as f64
}

/// Distance of the starts of a member.
const PERIOD: u64 = 500_000;

/// One task on each of two CPUs, with one first arrival.
fn two_members() -> Result<System, String> {
    let mut system = System::default();
    for (number, host) in (0_u16..).zip(two_cpus()?) {
        system.cpus.push(Cpu {
            name: number.to_string(),
            host: Some(host),
            policy: POLICY,
        });
        let class = Class::Periodic {
            period: Span::from_ns(PERIOD),
            wcet: Work::from_us(100),
            relative_deadline: Span::from_ns(PERIOD),
        };
        let mut task = Task::new(format!("member.{number}"), CpuId(number), class);
        task.priority = Priority::new(5);
        // Well within its budget: a job that waits for the next one starts late for that reason.
        task.work = Some(WorkSource::Burn(Work::from_us(20)));
        system.tasks.push(task);
    }
    Ok(system)
}

/// The starts of a member, and how long its CPU was away.
struct Starts {
    /// By job: when, and whether the CPU was away in the period before.
    all: Vec<Option<(u64, bool)>>,
    missing: u64,
}

fn starts(log: &Log, cpu: usize) -> Starts {
    let behavior = Behavior::new(log, cpu);
    let gaps = behavior.missing.iter();
    let gaps = gaps.map(|gap| (log.ns(gap.start.ticks()), log.ns(gap.end.ticks())));
    let gaps: Vec<(u64, u64)> = gaps.collect();
    let mut all = vec![None; usize::try_from(STARTS).unwrap_or(0) + 1];
    for segment in &behavior.segments {
        let job = segment.job.and_then(|job| behavior.jobs.get(job));
        // By arrival: a CPU that was away may have left jobs out.
        let number = job.map(|job| log.ns(job.arrival.ticks()) / PERIOD);
        let index = number.and_then(|number| usize::try_from(number).ok());
        if let Some(start) = index.and_then(|index| all.get_mut(index)) {
            let at = log.ns(segment.start.ticks());
            let is_before = |(from, to): &(u64, u64)| *to + PERIOD > at && *from < at;
            start.get_or_insert((at, gaps.iter().any(is_before)));
        }
    }
    Starts {
        all,
        missing: gaps.iter().map(|(from, to)| to - from).sum(),
    }
}

/// Two tasks with one first arrival on two CPUs: the difference of their starts, job by job. Jobs
/// whose CPUs were away in the period before are not counted.
fn timed_starts() -> Result<Measured, String> {
    let options = LiveOptions {
        duration: Some(Span::from_ns(PERIOD * STARTS)),
        force: true,
        source: "bench".into(),
        terms: Some(GivenTerms {
            machine: Machine::default(),
            from: "no terms".into(),
        }),
        ..LiveOptions::default()
    };
    let log = punctual::run(
        &two_members()?,
        &options,
        &mut Workloads::new(),
        &mut |_| true,
    );
    let log = log.map_err(|error| error.to_string())?;
    let [first, second] = [0, 1].map(|cpu| starts(&log, cpu));
    let pairs = first.all.iter().zip(&second.all);
    let pairs = pairs.filter_map(|(one, other)| (*one).zip(*other));
    let apart = pairs.map(|((one, away), (other, too))| (real(one.abs_diff(other)), away || too));
    let all: Vec<(f64, bool)> = apart.collect();
    let sorted = |with_missing: bool| {
        let chosen = all.iter().filter(|(_, missing)| with_missing || !missing);
        let mut sorted: Vec<f64> = chosen.map(|(ns, _)| *ns).collect();
        sorted.sort_by(f64::total_cmp);
        sorted
    };
    let told = |sorted: &[f64], permille: usize| {
        let rank = (sorted.len() * permille).div_ceil(1_000).max(1) - 1;
        let ns = sorted.get(rank).copied().unwrap_or(0.0);
        let cycles = ns * clock_rate().frequency.hertz() as f64 / 1e9;
        format!("{cycles:.0} cycles ({ns:.0} ns) of {} starts", sorted.len())
    };
    let samples = sorted(false);
    let note = format!(
        "p99.9 is {} without missing time; p99 is {} with all",
        told(&samples, 999),
        told(&sorted(true), 990)
    );
    Ok(Measured {
        missing_ns: Some(first.missing + second.missing),
        ..measured(samples, vec![note])
    })
}
