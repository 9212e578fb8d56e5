//! Bulk synchronous work of two members on two CPUs, for at least six periods.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use punctual_gang::Form;
use punctual_gang_thread::{Gang, Member, Options, Waiting};
use punctual_model::{Span, Work};
use punctual_thread::{Constraint, Runtime, thread};

use super::{LIMIT, LONGEST, POLICY, rest, two_cpus};
use crate::answers::Row;
use crate::bsp::{ADMITTED, MODES, SLICES};
use crate::costs::Costs;

pub(super) const MEMBERS: usize = 2;
pub(super) const PERIODS: u64 = 6;

/// Those of [`MODES`] that are flown: with barriers of a tree, and without any.
const FLOWN: [usize; 2] = [0, 2];

/// Iterations of aperiodic members from which the rest is estimated.
const TRIED: u64 = 2_000;

/// A flight takes no longer than so many times what is expected of it, and [`SLACK`] more.
const LATE: u64 = 20;
const SLACK: u64 = 2_000_000_000;

/// Iterations between two looks at the clock.
pub(super) const LOOKS: u64 = 64;

/// Tries of a constraint beside the one before, whose terms count for a while.
const TRIES: usize = 4;

/// The elements of one member, as bits of numbers.
type Elements = Vec<AtomicU64>;

/// The things that both members have before them.
struct Shared {
    elements: [Elements; MEMBERS],
    /// The members' next step: 0 wait, 1 go, 2 give up.
    go: AtomicU8,
    iterations: AtomicU64,
    /// The longest time that they may take, in nanoseconds.
    most: AtomicU64,
    name: String,
}

/// One study of work.
#[derive(Clone, Copy)]
pub(super) struct Task {
    pub(super) grain: usize,
    pub(super) has_barriers: bool,
}

impl Shared {
    /// So many iterations of a member, in nanoseconds of the run. One that takes more than `most`
    /// of them is given up, so that no other study waits for it.
    fn work(
        &self,
        member: &mut Member,
        task: Task,
        (iterations, most): (u64, u64),
    ) -> Result<u64, String> {
        let own = &self.elements[member.place()];
        let next = &self.elements[(member.place() + 1) % MEMBERS];
        let begin = now();
        for iteration in 0..iterations {
            if iteration % LOOKS == 0 && now() - begin > most {
                return Err(format!(
                    "{iteration} of {iterations} iterations of grain {} took more than {} ms",
                    task.grain,
                    most / 1_000_000
                ));
            }
            for element in &own[..task.grain] {
                let value = f64::from_bits(element.load(Ordering::Relaxed));
                element.store(computed(value, task.grain).to_bits(), Ordering::Relaxed);
            }
            meet(member, task.has_barriers)?;
            for (own, next) in own.iter().zip(next).take(task.grain) {
                next.store(own.load(Ordering::Relaxed), Ordering::Relaxed);
            }
            meet(member, task.has_barriers)?;
        }
        Ok(now() - begin)
    }
}

/// As many computations, each on the result of the one before.
pub(super) fn computed(mut value: f64, computations: usize) -> f64 {
    for _ in 0..computations {
        value = std::hint::black_box(value) * 0.999_9 + 1e-6;
    }
    value
}

fn now() -> u64 {
    thread::now().map_or(0, |now| now.as_ns())
}

fn meet(member: &mut Member, meets: bool) -> Result<(), String> {
    match meets {
        true => member.barrier().map_err(|broken| format!("{broken:?}")),
        false => Ok(()),
    }
}

/// A number that tells gangs of this process apart.
static NUMBER: AtomicU64 = AtomicU64::new(0);

fn gang(waiting: Waiting) -> Result<Gang, String> {
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("study of work {} {number}", std::process::id());
    let options = Options {
        form: Form::Tree,
        waiting,
        limit: LIMIT,
    };
    Gang::create(&name, MEMBERS, options).map_err(|error| error.to_string())
}

/// The first thread of a CPU, with the gang of the first threads.
struct Side {
    shared: Arc<Shared>,
    member: Member,
}

/// Gangs of the members of each constraint, in order.
type Gangs = Arc<Vec<Gang>>;

