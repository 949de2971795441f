//! Events: what completes once.
#![allow(non_camel_case_types)]

use std::sync::{Mutex, PoisonError};

use helio::{Completer, Error, Event, Result};

use crate::abi::{
    PJRT_Event_Await_Args, PJRT_Event_Create_Args, PJRT_Event_Destroy_Args, PJRT_Event_Error_Args,
    PJRT_Event_IsReady_Args, PJRT_Event_OnReady_Args, PJRT_Event_Set_Args,
};
use crate::error::{self, PJRT_Error};
use crate::raw::{Address, Call, Out};

/// Something that completes once.
#[derive(Debug)]
pub struct PJRT_Event {
    event: Event,
    /// What completes it, if the caller does.
    completer: Mutex<Option<Completer>>,
}

impl PJRT_Event {
    /// Gives an event to the caller.
    pub(crate) fn give(event: Event) -> Out<PJRT_Event> {
        Out::give(PJRT_Event { event, completer: Mutex::new(None) })
    }
}

impl Call for PJRT_Event_Destroy_Args {
    fn call(&mut self) -> Result<()> {
        // SAFETY: events are given as boxes, and the caller gives this one up.
        drop(unsafe { self.event.take() });
        Ok(())
    }
}

impl Call for PJRT_Event_IsReady_Args {
    fn call(&mut self) -> Result<()> {
        let event = self.event;
        self.is_ready = event.get("an event")?.event.is_ready().into();
        Ok(())
    }
}

impl Call for PJRT_Event_Error_Args {
    fn call(&mut self) -> Result<()> {
        let event = self.event;
        match event.get("an event")?.event.outcome() {
            Some(outcome) => outcome.clone(),
            None => {
                let detail = "the event has not completed yet; PJRT_Event_Await waits for it";
                Err(Error::new(helio::Code::FailedPrecondition, detail))
            }
        }
    }
}

impl Call for PJRT_Event_Await_Args {
    fn call(&mut self) -> Result<()> {
        let event = self.event;
        event.get("an event")?.event.wait()
    }
}

impl Call for PJRT_Event_OnReady_Args {
    fn call(&mut self) -> Result<()> {
        let (event, user) = (self.event, Address(self.user_arg));
        let event = event.get("an event")?;
        let callback = self.callback.ok_or_else(|| Error::invalid("a callback is needed"))?;
        event.event.on_ready(move |outcome| {
            // SAFETY: the caller has asked for this function to be called once with this argument, from
            // whatever thread completes the event, and takes the error.
            unsafe { callback(PJRT_Error::outcome(outcome), user.get()) };
        });
        Ok(())
    }
}

impl Call for PJRT_Event_Create_Args {
    fn call(&mut self) -> Result<()> {
        let (event, completer) = Event::new();
        self.event = Out::give(PJRT_Event { event, completer: Mutex::new(Some(completer)) });
        Ok(())
    }
}

impl Call for PJRT_Event_Set_Args {
    fn call(&mut self) -> Result<()> {
        let (event, text) = (self.event, self.error_message);
        let event = event.get("an event")?;
        let completer = event.completer.lock().unwrap_or_else(PoisonError::into_inner).take();
        let completer = completer.ok_or_else(|| {
            let detail = "only an event of PJRT_Event_Create can be set, and only once";
            Error::new(helio::Code::FailedPrecondition, detail)
        })?;
        let outcome = match self.error_code {
            0 => Ok(()),
            number => {
                // SAFETY: the header says that the message has this size.
                let text = unsafe { text.text(self.error_message_size, "an error's message")? };
                Err(Error::new(error::code(number), text))
            }
        };
        completer.complete(outcome);
        Ok(())
    }
}
