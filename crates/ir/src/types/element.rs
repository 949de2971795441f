//! Element types: which numbers an array can hold, and what is known of each.

use std::fmt;
use std::str::FromStr;

use crate::Error;

#[derive(Clone, Copy, PartialEq, Eq)]
enum ElementClass {
    Pred,
    Signed,
    Unsigned,
    Float,
    Complex,
}

macro_rules! define {
    ($($variant:ident, $native:ty, $name:literal, $bits:literal, $class:ident;)*) => {
        /// The type of an array's elements, under HLO's name for it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum ElementType {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        impl ElementType {
            /// All element types.
            pub const ALL: &'static [ElementType] = &[$(ElementType::$variant,)*];

            /// HLO's name: `f32`.
            pub const fn name(self) -> &'static str {
                match self { $(ElementType::$variant => $name,)* }
            }

            /// The width of a value in bits; 8 for `pred`.
            pub const fn bits(self) -> usize {
                match self { $(ElementType::$variant => $bits,)* }
            }

            const fn class(self) -> ElementClass {
                match self { $(ElementType::$variant => ElementClass::$class,)* }
            }
        }

        impl FromStr for ElementType {
            type Err = Error;
            fn from_str(name: &str) -> Result<Self, Error> {
                match name {
                    $($name => Ok(ElementType::$variant),)*
                    _ => Err(Error::invalid(format!("unknown element type `{name}`"))),
                }
            }
        }
    };
}
crate::for_each_element_type!(define);

impl ElementType {
    /// The bytes that one element takes in memory: 1 for types narrower than a byte.
    pub const fn size_bytes(self) -> usize {
        self.bits().div_ceil(8)
    }

    /// Whether it is `pred`.
    pub fn is_pred(self) -> bool {
        self.class() == ElementClass::Pred
    }

    /// Whether it is a signed integer.
    pub fn is_signed_integer(self) -> bool {
        self.class() == ElementClass::Signed
    }

    /// Whether it is an unsigned integer; `pred` is not.
    pub fn is_unsigned_integer(self) -> bool {
        self.class() == ElementClass::Unsigned
    }

    /// Whether it is an integer; `pred` is not.
    pub fn is_integer(self) -> bool {
        matches!(self.class(), ElementClass::Signed | ElementClass::Unsigned)
    }

    /// Whether it is a real floating-point type.
    pub fn is_float(self) -> bool {
        self.class() == ElementClass::Float
    }

    /// Whether it is a complex type.
    pub fn is_complex(self) -> bool {
        self.class() == ElementClass::Complex
    }

    /// For a complex type the type of its parts, else itself.
    pub fn real_part(self) -> ElementType {
        match self {
            ElementType::C64 => ElementType::F32,
            ElementType::C128 => ElementType::F64,
            other => other,
        }
    }

    /// The complex type whose parts have this type.
    pub fn to_complex(self) -> Option<ElementType> {
        match self {
            ElementType::F32 => Some(ElementType::C64),
            ElementType::F64 => Some(ElementType::C128),
            _ => None,
        }
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
