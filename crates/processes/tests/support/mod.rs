//! Programs that several processes run, and what they give.
#![allow(dead_code)] // Each test program uses a part of it.

use helio::ir::text::{parse_literal, print_literal};
use helio::{
    Backend, Client, ClientOptions, CompileOptions, DeviceAssignment, Literal, Result, RunOptions,
    Shape,
};
use helio_processes::Processes;
use helio_testkit::collectives::Program;

/// What a program gives for the participants of one process.
pub fn run_part(
    processes: &Processes,
    text: &str,
    counts: (usize, usize),
    args: &[Vec<Literal>],
    backend: Backend,
    mut options: RunOptions,
) -> Result<Vec<Literal>> {
    let assignment = processes.assign(counts.0, counts.1)?;
    let mut client = ClientOptions::default();
    client.devices = assignment.here().len();
    client.threads = Some(1);
    let client = Client::new(&client);
    let mut compile = CompileOptions::default();
    compile.assignment = Some(assignment.clone());
    compile.backend = backend;
    let module = helio::parse(text)?;
    let program = client.compile(module, &compile)?;
    processes.connect(&mut options, &assignment);
    let args: Vec<&[Literal]> = assignment.here().map(|number| args[number].as_slice()).collect();
    program.run_all(&args, &options)
}

/// A program of known results.
pub struct Known {
    /// The arguments of each participant.
    pub args: Vec<Vec<Literal>>,
    result: Shape,
    results: Vec<String>,
}

impl Known {
    pub fn new(program: &Program) -> std::result::Result<Self, String> {
        let counts = program.counts;
        let mut module = helio::parse(&program.text).map_err(|e| format!("{e:?}"))?;
        let assignment = DeviceAssignment::iota(counts.replicas, counts.partitions);
        let assignment = assignment.map_err(|e| e.to_string())?;
        assignment.state_in(&mut module.config).map_err(|e| e.to_string())?;
        let module = helio::ir::verify(module).map_err(|e| format!("{e:?}"))?;
        let shape = module.entry().program_shape();
        let literals = program.inputs.iter().map(|values| {
            let values = values.iter().zip(&shape.params);
            values.map(|(text, shape)| parse_literal(text, shape)).collect()
        });
        let args = literals.collect::<Result<Vec<Vec<_>>>>().map_err(|e| e.to_string())?;
        Ok(Known { args, result: shape.result, results: program.results.clone() })
    }

    /// Errors: what participants give, from the one of this number on, is something else.
    pub fn compare(&self, first: usize, found: &[Literal]) -> std::result::Result<(), String> {
        for (i, found) in found.iter().enumerate() {
            let who = first + i;
            let expected = parse_literal(&self.results[who], &self.result);
            let [found, expected] =
                [found, &expected.map_err(|e| e.to_string())?].map(print_literal);
            if found != expected {
                return Err(format!("participant {who}: {found}, not {expected}"));
            }
        }
        Ok(())
    }
}

const ADD: &str = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }";

/// Sums of large and small arrays, whose rounding shows the order, and parts of them.
pub fn sums() -> String {
    format!(
        "{ADD}
         ENTRY e {{ x = f32[300001] parameter(0) y = f32[5] parameter(1)
           r = (f32[300001], f32[5]) all-reduce(x, y), to_apply=add
           z = f32[300000] slice(x), slice={{[0:300000]}}
           s = f32[75000] reduce-scatter(z), dimensions={{0}}, to_apply=add
           m = f32[4,75000] reshape(z)
           t = f32[4,75000] all-to-all(m), dimensions={{0}}
           n = f32[75000,4] reshape(z)
           u = f32[75000,4] all-to-all(n), dimensions={{1}}
           v = f32[75000,1] reduce-scatter(n), dimensions={{1}}, to_apply=add
           ROOT o = ((f32[300001], f32[5]), f32[75000], f32[4,75000], f32[75000,4], f32[75000,1])
             tuple(r, s, t, u, v) }}"
    )
}

/// Arguments of [`sums`].
pub fn sums_of(replicas: usize) -> Vec<Vec<Literal>> {
    let arrays = |replica: usize| {
        let values =
            |n: usize| (0..n).map(move |i| ((i * 7 + replica * 13) % 101) as f32 * 0.1 + 1e3);
        let large = Literal::array([300001], values(300001).collect()).unwrap();
        vec![large, Literal::array([5], values(5).map(|x| x / 3.0).collect()).unwrap()]
    };
    (0..replicas).map(arrays).collect()
}

