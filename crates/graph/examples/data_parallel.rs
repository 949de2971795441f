//! A network learns on four replicas at once, each with a quarter of the data.
//!
//! `cargo run --release --example data_parallel -- [loss.svg]`
//!
//! With MPI, in as many processes as `mpirun` starts, each with its part of the replicas:
//! `cargo build --release -p helio-graph --features mpi --example data_parallel`, then
//! `mpirun -n 4 target/release/examples/data_parallel --mpi [loss.svg]`.
//!
//! In each step a replica computes the gradient of its own data, and all take the mean of theirs: an
//! all-reduce. The same network learns on one replica with all of the data, and the two loss curves,
//! printed and drawn into the SVG file, are the same but for rounding.

use std::time::Instant;

use helio::{DeviceAssignment, RunOptions};
use helio_graph::{
    Array, ElementType, Error, Graph, Program, ProgramOptions, Replicas, Result, Tensor,
};

const REPLICAS: usize = 4;
const POINTS: usize = 512;
const HIDDEN: usize = 32;
const STEPS: usize = 200;
/// How far the layers go down the gradient in a step: what the products of 32 hidden numbers bear.
const RATE: f64 = 0.03;
/// Steps from one printed loss to the next.
const PRINTED: usize = 20;

/// Weights and offsets of both layers.
type Layers = [Tensor; 4];

/// One step of gradient descent on `points` points for each of `replicas` replicas: the loss before it,
/// and the layers after it.
fn step(points: usize, replicas: usize, options: &ProgramOptions) -> Result<Program> {
    let g = Graph::new("step");
    let all = Replicas::all(replicas);
    let x = g.input("x", ElementType::F32, [points, 2]);
    let y = g.input("y", ElementType::F32, [points, 1]);
    let layers: Layers = [
        g.input("w1", ElementType::F32, [2, HIDDEN]),
        g.input("b1", ElementType::F32, [HIDDEN]),
        g.input("w2", ElementType::F32, [HIDDEN, 1]),
        g.input("b2", ElementType::F32, [1]),
    ];
    let [w1, b1, w2, b2] = &layers;
    let hidden = (x.matmul(w1) + b1).tanh();
    let error = hidden.matmul(w2) + b2 - y;
    let loss = (&error * &error).mean(..).replica_mean(&all);
    // The derivative of the mean square by each value of the last layer, and back through both.
    let d_error = error * (2.0 / points as f32);
    let d_hidden = d_error.matmul(w2.t()) * (1.0 - &hidden * &hidden);
    let gradient =
        [x.t().matmul(&d_hidden), d_hidden.sum(0), hidden.t().matmul(&d_error), d_error.sum(0)];
    let next: Layers = std::array::from_fn(|i| &layers[i] - gradient[i].replica_mean(&all) * RATE);
    g.compile_with((loss, next), options)
}

/// Points of the plane, what is to be learnt of each, and the layers to begin with.
fn beginning() -> Result<Vec<Array>> {
    let g = Graph::new("beginning");
    let random = g.random(1);
    let x = random.uniform(ElementType::F32, [POINTS, 2]) * 2.0 - 1.0;
    let radius = (&x * &x).sum(1).expand_dims(-1);
    let y = (radius * 6.0).sin();
    let layers = [
        random.normal(ElementType::F32, [2, HIDDEN]) * 2.0,
        random.normal(ElementType::F32, [HIDDEN]),
        random.normal(ElementType::F32, [HIDDEN, 1]) * 0.2,
        g.zeros(ElementType::F32, [1]),
    ];
    g.compile((x, y, layers))?.run(&[] as &[Array])
}

/// Row `part` of `parts`, in order, of an array of numbers.
fn part(array: &Array, part: usize, parts: usize) -> Result<Array> {
    let mut dims = array.dims().to_vec();
    dims[0] /= parts;
    let values = array.values::<f32>()?;
    let size = values.len() / parts;
    Array::new(dims, values[part * size..][..size].to_vec())
}

/// The losses of all steps on the replicas of an assignment, of which some may run in other processes:
/// then `options` say how to reach them.
fn train(assignment: &DeviceAssignment, options: &RunOptions, made: &[Array]) -> Result<Vec<f32>> {
    let replicas = assignment.replicas();
    let program = step(POINTS / replicas, replicas, &ProgramOptions::assigned(assignment.clone()))?;
    let data = assignment.here().map(|replica| {
        made[..2].iter().map(|array| part(array, replica, replicas)).collect::<Result<Vec<_>>>()
    });
    let data = data.collect::<Result<Vec<_>>>()?;
    let mut layers = made[2..].to_vec();
    let mut losses = Vec::new();
    for _ in 0..STEPS {
        let own = |data: &Vec<Array>| data.iter().chain(&layers).cloned().collect::<Vec<_>>();
        let arguments: Vec<Vec<Array>> = data.iter().map(own).collect();
        let mut results = program.run_all(&arguments, options)?;
        // All replicas have the same layers after the step, to the last bit.
        let same = |other: &Vec<Array>| other.iter().zip(&results[0]).all(|(a, b)| a.same_bits(b));
        if !results.iter().all(same) {
            return Err(Error::internal("replicas differ"));
        }
        layers = results.swap_remove(0);
        losses.extend_from_slice(layers.remove(0).values::<f32>()?);
    }
    Ok(losses)
}

