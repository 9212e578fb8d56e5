//! Histories of a tree: the policy orders threads and a child scheduler that answers nonsense.
//!
//! The child decides on its own supply. Whatever it answers, it is charged for, and what everybody
//! else sees must not depend on it: the same system runs again with a child whose answers are
//! lawful, and the others must run at the very same instants.

use std::cell::RefCell;
use std::rc::Rc;

use punctual_kern::{
    Capacity, ChildPick, Constraint, Event, Grant, Next, NoSink, NodeId, NodeTerms, Shard, Tree,
};
use punctual_model::{
    Class, Instant, Late, OnOverrun, Priority, ServerKind, Span, ThreadId, Trust, Work,
};

use crate::dice::Dice;
use crate::level::{Level, Options, Setup, Steps};
use crate::reference::{Reference, name};
use crate::shrink::smaller;
use crate::symptom::{Symptom, Violation};
use crate::watched::Watched;

/// Threads of the child: one that is always ready, one that never is.
const CHILD_THREADS: usize = 2;
/// Entities beside the threads: the root, which nobody orders, and the child.
const NODES: usize = 2;
/// The place of the child among the entities: behind every thread.
const CHILD_ORDER: u32 = 100;
/// Decisions in one run, at most.
const MOST_ENTRIES: u32 = 4_096;
/// Ticks of one run, at most.
const HORIZON: Instant = Instant::from_ticks(1_000);

/// Histories of a tree.
pub(crate) struct TreeLevel;

/// A part of the system, or something that the child says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// The child: its budget in each period, and its urgency.
    Child {
        budget: u64,
        period: u64,
        priority: u32,
    },
    /// A periodic thread beside it.
    Thread {
        wcet: u64,
        period: u64,
        phase: u64,
        priority: u32,
    },
    /// After so many ticks of deciding, the child says this.
    Answer { after: u64, what: Nonsense },
}

/// An answer that nobody may believe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Nonsense {
    /// A thread that does not exist.
    Nobody,
    /// One of its own in another life.
    Stale,
    /// One of the threads beside it.
    Others,
    /// One of its own that is not ready.
    NotReady,
    /// A right choice, on a state of its threads that is gone.
    Late,
    /// In the name of the scheduler above it.
    Above,
}

impl Nonsense {
    fn in_words(self) -> &'static str {
        match self {
            Nonsense::Nobody => "which does not exist",
            Nonsense::Stale => "in an earlier life",
            Nonsense::Others => "which is not its own",
            Nonsense::NotReady => "which is not ready",
            Nonsense::Late => "on a state of its threads that is gone",
            Nonsense::Above => "in the name of the scheduler above it",
        }
    }
}

const ALL_NONSENSE: [Nonsense; 6] = [
    Nonsense::Nobody,
    Nonsense::Stale,
    Nonsense::Others,
    Nonsense::NotReady,
    Nonsense::Late,
    Nonsense::Above,
];

impl Steps for TreeLevel {
    const LEVEL: Level = Level::Tree;
    type Step = Step;

    fn places(threads: usize) -> usize {
        threads + CHILD_THREADS + NODES
    }

    fn draw(dice: &mut Dice, options: &Options) -> Vec<Step> {
        let period = 10 + dice.below(60);
        let mut steps = vec![Step::Child {
            budget: 1 + dice.below(period / 2),
            period,
            priority: dice.small(4),
        }];
        for _ in 0..1 + dice.below(u64::try_from(options.threads).unwrap_or(1)) {
            let period = 10 + dice.below(90);
            steps.push(Step::Thread {
                wcet: 1 + dice.below(period / 2),
                period,
                phase: dice.below(period),
                priority: dice.small(4),
            });
        }
        for _ in 0..options.steps {
            let what = ALL_NONSENSE.get(dice.small(6) as usize).copied();
            steps.push(Step::Answer {
                after: dice.below(6),
                what: what.unwrap_or(Nonsense::Nobody),
            });
        }
        steps
    }

