//! Shapes: what an instruction's result looks like.

use std::fmt;
use std::sync::LazyLock;

use smallvec::SmallVec;

use super::{ElementType, Layout};
use crate::{Error, Result};

/// The largest number of dimensions.
pub const MAX_RANK: usize = 64;

/// How much is known of a dimension's size before the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum DimKind {
    /// The size is the size.
    #[default]
    Static,
    /// `<=N`: the size at run time is at most the size here.
    Bounded,
    /// `?`: nothing; such a program needs refinement before it runs. The size here is 0.
    Unbounded,
}

/// The most sizes that a shape holds in itself.
const INLINE: usize = 4;

/// The kinds of the dimensions of a static shape.
static STATIC: [DimKind; MAX_RANK] = [DimKind::Static; MAX_RANK];

/// The row-major layouts, by rank.
static ROW_MAJOR: LazyLock<Vec<Layout>> =
    LazyLock::new(|| (0..=MAX_RANK).map(Layout::descending).collect());

/// The shape of an array: an element type and the size of each dimension.
///
/// The number of elements, and of bytes, fits `isize` (a constructor checks).
//
// Each instruction has one, and passes copy them all the time: what most shapes do without is apart.
// Each shape is written in one way only, so that equality and hashes are those of the fields.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ArrayShape {
    element: ElementType,
    rank: u8,
    /// Whether its layout is stated, and row-major without attributes.
    is_row_major: bool,
    /// The sizes, then zeros; only zeros if there are too many.
    sizes: [usize; INLINE],
    rare: Option<Box<Rare>>,
}

/// What few shapes have.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
struct Rare {
    /// All sizes, if there are more than [`INLINE`].
    sizes: Vec<usize>,
    /// The kinds, unless all are static.
    kinds: Vec<DimKind>,
    /// A layout other than row-major.
    layout: Option<Layout>,
}

impl ArrayShape {
    /// An array of static size. Errors: `shape.C1` (too many dimensions), `shape.C2` (too large).
    pub fn new(element: ElementType, dims: impl Into<Vec<usize>>) -> Result<Self> {
        Self::checked(element, &dims.into(), &[])
    }

    /// An array of static size, as [`ArrayShape::new`], from sizes that stay the caller's.
    pub fn of_sizes(element: ElementType, dims: &[usize]) -> Result<Self> {
        Self::checked(element, dims, &[])
    }

    /// An array some of whose dimensions may be bounded or unbounded; one kind for each dimension.
    /// Errors: as for [`ArrayShape::new`], and unless there are as many kinds as sizes.
    pub fn with_kinds(element: ElementType, dims: Vec<usize>, kinds: Vec<DimKind>) -> Result<Self> {
        let rank = dims.len();
        if kinds.len() != rank {
            let detail = format!("{} kinds for {rank} dimensions; one for each", kinds.len());
            return Err(Error::invalid(detail));
        }
        Self::checked(element, &dims, &kinds)
    }

    /// An array of these kinds, or of static size if there are none. Errors: as for
    /// [`ArrayShape::new`].
    pub(crate) fn checked(element: ElementType, dims: &[usize], kinds: &[DimKind]) -> Result<Self> {
        let rank = dims.len();
        crate::ensure!(rank <= MAX_RANK, "shape.C1", "{rank} dimensions; at most {MAX_RANK}");
        let mut shape = ArrayShape { rank: rank as u8, ..Self::scalar(element) };
        match shape.sizes.get_mut(..rank) {
            Some(sizes) => sizes.copy_from_slice(dims),
            None => shape.rare.get_or_insert_default().sizes = dims.to_vec(),
        }
        if kinds.iter().any(|&kind| kind != DimKind::Static) {
            shape.rare.get_or_insert_default().kinds = kinds.to_vec();
        }
        shape.ensure_size()?;
        Ok(shape)
    }

