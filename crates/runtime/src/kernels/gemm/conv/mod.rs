//! Convolutions.
//!
//! A convolution is a product: rows are the positions of the result, columns its features, steps
//! the taps of the kernel times the features that are summed. Where every tap of every position
//! meets the input, that product reads the input as it lies. Otherwise a task copies its part of
//! the input into a `Region` that has the padding and the holes of dilation, so that there is
//! nothing left to decide in inner loops; the copy also brings features (or whatever varies
//! fastest) to where they are neighbours. A kernel with few features in each of many groups works
//! on vectors of groups instead (`grouped`, or `channel_windows`, which read the input where it lies), or of the outputs of
//! groups (`group_windows`).
//! An input with holes is taken apart first (`phases`).
//! With channels first it is the other way round: columns are positions, as which rows of the input are
//! copied (`patches`), and vectors of a kernel with many groups are positions, too (`planes`, or `windows` where these
//! have a few rows).
//! Windows of 3×3 with many features take products of sums instead, where these are fewer (`winograd`).
//! Kernels that do not change are packed once (`prepared`).
//! Results that zeros in the place of padding have spoiled are computed anew (`holes`).
//! Numbers of 8 and 16 bits are joined if there are instructions for several (`joined`, `words`).
//! (docs/design/convolutions.md has the measurements.)

mod channel_windows;
mod few_positions;
mod finish;
mod group_windows;
mod grouped;
mod holes;
mod joined;
mod patches;
mod phases;
mod pieces;
mod planes;
mod prepared;
mod region;
mod row_blocks;
mod tasks;
mod windows;
mod winograd;
mod words;

#[cfg(test)]
mod tests;

pub(super) use self::channel_windows::ChannelWindows;
pub(super) use self::few_positions::Kernel;
use self::finish::FinishRows;
pub(super) use self::group_windows::GroupWindows;
pub(super) use self::grouped::Channels;
use self::holes::Positions;
use self::phases::{From, Phase, PlacesFrom};
pub(super) use self::planes::Planes;
use self::region::Window;
pub(super) use self::windows::Windows;
use self::winograd::Layout;
pub(super) use self::winograd::{Places, TAPS, TileInput, TileResults, of_taps};
use super::arithmetic::{Arithmetic, Float};
use super::axis::Axis;
use super::engine::Shared;
use super::operand::Each;
use super::output::Destination;
use super::pack::Elements;
use super::simd::Loops;
use super::{Contraction, Dim, Epilogue, Finish, Out, RightOperand};
use crate::Threads;
use crate::bounds::Lookout;
use crate::kernels::bytes::Plain;
use crate::kernels::isa::Isa;
use crate::kernels::scratch;

/// A spatial dimension of a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spatial {
    /// Size of the input.
    pub input: usize,
    /// Size of the kernel.
    pub kernel: usize,
    /// Size of the result.
    pub output: usize,
    /// How many elements apart indices are in the input.
    pub lhs: usize,
    /// In the kernel.
    pub rhs: usize,
    /// In the result.
    pub out: usize,
    /// By how many positions of the dilated, padded input positions of the result are apart.
    pub stride: usize,
    /// Zeros before the input; if negative, elements left out.
    pub pad_low: i64,
    /// From an element of the input to the next, with zeros between.
    pub lhs_dilation: usize,
    /// From an element of the kernel to the next.
    pub rhs_dilation: usize,
    /// Whether the kernel is turned around.
    pub reversed: bool,
}

/// Products of a task that computes results one by one.
const LOOP_WORK: usize = 1 << 16;

/// Where there is only one position.
const POINT: Spatial = Spatial {
    input: 1,
    kernel: 1,
    output: 1,
    lhs: 0,
    rhs: 0,
    out: 0,
    stride: 1,
    pad_low: 0,
    lhs_dilation: 1,
    rhs_dilation: 1,
    reversed: false,
};

