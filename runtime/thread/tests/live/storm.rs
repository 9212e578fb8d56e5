//! Everything at once, preempted all the time: what is counted at the end is what was done.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::common::{FIXED, fly, free, ms, runtime, until, us};
use punctual_generate::Dice;
use punctual_model::{Ns, PolicyKind, Span};
use punctual_thread::Constraint;
use punctual_thread::sync::{
    Ceiling, Condvar, Flags, Mutex, Queue, RwLock, Semaphore, WaitError, Want,
};
use punctual_thread::thread::{self, Thread};

/// What all threads use.
struct Field {
    plain: Mutex<u64>,
    ceiling: Mutex<u64>,
    inner: Mutex<u64>,
    both: RwLock<(u64, u64)>,
    permits: Semaphore,
    out: AtomicU64,
    queue: Queue<u64>,
    sent: AtomicU64,
    received: AtomicU64,
    condition: Condvar,
    flags: Flags,
    operations: AtomicU64,
    over: AtomicBool,
}

impl Field {
    fn new() -> Field {
        Field {
            plain: Mutex::new(0),
            ceiling: Mutex::with_ceiling(0, Ceiling::Priority(99)),
            inner: Mutex::new(0),
            both: RwLock::new((0, 0)),
            permits: Semaphore::new(2),
            out: AtomicU64::new(0),
            queue: Queue::new(3),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            condition: Condvar::new(),
            flags: Flags::new(),
            operations: AtomicU64::new(0),
            over: AtomicBool::new(false),
        }
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// One random operation. What may wait, waits for a short while.
    fn play(self: &Arc<Self>, dice: &mut Dice) -> Result<(), WaitError> {
        let while_ = Span::from_us(dice.below(300));
        match dice.below(11) {
            0 => *self.plain.lock()? += 1,
            1 => *self.ceiling.lock()? += 1,
            2 => {
                let mut outer = self.plain.lock_within(while_)?;
                let mut inner = self.inner.lock()?;
                *outer += 1;
                *inner += 1;
            }
            3 => {
                let mut both = self.both.write_within(while_)?;
                both.0 += 1;
                both.1 += 1;
            }
            4 => {
                let both = self.both.read()?;
                assert_eq!(both.0, both.1);
            }
            5 => {
                self.permits.acquire_within(while_)?;
                assert!(self.out.fetch_add(1, Ordering::Relaxed) < 2);
                self.out.fetch_sub(1, Ordering::Relaxed);
                self.permits.release()?;
            }
            6 => {
                let number = dice.below(1_000);
                self.queue.send_within(number, while_).map_err(|e| e.why)?;
                self.sent.fetch_add(number, Ordering::Relaxed);
            }
            7 => {
                let number = self.queue.receive_within(while_)?;
                self.received.fetch_add(number, Ordering::Relaxed);
            }
            8 => {
                let guard = self.inner.lock()?;
                drop(self.condition.wait_within(guard, while_)?);
            }
            9 => {
                self.condition.notify_all()?;
                self.flags.raise(1 << dice.below(3))?;
                self.flags.wait_within(Want::any(7).take(), while_)?;
            }
            _ => self.children(dice)?,
        }
        Ok(())
    }

    /// A child that does something, and one that is cancelled while it waits or works.
    fn children(self: &Arc<Self>, dice: &mut Dice) -> Result<(), WaitError> {
        let (mut its, field) = (Dice::new(dice.below(u64::MAX)), Arc::clone(self));
        let priority = 1 + u32::try_from(dice.below(8)).unwrap_or(0);
        let works = thread::spawn("works", free(priority), move || {
            // No children of children: the pool would be empty soon.
            *field.plain.lock().expect("in a run") += 1;
            its.below(9)
        });
        let field = Arc::clone(self);
        let waits = thread::spawn("waits", free(priority), move || {
            while !field.is_over() {
                let guard = field.inner.lock()?;
                drop(field.condition.wait(guard)?);
            }
            Ok::<(), WaitError>(())
        });
        if let Ok(waits) = waits {
            waits.cancel();
            let _ = waits.join();
        }
        let worked = works.ok().map(Thread::join);
        assert!(!matches!(worked, Some(Err(_))), "{worked:?}");
        Ok(())
    }

    fn until_over(self: &Arc<Self>, seed: u64, rest: impl Fn()) {
        let mut dice = Dice::new(seed);
        while !self.is_over() {
            // Who gives up has changed nothing.
            let _ = self.play(&mut dice);
            self.operations.fetch_add(1, Ordering::Relaxed);
            rest();
        }
    }
}

fn storm(policy: PolicyKind<Ns>) {
    let field = Arc::new(Field::new());
    let shared = Arc::clone(&field);
    let runtime = runtime(policy).threads(100);
    let finished = fly(runtime, move || {
        let mut threads = Vec::new();
        for (n, period) in (0..).zip([300, 500, 700]) {
            let field = Arc::clone(&shared);
            let every = Constraint::periodic(Span::from_us(period), us(period / 6));
            let every = every.priority(90 - n);
            let body = move || {
                field.until_over(u64::from(n), || {
                    let _ = thread::wait_next_period();
                });
            };
            threads.push(thread::spawn("periodic", every, body).expect("half of the CPU"));
        }
        for n in 0..6 {
            let field = Arc::clone(&shared);
            let body = move || field.until_over(100 + u64::from(n), || ());
            threads.push(thread::spawn("free", free(2 + n % 3), body).expect("a thread"));
        }
        thread::sleep(ms(1_500));
        until(|| shared.operations.load(Ordering::Relaxed) > 500);
        shared.over.store(true, Ordering::Relaxed);
        for thread in threads {
            while shared
                .queue
                .try_receive()
                .map(|n| shared.received.fetch_add(n, Ordering::Relaxed))
                .is_ok()
            {}
            thread.join().expect("no panic");
        }
        while let Ok(number) = shared.queue.try_receive() {
            shared.received.fetch_add(number, Ordering::Relaxed);
        }
        let both = *shared.both.read().expect("in a run");
        let free = shared.plain.try_lock().is_ok() && shared.inner.try_lock().is_ok();
        (both.0 == both.1, free, shared.permits.permits())
    });
    assert_eq!(finished.result, (true, true, Some(2)));
    assert_eq!(finished.outcome.panics, []);
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    assert_eq!(count(&field.sent), count(&field.received), "messages");
    assert!(count(&field.operations) > 500, "{:?}", field.operations);
    let preemptions = finished.outcome.cpus[0].counters.preemptions;
    assert!(preemptions > 100, "only {preemptions} preemptions");
}

#[test]
fn nothing_is_lost_in_a_storm_under_fixed_priorities() {
    storm(FIXED);
}

#[test]
fn nothing_is_lost_in_a_storm_under_deadlines() {
    storm(PolicyKind::EarliestDeadlineFirst);
}
