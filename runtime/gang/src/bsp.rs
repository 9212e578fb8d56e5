//! A bulk synchronous program whose result says whether its phases were kept apart
//!
//! Every member computes on its own elements, then writes into those of the next one in a ring. A
//! computation that goes on while its neighbour writes, or begins before, leaves another value than
//! the sequential program would, and all later ones differ: elements follow a chaotic map. So the
//! comparison with [`reference`], bit by bit, finds a single phase that was not kept apart.
//!
//! ```text
//!   for i in 0..N {
//!       for j in 0..NE { compute element j, NC times }
//!       (a barrier, or time)
//!       for j in 0..NW { write to element j of member (me + 1) % P }
//!       (a barrier, or time)
//!   }
//! ```
//!
//! Source: Nautilus §6.1.

use core::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use punctual_thread::{Oracle, Step, Workload};

use crate::supersteps::{Kept, Supersteps};
use crate::{Broken, Member};

/// Most members.
const MEMBERS: usize = 256;
/// Most elements of a member, computations on each, and writes of an iteration.
const MOST: usize = 1 << 20;
/// So many iterations are compared of each member; later ones are not.
const COMPARED: usize = 1 << 18;
/// The growth of the logistic map: chaotic, exact in binary, and it never leaves (0, 1).
const GROWTH: f64 = 3.9375;

/// The parameters of the program, with the paper's names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameters {
    /// P: members, one on each CPU; 1 to 256.
    pub members: usize,
    /// NE: elements of each member; 1 to 2^20.
    pub elements: usize,
    /// NC: computations on each element in an iteration; up to 2^20.
    pub computations: usize,
    /// NW: writes to elements of the next member in an iteration; up to 2^20.
    pub writes: usize,
    /// N: iterations.
    pub iterations: u64,
}

/// Parameters beyond the limits of [`Parameters`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooMuch;

impl fmt::Display for TooMuch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a bulk synchronous program has 1 to {MEMBERS} members with 1 to {MOST} elements each, \
             and up to {MOST} computations and writes"
        )
    }
}

impl std::error::Error for TooMuch {}

impl Parameters {
    fn check(self) -> Result<Parameters, TooMuch> {
        let fits = (1..=MEMBERS).contains(&self.members)
            && (1..=MOST).contains(&self.elements)
            && self.computations <= MOST
            && self.writes <= MOST;
        fits.then_some(self).ok_or(TooMuch)
    }

    /// Iterations of each member whose values are compared.
    fn compared(self) -> usize {
        usize::try_from(self.iterations).map_or(COMPARED, |all| all.min(COMPARED))
    }
}

/// The first value of an element.
fn initial(member: usize, element: usize) -> f64 {
    let mixed = (member * 7919 + element * 104_729 + 1) as u64 % 65_521;
    (mixed as f64 + 1.0) / 65_536.0
}

fn compute(value: f64, times: usize) -> f64 {
    (0..times).fold(value, |x, _| GROWTH * x * (1.0 - x))
}

/// The value that goes to the next member.
fn outgoing(value: f64) -> f64 {
    1.0 - value
}

