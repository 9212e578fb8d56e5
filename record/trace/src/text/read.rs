//! Reads a log, line by line; every mistake has its line, and no input makes it panic.

use std::io::BufRead;

use punctual_model::{Frequency, Instant, Requirement, Span, TaskId};
use punctual_tables::{CpuTables, Tables};

use super::read_tables::{TablesReader, check_room, created, words_of};
use super::words::{clip, instant, number, unescape};
use super::{FIRST_LINE, LogError};
use super::{gangs, graphs, groups};
use crate::boundary::Boundaries;
use crate::encode;
use crate::form::{self, Form};
use crate::gangs::GangInfo;
use crate::graphs::GraphInfo;
use crate::groups::{GroupInfo, RequestInfo};
use crate::log::{
    Bound, ChangeInfo, CpuLog, Header, Log, Mode, Oracle, PREFIX, TakingThread, TaskInfo,
};
use crate::record::Records;
use crate::value::Field;

/// Lines that no header does without.
const NEEDED: [&str; 2] = ["platform", "duration"];

const NO_EVENT: &str =
    "the entry before has no event: after `@ missing`, `@ ceiling` and `@ taken-by` one comes";
const PREFIX_ORDER: &str = "before an event stands at most one each of `@ missing`, `@ ceiling`, `@ taken-by`, in this order";

/// Reads a log. One that ends too early, because the program that wrote it was killed or the disk
/// was full, is read as far as it goes: [`Log::is_prefix`] says so, and each CPU from when on
/// nothing of it is there.
///
/// # Errors
/// The first mistake with its line: not a log of this version, an unknown or misplaced line, a
/// field that is not what its column holds, an end before the first record, bytes that are not
/// UTF-8, or an error of `source` itself.
pub fn read(source: &mut impl BufRead) -> Result<Log, LogError> {
    let mut reader = Reader::default();
    let mut line = String::new();
    let mut number = 0;
    while !reader.is_done() {
        line.clear();
        number += 1;
        let at = |message: String| LogError {
            line: number,
            message,
        };
        let length = source
            .read_line(&mut line)
            .map_err(|error| at(error.to_string()))?;
        let text = line.strip_suffix('\n').unwrap_or(&line);
        let is_whole = text.len() < length || text == "end-of-log";
        if number == 1 {
            check_version(text).map_err(at)?;
        } else if is_whole {
            reader.line(text).map_err(at)?;
        } else {
            // The rest of a line is no line.
            return reader.prefix(number - 1).map_err(at);
        }
    }
    reader.finish(number).map_err(|message| LogError {
        line: number,
        message,
    })
}

fn check_version(text: &str) -> Result<(), String> {
    match text {
        FIRST_LINE => Ok(()),
        _ if text.starts_with("punctual-log ") => Err(format!(
            "`{}` is another version than `{FIRST_LINE}`: record the run again, or read the log \
             with the release that wrote it",
            clip(text)
        )),
        _ => Err(format!(
            "`{}` is not `{FIRST_LINE}`: this is no log",
            clip(text)
        )),
    }
}

/// The part of a log that lines are read into.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Part {
    #[default]
    Header,
    Cpu,
    /// Of this CPU.
    Records(usize),
    Tail,
    /// Of this CPU.
    Counted(usize),
    Done,
}

/// The records of one CPU.
#[derive(Default)]
struct Recorded {
    words: Vec<u64>,
    /// How many of them are whole entries, and the instant of the last of those.
    whole: usize,
    last: Option<Instant>,
    /// The instant of the entry that is read.
    now: Option<Instant>,
    /// The kind of the last line of an entry whose event is still to come.
    prefix: Option<u8>,
}

#[derive(Default)]
struct Reader {
    part: Part,
    header: Header,
    /// Of the lines that a header cannot do without, those that were there.
    seen: Vec<&'static str>,
    frequency: Option<Frequency>,
    oracle: Option<Oracle>,
    tasks: Vec<TaskInfo>,
    schedulers: Vec<String>,
    resources: Vec<String>,
    requirements: Vec<Requirement>,
    changes: Vec<ChangeInfo>,
    graphs: Vec<GraphInfo>,
    gangs: Vec<GangInfo>,
    groups: Vec<GroupInfo>,
    requests: Vec<RequestInfo>,
    cpus: Vec<CpuLog>,
    cpu_tables: Vec<CpuTables>,
    recorded: Vec<Recorded>,
    reading: TablesReader,
}