    /// Errors: `shape.C2`.
    fn ensure_size(&self) -> Result<()> {
        // Zeros do not excuse overflow of the rest: strides are products of sizes, too.
        let mut sizes = self.dims().iter().map(|&dim| dim.max(1));
        let bytes = sizes.try_fold(self.element.size_bytes(), usize::checked_mul);
        crate::ensure!(
            bytes.is_some_and(|bytes| isize::try_from(bytes).is_ok()),
            "shape.C2",
            "{} takes more bytes than memory has addresses, counting sizes of 0 as 1",
            self.clone().without_layout()
        );
        Ok(())
    }

    /// A scalar.
    #[inline]
    pub fn scalar(element: ElementType) -> Self {
        ArrayShape { element, rank: 0, is_row_major: false, sizes: [0; INLINE], rare: None }
    }

    /// The same shape with this layout. Errors: `layout.C1` unless it lists every dimension once.
    pub fn with_layout(self, layout: Option<Layout>) -> Result<Self> {
        if let Some(layout) = &layout {
            let mut seen = [false; MAX_RANK];
            let ok = layout.minor_to_major.len() == self.rank()
                && layout
                    .minor_to_major
                    .iter()
                    .all(|&d| d < self.rank() && !std::mem::replace(&mut seen[d], true));
            crate::ensure!(
                ok,
                "layout.C1",
                "layout {layout} of {self}; it must list each of the {} dimensions once",
                self.rank()
            );
        }
        let mut shape = self.without_layout();
        match layout {
            Some(layout) if layout == *row_major(shape.rank()) => shape.is_row_major = true,
            Some(layout) => shape.rare.get_or_insert_default().layout = Some(layout),
            None => {}
        }
        Ok(shape)
    }

    /// The same shape with the row-major layout.
    pub(crate) fn in_rows(self) -> Self {
        ArrayShape { is_row_major: true, ..self.without_layout() }
    }

    /// The same dimensions (and layout) with another element type. Errors: `shape.C2`.
    pub fn with_element(&self, element: ElementType) -> Result<Self> {
        let shape = ArrayShape { element, ..self.clone() };
        shape.ensure_size()?;
        Ok(shape)
    }

    /// The same shape without a layout.
    #[inline]
    pub fn without_layout(mut self) -> Self {
        self.is_row_major = false;
        if let Some(rare) = &mut self.rare {
            rare.layout = None;
            if **rare == Rare::default() {
                self.rare = None;
            }
        }
        self
    }

    /// The element type.
    #[inline]
    pub fn element(&self) -> ElementType {
        self.element
    }

    /// The size of each dimension; of a bounded one, the bound.
    #[inline]
    pub fn dims(&self) -> &[usize] {
        match (self.sizes.get(..self.rank()), &self.rare) {
            (Some(sizes), _) => sizes,
            (None, Some(rare)) => &rare.sizes,
            (None, None) => &[],
        }
    }

    /// The kind of each dimension.
    #[inline]
    pub fn kinds(&self) -> &[DimKind] {
        match &self.rare {
            Some(rare) if !rare.kinds.is_empty() => &rare.kinds,
            _ => &STATIC[..self.rank()],
        }
    }

    /// Size (or bound) and kind of dimension `d`, which must be less than the rank.
    pub fn dim(&self, d: usize) -> (usize, DimKind) {
        (self.dims()[d], self.kinds()[d])
    }

