//! Histories of calls: everything that the contract of a policy allows, in any order.
//!
//! One entry of the core charges first, then changes, then picks; time passes between entries
//! alone. A step whose condition does not hold does nothing, so that any subset of a history is a
//! history.

use std::cell::RefCell;
use std::rc::Rc;

use punctual_kern::{Attributes, Policy};
use punctual_model::{Instant, Priority, Span, ThreadId, Work};

use crate::dice::Dice;
use crate::level::{Level, Options, Setup, Steps};
use crate::reference::{Reference, name};
use crate::shrink::smaller;
use crate::symptom::{Symptom, Violation};
use crate::watched::Watched;

/// Orders of magnitude of the times in a history: a policy's own constants (a timeslice of 10 ms on
/// a timeline of nanoseconds) have to be met.
const MAGNITUDES: u64 = 8;
/// Idle stretches at the end of a history before somebody ready counts as lost.
const PATIENCE: u32 = 256;

/// Histories of calls.
pub(crate) struct SeamLevel;

/// One call, or time that passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// A thread comes to the place, in a new generation.
    Attach(u32),
    /// The thread of the place leaves; it is not ready.
    Detach(u32),
    /// The thread of the place becomes ready, for a job that was released `age` ago.
    Wake {
        place: u32,
        priority: u32,
        age: u64,
        due_in: u64,
    },
    /// A ready thread is so no longer.
    Block(u32),
    /// A ready thread is due later, and may have another priority.
    Update {
        place: u32,
        priority: Option<u32>,
        later: u64,
    },
    /// The running thread lets equals go first.
    Yield,
    /// Time passes and is charged, at most to the instant until which the pick holds.
    Run(u64),
    /// Time passes and is charged; the timer may come late.
    RunLate(u64),
    /// Time passes and is charged to nobody.
    Missing(u64),
    /// Who runs?
    Pick,
}

impl Steps for SeamLevel {
    const LEVEL: Level = Level::Seam;
    type Step = Step;

    fn draw(dice: &mut Dice, options: &Options) -> Vec<Step> {
        let places = u32::try_from(options.threads).unwrap_or(1);
        let magnitude = u32::try_from(dice.below(MAGNITUDES)).unwrap_or(0);
        let unit = 10_u64.pow(magnitude);
        let mut steps: Vec<Step> = (0..places).map(Step::Attach).collect();
        for _ in 0..options.steps {
            steps.push(draw_step(dice, places, unit));
        }
        steps
    }

    fn execute(
        steps: &[Step],
        setup: Setup<'_>,
        reference: &Rc<RefCell<Reference>>,
        executed: &mut [bool],
    ) {
        let mut driver = Driver {
            policy: Watched::new(|| (setup.make)(setup.threads), setup.ask_again, reference),
            reference: Rc::clone(reference),
            setup,
            now: Instant::ZERO,
            changed: true,
            generations: vec![0; setup.threads],
        };
        for (step, executed) in steps.iter().zip(executed) {
            *executed = driver.step(*step);
            if setup.pick_always {
                driver.settle();
            }
            if driver.reference.borrow().is_over() {
                return;
            }
        }
        driver.finish();
    }

    fn simpler(step: &Step) -> Vec<Step> {
        let mut simpler = Vec::new();
        match *step {
            Step::Wake {
                place,
                priority,
                age,
                due_in,
            } => {
                let wake = |priority, age, due_in| Step::Wake {
                    place,
                    priority,
                    age,
                    due_in,
                };
                simpler.extend(smaller(u64::from(priority)).map(|p| wake(low(p), age, due_in)));
                simpler.extend(smaller(age).map(|age| wake(priority, age, due_in)));
                simpler.extend(smaller(due_in).map(|due_in| wake(priority, age, due_in)));
            }
            Step::Update {
                place,
                priority,
                later,
            } => {
                let update = |priority, later| Step::Update {
                    place,
                    priority,
                    later,
                };
                simpler.extend(priority.map(|_| update(None, later)));
                simpler.extend(smaller(later).map(|later| update(priority, later)));
            }
            Step::Run(ticks) => simpler.extend(smaller(ticks).map(Step::Run)),
            Step::RunLate(ticks) => {
                simpler.push(Step::Run(ticks));
                simpler.extend(smaller(ticks).map(Step::RunLate));
            }
            Step::Missing(ticks) => simpler.extend(smaller(ticks).map(Step::Missing)),
            Step::Attach(_) | Step::Detach(_) | Step::Block(_) | Step::Yield | Step::Pick => {}
        }
        simpler
    }

