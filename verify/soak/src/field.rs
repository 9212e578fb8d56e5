//! What the threads of a round share, and the books that must balance at its end.
//!
//! Every operation is counted twice, once where it happened (behind the lock, in the message, in
//! the permit) and once beside it. What was executed twice, lost or let in together shows as a
//! difference; what only goes wrong for a moment, by the checks inside.

use std::io::{PipeReader, PipeWriter, Read, Write};
use std::sync::Mutex as HostMutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use punctual_generate::Random;
use punctual_model::{Instant, Ns, Span};
use punctual_thread::Constraint;
use punctual_thread::sync::{
    Barrier, Ceiling, Condvar, Flags, Mutex, Notify, Queue, RwLock, Semaphore, WaitError, Want,
};
use punctual_thread::thread;

use crate::draw::BARRIER;
use crate::pair::{Medium, Pair};

/// Violations that are told of one round; one broken thing breaks many after it.
const MOST_NOTES: usize = 20;

/// The instant, in nanoseconds of the run.
pub(crate) fn now() -> Instant<Ns> {
    thread::now().unwrap_or(Instant::ZERO)
}

/// What the CPUs of a round share.
#[derive(Debug)]
pub(crate) struct Round {
    pub(crate) end: Instant<Ns>,
    notes: HostMutex<Vec<String>>,
    /// A lock of the standard library that threads of all CPUs take.
    total: HostMutex<u64>,
    totalled: AtomicU64,
    pub(crate) bells: Vec<HostMutex<Option<Notify>>>,
    pub(crate) rung: Vec<AtomicU64>,
    pub(crate) heard: Vec<AtomicU64>,
    pub(crate) ringers: AtomicU64,
    /// CPUs whose books have been balanced.
    pub(crate) settled: AtomicU64,
    pub(crate) operations: AtomicU64,
    pub(crate) caught: AtomicU64,
    /// Requests about the tree that were done, and those that were refused.
    pub(crate) changes: [AtomicU64; 2],
    /// Policies of children that came in the place of others.
    pub(crate) own: AtomicU64,
    given_up: AtomicBool,
}

impl Round {
    pub(crate) fn new(cpus: usize, end: Instant<Ns>) -> Round {
        let counters = || (0..cpus).map(|_| AtomicU64::new(0)).collect();
        Round {
            end,
            notes: HostMutex::default(),
            total: HostMutex::default(),
            totalled: AtomicU64::new(0),
            bells: (0..cpus).map(|_| HostMutex::default()).collect(),
            rung: counters(),
            heard: counters(),
            ringers: AtomicU64::new(cpus as u64),
            settled: AtomicU64::new(0),
            operations: AtomicU64::new(0),
            caught: AtomicU64::new(0),
            changes: Default::default(),
            own: AtomicU64::new(0),
            given_up: AtomicBool::new(false),
        }
    }

    pub(crate) fn note(&self, what: String) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if notes.len() < MOST_NOTES {
            notes.push(what);
        }
    }

    pub(crate) fn notes(&self) -> Vec<String> {
        self.notes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }

    pub(crate) fn give_up(&self) {
        self.given_up.store(true, Ordering::Relaxed);
    }

    /// After all CPUs have settled: what only all of them together know.
    pub(crate) fn settle(&self) {
        let total = *self.total.lock().unwrap_or_else(PoisonError::into_inner);
        let counted = self.totalled.load(Ordering::SeqCst);
        if total != counted {
            self.note(format!(
                "std::sync::Mutex: {counted} additions, {total} arrived"
            ));
        }
        for (cpu, (rung, heard)) in self.rung.iter().zip(&self.heard).enumerate() {
            let (rung, heard) = (rung.load(Ordering::SeqCst), heard.load(Ordering::SeqCst));
            if rung != heard {
                self.note(format!("bell of CPU {cpu}: {rung} rings, {heard} heard"));
            }
        }
    }
}

/// A lock whose holder says who it is.
#[derive(Debug)]
struct Watched {
    lock: Mutex<u64>,
    holder: AtomicU64,
    locked: AtomicU64,
}

impl Watched {
    const fn new(lock: Mutex<u64>) -> Watched {
        Watched {
            lock,
            holder: AtomicU64::new(0),
            locked: AtomicU64::new(0),
        }
    }

