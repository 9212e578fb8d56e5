//! What a soundness run has found, added up over systems and threads.

use std::collections::BTreeMap;

/// A claim that a schedule contradicts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// Which system: with the seed, everything that is needed to draw it again.
    pub index: u64,
    /// In which situation it was seen.
    pub situation: String,
    /// What was claimed and what was seen.
    pub what: String,
    /// The system in that situation.
    pub system: String,
}

/// How sharp the bounds of one test, or kind of supply, are: bound over longest observed response.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sharpness {
    /// In thousandths, at least 1,000.
    pub ratios: Vec<u32>,
    /// Bounds that the test calls exact.
    pub exact: u64,
}

/// Counts of one run, or of one thread's part of it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Systems drawn.
    pub systems: u64,
    /// Admitted ones.
    pub admitted: u64,
    /// Refused ones.
    pub refused: u64,
    /// Systems to which the analysis gave no answer, by what it said.
    pub unanswered: BTreeMap<String, u64>,
    /// Admitted systems that declare changes.
    pub histories: u64,
    /// Changes of them that were admitted.
    pub changes: u64,
    /// Simulations made.
    pub situations: u64,
    /// Small systems that were tried from all phases.
    pub exhausted: u64,
    /// Refusals that the verdict calls exact, by what became of their witness.
    pub witnesses: BTreeMap<&'static str, u64>,
    /// By test: how sharp its bounds are.
    pub sharpness: BTreeMap<String, Sharpness>,
    /// By the supply of a task: the same.
    pub supplies: BTreeMap<String, Sharpness>,
    /// What the analysis did, by branch: tests, terms, doubts.
    pub branches: BTreeMap<String, u64>,
    /// By feature: systems that have it and are admitted, refused, unanswered.
    pub features: BTreeMap<&'static str, [u64; 3]>,
    /// Claims that schedules contradict.
    pub violations: Vec<Violation>,
}

impl Tally {
    /// Adds what another thread has found.
    pub fn add(&mut self, other: Tally) {
        self.systems += other.systems;
        self.admitted += other.admitted;
        self.refused += other.refused;
        self.histories += other.histories;
        self.changes += other.changes;
        self.situations += other.situations;
        self.exhausted += other.exhausted;
        sum(&mut self.unanswered, other.unanswered);
        sum(&mut self.witnesses, other.witnesses);
        sum(&mut self.branches, other.branches);
        join(&mut self.sharpness, other.sharpness);
        join(&mut self.supplies, other.supplies);
        for (feature, counts) in other.features {
            let mine = self.features.entry(feature).or_default();
            for (mine, count) in mine.iter_mut().zip(counts) {
                *mine += count;
            }
        }
        self.violations.extend(other.violations);
        // The same report whichever thread was faster.
        self.violations.sort_by_key(|violation| violation.index);
    }

    /// One more time through a branch.
    pub fn branch(&mut self, name: String) {
        *self.branches.entry(name).or_default() += 1;
    }
}

fn join(into: &mut BTreeMap<String, Sharpness>, from: BTreeMap<String, Sharpness>) {
    for (key, sharpness) in from {
        let mine = into.entry(key).or_default();
        mine.exact += sharpness.exact;
        mine.ratios.extend(sharpness.ratios);
    }
}

fn sum<K: Ord>(into: &mut BTreeMap<K, u64>, from: BTreeMap<K, u64>) {
    for (key, count) in from {
        *into.entry(key).or_default() += count;
    }
}
