//! The promises of a CPU: written down when somebody asks for them, not when a thread joins.
//!
//! A join needs a yes or no, which costs a fraction of all bounds. The bounds of a system hold for
//! every part of it, too: fewer threads take no longer. So of threads that join one after the other
//! the last system is kept, and its bounds are the promises of all of them. It is looked at when
//! the run is over (design note 0090).

use std::sync::{Arc, Mutex, PoisonError};

use punctual_analysis::{Exactness, TaskVerdict, Verdict, bounds_only};
use punctual_linux::undisturbed;
use punctual_model::{System, Task};

use super::{Owner, Promise};

/// Systems that were kept when a thread had left; then the oldest is written down at once.
const MOST_LEFT: usize = 4;

/// The promises of one CPU, in the order of the first of each name.
#[derive(Debug, Default)]
pub(crate) struct Promises(Mutex<Book>);

#[derive(Debug, Default)]
struct Book {
    /// Each with the number of the first grant of its name.
    written: Vec<(u64, Promise)>,
    /// The system that the last quick join led to.
    open: Option<Arc<Unwritten>>,
    /// Earlier ones, of which a thread has left since.
    left: Vec<Arc<Unwritten>>,
}

/// A system that is admitted, and whose bounds nobody knows yet.
#[derive(Debug)]
struct Unwritten {
    system: System,
    names: Vec<Named>,
}