/// Rows as in virtual time, in which two modes were flown.
pub(super) fn unit(
    costs: &Costs,
    (members, period_us): (u64, u64),
    grains: &[u64],
) -> Result<Vec<Row>, String> {
    let largest = grains.iter().max().copied().unwrap_or(1);
    let elements = || {
        (0..largest)
            .map(|_| AtomicU64::new(1.0_f64.to_bits()))
            .collect()
    };
    let shared = Arc::new(Shared {
        elements: [elements(), elements()],
        go: AtomicU8::new(0),
        iterations: AtomicU64::new(0),
        most: AtomicU64::new(0),
        name: format!("{period_us} us"),
    });
    let first_threads = gang(Waiting::Sleep(Span::from_us(100)))?;
    let flights = grains.len() * FLOWN.len() * (1 + SLICES.len());
    let gangs: Result<Vec<Gang>, String> = (0..flights).map(|_| gang(Waiting::Spin)).collect();
    let gangs: Gangs = Arc::new(gangs?);
    let [first, second] = two_cpus()?;
    let grains: Vec<u64> = grains.to_vec();
    let (theirs, their_gangs, their_grains) =
        (Arc::clone(&shared), Arc::clone(&gangs), grains.clone());
    let (their_first, kept) = (first_threads.clone(), Arc::new(Mutex::new(Ok(()))));
    let failed = Arc::clone(&kept);
    let runtime = Runtime::on(first, POLICY)
        // Without the terms of the machine, constraints would be admitted whose timers alone
        // take all of a CPU: nothing else would execute there, and the study would not end.
        .terms(costs.terms())
        .at_most(LONGEST)
        .threads(4)
        .main(Constraint::aperiodic(1))
        .and(second, POLICY, move || {
            let done = fly(theirs, &their_first, &their_gangs, &their_grains, period_us);
            *failed.lock().unwrap_or_else(PoisonError::into_inner) = done.map(drop);
        });
    let ours = runtime.start(move || {
        let done = fly(shared, &first_threads, &gangs, &grains, period_us);
        thread::sleep(Span::from_ms(5));
        done.map(|rows| (rows, grains))
    });
    let ended = ours.map_err(|error| error.to_string())?.result;
    let theirs = kept.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let (all, grains) = ended.and_then(|rows| theirs.map(|()| rows))?;
    Ok(rows(&all, &grains, (members, period_us)))
}

/// Picoseconds of an iteration, by grain, mode and slice; a single one for aperiodic members.
type All = Vec<[Vec<u64>; FLOWN.len()]>;

fn rows(all: &All, grains: &[u64], (members, period_us): (u64, u64)) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut admitted = vec![1; SLICES.len()];
    for (grain, modes) in grains.iter().zip(all) {
        let at = [members, *grain, period_us];
        for (mode, values) in FLOWN.iter().zip(modes) {
            rows.push(Row::new(MODES[*mode], &at, values.clone()));
            for (admitted, value) in admitted.iter_mut().zip(values) {
                *admitted &= u64::from(*value > 0);
            }
        }
    }
    if period_us > 0 {
        rows.push(Row::new(ADMITTED, &[members, 0, period_us], admitted));
    } else {
        // Without barriers aperiodic members do something else.
        rows.retain(|row| row.name == MODES[0]);
    }
    rows
}

fn fly(
    shared: Arc<Shared>,
    first_threads: &Gang,
    gangs: &Gangs,
    grains: &[u64],
    period_us: u64,
) -> Result<All, String> {
    let member = first_threads.join().map_err(|error| error.to_string())?;
    let mut side = Side { shared, member };
    let mut number = 0..gangs.len();
    let mut all = All::new();
    for grain in grains {
        let mut modes: [Vec<u64>; FLOWN.len()] = Default::default();
        for (mode, values) in FLOWN.iter().zip(&mut modes) {
            let task = Task {
                grain: usize::try_from(*grain).unwrap_or(1),
                has_barriers: *mode == 0,
            };
            let of_all = number.next().unwrap_or(0);
            let free = side.aperiodic(&gangs[of_all], task)?;
            if period_us == 0 {
                values.push(free);
            }
            for slice in SLICES {
                let at = number.next().unwrap_or(0);
                if period_us > 0 {
                    values.push(side.constrained((gangs, at), task, (period_us, slice), free)?);
                }
            }
        }
        all.push(modes);
    }
    side.member
        .barrier()
        .map_err(|broken| format!("{broken:?}"))?;
    Ok(all)
}

