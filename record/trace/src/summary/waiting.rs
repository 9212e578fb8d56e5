//! Tasks that run to completion: those that wait for ever, and for whom.

use punctual_model::{Fifo, Graph};

use crate::graphs::{Call, State};

/// The end of one task in a log.
#[derive(Clone, Copy, Default)]
pub(super) struct Last {
    pub(super) state: State,
    /// The call that blocks it.
    pub(super) waits: Option<Call>,
}

/// The tokens of each FIFO, from the calls of a run.
pub(super) fn at_first(graph: &Graph) -> Vec<u64> {
    let initial = |fifo: &Fifo| u64::from(fifo.initial);
    graph.fifos.iter().map(initial).collect()
}

/// A call that went on.
pub(super) fn take(tokens: &mut [u64], call: Call) {
    let (Call::Read(fifo, count) | Call::Write(fifo, count)) = call;
    if let Some(tokens) = tokens.get_mut(fifo as usize) {
        *tokens = match call {
            Call::Read(..) => tokens.saturating_sub(count.into()),
            Call::Write(..) => tokens.saturating_add(count.into()),
        };
    }
}

/// The waits of tasks that nobody will ever end, in words: a circle of them, or else one for a task
/// that has finished. O(tasks²).
pub(super) fn for_ever(graph: &Graph, tasks: &[Last], tokens: &[u64]) -> Option<String> {
    let wait = |at: usize| waits_for(graph, tasks.get(at)?, tokens);
    let circle = (0..tasks.len()).find_map(|first| {
        let mut circle = vec![first];
        let mut at = wait(first)?.1;
        while at != first {
            if circle.contains(&at) {
                return None;
            }
            circle.push(at);
            at = wait(at)?.1;
        }
        Some(circle)
    });
    let words = |at: usize| {
        let (call, other) = wait(at)?;
        Some(wait_words(graph, at, call, (other, tasks[other].state)))
    };
    if let Some(circle) = circle {
        let all: Vec<String> = circle.into_iter().filter_map(words).collect();
        return Some(all.join("; "));
    }
    let has_finished = |at: &usize| {
        let other = wait(*at).and_then(|(_, other)| tasks.get(other));
        other.is_some_and(|other| other.state == State::Finished)
    };
    (0..tasks.len()).find(has_finished).and_then(words)
}

/// The call that blocks a task now, and the task at the other end of its FIFO.
fn waits_for(graph: &Graph, task: &Last, tokens: &[u64]) -> Option<(Call, usize)> {
    let call = task.waits.filter(|_| task.state == State::Run)?;
    let (Call::Read(at, count) | Call::Write(at, count)) = call;
    let (fifo, tokens) = (graph.fifos.get(at as usize)?, *tokens.get(at as usize)?);
    let (lacks, other) = match call {
        Call::Read(..) => (tokens < count.into(), fifo.from),
        Call::Write(..) => {
            let most = fifo.capacity.map_or(u64::MAX, u64::from);
            (most - most.min(tokens) < count.into(), fifo.to)
        }
    };
    lacks.then_some((call, other.index()))
}

fn wait_words(graph: &Graph, at: usize, call: Call, (other, state): (usize, State)) -> String {
    let name = |at: usize| graph.actors.get(at).map_or("?", |actor| &actor.name);
    let (task, other) = (name(at), name(other));
    let (Call::Read(fifo, count) | Call::Write(fifo, count)) = call;
    let fifo = graph.fifos.get(fifo as usize).map_or("?", |f| &f.name);
    let tokens = if count == 1 { "token" } else { "tokens" };
    let end = match state {
        State::Finished => ", and has finished",
        _ => "",
    };
    match call {
        Call::Read(..) => {
            format!("`{task}` waits for {count} {tokens} in `{fifo}`, which `{other}` adds{end}")
        }
        Call::Write(..) => format!(
            "`{task}` waits for space for {count} {tokens} in `{fifo}`, which `{other}` frees{end}"
        ),
    }
}

/// The call that blocks a task at the end, in short.
pub(super) fn reason(graph: &Graph, last: &Last) -> Option<String> {
    let call = last.waits.filter(|_| last.state == State::Run)?;
    let (Call::Read(fifo, _) | Call::Write(fifo, _)) = call;
    let fifo = &graph.fifos.get(fifo as usize)?.name;
    Some(match call {
        Call::Read(..) => format!("tokens in {fifo}"),
        Call::Write(..) => format!("space in {fifo}"),
    })
}
