//! Writes a log, line by line, without building it in memory.

use std::fmt::Write as _;
use std::io::{self, Write};

use punctual_model::{Requirement, Work};
use punctual_tables::CpuTables;

use super::FIRST_LINE;
use super::words::{escape, write_fields};
use super::{gangs, graphs, groups, policy};
use crate::encode;
use crate::form::{self, TablesLine};
use crate::log::{Bound, ChangeInfo, CpuLog, Log};
use crate::record::Records;

/// Bytes gathered before they are written.
const CHUNK: usize = 1 << 16;

/// Writes `log`. Equal logs give equal bytes.
///
/// # Errors
/// Those of `out`.
pub fn write(log: &Log, out: &mut impl Write) -> io::Result<()> {
    let mut writer = Writer::begin(log, out)?;
    for (cpu, of_cpu) in log.cpus.iter().enumerate() {
        writer.append(cpu, &of_cpu.records)?;
    }
    writer.finish(log)
}

/// Writes a log while its run goes on. What is written is at any instant a log that can be read, as
/// far as it goes.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    text: String,
    /// The CPU whose records were written last.
    cpu: Option<usize>,
}

impl<W: Write> Writer<W> {
    /// Writes what is known of `log` before its run: names, bounds, tables, and of its CPUs their
    /// names and hosts.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn begin(log: &Log, out: W) -> io::Result<Writer<W>> {
        let mut text = String::new();
        header(log, &mut text);
        for task in &log.tasks {
            line(&mut text, "task", &task.name);
            bound(&mut text, "bound", task.bound.as_ref());
            bound(&mut text, "machine-bound", task.machine_bound.as_ref());
        }
        for name in &log.schedulers {
            line(&mut text, "scheduler", name);
        }
        for name in &log.resources {
            line(&mut text, "resource", name);
        }
        for requirement in &log.requirements {
            require(&mut text, requirement);
        }
        for change in &log.changes {
            write_change(&mut text, change);
        }
        for graph in &log.graphs {
            graphs::write(&mut text, graph);
        }
        for gang in &log.gangs {
            gangs::write(&mut text, gang);
        }
        for group in &log.groups {
            groups::write(&mut text, group);
        }
        for (cpu, tables) in log.cpus.iter().zip(&log.tables.cpus) {
            line(&mut text, "cpu", &cpu.name);
            gangs::write_clock(&mut text, cpu.clock);
            if let Some(host) = cpu.host {
                number(&mut text, "host", u64::from(host));
            }
            let promised = [
                ("utilization", cpu.utilization_ppm),
                ("machine-utilization", cpu.machine_utilization_ppm),
            ];
            for (key, ppm) in promised {
                if let Some(ppm) = ppm {
                    number(&mut text, key, ppm);
                }
            }
            write_tables(tables, &mut text);
        }
        let cpu = None;
        let mut writer = Writer { out, text, cpu };
        writer.pass_on()?;
        Ok(writer)
    }

    /// Writes further records of a CPU, which are whole entries.
    ///
    /// # Errors
    /// Those of the file or whatever it is.
    pub fn append(&mut self, cpu: usize, records: &Records) -> io::Result<()> {
        if self.cpu != Some(cpu) {
            self.cpu = Some(cpu);
            number(&mut self.text, "records", cpu as u64);
        }
        for (_, record) in records {
            encode::record(&record, |words| put(&mut self.text, words));
            if self.text.len() >= CHUNK {
                self.pass_on()?;
            }
        }
        self.pass_on()
    }

    /// Writes what is known of `log` after its run.
    ///
    /// # Errors
    /// Those of the file or whatever it is.
    pub fn finish(mut self, log: &Log) -> io::Result<()> {
        tail(log, &mut self.text);
        for (at, cpu) in log.cpus.iter().enumerate() {
            number(&mut self.text, "counted", at as u64);
            counters(cpu, &mut self.text);
            for (thread, task) in &cpu.created {
                put_line(&mut self.text, TablesLine::Created(*thread, *task));
            }
            for moved in &cpu.moves {
                graphs::write_move(&mut self.text, moved);
                if self.text.len() >= CHUNK {
                    self.pass_on()?;
                }
            }
        }
        self.text.push_str("end-of-log\n");
        self.pass_on()?;
        self.out.flush()
    }

    fn pass_on(&mut self) -> io::Result<()> {
        self.out.write_all(self.text.as_bytes())?;
        self.text.clear();
        Ok(())
    }
}

fn require(text: &mut String, requirement: &Requirement) {
    let within = requirement.within().as_ns();
    let _ = write!(text, "require {} {within}", requirement.name());
    for task in requirement.tasks() {
        let _ = write!(text, " {}", task.0);
    }
    text.push('\n');
}

fn write_change(text: &mut String, change: &ChangeInfo) {
    let (at, name, when) = (
        change.at.as_ns(),
        escape(&change.name),
        escape(&change.when),
    );
    let _ = write!(
        text,
        "change {at}\t{name}\t{when}\t{}\t",
        escape(&change.ground)
    );
    for (place, part) in change.parts.iter().enumerate() {
        let gap = if place == 0 { "" } else { " " };
        let _ = write!(text, "{gap}{part}");
    }
    text.push('\n');
}

fn line(text: &mut String, key: &str, value: &str) {
    text.push_str(key);
    if !value.is_empty() {
        text.push(' ');
        text.push_str(&escape(value));
    }
    text.push('\n');
}

fn number(text: &mut String, key: &str, value: u64) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{key} {value}");
}

