//! Exchange with the host and among participants, also when it is begun and ended in two.

use std::collections::HashMap;

use helio_ir::ops::{AllGather, AllToAll, CollectiveAttrs, Recv, ReduceScatter, transfer_pairs};
use helio_ir::{Array, Error, Instr, InstrId, Literal, Op, Result, Shape};

use super::Value;
use super::computation::Frame;
use super::operation::part;
use crate::front_end;
use crate::mlir::{Attribute, Field};
use crate::table::{Collective, Pairs, Writing, channel_handle};

/// The types of channels: to a device, to the host, from the host.
const DEVICE: i64 = 1;
const TO_HOST: i64 = 2;
const FROM_HOST: i64 = 3;

impl Frame<'_, '_, '_> {
    /// In StableHLO values stand apart, before the token, and a transfer is one operation: it is made
    /// where the program has begun it.
    pub(super) fn host(&mut self, id: InstrId, instr: &Instr) -> Result<Value> {
        let text = |config: &Option<String>| {
            let text = config.as_deref().map(front_end::unquoted).transpose();
            text.map(|text| Attribute::String(text.unwrap_or_default()))
        };
        match &instr.op {
            Op::Infeed(op) => {
                let attributes = vec![("infeed_config".to_owned(), text(&op.config)?)];
                let operands = self.leaves(instr)?;
                self.emit_shape("stablehlo.infeed", operands, attributes, &instr.shape, Vec::new())
            }
            Op::Outfeed(op) => {
                let attributes = vec![("outfeed_config".to_owned(), text(&op.config)?)];
                let operands = self.leaves(instr)?;
                self.emit_shape("stablehlo.outfeed", operands, attributes, &instr.shape, Vec::new())
            }
            Op::Send(op) => {
                let attributes = transfer(instr, op.channel_id, op.is_host_transfer, TO_HOST)?;
                let operands = self.leaves(instr)?;
                let name = "stablehlo.send";
                let token =
                    self.emit_shape(name, operands, attributes, &Shape::Token, Vec::new())?;
                let (value, context) = (self.operand(instr, 0)?, self.context(&instr.shape, 1)?);
                Ok(Value::Tuple(vec![value, context, token]))
            }
            Op::Recv(_) if self.is_received_later(id) => Ok(Value::Tuple(Vec::new())),
            Op::Recv(op) => {
                let both = self.receive(op, instr)?;
                let context = self.context(&instr.shape, 1)?;
                Ok(Value::Tuple(vec![part(both.clone(), 0)?, context, part(both, 1)?]))
            }
            Op::SendDone(_) => part(self.operand(instr, 0)?, 2),
            Op::RecvDone(_) => {
                let begun = instr.operands[0];
                let begin = self.computation.instr(begun);
                if let Op::Recv(op) = &begin.op
                    && self.is_received_later(begun)
                {
                    return self.receive(op, begin);
                }
                let all = self.operand(instr, 0)?;
                Ok(Value::Tuple(vec![part(all.clone(), 0)?, part(all, 2)?]))
            }
            _ => Err(Error::internal(format!("instruction {} is no transfer", id.index()))),
        }
    }

    /// The value and the token of a transfer that an instruction begins.
    fn receive(&mut self, op: &Recv, begin: &Instr) -> Result<Value> {
        let attributes = transfer(begin, op.channel_id, op.is_host_transfer, FROM_HOST)?;
        let operands = self.leaves(begin)?;
        let both = Shape::Tuple(vec![op.shape.clone(), Shape::Token]);
        let first = self.block.operations.len();
        let both = self.emit_shape("stablehlo.recv", operands, attributes, &both, Vec::new())?;
        self.say(first, begin)?;
        Ok(both)
    }

    /// Whether a `recv` is used by one `recv-done` of this computation and nothing else. Such a one is made
    /// where it is done, since in StableHLO it waits: what stands between, as the `send` of another
    /// participant's `recv`, comes first.
    fn is_received_later(&mut self, id: InstrId) -> bool {
        let computation = self.computation;
        let later = self.received_later.get_or_insert_with(|| {
            let mut uses: HashMap<InstrId, (usize, bool)> = HashMap::new();
            for user in computation.instrs() {
                for &operand in &user.operands {
                    if matches!(computation.instr(operand).op, Op::Recv(_)) {
                        let (count, is_done) = uses.entry(operand).or_insert((0, true));
                        *count += 1;
                        *is_done &= matches!(user.op, Op::RecvDone(_));
                    }
                }
            }
            let once = uses
                .into_iter()
                .filter(|&(id, uses)| uses == (1, true) && id != computation.root());
            once.map(|(id, _)| id).collect()
        });
        later.contains(&id)
    }

    /// The zero that stands for what a back end keeps between begin and end: an element of this shape.
    fn context(&mut self, shape: &Shape, index: usize) -> Result<Value> {
        let part = shape.as_tuple().and_then(|parts| parts.get(index));
        match part {
            Some(Shape::Array(array)) => {
                let zeros = vec![0; array.size_bytes()];
                let zeros = Array::from_bytes(array.clone(), &zeros)?;
                self.literal(&Literal::Array(zeros))
            }
            _ => Err(Error::unimplemented("what is begun has a context that is no array")),
        }
    }

    /// Collectives whose attributes name the dimension and the parts; the result has this shape.
    pub(super) fn collective(&mut self, op: &Op, instr: &Instr, shape: &Shape) -> Result<Value> {
        let operands = self.leaves(instr)?;
        let size = |value: usize| Attribute::i64(value as i64);
        let field = |name: &str, value: usize| (name.to_owned(), size(value));
        let (name, attributes, region) = match op {
            Op::AllGather(op) => {
                let AllGather { attrs, dimension, .. } = &**op;
                let mut fields = vec![field("all_gather_dim", *dimension)];
                fields.extend(shared(attrs)?);
                ("stablehlo.all_gather", fields, None)
            }
            Op::ReduceScatter(op) => {
                let ReduceScatter { attrs, dimension, to_apply, .. } = &**op;
                let mut fields = vec![field("scatter_dimension", *dimension)];
                fields.extend(shared(attrs)?);
                ("stablehlo.reduce_scatter", fields, Some(*to_apply))
            }
            Op::AllToAll(op) if op.dimension.is_some() => {
                let AllToAll { attrs, dimension } = &**op;
                let dimension = dimension.unwrap_or_default();
                let groups = attrs.replica_groups.lists()?;
                let config = &self.raising.hlo.config;
                let all = match attrs.channel_id {
                    None => config.replica_count,
                    Some(_) => config.num_partitions,
                };
                let count = groups.first().map_or(all.unwrap_or(1), Vec::len);
                let mut fields = vec![
                    field("split_dimension", dimension),
                    field("concat_dimension", dimension),
                    field("split_count", count),
                ];
                fields.extend(shared(attrs)?);
                fields.retain(|(name, _)| name != "use_global_device_ids");
                ("stablehlo.all_to_all", fields, None)
            }
            _ => return Err(Error::unimplemented("an all-to-all of operands, not of a dimension")),
        };
        let regions = region.map(|id| self.region(id)).transpose()?.into_iter().collect();
        self.emit_shape(name, operands, attributes, shape, regions)
    }

    /// What is begun is done at once; what ends it gives its result.
    pub(super) fn asynchronous(&mut self, instr: &Instr) -> Result<Value> {
        match &instr.op {
            Op::AllReduceStart(begun) => {
                let operands = self.leaves(instr)?;
                self.row(&Op::from(begun.op.clone()), operands, instr, &instr.shape)
            }
            Op::AllGatherStart(begun) => {
                let shape = self.part_of(instr, 1)?;
                let result = self.collective(&Op::from(begun.op.clone()), instr, &shape)?;
                Ok(Value::Tuple(vec![self.operands_as(instr)?, result]))
            }
            Op::CollectivePermuteStart(begun) => {
                let (shape, operands) = (self.part_of(instr, 1)?, self.leaves(instr)?);
                let op = Op::from(begun.op.clone());
                let result = self.row(&op, operands, instr, &shape)?;
                let mut parts = vec![self.operand(instr, 0)?, result];
                for i in 0..begun.contexts.len() {
                    parts.push(self.context(&instr.shape, i + 2)?);
                }
                Ok(Value::Tuple(parts))
            }
            Op::CopyStart(_) => {
                let (copy, context) = (self.operand(instr, 0)?, self.context(&instr.shape, 2)?);
                Ok(Value::Tuple(vec![copy.clone(), copy, context]))
            }
            Op::AsyncStart(begun) => {
                let operands = self.leaves(instr)?;
                let callee = vec![("callee".to_owned(), self.symbol(begun.calls))];
                let shape = self.part_of(instr, 1)?;
                let result = self.emit_shape("func.call", operands, callee, &shape, Vec::new())?;
                let given = instr.operands.iter().map(|&id| self.value(id));
                let mut parts = vec![Value::Tuple(given.collect::<Result<_>>()?), result];
                for i in 2..instr.shape.as_tuple().map_or(0, <[Shape]>::len) {
                    parts.push(self.context(&instr.shape, i)?);
                }
                Ok(Value::Tuple(parts))
            }
            Op::CopyDone(_) => part(self.operand(instr, 0)?, 0),
            Op::AllReduceDone(_) => self.operand(instr, 0),
            _ => part(self.operand(instr, 0)?, 1),
        }
    }

    /// The shape of an element of an instruction's result.
    fn part_of(&self, instr: &Instr, index: usize) -> Result<Shape> {
        let part = instr.shape.as_tuple().and_then(|parts| parts.get(index));
        part.cloned().ok_or_else(|| Error::invalid("what is begun must give a tuple"))
    }

    /// The operands as one value: a tuple, if there are several.
    fn operands_as(&self, instr: &Instr) -> Result<Value> {
        match instr.operands[..] {
            [only] => self.value(only),
            _ => {
                let parts = instr.operands.iter().map(|&id| self.value(id));
                parts.collect::<Result<_>>().map(Value::Tuple)
            }
        }
    }
}

/// The attributes of who takes part.
fn shared(attrs: &CollectiveAttrs) -> Result<Vec<Field>> {
    let mut to = Writing { operands: &[], attributes: Vec::new(), regions: Vec::new() };
    Collective.write(attrs, &mut to)?;
    Ok(to.attributes)
}

/// The attributes of a transfer over a channel. Errors: those of the pairs that it states.
fn transfer(
    instr: &Instr,
    channel: Option<i64>,
    is_host: bool,
    host_type: i64,
) -> Result<Vec<Field>> {
    let ty = if is_host { host_type } else { DEVICE };
    let mut to = Writing { operands: &[], attributes: Vec::new(), regions: Vec::new() };
    to.attributes = vec![
        ("channel_handle".to_owned(), channel_handle(channel.unwrap_or(0), ty)),
        ("is_host_transfer".to_owned(), Attribute::Bool(is_host)),
    ];
    if let Some(pairs) = transfer_pairs(instr)? {
        Pairs("source_target_pairs").write(&pairs, &mut to)?;
    }
    Ok(to.attributes)
}
