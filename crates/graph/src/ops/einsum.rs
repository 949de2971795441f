//! Einstein's sums: products of tensors whose axes have letters.

use helio::{Error, Result};

use crate::ops::binary::{ensure_type, meet_all};
use crate::ops::joining::join;
use crate::ops::product::{Labeled, contract};
use crate::{Dim, Tensor};

/// Products of tensors by the letters of their axes: equal letters are equal indices, and those that
/// the result lacks are summed over.
///
/// `"ij,jk->ik"` is the product of matrices, `"ii->i"` a diagonal, `"...ij->...ji"` a transpose of
/// the last two axes; `...` stands for any axes, which are broadcast. Without `->`, the result has
/// the axes of `...`, then the letters that occur once, in alphabetical order. The operands are
/// promoted and, if they are more than two, combined from left to right.
///
/// Errors: `einsum.C1` for a text that cannot be read, `einsum.C2` for another number of tensors or
/// axes, `einsum.C3` unless dimensions of one letter are equal, or the size 1; `concat.C1`,
/// `promotion.C1`, `elementwise.C1` for bools. Source: NumPy's `einsum`.
///
/// ```
/// # use helio_graph::{ElementType, Graph, einsum};
/// # let g = Graph::new("scores");
/// let q = g.input("q", ElementType::F32, ("batch", "tokens", 4, 16));
/// let k = g.input("k", ElementType::F32, ("batch", "tokens", 4, 16));
/// let scores = einsum("bqhd,bkhd->bhqk", &[q, k]);
/// assert_eq!(scores.shape()?.to_string(), "[batch, 4, tokens, tokens]");
/// # Ok::<(), helio_graph::Error>(())
/// ```
#[track_caller]
pub fn einsum(formula: &str, tensors: &[impl AsRef<Tensor>]) -> Tensor {
    join("einsum", tensors, |_, tensors| {
        let (tensors, dtype) = meet_all(tensors)?;
        ensure_type(dtype, !dtype.is_pred(), "numbers")?;
        let Formula { operands, result } = Formula::parse(formula)?;
        if operands.len() != tensors.len() {
            return Err(Error::rule(
                "einsum.C2",
                format!(
                    "{formula:?} has {} operands, found {} tensors",
                    operands.len(),
                    tensors.len()
                ),
            ));
        }
        let mut labeled = Vec::with_capacity(tensors.len());
        let mut ellipsis = 0;
        for (tensor, axes) in tensors.into_iter().zip(&operands) {
            let rank = tensor.shape()?.rank();
            let (labels, more) = axes.labels(rank).ok_or_else(|| {
                let written = axes.letters.iter().map(|&(letter, _)| letter).collect::<String>();
                let detail = format!(
                    "{written:?} of {formula:?} is for {}{} axes, the tensor has {rank}",
                    axes.letters.len(),
                    if axes.ellipsis.is_some() { " or more" } else { "" }
                );
                Error::rule("einsum.C2", detail)
            })?;
            ellipsis = ellipsis.max(more);
            labeled.push(without_repeats(tensor, labels)?);
        }
        ensure_equal(&labeled)?;
        let result = match result {
            Some(result) => {
                let unknown = result.letters.iter().find(|(letter, _)| {
                    !operands.iter().any(|o| o.letters.iter().any(|(l, _)| l == letter))
                });
                if let Some((letter, at)) = unknown {
                    return wrong(formula, *at, &format!("no operand has {letter:?}"));
                }
                if result.ellipsis.is_none() && ellipsis > 0 {
                    return wrong(formula, formula.len(), "`...` must be in the result, too");
                }
                let more = if result.ellipsis.is_some() { ellipsis } else { 0 };
                result.labels(result.letters.len() + more).map_or(Vec::new(), |(labels, _)| labels)
            }
            None => implied(&operands, ellipsis),
        };
        contract(labeled.into_iter().map(|(x, l)| Labeled::new(x, l)).collect(), &result)
    })
}

/// What a formula says of an operand or the result.
struct Axes {
    /// Each letter, and its place in the text.
    letters: Vec<(char, usize)>,
    /// How many letters stand before `...`, if that is there.
    ellipsis: Option<usize>,
}

struct Formula {
    operands: Vec<Axes>,
    result: Option<Axes>,
}

fn wrong<T>(formula: &str, at: usize, why: &str) -> Result<T> {
    let detail = format!("{formula:?}, at byte {at}: {why}");
    Err(Error::rule("einsum.C1", detail))
}