    /// Adds one under the lock, and does `inside` there.
    fn add(
        &self,
        within: Option<Span<Ns>>,
        field: &Field,
        dice: &mut Random,
        inside: impl FnOnce(&mut Random) -> Result<(), WaitError>,
    ) -> Result<(), WaitError> {
        let mut guard = match within {
            Some(span) => self.lock.lock_within(span)?,
            None => self.lock.lock()?,
        };
        let me = 1 + dice.below(u64::MAX - 1);
        let other = self.holder.swap(me, Ordering::SeqCst);
        *guard += 1;
        self.locked.fetch_add(1, Ordering::SeqCst);
        let result = inside(dice);
        compute(dice.below(200), field);
        if other != 0 || self.holder.swap(0, Ordering::SeqCst) != me {
            field.note("a mutex had two holders".to_owned());
        }
        result
    }

    fn settle(&self, name: &str, field: &Field) {
        let locked = self.locked.load(Ordering::SeqCst);
        match self.lock.try_lock() {
            Ok(value) if *value == locked => {}
            Ok(value) => field.note(format!("{name}: locked {locked} times, {} counted", *value)),
            Err(error) => field.note(format!("{name}: left locked ({error})")),
        }
    }
}

/// What the threads of one CPU share.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) round: &'static Round,
    pub(crate) cpu: usize,
    /// Threads with one body that have not left, and jobs under way.
    pub(crate) inside: AtomicU64,
    pub(crate) pairs: Vec<Pair>,
    /// By thread of the start: how many steps it has taken.
    pub(crate) steps: Vec<AtomicU64>,
    /// The CPU's own scheduler has time for the threads that are created while it runs.
    may_create: bool,
    /// Bytes through the kernel; `None`: a call that waits would stop the CPU.
    pipe: Option<(PipeReader, PipeWriter)>,
    piped: [AtomicU64; 2],
    plain: Watched,
    ceiling: Watched,
    inner: Watched,
    both: RwLock<(u64, u64)>,
    written: AtomicU64,
    permits: Semaphore,
    out: AtomicU64,
    queue: Queue<u64>,
    sent: [AtomicU64; 2],
    received: [AtomicU64; 2],
    told: Condvar,
    waiting: Mutex<()>,
    flags: Flags,
    barrier: Barrier,
    met: [AtomicU64; 2],
}

impl Field {
    pub(crate) fn new(
        round: &'static Round,
        cpu: usize,
        (games, threads): (&[Medium], usize),
        may_create: bool,
    ) -> Field {
        Field {
            round,
            cpu,
            inside: AtomicU64::new(0),
            pairs: games.iter().map(|&medium| Pair::new(medium)).collect(),
            steps: (0..threads).map(|_| AtomicU64::new(0)).collect(),
            may_create,
            pipe: has_rings().then(std::io::pipe).and_then(Result::ok),
            piped: Default::default(),
            plain: Watched::new(Mutex::new(0)),
            ceiling: Watched::new(Mutex::with_ceiling(0, Ceiling::Priority(99))),
            inner: Watched::new(Mutex::new(0)),
            both: RwLock::new((0, 0)),
            written: AtomicU64::new(0),
            permits: Semaphore::new(2),
            out: AtomicU64::new(0),
            queue: Queue::new(3),
            sent: Default::default(),
            received: Default::default(),
            told: Condvar::new(),
            waiting: Mutex::new(()),
            flags: Flags::new(),
            barrier: Barrier::new(BARRIER),
            met: Default::default(),
        }
    }

    pub(crate) fn note(&self, what: String) {
        self.round.note(format!("CPU {}: {what}", self.cpu));
    }

    /// Whether the time of the round is over: books are closed.
    pub(crate) fn is_over(&self) -> bool {
        now() >= self.round.end
    }

    pub(crate) fn is_given_up(&self) -> bool {
        self.round.is_given_up()
    }

    pub(crate) fn give_up(&self) {
        self.round.give_up();
    }

    pub(crate) fn step(&self) {
        self.round.operations.fetch_add(1, Ordering::Relaxed);
    }

    /// Steps of a thread of the start.
    pub(crate) fn steps(&self, thread: usize) -> u64 {
        let steps = self.steps.get(thread);
        steps.map_or(0, |steps| steps.load(Ordering::SeqCst))
    }

    /// The core has answered a request about the tree.
    pub(crate) fn asked(&self, done: bool) {
        let _ = self.round.changes[usize::from(!done)].fetch_add(1, Ordering::Relaxed);
    }