impl Promises {
    /// The end of the run wants the lock, also when this thread never goes on.
    fn with<R>(&self, look: impl FnOnce(&mut Book) -> R) -> R {
        undisturbed(|| look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// A thread has joined, and this system is admitted. O(threads), unless many threads have left:
    /// then the bounds of one earlier system are found.
    pub(super) fn joined(&self, system: System, owners: &[Owner]) {
        let names = named(owners);
        let joined = Arc::new(Unwritten { system, names });
        let (before, left) = self.with(|book| (book.open.clone(), book.left.clone()));
        let kept = before.filter(|before| {
            let more = joined.system.tasks.get(..before.system.tasks.len());
            let grew =
                joined.system.cpus == before.system.cpus && more == Some(&before.system.tasks);
            !grew && !left.iter().any(|left| left.is_like(before))
        });
        let (_old, oldest) = self.with(|book| {
            book.left.extend(kept);
            let oldest = book.left.first().filter(|_| book.left.len() > MOST_LEFT);
            let oldest = oldest.cloned();
            (book.open.replace(joined), oldest)
        });
        if let Some(oldest) = oldest {
            let bounds = oldest.bounds();
            self.with(|book| {
                book.write_all(bounds);
                book.left.retain(|left| !Arc::ptr_eq(left, &oldest));
            });
        }
    }

    /// Writes down what a verdict says of those that live.
    pub(super) fn write(&self, owners: &[Owner], verdict: &Verdict) {
        let bounds = promised(&named(owners), verdict);
        self.with(|book| book.write_all(bounds));
    }

    /// All of them. Costs the bounds of what is not written down yet.
    pub(crate) fn read(&self) -> Vec<Promise> {
        let unwritten = |book: &mut Book| {
            let open = book.open.take();
            core::mem::take(&mut book.left)
                .into_iter()
                .chain(open)
                .collect()
        };
        let unwritten: Vec<Arc<Unwritten>> = self.with(unwritten);
        for unwritten in unwritten {
            let bounds = unwritten.bounds();
            self.with(|book| book.write_all(bounds));
        }
        let mut all = self.with(|book| book.written.clone());
        all.sort_by_key(|(first, _)| *first);
        all.into_iter().map(|(_, promise)| promise).collect()
    }

    /// Whether a join has not been written down.
    #[cfg(test)]
    pub(super) fn is_open(&self) -> bool {
        self.with(|book| book.open.is_some() && book.written.is_empty())
    }
}

impl Unwritten {
    fn bounds(&self) -> Vec<(u64, Promise)> {
        match bounds_only(&self.system) {
            Ok(verdict) => promised(&self.names, &verdict),
            // It is admitted, and nothing shorter than the deadlines is known.
            Err(_) => {
                let rows = self.names.iter().zip(&self.system.tasks);
                let promise = |((grant, name), task): (&Named, &Task)| {
                    let promise = Promise {
                        cpu: 0,
                        name: name.clone(),
                        response_bound: task.class.relative_deadline(),
                        exactness: Exactness::Sufficient,
                    };
                    (*grant, promise)
                };
                rows.map(promise).collect()
            }
        }
    }

    /// Whether it promises the same to threads of the same names.
    fn is_like(&self, other: &Unwritten) -> bool {
        let unnamed = |task: &Task| Task {
            name: String::new(),
            ..task.clone()
        };
        let same = |(a, b): (&Task, &Task)| unnamed(a) == unnamed(b);
        let (ours, theirs) = (&self.system.tasks, &other.system.tasks);
        let names = |all: &Unwritten| {
            all.names
                .iter()
                .map(|(_, name)| name.clone())
                .collect::<Vec<_>>()
        };
        let is_ordered_alike = self.system.cpus == other.system.cpus;
        is_ordered_alike && names(self) == names(other) && ours.iter().zip(theirs).all(same)
    }
}

/// The name of a thread, and the number of its grant: later ones are larger.
type Named = (u64, String);

fn named(owners: &[Owner]) -> Vec<Named> {
    let named = owners
        .iter()
        .map(|owner| (owner.grant.0, owner.name.clone()));
    named.collect()
}

fn promised(names: &[Named], verdict: &Verdict) -> Vec<(u64, Promise)> {
    let rows = names.iter().zip(&verdict.tasks);
    let promise = |((grant, name), task): (&Named, &TaskVerdict)| {
        let promise = Promise {
            cpu: 0,
            name: name.clone(),
            response_bound: task.response_bound,
            exactness: task.exactness,
        };
        (*grant, promise)
    };
    rows.map(promise).collect()
}

impl Book {
    fn write_all(&mut self, promises: Vec<(u64, Promise)>) {
        for (grant, promise) in promises {
            self.write(grant, promise);
        }
    }

    fn write(&mut self, grant: u64, new: Promise) {
        let mut written = self.written.iter_mut();
        match written.find(|(_, p)| p.name == new.name) {
            Some((first, promise)) => {
                *first = grant.min(*first);
                let bounds = promise.response_bound.zip(new.response_bound);
                let larger = bounds.map(|(a, b)| a.max(b));
                if larger != promise.response_bound {
                    promise.exactness = new.exactness;
                }
                promise.response_bound = larger;
            }
            None => self.written.push((grant, new)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ROOT, at};
    use super::super::{Admission, NotAdmitted};
    use super::*;
    use crate::constraint::Constraint;
    use punctual_generate::Random;
    use punctual_model::{Cpu, CpuId, Machine, Ns, PolicyKind, Priority, Reserve, Span, Work};

    const EDF: PolicyKind<Ns> = PolicyKind::EarliestDeadlineFirst;
    const FIXED: PolicyKind<Ns> = PolicyKind::FixedPriority { preemptive: true };

    /// A machine on which nothing is for nothing.
    fn with_terms() -> Machine {
        Machine {
            switch: Work::from_us(1),
            timer: Work::from_us(2),
            preemption: Work::from_us(3),
            reserves: vec![Reserve {
                name: "others".to_owned(),
                budget: Work::from_ms(5),
                period: Span::from_ms(100),
            }],
            ..Machine::default()
        }
    }

    fn drawn(random: &mut Random, threads: u64) -> Constraint {
        let period = random.within(2, 50) * 1_000;
        let wcet = random.within(period / (2 * threads), 2 * period / threads);
        let (span, work) = (Span::from_us(period), Work::from_us(wcet.max(1)));
        let constraint = match random.below(5) {
            0 => Constraint::reservation(span, work),
            1 => Constraint::sporadic(span, work).deadline(Span::from_us(period / 2)),
            2 => Constraint::periodic(span, work).deadline(Span::from_us(period * 3 / 4)),
            _ => Constraint::periodic(span, work),
        };
        // Some urgent by rate, some by chance.
        let by_rate = u32::try_from(50_000 - period).expect("small");
        let by_chance = u32::try_from(random.below(50_000)).expect("small");
        constraint.priority(if random.happens(700) {
            by_rate
        } else {
            by_chance
        })
    }

    #[test]
    fn threads_that_join_in_any_order_get_the_verdicts_and_promises_of_an_analysis_from_scratch() {
        let (mut admitted, mut refused) = (0, 0);
        for seed in 0..8 {
            let mut random = Random::at(seed, &[11]);
            let policy = if seed % 2 == 0 { EDF } else { FIXED };
            let machine = if seed % 4 < 2 {
                Machine::default()
            } else {
                with_terms()
            };
            let promises: Arc<Promises> = Arc::default();
            let mut cpu = Admission::new(policy, machine.clone(), Arc::clone(&promises));
            let mut scratch = System {
                cpus: vec![Cpu {
                    name: "0".to_owned(),
                    host: None,
                    policy,
                }],
                free_phases: true,
                machine,
                ..System::default()
            };
            for place in 0..10 {
                let constraint = drawn(&mut random, 10);
                let name = format!("t{place}");
                let mut with = scratch.clone();
                let mut task = constraint.task(&format!("{name}:{place}"));
                task.cpu = CpuId(0);
                assert_ne!(task.priority, Priority::new(u32::MAX));
                with.tasks.push(task);
                let verdict = bounds_only(&with).expect("a verdict");
                match cpu.add((&name, ROOT), &constraint, at(0)) {
                    Ok(_) => {
                        assert!(verdict.admitted, "seed {seed}: {name}");
                        scratch = with;
                        admitted += 1;
                    }
                    Err(NotAdmitted::Refused(said)) => {
                        assert!(!verdict.admitted, "seed {seed}: {name}");
                        let seen = |verdict: &Verdict| {
                            let all = verdict.refusals.iter();
                            all.map(|r| (r.reason.clone(), r.witness))
                                .collect::<Vec<_>>()
                        };
                        assert_eq!(seen(&said), seen(&verdict), "seed {seed}: {name}");
                        refused += 1;
                    }
                    other => panic!("seed {seed}: {other:?}"),
                }
            }
            assert!(promises.is_open(), "no bound was asked for");
            let bounds = bounds_only(&scratch).expect("a verdict").tasks;
            let bounds = bounds.iter().map(|row| (row.response_bound, row.exactness));
            let promised = promises.read().into_iter();
            let promised = promised.map(|p| (p.response_bound, p.exactness));
            assert!(promised.eq(bounds), "seed {seed}");
        }
        assert!(admitted > 40 && refused > 10, "{admitted} and {refused}");
    }

    #[test]
    fn a_promise_to_a_thread_that_has_left_is_kept_with_those_who_were_there() {
        let promises: Arc<Promises> = Arc::default();
        let mut cpu = Admission::new(FIXED, Machine::default(), Arc::clone(&promises));
        let of = |priority| {
            Constraint::periodic(Span::from_ms(100), Work::from_ms(1)).priority(priority)
        };
        let _low = cpu.add(("low", ROOT), &of(1), at(0)).expect("alone");
        // More often than systems are kept, and each with one more beside it.
        for round in 1..=2 * u64::try_from(MOST_LEFT).expect("small") {
            let now = at(1_000 * round);
            let others = (0..u32::try_from(round).expect("small")).map(|n| {
                let name = format!("r{round}n{n}");
                cpu.add((&name, ROOT), &of(2 + n), now).expect("room")
            });
            let others: Vec<_> = others.collect();
            others.into_iter().for_each(|other| cpu.remove(other, now));
        }
        cpu.add(("last", ROOT), &of(0), at(100_000)).expect("two");
        let all = promises.read();
        let bound = |name: &str| {
            all.iter()
                .find(|p| p.name == name)
                .and_then(|p| p.response_bound)
        };
        // Eight others at most, and never more.
        assert_eq!(bound("low"), Some(Span::from_ms(9)));
        assert_eq!(bound("r5n0"), Some(Span::from_ms(5)));
        assert_eq!(bound("last"), Some(Span::from_ms(2)));
        assert_eq!(all.len(), 2 + 36);
        assert_eq!(all[0].name, "low");
    }

    #[test]
    fn a_promise_below_the_policy_before_is_kept() {
        let promises: Arc<Promises> = Arc::default();
        let mut cpu = Admission::new(FIXED, Machine::default(), Arc::clone(&promises));
        let of = |period, wcet| Constraint::periodic(Span::from_ms(period), Work::from_ms(wcet));
        let a = cpu.add(("a", ROOT), &of(20, 5).priority(2), at(0));
        let b = cpu.add(("b", ROOT), &of(10, 2).priority(1), at(0));
        assert!(a.is_ok() && b.is_ok());
        let moved = cpu.reorders(ROOT, (EDF, 1), at(100)).expect("admitted");
        cpu.accept(Some(moved), at(100));
        cpu.add(("c", ROOT), &of(100, 1), at(200)).expect("room");
        let all = promises.read();
        let b = all.iter().find(|promise| promise.name == "b");
        let bound = b.and_then(|promise| promise.response_bound);
        // Five of the more urgent one, and its own two.
        assert!(bound >= Some(Span::from_ms(7)), "{all:?}");
    }
}
