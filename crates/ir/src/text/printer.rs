//! Modules written as HLO text.

use std::fmt::Write as _;

use super::attrs::AttrWriter;
use super::{extra, header, literal};
use crate::{CompId, Computation, ElementType, Instr, InstrId, Module, Op, Shape};

/// What printed text shows.
#[derive(Clone, Copy, Debug)]
pub struct PrintOptions {
    /// Whether names have a `%` before them, and computations their signature.
    pub sigils: bool,
    /// Whether operands have their shapes before them.
    pub operand_shapes: bool,
    /// Whether instructions show where they come from.
    pub metadata: bool,
}

helio_limits::with_methods! { PrintOptions {
    with_sigils(sigils: bool);
    with_operand_shapes(operand_shapes: bool);
    with_metadata(metadata: bool);
} }

impl Default for PrintOptions {
    fn default() -> Self {
        PrintOptions { sigils: false, operand_shapes: false, metadata: true }
    }
}

/// Writes a module so that [`parse`](super::parse) gives it again and XLA accepts it.
pub fn print(module: &Module) -> String {
    print_with(module, PrintOptions::default())
}

/// [`print()`] with a choice of what to show.
pub fn print_with(module: &Module, options: PrintOptions) -> String {
    let mut out = String::new();
    header::write(module, &mut out);
    let printer = Printer { module, options };
    for id in module.ids() {
        out.push('\n');
        printer.computation(id, &mut out);
    }
    out
}

struct Printer<'a> {
    module: &'a Module,
    options: PrintOptions,
}

impl Printer<'_> {
    fn computation(&self, id: CompId, out: &mut String) {
        let computation = self.module.computation(id);
        if id == self.module.entry_id() {
            out.push_str("ENTRY ");
        }
        out.push_str(&self.name(&computation.name));
        if self.options.sigils {
            self.signature(computation, out);
        }
        out.push_str(" {\n");
        for id in computation.ids() {
            out.push_str(if id == computation.root() { "  ROOT " } else { "  " });
            self.instruction(computation, computation.instr(id), out);
            out.push('\n');
        }
        out.push('}');
        for (name, value) in &computation.attributes {
            let _ = write!(out, ", {name}={value}"); // writing to a String cannot fail
        }
        out.push('\n');
    }

    fn signature(&self, computation: &Computation, out: &mut String) {
        out.push_str(" (");
        for (i, id) in computation.params().into_values().enumerate() {
            let Instr { name, shape, .. } = computation.instr(id);
            let separator = if i > 0 { ", " } else { "" };
            let shape = shape.without_layout();
            let _ = write!(out, "{separator}{name}: {shape}"); // writing to a String cannot fail
        }
        let result = computation.result_shape().without_layout();
        let _ = write!(out, ") -> {result}"); // writing to a String cannot fail
    }

    fn instruction(&self, computation: &Computation, instr: &Instr, out: &mut String) {
        let Instr { name, op, operands, shape, extra, .. } = instr;
        let name = self.name(name);
        let _ = write!(out, "{name} = {shape} {}(", op.opcode()); // writing to a String cannot fail
        match op {
            Op::Constant(op) if op.elided => out.push_str("{...}"),
            Op::Constant(op) => literal::write(&op.literal, out),
            Op::Parameter(op) => {
                let _ = write!(out, "{}", op.number); // writing to a String cannot fail
            }
            _ => self.operands(computation, operands, out),
        }
        out.push(')');
        let shapes: Vec<&Shape> = operands.iter().map(|&id| &computation.instr(id).shape).collect();
        let computation_name = |id| self.name(&self.module.computation(id).name);
        let mut attrs = AttrWriter::new(&computation_name, shape, &shapes);
        op.write(&mut attrs);
        out.push_str(&attrs.finish());
        if let Some(extra) = extra {
            let instruction_name = |id| self.name(&computation.instr(id).name);
            extra::write(extra, self.options.metadata, &instruction_name, out);
        }
    }

    fn operands(&self, computation: &Computation, operands: &[InstrId], out: &mut String) {
        for (i, &id) in operands.iter().enumerate() {
            let operand = computation.instr(id);
            out.push_str(if i > 0 { ", " } else { "" });
            if self.options.operand_shapes {
                let _ = write!(out, "{} ", operand.shape); // writing to a String cannot fail
            }
            out.push_str(&self.name(&operand.name));
        }
    }

    fn name(&self, name: &str) -> String {
        name_text(name, self.options.sigils)
    }
}

/// A name, with the sigil if it is wanted or if it would be taken for something else.
pub(super) fn name_text(name: &str, with_sigil: bool) -> String {
    if with_sigil || is_reserved(name) { format!("%{name}") } else { name.to_owned() }
}

/// Whether XLA's lexer takes this word for something other than a name.
fn is_reserved(name: &str) -> bool {
    const KEYWORDS: &[&str] = &[
        "ENTRY",
        "FileLocations",
        "FileNames",
        "FunctionNames",
        "HloModule",
        "ROOT",
        "StackFrames",
        "f6e2m3fn",
        "f6e3m2fn",
        "false",
        "inf",
        "last_tile_dim_replicate",
        "manual",
        "maximal",
        "nan",
        "opaque",
        "replicated",
        "s1",
        "shard_as",
        "shard_like",
        "token",
        "true",
        "u1",
        "unknown",
        "unreduced",
    ];
    KEYWORDS.contains(&name) || name.parse::<ElementType>().is_ok()
}
