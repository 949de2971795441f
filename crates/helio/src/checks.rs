//! What runs programs that check themselves: compiled, or interpreted as the options say.

use std::sync::Arc;

use helio_ir::ops::SEND_RECV_PAIRS;
use helio_ir::{Error, Literal, Module, Op, Result};
use helio_stablehlo::{Engine, Process};

use crate::{Client, ClientOptions, CompileOptions, Executable, HostQueues, RunOptions};

/// Runs the modules of [`ProgramFile::run_checks`](crate::ProgramFile::run_checks).
///
/// ```
/// let text = "func.func @main() {
///     %c = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
///     %d = stablehlo.add %c, %c : tensor<2xi32>
///     check.expect_eq_const %d, dense<[2, 4]> : tensor<2xi32>
///     return
/// }";
/// let file = helio::ProgramFile::read(text.as_bytes())?;
/// let engine = helio::CheckEngine::new(helio::CompileOptions::default());
/// assert!(file.run_checks(&engine).iter().all(|(_, outcome)| outcome.is_ok()));
/// # Ok::<(), helio::Errors>(())
/// ```
#[derive(Clone, Debug)]
pub struct CheckEngine {
    /// Compiles and runs what is one program.
    pub client: Client,
    /// How programs are compiled; how many participants they have, they say themselves.
    pub compile: CompileOptions,
    /// What surrounds each run; its queues are only those of programs that run alone.
    pub run: RunOptions,
}

impl CheckEngine {
    /// An engine of the process's shared client.
    pub fn new(compile: CompileOptions) -> Self {
        CheckEngine { client: Client::shared().clone(), compile, run: RunOptions::default() }
    }

    fn compile(&self, client: &Client, module: Module) -> Result<Executable> {
        client.compile(module, &self.compile).map_err(Error::from)
    }

    /// A client with a device for each of these.
    fn client_of(&self, devices: usize) -> Client {
        if self.client.devices().len() >= devices {
            return self.client.clone();
        }
        let threads = Some(self.client.threads());
        Client::new(&ClientOptions { devices, threads, ..ClientOptions::default() })
    }

    /// Runs different programs, each by itself, which exchange values over channels alone.
    fn run_apart(&self, processes: Vec<Process>) -> Result<Vec<Literal>> {
        let run = self.with_queues();
        let queues = run.host.clone();
        let work = |mut process: Process| {
            process.module.config.replica_count = None;
            process.module.config.num_partitions = None;
            transfer_directly(&mut process.module);
            let program = self.compile(&self.client_of(1), process.module)?;
            let result = program.run_with(&process.arguments, &run);
            if let (Err(_), Some(queues)) = (&result, &queues) {
                // Nobody is to wait for what will never come.
                queues.close();
            }
            result
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = processes
                .into_iter()
                .map(|process| {
                    let work = &work;
                    scope.spawn(move || work(process))
                })
                .collect();
            let lost = |_| Err(Error::internal("a program has ended without a word"));
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(lost)).collect()
        })
    }

    fn with_queues(&self) -> RunOptions {
        let mut run = self.run.clone();
        run.host = Some(Arc::new(HostQueues::new()));
        run
    }
}

impl Engine for CheckEngine {
    fn run(&self, module: &Module, arguments: Vec<Literal>) -> Result<Literal> {
        self.compile(&self.client, module.clone())?.run_with(&arguments, &self.run)
    }

    fn run_parallel(&self, processes: Vec<Process>, infeed: Vec<Literal>) -> Result<Vec<Literal>> {
        let Some(first) = processes.first() else { return Ok(Vec::new()) };
        if infeed.len() > 1 && processes.len() > 1 {
            let count = processes.len();
            return Err(Error::unimplemented(format!("an infeed of {count} processes")));
        }
        let name = first.module.entry().name.clone();
        if processes.iter().any(|process| process.module.entry().name != name) {
            return self.run_apart(processes);
        }
        let program = self.compile(&self.client_of(processes.len()), first.module.clone())?;
        let run = self.with_queues();
        if let Some(queues) = &run.host {
            let queue = queues.infeed(first.replica);
            for value in infeed {
                queue.push(value).map_err(|closed| Error::internal(closed.to_string()))?;
            }
            queues.close_inputs();
        }
        let arguments: Vec<&[Literal]> = processes.iter().map(|p| &p.arguments[..]).collect();
        program.run_all(&arguments, &run)
    }
}

/// Makes the transfers of a program ones to the other programs, over channels that they have for
/// themselves: not to a host, and to whichever program receives.
fn transfer_directly(module: &mut Module) {
    for id in module.ids() {
        for instr in module.computation(id).ids() {
            let instr = module.computation_mut(id).instr_mut(instr);
            match &mut instr.op {
                Op::Send(op) => op.is_host_transfer = false,
                Op::SendDone(op) => op.is_host_transfer = false,
                Op::Recv(op) => op.is_host_transfer = false,
                Op::RecvDone(op) => op.is_host_transfer = false,
                _ => continue,
            }
            if let Some(extra) = &mut instr.extra {
                extra.frontend_attributes.retain(|(name, _)| name != SEND_RECV_PAIRS);
            }
        }
    }
}