impl Reader {
    fn is_done(&self) -> bool {
        self.part == Part::Done
    }

    fn line(&mut self, text: &str) -> Result<(), String> {
        if let Part::Records(cpu) = self.part
            && let Some(mark) = text.get(..2)
            && matches!(mark, "@ " | "+ " | "= ")
        {
            let threads = self.cpu_tables[cpu].capacity.threads;
            return self.recorded[cpu].line(&text[2..], mark, threads);
        }
        let (key, rest) = text.split_once(' ').unwrap_or((text, ""));
        match (key, self.part) {
            ("cpu", Part::Header | Part::Cpu) => {
                self.end_tables()?;
                self.cpus.push(CpuLog {
                    name: unescape(rest)?,
                    ..CpuLog::default()
                });
                self.part = Part::Cpu;
                Ok(())
            }
            ("records", Part::Cpu | Part::Records(_)) => {
                self.end_section()?;
                self.part = Part::Records(self.numbered(rest)?);
                Ok(())
            }
            ("ended", Part::Header | Part::Cpu | Part::Records(_)) => {
                self.end_section()?;
                self.header.end = instant(number(rest)?)?;
                self.part = Part::Tail;
                Ok(())
            }
            ("counted", Part::Tail | Part::Counted(_)) => {
                self.part = Part::Counted(self.numbered(rest)?);
                Ok(())
            }
            ("end-of-log", Part::Tail | Part::Counted(_)) => {
                if !self.seen.contains(&"mode") {
                    return Err("the log has no `mode`".into());
                }
                self.part = Part::Done;
                Ok(())
            }
            ("end-of-log", _) => Err("the log has no `ended`".into()),
            (_, Part::Header) => self.header(key, rest),
            (_, Part::Cpu) => self.cpu(key, rest),
            (_, Part::Tail) => self.tail(key, rest),
            ("moved", Part::Counted(cpu)) => {
                let moved = graphs::read_move(&self.graphs, rest)?;
                let actors = &self.graphs[moved.graph.index()].graph.actors;
                if actors[moved.actor.index()].tile.cpu.index() != cpu {
                    return Err("the transition of an actor of another CPU".into());
                }
                let moves = &mut self.cpus[cpu].moves;
                if moves.last().is_some_and(|last| last.at > moved.at) {
                    return Err("it was before the transition of the line before".into());
                }
                moves.push(moved);
                Ok(())
            }
            (_, Part::Counted(cpu)) => counted(&mut self.cpus[cpu], key, rest),
            (_, Part::Records(_)) => Err(format!("`{}` is not a record", clip(text))),
            (_, Part::Done) => Ok(()),
        }
    }

    /// The CPU that a section is about.
    fn numbered(&self, rest: &str) -> Result<usize, String> {
        let cpu = usize::try_from(number(rest)?).ok();
        let cpu = cpu.filter(|cpu| *cpu < self.cpu_tables.len());
        cpu.ok_or_else(|| format!("the log has no CPU number {}", clip(rest)))
    }

    fn header(&mut self, key: &str, rest: &str) -> Result<(), String> {
        self.seen
            .extend(NEEDED.iter().filter(|needed| **needed == key));
        let h = &mut self.header;
        match key {
            "platform" => h.platform = unescape(rest)?,
            "tool" => h.tool = unescape(rest)?,
            "source" => h.source = unescape(rest)?,
            "machine" => {
                let (name, value) = rest
                    .split_once('\t')
                    .ok_or("name and value are separated by a tab")?;
                h.machine.push((unescape(name)?, unescape(value)?));
            }
            "seed" => h.seed = number(rest)?,
            "frequency" => {
                let hertz = number(rest)?;
                let frequency = Frequency::try_new(hertz);
                self.frequency = Some(frequency.ok_or("a frequency of 0")?);
            }
            "duration" => h.duration = Span::from_ns(instant(number(rest)?)?.ticks()),
            "task" => self.tasks.push(TaskInfo {
                name: unescape(rest)?,
                ..TaskInfo::default()
            }),
            "scheduler" => self.schedulers.push(unescape(rest)?),
            "resource" => self.resources.push(unescape(rest)?),
            "require" => self.requirements.push(requirement(rest)?),
            "change" => self.changes.push(change(rest)?),
            "gang" => self.gangs.push(gangs::read(rest)?),
            "group" => self.groups.push(groups::read(rest)?),
            "bound" => self.task()?.bound = Some(bound(rest)?),
            "machine-bound" => self.task()?.machine_bound = Some(bound(rest)?),
            "explanation" => {
                let task = self.task()?;
                // It is about the line before, and the machine's bound is the second.
                let bound = task.machine_bound.as_mut().or(task.bound.as_mut());
                bound.ok_or("an explanation before any bound")?.explanation = unescape(rest)?;
            }
            _ if graphs::read(&mut self.graphs, key, rest)? => {}
            _ => return Err(format!("`{}` is unknown here", clip(key))),
        }
        Ok(())
    }

