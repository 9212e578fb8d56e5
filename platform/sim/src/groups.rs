//! CPUs that exchange messages are simulated together; all others one after the other.

use punctual_tables::CpuTables;

/// The CPUs, by group; each group in ascending order. O(CPUs · notifications).
pub(crate) fn groups(tables: &[CpuTables]) -> Vec<Vec<usize>> {
    let mut group: Vec<usize> = (0..tables.len()).collect();
    for (from, tables) in tables.iter().enumerate() {
        for (_, to, _) in &tables.notifications {
            let (a, b) = (group[from], group[to.index()]);
            for g in &mut group {
                if *g == a.max(b) {
                    *g = a.min(b);
                }
            }
        }
    }
    let mut lists: Vec<Vec<usize>> = vec![Vec::new(); tables.len()];
    for (cpu, g) in group.into_iter().enumerate() {
        lists[g].push(cpu);
    }
    lists.retain(|list| !list.is_empty());
    lists
}
