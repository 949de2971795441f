//! Literals in HLO text, read and written: `{ { 1, 2 }, { 3, 4 } }`.

use super::lexer::{Cursor, Lines};
use super::number;
use super::shape::shape;
use crate::types::{Array, ArrayShape, Literal, Native, Shape};
use crate::{Error, Result, dispatch, dispatch_type, memory};

/// The most bytes that `...` in the text of a literal may stand for.
pub const MAX_ELIDED_BYTES: usize = 2 << 30;

/// Reads a literal of this shape: `{1, 2}`, `{ { 0.5 }, { nan } }`, `( {1, 2}, true )`.
///
/// `...` stands for zeros, as in XLA. Errors: `InvalidArgument` unless the text is one literal of
/// the shape; `ResourceExhausted` if `...` stands for more than [`MAX_ELIDED_BYTES`], for nesting
/// and for memory.
pub fn parse_literal(text: &str, shape: &Shape) -> Result<Literal> {
    let lines = Lines::new(text)?;
    let mut cursor = Cursor::new(&lines);
    let parsed = literal(&mut cursor, shape)?;
    cursor.expect_end()?;
    Ok(parsed)
}

pub(super) fn literal(cursor: &mut Cursor<'_>, shape: &Shape) -> Result<Literal> {
    match shape {
        Shape::Array(array) => dispatch_type!(array.element(), T => elements::<T>(cursor, array)),
        Shape::Tuple(shapes) => cursor.nested(|cursor| {
            // XLA's printer leaves out the value of any tuple.
            if cursor.peek() == Some(b'{') {
                return elided(cursor, shape);
            }
            cursor.expect("(")?;
            let mut elements = Vec::new();
            for (i, shape) in shapes.iter().enumerate() {
                if i > 0 {
                    cursor.expect(",")?;
                }
                elements.push(literal(cursor, shape)?);
            }
            cursor.expect(")")?;
            Ok(Literal::Tuple(elements))
        }),
        Shape::Token => cursor.expect("token").map(|()| Literal::Token),
        Shape::Opaque => Err(cursor.error("no text gives a value of shape opaque[]")),
    }
}

/// Passes a literal that has its shapes with it: `f32[] 1`, `( f32[] 1, s32[2] {1, 2} )`.
pub(super) fn pass_literal(cursor: &mut Cursor<'_>) -> Result<()> {
    if !cursor.eat("(") {
        let shape = shape(cursor)?;
        return literal(cursor, &shape).map(|_| ());
    }
    cursor.nested(|cursor| {
        if cursor.eat(")") {
            return Ok(());
        }
        loop {
            pass_literal(cursor)?;
            if !cursor.eat(",") {
                return cursor.expect(")");
            }
        }
    })
}

/// `{...}` for a tuple.
fn elided(cursor: &mut Cursor<'_>, shape: &Shape) -> Result<Literal> {
    let mut at = *cursor;
    for token in ["{", "...", "}"] {
        cursor.expect(token)?;
    }
    ensure_elidable(&mut at, shape.size_bytes())?;
    cursor.elided |= shape.size_bytes() > 0;
    zeros(shape).map_err(|e| e.at(Some(at.location())))
}

fn ensure_elidable(at: &mut Cursor<'_>, bytes: usize) -> Result<()> {
    if bytes > MAX_ELIDED_BYTES {
        let detail = format!("`...` for {bytes} bytes; at most {MAX_ELIDED_BYTES}");
        return Err(Error::exhausted(detail).at(Some(at.location())));
    }
    memory::ensure_available(bytes).map_err(|e| e.at(Some(at.location())))
}

fn zeros(shape: &Shape) -> Result<Literal> {
    match shape {
        Shape::Array(array) => Array::zeros(array.clone().without_layout()).map(Literal::Array),
        Shape::Tuple(shapes) => shapes.iter().map(zeros).collect::<Result<_>>().map(Literal::Tuple),
        Shape::Token => Ok(Literal::Token),
        Shape::Opaque => Err(Error::invalid("no literal has shape opaque[]")),
    }
}

