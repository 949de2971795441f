//! A JAX model in a Rust program: `examples/jax_export/model.py` has written a network and its training
//! step, for any batch size, with `jax.export`; this trains it and asks it.
//!
//! `cargo run --release -p helio --example jax_export`

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use helio::{
    Array, CompileOptions, Error, Errors, Executable, Interface, Literal, ProgramFile, Shape,
};

/// Values by name.
type Named = BTreeMap<String, Literal>;

/// A program of a file for one batch size, called by the names of its arguments.
struct Model {
    program: Executable,
    interface: Interface,
}

impl Model {
    fn new(file: &ProgramFile, batch: usize) -> Result<Self, Errors> {
        // The sizes that the file leaves open are those of the batch.
        let shapes = file.argument_shapes()?;
        let shapes = shapes.iter().map(|shape| with_batch(shape, batch));
        let shapes = shapes.collect::<Result<Vec<_>, _>>()?;
        let program = helio::compile(file.module_for(&shapes)?, &CompileOptions::default())?;
        Ok(Model { program, interface: file.interface()? })
    }

    fn call(&self, arguments: Named) -> Result<Named, Error> {
        let arguments = self.interface.arguments(arguments)?;
        self.interface.results(self.program.run(&arguments)?)
    }
}

fn with_batch(shape: &Shape, batch: usize) -> Result<Shape, Error> {
    use helio::ir::DimKind;
    let Shape::Array(array) = shape else { return Ok(shape.clone()) };
    let sizes = array.dims_and_kinds();
    let sizes = sizes.map(|(size, kind)| if kind == DimKind::Unbounded { batch } else { size });
    Shape::array(array.element(), sizes.collect::<Vec<_>>())
}

fn file(name: &str) -> Result<ProgramFile, Errors> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/jax_export");
    let path: PathBuf = dir.join(name);
    let bytes =
        std::fs::read(&path).map_err(|e| Error::invalid(format!("{}: {e}", path.display())))?;
    ProgramFile::read(&bytes)
}

/// Points in [-3, 3], in a column.
fn points(count: usize) -> Result<Literal, Error> {
    let xs = (0..count).map(|i| 6.0 * i as f32 / (count - 1) as f32 - 3.0).collect();
    Ok(Array::new([count, 1], xs)?.into())
}

fn floats(literal: &Literal) -> &[f32] {
    literal.as_array().and_then(|array| array.as_slice()).unwrap_or_default()
}

fn main() -> Result<(), Errors> {
    let step = Model::new(&file("step.jax")?, 64)?;
    let predict = Model::new(&file("predict.jax")?, 5)?;
    let (parameters, losses) = train(&step)?;
    println!("loss {} -> {} in {} steps", losses[0], losses[losses.len() - 1], losses.len());
    let (x, y) = ask(&predict, parameters)?;
    for (x, y) in x.iter().zip(&y) {
        println!("sin({x:5.2}) = {:6.3}, the network says {y:6.3}", x.sin());
    }
    Ok(())
}

/// The network's parameters after some steps towards the sine, and the loss before each step.
fn train(step: &Model) -> Result<(Named, Vec<f32>), Error> {
    let shapes = &step.program.program_shape().params;
    let mut parameters = Named::new();
    for (info, shape) in step.interface.parameters.iter().zip(shapes) {
        let name = info.name.clone().unwrap_or_default();
        if let (true, Shape::Array(array)) = (name.starts_with("params"), shape) {
            let count = array.element_count();
            // Small numbers without a pattern.
            let values = (0..count).map(|i| ((i * i * 37 + i * 11) % 101) as f32 / 101.0 - 0.5);
            let values = Array::new(array.dims(), values.collect::<Vec<f32>>())?;
            parameters.insert(name, values.into());
        }
    }
    let x = points(64)?;
    let y: Vec<f32> = floats(&x).iter().map(|x| x.sin()).collect();
    let y = Literal::from(Array::new([64, 1], y)?);
    let mut losses = Vec::new();
    for _ in 0..2000 {
        let mut arguments = parameters.clone();
        arguments.insert("x".to_owned(), x.clone());
        arguments.insert("y".to_owned(), y.clone());
        arguments.insert("rate".to_owned(), Literal::scalar(0.1_f32));
        for (name, value) in step.call(arguments)? {
            match name.strip_prefix("result['params']") {
                Some(path) => drop(parameters.insert(format!("params{path}"), value)),
                None => losses.push(floats(&value)[0]),
            }
        }
    }
    Ok((parameters, losses))
}

/// Five points and what the network makes of them.
fn ask(predict: &Model, mut arguments: Named) -> Result<(Vec<f32>, Vec<f32>), Error> {
    let x = points(5)?;
    arguments.insert("x".to_owned(), x.clone());
    let results = predict.call(arguments)?;
    Ok((floats(&x).to_vec(), floats(&results["result"]).to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_network_learns() {
        let step = Model::new(&file("step.jax").unwrap(), 64).unwrap();
        let (parameters, losses) = train(&step).unwrap();
        assert!(losses[losses.len() - 1] < 0.1 * losses[0], "{losses:?}");
        let predict = Model::new(&file("predict.jax").unwrap(), 5).unwrap();
        let (x, y) = ask(&predict, parameters).unwrap();
        for (x, y) in x.iter().zip(&y) {
            assert!((x.sin() - y).abs() < 0.3, "{x}: {y}");
        }
    }
}
