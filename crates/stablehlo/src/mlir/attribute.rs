//! MLIR's attributes: what is known of an operation besides its operands.

use std::sync::Arc;

use super::{LocId, Type};

/// A name and its attribute, in the order written.
pub type Field = (String, Attribute);

/// The elements of a `dense<…>` attribute.
///
/// Each element takes its type's bits rounded up to whole bytes, little-endian, one after the
/// other in row-major order; `i1` takes a byte that is 0 or 1, `i4` one whose high bits do not
/// matter; `index` takes 8 bytes; a complex number its real part, then its imaginary part. This is
/// what [`helio_ir::Array::from_bytes`] takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Dense {
    /// The tensor's type; always [`Type::Tensor`] of static size.
    pub ty: Type,
    /// The bytes of all elements, or of one if `is_splat`.
    pub bytes: Arc<[u8]>,
    /// Whether all elements are the one element that `bytes` holds.
    pub is_splat: bool,
}

/// An attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Attribute {
    /// `unit`, or a name without a value.
    Unit,
    /// `true`, `false`.
    Bool(bool),
    /// `3 : i64`.
    Integer {
        /// The value; of an unsigned type not negative.
        value: i128,
        /// [`Type::Integer`] or [`Type::Index`].
        ty: Type,
    },
    /// `0.5 : f32`; the value is exact in the type.
    Float {
        /// The value.
        value: f64,
        /// [`Type::Float`].
        ty: Type,
    },
    /// `"text"`.
    String(String),
    /// `[a, b]`.
    Array(Vec<Attribute>),
    /// `array<i64: 1, 2>` of integers of any width, or a list of integers in an operation's or a
    /// structured attribute's own text.
    Integers(Vec<i64>),
    /// `array<i1: true, false>`.
    Bools(Vec<bool>),
    /// `array<f32: 0.5>`.
    Floats(Vec<f64>),
    /// `dense<…> : tensor<…>`.
    Dense(Dense),
    /// `dense_resource<key> : tensor<…>` whose bytes are not in the module.
    DenseResource {
        /// The name of the resource.
        key: String,
        /// The tensor's type.
        ty: Type,
    },
    /// `{a = 1, b}`.
    Dictionary(Vec<Field>),
    /// A type.
    Type(Type),
    /// `@root::@nested`: the root's name, then the nested ones.
    Symbol(Vec<String>),
    /// `#stablehlo<comparison_direction LT>`: a word of an enumeration.
    Word {
        /// The dialect: `stablehlo`.
        dialect: String,
        /// The enumeration: `comparison_direction`.
        name: String,
        /// The word, as StableHLO's text has it: `LT`.
        word: String,
    },
    /// `#stablehlo.gather<offset_dims = [1], …>`: fields by name, under the names of the text.
    ///
    /// Lists of integers are [`Attribute::Integers`], words are [`Attribute::Word`], flags and
    /// absent fields are as their default says. In `stablehlo.conv` the fields are those of
    /// `ConvDimensionNumbersAttr`: `input_batch_dimension`, `input_feature_dimension`,
    /// `input_spatial_dimensions`, `kernel_input_feature_dimension`,
    /// `kernel_output_feature_dimension`, `kernel_spatial_dimensions`, `output_batch_dimension`,
    /// `output_feature_dimension`, `output_spatial_dimensions`.
    Struct {
        /// The dialect: `stablehlo`, `chlo`, `sdy`.
        dialect: String,
        /// The kind: `gather`, `scatter`, `dot`, `dot_algorithm`, `conv`, `channel_handle`,
        /// `output_operand_alias`, `result_accuracy`…
        name: String,
        /// Its fields.
        fields: Vec<Field>,
    },
    /// A location.
    Location(LocId),
    /// An attribute of another dialect, as written: `#sdy.sharding<@mesh, [{}]>`.
    Other(String),
}

impl Attribute {
    /// An `i64`.
    pub fn i64(value: i64) -> Self {
        Attribute::Integer { value: value.into(), ty: Type::signless(64) }
    }

    /// A word of an enumeration.
    pub fn word(dialect: &str, name: &str, word: &str) -> Self {
        let [dialect, name, word] = [dialect, name, word].map(str::to_owned);
        Attribute::Word { dialect, name, word }
    }
}
