//! `helio run --mpi`: a part of a program's participants in each process that `mpirun` has started.
//!
//! What goes wrong is told once, by the first process, unless that cannot hear of it: a process is lost,
//! or they are all told to end.

use std::process::exit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use helio::{Code, Limits, Literal, Module};
use helio_processes::{Options, Processes, read_all, write_all};

use crate::failure::Failure;
use crate::run::{Args, Prepared, in_run};
use crate::{Source, interpreted};

/// Errors: those of MPI. What goes wrong in the run is printed, as for a run of threads, by the first
/// process; by all of them if one is lost or they are told to end. Each process ends with the status of
/// its own failure, the first one with that of the run.
pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let mut options = Options::default();
    options.own_reduction = args.mpi_reduce;
    let processes = helio_processes::connect(options)?;
    let terminated = helio_processes::on_termination()?;
    let here = Here { processes, terminated, max_wait: args.engine.limits().max_wait };
    let outcome = here.run(&args);
    let is_lost = here.processes.lost().is_some() || here.terminated.load(Ordering::SeqCst);
    let is_first = here.processes.rank() == 0;
    if let (Err(failure), true) = (&outcome, is_first || is_lost) {
        // Before others may end: when one ends with an error, `mpirun` kills those that are left.
        failure.print();
    }
    match is_lost {
        true => here.processes.abandon(),
        false => here.processes.close(),
    }
    match outcome {
        Err(failure) => exit(failure.parts().0.into()),
        Ok(()) => Ok(()),
    }
}

/// This process among the others.
struct Here {
    processes: Processes,
    /// Set when all are told to end: `mpirun` does so when one has died.
    terminated: Arc<AtomicBool>,
    max_wait: Option<Duration>,
}

impl Here {
    fn run(&self, args: &Args) -> Result<(), Failure> {
        let source = Source::read(args.module.clone());
        let prepared = source.and_then(|source| {
            let prepared = self.prepare(args, &source)?;
            Ok((source, prepared))
        });
        self.agree(&prepared)?;
        let (source, prepared) = prepared?;
        if self.processes.rank() == 0 {
            interpreted::note(&prepared.program);
        }
        let mut options = prepared.options.clone();
        options.limits = Limits { cancel: Some(self.terminated.clone()), ..args.engine.limits() };
        self.processes.connect(&mut options, prepared.program.assignment());
        let begin = Instant::now();
        let results = prepared.run(&options);
        let run_time = begin.elapsed();
        let is_cause = !matches!(&results, Err(error) if error.code() == Code::Aborted);
        let results = results.map_err(|error| in_run(&source, error));
        let given = results.and_then(|results| self.own_results(args, &prepared, results));
        let Some(all) = self.gather(given, is_cause)? else { return Ok(()) };
        let (mut results, mut outfed) = (Vec::new(), Vec::new());
        for value in all {
            let Literal::Tuple(mut parts) = value else { continue };
            if let (Some(Literal::Tuple(fed)), Some(result)) = (parts.pop(), parts.pop()) {
                results.push(result);
                outfed.push(fed);
            }
        }
        args.report(&prepared, &results, outfed, run_time)
    }

    fn prepare(&self, args: &Args, source: &Source) -> Result<Prepared, Failure> {
        let file = source.program()?;
        if file.has_checks() {
            return Err(Failure::bad_input(
                "--mpi: programs that check themselves run in one process",
            ));
        }
        let assign = |module: &Module| {
            let (replicas, partitions) = args.participants.counts(module);
            let each = self.processes.size().div_ceil(partitions);
            self.processes.assign(replicas.unwrap_or(each), partitions)
        };
        args.prepare(source, &file, &assign)
    }

    /// For each participant of this process, a pair of its results and what it has written to its outfeed.
    fn own_results(
        &self,
        args: &Args,
        prepared: &Prepared,
        results: Vec<Literal>,
    ) -> Result<Vec<Literal>, Failure> {
        let outfed = args.feeds.empty(&prepared.queues, prepared.program.assignment())?;
        let pairs = results.into_iter().zip(outfed);
        Ok(pairs.map(|(result, fed)| Literal::Tuple(vec![result, Literal::Tuple(fed)])).collect())
    }

    fn max_wait(&self) -> Duration {
        self.max_wait.unwrap_or(Limits::DEFAULT_MAX_WAIT)
    }

    /// Waits until all processes have prepared their run. Errors: what went wrong in the first of those
    /// that could not.
    fn agree<T>(&self, prepared: &Result<T, Failure>) -> Result<(), Failure> {
        let mine = match prepared {
            Ok(_) => Vec::new(),
            Err(failure) => told(failure),
        };
        for (rank, theirs) in self.processes.all_gather(&mine, self.max_wait())?.iter().enumerate()
        {
            match theirs {
                Err(error) => return Err(error.clone().into()),
                Ok(told) if told.is_empty() => {}
                Ok(told) => return Err(heard(rank, told)),
            }
        }
        Ok(())
    }

    /// In the first process, what all participants have given; `is_cause` says of a failure that it is
    /// not only because of another. Errors: in the first process, what ended
    /// the run; in the others, why they themselves have failed.
    fn gather(
        &self,
        given: Result<Vec<Literal>, Failure>,
        is_cause: bool,
    ) -> Result<Option<Vec<Literal>>, Failure> {
        if self.terminated.load(Ordering::SeqCst) {
            // Who has died is not known here, and there is a second left to say what this process did.
            return match given {
                Err(failure) => Err(self.ended(failure)),
                Ok(_) => Err(self.ended(Failure::bad_input("the results are not gathered"))),
            };
        }
        let mine = match &given {
            Ok(values) => [vec![0], write_all(values)?].concat(),
            Err(failure) => [vec![1 + u8::from(is_cause)], told(failure)].concat(),
        };
        let gathered = self.processes.gather(&mine, self.max_wait())?;
        let Some(gathered) = gathered else { return given.map(|_| None) };
        let (mut all, mut failures) = (Vec::new(), Vec::new());
        for (rank, theirs) in gathered.into_iter().enumerate() {
            match theirs.as_deref() {
                Ok([0, values @ ..]) => all.extend(read_all(values)?),
                Ok([kind, told @ ..]) => failures.push((*kind == 2, heard(rank, told))),
                Ok([]) => failures.push((true, Failure::internal("a process without results"))),
                Err(error) => failures.push((false, error.clone().into())),
            }
        }
        let cause = failures.iter().position(|(is_cause, _)| *is_cause).unwrap_or(0);
        match failures.is_empty() {
            true => Ok(Some(all)),
            false => Err(failures.swap_remove(cause).1),
        }
    }

    /// That this process was told to end while something was going on.
    fn ended(&self, failure: Failure) -> Failure {
        let (status, text) = failure.parts();
        let rank = self.processes.rank();
        Failure::of_process(
            status,
            format!("process {rank} is told to end (SIGTERM): another one may have died\n{text}"),
        )
    }
}

/// A failure as bytes.
fn told(failure: &Failure) -> Vec<u8> {
    let (status, text) = failure.parts();
    [&[status], text.as_bytes()].concat()
}

/// The failure that another process has told of.
fn heard(rank: usize, told: &[u8]) -> Failure {
    match told {
        [status, text @ ..] => {
            Failure::of_process(*status, String::from_utf8_lossy(text).into_owned())
        }
        [] => Failure::from(helio::Error::new(
            Code::Internal,
            format!("process {rank} has failed without a word"),
        )),
    }
}
