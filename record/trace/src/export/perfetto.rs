//! A log as a Perfetto trace (`.pftrace`), with native CPU lanes.
//!
//! ```text
//!   sched_switch, sched_waking  (ftrace bundles)   one lane per CPU, thread states
//!   track per task              (track events)     a slice per job, deadlines and misses on it
//!   track per CPU               (track events)     missing time, time given back
//!   track per scheduler         (track events)     slots, no budget, deciding
//!   track per resource          (track events)     who holds it
//!   track per actor             (track events)     a slice per firing, one per state in it
//! ```
//!
//! The trace viewer knows what to do with scheduling events of a kernel, so the switches of our own
//! scheduler are written as such. Timestamps are nanoseconds from the start of the run. Field
//! numbers are those of Perfetto's `trace_packet.proto` and the files it imports.

mod actors;

use std::io::{self, Write};

use punctual_kern::{MissingCause, TraceEvent};
use punctual_model::{Instant, ThreadId};

use super::protobuf::Message;
use crate::behavior::Behavior;
use crate::log::Log;
use crate::record::Record;
use crate::slots;

/// Events of one bundle.
const BUNDLE: usize = 512;
/// The one process that all threads belong to.
const PROCESS: u64 = 1;
/// First track of tasks, and first of CPUs; in between there is room for every thread.
const TASK_TRACKS: u64 = 1 << 32;
const CPU_TRACKS: u64 = 1 << 48;
const SCHEDULER_TRACKS: u64 = 1 << 49;
const RESOURCE_TRACKS: u64 = 1 << 50;
/// Most slots drawn per scheduler.
const MAX_SLOTS: usize = 100_000;

/// Kernel's words: still ready, or asleep.
const RUNNABLE: i64 = 0;
const SLEEPING: i64 = 1;

/// Writes `log`, packet by packet.
///
/// # Errors
/// Those of `out`.
pub fn write(log: &Log, out: &mut impl Write) -> io::Result<()> {
    let mut trace = Trace { log, out };
    trace.describe()?;
    trace.describe_actors()?;
    let mut end = Instant::ZERO;
    for cpu in 0..log.cpus.len() {
        trace.lane(cpu)?;
        let behavior = Behavior::new(log, cpu);
        trace.jobs(cpu, &behavior)?;
        trace.supply(cpu, &behavior)?;
        trace.locks(cpu, &behavior)?;
        end = end.max(behavior.end);
    }
    trace.actors(end)
}

struct Trace<'a, W> {
    log: &'a Log,
    out: &'a mut W,
}

/// The number by which the trace knows a thread; 0 is idle.
fn tid(cpu: usize, thread: usize) -> u64 {
    // Above the number of the process, and apart for every CPU.
    2 + ((cpu as u64) << 20) + thread as u64
}

fn scheduler_track(cpu: usize, place: usize, kind: u64) -> u64 {
    SCHEDULER_TRACKS + ((cpu as u64) << 20) + 4 * place as u64 + kind
}

fn resource_track(cpu: usize, number: usize) -> u64 {
    RESOURCE_TRACKS + ((cpu as u64) << 32) + number as u64
}