/// A loop that each replica goes through as often as its argument says, with a sum in each round.
pub fn rounds() -> String {
    format!(
        "{ADD}
         cond {{ s = (u32[], u32[], f32[]) parameter(0) i = u32[] get-tuple-element(s), index=0
           n = u32[] get-tuple-element(s), index=1 ROOT p = pred[] compare(i, n), direction=LT }}
         body {{ s = (u32[], u32[], f32[]) parameter(0) i = u32[] get-tuple-element(s), index=0
           n = u32[] get-tuple-element(s), index=1 x = f32[] get-tuple-element(s), index=2
           total = f32[] all-reduce(x), to_apply=add
           o = u32[] constant(1) j = u32[] add(i, o)
           ROOT t = (u32[], u32[], f32[]) tuple(j, n, total) }}
         ENTRY e {{ n = u32[] parameter(0) z = u32[] constant(0) x = f32[] constant(1)
           s = (u32[], u32[], f32[]) tuple(z, n, x)
           w = (u32[], u32[], f32[]) while(s), condition=cond, body=body
           ROOT r = f32[] get-tuple-element(w), index=2 }}"
    )
}

/// Which of the pairs of replicas a channel connects.
fn pairs(pairs: &str) -> String {
    format!("channel_id=1, frontend_attributes={{_xla_send_recv_source_target_pairs={pairs}}}")
}

/// Each of two replicas does what its argument says. Replica 0 (with 0) receives a value of replica 1 and
/// then sums it over both. Replica 1 (with 1) sums first and then sends, so that they wait for each other;
/// or (with 2) ends without sending.
pub fn values() -> String {
    let channel = pairs("{{1,0}}");
    format!(
        "{ADD}
         gets {{ x = f32[3] parameter(0) t = token[] after-all()
           r = (f32[3], u32[], token[]) recv(t), {channel}
           w = (f32[3], token[]) recv-done(r), channel_id=1
           v = f32[3] get-tuple-element(w), index=0
           ROOT y = f32[3] all-reduce(v), channel_id=7, to_apply=add }}
         gives {{ x = f32[3] parameter(0) z = f32[3] all-reduce(x), channel_id=7, to_apply=add
           t = token[] after-all() s = (f32[3], u32[], token[]) send(z, t), {channel}
           d = token[] send-done(s), channel_id=1 ROOT q = f32[3] copy(z) }}
         ends {{ ROOT x = f32[3] parameter(0) }}
         ENTRY e {{ n = u32[] parameter(0) i = s32[] convert(n) o = f32[] constant(1)
           x = f32[3] broadcast(o), dimensions={{}}
           ROOT r = f32[3] conditional(i, x, x, x), branch_computations={{gets, gives, ends}} }}"
    )
}

/// Two replicas that send each other values, in as many rounds as their arguments say.
pub fn values_in_rounds() -> String {
    let channel = pairs("{{0,1},{1,0}}");
    format!(
        "cond {{ s = (u32[], u32[], f32[3]) parameter(0) i = u32[] get-tuple-element(s), index=0
           n = u32[] get-tuple-element(s), index=1 ROOT p = pred[] compare(i, n), direction=LT }}
         body {{ s = (u32[], u32[], f32[3]) parameter(0) i = u32[] get-tuple-element(s), index=0
           n = u32[] get-tuple-element(s), index=1 x = f32[3] get-tuple-element(s), index=2
           t = token[] after-all() g = (f32[3], u32[], token[]) send(x, t), {channel}
           d = token[] send-done(g), channel_id=1
           r = (f32[3], u32[], token[]) recv(t), {channel}
           w = (f32[3], token[]) recv-done(r), channel_id=1
           v = f32[3] get-tuple-element(w), index=0
           o = u32[] constant(1) j = u32[] add(i, o)
           ROOT u = (u32[], u32[], f32[3]) tuple(j, n, v) }}
         ENTRY e {{ n = u32[] parameter(0) z = u32[] constant(0) f = f32[] convert(n)
           x = f32[3] broadcast(f), dimensions={{}} s = (u32[], u32[], f32[3]) tuple(z, n, x)
           w = (u32[], u32[], f32[3]) while(s), condition=cond, body=body
           ROOT r = f32[3] get-tuple-element(w), index=2 }}"
    )
}

/// A number as the argument of each replica.
pub fn numbers(each: &[u32]) -> Vec<Vec<Literal>> {
    each.iter().map(|&n| vec![Literal::scalar(n)]).collect()
}
