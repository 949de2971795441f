//! One block of a transformer that predicts the next token: attention, then a network of two layers,
//! both on normalised values and added to their input.
//!
//! `cargo run --release --example transformer`
//!
//! Batch and length are symbolic: the program compiles for each size that it is called with. The
//! weights are random, so the predictions are, too; what is printed shows that a prediction depends
//! on earlier tokens only, and how long calls take.

use std::cell::Cell;
use std::time::Instant;

use helio_graph::{
    Array, Dim, ElementType, Gelu, Graph, Mask, Program, Result, Tensor, attention, embedding,
};

const TOKENS: usize = 256;
const WIDTH: usize = 128;
const HEADS: usize = 4;
const LENGTH: usize = 512;

/// Makes up weights: constants of the program, each from a seed of its own.
#[derive(Default)]
struct Init {
    seed: Cell<u64>,
}

impl Init {
    fn normal(&self, g: &Graph, shape: [usize; 2], deviation: f32) -> Result<Tensor> {
        self.seed.set(self.seed.get() + 1);
        let once = Graph::new("init");
        let weights = once.random(self.seed.get()).normal(ElementType::F32, shape) * deviation;
        let mut made = once.compile(weights)?.run(&[] as &[Array])?;
        Ok(g.constant(made.remove(0)))
    }

    /// `[…, inputs]` to `[…, outputs]`.
    fn linear(&self, x: &Tensor, outputs: usize) -> Result<Tensor> {
        let inputs = x.dim(-1)?.size().unwrap_or(1);
        let deviation = 1.0 / (inputs as f32).sqrt();
        Ok(x.matmul(self.normal(x.graph(), [inputs, outputs], deviation)?))
    }

    /// `[batch, length, WIDTH]` to the same, each position a mean of values at earlier ones.
    fn self_attention(&self, x: &Tensor) -> Result<Tensor> {
        let (batch, length) = (x.dim(0)?, x.dim(1)?);
        let heads =
            |x: Tensor| x.reshape((&batch, &length, HEADS, WIDTH / HEADS)).transpose(&[0, 2, 1, 3]);
        let query = heads(self.linear(x, WIDTH)?);
        let key = heads(self.linear(x, WIDTH)?);
        let value = heads(self.linear(x, WIDTH)?);
        let mixed = attention(&query, &key, &value, &Mask::Causal);
        self.linear(&mixed.transpose(&[0, 2, 1, 3]).reshape((&batch, &length, WIDTH)), WIDTH)
    }
}

fn transformer() -> Result<Program> {
    let (g, init) = (Graph::new("transformer"), Init::default());
    let ids = g.input("ids", ElementType::S32, ("batch", "length"));

    let table = init.normal(&g, [TOKENS, WIDTH], 1.0)?;
    let places = init.normal(&g, [LENGTH, WIDTH], 1.0)?;
    let length = Dim::from("length");
    let x = embedding(&table, &ids) + places.take(g.arange(ElementType::S32, length), 0);

    let x = &x + init.self_attention(&x.layer_norm(-1, 1e-5))?;
    let hidden = init.linear(&x.layer_norm(-1, 1e-5), 4 * WIDTH)?.gelu_with(Gelu::Tanh);
    let x = &x + init.linear(&hidden, WIDTH)?;

    let logits = x.layer_norm(-1, 1e-5).matmul(table.t());
    g.compile(logits.logsoftmax(-1))
}

fn main() -> Result<()> {
    let program = transformer()?;
    println!("{program}");

    let text = |text: &str| -> Result<Array> {
        Array::new([1, text.len()], text.bytes().map(i32::from).collect())
    };
    let likelihoods = |ids: Array| -> Result<Vec<f32>> {
        Ok(program.run(&[ids])?[0].as_slice::<f32>().unwrap_or(&[]).to_vec())
    };
    let first = likelihoods(text("to be or not to be")?)?;
    let other = likelihoods(text("to be or not to see")?)?;
    let differ = |position: usize| {
        let part = position * TOKENS..(position + 1) * TOKENS;
        let pairs = first[part.clone()].iter().zip(&other[part]);
        pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
    };
    println!("\"to be or not to be\" and \"to be or not to see\": predictions differ by");
    for position in [0, 8, 15, 16, 17] {
        println!("  {:.2e} after {} tokens", differ(position), position + 1);
    }
    let sum: f32 = first[..TOKENS].iter().map(|v| v.exp()).sum();
    println!("the likelihoods of all tokens sum to {sum:.6}");

    for (batch, length) in [(1, 16), (1, 128), (8, 128), (4, 512)] {
        let ids = (0..batch * length).map(|i| (i * 31 % TOKENS) as i32).collect();
        let ids = Array::new([batch, length], ids)?;
        let start = Instant::now();
        program.run([&ids])?;
        let first = start.elapsed();
        let start = Instant::now();
        program.run([&ids])?;
        let (first, next) = (first.as_secs_f64() * 1e3, start.elapsed().as_secs_f64() * 1e3);
        println!(
            "{batch} texts of {length:3} tokens: {first:7.2} ms with compilation, then {next:7.2} ms"
        );
    }
    Ok(())
}
