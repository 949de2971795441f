//! Disjoint sets.

/// Disjoint sets of numbers.
pub(crate) struct Sets(Vec<usize>);

impl Sets {
    /// As many sets of one number each.
    pub(crate) fn new(count: usize) -> Self {
        Sets((0..count).collect())
    }

    /// The set that has a number, by one of its numbers.
    pub(crate) fn find(&mut self, mut number: usize) -> usize {
        while self.0[number] != number {
            self.0[number] = self.0[self.0[number]];
            number = self.0[number];
        }
        number
    }

    /// Makes one of the sets that have these numbers.
    pub(crate) fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.find(a), self.find(b));
        // The earlier one stands for both: chains are as short as what is walked in order makes them.
        self.0[a.max(b)] = a.min(b);
    }
}
