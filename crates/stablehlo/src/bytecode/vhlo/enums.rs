//! VHLO's enumerations: attributes that are a word.

use helio_ir::Result;

use super::super::cursor::Cursor;
use crate::mlir::Attribute;

/// An enumeration.
pub(crate) struct Enumeration {
    /// The code of the attribute.
    pub(crate) code: u64,
    /// StableHLO's name of it.
    pub(crate) name: &'static str,
    /// StableHLO's words with the number of each.
    pub(crate) words: &'static [(u64, &'static str)],
}

/// All of them.
pub(crate) const ENUMERATIONS: &[Enumeration] = &[
    Enumeration {
        code: 3,
        name: "comparison_direction",
        words: &[(0, "EQ"), (1, "NE"), (2, "GE"), (3, "GT"), (4, "LE"), (5, "LT")],
    },
    Enumeration {
        code: 4,
        name: "comparison_type",
        words: &[(0, "NOTYPE"), (1, "FLOAT"), (2, "TOTALORDER"), (3, "SIGNED"), (4, "UNSIGNED")],
    },
    Enumeration {
        code: 5,
        name: "api_version",
        words: &[
            (0, "API_VERSION_UNSPECIFIED"),
            (1, "API_VERSION_ORIGINAL"),
            (2, "API_VERSION_STATUS_RETURNING"),
            (3, "API_VERSION_STATUS_RETURNING_UNIFIED"),
            (4, "API_VERSION_TYPED_FFI"),
        ],
    },
    Enumeration {
        code: 7,
        name: "fft_type",
        words: &[(0, "FFT"), (1, "IFFT"), (2, "RFFT"), (3, "IRFFT")],
    },
    Enumeration {
        code: 11,
        name: "precision",
        words: &[(0, "DEFAULT"), (1, "HIGH"), (2, "HIGHEST")],
    },
    Enumeration {
        code: 12,
        name: "rng_algorithm",
        words: &[(0, "DEFAULT"), (1, "THREE_FRY"), (2, "PHILOX")],
    },
    Enumeration { code: 13, name: "rng_distribution", words: &[(1, "UNIFORM"), (2, "NORMAL")] },
    Enumeration {
        code: 16,
        name: "transpose",
        words: &[(0, "TRANSPOSE_INVALID"), (1, "NO_TRANSPOSE"), (2, "TRANSPOSE"), (3, "ADJOINT")],
    },
    Enumeration {
        code: 19,
        name: "result_accuracy_mode",
        words: &[(0, "DEFAULT"), (1, "HIGHEST"), (2, "TOLERANCE")],
    },
];

impl Enumeration {
    /// The enumeration whose attribute has this code.
    pub(crate) fn with_code(code: u64) -> Option<&'static Enumeration> {
        ENUMERATIONS.iter().find(|row| row.code == code)
    }

    /// A word of it.
    pub(crate) fn read(&self, cursor: &mut Cursor<'_>) -> Result<Attribute> {
        let at = *cursor;
        let number = cursor.int("the number of a word")?;
        let word = self.words.iter().find(|row| row.0 == number).map(|row| row.1);
        let word = word.ok_or_else(|| at.unknown(format!("{} {number}", self.name)))?;
        Ok(Attribute::word("stablehlo", self.name, word))
    }

    /// The number of a word.
    pub(crate) fn number(name: &str, word: &str) -> Option<u64> {
        let row = ENUMERATIONS.iter().find(|row| row.name == name)?;
        row.words.iter().find(|pair| pair.1 == word).map(|pair| pair.0)
    }

    /// The word of a number.
    pub(crate) fn word(name: &str, number: u64) -> Option<&'static str> {
        let row = ENUMERATIONS.iter().find(|row| row.name == name)?;
        row.words.iter().find(|pair| pair.0 == number).map(|pair| pair.1)
    }
}
