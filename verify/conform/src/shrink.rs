//! From a history that breaks a policy to the shortest that still does.
//!
//! Source: Zeller and Hildebrandt 2002 (delta debugging), with complements only: steps whose
//! conditions are gone do nothing, so any subset of a history is a history. Afterwards each step is
//! made simpler as long as the policy still breaks.

/// Histories tried at most; a policy that is slow to break keeps a longer one.
const MOST_TRIALS: u32 = 20_000;

/// Removes steps, then simplifies them, until nothing more can go. `breaks` says whether a history
/// still breaks the policy in the same way.
pub(crate) fn shrink<T: Clone>(
    steps: &[T],
    simpler: impl Fn(&T) -> Vec<T>,
    mut breaks: impl FnMut(&[T]) -> bool,
) -> Vec<T> {
    let mut trials = 0;
    let mut attempt = |candidate: &[T]| {
        trials += 1;
        trials <= MOST_TRIALS && breaks(candidate)
    };
    let mut steps = steps.to_vec();
    loop {
        let before = steps.len();
        remove(&mut steps, &mut attempt);
        let simplified = simplify(&mut steps, &simpler, &mut attempt);
        if !simplified && steps.len() == before {
            return steps;
        }
    }
}

/// Removes ever smaller runs of steps, until no single step can go.
fn remove<T: Clone>(steps: &mut Vec<T>, breaks: &mut impl FnMut(&[T]) -> bool) {
    let mut length = steps.len().div_ceil(2).max(1);
    loop {
        let mut at = 0;
        let mut removed = false;
        while at < steps.len() {
            let end = (at + length).min(steps.len());
            let mut candidate = steps.clone();
            candidate.drain(at..end);
            if breaks(&candidate) {
                *steps = candidate;
                removed = true;
            } else {
                at = end;
            }
        }
        if length == 1 && !removed {
            return;
        }
        length = (length / 2).max(1);
    }
}

/// Replaces single steps by simpler ones; whether any was.
fn simplify<T: Clone>(
    steps: &mut [T],
    simpler: &impl Fn(&T) -> Vec<T>,
    breaks: &mut impl FnMut(&[T]) -> bool,
) -> bool {
    let mut any = false;
    for at in 0..steps.len() {
        let mut again = true;
        while again {
            again = false;
            for candidate in simpler(&steps[at]) {
                let kept = std::mem::replace(&mut steps[at], candidate);
                if breaks(steps) {
                    again = true;
                    any = true;
                    break;
                }
                steps[at] = kept;
            }
        }
    }
    any
}

/// Smaller numbers to try in place of `n`, boldest first.
pub(crate) fn smaller(n: u64) -> impl Iterator<Item = u64> {
    let mut candidates = vec![0, 1, n / 100, n / 2, n.saturating_sub(1)];
    candidates.retain(|candidate| *candidate < n);
    candidates.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_matter_is_removed_and_the_rest_simplified() {
        let steps: Vec<u32> = (0..100).collect();
        // Breaks when a 7 or more comes somewhere before a 50 or more.
        let breaks = |steps: &[u32]| {
            let first = steps.iter().position(|n| *n >= 7);
            first.is_some_and(|first| steps[first + 1..].iter().any(|n| *n >= 50))
        };
        let halves = |n: &u32| vec![n / 2, n.saturating_sub(1)];
        let halves = |n: &u32| halves(n).into_iter().filter(|m| m < n).collect();
        assert_eq!(shrink(&steps, halves, breaks), [7, 50]);
    }
}
