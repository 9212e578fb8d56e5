//! What a job does with the processor: work, waits and locks, in order.
//!
//! A job locks its resources one after the other, in the order of the file; the ordinary work is
//! spread equally before, between and after these sections, and the waits within it.

use punctual_kern::Event;
use punctual_model::{Class, Instant, Span, Task, TaskId, Work, WorkSource};
use punctual_tables::CpuTables;

use crate::RATE;
use crate::body::{Act, Body, Nudges, Step};
use crate::faults::Faults;
use crate::locks::lock_steps;

/// The body of a declared task: every job repeats its program.
pub(crate) struct Declared {
    program: Program,
    progress: Progress,
}

/// The program of one task.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Program {
    /// Work of a whole job; `None`: endless.
    work: Option<Work>,
    protected: Work,
    suspensions: u32,
    suspension: Span,
    crash_at: Option<u64>,
    /// The sections with locks, step by step; ordinary work comes before each outer lock.
    locks: Vec<Step>,
    /// How many outer locks there are, and their work.
    sections: (u64, Work),
    /// Its jobs work for their budget, which changes, at this rate.
    follows: Option<u32>,
    /// No other work is declared.
    works_for_budget: bool,
    /// As declared.
    longest_protected: Work,
}

/// What a job of a task does, in order: work, and what it asks of the core then, up to its
/// completion; the instant until which it waits counts from the wait. `None`: it never ends. For
/// platforms that execute declared work for real, so that it is the same there and here.
pub fn script(id: TaskId, task: &Task, tables: &CpuTables) -> Option<Vec<(Work, Event)>> {
    let mut body = Declared::new(id, task, tables, &Faults::default());
    body.begin(0, None);
    let mut steps = Vec::new();
    loop {
        let step = body.next(Instant::ZERO, &mut Nudges::default());
        steps.push((step.work?, step.act.event(Instant::ZERO)?));
        if step.act == Act::Complete {
            return Some(steps);
        }
    }
}

/// How far the current job is.
#[derive(Clone, Debug)]
struct Progress {
    /// Waits that have been.
    waits: u32,
    /// The last step that was asked for; before that the first one.
    step: Step,
    has_begun: bool,
    /// Ordinary work that is left of the job after this stretch of it.
    rest: Work,
    /// What is left of this stretch, which ends with the next outer lock or with the job.
    stretch: Work,
    /// Stretches that have begun.
    stretches: u64,
    /// The next step with locks, and how many are held.
    next_lock: usize,
    held: u32,
    /// Work until the body crashes.
    crash_in: Option<Work>,
    /// Work until the protected stretch ends that other steps lie in, and the step that goes on
    /// then.
    unprotect_in: Option<Work>,
    after: Option<Step>,
}

impl Program {
    fn new(id: TaskId, task: &Task, tables: &CpuTables, faults: &Faults) -> Program {
        let declared = match (&task.work, task.class) {
            (Some(WorkSource::Burn(work)), _) => Some(*work),
            (_, Class::Aperiodic | Class::Reservation { .. }) => None,
            (_, class) => class.budget(),
        };
        let declared = declared.map(|work| work.ticks_up(RATE));
        let per_mille = faults.per_mille(id);
        let work = declared.map(|work| scale(work, per_mille));
        let crash = faults.crashes.iter().find(|c| c.task == id);
        let whole = work.unwrap_or(Work::ZERO);
        // A job that takes less does so in its sections too; one that takes more does so outside.
        let shorter = per_mille.min(1_000);
        let number = |resource| tables.resources.iter().position(|r| r.resource == resource);
        let (locks, sections) = lock_steps(
            &task.uses,
            |length| scale(length, shorter),
            |resource| number(resource).and_then(|n| u32::try_from(n).ok()),
            whole,
        );
        let protected = task.non_preemptive.ticks_up(RATE).min(whole);
        Program {
            work,
            locks,
            sections,
            protected,
            suspensions: if task.max_suspension.is_zero() {
                0
            } else {
                task.suspensions.max(1)
            },
            suspension: task.max_suspension.ticks_up(RATE),
            crash_at: crash.map(|c| c.job),
            follows: None,
            works_for_budget: task.class.runs_per_job()
                && !matches!(task.work, Some(WorkSource::Burn(_))),
            longest_protected: task.non_preemptive.ticks_up(RATE),
        }
    }

    /// The budget of the job that begins.
    fn follow(&mut self, budget: Option<Work>) {
        if let (Some(per_mille), Some(budget)) = (self.follows, budget) {
            let work = scale(budget, per_mille);
            self.work = Some(work);
            self.protected = self.longest_protected.min(work);
        }
    }

