//! From a planned group to its section, and from how groups are planned to theirs.

use punctual_model::{
    Group, GroupId, GroupSegment, GroupThread, Locality, Mode, OnOverrun, Overload, Planning,
    Request, ResourceId, Span, Spawn, System, Work,
};

use super::task::{arrivals, overrun_word, work};
use super::value::{Out, Table, Toml};

pub(super) fn write_planning(planning: &Planning, out: &mut Out) {
    let default = Planning::default();
    if *planning == default {
        return;
    }
    out.line("\n[planning]");
    out.unless(
        default.heuristic.name(),
        "heuristic",
        planning.heuristic.name(),
    );
    let factor = planning.heuristic.factor();
    out.given(
        "factor",
        factor.filter(|_| factor != default.heuristic.factor()),
    );
    out.given("window", planning.window);
    out.unless(default.backtracks, "backtracks", planning.backtracks);
    out.unless(Span::ZERO, "within", planning.within);
    out.unless(Span::ZERO, "margin", planning.margin);
    out.unless(Work::ZERO, "evaluation", planning.evaluation);
    out.given("segment", planning.segment);
    out.unless(Overload::Keep.name(), "overload", planning.overload.name());
    out.unless(
        Locality::Earliest.name(),
        "locality",
        planning.locality.name(),
    );
    out.unless(false, "within-process", planning.within_process);
    out.unless(Work::ZERO, "process-switch", planning.process_switch);
    out.unless(Work::ZERO, "reset", planning.reset);
}

pub(super) fn write_group(system: &System, group: &Group, out: &mut Out) {
    out.header("group", &group.name);
    write_request(group, out);
    out.unless(Span::ZERO, "release", group.release);
    out.key("deadline", group.relative_deadline);
    out.unless(0, "importance", group.importance.0);
    let rule = overrun_word(group.on_overrun);
    out.unless(overrun_word(OnOverrun::default()), "on-overrun", rule);
    let threads: Vec<String> = group.threads.iter().map(|t| thread(system, t)).collect();
    write_lines("threads", &threads, out);
    let segments = group.segments.iter().map(|s| segment(system, group, s));
    write_lines("segments", &segments.collect::<Vec<_>>(), out);
}

/// A list with a line for each element.
fn write_lines(key: &str, elements: &[String], out: &mut Out) {
    out.line(format_args!("{key} = ["));
    for element in elements {
        out.line(format_args!("    {element},"));
    }
    out.line("]");
}

fn write_request(group: &Group, out: &mut Out) {
    match &group.request {
        Request::Once { at } => {
            out.key("request", "once");
            out.unless(Span::ZERO, "at", Span::from_ns(at.as_ns()));
        }
        Request::Periodic { period } => {
            out.key("request", "periodic");
            out.key("period", period);
        }
        Request::OnLine {
            arrivals: source,
            phase,
            min_separation,
        } => {
            out.key("request", "on-line");
            out.key("arrivals", arrivals(source));
            out.unless(Span::ZERO, "min-separation", *min_separation);
            out.unless(Span::ZERO, "phase", *phase);
        }
        Request::Spawned => out.key("request", "spawned"),
    }
}

fn thread(system: &System, thread: &GroupThread) -> String {
    let table = Table::new("name", &thread.name).and("process", &thread.process);
    let cpu = thread.home.and_then(|home| system.cpus.get(home.index()));
    match cpu {
        Some(cpu) => table.and("home", format!("cpu.{}", cpu.name)),
        None => table,
    }
    .toml()
}

fn segment(system: &System, group: &Group, segment: &GroupSegment) -> String {
    let thread = group.threads.get(segment.thread);
    let mut table = Table::new("name", &segment.name);
    table = table.and("thread", thread.map_or("", |thread| &*thread.name));
    table = table.and("wcet", segment.wcet);
    if let Some(away) = segment.wcet_away {
        table = table.and("wcet-away", away);
    }
    let resource = |id: ResourceId| system.resources.get(id.index()).map_or("", |r| &*r.name);
    let uses = segment.uses.iter().map(|used| {
        let table = Table::new("resource", resource(used.resource));
        match used.mode {
            Mode::Exclusive => table,
            mode => table.and("mode", mode),
        }
    });
    table = listed(table, "uses", uses.collect());
    let after = segment.after.iter();
    let after = after.filter_map(|before| group.segments.get(*before));
    table = listed(table, "after", after.map(|s| s.name.clone()).collect());
    table = match &segment.spawn {
        Some(Spawn::Dependent { group }) => {
            table.and("spawns", Table::new("dependent", name(system, *group)))
        }
        Some(Spawn::Independent { groups, max_wait }) => {
            let groups: Vec<&str> = groups.iter().map(|id| name(system, *id)).collect();
            let spawns = Table::new("independent", groups);
            table.and(
                "spawns",
                match max_wait.is_zero() {
                    true => spawns,
                    false => spawns.and("max-wait", max_wait),
                },
            )
        }
        None => table,
    };
    let kills = segment.kills.iter().map(|id| name(system, *id));
    table = listed(table, "kills", kills.collect());
    if !segment.cleanup.is_zero() {
        table = table.and("cleanup", segment.cleanup);
    }
    match &segment.work {
        Some(source) => table.and("work", work(source)),
        None => table,
    }
    .toml()
}

/// A list that is left out when it is empty.
fn listed<T: Toml>(table: Table, key: &str, list: Vec<T>) -> Table {
    match list.is_empty() {
        true => table,
        false => table.and(key, list),
    }
}

fn name(system: &System, id: GroupId) -> &str {
    system
        .groups
        .get(id.index())
        .map_or("", |group| &*group.name)
}
