//! From what a file says about work to what a light thread executes.

use std::path::{Path, PathBuf};

use punctual_graph::Tile;
use punctual_kern::Event;
use punctual_linux::{
    Backed, Body, JobInfo, Member, Program, RunOptions, foreign_body, job, start_program,
};
use punctual_model::{GraphThread, IdleTime, Task, TaskId, Work, WorkSource};
use punctual_tables::CpuTables;
use punctual_thread::{JobContext, Workloads};

use crate::Error;

/// Endless bodies without work of their own burn in pieces of this, and look in between whether
/// they are to stop.
const PIECE_NS: u64 = 1_000_000;

/// Programs that run in place of threads, by the tasks whose work they are.
pub(crate) type Programs = Vec<(TaskId, Program)>;

/// The processor time that each of them has had, in nanoseconds; those that are gone have none.
pub(crate) fn processor_times(programs: &Programs) -> Vec<Option<u64>> {
    let times = programs.iter().map(|(_, program)| program.processor_ns());
    times.collect()
}

/// The processor time that each program has had since `before`, by its task.
pub(crate) fn had_since(before: &[Option<u64>], programs: &Programs) -> Vec<(TaskId, u64)> {
    let now = processor_times(programs);
    let ids = programs.iter().map(|(id, _)| *id);
    let both = ids.zip(before.iter().zip(now));
    both.filter_map(|(id, (before, now))| Some((id, now?.saturating_sub((*before)?))))
        .collect()
}

/// Bodies of the threads of graphs, by their tasks.
type TileBodies = Vec<(TaskId, Body)>;

/// The bodies of the tiles of a system's graphs, which are in the order of their threads.
pub(crate) fn tile_bodies(threads: &[GraphThread], tiles: Vec<Tile>) -> TileBodies {
    let bodies = tiles.into_iter().map(Tile::body);
    threads
        .iter()
        .map(|thread| thread.task)
        .zip(bodies)
        .collect()
}

/// Where bodies come from.
pub(crate) struct Bodies<'a> {
    pub(crate) base: &'a Path,
    pub(crate) workloads: &'a mut Workloads,
    pub(crate) programs: &'a mut Programs,
    pub(crate) tiles: TileBodies,
}

impl Bodies<'_> {
    /// The body of one task on the CPU of these tables, which is the host's CPU `host`.
    pub(crate) fn of(
        &mut self,
        work: (TaskId, &Task),
        (tables, host): (&CpuTables, u32),
    ) -> Result<Body, Error> {
        let tile = self.tiles.iter().position(|(id, _)| *id == work.0);
        match tile {
            Some(at) => Ok(self.tiles.swap_remove(at).1),
            None => {
                let (base, workloads) = (self.base, &mut *self.workloads);
                body_of(work, (tables, host), base, workloads, self.programs)
            }
        }
    }
}

/// The body of a task of the file.
fn body_of(
    (id, task): (TaskId, &Task),
    (tables, host): (&CpuTables, u32),
    base: &Path,
    workloads: &mut Workloads,
    programs: &mut Programs,
) -> Result<Body, Error> {
    if task.kernel_backed {
        return kernel_backed((id, task), base, workloads);
    }
    match &task.work {
        Some(WorkSource::Function(name)) => {
            let mut step = workloads.resolve(name)?;
            Ok(Box::new(move |job| {
                step(JobContext {
                    job: job.index,
                    arrival_ns: job.arrival_ns,
                });
            }))
        }
        Some(WorkSource::Call { symbol, library }) => {
            let body = foreign_body(&beside(base, library), symbol);
            body.map_err(|error| Error::Foreign { task: id, error })
        }
        Some(WorkSource::Command(words)) => {
            let priority = RunOptions::default().priority;
            let (body, program) = start_program(words, base, host, priority)
                .map_err(|error| Error::Program { task: id, error })?;
            if task.idle == IdleTime::Keep {
                program.keep_out_of_idle_time();
            }
            programs.push((id, program));
            Ok(body)
        }
        Some(WorkSource::Burn(_)) | None => Ok(match punctual_sim::script(id, task, tables) {
            Some(steps) => burner(steps),
            None => Box::new(|_| {
                loop {
                    job::burn_ns(PIECE_NS);
                    job::checkpoint();
                }
            }),
        }),
    }
}

/// The body of a task on a kernel thread of its own: it is called once.
fn kernel_backed(
    (id, task): (TaskId, &Task),
    base: &Path,
    workloads: &mut Workloads,
) -> Result<Body, Error> {
    let (job, arrival_ns) = (0, 0);
    let work: Box<dyn FnOnce(&Member) + Send> = match &task.work {
        Some(WorkSource::Function(name)) => {
            let mut step = workloads.resolve(name)?;
            Box::new(move |_| step(JobContext { job, arrival_ns }))
        }
        Some(WorkSource::Call { symbol, library }) => {
            let body = foreign_body(&beside(base, library), symbol);
            let mut body = body.map_err(|error| Error::Foreign { task: id, error })?;
            let info = JobInfo {
                index: job,
                arrival_ns,
                absolute_deadline_ns: None,
            };
            Box::new(move |_| body(&info))
        }
        // Endless, as that of a light thread.
        Some(WorkSource::Burn(_) | WorkSource::Command(_)) | None => Box::new(|member| {
            while !member.is_over() {
                std::hint::spin_loop();
            }
        }),
    };
    let made = Backed::try_new(&task.name, work);
    let made = made.map_err(|error| Error::KernelThread { task: id, error })?;
    if task.idle == IdleTime::Keep {
        made.keep_out_of_idle_time();
    }
    let mut backed = Some(made);
    Ok(Box::new(move |_| {
        if let Some(backed) = backed.take() {
            // It fails outside of a run only, and this is inside.
            let _ = backed.run_for_good();
        }
    }))
}

/// The path of a shared object beside a file in the folder `base`, which may be empty: the loader
/// looks elsewhere for a path without a slash.
pub(crate) fn beside(base: &Path, library: &str) -> PathBuf {
    Path::new(".").join(base).join(library)
}

/// Burns the work of a job with its waits and sections, as virtual time does.
fn burner(steps: Vec<(Work, Event)>) -> Body {
    Box::new(move |_| play(&steps))
}

/// Plays steps up to the completion, or up to the end of the section that they are in.
fn play(mut steps: &[(Work, Event)]) {
    while let Some(((work, event), rest)) = steps.split_first() {
        job::burn_alone_ns(work.ticks());
        steps = rest;
        match *event {
            Event::Block { until: Some(until) } => job::sleep_ns(until.ticks()),
            Event::Lock { resource, mode, .. } => {
                // A section without its resource is still work that was declared; the log says
                // that the lock was refused.
                std::mem::forget(job::lock_number(resource, mode));
            }
            Event::Unlock { resource } => job::unlock_number(resource),
            Event::Protect => {
                let end = rest.iter().position(|step| step.1 == Event::Unprotect);
                let inside = end.map_or(rest.len(), |at| at + 1);
                job::protected(|| play(&rest[..inside]));
                steps = &rest[inside..];
            }
            _ => return,
        }
    }
}