    fn task(&mut self) -> Result<&mut TaskInfo, String> {
        self.tasks
            .last_mut()
            .ok_or("a bound before any task".into())
    }

    fn cpu(&mut self, key: &str, rest: &str) -> Result<(), String> {
        match (key, self.cpus.last_mut()) {
            ("host", Some(cpu)) => {
                let host = number(rest)?;
                let host = u32::try_from(host).map_err(|_| "no CPU has such a number")?;
                cpu.host = Some(host);
                Ok(())
            }
            ("clock", Some(cpu)) => {
                cpu.clock = gangs::read_clock(rest)?;
                Ok(())
            }
            ("utilization", Some(cpu)) => {
                cpu.utilization_ppm = Some(number(rest)?);
                Ok(())
            }
            ("machine-utilization", Some(cpu)) => {
                cpu.machine_utilization_ppm = Some(number(rest)?);
                Ok(())
            }
            _ => self.reading.line(key, rest),
        }
    }

    /// What is known at the end.
    fn tail(&mut self, key: &str, rest: &str) -> Result<(), String> {
        let h = &mut self.header;
        match key {
            "mode" => {
                h.mode = mode(rest)?;
                self.seen.push("mode");
            }
            "lost" => h.lost.push(unescape(rest)?),
            "moves-lost" => {
                let (graph, from) = rest.split_once(' ').ok_or("two numbers are needed")?;
                let graph = usize::try_from(number(graph)?).ok();
                let graph = graph.and_then(|graph| self.graphs.get_mut(graph));
                let from = instant(number(from)?)?;
                graph.ok_or("there is no such graph")?.lost_from = Some(from);
            }
            "clocks-apart" => {
                let from = instant(number(rest)?)?;
                h.clocks_apart = Some(punctual_model::Instant::from_ns(from.ticks()));
            }
            "request" => {
                let request = groups::read_request(self.groups.len(), rest)?;
                self.requests.push(request);
            }
            "stopped" => h.stopped = Some(unescape(rest)?),
            "fault" => h.faults.push(unescape(rest)?),
            "oracle" => {
                let (steps, mismatches) = rest.split_once(' ').ok_or("two numbers are needed")?;
                self.oracle = Some(Oracle {
                    steps: number(steps)?,
                    mismatches: number(mismatches)?,
                });
            }
            _ => return Err(format!("`{}` is unknown here", clip(key))),
        }
        Ok(())
    }

    /// After the tables of a CPU.
    fn end_tables(&mut self) -> Result<(), String> {
        if self.part == Part::Cpu {
            let tables = std::mem::take(&mut self.reading).finish()?;
            self.cpu_tables.push(tables);
            self.recorded.push(Recorded::default());
        }
        Ok(())
    }

    /// After the tables of the last CPU, or after some records.
    fn end_section(&mut self) -> Result<(), String> {
        match self.part {
            Part::Records(cpu) if self.recorded[cpu].prefix.is_some() => Err(NO_EVENT.into()),
            _ => self.end_tables(),
        }
    }

    /// The log as far as it goes.
    fn prefix(mut self, lines: usize) -> Result<Log, String> {
        if matches!(self.part, Part::Header | Part::Cpu) {
            return Err("the log ends before its first record".into());
        }
        if self.header.platform == "sim" {
            self.header.mode = Mode::Virtual;
        }
        let mut until = Instant::ZERO;
        for (cpu, recorded) in self.cpus.iter_mut().zip(&mut self.recorded) {
            recorded.words.truncate(recorded.whole);
            recorded.prefix = None;
            until = until.max(recorded.last.unwrap_or_default());
            let next = recorded
                .last
                .map_or(Instant::ZERO, |at| at.saturating_add(Span::from_ticks(1)));
            cpu.lost_from = Some(cpu.lost_from.map_or(next, |lost| lost.min(next)));
        }
        self.header.end = self.header.end.max(until);
        let why = format!("{PREFIX}: after line {lines}, without its end");
        self.header.stopped = Some(match self.header.stopped.take() {
            Some(stopped) => format!("{why} ({stopped})"),
            None => why,
        });
        self.finish(lines)
    }