impl Formula {
    /// Errors: `einsum.C1`.
    fn parse(formula: &str) -> Result<Self> {
        let (left, right) = match formula.split_once("->") {
            Some((left, right)) => (left, Some(right)),
            None => (formula, None),
        };
        let mut operands = Vec::new();
        let mut at = 0;
        for operand in left.split(',') {
            operands.push(Axes::parse(formula, operand, at)?);
            at += operand.len() + 1;
        }
        let result = right.map(|right| Axes::parse(formula, right, left.len() + 2)).transpose()?;
        if let Some(Axes { letters, .. }) = &result {
            let mut seen = Vec::new();
            for (letter, at) in letters {
                if seen.contains(letter) {
                    return wrong(formula, *at, &format!("the result has {letter:?} twice"));
                }
                seen.push(*letter);
            }
        }
        Ok(Formula { operands, result })
    }
}

impl Axes {
    /// `start` is where the text stands in the formula. Errors: `einsum.C1`.
    fn parse(formula: &str, text: &str, start: usize) -> Result<Self> {
        let mut axes = Axes { letters: Vec::new(), ellipsis: None };
        let mut chars = text.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            let at = start + at;
            match c {
                'a'..='z' | 'A'..='Z' => axes.letters.push((c, at)),
                ' ' => {}
                '.' if formula[at..].starts_with("...") && axes.ellipsis.is_none() => {
                    axes.ellipsis = Some(axes.letters.len());
                    chars.nth(1);
                }
                '.' => return wrong(formula, at, "`...`, once for an operand, was expected"),
                _ => {
                    let why = format!("{c:?}, where a letter, `...`, `,` or `->` was expected");
                    return wrong(formula, at, &why);
                }
            }
        }
        Ok(axes)
    }

    /// A label for each axis of a tensor of this rank, and how many of them `...` stands for, whose
    /// labels count from its last axis. `None` if there are too few axes, or too many.
    fn labels(&self, rank: usize) -> Option<(Vec<usize>, usize)> {
        let more = rank.checked_sub(self.letters.len())?;
        let mut labels: Vec<usize> =
            self.letters.iter().map(|&(letter, _)| letter as usize).collect();
        match self.ellipsis {
            Some(at) => drop(labels.splice(at..at, (0..more).rev().map(hidden))),
            None if more > 0 => return None,
            None => {}
        }
        Some((labels, more))
    }
}

/// The label of an axis of `...`, counted from its last; letters are below.
fn hidden(axis: usize) -> usize {
    256 + axis
}

/// The labels of a result that is not written.
fn implied(operands: &[Axes], ellipsis: usize) -> Vec<usize> {
    let all = || operands.iter().flat_map(|axes| &axes.letters).map(|&(letter, _)| letter);
    let mut once: Vec<char> =
        all().filter(|letter| all().filter(|other| other == letter).count() == 1).collect();
    once.sort_unstable();
    (0..ellipsis).rev().map(hidden).chain(once.into_iter().map(|letter| letter as usize)).collect()
}

/// A tensor of which a label that occurs twice is a diagonal. Errors: `einsum.C3`.
fn without_repeats(mut tensor: Tensor, mut labels: Vec<usize>) -> Result<(Tensor, Vec<usize>)> {
    let twice = |labels: &[usize]| {
        let pairs = (0..labels.len()).flat_map(|i| (i + 1..labels.len()).map(move |j| (i, j)));
        pairs.into_iter().find(|&(i, j)| labels[i] == labels[j])
    };
    while let Some((i, j)) = twice(&labels) {
        let shape = tensor.shape()?;
        if shape[i] != shape[j] {
            return Err(differ(labels[i], &shape[i], &shape[j]));
        }
        tensor = tensor.move_axis(i, -1).move_axis(j - 1, -1).diagonal(0);
        let label = labels[i];
        labels.remove(j);
        labels.remove(i);
        labels.push(label);
    }
    Ok((tensor, labels))
}

/// Errors: `einsum.C3` unless dimensions of one label are equal, or 1.
fn ensure_equal(operands: &[(Tensor, Vec<usize>)]) -> Result<()> {
    let mut known: Vec<(usize, Dim)> = Vec::new();
    for (tensor, labels) in operands {
        let shape = tensor.shape()?;
        for (&label, dim) in labels.iter().zip(shape.iter()).filter(|(_, dim)| !dim.is_one()) {
            match known.iter().find(|(other, _)| *other == label) {
                Some((_, other)) if other != dim => return Err(differ(label, other, dim)),
                Some(_) => {}
                None => known.push((label, dim.clone())),
            }
        }
    }
    Ok(())
}

fn differ(label: usize, a: &Dim, b: &Dim) -> Error {
    let what = match u8::try_from(label) {
        Ok(letter) => format!("{:?}", char::from(letter)),
        Err(_) => "an axis of `...`".to_owned(),
    };
    let help = match (a.size(), b.size()) {
        (Some(_), Some(_)) => "only the size 1 stretches; give the axes different letters",
        _ => "if they are equal whenever the program is called, say so by a rebind",
    };
    let detail = format!("{what} stands for dimensions {a} and {b}\n  help: {help}");
    Error::rule("einsum.C3", detail)
}
