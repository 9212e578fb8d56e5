//! What two threads do with one thing: a round of the one that is stepped, and of the other.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use punctual_model::{Ns, Span};
use punctual_thread::sync::{
    Barrier, Ceiling, Condvar, Flags, Mutex, Notify, Queue, RwLock, Semaphore, WaitError, Want,
};
use punctual_thread::thread::{self, Waker};

type Done = Result<(), WaitError>;

/// Two threads and one thing.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) name: &'static str,
    /// A round of the thread that is stepped.
    pub(crate) drive: fn(&Things) -> Done,
    /// A turn of the other, of which there are any number in a round; an error ends it.
    pub(crate) contend: fn(&Things) -> Done,
}

/// What only threads of one CPU touch.
#[derive(Debug, Default)]
pub(crate) struct Here<T: Copy>(Cell<T>);

// SAFETY: one kernel thread carries all that touch it, and what they tear tests look for.
unsafe impl<T: Copy + Send> Sync for Here<T> {}

impl<T: Copy> Here<T> {
    pub(crate) fn get(&self) -> T {
        self.0.get()
    }

    pub(crate) fn set(&self, value: T) {
        self.0.set(value);
    }
}

/// A number; who adds to it must be alone, or additions get lost.
pub(crate) type Count = Here<u64>;

impl Count {
    pub(crate) fn add(&self) {
        // Two instructions at least, also where there is one that does both.
        let before = core::hint::black_box(self.0.get());
        self.0.set(before + 1);
    }
}

/// Everything that scenes use, and what they count.
#[derive(Debug)]
pub(crate) struct Things {
    pub(crate) over: AtomicBool,
    /// For how many turns the other thread holds what it has, where every entry is a switch; 0:
    /// only who waits lets others run.
    pub(crate) hold: Here<u32>,
    /// Rounds of the driving thread, and turns of the other.
    pub(crate) rounds: Count,
    pub(crate) turns: Count,
    /// Somebody is where one may be at a time.
    occupied: AtomicBool,
    /// Two were there.
    collided: AtomicBool,
    mutex: Mutex<()>,
    ceiling: Mutex<()>,
    permits: Semaphore,
    few: Semaphore,
    line: Queue<u64>,
    meeting: Queue<u64>,
    turn: Mutex<u32>,
    changed: Condvar,
    flags: Flags,
    barrier: Barrier,
    pair: RwLock<(u64, u64)>,
    notify: OnceLock<Notify>,
    driver: Here<Option<Waker>>,
    contender: Here<Option<Waker>>,
    /// The other thread has come to its end.
    left: Here<bool>,
    torn: AtomicBool,
    /// Additions where one is alone; each thread's own.
    added: Count,
    by_driver: Count,
    by_contender: Count,
}

impl Default for Things {
    fn default() -> Self {
        let count = Count::default;
        Things {
            over: AtomicBool::new(false),
            hold: Here::default(),
            rounds: count(),
            turns: count(),
            occupied: AtomicBool::new(false),
            collided: AtomicBool::new(false),
            mutex: Mutex::new(()),
            ceiling: Mutex::with_ceiling((), Ceiling::Priority(9)),
            permits: Semaphore::new(1),
            few: Semaphore::new(0),
            line: Queue::new(1),
            meeting: Queue::new(0),
            turn: Mutex::new(0),
            changed: Condvar::new(),
            flags: Flags::new(),
            barrier: Barrier::new(2),
            pair: RwLock::new((0, 0)),
            notify: OnceLock::new(),
            driver: Here::default(),
            contender: Here::default(),
            left: Here::default(),
            torn: AtomicBool::new(false),
            added: count(),
            by_driver: count(),
            by_contender: count(),
        }
    }
}

impl Things {
    /// Lets the other run, under any policy.
    pub(crate) fn give_way(&self) {
        match self.hold.get() {
            0 => thread::sleep(Span::from_us(100)),
            _ => thread::yield_now(),
        }
    }

    /// By the driving thread, before it is stepped.
    pub(crate) fn prepare(&self) {
        self.driver.set(thread::waker());
        let _ = self.notify.set(Notify::new().expect("in a run"));
        while self.contender.get().is_none() {
            self.give_way();
        }
    }

    /// By the other, first of all.
    pub(crate) fn enter(&self) {
        self.contender.set(thread::waker());
        while self.notify.get().is_none() {
            self.give_way();
        }
    }

    /// By the other, last of all.
    pub(crate) fn leave(&self) {
        self.left.set(true);
    }