    fn execute(
        steps: &[Step],
        setup: Setup<'_>,
        reference: &Rc<RefCell<Reference>>,
        executed: &mut [bool],
    ) {
        executed.fill(true);
        let places = TreeLevel::places(setup.threads);
        let calm_reference = Reference::new(setup.claims, places, setup.record);
        let calm_reference = Rc::new(RefCell::new(calm_reference));
        let Some(mut calm) = Driver::new(steps, setup, &calm_reference) else {
            return;
        };
        let expected = calm.run(None);
        if calm_reference.borrow().is_over() {
            drop(calm);
            reference.swap(&calm_reference);
            return;
        }
        if let Some(mut wild) = Driver::new(steps, setup, reference) {
            wild.run(Some(&expected));
        }
    }

    fn simpler(step: &Step) -> Vec<Step> {
        match *step {
            Step::Answer { after, what } => smaller(after)
                .map(|after| Step::Answer { after, what })
                .collect(),
            Step::Thread {
                wcet,
                period,
                phase,
                priority,
            } => smaller(phase)
                .map(|phase| Step::Thread {
                    wcet,
                    period,
                    phase,
                    priority,
                })
                .collect(),
            Step::Child { .. } => Vec::new(),
        }
    }

    fn tidied(_: &[Step]) -> Vec<Vec<Step>> {
        Vec::new()
    }

    fn requeues(_: &Step) -> bool {
        true
    }
}

/// Who runs from when; the child with all that it has is one.
type Lane = Vec<(Instant, Option<ThreadId>)>;

/// How the lane parts from the expected one with its last entry, in words.
fn difference(expected: &Lane, seen: &Lane) -> Option<String> {
    let at = seen.len().checked_sub(1)?;
    if expected.get(at) == seen.get(at) {
        return None;
    }
    let words = |lane: &Lane| match lane.get(at) {
        Some((at, Some(thread))) => format!("`{}` runs from {} on", name(*thread), at.ticks()),
        Some((at, None)) => format!("nobody runs from {} on", at.ticks()),
        None => "nothing changes any more".to_owned(),
    };
    Some(format!(
        "after these answers {}; after lawful ones {}",
        words(seen),
        words(expected)
    ))
}

/// Plays the platform, and the child.
struct Driver {
    shard: Shard<Watched>,
    reference: Rc<RefCell<Reference>>,
    child: NodeId,
    /// The child among the entities of the root.
    entity: ThreadId,
    always_ready: ThreadId,
    never_ready: ThreadId,
    /// Work of each thread's job, and what is left of its current one.
    jobs: Vec<(Work, Work)>,
    answers: Vec<(u64, Nonsense)>,
    lane: Lane,
}

impl Driver {
    /// `None`: the steps have no child, or nobody beside it.
    fn new(steps: &[Step], setup: Setup<'_>, reference: &Rc<RefCell<Reference>>) -> Option<Driver> {
        let mut capacity = Capacity::for_threads(setup.threads + CHILD_THREADS);
        capacity.nodes = 1;
        let entities = capacity.entities();
        let policy = Watched::new(|| (setup.make)(entities), setup.ask_again, reference);
        // The child decides by itself: its own policy is never asked.
        let unasked = Reference::new(setup.claims, entities, false);
        let unasked = Rc::new(RefCell::new(unasked));
        let unused = Watched::new(|| (setup.make)(entities), false, &unasked);
        let mut tree = Tree::new(capacity, policy);
        let terms = steps.iter().find_map(child_terms)?;
        let child = tree.add(NodeId::ROOT, unused, terms).ok()?;
        let mut shard = Shard::new(tree);
        let mut jobs = Vec::new();
        for (order, constraint) in (0..).zip(steps.iter().filter_map(constraint)) {
            let thread = shard.attach(Constraint {
                order,
                ..constraint
            });
            let budget = constraint.class.budget().unwrap_or_default();
            if thread.is_ok() && jobs.len() < setup.threads {
                jobs.push((budget, budget));
            }
        }
        if jobs.is_empty() {
            return None;
        }
        let always_ready = shard.attach_to(child, endless(Span::ZERO)).ok()?;
        let never = Span::from_ticks(2 * HORIZON.ticks());
        let never_ready = shard.attach_to(child, endless(never)).ok()?;
        let entity = capacity.entity_of(u16::try_from(child.index()).unwrap_or(0));
        let entity = ThreadId::new(entity, 0);
        reference.borrow_mut().say(|| {
            format!(
                "`{}` is a scheduler that decides on its own time",
                name(entity)
            )
        });
        Some(Driver {
            shard,
            reference: Rc::clone(reference),
            child,
            entity,
            always_ready,
            never_ready,
            jobs,
            answers: steps.iter().filter_map(answer).collect(),
            lane: Vec::new(),
        })
    }

