//! Codecs of most fields: how the fields of HLO's operations are attributes of StableHLO's.
//!
//! A codec has `read`, from the attributes and shapes of a StableHLO operation, and `write`, its
//! inverse. Attributes that have their default are not written, where StableHLO's have one.

use helio_ir::ops::{Direction, FftKind, Order, PadDim, Precision, RngAlgorithm, TransposeA};
use helio_ir::{ArrayShape, CompId, ElementType, Error, Result};

use super::{Reading, Writing};
use crate::lower::Attrs;
use crate::mlir::{Attribute, Dense, FloatType, TensorType, Type};

pub(super) fn put(to: &mut Writing<'_>, name: &str, attribute: Attribute) {
    to.attributes.push((name.to_owned(), attribute));
}

/// Sizes or places as an attribute holds them. Errors: they do not fit 64 bits.
pub(super) fn integers(values: &[usize]) -> Result<Attribute> {
    let each = values.iter().map(|&value| integer(value));
    each.collect::<Result<_>>().map(Attribute::Integers)
}

pub(super) fn integer(value: usize) -> Result<i64> {
    i64::try_from(value).map_err(|_| Error::invalid(format!("{value} does not fit 64 bits")))
}

/// A tensor of 64-bit integers with these dimensions.
pub(super) fn matrix(dims: [usize; 2], values: impl IntoIterator<Item = i64>) -> Attribute {
    Attribute::Dense(Dense {
        ty: Type::Tensor(TensorType::new(dims.map(|d| d as u64), Type::signless(64))),
        bytes: values.into_iter().flat_map(i64::to_le_bytes).collect(),
        is_splat: false,
    })
}