fn bound(text: &mut String, key: &str, bound: Option<&Bound>) {
    if let Some(bound) = bound {
        line(text, key, &format!("{} {}", bound.ns, bound.exactness));
        if !bound.explanation.is_empty() {
            line(text, "explanation", &bound.explanation);
        }
    }
}

fn header(log: &Log, text: &mut String) {
    let h = &log.header;
    text.push_str(FIRST_LINE);
    text.push('\n');
    line(text, "platform", &h.platform);
    line(text, "tool", &h.tool);
    line(text, "source", &h.source);
    for (name, value) in &h.machine {
        let _ = writeln!(text, "machine {}\t{}", escape(name), escape(value));
    }
    number(text, "seed", h.seed);
    number(text, "frequency", log.tables.frequency.hertz());
    number(text, "duration", h.duration.as_ns());
}

/// What is known at the end.
fn tail(log: &Log, text: &mut String) {
    let h = &log.header;
    number(text, "ended", h.end.ticks());
    line(text, "mode", h.mode.name());
    for lost in &h.lost {
        line(text, "lost", lost);
    }
    for (at, graph) in log.graphs.iter().enumerate() {
        if let Some(from) = graph.lost_from {
            let _ = writeln!(text, "moves-lost {at} {}", from.ticks());
        }
    }
    if let Some(from) = h.clocks_apart {
        number(text, "clocks-apart", from.as_ns());
    }
    if let Some(stopped) = &h.stopped {
        line(text, "stopped", stopped);
    }
    for fault in &h.faults {
        line(text, "fault", fault);
    }
    if let Some(oracle) = log.oracle {
        let _ = writeln!(text, "oracle {} {}", oracle.steps, oracle.mismatches);
    }
    for request in &log.requests {
        groups::write_request(text, request);
    }
}

fn counters(cpu: &CpuLog, text: &mut String) {
    let c = &cpu.counters;
    number(text, "deferrals", c.deferrals);
    number(text, "deferred-p50", c.deferred_p50_ns);
    number(text, "deferred-p99", c.deferred_p99_ns);
    number(text, "deferred-max", c.deferred_max_ns);
    number(text, "late-max", c.late_max_ns);
    number(text, "missing-error", c.missing_error_ns);
    line(text, "missing-method", &c.missing_method);
    if let Some(boundaries) = &c.boundaries {
        let numbers = boundaries.numbers().map(|number| number.to_string());
        line(text, "boundaries", &numbers.join(" "));
    }
    for (name, value) in &c.others {
        line(text, "counter", &format!("{value} {name}"));
    }
    for (task, ns) in &c.programs {
        line(text, "program", &format!("{} {ns}", task.index()));
    }
    for taker in &c.takers {
        let (at, ns) = (taker.at.ticks(), taker.ns);
        line(text, "taker", &format!("{at} {ns} {}", taker.name));
    }
    if let Some(lost_from) = cpu.lost_from {
        number(text, "lost-from", lost_from.ticks());
    }
}

fn write_tables(tables: &CpuTables, text: &mut String) {
    let _ = write!(text, "plan {}", tables.cpu.0);
    let _ = policy::write(text, tables.policy);
    text.push('\n');
    let room = tables.capacity;
    let turn = room.background_turn.ticks();
    let _ = write!(text, "capacity {} {} {turn}", room.threads, room.pending);
    let costs = [room.grace, room.stop_cost, room.cache_delay, room.entry].map(Work::ticks);
    let used = costs
        .iter()
        .rposition(|cost| *cost > 0)
        .map_or(0, |at| at + 1);
    if room.nodes > 0 || used > 0 {
        let _ = write!(text, " {}", room.nodes);
    }
    for cost in &costs[..used] {
        let _ = write!(text, " {cost}");
    }
    text.push('\n');
    let mut put = |line| put_line(text, line);
    for node in &tables.nodes {
        put(TablesLine::Node(*node));
    }
    for row in &tables.fallbacks {
        put(TablesLine::Fallback(*row));
    }
    for node in &tables.absent {
        put(TablesLine::Absent(*node));
    }
    if tables.agenda.room > 0 {
        put(TablesLine::AgendaRoom(tables.agenda.room));
    }
    for &(slot, to, there) in &tables.agenda.peers {
        put(TablesLine::AgendaPeer(slot, to, there));
    }
    for (thread, home) in (0..).zip(&tables.homes) {
        if *home != 0 {
            put(TablesLine::Home(thread, *home));
        }
    }
    for slot in &tables.slots {
        put(TablesLine::Slot(*slot));
    }
    for resource in &tables.resources {
        put(TablesLine::Resource(*resource));
    }
    for (thread, declared) in &tables.uses {
        put(TablesLine::Use(*thread, *declared));
    }
    for (task, constraint) in &tables.threads {
        put(TablesLine::Thread(*task, *constraint));
    }
    for (first, period) in &tables.remotes {
        put(TablesLine::Remote(*first, *period));
    }
    for (successor, edge) in &tables.edges {
        put(TablesLine::Edge(*successor, *edge));
    }
    for (thread, to, slot) in &tables.notifications {
        put(TablesLine::Notify(*thread, *to, *slot));
    }
}

fn put_line(text: &mut String, line: TablesLine) {
    form::store_tables(&line, |words| put(text, words));
}

/// Writes the line of a record from its words.
pub(super) fn put(text: &mut String, words: &[u64]) {
    let kind = u8::try_from(words[0] & 0xff).unwrap_or(u8::MAX);
    let Some(form) = form::of_kind(kind) else {
        return;
    };
    text.push_str(form::mark(kind));
    text.push_str(form.name);
    let _ = write_fields(text, form, words);
    text.push('\n');
}