    /// Runs to the horizon. Without an expectation the child is lawful, and chooses its ready
    /// thread at once; with one it answers nonsense, and the run ends where it differs.
    fn run(&mut self, expected: Option<&Lane>) -> Lane {
        let lawful = expected.is_none();
        let mut answers = std::mem::take(&mut self.answers).into_iter().peekable();
        let (mut now, mut event) = (Instant::ZERO, Event::Tick);
        for _ in 0..MOST_ENTRIES {
            let decision = self.shard.handle(now, event, &mut NoSink);
            if self.reference.borrow().is_over() {
                break;
            }
            let refused = decision.refused.is_some();
            if !lawful && matches!(event, Event::ChildPicked(_)) && !refused {
                self.fail("the core believed an answer that it must refuse".to_owned());
                break;
            }
            self.note(now, decision.next);
            let own = match decision.next {
                Next::Thread(thread) => self.jobs.get(thread.index()).map(|job| {
                    let end = now.saturating_add(job.1.as_span());
                    (end, Event::Complete)
                }),
                Next::RunChild(_) if lawful => Some((now, self.lawful())),
                Next::RunChild(_) => answers.peek().map(|(after, what)| {
                    let at = now.saturating_add(Span::from_ticks(*after));
                    (at, self.nonsense(*what))
                }),
                _ => None,
            };
            let armed = decision.arm.map(|at| (at, Event::Tick));
            // What the running one does comes first, should both come at once.
            let both = [own, armed].into_iter().flatten();
            let Some((at, next)) = both.min_by_key(|(at, _)| *at) else {
                break;
            };
            if at >= HORIZON {
                break;
            }
            if at > now
                && let Some(detail) = expected.and_then(|lane| difference(lane, &self.lane))
            {
                self.fail(detail);
                break;
            }
            let is_answer = matches!(next, Event::ChildPicked(_)) && !lawful;
            let said = is_answer.then(|| answers.next()).flatten();
            self.execute(decision.next, at.since(now), &next);
            self.say(at, &next, said.map(|(_, what)| what));
            (now, event) = (at, next);
        }
        std::mem::take(&mut self.lane)
    }

    fn fail(&self, detail: String) {
        let violation = Violation::new(Symptom::Uncontained, detail);
        self.reference.borrow_mut().fail(violation);
    }

    fn say(&self, at: Instant, event: &Event, said: Option<Nonsense>) {
        let mut reference = self.reference.borrow_mut();
        reference.indent = "";
        match event {
            Event::ChildPicked(pick) => reference.say(|| {
                let thread = pick.thread.map_or("nobody".to_owned(), name);
                let what = said.map_or("its ready thread", Nonsense::in_words);
                format!("at {}: the child answers `{thread}`, {what}", at.ticks())
            }),
            Event::Complete => {
                reference.say(|| format!("at {}: the running thread completes", at.ticks()));
            }
            _ => reference.say(|| format!("at {}: nothing but time", at.ticks())),
        }
        reference.indent = "  ";
    }

