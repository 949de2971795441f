//! The text of a computation as it grows, and what is known of its values.

use helio::{ElementType, Literal};

use super::bound::Bound;

/// An array that an instruction gives.
#[derive(Clone, Debug)]
pub(super) struct Value {
    /// The instruction.
    pub(super) line: usize,
    pub(super) element: ElementType,
    pub(super) dims: Vec<usize>,
    pub(super) bound: Bound,
}

impl Value {
    pub(super) fn rank(&self) -> usize {
        self.dims.len()
    }

    pub(super) fn count(&self) -> usize {
        self.dims.iter().product()
    }

    pub(super) fn shape(&self) -> String {
        shape(self.element, &self.dims)
    }

    pub(super) fn name(&self) -> String {
        name(self.line)
    }
}

/// `f32[2,3]`
pub(super) fn shape(element: ElementType, dims: &[usize]) -> String {
    format!("{}[{}]", element.name(), list(dims))
}

/// `1,2,3`
pub(super) fn list(numbers: &[usize]) -> String {
    let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
    numbers.join(",")
}

fn name(line: usize) -> String {
    format!("v{line}")
}

/// An instruction.
#[derive(Clone, Debug)]
enum Line {
    /// The argument it has, unless it is a parameter of a called computation.
    Parameter {
        shape: String,
        argument: Option<Literal>,
    },
    Instruction {
        text: String,
        operands: Vec<usize>,
    },
}

/// A computation as it grows.
#[derive(Clone, Debug, Default)]
pub(super) struct Block {
    lines: Vec<Line>,
    /// The arrays there are to choose from.
    pub(super) values: Vec<Value>,
}

impl Block {
    /// Adds a parameter.
    pub(super) fn parameter(
        &mut self,
        element: ElementType,
        dims: &[usize],
        bound: Bound,
        argument: Option<Literal>,
    ) -> Value {
        self.lines.push(Line::Parameter { shape: shape(element, dims), argument });
        self.value(element, dims, bound)
    }

    /// Adds an instruction that gives an array.
    pub(super) fn push(
        &mut self,
        element: ElementType,
        dims: &[usize],
        opcode: &str,
        operands: &[&Value],
        attributes: &str,
        bound: Bound,
    ) -> Value {
        let names: Vec<String> = operands.iter().map(|value| value.name()).collect();
        let text = format!("{} {opcode}({}){attributes}", shape(element, dims), names.join(", "));
        let operands = operands.iter().map(|value| value.line).collect();
        self.lines.push(Line::Instruction { text, operands });
        self.value(element, dims, bound)
    }

    /// Adds a constant.
    pub(super) fn push_constant(
        &mut self,
        element: ElementType,
        value: &str,
        bound: Bound,
    ) -> Value {
        let text = format!("{} constant({value})", shape(element, &[]));
        self.lines.push(Line::Instruction { text, operands: Vec::new() });
        self.value(element, &[], bound)
    }

    /// Adds an instruction of any shape that others take apart; gives its number.
    pub(super) fn push_tuple(&mut self, text: String, operands: &[usize]) -> usize {
        self.lines.push(Line::Instruction { text, operands: operands.to_vec() });
        self.lines.len() - 1
    }

    /// Adds an element of a tuple that is an array.
    pub(super) fn element(
        &mut self,
        tuple: usize,
        index: usize,
        element: ElementType,
        dims: &[usize],
        bound: Bound,
    ) -> Value {
        let shape = shape(element, dims);
        let text = format!("{shape} get-tuple-element({}), index={index}", name(tuple));
        self.lines.push(Line::Instruction { text, operands: vec![tuple] });
        self.value(element, dims, bound)
    }

    fn value(&mut self, element: ElementType, dims: &[usize], bound: Bound) -> Value {
        let value = Value { line: self.lines.len() - 1, element, dims: dims.to_vec(), bound };
        self.values.push(value.clone());
        value
    }

    /// The values that nothing uses.
    pub(super) fn unused(&self) -> Vec<&Value> {
        let mut used = vec![false; self.lines.len()];
        for line in &self.lines {
            if let Line::Instruction { operands, .. } = line {
                operands.iter().for_each(|&operand| used[operand] = true);
            }
        }
        self.values.iter().filter(|value| !used[value.line]).collect()
    }

    /// The text between the braces, with `root` as the last line, and the arguments of the
    /// parameters in it. Instructions that the root does not need are left out, and so are
    /// parameters if `drop_parameters`.
    pub(super) fn text(
        &self,
        root: &str,
        operands: &[usize],
        drop_parameters: bool,
    ) -> (String, Vec<Literal>) {
        let mut needed = vec![false; self.lines.len()];
        operands.iter().for_each(|&operand| needed[operand] = true);
        for (i, line) in self.lines.iter().enumerate().rev() {
            match line {
                Line::Instruction { operands, .. } if needed[i] => {
                    operands.iter().for_each(|&operand| needed[operand] = true);
                }
                Line::Parameter { .. } if !drop_parameters => needed[i] = true,
                _ => {}
            }
        }
        let (mut text, mut arguments, mut parameters) = (String::new(), Vec::new(), 0);
        for (i, line) in self.lines.iter().enumerate().filter(|&(i, _)| needed[i]) {
            match line {
                Line::Instruction { text: line, .. } => {
                    text.push_str(&format!("  {} = {line}\n", name(i)));
                }
                Line::Parameter { shape, argument } => {
                    text.push_str(&format!("  {} = {shape} parameter({parameters})\n", name(i)));
                    arguments.extend(argument.clone());
                    parameters += 1;
                }
            }
        }
        text.push_str(&format!("  ROOT {root}\n"));
        (text, arguments)
    }
}
