//! Launches: executions of a program on all of its devices.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use helio_eval::Context;
use helio_eval::services::{Alone, Collectives, Participant};
use helio_ir::{AliasKind, Code, Error, Literal, Result};

use crate::buffer::{Buffer, Claim, NoClaim, Promise, Value, Wanted, claim_all};
use crate::device::{Device, ensure_may_wait};
use crate::event::{Completer, Event};
use crate::execute::{ExecuteOptions, Keep, Leaf};
use crate::meetings::Meetings;
use crate::{Executable, RunOptions};

/// What one participant of a program gives.
///
/// ```
/// let text = "HloModule ids, replica_count=2  ENTRY e { ROOT id = u32[] replica-id() }";
/// let client = helio::Client::new(&helio::ClientOptions::default().with_devices(2));
/// let ids = client.compile(helio::parse(text)?, &helio::CompileOptions::default())?;
/// let executions = ids.execute_all(&[vec![], vec![]], &helio::ExecuteOptions::default())?;
/// executions[1].done.wait()?;
/// assert_eq!(executions[1].outputs[0].to_array()?, 1u32.into());
/// # Ok::<(), helio::Errors>(())
/// ```
#[derive(Clone, Debug)]
pub struct Execution {
    /// The arrays of its result, tuples taken apart, on the participant's device.
    pub outputs: Vec<Buffer>,
    /// Completes when the participant's run has ended, with the error that ended it if there was one.
    pub done: Event,
}

/// What the participants of a run share.
struct World {
    collectives: Arc<dyn Collectives>,
    /// Set when all are to stop.
    abort: Arc<AtomicBool>,
}

/// What stands between the participants of a run and how they exchange data: another means of
/// transport, or what a test does to them.
///
/// ```
/// let mut options = helio::RunOptions::default();
/// options.collectives = Some(helio::CollectivesLayer::new(|inner| inner)); // leaves it as it is
/// ```
#[derive(Clone)]
pub struct CollectivesLayer {
    over: Arc<OverCollectives>,
}

/// What the participants of a run use, made of what they would use.
type OverCollectives = dyn Fn(Arc<dyn Collectives>) -> Arc<dyn Collectives> + Send + Sync;

impl CollectivesLayer {
    /// Calls `over` for each run with what its participants would use; they use what it returns.
    pub fn new(
        over: impl Fn(Arc<dyn Collectives>) -> Arc<dyn Collectives> + Send + Sync + 'static,
    ) -> Self {
        CollectivesLayer { over: Arc::new(over) }
    }

    /// What the participants of a run use, made of what they would use.
    pub fn over(&self, collectives: Arc<dyn Collectives>) -> Arc<dyn Collectives> {
        (self.over)(collectives)
    }
}

impl fmt::Debug for CollectivesLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CollectivesLayer").finish_non_exhaustive()
    }
}

/// A participant's place in a run: others hear of it when the participant leaves.
struct Seat {
    me: Participant,
    collectives: Arc<dyn Collectives>,
    has_left: bool,
}

/// A participant's run, in what surrounds it.
type Work<T> = Box<dyn FnOnce(&Context) -> Result<T> + Send>;

/// What one participant has to do, for results of type `T`.
struct Task<T> {
    seat: Seat,
    cx: Context,
    work: Work<T>,
    /// Hands on what came of it.
    deliver: Box<dyn FnOnce(Result<T>) + Send>,
    done: Completer,
}

impl Executable {
    /// Executes a program for one device once on the arrays of its arguments, tuples taken apart;
    /// gives those of its result. It is [`Executable::execute_all`] for one participant.
    ///
    /// Errors: as for [`Executable::execute_all`].
    pub fn execute(&self, args: &[&Buffer], options: &ExecuteOptions) -> Result<Vec<Buffer>> {
        self.ensure_participants(1)?;
        let device = self.device_of(0, options)?;
        self.check(args, &device)?;
        if options.asynchronous {
            let executions = self.launch(&[args], vec![device], options)?;
            return Ok(executions.into_iter().flat_map(|execution| execution.outputs).collect());
        }
        let is_alone = self.assignment.participants() == 1;
        let Some(turn) = is_alone.then(|| device.turn()).flatten() else {
            ensure_may_wait()?;
            let executions = self.launch(&[args], vec![device], options)?;
            executions.iter().try_for_each(|execution| execution.done.wait())?;
            return Ok(executions.into_iter().flat_map(|execution| execution.outputs).collect());
        };
        let claims = self.claims(&[args], &options.keep)?.remove(0);
        let cx = self.context(&options.run, device.id());
        let values = self.perform(claims, &cx, &options.run)?;
        drop(turn);
        let buffer =
            |(leaf, value): (&Leaf, Value)| Buffer::new(leaf.shape.clone(), device.clone(), value);
        Ok(self.signature.results.iter().zip(values).map(buffer).collect())
    }

