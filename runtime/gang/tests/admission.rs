//! Gangs of threads that are admitted on two CPUs, changed, refused, and end.

mod common;

use punctual_gang_thread::{
    Broken, Correction, Form, Gang, Member, NotAll, Options, Refused, Waiting, Why,
};
use punctual_model::{Instant, Ns, Span, Work};
use punctual_thread::sync::Semaphore;
use punctual_thread::thread::{self, SpawnError};
use punctual_thread::{Constraint, NotAdmitted};

use std::sync::Arc;

use common::{FIXED, background, on_two_cpus};

fn options(form: Form) -> Options {
    Options {
        form,
        waiting: Waiting::Sleep(Span::from_us(50)),
        limit: Span::from_ms(10_000),
    }
}

fn periodic(wcet_ms: u64) -> Constraint {
    Constraint::periodic(Span::from_ms(20), Work::from_ms(wcet_ms)).priority(60)
}

const AGREED: Correction = Correction::Agreed(Span::from_ms(20));

/// The arrival of the next job.
fn next() -> Instant<Ns> {
    let job = thread::wait_next_period().expect("it has jobs");
    Instant::from_ns(job.arrival_ns)
}

/// Whether an arrival is whole periods after a first one, to the tick.
fn on_grid(first: Instant<Ns>, at: Instant<Ns>) -> bool {
    let off = (at.as_ns() - first.as_ns() + 10) % 20_000_000;
    off <= 20
}

#[test]
fn all_begin_at_one_instant_or_nobody_does() {
    for form in [Form::Linear, Form::Tree] {
        let gang = Gang::create("one instant", 2, options(form)).expect("the name is free");
        let found = on_two_cpus(FIXED, move |_| {
            let gang = gang.clone();
            let body = move || {
                let mut member = gang.join().expect("a place");
                let admitted = member.admit(periodic(5), AGREED).expect("it fits");
                // The other one may be ahead: its first job begins when its CPU is told.
                let second = next();
                let on_time = admitted.in_step();
                (on_time, admitted, on_grid(admitted.arrival, second))
            };
            let thread = thread::spawn("member", background(), body).expect("room");
            thread.join().expect("it ends")
        });
        let Some((one, other, _)) = found else { return };
        assert_eq!(one.1.agreed, other.1.agreed);
        assert!(one.2 && other.2, "{one:?} {other:?}");
        if one.0 && other.0 {
            let apart = one.1.arrival.as_ns().abs_diff(other.1.arrival.as_ns());
            assert!(apart <= 1, "{one:?} {other:?}");
        }
        assert_ne!(one.1.order, other.1.order);
    }
}

/// The member's view of a gang that is admitted, refused, admitted again, and given back.
fn life(cpu: usize, gang: &Gang, gate: &[Arc<Semaphore>; 2]) -> (Vec<bool>, Box<Refused>) {
    let mut member = gang.join().expect("a place");
    let first = member.admit(periodic(5), AGREED).expect("it fits");
    let mut holds = vec![on_grid(first.arrival, next())];
    // 12 ms of 20 ms go to another thread of CPU 1.
    let other = (cpu == 1).then(|| {
        let above = periodic(12).priority(70);
        let gate = Arc::clone(&gate[0]);
        let body = move || gate.acquire().expect("it is opened");
        thread::spawn("above", above, body).expect("it fits")
    });
    let refused = match member.admit(periodic(10), AGREED) {
        Err(NotAll::Refused(refused)) => refused,
        other => panic!("22 ms of 20 ms: {other:?}"),
    };
    let former = member.guarantee().map(|kept| *kept.constraint());
    holds.push(former == Some(periodic(5)));
    holds.push(on_grid(first.arrival, next()));
    if let Some(other) = other {
        gate[0].release().expect("in the run");
        other.join().expect("it ends");
    }
    thread::sleep(Span::from_ms(60));
    let changed = member.admit(periodic(10), AGREED).expect("it fits now");
    holds.push(
        !changed.in_step()
            || Some(changed.arrival.as_ns()) >= changed.agreed.map(|a| a.as_ns() - 1),
    );
    holds.push(member.guarantee().map(|kept| *kept.constraint()) == Some(periodic(10)));
    member.barrier().expect("whole");
    if cpu == 0 {
        member.give_back();
        holds.push(thread::wait_next_period().is_err() && member.guarantee().is_none());
    } else {
        holds.push(on_grid(changed.arrival, next()));
    }
    member.barrier().expect("whole");
    (holds, refused)
}

