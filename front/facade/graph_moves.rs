//! The transitions of actors in a live run: those that tiles kept, and their preemptions.
//!
//! A tile notes the transitions of its actors without a word to the core, so it does not know when
//! its slot ended. The log of its CPU does: each time its thread was switched out, the actor that
//! was active was preempted. A firing that looks at the clock all the time sees that by itself, and
//! more exactly, without the scheduler's part; then its word stands.

use punctual_graph::{Applications, Moved, State, TileBook};
use punctual_kern::TraceEvent;
use punctual_model::{GraphId, GraphThread, Instant, Ns, Span, System, TaskId, ThreadId, readable};
use punctual_trace::{CpuLog, Log, Record};

/// A function of a graph that has not returned for so long at the end of a run is named.
const PATIENCE: Span<Ns> = Span::from_ms(100);

/// Puts the transitions of all actors into the log, and the faults of their tiles. A graph has the
/// transitions up to the first that one of its tiles has not kept.
pub(crate) fn tell_graphs(
    (system, threads): (&System, &[GraphThread]),
    applications: &Applications,
    log: &mut Log,
) {
    let books = applications.books();
    for (id, graph) in (0..).map(GraphId).zip(&system.graphs) {
        let tiles = || books.iter().zip(threads).filter(|((of, _), _)| *of == id);
        let kept: Vec<_> = tiles().map(|((_, book), _)| book.transitions(id)).collect();
        let lost = kept.iter().filter_map(|(_, lost)| *lost).min();
        if let Some(info) = log.graphs.get_mut(id.index()) {
            info.lost_from = lost;
        }
        if let Some(from) = lost {
            let from = readable(from.ns_down(log.tables.frequency).as_ns());
            let name = &graph.name;
            let lost = format!("the transitions of graph `{name}` from {from} on: no room");
            log.header.lost.push(lost);
        }
        for (((_, book), of_graph), (moves, _)) in tiles().zip(kept) {
            let cpu = book.tile.cpu.index();
            let of_task = |(_, (of, _)): &(u32, &(TaskId, _))| *of == of_graph.task;
            let all = &log.tables.cpus[cpu].threads;
            let thread = (0..)
                .zip(all)
                .find(of_task)
                .map(|(at, _)| ThreadId::new(at, 0));
            let end = log.header.end;
            let away = match (thread, log.cpus.get(cpu)) {
                (Some(thread), Some(one)) => switched_out(one, thread, end),
                _ => Vec::new(),
            };
            tell_fault(system, book, &away, log);
            let Some(one) = log.cpus.get_mut(cpu) else {
                continue;
            };
            // One that yields between two firings was not interrupted.
            let moves = with_preemptions(moves, &away, of_graph.actor.is_some());
            let before = |moved: &Moved| lost.is_none_or(|lost| moved.at < lost);
            one.moves.extend(moves.into_iter().filter(before));
            one.moves.sort_by_key(|moved| moved.at);
        }
    }
}

fn tell_fault(system: &System, book: &TileBook, away: &[(Instant, Instant)], log: &mut Log) {
    let on = system.tile_name(book.tile);
    let graph = &book.graph;
    // A firing may take its wcet, and the time in which its tile had no slot is not its own.
    let out = away
        .iter()
        .map(|(from, to)| to.since(book.since().max(*from)));
    let out = out.fold(Span::ZERO, Span::saturating_add);
    let wcets = book.actors.iter().map(|actor| book.wcet(actor).as_span());
    let wcet = wcets.max().unwrap_or(Span::ZERO);
    let out = Span::from_ns(log.tables.frequency.ns_up(out.ticks()));
    let patience = PATIENCE.saturating_add(wcet).saturating_add(out);
    if let Some(fault) = book.fault(log.header.end, patience) {
        let fault = format!("graph `{graph}` on {on}: {fault}");
        log.header.faults.push(fault);
    }
    let (decisions, refused) = book.decisions();
    if refused > 0 {
        let what = "answers of the task scheduler were refused";
        let fault = format!("graph `{graph}` on {on}: {refused} of {decisions} {what}");
        log.header.faults.push(fault);
    }
}

