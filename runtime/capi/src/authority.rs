//! Handles that are authority: schedulers, and slices of their supply in the hands of others.
//!
//! A handle is a place of a table, its generation, and a key drawn at random. So a number that a
//! program mixed up names nothing, and nobody finds a handle by counting. Another key of the same
//! place gives no authority but to lend to it. Code of the same process can read all memory: this
//! keeps components apart, and stops no attacker (note 0037).

use core::hash::BuildHasher;
use std::hash::RandomState;

use ::punctual_thread::tree::{Recipient, Scheduler, Slice};

use crate::status::punctual_status as Status;
use crate::table::{Table, Used};
use crate::time::on_a_thread;

/// The schedulers that a program has handles of.
pub(crate) static SCHEDULERS: Table<Held<Scheduler>> = Table::new();
/// The slices.
pub(crate) static SLICES: Table<Held<Slice>> = Table::new();

/// A scheduler or a slice that a program has a handle of.
pub(crate) struct Held<T> {
    pub(crate) it: T,
    /// Of the authority.
    key: u64,
    /// Of the recipient.
    pub(crate) to_lend: u64,
}

/// What a handle is the authority over.
pub(crate) fn held<T>(
    table: &'static Table<Held<T>>,
    (id, key): (u64, u64),
) -> Result<Used<'static, Held<T>>, Status> {
    on_a_thread()?;
    let entry = table.get(id)?;
    match entry.key == key {
        true => Ok(entry),
        false => Err(Status::PUNCTUAL_STALE),
    }
}

/// The number and the key of a handle: one for each thing, however often it is asked for.
pub(crate) fn hold<T: PartialEq>(
    table: &'static Table<Held<T>>,
    it: T,
) -> Result<(u64, u64), Status> {
    let mut known = None;
    table.each(|entry| {
        if entry.it == it {
            known = Some((entry.number(), entry.key));
        }
    });
    if let Some(known) = known {
        return Ok(known);
    }
    hold_new(table, || Ok(it))
}

/// The number and the key of a handle for something that is made once there is room for it: nothing
/// is made that nobody could name.
pub(crate) fn hold_new<T>(
    table: &'static Table<Held<T>>,
    make: impl FnOnce() -> Result<T, Status>,
) -> Result<(u64, u64), Status> {
    // The standard library draws the seeds of its maps from the system.
    let drawn = RandomState::new();
    let (key, to_lend) = (drawn.hash_one(1_u8), drawn.hash_one(2_u8));
    let id = table.insert_with(|| {
        let it = make()?;
        Ok(Held { it, key, to_lend })
    })?;
    Ok((id, key))
}

/// The scheduler or slice that is lent to by this number and key.
pub(crate) fn recipient((id, key): (u64, u64)) -> Result<Recipient, Status> {
    let scheduler = SCHEDULERS.get(id).ok().filter(|it| it.to_lend == key);
    if let Some(scheduler) = scheduler {
        return Ok(scheduler.it.recipient());
    }
    let slice = SLICES.get(id)?;
    match slice.to_lend == key {
        true => Ok(slice.it.recipient()),
        false => Err(Status::PUNCTUAL_STALE),
    }
}

/// The run is over, and with it its schedulers.
pub(crate) fn forget_all() {
    retire(|_| true, |_| true);
}

/// Something has ended, and perhaps others with it.
pub(crate) fn forget_the_dead() {
    retire(Scheduler::is_dead, Slice::is_dead);
}

fn retire(scheduler: impl Fn(&Scheduler) -> bool, slice: impl Fn(&Slice) -> bool) {
    SCHEDULERS.each(|entry| {
        if scheduler(&entry.it) {
            entry.retire();
        }
    });
    SLICES.each(|entry| {
        if slice(&entry.it) {
            entry.retire();
        }
    });
}
