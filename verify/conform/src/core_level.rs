//! Histories of events: the policy inside a shard, with jobs, budgets, wake-ups and sections.
//!
//! The platform here is exact: it never passes an instant that the shard has armed. So a thread
//! that executes beyond the budget it was given shows a mistake, whoever made it.

use std::cell::RefCell;
use std::rc::Rc;

use punctual_kern::{
    Capacity, Constraint, Decision, Entry, Event, MissingCause, NodeId, Shard, Sink, State,
    TraceEvent, Tree, Uncharged,
};
use punctual_model::{Class, Instant, Late, OnOverrun, PolicyKind, Priority, Span, ThreadId, Work};

use crate::dice::Dice;
use crate::level::{Level, Options, Setup, Steps};
use crate::reference::{Reference, name};
use crate::shrink::smaller;
use crate::symptom::{Symptom, Violation};
use crate::watched::Watched;

/// Entries at the end of a history before somebody ready counts as lost.
const PATIENCE: u32 = 4_096;

/// Histories of events.
pub(crate) struct CoreLevel;

/// One event, or time that passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// A thread begins to exist.
    Create(Constraint),
    /// Time passes, at most to the armed instant.
    Run(u64),
    /// Time passes and is charged to nobody.
    Missing(u64),
    /// The running thread asks for something; nothing happens when nobody runs.
    Ask(Request),
    /// The running thread waits, at most so long.
    BlockFor(u64),
    /// The n-th thread may go on.
    Wake(u32),
    /// A job of the n-th thread arrives.
    Arrive(u32),
    /// The n-th thread is ended.
    Kill(u32),
    /// Another policy of the same make takes the place of the one that decides.
    Swap,
}

/// What a running thread asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Request {
    Complete,
    Block,
    Yield,
    Protect,
    Unprotect,
    Exit,
    /// Itself, before it blocks.
    Wake,
}

impl Steps for CoreLevel {
    const LEVEL: Level = Level::Core;
    type Step = Step;

    fn draw(dice: &mut Dice, options: &Options) -> Vec<Step> {
        let unit = 10_u64.pow(dice.small(5));
        let threads = u32::try_from(options.threads).unwrap_or(1);
        let mut steps: Vec<Step> = (0..threads)
            .map(|_| Step::Create(draw_constraint(dice, unit)))
            .collect();
        for _ in 0..options.steps {
            steps.push(draw_step(dice, threads, unit));
        }
        steps
    }

    fn execute(
        steps: &[Step],
        setup: Setup<'_>,
        reference: &Rc<RefCell<Reference>>,
        executed: &mut [bool],
    ) {
        let capacity = Capacity::for_threads(setup.threads);
        let policy = Watched::new(|| (setup.make)(setup.threads), setup.ask_again, reference);
        let mut driver = Driver {
            setup,
            shard: Shard::new(Tree::new(capacity, policy)),
            sink: Ear(Rc::clone(reference)),
            reference: Rc::clone(reference),
            has_budget: setup.claims.budget.is_some(),
            now: Instant::ZERO,
            arm: None,
            created: Vec::new(),
        };
        for (step, executed) in steps.iter().zip(executed) {
            *executed = driver.step(*step);
            if driver.reference.borrow().is_over() {
                return;
            }
        }
        driver.finish();
    }

    fn simpler(step: &Step) -> Vec<Step> {
        match *step {
            Step::Run(ticks) => smaller(ticks).map(Step::Run).collect(),
            Step::Missing(ticks) => smaller(ticks).map(Step::Missing).collect(),
            Step::BlockFor(ticks) => smaller(ticks).map(Step::BlockFor).collect(),
            Step::Create(constraint) => {
                let phase = smaller(constraint.phase.ticks()).map(|phase| Constraint {
                    phase: Span::from_ticks(phase),
                    ..constraint
                });
                phase.map(Step::Create).collect()
            }
            Step::Ask(_) | Step::Wake(_) | Step::Arrive(_) | Step::Kill(_) => Vec::new(),
            Step::Swap => Vec::new(),
        }
    }