    fn finish(mut self, lines: usize) -> Result<Log, String> {
        let missing = |key: &str| format!("the log has no `{key}`");
        if let Some(key) = NEEDED.iter().find(|key| !self.seen.contains(key)) {
            return Err(missing(key));
        }
        for (cpu, recorded) in self.cpus.iter_mut().zip(self.recorded) {
            cpu.records = Records::from_words(recorded.words);
            cpu.created.sort_unstable();
        }
        let tables = Tables {
            frequency: self.frequency.ok_or_else(|| missing("frequency"))?,
            cpus: self.cpu_tables,
        };
        check_room(&tables.cpus, lines)?;
        for node in tables.cpus.iter().flat_map(|cpu| &cpu.nodes) {
            if node.scheduler.index() >= self.schedulers.len() {
                let scheduler = node.scheduler.0;
                return Err(format!(
                    "a node of scheduler {scheduler}, which is not here"
                ));
            }
        }
        let given = tables.cpus.iter().flat_map(|cpu| &cpu.threads);
        let created = self.cpus.iter().flat_map(|cpu| &cpu.created);
        let programs = self.cpus.iter().flat_map(|cpu| &cpu.counters.programs);
        let tasks = given.map(|t| t.0).chain(created.map(|t| t.1));
        let mut tasks = tasks.chain(programs.map(|t| t.0));
        if let Some(task) = tasks.find(|task| task.index() >= self.tasks.len()) {
            return Err(format!("a thread of task {}, which is not here", task.0));
        }
        let mut members = self.gangs.iter().flat_map(|gang| &gang.members);
        if let Some(task) = members.find(|task| task.index() >= self.tasks.len()) {
            return Err(format!(
                "a member of a gang, task {}, which is not here",
                task.0
            ));
        }
        let mut required = self.requirements.iter().flat_map(Requirement::tasks);
        if let Some(task) = required.find(|task| task.index() >= self.tasks.len()) {
            return Err(format!(
                "a requirement on task {}, which is not here",
                task.0
            ));
        }
        Ok(Log {
            header: self.header,
            tables,
            tasks: self.tasks,
            schedulers: self.schedulers,
            resources: self.resources,
            requirements: self.requirements,
            changes: self.changes,
            graphs: self.graphs,
            gangs: self.gangs,
            groups: self.groups,
            requests: self.requests,
            cpus: self.cpus,
            oracle: self.oracle,
        })
    }
}

fn mode(text: &str) -> Result<Mode, String> {
    let modes = [Mode::RealTime, Mode::BestEffort, Mode::Virtual];
    let mode = modes.into_iter().find(|mode| mode.name() == text);
    mode.ok_or_else(|| format!("`{}` is no mode", clip(text)))
}

fn change(text: &str) -> Result<ChangeInfo, String> {
    let fields: Vec<&str> = text.split('\t').collect();
    let &[at, name, when, ground, parts] = fields.as_slice() else {
        return Err("a change has five fields, separated by tabs".into());
    };
    let part = |text: &str| u32::try_from(number(text)?).map_err(|_| "too many events".to_string());
    let parts = parts.split(' ').filter(|text| !text.is_empty());
    Ok(ChangeInfo {
        name: unescape(name)?,
        at: Instant::from_ns(instant(number(at)?)?.ticks()),
        when: unescape(when)?,
        ground: unescape(ground)?,
        parts: parts.map(part).collect::<Result<_, _>>()?,
    })
}

fn requirement(text: &str) -> Result<Requirement, String> {
    let mut words = text.split(' ');
    let kind = words.next().unwrap_or("");
    let within = number(words.next().ok_or("a time in nanoseconds is needed")?)?;
    let within = Span::from_ns(within);
    let task = |word: &str| {
        let task = u32::try_from(number(word)?);
        task.map(TaskId)
            .map_err(|_| "no task has such a number".to_string())
    };
    let tasks: Vec<TaskId> = words.map(task).collect::<Result<_, _>>()?;
    match (kind, tasks.as_slice()) {
        ("response", &[task]) => Ok(Requirement::Response { task, within }),
        ("jitter", &[task]) => Ok(Requirement::Jitter { task, within }),
        ("chain", [_, _, ..]) => Ok(Requirement::Chain { tasks, within }),
        _ => Err(format!("`{}` is no requirement", clip(text))),
    }
}