/// A convolution: for each index of `group`, `batch`, `outputs` and positions in the result, the
/// sum over `features` and the kernel's positions of input times kernel.
///
/// Groups of features are where `group` has strides in all three arrays and its stride in the input
/// is that of the features; groups of the batch, where it is that of the batch.
#[derive(Clone, Debug)]
pub struct Convolution {
    group: Dim,
    batch: Dim,
    features: Dim,
    outputs: Dim,
    spatial: Vec<Spatial>,
    /// All elements of the result.
    out: Axis,
    route: Route,
    /// If 2×2 positions at once take fewer products, what vectors hold then.
    winograd: Option<Layout>,
}

/// How a convolution is computed.
#[derive(Clone, Debug)]
enum Route {
    /// As a product of the input, from an offset on, with the kernel; or, if swapped, of the kernel
    /// with the input.
    Product { lhs: usize, product: Box<Contraction>, swapped: bool },
    /// In tasks with regions, with vectors of features.
    Tasks,
    /// As the kernel times patches of the input, with vectors of positions.
    Patches,
    /// In tasks with regions, with vectors of groups; or, for windows of a few rows and channels, with vectors of outputs
    /// of one group or several.
    Grouped,
    /// Plane by plane, with vectors of positions, if no element has to be converted; else as
    /// [`Route::Grouped`], or in tasks if there are no groups to fill vectors.
    Planes,
    /// Phase by phase.
    Phases(Vec<Phase>),
    /// By plain loops: for windows whose taps are far apart, of which a packed region would mostly be
    /// elements that no tap reads.
    Loops,
    /// There is nothing to sum: the result is zeros.
    Zeros,
}

impl Convolution {
    /// The convolution with these dimensions.
    ///
    /// # Panics
    /// If two elements of the result are one in memory, or dimensions reach further than memory does.
    pub fn new(group: Dim, batch: Dim, features: Dim, outputs: Dim, spatial: &[Spatial]) -> Self {
        let mut spatial = spatial.to_vec();
        // Dimensions of one position that one tap meets say nothing.
        spatial.retain(|dim| {
            let sizes = [dim.input, dim.kernel, dim.output];
            sizes != [1; 3] || dim.pad_low != 0
        });
        if spatial.is_empty() {
            spatial.push(POINT);
        }
        // Offsets in the operands do not overflow if these axes are possible at all.
        let input = [group, batch, features].map(|dim| (dim.size, dim.lhs));
        Axis::new(input.into_iter().chain(spatial.iter().map(|dim| (dim.input, dim.lhs))));
        let kernel = [group, features, outputs].map(|dim| (dim.size, dim.rhs));
        Axis::new(kernel.into_iter().chain(spatial.iter().map(|dim| (dim.kernel, dim.rhs))));
        let out = [group, batch, outputs].map(|dim| (dim.size, dim.out));
        let out = Axis::new(out.into_iter().chain(spatial.iter().map(|dim| (dim.output, dim.out))));
        assert!(out.len() == 0 || out.keeps_apart(1), "the elements of the result are apart");
        let route = Route::Loops;
        let winograd = None;
        let mut conv =
            Convolution { group, batch, features, outputs, spatial, out, route, winograd };
        conv.route = conv.choose_route();
        conv.winograd = conv.winograd_layout().filter(|&layout| conv.pays_for_sums(layout));
        conv
    }

    /// The same, but each product is computed: none of sums of elements.
    #[must_use]
    pub fn without_winograd(self) -> Self {
        Convolution { winograd: None, ..self }
    }

    fn choose_route(&self) -> Route {
        if self.is_empty() {
            return Route::Zeros;
        }
        if let Some(phases) = self.phases() {
            return Route::Phases(phases);
        }
        if self.vectors_of_groups() {
            return match self.regions_are_small() {
                true if self.has_planes() => Route::Planes,
                true => Route::Grouped,
                false => Route::Loops,
            };
        }
        if self.group_windows().is_some() && self.regions_are_small() {
            return Route::Grouped;
        }
        if self.has_few_channels() && self.regions_are_small() && self.has_planes() {
            return Route::Planes;
        }
        let windows = self.spatial.iter().map(Window);
        let offset = windows.zip(&self.spatial).try_fold(0, |offset, (window, dim)| {
            Some(offset + window.whole()?.checked_mul(dim.lhs)?)
        });
        if let (Some(offset), false) = (offset, self.is_reversed())
            && let Some(route) = self.as_product(offset)
            && !(self.has_patches() && self.are_better_packed(&route))
        {
            return route;
        }
        if self.has_patches() {
            return Route::Patches;
        }
        if self.regions_are_small() { Route::Tasks } else { Route::Loops }
    }

