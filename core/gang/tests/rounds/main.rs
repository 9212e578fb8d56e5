//! Rounds in random orders, with up to 255 members, and deaths between any two steps.

mod crew;

use std::collections::BTreeSet;

use crew::{Death, FORMS, Flight, Kill, fly};
use punctual_gang::{
    Broken, CreateError, Form, Gang, JoinError, Member, Names, Operation, Outcome, Step, Why,
};
use punctual_generate::Random;

const ROUNDS: usize = 10;

/// Each operation twice, so that words are used again.
fn script(member: usize, members: usize, round: usize) -> Option<Operation> {
    let number = (member + round) as u64;
    match (round < ROUNDS).then_some(round % 5)? {
        0 => Some(Operation::Barrier),
        1 => Some(Operation::Elect {
            bid: u32::try_from((member * 7 + round) % 5).ok()?,
        }),
        2 => Some(Operation::Reduce {
            value: number,
            fold: u64::wrapping_add,
        }),
        3 => Some(Operation::Broadcast {
            root: round % members,
            value: number * 10,
        }),
        _ => Some(Operation::Order),
    }
}

fn expected(members: usize, round: usize) -> Option<u64> {
    let all = 0..members;
    match round % 5 {
        0 => Some(0),
        1 => all
            .max_by_key(|member| ((member * 7 + round) % 5, members - member))
            .map(|place| place as u64),
        2 => Some(all.map(|member| (member + round) as u64).sum()),
        3 => Some(((round % members + round) * 10) as u64),
        _ => None,
    }
}

/// Every value is right, every order of leaving is there once, and nobody saw another end than the
/// others. Returns the end that broke the gang.
fn check(flight: &Flight, members: usize) -> Option<Broken> {
    let mut broken = BTreeSet::new();
    for round in 0..ROUNDS {
        let ends = flight
            .outcomes
            .iter()
            .filter_map(|outcomes| outcomes.get(round));
        let ends: Vec<Outcome> = ends.copied().collect();
        let done = ends.iter().filter_map(|end| match end {
            Outcome::Done(value) => Some(*value),
            Outcome::Broken(_) => None,
        });
        let done: Vec<u64> = done.collect();
        assert!(
            done.is_empty() || done.len() == ends.len(),
            "round {round}: {ends:?}"
        );
        match expected(members, round) {
            Some(value) => assert!(
                done.iter().all(|done| *done == value),
                "round {round}: {done:?}"
            ),
            None => {
                let orders: BTreeSet<u64> = done.iter().copied().collect();
                assert_eq!(orders.len(), done.len(), "round {round}: {done:?}");
                assert!(orders.iter().all(|order| *order < members as u64));
            }
        }
        broken.extend(ends.iter().filter_map(|end| match end {
            Outcome::Broken(broken) => Some((broken.member, broken.why as u8)),
            Outcome::Done(_) => None,
        }));
    }
    assert!(broken.len() <= 1, "one end for all: {broken:?}");
    flight.outcomes.iter().flatten().find_map(|end| match end {
        Outcome::Broken(broken) => Some(*broken),
        Outcome::Done(_) => None,
    })
}

#[test]
fn every_operation_ends_with_its_value_in_any_order_of_steps_and_no_wake_up_is_lost() {
    for (members, seeds) in [(1, 3), (2, 200), (3, 100), (6, 100), (22, 20), (255, 3)] {
        for form in FORMS {
            for seed in 0..seeds {
                let gang = Gang::new(members, form, 1).expect("a gang");
                let flight = fly(&gang, script, &[], &mut Random::at(seed, &[members as u64]));
                assert_eq!(check(&flight, members), None);
                assert!(
                    flight
                        .outcomes
                        .iter()
                        .all(|outcomes| outcomes.len() == ROUNDS)
                );
                assert_eq!(flight.limits, 0, "{form:?} of {members}, seed {seed}");
            }
        }
    }
}

