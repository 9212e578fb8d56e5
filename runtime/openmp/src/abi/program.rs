//! Functions that programs call by themselves: numbers, control variables, the clock.

use core::ffi::{c_double, c_int};
use core::sync::atomic::Ordering;

use crate::me::me;
use crate::parts::{FINAL, Member, Team};
use crate::settings::{AUTO, LEVELS, MEMBERS, MONOTONIC, STATIC, settings};
use crate::sys;

fn int(value: usize) -> c_int {
    c_int::try_from(value).unwrap_or(c_int::MAX)
}

fn size(team: &Team) -> c_int {
    int(team.size.load(Ordering::Relaxed))
}

/// Functions without arguments, for C and for Fortran.
macro_rules! answers {
    ($($(#[$doc:meta])* $name:ident, $fortran:ident: |$member:ident| $value:expr;)*) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() -> c_int {
            let $member: &'static Member = me().hat();
            $value
        }

        /// The same for Fortran.
        #[unsafe(no_mangle)]
        pub extern "C" fn $fortran() -> c_int {
            $name()
        }
    )*};
}

answers! {
    /// The caller's number in its team.
    omp_get_thread_num, omp_get_thread_num_: |member| int(member.number);
    /// How many members its team has.
    omp_get_num_threads, omp_get_num_threads_: |member| size(member.team);
    /// How many the next region would have.
    omp_get_max_threads, omp_get_max_threads_: |member| int(member.identity.controls().threads);
    /// CPUs of the affinity mask.
    omp_get_num_procs, omp_get_num_procs_: |_member| int(settings().cpus);
    /// Whether the caller is in a region with several members.
    omp_in_parallel, omp_in_parallel_: |member| {
        c_int::from(member.team.active_level.get() > 0)
    };
    /// Whether the number of members may be adjusted.
    omp_get_dynamic, omp_get_dynamic_: |member| c_int::from(member.identity.controls().dynamic);
    /// Whether regions in regions may have several members.
    omp_get_nested, omp_get_nested_: |member| {
        c_int::from(member.identity.controls().levels > member.team.active_level.get().max(1))
    };
    /// Members of all teams of a thread of the program, at most.
    omp_get_thread_limit, omp_get_thread_limit_: |_member| int(settings().thread_limit);
    /// Nested regions with several members, at most.
    omp_get_max_active_levels, omp_get_max_active_levels_: |member| {
        int(member.identity.controls().levels)
    };
    /// The largest number for [`omp_set_max_active_levels`].
    omp_get_supported_active_levels, omp_get_supported_active_levels_: |_member| int(LEVELS);
    /// Regions around the caller.
    omp_get_level, omp_get_level_: |member| int(member.team.level);
    /// Those of them with several members.
    omp_get_active_level, omp_get_active_level_: |member| int(member.team.active_level.get());
    /// Whether the running item and all that it creates run at once.
    omp_in_final, omp_in_final_: |member| {
        let item = member.identity.item.get();
        c_int::from(item.is_some_and(|item| item.has(FINAL)))
    };
    /// Nothing is ever cancelled.
    omp_get_cancellation, omp_get_cancellation_: |_member| 0;
    /// The highest priority of an item.
    omp_get_max_task_priority, omp_get_max_task_priority_: |_member| settings().most_priority;
    /// Members are not bound to places.
    omp_get_proc_bind, omp_get_proc_bind_: |_member| 0;
    /// No places are named.
    omp_get_num_places, omp_get_num_places_: |_member| 0;
    /// The host is the only device.
    omp_get_num_devices, omp_get_num_devices_: |_member| 0;
    /// The host is the only device, and its number is that of the others.
    omp_get_default_device, omp_get_default_device_: |_member| 0;
    /// The host is the only device.
    omp_get_initial_device, omp_get_initial_device_: |_member| 0;
    /// The host is the only device.
    omp_get_device_num, omp_get_device_num_: |_member| 0;
    /// Members are not bound to places.
    omp_get_place_num, omp_get_place_num_: |_member| -1;
    /// No places are named.
    omp_get_partition_num_places, omp_get_partition_num_places_: |_member| 0;
    /// The host is the only device.
    omp_is_initial_device, omp_is_initial_device_: |_member| 1;
    /// There is one league, of one team.
    omp_get_num_teams, omp_get_num_teams_: |_member| 1;
    /// The number of that team.
    omp_get_team_num, omp_get_team_num_: |_member| 0;
}

