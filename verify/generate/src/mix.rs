//! Whole random systems: every feature of the model with a probability of its own.
//!
//! A system begins as independent periodic tasks on one CPU. Then each feature is drawn, and the
//! drawn ones are applied one after the other in the order of [`Feature::ALL`]; each is one
//! function that changes some of the tasks. What comes out means something (`System::validate`
//! accepts it) and is seldom easy.

mod base;
mod feature;
mod hierarchy;
mod locks;
mod machine;
mod resources;
mod slices;
mod tasks;

use punctual_model::System;

use crate::random::Random;

pub use base::Scale;
pub use feature::Feature;

/// Draws that may turn out to mean nothing before a plain system is given instead.
const ATTEMPTS: u32 = 50;

/// How often each feature occurs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mix {
    /// How many of 1,000 systems have no feature at all: there the tests are exact.
    pub plain_per_mille: u32,
    /// How many of 1,000 of the others have this feature.
    pub chances: Vec<(Feature, u32)>,
    /// The sizes of periods.
    pub scale: Scale,
    /// Most tasks, at least 2.
    pub most_tasks: usize,
}

/// A system and what went into it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Drawn {
    /// The system; `System::validate` accepts it.
    pub system: System,
    /// The features that found something to change.
    pub features: Vec<Feature>,
    /// Draws before this one that meant nothing.
    pub discarded: u32,
}

impl Mix {
    /// Every feature of `features` at a usual rate, on all scales.
    pub fn of(features: &[Feature]) -> Mix {
        Mix {
            plain_per_mille: 200,
            chances: features.iter().map(|f| (*f, f.usual_per_mille())).collect(),
            scale: Scale::Any,
            most_tasks: 7,
        }
    }

    /// Draws a system. Equal streams give equal systems. O(tasks) per attempt.
    pub fn draw(&self, random: &mut Random) -> Drawn {
        for discarded in 0..ATTEMPTS {
            let wanted = self.wanted(random);
            let (system, features) = self.attempt(random, wanted.as_deref().unwrap_or_default());
            if system.validate().is_ok() {
                let drawn = Drawn {
                    system,
                    features,
                    discarded,
                };
                return match wanted {
                    Some(_) => self.with_the_last(drawn, random.clone().bits()),
                    None => drawn,
                };
            }
        }
        let (system, features) = self.attempt(random, &[]);
        Drawn {
            system,
            features,
            discarded: ATTEMPTS,
        }
    }

    /// `None`: a plain system.
    fn wanted(&self, random: &mut Random) -> Option<Vec<Feature>> {
        if random.happens(self.plain_per_mille) {
            return None;
        }
        let listed = |feature: &Feature| self.chances.iter().find(|(f, _)| f == feature);
        let mut drawn = |feature: &Feature| listed(feature).is_some_and(|c| random.happens(c.1));
        let others = Feature::ALL.into_iter().filter(|f| !f.comes_last());
        Some(others.filter(|f| drawn(f)).collect())
    }

    /// The features that come last, each from a stream of its own.
    fn with_the_last(&self, mut drawn: Drawn, seed: u64) -> Drawn {
        let last = Feature::ALL.into_iter().filter(|f| f.comes_last());
        for (stream, feature) in (1..).zip(last) {
            let mut random = Random::at(seed, &[stream]);
            let chance = self.chances.iter().find(|(f, _)| *f == feature);
            if !chance.is_some_and(|(_, chance)| random.happens(*chance)) {
                continue;
            }
            let before = drawn.system.clone();
            feature.apply(&mut random, self.scale_of(&before), &mut drawn.system);
            match drawn.system.validate() {
                Ok(()) if drawn.system != before => drawn.features.push(feature),
                _ => drawn.system = before,
            }
        }
        drawn
    }

    /// The scale from which a system was drawn.
    fn scale_of(&self, system: &System) -> Scale {
        let mut separations = system.tasks.iter().filter_map(|t| t.class.min_separation());
        match self.scale {
            Scale::Any if separations.any(|s| s.as_ns() >= 1_000_000) => Scale::Milliseconds,
            Scale::Any => Scale::Ticks,
            settled => settled,
        }
    }

    fn attempt(&self, random: &mut Random, wanted: &[Feature]) -> (System, Vec<Feature>) {
        let scale = self.scale.settle(random);
        let mut system = base::system(random, scale, self.most_tasks, wanted.len());
        let mut features = Vec::new();
        for feature in wanted {
            let before = system.clone();
            feature.apply(random, scale, &mut system);
            if system != before {
                features.push(*feature);
            }
        }
        if features.contains(&Feature::Overheads) {
            machine::budget_timer(random, &mut system);
        }
        (system, features)
    }
}

#[cfg(test)]
mod tests;
