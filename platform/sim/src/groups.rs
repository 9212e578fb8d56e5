//! CPUs that exchange messages or nudges are simulated together.
//!
//! All others are simulated one after the other, or side by side on several cores of the host
//! ([`crate::run_on_cores`]).

use punctual_tables::CpuTables;

/// The CPUs, by group; each group in ascending order. `links`: further pairs of CPUs that belong
/// together. O(CPUs · (notifications + links)).
pub(crate) fn groups(tables: &[CpuTables], links: &[(usize, usize)]) -> Vec<Vec<usize>> {
    let mut group: Vec<usize> = (0..tables.len()).collect();
    let mut join = |from: usize, to: usize| {
        let (a, b) = (group[from], group[to]);
        for g in &mut group {
            if *g == a.max(b) {
                *g = a.min(b);
            }
        }
    };
    for (from, tables) in tables.iter().enumerate() {
        for (_, to, _) in tables.notifications.iter().chain(&tables.agenda.peers) {
            join(from, to.index());
        }
    }
    for &(from, to) in links {
        join(from, to);
    }
    let mut lists: Vec<Vec<usize>> = vec![Vec::new(); tables.len()];
    for (cpu, g) in group.into_iter().enumerate() {
        lists[g].push(cpu);
    }
    lists.retain(|list| !list.is_empty());
    lists
}
