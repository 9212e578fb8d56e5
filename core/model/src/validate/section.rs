//! Critical sections of each task by itself: their lengths, and how they nest.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Errors;
use crate::id::{ResourceId, TaskId};
use crate::readable::readable;
use crate::resource::Use;
use crate::system::{Fault, System};
use crate::task::Task;
use crate::time::{Ns, Work};

/// A section that begins while another is held.
pub(super) struct Nesting {
    pub(super) task: TaskId,
    /// Its place in `uses` of the task.
    pub(super) index: usize,
    pub(super) outer: ResourceId,
    pub(super) inner: ResourceId,
}

/// Checks the sections of every task, and returns those that are nested rightly. O(n · depth of
/// the nesting).
pub(super) fn check_all(system: &System, errors: &mut Errors) -> Vec<Nesting> {
    let mut nestings = Vec::new();
    for (id, task) in (0..=u32::MAX).map(TaskId).zip(&system.tasks) {
        if task.uses.is_empty() {
            continue;
        }
        if !task.class.runs_per_job() {
            errors.add(
                Fault::Task(id, "uses"),
                format!(
                    "task `{}`: resources of a task of class {}",
                    task.name,
                    task.class.name()
                ),
                "jobs lock resources: make it periodic or sporadic",
            );
        }
        Sections {
            system,
            id,
            task,
            open: Vec::new(),
            outer: Work::ZERO,
            nestings: &mut nestings,
            errors,
        }
        .check();
    }
    nestings
}

/// The sections of one task, walked in the order in which its jobs enter them.
struct Sections<'a> {
    system: &'a System,
    id: TaskId,
    task: &'a Task,
    /// Sections that have begun and not ended, outermost first.
    open: Vec<Open<'a>>,
    /// Length of the outermost sections so far.
    outer: Work<Ns>,
    nestings: &'a mut Vec<Nesting>,
    errors: &'a mut Errors,
}

/// A section that inner ones may still be inside of.
struct Open<'a> {
    section: &'a Use,
    /// Length of the sections directly inside of it, so far.
    inner: Work<Ns>,
}

impl<'a> Sections<'a> {
    fn check(mut self) {
        for (index, section) in self.task.uses.iter().enumerate() {
            self.check_section(index, section);
        }
    }

    fn add(&mut self, index: usize, problem: String, help: &str) {
        let message = format!("task `{}`: {problem}", self.task.name);
        self.errors.add(Fault::Use(self.id, index), message, help);
    }

    fn name(&self, section: &Use) -> &'a str {
        let resource = self.system.resources.get(section.resource.index());
        resource.map_or("?", |resource| resource.name.as_str())
    }

    fn check_section(&mut self, index: usize, section: &'a Use) {
        if section.resource.index() >= self.system.resources.len() {
            let problem = format!(
                "it uses resource number {}, which does not exist",
                section.resource.0
            );
            self.add(index, problem, "name a resource of the system");
            return;
        }
        let name = self.name(section);
        if section.length.is_zero() {
            self.add(
                index,
                format!("a section of 0s on `{name}`"),
                "say how long a job may hold it, with `for`",
            );
        }
        let placed = match section.inside {
            None => {
                self.open.clear();
                self.check_outer(index, section);
                true
            }
            Some(_) => self.check_inner(index, section, name),
        };
        if placed {
            self.open.push(Open {
                section,
                inner: Work::ZERO,
            });
        }
    }

    /// The outermost sections are parts of the job.
    fn check_outer(&mut self, index: usize, section: &Use) {
        let Some(budget) = self.task.class.budget() else {
            return;
        };
        let before = self.outer;
        self.outer = before.saturating_add(section.length);
        // Only the section that goes beyond is the mistake, not those after it.
        if self.outer > budget && before <= budget {
            let (sections, budget) = (self.outer.as_ns(), budget.as_ns());
            self.add(
                index,
                format!(
                    "critical sections of {} in jobs of {}",
                    readable(sections),
                    readable(budget)
                ),
                "they are parts of the job: shorten them, or raise the wcet",
            );
        }
    }

    /// Whether the section has its place inside an open one.
    fn check_inner(&mut self, index: usize, section: &'a Use, name: &str) -> bool {
        let is_outer = |open: &Open<'_>| section.inside == Some(open.section.resource);
        let Some(at) = self.open.iter().rposition(is_outer) else {
            self.add(
                index,
                format!("`{name}` is to be locked inside a section that is not open then"),
                "write it right behind the section that it is `inside` of",
            );
            return false;
        };
        self.open.truncate(at + 1);
        if let Some(open) = self
            .open
            .iter()
            .find(|open| open.section.resource == section.resource)
        {
            let name = self.name(open.section);
            self.add(
                index,
                format!("it locks `{name}` while it holds it"),
                "a job that holds a resource need not lock it again: remove the inner section",
            );
            return false;
        }
        let Some(outer) = self.open.last_mut() else {
            return false;
        };
        let (before, length) = (outer.inner, outer.section.length);
        outer.inner = before.saturating_add(section.length);
        let (inner, outer) = (outer.inner, outer.section);
        if inner > length && before <= length {
            let problem = format!(
                "sections of {} inside the {} of `{}`",
                readable(inner.as_ns()),
                readable(length.as_ns()),
                self.name(outer)
            );
            let help = "the length of a section includes the inner ones: raise its `for`";
            self.add(index, problem, help);
        }
        self.nestings.push(Nesting {
            task: self.id,
            index,
            outer: outer.resource,
            inner: section.resource,
        });
        true
    }
}
