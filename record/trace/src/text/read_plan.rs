//! Reads what one shard was built from.

use punctual_kern::{Capacity, Constraint, CpuPlan, Edge, Source};
use punctual_model::{CpuId, Instant, PolicyKind, Span, TaskId, ThreadId};

use super::policy;
use super::resources::ResourceReader;
use super::tree::TreeReader;
use super::words::{clip, number, read_field};
use crate::decode::{Fields, thread_of};
use crate::form::{self, Form};

/// Most threads that a log may plan: what it says is allocated when it is run again.
const MAX_THREADS: usize = 1 << 20;
/// Most waiting jobs, likewise.
const MAX_PENDING: usize = 1 << 24;

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
pub(super) struct PlanReader {
    cpu: Option<(CpuId, PolicyKind)>,
    capacity: Option<Capacity>,
    threads: Vec<(TaskId, Constraint)>,
    tree: TreeReader,
    resources: ResourceReader,
    edges: Vec<(u32, Edge)>,
    remotes: Vec<(Instant, Option<Span>)>,
    notifications: Vec<(u32, CpuId, u32)>,
    /// Threads that were created while it ran, and their tasks.
    created: Vec<(ThreadId, TaskId)>,
}

impl PlanReader {
    pub(super) fn line(&mut self, key: &str, rest: &str) -> Result<(), String> {
        match key {
            "plan" => self.cpu = Some(plan(rest)?),
            "capacity" => self.capacity = Some(capacity(rest)?),
            _ => {
                let Some(form) = form::PLANS.iter().find(|form| form.name == key) else {
                    return Err(format!("`{}` is unknown here", clip(key)));
                };
                let words = words_of(form, rest)?;
                let nonsense = || format!("the fields of `{key}` do not belong together");
                self.entry(&words).ok_or_else(nonsense)?;
            }
        }
        Ok(())
    }

    fn entry(&mut self, words: &[u64]) -> Option<()> {
        let (kind, mut fields, _) = Fields::split(words)?;
        let first = fields.maybe()?;
        let index = u32::try_from(first);
        match kind {
            form::PLAN_NODE | form::PLAN_HOME | form::PLAN_SLOT => {
                return self.tree.entry(words);
            }
            form::PLAN_RESOURCE | form::PLAN_USE => {
                return self.resources.entry(words);
            }
            form::PLAN_THREAD => self
                .threads
                .push((TaskId(index.ok()?), fields.constraint()?)),
            form::PLAN_REMOTE => {
                let period = fields.maybe().map(Span::from_ticks);
                self.remotes.push((Instant::from_ticks(first), period));
            }
            form::PLAN_NOTIFY => {
                let to = CpuId(u16::try_from(fields.maybe()?).ok()?);
                let slot = u32::try_from(fields.maybe()?).ok()?;
                self.notifications.push((index.ok()?, to, slot));
            }
            form::PLAN_CREATED => {
                let task = TaskId(u32::try_from(fields.maybe()?).ok()?);
                self.created.push((thread_of(first)?, task));
            }
            _ => {
                let word = fields.maybe()?;
                let local = matches!(kind, form::PLAN_AFTER | form::PLAN_FOLLOWS);
                let from = if local {
                    Source::Local(thread_of(word)?)
                } else {
                    Source::Remote {
                        slot: u32::try_from(word).ok()?,
                    }
                };
                let strict = matches!(kind, form::PLAN_FOLLOWS | form::PLAN_FOLLOWS_REMOTE);
                self.edges.push((index.ok()?, Edge { from, strict }));
            }
        }
        Some(())
    }

    /// The plan, and who was created while it ran.
    pub(super) fn finish(mut self) -> Result<(CpuPlan, Vec<(ThreadId, TaskId)>), String> {
        self.created.sort_unstable();
        let (cpu, policy) = self.cpu.ok_or("a CPU without its `plan`")?;
        let capacity = self.capacity.ok_or("a CPU without its `capacity`")?;
        let homes = self.tree.homes(self.threads.len(), &capacity)?;
        let plan = CpuPlan {
            cpu,
            policy,
            capacity,
            threads: self.threads,
            homes,
            nodes: self.tree.nodes,
            slots: self.tree.slots,
            edges: self.edges,
            remotes: self.remotes,
            notifications: self.notifications,
            resources: self.resources.resources,
            uses: self.resources.uses,
        };
        Ok((plan, self.created))
    }
}

fn plan(text: &str) -> Result<(CpuId, PolicyKind), String> {
    let words: Vec<&str> = text.split(' ').collect();
    let (cpu, rest) = words.split_first().ok_or("a plan is of a CPU")?;
    let cpu = u16::try_from(number(cpu)?).map_err(|_| "no CPU has such a number")?;
    Ok((CpuId(cpu), policy::read(rest)?))
}

fn capacity(text: &str) -> Result<Capacity, String> {
    let mut words = text.split(' ');
    let mut next = || number(words.next().unwrap_or_default());
    let (threads, pending, turn) = (next()?, next()?, next()?);
    let nodes = words.next().map_or(Ok(0), number)?;
    let nodes = u16::try_from(nodes).map_err(|_| "more nodes than a tree can have")?;
    let below = |value: u64, most: usize| {
        let value = usize::try_from(value).ok().filter(|value| *value <= most);
        value.ok_or_else(|| format!("a capacity above {most}"))
    };
    Ok(Capacity {
        threads: below(threads, MAX_THREADS)?,
        pending: below(pending, MAX_PENDING)?,
        background_turn: Span::from_ticks(turn),
        nodes,
    })
}