    fn tidied(_: &[Step]) -> Vec<Vec<Step>> {
        // Threads are named in the order in which they are created: nothing to tidy.
        Vec::new()
    }

    fn requeues(_: &Step) -> bool {
        true
    }
}

fn draw_constraint(dice: &mut Dice, unit: u64) -> Constraint {
    let separation = unit * (5 + dice.below(60));
    let amount = 1 + dice.below(separation / 2 + 1);
    let (span, work) = (Span::from_ticks(separation), Work::from_ticks(amount));
    let class = match dice.below(6) {
        0 => Class::Reservation {
            period: span,
            slice: work,
        },
        1 => Class::Aperiodic,
        2 => Class::Once {
            size: work,
            relative_deadline: span,
        },
        3 => Class::Sporadic {
            min_separation: span,
            wcet: work,
            relative_deadline: span,
        },
        _ => Class::Periodic {
            period: span,
            wcet: work,
            relative_deadline: span,
        },
    };
    let rules = [
        OnOverrun::Throttle,
        OnOverrun::Demote,
        OnOverrun::Stop,
        OnOverrun::Signal,
    ];
    let rule = rules.get(dice.small(4) as usize).copied();
    Constraint {
        class,
        priority: Priority::new(dice.small(4)),
        phase: Span::from_ticks(unit * dice.below(20)),
        late: if dice.once_in(3) {
            Late::Skip
        } else {
            Late::default()
        },
        on_overrun: rule.unwrap_or_default(),
        order: 0,
        until: Instant::MAX,
        fed: false,
    }
}

fn draw_step(dice: &mut Dice, threads: u32, unit: u64) -> Step {
    let place = dice.small(2 * threads);
    match dice.below(30) {
        0..=12 => Step::Run(1 + dice.below(8 * unit)),
        13..=15 => Step::Ask(Request::Complete),
        16 => Step::Ask(Request::Block),
        17 => Step::BlockFor(unit * dice.below(30)),
        18 => Step::Ask(Request::Yield),
        19 => Step::Ask(Request::Protect),
        20 => Step::Ask(Request::Unprotect),
        21 => Step::Ask(Request::Wake),
        22 => Step::Missing(1 + dice.below(5 * unit)),
        23 if dice.once_in(4) => Step::Ask(Request::Exit),
        24 if dice.once_in(4) => Step::Kill(place),
        24 if dice.once_in(3) => Step::Swap,
        25 => Step::Create(draw_constraint(dice, unit)),
        26..=28 => Step::Arrive(place),
        _ => Step::Wake(place),
    }
}

/// Hears what the shard grants and takes.
struct Ear(Rc<RefCell<Reference>>);

impl Sink for Ear {
    fn trace(&mut self, _: Instant, event: TraceEvent) {
        let mut reference = self.0.borrow_mut();
        match event {
            TraceEvent::Started { thread, budget, .. } => reference.grant(thread, budget),
            TraceEvent::Replenished { thread, budget } => reference.grant(thread, Some(budget)),
            TraceEvent::Throttled { thread, .. } => reference.exhausted(thread),
            // What it executes now, if anything, is background work.
            TraceEvent::Demoted { thread, .. } | TraceEvent::Completed { thread, .. } => {
                reference.grant(thread, None);
            }
            TraceEvent::PolicyReplaced { .. } => reference.replaced(),
            _ => {}
        }
    }
}

/// Plays the platform.
struct Driver<'a> {
    setup: Setup<'a>,
    shard: Shard<Watched>,
    sink: Ear,
    reference: Rc<RefCell<Reference>>,
    has_budget: bool,
    now: Instant,
    arm: Option<Instant>,
    created: Vec<ThreadId>,
}