/// The curves of losses as an SVG image: logarithms of the losses over steps.
fn svg(curves: &[(&str, &str, &[f32])]) -> String {
    const WIDTH: f32 = 640.0;
    const HEIGHT: f32 = 360.0;
    const MARGIN: f32 = 50.0;
    let logs = || curves.iter().flat_map(|(_, _, losses)| losses.iter().map(|loss| loss.log10()));
    let (low, high) =
        (logs().fold(f32::MAX, f32::min).floor(), logs().fold(f32::MIN, f32::max).ceil());
    let x = |step: usize| MARGIN + (WIDTH - 2.0 * MARGIN) * step as f32 / (STEPS - 1) as f32;
    let y = |log: f32| HEIGHT - MARGIN - (HEIGHT - 2.0 * MARGIN) * (log - low) / (high - low);
    let mut image = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    let mut line = |text: String| {
        image.push_str(&text);
        image.push('\n');
    };
    for log in low as i32..=high as i32 {
        let (at, left, right) = (y(log as f32), MARGIN, WIDTH - MARGIN);
        line(format!(
            "<path d=\"M{left} {at}H{right}\" stroke=\"#ddd\"/><text x=\"{}\" y=\"{}\" \
             text-anchor=\"end\">1e{log}</text>",
            left - 6.0,
            at + 4.0
        ));
    }
    for step in (0..=STEPS).step_by(STEPS / 4) {
        let at = x(step.min(STEPS - 1));
        line(format!(
            "<text x=\"{at}\" y=\"{}\" text-anchor=\"middle\">{step}</text>",
            HEIGHT - MARGIN + 18.0
        ));
    }
    line(format!(
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">step</text><text x=\"{MARGIN}\" y=\"{}\">loss</text>",
        WIDTH / 2.0,
        HEIGHT - 10.0,
        MARGIN - 20.0
    ));
    for (i, (name, style, losses)) in curves.iter().enumerate() {
        let points = losses
            .iter()
            .enumerate()
            .map(|(step, loss)| format!("{:.1},{:.1}", x(step), y(loss.log10())));
        let points = points.collect::<Vec<_>>().join(" ");
        line(format!("<polyline points=\"{points}\" fill=\"none\" {style}/>"));
        let (left, at) = (WIDTH - MARGIN - 150.0, MARGIN + 18.0 * i as f32);
        line(format!(
            "<path d=\"M{left} {at}h24\" {style}/><text x=\"{}\" y=\"{}\">{name}</text>",
            left + 30.0,
            at + 4.0
        ));
    }
    line("</svg>".to_owned());
    image
}

/// The losses on four replicas, in all processes that `mpirun` has started; `None` in all but the first
/// of them.
#[cfg(feature = "mpi")]
fn train_over_mpi(made: &[Array]) -> Result<Option<Vec<f32>>> {
    let processes = helio_processes::connect(helio_processes::Options::default())?;
    let assignment = processes.assign(REPLICAS, 1)?;
    let mut options = RunOptions::default();
    processes.connect(&mut options, &assignment);
    let losses = train(&assignment, &options, made)?;
    let is_first = processes.rank() == 0;
    processes.close();
    Ok(is_first.then_some(losses))
}

#[cfg(not(feature = "mpi"))]
fn train_over_mpi(_: &[Array]) -> Result<Option<Vec<f32>>> {
    Err(Error::invalid("this program was built without the feature mpi"))
}

fn main() -> Result<()> {
    let is_mpi = |arg: &String| arg == "--mpi";
    let (flags, paths): (Vec<String>, Vec<String>) = std::env::args().skip(1).partition(is_mpi);
    let made = beginning()?;
    let start = Instant::now();
    let alone = RunOptions::default();
    let several = match flags.is_empty() {
        true => train(&DeviceAssignment::iota(REPLICAS, 1)?, &alone, &made)?,
        false => match train_over_mpi(&made)? {
            Some(losses) => losses,
            None => return Ok(()),
        },
    };
    let time = start.elapsed();
    let one = train(&DeviceAssignment::iota(1, 1)?, &alone, &made)?;
    println!("{:>5} {:>12} {:>12}", "step", "4 replicas", "1 replica");
    for (step, (a, b)) in several.iter().zip(&one).enumerate() {
        if step % PRINTED == 0 || step + 1 == STEPS {
            println!("{step:5} {a:12.7} {b:12.7}");
        }
    }
    let apart = several.iter().zip(&one).map(|(a, b)| (a - b).abs() / b).fold(0.0, f32::max);
    println!(
        "{STEPS} steps on {REPLICAS} replicas in {:.3} s; losses differ by {apart:.1e} of them at most",
        time.as_secs_f64()
    );
    // (Numbers that are none are neither near nor less.)
    if !several.iter().zip(&one).all(|(a, b)| (a - b).abs() <= 1e-3 * b) {
        return Err(Error::internal("the losses differ by more than rounding"));
    }
    if several.last() >= several.first() {
        return Err(Error::internal("nothing has been learnt"));
    }
    if let Some(path) = paths.first() {
        let curves: [(&str, &str, &[f32]); 2] = [
            ("1 replica", "stroke=\"#f4a261\" stroke-width=\"5\"", &one),
            ("4 replicas", "stroke=\"#264653\" stroke-width=\"1.5\"", &several),
        ];
        std::fs::write(path, svg(&curves)).map_err(|e| Error::invalid(format!("{path}: {e}")))?;
        println!("{path}");
    }
    Ok(())
}