    /// Executes it once on all of its devices: one list of arguments for each participant, that is for
    /// each replica in turn those of its partitions, and one [`Execution`] for each in that order. The
    /// arguments are the arrays of the parameters, tuples taken apart, on the participant's device.
    ///
    /// Two programs that run on the same devices do so in the same order on each of them, whatever
    /// threads they are launched from.
    ///
    /// ```
    /// # fn main() -> Result<(), helio::Errors> {
    /// let mut options = helio::ClientOptions::default();
    /// options.devices = 2;
    /// let client = helio::Client::new(&options);
    /// let module = helio::parse(
    ///     "HloModule sum, replica_count=2
    ///      add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
    ///      ENTRY e { x = f32[2] parameter(0) ROOT y = f32[2] all-reduce(x), to_apply=add }",
    /// )?;
    /// let program = client.compile(module, &helio::CompileOptions::default())?;
    /// let mut buffers = Vec::new();
    /// for (device, x) in client.devices().zip([[1f32, 2.0], [10.0, 20.0]]) {
    ///     buffers.push(client.buffer_from_array(&helio::Array::new([2], x.to_vec())?, device)?);
    /// }
    /// let args: Vec<Vec<&helio::Buffer>> = buffers.iter().map(|x| vec![x]).collect();
    /// for execution in program.execute_all(&args, &helio::ExecuteOptions::default())? {
    ///     execution.done.wait()?;
    ///     let sum = execution.outputs[0].to_array()?;
    ///     assert_eq!(sum.as_slice::<f32>(), Some(&[11.0, 22.0][..]));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: `NotFound` if there is no such device; `InvalidArgument` if there is another number of
    /// lists than participants, arguments do not fit the parameters, are not on the device, or one is
    /// given away and used besides; `FailedPrecondition` if one has ended, or the caller works for an
    /// execution itself and would have to wait. Then nothing has begun, and all arguments stay as they
    /// are. If the execution is not asynchronous, also what goes wrong in it or has gone wrong in what
    /// was to fill the arguments; if it is, the resulting buffers and events carry these errors.
    pub fn execute_all(
        &self,
        args: &[Vec<&Buffer>],
        options: &ExecuteOptions,
    ) -> Result<Vec<Execution>> {
        self.ensure_participants(args.len())?;
        if let ([args], false) = (args, options.asynchronous) {
            let outputs = self.execute(args, options)?;
            return Ok(vec![Execution { outputs, done: Event::completed() }]);
        }
        if let ([args], true) = (args, options.inline && self.assignment.participants() == 1)
            && let Some(execution) = self.execute_inline(args, options)?
        {
            return Ok(vec![execution]);
        }
        let args: Vec<&[&Buffer]> = args.iter().map(Vec::as_slice).collect();
        let mut devices = Vec::with_capacity(args.len());
        for (participant, args) in args.iter().enumerate() {
            let device = self.device_of(participant, options)?;
            self.check(args, &device).map_err(|e| self.about(participant, e))?;
            devices.push(device);
        }
        if options.asynchronous {
            return self.launch(&args, devices, options);
        }
        ensure_may_wait()?;
        let executions = self.launch(&args, devices, options)?;
        let outcomes = executions.iter().map(|execution| execution.done.wait());
        self.cause(outcomes.collect())?;
        Ok(executions)
    }

    /// An execution of one participant on this very thread, if its device has nothing to do and the
    /// arguments are there. Errors: as for [`Executable::execute_all`]; what goes wrong in the execution
    /// is its own.
    fn execute_inline(
        &self,
        args: &[&Buffer],
        options: &ExecuteOptions,
    ) -> Result<Option<Execution>> {
        let device = self.device_of(0, options)?;
        self.check(args, &device)?;
        if !args.iter().all(|arg| arg.ready().is_ready()) {
            return Ok(None);
        }
        let Some(turn) = device.turn() else { return Ok(None) };
        let claims = self.claims(&[args], &options.keep)?.remove(0);
        let cx = self.context(&options.run, device.id());
        let work = AssertUnwindSafe(|| self.perform(claims, &cx, &options.run));
        let values = catch_unwind(work).unwrap_or_else(|_| Err(panicked()));
        drop(turn);
        let leaves = self.signature.results.iter();
        Ok(Some(match values {
            Ok(values) => {
                let buffer = |(leaf, value): (&Leaf, Value)| {
                    Buffer::new(leaf.shape.clone(), device.clone(), value)
                };
                let outputs = leaves.zip(values).map(buffer).collect();
                Execution { outputs, done: Event::completed() }
            }
            Err(error) => {
                let failed = |leaf: &Leaf| {
                    let (buffer, promise) = Buffer::promised(leaf.shape.clone(), device.clone());
                    promise.keep(Err(error.clone()));
                    buffer
                };
                let outputs = leaves.map(failed).collect();
                let (done, completer) = Event::new();
                completer.complete(Err(error));
                Execution { outputs, done }
            }
        }))
    }

