//! Tasks of two runs beside each other, for people.

use punctual_model::readable;
use punctual_trace::{TaskDiff, TaskRun};

use punctual_terminal::table::Table;

/// One row per task; cells that did not change are said once.
pub(crate) fn render(tasks: &[TaskDiff]) -> String {
    let mut table = Table::new(&[
        "task",
        ">N",
        ">misses",
        ">p50",
        ">p99",
        ">max",
        ">longer",
        ">shorter",
        "largest growth",
    ]);
    for task in tasks {
        let both = |cell: fn(&TaskRun) -> String| {
            let absent = || "-".to_string();
            let before = task.before.as_ref().map_or_else(absent, cell);
            let now = task.now.as_ref().map_or_else(absent, cell);
            if before == now {
                before
            } else {
                format!("{before} > {now}")
            }
        };
        table.row(vec![
            task.name.clone(),
            both(|run| run.jobs.to_string()),
            both(|run| run.misses.to_string()),
            both(|run| time(run.response_ns.p50)),
            both(|run| time(run.response_ns.p99)),
            both(|run| time(run.response_ns.max)),
            task.longer.to_string(),
            task.shorter.to_string(),
            growth(task),
        ]);
    }
    table.to_string()
}

fn growth(task: &TaskDiff) -> String {
    let Some(g) = task.largest_growth else {
        return String::new();
    };
    if g.now_ns <= g.before_ns {
        return "none".into();
    }
    let by = time(Some(g.now_ns - g.before_ns));
    format!(
        "{by}, job {}: {} > {}",
        g.job,
        time(Some(g.before_ns)),
        time(Some(g.now_ns))
    )
}

/// Rounded up to hundredths of a microsecond: the noise of a live run is larger.
fn time(ns: Option<u64>) -> String {
    ns.map_or_else(
        || "-".into(),
        |ns| readable(ns.div_ceil(10).saturating_mul(10)).to_string(),
    )
}
