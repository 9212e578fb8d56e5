//! Closures in place of light threads: they run when it is their turn, whatever they call.

use std::fs;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{Log, Spec, alone, background, for_ms, input};
use punctual_kern::TraceEvent;
use punctual_linux::{Backed, Ending, JobInfo, Member, NotBacked, Outcome, RunOptions, run};
use punctual_model::{Class, CpuId, Priority, Span, Task, Work};

/// Long enough for any machine; only a test that fails waits for it.
const PATIENCE: Duration = Duration::from_secs(60);

/// A reservation of 2 ms in every 10 ms with this body.
fn reserved(body: impl FnMut(&JobInfo) + Send + 'static) -> Spec {
    let class = Class::Reservation {
        period: Span::from_ms(10),
        slice: Work::from_ms(2),
    };
    let mut task = Task::new("backed", CpuId(0), class);
    task.priority = Priority::new(1);
    Spec {
        task,
        body: Box::new(body),
    }
}

/// The body that a closure stands in for, once.
fn once<R: Send + 'static>(
    backed: Backed<R>,
    mut then: impl FnMut(Result<R, NotBacked>) + Send + 'static,
) -> impl FnMut(&JobInfo) + Send + 'static {
    let mut backed = Some(backed);
    move |_| {
        if let Some(backed) = backed.take() {
            then(backed.run());
        }
    }
}

/// Flies until the stop flag is set.
fn fly(specs: Vec<Spec>, options: &RunOptions) -> Outcome<Log> {
    run(vec![input(specs, 1_000, Log::with_room(100_000))], options).expect("a run")
}

fn until_stopped() -> RunOptions {
    RunOptions {
        duration_ns: Some(60_000_000_000),
        patience_ns: 1_000_000_000,
        ..for_ms(1)
    }
}

/// The policy of one of this process's threads: 0 ordinary, 1 FIFO, 5 idle.
fn policy_of(thread: &str) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/self/task/{thread}/stat")).ok()?;
    // Fields after the name begin with the third.
    let fields = stat.rsplit(')').next()?;
    fields.split_whitespace().nth(41 - 3)?.parse().ok()
}

/// The number of the calling thread.
fn number() -> String {
    let link = fs::read_link("/proc/thread-self").expect("Linux");
    let name = link.file_name().and_then(|name| name.to_str());
    name.expect("a number").to_owned()
}

#[test]
fn a_closure_may_wait_in_the_kernel_and_gives_its_result_to_its_light_thread() {
    let _alone = alone();
    let options = until_stopped();
    let stop = Arc::clone(&options.stop);
    let (asks, asked) = channel();
    let (answers, answered): (_, Receiver<u64>) = channel();
    // Somebody outside of the run, for whom the closure waits.
    let other = std::thread::spawn(move || {
        let question: u64 = asked.recv().expect("it asks");
        answers.send(question + 1).expect("it waits");
    });
    let backed = Backed::try_new("backed", move |_: &Member| {
        std::thread::sleep(Duration::from_millis(3));
        asks.send(41).expect("the other one waits");
        answered.recv().expect("it answers")
    });
    let result = Arc::new(Mutex::new(None));
    let kept = Arc::clone(&result);
    let body = once(backed.expect("a thread"), move |answer| {
        *kept.lock().expect("one writer") = answer.ok();
        stop.store(true, Relaxed);
    });
    let outcome = fly(vec![background("backed", 1, body)], &options);
    assert_eq!(outcome.ending, Ending::Stopped);
    assert_eq!(outcome.panics, []);
    assert!(
        outcome.cpus[0].waits.is_empty(),
        "its light thread waits nowhere"
    );
    other.join().expect("it has answered");
    assert_eq!(*result.lock().expect("one writer"), Some(42));
}

