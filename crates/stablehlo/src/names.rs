//! Names that are told apart by numbers.

use std::collections::HashMap;

/// The names that are taken.
#[derive(Default)]
pub(crate) struct Names {
    /// For each name, the number that its next bearer may get, at the least: a thousand regions
    /// called `body` must not be counted through for each of them.
    next: HashMap<String, usize>,
}

impl Names {
    /// `base` if nothing has this name, else `base`, `separator` and the first number from 1 that
    /// makes a new name. The name is taken from then on.
    pub fn unique(&mut self, base: &str, separator: char) -> String {
        let Some(&(mut number)) = self.next.get(base) else {
            self.next.insert(base.to_owned(), 1);
            return base.to_owned();
        };
        let name = loop {
            let name = format!("{base}{separator}{number}");
            number += 1;
            if !self.next.contains_key(&name) {
                break name;
            }
        };
        self.next.insert(base.to_owned(), number);
        self.next.insert(name.clone(), 1);
        name
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn numbers_follow_a_name_that_is_taken() {
        let mut names = Names::default();
        let mut unique = |base| names.unique(base, '.');
        assert_eq!(unique("f"), "f");
        assert_eq!(unique("f"), "f.1");
        assert_eq!(unique("f.2"), "f.2");
        assert_eq!(unique("f"), "f.3");
        assert_eq!(unique("f.1"), "f.1.1");
    }

    #[test]
    fn many_of_one_name_take_linear_time() {
        let start = Instant::now();
        let mut names = Names::default();
        let last = (0..100_000).map(|_| names.unique("body", '.')).last();
        assert_eq!(last.as_deref(), Some("body.99999"));
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    }
}