    /// Other code decides for a child.
    pub(crate) fn replaced(&self) {
        let _ = self.round.own.fetch_add(1, Ordering::Relaxed);
    }

    /// One random operation; what may wait, waits for a short while. Whoever gives up has changed
    /// nothing.
    pub(crate) fn play(&'static self, dice: &mut Random) {
        self.step();
        let result = self.operation(dice);
        if let Err(error) = result
            && !matches!(error, WaitError::TimedOut | WaitError::Over)
        {
            self.note(format!("an operation failed: {error}"));
        }
    }

    fn operation(&'static self, dice: &mut Random) -> Result<(), WaitError> {
        let while_ = Span::from_us(dice.below(400));
        match dice.below(15) {
            0 => self.plain.add(None, self, dice, |_| Ok(())),
            1 => self.ceiling.add(None, self, dice, |_| Ok(())),
            2 => self.plain.add(Some(while_), self, dice, |dice| {
                self.inner.add(None, self, dice, |_| Ok(()))
            }),
            3 => self.write(while_),
            4 => self.read(),
            5 => self.permit(while_),
            6 => self.send(dice.bits(), while_),
            7 => self.receive(while_),
            8 => {
                let guard = self.waiting.lock()?;
                self.told.wait_within(guard, while_).map(drop)
            }
            9 => {
                self.told.notify_all()?;
                self.flags.raise(1 << dice.below(3))?;
                self.flags
                    .wait_within(Want::any(7).take(), while_)
                    .map(drop)
            }
            10 if self.may_create => self.children(dice),
            11 => {
                self.add_to_total();
                Ok(())
            }
            12 => {
                if self.pipe.is_some() && dice.happens(500) {
                    std::thread::sleep(std::time::Duration::from_micros(dice.below(300)));
                } else {
                    thread::sleep(while_);
                }
                Ok(())
            }
            13 => {
                self.pass_byte(dice);
                Ok(())
            }
            _ => {
                compute(dice.below(4_000), self);
                allocate(dice, self);
                thread::yield_now();
                Ok(())
            }
        }
    }

