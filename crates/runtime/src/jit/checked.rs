//! Code that checks its accesses: it ends where the tile machine does, and nowhere else.

use helio_codegen::kernel::{Addr, Builder, IndexOp, Kernel, Lane, Mem};
use helio_codegen::tile;
use helio_codegen::x86::Isa;

use super::tests::{checked_function, elements, isas};
use super::*;

const FORMATS: [Mem; 6] = [Mem::U8, Mem::I16, Mem::F16, Mem::BF16, Mem::F32, Mem::F64];

/// Whether a call of a kernel on buffers that are larger than it says stays inside of what it says, by
/// machine code and by the tile machine.
pub(super) fn stays_inside(kernel: &Kernel, isa: Isa, buffers: &[Vec<u8>]) -> [bool; 2] {
    let writes = || kernel.params.iter().map(|param| param.write);
    let mut found = buffers.to_vec();
    let mut args: Vec<JitArg<'_>> = found
        .iter_mut()
        .zip(writes())
        .map(|(bytes, write)| if write { JitArg::Write(bytes) } else { JitArg::Read(bytes) })
        .collect();
    let function = checked_function(kernel, isa);
    let machine = function.call(&mut args, Threads::single());
    let mut expected = buffers.to_vec();
    let mut args: Vec<tile::FunctionArg<'_>> =
        expected
            .iter_mut()
            .zip(writes())
            .map(|(bytes, write)| {
                if write { tile::FunctionArg::Write(bytes) } else { tile::FunctionArg::Read(bytes) }
            })
            .collect();
    let tile = tile::run(kernel, &mut args, 0, kernel.range);
    if let Err(error) = &machine {
        let error = error.to_string();
        assert!(error.contains("kernel: ") && error.contains("outside of buffer"), "{error}");
    }
    [machine.is_ok(), tile.is_ok()]
}

/// The lanes of an access that are on.
#[derive(Clone, Copy, Debug)]
enum ActiveLanes {
    All,
    /// As many as that, from the first on.
    Below(i64),
    /// One lane by itself.
    Only(i64),
}

/// How an access finds its elements.
#[derive(Clone, Copy, Debug)]
enum Indexing {
    /// At a fixed distance from lane to lane, in elements.
    Strided(i64),
    /// By indices from memory.
    Gathered,
    /// One element, as an index.
    Index,
}

/// A kernel that reads or writes once, `shift` elements further than where it is all inside.
fn accesses(isa: Isa, mem: Mem, way: Indexing, on: ActiveLanes, write: bool, shift: i64) -> Kernel {
    let lanes = isa.lanes(mem.bytes() == 8);
    let size = mem.bytes() as i64;
    let mut b = Builder::new(lanes);
    let count = match way {
        Indexing::Strided(apart) => apart.abs() * (lanes as i64 - 1) + 1,
        Indexing::Gathered => 8,
        Indexing::Index => 1,
    };
    let span = (count * size) as usize;
    let (from, to) = if write { (4096, span) } else { (span, 4096) };
    let (x, y) = (b.param(from, true, false), b.param(to, false, true));
    let begin = b.begin();
    let index_lane = if mem.bytes() == 8 { Lane::I64 } else { Lane::I32 };
    let mask = match on {
        ActiveLanes::All => None,
        ActiveLanes::Below(count) => {
            let end = b.index(count);
            Some(b.mask_below(begin, end))
        }
        ActiveLanes::Only(lane) => {
            let (ids, lane) = (b.lane_ids(index_lane), b.int(index_lane, lane));
            Some(b.compare(helio_codegen::kernel::Cmp::Eq, ids, lane))
        }
    };
    // A term that is 0, as the range begins there, so that addresses have a register to add.
    let plain = |buf| Addr { buf, offset: 0, terms: vec![(begin, 16)], lane_stride: size };
    let reach = match way {
        Indexing::Strided(apart) => apart * (lanes as i64 - 1),
        _ => 0,
    };
    let lane_stride = if let Indexing::Strided(apart) = way { apart * size } else { size };
    let there = |buf| Addr { offset: (shift - reach.min(0)) * size, lane_stride, ..plain(buf) };
    match way {
        Indexing::Strided(_) if write => {
            let value = b.load(mem, plain(x), None);
            b.store(value, mem, there(y), mask);
        }
        Indexing::Strided(_) => {
            let value = b.load(mem, there(x), mask);
            b.store(value, mem, plain(y), None);
        }
        Indexing::Gathered => {
            let (ids, first) = (b.lane_ids(index_lane), b.splat(index_lane, begin));
            let (seven, ids) = (b.int(index_lane, 7), b.add(ids, first));
            let index = b.bin(helio_codegen::kernel::BinOp::And, ids, seven);
            let value = b.gather(mem, there(x), index, size, mask);
            b.store(value, mem, plain(y), None);
        }
        Indexing::Index => {
            let number = b.index_load(mem, there(x));
            let bits = b.index(1);
            let number = b.index_op(IndexOp::And, number, bits);
            let value = b.splat(Lane::I32, number);
            b.store(value, Mem::I32, Addr { lane_stride: 4, ..plain(y) }, None);
        }
    }
    b.finish()
}

#[test]
fn each_kind_of_access_is_checked() {
    let mut left = 0;
    for &isa in isas() {
        for mem in FORMATS {
            let mut ways: Vec<(Indexing, bool)> = vec![(Indexing::Gathered, false)];
            if mem == Mem::U8 || mem == Mem::I16 {
                ways.push((Indexing::Index, false));
            }
            for apart in [1, 0, 2, 3, 9, -1, -2, 40] {
                ways.extend([(Indexing::Strided(apart), false), (Indexing::Strided(apart), true)]);
            }
            let lanes = isa.lanes(mem.bytes() == 8) as i64;
            let masks = [
                ActiveLanes::All,
                ActiveLanes::Below(0),
                ActiveLanes::Below(lanes - 1),
                ActiveLanes::Only(lanes - 1),
                ActiveLanes::Only(0),
            ];
            for (way, write) in ways {
                for on in masks {
                    for shift in [0, 1, -1, 1 << 20, -(1 << 33)] {
                        let kernel = accesses(isa, mem, way, on, write, shift);
                        let buffers = [0, 1].map(|_| elements(Mem::U8, 8192, 3));
                        let [machine, tile] = stays_inside(&kernel, isa, &buffers);
                        let case = format!("{isa:?} {mem:?} {way:?} {on:?} {write} {shift}");
                        assert_eq!(machine, tile, "{case}");
                        assert!(machine || shift != 0, "{case}");
                        left += usize::from(!machine);
                    }
                }
            }
        }
    }
    assert!(left > 1000 * isas().len(), "{left}");
}