    /// As a product, if the result has neighbours for columns.
    fn as_product(&self, offset: usize) -> Option<Route> {
        let positions = self.spatial.iter().map(|dim| {
            let (lhs, out) = (dim.lhs.checked_mul(dim.stride)?, dim.out);
            Some(Dim { size: dim.output, lhs, rhs: 0, out })
        });
        let positions: Vec<Dim> = positions.collect::<Option<_>>()?;
        let taps = self.spatial.iter().map(|dim| {
            let lhs = dim.lhs.checked_mul(dim.rhs_dilation)?;
            Some(Dim { size: dim.kernel, lhs, rhs: dim.rhs, out: 0 })
        });
        let mut steps: Vec<Dim> = taps.collect::<Option<_>>()?;
        steps.push(self.features);
        steps.sort_by_key(|dim| std::cmp::Reverse(dim.lhs));
        let rows = [&[self.batch], &positions[..]].concat();
        let axis = |dims: &[Dim]| Axis::new(dims.iter().map(|dim| (dim.size, dim.out)));
        if axis(&[self.outputs]).stride() == Some(1) {
            let product = Contraction::new(&[self.group], &rows, &[self.outputs], &steps);
            let product = Box::new(product);
            return Some(Route::Product { lhs: offset, product, swapped: false });
        }
        if axis(&positions).stride() == Some(1) {
            let swap = |dims: &[Dim]| -> Vec<Dim> {
                dims.iter().map(|dim| Dim { lhs: dim.rhs, rhs: dim.lhs, ..*dim }).collect()
            };
            let batch = swap(&[self.group, self.batch]);
            let product =
                Contraction::new(&batch, &swap(&[self.outputs]), &swap(&positions), &swap(&steps));
            let product = Box::new(product);
            return Some(Route::Product { lhs: offset, product, swapped: true });
        }
        None
    }

    /// Whether groups fill vectors better than the few features of each do.
    fn vectors_of_groups(&self) -> bool {
        let (features, outputs) = (self.features.size, self.outputs.size);
        self.group.size >= 8 && (outputs <= 2 || outputs <= 4 && features <= 4)
    }

    /// Whether a window meets several positions and few features, for few outputs, as filters of images and
    /// signals do: tiles would be a row or two, and their operand is copied once for each tap.
    fn has_few_channels(&self) -> bool {
        let taps: usize = self.spatial.iter().map(|dim| dim.kernel).product();
        self.outputs.size <= 2 && self.features.size <= 4 && taps > 1
    }

    /// The convolution of `f32`.
    ///
    /// # Panics
    /// If an operand or the result is longer than its slice.
    pub fn f32(&self, lhs: &[f32], rhs: &[f32], out: &mut [f32], threads: Threads<'_>) {
        self.float(Isa::best(), lhs, rhs, out, threads);
    }

    /// The convolution of `f64`.
    ///
    /// # Panics
    /// If an operand or the result is longer than its slice.
    pub fn f64(&self, lhs: &[f64], rhs: &[f64], out: &mut [f64], threads: Threads<'_>) {
        self.float(Isa::best(), lhs, rhs, out, threads);
    }

    fn float<T: Float>(&self, isa: Isa, lhs: &[T], rhs: &[T], out: &mut [T], threads: Threads<'_>) {
        let out = Out { len: out.len(), places: &Shared(out.as_mut_ptr()) };
        let operands = (&lhs as _, Kernel::Elements(&rhs));
        // SAFETY: `out` is borrowed mutably.
        unsafe { self.run((T::instructions(isa), isa), operands, out, None, threads) };
    }