    /// By the driving thread, after the last round: the other finishes its turn, unless it waits
    /// for something that will not come.
    pub(crate) fn finish(&self) {
        self.over.store(true, Relaxed);
        for _ in 0..1_000 {
            if self.left.get() {
                break;
            }
            self.give_way();
        }
        // What the other has not come to.
        while self.few.try_acquire().is_ok() {
            self.by_driver.add();
        }
        while self.line.try_receive().is_ok() {
            self.added.add();
        }
    }

    /// What a thread does where it is alone.
    fn alone(&self, mine: &Count) {
        if self.occupied.swap(true, Relaxed) {
            self.collided.store(true, Relaxed);
        }
        self.added.add();
        mine.add();
        self.occupied.store(false, Relaxed);
    }

    /// The same, with turns of the other thread in the middle of it.
    fn alone_for_long(&self, mine: &Count) {
        if self.occupied.swap(true, Relaxed) {
            self.collided.store(true, Relaxed);
        }
        self.added.add();
        for _ in 0..self.hold.get().max(1) {
            self.give_way();
        }
        mine.add();
        self.occupied.store(false, Relaxed);
    }

    /// What is wrong, as far as it can be said in the middle of a run.
    pub(crate) fn found(&self) -> Option<String> {
        let collided = self.collided.load(Relaxed);
        collided.then(|| "two at a time".to_owned())
    }

    /// What is wrong when all is over.
    pub(crate) fn judged(&self) -> Option<String> {
        let parts = self.by_driver.get() + self.by_contender.get();
        let (all, what) = (self.added.get(), (self.rounds.get(), self.turns.get()));
        let lost = (all != parts).then(|| format!("{all} of {parts} additions after {what:?}"));
        self.found().or(lost)
    }

    fn notify(&self) -> Result<&Notify, WaitError> {
        self.notify.get().ok_or(WaitError::NoRun)
    }
}

const fn scene(
    name: &'static str,
    drive: fn(&Things) -> Done,
    contend: fn(&Things) -> Done,
) -> Scene {
    Scene {
        name,
        drive,
        contend,
    }
}

/// A short while; stepped, everything is later than that.
const SOON: Span<Ns> = Span::from_us(5);

/// Every thing in [`punctual_thread::sync`], and blocking and waking without one.
pub(crate) static SCENES: [Scene; 12] = [
    scene("mutex", lock, lock_for_long),
    scene("mutex with a ceiling", lock_under, lock_under_for_long),
    scene("mutex in time", lock_in_time, lock_for_long),
    scene("semaphore", take, take_for_long),
    scene("semaphore in time", take_in_time, give),
    scene("queue", send_two, receive_in_order),
    scene("queue of no length", ask, answer),
    scene("condition", turn_over, turn_back),
    scene("flags", raise, take_flags),
    scene("barrier", meet, meet_too),
    scene("readers and writers", write_and_read, read_and_write),
    scene("block, wake, bell", wake_and_block, block_and_wake),
];

fn lock(t: &Things) -> Done {
    let _guard = t.mutex.lock()?;
    t.alone(&t.by_driver);
    Ok(())
}

fn lock_for_long(t: &Things) -> Done {
    let _guard = t.mutex.lock()?;
    t.alone_for_long(&t.by_contender);
    Ok(())
}

fn lock_under(t: &Things) -> Done {
    let _guard = t.ceiling.lock()?;
    t.alone(&t.by_driver);
    Ok(())
}

fn lock_under_for_long(t: &Things) -> Done {
    let _guard = t.ceiling.lock()?;
    t.alone_for_long(&t.by_contender);
    Ok(())
}

/// Whether it came in time.
fn in_time<T>(result: Result<T, WaitError>) -> Result<Option<T>, WaitError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(WaitError::TimedOut) => Ok(None),
        Err(error) => Err(error),
    }
}

fn lock_in_time(t: &Things) -> Done {
    if let Some(_guard) = in_time(t.mutex.lock_within(SOON))? {
        t.alone(&t.by_driver);
    }
    if let Some(_guard) = in_time(t.mutex.try_lock())? {
        t.alone(&t.by_driver);
    }
    Ok(())
}

fn take(t: &Things) -> Done {
    t.permits.acquire()?;
    t.alone(&t.by_driver);
    t.permits.release()
}

fn take_for_long(t: &Things) -> Done {
    t.permits.acquire()?;
    t.alone_for_long(&t.by_contender);
    t.permits.release()
}

/// A permit is an addition that the other thread has made, and that this one acknowledges.
fn take_in_time(t: &Things) -> Done {
    if in_time(t.few.acquire_within(SOON))?.is_some() {
        t.by_driver.add();
    }
    Ok(())
}

