//! From the `[machine]` section to overheads, limits and reserves.

use std::ops::Range;

use punctual_model::{Limits, Machine, Ns, Reserve, Share, Span, Work};

use crate::places::Places;
use crate::record::{Node, Record, Value};

/// `defaults = "nautilus"`: 99 % in all, 10 % each for sporadic and aperiodic work (Nautilus
/// paper, §3.2 and §5.1). Nautilus counts shares alone; the server with the shortest slice that it
/// grants, 10 us, disturbs deadlines least and so comes nearest.
const NAUTILUS_LIMIT_PPM: u32 = 990_000;
const NAUTILUS_RESERVES: [&str; 2] = ["sporadic", "aperiodic"];
const NAUTILUS_BUDGET: Work<Ns> = Work::from_us(10);
const NAUTILUS_PERIOD: Span<Ns> = Span::from_us(100);

/// The machine, and the places of its reserves. Broken parts are left out.
pub(crate) fn lower_machine(places: &mut Places) -> Machine {
    let record = &places.machine;
    let work = |key| record.work(key).unwrap_or_default();
    let mut machine = Machine {
        switch: work("switch"),
        timer: work("timer"),
        budget_timer: work("budget-timer"),
        preemption: work("preemption"),
        cache_delay: work("cache-delay"),
        clock_error: record.span("clock-error").unwrap_or_default(),
        missing_time: record
            .record("missing-time")
            .filter(|missing| !missing.broken)
            .map(|missing| lower_reserve(missing, "missing-time".into())),
        ..Machine::default()
    };
    let mut reserves: Vec<(Reserve, Range<usize>)> = Vec::new();
    if let Some(defaults) = record.get("defaults").filter(|node| !node.is_bad()) {
        let share = Share::try_from_ppm(NAUTILUS_LIMIT_PPM).unwrap_or(Share::WHOLE);
        machine.limits = Limits { utilization: share };
        reserves.extend(nautilus_reserves().map(|reserve| (reserve, defaults.range.clone())));
    }
    let limit = record
        .record("limits")
        .and_then(|limits| limits.percentage("utilization"));
    if let Some(utilization) = limit {
        machine.limits = Limits { utilization };
    }
    add_reserves(&mut reserves, record.list("reserve"));
    (machine.reserves, places.reserves) = reserves.into_iter().unzip();
    machine
}

fn nautilus_reserves() -> impl Iterator<Item = Reserve> {
    let (budget, period) = (NAUTILUS_BUDGET, NAUTILUS_PERIOD);
    NAUTILUS_RESERVES.into_iter().map(move |name| Reserve {
        name: name.into(),
        budget,
        period,
    })
}

/// Adds the given reserves to the default ones: each replaces the default of its name, once.
fn add_reserves(reserves: &mut Vec<(Reserve, Range<usize>)>, given: &[Node]) {
    let mut replaceable: Vec<usize> = (0..reserves.len()).collect();
    for node in given {
        let Value::Record(record) = &node.value else {
            continue;
        };
        if record.broken {
            continue;
        }
        let name = record.text("name").unwrap_or("").to_string();
        let replaced = replaceable
            .iter()
            .position(|&index| reserves[index].0.name == name);
        let reserve = (lower_reserve(record, name), node.range.clone());
        match replaced {
            Some(at) => {
                let index = replaceable.swap_remove(at);
                reserves[index] = reserve;
            }
            None => reserves.push(reserve),
        }
    }
}

/// A budget in every period.
fn lower_reserve(record: &Record, name: String) -> Reserve {
    Reserve {
        name,
        budget: record.work("budget").unwrap_or_default(),
        period: record.span("period").unwrap_or_default(),
    }
}
