//! Reads what one shard was built from.

use punctual_kern::{Capacity, SlotTerms, Source, UseTerms};
use punctual_model::{CpuId, PolicyKind, Span, TaskId, ThreadId, Work};
use punctual_tables::{AgendaTables, CpuTables, MAX_SEGMENTS};

use super::policy;
use super::words::{clip, number, read_field};
use crate::form::{self, Form, TablesLine};
use crate::slots;

/// Most threads that all CPUs of a log have room for, beside one for each of its lines: a replay
/// allocates them.
const MAX_THREADS: u64 = 1 << 16;
/// Most places for threads in the queues of all nodes together, beside 16 a line.
const MAX_PLACES: u64 = 1 << 22;
/// Most waiting jobs, likewise.
const MAX_PENDING: u64 = 1 << 20;

/// Whether a log of so many lines may have room for what its CPUs say. O(CPUs).
pub(super) fn check_room(cpus: &[CpuTables], lines: usize) -> Result<(), String> {
    let of = |room: fn(&Capacity) -> u64| -> u64 {
        let rooms = cpus.iter().map(|cpu| room(&cpu.capacity));
        rooms.fold(0, u64::saturating_add)
    };
    // Each policy has a place for every thread and every scheduler.
    let places = |room: &Capacity| {
        let nodes = u64::from(room.nodes);
        (nodes + 1).saturating_mul(nodes + room.threads as u64)
    };
    let lines = lines as u64;
    for (what, room, most) in [
        (
            "threads",
            of(|room| room.threads as u64),
            MAX_THREADS + lines,
        ),
        ("places in queues", of(places), MAX_PLACES + 16 * lines),
        (
            "waiting jobs",
            of(|room| room.pending as u64),
            MAX_PENDING + 16 * lines,
        ),
    ] {
        if room > most {
            return Err(format!(
                "the CPUs have room for {room} {what} (`capacity`), and a log of {lines} lines \
                 may have {most}"
            ));
        }
    }
    Ok(())
}

/// The words of a record of `form` from its fields, separated by single spaces.
pub(super) fn words_of(form: &Form, text: &str) -> Result<Vec<u64>, String> {
    let mut words = vec![u64::from(form.kind)];
    let mut fields = text.split(' ').filter(|field| !field.is_empty());
    for (index, column) in form.columns.iter().enumerate() {
        let Some(field) = fields.next() else {
            let (name, count) = (form.name, form.columns.len());
            return Err(format!("`{name}` has {count} fields, here are {index}"));
        };
        match read_field(*column, field)? {
            Some(word) => words.push(word),
            None => {
                words[0] |= 1 << (8 + index);
                words.push(0);
            }
        }
    }
    match fields.next() {
        Some(field) => Err(format!("`{}` is one field too many", clip(field))),
        None => Ok(words),
    }
}

#[derive(Default)]
pub(super) struct TablesReader {
    cpu: Option<(CpuId, PolicyKind)>,
    capacity: Option<Capacity>,
    lines: Vec<TablesLine>,
}

impl TablesReader {
    pub(super) fn line(&mut self, key: &str, rest: &str) -> Result<(), String> {
        match key {
            "plan" => self.cpu = Some(tables(rest)?),
            "capacity" => self.capacity = Some(capacity(rest)?),
            _ => self.lines.push(tables_line(key, rest)?),
        }
        Ok(())
    }

    /// The tables.
    pub(super) fn finish(self) -> Result<CpuTables, String> {
        let (cpu, policy) = self.cpu.ok_or("a CPU without its `plan`")?;
        let capacity = self.capacity.ok_or("a CPU without its `capacity`")?;
        let mut tables = CpuTables {
            cpu,
            policy,
            capacity,
            threads: Vec::new(),
            homes: Vec::new(),
            nodes: Vec::new(),
            absent: Vec::new(),
            slots: Vec::new(),
            fallbacks: Vec::new(),
            edges: Vec::new(),
            remotes: Vec::new(),
            notifications: Vec::new(),
            resources: Vec::new(),
            uses: Vec::new(),
            agenda: AgendaTables::default(),
        };
        let mut homes = Vec::new();
        for line in self.lines {
            match line {
                TablesLine::Thread(task, constraint) => tables.threads.push((task, constraint)),
                TablesLine::Remote(first, period) => tables.remotes.push((first, period)),
                TablesLine::Notify(thread, to, slot) => {
                    tables.notifications.push((thread, to, slot))
                }
                TablesLine::Edge(successor, edge) => tables.edges.push((successor, edge)),
                TablesLine::Node(node) => tables.nodes.push(node),
                TablesLine::Fallback(row) => tables.fallbacks.push(row),
                TablesLine::Absent(node) => tables.absent.push(node),
                TablesLine::Home(thread, home) => homes.push((thread, home)),
                TablesLine::Slot(slot) => tables.slots.push(slot),
                TablesLine::Resource(resource) if resource.common.generation() > 0 => {
                    return Err("a scheduler of the tables is the first in its place".into());
                }
                TablesLine::Resource(resource) => tables.resources.push(resource),
                TablesLine::Use(thread, declared) => tables.uses.push((thread, declared)),
                TablesLine::AgendaRoom(segments) => tables.agenda.room = segments,
                TablesLine::AgendaPeer(slot, to, there) => {
                    tables.agenda.peers.push((slot, to, there));
                }
                TablesLine::Created(..) => {
                    return Err("a thread that was created before the run began".into());
                }
            }
        }
        if tables.agenda.room > MAX_SEGMENTS {
            return Err(format!(
                "room for more than {MAX_SEGMENTS} segments of plans"
            ));
        }
        threads_are_there(&tables)?;
        tables.homes = homes_of(&tables, &homes)?;
        Ok(tables)
    }
}

