//! CPUs that exchange messages are simulated together; all others one after the other.

use punctual_tables::CpuTables;

/// The CPUs of a plan, by group; each group in ascending order. O(CPUs · notifications).
pub(crate) fn groups(plans: &[&CpuTables]) -> Vec<Vec<usize>> {
    let mut group: Vec<usize> = (0..plans.len()).collect();
    for (from, plan) in plans.iter().enumerate() {
        for (_, to, _) in &plan.notifications {
            let (a, b) = (group[from], group[to.index()]);
            for g in &mut group {
                if *g == a.max(b) {
                    *g = a.min(b);
                }
            }
        }
    }
    let mut lists: Vec<Vec<usize>> = vec![Vec::new(); plans.len()];
    for (cpu, g) in group.into_iter().enumerate() {
        lists[g].push(cpu);
    }
    lists.retain(|list| !list.is_empty());
    lists
}
