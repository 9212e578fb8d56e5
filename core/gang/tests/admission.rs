//! Algorithm 1 with up to 255 members on CPUs of their own, several gangs at once, and deaths.

use std::mem;

use punctual_gang::{
    Admission, Admitted, Broken, Form, Gang, LocalScheduler, Member, Progress, Refusal, Stage,
    Wait, Why,
};
use punctual_generate::Random;

/// The free part of each CPU, in per cent.
type Cpus = [u64];

/// The local scheduler of one member: a share of its CPU.
#[derive(Default)]
struct Share {
    former: u64,
    share: u64,
    order: Option<usize>,
    calls: u32,
}

struct Local<'a> {
    cpu: &'a mut u64,
    share: &'a mut Share,
}

const TOO_MUCH: u32 = 7;

impl LocalScheduler for Local<'_> {
    fn admit(&mut self, constraint: &[u64; 8]) -> Result<(), u32> {
        self.share.calls += 1;
        let free = *self.cpu + self.share.share;
        *self.cpu = free.checked_sub(constraint[0]).ok_or(TOO_MUCH)?;
        self.share.former = mem::replace(&mut self.share.share, constraint[0]);
        Ok(())
    }

    fn readmit(&mut self) {
        let free = *self.cpu + self.share.share;
        // Somebody else may have taken the room: then aperiodic.
        (*self.cpu, self.share.share) = match free.checked_sub(self.share.former) {
            Some(rest) => (rest, self.share.former),
            None => (free, 0),
        };
    }

    fn correct_phase(&mut self, order: usize, members: usize) {
        assert!(order < members);
        assert_eq!(self.share.order.replace(order), None);
    }
}

struct Party<'g> {
    gang: usize,
    member: Option<Member<&'g Gang>>,
    admission: Admission,
    share: Share,
    waits: Option<Wait>,
    steps: u64,
    end: Option<Admitted>,
}

/// `place` of `gang` dies after some steps, told or silently.
#[derive(Clone, Copy, Debug)]
struct Kill {
    gang: usize,
    place: usize,
    after: u64,
    is_told: bool,
}

/// Admits every gang with its share, member i on CPU i, until everyone has an answer or is dead. A
/// dead member's share is free again.
fn admit<'g>(
    gangs: &'g [Gang],
    shares: &[u64],
    cpus: &mut Cpus,
    kills: &[Kill],
    random: &mut Random,
) -> Vec<Party<'g>> {
    let members = |(number, gang): (usize, &'g Gang)| {
        let join = move |_| Party {
            gang: number,
            member: Some(Member::join(gang).expect("a place")),
            admission: Admission::new([shares[number]; 8]),
            share: Share::default(),
            waits: None,
            steps: 0,
            end: None,
        };
        (0..gang.members()).map(join).collect::<Vec<_>>()
    };
    let mut parties: Vec<Party<'g>> = gangs.iter().enumerate().flat_map(members).collect();
    let mut limits = 0;
    loop {
        for kill in kills {
            strike(*kill, &mut parties, cpus);
        }
        let is_live = |party: &Party<'_>| party.member.is_some() && party.end.is_none();
        let live = parties
            .iter()
            .enumerate()
            .filter(|(_, party)| is_live(party));
        let (ready, waiting): (Vec<_>, Vec<_>) = live
            .map(|(at, party)| (at, party.waits, party.gang))
            .partition(|(_, waits, gang)| {
                waits.is_none_or(|wait| gangs[*gang].look(wait.word) != wait.seen)
            });
        let from = if ready.is_empty() { &waiting } else { &ready };
        if from.is_empty() {
            return parties;
        }
        let draw = usize::try_from(random.below(from.len() as u64)).expect("an index");
        let party = &mut parties[from[draw].0];
        step(party, cpus);
        if ready.is_empty() {
            limits += 1;
            assert!(limits <= 4 * cpus.len(), "limits pass without an end");
            if let (Some(_), Some(member)) = (party.waits, &mut party.member) {
                member.accuse();
            }
        }
    }
}

fn strike(kill: Kill, parties: &mut [Party<'_>], cpus: &mut Cpus) {
    let is_hit = |party: &&mut Party<'_>| {
        let place = party.member.as_ref().map(Member::place);
        party.gang == kill.gang && place == Some(kill.place) && party.steps >= kill.after
    };
    let Some(party) = parties.iter_mut().find(is_hit) else {
        return;
    };
    let mut member = party.member.take().expect("it was found by it");
    cpus[kill.place] += mem::take(&mut party.share.share);
    member.set_reason(Why::Panicked);
    match kill.is_told {
        true => drop(member),
        false => mem::forget(member),
    }
}

fn step(party: &mut Party<'_>, cpus: &mut Cpus) {
    let member = party.member.as_mut().expect("it lives");
    let is_behind = party.admission.stage() == Stage::LocalAdmission;
    assert!(!is_behind || member.gang().is_locked());
    let cpu = &mut cpus[member.place()];
    let share = &mut party.share;
    (party.steps, party.waits) = (party.steps + 1, None);
    match party.admission.step(member, &mut Local { cpu, share }) {
        Progress::More => {}
        Progress::Wait(wait) => party.waits = Some(wait),
        Progress::End(end) => party.end = Some(end),
    }
}

fn gangs(number: usize, members: usize, form: Form) -> Vec<Gang> {
    let gang = |_| Gang::new(members, form, 1).expect("a gang");
    (0..number).map(gang).collect()
}

