//! What operations are written with: `words!` and `calls!`.

/// Defines an enum of attribute words: `Variant = "text"`.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$doc])* $variant,)* }

        impl $name {
            /// All of them.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// The word in HLO text.
            pub const fn word(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }

            /// The one with this word. Errors: `InvalidArgument`, listing all words.
            pub fn from_word(word: &str) -> $crate::Result<Self> {
                match word {
                    $($text => Ok($name::$variant),)*
                    _ => Err($crate::Error::invalid(format!(
                        "`{word}` is none of {}",
                        [$($text),*].join(", ")
                    ))),
                }
            }

            /// The one with this word in letters of either case. Errors: as for [`Self::from_word`].
            pub fn from_word_of_any_case(word: &str) -> $crate::Result<Self> {
                let found = Self::ALL.iter().find(|each| each.word().eq_ignore_ascii_case(word));
                found.map_or_else(|| Self::from_word(word), |&found| Ok(found))
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.word())
            }
        }
    };
}
pub(crate) use words;

/// The methods of [`OpDef`](super::OpDef) that tell the computations called: those in these fields.
macro_rules! calls {
    ($($field:ident),+) => {
        fn callees(&self) -> Vec<$crate::CompId> {
            vec![$(self.$field),+]
        }

        fn callees_mut(&mut self) -> Vec<&mut $crate::CompId> {
            vec![$(&mut self.$field),+]
        }
    };
}