/// A list of numbers that are not negative.
pub(super) struct Sizes(pub &'static str);

impl Sizes {
    pub(super) fn read(&self, from: &Reading<'_, '_>) -> Result<Vec<usize>> {
        from.attrs.needed_sizes(self.0)
    }

    pub(super) fn write(&self, values: &[usize], to: &mut Writing<'_>) -> Result<()> {
        put(to, self.0, integers(values)?);
        Ok(())
    }
}

/// A number that is not negative.
pub(super) struct Size(pub &'static str);

impl Size {
    pub(super) fn read(&self, from: &Reading<'_, '_>) -> Result<usize> {
        from.attrs.size(self.0)
    }

    pub(super) fn write(&self, &value: &usize, to: &mut Writing<'_>) -> Result<()> {
        put(to, self.0, Attribute::i64(integer(value)?));
        Ok(())
    }
}

/// The same, 1 if it is absent.
pub(super) struct SizeOrOne(pub &'static str);

impl SizeOrOne {
    pub(super) fn read(&self, from: &Reading<'_, '_>) -> Result<usize> {
        from.attrs.size_or(self.0, 1)
    }

    pub(super) fn write(&self, value: &usize, to: &mut Writing<'_>) -> Result<()> {
        Size(self.0).write(value, to)
    }
}

/// A dimension of the first operand; a negative one counts from its end, and is the last if absent.
pub(super) struct SizeFromEnd(pub &'static str);

impl SizeFromEnd {
    pub(super) fn read(&self, from: &Reading<'_, '_>) -> Result<usize> {
        let rank = from.operands.first().and_then(|shape| shape.as_array()).map_or(0, |a| a.rank());
        let value = from.attrs.integer(self.0)?.unwrap_or(-1);
        let dimension = if value < 0 { value.saturating_add(rank as i64) } else { value };
        usize::try_from(dimension).map_err(|_| Error::invalid(format!("dimension {value}")))
    }

    pub(super) fn write(&self, value: &usize, to: &mut Writing<'_>) -> Result<()> {
        Size(self.0).write(value, to)
    }
}

/// A number of bits.
pub(super) struct Bits(pub &'static str);

impl Bits {
    pub(super) fn read(&self, from: &Reading<'_, '_>) -> Result<u32> {
        Ok(from.attrs.size(self.0)?.min(u32::MAX as usize) as u32)
    }

    pub(super) fn write(&self, &value: &u32, to: &mut Writing<'_>) -> Result<()> {
        let ty = Type::signless(32);
        put(to, self.0, Attribute::Integer { value: value.into(), ty });
        Ok(())
    }
}

/// A truth value.
pub(super) struct Flag(pub &'static str);

impl Flag {
    pub(super) fn read(&self, from: &Reading<'_, '_>) -> Result<bool> {
        from.attrs.flag(self.0)
    }

    pub(super) fn write(&self, &value: &bool, to: &mut Writing<'_>) -> Result<()> {
        put(to, self.0, Attribute::Bool(value));
        Ok(())
    }
}

/// The same, false if it is absent.
pub(super) struct OptionalFlag(pub &'static str);

impl OptionalFlag {
    pub(super) fn read(&self, from: &Reading<'_, '_>) -> Result<bool> {
        from.attrs.flag(self.0)
    }

    pub(super) fn write(&self, value: &bool, to: &mut Writing<'_>) -> Result<()> {
        if *value { Flag(self.0).write(value, to) } else { Ok(()) }
    }
}

/// A 32-bit float.
pub(super) struct Real(pub &'static str);

impl Real {
    pub(super) fn read(&self, from: &Reading<'_, '_>) -> Result<f32> {
        Ok(from.attrs.float(self.0)?.unwrap_or_default() as f32)
    }

    pub(super) fn write(&self, &value: &f32, to: &mut Writing<'_>) -> Result<()> {
        let ty = Type::Float(FloatType::F32);
        put(to, self.0, Attribute::Float { value: value.into(), ty });
        Ok(())
    }
}

/// A word of an enumeration, which is the same in HLO.
pub(super) trait Words: Sized {
    fn of(word: &str) -> Result<Self>;
    fn text(&self) -> String;
}

macro_rules! words_of {
    ($($name:ident),*) => {
        $(impl Words for $name {
            fn of(word: &str) -> Result<Self> {
                $name::from_word(word)
            }

            fn text(&self) -> String {
                self.word().to_owned()
            }
        })*
    };
}

words_of!(Direction, TransposeA, FftKind);

/// An attribute that is such a word: its name, and that of the enumeration.
pub(super) struct Word(pub &'static str, pub &'static str);

impl Word {
    pub(super) fn read<T: Words>(&self, from: &Reading<'_, '_>) -> Result<T> {
        T::of(from.attrs.needed_word(self.0)?)
    }

    pub(super) fn write<T: Words>(&self, value: &T, to: &mut Writing<'_>) -> Result<()> {
        put(to, self.0, Attribute::word("stablehlo", self.1, &value.text()));
        Ok(())
    }
}

/// The generator: `PHILOX` for HLO's `rng_philox`.
pub(super) struct RngWord(pub &'static str);

impl RngWord {
    pub(super) fn read(&self, from: &Reading<'_, '_>) -> Result<RngAlgorithm> {
        let word = from.attrs.needed_word(self.0)?.to_ascii_lowercase();
        RngAlgorithm::from_word(&format!("rng_{word}"))
    }

    pub(super) fn write(&self, value: &RngAlgorithm, to: &mut Writing<'_>) -> Result<()> {
        let word = value.word().trim_start_matches("rng_").to_ascii_uppercase();
        put(to, self.0, Attribute::word("stablehlo", self.0, &word));
        Ok(())
    }
}

/// The order of a comparison, of which StableHLO names the type of the operands, too.
pub(super) struct CompareOrder;

impl CompareOrder {
    pub(super) fn read(&self, from: &Reading<'_, '_>) -> Result<Order> {
        let is_total = from.attrs.word("compare_type")? == Some("TOTALORDER");
        Ok(if is_total { Order::Total } else { Order::Default })
    }

    pub(super) fn write(&self, order: &Order, to: &mut Writing<'_>) -> Result<()> {
        let element = to.operands.first().and_then(|shape| shape.as_array()).map(|a| a.element());
        let word = match (order, element) {
            (Order::Total, _) => "TOTALORDER",
            (_, Some(element)) if element.is_float() || element.is_complex() => "FLOAT",
            (_, Some(element)) if element.is_pred() || element.is_unsigned_integer() => "UNSIGNED",
            _ => "SIGNED",
        };
        put(to, "compare_type", Attribute::word("stablehlo", "comparison_type", word));
        Ok(())
    }
}

/// The element type of the first result, which its type states.
pub(super) struct ResultElement;

impl ResultElement {
    pub(super) fn read(&self, from: &Reading<'_, '_>) -> Result<ElementType> {
        ResultShape(0).read(from).map(|shape| shape.element())
    }

    pub(super) fn write(&self, _: &ElementType, _: &mut Writing<'_>) -> Result<()> {
        Ok(())
    }
}

/// The shape of a result, which its type states.
pub(super) struct ResultShape(pub usize);

impl ResultShape {
    pub(super) fn read(&self, from: &Reading<'_, '_>) -> Result<ArrayShape> {
        let shape = from.results.get(self.0).and_then(Option::as_ref);
        shape.cloned().ok_or_else(|| {
            Error::invalid(format!("{} results are needed, the last a tensor", self.0 + 1))
        })
    }

    pub(super) fn write(&self, _: &ArrayShape, _: &mut Writing<'_>) -> Result<()> {
        Ok(())
    }
}

/// The computation of the region with this number.
pub(super) struct Region(pub usize);

impl Region {
    pub(super) fn read(&self, from: &Reading<'_, '_>) -> Result<CompId> {
        let region = from.regions.get(self.0).copied();
        region.ok_or_else(|| Error::invalid(format!("{} regions are needed", self.0 + 1)))
    }

    pub(super) fn write(&self, &computation: &CompId, to: &mut Writing<'_>) -> Result<()> {
        to.regions.push(computation);
        Ok(())
    }
}

/// The amounts of padding: a list for each kind.
pub(super) struct Padding;

impl Padding {
    pub(super) fn read(&self, from: &Reading<'_, '_>) -> Result<Vec<PadDim>> {
        let list = |name| Ok::<_, Error>(from.attrs.integers(name)?.unwrap_or_default());
        let low = list("edge_padding_low")?;
        pad_dims(low, list("edge_padding_high")?, list("interior_padding")?)
    }

    pub(super) fn write(&self, dims: &[PadDim], to: &mut Writing<'_>) -> Result<()> {
        let list = |of: fn(&PadDim) -> i64| Attribute::Integers(dims.iter().map(of).collect());
        let (low, high) = (list(|dim| dim.low), list(|dim| dim.high));
        put(to, "edge_padding_low", low);
        put(to, "edge_padding_high", high);
        let interior: Vec<usize> = dims.iter().map(|dim| dim.interior).collect();
        put(to, "interior_padding", integers(&interior)?);
        Ok(())
    }
}

/// The amounts for each dimension from lists of each kind. Errors: the lists differ in length.
pub(crate) fn pad_dims(low: Vec<i64>, high: Vec<i64>, interior: Vec<i64>) -> Result<Vec<PadDim>> {
    if low.len() != high.len() || low.len() != interior.len() {
        return Err(Error::invalid("low, high and interior padding for different ranks"));
    }
    let dims = low.into_iter().zip(high).zip(interior).map(|((low, high), interior)| {
        let interior = usize::try_from(interior)
            .map_err(|_| Error::invalid(format!("interior padding of {interior}")))?;
        Ok(PadDim { low, high, interior })
    });
    dims.collect()
}

/// The precision wished for each operand.
pub(super) struct Precisions;

impl Precisions {
    pub(super) fn read(&self, from: &Reading<'_, '_>) -> Result<Vec<Precision>> {
        precision(from.attrs)
    }

    pub(super) fn write(&self, list: &[Precision], to: &mut Writing<'_>) -> Result<()> {
        if list.is_empty() {
            return Ok(());
        }
        let words = list.iter().map(|precision| match precision {
            Precision::PackedNibble => Err(Error::unimplemented("precision packed_nibble")),
            precision => {
                let word = precision.word().to_ascii_uppercase();
                Ok(Attribute::word("stablehlo", "precision", &word))
            }
        });
        put(to, "precision_config", Attribute::Array(words.collect::<Result<_>>()?));
        Ok(())
    }
}

/// The precision wished for each operand; none if all are the default.
pub(crate) fn precision(attrs: &Attrs<'_>) -> Result<Vec<Precision>> {
    let words = attrs.words("precision_config")?;
    let list = words.iter().map(|word| Precision::from_word(&word.to_ascii_lowercase()));
    let list: Vec<Precision> = list.collect::<Result<_>>()?;
    let is_default = list.iter().all(|&precision| precision == Precision::Default);
    Ok(if is_default { Vec::new() } else { list })
}

/// The algorithm that a product prescribes, which HLO has as a word: `dot_bf16_bf16_f32_x3`.
pub(crate) struct Algorithm;

/// What follows the word of an algorithm whose sums may be formed in fewer bits.
const LOOSE: &str = "_fast_accum";

impl Algorithm {
    pub(crate) fn read(&self, from: &Reading<'_, '_>) -> Result<Option<String>> {
        let Some(fields) = from.attrs.fields("algorithm")? else { return Ok(None) };
        let ty = |name: &str| match fields.get(name) {
            Some(Attribute::Type(Type::Other(text))) => Ok(text.clone()),
            Some(Attribute::Type(ty)) => Ok(ty.to_string().to_ascii_lowercase()),
            _ => Err(Error::invalid(format!("an algorithm's `{name}` must be a type"))),
        };
        let types =
            [ty("lhs_precision_type")?, ty("rhs_precision_type")?, ty("accumulation_type")?];
        let operations = fields.size_or("num_primitive_operations", 1)?;
        fields.get("lhs_component_count");
        fields.get("rhs_component_count");
        let is_loose = fields.flag("allow_imprecise_accumulation")?;
        fields.finish()?;
        let is_f8 = |name: &String| name.starts_with("f8");
        let names = types.map(|name| if is_f8(&name) { "any_f8".to_owned() } else { name });
        let mut name = format!("dot_{}", names.join("_"));
        if operations > 1 {
            name += &format!("_x{operations}");
        }
        if is_loose {
            name += LOOSE;
        }
        Ok(Some(name))
    }

    pub(super) fn write(&self, name: &Option<String>, to: &mut Writing<'_>) -> Result<()> {
        let Some(name) = name else { return Ok(()) };
        let bad = || Error::unimplemented(format!("algorithm {name}"));
        let (rest, is_loose) = match name.strip_suffix(LOOSE) {
            Some(rest) => (rest, true),
            None => (name.as_str(), false),
        };
        // Any will do; XLA's own conversion has this one.
        let rest = rest.replace("any_f8", "f8E5M2");
        let (rest, operations) = match rest.rsplit_once("_x") {
            Some((rest, count)) => (rest, count.parse::<i64>().map_err(|_| bad())?),
            None => (rest.as_str(), 1),
        };
        let mut types = Vec::new();
        for part in rest.strip_prefix("dot_").ok_or_else(bad)?.split('_') {
            let ty = match part {
                "tf32" => FloatType::TF32,
                name => FloatType::from_name(name).ok_or_else(bad)?,
            };
            types.push(Attribute::Type(Type::Float(ty)));
        }
        let [lhs, rhs, accumulation] = <[Attribute; 3]>::try_from(types).map_err(|_| bad())?;
        let fields = [
            ("lhs_precision_type", lhs),
            ("rhs_precision_type", rhs),
            ("accumulation_type", accumulation),
            ("lhs_component_count", Attribute::i64(1)),
            ("rhs_component_count", Attribute::i64(1)),
            ("num_primitive_operations", Attribute::i64(operations)),
            ("allow_imprecise_accumulation", Attribute::Bool(is_loose)),
        ];
        let fields = fields.map(|(name, value)| (name.to_owned(), value)).to_vec();
        let [dialect, kind] = ["stablehlo", "dot_algorithm"].map(str::to_owned);
        put(to, "algorithm", Attribute::Struct { dialect, name: kind, fields });
        Ok(())
    }
}

/// No algorithm, where StableHLO has no attribute for one.
pub(super) struct NoAlgorithm;

impl NoAlgorithm {
    pub(super) fn read(&self, _: &Reading<'_, '_>) -> Result<Option<String>> {
        Ok(None)
    }

    pub(super) fn write(&self, name: &Option<String>, _: &mut Writing<'_>) -> Result<()> {
        match name {
            None => Ok(()),
            Some(name) => Err(Error::unimplemented(format!("algorithm {name} of a convolution"))),
        }
    }
}