fn change(change: impl FnOnce(&mut crate::settings::Controls)) {
    if let Some(item) = me().item.get() {
        let mut controls = item.controls.get();
        change(&mut controls);
        item.controls.set(controls);
    }
}

/// How many members the next regions of the caller have.
#[unsafe(no_mangle)]
pub extern "C" fn omp_set_num_threads(threads: c_int) {
    change(|controls| controls.threads = usize::try_from(threads).unwrap_or(1).clamp(1, MEMBERS));
}

/// The same for Fortran.
///
/// # Safety
/// The address of a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn omp_set_num_threads_(threads: *const i32) {
    // SAFETY: as the caller vouches.
    omp_set_num_threads(unsafe { threads.read() });
}

/// Whether the number of members may be adjusted.
#[unsafe(no_mangle)]
pub extern "C" fn omp_set_dynamic(dynamic: c_int) {
    change(|controls| controls.dynamic = dynamic != 0);
}

/// Whether regions in regions may have several members.
#[unsafe(no_mangle)]
pub extern "C" fn omp_set_nested(nested: c_int) {
    change(|controls| match (nested != 0, controls.levels > 1) {
        (true, false) => controls.levels = LEVELS,
        (false, true) => controls.levels = 1,
        _ => {}
    });
}

/// How many nested regions may have several members.
#[unsafe(no_mangle)]
pub extern "C" fn omp_set_max_active_levels(levels: c_int) {
    if let Ok(levels) = usize::try_from(levels) {
        change(|controls| controls.levels = levels.min(LEVELS));
    }
}

/// The schedule of loops with `schedule(runtime)`.
#[unsafe(no_mangle)]
pub extern "C" fn omp_set_schedule(kind: u32, chunk: c_int) {
    if (STATIC..=AUTO).contains(&(kind & !MONOTONIC)) {
        let default = c_int::from(kind & !MONOTONIC != STATIC);
        change(|controls| {
            // The chunk is the implementation's with `auto`.
            let is_auto = kind & !MONOTONIC == AUTO;
            let before = controls.schedule.1;
            controls.schedule = (kind, if is_auto { before } else { chunk.max(default) });
        });
    }
}

/// Tells that schedule.
///
/// # Safety
/// The addresses of two variables.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn omp_get_schedule(kind: *mut u32, chunk: *mut c_int) {
    let (schedule, size) = me().controls().schedule;
    // SAFETY: as the caller vouches.
    unsafe { kind.write(schedule) };
    // SAFETY: as the caller vouches.
    unsafe { chunk.write(size) };
}

/// The member around the caller at a level, counted from outside.
fn ancestor(level: c_int) -> Option<&'static Member> {
    let level = usize::try_from(level).ok()?;
    let mut member = me().hat();
    if level > member.team.level {
        return None;
    }
    while member.team.level > level {
        member = member.team.outer?;
    }
    Some(member)
}

/// The number that the caller, or the member around it, has at a level; -1: there is no such one.
#[unsafe(no_mangle)]
pub extern "C" fn omp_get_ancestor_thread_num(level: c_int) -> c_int {
    ancestor(level).map_or(-1, |member| int(member.number))
}

/// The number of members at a level; -1: there is no such level.
#[unsafe(no_mangle)]
pub extern "C" fn omp_get_team_size(level: c_int) -> c_int {
    ancestor(level).map_or(-1, |member| size(member.team))
}

/// Seconds since some instant.
#[unsafe(no_mangle)]
#[expect(clippy::cast_precision_loss, reason = "microseconds of centuries fit")]
pub extern "C" fn omp_get_wtime() -> c_double {
    sys::now() as c_double / 1e9
}

/// The same for Fortran.
#[unsafe(no_mangle)]
pub extern "C" fn omp_get_wtime_() -> c_double {
    omp_get_wtime()
}

/// Seconds between two values of the clock.
#[unsafe(no_mangle)]
pub extern "C" fn omp_get_wtick() -> c_double {
    1e-9
}

/// The same for Fortran.
#[unsafe(no_mangle)]
pub extern "C" fn omp_get_wtick_() -> c_double {
    omp_get_wtick()
}
