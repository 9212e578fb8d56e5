//! The pieces of a study: threads do them, and their results come in order.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use punctual_terminal::ending::Failure;
use punctual_terminal::interrupt::Interrupt;

/// Questions that are cut into units. It is the header of its file of results.
pub trait Study: Clone + PartialEq + Serialize + DeserializeOwned + Sync {
    /// A name of its results, such as "a sweep".
    const NAME: &'static str;

    /// One piece.
    type Unit: Sync;

    /// The result of a unit: a line of the file.
    type Line: Clone + PartialEq + Serialize + DeserializeOwned + Send;

    /// Whether it means something, and is not larger than the limits.
    ///
    /// # Errors
    /// A mistake in it.
    fn check(&self) -> Result<(), Failure>;

    /// How many units it has. O(size of the study), however many there are.
    fn unit_count(&self) -> usize;

    /// All units, in order.
    fn units(&self) -> Vec<Self::Unit>;

    /// Does a unit, which is the `number`-th of the study.
    ///
    /// # Errors
    /// A question without an answer.
    fn evaluate(&self, number: usize, unit: &Self::Unit) -> Result<Self::Line, Failure>;

    /// The number of the unit that has found this.
    fn unit_of(line: &Self::Line) -> usize;

    /// Whether this can be what the `number`-th unit has found.
    fn fits(&self, line: &Self::Line, number: usize, unit: &Self::Unit) -> bool;
}

/// Part `index` (from 1) of `count`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shard {
    index: usize,
    count: usize,
}

impl Shard {
    /// All of a study.
    pub const WHOLE: Shard = Shard { index: 1, count: 1 };

    /// The part of the same division that a unit belongs to.
    pub(crate) fn sibling_of(self, unit: usize) -> Shard {
        Shard {
            index: unit % self.count + 1,
            count: self.count,
        }
    }

    /// The numbered units of this part: every `count`-th, so that parts take about equally long.
    pub(crate) fn units<S: Study>(self, study: &S) -> Vec<(usize, S::Unit)> {
        let all = study.units().into_iter().enumerate();
        all.filter(|(number, _)| number % self.count == self.index - 1)
            .collect()
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let wrong = || format!("`{text}` is not a part such as 3/8");
        let (index, count) = text.split_once('/').ok_or_else(wrong)?;
        let index = index.parse().map_err(|_| wrong())?;
        let count = count.parse().map_err(|_| wrong())?;
        if index == 0 || index > count {
            return Err(format!(
                "part {index} of {count}: parts are numbered 1 to {count}"
            ));
        }
        Ok(Shard { index, count })
    }
}

/// Does `units` on so many threads, and tells `each` what they found in their order. Ends early
/// when the user wants so.
pub(crate) fn work<S: Study>(
    study: &S,
    units: &[(usize, S::Unit)],
    threads: usize,
    interrupt: &Interrupt,
    mut each: impl FnMut(S::Line) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                while !interrupt.is_wanted() {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some((number, unit)) = units.get(at) else {
                        return;
                    };
                    // Nobody listens any more after a failure.
                    if sender.send((at, study.evaluate(*number, unit))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut waiting = BTreeMap::new();
        let mut wanted = 0;
        for (at, line) in receiver {
            let _ = waiting.insert(at, line?);
            while let Some(line) = waiting.remove(&wanted) {
                each(line)?;
                wanted += 1;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Clone, PartialEq, Serialize, Deserialize)]
    struct Numbers(usize);

    impl Study for Numbers {
        const NAME: &'static str = "numbers";
        type Unit = usize;
        type Line = (usize, usize);

        fn check(&self) -> Result<(), Failure> {
            Ok(())
        }

        fn unit_count(&self) -> usize {
            self.0
        }

        fn units(&self) -> Vec<usize> {
            (0..self.0).collect()
        }

        fn evaluate(&self, number: usize, unit: &usize) -> Result<(usize, usize), Failure> {
            Ok((number, unit * unit))
        }

        fn unit_of(line: &(usize, usize)) -> usize {
            line.0
        }

        fn fits(&self, line: &(usize, usize), number: usize, unit: &usize) -> bool {
            *line == (number, unit * unit)
        }
    }

    #[test]
    fn every_unit_belongs_to_exactly_one_shard() {
        let study = Numbers(220);
        for count in [1, 2, 3, 7, 1_000] {
            let mut found: Vec<usize> = (1..=count)
                .flat_map(|index| Shard { index, count }.units(&study))
                .map(|(number, _)| number)
                .collect();
            found.sort_unstable();
            assert_eq!(found, (0..220).collect::<Vec<_>>());
        }
    }

    #[test]
    fn parts_beyond_the_last_are_refused() {
        assert_eq!("3/8".parse(), Ok(Shard { index: 3, count: 8 }));
        for wrong in ["", "3", "0/4", "5/4", "-1/4", "1/0", "a/b"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }
}