    /// Keeps who runs, once per change.
    fn note(&mut self, now: Instant, next: Next) {
        let who = match next {
            Next::Thread(thread) if thread == self.always_ready => Some(self.entity),
            Next::Thread(thread) => Some(thread),
            Next::RunChild(_) => Some(self.entity),
            _ => None,
        };
        match self.lane.last_mut() {
            Some((_, last)) if *last == who => {}
            // What was decided and taken back at the same instant never ran.
            Some((at, last)) if *at == now => *last = who,
            _ => self.lane.push((now, who)),
        }
        if let [.., (_, before), (_, last)] = self.lane.as_slice()
            && before == last
        {
            let _ = self.lane.pop();
        }
    }

    /// The running thread executes, and turns to its next job when it completes one.
    fn execute(&mut self, next: Next, span: Span, event: &Event) {
        let Next::Thread(thread) = next else { return };
        if let Some(job) = self.jobs.get_mut(thread.index()) {
            job.1 = job.1.saturating_sub(span.as_work());
            if *event == Event::Complete {
                job.1 = job.0;
            }
        }
    }

    fn lawful(&self) -> Event {
        self.answer(self.child, Some(self.always_ready), 0)
    }

    fn nonsense(&self, what: Nonsense) -> Event {
        let own = self.always_ready;
        let (child, thread, late) = match what {
            Nonsense::Nobody => (self.child, ThreadId::new(1_000, 0), 0),
            Nonsense::Stale => {
                let index = u32::try_from(own.index()).unwrap_or(0);
                (self.child, ThreadId::new(index, 9), 0)
            }
            Nonsense::Others => (self.child, ThreadId::new(0, 0), 0),
            Nonsense::NotReady => (self.child, self.never_ready, 0),
            Nonsense::Late => (self.child, own, 1),
            Nonsense::Above => (NodeId::ROOT, own, 0),
        };
        self.answer(child, Some(thread), late)
    }

    fn answer(&self, child: NodeId, thread: Option<ThreadId>, late: u32) -> Event {
        let epoch = self.shard.epoch(self.child).unwrap_or(0);
        Event::ChildPicked(ChildPick {
            child,
            epoch: epoch.wrapping_sub(late),
            thread,
            until: None,
        })
    }
}

fn child_terms(step: &Step) -> Option<NodeTerms> {
    let Step::Child {
        budget,
        period,
        priority,
    } = *step
    else {
        return None;
    };
    Some(NodeTerms {
        supply: Grant::Server(punctual_model::Server {
            kind: ServerKind::Deferrable,
            budget: Work::from_ticks(budget.max(1)),
            period: Span::from_ticks(period.max(1)),
        }),
        priority: Priority::new(priority),
        order: CHILD_ORDER,
        trust: Trust::OwnTime,
        quota: None,
        receiver: None,
    })
}

fn constraint(step: &Step) -> Option<Constraint> {
    let Step::Thread {
        wcet,
        period,
        phase,
        priority,
    } = *step
    else {
        return None;
    };
    let class = Class::Periodic {
        period: Span::from_ticks(period),
        wcet: Work::from_ticks(wcet),
        relative_deadline: Span::from_ticks(period),
    };
    Some(Constraint {
        class,
        priority: Priority::new(priority),
        ..endless(Span::from_ticks(phase))
    })
}

/// A job that outlasts every run, from `phase` on.
fn endless(phase: Span) -> Constraint {
    let forever = HORIZON.ticks() * 4;
    Constraint {
        class: Class::Once {
            size: Work::from_ticks(forever),
            relative_deadline: Span::from_ticks(forever),
        },
        priority: Priority::new(0),
        phase,
        late: Late::default(),
        on_overrun: OnOverrun::default(),
        order: u32::MAX,
        until: Instant::MAX,
        fed: false,
    }
}

fn answer(step: &Step) -> Option<(u64, Nonsense)> {
    match *step {
        Step::Answer { after, what } => Some((after, what)),
        _ => None,
    }
}
