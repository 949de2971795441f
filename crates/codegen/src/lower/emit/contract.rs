//! Products that are not rounded before they are added.

use std::iter::zip;

use helio_ir::ops::BinaryOp;
use helio_ir::{ElementType, Op};

use crate::kernel::FmaOp;
use crate::lower::domain::Domain;
use crate::lower::graph::{Graph, Node, NodeId};

/// A sum or a difference of a product and something else.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contraction {
    pub op: FmaOp,
    pub product: NodeId,
    pub factors: [NodeId; 2],
    pub other: NodeId,
}

/// The sums and differences of a domain that are contracted: those with a product that is used for nothing else, as in
/// XLA:CPU. Decided once for all kernels of the domain, which may compute a value several times, and have to get the
/// same number each time.
#[derive(Clone, Debug, Default)]
pub(in crate::lower) struct Contractions {
    /// For each node.
    of: Vec<Option<Contraction>>,
    /// How many nodes, folds and results use each node.
    uses: Vec<u32>,
}

impl Contractions {
    pub fn new(domain: &Domain<'_>) -> Self {
        let graph = &domain.graph;
        let mut uses = vec![0; graph.nodes.len()];
        for id in graph.ids() {
            graph.args(id, &mut |arg| uses[arg.index()] += 1);
        }
        let folds = graph.reductions.iter();
        let folded = folds.flat_map(|fold| fold.inputs.iter().chain(&fold.inits));
        let results = domain.outputs.iter().map(|output| &output.node);
        folded.chain(results).for_each(|id| uses[id.index()] += 1);
        let mut contractions = Contractions { of: Vec::new(), uses };
        contractions.of = graph.ids().map(|id| contractions.contraction(graph, id)).collect();
        contractions
    }

    /// How a node is contracted.
    pub(super) fn get(&self, id: NodeId) -> Option<&Contraction> {
        self.of.get(id.index())?.as_ref()
    }

    /// The factors of a node that is a product and is used once.
    pub(super) fn product(&self, graph: &Graph<'_>, id: NodeId) -> Option<[NodeId; 2]> {
        let is_used_once = self.uses.get(id.index()) == Some(&1);
        match graph.node(id) {
            Node::Apply { op: Op::Binary(BinaryOp::Multiply), args } if is_used_once => {
                let is_plain = matches!(graph.info(id).ty, ElementType::F32 | ElementType::F64);
                is_plain.then(|| args.first_chunk().copied())?
            }
            _ => None,
        }
    }

    fn contraction(&self, graph: &Graph<'_>, id: NodeId) -> Option<Contraction> {
        let Node::Apply { op: Op::Binary(op), args } = graph.node(id) else { return None };
        let &[a, b] = args.first_chunk()?;
        let (first, second) = match op {
            BinaryOp::Add => (FmaOp::Add, FmaOp::Add),
            BinaryOp::Subtract => (FmaOp::Sub, FmaOp::From),
            _ => return None,
        };
        zip([first, second], [(a, b), (b, a)]).find_map(|(op, (product, other))| {
            let factors = self.product(graph, product)?;
            Some(Contraction { op, product, factors, other })
        })
    }
}
