//! Dependences between the children of an item (`depend` clauses).
//!
//! A table per parent: for each address, the last child that writes it, and those that read it
//! since.
//! A child counts those it has to wait for, each of these lists whom it holds up. A child that has
//! ended is taken out of the table, so the table names unfinished ones only.

use core::sync::atomic::Ordering;
use std::collections::BTreeMap;

use crate::lock::Lock;
use crate::parts::{DEPENDS, Item};

/// One address of a clause, and whether the child writes there.
pub(crate) type Access = (usize, bool);

#[derive(Default)]
struct Place {
    writer: Option<&'static Item>,
    readers: Vec<&'static Item>,
}

#[derive(Default)]
struct Table {
    places: Lock<BTreeMap<usize, Place>>,
}

// SAFETY: addresses of items that are never unmade.
unsafe impl Send for Place {}

impl<T: Default> Default for Lock<T> {
    fn default() -> Lock<T> {
        Lock::new(T::default())
    }
}

/// A child in the table; used under its lock.
struct Node {
    accesses: Vec<Access>,
    blockers: usize,
    dependents: Vec<&'static Item>,
}

fn table_of(parent: &Item) -> &'static Table {
    let mut table = parent.table.load(Ordering::Acquire);
    if table.is_null() {
        // Only the parent's own body comes here.
        table = Box::into_raw(Box::<Table>::default()).cast();
        parent.table.store(table, Ordering::Release);
    }
    // SAFETY: a table lives as long as its item has children, and the caller is one or makes one.
    unsafe { &*table.cast::<Table>() }
}

/// Whether the parent has a table at all: without one nobody has to wait.
pub(crate) fn has_table(parent: &Item) -> bool {
    !parent.table.load(Ordering::Relaxed).is_null()
}

/// Unmakes the table of an item that has no children any more.
pub(crate) fn forget_table(item: &Item) {
    if has_table(item) {
        let table = item.table.swap(core::ptr::null_mut(), Ordering::Relaxed);
        // SAFETY: made by `table_of`; nobody is left who could use it.
        drop(unsafe { Box::from_raw(table.cast::<Table>()) });
    }
}

/// Does something to the node of a child; one more than its blockers then, 0 without a node.
///
/// # Safety
/// The caller holds the lock of the table.
unsafe fn with_node(item: &Item, change: impl FnOnce(&mut Node)) -> usize {
    // SAFETY: made by `enter`; as the caller vouches, nobody else is there.
    let node = unsafe { item.node.get().cast::<Node>().as_mut() };
    node.map_or(0, |node| {
        change(node);
        node.blockers + 1
    })
}

/// Enters a child; whether it has to wait for another.
pub(crate) fn enter(parent: &Item, item: &'static Item, accesses: Vec<Access>) -> bool {
    let mut places = table_of(parent).places.lock();
    let mut blockers: Vec<&'static Item> = Vec::new();
    for &(address, writes) in &accesses {
        let place = places.entry(address).or_default();
        let readers = writes && !place.readers.is_empty();
        match readers {
            true => blockers.append(&mut place.readers),
            false => blockers.extend(place.writer),
        }
        match writes {
            true => place.writer = Some(item),
            false => place.readers.push(item),
        }
    }
    blockers.retain(|other| !core::ptr::eq(*other, item));
    for other in &blockers {
        // SAFETY: the lock of the table is held.
        unsafe { with_node(other, |node| node.dependents.push(item)) };
    }
    let made = Node {
        accesses,
        blockers: blockers.len(),
        dependents: Vec::new(),
    };
    item.node.set(Box::into_raw(Box::new(made)).cast());
    item.marks.set(item.marks.get() | DEPENDS);
    !blockers.is_empty()
}

/// Takes out a child that has ended; those that it alone held up still.
pub(crate) fn complete(parent: &Item, item: &'static Item) -> Vec<&'static Item> {
    let mut places = table_of(parent).places.lock();
    let ended = item.node.replace(core::ptr::null_mut()).cast::<Node>();
    // SAFETY: made by `enter`, and nobody else takes it.
    let ended = unsafe { Box::from_raw(ended) };
    let is_it = |other: &&'static Item| core::ptr::eq(*other, item);
    for (address, _) in &ended.accesses {
        let Some(place) = places.get_mut(address) else {
            continue;
        };
        place.writer = place.writer.filter(|writer| !is_it(writer));
        place.readers.retain(|reader| !is_it(reader));
        if place.writer.is_none() && place.readers.is_empty() {
            places.remove(address);
        }
    }
    let dependents = ended.dependents.into_iter();
    // SAFETY: the lock of the table is held.
    let less = |next: &Item| unsafe { with_node(next, |node| node.blockers -= 1) };
    let freed = dependents.filter(|next| less(next) == 1);
    freed.collect()
}
