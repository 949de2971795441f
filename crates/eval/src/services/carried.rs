//! Values on their way between a program and its host, or between programs.
//!
//! Compiled programs have them as memory, the interpreter as literals; whoever is at the other end takes
//! and gives them in the form that it likes better.

use helio_ir::{Array, Error, Literal, Result, Shape};

/// A value that a program gives away.
pub struct Outgoing<'a>(Form<'a>);

enum Form<'a> {
    Literal(Literal),
    Memory { shape: &'a Shape, leaves: &'a [&'a [u8]] },
}

impl<'a> Outgoing<'a> {
    /// A literal.
    pub fn literal(value: Literal) -> Self {
        Outgoing(Form::Literal(value))
    }

    /// A value of this shape, whose sizes are all known before the run: the bytes of its arrays, row-major,
    /// tuples taken apart; tokens have none.
    pub fn memory(shape: &'a Shape, leaves: &'a [&'a [u8]]) -> Self {
        Outgoing(Form::Memory { shape, leaves })
    }

    /// Its shape.
    pub fn shape(&self) -> Shape {
        match &self.0 {
            Form::Literal(value) => value.shape(),
            Form::Memory { shape, .. } => (*shape).clone(),
        }
    }

    /// The bytes of its arrays where the program has them, tuples taken apart; `None` if it is a literal.
    pub fn leaves(&self) -> Option<&'a [&'a [u8]]> {
        match self.0 {
            Form::Literal(_) => None,
            Form::Memory { leaves, .. } => Some(leaves),
        }
    }

    /// The value, copied from the program's memory. Errors: `ResourceExhausted`.
    pub fn into_literal(self) -> Result<Literal> {
        match self.0 {
            Form::Literal(value) => Ok(value),
            Form::Memory { shape, leaves } => {
                Literal::from_leaves(shape, &mut leaves.iter().copied())
            }
        }
    }

    /// As [`Outgoing::into_literal`], in the memory of `old` if that has the same shape and nobody shares it.
    /// Errors: `ResourceExhausted`.
    pub fn into_literal_in(self, mut old: Literal) -> Result<Literal> {
        let Form::Memory { shape, leaves } = &self.0 else { return self.into_literal() };
        if !old.has_shape(shape) {
            return self.into_literal();
        }
        let mut leaves = leaves.iter();
        old.each_leaf_mut(&mut |leaf| {
            let bytes = leaves.next().ok_or_else(missing)?;
            match leaf {
                Literal::Array(array) => array.overwrite(bytes),
                Literal::Tuple(_) | Literal::Token => Ok(()),
            }
        })?;
        Ok(old)
    }
}

/// Where a value goes that a program gets.
pub struct Incoming<'a, 'm> {
    shape: &'a Shape,
    place: Destination<'a, 'm>,
}

enum Destination<'a, 'm> {
    Literal(&'a mut Option<Literal>),
    Memory(&'a mut [&'m mut [u8]]),
}

impl<'a, 'm> Incoming<'a, 'm> {
    /// A literal of this shape is to be put there.
    pub fn literal(shape: &'a Shape, place: &'a mut Option<Literal>) -> Self {
        Incoming { shape, place: Destination::Literal(place) }
    }

    /// The arrays of a value of this shape, whose sizes are all known before the run, are to be written
    /// there, row-major, tuples taken apart; tokens have no bytes.
    pub fn memory(shape: &'a Shape, leaves: &'a mut [&'m mut [u8]]) -> Self {
        Incoming { shape, place: Destination::Memory(leaves) }
    }

    /// The shape that the value must have.
    pub fn shape(&self) -> &'a Shape {
        self.shape
    }

    /// The program's memory for the arrays, to be written whole; `None` if a literal is wanted
    /// ([`Incoming::put`]). What it holds before means nothing.
    pub fn leaves(&mut self) -> Option<&mut [&'m mut [u8]]> {
        match &mut self.place {
            Destination::Literal(_) => None,
            Destination::Memory(leaves) => Some(leaves),
        }
    }

    /// Gives the value. What is left of it is a literal whose memory can be used again: the value, if it
    /// was copied. Errors: `InvalidArgument` if it has another shape; `literal.C1`.
    pub fn put(&mut self, mut value: Literal) -> Result<Option<Literal>> {
        if !value.has_shape(self.shape) {
            let found = value.shape();
            return Err(Error::invalid(format!("expected {}, found {found}", self.shape)));
        }
        match &mut self.place {
            Destination::Literal(place) => {
                value.ensure_whole()?;
                **place = Some(value);
                Ok(None)
            }
            Destination::Memory(leaves) => {
                let mut leaves = leaves.iter_mut();
                value.each_leaf_mut(&mut |leaf| {
                    let bytes = leaves.next().ok_or_else(missing)?;
                    leaf.as_array().map_or(Ok(()), |array| write(array, bytes))
                })?;
                Ok(Some(value))
            }
        }
    }
}

fn write(array: &Array, bytes: &mut [u8]) -> Result<()> {
    array.ensure_whole()?;
    array.write_to(bytes)
}

fn missing() -> Error {
    Error::internal("an array of a transfer has no memory")
}
