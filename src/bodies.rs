//! From what a file says about work to what a light thread executes.

use std::path::Path;

use punctual_linux::{Body, foreign_body, job};
use punctual_model::{Task, TaskId, WorkSource};
use punctual_thread::{JobContext, Workloads};

use crate::Error;

/// Endless bodies without work of their own burn in pieces of this, and look in between whether
/// they are to stop.
const PIECE_NS: u64 = 1_000_000;

/// The body of one task.
pub(crate) fn body_of(
    (id, task): (TaskId, &Task),
    base: &Path,
    workloads: &mut Workloads,
) -> Result<Body, Error> {
    match (&task.work, task.class.budget()) {
        (Some(WorkSource::Burn(work)), _) => Ok(burner(work.as_ns())),
        (Some(WorkSource::Function(name)), _) => {
            let mut step = workloads.resolve(name)?;
            Ok(Box::new(move |job| {
                step(JobContext {
                    job: job.index,
                    arrival_ns: job.arrival_ns,
                });
            }))
        }
        (Some(WorkSource::Call { symbol, library }), _) => {
            let body = foreign_body(&base.join(library), symbol);
            body.map_err(|error| Error::Foreign { task: id, error })
        }
        (None, Some(work)) if task.class.runs_per_job() => Ok(burner(work.as_ns())),
        (None, _) => Ok(Box::new(|_| {
            loop {
                job::burn_ns(PIECE_NS);
                job::checkpoint();
            }
        })),
    }
}

fn burner(ns: u64) -> Body {
    Box::new(move |_| job::burn_ns(ns))
}