    /// Places without gaps, in the order of their first use; with it or without, all priorities 0.
    fn tidied(steps: &[Step]) -> Vec<Vec<Step>> {
        let mut order: Vec<u32> = Vec::new();
        for place in steps.iter().filter_map(Step::place) {
            if !order.contains(&place) {
                order.push(place);
            }
        }
        let renamed = |steps: &[Step]| {
            let rename = |place: u32| order.iter().position(|old| *old == place).map_or(0, small);
            steps.iter().map(|step| step.at_place(rename)).collect()
        };
        let equal: Vec<Step> = steps.iter().map(|step| step.with_priority(0)).collect();
        vec![renamed(&equal), equal, renamed(steps)]
    }

    fn requeues(step: &Step) -> bool {
        matches!(
            step,
            Step::Update { .. } | Step::Yield | Step::Run(_) | Step::RunLate(_)
        )
    }
}

impl Step {
    /// The place that it is about.
    fn place(&self) -> Option<u32> {
        match *self {
            Step::Attach(place)
            | Step::Detach(place)
            | Step::Block(place)
            | Step::Wake { place, .. }
            | Step::Update { place, .. } => Some(place),
            Step::Yield | Step::Run(_) | Step::RunLate(_) | Step::Missing(_) | Step::Pick => None,
        }
    }

    fn at_place(&self, rename: impl Fn(u32) -> u32) -> Step {
        let mut step = *self;
        match &mut step {
            Step::Attach(place)
            | Step::Detach(place)
            | Step::Block(place)
            | Step::Wake { place, .. }
            | Step::Update { place, .. } => *place = rename(*place),
            Step::Yield | Step::Run(_) | Step::RunLate(_) | Step::Missing(_) | Step::Pick => {}
        }
        step
    }

    fn with_priority(&self, number: u32) -> Step {
        let mut step = *self;
        match &mut step {
            Step::Wake { priority, .. } => *priority = number,
            Step::Update { priority, .. } => *priority = priority.map(|_| number),
            _ => {}
        }
        step
    }
}

