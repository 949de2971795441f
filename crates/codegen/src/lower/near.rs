//! Loops that are written out inside of the loop over lanes, as that over the channels of pixels: each of their points has
//! code of its own, in which what depends on it alone is decided. What the points touch are columns of rows that are in
//! lanes, which are read and written together.

use std::iter::zip;

use helio_ir::types::IndexIter;

use super::affine::{Affine, Dim};
use super::domain::Domain;
use super::graph::{Node, NodeId};
use crate::kernel::MAX_COLUMNS;

/// The most points that are written out: as many columns are read and written together.
const MAX_NEAR: i64 = MAX_COLUMNS;
/// The most values of all points that are written out.
const MAX_NEAR_VALUES: i64 = 1024;
/// The most columns that are folded one after the other: of more, vectors of a row are folded, and their lanes combined.
const MAX_FOLDED: i64 = 20;
/// The fewest rows of which columns are folded: those of the last vector, if it is not full, are read one by one.
const MIN_ROWS: i64 = 64;

/// Loops that are written out.
#[derive(Default)]
pub(super) struct Near {
    pub dims: Vec<Dim>,
    /// How many points they have together.
    pub points: i64,
    /// For each value, at how many of the points it is computed; empty without loops.
    made: Vec<i64>,
}

impl Near {
    /// At what part of the points a value is computed.
    pub fn share(&self, id: NodeId) -> f64 {
        self.made.get(id.index()).map_or(1.0, |&made| made as f64 / self.points as f64)
    }

    /// Whether elements `apart` from each other have all of the points between them, so that they are whole vectors together.
    pub fn fills(&self, apart: i64) -> bool {
        !self.dims.is_empty() && self.points == apart
    }
}

impl Domain<'_> {
    /// The loops to write out inside of the loop over lanes.
    pub fn near(&self, vector: Option<Dim>) -> Near {
        let Some(vector) = vector.filter(|_| self.graph.reductions.is_empty()) else {
            return Near::default();
        };
        let loads = self.graph.nodes.iter().filter_map(|node| match node {
            Node::Load { at, .. } => Some(at),
            _ => None,
        });
        let accesses: Vec<&Affine> = loads.chain(self.outputs.iter().map(|o| &o.at)).collect();
        let lies_between = |at: &Affine, dim: Dim| {
            at.factor(dim) != 0 && at.factor(dim).abs() < at.factor(vector).abs()
        };
        let is_near = |&d: &Dim| d != vector && accesses.iter().any(|at| lies_between(at, d));
        let dims: Vec<Dim> = self.kept.iter().copied().filter(is_near).collect();
        let size = |&d: &Dim| self.graph.dim_bounds[usize::from(d)] + 1;
        let points = dims.iter().map(size).try_fold(1i64, i64::checked_mul);
        let Some(points) = points.filter(|points| (1..=MAX_NEAR).contains(points)) else {
            return Near::default();
        };
        if dims.is_empty() {
            return Near::default();
        }
        let made = self.made(&dims, vector);
        match made.iter().sum::<i64>() <= MAX_NEAR_VALUES {
            true => Near { dims, points, made },
            false => Near::default(),
        }
    }

    /// Whether the folded loops are over some columns of an array whose rows are in lanes, and few enough to be written out: the
    /// columns are read together then.
    pub fn folds_columns(&self, vector: Option<Dim>) -> bool {
        let Some(vector) = vector.filter(|_| self.graph.reductions.iter().any(|r| !r.done)) else {
            return false;
        };
        let size = |&d: &Dim| self.graph.dim_bounds[usize::from(d)] + 1;
        let points = self.folded.iter().map(size).try_fold(1i64, i64::checked_mul);
        let points = points.filter(|_| size(&vector) >= MIN_ROWS);
        let Some(points) = points.filter(|points| (2..=MAX_FOLDED).contains(points)) else {
            return false;
        };
        let are_columns = |node: &Node<'_>| {
            let Node::Load { at, .. } = node else { return false };
            let apart = at.factor(vector).abs();
            let is_within = |&d: &Dim| at.factor(d) != 0 && at.factor(d).abs() < apart;
            (2..=MAX_COLUMNS).contains(&apart) && self.folded.iter().all(is_within)
        };
        let is_far = |node: &Node<'_>| match node {
            Node::Load { at, .. } => at.factor(vector).abs() > MAX_COLUMNS,
            _ => false,
        };
        points * self.graph.nodes.len() as i64 <= MAX_NEAR_VALUES
            && self.graph.nodes.iter().any(are_columns)
            && !self.graph.nodes.iter().any(is_far)
    }

    /// For each value, at how many points of some loops it is computed: where it is wanted, but once for all that it is the
    /// same at.
    fn made(&self, dims: &[Dim], vector: Dim) -> Vec<i64> {
        let graph = &self.graph;
        let sizes: Vec<usize> =
            dims.iter().map(|&d| graph.dim_bounds[usize::from(d)] as usize + 1).collect();
        let (mut firsts, mut spans) = (vec![0; graph.dim_bounds.len()], graph.dim_bounds.clone());
        dims.iter().for_each(|&d| spans[usize::from(d)] = 0);
        let mut wanted = vec![0; graph.nodes.len()];
        let mut points = IndexIter::new(&sizes);
        while let Some(point) = points.next_point() {
            zip(dims, point).for_each(|(&d, &at)| firsts[usize::from(d)] = at as i64);
            let mut needed = vec![false; graph.nodes.len()];
            self.outputs.iter().for_each(|output| needed[output.node.index()] = true);
            for id in graph.ids().rev() {
                if !needed[id.index()] {
                    continue;
                }
                wanted[id.index()] += 1;
                let decided = match graph.node(id) {
                    Node::Choose { when, yes, no } => graph
                        .known_guard(*when, &firsts, &spans)
                        .map(|holds| if holds { *yes } else { *no }),
                    _ => None,
                };
                match decided {
                    Some(taken) => needed[taken.index()] = true,
                    None => graph.needs(id, 1 << vector, &mut |arg| needed[arg.index()] = true),
                }
            }
        }
        let changing = self.changing();
        let distinct = |bits: u64| -> i64 {
            let moves = |&(&d, _): &(&Dim, &usize)| bits >> d & 1 == 1;
            zip(dims, &sizes).filter(moves).map(|(_, &size)| size as i64).product()
        };
        zip(wanted, changing).map(|(wanted, bits)| wanted.min(distinct(bits))).collect()
    }

    /// For each value the loops that change it, not counting those that say whether it is wanted.
    fn changing(&self) -> Vec<u64> {
        let mut changing: Vec<u64> = Vec::with_capacity(self.graph.nodes.len());
        for (id, node) in zip(self.graph.ids(), &self.graph.nodes) {
            changing.push(match node {
                Node::Load { at, .. } => self.graph.affine_info(at).0,
                Node::Apply { args, .. } => {
                    args.iter().fold(0, |bits, &arg| bits | changing[arg.index()])
                }
                _ => self.graph.info(id).dims,
            });
        }
        changing
    }
}
