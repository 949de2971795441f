//! Whether a kernel is well formed: types, definitions before uses, buffers used as declared.

use super::{Addr, Block, Buf, Carried, Conv, Inst, Kernel, Lane, Mem, Ty, Value};

impl Kernel {
    /// Checks types, that every value is defined once and before its use, and that buffers are used
    /// as declared. The error says what is wrong.
    pub fn check(&self) -> Result<(), String> {
        let mut checker = Checker { kernel: self, defined: vec![false; self.types.len()] };
        if !self.lanes.is_power_of_two() {
            return Err(format!("{} lanes", self.lanes));
        }
        checker.block(&self.body)?;
        Ok(())
    }
}

struct Checker<'k> {
    kernel: &'k Kernel,
    /// For each value, whether it is defined where the checker is.
    defined: Vec<bool>,
}

/// Nothing, or what is wrong.
type Checked = Result<(), String>;

fn require(holds: bool, what: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(what()) }
}

impl Checker<'_> {
    /// Defines a value. Errors: it is defined already, or is of another type.
    fn define(&mut self, value: Value, ty: Ty) -> Checked {
        let slot = self.defined.get_mut(value.0 as usize).ok_or_else(|| format!("no {value:?}"))?;
        require(!std::mem::replace(slot, true), || format!("{value:?} is defined twice"))?;
        let found = self.kernel.ty(value);
        require(found == ty, || format!("{value:?} is a {found:?}, not a {ty:?}"))
    }

    /// The type of a value that is read. Errors: it is not defined here.
    fn used(&self, value: Value) -> Result<Ty, String> {
        let known = self.defined.get(value.0 as usize).copied().unwrap_or(false);
        require(known, || format!("{value:?} is used where it is not defined"))?;
        Ok(self.kernel.ty(value))
    }

    /// Errors: a value that is read is not of type `ty`, or not defined here.
    fn is(&self, value: Value, ty: Ty) -> Checked {
        let found = self.used(value)?;
        require(found == ty, || format!("{value:?} is a {found:?}, not a {ty:?}"))
    }

    /// The lanes of a value that is read. Errors: it is no vector, or not defined here.
    fn vector(&self, value: Value) -> Result<Lane, String> {
        match self.used(value)? {
            Ty::Vector(lane) => Ok(lane),
            other => Err(format!("{value:?} is a {other:?}, not a vector")),
        }
    }

    /// Errors: an address has terms that are no indices, or the buffer may not be read (or
    /// written).
    fn addr(&self, addr: &Addr, write: bool) -> Checked {
        for &(value, _) in &addr.terms {
            self.is(value, Ty::Index)?;
        }
        match addr.buf {
            Buf::Scratch => Ok(()),
            Buf::Param(n) => {
                let params = &self.kernel.params;
                let param = params.get(n as usize).ok_or_else(|| format!("no buffer {n}"))?;
                let may = if write { param.write } else { param.read };
                require(may, || format!("buffer {n} is not declared for this access"))
            }
        }
    }

    fn mask(&self, mask: Option<Value>) -> Checked {
        mask.map_or(Ok(()), |mask| self.is(mask, Ty::Mask))
    }

    fn block(&mut self, block: &Block) -> Checked {
        block.insts.iter().try_for_each(|inst| self.inst(inst))
    }

    /// Checks a block whose definitions end with it.
    fn scoped(&mut self, body: impl FnOnce(&mut Self) -> Checked) -> Checked {
        let before = self.defined.clone();
        body(self)?;
        self.defined = before;
        Ok(())
    }

    /// Defines the parameters of a loop's body.
    fn carried_in(&mut self, carried: &[Carried]) -> Checked {
        for c in carried {
            let ty = self.used(c.init)?;
            self.define(c.param, ty)?;
        }
        Ok(())
    }

    fn inst(&mut self, inst: &Inst) -> Checked {
        let same = |a: Lane, b: Lane| require(a == b, || format!("{a:?} and {b:?} in {inst:?}"));
        match inst {
            Inst::Begin { dst } | Inst::End { dst } | Inst::IndexConst { dst, .. } => {
                self.define(*dst, Ty::Index)
            }
            Inst::Index { dst, a, b, .. } => {
                self.is(*a, Ty::Index)?;
                self.is(*b, Ty::Index)?;
                self.define(*dst, Ty::Index)
            }
            Inst::IndexLoad { dst, mem, addr } => {
                self.addr(addr, false)?;
                require(!mem.lane().is_float(), || format!("an index of {mem:?}"))?;
                self.define(*dst, Ty::Index)
            }
            Inst::Extract { dst, src } => {
                let lane = self.vector(*src)?;
                require(!lane.is_float(), || format!("an index of {lane:?}"))?;
                self.define(*dst, Ty::Index)
            }
            Inst::Const { dst, .. } => {
                let ty = self.kernel.ty(*dst);
                require(matches!(ty, Ty::Vector(_)), || format!("a constant {ty:?}"))?;
                self.define(*dst, ty)
            }
            Inst::Splat { dst, src } => {
                self.is(*src, Ty::Index)?;
                let ty = self.kernel.ty(*dst);
                let integer = matches!(ty, Ty::Vector(lane) if !lane.is_float());
                require(integer, || format!("an index as {ty:?}"))?;
                self.define(*dst, ty)
            }
            Inst::Numbers { dst, numbers } => {
                let ty = self.kernel.ty(*dst);
                let integer = matches!(ty, Ty::Vector(lane) if !lane.is_float());
                require(integer, || format!("numbers as {ty:?}"))?;
                let (count, lanes) = (numbers.len(), self.kernel.lanes);
                require(count == lanes, || format!("{count} numbers in {lanes} lanes"))?;
                self.define(*dst, ty)
            }
            Inst::Lookup { dst, index, .. } => {
                self.is(*index, Ty::Vector(Lane::I32))?;
                let ty = self.kernel.ty(*dst);
                let narrow = matches!(ty, Ty::Vector(lane) if lane.bytes() == 4);
                require(narrow, || format!("a table of {ty:?}"))?;
                self.define(*dst, ty)
            }
            Inst::Un { dst, a, .. } | Inst::Reduce { dst, a, .. } => {
                let lane = self.vector(*a)?;
                self.define(*dst, Ty::Vector(lane))
            }
            Inst::Bin { dst, a, b, .. } => {
                let lane = self.vector(*a)?;
                same(lane, self.vector(*b)?)?;
                self.define(*dst, Ty::Vector(lane))
            }
            Inst::Fma { dst, a, b, c, .. } => {
                let lane = self.vector(*a)?;
                require(lane.is_float(), || format!("a fused product of {lane:?}"))?;
                same(lane, self.vector(*b)?)?;
                same(lane, self.vector(*c)?)?;
                self.define(*dst, Ty::Vector(lane))
            }
            Inst::Compare { dst, a, b, .. } => {
                same(self.vector(*a)?, self.vector(*b)?)?;
                self.define(*dst, Ty::Mask)
            }
            Inst::Select { dst, mask, t, f } => {
                self.is(*mask, Ty::Mask)?;
                let lane = self.vector(*t)?;
                same(lane, self.vector(*f)?)?;
                self.define(*dst, Ty::Vector(lane))
            }
            Inst::Mask { dst, a, b, .. } => {
                self.is(*a, Ty::Mask)?;
                self.is(*b, Ty::Mask)?;
                self.define(*dst, Ty::Mask)
            }
            Inst::MaskAny { dst, a } => {
                self.is(*a, Ty::Mask)?;
                self.define(*dst, Ty::Mask)
            }
            Inst::MaskConst { dst, .. } => self.define(*dst, Ty::Mask),
            Inst::MaskBelow { dst, index, end } => {
                self.is(*index, Ty::Index)?;
                self.is(*end, Ty::Index)?;
                self.define(*dst, Ty::Mask)
            }
            Inst::Convert { dst, op, a } => {
                let from = self.vector(*a)?;
                let Ty::Vector(to) = self.kernel.ty(*dst) else {
                    return Err(format!("{dst:?} is not a vector"));
                };
                require(converts(*op, from, to), || format!("{op:?} from {from:?} to {to:?}"))?;
                self.define(*dst, Ty::Vector(to))
            }
            Inst::Load { dst, mem, addr, mask } => {
                self.addr(addr, false)?;
                self.mask(*mask)?;
                self.define(*dst, Ty::Vector(mem.lane()))
            }
            Inst::Store { src, mem, addr, mask } => {
                self.addr(addr, true)?;
                self.mask(*mask)?;
                self.stored(*src, *mem)
            }
            Inst::Gather { dst, mem, addr, index, mask, .. } => {
                self.addr(addr, false)?;
                self.mask(*mask)?;
                let lane = self.vector(*index)?;
                require(!lane.is_float(), || format!("indices of {lane:?}"))?;
                self.define(*dst, Ty::Vector(mem.lane()))
            }
            Inst::ShiftUp { dst, a, fill, by } => {
                let lane = self.vector(*a)?;
                same(lane, self.vector(*fill)?)?;
                require(0 < *by && *by < self.kernel.lanes, || format!("a shift by {by}"))?;
                self.define(*dst, Ty::Vector(lane))
            }
            Inst::Loop { var, lo, hi, step, carried, body } => {
                self.is(*lo, Ty::Index)?;
                self.is(*hi, Ty::Index)?;
                require(*step > 0, || format!("a step of {step}"))?;
                self.scoped(|this| {
                    this.define(*var, Ty::Index)?;
                    this.carried_in(carried)?;
                    this.block(body)?;
                    carried.iter().try_for_each(|c| this.is(c.next, this.kernel.ty(c.param)))
                })?;
                self.results(carried)
            }
            Inst::While { cond, go, carried, body } => {
                self.scoped(|this| {
                    this.carried_in(carried)?;
                    this.block(cond)?;
                    this.is(*go, Ty::Mask)?;
                    this.block(body)?;
                    carried.iter().try_for_each(|c| this.is(c.next, this.kernel.ty(c.param)))
                })?;
                self.results(carried)
            }
        }
    }

    /// Defines the results of a loop.
    fn results(&mut self, carried: &[Carried]) -> Checked {
        carried.iter().try_for_each(|c| self.define(c.result, self.kernel.ty(c.init)))
    }

    fn stored(&self, src: Value, mem: Mem) -> Checked {
        let lane = self.vector(src)?;
        require(lane == mem.lane(), || format!("{lane:?} stored as {mem:?}"))
    }
}

/// Whether a conversion takes lanes of one type to lanes of another.
fn converts(op: Conv, from: Lane, to: Lane) -> bool {
    match op {
        Conv::Bits => from.bytes() == to.bytes(),
        Conv::Value => to.is_float() && from != to,
        Conv::ValueU => to.is_float() && !from.is_float(),
        Conv::Trunc => from.is_float() && !to.is_float(),
        Conv::Extend | Conv::ExtendU => from == Lane::I32 && to == Lane::I64,
        Conv::Narrow => from == Lane::I64 && to == Lane::I32,
    }
}
