//! Bulk synchronous work on two CPUs, by barriers and by time, held against a sequential program.

mod common;

use std::sync::Arc;

use punctual_gang_thread::bsp::{Bsp, BspWorkload, Parameters};
use punctual_gang_thread::{
    Admitted, Correction, Gang, Kept, Member, NotApart, Options, Proof, Supersteps, Waiting,
};
use punctual_model::{Span, Work};
use punctual_thread::{Constraint, Guarantee, JobContext, Workload, thread};

use common::{FIXED, background, on_two_cpus};

fn parameters(members: usize, iterations: u64) -> Parameters {
    Parameters {
        members,
        elements: 16,
        computations: 4,
        writes: 12,
        iterations,
    }
}

fn options() -> Options {
    Options {
        waiting: Waiting::Sleep(Span::from_us(50)),
        limit: Span::from_ms(10_000),
        ..Options::default()
    }
}

/// A gang on both CPUs: each member does this, on a thread of the pool.
fn gang_of_two<T: Send + 'static>(
    name: &'static str,
    body: impl Fn(&mut Member) -> T + Clone + Send + Sync + 'static,
) -> Option<(T, T)> {
    let gang = Gang::create(name, 2, options()).expect("the name is free");
    let (own, other, _) = on_two_cpus(FIXED, move |_| {
        let (gang, body) = (gang.clone(), body.clone());
        let member = thread::spawn("member", background(), move || {
            let mut member = gang.join().expect("a place");
            body(&mut member)
        });
        member.expect("room").join().expect("it ends")
    })?;
    Some((own, other))
}

/// Admits both members; they begin at one instant.
fn admit(member: &mut Member, wcet_ms: u64) -> Admitted {
    let period = Span::from_ms(20);
    let constraint = Constraint::periodic(period, Work::from_ms(wcet_ms)).priority(60);
    let margin = Correction::Agreed(Span::from_ms(20));
    let admitted = member.admit(constraint, margin).expect("it is admitted");
    // The instant of the run that was agreed on, to the tick.
    let (at, arrival) = (admitted.agreed.expect("so asked"), admitted.arrival);
    let late = arrival.as_ns().abs_diff(at.as_ns()) > 1;
    assert!(!late || !admitted.in_step(), "{admitted:?}");
    admitted
}

/// A gang of two with 5 ms of each 20 ms and the proof that time keeps its phases apart.
/// There is none while the machine takes processors away for milliseconds: then the clocks cannot
/// be compared closely, and another run tries again.
fn proved<T: Send + 'static>(
    name: &'static str,
    body: impl Fn(&mut Member, Proof) -> T + Clone + Send + Sync + 'static,
) -> Option<(T, T)> {
    for _ in 0..40 {
        let body = body.clone();
        let both = gang_of_two(name, move |member| {
            let _ = admit(member, 5);
            match member.prove().expect("whole") {
                Ok(proof) => Some(body(member, proof)),
                Err(NotApart { clock_error, .. }) => {
                    let far = Span::from_ms(1);
                    assert!(
                        clock_error.is_none_or(|error| error > far),
                        "{clock_error:?}"
                    );
                    None
                }
            }
        })?;
        match both {
            (Some(one), Some(other)) => return Some((one, other)),
            (None, None) => {}
            _ => panic!("a proof is both members' or nobody's"),
        }
    }
    panic!("the clocks of two CPUs are never compared to a millisecond");
}

#[test]
fn both_members_compute_what_the_sequential_program_does_with_barriers() {
    let bsp = Bsp::new(parameters(2, 300)).expect("small");
    let shared = Arc::new(bsp.clone());
    let kept = gang_of_two("barriers", move |member| {
        let mut worker = shared.worker(member.place());
        worker
            .run(member, Supersteps::Barriers)
            .expect("nobody dies")
    });
    let Some((one, other)) = kept else { return };
    assert_eq!(one, other);
    let found = bsp.check();
    assert_eq!((found.steps, found.mismatches), (600, 0));
}

#[test]
fn by_time_both_begin_together_and_compute_the_same_as_long_as_they_are_kept_in_step() {
    let bsp = Bsp::new(parameters(2, 10)).expect("small");
    let shared = Arc::new(bsp.clone());
    let kept = proved("time", move |member, proof| {
        let mut worker = shared.worker(member.place());
        worker
            .run(member, Supersteps::Time(proof))
            .expect("nobody dies")
    });
    let Some((one, other)) = kept else { return };
    assert_eq!(one, other);
    assert!(!one.forced);
    let found = bsp.check();
    assert_eq!(found.steps, 20);
    // A machine of others may take 20 ms: then that is said.
    assert!(!one.in_step() || found.mismatches == 0, "{one} {found:?}");
}

