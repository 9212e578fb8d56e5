//! `task`, `taskwait`, `taskgroup`, `taskloop`: items, and waiting for them.

use core::ffi::{c_int, c_long, c_uint, c_ulong, c_ulonglong};

use crate::carry::beat;
use crate::depend::{self, Access};
use crate::items;
use crate::me::me;
use crate::parts::{Body, FINAL, Group, Identity, Item};
use crate::pending::{CHILD, Pending};
use crate::region;
use crate::settings::settings;
use crate::sys;
use crate::wait::{Atop, wait};

/// Copies arguments that are more than bytes.
type Copy = unsafe extern "C" fn(*mut u8, *mut u8);

/// Bits of the flags of a task (`gomp-constants.h` of gcc 12).
const FLAG_FINAL: c_uint = 1 << 1;
const FLAG_DEPEND: c_uint = 1 << 3;
const FLAG_PRIORITY: c_uint = 1 << 4;
const FLAG_UP: c_uint = 1 << 8;
const FLAG_GRAINSIZE: c_uint = 1 << 9;
const FLAG_IF: c_uint = 1 << 10;
const FLAG_NOGROUP: c_uint = 1 << 11;
const FLAG_REDUCTION: c_uint = 1 << 12;
const FLAG_DETACH: c_uint = 1 << 13;
const FLAG_STRICT: c_uint = 1 << 14;

fn running(identity: &Identity) -> &'static Item {
    identity.item.get().expect("running code has an item")
}

/// Copies arguments to where the item runs with them: once, for they may be objects that no bytes
/// move. An item of a loop has its range in the first two words.
///
/// # Safety
/// The arguments are as the compiler gave them.
unsafe fn copied(item: &Item, arguments: &Arguments) {
    let place = items::room(item, arguments.size, arguments.align);
    match arguments.copy {
        // SAFETY: the compiler's function for these arguments.
        Some(copy) => unsafe { copy(place, arguments.data) },
        // SAFETY: as the caller vouches; the room is as large.
        None => unsafe { place.copy_from_nonoverlapping(arguments.data, arguments.size) },
    }
    for (index, value) in arguments.range.into_iter().flatten().enumerate() {
        // SAFETY: the compiler has these words there.
        unsafe { place.cast::<u64>().add(index).write(value) };
    }
    item.data.set(place);
}

/// Creates an item: runs it at once, or leaves it to members that have nothing else to do.
///
/// # Safety
/// The compiler's arguments.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GOMP_task(
    body: Body,
    data: *mut u8,
    copy: Option<Copy>,
    size: c_long,
    align: c_long,
    condition: bool,
    flags: c_uint,
    depend: *mut *mut u8,
    priority: c_int,
    _detach: *mut u8,
) {
    if flags & FLAG_DETACH != 0 {
        sys::end_program("punctual-openmp: `task detach` (GOMP_task) is not here yet");
    }
    let identity = me();
    let parent = running(identity);
    let priority = if flags & FLAG_PRIORITY != 0 {
        priority
    } else {
        0
    };
    let (size, align) = (size.unsigned_abs(), align.unsigned_abs());
    let arguments = Arguments {
        body,
        data,
        copy,
        size: usize::try_from(size).unwrap_or_default(),
        align: usize::try_from(align).unwrap_or_default(),
        priority,
        range: None,
    };
    let accesses = || {
        // SAFETY: the compiler's array.
        (flags & FLAG_DEPEND != 0).then(|| unsafe { accesses(depend) })
    };
    let is_final = flags & FLAG_FINAL != 0;
    // SAFETY: the compiler's arguments.
    unsafe { create(identity, parent, &arguments, condition, is_final, accesses) };
}

struct Arguments {
    body: Body,
    data: *mut u8,
    copy: Option<Copy>,
    size: usize,
    align: usize,
    priority: c_int,
    /// The values that an item of a loop begins and ends with.
    range: Option<[u64; 2]>,
}

/// # Safety
/// The arguments are as the compiler gave them.
unsafe fn create(
    identity: &'static Identity,
    parent: &'static Item,
    arguments: &Arguments,
    condition: bool,
    is_final: bool,
    accesses: impl Fn() -> Option<Vec<Access>>,
) {
    beat(identity);
    let member = identity.hat();
    let is_alone = member.team.size.load(core::sync::atomic::Ordering::Relaxed) == 1;
    let is_included = is_final || is_alone || parent.marks.get() & FINAL != 0;
    let at_once = !condition || is_included;
    let item = items::obtain(identity);
    items::fill(item, parent, arguments.body, arguments.data);
    if is_final {
        item.marks.set(item.marks.get() | FINAL);
    }
    let accesses = accesses();
    let is_full = member.deque.len() >= crate::parts::THROTTLE;
    if at_once || (is_full && accesses.is_none() && arguments.priority <= 0) {
        if let Some(accesses) = accesses
            && depend::has_table(parent)
        {
            wait_for(identity, parent, accesses);
        }
        if arguments.copy.is_some() || arguments.range.is_some() {
            // SAFETY: as the caller vouches.
            unsafe { copied(item, arguments) };
        }
        return items::run_at_once(identity, item);
    }
    // SAFETY: as the caller vouches.
    unsafe { copied(item, arguments) };
    item.priority
        .set(arguments.priority.clamp(0, settings().most_priority));
    items::count(item);
    let is_held = accesses.is_some_and(|accesses| depend::enter(parent, item, accesses));
    if !is_held {
        items::offer(member, item);
    }
}