fn give(t: &Things) -> Done {
    t.added.add();
    t.few.release()
}

/// Three messages in a line of one.
fn send_two(t: &Things) -> Done {
    for _ in 0..3 {
        let next = t.by_driver.get() + 1;
        t.line.send(next).map_err(|error| error.why)?;
        t.by_driver.add();
    }
    Ok(())
}

fn receive_in_order(t: &Things) -> Done {
    let message = t.line.receive()?;
    if message != t.added.get() + 1 {
        t.collided.store(true, Relaxed);
    }
    t.added.add();
    Ok(())
}

fn ask(t: &Things) -> Done {
    let question = t.by_driver.get();
    t.meeting.send(question).map_err(|error| error.why)?;
    let answer = t.line.receive()?;
    if answer != question + 1 {
        t.collided.store(true, Relaxed);
    }
    t.by_driver.set(answer);
    Ok(())
}

fn answer(t: &Things) -> Done {
    let question = t.meeting.receive()?;
    t.added.add();
    t.line.send(question + 1).map_err(|error| error.why)
}

/// Hands the turn over, and waits for it to come back.
fn turn_over(t: &Things) -> Done {
    let mut turn = t.turn.lock()?;
    *turn += 1;
    t.by_driver.add();
    t.changed.notify_one()?;
    while *turn % 2 == 1 {
        turn = t.changed.wait(turn)?;
    }
    Ok(())
}

fn turn_back(t: &Things) -> Done {
    let mut turn = t.turn.lock()?;
    while *turn % 2 == 0 {
        (turn, _) = t.changed.wait_within(turn, Span::from_ms(1))?;
        if t.over.load(Relaxed) {
            return Ok(());
        }
    }
    t.added.add();
    *turn += 1;
    t.changed.notify_all()
}

fn raise(t: &Things) -> Done {
    t.by_driver.add();
    t.flags.raise(0b001)?;
    let found = t.flags.wait(Want::all(0b110).take())?;
    if found != 0b110 {
        t.collided.store(true, Relaxed);
    }
    Ok(())
}

fn take_flags(t: &Things) -> Done {
    let _ = t.flags.wait(Want::any(0b001).take())?;
    t.added.add();
    t.flags.raise(0b010)?;
    t.flags.raise(0b100)
}

/// Who comes last has something to say for both.
fn meet(t: &Things) -> Done {
    t.by_driver.add();
    if t.barrier.wait()? {
        t.added.add();
    }
    Ok(())
}

fn meet_too(t: &Things) -> Done {
    if t.barrier.wait()? {
        t.added.add();
    }
    Ok(())
}

fn write_and_read(t: &Things) -> Done {
    {
        let mut pair = t.pair.write()?;
        pair.0 += 1;
        t.alone(&t.by_driver);
        pair.1 += 1;
    }
    let pair = t.pair.read()?;
    if pair.0 != pair.1 {
        t.collided.store(true, Relaxed);
    }
    Ok(())
}

fn read_and_write(t: &Things) -> Done {
    {
        let pair = t.pair.read()?;
        let first = pair.0;
        t.give_way();
        if pair.1 != first {
            t.collided.store(true, Relaxed);
        }
    }
    let mut pair = t.pair.write()?;
    pair.0 += 1;
    t.alone_for_long(&t.by_contender);
    pair.1 += 1;
    Ok(())
}

fn wake_and_block(t: &Things) -> Done {
    t.by_driver.add();
    if let Some(contender) = t.contender.get() {
        contender.wake();
    }
    thread::block();
    if in_time(t.notify()?.wait_within(SOON))?.is_none() {
        t.notify()?.wait()?;
    }
    Ok(())
}

fn block_and_wake(t: &Things) -> Done {
    thread::block();
    if t.over.load(Relaxed) {
        return Ok(());
    }
    t.added.add();
    if let Some(driver) = t.driver.get() {
        driver.wake();
    }
    t.notify()?.notify()
}

/// What the lock of nobody who has thought about it looks like.
pub(crate) static TORN: Scene = scene("a torn lock", torn, torn_for_long);

fn take_torn(t: &Things) {
    while core::hint::black_box(t.torn.load(Relaxed)) {
        t.give_way();
    }
    t.torn.store(true, Relaxed);
}

fn torn(t: &Things) -> Done {
    take_torn(t);
    t.alone(&t.by_driver);
    t.torn.store(false, Relaxed);
    Ok(())
}

fn torn_for_long(t: &Things) -> Done {
    take_torn(t);
    t.alone_for_long(&t.by_contender);
    t.torn.store(false, Relaxed);
    Ok(())
}