/// The elements of an array between nested braces. Commas separate, but none is needed (as in XLA).
fn elements<T: Native>(cursor: &mut Cursor<'_>, shape: &ArrayShape) -> Result<Literal> {
    let (rank, dims) = (shape.rank(), shape.dims());
    // Grows with the text: the shape may promise more than ever comes.
    let mut values: Vec<T> = Vec::new();
    // How many elements or braces were seen in each brace that is open.
    let mut seen: Vec<usize> = Vec::with_capacity(rank);
    loop {
        let mut at = *cursor;
        if cursor.eat("...") {
            let [count] = seen.as_mut_slice() else {
                return Err(at.error("`...` may stand between the outermost braces only"));
            };
            *count = dims[0];
            let missing = shape.element_count().saturating_sub(values.len());
            ensure_elidable(&mut at, missing.saturating_mul(size_of::<T>()))?;
            cursor.elided |= missing > 0;
            values.resize(values.len() + missing, T::from_bits(0));
        } else if !seen.is_empty() && cursor.eat(",") {
            continue;
        } else if !seen.is_empty() && cursor.eat("}") {
            let (count, d) = (seen.pop().unwrap_or(0), seen.len());
            if count != dims[d] {
                let wanted = dims[d];
                let detail = format!("{count} elements in dimension {d} of {shape}, not {wanted}");
                return Err(at.error(detail));
            }
        } else {
            let is_brace = cursor.peek() == Some(b'{');
            if is_brace == (seen.len() == rank) {
                let wanted = if is_brace { "an element" } else { "`{`" };
                return Err(at.unexpected(&format!("{wanted} (of {shape})")));
            }
            let depth = seen.len();
            if let Some(count) = seen.last_mut() {
                let d = depth - 1;
                if *count >= dims[d] {
                    let wanted = dims[d];
                    let detail = format!("more than {wanted} elements in dimension {d} of {shape}");
                    return Err(at.error(detail));
                }
                *count += 1;
            }
            if cursor.eat("{") {
                seen.push(0);
            } else {
                if values.len() == values.capacity() {
                    let bytes = values.len().saturating_mul(size_of::<T>());
                    memory::ensure_available(bytes).map_err(|e| e.at(Some(at.location())))?;
                }
                values.push(number::read(cursor)?);
            }
        }
        if seen.is_empty() {
            break;
        }
    }
    Array::from_data(shape.clone().without_layout(), T::wrap(values)).map(Literal::Array)
}

/// Writes a literal so that [`parse_literal`], and XLA, give the same bits. Elements beyond the
/// sizes at run time are written, too.
pub fn print_literal(literal: &Literal) -> String {
    let mut out = String::new();
    write(literal, &mut out);
    out
}

pub(super) fn write(literal: &Literal, out: &mut String) {
    match literal {
        // Braces without elements may be any number, spelt out.
        Literal::Array(array) if array.data().is_empty() && array.dims().len() > 1 => {
            out.push_str("{...}");
        }
        Literal::Array(array) => dispatch!(array.data(), values => {
            write_elements(values, array.dims(), array.dims().len(), out);
        }),
        Literal::Tuple(elements) => {
            out.push_str("( ");
            for (i, element) in elements.iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                write(element, out);
            }
            out.push_str(" )");
        }
        Literal::Token => out.push_str("token"),
    }
}

