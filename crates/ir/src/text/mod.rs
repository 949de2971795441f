//! HLO text, in and out.

pub mod attrs;