/// All that live have the share, with release orders of their own; or none has.
fn check(parties: &[Party<'_>], gang: usize, share: u64) -> Option<Admitted> {
    let of_gang = parties
        .iter()
        .filter(|party| party.gang == gang && party.member.is_some() && party.end.is_some());
    let of_gang: Vec<&Party<'_>> = of_gang.collect();
    let is_admitted = |party: &&&Party<'_>| matches!(party.end, Some(Admitted::All { .. }));
    let admitted = of_gang.iter().filter(is_admitted).count();
    assert!(
        admitted == 0 || admitted == of_gang.len(),
        "{admitted} of {}",
        of_gang.len()
    );
    let expected = if admitted == 0 { 0 } else { share };
    assert!(of_gang.iter().all(|party| party.share.share == expected));
    let mut orders: Vec<_> = of_gang
        .iter()
        .filter_map(|party| party.share.order)
        .collect();
    assert_eq!(orders.len(), admitted);
    orders.sort_unstable();
    orders.dedup();
    assert_eq!(orders.len(), admitted, "release orders differ");
    if admitted == 0 {
        assert!(of_gang.iter().all(|party| party.end == of_gang[0].end));
    }
    of_gang.first().and_then(|party| party.end)
}

const FORMS: [Form; 2] = [Form::Linear, Form::Tree];

#[test]
fn all_are_admitted_or_none_and_the_member_that_was_refused_is_named() {
    for (members, seeds) in [(1, 2), (2, 20), (5, 20), (255, 2)] {
        for (form, seed) in FORMS
            .into_iter()
            .flat_map(|form| (0..seeds).map(move |seed| (form, seed)))
        {
            let mut random = Random::at(seed, &[members as u64]);
            let mut cpus = vec![99; members];
            let gang = gangs(1, members, form);
            let parties = admit(&gang, &[60], &mut cpus, &[], &mut random);
            assert!(matches!(check(&parties, 0, 60), Some(Admitted::All { .. })));
            for mut party in parties {
                let (cpu, share) = (&mut cpus[0], &mut party.share);
                party.admission.go_back(&mut Local { cpu, share });
                assert_eq!(party.share.share, 60, "it was decided");
                mem::forget(party.member);
            }
            assert!(!gang[0].is_locked());
            assert_eq!(cpus, vec![39; members]);
            // A second gang finds no room on one CPU.
            let full = members / 2;
            cpus.fill(50);
            cpus[full] = 10;
            let before = cpus.clone();
            let gang = gangs(1, members, form);
            let parties = admit(&gang, &[50], &mut cpus, &[], &mut random);
            let refusal = Refusal {
                member: full,
                error: TOO_MUCH,
            };
            assert_eq!(check(&parties, 0, 50), Some(Admitted::None(refusal)));
            assert_eq!((cpus, gang[0].is_locked()), (before, false));
            assert!(parties.iter().all(|party| party.share.calls == 1));
        }
    }
}

#[test]
fn a_death_between_any_two_steps_leaves_all_others_admitted_or_none_and_nobody_hangs() {
    for form in FORMS {
        for (members, place) in
            (2..6).flat_map(|members| (0..members).map(move |place| (members, place)))
        {
            for is_told in [true, false] {
                for after in 0.. {
                    let kill = Kill {
                        gang: 0,
                        place,
                        after,
                        is_told,
                    };
                    let mut cpus = vec![99; members];
                    let gang = gangs(1, members, form);
                    let parties = admit(&gang, &[60], &mut cpus, &[kill], &mut Random::new(after));
                    let end = check(&parties, 0, 60);
                    let why = if is_told { Why::Panicked } else { Why::Late };
                    let broken = Admitted::Broken(Broken { member: place, why });
                    let is_all = matches!(end, Some(Admitted::All { .. }));
                    assert!(is_all || end == Some(broken), "{form:?}, {kill:?}: {end:?}");
                    let dead = parties.iter().find(|party| party.member.is_none());
                    let Some(_) = dead.filter(|dead| dead.end.is_none()) else {
                        break;
                    };
                    let left = if is_all { 39 } else { 99 };
                    let others = cpus.iter().enumerate().filter(|(cpu, _)| *cpu != place);
                    assert!(others.into_iter().all(|(_, cpu)| *cpu == left));
                    assert_eq!(cpus[place], 99);
                }
            }
        }
    }
}

#[test]
fn several_gangs_of_255_admit_at_once_on_the_same_cpus_and_none_is_admitted_in_part() {
    let members = 255;
    let mut random = Random::new(3);
    for number in 0..4 {
        let mut cpus = vec![99; members];
        let gangs = gangs(4, members, FORMS[number % 2]);
        let shares = [40, 30, 40, 20];
        let kill = |_| Kill {
            gang: usize::try_from(random.below(4)).expect("small"),
            place: usize::try_from(random.below(255)).expect("small"),
            after: random.below(40),
            is_told: number % 4 < 2,
        };
        let kills: Vec<Kill> = (0..number).map(kill).collect();
        let parties = admit(&gangs, &shares, &mut cpus, &kills, &mut random);
        let is_in = |gang: &usize| {
            matches!(
                check(&parties, *gang, shares[*gang]),
                Some(Admitted::All { .. })
            )
        };
        let admitted: u64 = (0..4).filter(is_in).map(|gang| shares[gang]).sum();
        let is_dead = |cpu: usize| kills.iter().any(|kill| kill.place == cpu);
        assert!(
            cpus.iter()
                .enumerate()
                .all(|(cpu, left)| is_dead(cpu) || *left == 99 - admitted)
        );
        assert!(admitted <= 99);
    }
}
