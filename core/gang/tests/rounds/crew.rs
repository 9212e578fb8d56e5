//! Members in virtual time: one step of one of them at a time, in any order.

use std::mem;

use punctual_gang::{Broken, Form, Gang, Member, Operation, Outcome, Step, Wait, Why};
use punctual_generate::Random;

/// The operation of each member in each round; none after its last.
pub(crate) type Script = fn(member: usize, members: usize, round: usize) -> Option<Operation>;

/// How a member ends before its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Death {
    /// Nobody is told: it just takes no step any more.
    Silent,
    /// Its member is dropped, with a reason.
    Told,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Kill {
    pub(crate) member: usize,
    /// After so many of its steps.
    pub(crate) after: u64,
    pub(crate) death: Death,
}

impl Kill {
    fn strike(&self, party: &mut Party<'_>) {
        if party.steps >= self.after
            && let Some(mut member) = party.member.take()
        {
            member.set_reason(Why::Panicked);
            match self.death {
                Death::Silent => mem::forget(member),
                Death::Told => drop(member),
            }
        }
    }
}

struct Party<'g> {
    member: Option<Member<&'g Gang>>,
    waits: Option<Wait>,
    steps: u64,
    outcomes: Vec<Outcome>,
}

impl Party<'_> {
    fn is_over(&self, members: usize, place: usize, script: Script) -> bool {
        let is_broken = matches!(self.outcomes.last(), Some(Outcome::Broken(_)));
        is_broken || script(place, members, self.outcomes.len()).is_none()
    }
}

/// The end of a flight.
pub(crate) struct Flight {
    pub(crate) outcomes: Vec<Vec<Outcome>>,
    /// How many steps each has taken.
    pub(crate) steps: Vec<u64>,
    /// How often a limit passed, and in how many of these cases somebody was accused.
    pub(crate) limits: u64,
    pub(crate) accused: Vec<Broken>,
}

/// Goes on until all members are at the end of their script, dead, or told that the gang is broken.
/// A waiting member takes no step before its word has changed. Only when nobody can take one does a
/// limit pass, of a member drawn by `random`.
pub(crate) fn fly(gang: &Gang, script: Script, kills: &[Kill], random: &mut Random) -> Flight {
    let members = gang.members();
    let join = |_| Party {
        member: Some(Member::join(gang).expect("a place")),
        waits: None,
        steps: 0,
        outcomes: Vec::new(),
    };
    let mut parties: Vec<Party<'_>> = (0..members).map(join).collect();
    let (mut limits, mut accused) = (0, Vec::new());
    loop {
        kills
            .iter()
            .for_each(|kill| kill.strike(&mut parties[kill.member]));
        let goes = |(place, party): (usize, &Party<'_>)| {
            let lives = party.member.is_some() && !party.is_over(members, place, script);
            lives.then_some(place)
        };
        let live: Vec<usize> = parties.iter().enumerate().filter_map(goes).collect();
        if live.is_empty() {
            break;
        }
        let can = |place: &usize| {
            let waits = parties[*place].waits;
            waits.is_none_or(|wait| gang.look(wait.word) != wait.seen)
        };
        let ready: Vec<usize> = live.iter().copied().filter(can).collect();
        let draw = |random: &mut Random, from: &[usize]| {
            from[usize::try_from(random.below(from.len() as u64)).expect("an index")]
        };
        if ready.is_empty() {
            limits += 1;
            assert!(limits <= 4 * members as u64, "limits pass without an end");
            let place = draw(random, &live);
            let late = &mut parties[place];
            if !step(late, place, members, script)
                && let Some(member) = &mut late.member
            {
                accused.extend(member.accuse());
            }
            continue;
        }
        // A few steps of each, so that large gangs come along.
        for _ in 0..ready.len().div_ceil(2) {
            let place = draw(random, &ready);
            let party = &mut parties[place];
            let dies = kills
                .iter()
                .any(|kill| kill.member == place && party.steps >= kill.after);
            if !dies && !party.is_over(members, place, script) {
                step(party, place, members, script);
            }
        }
    }
    let steps = parties.iter().map(|party| party.steps).collect();
    let outcomes = parties
        .iter_mut()
        .map(|party| mem::take(&mut party.outcomes));
    let outcomes = outcomes.collect();
    // Their end is no part of the flight.
    parties
        .into_iter()
        .for_each(|party| mem::forget(party.member));
    Flight {
        outcomes,
        steps,
        limits,
        accused,
    }
}

/// Whether it did something.
fn step(party: &mut Party<'_>, place: usize, members: usize, script: Script) -> bool {
    let operation = script(place, members, party.outcomes.len()).expect("it is not over");
    let member = party.member.as_mut().expect("it lives");
    party.steps += 1;
    party.waits = None;
    match member.step(operation) {
        Step::More => {}
        Step::Wait(wait) => party.waits = Some(wait),
        Step::End(outcome) => party.outcomes.push(outcome),
    }
    party.waits.is_none()
}

pub(crate) const FORMS: [Form; 2] = [Form::Linear, Form::Tree];