    /// Runs it once on all of its devices, on a list of arguments for each participant (for each
    /// replica in turn those of its partitions); their results in that order.
    ///
    /// Errors: as for [`Executable::run_with`], naming the participant; `InvalidArgument` if there is
    /// another number of lists than participants; `NotFound` if the client lacks devices.
    pub fn run_all(&self, args: &[&[Literal]], options: &RunOptions) -> Result<Vec<Literal>> {
        self.ensure_participants(args.len())?;
        if let ([args], 1) = (args, self.assignment.participants()) {
            return self.run_with(args, options).map(|result| vec![result]);
        }
        let mut devices = Vec::with_capacity(args.len());
        for (participant, args) in args.iter().enumerate() {
            devices.push(self.device_of(participant, &ExecuteOptions::default())?);
            helio_eval::check_arguments(&self.program_shape, args)
                .map_err(|e| self.about(participant, e))?;
        }
        ensure_may_wait()?;
        devices.iter().try_for_each(Device::start)?;
        self.ensure_reached(options)?;
        let world = self.world(options);
        let (send, results) = std::sync::mpsc::channel();
        let tasks = args.iter().enumerate().map(|(participant, args)| {
            let (program, args, send) = (self.clone(), args.to_vec(), send.clone());
            let run = options.clone();
            let work = move |cx: &Context| program.run_in(&args, cx, &run);
            // Nobody listens any more if this thread has gone.
            let deliver = move |result| drop(send.send((participant, result)));
            self.task(participant, &world, options, work, deliver).0
        });
        let tasks: Vec<Task<Literal>> = tasks.collect();
        drop(send);
        self.enqueue(devices, tasks);
        let lost = || Err(Error::internal("a participant has gone without a word"));
        let mut outcomes: Vec<Result<Literal>> = args.iter().map(|_| lost()).collect();
        results.iter().for_each(|(participant, outcome)| outcomes[participant] = outcome);
        self.cause(outcomes)
    }

    /// Errors: it is a program for another number of participants.
    pub(crate) fn ensure_participants(&self, found: usize) -> Result<()> {
        let (replicas, partitions) = (self.assignment.replicas(), self.assignment.partitions());
        let here = self.assignment.devices();
        if here.len() == found {
            return Ok(());
        }
        let of = if partitions == 1 { "" } else { &format!(" of {partitions} partitions") };
        let here = match here.len() == self.assignment.participants() {
            true => String::new(),
            false => format!(", {} of the participants here", here.len()),
        };
        let s = if found == 1 { "" } else { "s" };
        Err(Error::invalid(format!(
            "the program runs as {replicas} replicas{of}{here}, found arguments for {found} participant{s}\n  \
             help: execute_all and run_all take a list of arguments for each"
        )))
    }

    /// The device of a participant. Errors: the client has no such device; one is asked for in the
    /// options although there are several participants.
    fn device_of(&self, participant: usize, options: &ExecuteOptions) -> Result<Device> {
        let devices = self.assignment.devices();
        let count = self.assignment.participants();
        if options.device.is_some() && count > 1 {
            let detail = format!("one device for {count} participants, which have theirs already");
            return Err(Error::invalid(detail));
        }
        let id = options.device.unwrap_or(devices[participant]);
        self.client.device(id).ok_or_else(|| {
            let count = self.client.devices().len();
            let needs = match devices.len() {
                1 => String::new(),
                needed => format!(" of the {needed} that the program needs"),
            };
            let detail = format!("there is no device {id}{needs}, only {count}");
            Error::new(Code::NotFound, detail)
        })
    }

