//! Shapes and layouts in HLO text, read: `f32[2,<=3]{1,0:T(8,128)}`.

use smallvec::SmallVec;

use super::lexer::{Cursor, Lines};
use crate::types::{ArrayShape, DimKind, ElementType, Layout, MAX_RANK, Shape};
use crate::{Error, Result};

/// Reads a shape: `f32[2,<=3]{1,0:T(8,128)}`, `(s32[], token[])`.
///
/// Errors: `InvalidArgument` unless the text is one shape and nothing else (`shape.C1`, `shape.C2`
/// and `layout.C1` for one that cannot be); `ResourceExhausted` beyond [`MAX_DEPTH`](super::MAX_DEPTH).
pub fn parse_shape(text: &str) -> Result<Shape> {
    let lines = Lines::new(text)?;
    let mut cursor = Cursor::new(&lines);
    let parsed = shape(&mut cursor)?;
    cursor.expect_end()?;
    Ok(parsed)
}

/// Whether a shape comes next, given that a shape or a name does.
pub(super) fn can_be_shape(cursor: &mut Cursor<'_>) -> bool {
    cursor.peek() == Some(b'(') || {
        let mut ahead = *cursor;
        ahead.peek_word().is_some_and(|word| {
            ahead.pass(word);
            ahead.peek() == Some(b'[')
        })
    }
}

pub(super) fn shape(cursor: &mut Cursor<'_>) -> Result<Shape> {
    if cursor.eat("(") {
        return cursor.nested(|cursor| {
            let mut elements = Vec::new();
            if !cursor.eat(")") {
                loop {
                    elements.push(shape(cursor)?);
                    if !cursor.eat(",") {
                        break;
                    }
                }
                cursor.expect(")")?;
            }
            Ok(Shape::Tuple(elements))
        });
    }
    let at = cursor.location();
    let word = cursor.word("a shape")?;
    match word {
        "token" | "opaque" => {
            cursor.expect("[")?;
            cursor.expect("]")?;
            // XLA's dumps give these a layout, `token[]{:T(1)}`, without meaning.
            layout(cursor)?;
            Ok(if word == "token" { Shape::Token } else { Shape::Opaque })
        }
        "b" if cursor.peek() == Some(b'(') => {
            Err(Error::unimplemented("shapes of buffers, `b(…)`").at(Some(at)))
        }
        _ => {
            let element: ElementType = word.parse().map_err(|e: Error| e.at(Some(at.clone())))?;
            array(cursor, element).map(Shape::Array).map_err(|e| e.at(Some(at)))
        }
    }
}

fn array(cursor: &mut Cursor<'_>, element: ElementType) -> Result<ArrayShape> {
    let (mut dims, mut kinds) = (SmallVec::<[_; 8]>::new(), SmallVec::<[_; 8]>::new());
    cursor.expect("[")?;
    if !cursor.eat("]") {
        loop {
            let (dim, kind) = if cursor.eat("?") {
                (0, DimKind::Unbounded)
            } else if cursor.eat("<=") {
                (cursor.size()?, DimKind::Bounded)
            } else {
                (cursor.size()?, DimKind::Static)
            };
            dims.push(dim);
            kinds.push(kind);
            crate::ensure!(dims.len() <= MAX_RANK, "shape.C1", "more than {MAX_RANK} dimensions");
            if !cursor.eat(",") {
                break;
            }
        }
        cursor.expect("]")?;
    }
    let shape = ArrayShape::checked(element, &dims, &kinds)?;
    match layout(cursor)? {
        // Most layouts by far.
        Some((order, "")) if order.iter().rev().copied().eq(0..shape.rank()) => Ok(shape.in_rows()),
        Some((order, attributes)) => {
            let (minor_to_major, attributes) = (order.into_vec(), attributes.to_owned());
            shape.with_layout(Some(Layout { minor_to_major, attributes }))
        }
        None => Ok(shape),
    }
}

/// The order of a layout, and its attributes as written.
type LayoutText<'a> = (SmallVec<[usize; 8]>, &'a str);

/// The layout, if one comes next. A brace may also begin a computation; then neither a number nor
/// a colon follows.
fn layout<'a>(cursor: &mut Cursor<'a>) -> Result<Option<LayoutText<'a>>> {
    let mut ahead = *cursor;
    if !ahead.eat("{") || !ahead.peek().is_some_and(|byte| byte.is_ascii_digit() || byte == b':') {
        return Ok(None);
    }
    let mut minor_to_major = SmallVec::new();
    if ahead.peek() != Some(b':') {
        loop {
            minor_to_major.push(ahead.size()?);
            if minor_to_major.len() > MAX_RANK {
                return Err(ahead.error(format!("a layout of more than {MAX_RANK} dimensions")));
            }
            if !ahead.eat(",") {
                break;
            }
        }
    }
    let mut attributes = "";
    if ahead.eat(":") {
        // The attributes are whatever stands between the colon and the brace that closes all.
        let start = ahead.pos();
        cursor.balanced()?;
        let text = cursor.since(start);
        attributes = text.strip_suffix('}').unwrap_or(text).trim();
    } else {
        ahead.expect("}")?;
        *cursor = ahead;
    }
    Ok(Some((minor_to_major, attributes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::MAX_DEPTH;

    /// Each of these prints as it is written.
    #[test]
    fn round_trip() {
        for text in [
            "f32[]",
            "bf16[2,3]",
            "f32[2,3]{0,1}",
            "f32[2,<=3]{1,0:T(8,128)(2,1)S(1)}",
            "s4[?,0]",
            "f32[]{:T(128)}",
            "f32[8]{0:D(D)#(u32)*(u64)E(8)SC(0:4)P(u8[4]{0})M(4)}",
            "()",
            "((), token[], (opaque[]))",
            "(pred[], s8[1]{0}, u16[2], c64[], f8e4m3fn[1], /*index=5*/f64[])",
        ] {
            assert_eq!(parse_shape(text).unwrap().to_string(), text);
        }
        let spaced = " ( f32 [ 2 , /*x*/ 3 ] { 1 , 0 } , // end\n s32[] ) ";
        assert_eq!(parse_shape(spaced).unwrap().to_string(), "(f32[2,3]{1,0}, s32[])");
    }

    #[test]
    fn errors() {
        let check = |text: &str, place: &str, part: &str| {
            let e = parse_shape(text).unwrap_err().to_string();
            assert!(e.starts_with(place) && e.contains(part), "{text}: {e}");
        };
        check("", "1:1", "expected a shape, found the end of the text");
        check("f31[2]", "1:1", "unknown element type `f31`");
        check("f32[-1]", "1:5", "expected a non-negative integer");
        check("f32[99999999999999999999]", "1:5", "does not fit");
        check("f32[2]x", "1:7", "expected the end");
        check("f32[2]{1,0}", "1:1", "layout.C1");
        check("f32[4611686018427387904,4]", "1:1", "shape.C2");
        check(&format!("f32[{}1]", "1,".repeat(MAX_RANK)), "1:1", "shape.C1");
        check("f32[2]{0:T(8", "1:7", "not closed");
        check("b(f32[2])", "1:1", "unimplemented");
        check(&"(".repeat(1 << 20), &format!("1:{}", MAX_DEPTH + 2), "nested more than");
        check("(f32[], é)", "1:9", "found `é`");
    }
}