/// The one that was killed is the one that is named; only a member that nobody waits for any more
/// is missed by nobody.
fn judge(flight: &Flight, members: usize, kill: Kill, what: &str) {
    let broken = check(flight, members);
    let others = flight
        .outcomes
        .iter()
        .enumerate()
        .filter(|(place, _)| *place != kill.member);
    for (place, outcomes) in others {
        let is_told = matches!(outcomes.last(), Some(Outcome::Broken(_)));
        assert!(
            is_told || outcomes.len() == ROUNDS,
            "{what}: {place} is not told"
        );
    }
    let why = match kill.death {
        Death::Silent => Why::Late,
        Death::Told => Why::Panicked,
    };
    let member = kill.member;
    assert!(
        broken.is_none_or(|broken| broken == Broken { member, why }),
        "{what}: {broken:?}"
    );
    let died_early = flight.outcomes[kill.member].len() + 1 < ROUNDS;
    assert!(
        !died_early || members == 1 || broken.is_some(),
        "{what}: nobody noticed"
    );
    assert!(flight.accused.len() <= 1);
    if kill.death == Death::Told {
        assert_eq!(
            (flight.limits, flight.accused.len()),
            (0, 0),
            "{what}: nobody has to wait"
        );
    }
}

#[test]
fn a_member_that_dies_between_any_two_steps_is_named_to_all_others_and_nobody_hangs() {
    for form in FORMS {
        for members in [2, 3, 6] {
            for member in 0..members {
                for (after, death) in
                    (0..).flat_map(|after| [Death::Silent, Death::Told].map(|death| (after, death)))
                {
                    let gang = Gang::new(members, form, 1).expect("a gang");
                    let kill = Kill {
                        member,
                        after,
                        death,
                    };
                    let flight = fly(
                        &gang,
                        script,
                        &[kill],
                        &mut Random::at(after, &[member as u64]),
                    );
                    let what = format!("{form:?} of {members}, {kill:?}");
                    judge(&flight, members, kill, &what);
                    if flight.steps[member] < after {
                        break;
                    }
                }
            }
        }
    }
}

#[test]
fn of_255_members_one_that_dies_anywhere_is_named_to_the_others() {
    let members = 255;
    let mut random = Random::new(15);
    for number in 0..24 {
        let form = FORMS[number % 2];
        let death = [Death::Silent, Death::Told][number / 2 % 2];
        let member = usize::try_from(random.below(255)).expect("small");
        let kill = Kill {
            member,
            after: random.below(60),
            death,
        };
        let gang = Gang::new(members, form, 1).expect("a gang");
        let flight = fly(&gang, script, &[kill], &mut random);
        judge(&flight, members, kill, &format!("{form:?}, {kill:?}"));
    }
}

#[test]
fn when_several_die_everyone_else_is_told_of_one_of_them() {
    let mut random = Random::new(7);
    for number in 0..300 {
        let members = 9;
        let draw = |random: &mut Random| Kill {
            member: usize::try_from(random.below(9)).expect("small"),
            after: random.below(40),
            death: if random.below(2) == 0 {
                Death::Silent
            } else {
                Death::Told
            },
        };
        let kills = [draw(&mut random), draw(&mut random), draw(&mut random)];
        let gang = Gang::new(members, FORMS[number % 2], 1).expect("a gang");
        let flight = fly(&gang, script, &kills, &mut random);
        let broken = check(&flight, members);
        let is_dead = |place| kills.iter().any(|kill| kill.member == place);
        assert!(
            broken.is_some_and(|broken| is_dead(broken.member)),
            "{kills:?}: {broken:?}"
        );
        for (place, outcomes) in flight.outcomes.iter().enumerate() {
            let is_told = matches!(outcomes.last(), Some(Outcome::Broken(_)));
            assert!(is_dead(place) || is_told || outcomes.len() == ROUNDS);
        }
    }
}

