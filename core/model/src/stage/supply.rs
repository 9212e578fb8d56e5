//! Another server for a scheduler that is there.

use alloc::format;
use alloc::string::String;

use super::{Stage, mistake};
use crate::change::Subject;
use crate::id::SchedulerId;
use crate::scheduler::{Server, Supply};
use crate::task::{Class, OnOverrun};
use crate::time::Ns;

impl Stage<'_> {
    pub(super) fn supply(
        &mut self,
        id: SchedulerId,
        server: Server<Ns>,
        name: &str,
    ) -> Result<(), (String, String)> {
        self.is_no_slice(id, name)?;
        self.above_endless(id)?;
        match self.schedulers[id.index()].as_mut().map(|s| &mut s.supply) {
            Some(Supply::Server(now)) if *now == server => mistake(
                format!("{name} would keep the server that it has"),
                "leave it out, or change its budget, period or kind",
            ),
            Some(Supply::Server(now)) => {
                *now = server;
                Ok(())
            }
            _ => mistake(
                format!("{name} has no server that could change"),
                "declare it with a `server`",
            ),
        }
    }

    /// A task below a scheduler may have work when nothing that was promised to it is open. The
    /// core gives a scheduler another server only while nothing below is ready.
    pub(super) fn above_endless(&self, id: SchedulerId) -> Result<(), (String, String)> {
        let Some(task) = self.endless_below(id) else {
            return Ok(());
        };
        let name = self.name(Subject::Scheduler(id));
        mistake(
            format!(
                "the server of {name} cannot change above task `{task}`, whose work has no deadline to end by"
            ),
            "move the task to another scheduler in an earlier change, or keep the server",
        )
    }

    fn endless_below(&self, id: SchedulerId) -> Option<&str> {
        let tasks = self
            .declared
            .tasks
            .iter()
            .zip(self.places())
            .zip(&self.came);
        let mut endless = tasks.filter(|((task, place), came)| {
            let endless = match task.class {
                Class::Aperiodic | Class::Once { .. } => true,
                Class::Reservation { .. } => task.on_overrun != OnOverrun::Throttle,
                Class::Periodic { .. } | Class::Sporadic { .. } => false,
            };
            endless && **came && self.above(*place).any(|up| up == id)
        });
        endless.next().map(|((task, _), _)| task.name.as_str())
    }
}
