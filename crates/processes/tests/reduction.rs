//! Reductions that a wire does itself, in another order than that of the group: processes are threads here.

mod support;

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use helio::ir::BinaryOp;
use helio::services::Fold;
use helio::{Backend, Block, Code, ElementType, Error, Literal, Memory, Result, RunOptions};
use helio_processes::wire::{Arrival, Message, Wire, among_threads};
use helio_processes::{Options, Processes};
use support::run_part;

/// How long a process may be silent: machines are busy.
const SILENCE: Duration = Duration::from_secs(60);

/// What each process has given to a reduction, if it has.
type Parts = Vec<Option<Vec<f32>>>;

/// A wire that adds floats itself, from the last process to the first.
struct Adding<W> {
    inner: W,
    given: Arc<Mutex<Vec<Parts>>>,
    begun: usize,
    is_open: bool,
    /// How many reductions it fails to begin.
    failures: usize,
}

impl<W: Wire> Wire for Adding<W> {
    fn rank(&self) -> usize {
        self.inner.rank()
    }

    fn size(&self) -> usize {
        self.inner.size()
    }

    fn post(&mut self, to: usize, message: &Message) -> Result<()> {
        self.inner.post(to, message)
    }

    fn poll(&mut self, memory: &Memory) -> Result<Option<(usize, Arrival)>> {
        self.inner.poll(memory)
    }

    fn has_sent(&self) -> bool {
        self.inner.has_sent()
    }

    fn can_fold(&self, fold: Fold) -> bool {
        fold == Fold { op: BinaryOp::Add, element: ElementType::F32 }
    }

    fn begin_fold(&mut self, _: Fold, block: Block) -> Result<()> {
        if self.failures > 0 {
            self.failures -= 1;
            return Err(Error::new(Code::Unavailable, "the wire is busy"));
        }
        let chunks = block.as_slice().as_chunks().0.iter();
        let values = chunks.map(|&bytes| f32::from_le_bytes(bytes)).collect();
        let mut given = self.given.lock().unwrap();
        if given.len() == self.begun {
            given.push(vec![None; self.size()]);
        }
        given[self.begun][self.rank()] = Some(values);
        self.begun += 1;
        self.is_open = true;
        Ok(())
    }

    fn folded(&mut self) -> Result<Option<Arc<Block>>> {
        let given = self.given.lock().unwrap();
        let Some(last) = self.begun.checked_sub(1).filter(|_| self.is_open) else {
            return Ok(None);
        };
        let Some(all) = given[last].iter().cloned().collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        self.is_open = false;
        let sum =
            all.into_iter().rev().reduce(|a, b| a.iter().zip(&b).map(|(a, b)| a + b).collect());
        let bytes: Vec<u8> = sum.unwrap().into_iter().flat_map(f32::to_le_bytes).collect();
        Ok(Some(Arc::new(Memory::new().copy_of(&bytes)?)))
    }

    fn close(self: Box<Self>, in_order: bool) {
        Box::new(self.inner).close(in_order);
    }
}