/// A member below the root waits for four at most: nobody takes more than a stated number of steps.
#[test]
fn a_round_of_255_takes_a_bounded_number_of_steps_of_each_member() {
    for form in FORMS {
        let gang = Gang::new(255, form, 1).expect("a gang");
        let flight = fly(&gang, script, &[], &mut Random::new(1));
        let most = flight.steps.iter().max().copied().unwrap_or_default();
        // Begin, contribute, be counted, tell, publish, decide, wait twice, ring five, leave; a
        // look for each child and for each word that rings in vain.
        assert!(most <= ROUNDS as u64 * 20, "{form:?}: {most}");
    }
}

#[test]
fn members_that_begin_different_operations_are_told_who_does() {
    fn mixed(member: usize, _: usize, round: usize) -> Option<Operation> {
        match (round, member) {
            (0, _) => Some(Operation::Barrier),
            (1, 2) => Some(Operation::Order),
            (1, _) => Some(Operation::Barrier),
            _ => None,
        }
    }
    for form in FORMS {
        for seed in 0..50 {
            let gang = Gang::new(5, form, 1).expect("a gang");
            let flight = fly(&gang, mixed, &[], &mut Random::new(seed));
            let broken = flight.outcomes.iter().map(|outcomes| outcomes[1]);
            let broken: Vec<Outcome> = broken.collect();
            assert!(matches!(
                broken[0],
                Outcome::Broken(Broken {
                    why: Why::Mismatch,
                    ..
                })
            ));
            assert!(
                broken.iter().all(|end| *end == broken[0]),
                "{form:?}: {broken:?}"
            );
        }
    }
}

#[test]
fn a_gang_that_is_not_complete_waits_and_the_member_that_never_joined_is_named() {
    for form in FORMS {
        let gang = Gang::new(3, form, 1).expect("a gang");
        let mut member = Member::join(&gang).expect("a place");
        while member.step(Operation::Barrier) == Step::More {}
        assert!(matches!(member.step(Operation::Barrier), Step::Wait(_)));
        let broken = member.accuse().or_else(|| member.accuse());
        let broken = broken.expect("somebody is missing");
        assert_eq!(
            broken,
            Broken {
                member: 2,
                why: Why::Late
            }
        );
        assert_eq!(Member::join(&gang).err(), Some(JoinError::Broken(broken)));
    }
}

#[test]
fn a_name_belongs_to_one_living_gang_and_to_its_next_generation_afterwards() {
    let mut names = Names::new(2);
    let first = names
        .create("wing", 2, Form::Tree)
        .expect("the name is free");
    assert_eq!(
        names.create("wing", 2, Form::Tree).err(),
        Some(CreateError::Taken)
    );
    let none = CreateError::Gang(JoinError::Members);
    assert_eq!(names.create("none", 0, Form::Tree).err(), Some(none));
    names
        .create("tail", 1, Form::Linear)
        .expect("there is room");
    assert_eq!(
        names.create("nose", 1, Form::Linear).err(),
        Some(CreateError::Full)
    );
    let member = Member::join(first.clone()).expect("a place");
    let _other = Member::join(first.clone()).expect("a place");
    assert_eq!(Member::join(first.clone()).err(), Some(JoinError::Full));
    member.leave(Why::Cancelled);
    let why = Why::Cancelled;
    assert_eq!(first.broken(), Some(Broken { member: 0, why }));
    assert!(names.find("wing").is_none());
    let second = names
        .create("wing", 1, Form::Tree)
        .expect("the name is free again");
    assert!(second.generation() > first.generation());
    let mut alone = Member::join(second).expect("a place");
    assert!(names.destroy("wing") && !names.destroy("wing"));
    let mut end = alone.step(Operation::Barrier);
    while end == Step::More {
        end = alone.step(Operation::Barrier);
    }
    let destroyed = Broken {
        member: 0,
        why: Why::Destroyed,
    };
    assert_eq!(end, Step::End(Outcome::Broken(destroyed)));
}