    /// Size (or bound) and kind of each dimension.
    pub fn dims_and_kinds(&self) -> impl ExactSizeIterator<Item = (usize, DimKind)> + '_ {
        self.dims().iter().copied().zip(self.kinds().iter().copied())
    }

    /// An array with these sizes (or bounds) and kinds. Errors: as for [`ArrayShape::new`].
    pub fn from_dims(
        element: ElementType,
        dims: impl IntoIterator<Item = (usize, DimKind)>,
    ) -> Result<Self> {
        let (sizes, kinds): (SmallVec<[usize; 8]>, SmallVec<[DimKind; 8]>) =
            dims.into_iter().unzip();
        Self::checked(element, &sizes, &kinds)
    }

    /// The layout, if one is stated.
    pub fn layout(&self) -> Option<&Layout> {
        match &self.rare {
            _ if self.is_row_major => Some(row_major(self.rank())),
            Some(rare) => rare.layout.as_ref(),
            None => None,
        }
    }

    /// The number of dimensions.
    #[inline]
    pub fn rank(&self) -> usize {
        usize::from(self.rank)
    }

    /// Whether it has no dimensions.
    #[inline]
    pub fn is_scalar(&self) -> bool {
        self.rank == 0
    }

    /// Whether every dimension is static.
    #[inline]
    pub fn is_static(&self) -> bool {
        self.rare.as_ref().is_none_or(|rare| rare.kinds.is_empty())
    }

    /// Whether some dimension is unbounded.
    pub fn is_unbounded(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.kinds.contains(&DimKind::Unbounded))
    }

    /// The number of elements (at the bounds).
    #[inline]
    pub fn element_count(&self) -> usize {
        self.dims().iter().product()
    }

    /// The bytes that its elements take in memory.
    pub fn size_bytes(&self) -> usize {
        self.element_count() * self.element.size_bytes()
    }

    /// Whether both have the same element type, sizes and kinds; layouts do not matter.
    #[inline]
    pub fn same(&self, other: &ArrayShape) -> bool {
        self.element == other.element && self.same_dims(other)
    }

    /// Whether both have the same sizes and kinds.
    #[inline]
    pub fn same_dims(&self, other: &ArrayShape) -> bool {
        self.dims() == other.dims()
            && (self.is_static() && other.is_static() || self.kinds() == other.kinds())
    }
}

/// The row-major layout of a rank.
fn row_major(rank: usize) -> &'static Layout {
    &ROW_MAJOR[rank]
}

impl fmt::Debug for ArrayShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArrayShape")
            .field("element", &self.element)
            .field("dims", &self.dims())
            .field("kinds", &self.kinds())
            .field("layout", &self.layout())
            .finish()
    }
}

/// `f32[2,<=3]{1,0}`
impl fmt::Display for ArrayShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[", self.element)?;
        for (i, (dim, kind)) in self.dims().iter().zip(self.kinds()).enumerate() {
            f.write_str(if i > 0 { "," } else { "" })?;
            match kind {
                DimKind::Static => write!(f, "{dim}")?,
                DimKind::Bounded => write!(f, "<={dim}")?,
                DimKind::Unbounded => f.write_str("?")?,
            }
        }
        f.write_str("]")?;
        // XLA writes the layout of a scalar only if there is something to say.
        match self.layout() {
            Some(layout) if self.rank() > 0 || !layout.attributes.is_empty() => layout.fmt(f),
            _ => Ok(()),
        }
    }
}

/// The shape of any value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// An array.
    Array(ArrayShape),
    /// A tuple; may be nested, may be empty.
    Tuple(Vec<Shape>),
    /// Orders side effects.
    Token,
    /// Something a custom call makes for another.
    Opaque,
}

impl Shape {
    /// An array of static size. Errors: as for [`ArrayShape::new`].
    pub fn array(element: ElementType, dims: impl Into<Vec<usize>>) -> Result<Self> {
        ArrayShape::new(element, dims).map(Shape::Array)
    }

    /// A scalar.
    pub fn scalar(element: ElementType) -> Self {
        Shape::Array(ArrayShape::scalar(element))
    }

    /// The array shape, if it is one.
    #[inline]
    pub fn as_array(&self) -> Option<&ArrayShape> {
        match self {
            Shape::Array(array) => Some(array),
            _ => None,
        }
    }

    /// The elements, if it is a tuple.
    pub fn as_tuple(&self) -> Option<&[Shape]> {
        match self {
            Shape::Tuple(elements) => Some(elements),
            _ => None,
        }
    }

