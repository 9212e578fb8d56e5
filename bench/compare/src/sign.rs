//! The sign test over rounds, and how many rounds it would need.
//!
//! The test counts the rounds in which Punctual misses fewer jobs than a rival, and those in which
//! it misses more. If both were alike, each would be as likely as the other: p is the exact
//! binomial probability of a split at least as uneven. Rounds that are equal say nothing.
//!
//! The power is that of a model, since a few rounds do not show a distribution. Misses come in
//! clusters, and the clusters of a round are Poisson. The size of a cluster is the variance of the
//! rounds over their mean, and at least 1. One of the two has twice the misses of the other, and
//! together they have as many as were seen.

use serde::Serialize;

/// A split this unlikely counts as seen.
const LEVEL: f64 = 0.05;
/// Nobody waits for more rounds.
const MOST_ROUNDS: usize = 1_000;
/// The power that is asked for.
const WANTED: f64 = 0.8;
/// Means beyond this are alike for the model: one more miss says nothing there.
const LARGEST_MEAN: f64 = 10_000.0;

/// Punctual against one rival.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct SignTest {
    /// Rounds in which Punctual missed fewer jobs.
    pub(crate) fewer: usize,
    /// Rounds in which it missed more.
    pub(crate) more: usize,
    pub(crate) equal: usize,
    /// Two-sided, exact.
    pub(crate) p: f64,
    /// Misses that come together, by the rounds.
    pub(crate) cluster: f64,
    /// How likely these rounds show a ratio of 2; `None`: nothing was missed, so there is no ratio.
    pub(crate) power: Option<f64>,
    /// Rounds that show a ratio of 2 with 80 % power; `None`: more than a thousand.
    pub(crate) rounds_wanted: Option<usize>,
}

impl SignTest {
    /// Rounds in the same order.
    pub(crate) fn of(ours: &[u64], theirs: &[u64]) -> SignTest {
        let pairs = || ours.iter().zip(theirs);
        let fewer = pairs().filter(|(a, b)| a < b).count();
        let more = pairs().filter(|(a, b)| a > b).count();
        let rounds = pairs().count();
        let cluster = cluster(ours).max(cluster(theirs));
        let mean = (mean(ours) + mean(theirs)) / 2.0;
        let rejections = (mean > 0.0).then(|| Rejections::new(mean.min(LARGEST_MEAN) / cluster));
        SignTest {
            fewer,
            more,
            equal: rounds - fewer - more,
            p: two_sided(fewer, more),
            cluster,
            power: rejections.as_ref().map(|model| model.power(rounds)),
            rounds_wanted: rejections.and_then(|model| model.rounds_for(WANTED)),
        }
    }
}

fn mean(values: &[u64]) -> f64 {
    let sum: u64 = values.iter().sum();
    sum as f64 / values.len().max(1) as f64
}

/// Variance over mean, at least 1; 1 as long as there is one value.
fn cluster(values: &[u64]) -> f64 {
    let mean = mean(values);
    if values.len() < 2 || mean <= 0.0 {
        return 1.0;
    }
    let squares = values.iter().map(|value| (*value as f64 - mean).powi(2));
    let squared = squares.sum::<f64>() / (values.len() - 1) as f64;
    (squared / mean).max(1.0)
}

/// The probability of a split at least as uneven among as many fair coins.
fn two_sided(a: usize, b: usize) -> f64 {
    let factorials = Factorials::up_to(a + b);
    let tail: f64 = (0..=a.min(b))
        .map(|k| factorials.binomial(a + b, k, 0.5))
        .sum();
    (2.0 * tail).min(1.0)
}

/// Logarithms of factorials.
struct Factorials(Vec<f64>);

impl Factorials {
    fn up_to(n: usize) -> Factorials {
        let mut logs = Vec::with_capacity(n + 1);
        let mut sum = 0.0;
        logs.push(sum);
        for k in 1..=n {
            sum += (k as f64).ln();
            logs.push(sum);
        }
        Factorials(logs)
    }

    /// The probability of k among n, each with `p`.
    fn binomial(&self, n: usize, k: usize, p: f64) -> f64 {
        if p <= 0.0 || p >= 1.0 {
            return f64::from(u8::from((p <= 0.0 && k == 0) || (p >= 1.0 && k == n)));
        }
        let choices = self.0[n] - self.0[k] - self.0[n - k];
        (choices + k as f64 * p.ln() + (n - k) as f64 * (1.0 - p).ln()).exp()
    }

    fn poisson(&self, k: usize, mean: f64) -> f64 {
        (k as f64 * mean.ln() - mean - self.0[k]).exp()
    }
}

/// How often the test rejects when one of two has twice the clusters of the other.
struct Rejections {
    /// The probability that two rounds are equal.
    tie: f64,
    /// By rounds that are not equal: the probability that their split counts as seen.
    by_untied: Vec<f64>,
    factorials: Factorials,
}

impl Rejections {
    /// `clusters`: their mean per round and rival.
    fn new(clusters: f64) -> Rejections {
        let (low, high) = (clusters * 2.0 / 3.0, clusters * 4.0 / 3.0);
        let (better, tie) = compare(low, high);
        let untied = 1.0 - tie;
        let chance = if untied > 0.0 { better / untied } else { 0.5 };
        let factorials = Factorials::up_to(MOST_ROUNDS);
        let by_untied = (0..=MOST_ROUNDS).map(|n| rejected(&factorials, n, chance));
        Rejections {
            tie,
            by_untied: by_untied.collect(),
            factorials,
        }
    }

