//! A network of two layers learns to tell three spirals apart, and draws what it has learnt.
//!
//! `cargo run --release --example mlp`
//!
//! Three programs share one definition of the network: one makes points and weights, one takes 1000
//! steps of gradient descent, and one classifies any number of points.

use std::f64::consts::TAU;
use std::time::Instant;

use helio_graph::prelude::*;

const CLASSES: usize = 3;
const POINTS: usize = 100 * CLASSES;
const HIDDEN: usize = 64;

/// Weights and offsets of both layers.
type Layers = [Tensor; 4];

/// The values of the hidden layer, and the logarithms of likelihoods up to a constant.
fn forward(x: &Tensor, [w1, b1, w2, b2]: &Layers) -> [Tensor; 2] {
    let hidden = (x.matmul(w1) + b1).relu();
    let logits = hidden.matmul(w2) + b2;
    [hidden, logits]
}

/// A step down the gradient of the mean cross entropy.
fn descend(x: &Tensor, labels: &Tensor, layers: Layers) -> Layers {
    let [hidden, logits] = forward(x, &layers);
    let d_logits = (logits.softmax(-1) - labels.one_hot(CLASSES, F32)) / POINTS as f32;
    let d_hidden = d_logits.matmul(layers[2].t()).where_(hidden.greater(0.0), 0.0);
    let gradient =
        [x.t().matmul(&d_hidden), d_hidden.sum(0), hidden.t().matmul(&d_logits), d_logits.sum(0)];
    std::array::from_fn(|i| &layers[i] * 0.9999 - &gradient[i])
}

/// Points on the arms of a spiral, with their arms' numbers, and weights to begin with.
fn beginning() -> Result<Vec<Array>> {
    let g = Graph::new("beginning");
    let random = g.random(1);
    let number = g.arange(S32, POINTS);
    let arm = number.modulo(CLASSES);
    let radius = number.cast(F64) / (POINTS as f64);
    let angle = &radius * (0.7 * TAU)
        + arm.cast(F64) * (TAU / CLASSES as f64)
        + random.normal(F64, POINTS) * 0.12;
    let points = stack(&[&radius * angle.sin(), &radius * angle.cos()], 1).cast(F32);
    let layers = [
        random.normal(F32, [2, HIDDEN]) * 0.5,
        g.zeros(F32, HIDDEN),
        random.normal(F32, [HIDDEN, CLASSES]) * 0.1,
        g.zeros(F32, CLASSES),
    ];
    g.compile((points, arm, layers))?.run(&[])
}

/// The inputs of a graph that are the network's layers.
fn layer_inputs(g: &Graph) -> Layers {
    [
        g.input("w1", F32, [2, HIDDEN]),
        g.input("b1", F32, HIDDEN),
        g.input("w2", F32, [HIDDEN, CLASSES]),
        g.input("b2", F32, CLASSES),
    ]
}

fn main() -> Result<()> {
    let made = beginning()?;
    let (points, labels) = (made[0].clone(), made[1].clone());
    let mut layers = made[2..].to_vec();

    let g = Graph::new("train");
    let x = g.input("x", F32, [POINTS, 2]);
    let y = g.input("labels", S32, POINTS);
    let trained = g.for_loop(0, 1000, layer_inputs(&g), |_, layers| descend(&x, &y, layers));
    let [_, logits] = forward(&x, &trained);
    let loss = logits.cross_entropy(&y).mean(..);
    let train = g.compile((trained, loss))?;

    let g = Graph::new("classify");
    let x = g.input("x", F32, ("batch", 2));
    let [_, logits] = forward(&x, &layer_inputs(&g));
    let classify = g.compile(logits.argmax(-1))?;
    let class_of = |points: &Array, layers: &[Array]| -> Result<Vec<i64>> {
        let arguments: Vec<&Array> = [points].into_iter().chain(layers).collect();
        Ok(classify.run(&arguments)?[0].as_slice::<i64>().unwrap_or(&[]).to_vec())
    };

    let start = Instant::now();
    for thousand in 1..=10 {
        let arguments: Vec<&Array> = [&points, &labels].into_iter().chain(&layers).collect();
        let mut results = train.run(&arguments)?;
        let loss = results.pop().and_then(|loss| loss.as_slice::<f32>().map(|loss| loss[0]));
        layers = results;
        let found = class_of(&points, &layers)?;
        let wanted = labels.as_slice::<i32>().unwrap_or(&[]);
        let right = found.iter().zip(wanted).filter(|&(a, b)| *a == i64::from(*b)).count();
        let loss = loss.unwrap_or(f32::NAN);
        println!("{:5} steps: loss {loss:.4}, {right} of {POINTS} points right", thousand * 1000);
    }
    println!("10000 steps in {:.2} s\n", start.elapsed().as_secs_f64());

    const WIDTH: usize = 64;
    const HEIGHT: usize = 30;
    let at = |i: usize, count: usize| 2.2 * (i as f32 + 0.5) / count as f32 - 1.1;
    let plane =
        (0..HEIGHT).flat_map(|r| (0..WIDTH).flat_map(move |c| [at(c, WIDTH), at(r, HEIGHT)]));
    let plane = Array::new([WIDTH * HEIGHT, 2], plane.collect())?;
    for row in class_of(&plane, &layers)?.chunks(WIDTH) {
        println!(
            "{}",
            row.iter().map(|&class| [' ', '·', '#'][class as usize]).collect::<String>()
        );
    }
    Ok(())
}
