//! No window of a run is busier than the analysis says that any can be.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use punctual::trace::{Behavior, Segment};
use punctual::{CpuId, Faults, Ns, SimOptions, Span, System, Workloads, admit, simulate_unjudged};
use punctual_analysis::busiest;
use punctual_generate::{Feature, Mix, Random};
use punctual_model::{SchedulerId, Supply};
use punctual_trace::Log;

/// The longest window that is looked at, in periods of the task with the longest.
const PERIODS: u64 = 6;

/// Whether a segment is of work that has a guarantee, or is in a server that has one.
fn is_guaranteed(system: &System, log: &Log, cpu: usize, segment: &Segment) -> bool {
    let tables = &log.tables.cpus[cpu];
    let Some((id, _)) = tables.threads.get(segment.thread.index()) else {
        return false;
    };
    let task = &system.tasks[id.index()];
    let parent = |id: &SchedulerId| system.schedulers[id.index()].parent;
    let mut above = std::iter::successors(task.scheduler, parent);
    let served = |id: SchedulerId| {
        let supply = &system.schedulers[id.index()].supply;
        matches!(supply, Supply::Server(_))
    };
    task.class.budget().is_some() || above.any(served)
}

/// The most that was executed within any window of this length.
fn most(segments: &[(u64, u64)], window: u64) -> u64 {
    let within = |from: u64| -> u64 {
        let part = |&(start, end): &(u64, u64)| {
            let (start, end) = (start.max(from), end.min(from + window));
            end.saturating_sub(start)
        };
        segments.iter().map(part).sum()
    };
    // It begins where a segment does, or ends where one does.
    let starts = segments.iter().map(|s| s.0);
    let ends = segments.iter().map(|s| s.1.saturating_sub(window));
    starts.chain(ends).map(within).max().unwrap_or(0)
}

/// Windows from the start of a segment to the end of a later one: for each number of segments the
/// one with the least time left.
fn dense(segments: &[(u64, u64)]) -> impl Iterator<Item = u64> + '_ {
    (1..6).filter_map(|count| {
        let windows = segments.windows(count).map(|run| {
            let window = run[count - 1].1 - run[0].0;
            let executed: u64 = run.iter().map(|(start, end)| end - start).sum();
            (window - executed, window)
        });
        windows.min().map(|(_, window)| window).filter(|w| *w > 0)
    })
}

#[test]
fn no_window_is_busier_than_the_analysis_says() {
    let mix = Mix::of(&Feature::ALL);
    let (mut judged, mut tight, mut with_rest) = (0, 0, 0);
    for seed in 0..700 {
        let mut random = Random::new(seed);
        let system = mix.draw(&mut random).system;
        if !admit(&system).is_ok_and(|verdict| verdict.admitted) {
            continue;
        }
        let periods = system.tasks.iter().filter_map(|t| t.class.min_separation());
        let Some(longest) = periods.map(Span::as_ns).max() else {
            continue;
        };
        let options = SimOptions {
            duration: Some(Span::from_ns(longest.saturating_mul(3 * PERIODS))),
            seed: Some(seed),
            faults: Faults {
                jitter: true,
                ..Faults::default()
            },
            ..SimOptions::default()
        };
        let run = simulate_unjudged(&system, &options, &mut Workloads::new(), &mut |_| true);
        let Ok(log) = run else { continue };
        let hertz = log.tables.frequency;
        for cpu in 0..system.cpus.len() {
            let behavior = Behavior::new(&log, cpu);
            let segments: Vec<(u64, u64)> = behavior
                .segments
                .iter()
                .filter(|segment| is_guaranteed(&system, &log, cpu, segment))
                .map(|s| (hertz.ns_down(s.start.ticks()), hertz.ns_down(s.end.ticks())))
                .take(2_000)
                .collect();
            let cpu = CpuId(u16::try_from(cpu).unwrap());
            for window in dense(&segments).chain([random.within(1, longest * PERIODS)]) {
                let span: Span<Ns> = Span::from_ns(window);
                let bound = busiest(&system, cpu, span).unwrap().as_ns();
                let seen = most(&segments, window);
                assert!(
                    seen <= bound,
                    "seed {seed}, CPU {}: {seen} of {window} executed, {bound} by the analysis",
                    cpu.0
                );
                judged += 1;
                tight += u32::from(seen == bound);
                with_rest += u32::from(bound < window);
            }
        }
    }
    // It says something about most of them, and is exact for some.
    eprintln!("{judged} windows, {tight} exact, {with_rest} with time left");
    assert!(judged > 1_000, "{judged}");
    assert!(tight > judged / 20, "{tight} of {judged}");
    assert!(with_rest > judged / 3, "{with_rest} of {judged}");
}
