//! Numbers for programs that tests make up.

/// Numbers made up by a shift register.
pub struct Numbers(pub u64);

impl Numbers {
    /// One that is less than `count`.
    pub fn below(&mut self, count: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % count
    }
}