/// As XLA does it: `{1, 2}`, but `{ { 1, 2 }, { 3, 4 } }`. Recurses as deep as there are dimensions.
fn write_elements<T: Native>(values: &[T], dims: &[usize], rank: usize, out: &mut String) {
    let Some((&dim, inner)) = dims.split_first() else {
        if let Some(&value) = values.first() {
            number::write(value, rank == 0, out);
        }
        return;
    };
    let space = if rank == 1 || (inner.is_empty() && dim <= 1) { "" } else { " " };
    let stride = values.len() / dim.max(1);
    out.push('{');
    out.push_str(space);
    for i in 0..dim {
        out.push_str(if i > 0 { ", " } else { "" });
        write_elements(&values[i * stride..(i + 1) * stride], inner, rank, out);
    }
    out.push_str(space);
    out.push('}');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse_shape;

    fn parse(shape: &str, text: &str) -> Result<Literal> {
        parse_literal(text, &parse_shape(shape).unwrap())
    }

    #[track_caller]
    fn check(shape: &str, text: &str, printed: &str) {
        let literal = parse(shape, text).unwrap();
        assert_eq!(print_literal(&literal), printed);
        let again = parse(shape, printed).unwrap();
        assert!(again.same_bits(&literal) && literal.shape().same(&parse_shape(shape).unwrap()));
    }

    /// Accepted by XLA's parser, and printed as XLA does (but for tuples and arrays without
    /// elements, and for the comments that number the braces of four dimensions).
    #[test]
    fn round_trip() {
        check("s32[]", "7", "7");
        check("pred[]", "1", "true");
        check("pred[2]", "{true, 0}", "{1, 0}");
        check("s32[3]", "{1,2,3}", "{1, 2, 3}");
        check("s32[3]", "{ , 1 2 /*c*/ 3 // d\n }", "{1, 2, 3}");
        check("s32[0]", "{}", "{}");
        check("f32[2,0]{1,0}", "{{},{}}", "{...}");
        check("f32[0,2]", "{}", "{...}");
        check("f32[1099511627776,0]", "{...}", "{...}");
        check("f32[1,2]", "{{-nan, -nan(0x1)}}", "{ { -nan, -nan(0x1) } }");
        check("f32[2,1]", "{{1},{2}}", "{ {1}, {2} }");
        check(
            "s8[2,2,1,2]{3,2,1,0}",
            "{{{{1,2}},{{3,4}}},{{{5,6}},{{7,8}}}}",
            "{ { { { 1, 2 } }, { { 3, 4 } } }, { { { 5, 6 } }, { { 7, 8 } } } }",
        );
        check("c64[2]", "{(1, -2), (inf, 0.5)}", "{(1, -2), (inf, 0.5)}");
        check(
            "(f32[], s32[2], (), token[])",
            "(1, {1,2}, (), token)",
            "( 1, {1, 2}, (  ), token )",
        );
        check("s32[<=3]", "{1, 2, 3}", "{1, 2, 3}");
        check("s32[2,3]", "{...}", "{ { 0, 0, 0 }, { 0, 0, 0 } }");
        check("s32[4]", "{1, 2, ...}", "{1, 2, 0, 0}");
        check("s32[2]", "{1, 2, ...}", "{1, 2}");
        check("(s32[], f32[2])", "{...}", "( 0, {0, 0} )");
    }

    #[test]
    fn errors() {
        let check = |shape: &str, text: &str, place: &str, part: &str| {
            let e = parse(shape, text).unwrap_err().to_string();
            assert!(e.starts_with(place) && e.contains(part), "{shape} {text}: {e}");
        };
        check("s32[3]", "{1, 2}", "1:6", "2 elements in dimension 0 of s32[3], not 3");
        check("s32[2]", "{1, 2, 3}", "1:8", "more than 2 elements");
        check("s32[2,2]", "{{1, 2}, {3}}", "1:12", "1 elements in dimension 1");
        check("s32[2,2]", "{{1, 2}}", "1:8", "1 elements in dimension 0");
        check("s32[2,2]", "{1, 2, 3, 4}", "1:2", "expected `{`");
        check("s32[2]", "{{1, 2}}", "1:2", "expected an element");
        check("s32[1]", "5", "1:1", "expected `{` (of s32[1])");
        check("s32[]", "{5}", "1:1", "expected an element");
        check("s32[]", "...", "1:1", "outermost");
        check("s32[2,2]", "{{...}, {...}}", "1:3", "outermost");
        check("s32[]", "}", "1:1", "expected an integer, found `}`");
        check("s32[]", "5 6", "1:3", "expected the end");
        check("s32[2]", "{1", "1:3", "expected an integer, found the end");
        check("(s32[], s32[])", "(1)", "1:3", "expected `,`");
        check("(s32[])", "(1, 2)", "1:3", "expected `)`");
        check("opaque[]", "1", "1:1", "opaque");
        // Nothing is allocated for what only the shape promises.
        check("f32[1073741824]", "{...}", "1:2", "`...` for 4294967296 bytes; at most 2147483648");
        check("f32[1099511627776]", "{1}", "1:3", "1 elements");
        let deep = format!("{}s32[]{}", "(".repeat(150), ")".repeat(150));
        check(&deep, &"(".repeat(150), "1:151", "expected an integer");
    }

    #[test]
    fn a_long_literal_takes_linear_time() {
        let text = format!("{{{}}}", "1.5, ".repeat(1 << 20));
        assert!(parse("f32[1048576]", &text).is_ok());
    }
}