#[test]
fn a_closure_that_never_yields_has_its_slices_and_is_told_when_the_run_is_over() {
    let _alone = alone();
    let options = until_stopped();
    let stop = Arc::clone(&options.stop);
    let (turns, seen) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (counted, looked) = (Arc::clone(&turns), Arc::clone(&seen));
    let (tell, told) = channel();
    let backed = Backed::try_new("backed", move |group: &Member| {
        while !group.is_over() {
            counted.fetch_add(1, Relaxed);
        }
        tell.send(number()).expect("the test waits");
    });
    let body = once(backed.expect("a thread"), drop);
    // Somebody more urgent has the rest: jobs are counted, and the twentieth ends the run.
    let urgent = crate::common::periodic("urgent", 9, 5_000, 500, move |_| {
        let jobs = looked.fetch_add(1, Relaxed) + 1;
        if jobs >= 20 && turns.load(Relaxed) > 0 {
            stop.store(true, Relaxed);
        }
    });
    let outcome = fly(vec![urgent, reserved(body)], &options);
    assert_eq!(outcome.ending, Ending::Stopped);
    assert_eq!(outcome.panics, []);
    let thread = told.recv_timeout(PATIENCE).expect("it was told");
    assert_ne!(policy_of(&thread), Some(1), "it was lowered for good");
    let traces = outcome.cpus[0].sink.traces.iter();
    let slices = traces.filter(
        |(_, event)| matches!(event, TraceEvent::Switched { to: Some(to), .. } if to.index() == 1),
    );
    assert!(
        slices.count() >= 2,
        "it was preempted and had further turns"
    );
    assert!(seen.load(Relaxed) >= 20);
}

#[test]
fn a_panic_in_a_closure_is_its_light_thread_s_own_by_name() {
    let _alone = alone();
    let options = until_stopped();
    let stop = Arc::clone(&options.stop);
    let backed = Backed::<()>::try_new("backed", |_: &Member| panic!("as it must"));
    let body = once(backed.expect("a thread"), drop);
    let ends = background("ends", 0, move |_: &JobInfo| stop.store(true, Relaxed));
    let outcome = fly(vec![background("clumsy", 1, body), ends], &options);
    let said: Vec<_> = outcome
        .panics
        .iter()
        .map(|panic| (panic.name.as_str(), panic.message.as_str()))
        .collect();
    assert_eq!(said, [("clumsy", "as it must")]);
}

#[test]
fn threads_that_a_closure_enlists_run_and_rest_with_it() {
    let _alone = alone();
    let options = until_stopped();
    let stop = Arc::clone(&options.stop);
    let (tell, told) = channel();
    let (free, freed) = channel::<()>();
    let (left, leaves) = channel();
    let (end, ends) = channel::<()>();
    let backed = Backed::try_new("backed", move |group: &Member| {
        let begun = Arc::new(AtomicBool::new(false));
        let (group, begins) = (*group, Arc::clone(&begun));
        let helper = std::thread::spawn(move || {
            let member = group.join();
            assert!(member.is_some(), "there is room");
            begins.store(true, Relaxed);
            while !group.is_over() {
                std::hint::spin_loop();
            }
            tell.send(number()).expect("the test waits");
            let _dropped = freed.recv();
            drop(member);
            left.send(number()).expect("the test waits");
            let _dropped = ends.recv();
        });
        while !begun.load(Relaxed) && !group.is_over() {
            std::thread::yield_now();
        }
        stop.store(true, Relaxed);
        helper.join().expect("no panic");
    });
    let body = once(backed.expect("a thread"), drop);
    let outcome = fly(vec![reserved(body)], &options);
    assert_eq!(outcome.ending, Ending::Stopped);
    let thread = told.recv_timeout(PATIENCE).expect("it was told");
    let stays = outcome.lost.iter().any(|loss| loss.what == "SCHED_IDLE");
    assert_eq!(
        policy_of(&thread),
        Some(if stays { 0 } else { 5 }),
        "last of all when the run is over, if it would come back from that"
    );
    drop(free);
    let thread = leaves.recv_timeout(PATIENCE).expect("it leaves the group");
    assert_eq!(policy_of(&thread), Some(0), "as everybody afterwards");
    drop(end);
}

/// A closure that joins two threads in its turn, of which one leaves in it and the other one does
/// not before the closure returns; their numbers.
fn leaves_two(group: &Member) -> (String, String) {
    let (tell, told) = channel();
    let start = |leaves: bool| {
        let (group, tell) = (*group, tell.clone());
        std::thread::spawn(move || {
            let member = group.join();
            assert!(member.is_some(), "there is room");
            let member = member.filter(|_| !leaves);
            tell.send(number()).expect("the closure waits");
            // For good, as far as the test can tell.
            std::thread::sleep(PATIENCE);
            drop(member);
        });
        told.recv().expect("it is there")
    };
    (start(true), start(false))
}

