//! The name of a scheduler within the tree of one CPU.

/// A scheduler of one CPU: its place in the table of nodes and the generation of that place.
///
/// A place is used again after its scheduler was demoted; the generation then differs, so a stale
/// id is refused and never acts on the newcomer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId {
    index: u16,
    generation: u16,
}

impl NodeId {
    /// The CPU's own policy, at the root of its tree.
    pub const ROOT: NodeId = NodeId::new(0, 0);

    /// The scheduler at place `index`, in that place's `generation`.
    #[inline]
    pub const fn new(index: u16, generation: u16) -> NodeId {
        NodeId { index, generation }
    }

    /// The place in the table; 0 is the root.
    #[inline]
    pub const fn index(self) -> usize {
        self.index as usize
    }

    /// How many schedulers stood in this place before.
    #[inline]
    pub const fn generation(self) -> u16 {
        self.generation
    }
}
