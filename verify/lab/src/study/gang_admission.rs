//! `gang-admission`: the time of each step of Algorithm 1, over members (Nautilus, Fig. 10).
//!
//! The members take the steps of `core/gang` in virtual time. All join within a microsecond, each
//! on a CPU of its own, and a local admission takes what it was measured to take.

use std::cell::Cell;

use punctual_generate::Random;

use crate::admission::{Admission, LocalScheduler, Progress, Stage};
use crate::answers::Row;
use crate::costs::Costs;
use crate::crew::{Next, Party, fly};
use crate::gang::{Attached, Form, Gang};
use crate::member::Member;

/// Members of the study when nobody says otherwise.
pub(crate) const MEMBERS: [u64; 14] = [2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 96, 128, 192, 255];

/// Threads come to an admission within so many picoseconds of each other.
const TOGETHER: u64 = 1_000_000;

pub(crate) const FORMS: [(Form, &str); 2] = [(Form::Linear, "linear"), (Form::Tree, "tree")];

/// Steps that are timed, in the order of the figure.
pub(crate) const STEPS: [&str; 6] = [
    "join",
    "election",
    "admission",
    "final barrier",
    "local change",
    "whole",
];

/// Gangs that are admitted at once.
pub(crate) const GANGS: [&str; 3] = ["alone", "two, own CPUs", "two, same CPUs"];

/// One member's instants, in picoseconds.
#[derive(Debug, Default)]
pub(crate) struct Times {
    begun: Cell<u64>,
    joined: Cell<u64>,
    elected: Cell<u64>,
    local: Cell<(u64, u64)>,
    reduced: Cell<u64>,
    /// The final barrier let it go.
    pub(crate) released: Cell<u64>,
    /// In this order.
    pub(crate) order: Cell<usize>,
    over: Cell<u64>,
}

/// The CPU of one member.
struct Local<'a> {
    times: &'a Times,
    costs: &'a Costs,
    random: &'a mut Random,
    price: u64,
}

impl LocalScheduler for Local<'_> {
    fn admit(&mut self, _constraint: &Attached) -> Result<(), u32> {
        // Between two of the measured deciles.
        let at = self.random.index(10);
        let (low, high) = (self.costs.admission_ns[at], self.costs.admission_ns[at + 1]);
        self.price = 1_000 * self.random.within(low, high.max(low));
        Ok(())
    }

    fn readmit(&mut self) {}

    fn correct_phase(&mut self, order: usize, _members: usize) {
        self.times.order.set(order);
    }
}

/// A member of a gang that joins it and has itself admitted, and keeps its times.
fn party<'g>(
    gang: &'g Gang,
    (cpu, begin): (usize, u64),
    times: &'g Times,
    costs: &'g Costs,
    mut random: Random,
) -> Party<'g> {
    let mut member = None;
    let mut admission = Admission::new([1; 8]);
    let act = move |now| {
        let Some(member) = &mut member else {
            times.begun.set(now);
            member = Member::join(gang).ok();
            let next = if member.is_some() {
                Next::More
            } else {
                Next::Over
            };
            return (next, 0);
        };
        let before = admission.stage();
        if times.joined.get() == 0 {
            times.joined.set(now);
        }
        let mut local = Local {
            times,
            costs,
            random: &mut random,
            price: 0,
        };
        let progress = admission.step(member, &mut local);
        let price = local.price;
        note(times, before, now, price);
        match progress {
            Progress::More => (Next::More, price),
            Progress::Wait(wait) => (Next::Wait(gang, wait), price),
            Progress::End(_) => (Next::Over, price),
        }
    };
    Party {
        cpu,
        begin,
        windows: Vec::new(),
        act: Box::new(act),
    }
}

/// A step of this stage begins now: whatever went before is over.
fn note(times: &Times, stage: Stage, now: u64, price: u64) {
    let first = |cell: &Cell<u64>| {
        if cell.get() == 0 {
            cell.set(now);
        }
    };
    match stage {
        Stage::LockAndAttach | Stage::Barrier => first(&times.elected),
        Stage::LocalAdmission => times.local.set((now, now + price)),
        Stage::FinalBarrier => first(&times.reduced),
        Stage::PhaseCorrection => first(&times.released),
        Stage::Over => first(&times.over),
        _ => {}
    }
}

impl Times {
    /// In the order of [`STEPS`]; `None`: it was not admitted.
    fn steps(&self) -> Option<[u64; 6]> {
        let (begin, end) = self.local.get();
        let is_over = self.over.get() > 0 && self.released.get() > 0;
        is_over.then(|| {
            [
                self.joined.get() - self.begun.get(),
                self.elected.get() - self.joined.get(),
                self.reduced.get() - self.elected.get(),
                self.released.get() - self.reduced.get(),
                end - begin,
                self.over.get() - self.joined.get(),
            ]
        })
    }
}

