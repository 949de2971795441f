//! Tuned kernels: functions of slices, sizes and strides that know nothing of HLO.
//!
//! Each takes [`Threads`](crate::Threads) and gives the same bits for any number of them. Those that
//! use instructions which not every processor has choose at run time, and are tested against a
//! plain loop.