#[test]
fn what_is_not_proved_is_kept_or_forced_and_a_late_end_is_told_to_all() {
    let ends = proved("late", |member, proof| {
        let place = member.place();
        let mut calls = Vec::new();
        let how = Supersteps::TimeThenBarriers(proof);
        let kept = member.supersteps(how, (4, 2), &mut |iteration, phase| {
            calls.push((iteration, phase));
            if (place, iteration, phase) == (1, 1, 0) {
                // Beyond the beginning of the next phase, for sure.
                thread::sleep(Span::from_ms(45));
            }
        });
        (kept.expect("nobody dies"), calls)
    });
    let Some(((one, calls), (other, others))) = ends else {
        return;
    };
    assert_eq!(one, other);
    assert!(one.late_ends >= 1 && !one.in_step(), "{one}");
    assert!(one.barriers_from.is_some_and(|from| from >= 3), "{one}");
    let all: Vec<(u64, u64)> = (0..8).map(|at| (at / 2, at % 2)).collect();
    assert_eq!((&calls, &others), (&all, &all));
    assert!(one.to_string().starts_with("not kept in step: "), "{one}");
}

#[test]
fn no_proof_without_room_between_the_worst_end_and_the_next_phase() {
    let found = gang_of_two("tight", |member| {
        // Its response bound is what goes before it and its own work: 15 ms of 20 ms.
        let above = Constraint::periodic(Span::from_ms(20), Work::from_ms(6)).priority(70);
        let _above = Guarantee::ask(above).expect("it is admitted");
        let _ = admit(member, 14);
        member.prove().expect("whole")
    });
    let Some((one, other)) = found else { return };
    assert_eq!(one, other);
    let NotApart {
        worst_end,
        clock_error,
        period,
    } = match one {
        // Clocks that are equal to the nanosecond: the sum fits exactly.
        Ok(_) => return assert!(one.is_ok()),
        Err(found) => found,
    };
    assert_eq!(
        (worst_end, period),
        (Some(Span::from_ms(20)), Span::from_ms(20))
    );
    assert!(clock_error.is_none_or(|error| !error.is_zero()), "{one:?}");
    let said = one.expect_err("as above").to_string();
    assert!(
        clock_error.is_none() || said.ends_with(" too early"),
        "{said}"
    );
}

#[test]
fn a_phase_out_of_step_is_found_whenever_it_is() {
    for late in [3, 29] {
        let bsp = Bsp::new(parameters(3, 30)).expect("small");
        let mut workers: Vec<_> = (0..3).map(|place| bsp.worker(place)).collect();
        for iteration in 0..30 {
            let (one, rest) = workers.split_first_mut().expect("three");
            rest.iter_mut().for_each(|worker| worker.compute());
            if iteration == late {
                // The last one writes into the elements of one that has not computed yet.
                rest[1].write();
            }
            one.compute();
            one.write();
            rest.iter_mut().for_each(|worker| worker.write());
        }
        let found = bsp.check();
        assert_eq!(found.steps, 90);
        assert!(found.mismatches > 0, "iteration {late}");
    }
}

#[test]
fn a_file_names_the_phases_of_each_member_in_order() {
    let mut workload = BspWorkload::new();
    let job = |job| JobContext { job, arrival_ns: 0 };
    let mut compute = [0, 1].map(|_| workload.step("compute/4/3/2").expect("a step"));
    let mut write = [0, 1].map(|_| workload.step("write").expect("a step"));
    assert!(workload.step("write").is_none() && workload.step("compute/5").is_none());
    assert!(workload.step("compute/0").is_none() && workload.step("compute/1/2").is_none());
    for number in 0..7 {
        compute.iter_mut().for_each(|step| step(job(number)));
        write.iter_mut().for_each(|step| step(job(number)));
    }
    let found = workload.check().expect("it was used");
    assert_eq!((found.steps, found.mismatches), (14, 0));
    // One that computes again before the other one has written.
    compute[0](job(7));
    write[0](job(7));
    compute[1](job(7));
    let found = workload.check().expect("it was used");
    assert_eq!((found.steps, found.mismatches), (16, 1));
}

#[test]
fn labels_say_what_a_result_is_worth() {
    let kept = |late_ends, barriers_from, forced, clocks_apart| {
        let kept = Kept {
            late_ends,
            barriers_from,
            forced,
            clocks_apart,
        };
        assert_eq!(kept.in_step(), late_ends == 0 && clocks_apart.is_none());
        kept.to_string()
    };
    assert_eq!(kept(0, None, false, None), "kept in step");
    assert_eq!(
        kept(0, None, true, None),
        "kept in step; unsafe: without proof"
    );
    assert_eq!(
        kept(2, Some(7), false, None),
        "not kept in step: 2 phases ended late, with barriers from phase 7 on"
    );
    // Clocks alone are enough.
    assert_eq!(
        kept(0, None, false, Some(5_000_000)),
        "not kept in step: from 5ms on clocks differ by more than was counted with"
    );
}