fn bound(text: &str) -> Result<Bound, String> {
    let (ns, exactness) = text.split_once(' ').unwrap_or((text, ""));
    Ok(Bound {
        ns: number(ns)?,
        exactness: unescape(exactness)?,
        explanation: String::new(),
    })
}

fn taker(text: &str) -> Result<TakingThread, String> {
    let mut words = text.splitn(3, ' ');
    let mut next = || words.next().unwrap_or("");
    Ok(TakingThread {
        at: instant(number(next())?)?,
        ns: number(next())?,
        name: unescape(next())?,
    })
}

/// Reads a line about what a platform counted on a CPU.
fn counted(cpu: &mut CpuLog, key: &str, rest: &str) -> Result<(), String> {
    let c = &mut cpu.counters;
    match key {
        "deferrals" => c.deferrals = number(rest)?,
        "deferred-p50" => c.deferred_p50_ns = number(rest)?,
        "deferred-p99" => c.deferred_p99_ns = number(rest)?,
        "deferred-max" => c.deferred_max_ns = number(rest)?,
        "late-max" => c.late_max_ns = number(rest)?,
        "missing-error" => c.missing_error_ns = number(rest)?,
        "missing-method" => c.missing_method = unescape(rest)?,
        "boundaries" => {
            let numbers: Result<Vec<u64>, _> = rest.split(' ').map(number).collect();
            let boundaries = Boundaries::of_numbers(&numbers?);
            c.boundaries = Some(boundaries.ok_or("boundaries have 17 numbers, or 16")?);
        }
        "counter" => {
            let (value, name) = rest.split_once(' ').unwrap_or((rest, ""));
            c.others.push((unescape(name)?, number(value)?));
        }
        "program" => {
            let (task, ns) = rest.split_once(' ').unwrap_or((rest, ""));
            let task = u32::try_from(number(task)?).map_err(|_| "no task has that number")?;
            c.programs.push((TaskId(task), number(ns)?));
        }
        "taker" => c.takers.push(taker(rest)?),
        "lost-from" => cpu.lost_from = Some(instant(number(rest)?)?),
        "created" => cpu.created.push(created(rest)?),
        _ => return Err(format!("`{}` is unknown here", clip(key))),
    }
    Ok(())
}

impl Recorded {
    /// Reads a line of records; the CPU has places for `threads` of them.
    fn line(&mut self, text: &str, mark: &str, threads: usize) -> Result<(), String> {
        let (tables, is_entry): (&[_], _) = match mark {
            "@ " => (&[form::EVENTS, form::PREFIXES], true),
            "+ " => (&[form::TRACES], false),
            _ => (&[form::DECISIONS], false),
        };
        let (name, fields) = text.split_once(' ').unwrap_or((text, ""));
        let mut forms = tables.iter().copied().flatten();
        let Some(form) = forms.find(|form| form.name == name) else {
            return Err(format!("`{}` is no record of this kind", clip(name)));
        };
        if self.prefix.is_some() && !is_entry {
            return Err(NO_EVENT.into());
        }
        let mut prefixes = form::PREFIXES.iter().map(|prefix| prefix.kind);
        let prefix = prefixes.find(|kind| *kind == form.kind);
        if prefix.is_some() && prefix <= self.prefix {
            return Err(PREFIX_ORDER.into());
        }
        let words = words_of(form, fields)?;
        if !encode::is_line(&words) {
            return Err(format!("the fields of `{name}` do not belong together"));
        }
        // An event may name anything: the scheduler refuses it. What it did, it did to threads.
        if !is_entry {
            check_threads(form, &words, threads)?;
        }
        self.words.extend_from_slice(&words);
        self.prefix = prefix;
        if is_entry && prefix.is_none() {
            // Every event has its instant first.
            self.now = words.get(1).copied().map(instant).transpose()?;
        } else if mark == "= " {
            (self.whole, self.last) = (self.words.len(), self.now);
        }
        Ok(())
    }
}

/// Readers have a place for every thread that a record names.
fn check_threads(form: &Form, words: &[u64], threads: usize) -> Result<(), String> {
    let columns = form.columns.iter().zip(words.iter().skip(1)).enumerate();
    for (at, (column, word)) in columns {
        let is_there = words[0] >> (8 + at) & 1 == 0;
        let index = word & u64::from(u32::MAX);
        if is_there && column.field == Field::Thread && index >= threads as u64 {
            return Err(format!(
                "thread {index} on a CPU with room for {threads} (its `capacity`)"
            ));
        }
    }
    Ok(())
}
