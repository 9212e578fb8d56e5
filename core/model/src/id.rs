//! Names of things as small integers: CPUs, schedulers, tasks, resources, graphs, groups, threads.

use core::fmt;

/// A CPU of a system: its place in [`crate::System::cpus`] (not the number of a host CPU).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CpuId(pub u16);

/// A task of a system: its place in [`crate::System::tasks`], which is the order in the file and
/// the last tie-break between jobs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TaskId(pub u32);

/// A scheduler below a CPU's own: its place in [`crate::System::schedulers`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SchedulerId(pub u16);

/// A resource of a system: its place in [`crate::System::resources`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ResourceId(pub u16);

/// A graph of a system: its place in [`crate::System::graphs`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct GraphId(pub u16);

/// An actor of a graph: its place in [`crate::Graph::actors`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ActorId(pub u32);

/// A planned group of a system: its place in [`crate::System::groups`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct GroupId(pub u16);

/// A thread of one scheduler: its place in the table and the generation of that place.
///
/// A place is used again after its thread has died; the generation then differs, so a stale id is
/// answered with an error and never acts on the newcomer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId {
    /// The place above, the generation below: one word, so that an id (and an `Option` of one)
    /// travels in registers through every decision.
    word: u64,
}

impl fmt::Debug for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadId")
            .field("index", &self.index())
            .field("generation", &self.generation())
            .finish()
    }
}

impl CpuId {
    /// The place in the list of CPUs.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl SchedulerId {
    /// The place in the list of schedulers.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl ResourceId {
    /// The place in the list of resources.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl GraphId {
    /// The place in the list of graphs.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl GroupId {
    /// The place in the list of groups.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl ActorId {
    /// The place in the list of actors.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl TaskId {
    /// The place in the list of tasks.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl ThreadId {
    /// The thread at place `index` of the table, in that place's `generation`.
    #[inline]
    pub const fn new(index: u32, generation: u32) -> ThreadId {
        ThreadId {
            word: (index as u64) << 32 | generation as u64,
        }
    }

    /// The place in the table.
    #[inline]
    pub const fn index(self) -> usize {
        (self.word >> 32) as usize
    }

    /// How many threads stood in this place before.
    #[inline]
    pub const fn generation(self) -> u32 {
        (self.word & 0xffff_ffff) as u32
    }
}
