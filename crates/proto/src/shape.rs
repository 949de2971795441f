//! Shapes and layouts, from messages and to them.

use std::fmt::Write as _;

use helio_ir::text::attrs::Scan;
use helio_ir::types::MAX_RANK;
use helio_ir::{ArrayShape, DimKind, ElementType, Error, Layout, ProgramShape, Result, Shape};

use crate::messages::{LayoutProto, ProgramShapeProto, ShapeProto, TileProto};
use crate::words::{self, ELEMENT, ints};

const TUPLE: i32 = 13;
const OPAQUE: i32 = 14;
const TOKEN: i32 = 17;

/// How deep tuples may be nested: as in text.
const MAX_DEPTH: usize = helio_ir::text::MAX_DEPTH;

/// A shape.
pub(crate) fn read(proto: &ShapeProto) -> Result<Shape> {
    read_at(proto, 0)
}

fn read_at(proto: &ShapeProto, depth: usize) -> Result<Shape> {
    Ok(match proto.element_type {
        TUPLE if depth >= MAX_DEPTH => {
            let detail = format!("tuples nested more than {MAX_DEPTH} deep");
            return Err(Error::exhausted(detail));
        }
        TUPLE => {
            let elements = proto.tuple_shapes.iter().map(|proto| read_at(proto, depth + 1));
            Shape::Tuple(elements.collect::<Result<_>>()?)
        }
        OPAQUE => Shape::Opaque,
        TOKEN => Shape::Token,
        _ => Shape::Array(read_array(proto)?),
    })
}

/// The shape of an array.
pub(crate) fn read_array(proto: &ShapeProto) -> Result<ArrayShape> {
    let element = words::word(ELEMENT, proto.element_type, "an array of elements of type")?;
    let element: ElementType = element.parse()?;
    if proto.dimensions.len() > MAX_RANK {
        let rank = proto.dimensions.len();
        return Err(Error::rule("shape.C1", format!("{rank} dimensions; at most {MAX_RANK}")));
    }
    let mut kinds = Vec::new();
    let mut dims = Vec::new();
    for (d, &size) in proto.dimensions.iter().enumerate() {
        let is_dynamic = proto.is_dynamic_dimension.get(d).copied().unwrap_or(false);
        // XLA writes the lowest number for a size that nothing is known of.
        let is_unbounded = is_dynamic && size == i64::MIN;
        kinds.push(match (is_unbounded, is_dynamic) {
            (true, _) => DimKind::Unbounded,
            (false, true) => DimKind::Bounded,
            (false, false) => DimKind::Static,
        });
        dims.push(if is_unbounded { 0 } else { words::size(size, "a dimension's size")? });
    }
    let shape = ArrayShape::with_kinds(element, dims, kinds)?;
    let layout = proto.layout.as_deref().map(read_layout).transpose()?;
    shape.with_layout(layout)
}

fn read_layout(proto: &LayoutProto) -> Result<Layout> {
    let mut attributes = String::new();
    for (i, tile) in proto.tiles.iter().enumerate() {
        let sizes = words::sizes(&tile.dimensions, "a tile's size")?;
        let sizes: Vec<_> = sizes.iter().map(usize::to_string).collect();
        attributes += if i == 0 { "T" } else { "" };
        attributes += &format!("({})", sizes.join(","));
    }
    let numbers = [("E", proto.element_size_in_bits), ("S", proto.memory_space)];
    let tail = proto.tail_padding_alignment_in_elements;
    if tail > 1 {
        let _ = write!(attributes, "L({tail})"); // writing to a String cannot fail
    }
    for (letter, number) in numbers {
        if number != 0 {
            let _ = write!(attributes, "{letter}({number})"); // writing to a String cannot fail
        }
    }
    let minor_to_major = words::sizes(&proto.minor_to_major, "a dimension of a layout")?;
    Ok(Layout { minor_to_major, attributes })
}

/// The message for a shape. Arrays without a layout are row-major, as XLA expects them to say.
pub(crate) fn write(shape: &Shape) -> ShapeProto {
    let plain = |element_type| ShapeProto { element_type, ..ShapeProto::default() };
    match shape {
        Shape::Tuple(elements) => {
            ShapeProto { tuple_shapes: elements.iter().map(write).collect(), ..plain(TUPLE) }
        }
        Shape::Opaque => plain(OPAQUE),
        Shape::Token => plain(TOKEN),
        Shape::Array(array) => write_array(array),
    }
}

/// The message for the shape of an array.
pub(crate) fn write_array(array: &ArrayShape) -> ShapeProto {
    let element = array.element().to_string();
    let row = ELEMENT.iter().find(|row| row.1 == element);
    let dimensions = array.dims_and_kinds().map(|(size, kind)| match kind {
        DimKind::Unbounded => i64::MIN,
        DimKind::Static | DimKind::Bounded => size as i64,
    });
    let layout = match array.layout() {
        Some(layout) => write_layout(layout),
        None => write_layout(&Layout::descending(array.rank())),
    };
    ShapeProto {
        element_type: row.map_or(0, |row| row.0),
        dimensions: dimensions.collect(),
        is_dynamic_dimension: array.kinds().iter().map(|&kind| kind != DimKind::Static).collect(),
        layout: Some(Box::new(layout)),
        ..ShapeProto::default()
    }
}

/// Tiles, sizes and memory spaces are written; what else a layout's text says is left out.
pub(crate) fn write_layout(layout: &Layout) -> LayoutProto {
    let mut proto = LayoutProto {
        minor_to_major: ints(&layout.minor_to_major),
        tail_padding_alignment_in_elements: 1,
        ..LayoutProto::default()
    };
    let mut scan = Scan::new(&layout.attributes);
    if scan.eat("T") {
        while let Ok(dimensions) = scan.list('(', ')', Scan::int) {
            proto.tiles.push(TileProto { dimensions });
        }
    }
    let mut number = |letter: &str| {
        let given = scan.eat(letter).then(|| scan.list('(', ')', Scan::int).ok()).flatten();
        given.and_then(|list| list.first().copied())
    };
    proto.tail_padding_alignment_in_elements = number("L").unwrap_or(1);
    proto.element_size_in_bits = number("E").unwrap_or(0);
    proto.memory_space = number("S").unwrap_or(0);
    proto
}

/// Parameters and result.
pub(crate) fn read_program(proto: &ProgramShapeProto) -> Result<ProgramShape> {
    let params = proto.parameters.iter().map(read).collect::<Result<_>>()?;
    let result = proto.result.as_ref().map_or(Ok(Shape::Tuple(Vec::new())), read)?;
    Ok(ProgramShape { params, result })
}

/// The message for parameters, with their names, and result.
pub(crate) fn write_program(program: &ProgramShape, names: Vec<String>) -> ProgramShapeProto {
    ProgramShapeProto {
        parameters: program.params.iter().map(write).collect(),
        result: Some(write(&program.result)),
        parameter_names: names,
    }
}