impl<W: Write> Trace<'_, W> {
    fn packet(&mut self, packet: Message) -> io::Result<()> {
        // Every packet of ours is of sequence 1.
        let packet = packet.number(10, 1);
        let framed = Message::new().message(1, &packet);
        self.out.write_all(framed.bytes())
    }

    fn track(&mut self, descriptor: &Message) -> io::Result<()> {
        self.packet(Message::new().message(60, descriptor))
    }

    /// Process, threads and tracks.
    fn describe(&mut self) -> io::Result<()> {
        let log = self.log;
        let name = format!("{} ({})", log.header.source, log.header.mode.name());
        let process = Message::new().number(1, PROCESS).text(6, &name);
        self.track(&Message::new().number(1, PROCESS).message(3, &process))?;
        for (cpu, tables) in log.tables.cpus.iter().enumerate().take(log.cpus.len()) {
            let cpu_name = &log.cpus[cpu].name;
            let created = log.cpus[cpu].created.iter().map(|(id, _)| id.index() + 1);
            let places = created.max().unwrap_or(0).max(tables.threads.len());
            for thread in 0..places {
                let task = log.place_name(cpu, thread);
                let id = tid(cpu, thread);
                let thread = Message::new()
                    .number(1, PROCESS)
                    .number(2, id)
                    .text(5, &task);
                self.track(&Message::new().number(1, id).message(4, &thread))?;
                let jobs = format!("{task} jobs (CPU {cpu_name})");
                self.child(TASK_TRACKS + id, &jobs)?;
            }
            let missing = format!("missing time of CPU {cpu_name}");
            self.child(CPU_TRACKS + cpu as u64, &missing)?;
            for place in 1..=tables.nodes.len() {
                let name = format!("scheduler {} (CPU {cpu_name})", log.node_name(cpu, place));
                for (kind, of) in [(0, "slots"), (1, "no budget"), (2, "deciding")] {
                    let track = scheduler_track(cpu, place, kind);
                    self.child(track, &format!("{name}: {of}"))?;
                }
            }
            for number in 0..tables.resources.len() {
                let resource = u32::try_from(number).unwrap_or(u32::MAX);
                let name = log.resource_name(cpu, resource);
                let name = format!("resource {name} (CPU {cpu_name})");
                self.child(resource_track(cpu, number), &name)?;
            }
        }
        Ok(())
    }

    fn child(&mut self, uuid: u64, name: &str) -> io::Result<()> {
        let track = Message::new().number(1, uuid).text(2, name);
        self.track(&track.number(5, PROCESS))
    }

    /// The switches of a CPU, as the kernel would report them.
    fn lane(&mut self, cpu: usize) -> io::Result<()> {
        let log = self.log;
        let mut events = Vec::with_capacity(BUNDLE);
        for (now, record) in &log.cpus[cpu].records {
            let Record::Trace(change) = record else {
                continue;
            };
            events.extend(self.scheduling(cpu, now, change));
            if events.len() >= BUNDLE {
                self.bundle(cpu, &mut events)?;
            }
        }
        self.bundle(cpu, &mut events)
    }

    fn bundle(&mut self, cpu: usize, events: &mut Vec<Message>) -> io::Result<()> {
        let mut bundle = Message::new().number(1, cpu as u64);
        for event in events.drain(..) {
            bundle = bundle.message(2, &event);
        }
        self.packet(Message::new().message(1, &bundle))
    }

    fn scheduling(&self, cpu: usize, now: Instant, change: TraceEvent) -> Option<Message> {
        let (pid, field, event) = match change {
            TraceEvent::Switched {
                from,
                to,
                preempted,
            } => {
                let (prev, prev_name) = self.who(cpu, from);
                let (next, next_name) = self.who(cpu, to);
                let state = if preempted || from.is_none() {
                    RUNNABLE
                } else {
                    SLEEPING
                };
                let switch = Message::new()
                    .text(1, prev_name)
                    .number(2, prev)
                    .number(3, 0)
                    .signed(4, state)
                    .text(5, next_name)
                    .number(6, next)
                    .number(7, 0);
                (prev, 4, switch)
            }
            TraceEvent::Started { thread, .. } | TraceEvent::Woken { thread, .. } => {
                let (pid, name) = self.who(cpu, Some(thread));
                let waking = Message::new().text(1, name).number(2, pid).number(3, 0);
                (0, 20, waking.number(4, 1).number(5, cpu as u64))
            }
            _ => return None,
        };
        let at = self.log.ns(now.ticks());
        Some(
            Message::new()
                .number(1, at)
                .number(2, pid)
                .message(field, &event),
        )
    }

    fn who(&self, cpu: usize, thread: Option<ThreadId>) -> (u64, &str) {
        match thread {
            Some(thread) => {
                let index = thread.index();
                (tid(cpu, index), self.log.task_name(cpu, thread))
            }
            None => (0, "swapper"),
        }
    }

    /// A slice per job, its deadline and its miss; then missing time.
    fn jobs(&mut self, cpu: usize, behavior: &Behavior) -> io::Result<()> {
        let log = self.log;
        // Slices of one track may not overlap: a job that waits behind another begins at its turn.
        let mut free_from = vec![Instant::ZERO; behavior.places];
        for job in &behavior.jobs {
            let thread = job.thread.index();
            let track = TASK_TRACKS + tid(cpu, thread);
            let end = job.ended.unwrap_or(behavior.end);
            let begin = job.arrival.max(free_from[thread]).min(end);
            free_from[thread] = end;
            let notes = [
                ("job", job.index),
                ("response_ns", log.ns(end.since(job.arrival).ticks())),
                ("executed_ns", log.ns(job.received.ticks())),
            ];
            self.event(begin, (1, track), &format!("job {}", job.index), &notes)?;
            if job.absolute_deadline != Instant::MAX {
                let missed = job.missed(behavior.end);
                let what = if missed {
                    "DEADLINE MISSED"
                } else {
                    "deadline"
                };
                let notes = [("job", job.index)];
                self.event(job.absolute_deadline, (3, track), what, &notes)?;
            }
            self.event(end, (2, track), "", &[])?;
        }
        for gap in &behavior.missing {
            let track = CPU_TRACKS + cpu as u64;
            let name = match gap.cause {
                MissingCause::Stolen => "missing",
                MissingCause::GivenBack => "given back",
            };
            self.event(gap.start, (1, track), name, &[])?;
            self.event(gap.end, (2, track), "", &[])?;
        }
        Ok(())
    }

    /// What each scheduler was given: its slots, the time without budget, the time it decided.
    fn supply(&mut self, cpu: usize, behavior: &Behavior) -> io::Result<()> {
        let Some(tables) = self.log.tables.cpus.get(cpu) else {
            return Ok(());
        };
        for place in 1..=tables.nodes.len() {
            let at = u16::try_from(place).unwrap_or(u16::MAX);
            let slots = slots::of_node(tables, at, (Instant::ZERO, behavior.end), MAX_SLOTS);
            self.slices(scheduler_track(cpu, place, 0), "slot", slots)?;
            let starved = behavior.starved.iter().filter(|s| s.node == place);
            let starved = starved.map(|s| (s.start, s.end));
            self.slices(scheduler_track(cpu, place, 1), "no budget", starved)?;
            let deciding = behavior.deciding.iter().filter(|d| d.node == place);
            let deciding = deciding.map(|d| (d.start, d.end));
            self.slices(scheduler_track(cpu, place, 2), "decides", deciding)?;
        }
        Ok(())
    }

    /// Who holds each resource. Readers overlap: the first of them stands for all.
    fn locks(&mut self, cpu: usize, behavior: &Behavior) -> io::Result<()> {
        let log = self.log;
        let mut holds = behavior.holds.clone();
        holds.sort_by_key(|hold| (hold.resource, hold.start));
        let mut last = (u32::MAX, Instant::ZERO);
        for hold in holds {
            let free_from = if last.0 == hold.resource {
                last.1
            } else {
                Instant::ZERO
            };
            let start = hold.start.max(free_from);
            if start < hold.end {
                let track = resource_track(cpu, hold.resource as usize);
                let holder = log.task_name(cpu, hold.thread);
                self.slices(track, holder, [(start, hold.end)])?;
                last = (hold.resource, hold.end);
            }
        }
        Ok(())
    }

    fn slices(
        &mut self,
        track: u64,
        name: &str,
        stretches: impl IntoIterator<Item = (Instant, Instant)>,
    ) -> io::Result<()> {
        for (start, end) in stretches {
            self.event(start, (1, track), name, &[])?;
            self.event(end, (2, track), "", &[])?;
        }
        Ok(())
    }

    /// A track event: kind 1 begins a slice, 2 ends it, 3 is an instant.
    fn event(
        &mut self,
        at: Instant,
        (kind, track): (u64, u64),
        name: &str,
        notes: &[(&str, u64)],
    ) -> io::Result<()> {
        let mut event = Message::new().number(9, kind).number(11, track);
        if !name.is_empty() {
            event = event.text(23, name);
        }
        for (name, value) in notes {
            event = event.message(4, &Message::new().text(10, name).number(3, *value));
        }
        let at = self.log.ns(at.ticks());
        self.packet(Message::new().number(8, at).message(11, &event))
    }
}
