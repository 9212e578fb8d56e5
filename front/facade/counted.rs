//! The counters of the Linux platform, as logs have them.

use punctual_linux::{BoundaryCounters, CpuCounters, MissingMethod, Spread};
use punctual_trace::{Boundaries, Counters, Quantiles, TakingThread};

fn taking_thread(thread: punctual_linux::TakingThread) -> TakingThread {
    let punctual_linux::TakingThread { at, ns, name } = thread;
    TakingThread { at, ns, name }
}

/// The counters of the platform on one CPU.
pub(crate) fn counters(
    (c, takers): (&CpuCounters, Vec<punctual_linux::TakingThread>),
    missing: MissingMethod,
) -> Counters {
    Counters {
        deferrals: c.deferrals,
        deferred_p50_ns: c.deferred_p50_ns,
        deferred_p99_ns: c.deferred_p99_ns,
        deferred_max_ns: c.deferred_max_ns,
        late_max_ns: c.wake_late_max_ns,
        missing_method: missing.method.to_string(),
        missing_error_ns: missing.error_ns,
        boundaries: boundaries(&c.boundaries),
        others: vec![
            ("slices given back".to_string(), c.given_back),
            ("given back, ns".to_string(), c.given_back_ns),
            ("longest slice, ns".to_string(), c.given_back_max_ns),
            ("timer settings".to_string(), c.timer_settings),
            ("timers that came early".to_string(), c.early_timers),
        ],
        programs: Vec::new(),
        takers: takers.into_iter().map(taking_thread).collect(),
    }
}

/// The boundaries of slots as they were seen; `None`: there were none.
fn boundaries(seen: &BoundaryCounters) -> Option<Boundaries> {
    let of = |s: Spread| Quantiles {
        p50: Some(s.p50_ns).filter(|_| s.count > 0),
        p99: Some(s.p99_ns).filter(|_| s.count > 0),
        max: Some(s.max_ns).filter(|_| s.count > 0),
        n: s.count,
    };
    (seen.work.count > 0).then(|| Boundaries {
        declared_ns: seen.declared_ns,
        work_ns: of(seen.work),
        late_ns: of(seen.late),
        late_programs_ns: of(seen.late_programs),
        disturbed: seen.disturbed,
        over_own: seen.over_own,
        over_timer: seen.over_timer,
        over_missing: seen.over_missing,
    })
}
