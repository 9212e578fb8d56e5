//! Tasks by their numbers, and how long their jobs take in virtual time.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use punctual::{Class, CpuId, SimOptions, Span, System, Task, Work, Workloads, simulate};
use punctual_kern::TraceEvent;
use punctual_trace::Record;

/// A periodic task of the first CPU, due when it comes again. All in nanoseconds.
pub(crate) fn task(name: impl Into<String>, period: u64, wcet: u64) -> Task {
    let class = Class::Periodic {
        period: Span::from_ns(period),
        wcet: Work::from_ns(wcet),
        relative_deadline: Span::from_ns(period),
    };
    Task::new(name, CpuId(0), class)
}

/// The longest response of each task, of jobs that completed on the first CPU.
pub(crate) fn longest(system: &System, options: &SimOptions) -> Vec<u64> {
    let log = simulate(system, options, &mut Workloads::new(), &mut |_| true).unwrap();
    let mut longest = vec![0; system.tasks.len()];
    for (now, record) in &log.cpus[0].records {
        if let Record::Trace(TraceEvent::Completed {
            thread, arrival, ..
        }) = record
        {
            let task = log.tables.cpus[0].threads[thread.index()].0;
            let response = now.since(arrival).ticks();
            longest[task.index()] = response.max(longest[task.index()]);
        }
    }
    longest
}