    /// Whether a job is work and nothing else.
    #[inline]
    fn is_one_step(&self, job: u64) -> bool {
        self.locks.is_empty()
            && self.suspensions == 0
            && self.protected.is_zero()
            && self.crash_at != Some(job)
    }

    /// How far a job is at its beginning.
    fn begin(&self, job: u64) -> Progress {
        let mut progress = Progress {
            waits: 0,
            step: step(None, Act::Complete),
            has_begun: false,
            rest: Work::ZERO,
            stretch: Work::ZERO,
            stretches: 0,
            next_lock: 0,
            held: 0,
            crash_in: None,
            unprotect_in: None,
            after: None,
        };
        let Some(work) = self.work else {
            return progress;
        };
        if self.crash_at == Some(job) {
            let half = Work::from_ticks(work.ticks() / 2);
            if self.locks.is_empty() {
                progress.step = step(Some(half), Act::Exit);
                return progress;
            }
            progress.crash_in = Some(half);
        }
        let (_, in_sections) = self.sections;
        progress.rest = work.saturating_sub(in_sections);
        if !self.overlaps() {
            progress.rest = progress.rest.saturating_sub(self.protected);
        }
        if self.protected.is_zero() {
            self.next_stretch(&mut progress);
        } else {
            progress.step = step(Some(Work::ZERO), Act::Protect);
        }
        progress
    }

    /// Moves on to what follows the act of the step before.
    fn move_on(&self, progress: &mut Progress) {
        match progress.step.act {
            Act::Protect => {
                if self.overlaps() {
                    progress.unprotect_in = Some(self.protected);
                    self.next_stretch(progress);
                } else {
                    progress.go_on(step(Some(self.protected), Act::Unprotect));
                }
            }
            Act::Unprotect => match progress.after.take() {
                Some(step) => progress.go_on(step),
                None => self.next_stretch(progress),
            },
            Act::Lock(..) => {
                progress.held += 1;
                self.next_locked_step(progress);
            }
            Act::Unlock(_) => {
                progress.held -= 1;
                if progress.held == 0 {
                    self.next_stretch(progress);
                } else {
                    self.next_locked_step(progress);
                }
            }
            Act::Suspend(_) => self.next_part(progress),
            Act::Complete | Act::Exit | Act::Yield | Act::Continue | Act::Poll => {}
        }
    }

    /// Whether the protected stretch and the sections must have work in common to fit into a job.
    fn overlaps(&self) -> bool {
        let both = self.protected.saturating_add(self.sections.1);
        self.work.is_some_and(|work| both > work)
    }

    /// Whether nothing but unlocks is left.
    fn is_done(&self, progress: &Progress) -> bool {
        let left = self.locks.get(progress.next_lock..).unwrap_or_default();
        let is_nothing = |step: &Step| {
            step.work.is_some_and(Work::is_zero) && matches!(step.act, Act::Unlock(_))
        };
        progress.rest.is_zero() && progress.after.is_none() && left.iter().all(is_nothing)
    }

    /// The step after a lock or an inner unlock.
    fn next_locked_step(&self, progress: &mut Progress) {
        let next = self.locks.get(progress.next_lock).copied();
        progress.next_lock += 1;
        progress.go_on(next.unwrap_or(step(Some(Work::ZERO), Act::Complete)));
    }

    /// Cuts the ordinary work into equal stretches, one before each outer lock and one at the end.
    fn next_stretch(&self, progress: &mut Progress) {
        let (sections, _) = self.sections;
        let stretches = (sections + 1).saturating_sub(progress.stretches).max(1);
        progress.stretch = Work::from_ticks(progress.rest.ticks() / stretches);
        progress.rest = progress.rest.saturating_sub(progress.stretch);
        progress.stretches += 1;
        self.next_part(progress);
    }

    /// Cuts the rest of the stretch into equal parts with a suspension between each two.
    fn next_part(&self, progress: &mut Progress) {
        let (sections, _) = self.sections;
        let due = u64::from(self.suspensions) * progress.stretches / (sections + 1);
        let parts = due.saturating_sub(u64::from(progress.waits)) + 1;
        let part = Work::from_ticks(progress.stretch.ticks() / parts);
        if parts == 1 || progress.stretch.is_zero() {
            let lock = self.locks.get(progress.next_lock);
            let act = lock.map_or(Act::Complete, |step| step.act);
            progress.next_lock += 1;
            return progress.go_on(step(Some(progress.stretch), act));
        }
        let share = self.suspension.ticks() / u64::from(self.suspensions);
        let first = self.suspension.ticks() % u64::from(self.suspensions);
        let extra = if progress.waits == 0 { first } else { 0 };
        progress.stretch = progress.stretch.saturating_sub(part);
        progress.waits += 1;
        let wait = Span::from_ticks(share + extra);
        progress.go_on(step(Some(part), Act::Suspend(Some(wait))));
    }
}