    /// Computes the convolution by loops and tiles, of a kernel that lies as it is or is packed as
    /// [`Convolution::pack`] packs it. Returns whether all rows have been given to `finish`, which must be
    /// for a [route that does that](Convolution::route_finishes_rows).
    ///
    /// # Safety
    /// Nothing else accesses the places of `out`.
    pub(super) unsafe fn run<W: Arithmetic>(
        &self,
        (loops, isa): (&dyn Loops<W, W>, Isa),
        (lhs, kernel): (&dyn Elements<W>, Kernel<'_, W>),
        out: Out<'_, W>,
        finish: Option<Finish<'_, u8>>,
        threads: Threads<'_>,
    ) -> bool {
        if self.out.len() == 0 {
            return false;
        }
        assert!(self.out.last() < out.len, "the result lies in its memory");
        let finish_rows = finish.map(|finish| FinishRows { places: out.places, finish });
        let mut is_finished = finish.is_some();
        match &self.route {
            Route::Product { lhs: start, product, swapped: false } => {
                let lhs = Each { elements: lhs, start: *start };
                let epilogue = Epilogue { part: None, rows: finish };
                let elements;
                let rhs = match kernel {
                    Kernel::Packed(panels) => RightOperand::Panels(panels),
                    Kernel::Elements(rhs) => {
                        elements = Each::all(rhs);
                        RightOperand::Operand(&elements)
                    }
                };
                // SAFETY: the caller's promise.
                unsafe { product.run_with((loops, isa), (&lhs, rhs), out, epilogue, threads) };
            }
            Route::Product { lhs: start, product, swapped: true } => {
                let (lhs, rhs) = (Each { elements: lhs, start: *start }, Each::all(kernel.plain()));
                // SAFETY: the caller's promise.
                unsafe { product.run(loops, isa, [&rhs, &lhs], out, Epilogue::default(), threads) };
            }
            Route::Tasks => self.turn(kernel, |kernel| {
                // SAFETY: the caller's promise; the result lies in its memory, as asserted above,
                // and none of its elements is another, as `new` did.
                unsafe {
                    let of = (lhs, kernel, None);
                    self.run_tasks((loops, isa), of, out.places, finish_rows, threads);
                }
            }),
            Route::Patches => self.turn(kernel, |kernel| {
                // SAFETY: the caller's promise; the result lies in its memory and none of its elements
                // is another.
                unsafe { self.run_patches((loops, isa), lhs, kernel, out.places, threads) };
            }),
            Route::Planes => self.turn(kernel, |kernel| {
                match (lhs.words(), kernel.plain().words(), out.places.sums()) {
                    // SAFETY: the caller's promise; the result lies in its memory and none of its
                    // elements is another.
                    (Some(lhs), Some(rhs), Some(sums)) => unsafe {
                        match self.windows().zip(loops.windows()) {
                            Some((windows, loops)) => {
                                self.run_windows(windows, loops, [lhs, rhs], sums, threads);
                            }
                            None => self.run_planes(loops, [lhs, rhs], sums, threads),
                        }
                    },
                    // SAFETY: the caller's promise; the result lies in its memory and none of its
                    // elements is another.
                    _ if self.vectors_of_groups() => unsafe {
                        let of = (lhs, kernel);
                        self.run_grouped((loops, isa), of, out.places, None, threads);
                    },
                    // SAFETY: the caller's promise; the result lies in its memory and none of its
                    // elements is another.
                    _ => unsafe {
                        let of = (lhs, kernel, None);
                        self.run_tasks((loops, isa), of, out.places, None, threads);
                    },
                }
            }),
            // (Of numbers that are converted, or have no such loops, a group is a product.)
            Route::Grouped if self.are_groups_products(loops, lhs, kernel, out.places) => {
                is_finished = false;
                self.turn(kernel, |kernel| {
                    // SAFETY: the caller's promise; the result lies in its memory and none of its elements is
                    // another.
                    unsafe {
                        let of = (lhs, kernel, None);
                        self.run_tasks((loops, isa), of, out.places, None, threads);
                    }
                });
            }
            Route::Grouped => self.turn(kernel, |kernel| {
                // SAFETY: the caller's promise; the result lies in its memory and none of its elements
                // is another.
                unsafe {
                    let of = (lhs, kernel);
                    is_finished =
                        self.run_grouped((loops, isa), of, out.places, finish_rows, threads);
                }
            }),
            Route::Phases(phases) => {
                let mut packed_before = 0;
                for Phase { conv, rhs: rhs_start, out: start } in phases {
                    let places = PlacesFrom { places: out.places, start: *start };
                    let out = Out { len: out.len - start, places: &places };
                    let rhs;
                    let kernel = match kernel {
                        Kernel::Packed(packed) => {
                            let packed = &packed[packed_before..][..conv.packed_len(isa)];
                            packed_before += packed.len();
                            Kernel::Packed(packed)
                        }
                        Kernel::Elements(elements) => {
                            rhs = From { elements, start: *rhs_start };
                            Kernel::Elements(&rhs)
                        }
                    };
                    // SAFETY: the caller's promise: the places of a phase are some of those of the whole.
                    unsafe { conv.run((loops, isa), (lhs, kernel), out, None, threads) };
                }
            }
            // SAFETY: the caller's promise; the result lies in its memory, as asserted.
            Route::Loops => unsafe {
                let everywhere = self.everywhere();
                self.run_loops(isa, lhs, kernel.plain(), out.places, &everywhere, threads);
            },
            // SAFETY: the caller's promise; the result lies in its memory, as asserted.
            Route::Zeros => unsafe { self.write_zeros(isa, out.places) },
        }
        is_finished
    }

    /// Whether groups are computed as products although vectors of their outputs would be faster: there are none of these
    /// numbers, and the kernel is not packed for them.
    fn are_groups_products<W: Arithmetic>(
        &self,
        loops: &dyn Loops<W, W>,
        lhs: &dyn Elements<W>,
        kernel: Kernel<'_, W>,
        out: &dyn Destination<W>,
    ) -> bool {
        let has_loops = loops.windows().is_some() && lhs.words().is_some() && out.sums().is_some();
        !has_loops && !self.vectors_of_groups() && matches!(kernel, Kernel::Elements(_))
    }

    /// Writes a result of zeros.
    ///
    /// # Safety
    /// As for [`Convolution::run_tasks`].
    unsafe fn write_zeros<A: Plain + Default>(&self, isa: Isa, out: &dyn Destination<A>) {
        let dims = [self.group, self.batch, self.outputs].map(|dim| (dim.size, dim.out));
        let spatial = self.spatial.iter().map(|dim| (dim.output, dim.out));
        let mut dims: Vec<_> = dims.into_iter().chain(spatial).collect();
        dims.sort_by_key(|&(_, stride)| std::cmp::Reverse(stride));
        let (places, zeros) = (Axis::new(dims), [A::default(); 256]);
        let mut i = 0;
        while i < places.len() {
            let (start, count, stride) = places.run(i, zeros.len().min(places.len() - i));
            // SAFETY: the caller's promise.
            unsafe { out.write(isa, start, stride, &zeros[..count]) };
            i += count;
        }
    }

    /// Calls `body` with the kernel turned around in the dimensions that are reversed. (One that is packed is so already.)
    fn turn<W: Arithmetic>(&self, kernel: Kernel<'_, W>, body: impl FnOnce(Kernel<'_, W>)) {
        let rhs = match kernel {
            Kernel::Elements(rhs) if self.is_reversed() => rhs,
            _ => return body(kernel),
        };
        let taps = Axis::new(self.spatial.iter().map(|dim| (dim.kernel, dim.rhs)));
        let mut rest = [self.group, self.features, self.outputs];
        rest.sort_by_key(|dim| std::cmp::Reverse(dim.rhs));
        let rest = Axis::new(rest.map(|dim| (dim.size, dim.rhs)));
        scratch::with(taps.last() + rest.last() + 1, |turned: &mut [W]| {
            for tap in 0..taps.len() {
                let (from, to) = (taps.offset(tap), self.place_of_tap(tap));
                let mut i = 0;
                while i < rest.len() {
                    let (start, count, stride) = rest.run(i, rest.len() - i);
                    let offsets = (0..count).map(|j| start + j * stride);
                    match rhs.words() {
                        Some(words) => {
                            offsets.for_each(|at| turned[to + at] = words[from + at]);
                        }
                        None => offsets.for_each(|at| turned[to + at] = rhs.word(from + at)),
                    }
                    i += count;
                }
            }
            body(Kernel::Elements(&&*turned));
        });
    }

