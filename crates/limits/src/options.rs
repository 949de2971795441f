//! Options, changed one by one.

/// Gives a type of options a method `with_field(value)` for each field: the same options with another
/// value there.
///
/// ```
/// #[derive(Default)]
/// struct Options {
///     threads: Option<usize>,
///     seed: u64,
/// }
/// helio_limits::with_methods! { Options {
///     with_threads(threads: impl Into<Option<usize>>);
///     with_seed(seed: u64);
/// } }
/// let options = Options::default().with_threads(4).with_seed(7);
/// assert_eq!((options.threads, options.seed), (Some(4), 7));
/// ```
#[macro_export]
macro_rules! with_methods {
    ($options:ty { $($with:ident($field:ident: $value:ty);)* }) => {
        impl $options {$(
            #[doc = concat!("The same with this [`", stringify!($field), "`](Self::", stringify!($field), ").")]
            #[must_use]
            pub fn $with(mut self, $field: $value) -> Self {
                self.$field = $field.into();
                self
            }
        )*}
    };
}