/// The accesses of a `depend` array: counts, then addresses; writers stand first.
///
/// # Safety
/// The compiler's array.
unsafe fn accesses(depend: *mut *mut u8) -> Vec<Access> {
    // SAFETY: as the caller vouches, for every index below the counts.
    let word = |index: usize| unsafe { depend.add(index).read() };
    let count = word(0).addr();
    if count > 0 {
        let writers = word(1).addr();
        return (0..count)
            .map(|i| (word(2 + i).addr(), i < writers))
            .collect();
    }
    // The longer form: all, writers, one-at-a-time writers, readers; objects come last.
    let (count, out, exclusive, read) = (
        word(1).addr(),
        word(2).addr(),
        word(3).addr(),
        word(4).addr(),
    );
    let of = |i: usize| {
        let place = word(5 + i);
        if i < out + exclusive + read {
            return (place.addr(), i < out + exclusive);
        }
        // A `omp_depend_t`: the address and the kind, of which 1 is `in`.
        let object = place.cast::<usize>();
        // SAFETY: the program's object has two words.
        let (address, kind) = unsafe { (object.read(), object.add(1).read()) };
        (address, kind != 1)
    };
    (0..count).map(of).collect()
}

/// Waits for those children that an item with such accesses would have to wait for.
fn wait_for(identity: &'static Identity, parent: &'static Item, accesses: Vec<Access>) {
    let stand_in = items::obtain(identity);
    items::fill_stand_in(stand_in, parent);
    stand_in.pending.add(CHILD);
    if depend::enter(parent, stand_in, accesses) {
        let word: &Pending<_> = &stand_in.pending;
        let is_done = || word.is_childless();
        wait(identity, Atop::Nothing, is_done, |thread| {
            word.register(core::ptr::from_ref(thread).cast_mut())
        });
    }
    let freed = depend::complete(parent, stand_in);
    items::end_stand_in(identity, stand_in, freed);
}

/// Waits for those children of the running item that the accesses name.
///
/// # Safety
/// The compiler's array.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GOMP_taskwait_depend(depend: *mut *mut u8) {
    let identity = me();
    let parent = running(identity);
    if depend::has_table(parent) {
        // SAFETY: as the caller vouches.
        wait_for(identity, parent, unsafe { accesses(depend) });
    }
}

/// Waits for the children of the running item.
#[unsafe(no_mangle)]
pub extern "C" fn GOMP_taskwait() {
    let identity = me();
    let item = running(identity);
    beat(identity);
    let is_done = || item.pending.is_childless();
    wait(identity, Atop::Children(item), is_done, |thread| {
        item.pending
            .register(core::ptr::from_ref(thread).cast_mut())
    });
}

/// Lets ready threads of the caller go first, and begins an item if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn GOMP_taskyield() {
    crate::wait::yield_once(me());
}

/// Begins a group: its end waits for all items that are created until then, and below.
#[unsafe(no_mangle)]
pub extern "C" fn GOMP_taskgroup_start() {
    let item = running(me());
    let outer = item.group.get();
    let group: &'static Group = Box::leak(Box::new(Group {
        pending: Pending::new(),
        outer,
    }));
    group.pending.begin();
    item.group.set(Some(group));
}

/// Ends the group.
#[unsafe(no_mangle)]
pub extern "C" fn GOMP_taskgroup_end() {
    let identity = me();
    let item = running(identity);
    beat(identity);
    let Some(group) = item.group.get() else {
        return;
    };
    let is_done = || group.pending.is_childless();
    wait(identity, Atop::Group(group), is_done, |thread| {
        group
            .pending
            .register(core::ptr::from_ref(thread).cast_mut())
    });
    item.group.set(group.outer);
    // SAFETY: made by `GOMP_taskgroup_start`; nobody counts in it any more.
    drop(unsafe { Box::from_raw(core::ptr::from_ref(group).cast_mut()) });
}

/// A loop that becomes items, each with a range of iterations in its first two words.
struct Ranges {
    /// The values of the loop: the first one, and the one to stop at.
    ends: [u64; 2],
    step: u64,
    iterations: u64,
    items: u64,
    /// Iterations of an item, and how many items have one more.
    each: u64,
    longer: u64,
}

impl Ranges {
    fn new(
        ends: [u64; 2],
        step: u64,
        iterations: u64,
        asked: u64,
        flags: c_uint,
        size: u64,
    ) -> Ranges {
        let has_grain = asked > 0 && flags & FLAG_GRAINSIZE != 0;
        let is_strict = has_grain && flags & FLAG_STRICT != 0;
        let items = match asked {
            0 => size,
            grain if is_strict => iterations.div_ceil(grain),
            grain if has_grain => iterations / grain,
            count => count,
        };
        let items = items.clamp(1, iterations.max(1));
        let (each, longer) = match is_strict {
            true => (asked, 0),
            false => (iterations / items, iterations % items),
        };
        Ranges {
            ends,
            step,
            iterations,
            items,
            each,
            longer,
        }
    }