fn fold(digest: u64, value: f64) -> u64 {
    (digest.rotate_left(7) ^ value.to_bits()).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The elements of one member, and a digest of them after each of its computations.
#[derive(Debug)]
struct Part {
    elements: Vec<AtomicU64>,
    /// 0: not executed.
    digests: Vec<AtomicU64>,
}

impl Part {
    fn new(parameters: Parameters, place: usize) -> Part {
        let element = |j| AtomicU64::new(initial(place, j).to_bits());
        Part {
            elements: (0..parameters.elements).map(element).collect(),
            digests: (0..parameters.compared())
                .map(|_| AtomicU64::new(0))
                .collect(),
        }
    }
}

/// The work of one member.
#[derive(Debug)]
pub struct Worker {
    parameters: Parameters,
    own: Arc<Part>,
    next: Arc<Part>,
    /// Its values as they go to the next one.
    outgoing: Vec<f64>,
    iteration: usize,
}

impl Worker {
    fn new(parameters: Parameters, own: Arc<Part>, next: Arc<Part>) -> Worker {
        Worker {
            parameters,
            own,
            next,
            outgoing: vec![0.0; parameters.elements],
            iteration: 0,
        }
    }

    /// The first phase of an iteration: NE · NC computations on own elements. Without allocation.
    pub fn compute(&mut self) {
        let mut digest = 1;
        for (element, outgoing_value) in self.own.elements.iter().zip(&mut self.outgoing) {
            let value = f64::from_bits(element.load(Ordering::Relaxed));
            let value = compute(value, self.parameters.computations);
            element.store(value.to_bits(), Ordering::Relaxed);
            *outgoing_value = outgoing(value);
            digest = fold(digest, value);
        }
        if let Some(place) = self.own.digests.get(self.iteration) {
            place.store(digest.max(1), Ordering::Relaxed);
        }
        self.iteration += 1;
    }

    /// The second phase: NW writes to elements of the next member. Without allocation.
    pub fn write(&mut self) {
        let mut left = self.parameters.writes;
        while left > 0 {
            for (element, value) in self.next.elements.iter().zip(&self.outgoing).take(left) {
                element.store(value.to_bits(), Ordering::Relaxed);
            }
            left = left.saturating_sub(self.outgoing.len());
        }
    }

    /// All N iterations, as a member of a gang: its phases are the two above.
    ///
    /// # Errors
    /// As [`Member::supersteps`].
    pub fn run(&mut self, member: &mut Member, how: Supersteps) -> Result<Kept, Broken> {
        let iterations = self.parameters.iterations;
        member.supersteps(how, (iterations, 2), &mut |_, phase| match phase {
            0 => self.compute(),
            _ => self.write(),
        })
    }
}

/// The program with the memory that its members share.
///
/// # Examples
///
/// ```
/// use punctual_gang_thread::bsp::{Bsp, Parameters};
///
/// let (members, iterations) = (2, 5);
/// let (elements, computations, writes) = (4, 3, 4);
/// let bsp = Bsp::new(Parameters { members, elements, computations, writes, iterations })?;
/// let mut workers = [bsp.worker(0), bsp.worker(1)];
/// for _ in 0..5 {
///     workers.iter_mut().for_each(|worker| worker.compute());
///     workers.iter_mut().for_each(|worker| worker.write());
/// }
/// assert_eq!(bsp.check().mismatches, 0);
/// # Ok::<(), punctual_gang_thread::bsp::TooMuch>(())
/// ```
#[derive(Clone, Debug)]
pub struct Bsp {
    parameters: Parameters,
    parts: Vec<Arc<Part>>,
}

impl Bsp {
    /// With its first values. O(P · NE).
    ///
    /// # Errors
    /// [`TooMuch`].
    pub fn new(parameters: Parameters) -> Result<Bsp, TooMuch> {
        let parameters = parameters.check()?;
        let parts = (0..parameters.members).map(|place| Arc::new(Part::new(parameters, place)));
        Ok(Bsp {
            parameters,
            parts: parts.collect(),
        })
    }

    /// The work of the member at `place`, counted around the ring.
    pub fn worker(&self, place: usize) -> Worker {
        let part = |place: usize| Arc::clone(&self.parts[place % self.parts.len()]);
        Worker::new(self.parameters, part(place), part(place + 1))
    }

    /// Compares every computation that was executed with the sequential program, bit by bit, up to
    /// 262,144 of each member. O(iterations · P · (NE · NC + NW)).
    pub fn check(&self) -> Oracle {
        check(self.parameters, &self.parts)
    }
}

/// Digests of all members' elements after each computation, by a sequential program.
fn reference(parameters: Parameters, iterations: usize, mut each: impl FnMut(usize, usize, u64)) {
    let members = parameters.members;
    let first = |place| {
        (0..parameters.elements)
            .map(move |j| initial(place, j))
            .collect()
    };
    let mut all: Vec<Vec<f64>> = (0..members).map(first).collect();
    for iteration in 0..iterations {
        for (place, elements) in all.iter_mut().enumerate() {
            let computed = elements.iter_mut().map(|element| {
                *element = compute(*element, parameters.computations);
                *element
            });
            each(iteration, place, computed.fold(1, fold).max(1));
        }
        let before = all.clone();
        for (place, elements) in before.iter().enumerate() {
            let next = &mut all[(place + 1) % members];
            for j in 0..parameters.writes.min(elements.len()) {
                next[j] = outgoing(elements[j]);
            }
        }
    }
}

fn check(parameters: Parameters, parts: &[Arc<Part>]) -> Oracle {
    let executed = |part: &Arc<Part>| {
        let digests = part.digests.iter();
        digests
            .take_while(|digest| digest.load(Ordering::Relaxed) != 0)
            .count()
    };
    let most = parts.iter().map(executed).max().unwrap_or(0);
    let mut oracle = Oracle::default();
    reference(parameters, most, |iteration, place, digest| {
        let found = parts[place].digests[iteration].load(Ordering::Relaxed);
        if found != 0 {
            oracle.steps += 1;
            oracle.mismatches += u64::from(found != digest);
        }
    });
    oracle
}

/// The program for the members of a file's gang: `function = "bsp::compute/64"` for the superstep
/// of each member that computes, `"bsp::write"` for the one that writes.
///
/// The number is NE, NC and NW; `compute/8/64/16` gives them one by one, and `compute` alone stands
/// for 64 each. The tasks are members in the order of the file, so both supersteps name them in the
/// same order. P is the number of tasks that compute, N that of their jobs.
#[derive(Debug, Default)]
pub struct BspWorkload {
    parameters: Option<Parameters>,
    ring: Arc<Mutex<Vec<Arc<Part>>>>,
    workers: Vec<Arc<Mutex<Option<Worker>>>>,
    writers: usize,
}

impl BspWorkload {
    /// Without members.
    pub fn new() -> BspWorkload {
        BspWorkload::default()
    }

    fn worker(&mut self, parameters: Parameters) -> Option<Step> {
        let known = *self.parameters.get_or_insert(parameters);
        let place = self.workers.len();
        if known != parameters || place >= MEMBERS {
            return None;
        }
        let part = Arc::new(Part::new(parameters, place));
        lock(&self.ring).push(part);
        let mine = Arc::new(Mutex::new(None));
        self.workers.push(Arc::clone(&mine));
        let ring = Arc::clone(&self.ring);
        Some(Box::new(move |_| {
            let mut mine = lock(&mine);
            mine.get_or_insert_with(|| {
                // All members are known when the first job begins.
                let ring = lock(&ring);
                let part = |at: usize| Arc::clone(&ring[at % ring.len()]);
                Worker::new(parameters, part(place), part(place + 1))
            })
            .compute();
        }))
    }
}

fn lock<T>(value: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `/NE`, or `/NE/NC/NW`; nothing: 64 each.
fn parse(text: &str) -> Option<Parameters> {
    let numbers = text.split('/').skip(1).map(str::parse::<usize>);
    let numbers: Vec<usize> = numbers.collect::<Result<_, _>>().ok()?;
    let (elements, computations, writes) = match numbers[..] {
        [] => (64, 64, 64),
        [all] => (all, all, all),
        [elements, computations, writes] => (elements, computations, writes),
        _ => return None,
    };
    let parameters = Parameters {
        members: 1,
        elements,
        computations,
        writes,
        iterations: u64::MAX,
    };
    parameters.check().ok()
}

impl Workload for BspWorkload {
    fn name(&self) -> &str {
        "bsp"
    }

    fn steps(&self) -> Vec<&'static str> {
        vec!["compute", "compute/NE/NC/NW", "write"]
    }

    fn step(&mut self, name: &str) -> Option<Step> {
        if let Some(rest) = name.strip_prefix("compute") {
            return self.worker(parse(rest)?);
        }
        if name != "write" {
            return None;
        }
        let mine = Arc::clone(self.workers.get(self.writers)?);
        self.writers += 1;
        Some(Box::new(move |_| {
            // Before the first computation there is nothing to write.
            if let Some(worker) = lock(&mine).as_mut() {
                worker.write();
            }
        }))
    }

    fn check(&mut self) -> Option<Oracle> {
        let parts = lock(&self.ring).clone();
        let parameters = Parameters {
            members: parts.len(),
            ..self.parameters?
        };
        Some(check(parameters, &parts))
    }
}