/// Admits gangs of so many members at once, as [`GANGS`] has them: the times of all members.
pub(crate) fn admit(
    costs: &Costs,
    members: usize,
    (form, arrangement): (Form, usize),
    seed: u64,
) -> Result<Vec<Times>, String> {
    let count = if arrangement == 0 { 1 } else { 2 };
    let gangs: Result<Vec<Gang>, _> = (0..count).map(|n| Gang::new(members, form, n)).collect();
    let gangs = gangs.map_err(|error| error.to_string())?;
    let times: Vec<Times> = (0..members * gangs.len())
        .map(|_| Times::default())
        .collect();
    let mut parties = Vec::new();
    for (number, times) in times.iter().enumerate() {
        let (gang, place) = (number / members, number % members);
        let cpu = if arrangement == 1 { number } else { place };
        let mut random = Random::at(seed, &[number as u64, members as u64]);
        let begin = 1 + random.below(TOGETHER);
        parties.push(party(&gangs[gang], (cpu, begin), times, costs, random));
    }
    let ends = fly(parties, costs.rates());
    match ends.iter().all(Option::is_some) {
        true => Ok(times),
        false => Err("an admission did not end".into()),
    }
}

/// A row for each step, form and arrangement: least, mean, greatest of all members, in nanoseconds.
pub(crate) fn unit(costs: &Costs, members: u64, seeds: u64, seed: u64) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    let count = usize::try_from(members).unwrap_or(usize::MAX);
    for (form, form_name) in FORMS {
        for (arrangement, gangs) in GANGS.iter().enumerate() {
            let mut found = [const { Vec::new() }; STEPS.len()];
            for turn in 0..seeds {
                for times in admit(costs, count, (form, arrangement), seed + turn)? {
                    let steps = times.steps().ok_or("a member was not admitted")?;
                    for (all, step) in found.iter_mut().zip(steps) {
                        all.push(step / 1_000);
                    }
                }
            }
            for (step, values) in STEPS.iter().zip(found) {
                rows.push(row(
                    &format!("{step}, {form_name}, {gangs}"),
                    members,
                    &values,
                ));
            }
        }
    }
    Ok(rows)
}

/// Least, mean and greatest.
pub(crate) fn row(name: &str, members: u64, values: &[u64]) -> Row {
    let least = values.iter().min().copied().unwrap_or(0);
    let mean = values.iter().sum::<u64>() / (values.len() as u64).max(1);
    let greatest = values.iter().max().copied().unwrap_or(0);
    Row::new(name, &[members], vec![least, mean, greatest])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::costs::sample;

    fn whole(rows: &[Row], form: &str, gangs: &str) -> u64 {
        let name = format!("whole, {form}, {gangs}");
        let row = rows.iter().find(|row| row.name == name).expect("a row");
        row.values[2]
    }

    #[test]
    fn a_final_barrier_grows_with_the_logarithm_in_a_tree_and_linearly_without() {
        let of = |members| unit(&sample(), members, 2, 1).expect("admitted");
        let [small, large] = [16, 255].map(of);
        let greatest = |rows: &[Row], form: &str| {
            let name = format!("final barrier, {form}, alone");
            let row = rows.iter().find(|row| row.name == name).expect("a row");
            row.values[2]
        };
        let grows = |form| greatest(&large, form) / greatest(&small, form);
        assert!(grows("linear") >= 12, "{}", grows("linear"));
        assert!(grows("tree") <= 2, "{}", grows("tree"));
        assert!(whole(&large, "tree", "alone") < whole(&large, "linear", "alone"));
    }

    #[test]
    fn two_gangs_at_once_take_no_longer_than_one_where_their_cpus_differ() {
        let rows = unit(&sample(), 64, 2, 1).expect("admitted");
        for form in ["linear", "tree"] {
            let [one, apart, together] = GANGS.map(|gangs| whole(&rows, form, gangs));
            assert!(apart * 10 <= one * 12, "{one} {apart}");
            // Both local admissions of a CPU are done one after the other.
            assert!(together >= one + 1_000 * 40 / 2, "{one} {together}");
        }
    }

    #[test]
    fn every_member_is_released_once_in_an_order_of_its_own() {
        for (form, _) in FORMS {
            let times = admit(&sample(), 37, (form, 0), 3).expect("admitted");
            let mut orders: Vec<usize> = times.iter().map(|times| times.order.get()).collect();
            orders.sort_unstable();
            assert_eq!(orders, (0..37).collect::<Vec<_>>());
        }
    }
}
