//! Messages over MPI.
//!
//! The head of a message is one small message of MPI, for which receives from anybody are posted in
//! advance; its body, and a head that is longer, follow as messages of their own from where they lie.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use helio::services::Fold;
use helio::{Block, Code, Error, Memory, Result};

use crate::calls::{self, Mpi, Reduction, Transfer};
use crate::wire::{Arrival, Message, Wire, no_process};
use crate::{Options, Processes};

/// Frames, and what follows them.
const FRAME: i32 = 1;
const DATA: i32 = 2;

/// The most bytes of a frame.
const FRAME_BYTES: usize = 3072;

/// What a frame begins with: how many bytes head and body have.
const SIZES: usize = 16;

/// How often it is looked whether the process is told to end.
const LOOK: Duration = Duration::from_millis(5);

/// Receives of frames that are posted in advance.
const POSTED: usize = 16;

/// Connects the processes that `mpirun` has started: initialises MPI, for once in a process.
///
/// Errors: `FailedPrecondition` if MPI has been initialised before, or may not be used from more than
/// one thread, or the system has no thread left.
pub fn connect(options: Options) -> Result<Processes> {
    Processes::new(Box::new(MpiWire::of(Mpi::begin()?)?), options)
}

/// A flag that is set when this process is told to end (SIGTERM), instead of its end: `mpirun` tells all
/// others when one has died, and kills them a second later. As [`Limits::cancel`](helio::Limits::cancel)
/// it has a run end with an error that says who waited for whom. Errors: the system refuses it.
pub fn on_termination() -> Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    let (set, refused) = (flag.clone(), |what| Error::new(Code::FailedPrecondition, what));
    let watch = thread::Builder::new().name("helio-end".to_owned()).spawn(move || {
        while !set.load(Ordering::SeqCst) {
            thread::sleep(LOOK);
            set.store(calls::is_terminated(), Ordering::SeqCst);
        }
    });
    watch.map_err(|e| refused(format!("no thread that watches for SIGTERM: {e}")))?;
    match calls::note_termination() {
        true => Ok(flag),
        false => Err(refused("SIGTERM cannot be noted".to_owned())),
    }
}

/// MPI's own calls on all processes, which wait: what this crate's benchmark compares with.
#[doc(hidden)]
pub struct Bare(Mpi);

impl Bare {
    /// Initialises MPI. Errors: as for [`connect`].
    pub fn new() -> Result<Self> {
        Mpi::begin().map(Bare)
    }

    /// The number of this process, and how many there are.
    pub fn place(&self) -> (usize, usize) {
        (self.0.rank, self.0.size)
    }

    /// The sums over all processes. Errors: other sizes; as MPI says.
    pub fn sum(&mut self, from: &[f32], to: &mut [f32]) -> Result<()> {
        self.0.bare_sum(from, to)
    }

    /// Exchanges bytes with another process. Errors: other sizes; as MPI says.
    pub fn exchange(&mut self, from: &[u8], to: &mut [u8], other: usize) -> Result<()> {
        self.0.bare_exchange(from, to, other)
    }

    /// Goes over to messages. Errors: as for [`connect`].
    pub fn connect(self, options: Options) -> Result<Processes> {
        Processes::new(Box::new(MpiWire::of(self.0)?), options)
    }
}

/// Messages over MPI.
struct MpiWire {
    mpi: Mpi,
    memory: Memory,
    /// Receives of frames, in the order in which they were posted, which is that of what comes.
    frames: VecDeque<Transfer>,
    /// For each process, what is yet to come of messages whose frames have come.
    coming: Vec<VecDeque<Coming>>,
    whole: VecDeque<(usize, Message)>,
    /// What is on its way to others, in order.
    sending: VecDeque<Transfer>,
    /// A reduction that is under way.
    folding: Option<Transfer>,
}

/// A message whose frame has come.
struct Coming {
    head: Part<Vec<u8>>,
    body: Part<Option<Arc<Block>>>,
}

/// A part of a message.
enum Part<T> {
    Here(T),
    Coming(Transfer),
}

impl MpiWire {
    fn of(mpi: Mpi) -> Result<Self> {
        let coming = (0..mpi.size).map(|_| VecDeque::new()).collect();
        let (frames, whole, sending) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
        let memory = Memory::new();
        let mut wire = MpiWire { mpi, memory, frames, coming, whole, sending, folding: None };
        for _ in 0..POSTED {
            wire.post_receive()?;
        }
        Ok(wire)
    }

    /// Posts a receive of a frame.
    fn post_receive(&mut self) -> Result<()> {
        let block = self.memory.allocate(FRAME_BYTES)?;
        self.frames.push_back(self.mpi.receive(None, FRAME, block)?);
        Ok(())
    }

    /// Takes a frame that has come.
    fn frame(&mut self, frame: &[u8], from: usize, memory: &Memory) -> Result<()> {
        let size = |at: usize| {
            let number = frame[at..].first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
            number as usize
        };
        let (head, body) = (size(0), size(8));
        let head = match frame.get(SIZES..SIZES.saturating_add(head)) {
            Some(bytes) => Part::Here(bytes.to_vec()),
            None => Part::Coming(self.mpi.receive(Some(from), DATA, memory.allocate(head)?)?),
        };
        let body = match body {
            0 => Part::Here(None),
            bytes => Part::Coming(self.mpi.receive(Some(from), DATA, memory.allocate(bytes)?)?),
        };
        let coming = self.coming.get_mut(from).ok_or_else(|| no_process(from))?;
        coming.push_back(Coming { head, body });
        Ok(())
    }