#[test]
fn a_wire_reduces_what_it_is_allowed_to() {
    let text = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
      ENTRY e { x = f32[70000] parameter(0) y = f32[5] parameter(1)
        s = f32[70000] all-reduce(x), to_apply=add
        t = f32[70000] all-reduce(s), to_apply=add
        u = f32[5] all-reduce(y), to_apply=add
        ROOT r = (f32[70000], f32[5]) tuple(t, u) }";
    let parts = [1e8f32, 1.0, -1e8, 1.0];
    let args = parts.map(|x| [70000, 5].map(|n| Literal::array([n], vec![x; n]).unwrap()).to_vec());
    // 0 and 1 are lost in one order, 1 and 0 in the other.
    let in_order = parts.into_iter().reduce(|a, b| a + b).unwrap();
    let reversed = parts.into_iter().rev().reduce(|a, b| a + b).unwrap();
    assert_ne!(in_order, reversed);
    for (processes, own_reduction, sum) in
        [(4, false, in_order), (4, true, reversed), (2, true, in_order)]
    {
        let given = Arc::default();
        let outcomes: Vec<Result<Vec<Literal>>> = thread::scope(|scope| {
            let each = among_threads(processes).into_iter().map(|inner| {
                let (given, args) = (Arc::clone(&given), &args);
                let wire = Adding { inner, given, begun: 0, is_open: false, failures: 0 };
                scope.spawn(move || {
                    let mut options = Options::default();
                    options.silence = SILENCE;
                    options.own_reduction = own_reduction;
                    let processes = Processes::new(Box::new(wire), options)?;
                    let run = RunOptions::default();
                    run_part(&processes, text, (4, 1), args, Backend::Cpu, run)
                })
            });
            let each: Vec<_> = each.collect();
            each.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        let found = outcomes.into_iter().collect::<Result<Vec<_>>>().unwrap().concat();
        let expected = Literal::Tuple(vec![
            Literal::array([70000], vec![4.0 * sum; 70000]).unwrap(),
            Literal::array([5], vec![in_order; 5]).unwrap(),
        ]);
        assert!(found.len() == 4 && found.iter().all(|found| found.same_bits(&expected)));
        let reductions = given.lock().unwrap().len();
        assert_eq!(reductions, if processes == 4 && own_reduction { 2 } else { 0 });
    }
}

#[test]
fn who_is_about_to_reduce_something_else_is_told() {
    let text = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
      ENTRY e { x = f32[70000] parameter(0) ROOT s = f32[70000] all-reduce(x), to_apply=add }";
    let args = vec![vec![Literal::array([70000], vec![1f32; 70000]).unwrap()]; 2];
    let given = Arc::default();
    let outcomes: Vec<Result<Vec<Literal>>> = thread::scope(|scope| {
        let each = among_threads(2).into_iter().map(|inner| {
            let (given, args) = (Arc::clone(&given), &args);
            let wire = Adding { inner, given, begun: 0, is_open: false, failures: 0 };
            scope.spawn(move || {
                let mut options = Options::default();
                options.silence = SILENCE;
                options.own_reduction = wire.rank() == 0;
                let processes = Processes::new(Box::new(wire), options)?;
                run_part(&processes, text, (2, 1), args, Backend::Cpu, RunOptions::default())
            })
        });
        let each: Vec<_> = each.collect();
        each.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let errors: Vec<Error> = outcomes.into_iter().filter_map(Result::err).collect();
    assert_eq!(errors.len(), 2);
    assert!(errors.iter().any(|error| error.code() == Code::InvalidArgument), "{errors:?}");
    assert!(given.lock().unwrap().is_empty(), "nothing was begun");
}

#[test]
fn a_reduction_that_only_some_have_begun_is_paired_with_no_other() {
    let text = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
      ENTRY e { x = f32[70000] parameter(0) ROOT s = f32[70000] all-reduce(x), to_apply=add }";
    let args = |value: f32| vec![vec![Literal::array([70000], vec![value; 70000]).unwrap()]; 2];
    let given = Arc::default();
    let outcomes: Vec<[Result<Vec<Literal>>; 2]> = thread::scope(|scope| {
        let each = among_threads(2).into_iter().map(|inner| {
            let (given, failures) = (Arc::clone(&given), inner.rank());
            let wire = Adding { inner, given, begun: 0, is_open: false, failures };
            scope.spawn(move || {
                let mut options = Options::default();
                options.silence = SILENCE;
                options.own_reduction = true;
                let processes = Processes::new(Box::new(wire), options).unwrap();
                [1.0, 3.0].map(|value| {
                    let run = RunOptions::default();
                    run_part(&processes, text, (2, 1), &args(value), Backend::Cpu, run)
                })
            })
        });
        let each: Vec<_> = each.collect();
        each.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let expected = Literal::array([70000], vec![6f32; 70000]).unwrap();
    for [first, second] in outcomes {
        let error = first.unwrap_err();
        assert!(error.to_string().contains("the wire is busy"), "{error}");
        assert!(second.unwrap().iter().all(|found| found.same_bits(&expected)));
    }
    assert_eq!(given.lock().unwrap().len(), 1, "the second is done as always");
}