impl Progress {
    /// Works on to the next step, or to the crash that comes before it.
    fn go_on(&mut self, Step { work, mut act }: Step) {
        let mut work = work.unwrap_or(Work::ZERO);
        match self.unprotect_in {
            Some(left) if left < work => {
                self.after = Some(step(Some(work.saturating_sub(left)), act));
                (work, act) = (left, Act::Unprotect);
                self.unprotect_in = None;
            }
            left => self.unprotect_in = left.map(|left| left.saturating_sub(work)),
        }
        match self.crash_in {
            Some(crash_in) if crash_in <= work => self.step = step(Some(crash_in), Act::Exit),
            crash_in => {
                self.crash_in = crash_in.map(|left| left.saturating_sub(work));
                self.step = step(Some(work), act);
            }
        }
    }
}

impl Declared {
    pub(crate) fn new(id: TaskId, task: &Task, tables: &CpuTables, faults: &Faults) -> Declared {
        let program = Program::new(id, task, tables, faults);
        let progress = program.begin(0);
        Declared { program, progress }
    }

    /// A job begins that is one step, whatever its budget: that step.
    #[inline]
    pub(crate) fn begin_plainly(&mut self, job: u64) -> Option<Step> {
        if self.follows() || !self.program.is_one_step(job) {
            return None;
        }
        // Behind the step that ends its job it is asked for nothing more.
        self.progress.has_begun = true;
        self.progress.step = step(self.program.work, Act::Complete);
        Some(self.progress.step)
    }

    /// Whether its jobs work for the budget that they have.
    #[inline]
    pub(crate) fn follows(&self) -> bool {
        self.program.follows.is_some()
    }

    /// The same, whose jobs work for the budget that they have then, unless their work is declared.
    pub(crate) fn following(mut self, per_mille: u32) -> Declared {
        self.program.follows = self.program.works_for_budget.then_some(per_mille);
        self
    }
}

impl Body for Declared {
    #[inline]
    fn begin(&mut self, job: u64, budget: Option<Work>) {
        self.program.follow(budget);
        self.progress = self.program.begin(job);
    }

    #[inline]
    fn next(&mut self, _: Instant, _: &mut Nudges) -> Step {
        let Declared { program, progress } = self;
        if progress.has_begun {
            program.move_on(progress);
        }
        progress.has_begun = true;
        let Step { work, act } = progress.step;
        // A section that ends the job ends with it: nothing comes between.
        if matches!(act, Act::Unprotect | Act::Unlock(_)) && program.is_done(progress) {
            return step(work, Act::Complete);
        }
        progress.step
    }
}

const fn step(work: Option<Work>, act: Act) -> Step {
    Step { work, act }
}

