//! Scatters of one window, or of one for each of a batch, as `x.at[i].set(v)` becomes.

use helio::ElementType;
use helio::ir::ops::BinaryOp;

use super::Generator;
use super::block::{Value, list, shape};
use super::bound::Bound;

/// A dimension of the array that a window goes into.
struct WindowDim {
    /// The size of the window.
    size: usize,
    /// Whether an index says where the window begins, and not 0.
    is_indexed: bool,
    /// Whether the updates leave the dimension out.
    is_inserted: bool,
}

impl Generator {
    pub(super) fn scatter_somewhere(&mut self) -> Option<Value> {
        let value = self.choose(|value| value.rank() >= 1)?;
        let from = self.choose(|v| v.element == value.element && v.dims == value.dims)?;
        let index = self.choose(|v| v.dims.is_empty() && v.element == ElementType::S32);
        let index = match index.filter(|_| self.chance(1, 2)) {
            Some(index) => index,
            None => {
                let number = self.between(-1, value.dims[0] as i64);
                self.scalar(ElementType::S32, number)
            }
        };
        Some(self.scatter_at(&value, &from, &index))
    }

    /// A value in which a part is combined with a part of another of its shape, at places around `index`:
    /// inside or beyond.
    pub(super) fn scatter_at(&mut self, value: &Value, from: &Value, index: &Value) -> Value {
        if value.rank() == 2 && value.dims[0] > 0 && self.chance(1, 3) {
            return self.scatter_each(value, from, index);
        }
        let mut dims: Vec<WindowDim> =
            value.dims.iter().map(|&size| self.window_dim(size)).collect();
        let some = self.below(dims.len());
        dims[some].is_indexed = true;
        let indexed: Vec<usize> = (0..dims.len()).filter(|&d| dims[d].is_indexed).collect();
        let starts: Vec<Value> = indexed.iter().map(|_| self.start_near(index)).collect();
        let indices = match &starts[..] {
            [only] => only.clone(),
            all => {
                let all: Vec<&Value> = all.iter().collect();
                let bound = index_bound();
                let sizes = [all.len()];
                self.block.push(
                    ElementType::S32,
                    &sizes,
                    "concatenate",
                    &all,
                    ", dimensions={0}",
                    bound,
                )
            }
        };
        // An index vector, or an array of one.
        let of_one = self.chance(1, 2);
        let indices = match of_one {
            true => self.reshaped(&indices, &[1, indexed.len()]),
            false => indices,
        };
        let kept = |d: &usize| !dims[*d].is_inserted;
        let mut sizes: Vec<usize> = (0..dims.len()).filter(kept).map(|d| dims[d].size).collect();
        let windows: Vec<usize> = (0..sizes.len()).map(|d| d + usize::from(of_one)).collect();
        if of_one {
            sizes.insert(0, 1);
        }
        let limits: Vec<String> = dims.iter().map(|dim| format!("[0:{}]", dim.size)).collect();
        let limits = format!(", slice={{{}}}", limits.join(", "));
        let part: Vec<usize> = dims.iter().map(|dim| dim.size).collect();
        let part = self.block.push(from.element, &part, "slice", &[from], &limits, from.bound);
        let updates = self.reshaped(&part, &sizes);
        let inserted: Vec<usize> = (0..dims.len()).filter(|&d| dims[d].is_inserted).collect();
        let attributes = format!(
            ", update_window_dims={{{}}}, inserted_window_dims={{{}}}, \
             scatter_dims_to_operand_dims={{{}}}, index_vector_dim={}",
            list(&windows),
            list(&inserted),
            list(&indexed),
            usize::from(of_one)
        );
        self.scatter_of(value, &indices, &updates, attributes)
    }

    /// A row of each of a batch, at a place of its own.
    fn scatter_each(&mut self, value: &Value, from: &Value, index: &Value) -> Value {
        let rows = value.dims[0];
        let start = self.start_near(index);
        let start = self.reshaped(&start, &[]);
        let all = self.fill(&start, &[rows]);
        let along = Bound::exact(0.0, rows as f64, true);
        let places =
            self.block.push(ElementType::S32, &[rows], "iota", &[], ", iota_dimension=0", along);
        let bound = Bound::any(ElementType::S32);
        let indices =
            self.block.push(ElementType::S32, &[rows], "subtract", &[&all, &places], "", bound);
        let size = value.dims[1].min(1);
        let limits = format!(", slice={{[0:{rows}], [0:{size}]}}");
        let part =
            self.block.push(from.element, &[rows, size], "slice", &[from], &limits, from.bound);
        let (updates, windows) = match size {
            1 => (self.reshaped(&part, &[rows]), "update_window_dims={}, inserted_window_dims={1}"),
            _ => (part, "update_window_dims={1}, inserted_window_dims={}"),
        };
        let attributes = format!(
            ", {windows}, scatter_dims_to_operand_dims={{1}}, input_batching_dims={{0}}, \
             scatter_indices_batching_dims={{0}}, index_vector_dim=1"
        );
        self.scatter_of(value, &indices, &updates, attributes)
    }

    fn window_dim(&mut self, size: usize) -> WindowDim {
        let window = match self.below(4) {
            0 => size,
            1 => self.below(size + 1),
            _ => size.min(1),
        };
        let is_inserted = window == 1 && self.chance(1, 2);
        WindowDim { size: window, is_indexed: self.chance(1, 2), is_inserted }
    }

    /// The index or its neighbour, as an array of one.
    fn start_near(&mut self, index: &Value) -> Value {
        let by = self.between(-1, 1);
        let by = self.scalar(ElementType::S32, by);
        let start = self.block.push(ElementType::S32, &[], "add", &[index, &by], "", index_bound());
        self.reshaped(&start, &[1])
    }

    fn scatter_of(
        &mut self,
        value: &Value,
        indices: &Value,
        updates: &Value,
        attributes: String,
    ) -> Value {
        let element = value.element;
        let is_folded = element.is_integer() && self.chance(1, 2);
        let (callee, bound) = match is_folded {
            true => {
                let ops = [BinaryOp::Add, BinaryOp::Subtract, BinaryOp::Maximum];
                let op = *self.pick(&ops);
                (self.reducer(op, element), Bound::any(element))
            }
            false => (self.second(element), value.bound.or(updates.bound)),
        };
        let attributes = format!("{attributes}, to_apply={callee}");
        let operands = [value, indices, updates];
        self.block.push(element, &value.dims, "scatter", &operands, &attributes, bound)
    }

    /// The function that gives its second argument.
    fn second(&mut self, element: ElementType) -> String {
        let ty = shape(element, &[]);
        self.computation(format!("second {ty}"), |name| {
            format!("{name} {{\n  a = {ty} parameter(0)\n  ROOT b = {ty} parameter(1)\n}}\n\n")
        })
    }
}

fn index_bound() -> Bound {
    Bound::any(ElementType::S32)
}