    /// Errors: the arguments do not fit the parameters, or are elsewhere.
    fn check(&self, args: &[&Buffer], device: &Device) -> Result<()> {
        let (want, found) = (self.signature.params.len(), args.len());
        if want != found {
            return Err(Error::invalid(format!("the program takes {want} arrays, found {found}")));
        }
        for (i, (param, arg)) in self.signature.params.iter().zip(args).enumerate() {
            let (param, found) = (&param.shape, arg.shape());
            if !param.same(found) {
                return Err(Error::invalid(format!("array {i} must be {param}, found {found}")));
            }
            if arg.device() != device {
                let (found, required) = (arg.device(), device.id());
                let whose = match found.client().is(device.client()) {
                    true => "",
                    false => " of another client than the program's",
                };
                return Err(Error::invalid(format!(
                    "array {i} is on device {}{whose}; the execution is on device {required} of \
                     the program's client\n  help: Buffer::copy_to gives one that is there",
                    found.id()
                )));
            }
        }
        Ok(())
    }

    /// The right to each argument of each participant, or to none. Errors: as for
    /// [`Executable::execute_all`].
    fn claims(&self, args: &[&[&Buffer]], keep: &Keep) -> Result<Vec<Vec<Claim>>> {
        let params = &self.signature.params;
        if let Keep::These(numbers) = keep
            && let Some(number) = numbers.iter().find(|&&number| number >= params.len())
        {
            let count = params.len();
            return Err(Error::invalid(format!("array {number} is to be kept; there are {count}")));
        }
        let must = |leaf: &Leaf| leaf.donation == Some(AliasKind::Must);
        if let Some((number, leaf)) =
            params.iter().enumerate().find(|&(i, leaf)| must(leaf) && keep.includes(i))
        {
            return Err(Error::invalid(format!(
                "array {number}, of {}, is to be kept; the module's input_output_alias says \
                 must-alias, so it must be given away\n  help: pass a copy, and leave it out of \
                 ExecuteOptions::keep",
                leaf.shape
            )));
        }
        let donated = |i: usize| params[i].donation.is_some() && !keep.includes(i);
        let numbered = args.iter().flat_map(|args| args.iter().enumerate());
        let wanted: Vec<Wanted<'_>> = numbered.map(|(i, &arg)| (arg, donated(i))).collect();
        let claims = claim_all(&wanted).map_err(|error| match error {
            NoClaim::Ended(at, error) => {
                let error = error.context(format_args!("array {}", at % params.len()));
                self.about(at / params.len(), error)
            }
            NoClaim::Twice { positions, given } => {
                let [before, other] = positions.map(|at| at % params.len());
                let (shape, written) = (wanted[given].0.shape(), given % params.len());
                let error = Error::invalid(format!(
                    "arrays {before} and {other} are one buffer, of {shape}, which is given away as \
                     array {written}\n  help: keep that (ExecuteOptions::keep), or pass a copy"
                ));
                self.about(given / params.len(), error)
            }
        })?;
        let mut claims = claims.into_iter();
        Ok(args.iter().map(|args| claims.by_ref().take(args.len()).collect()).collect())
    }

    /// Puts checked executions into the lines of their devices.
    fn launch(
        &self,
        args: &[&[&Buffer]],
        devices: Vec<Device>,
        options: &ExecuteOptions,
    ) -> Result<Vec<Execution>> {
        devices.iter().try_for_each(Device::start)?;
        self.ensure_reached(&options.run)?;
        let claims = self.claims(args, &options.keep)?;
        // Nothing fails from here on: other processes count this run.
        let world = self.world(&options.run);
        let (mut executions, mut tasks) = (Vec::new(), Vec::new());
        for (participant, (claims, device)) in claims.into_iter().zip(&devices).enumerate() {
            let results = self.signature.results.iter();
            let promised = results.map(|leaf| Buffer::promised(leaf.shape.clone(), device.clone()));
            let (outputs, promises): (Vec<Buffer>, Vec<Promise>) = promised.unzip();
            let (program, run) = (self.clone(), options.run.clone());
            let work = move |cx: &Context| program.perform(claims, cx, &run);
            let deliver = move |values: Result<Vec<Value>>| match values {
                Ok(values) => {
                    let each = promises.into_iter().zip(values);
                    each.for_each(|(promise, value)| promise.keep(Ok(value)));
                }
                Err(e) => promises.into_iter().for_each(|promise| promise.keep(Err(e.clone()))),
            };
            let (task, done) = self.task(participant, &world, &options.run, work, deliver);
            tasks.push(task);
            executions.push(Execution { outputs, done });
        }
        self.enqueue(devices, tasks);
        Ok(executions)
    }