fn scale(work: Work, per_mille: u32) -> Work {
    let scaled = u128::from(work.ticks()) * u128::from(per_mille) / 1_000;
    Work::from_ticks(u64::try_from(scaled).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::{Crash, Overrun};
    use punctual_model::Mode;
    use punctual_model::{CpuId, ResourceId};

    fn task() -> Task {
        let class = Class::Periodic {
            period: Span::from_ns(100),
            wcet: Work::from_ns(10),
            relative_deadline: Span::from_ns(100),
        };
        Task::new("t", CpuId(0), class)
    }

    fn tables(task: &Task) -> CpuTables {
        let resource = |name: &str| punctual_model::Resource {
            name: name.into(),
            protocol: punctual_model::Protocol::default(),
            at_budget_end: punctual_model::AtBudgetEnd::default(),
        };
        let cpu = punctual_model::Cpu {
            name: "0".into(),
            host: None,
            policy: punctual_model::PolicyKind::Fifo,
        };
        let system = punctual_model::System {
            cpus: vec![cpu],
            resources: ["a", "b", "c"].map(resource).into(),
            tasks: vec![task.clone()],
            ..punctual_model::System::default()
        };
        let tables = punctual_tables::Tables::new(&system, punctual_model::Frequency::NANOSECONDS);
        tables.cpus.into_iter().next().expect("one CPU")
    }

    fn sections(task: &Task, faults: &Faults) -> Vec<(Option<u64>, Event)> {
        let mut body = Declared::new(TaskId(0), task, &tables(task), faults);
        body.begin(0, None);
        let mut list = Vec::new();
        loop {
            let step = body.next(Instant::ZERO, &mut Nudges::default());
            let left = step.work.map(Work::ticks);
            list.push((left, step.act.event(Instant::ZERO).expect("an act")));
            if left.is_none() || step.act.ends_job() {
                return list;
            }
        }
    }

    #[test]
    fn a_job_is_cut_into_sections_that_add_up() {
        let mut t = task();
        t.max_suspension = Span::from_ns(7);
        t.suspensions = 2;
        t.non_preemptive = Work::from_ns(1);
        let wait = |n| Event::Block {
            until: Some(Instant::from_ticks(n)),
        };
        let expected = [
            (Some(0), Event::Protect),
            (Some(1), Event::Unprotect),
            (Some(3), wait(4)),
            (Some(3), wait(3)),
            (Some(3), Event::Complete),
        ];
        assert_eq!(sections(&t, &Faults::default()), expected);
    }

    fn a_use(resource: u16, length: u64, inside: Option<u16>) -> punctual_model::Use {
        punctual_model::Use {
            resource: ResourceId(resource),
            length: Work::from_ns(length),
            mode: Mode::Exclusive,
            inside: inside.map(ResourceId),
        }
    }

    fn lock(resource: u32) -> Event {
        Event::Lock {
            resource,
            mode: Mode::Exclusive,
            until: None,
        }
    }

    #[test]
    fn ordinary_work_is_spread_around_the_sections_and_inner_ones_begin_at_once() {
        let mut t = task();
        t.uses = vec![a_use(0, 3, None), a_use(1, 2, Some(0)), a_use(2, 1, None)];
        let expected = [
            (Some(2), lock(0)),
            (Some(0), lock(1)),
            (Some(2), Event::Unlock { resource: 1 }),
            (Some(1), Event::Unlock { resource: 0 }),
            (Some(2), lock(2)),
            (Some(1), Event::Unlock { resource: 2 }),
            (Some(2), Event::Complete),
        ];
        assert_eq!(sections(&t, &Faults::default()), expected);
    }

    #[test]
    fn a_protected_stretch_that_leaves_no_room_for_the_sections_has_them_in_it() {
        let mut t = task();
        t.non_preemptive = Work::from_ns(8);
        t.uses = vec![a_use(0, 4, None)];
        let expected = [
            (Some(0), Event::Protect),
            (Some(3), lock(0)),
            (Some(4), Event::Unlock { resource: 0 }),
            (Some(1), Event::Unprotect),
            (Some(2), Event::Complete),
        ];
        assert_eq!(sections(&t, &Faults::default()), expected);
        t.non_preemptive = Work::from_ns(10);
        let expected = [
            (Some(0), Event::Protect),
            (Some(3), lock(0)),
            (Some(4), Event::Unlock { resource: 0 }),
            (Some(3), Event::Complete),
        ];
        assert_eq!(sections(&t, &Faults::default()), expected);
    }

    #[test]
    fn waits_are_spread_over_the_ordinary_work() {
        let mut t = task();
        t.uses = vec![a_use(0, 2, None)];
        t.max_suspension = Span::from_ns(4);
        t.suspensions = 2;
        let wait = Event::Block {
            until: Some(Instant::from_ticks(2)),
        };
        let expected = [
            (Some(2), wait),
            (Some(2), lock(0)),
            (Some(2), Event::Unlock { resource: 0 }),
            (Some(2), wait),
            (Some(2), Event::Complete),
        ];
        assert_eq!(sections(&t, &Faults::default()), expected);
    }

    #[test]
    fn a_job_that_takes_less_is_shorter_in_its_sections_too_and_a_crash_may_hold_a_lock() {
        let mut t = task();
        t.uses = vec![a_use(0, 8, None)];
        let overruns = vec![Overrun {
            task: TaskId(0),
            per_mille: 500,
        }];
        let faults = Faults {
            overruns,
            ..Faults::default()
        };
        let expected = [
            (Some(0), lock(0)),
            (Some(4), Event::Unlock { resource: 0 }),
            (Some(1), Event::Complete),
        ];
        assert_eq!(sections(&t, &faults), expected);
        let crashes = vec![Crash {
            task: TaskId(0),
            job: 0,
        }];
        let faults = Faults {
            crashes,
            ..Faults::default()
        };
        let expected = [(Some(1), lock(0)), (Some(4), Event::Exit)];
        assert_eq!(sections(&t, &faults), expected);
    }

    #[test]
    fn faults_lengthen_and_end_jobs() {
        let overruns = vec![Overrun {
            task: TaskId(0),
            per_mille: 1_500,
        }];
        let faults = Faults {
            overruns,
            ..Faults::default()
        };
        assert_eq!(sections(&task(), &faults), [(Some(15), Event::Complete)]);
        let crashes = vec![Crash {
            task: TaskId(0),
            job: 0,
        }];
        let faults = Faults {
            crashes,
            ..Faults::default()
        };
        assert_eq!(sections(&task(), &faults), [(Some(5), Event::Exit)]);
    }
}
