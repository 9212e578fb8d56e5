//! The smallest budgets of servers, their periods given
//!
//! Every server starts with the share of the work below it and grows until that work is on time,
//! the others unchanged. Growing one may call for more of another above it, so the search
//! goes round until nobody grows. Then each is shortened as long as the whole is admitted.
//!
//! # Assumptions
//! 1. A larger budget of one server never helps work that is not below it. So what the others have
//!    on the way is at most what they need, and the result needs no less in any of them.
//! 2. A server with others below it is looked for from its present budget on, for theirs depend on
//!    it: there the result cannot be shortened anywhere, but another one may be smaller.
//! 3. Servers without real-time work below keep their budgets: nothing says what they need.
//!
//! Sources: Lipari and Bini 2003, Davis and Burns 2005 (server parameters by search); the least
//! fixed point of what servers need from each other is the usual one of Knaster and Tarski.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use punctual_model::{Ns, SchedulerId, Server, Supply, System};

use super::judge::{self, only};
use super::{NoSuggestion, Search, Setting, Suggestion};
use crate::admit::is_admitted;
use crate::error::Checked;
use crate::lookup::{ancestors, is_below, schedulers};
use crate::units::{UNIT, Work, border, share};

/// Budgets tried between the smallest and the period before bisection.
const PROBES: u64 = 32;
/// Rounds over all servers.
const MAX_ROUNDS: usize = 64;

/// The smallest budget for every server with real-time work below it.
/// O(rounds · servers · (32 + log period)) analyses.
pub(crate) fn shorten(system: &System) -> Search<Suggestion> {
    let servers = servers(system);
    if servers.is_empty() {
        let reason = "no server here has real-time work below it".to_string();
        return Err(NoSuggestion::Reason(reason));
    }
    let mut changed = match grow_all(system, &servers) {
        Ok(changed) => changed,
        // What stands can be shortened, though it was not found from below.
        Err(NoSuggestion::Reason(_)) if is_admitted(system)? => system.clone(),
        Err(other) => return Err(other),
    };
    // What one gives up may free another from waiting for it.
    let mut before = None;
    while before.as_ref() != Some(&changed) {
        before = Some(changed.clone());
        for &id in servers.iter().rev() {
            shorten_one(&mut changed, id)?;
        }
    }
    Ok(Suggestion {
        changes: changes(system, &changed),
        system: changed,
        ground: "search for the smallest budgets: one nanosecond less of any is refused".into(),
    })
}

/// The least budgets with which all work below a server is on time.
fn grow_all(system: &System, servers: &[SchedulerId]) -> Search<System> {
    let mut changed = system.clone();
    for &id in servers {
        let share = share_below(system, id).max(UNIT);
        let inner = |other: &SchedulerId| {
            let parent = system.schedulers[other.index()].parent;
            *other != id && is_below(system, parent, id)
        };
        // What is below needs a supply to be looked at: it starts from the present one.
        let budget = match server(system, id) {
            Some(now) if servers.iter().any(inner) => share.max(now.budget),
            _ => share,
        };
        set(&mut changed, id, budget);
    }
    let mut rounds = 0;
    loop {
        let mut grown = false;
        for &id in servers {
            grown |= grow(&mut changed, id)?;
        }
        if !grown {
            break;
        }
        rounds += 1;
        if rounds > MAX_ROUNDS {
            let reason = "the servers' budgets still grow with each other".to_string();
            return Err(NoSuggestion::Reason(reason));
        }
    }
    if !is_admitted(&changed)? {
        let what = "with the smallest budgets that suffice for the work below them it is refused";
        return Err(judge::still_refused(&changed, what));
    }
    Ok(changed)
}

fn server(system: &System, id: SchedulerId) -> Option<Server<Ns>> {
    match system.schedulers.get(id.index())?.supply {
        Supply::Server(server) => Some(server),
        Supply::Shared | Supply::Slots(_) => None,
    }
}

fn set(system: &mut System, id: SchedulerId, budget: Work) {
    if let Supply::Server(server) = &mut system.schedulers[id.index()].supply {
        server.budget = budget;
    }
}

/// Those with real-time work below, in the order of the file.
fn servers(system: &System) -> Vec<SchedulerId> {
    let all = schedulers(system).map(|(id, _)| id);
    let works = |id: &SchedulerId| {
        let mut tasks = system.tasks.iter();
        server(system, *id).is_some()
            && tasks.any(|t| t.class.is_real_time() && is_below(system, t.scheduler, *id))
    };
    all.filter(works).collect()
}