fn tables_line(key: &str, rest: &str) -> Result<TablesLine, String> {
    let Some(form) = form::TABLES.iter().find(|form| form.name == key) else {
        return Err(format!("`{}` is unknown here", clip(key)));
    };
    let words = words_of(form, rest)?;
    let line =
        form::split(&words).and_then(|(kind, mut fields, _)| form::tables(kind, &mut fields));
    line.ok_or_else(|| format!("the fields of `{key}` do not belong together"))
}

/// A thread that was created while the run went on, and its task.
pub(super) fn created(rest: &str) -> Result<(ThreadId, TaskId), String> {
    match tables_line("created", rest)? {
        TablesLine::Created(thread, task) => Ok((thread, task)),
        _ => Err("`created` names a thread and a task".into()),
    }
}

/// Refuses more threads than there is room for, and lines of threads or resources that are not
/// among them.
fn threads_are_there(tables: &CpuTables) -> Result<(), String> {
    let (threads, room) = (tables.threads.len(), tables.capacity.threads);
    if threads > room {
        return Err(format!("{threads} threads, and room for {room}"));
    }
    let edges = tables.edges.iter().flat_map(|(successor, edge)| {
        let local = match edge.from {
            Source::Local(thread) => Some(thread.index()),
            Source::Remote { .. } => None,
        };
        [Some(*successor as usize), local]
    });
    let waited = tables.notifications.iter();
    let named = edges
        .flatten()
        .chain(waited.map(|(thread, ..)| *thread as usize))
        .chain(tables.uses.iter().map(|(thread, _)| *thread as usize));
    if let Some(thread) = named.into_iter().find(|thread| *thread >= threads) {
        return Err(format!("thread {thread} has no line of its own"));
    }
    let used = |(_, declared): &&(u32, UseTerms)| declared.resource as usize;
    let resources = tables.resources.len();
    match tables.uses.iter().find(|line| used(line) >= resources) {
        Some((_, declared)) => Err(format!("resource {} has no line", declared.resource)),
        None => Ok(()),
    }
}

/// The home of each thread, when schedulers, slots and threads belong together.
fn homes_of(tables: &CpuTables, given: &[(u32, u16)]) -> Result<Vec<u16>, String> {
    let (nodes, room) = (tables.nodes.len(), &tables.capacity);
    if nodes > usize::from(room.nodes) {
        return Err(format!("{nodes} nodes, and room for {}", room.nodes));
    }
    for (place, node) in tables.nodes.iter().enumerate() {
        if usize::from(node.parent) > place {
            let parent = node.parent;
            return Err(format!(
                "node {} stands before its parent {parent}",
                place + 1
            ));
        }
    }
    let known = |at: u16| usize::from(at) <= nodes;
    let slot = |slot: &SlotTerms| known(slot.node) && (slot.entity as usize) < room.entities();
    if !tables.slots.iter().all(slot)
        || !given.iter().all(|(_, home)| known(*home))
        || !tables.absent.iter().all(|at| known(*at))
    {
        return Err("a slot or a home in a node that the log does not have".into());
    }
    // A reader that draws slots goes from frame to frame.
    let outside = |slot: &&SlotTerms| {
        slots::frame(tables, slot.node).is_some_and(|frame| slot.at >= frame || slot.length > frame)
    };
    if let Some(slot) = tables.slots.iter().find(outside) {
        let at = slot.at.ticks();
        return Err(format!("the slot at {at} does not lie within its frame"));
    }
    let mut homes = vec![0; tables.threads.len()];
    for (thread, home) in given {
        let place = homes.get_mut(*thread as usize);
        *place.ok_or_else(|| format!("thread {thread} has a home but no line of its own"))? = *home;
    }
    Ok(homes)
}

fn tables(text: &str) -> Result<(CpuId, PolicyKind), String> {
    let words: Vec<&str> = text.split(' ').collect();
    let (cpu, rest) = words.split_first().ok_or("`plan` names a CPU")?;
    let cpu = u16::try_from(number(cpu)?).map_err(|_| "no CPU has such a number")?;
    Ok((CpuId(cpu), policy::read(rest)?))
}

fn capacity(text: &str) -> Result<Capacity, String> {
    let mut words = text.split(' ');
    let mut next = || number(words.next().unwrap_or_default());
    let (threads, pending, turn) = (next()?, next()?, next()?);
    let mut or_none = || words.next().map_or(Ok(0), number);
    let (nodes, grace, stop_cost) = (or_none()?, or_none()?, or_none()?);
    let (cache_delay, entry) = (or_none()?, or_none()?);
    let nodes = u16::try_from(nodes).map_err(|_| "more nodes than a tree can have")?;
    let room = |value: u64| {
        let value = u32::try_from(value).ok();
        let value = value.and_then(|value| usize::try_from(value).ok());
        value.ok_or("a capacity that no CPU has")
    };
    Ok(Capacity {
        threads: room(threads)?,
        pending: room(pending)?,
        background_turn: Span::from_ticks(turn),
        nodes,
        grace: Work::from_ticks(grace),
        stop_cost: Work::from_ticks(stop_cost),
        entry: Work::from_ticks(entry),
        cache_delay: Work::from_ticks(cache_delay),
    })
}
