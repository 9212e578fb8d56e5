//! Slices of a scheduler's supply: delegated and taken back in a change.
//!
//! A task is in the care of a scheduler, and executes on the slice that is in the hands of that
//! scheduler for it, if there is one; else on the scheduler's own supply. So the place of every
//! task follows from its home and from the slices that are there.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{Stage, mistake};
use crate::change::{Change, Mistake, Step, Subject};
use crate::id::{SchedulerId, TaskId};
use crate::scheduler::{PolicyKind, Receiver, Scheduler, Supply};
use crate::validate::share;

impl Stage<'_> {
    pub(super) fn receiver(&self, id: SchedulerId) -> Option<&Receiver> {
        let scheduler = self.declared.schedulers.get(id.index())?;
        scheduler.receiver.as_ref()
    }

    /// The scheduler that has in its care what is at home here: of a slice, its receiver.
    /// O(schedulers).
    pub fn care(&self, home: Option<SchedulerId>) -> Option<SchedulerId> {
        match home.and_then(|id| self.receiver(id)) {
            Some(receiver) => {
                let name = receiver.scheduler.as_deref()?;
                self.declared.scheduler_named(name)
            }
            None => home,
        }
    }

    /// The place of a task, also while it is not there: a slice that is there, or the scheduler
    /// that has it in its care. O(schedulers²).
    pub fn place(&self, id: TaskId) -> Option<SchedulerId> {
        let home = self.homes.get(id.index()).copied().flatten();
        let task = self.declared.tasks.get(id.index())?;
        let mut slices = self.slices();
        let slice = slices.find(|(slice, s, receiver)| {
            let only = receiver.task.as_ref();
            s.cpu == task.cpu
                && only.is_none_or(|name| *name == task.name)
                && self.care(Some(*slice)) == home
        });
        slice.map(|(slice, ..)| slice).or(home)
    }

    /// The slices that are there.
    fn slices(&self) -> impl Iterator<Item = (SchedulerId, &Scheduler, &Receiver)> {
        let slices = (0..).map(SchedulerId).zip(&self.schedulers);
        slices.filter_map(|(id, s)| {
            let slice = s.as_ref()?;
            Some((id, slice, slice.receiver.as_ref()?))
        })
    }

    /// The place of each task. O(tasks · schedulers²).
    pub(super) fn places(&self) -> Vec<Option<SchedulerId>> {
        let ids = (0..).map(TaskId).take(self.declared.tasks.len());
        ids.map(|id| self.place(id)).collect()
    }

    pub(super) fn is_no_slice(&self, id: SchedulerId, name: &str) -> Result<(), (String, String)> {
        match self.receiver(id) {
            Some(_) => mistake(
                format!("{name} keeps the terms on which it was delegated"),
                "take it back, and delegate another one in a later change",
            ),
            None => Ok(()),
        }
    }

    /// Whether a scheduler that comes is none, or a slice for which there is a receiver without
    /// another.
    pub(super) fn may_delegate(&self, id: SchedulerId, name: &str) -> Result<(), (String, String)> {
        let Some(receiver) = self.receiver(id) else {
            return Ok(());
        };
        let holder = self.care(Some(id));
        if let Some(holder) = holder.filter(|holder| self.scheduler(*holder).is_none()) {
            let holder = self.name(Subject::Scheduler(holder));
            return mistake(
                format!("{name} goes into the hands of {holder}, which is not there at that time"),
                "start the receiver in the same change, or in an earlier one",
            );
        }
        let cpu = self.declared.schedulers[id.index()].cpu;
        let second = self.slices().find(|(other, slice, theirs)| {
            let same = match (&theirs.task, &receiver.task) {
                (Some(one), Some(other)) => one == other,
                _ => true,
            };
            slice.cpu == cpu && self.care(Some(*other)) == holder && same
        });
        match second {
            Some((_, other, _)) => mistake(
                format!(
                    "tasks would execute on {name} and on slice `{}` together",
                    other.name
                ),
                "each task executes on one: take the other back in the same change",
            ),
            None => Ok(()),
        }
    }

    /// Whether slices let a task into the care of another scheduler.
    pub(super) fn may_move(
        &self,
        id: TaskId,
        to: Option<SchedulerId>,
        name: &str,
    ) -> Result<(), (String, String)> {
        if to.is_some_and(|to| self.receiver(to).is_some()) {
            return mistake(
                format!("{name} would move to a slice, which no scheduler stands at"),
                "move it into the care of the receiver, or delegate to the task",
            );
        }
        let alone = self
            .place(id)
            .and_then(|place| self.receiver(place)?.task.clone());
        match alone {
            Some(_) => mistake(
                format!("{name} leaves the scheduler that holds a slice for it alone"),
                "take the slice back in the same change, or in an earlier one",
            ),
            None => Ok(()),
        }
    }

    /// Puts every task in its place, now that all parts of a change are done. `before` has the
    /// places of before.
    pub(super) fn bind(
        &mut self,
        change: &Change,
        before: &[Option<SchedulerId>],
    ) -> Option<Mistake> {
        let places = self.places();
        for (task, place) in self.tasks.iter_mut().zip(&places) {
            if let Some(task) = task {
                task.scheduler = *place;
            }
        }
        let about_slices = |step: &Step| match *step {
            Step::Join(id) | Step::Leave(id) => self.receiver(id).is_some(),
            _ => false,
        };
        let step = change.steps.iter().position(about_slices)?;
        let ids = (0..).map(TaskId).zip(before.iter().zip(&places));
        let mut moved = ids.filter(|(_, (before, after))| before != after);
        let (message, help) = moved.find_map(|(id, _)| self.is_bindable(id).err())?;
        Some(Mistake {
            step,
            message,
            help,
        })
    }

    fn is_bindable(&self, id: TaskId) -> Result<(), (String, String)> {
        self.is_untied(id)?;
        let cpu = self.declared.tasks[id.index()].cpu;
        let policy = match self.homes[id.index()] {
            Some(home) => self.scheduler(home).map(|s| s.policy),
            None => self.cpus.get(cpu.index()).map(|c| c.policy),
        };
        let name = self.name(Subject::Task(id));
        match policy {
            Some(PolicyKind::Tdm { .. }) => mistake(
                format!("{name} has slots in a table, which is constant"),
                "delegate to tasks of schedulers that do not divide time",
            ),
            _ => Ok(()),
        }
    }

    /// A giver whose slices of before and after a change are more than it has. The share of a slice
    /// that is taken back counts on, and the core is asked before the first part of a change.
    pub(super) fn too_much(
        &self,
        change: &Change,
        before: &[Option<Scheduler>],
    ) -> Option<Mistake> {
        let about = |step: &Step, giver: SchedulerId| match *step {
            Step::Join(slice) => {
                let slice = self.declared.schedulers.get(slice.index());
                slice.is_some_and(|s| s.receiver.is_some() && s.parent == Some(giver))
            }
            Step::Supply(id, _) => id == giver,
            _ => false,
        };
        let server = |s: &Scheduler| match s.supply {
            Supply::Server(server) => Some(share(server)),
            _ => None,
        };
        let givers = (0..)
            .map(SchedulerId)
            .zip(before.iter().zip(&self.schedulers));
        let mut found = givers.filter_map(|(id, (old, new))| {
            let step = change.steps.iter().position(|step| about(step, id))?;
            let all = server(old.as_ref()?)?.min(server(new.as_ref()?)?);
            let slices = before.iter().zip(&self.schedulers);
            let slices = slices.filter_map(|(old, new)| new.as_ref().or(old.as_ref()));
            let slices = slices.filter(|s| s.receiver.is_some() && s.parent == Some(id));
            let shares = slices.filter_map(server);
            (shares.sum::<u128>() > all).then_some((id, step))
        });
        let (giver, step) = found.next()?;
        Some(Mistake {
            step,
            message: format!(
                "{} would delegate more than its server grants, with the slices that it has \
                 delegated until then",
                self.name(Subject::Scheduler(giver))
            ),
            help: "the share of a slice counts on for a while: take slices back in an earlier \
                   change"
                .to_string(),
        })
    }
}