fn small(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

fn low(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

fn draw_step(dice: &mut Dice, places: u32, unit: u64) -> Step {
    let place = dice.small(places);
    let priority = dice.small(4);
    match dice.below(26) {
        0 => Step::Attach(place),
        1 => Step::Detach(place),
        2..=8 => Step::Wake {
            place,
            priority,
            age: unit * dice.below(4),
            due_in: unit * dice.below(30),
        },
        9..=12 => Step::Block(place),
        13 | 14 => Step::Update {
            place,
            priority: dice.once_in(2).then_some(priority),
            later: unit * dice.below(10),
        },
        15 => Step::Yield,
        16..=21 => Step::Run(1 + dice.below(20 * unit)),
        22 => Step::RunLate(1 + dice.below(20 * unit)),
        23 => Step::Missing(1 + dice.below(5 * unit)),
        _ => Step::Pick,
    }
}

/// Plays the core.
struct Driver<'a> {
    policy: Watched,
    reference: Rc<RefCell<Reference>>,
    setup: Setup<'a>,
    now: Instant,
    /// Something has changed since the last pick.
    changed: bool,
    /// Of each place's next thread.
    generations: Vec<u32>,
}

impl Driver<'_> {
    /// Takes one step; whether its condition held, or it has picked for it.
    fn step(&mut self, step: Step) -> bool {
        match step {
            Step::Attach(place) => self.attach(place),
            Step::Detach(place) => self.detach(place),
            Step::Wake {
                place,
                priority,
                age,
                due_in,
            } => self.wake(place, priority, age, due_in),
            Step::Block(place) => self.block(place),
            Step::Update {
                place,
                priority,
                later,
            } => self.update(place, priority, later),
            Step::Yield => self.yield_now(),
            Step::Run(ticks) => self.run(ticks, false),
            Step::RunLate(ticks) => self.run(ticks, true),
            Step::Missing(ticks) => self.miss(ticks),
            Step::Pick => {
                let _ = self.policy.pick(self.now);
                self.changed = false;
                true
            }
        }
    }

    fn thread(&self, place: u32) -> Option<ThreadId> {
        self.reference.borrow().places.get(place as usize)?.thread
    }

    fn is_ready(&self, thread: ThreadId) -> bool {
        self.reference.borrow().ready(thread).is_some()
    }

    fn attach(&mut self, place: u32) -> bool {
        if self.thread(place).is_some() {
            return false;
        }
        let Some(generation) = self.generations.get_mut(place as usize) else {
            return false;
        };
        let thread = ThreadId::new(place, *generation);
        *generation += 1;
        self.policy.attach(thread);
        true
    }

    fn detach(&mut self, place: u32) -> bool {
        match self.thread(place).filter(|thread| !self.is_ready(*thread)) {
            Some(thread) => {
                self.policy.detach(thread);
                true
            }
            None => false,
        }
    }

    fn wake(&mut self, place: u32, priority: u32, age: u64, due_in: u64) -> bool {
        let Some(thread) = self.thread(place).filter(|thread| !self.is_ready(*thread)) else {
            return false;
        };
        let release = self.now.saturating_sub(Span::from_ticks(age));
        let attributes = Attributes {
            priority: Priority::new(priority),
            absolute_deadline: release.saturating_add(Span::from_ticks(due_in)),
            release,
            order: place,
        };
        // Also where nobody is ready, as at an idle CPU.
        let is_due = self.settled().is_some() || self.is_idle();
        let in_one_step = is_due && self.policy.wake_to_run(thread, &attributes);
        if !in_one_step {
            self.policy.wake(thread, &attributes);
        }
        self.changed = true;
        true
    }

    /// The thread that has run since the last pick, if nothing has changed since then.
    fn settled(&self) -> Option<ThreadId> {
        match self.changed {
            true => None,
            false => self.reference.borrow().picked,
        }
    }

    /// Whether the policy was asked with nobody ready, and nothing has changed since.
    fn is_idle(&self) -> bool {
        !self.changed && self.reference.borrow().ready_threads().next().is_none()
    }

    fn block(&mut self, place: u32) -> bool {
        match self.thread(place).filter(|thread| self.is_ready(*thread)) {
            Some(thread) => {
                let runs = self.settled() == Some(thread);
                if !runs || self.policy.block_to_next(thread).is_none() {
                    self.policy.block(thread);
                }
                self.changed = true;
                true
            }
            None => false,
        }
    }

    fn update(&mut self, place: u32, priority: Option<u32>, later: u64) -> bool {
        let Some(thread) = self.thread(place) else {
            return false;
        };
        let known = self
            .reference
            .borrow()
            .ready(thread)
            .map(|ready| ready.attributes);
        let Some(mut attributes) = known else {
            return false;
        };
        attributes.priority = priority.map_or(attributes.priority, Priority::new);
        let due = attributes.absolute_deadline;
        attributes.absolute_deadline = due.saturating_add(Span::from_ticks(later));
        self.policy.update(thread, &attributes);
        self.changed = true;
        true
    }

    /// The thread that has run since the last pick. Nothing may have changed since then.
    fn running(&mut self) -> Option<ThreadId> {
        self.settle();
        self.reference.borrow().picked
    }

    /// Ends the entry: picks, if something has changed.
    fn settle(&mut self) {
        if self.changed {
            self.changed = false;
            let _ = self.policy.pick(self.now);
        }
    }

    fn yield_now(&mut self) -> bool {
        let picks = self.changed;
        match self.running() {
            Some(thread) => {
                if self.policy.yield_to_next(thread).is_none() {
                    self.policy.yield_now(thread);
                }
                self.changed = true;
                true
            }
            None => picks,
        }
    }

    fn run(&mut self, ticks: u64, late: bool) -> bool {
        let picks = self.changed;
        let running = self.running();
        let late = late && self.setup.claims.budget.is_none();
        let ticks = if late { ticks } else { ticks.min(self.room()) };
        if ticks == 0 {
            return picks;
        }
        self.now = self.now.saturating_add(Span::from_ticks(ticks));
        if let Some(thread) = running {
            self.policy.charge(thread, Work::from_ticks(ticks));
        } else {
            let now = self.now;
            self.reference
                .borrow_mut()
                .say(|| format!("idle until {}", now.ticks()));
        }
        self.changed = true;
        true
    }

    /// Time that passes uncharged. A claimed budget is measured by what is charged from the pick
    /// on, so there is none then.
    fn miss(&mut self, ticks: u64) -> bool {
        let picks = self.changed;
        let _ = self.running();
        let ticks = ticks.min(self.room());
        if ticks == 0 || self.setup.claims.budget.is_some() {
            return picks;
        }
        self.now = self.now.saturating_add(Span::from_ticks(ticks));
        let now = self.now;
        self.reference
            .borrow_mut()
            .say(|| format!("missing time until {}", now.ticks()));
        self.changed = true;
        true
    }

    /// Ticks to the instant until which the pick holds.
    fn room(&self) -> u64 {
        let until = self.reference.borrow().until;
        until.map_or(u64::MAX, |until| until.since(self.now).ticks())
    }

    /// Everybody who is ready executes a tick and leaves: nobody may be lost.
    fn finish(&mut self) {
        let mut idle = 0;
        loop {
            self.changed = true;
            let running = self.running();
            let reference = self.reference.borrow();
            let waiting = reference.ready_threads().next().map(|(thread, _)| thread);
            let Some(waiting) = waiting.filter(|_| !reference.is_over()) else {
                return;
            };
            drop(reference);
            if let Some(thread) = running {
                self.run(1, false);
                self.policy.block(thread);
                idle = 0;
                continue;
            }
            idle += 1;
            if idle > PATIENCE {
                let detail = format!("`{}` is ready, and nobody ever runs it", name(waiting));
                let lost = Violation::new(Symptom::Lost, detail);
                return self.reference.borrow_mut().fail(lost);
            }
            // Idling on purpose has an end; without one it was judged already.
            self.run(u64::MAX, false);
        }
    }
}
