//! Threads whose stack is sized for the limit on nested calls.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, Scope};

use helio_ir::{Error, InstrAt, Literal, Module, Op, Result, memory};

use crate::Evaluator;
use crate::frame::MAX_CALL_DEPTH;

/// Virtual bytes of stack for one nested call. Pages never touched cost nothing.
const CALL_BYTES: usize = 64 << 10;

/// Virtual bytes of stack of such a thread.
const STACK_BYTES: usize = MAX_CALL_DEPTH * CALL_BYTES;

/// Calls nested no deeper than this run on the stack of whoever asks for them.
const MAX_SHALLOW: usize = 4;

/// Runs something on a thread of its own, for the caller's account of memory.
pub(crate) fn on_deep_stack<T: Send>(run: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    let account = memory::Account::current();
    let run = move || {
        let _entered = account.enter();
        run()
    };
    std::thread::scope(|scope| {
        let thread = builder().spawn_scoped(scope, run).map_err(no_thread)?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn builder() -> Builder {
    Builder::new().name("helio-eval".to_owned()).stack_size(STACK_BYTES)
}

fn no_thread(error: std::io::Error) -> Error {
    Error::exhausted(format!("no thread to run on: {error}"))
}

/// For each computation of a module, how deep calls nest when it runs, itself included.
pub fn call_depths(module: &Module) -> Vec<usize> {
    let mut depths: Vec<usize> = Vec::with_capacity(module.computations().len());
    for computation in module.computations() {
        let callees = computation.instrs().iter().flat_map(|instr| instr.op.callees());
        depths.push(1 + callees.map(|id| depths[id.index()]).max().unwrap_or(0));
    }
    depths
}

/// Whether what an operation calls takes more stack than a caller can be expected to have left;
/// `depths` are those of [`call_depths`].
pub fn needs_deep_stack(op: &Op, depths: &[usize]) -> bool {
    op.callees().into_iter().any(|id| depths[id.index()] > MAX_SHALLOW)
}

/// Instructions that one run performs on a thread of its own, which lives as long as its scope.
pub struct DeepStack {
    jobs: Sender<Job>,
    done: Receiver<Done>,
}

struct Job {
    at: InstrAt,
    operands: Vec<Literal>,
    draws: u64,
}

struct Done {
    result: Result<Literal>,
    draws: u64,
}

impl DeepStack {
    /// The thread, for instructions of the evaluator's run and the caller's account of memory. Errors:
    /// the system has no thread.
    pub fn new<'scope>(
        scope: &'scope Scope<'scope, '_>,
        evaluator: &Evaluator<'scope>,
    ) -> Result<Self> {
        let (jobs, to_do) = channel::<Job>();
        let (finished, done) = channel();
        let (module, cx, meter) = (evaluator.module, evaluator.cx, evaluator.meter.clone());
        let account = memory::Account::current();
        let run = move || {
            let _entered = account.enter();
            let evaluator = Evaluator::with_meter(module, cx, meter);
            for Job { at: (computation, id), operands, draws } in to_do {
                evaluator.draws.set(draws);
                let result = evaluator.instruction(computation, id, operands);
                if finished.send(Done { result, draws: evaluator.draws.get() }).is_err() {
                    return;
                }
            }
        };
        builder().spawn_scoped(scope, run).map_err(no_thread)?;
        Ok(DeepStack { jobs, done })
    }

    /// Performs an instruction as [`Evaluator::instruction`] would.
    pub fn instruction(
        &self,
        evaluator: &Evaluator<'_>,
        at: InstrAt,
        operands: Vec<Literal>,
    ) -> Result<Literal> {
        let lost = || Error::internal("the thread of an interpreted instruction is gone");
        let job = Job { at, operands, draws: evaluator.draws.get() };
        self.jobs.send(job).map_err(|_| lost())?;
        let done = self.done.recv().map_err(|_| lost())?;
        evaluator.draws.set(done.draws);
        done.result
    }
}
