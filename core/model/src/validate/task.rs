//! The parameters of one task: which values and combinations are meaningless.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;

use super::Errors;
use crate::arrival::Arrivals;
use crate::id::{SchedulerId, TaskId};
use crate::readable::readable;
use crate::system::{Fault, System};
use crate::task::{Class, IdleTime, Late, Task, WorkSource};
use crate::time::{Ns, Span, Work};

/// Checks every task of the system by itself (precedence is checked elsewhere).
pub(super) fn check_all(system: &System, errors: &mut Errors) {
    let mut names = BTreeSet::new();
    for (id, task) in (0..=u32::MAX).map(TaskId).zip(&system.tasks) {
        errors.check_name("task", &task.name, Fault::Task(id, "name"));
        let mut checker = Checker { id, task, errors };
        if !names.insert(task.name.as_str()) {
            checker.add(
                "name",
                "its name is taken by another task".into(),
                "rename one of them",
            );
        }
        if task.cpu.index() >= system.cpus.len() {
            let problem = format!("it is on CPU number {}, which does not exist", task.cpu.0);
            checker.add("on", problem, "name a CPU of the system");
        } else if let Some(scheduler) = task.scheduler {
            checker.check_scheduler(system, scheduler);
        }
        checker.check_class();
        checker.check_arrivals();
        checker.check_rules();
        checker.check_work();
        checker.check_thread();
    }
}

/// One task under examination.
struct Checker<'a> {
    id: TaskId,
    task: &'a Task,
    errors: &'a mut Errors,
}

