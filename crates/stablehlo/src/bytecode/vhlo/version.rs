//! Versions of StableHLO: which can be read, and which is written.

use std::fmt;
use std::str::FromStr;

use helio_ir::{Error, Result};

/// A version of StableHLO: `1.13.0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// The first number.
    pub major: u32,
    /// The second number, of which operations and attributes depend.
    pub minor: u32,
    /// The third number.
    pub patch: u32,
}

impl Version {
    /// The oldest version whose portable artifacts can be read.
    pub const OLDEST: Version = Version::minor(0, 9);

    /// The newest version of which everything is known.
    pub const NEWEST: Version = Version::minor(1, 20);

    /// What is written if nothing else is asked for: older than the regions of composites (1.14) and
    /// asynchronous types (1.15), so that many readers know it.
    pub const WRITTEN: Version = Version::minor(1, 13);

    /// The version `major.minor.0`.
    pub const fn minor(major: u32, minor: u32) -> Self {
        Version { major, minor, patch: 0 }
    }

    /// Whether `self` and `other` differ at most in the last number.
    fn same_minor(self, other: Version) -> bool {
        (self.major, self.minor) == (other.major, other.minor)
    }

    /// Whether something that was written since one version and until another is written now.
    pub(crate) fn is_within(self, since: Version, until: Option<Version>) -> bool {
        since <= self && until.is_none_or(|until| self <= until || self.same_minor(until))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// `1.13.0`
impl FromStr for Version {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut numbers = text.split('.').map(str::parse);
        match (numbers.next(), numbers.next(), numbers.next(), numbers.next()) {
            (Some(Ok(major)), Some(Ok(minor)), Some(Ok(patch)), None) => {
                Ok(Version { major, minor, patch })
            }
            _ => Err(Error::invalid(format!("`{text}` is no version such as 1.13.0"))),
        }
    }
}