    /// Whether the kernel is turned around in a dimension.
    pub(super) fn is_reversed(&self) -> bool {
        self.spatial.iter().any(|dim| dim.reversed && dim.kernel > 1)
    }

    /// Where a tap of the kernel is in memory, where dimensions may be turned around.
    fn place_of_tap(&self, tap: usize) -> usize {
        let (mut rest, mut place) = (tap, 0);
        for dim in self.spatial.iter().rev() {
            let k = rest % dim.kernel;
            place += (if dim.reversed { dim.kernel - 1 - k } else { k }) * dim.rhs;
            rest /= dim.kernel;
        }
        place
    }

    /// Computes the convolution at some positions, element by element.
    ///
    /// # Safety
    /// As for [`Convolution::run_tasks`].
    unsafe fn run_loops<W: Arithmetic>(
        &self,
        isa: Isa,
        lhs: &dyn Elements<W>,
        rhs: &dyn Elements<W>,
        out: &dyn Destination<W>,
        positions: &Positions,
        threads: Threads<'_>,
    ) {
        let rows = [self.group, self.batch, self.outputs];
        let rows_of =
            |stride: fn(&Dim) -> usize| Axis::new(rows.iter().map(|d| (d.size, stride(d))));
        let [lhs_rows, rhs_rows, out_rows] =
            [rows_of(|dim| dim.lhs), rows_of(|dim| dim.rhs), rows_of(|dim| dim.out)];
        let counts = || positions.iter().map(|range| range.len());
        let kernels = || self.spatial.iter().map(|dim| dim.kernel);
        let work = counts().chain(kernels()).chain([self.features.size]);
        let work = work.fold(1_usize, usize::saturating_mul);
        threads.for_ranges(lhs_rows.len(), LOOP_WORK / work.max(1), &|rows| {
            let mut index = vec![0; self.spatial.len()];
            let mut met = Vec::new();
            let mut lookout = Lookout::default();
            for _ in 0..counts().product() {
                let at = index.iter().zip(positions).map(|(&i, range)| range.start + i);
                let position: Vec<usize> = at.collect();
                let place: usize =
                    self.spatial.iter().zip(&position).map(|(dim, &at)| at * dim.out).sum();
                met.clear();
                let mut tap = vec![0; self.spatial.len()];
                for _ in 0..kernels().product() {
                    if !lookout.goes_on(16) {
                        return;
                    }
                    met.extend(self.meet(&position, &tap));
                    advance(&mut tap, kernels());
                }
                for row in rows.clone() {
                    if !lookout.goes_on(met.len().saturating_mul(self.features.size)) {
                        return;
                    }
                    let (lhs_row, rhs_row) = (lhs_rows.offset(row), rhs_rows.offset(row));
                    let mut sum = W::default();
                    for &(input, kernel) in &met {
                        for feature in 0..self.features.size {
                            let a = lhs.word(lhs_row + input + feature * self.features.lhs);
                            let b = rhs.word(rhs_row + kernel + feature * self.features.rhs);
                            sum = sum.mul_add(a, b);
                        }
                    }
                    // SAFETY: the caller's promise; each task has other rows.
                    unsafe { out.write(isa, place + out_rows.offset(row), 1, &[sum]) };
                }
                advance(&mut index, counts());
            }
        });
    }

    /// The offsets in input and kernel of a tap at a position, if it meets the input.
    fn meet(&self, position: &[usize], tap: &[usize]) -> Option<(usize, usize)> {
        let places = self.spatial.iter().zip(position).zip(tap);
        places.into_iter().try_fold((0, 0), |(input, kernel), ((dim, &at), &k)| {
            let window = Window(dim);
            let place = window.start(at) + k as i128 * dim.rhs_dilation as i128;
            let k = if dim.reversed { dim.kernel - 1 - k } else { k };
            Some((input + window.element(place)? * dim.lhs, kernel + k * dim.rhs))
        })
    }
}

/// Moves to the next index, the last dimension fastest.
fn advance(index: &mut [usize], sizes: impl DoubleEndedIterator<Item = usize> + ExactSizeIterator) {
    for (at, size) in index.iter_mut().zip(sizes).rev() {
        *at += 1;
        if *at < size {
            return;
        }
        *at = 0;
    }
}
