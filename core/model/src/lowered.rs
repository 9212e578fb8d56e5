//! The threads that execute the graphs of a system: one for each of its tiles, or for each actor

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use crate::graph::{Tile, When};
use crate::id::{ActorId, GraphId, TaskId};
use crate::system::System;
use crate::task::{Class, Task};

/// The thread of a graph on one of its tiles. To the scheduler it is a task without deadline, which
/// is always ready and alone there; where the core decides ([`When::Inline`]), each actor is one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GraphThread {
    /// The graph.
    pub graph: GraphId,
    /// The tile.
    pub tile: Tile,
    /// The actor whose thread it is; `None`: that of the tile.
    pub actor: Option<ActorId>,
    /// The task that stands for it in [`System::with_graph_threads`].
    pub task: TaskId,
}

impl System {
    /// The threads of its graphs: graph by graph, the tiles in the order of their first actors,
    /// and the actors of a tile in theirs.
    /// Their tasks come after those of the file. O(actors · tiles).
    pub fn graph_threads(&self) -> Vec<GraphThread> {
        let mut threads: Vec<GraphThread> = Vec::new();
        for (id, graph) in (0..).map(GraphId).zip(&self.graphs) {
            let first = threads.len();
            for tile in graph.actors.iter().map(|actor| actor.tile) {
                if threads[first..].iter().any(|thread| thread.tile == tile) {
                    continue;
                }
                let actors: Vec<Option<ActorId>> = match graph.when_on(tile) {
                    When::Inline => graph.actors_on(tile).map(Some).collect(),
                    When::OwnTime | When::BetweenSlots(_) => vec![None],
                };
                for actor in actors {
                    let place = self.tasks.len() + threads.len();
                    threads.push(GraphThread {
                        graph: id,
                        tile,
                        actor,
                        task: TaskId(u32::try_from(place).unwrap_or(u32::MAX)),
                    });
                }
            }
        }
        threads
    }

    /// The system as a platform executes it: with a task for each of its graphs' threads, named
    /// `GRAPH on TILE` or `GRAPH.ACTOR on TILE`. For a system as a file declares it; its verdict is
    /// that of the file.
    pub fn with_graph_threads(&self) -> Cow<'_, System> {
        if self.graphs.is_empty() {
            return Cow::Borrowed(self);
        }
        let mut system = self.clone();
        for thread in self.graph_threads() {
            let graph = &self.graphs[usize::from(thread.graph.0)];
            let tile = self.tile_name(thread.tile);
            let actor = thread.actor.and_then(|id| graph.actors.get(id.index()));
            let name = match actor {
                Some(actor) => format!("{}.{} on {tile}", graph.name, actor.name),
                None => format!("{} on {tile}", graph.name),
            };
            system.tasks.push(Task {
                scheduler: thread.tile.scheduler,
                ..Task::new(name, thread.tile.cpu, Class::Aperiodic)
            });
        }
        Cow::Owned(system)
    }

    /// The name of the scheduler or the CPU that a tile is.
    pub fn tile_name(&self, tile: Tile) -> &str {
        let scheduler = |id: crate::id::SchedulerId| self.schedulers.get(id.index());
        let name: Option<&String> = match tile.scheduler {
            Some(id) => scheduler(id).map(|scheduler| &scheduler.name),
            None => self.cpus.get(tile.cpu.index()).map(|cpu| &cpu.name),
        };
        name.map_or("?", |name| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Graph, Order, OrderRule};
    use crate::id::CpuId;
    use crate::scheduler::PolicyKind;
    use crate::system::Cpu;
    use crate::time::Work;

    #[test]
    fn each_graph_has_a_thread_on_each_of_its_tiles_after_the_tasks_of_the_file() {
        let cpu = |name: &str| Cpu {
            name: name.into(),
            host: None,
            policy: PolicyKind::Fifo,
        };
        let mut graph = Graph::new("g");
        for (name, cpu) in [("1", 1), ("0", 0), ("2", 1)] {
            graph.actor(name, Tile::cpu(CpuId(cpu)), Work::from_ns(1));
        }
        let system = System {
            cpus: vec![cpu("a"), cpu("b")],
            tasks: vec![Task::new("t", CpuId(0), Class::Aperiodic)],
            graphs: vec![graph],
            ..System::default()
        };
        let lowered = system.with_graph_threads();
        let names: Vec<&str> = lowered.tasks.iter().map(|task| &*task.name).collect();
        assert_eq!(names, ["t", "g on b", "g on a"]);
        let threads = system.graph_threads();
        let tasks: Vec<(TaskId, CpuId)> = threads.iter().map(|t| (t.task, t.tile.cpu)).collect();
        assert_eq!(tasks, [(TaskId(1), CpuId(1)), (TaskId(2), CpuId(0))]);
        // Inline on the first: a thread for each of its two actors.
        let mut inline = system;
        inline.graphs[0].orders.push(Order {
            tile: Tile::cpu(CpuId(1)),
            when: When::Inline,
            by: OrderRule::RoundRobin,
        });
        let lowered = inline.with_graph_threads();
        let names: Vec<&str> = lowered.tasks.iter().map(|task| &*task.name).collect();
        assert_eq!(names, ["t", "g.1 on b", "g.2 on b", "g on a"]);
    }
}
