//! One line per job, with the columns of LITMUS^RT's `st-job-stats`.

use std::io::{self, Write};

use punctual_kern::Outcome;
use punctual_model::Span;

use crate::behavior::Behavior;
use crate::log::Log;

/// The first line.
pub const HEADER: &str = "Task,Job,Period,Response,DL Miss?,Lateness,Tardiness,Forced?,ACET";

/// Writes every job that is over or late, CPU by CPU in order of release. Times are nanoseconds;
/// `Period` is 0 for work that arrives once; `Forced?` is 1 for a job that ended otherwise than by
/// completing (stopped, aborted, short of its slice, cut by the end of the run: then `Response` and
/// `Lateness` reach to that end); `Lateness` is empty without a deadline; `ACET` is the work it
/// received.
///
/// # Errors
/// Those of `out`.
pub fn write(log: &Log, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{HEADER}")?;
    for cpu in 0..log.cpus.len() {
        let behavior = Behavior::new(log, cpu);
        let threads = log
            .tables
            .cpus
            .get(cpu)
            .map_or(&[][..], |tables| &tables.threads);
        for (at, job) in behavior.jobs.iter().enumerate() {
            let missed = job.missed(behavior.end);
            if job.ended.is_none() && !missed {
                continue;
            }
            let thread = job.thread.index();
            let class = threads.get(thread).map(|(_, constraint)| constraint.class);
            let period = class.and_then(|class| class.min_separation());
            let end = job.ended.unwrap_or(behavior.end);
            let forced = job.outcome != Some(Outcome::Done);
            let received = match job.outcome {
                Some(_) => job.received,
                None => behavior.job_service_during(at, job.released, behavior.end),
            };
            write!(
                out,
                "{},{},{},{},{},",
                log.task_name(cpu, job.thread),
                job.index,
                log.ns(period.map_or(0, Span::ticks)),
                log.ns(end.since(job.arrival).ticks()),
                u8::from(missed)
            )?;
            if class.is_some_and(|class| class.is_real_time()) {
                let late = end.signed_since(job.absolute_deadline);
                let ns = log.ns(late.unsigned_abs());
                let sign = if late < 0 && ns > 0 { "-" } else { "" };
                let tardiness = if late < 0 { 0 } else { ns };
                write!(out, "{sign}{ns},{tardiness},")?;
            } else {
                write!(out, ",0,")?;
            }
            writeln!(out, "{},{}", u8::from(forced), log.ns(received.ticks()))?;
        }
    }
    Ok(())
}
