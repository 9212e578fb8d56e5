//! What a job does with the processor: sections of work and waits, in order.

use punctual_kern::Event;
use punctual_model::{Class, Span, Task, TaskId, Work, WorkSource};

use crate::faults::Faults;

/// What the body of a thread does when its current section of work is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Then {
    Complete,
    Suspend(Span),
    Protect,
    Unprotect,
    Exit,
}

/// The program of one task: every job repeats it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Program {
    /// Work of a whole job; `None`: endless.
    work: Option<Work>,
    protected: Work,
    suspensions: u32,
    suspension: Span,
    crash_at: Option<u64>,
}

/// How far the current job of one thread is.
#[derive(Clone, Debug)]
pub(crate) struct Body {
    job: u64,
    step: u32,
    /// Work until `then`; `None`: for ever.
    pub(crate) left: Option<Work>,
    pub(crate) then: Then,
    /// What is left of the job after this section.
    rest: Work,
}

impl Program {
    pub(crate) fn new(id: TaskId, task: &Task, faults: &Faults) -> Program {
        let declared = match (&task.work, task.class) {
            (Some(WorkSource::Burn(work)), _) => Some(*work),
            (_, Class::Aperiodic | Class::Reservation { .. }) => None,
            (_, class) => class.budget(),
        };
        let overrun = faults.overruns.iter().find(|o| o.task == id);
        let work = declared.map(|work| match overrun {
            Some(o) => scale(work, o.per_mille),
            None => work,
        });
        let crash = faults.crashes.iter().find(|c| c.task == id);
        Program {
            work,
            protected: task.non_preemptive.min(work.unwrap_or(Work::ZERO)),
            suspensions: if task.max_suspension.is_zero() {
                0
            } else {
                task.suspensions.max(1)
            },
            suspension: task.max_suspension,
            crash_at: crash.map(|c| c.job),
        }
    }

    /// The body at the beginning of a job.
    pub(crate) fn begin(&self, job: u64) -> Body {
        let mut body = Body {
            job,
            step: 0,
            left: None,
            then: Then::Complete,
            rest: Work::ZERO,
        };
        let Some(work) = self.work else { return body };
        if self.crash_at == Some(job) {
            body.left = Some(Work::from_ticks(work.ticks() / 2));
            body.then = Then::Exit;
            return body;
        }
        body.rest = work;
        if self.protected.is_zero() {
            self.next_section(&mut body);
        } else {
            body.left = Some(Work::ZERO);
            body.then = Then::Protect;
        }
        body
    }

    /// Moves on to what follows `body.then`, and says which event that is for the core.
    pub(crate) fn act(&self, body: &mut Body, now: punctual_model::Instant) -> Event {
        match body.then {
            Then::Complete => Event::Complete,
            Then::Exit => Event::Exit,
            Then::Protect => {
                body.rest = body.rest.saturating_sub(self.protected);
                body.left = Some(self.protected);
                body.then = Then::Unprotect;
                Event::Protect
            }
            // A section that ends the job ends with it: nothing comes between.
            Then::Unprotect if body.rest.is_zero() => {
                body.then = Then::Complete;
                Event::Complete
            }
            Then::Unprotect => {
                self.next_section(body);
                Event::Unprotect
            }
            Then::Suspend(span) => {
                self.next_section(body);
                Event::Block {
                    until: Some(now.saturating_add(span)),
                }
            }
        }
    }

    /// Cuts the rest of the job into equal sections with a suspension between each two.
    fn next_section(&self, body: &mut Body) {
        let sections = u64::from(self.suspensions - body.step.min(self.suspensions)) + 1;
        let part = Work::from_ticks(body.rest.ticks() / sections);
        if sections == 1 || body.rest.is_zero() {
            body.left = Some(body.rest);
            body.then = Then::Complete;
            return;
        }
        let share = self.suspension.ticks() / u64::from(self.suspensions);
        let first = self.suspension.ticks() % u64::from(self.suspensions);
        let extra = if body.step == 0 { first } else { 0 };
        body.left = Some(part);
        body.rest = body.rest.saturating_sub(part);
        body.then = Then::Suspend(Span::from_ticks(share + extra));
        body.step += 1;
    }
}

impl Body {
    pub(crate) fn job(&self) -> u64 {
        self.job
    }
}

fn scale(work: Work, per_mille: u32) -> Work {
    let scaled = u128::from(work.ticks()) * u128::from(per_mille) / 1_000;
    Work::from_ticks(u64::try_from(scaled).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::{Crash, Overrun};
    use punctual_model::{CpuId, Instant};

    fn task() -> Task {
        let class = Class::Periodic {
            period: Span::from_ticks(100),
            wcet: Work::from_ticks(10),
            relative_deadline: Span::from_ticks(100),
        };
        Task::new("t", CpuId(0), class)
    }

    fn sections(task: &Task, faults: &Faults) -> Vec<(Option<u64>, Event)> {
        let program = Program::new(TaskId(0), task, faults);
        let mut body = program.begin(0);
        let mut list = Vec::new();
        loop {
            let left = body.left.map(Work::ticks);
            let event = program.act(&mut body, Instant::ZERO);
            list.push((left, event));
            if left.is_none() || matches!(event, Event::Complete | Event::Exit) {
                return list;
            }
        }
    }

    #[test]
    fn a_job_is_cut_into_sections_that_add_up() {
        let mut t = task();
        t.max_suspension = Span::from_ticks(7);
        t.suspensions = 2;
        t.non_preemptive = Work::from_ticks(1);
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