    fn power(&self, rounds: usize) -> f64 {
        let rounds = rounds.min(MOST_ROUNDS);
        let untied = |n: usize| self.factorials.binomial(rounds, n, 1.0 - self.tie);
        (0..=rounds).map(|n| untied(n) * self.by_untied[n]).sum()
    }

    /// The first number of rounds from which on the power is at least this. It wavers by a
    /// little, as the splits that count change by whole rounds.
    fn rounds_for(&self, wanted: f64) -> Option<usize> {
        (1..=MOST_ROUNDS).find(|rounds| self.power(*rounds) >= wanted)
    }
}

/// The probabilities that a Poisson number is below another one, and equal to it.
fn compare(low: f64, high: f64) -> (f64, f64) {
    let largest = high + 12.0 * high.sqrt() + 30.0;
    // At most some ten thousand, by `LARGEST_MEAN`.
    let largest = (0..usize::MAX).find(|n| *n as f64 >= largest).unwrap_or(0);
    let factorials = Factorials::up_to(largest);
    let (mut below, mut less, mut tie) = (0.0, 0.0, 0.0);
    for k in 0..=largest {
        let (of_low, of_high) = (factorials.poisson(k, low), factorials.poisson(k, high));
        less += below * of_high;
        tie += of_low * of_high;
        below += of_low;
    }
    (less, tie)
}

/// The probability that `n` coins which fall with `chance` split so that it counts, in their
/// direction.
fn rejected(factorials: &Factorials, n: usize, chance: f64) -> f64 {
    // The most losses with which the two-sided test still rejects.
    let mut tail = 0.0;
    let mut losses = None;
    for k in 0..=n / 2 {
        tail += factorials.binomial(n, k, 0.5);
        if 2.0 * tail > LEVEL {
            break;
        }
        losses = Some(k);
    }
    let Some(losses) = losses else { return 0.0 };
    (0..=losses)
        .map(|k| factorials.binomial(n, n - k, chance))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9, "{a} is not {b}");
    }

    #[test]
    fn p_is_the_exact_binomial_one() {
        // Twice the tail of fair coins: 2 · 1/2^5; 2 · (1 + 10) / 2^10; 2 · (1 + 6 + 15) / 2^6.
        near(two_sided(5, 0), 2.0 / 32.0);
        near(two_sided(0, 5), 2.0 / 32.0);
        near(two_sided(9, 1), 22.0 / 1024.0);
        near(two_sided(2, 4), 44.0 / 64.0);
        // An even split and no round at all say nothing.
        near(two_sided(3, 3), 1.0);
        near(two_sided(0, 0), 1.0);
    }

    #[test]
    fn five_rounds_can_never_reject_and_six_can() {
        // All five alike have p = 1/16; all six 1/32 < 0.05, with chance 0.9 in 0.9^6.
        let factorials = Factorials::up_to(10);
        near(rejected(&factorials, 5, 0.9), 0.0);
        near(rejected(&factorials, 6, 0.9), 0.9_f64.powi(6));
        // Nine: none or one may differ (2 · 10 / 512 = 0.039).
        near(
            rejected(&factorials, 9, 0.9),
            0.9_f64.powi(9) + 9.0 * 0.1 * 0.9_f64.powi(8),
        );
    }

    #[test]
    fn poisson_numbers_are_compared_term_by_term() {
        let (less, tie) = compare(1.0, 2.0);
        // Equal: e^-3 · sum of 2^k / k!^2 = e^-3 · I0(2 sqrt 2), and I0(2.8284271) = 4.2523508796.
        near(tie, (-3.0_f64).exp() * 4.252_350_879_588_607);
        let (more, same) = compare(2.0, 1.0);
        near(same, tie);
        near(less + more + tie, 1.0);
    }

    #[test]
    fn more_rounds_and_more_misses_have_more_power() {
        let few = Rejections::new(2.0);
        let many = Rejections::new(30.0);
        assert!(few.power(40) > few.power(10));
        assert!(many.power(10) > few.power(10));
        let wanted = few.rounds_for(0.8).expect("below a thousand");
        assert!(few.power(wanted) >= 0.8 && few.power(wanted - 1) < 0.8);
        assert!(many.rounds_for(0.8).is_some_and(|rounds| rounds < wanted));
    }

    #[test]
    fn misses_that_come_together_are_fewer_than_they_look() {
        let even = SignTest::of(&[10, 10, 10, 10], &[20, 20, 20, 20]);
        let bursts = SignTest::of(&[0, 40, 0, 0], &[80, 0, 0, 0]);
        near(even.cluster, 1.0);
        // The variance of 80, 0, 0, 0 is 1,600 and its mean 20.
        near(bursts.cluster, 80.0);
        assert!(bursts.rounds_wanted > even.rounds_wanted || bursts.rounds_wanted.is_none());
        assert_eq!((even.fewer, even.more, even.equal), (4, 0, 0));
        assert_eq!((bursts.fewer, bursts.more, bursts.equal), (1, 1, 2));
    }

    #[test]
    fn where_nothing_was_missed_there_is_no_ratio_to_see() {
        let test = SignTest::of(&[0, 0], &[0, 0]);
        assert_eq!(
            (test.equal, test.power, test.rounds_wanted),
            (2, None, None)
        );
        near(test.p, 1.0);
    }
}