/// When a thread was switched out although it had not ended, and when it went on, or the run ended.
/// O(entries).
fn switched_out(cpu: &CpuLog, thread: ThreadId, end: Instant) -> Vec<(Instant, Instant)> {
    let (mut all, mut out) = (Vec::new(), None);
    for (now, record) in &cpu.records {
        let Record::Trace(TraceEvent::Switched { from, to, .. }) = record else {
            continue;
        };
        match (from == Some(thread), to == Some(thread)) {
            (true, false) => out = Some(now),
            (false, true) => all.extend(out.take().map(|out| (out, now))),
            _ => {}
        }
    }
    all.extend(out.map(|out| (out, end)));
    all
}

/// Transitions with those of the preemptions that no firing has noted by itself. `yields`: the
/// thread is one actor, which yields between two firings; others of its tile go on also behind its
/// last transition. O(both).
fn with_preemptions(moves: Vec<Moved>, away: &[(Instant, Instant)], yields: bool) -> Vec<Moved> {
    let mut noted = Vec::new();
    for pair in moves.windows(2) {
        if pair[0].preempted {
            noted.push((pair[0].at, pair[1].at));
        }
    }
    let mut noted = noted.into_iter().peekable();
    let mut tell = |all: &mut Vec<Moved>, (out, back): (Instant, Instant)| {
        while noted.next_if(|(_, to)| *to < out).is_some() {}
        let is_noted = noted.peek().is_some_and(|(from, _)| *from <= back);
        let told = |last: &&Moved| {
            let rests = yields && last.state == State::Idle;
            !last.preempted && !is_noted && !rests && runs(last)
        };
        let Some(last) = all.last().filter(told).copied() else {
            return;
        };
        let preempted = |at, preempted| Moved {
            at,
            preempted,
            call: None,
            ..last
        };
        // An entry has the instant for which it was due: the thread may have gone on for a moment,
        // and was in its last state when it was interrupted.
        all.extend([preempted(out.max(last.at), true), preempted(back, false)]);
    };
    let mut away = away.iter().copied().peekable();
    let mut all: Vec<Moved> = Vec::with_capacity(moves.len());
    for moved in moves {
        while let Some(once) = away.next_if(|(_, back)| *back <= moved.at) {
            tell(&mut all, once);
        }
        all.push(moved);
    }
    if yields {
        away.for_each(|once| tell(&mut all, once));
    }
    all
}

/// Whether it was under way: a task that waits, or has ended, is not interrupted.
fn runs(last: &Moved) -> bool {
    last.state != State::Finished && !matches!(last.call, Some((_, false)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_model::ActorId;

    fn moved(at: u64, state: State, preempted: bool) -> Moved {
        Moved {
            at: Instant::from_ticks(at),
            firing: 0,
            actor: ActorId(0),
            graph: GraphId(0),
            state,
            preempted,
            call: None,
        }
    }

    #[test]
    fn a_preemption_is_told_once_by_the_firing_or_else_by_the_log() {
        use State::{Claim, Compute, Release};
        let at = Instant::from_ticks;
        let moves = vec![
            moved(10, Claim, false),
            moved(50, Compute, false),
            // It has seen this one itself, and more exactly.
            moved(60, Compute, true),
            moved(90, Compute, false),
            moved(99, Release, false),
        ];
        // The first entry was due before the claim; its thread went on for a moment.
        let away = [(at(5), at(40)), (at(61), at(85)), (at(200), at(300))];
        let all = with_preemptions(moves.clone(), &away, false);
        let mut expected = moves.clone();
        expected.insert(1, moved(10, Claim, true));
        expected.insert(2, moved(40, Claim, false));
        assert_eq!(all, expected);
        // The others of its tile may go on behind the last one, too.
        let all = with_preemptions(moves.clone(), &away, true);
        expected.extend([moved(200, Release, true), moved(300, Release, false)]);
        assert_eq!(all, expected);
        // One that rests between two firings yields, and is not interrupted.
        let rests = vec![moved(100, State::Idle, false)];
        assert_eq!(with_preemptions(rests.clone(), &away, true), rests);
    }
}