#[test]
fn who_leaves_a_crew_or_outlives_its_closure_is_an_ordinary_thread_again() {
    let _alone = alone();
    let options = until_stopped();
    let stop = Arc::clone(&options.stop);
    let (tell, told) = channel();
    let backed = Backed::try_new("backed", move |group: &Member| {
        let (left, outlives) = leaves_two(group);
        // Raised and lowered a few times with it; bounded by the run.
        let (mut raised, mut lowered) = (false, false);
        while !(group.is_over() || raised && lowered) {
            let policy = policy_of(&outlives);
            raised |= policy != Some(5);
            lowered |= policy != Some(1);
        }
        let seen = policy_of(&left);
        tell.send((seen, left, outlives)).expect("the test waits");
    });
    let body = once(backed.expect("a thread"), move |_| {
        stop.store(true, Relaxed);
    });
    let urgent = crate::common::periodic("urgent", 9, 5_000, 500, |_: &JobInfo| ());
    let outcome = fly(vec![urgent, reserved(body)], &options);
    assert_eq!(outcome.ending, Ending::Stopped);
    assert_eq!(outcome.panics, []);
    let (seen, left, outlives) = told.recv_timeout(PATIENCE).expect("it has returned");
    assert_eq!(seen, Some(0), "it has left in the turn of its closure");
    assert_eq!(policy_of(&left), Some(0), "nobody raises it again");
    assert_eq!(policy_of(&outlives), Some(0), "its closure has returned");
}

#[test]
fn a_closure_that_was_preempted_is_raised_again_whoever_runs_it() {
    let _alone = alone();
    let options = until_stopped();
    let stop = Arc::clone(&options.stop);
    let jobs = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&jobs);
    let (tell, told) = channel();
    let backed = Backed::try_new("backed", move |group: &Member| {
        let mut raised = 0;
        // A job of the urgent one lies between a turn and the next: it was lowered there.
        while !group.is_over() && raised < 3 {
            let before = jobs.load(Relaxed);
            while !group.is_over() && jobs.load(Relaxed) < before + 2 {
                std::hint::spin_loop();
            }
            while !group.is_over() && policy_of(&number()) == Some(5) {
                std::hint::spin_loop();
            }
            raised += u32::from(!group.is_over());
        }
        tell.send(raised).expect("the test waits");
    });
    let body = once(backed.expect("a thread"), move |_| {
        stop.store(true, Relaxed);
    });
    let urgent = crate::common::periodic("urgent", 9, 5_000, 500, move |_| {
        counted.fetch_add(1, Relaxed);
    });
    let outcome = fly(vec![urgent, reserved(body)], &options);
    assert_eq!(outcome.panics, []);
    let raised = told.recv_timeout(PATIENCE).expect("it ends");
    assert_eq!(raised, 3, "raised again after it was lowered");
}

#[test]
fn a_light_thread_makes_no_kernel_thread_for_a_closure() {
    let _alone = alone();
    let options = until_stopped();
    let stop = Arc::clone(&options.stop);
    let refused = Arc::new(Mutex::new(None));
    let kept = Arc::clone(&refused);
    let body = background("backed", 1, move |_: &JobInfo| {
        let made = Backed::try_new("backed", |_: &Member| ());
        *kept.lock().expect("one writer") = made.err().map(|error| error.kind());
        stop.store(true, Relaxed);
    });
    let outcome = fly(vec![body], &options);
    assert_eq!(outcome.panics, []);
    let refused = *refused.lock().expect("one writer");
    assert_eq!(refused, Some(ErrorKind::Unsupported));
}

#[test]
fn outside_of_a_run_nothing_is_stood_in_for_and_the_closure_is_dropped() {
    let dropped = Arc::new(());
    let kept = Arc::clone(&dropped);
    let backed = Backed::try_new("backed", move |_: &Member| drop(kept)).expect("a thread");
    assert!(matches!(backed.run(), Err(NotBacked::NoRun)));
    // Its kernel thread ends when nobody can let it begin any more.
    while Arc::strong_count(&dropped) > 1 {
        std::thread::yield_now();
    }
}