impl Driver<'_> {
    /// Takes one step; whether it was more than nothing.
    fn step(&mut self, step: Step) -> bool {
        match step {
            Step::Create(constraint) => {
                let order = u32::try_from(self.created.len()).unwrap_or(u32::MAX);
                let decision = self.event(Event::Create(Constraint {
                    order,
                    ..constraint
                }));
                self.created.extend(self.shard.last_created());
                decision.refused.is_none()
            }
            Step::Run(ticks) => self.run(ticks),
            Step::Missing(ticks) => self.miss(ticks),
            Step::Ask(request) => self.ask(request),
            Step::BlockFor(ticks) => {
                let until = Some(self.now.saturating_add(Span::from_ticks(ticks)));
                self.shard.running().is_some() && self.block(until)
            }
            Step::Wake(nth) => self.about(nth, Event::Wake),
            Step::Kill(nth) => self.about(nth, Event::Kill),
            Step::Swap => self.swap(),
            Step::Arrive(nth) => {
                let arrival = self.now;
                self.about(nth, |thread| Event::Arrive { thread, arrival })
            }
        }
    }

    fn event(&mut self, event: Event) -> Decision {
        self.entry(Uncharged::NONE, event)
    }

    fn entry(&mut self, missing: Uncharged, event: Event) -> Decision {
        let now = self.now;
        let mut reference = self.reference.borrow_mut();
        reference.say(|| match missing.total().ticks() {
            0 => format!("at {}: {}", now.ticks(), in_words(&event)),
            ticks => format!("at {}: {ticks} ticks were missing time", now.ticks()),
        });
        reference.indent = "  ";
        drop(reference);
        let entry = Entry {
            missing,
            ..Entry::at(now, &event)
        };
        let decision = self.shard.handle_entry(&entry, &mut self.sink);
        self.reference.borrow_mut().indent = "";
        self.arm = decision.arm;
        decision
    }

    /// Ready threads keep their jobs and budgets. A policy with budgets of its own would give them
    /// anew.
    fn swap(&mut self) -> bool {
        let root = NodeId::ROOT;
        drop(self.shard.unshelve(root));
        if self.has_budget {
            return false;
        }
        let setup = self.setup;
        let make = || (setup.make)(setup.threads);
        let new = Watched::new(make, setup.ask_again, &self.reference).next();
        let request = punctual_kern::Request::Replace {
            node: root,
            policy: PolicyKind::FixedPriority { preemptive: true },
        };
        let shelved = self.shard.shelve(root, new).is_ok();
        let ask = Event::Manage { by: root, request };
        shelved && self.event(ask).refused.is_none()
    }

    fn ask(&mut self, request: Request) -> bool {
        let Some(running) = self.shard.running() else {
            return false;
        };
        let event = match request {
            Request::Complete => Event::Complete,
            Request::Block => return self.block(None),
            Request::Yield => Event::Yield,
            // A section holds against everybody, so also against a policy's own limits.
            Request::Protect if self.has_budget => return false,
            Request::Protect => Event::Protect,
            Request::Unprotect => Event::Unprotect,
            Request::Exit => Event::Exit,
            Request::Wake => Event::Wake(running),
        };
        self.event(event).refused.is_none()
    }

    /// The running thread waits; a wake-up that came before ends its wait at once.
    fn block(&mut self, until: Option<Instant>) -> bool {
        let Some(running) = self.shard.running() else {
            return false;
        };
        let woken = self.shard.state(running) == State::Woken;
        let decision = self.event(Event::Block { until });
        if woken && self.shard.state(running) == State::Blocked {
            let detail = format!("`{}` waits, though it was woken before", name(running));
            let lost = Violation::new(Symptom::LostWakeUp, detail);
            self.reference.borrow_mut().fail(lost);
        }
        decision.refused.is_none()
    }

    fn about(&mut self, nth: u32, event: impl Fn(ThreadId) -> Event) -> bool {
        let count = self.created.len().max(1);
        match self.created.get(nth as usize % count).copied() {
            Some(thread) => self.event(event(thread)).refused.is_none(),
            None => false,
        }
    }

    /// Ticks that may pass.
    fn room(&self) -> u64 {
        self.arm.map_or(u64::MAX, |at| at.since(self.now).ticks())
    }

    fn run(&mut self, ticks: u64) -> bool {
        let ticks = ticks.min(self.room());
        self.now = self.now.saturating_add(Span::from_ticks(ticks));
        let _ = self.event(Event::Tick);
        true
    }

    fn miss(&mut self, ticks: u64) -> bool {
        let ticks = ticks.min(self.room());
        if ticks == 0 || self.has_budget {
            return false;
        }
        let span = Span::from_ticks(ticks);
        self.now = self.now.saturating_add(span);
        let missing = Uncharged::of(MissingCause::Stolen, span);
        let _ = self.entry(missing, Event::Tick);
        true
    }

    /// Everybody who runs ends: nobody ready may be left.
    fn finish(&mut self) {
        for _ in 0..PATIENCE {
            let reference = self.reference.borrow();
            let waiting = reference.ready_threads().next().is_some();
            if reference.is_over() || !waiting {
                return;
            }
            drop(reference);
            if self.shard.running().is_some() {
                let _ = self.event(Event::Exit);
            } else if self.arm.is_some() {
                self.run(u64::MAX);
            } else {
                break;
            }
        }
        let mut reference = self.reference.borrow_mut();
        let lost = reference.ready_threads().next().map(|(thread, _)| thread);
        if let Some(thread) = lost {
            let detail = format!("`{}` is ready, and nobody ever runs it", name(thread));
            reference.fail(Violation::new(Symptom::Lost, detail));
        }
    }
}

