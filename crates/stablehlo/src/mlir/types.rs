//! MLIR's types, as far as StableHLO has a use for them.

use std::fmt;

use helio_ir::ElementType;

use super::Attribute;

/// Whether an integer type says how its bits are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signedness {
    /// `i32`: StableHLO reads these as signed, and `i1` as a truth value.
    Signless,
    /// `si32`.
    Signed,
    /// `ui32`.
    Unsigned,
}

/// A real floating-point type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // The variants are the names of the formats.
pub enum FloatType {
    F4E2M1FN,
    F6E2M3FN,
    F6E3M2FN,
    F8E3M4,
    F8E4M3,
    F8E4M3FN,
    F8E4M3FNUZ,
    F8E4M3B11FNUZ,
    F8E5M2,
    F8E5M2FNUZ,
    F8E8M0FNU,
    BF16,
    F16,
    F32,
    TF32,
    F64,
    F80,
    F128,
}

impl FloatType {
    /// All formats with MLIR's name for each and its width in bits.
    pub const ALL: &'static [(FloatType, &'static str, u32)] = &[
        (FloatType::F4E2M1FN, "f4E2M1FN", 4),
        (FloatType::F6E2M3FN, "f6E2M3FN", 6),
        (FloatType::F6E3M2FN, "f6E3M2FN", 6),
        (FloatType::F8E3M4, "f8E3M4", 8),
        (FloatType::F8E4M3, "f8E4M3", 8),
        (FloatType::F8E4M3FN, "f8E4M3FN", 8),
        (FloatType::F8E4M3FNUZ, "f8E4M3FNUZ", 8),
        (FloatType::F8E4M3B11FNUZ, "f8E4M3B11FNUZ", 8),
        (FloatType::F8E5M2, "f8E5M2", 8),
        (FloatType::F8E5M2FNUZ, "f8E5M2FNUZ", 8),
        (FloatType::F8E8M0FNU, "f8E8M0FNU", 8),
        (FloatType::BF16, "bf16", 16),
        (FloatType::F16, "f16", 16),
        (FloatType::F32, "f32", 32),
        (FloatType::TF32, "tf32", 19),
        (FloatType::F64, "f64", 64),
        (FloatType::F80, "f80", 80),
        (FloatType::F128, "f128", 128),
    ];

    /// MLIR's name: `f8E4M3FN`.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|row| row.0 == self).map_or("", |row| row.1)
    }

    /// The width in bits.
    pub fn bits(self) -> u32 {
        Self::ALL.iter().find(|row| row.0 == self).map_or(0, |row| row.2)
    }

    /// The format with MLIR's name for it.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    /// The element type of HLO with this format, if there is one.
    pub fn element(self) -> Option<ElementType> {
        Some(match self {
            FloatType::F4E2M1FN => ElementType::F4E2M1FN,
            FloatType::F8E3M4 => ElementType::F8E3M4,
            FloatType::F8E4M3 => ElementType::F8E4M3,
            FloatType::F8E4M3FN => ElementType::F8E4M3FN,
            FloatType::F8E4M3FNUZ => ElementType::F8E4M3FNUZ,
            FloatType::F8E4M3B11FNUZ => ElementType::F8E4M3B11FNUZ,
            FloatType::F8E5M2 => ElementType::F8E5M2,
            FloatType::F8E5M2FNUZ => ElementType::F8E5M2FNUZ,
            FloatType::F8E8M0FNU => ElementType::F8E8M0FNU,
            FloatType::BF16 => ElementType::BF16,
            FloatType::F16 => ElementType::F16,
            FloatType::F32 => ElementType::F32,
            FloatType::F64 => ElementType::F64,
            FloatType::F6E2M3FN
            | FloatType::F6E3M2FN
            | FloatType::TF32
            | FloatType::F80
            | FloatType::F128 => return None,
        })
    }
}

/// A tensor's dimensions and element type.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorType {
    /// The size of each dimension; `None` for `?`.
    pub dims: Vec<Option<u64>>,
    /// The type of the elements.
    pub element: Box<Type>,
    /// For each dimension the bound that `#stablehlo.bounds<…>` states, if any does; empty if there
    /// is no such encoding.
    pub bounds: Vec<Option<u64>>,
    /// An encoding other than bounds; kept, without meaning.
    pub encoding: Option<Box<Attribute>>,
}

impl TensorType {
    /// A tensor of static size.
    pub fn new(dims: impl IntoIterator<Item = u64>, element: Type) -> Self {
        TensorType {
            dims: dims.into_iter().map(Some).collect(),
            element: Box::new(element),
            bounds: Vec::new(),
            encoding: None,
        }
    }
}

