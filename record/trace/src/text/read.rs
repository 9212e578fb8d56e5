//! Reads a log, line by line; every mistake has its line, and no input makes it panic.

use std::io::BufRead;

use punctual_model::{Frequency, Instant, Requirement, Span, TaskId};
use punctual_tables::{CpuTables, Tables};

use super::read_tables::{TablesReader, words_of};
use super::words::{clip, number, unescape};
use super::{FIRST_LINE, LogError};
use crate::encode;
use crate::form;
use crate::log::{Bound, CpuLog, Header, Log, Mode, Oracle, TaskInfo};
use crate::record::Records;

/// Lines that no header does without.
const NEEDED: [&str; 4] = ["platform", "mode", "duration", "ended"];

const NO_EVENT: &str = "the entry before has no event: after `@ missing` and `@ ceiling` one comes";
const PREFIX_ORDER: &str =
    "before an event stands at most one `@ missing`, then at most one `@ ceiling`";

/// Reads a log.
///
/// # Errors
/// The first mistake with its line: not a log of this version, an unknown or misplaced line, a
/// field that is not what its column holds, an end before `end-of-log`, bytes that are not UTF-8,
/// or an error of `source` itself.
pub fn read(source: &mut impl BufRead) -> Result<Log, LogError> {
    let mut reader = Reader::default();
    let mut line = String::new();
    let mut number = 0;
    while !reader.done {
        line.clear();
        number += 1;
        let at = |message: String| LogError {
            line: number,
            message,
        };
        match source.read_line(&mut line) {
            Ok(0) => return Err(at("the log ends before its `end-of-log`".into())),
            Ok(_) => {}
            Err(error) => return Err(at(error.to_string())),
        }
        let text = line.strip_suffix('\n').unwrap_or(&line);
        if number == 1 {
            if text != FIRST_LINE {
                return Err(at(match text.starts_with("punctual-log ") {
                    true => format!(
                        "`{}` is another version than `{FIRST_LINE}`: record the run again, or \
                         read the log with the release that wrote it",
                        clip(text)
                    ),
                    false => format!("`{}` is not `{FIRST_LINE}`: this is no log", clip(text)),
                }));
            }
            continue;
        }
        reader.line(text).map_err(at)?;
    }
    reader.finish().map_err(|message| LogError {
        line: number,
        message,
    })
}

/// The part of a log that lines are read into.
#[derive(Default)]
enum Part {
    #[default]
    Header,
    Cpu,
    /// The words, and the kind of the last line of an entry whose event is still to come.
    Records(Vec<u64>, Option<u8>),
}

#[derive(Default)]
struct Reader {
    part: Part,
    done: bool,
    header: Header,
    /// Of the lines that a header cannot do without, those that were there.
    seen: Vec<&'static str>,
    frequency: Option<Frequency>,
    oracle: Option<Oracle>,
    tasks: Vec<TaskInfo>,
    schedulers: Vec<String>,
    resources: Vec<String>,
    requirements: Vec<Requirement>,
    cpus: Vec<CpuLog>,
    cpu_tables: Vec<CpuTables>,
    reading: TablesReader,
}

impl Reader {
    fn line(&mut self, text: &str) -> Result<(), String> {
        if let Part::Records(words, prefix) = &mut self.part
            && let Some(mark) = text.get(..2)
            && matches!(mark, "@ " | "+ " | "= ")
        {
            *prefix = record(&text[2..], mark, words, *prefix)?;
            return Ok(());
        }
        let (key, rest) = text.split_once(' ').unwrap_or((text, ""));
        match (key, &self.part) {
            ("end-of-log", _) => {
                self.end_cpu()?;
                self.done = true;
                Ok(())
            }
            ("cpu", _) => {
                self.end_cpu()?;
                self.cpus.push(CpuLog {
                    name: unescape(rest)?,
                    ..CpuLog::default()
                });
                self.part = Part::Cpu;
                Ok(())
            }
            (_, Part::Header) => self.header(key, rest),
            ("records", Part::Cpu) => {
                self.part = Part::Records(Vec::new(), None);
                Ok(())
            }
            (_, Part::Cpu) => self.cpu(key, rest),
            (_, Part::Records(..)) => Err(format!("`{}` is not a record", clip(text))),
        }
    }

