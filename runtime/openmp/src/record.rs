//! The record of the carriers (`PUNCTUAL_OMP_TRACE=FILE`): items, looks in vain, sleeps.
//!
//! All events of a process have one order: a counter that every event takes a number of. Such a
//! number is taken by an instruction that orders memory, too. So a carrier that took its number
//! after an item was offered could see the item. Whether anybody was idle while an item waited
//! follows from the order alone, and from no clock.
//!
//! A carrier writes to memory of its own, which its kernel thread made before it carried anybody.
//! Events beyond the room are counted. The file is written when the program ends, a line per event.

use core::ffi::c_void;
use core::fmt::Write;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Once;

use punctual_switch::instructions::read_time_stamp;

pub(crate) use crate::log::{Kind, is_on, order};
use crate::log::{Log, switch_on};
use crate::parts::{Carrier, Identity, Item, Member, Team};
use crate::pool::LISTS;
use crate::settings::settings;
use crate::sys;

/// The time stamp and the nanoseconds when the record began.
static BEGAN: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

/// Begins the record of a process that wants one. By its first thread that asks for anything; the
/// next one has room of its own as soon as this returns.
pub(crate) fn begin() {
    static BEGUN: Once = Once::new();
    if settings().trace.is_some() {
        BEGUN.call_once(|| {
            BEGAN[0].store(read_time_stamp(), Ordering::Relaxed);
            BEGAN[1].store(sys::now(), Ordering::Relaxed);
            switch_on(true);
            sys::at_exit(write);
            sys::around_fork(nothing, nothing, forget);
        });
    }
}

unsafe extern "C" fn nothing() {}

/// Ends it: in the child of a fork, whose parent writes the file.
unsafe extern "C" fn forget() {
    switch_on(false);
}

/// Makes the room of a carrier, before it carries anybody.
pub(crate) fn make_room(carrier: &Carrier) {
    if is_on() {
        let log = Log::new();
        carrier.log.set(Some(Box::leak(Box::new(log))));
    }
}

/// Records an event of a carrier. By its own kernel thread.
pub(crate) fn note(carrier: &Carrier, kind: Kind, values: [u64; 3]) {
    if !is_on() {
        return;
    }
    let Some(log) = carrier.log.get() else {
        return;
    };
    log.add(kind, read_time_stamp(), values);
}

fn here(identity: &Identity, kind: Kind, values: [u64; 3]) {
    if let Some(carrier) = identity.carrier.get() {
        note(carrier, kind, values);
    }
}

fn address<T>(of: &T) -> u64 {
    core::ptr::from_ref(of).addr() as u64
}

/// The identity goes on with an item.
#[inline]
pub(crate) fn runs(identity: &Identity, item: Option<&Item>) {
    if is_on()
        && let Some(item) = item
    {
        let body = item.body.get();
        let team = item.team.get().and_then(|team| team.body.get());
        let body = body.or(team).map_or(0, |body| body as *const c_void as u64);
        let member = identity.member.get().map_or(0, |member| member.number);
        here(
            identity,
            Kind::Runs,
            [item.number.get(), body, member as u64],
        );
    }
}

/// Gives an item its number, before others can see it.
#[inline]
pub(crate) fn number(item: &Item) {
    if is_on() {
        item.number.set(order());
    }
}

/// A member has offered an item of this number.
#[inline]
pub(crate) fn offered(member: &Member, number: u64) {
    let team = member.team;
    let size = team.size.load(Ordering::Relaxed);
    let values = [number, address(team), size as u64];
    here(member.identity, Kind::Offered, values);
}

/// A member has woken so many carriers for it.
#[inline]
pub(crate) fn announced(member: &Member, number: u64, woken: usize) {
    here(member.identity, Kind::Announced, [number, woken as u64, 0]);
}

/// A look of an identity around its team has ended.
#[inline]
pub(crate) fn looked(identity: &Identity, before: u64, found: Option<&Item>) {
    if is_on() {
        match found {
            Some(item) => here(identity, Kind::Taken, [item.number.get(), before, 0]),
            None => here(
                identity,
                Kind::Looked,
                [before, address(identity.hat().team), 0],
            ),
        }
    }
}

/// Nobody carries an identity from now on, which is this member.
pub(crate) fn freed(carrier: &Carrier, identity: &Identity, team: &Team, number: usize) {
    let values = [address(identity), address(team), number as u64];
    note(carrier, Kind::Free, values);
}

extern "C" fn write() {
    if !is_on() {
        return;
    }
    switch_on(false);
    let Some(path) = settings().trace else {
        return;
    };
    let text = text();
    if let Err(error) = std::fs::write(path, text) {
        sys::say(&format!(
            "punctual-openmp: the record was not written to {path}: {error}"
        ));
    }
}

/// The file: the clock, functions by address, carriers, and their events.
fn text() -> String {
    let [stamp, time] = BEGAN.each_ref().map(|word| word.load(Ordering::Relaxed));
    let cycles = read_time_stamp().wrapping_sub(stamp);
    let spent = sys::now().saturating_sub(time);
    let mut text = format!("punctual-openmp record 1\nclock {cycles} cycles {spent} ns\n");
    let mut bodies = std::collections::BTreeSet::new();
    let carriers: Vec<&'static Carrier> = LISTS.lock().carriers.clone();
    for (number, carrier) in carriers.iter().enumerate() {
        let Some(log) = carrier.log.get() else {
            continue;
        };
        let lost = log.lost();
        let kind = if carrier.is_pool.get() {
            "pool"
        } else {
            "program"
        };
        // Writing to a string does not fail.
        let _ = writeln!(text, "carrier {number} {kind} lost {lost}");
        for event in log.events() {
            let [a, b, c] = event.values;
            let (kind, order) = (event.kind, event.order);
            let after = event.time.wrapping_sub(stamp);
            let _ = writeln!(text, "{kind:?} {number} {order} {after} {a} {b} {c}");
            if kind == Kind::Runs && bodies.insert(b) {
                let name = sys::name_of(core::ptr::with_exposed_provenance(
                    usize::try_from(b).unwrap_or_default(),
                ));
                let name = name.unwrap_or_else(|| "?".to_owned());
                let _ = writeln!(text, "function {b} {name}");
            }
        }
    }
    text
}