/// An event as people read it.
fn in_words(event: &Event) -> String {
    match event {
        Event::Tick => "nothing but time".to_owned(),
        Event::Complete => "the running thread completes its job".to_owned(),
        Event::Block { until: None } => "the running thread blocks".to_owned(),
        Event::Block { until: Some(until) } => {
            format!("the running thread blocks, at most until {}", until.ticks())
        }
        Event::Yield => "the running thread yields".to_owned(),
        Event::Protect => "the running thread begins a section".to_owned(),
        Event::Unprotect => "the running thread ends its section".to_owned(),
        Event::Exit => "the running thread ends".to_owned(),
        Event::Wake(thread) => format!("somebody wakes `{}`", name(*thread)),
        Event::Arrive { thread, .. } => format!("a job of `{}` arrives", name(*thread)),
        Event::Kill(thread) => format!("somebody ends `{}`", name(*thread)),
        Event::Create(constraint) => format!(
            "a thread is created: {}, priority {}, phase {}",
            class_in_words(constraint.class),
            constraint.priority.number(),
            constraint.phase.ticks()
        ),
        Event::Manage { .. } => "another policy of the same make takes its place".to_owned(),
        other => format!("{other:?}"),
    }
}

fn class_in_words(class: Class) -> String {
    match class {
        Class::Periodic { period, wcet, .. } => {
            format!("periodic, {} in {}", wcet.ticks(), period.ticks())
        }
        Class::Sporadic {
            min_separation,
            wcet,
            ..
        } => format!("sporadic, {} in {}", wcet.ticks(), min_separation.ticks()),
        Class::Reservation { period, slice } => {
            format!("a reservation, {} in {}", slice.ticks(), period.ticks())
        }
        Class::Once {
            size,
            relative_deadline,
        } => format!("once, {} in {}", size.ticks(), relative_deadline.ticks()),
        Class::Aperiodic => "aperiodic".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use punctual_policy::Fifo;

    use super::*;
    use crate::claims::Claims;

    #[test]
    fn a_history_goes_on_under_another_policy_of_the_same_make() {
        let constraint = |priority| Constraint {
            priority: Priority::new(priority),
            ..draw_constraint(&mut Dice::new(7), 10)
        };
        let (first, second) = (Step::Create(constraint(1)), Step::Create(constraint(2)));
        let steps = [
            first,
            second,
            Step::Run(300),
            Step::Swap,
            Step::Run(300),
            Step::Swap,
        ];
        let setup = Setup {
            claims: &Claims::default(),
            make: &|threads| Box::new(Fifo::new(threads)),
            threads: 4,
            ask_again: false,
            pick_always: false,
            record: false,
            live: None,
        };
        let reference = Reference::new(setup.claims, setup.threads, false);
        let reference = Rc::new(RefCell::new(reference));
        let mut executed = [false; 6];
        CoreLevel::execute(&steps, setup, &reference, &mut executed);
        assert!(executed[3] && executed[5], "{executed:?}");
        assert_eq!(reference.borrow().decides, 2);
        assert!(!reference.borrow().is_over());
    }
}
