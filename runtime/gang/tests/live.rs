//! Gangs of threads on one CPU and on two, and members that end in the middle.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use punctual_gang_thread::{Broken, CreateError, Form, Gang, Member, Options, Waiting, Why};
use punctual_model::{Machine, Span};
use punctual_thread::{Runtime, thread};

use common::{FIXED, alone, background, cpus, on_two_cpus};

fn options(form: Form) -> Options {
    Options {
        form,
        waiting: Waiting::Sleep(Span::from_us(50)),
        limit: Span::from_ms(5_000),
    }
}

/// Every operation three times; the values are known.
fn round(member: &mut Member, members: usize) -> Result<(), Broken> {
    for turn in 0..3 {
        member.barrier()?;
        let place = member.place() as u64;
        assert_eq!(
            member.elect(u32::try_from(place).expect("small"))?,
            members - 1
        );
        let sum: u64 = (0..members as u64).map(|place| place + turn).sum();
        assert_eq!(member.reduce(place + turn, u64::wrapping_add)?, sum);
        assert_eq!(member.broadcast(1, place * 10)?, 10);
        assert!(member.ordered_barrier()? < members);
    }
    Ok(())
}

fn on_one_cpu<T: Send + 'static>(first: impl FnOnce() -> T + Send + 'static) -> T {
    let _alone = alone();
    let runtime = Runtime::on(cpus()[0], FIXED).terms(Machine::default());
    runtime
        .main(background())
        .start(first)
        .expect("a run")
        .result
}

#[test]
fn threads_of_one_cpu_meet_and_one_that_panics_or_is_silent_is_named_to_the_rest() {
    for (form, name) in [(Form::Linear, "linear"), (Form::Tree, "tree")] {
        let ends = on_one_cpu(move || {
            let limit = match form {
                Form::Linear => Span::from_ms(10_000),
                Form::Tree => Span::from_ms(2_000),
            };
            let options = Options {
                limit,
                ..options(form)
            };
            let gang = Gang::create(name, 6, options).expect("the name is free");
            assert_eq!(
                Gang::create(name, 6, options).err(),
                Some(CreateError::Taken)
            );
            let spawn = |number: u32| {
                let gang = gang.clone();
                thread::spawn(&format!("member {number}"), background(), move || {
                    let mut member = gang.join().expect("a place");
                    let whole = round(&mut member, 6);
                    match (member.place(), form) {
                        (2, Form::Linear) => panic!("on purpose"),
                        // It stays a member, and comes no more.
                        (2, Form::Tree) => {
                            while gang.broken().is_none() {
                                thread::sleep(Span::from_ms(5));
                            }
                        }
                        _ => {}
                    }
                    (whole, member.barrier())
                })
            };
            let threads: Vec<_> = (0..6).map(|number| spawn(number).expect("room")).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().ok())
                .collect::<Vec<_>>()
        });
        let why = match form {
            Form::Linear => Why::Panicked,
            Form::Tree => Why::Late,
        };
        let broken = Broken { member: 2, why };
        let told = ends
            .iter()
            .flatten()
            .filter(|end| **end == (Ok(()), Err(broken)))
            .count();
        let panicked = usize::from(form == Form::Linear);
        assert_eq!(told, 6 - panicked, "{ends:?}");
    }
}

#[test]
fn threads_of_two_cpus_meet_spinning_and_the_first_that_leaves_is_named() {
    for form in [Form::Linear, Form::Tree] {
        let options = Options {
            waiting: Waiting::Spin,
            ..options(form)
        };
        let gang = Gang::create("both", 2, options).expect("the name is free");
        let all = gang.clone();
        let found = on_two_cpus(FIXED, move |_| {
            let mut member = all.join().expect("a place");
            let whole = (0..100).try_for_each(|_| round(&mut member, 2));
            (member.place(), whole)
        });
        let Some(((place, whole), (other, others), _)) = found else {
            return gang.destroy();
        };
        assert_eq!((whole, others, place + other), (Ok(()), Ok(()), 1));
        let broken = gang.broken().expect("both have left");
        assert_eq!(broken.why, Why::Left);
    }
}

#[test]
fn a_member_that_is_cancelled_while_it_waits_is_named_as_such_and_the_name_is_free_again() {
    let end = on_one_cpu(|| {
        let options = Options {
            limit: Span::from_ms(5_000),
            ..options(Form::Linear)
        };
        let gang = Gang::create("cancelled", 3, options).expect("the name is free");
        let joined = Arc::new(AtomicU32::new(0));
        let spawn = |number: u32| {
            let (gang, joins) = (gang.clone(), Arc::clone(&joined));
            thread::spawn(&format!("waits {number}"), background(), move || {
                let mut member = gang.join().expect("a place");
                joins.fetch_add(1, Ordering::Relaxed);
                member.barrier()
            })
        };
        let [first, other] = [0, 1].map(|number| spawn(number).expect("room"));
        while joined.load(Ordering::Relaxed) < 2 {
            thread::sleep(Span::from_ms(1));
        }
        assert!(first.cancel() && first.join().is_err());
        let told = other.join().ok();
        let next = Gang::create("cancelled", 1, options).expect("the name is free again");
        let is_next = next.generation() > gang.generation();
        next.destroy();
        (told, is_next)
    });
    let why = Why::Cancelled;
    assert_eq!(end, (Some(Err(Broken { member: 0, why })), true));
}

#[test]
fn outside_of_a_run_too_a_member_that_is_silent_is_named_after_the_limit() {
    for form in [Form::Linear, Form::Tree] {
        let options = Options {
            limit: Span::from_ms(20),
            ..options(form)
        };
        let gang = Gang::create("no run", 2, options).expect("the name is free");
        let mut member = gang.join().expect("a place");
        let why = Why::Late;
        assert_eq!(member.barrier(), Err(Broken { member: 1, why }));
    }
}

#[test]
fn a_gang_is_joined_by_its_name_alone_while_it_lives() {
    assert!(Gang::named("found by name").is_none());
    let gang = Gang::create("found by name", 2, options(Form::Tree)).expect("the name is free");
    let ends = on_one_cpu(|| {
        let body = || {
            let found = Gang::named("found by name").expect("it lives");
            let mut member = found.join().expect("a place");
            round(&mut member, 2)?;
            // Nobody leaves before all are through.
            member.barrier()
        };
        let threads = [0, 1].map(|_| thread::spawn("member", background(), body).expect("room"));
        threads.map(|thread| thread.join().expect("it ends"))
    });
    assert_eq!(ends, [Ok(()), Ok(())]);
    let other = Gang::create("another", 2, options(Form::Linear)).expect("the name is free");
    let found = Gang::named("another").expect("it lives");
    assert_eq!(found.generation(), other.generation());
    found.destroy();
    // The members of the first one have left it, so it is broken.
    assert!(gang.broken().is_some());
    assert!(Gang::named("another").is_none() && Gang::named("found by name").is_none());
}