    fn header(&mut self, key: &str, rest: &str) -> Result<(), String> {
        self.seen
            .extend(NEEDED.iter().filter(|needed| **needed == key));
        let h = &mut self.header;
        match key {
            "platform" => h.platform = unescape(rest)?,
            "mode" => h.mode = mode(rest)?,
            "lost" => h.lost.push(unescape(rest)?),
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
            "duration" => h.duration = Span::from_ns(number(rest)?),
            "ended" => h.end = Instant::from_ticks(number(rest)?),
            "stopped" => h.stopped = Some(unescape(rest)?),
            "fault" => h.faults.push(unescape(rest)?),
            "oracle" => {
                let (steps, mismatches) = rest.split_once(' ').ok_or("two numbers are needed")?;
                self.oracle = Some(Oracle {
                    steps: number(steps)?,
                    mismatches: number(mismatches)?,
                });
            }
            "task" => self.tasks.push(TaskInfo {
                name: unescape(rest)?,
                ..TaskInfo::default()
            }),
            "scheduler" => self.schedulers.push(unescape(rest)?),
            "resource" => self.resources.push(unescape(rest)?),
            "require" => self.requirements.push(requirement(rest)?),
            "bound" => self.task()?.bound = Some(bound(rest)?),
            "machine-bound" => self.task()?.machine_bound = Some(bound(rest)?),
            "explanation" => {
                let task = self.task()?;
                // It is about the line before, and the machine's bound is the second.
                let bound = task.machine_bound.as_mut().or(task.bound.as_mut());
                bound.ok_or("an explanation before any bound")?.explanation = unescape(rest)?;
            }
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
        let Some(cpu) = self.cpus.last_mut() else {
            return Err("no CPU yet".into());
        };
        let c = &mut cpu.counters;
        match key {
            "host" => {
                let host = number(rest)?;
                let host = u32::try_from(host).map_err(|_| "no CPU has such a number")?;
                cpu.host = Some(host);
            }
            "utilization" => cpu.utilization_ppm = Some(number(rest)?),
            "machine-utilization" => cpu.machine_utilization_ppm = Some(number(rest)?),
            "deferrals" => c.deferrals = number(rest)?,
            "deferred-p50" => c.deferred_p50_ns = number(rest)?,
            "deferred-p99" => c.deferred_p99_ns = number(rest)?,
            "deferred-max" => c.deferred_max_ns = number(rest)?,
            "late-max" => c.late_max_ns = number(rest)?,
            "missing-error" => c.missing_error_ns = number(rest)?,
            "missing-method" => c.missing_method = unescape(rest)?,
            "counter" => {
                let (value, name) = rest.split_once(' ').unwrap_or((rest, ""));
                c.others.push((unescape(name)?, number(value)?));
            }
            "lost-from" => cpu.lost_from = Some(Instant::from_ticks(number(rest)?)),
            _ => self.reading.line(key, rest)?,
        }
        Ok(())
    }

    fn end_cpu(&mut self) -> Result<(), String> {
        match std::mem::take(&mut self.part) {
            Part::Header => Ok(()),
            Part::Cpu => Err("a CPU without its `records`".into()),
            Part::Records(_, Some(_)) => Err(NO_EVENT.into()),
            Part::Records(words, None) => {
                let (tables, created) = std::mem::take(&mut self.reading).finish()?;
                if let Some(cpu) = self.cpus.last_mut() {
                    cpu.records = Records::from_words(words);
                    cpu.created = created;
                }
                self.cpu_tables.push(tables);
                Ok(())
            }
        }
    }

    fn finish(self) -> Result<Log, String> {
        let missing = |key: &str| format!("the log has no `{key}`");
        if let Some(key) = NEEDED.iter().find(|key| !self.seen.contains(key)) {
            return Err(missing(key));
        }
        let tables = Tables {
            frequency: self.frequency.ok_or_else(|| missing("frequency"))?,
            cpus: self.cpu_tables,
        };
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
        let mut tasks = given.map(|t| t.0).chain(created.map(|t| t.1));
        if let Some(task) = tasks.find(|task| task.index() >= self.tasks.len()) {
            return Err(format!("a thread of task {}, which is not here", task.0));
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

/// Reads one line of records and appends its words. `before` and the answer: the kind of the line,
/// if the event of its entry is still to come.
fn record(
    text: &str,
    mark: &str,
    all: &mut Vec<u64>,
    before: Option<u8>,
) -> Result<Option<u8>, String> {
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
    if before.is_some() && !is_entry {
        return Err(NO_EVENT.into());
    }
    let mut prefixes = form::PREFIXES.iter().map(|prefix| prefix.kind);
    let prefix = prefixes.find(|kind| *kind == form.kind);
    if prefix.is_some() && prefix <= before {
        return Err(PREFIX_ORDER.into());
    }
    let words = words_of(form, fields)?;
    if !encode::is_line(&words) {
        return Err(format!("the fields of `{name}` do not belong together"));
    }
    all.extend_from_slice(&words);
    Ok(prefix)
}
