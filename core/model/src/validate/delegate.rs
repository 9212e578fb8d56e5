//! Slices of a scheduler's supply in other hands: the supply of their giver, and their receiver.

use alloc::format;
use alloc::string::String;

use super::Errors;
use crate::id::SchedulerId;
use crate::readable::readable;
use crate::scheduler::{PolicyKind, Scheduler, Server, Supply, Trust};
use crate::stage::Stage;
use crate::system::{Fault, System};
use crate::time::Ns;

/// A share of a processor; 2^32 is all of it. The core counts alike.
const WHOLE: u128 = 1 << 32;

/// Checks every slice with its giver and its receiver, then what each giver delegates in all.
/// O(slices · schedulers).
pub(super) fn check_all(system: &System, errors: &mut Errors) {
    let all = || (0..=u16::MAX).map(SchedulerId).zip(&system.schedulers);
    for (id, slice) in all().filter(|(_, s)| s.receiver.is_some()) {
        if let Some((problem, help)) = mistake(system, slice) {
            errors.add(Fault::Scheduler(id, "name"), problem, help);
        }
    }
    let stage = Stage::at_start(system);
    for (id, giver) in all() {
        let Supply::Server(server) = giver.supply else {
            continue;
        };
        let slices = all().filter(|(_, s)| s.receiver.is_some() && s.parent == Some(id));
        // Those that come later are counted when they do.
        let slices = slices.filter(|(slice, _)| stage.scheduler(*slice).is_some());
        let shares = slices.filter_map(|(_, slice)| match slice.supply {
            Supply::Server(server) => Some(share(server)),
            _ => None,
        });
        if shares.sum::<u128>() > share(server) {
            let (budget, period) = (server.budget.as_ns(), server.period.as_ns());
            let message = format!(
                "scheduler `{}` delegates more than its server grants, {} in every {}",
                giver.name,
                readable(budget),
                readable(period)
            );
            let help = "delegate smaller slices, or raise the budget of its server";
            errors.add(Fault::Scheduler(id, "delegate"), message, help);
        }
    }
}

/// The mistake in a slice by itself, and how to mend it.
fn mistake(system: &System, slice: &Scheduler) -> Option<(String, &'static str)> {
    let giver = slice
        .parent
        .and_then(|id| system.schedulers.get(id.index()));
    let receiver = slice.receiver.as_ref()?;
    let (Some(giver), Supply::Server(_)) = (giver, &slice.supply) else {
        let message = format!("slice `{}` is of no scheduler's supply", slice.name);
        return Some((message, "let a scheduler with a server delegate it"));
    };
    if !matches!(giver.supply, Supply::Server(_)) || giver.receiver.is_some() {
        let message = format!(
            "scheduler `{}` delegates a slice, and has no server: its time is not its own",
            giver.name
        );
        let help = "add `server = { kind = \"deferrable\", budget = \"2ms\", period = \"10ms\" }`";
        return Some((message, help));
    }
    let Some(name) = &receiver.scheduler else {
        return None;
    };
    let holder = system.scheduler_named(name);
    let holder = holder.and_then(|id| system.schedulers.get(id.index()));
    let Some(holder) = holder.filter(|s| s.cpu == slice.cpu && s.receiver.is_none()) else {
        let message = format!(
            "scheduler `{}` delegates a slice to `{name}`, which its CPU does not have",
            giver.name
        );
        return Some((message, "name a scheduler or a task of the same CPU"));
    };
    if holder.name == giver.name {
        let message = format!("scheduler `{name}` delegates a slice to its own");
        return Some((
            message,
            "a scheduler below it with a server limits its own tasks",
        ));
    }
    let decides = holder.trust == Trust::OwnTime;
    let divides = matches!(holder.policy, PolicyKind::Tdm { .. });
    if receiver.task.is_none() && (decides || divides) {
        let message = format!(
            "all tasks of scheduler `{name}` would execute on a slice, and it {}",
            if decides {
                "decides on its own supply"
            } else {
                "divides its time by a table"
            }
        );
        return Some((
            message,
            "delegate to single tasks of it, with `to = \"task.NAME\"`",
        ));
    }
    None
}

/// The share of a processor that a server grants; 2^32 is all of it.
pub(crate) fn share(server: Server<Ns>) -> u128 {
    let period = u128::from(server.period.as_ns().max(1));
    u128::from(server.budget.as_ns()) * WHOLE / period
}