/// `!quant.uniform<storage<min:max>:expressed:axis, {scale:zero_point, …}>`: integers that stand
/// for `(value - zero_point) * scale`.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantized {
    /// The integer type of what is stored: `i8` is signed here, `u8` (read as `ui8`) is not.
    pub storage: Type,
    /// The type of what the integers stand for.
    pub expressed: Type,
    /// The smallest stored value, if stated; else that of the storage type.
    pub storage_min: Option<i64>,
    /// The largest stored value, if stated; else that of the storage type.
    pub storage_max: Option<i64>,
    /// The dimension along which scales differ; `None` if one scale holds for all elements.
    pub axis: Option<usize>,
    /// One scale, or one for each index of the axis.
    pub scales: Vec<f64>,
    /// As many zero points as there are scales.
    pub zero_points: Vec<i64>,
}

/// A type.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    /// An integer of this width in bits.
    Integer {
        /// Bits.
        width: u32,
        /// How the bits are read.
        sign: Signedness,
    },
    /// `index`.
    Index,
    /// A real floating-point number.
    Float(FloatType),
    /// `complex<f32>`.
    Complex(Box<Type>),
    /// A tensor with a rank.
    Tensor(TensorType),
    /// `tensor<*xf32>`: a tensor of these elements, of any rank.
    UnrankedTensor(Box<Type>),
    /// `tuple<…>`.
    Tuple(Vec<Type>),
    /// `!stablehlo.token`.
    Token,
    /// `(inputs) -> (results)`.
    Function {
        /// What it takes.
        inputs: Vec<Type>,
        /// What it gives.
        results: Vec<Type>,
    },
    /// A quantized number.
    Quantized(Box<Quantized>),
    /// `none`.
    None,
    /// A type of another dialect, as written: `!shape.shape`.
    Other(String),
}

impl Type {
    /// `i{width}`.
    pub fn signless(width: u32) -> Type {
        Type::Integer { width, sign: Signedness::Signless }
    }

    /// The tensor, if it is one with a rank.
    pub fn as_tensor(&self) -> Option<&TensorType> {
        match self {
            Type::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }
}

/// MLIR's text for it.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Integer { width, sign } => {
                let prefix = match sign {
                    Signedness::Signless => "i",
                    Signedness::Signed => "si",
                    Signedness::Unsigned => "ui",
                };
                write!(f, "{prefix}{width}")
            }
            Type::Index => f.write_str("index"),
            Type::Float(ty) => f.write_str(ty.name()),
            Type::Complex(part) => write!(f, "complex<{part}>"),
            Type::Tensor(tensor) => tensor.fmt(f),
            Type::UnrankedTensor(element) => write!(f, "tensor<*x{element}>"),
            Type::Tuple(elements) => write!(f, "tuple<{}>", List(elements)),
            Type::Token => f.write_str("!stablehlo.token"),
            Type::Function { inputs, results } => {
                write!(f, "({}) -> ({})", List(inputs), List(results))
            }
            Type::Quantized(quantized) => quantized.fmt(f),
            Type::None => f.write_str("none"),
            Type::Other(text) => f.write_str(text),
        }
    }
}

/// `tensor<2x?xf32>`
impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tensor<")?;
        for dim in &self.dims {
            match dim {
                Some(size) => write!(f, "{size}x")?,
                None => f.write_str("?x")?,
            }
        }
        write!(f, "{}", self.element)?;
        if !self.bounds.is_empty() {
            f.write_str(", #stablehlo.bounds<")?;
            for (i, bound) in self.bounds.iter().enumerate() {
                f.write_str(if i > 0 { ", " } else { "" })?;
                match bound {
                    Some(bound) => write!(f, "{bound}")?,
                    None => f.write_str("?")?,
                }
            }
            f.write_str(">")?;
        }
        f.write_str(">")
    }
}

/// `!quant.uniform<i8:f32:0, {0.5:1, 0.25:0}>`
impl fmt::Display for Quantized {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "!quant.uniform<{}", self.storage)?;
        if let (Some(min), Some(max)) = (self.storage_min, self.storage_max) {
            write!(f, "<{min}:{max}>")?;
        }
        write!(f, ":{}", self.expressed)?;
        let (open, close) = match self.axis {
            Some(axis) => {
                write!(f, ":{axis}")?;
                ("{", "}")
            }
            None => ("", ""),
        };
        write!(f, ", {open}")?;
        for (i, (scale, zero_point)) in self.scales.iter().zip(&self.zero_points).enumerate() {
            write!(f, "{}{scale:?}:{zero_point}", if i > 0 { ", " } else { "" })?;
        }
        write!(f, "{close}>")
    }
}

struct List<'a>(&'a [Type]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, ty) in self.0.iter().enumerate() {
            write!(f, "{}{ty}", if i > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}