#[test]
fn a_change_that_one_cpu_refuses_leaves_every_member_its_former_constraint() {
    let gang = Gang::create("change", 2, options(Form::Linear)).expect("the name is free");
    let gate = [(); 2].map(|()| Arc::new(Semaphore::cross_cpu(0)));
    let found = on_two_cpus(FIXED, move |cpu| {
        let (gang, gate) = (gang.clone(), gate.clone());
        let body = move || life(cpu, &gang, &gate);
        let thread = thread::spawn("member", background(), body).expect("room");
        thread.join().expect("it ends")
    });
    let Some((one, other, _)) = found else { return };
    assert_eq!((&one.0, &other.0), (&vec![true; 6], &vec![true; 6]));
    // One verdict for both, which names the CPU.
    assert_eq!(one.1, other.1);
    assert_eq!(one.1.cpu, 1);
    let SpawnError::NotAdmitted(NotAdmitted::Refused(verdict)) = &one.1.why else {
        panic!("{:?}", one.1);
    };
    let refusal = verdict.refusals.first().expect("a reason");
    assert!(
        refusal.witness.is_some() && refusal.fix.is_some(),
        "{refusal:?}"
    );
    let said = one.1.to_string();
    assert!(
        said.starts_with("no member is admitted: CPU 1 refuses member "),
        "{said}"
    );
    assert!(said.contains(&refusal.advice), "{said}");
}

#[test]
fn a_member_that_ends_in_the_middle_takes_the_constraint_from_all_others() {
    let gang = Gang::create("dies", 2, options(Form::Tree)).expect("the name is free");
    let found = on_two_cpus(FIXED, move |cpu| {
        let gang = gang.clone();
        let body = move || {
            let mut member = gang.join().expect("a place");
            if cpu == 0 {
                member.barrier().expect("the first round");
                return (None, true);
            }
            member.barrier().expect("the first round");
            let end = member.admit(periodic(5), AGREED);
            (end.err(), member.guarantee().is_none())
        };
        let thread = thread::spawn("member", background(), body).expect("room");
        thread.join().expect("it ends")
    });
    let Some((_, (end, nothing), _)) = found else {
        return;
    };
    let Some(NotAll::Broken(Broken { why: Why::Left, .. })) = end else {
        panic!("{end:?}");
    };
    assert!(nothing);
}

/// All three ways on one gang after the other, as Fig. 11 has them.
#[test]
fn without_correction_and_by_order_members_begin_near_each_other() {
    let gang = Gang::create("ways", 2, options(Form::Linear)).expect("the name is free");
    let found = on_two_cpus(FIXED, move |_| {
        let gang = gang.clone();
        let body = move || {
            let mut member: Member = gang.join().expect("a place");
            let delta = member.departure_delay(8).expect("whole");
            let plain = member
                .admit(periodic(5), Correction::None)
                .expect("it fits");
            let by_order = Correction::ByOrder(delta);
            let corrected = member.admit(periodic(6), by_order).expect("it fits");
            (delta, plain.agreed, corrected.agreed, corrected.order)
        };
        let thread = thread::spawn("member", background(), body).expect("room");
        thread.join().expect("it ends")
    });
    let Some((one, other, _)) = found else { return };
    assert_eq!(one.0, other.0);
    assert_eq!((one.1, one.2, other.1, other.2), (None, None, None, None));
    assert_eq!(one.3 + other.3, 1);
}

/// How often clocks were compared in a run of 400 ms; `None`: there is one CPU only.
fn compared(admits: bool) -> Option<u64> {
    let options = options(Form::Linear);
    let gang = Gang::create("watched", 2, options).expect("the name is free");
    let ends = gang.clone();
    let found = on_two_cpus(FIXED, move |_| {
        let gang = gang.clone();
        let body = move || {
            let mut member = gang.join().expect("a place");
            if admits {
                member.admit(periodic(1), AGREED).expect("it fits");
            }
            thread::sleep(Span::from_ms(400));
            member.barrier().expect("whole");
        };
        let thread = thread::spawn("member", background(), body).expect("room");
        thread.join().expect("it ends");
    });
    ends.destroy();
    found.map(|(_, _, finished)| finished.outcome.clocks.compared)
}

#[test]
fn clocks_of_a_run_are_watched_once_a_gang_is_admitted() {
    let Some(unwatched) = compared(false) else {
        return;
    };
    assert_eq!(unwatched, 0);
    // Beside others both CPUs are seldom idle at the same instant.
    let mut runs = (0..50).filter_map(|_| compared(true));
    assert!(runs.any(|compared| compared > 0));
}