    /// Takes frames, and what has followed them.
    fn advance(&mut self, memory: &Memory) -> Result<()> {
        while let Some(transfer) = self.frames.front_mut() {
            if !transfer.is_complete()? {
                break;
            }
            let frame = self.frames.pop_front().and_then(Transfer::into_parts);
            self.post_receive()?;
            if let Some((frame, from)) = frame {
                self.frame(frame.as_slice(), from, memory)?;
            }
        }
        for (from, coming) in self.coming.iter_mut().enumerate() {
            while let Some(first) = coming.front_mut() {
                if !first.is_whole()? {
                    break;
                }
                self.whole.extend(coming.pop_front().and_then(Coming::message).map(|m| (from, m)));
            }
        }
        while let Some(transfer) = self.sending.front_mut() {
            if !transfer.is_complete()? {
                break;
            }
            self.sending.pop_front();
        }
        Ok(())
    }
}

impl Coming {
    fn is_whole(&mut self) -> Result<bool> {
        if let Part::Coming(transfer) = &mut self.head
            && !transfer.is_complete()?
        {
            return Ok(false);
        }
        match &mut self.body {
            Part::Here(_) => Ok(true),
            Part::Coming(transfer) => transfer.is_complete(),
        }
    }

    /// The message, if it is whole.
    fn message(self) -> Option<Message> {
        let head = match self.head {
            Part::Here(head) => head,
            Part::Coming(transfer) => transfer.into_parts()?.0.as_slice().to_vec(),
        };
        let body = match self.body {
            Part::Here(body) => body,
            Part::Coming(transfer) => Some(transfer.into_parts()?.0),
        };
        Some(Message { head, body })
    }
}

impl Wire for MpiWire {
    fn rank(&self) -> usize {
        self.mpi.rank
    }

    fn size(&self) -> usize {
        self.mpi.size
    }

    fn post(&mut self, to: usize, message: &Message) -> Result<()> {
        if to >= self.mpi.size {
            return Err(no_process(to));
        }
        let (head, body) = (&message.head, message.body.as_ref());
        let sizes = [head.len(), body.map_or(0, |block| block.len())];
        let fits = SIZES + head.len() <= FRAME_BYTES;
        let mut frame = self.memory.allocate(SIZES + if fits { head.len() } else { 0 })?;
        let (numbers, rest) = frame.as_mut_slice().split_at_mut(SIZES);
        for (to, size) in numbers.chunks_mut(8).zip(sizes) {
            to.copy_from_slice(&(size as u64).to_ne_bytes());
        }
        if fits {
            rest.copy_from_slice(head);
        }
        let bytes = frame.len();
        self.sending.push_back(self.mpi.send(to, FRAME, Arc::new(frame), bytes)?);
        if !fits {
            let head = Arc::new(self.memory.copy_of(head)?);
            let bytes = head.len();
            self.sending.push_back(self.mpi.send(to, DATA, head, bytes)?);
        }
        if let Some(body) = body.filter(|body| !body.is_empty()) {
            self.sending.push_back(self.mpi.send(to, DATA, body.clone(), body.len())?);
        }
        Ok(())
    }

    fn poll(&mut self, memory: &Memory) -> Result<Option<(usize, Arrival)>> {
        if self.whole.is_empty() {
            self.advance(memory)?;
        }
        Ok(self.whole.pop_front().map(|(from, message)| (from, Ok(message))))
    }

    fn has_sent(&self) -> bool {
        self.sending.is_empty() && self.folding.is_none()
    }

    fn can_fold(&self, fold: Fold) -> bool {
        Reduction::of(fold).is_some()
    }

    fn begin_fold(&mut self, fold: Fold, block: Block) -> Result<()> {
        let reduction = Reduction::of(fold);
        let reduction = reduction.ok_or_else(|| Error::unimplemented(format!("MPI: {fold:?}")))?;
        if self.folding.is_some() {
            let detail = "a reduction of a run that was stopped is still under way";
            return Err(Error::new(Code::FailedPrecondition, detail));
        }
        self.folding = Some(self.mpi.reduce(reduction, block)?);
        Ok(())
    }

    fn folded(&mut self) -> Result<Option<Arc<Block>>> {
        let Some(folding) = &mut self.folding else { return Ok(None) };
        if !folding.is_complete()? {
            return Ok(None);
        }
        Ok(self.folding.take().and_then(Transfer::into_parts).map(|(block, _)| block))
    }

    fn close(mut self: Box<Self>, in_order: bool) {
        let mut cancel = || -> Result<()> {
            for frame in &mut self.frames {
                frame.cancel()?;
                while !frame.is_complete()? {}
            }
            Ok(())
        };
        // To end MPI in order waits for those who are gone; otherwise the system takes back what it holds.
        if in_order && cancel().is_ok() {
            // All has been sent and received: there is nothing left that could go wrong.
            let _ = self.mpi.end();
        }
    }
}