    fn write(&self, while_: Span<Ns>) -> Result<(), WaitError> {
        let mut both = self.both.write_within(while_)?;
        both.0 += 1;
        compute(50, self);
        both.1 += 1;
        self.written.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn read(&self) -> Result<(), WaitError> {
        let both = self.both.read()?;
        let first = both.0;
        compute(50, self);
        if both.1 != first {
            self.note("a reader saw a writer's half".to_owned());
        }
        Ok(())
    }

    fn permit(&self, while_: Span<Ns>) -> Result<(), WaitError> {
        self.permits.acquire_within(while_)?;
        if self.out.fetch_add(1, Ordering::SeqCst) >= 2 {
            self.note("two permits, three holders".to_owned());
        }
        compute(50, self);
        self.out.fetch_sub(1, Ordering::SeqCst);
        self.permits.release()
    }

    fn send(&self, number: u64, while_: Span<Ns>) -> Result<(), WaitError> {
        let sent = self.queue.send_within(number, while_);
        sent.map_err(|error| error.why)?;
        self.sent[0].fetch_add(1, Ordering::SeqCst);
        self.sent[1].fetch_add(number, Ordering::SeqCst);
        Ok(())
    }

    fn receive(&self, while_: Span<Ns>) -> Result<(), WaitError> {
        let number = self.queue.receive_within(while_)?;
        self.received[0].fetch_add(1, Ordering::SeqCst);
        self.received[1].fetch_add(number, Ordering::SeqCst);
        Ok(())
    }

    /// A byte into the pipe, and one out of it: there is always one for everybody.
    fn pass_byte(&self, dice: &mut Random) {
        let Some((reader, writer)) = &self.pipe else {
            return;
        };
        let byte = u8::try_from(dice.below(256)).unwrap_or(0);
        let mut got = [0];
        let (mut reader, mut writer) = (reader, writer);
        let done = writer.write_all(&[byte]).and_then(|()| {
            self.piped[0].fetch_add(1 + u64::from(byte), Ordering::SeqCst);
            reader.read_exact(&mut got)
        });
        match done {
            Ok(()) => {
                self.piped[1].fetch_add(1 + u64::from(got[0]), Ordering::SeqCst);
            }
            Err(error) => self.note(format!("pipe: {error}")),
        }
    }

    fn add_to_total(&self) {
        let round = self.round;
        *round.total.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        round.totalled.fetch_add(1, Ordering::SeqCst);
    }

    /// A child that works and is joined, and one that is cancelled while it waits.
    fn children(&'static self, dice: &mut Random) -> Result<(), WaitError> {
        let number = dice.bits();
        let priority = 1 + u32::try_from(dice.below(8)).unwrap_or(0);
        let constraint = Constraint::aperiodic(priority);
        let works = thread::spawn("works", constraint, move || {
            compute(number % 500, self);
            number ^ 0x5eed
        });
        let waits = thread::spawn("waits", constraint, move || {
            loop {
                thread::block();
            }
        });
        if let Ok(waits) = waits {
            waits.cancel();
            let _: Result<(), _> = waits.join();
        }
        if let Ok(works) = works {
            match works.join() {
                Ok(result) if result == number ^ 0x5eed => {}
                other => self.note(format!("a child of {number} returned {other:?}")),
            }
        }
        Ok(())
    }

    /// Meets the others at the barrier, for a while.
    pub(crate) fn meet(&self, dice: &mut Random) {
        self.step();
        match self
            .barrier
            .wait_within(Span::from_us(dice.within(50, 3_000)))
        {
            Ok(last) => {
                self.met[0].fetch_add(1, Ordering::SeqCst);
                self.met[1].fetch_add(u64::from(last), Ordering::SeqCst);
            }
            Err(WaitError::TimedOut) => {}
            Err(error) => self.note(format!("barrier: {error}")),
        }
    }

    /// Balances the books. Nobody else is on the field.
    pub(crate) fn settle(&self) {
        for pair in &self.pairs {
            self.round
                .caught
                .fetch_add(pair.settle(self), Ordering::SeqCst);
        }
        self.plain.settle("plain mutex", self);
        self.ceiling.settle("mutex with ceiling", self);
        self.inner.settle("inner mutex", self);
        while self.receive(Span::ZERO).is_ok() {}
        for (what, sent, received) in [
            ("messages of the queue", &self.sent[0], &self.received[0]),
            ("their sum", &self.sent[1], &self.received[1]),
            ("bytes of the pipe", &self.piped[0], &self.piped[1]),
        ] {
            let (sent, received) = (sent.load(Ordering::SeqCst), received.load(Ordering::SeqCst));
            if sent != received {
                self.note(format!("{what}: sent {sent}, received {received}"));
            }
        }
        let written = self.written.load(Ordering::SeqCst);
        match self.both.read() {
            Ok(both) if *both == (written, written) => {}
            Ok(both) => self.note(format!("lock: {written} writes, found {:?}", *both)),
            Err(error) => self.note(format!("lock: {error}")),
        }
        if self.permits.permits() != Some(2) {
            self.note(format!(
                "semaphore: {:?} of 2 permits",
                self.permits.permits()
            ));
        }
        let [met, last] = [&self.met[0], &self.met[1]].map(|m| m.load(Ordering::SeqCst));
        if met != last * BARRIER as u64 {
            self.note(format!(
                "barrier: {met} passed, {last} times {BARRIER} were expected"
            ));
        }
    }
}

/// Whether calls of light threads that wait can go through rings of the kernel.
fn has_rings() -> bool {
    let disabled = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled");
    disabled.is_ok_and(|text| text.trim() == "0")
}

/// Whole numbers in vector registers beside the same in integers: what a preemption does not keep
/// shows as a difference.
pub(crate) fn compute(steps: u64, field: &Field) {
    let mut lanes = [1.0_f64, 2.0, 3.0, 4.0];
    let mut whole = [1_u32, 2, 3, 4];
    for step in 0..u32::try_from(steps).unwrap_or(0) {
        for (lane, whole) in lanes.iter_mut().zip(&mut whole) {
            *lane += f64::from(step % 17);
            *whole += step % 17;
        }
    }
    if std::hint::black_box(lanes) != whole.map(f64::from) {
        field.note("floating-point state was lost".to_owned());
    }
}

/// Blocks of the allocator, and text from its formatting code.
fn allocate(dice: &mut Random, field: &Field) {
    let mark = dice.bits();
    let blocks: Vec<Vec<u64>> = (1..8).map(|n| vec![mark; n * 13]).collect();
    let text = format!("{mark}:{mark:x}");
    let whole = text.split(':').next().and_then(|n| n.parse::<u64>().ok());
    if whole != Some(mark) || blocks.iter().flatten().any(|&word| word != mark) {
        field.note("allocated memory was changed".to_owned());
    }
}