    fn value(&self, number: u64) -> u64 {
        if number >= self.iterations {
            // A whole step beyond the last value may be no number at all.
            return self.ends[1];
        }
        self.ends[0].wrapping_add(number.wrapping_mul(self.step))
    }

    /// The values that item `number` begins and ends with.
    fn of(&self, number: u64) -> [u64; 2] {
        let begin = number * self.each + number.min(self.longer);
        let end = begin.saturating_add(self.each + u64::from(number < self.longer));
        [self.value(begin), self.value(end)]
    }
}

/// # Safety
/// The compiler's arguments.
unsafe fn taskloop(arguments: &Arguments, flags: c_uint, ranges: &Ranges) {
    if flags & FLAG_REDUCTION != 0 {
        sys::end_program("punctual-openmp: `taskloop reduction` (GOMP_taskloop) is not here yet");
    }
    let identity = me();
    let has_group = flags & FLAG_NOGROUP == 0;
    if has_group {
        GOMP_taskgroup_start();
    }
    let count = if ranges.iterations == 0 {
        0
    } else {
        ranges.items
    };
    for number in 0..count {
        let parent = running(identity);
        let own = Arguments {
            range: Some(ranges.of(number)),
            ..*arguments
        };
        let condition = flags & FLAG_IF != 0;
        let is_final = flags & FLAG_FINAL != 0;
        // SAFETY: as the caller vouches.
        unsafe { create(identity, parent, &own, condition, is_final, || None) };
    }
    if has_group {
        GOMP_taskgroup_end();
    }
}

fn team_size() -> u64 {
    region::team_size() as u64
}

macro_rules! taskloops {
    ($($name:ident: $value:ty, $count:expr, $word:expr;)*) => {$(
        /// A loop whose iterations become items.
        ///
        /// # Safety
        /// The compiler's arguments.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            body: Body, data: *mut u8, copy: Option<Copy>, size: c_long, align: c_long,
            flags: c_uint, asked: c_ulong, priority: c_int,
            start: $value, end: $value, step: $value,
        ) {
            let iterations = $count(flags & FLAG_UP != 0, start, end, step);
            let ends = [$word(start), $word(end)];
            let ranges = Ranges::new(ends, $word(step), iterations, asked, flags, team_size());
            let arguments = Arguments {
                body,
                data,
                copy,
                size: usize::try_from(size).unwrap_or_default(),
                align: usize::try_from(align).unwrap_or_default(),
                priority: if flags & FLAG_PRIORITY != 0 { priority } else { 0 },
                range: None,
            };
            // SAFETY: as the caller vouches.
            unsafe { taskloop(&arguments, flags, &ranges) };
        }
    )*};
}

fn signed_count(_up: bool, start: c_long, end: c_long, step: c_long) -> u64 {
    crate::shares::Loop::signed(start, end, step, 0, 1).count
}

fn unsigned_count(up: bool, start: c_ulonglong, end: c_ulonglong, step: c_ulonglong) -> u64 {
    crate::shares::Loop::unsigned(up, [start, end], step, 0, 1).count
}

taskloops! {
    GOMP_taskloop: c_long, signed_count, i64::cast_unsigned;
    GOMP_taskloop_ull: c_ulonglong, unsigned_count, |value| value;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taskloop_gives_every_iteration_to_one_item() {
        let strict = FLAG_GRAINSIZE | FLAG_STRICT;
        for (iterations, asked, flags) in [
            (10, 3, 0),
            (10, 3, FLAG_GRAINSIZE),
            (10, 3, strict),
            (10, 30, strict),
            (2, 5, 0),
            (2, 5, FLAG_STRICT),
            (7, 0, 0),
        ] {
            let ranges = Ranges::new([100, 99 + 2 * iterations], 2, iterations, asked, flags, 4);
            let ends: Vec<_> = (0..ranges.items).map(|item| ranges.of(item)[1]).collect();
            assert!(
                ends.ends_with(&[99 + 2 * iterations]),
                "the end of the loop, no value behind it"
            );
            let values: Vec<u64> = (0..ranges.items)
                .map(|number| ranges.of(number))
                .flat_map(|[begin, end]| (begin..end).step_by(2))
                .collect();
            let expected: Vec<u64> = (0..iterations).map(|i| 100 + 2 * i).collect();
            assert_eq!(values, expected, "{iterations} {asked} {flags}");
        }
        let strict = Ranges::new([0, 10], 1, 10, 4, strict, 4);
        assert_eq!(
            [0, 1, 2].map(|item| strict.of(item)),
            [[0, 4], [4, 8], [8, 10]]
        );
        let grains = Ranges::new([0, 10], 1, 10, 3, FLAG_GRAINSIZE, 4);
        assert_eq!(
            grains.items, 3,
            "no item has fewer iterations than its grain"
        );
    }
}