impl Side {
    /// The larger number of both sides.
    fn larger(&mut self, value: u64) -> Result<u64, String> {
        let larger = self.member.reduce(value, u64::max);
        larger.map_err(|broken| format!("{broken:?}"))
    }

    /// Picoseconds of an iteration that nothing interrupts: the first threads do it.
    fn aperiodic(&mut self, gang: &Gang, task: Task) -> Result<u64, String> {
        let mut member = gang.join().map_err(|error| error.to_string())?;
        let mut least = u64::MAX;
        for _ in 0..3 {
            self.member
                .barrier()
                .map_err(|broken| format!("{broken:?}"))?;
            let iterations = if task.grain > 16 { TRIED / 10 } else { TRIED };
            let most = LIMIT.as_ns();
            let ns = self.shared.work(&mut member, task, (iterations, most))?;
            rest(ns);
            let ps = self.larger(ns)? * 1_000 / iterations;
            least = least.min(ps.max(1));
        }
        // Nobody leaves a gang that somebody may still be in.
        self.member
            .barrier()
            .map_err(|broken| format!("{broken:?}"))?;
        Ok(least)
    }

    /// Picoseconds of an iteration of members with this constraint; 0: they are not admitted.
    fn constrained(
        &mut self,
        (gangs, at): (&Gangs, usize),
        task: Task,
        (period_us, slice): (u64, u64),
        free: u64,
    ) -> Result<u64, String> {
        let period = Span::from_us(period_us);
        let budget = Work::from_ns(period.as_ns() * slice / 100);
        let constraint = Constraint::reservation(period, budget).priority(5);
        // As many as take six periods, if rate is proportional.
        let executed = 1_000 * PERIODS * budget.as_ns();
        let iterations = executed.div_ceil(free).max(1);
        self.shared.iterations.store(iterations, Ordering::Relaxed);
        let most = LATE * PERIODS * period.as_ns() + SLACK;
        self.shared.most.store(most, Ordering::Relaxed);
        self.shared.go.store(0, Ordering::Release);
        self.member
            .barrier()
            .map_err(|broken| format!("{broken:?}"))?;
        let mut spawned = None;
        for _ in 0..TRIES {
            let (shared, gangs) = (Arc::clone(&self.shared), Arc::clone(gangs));
            let body = move || flown(&shared, &gangs[at], task);
            spawned = thread::spawn(&self.shared.name, constraint, body).ok();
            if spawned.is_some() {
                break;
            }
            thread::sleep(Span::from_ns(2 * period.as_ns()));
        }
        let refused = self.larger(u64::from(spawned.is_none()))?;
        self.shared
            .go
            .store(if refused > 0 { 2 } else { 1 }, Ordering::Release);
        let ended = spawned.map(|thread| thread.join_within(LIMIT));
        let taken = match ended {
            Some(Ok(taken)) => taken?,
            Some(Err((error, _))) => return Err(format!("{error:?}")),
            None => 0,
        };
        let ns = self.larger(taken)?;
        rest(ns);
        Ok(if refused > 0 {
            0
        } else {
            ns * 1_000 / iterations
        })
    }
}

/// The body of a member.
fn flown(shared: &Shared, gang: &Gang, task: Task) -> Result<u64, String> {
    loop {
        match shared.go.load(Ordering::Acquire) {
            0 => std::hint::spin_loop(),
            1 => break,
            _ => return Ok(0),
        }
    }
    let mut member = gang.join().map_err(|error| error.to_string())?;
    // Both begin with a fresh period.
    thread::wait_next_period().map_err(|error| format!("{error:?}"))?;
    meet(&mut member, true)?;
    let limits = [&shared.iterations, &shared.most].map(|limit| limit.load(Ordering::Relaxed));
    let taken = shared.work(&mut member, task, limits.into());
    meet(&mut member, true)?;
    taken
}
