//! What processes give each other outside of runs: what became of them, and their results.

use std::sync::Arc;
use std::time::{Duration, Instant};

use helio::{Code, Error, Result};

use crate::head::Head;
use crate::processes::{Core, Processes};
use crate::wire::Message;

impl Processes {
    /// Gives `mine` to the first process, which gets what all give, in their order; the others get
    /// nothing. An error stands for what does not come: the process is gone (`Unavailable`), or neither
    /// came nor moved for `max_wait` (`DeadlineExceeded`). Errors: `ResourceExhausted`.
    pub fn gather(&self, mine: &[u8], max_wait: Duration) -> Result<Option<Vec<Result<Vec<u8>>>>> {
        let sequence = self.give(mine, self.rank() != 0, false)?;
        Ok((self.rank() == 0).then(|| self.parts(sequence, mine, max_wait)))
    }

    /// Gives `mine` to all processes; what all give, in their order. Errors: as for
    /// [`Processes::gather`].
    pub fn all_gather(&self, mine: &[u8], max_wait: Duration) -> Result<Vec<Result<Vec<u8>>>> {
        let sequence = self.give(mine, true, true)?;
        Ok(self.parts(sequence, mine, max_wait))
    }

    /// Sends this process's part to the first, or to all; its number.
    fn give(&self, mine: &[u8], is_sent: bool, to_all: bool) -> Result<u64> {
        let block = match mine {
            [] => None,
            mine => Some(Arc::new(self.shared.memory.copy_of(mine)?)),
        };
        let mut core = self.shared.lock();
        let sequence = core.next_part;
        core.next_part += 1;
        let message = Message { head: Head::Part { sequence }.write(), body: block };
        match (is_sent, to_all) {
            (true, true) => core.post_to_all(&message),
            (true, false) => core.post(0, &message),
            (false, _) => {}
        }
        Ok(sequence)
    }

    /// The parts of all, when they have come.
    fn parts(&self, sequence: u64, mine: &[u8], max_wait: Duration) -> Vec<Result<Vec<u8>>> {
        let (rank, shared) = (self.rank(), &self.shared);
        let part = |from| match from == rank {
            true => Ok(mine.to_vec()),
            false => {
                self.wait_for_part(sequence, from, max_wait)?;
                let message = shared.lock().parts.remove(&(sequence, from));
                let body = message.and_then(|message| message.body);
                Ok(body.map_or(Vec::new(), |block| block.as_slice().to_vec()))
            }
        };
        (0..self.size()).map(part).collect()
    }

    fn wait_for_part(&self, sequence: u64, from: usize, max_wait: Duration) -> Result<()> {
        let shared = &self.shared;
        let (mut moves, mut since) = (None, Instant::now());
        loop {
            let has_come = |core: &Core| core.parts.contains_key(&(sequence, from));
            let is_over = || {
                let core = shared.lock();
                has_come(&core) || core.peers[from].gone.is_some()
            };
            shared.look_until(&is_over, Duration::from_millis(50));
            let core = shared.lock();
            if has_come(&core) {
                return Ok(());
            }
            if let Some(gone) = &core.peers[from].gone {
                let detail = format!("process {from} {}", gone.verb());
                return Err(Error::new(Code::Unavailable, detail));
            }
            let now = core.moves();
            if moves != Some(now) {
                (moves, since) = (Some(now), Instant::now());
            }
            if since.elapsed() >= max_wait {
                let detail = format!("process {from} has not moved for {max_wait:?}");
                return Err(Error::new(Code::DeadlineExceeded, detail));
            }
        }
    }
}