    /// Whether both are the same apart from layouts.
    pub fn same(&self, other: &Shape) -> bool {
        match (self, other) {
            (Shape::Array(a), Shape::Array(b)) => a.same(b),
            (Shape::Tuple(a), Shape::Tuple(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same(b))
            }
            (Shape::Token, Shape::Token) | (Shape::Opaque, Shape::Opaque) => true,
            _ => false,
        }
    }

    /// The arrays and tokens in it, in order, tuples opened up.
    pub fn leaves(&self) -> Vec<&Shape> {
        match self {
            Shape::Tuple(elements) => elements.iter().flat_map(Shape::leaves).collect(),
            leaf => vec![leaf],
        }
    }

    /// The bytes of all arrays in it.
    pub fn size_bytes(&self) -> usize {
        match self {
            Shape::Array(array) => array.size_bytes(),
            Shape::Tuple(elements) => {
                elements.iter().map(Shape::size_bytes).fold(0, usize::saturating_add)
            }
            Shape::Token | Shape::Opaque => 0,
        }
    }

    /// The same shape without layouts.
    #[must_use]
    pub fn without_layout(&self) -> Shape {
        match self {
            Shape::Array(array) => Shape::Array(array.clone().without_layout()),
            Shape::Tuple(elements) => {
                Shape::Tuple(elements.iter().map(Shape::without_layout).collect())
            }
            other => other.clone(),
        }
    }
}

impl From<ArrayShape> for Shape {
    fn from(array: ArrayShape) -> Self {
        Shape::Array(array)
    }
}

/// `(f32[2]{0}, /*index=5*/ …)`: XLA's own form, with an index comment before every fifth element.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shape::Array(array) => array.fmt(f),
            Shape::Token => f.write_str("token[]"),
            Shape::Opaque => f.write_str("opaque[]"),
            Shape::Tuple(elements) => {
                f.write_str("(")?;
                for (i, element) in elements.iter().enumerate() {
                    f.write_str(if i > 0 { ", " } else { "" })?;
                    if i > 0 && i % 5 == 0 {
                        write!(f, "/*index={i}*/")?;
                    }
                    element.fmt(f)?;
                }
                f.write_str(")")
            }
        }
    }
}

/// For each dimension, how many elements apart its neighbours are in row-major order.
pub fn strides(dims: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; dims.len()];
    for d in (1..dims.len()).rev() {
        strides[d - 1] = strides[d] * dims[d].max(1);
    }
    strides
}

/// All points of a box, in row-major order; none if a dimension is 0, one if there is no dimension.
///
/// ```
/// let mut points = helio_ir::types::IndexIter::new(&[2, 2]);
/// let mut seen = Vec::new();
/// while let Some(point) = points.next_point() {
///     seen.push(point.to_vec());
/// }
/// assert_eq!(seen, [[0, 0], [0, 1], [1, 0], [1, 1]]);
/// ```
pub struct IndexIter<'a> {
    dims: &'a [usize],
    point: Vec<usize>,
    state: Walk,
}

enum Walk {
    Before,
    Inside,
    After,
}

impl<'a> IndexIter<'a> {
    /// The points of the box with these sizes.
    pub fn new(dims: &'a [usize]) -> Self {
        let state = if dims.contains(&0) { Walk::After } else { Walk::Before };
        IndexIter { dims, point: vec![0; dims.len()], state }
    }

    /// The next point. (Not an `Iterator`, so that no point is allocated.)
    pub fn next_point(&mut self) -> Option<&[usize]> {
        match self.state {
            Walk::After => return None,
            Walk::Before => self.state = Walk::Inside,
            Walk::Inside => {
                let mut d = self.dims.len();
                loop {
                    if d == 0 {
                        self.state = Walk::After;
                        return None;
                    }
                    d -= 1;
                    self.point[d] += 1;
                    if self.point[d] < self.dims[d] {
                        break;
                    }
                    self.point[d] = 0;
                }
            }
        }
        Some(&self.point)
    }
}
