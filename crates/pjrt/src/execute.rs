//! Executions.
#![allow(non_camel_case_types)]

use std::sync::atomic::Ordering;

use helio::ir::ArrayShape;
use helio::{Buffer, Code, ElementType, Error, Event, ExecuteOptions, Execution, Keep, Result};

use crate::abi::*;
use crate::buffer::PJRT_Buffer;
use crate::client::PJRT_Device;
use crate::event::PJRT_Event;
use crate::executable::Compiled;
use crate::raw::{Call, In, Out};

/// What surrounds an execution. Nothing here asks anything of it.
#[derive(Debug)]
pub struct PJRT_ExecuteContext;

impl Call for PJRT_ExecuteContext_Create_Args {
    fn call(&mut self) -> Result<()> {
        self.context = Out::give(PJRT_ExecuteContext);
        Ok(())
    }
}

impl Call for PJRT_ExecuteContext_Destroy_Args {
    fn call(&mut self) -> Result<()> {
        // SAFETY: contexts are given as boxes, and the caller gives this one up.
        drop(unsafe { self.context.take() });
        Ok(())
    }
}

impl Call for PJRT_LoadedExecutable_Execute_Args {
    fn call(&mut self) -> Result<()> {
        let loaded = self.executable;
        let loaded = loaded.get("an executable")?;
        if loaded.is_deleted.load(Ordering::Relaxed) {
            let detail = "the executable has been deleted";
            return Err(Error::new(Code::FailedPrecondition, detail));
        }
        let compiled = &*loaded.compiled;
        let options = self.options(compiled)?;
        let lists = self.argument_lists;
        // SAFETY: the header says that there is a list for each device.
        let lists = unsafe { lists.slice(self.num_devices, "lists of arguments")? };
        if compiled.devices.is_empty() {
            // It runs in other processes.
            return match lists.len() {
                0 => Ok(()),
                found => Err(Error::invalid(format!(
                    "{found} lists of arguments for a program that has no device in this process"
                ))),
            };
        }
        // Most programs are for one device, and a list is no allocation then.
        let executions = match lists {
            [only] => {
                // SAFETY: the header says that each list has so many arguments.
                let arguments = unsafe { arguments(only, self.num_args, compiled)? };
                compiled.executable.execute_all(&[arguments], &options)?
            }
            lists => {
                let mut all = Vec::with_capacity(lists.len());
                for list in lists {
                    // SAFETY: the header says that each list has so many arguments.
                    all.push(unsafe { arguments(list, self.num_args, compiled)? });
                }
                compiled.executable.execute_all(&all, &options)?
            }
        };
        self.give(compiled, executions)
    }
}

/// The buffers of a list of arguments that are arrays.
///
/// # Safety
/// The list has `count` places unless it is null.
unsafe fn arguments<'a>(
    list: &'a In<In<PJRT_Buffer>>,
    count: usize,
    compiled: &Compiled,
) -> Result<Vec<&'a Buffer>> {
    // SAFETY: the promise of the caller.
    let list = unsafe { list.slice(count, "arguments")? };
    let tokens = &compiled.token_arguments;
    let arrays = list.iter().enumerate().filter(|(i, _)| !tokens.contains(i));
    arrays.map(|(_, argument)| Ok(&argument.get("an argument")?.buffer)).collect()
}

/// The buffer that stands for a token: an array without elements, there once the execution has ended.
fn token(device: &PJRT_Device, done: &Event) -> Result<Buffer> {
    let shape = ArrayShape::new(ElementType::Pred, [0])?;
    let device = device.own()?;
    let client = device.client().clone();
    let (buffer, promise) = client.promised_buffer(&shape, device.clone())?;
    done.on_ready(move |outcome| {
        let nothing = outcome.clone().and_then(|()| Ok(client.memory().allocate(0)?));
        // An array without elements has the size that it should have.
        let _ = promise.fill(nothing);
    });
    Ok(buffer)
}

impl PJRT_LoadedExecutable_Execute_Args {
    fn options(&self, compiled: &Compiled) -> Result<ExecuteOptions> {
        let mut options = ExecuteOptions::default();
        options.asynchronous = true;
        options.inline = compiled.is_brief;
        if let Some(run) = &compiled.run {
            options.run = run.clone();
        }
        if let Some(device) = self.execute_device.optional() {
            let assigned = compiled.assignment.devices();
            let id = device.id();
            if !compiled.is_portable && assigned != [id] {
                let detail = format!("a program for devices {assigned:?} on device {id}");
                return Err(Error::invalid(detail));
            }
            options.device = Some(device.own()?.id());
        }
        let Some(given) = self.options.optional() else { return Ok(options) };
        if given.num_send_ops != 0 || given.num_recv_ops != 0 {
            return Err(Error::unimplemented("callbacks for send and recv"));
        }
        let kept = given.non_donatable_input_indices;
        // SAFETY: the header says that there are so many.
        let kept =
            unsafe { kept.slice(given.num_non_donatable_input_indices, "numbers of arguments")? };
        if !kept.is_empty() {
            let mut numbers = Vec::with_capacity(kept.len());
            for &i in kept {
                let number = usize::try_from(i)
                    .map_err(|_| Error::invalid(format!("argument number {i}")))?;
                // Tokens are no arguments of the execution.
                let tokens = &compiled.token_arguments;
                if !tokens.contains(&number) {
                    let before = tokens.iter().filter(|&&token| token < number).count();
                    numbers.push(number - before);
                }
            }
            options.keep = Keep::These(numbers);
        }
        Ok(options)
    }

    /// Gives the results to the caller.
    fn give(&self, compiled: &Compiled, executions: Vec<Execution>) -> Result<()> {
        let lists = self.output_lists;
        // SAFETY: the header says that there is a list for each device.
        let lists = unsafe { lists.slice(self.num_devices, "lists of results")? };
        if lists.iter().any(|list| list.is_null()) && !compiled.outputs.is_empty() {
            return Err(Error::invalid("lists of results are needed, found null"));
        }
        let shared = &compiled.shared;
        for (device, (execution, list)) in executions.into_iter().zip(lists).enumerate() {
            let Execution { outputs, done, .. } = execution;
            if let Some(held) = compiled.held.clone() {
                // The caller may give the program up before it has ended.
                done.on_ready(move |_| drop(held));
            }
            let mut arrays = outputs.into_iter();
            for (i, output) in compiled.outputs.iter().enumerate() {
                let buffer = if output.is_token {
                    let device = compiled.device(device, self.execute_device.optional());
                    let token = token(device, &done)?;
                    let memory = shared.memory_of(token.device().id(), output.kind);
                    PJRT_Buffer::token(shared.clone(), token, memory)
                } else {
                    let array = arrays.next();
                    let array = array.ok_or_else(|| Error::internal("a result is missing"))?;
                    let memory = shared.memory_of(array.device().id(), output.kind);
                    PJRT_Buffer::new(shared.clone(), array, memory, output.dims.clone())
                };
                // SAFETY: the list has a place for each result of the program, which is the caller's to
                // be written.
                unsafe { list.add(i).write(Out::give(buffer)) };
            }
            if !self.device_complete_events.is_null() {
                let event = PJRT_Event::give(done);
                // SAFETY: as for the results: there is a place for each device.
                unsafe { self.device_complete_events.add(device).write(event) };
            }
        }
        Ok(())
    }
}