impl Checker<'_> {
    fn add(&mut self, key: &'static str, problem: String, help: impl Into<String>) {
        let message = format!("task `{}`: {problem}", self.task.name);
        self.errors.add(Fault::Task(self.id, key), message, help);
    }

    fn check_scheduler(&mut self, system: &System, id: SchedulerId) {
        let problem = match system.schedulers.get(id.index()) {
            None => format!("it is on scheduler number {}, which does not exist", id.0),
            Some(scheduler) if scheduler.cpu != self.task.cpu => {
                format!("scheduler `{}` is on another CPU than it", scheduler.name)
            }
            Some(_) => return,
        };
        self.add("on", problem, "name a scheduler of its CPU");
    }

    fn check_class(&mut self) {
        match self.task.class {
            Class::Periodic {
                period,
                wcet,
                relative_deadline,
            } => {
                self.check_separation("period", period);
                let is_told = period.is_zero();
                self.check_budget(("wcet", wcet), ("deadline", relative_deadline), is_told);
            }
            Class::Sporadic {
                min_separation,
                wcet,
                relative_deadline,
            } => {
                self.check_separation("min-separation", min_separation);
                let is_told = min_separation.is_zero();
                self.check_budget(("wcet", wcet), ("deadline", relative_deadline), is_told);
            }
            Class::Reservation { period, slice } => {
                self.check_budget(("slice", slice), ("period", period), false);
            }
            Class::Once {
                size,
                relative_deadline,
            } => {
                self.check_budget(("size", size), ("deadline", relative_deadline), false);
            }
            Class::Aperiodic => {}
        }
    }

    fn check_separation(&mut self, key: &'static str, separation: Span<Ns>) {
        if separation.is_zero() {
            self.add(
                key,
                format!("a {key} of 0s"),
                "jobs need a distance above zero",
            );
        }
    }

    /// A budget above zero and at most the window in which it is promised. A deadline that is not
    /// written is the period: of one that is zero, that `is_told` already.
    fn check_budget(
        &mut self,
        (key, budget): (&'static str, Work<Ns>),
        (window_key, window): (&'static str, Span<Ns>),
        is_told: bool,
    ) {
        if budget.is_zero() {
            self.add(
                key,
                format!("a {key} of 0s"),
                "every job needs some processor time",
            );
        }
        if window.is_zero() && is_told {
            return;
        }
        if window.is_zero() {
            self.add(
                window_key,
                format!("a {window_key} of 0s"),
                "give it a length above zero",
            );
        } else if budget.as_span() > window {
            let (budget, window) = (readable(budget.as_ns()), readable(window.as_ns()));
            let problem = format!("its {key} {budget} is longer than its {window_key} {window}");
            let help =
                format!("lower the {key} to at most {window}, or allow a longer {window_key}");
            self.add(key, problem, help);
        }
    }

    fn check_arrivals(&mut self) {
        let Class::Sporadic { min_separation, .. } = self.task.class else {
            return;
        };
        match &self.task.arrivals {
            Arrivals::Every(span) if span.is_zero() => {
                self.add(
                    "arrivals",
                    "arrivals every 0s".into(),
                    "give them a distance above zero",
                );
            }
            Arrivals::Random { mean } if *mean < min_separation => {
                let (mean, least) = (readable(mean.as_ns()), readable(min_separation.as_ns()));
                self.add(
                    "arrivals",
                    format!("a mean distance of {mean} is below its min-separation {least}"),
                    format!("raise the mean to at least {least}"),
                );
            }
            Arrivals::At(instants) if !instants.is_sorted() => {
                self.add(
                    "arrivals",
                    "arrivals that go back in time".into(),
                    "list them in order",
                );
            }
            _ => {}
        }
    }

    fn check_rules(&mut self) {
        let task = self.task;
        if matches!(task.late, Late::Queue { backlog: 0 }) {
            self.add(
                "backlog",
                "a queue for 0 releases".into(),
                "say `late = \"skip\"` instead",
            );
        }
        if task.max_suspension.is_zero() && task.suspensions > 0 {
            self.add(
                "suspensions",
                format!("{} suspensions of no length", task.suspensions),
                "say how long they last in total with `max-suspension`",
            );
        }
        if !task.max_suspension.is_zero() && task.suspensions == 0 {
            self.add(
                "suspensions",
                format!(
                    "0 suspensions that last {}",
                    readable(task.max_suspension.as_ns())
                ),
                "a job that suspends itself does so at least once",
            );
        }
        if let Some(budget) = task.class.budget()
            && task.non_preemptive > budget
        {
            let (section, budget) = (task.non_preemptive.as_ns(), budget.as_ns());
            self.add(
                "non-preemptive",
                format!(
                    "a non-preemptive stretch of {} in jobs of {}",
                    readable(section),
                    readable(budget)
                ),
                "it is part of the job, so at most as long",
            );
        }
    }

    fn check_work(&mut self) {
        let unusable = |text: &str| text.is_empty() || text.contains('\0');
        match &self.task.work {
            Some(WorkSource::Burn(work)) if work.is_zero() => {
                self.add("work", "its jobs burn 0s".into(), "let them burn something");
            }
            Some(WorkSource::Call { symbol, library }) if unusable(symbol) || unusable(library) => {
                self.add(
                    "work",
                    "a call needs the names of a symbol and of a library".into(),
                    "write `{ call = \"symbol\", library = \"libx.so\" }`",
                );
            }
            Some(WorkSource::Command(words)) => self.check_command(words),
            Some(WorkSource::Function(name)) if name.is_empty() => {
                self.add(
                    "work",
                    "a function without a name".into(),
                    "name a registered function",
                );
            }
            _ => {}
        }
    }

    /// A kernel thread in place of a light one does not tell jobs apart, and a program needs none.
    fn check_thread(&mut self) {
        let task = self.task;
        let is_program = matches!(task.work, Some(WorkSource::Command(_)));
        if task.idle == IdleTime::Keep && !task.kernel_backed && !is_program {
            self.add(
                "idle",
                "idle time kept from a light thread, which has none".into(),
                "remove `idle`: it is for programs and kernel threads",
            );
        }
        if !task.kernel_backed {
            return;
        }
        if !matches!(task.class, Class::Reservation { .. } | Class::Aperiodic) {
            self.add(
                "thread",
                format!("a {} task on a kernel thread", task.class.name()),
                "user space sees none of its jobs end: make it a reservation, or aperiodic",
            );
        }
        if is_program {
            self.add(
                "thread",
                "a program on a kernel thread of this process".into(),
                "a program brings its own threads: remove `thread`",
            );
        }
    }

    /// A program does not tell jobs apart, so it cannot be the work of one.
    fn check_command(&mut self, words: &[String]) {
        let has_name = words.first().is_some_and(|name| !name.is_empty());
        if !has_name || words.iter().any(|word| word.contains('\0')) {
            self.add(
                "work",
                "a command needs the name of a program".into(),
                "write `{ command = [\"program\", \"argument\"] }`",
            );
        }
        if !matches!(
            self.task.class,
            Class::Reservation { .. } | Class::Aperiodic
        ) {
            self.add(
                "work",
                format!("a program as the work of a {} task", self.task.class.name()),
                "a program never ends a job: make it a reservation, or aperiodic",
            );
        }
    }
}