    /// Puts a task into the line of each device, which has been started.
    fn enqueue<T: 'static>(&self, devices: Vec<Device>, tasks: Vec<Task<T>>) {
        let _launching = (devices.len() > 1).then(|| self.client.launching());
        for (device, task) in devices.iter().zip(tasks) {
            device.enqueue(Box::new(|| task.perform()));
        }
    }

    /// Errors: `InvalidArgument` if some participants run in other processes, and nothing reaches them.
    fn ensure_reached(&self, options: &RunOptions) -> Result<()> {
        let (here, count) = (self.assignment.devices().len(), self.assignment.participants());
        if here == count || options.collectives.is_some() {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "{here} of {count} participants run here, and nothing reaches the others\n  \
             help: RunOptions::collectives says how data is exchanged with other processes"
        )))
    }

    /// How the participants of a run exchange bytes, and what stops them all.
    fn world(&self, options: &RunOptions) -> World {
        let abort = Arc::default();
        let collectives: Arc<dyn Collectives> =
            match (self.assignment.replicas(), self.assignment.partitions()) {
                (1, 1) => Arc::new(Alone),
                counts => Arc::new(Meetings::new(counts, Arc::clone(&abort))),
            };
        let collectives = match &options.collectives {
            Some(layer) => layer.over(collectives),
            None => collectives,
        };
        World { collectives, abort }
    }

    fn task<T>(
        &self,
        participant: usize,
        world: &World,
        options: &RunOptions,
        work: impl FnOnce(&Context) -> Result<T> + Send + 'static,
        deliver: impl FnOnce(Result<T>) + Send + 'static,
    ) -> (Task<T>, Event) {
        let me = self.assignment.participant(self.assignment.number(participant));
        let mut cx = Context {
            me,
            replica_count: self.assignment.replicas(),
            partition_count: self.assignment.partitions(),
            collectives: world.collectives.clone(),
            ..self.context(options, self.assignment.devices()[participant])
        };
        cx.limits.abort = Some(world.abort.clone());
        let seat = Seat { me, collectives: world.collectives.clone(), has_left: false };
        let (event, done) = Event::new();
        (Task { seat, cx, work: Box::new(work), deliver: Box::new(deliver), done }, event)
    }

    /// The error, saying whose it is if there are several participants.
    fn about(&self, participant: usize, error: Error) -> Error {
        match self.assignment.participants() {
            1 => error,
            _ => {
                let number = self.assignment.number(participant);
                error.context(self.assignment.name(self.assignment.participant(number)))
            }
        }
    }

    /// What the participants give, or what went wrong first: not that others were ended for it.
    fn cause<T>(&self, outcomes: Vec<Result<T>>) -> Result<Vec<T>> {
        let is_cause = |outcome: &Result<T>| matches!(outcome, Err(e) if e.code() != Code::Aborted);
        let fails = outcomes.iter().position(is_cause);
        let fails = fails.or_else(|| outcomes.iter().position(Result::is_err));
        outcomes
            .into_iter()
            .enumerate()
            .filter(|&(i, _)| fails.is_none_or(|fails| fails == i))
            .map(|(i, outcome)| outcome.map_err(|e| self.about(i, e)))
            .collect()
    }
}

/// The error of an execution that panicked, which is a defect of helio's.
fn panicked() -> Error {
    Error::internal("helio failed in an execution")
}

impl<T> Task<T> {
    fn perform(self) {
        let Task { mut seat, cx, work, deliver, done } = self;
        let outcome = catch_unwind(AssertUnwindSafe(|| work(&cx)));
        let outcome = outcome.unwrap_or_else(|_| Err(panicked()));
        let outcome = outcome.map_err(|error| seat.explain(error));
        let end = outcome.as_ref().map(drop).map_err(Error::clone);
        seat.leave(end.as_ref().map(|&()| ()));
        deliver(outcome);
        done.complete(end);
    }
}

impl Seat {
    /// That a run was ended because of others, with what happened to them.
    fn explain(&self, error: Error) -> Error {
        match self.collectives.failure().filter(|_| error.code() == Code::Aborted) {
            Some(failure) => {
                let detail = Error::new(Code::Aborted, failure.detail());
                let at = detail.at(error.location().cloned());
                match error.instruction() {
                    Some(name) => at.in_instruction(name),
                    None => at,
                }
            }
            None => error,
        }
    }

    fn leave(&mut self, outcome: Result<(), &Error>) {
        self.has_left = true;
        self.collectives.leave(self.me, outcome);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if !self.has_left {
            let never = Error::new(Code::Unavailable, "its run has never begun");
            self.leave(Err(&never));
        }
    }
}