/// The work of each period that the tasks below need in the long run, rounded down.
fn share_below(system: &System, id: SchedulerId) -> Work {
    let period = server(system, id).map(|s| s.period).unwrap_or_default();
    let below = system
        .tasks
        .iter()
        .filter(|t| is_below(system, t.scheduler, id));
    let shares = below.filter_map(|t| {
        let (budget, separation) = (t.class.budget()?, t.class.min_separation()?);
        (!separation.is_zero()).then(|| share(budget, period, separation).unwrap_or(Work::MAX))
    });
    let needed = shares.fold(Work::ZERO, Work::saturating_add);
    needed.min(period.as_work())
}

/// Grows a budget until the work right below it is on time; whether it grew.
fn grow(system: &mut System, id: SchedulerId) -> Search<bool> {
    let Some(now) = server(system, id) else {
        return Ok(false);
    };
    if suffices(system, id, now.budget)? {
        return Ok(false);
    }
    let (least, most) = (now.budget, now.period.as_work());
    let mut refused = least;
    let mut found = None;
    for probe in 1..=PROBES {
        let step = u128::from(most.saturating_sub(least).as_ns()) * u128::from(probe);
        let step = u64::try_from(step / u128::from(PROBES)).unwrap_or(0);
        let budget = least.saturating_add(Work::from_ns(step));
        if suffices(system, id, budget)? {
            found = Some(budget);
            break;
        }
        refused = budget;
    }
    let Some(admitted) = found else {
        let name = &system.schedulers[id.index()].name;
        return Err(NoSuggestion::Reason(format!(
            "no budget of {name} up to its period of {} keeps the work below it on time",
            most.readable()
        )));
    };
    let admitted = border(refused, admitted, |budget| suffices(system, id, budget))?;
    set(system, id, admitted);
    Ok(admitted != least)
}

/// Whether the server gets this budget in time and, with it, whatever has it as its nearest server
/// is on time. Work below other servers is left out: they take what they may in any case.
fn suffices(system: &System, id: SchedulerId, budget: Work) -> Checked<bool> {
    let mut changed = system.clone();
    set(&mut changed, id, budget);
    let nearest = |scheduler: Option<SchedulerId>| nearest_server(system, scheduler);
    let above = |other: SchedulerId| is_below(system, Some(id), other);
    let keep = |t: &punctual_model::Task| nearest(t.scheduler).is_none_or(above);
    let present: Vec<bool> = system.tasks.iter().map(keep).collect();
    let partial = only(&changed, &present);
    let late = judge::late(&partial)?;
    let tasks = partial.tasks.iter().zip(&late.tasks);
    let mut own = tasks.filter(|(t, _)| nearest(t.scheduler) == Some(id));
    let schedulers = schedulers(&partial).zip(&late.servers);
    let mut below = schedulers.filter(|((other, s), _)| {
        let here = nearest(s.parent) == Some(id) || *other == id;
        here && matches!(s.supply, Supply::Server(_))
    });
    Ok(own.all(|(_, late)| !late) && below.all(|(_, late)| !late))
}

fn nearest_server(system: &System, scheduler: Option<SchedulerId>) -> Option<SchedulerId> {
    let mut above = ancestors(system, scheduler).map(|(id, _)| id);
    above.find(|&id| server(system, id).is_some())
}

/// Shortens a budget of an admitted system until one nanosecond less is refused.
fn shorten_one(system: &mut System, id: SchedulerId) -> Checked<()> {
    let now = server(system, id).map(|s| s.budget).unwrap_or_default();
    let admits = |budget: Work| {
        let mut changed = system.clone();
        set(&mut changed, id, budget);
        is_admitted(&changed)
    };
    if now <= UNIT || !admits(now.saturating_sub(UNIT))? {
        return Ok(());
    }
    let least = border(Work::ZERO, now, admits)?;
    set(system, id, least);
    Ok(())
}

fn changes(before: &System, after: &System) -> Vec<Setting> {
    let pairs = before.schedulers.iter().zip(&after.schedulers);
    let setting = pairs.filter_map(|(a, b)| match (&a.supply, &b.supply) {
        (Supply::Server(from), Supply::Server(to)) if from.budget != to.budget => Some(Setting {
            parameter: format!("scheduler.{}.server.budget", a.name),
            from: format!("\"{}\"", from.budget.readable()),
            to: format!("\"{}\"", to.budget.readable()),
        }),
        _ => None,
    });
    setting.collect()
}
