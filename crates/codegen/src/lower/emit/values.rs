//! The elements that values have at a point of the loops.

use std::ops::Index;

use crate::elementwise::Elem;
use crate::lower::graph::NodeId;

/// The values of nodes at a point, in all lanes. (A row rather than a map: most nodes of a graph are
/// computed at each point.)
#[derive(Clone, Debug, Default)]
pub(in crate::lower) struct Values(Vec<Option<Elem>>);

impl Values {
    /// The value of a node, if it is computed.
    pub fn get(&self, id: NodeId) -> Option<Elem> {
        self.0.get(id.index()).copied().flatten()
    }

    /// Whether a node is computed.
    pub fn contains(&self, id: NodeId) -> bool {
        self.get(id).is_some()
    }

    /// Notes the value of a node.
    pub fn insert(&mut self, id: NodeId, value: Elem) {
        if self.0.len() <= id.index() {
            self.0.resize(id.index() + 1, None);
        }
        self.0[id.index()] = Some(value);
    }

    /// Makes room for this many nodes.
    pub fn reserve(&mut self, nodes: usize) {
        self.0.reserve(nodes.saturating_sub(self.0.len()));
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// # Panics
/// If the node is not computed.
impl Index<NodeId> for Values {
    type Output = Elem;
    fn index(&self, id: NodeId) -> &Elem {
        self.0[id.index()].as_ref().expect("operands are computed before their users")
    }
}
