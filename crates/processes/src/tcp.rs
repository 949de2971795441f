//! Messages over TCP, among processes that learn of each other by a means of their own.
//!
//! Each process listens ([`Listener::new`]), makes known to all others where ([`Listener::contact`]), and
//! connects to them once it has their contacts ([`Listener::connect`]). There is one connection for each
//! pair of processes. Whoever connects shows the token of the contact, so that processes of different
//! runs, or other programs, do not end up with each other; what is sent is neither encrypted nor signed,
//! and is for networks whose machines trust each other.
//!
//! ```
//! use std::time::Duration;
//!
//! use helio_processes::tcp::Listener;
//! use helio_processes::wire::Wire;
//!
//! // Two processes, which are threads here and learn of each other by these variables.
//! let listeners = [Listener::new(Some("localhost"))?, Listener::new(Some("localhost"))?];
//! let contacts = [0, 1].map(|rank: usize| listeners[rank].contact().to_owned());
//! let wires = std::thread::scope(|scope| {
//!     let ranks = listeners.into_iter().enumerate();
//!     let connect = ranks.map(|(rank, listener)| {
//!         let contacts = &contacts;
//!         scope.spawn(move || listener.connect(rank, contacts, Duration::from_secs(10)))
//!     });
//!     let threads: Vec<_> = connect.collect();
//!     threads.into_iter().map(|thread| thread.join().expect("no panic")).collect::<Vec<_>>()
//! });
//! for (rank, wire) in wires.into_iter().enumerate() {
//!     assert_eq!(wire?.rank(), rank);
//! }
//! # Ok::<(), helio::Error>(())
//! ```

use std::collections::VecDeque;
use std::fmt::{self, Write as _};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{ErrorKind, Read, Write};
use std::net::{
    IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs,
    UdpSocket,
};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use helio::{Block, Code, Error, Memory, Result};

use crate::wire::{Arrival, Message, Wire, no_process};

/// What the first message of a connection begins with, either way.
const MAGIC: &[u8; 8] = b"helio/1\n";

/// The bytes of the first message of who connects: [`MAGIC`], the token of whom it means, its own token,
/// its rank.
const GREETING_BYTES: usize = 8 + 16 + 16 + 8;

/// How long it is tried to connect to one address before the next.
const ATTEMPT: Duration = Duration::from_secs(3);

/// How long between two looks for who connects, and between two attempts.
const NAP: Duration = Duration::from_millis(2);

/// How long one who has connected may take to greet.
const GREETING: Duration = Duration::from_secs(10);

/// The longest time that processes wait for each other, which any clock can tell: a year.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// What a message begins with: how many bytes head and body have.
const SIZES: usize = 16;

/// The most bytes of a head, which says what the body is.
const MOST_HEAD_BYTES: usize = 1 << 26;

/// How many bytes are asked for at once, unless they belong to a body.
const BUFFER_BYTES: usize = 1 << 16;

/// How many bytes of one process are taken before others have their turn.
const TURN_BYTES: usize = 8 << 20;

/// A process that others are to connect to.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    token: Token,
    contact: String,
}

/// By which processes know each other: 128 bits at random.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Token([u8; 16]);

/// What a contact says.
struct Contact {
    token: Token,
    /// The machine's own name for itself since it was started.
    machine: String,
    addresses: Vec<SocketAddr>,
}

impl Token {
    fn new() -> Self {
        // Each has keys of its own, from the system's source of random numbers.
        let half = || RandomState::new().build_hasher().finish().to_le_bytes();
        let mut token = [0; 16];
        token.as_chunks_mut().0.iter_mut().for_each(|chunk| *chunk = half());
        Token(token)
    }

    fn read(text: &str) -> Option<Self> {
        u128::from_str_radix(text, 16).ok().map(|number| Token(number.to_be_bytes()))
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for Token {
    /// Not the token itself: whoever knows it can connect.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// What messages and numbers in them look like: processes of other versions or byte orders do not
/// understand each other.
fn dialect() -> String {
    let order = if cfg!(target_endian = "little") { "little" } else { "big" };
    format!("{}-{order}-{}", env!("CARGO_PKG_VERSION"), usize::BITS)
}

fn unavailable(detail: impl Into<String>) -> Error {
    Error::new(Code::Unavailable, detail.into())
}

impl Listener {
    /// Listens at a port that the system chooses: on the addresses of `host`, or if that is `None` on all
    /// of this machine; then its contact has the address that leads to other networks, and the machine's
    /// own. Errors: `InvalidArgument` for a host that is not known; `Unavailable` as the system says.
    pub fn new(host: Option<&str>) -> Result<Self> {
        let failed = |e: std::io::Error| unavailable(format!("cannot listen for processes: {e}"));
        let (socket, hosts) = match host {
            Some(host) => {
                let unknown = |why: &dyn fmt::Display| {
                    Error::invalid(format!("the host {host:?} has no address: {why}"))
                };
                let found = (host, 0).to_socket_addrs().map_err(|e| unknown(&e))?;
                let found: Vec<SocketAddr> = found.collect();
                let first = found.first().ok_or_else(|| unknown(&"none is known"))?;
                (TcpListener::bind(first).map_err(failed)?, vec![first.ip()])
            }
            None => {
                let any = [IpAddr::V6(Ipv6Addr::UNSPECIFIED), IpAddr::V4(Ipv4Addr::UNSPECIFIED)];
                let any = any.map(|ip| SocketAddr::new(ip, 0));
                (TcpListener::bind(&any[..]).map_err(failed)?, own_addresses())
            }
        };
        socket.set_nonblocking(true).map_err(failed)?;
        let port = socket.local_addr().map_err(failed)?.port();
        let token = Token::new();
        let mut contact = format!("{} {token} {}", dialect(), machine());
        for ip in hosts {
            let _ = write!(contact, " {}", SocketAddr::new(ip, port));
        }
        Ok(Listener { socket, token, contact })
    }

    /// Where it listens and by what others show that they mean it: a line of text, for all processes
    /// and nobody else.
    pub fn contact(&self) -> &str {
        &self.contact
    }

    /// Connects the processes whose contacts these are, of which this one is number `rank`; waits for the
    /// others for at most so long. Errors: `InvalidArgument` for contacts that are none, of another
    /// version, or of which number `rank` is not this one's; `Unavailable` if one cannot be reached;
    /// `DeadlineExceeded` if one has not come.
    pub fn connect(self, rank: usize, contacts: &[String], at_most: Duration) -> Result<TcpWire> {
        let deadline = Instant::now() + at_most.min(LONGEST);
        let contacts = contacts.iter().enumerate();
        let contacts = contacts.map(|(from, text)| {
            Contact::read(text)
                .map_err(|e| e.context(format_args!("the contact of process {from}")))
        });
        let contacts: Vec<Contact> = contacts.collect::<Result<_>>()?;
        let own = contacts.get(rank).ok_or_else(|| no_process(rank))?;
        if own.token != self.token {
            return Err(Error::invalid(format!("contact {rank} is not this process's own")));
        }
        let mut streams: Vec<Option<TcpStream>> = Vec::with_capacity(contacts.len());
        for (to, contact) in contacts[..rank].iter().enumerate() {
            let stream = contact.reach(own, rank, deadline);
            streams.push(Some(stream.map_err(|e| e.context(format_args!("process {to}")))?));
        }
        streams.resize_with(contacts.len(), || None);
        self.accept(rank, &contacts, &mut streams, deadline)?;
        let peer = |stream: Option<TcpStream>| stream.map(Peer::new).transpose();
        let peers = streams.into_iter().map(peer).collect::<Result<_>>()?;
        Ok(TcpWire { rank, peers, turn: 0 })
    }

    /// Waits for the processes of higher rank.
    fn accept(
        &self,
        rank: usize,
        contacts: &[Contact],
        streams: &mut [Option<TcpStream>],
        deadline: Instant,
    ) -> Result<()> {
        let mut guests: Vec<Guest> = Vec::new();
        loop {
            let Some(missing) = (rank + 1..streams.len()).find(|&from| streams[from].is_none())
            else {
                return Ok(());
            };
            while let Ok((stream, _)) = self.socket.accept() {
                // One that cannot be listened to is none.
                guests.extend(Guest::new(stream));
            }
            guests.retain_mut(|guest| match guest.greeting() {
                Ok(None) => guest.since.elapsed() < GREETING,
                Ok(Some((meant, token, from))) => {
                    let is_known = meant == self.token
                        && from > rank
                        && contacts.get(from).is_some_and(|contact| contact.token == token);
                    if is_known && streams[from].is_none() {
                        streams[from] = guest.welcome(token);
                    }
                    false
                }
                Err(_) => false,
            });
            if Instant::now() >= deadline {
                let detail = format!("process {missing} has not connected in time");
                return Err(Error::new(Code::DeadlineExceeded, detail));
            }
            thread::sleep(NAP);
        }
    }
}

/// Who has connected, and may be a process.
struct Guest {
    stream: TcpStream,
    since: Instant,
    greeting: [u8; GREETING_BYTES],
    read: usize,
}

impl Guest {
    fn new(stream: TcpStream) -> Option<Self> {
        stream.set_nonblocking(true).ok()?;
        let greeting = [0; GREETING_BYTES];
        Some(Guest { stream, since: Instant::now(), greeting, read: 0 })
    }

    /// The tokens and the rank of its greeting, once that has come. Errors: it is none.
    fn greeting(&mut self) -> std::io::Result<Option<(Token, Token, usize)>> {
        while self.read < GREETING_BYTES {
            match self.stream.read(&mut self.greeting[self.read..]) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(bytes) => self.read += bytes,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        let parts = (|| {
            let (magic, rest) = self.greeting.split_first_chunk::<8>()?;
            let (meant, rest) = rest.split_first_chunk::<16>()?;
            let (token, rest) = rest.split_first_chunk::<16>()?;
            let rank = usize::try_from(u64::from_le_bytes(*rest.first_chunk()?)).ok()?;
            (magic == MAGIC).then_some((Token(*meant), Token(*token), rank))
        })();
        parts.map(Some).ok_or_else(|| ErrorKind::InvalidData.into())
    }

    /// Says that it is known; the connection, unless that fails.
    fn welcome(&mut self, token: Token) -> Option<TcpStream> {
        self.stream.set_nonblocking(false).ok()?;
        self.stream.set_write_timeout(Some(ATTEMPT)).ok()?;
        self.stream.write_all(&[&MAGIC[..], &token.0].concat()).ok()?;
        self.stream.try_clone().ok()
    }
}

impl Contact {
    fn read(text: &str) -> Result<Self> {
        let mut words = text.split_ascii_whitespace();
        let (found, ours) = (words.next().unwrap_or_default(), dialect());
        if found != ours {
            return Err(Error::invalid(format!(
                "a process of helio {found}; this one is of {ours}"
            )));
        }
        let contact = (|| {
            let token = Token::read(words.next()?)?;
            let machine = words.next()?.to_owned();
            let addresses = words.map(|word| word.parse().ok()).collect::<Option<Vec<_>>>()?;
            Some(Contact { token, machine, addresses })
        })();
        contact.ok_or_else(|| Error::invalid(format!("{text:?} has no token and addresses")))
    }

    /// Where it may be reached from a machine, the shortest way first.
    fn ways(&self, from: &str) -> Vec<SocketAddr> {
        let is_same = self.machine == from;
        let (near, far): (Vec<_>, Vec<_>) =
            self.addresses.iter().partition(|address| address.ip().is_loopback());
        if is_same { [near, far].concat() } else { far }
    }

    /// A connection to it, over which it has answered. Errors: `Unavailable` if there is none in time.
    fn reach(&self, own: &Contact, rank: usize, deadline: Instant) -> Result<TcpStream> {
        let ways = self.ways(&own.machine);
        let greeting =
            [&MAGIC[..], &self.token.0, &own.token.0, &(rank as u64).to_le_bytes()].concat();
        let mut last =
            "it has named no address but its machine's own\n  help: Listener::new takes \
                        one (HELIO_HOST under JAX)"
                .to_owned();
        while !ways.is_empty() {
            for address in &ways {
                match greet(address, &greeting, own.token, deadline) {
                    Ok(stream) => return Ok(stream),
                    Err(e) => last = format!("{address}: {e}"),
                }
            }
            if Instant::now() >= deadline {
                break;
            }
            thread::sleep(NAP * 10);
        }
        Err(unavailable(format!("cannot be reached: {last}")))
    }
}

/// A connection over which the process that is meant has answered.
fn greet(
    address: &SocketAddr,
    greeting: &[u8],
    own: Token,
    deadline: Instant,
) -> std::io::Result<TcpStream> {
    let left = || deadline.saturating_duration_since(Instant::now()).max(NAP);
    let mut stream = TcpStream::connect_timeout(address, left().min(ATTEMPT))?;
    stream.set_write_timeout(Some(left().min(ATTEMPT)))?;
    // It answers once it has connected to all of lower ranks itself.
    stream.set_read_timeout(Some(left()))?;
    stream.write_all(greeting)?;
    let mut answer = [0; 24];
    stream.read_exact(&mut answer)?;
    match answer.split_at(8) {
        (magic, token) if magic == MAGIC && token == own.0 => Ok(stream),
        _ => Err(std::io::Error::other("something else than the process answers")),
    }
}

/// The addresses by which this machine sends to other networks, and its own. Nothing is sent.
fn own_addresses() -> Vec<IpAddr> {
    // Addresses for documentation, which the default route leads to.
    let source = |from: IpAddr, to: &str| {
        let socket = UdpSocket::bind((from, 0)).ok()?;
        socket.connect(to).ok()?;
        let ip = socket.local_addr().ok()?.ip();
        (!ip.is_unspecified() && !ip.is_loopback()).then_some(ip)
    };
    let v4 = source(Ipv4Addr::UNSPECIFIED.into(), "192.0.2.1:9");
    let v6 = source(Ipv6Addr::UNSPECIFIED.into(), "[2001:db8::1]:9");
    let near = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    v4.into_iter().chain(v6).chain(near).collect()
}

/// What tells this machine apart from others, as long as it runs; a word.
fn machine() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    // Without one, a process is taken to be on a machine of its own unless it has the same name.
    let id = id.or_else(|_| std::env::var("HOSTNAME").or_else(|_| std::env::var("COMPUTERNAME")));
    let word = id.unwrap_or_default().split_whitespace().collect::<String>();
    if word.is_empty() { Token::new().to_string() } else { word }
}

/// Messages over TCP.
#[derive(Debug)]
pub struct TcpWire {
    rank: usize,
    /// The other processes by rank; nothing for this one.
    peers: Vec<Option<Peer>>,
    /// Whose turn it is to be looked at first.
    turn: usize,
}

/// The connection to a process.
#[derive(Debug)]
struct Peer {
    stream: TcpStream,
    /// What has come and is not yet part of a message: the bytes of this range.
    buffer: Box<[u8]>,
    unread: std::ops::Range<usize>,
    coming: Coming,
    sending: VecDeque<Outgoing>,
    /// Why nothing comes any more, and nothing can be sent.
    end: Option<String>,
    is_end_told: bool,
}

/// How much of a message has come.
#[derive(Debug)]
enum Coming {
    Sizes,
    Head { head: Vec<u8>, bytes: usize, body: usize },
    Body { head: Vec<u8>, block: Block, filled: usize },
}

/// A message that is on its way.
#[derive(Debug)]
struct Outgoing {
    /// Sizes and head.
    front: Vec<u8>,
    body: Option<Arc<Block>>,
    /// How many bytes have been sent.
    sent: usize,
}

impl Peer {
    fn new(stream: TcpStream) -> Result<Self> {
        let ready = stream.set_nodelay(true).and_then(|()| stream.set_nonblocking(true));
        ready.map_err(|e| unavailable(format!("a connection cannot be used: {e}")))?;
        Ok(Peer {
            stream,
            buffer: vec![0; BUFFER_BYTES].into(),
            unread: 0..0,
            coming: Coming::Sizes,
            sending: VecDeque::new(),
            end: None,
            is_end_told: false,
        })
    }

    /// Sends what the system takes.
    fn flush(&mut self) {
        while let (Some(first), None) = (self.sending.front_mut(), &self.end) {
            match first.write(&self.stream) {
                Ok(true) => drop(self.sending.pop_front()),
                Ok(false) => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => self.end = Some(format!("cannot be reached: {e}")),
            }
        }
        if self.end.is_some() {
            self.sending.clear();
        }
    }

    /// The next message that has come whole. Errors: `ResourceExhausted`; why nothing comes any more.
    fn receive(&mut self, memory: &Memory) -> Result<Option<Message>> {
        let mut left = TURN_BYTES;
        loop {
            if let Some(message) = self.assemble(memory)? {
                return Ok(Some(message));
            }
            if left == 0 {
                return Ok(None);
            }
            let read = match &mut self.coming {
                Coming::Body { block, filled, .. } => {
                    let read = self.stream.read(&mut block.as_mut_slice()[*filled..]);
                    *filled += *read.as_ref().unwrap_or(&0);
                    read
                }
                _ => {
                    // What is unread is the beginning of something that fits the buffer.
                    self.buffer.copy_within(self.unread.clone(), 0);
                    self.unread = 0..self.unread.len();
                    let read = self.stream.read(&mut self.buffer[self.unread.end..]);
                    self.unread.end += *read.as_ref().unwrap_or(&0);
                    read
                }
            };
            match read {
                Ok(0) => return Err(unavailable("has closed its connection")),
                Ok(bytes) => left = left.saturating_sub(bytes),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(unavailable(format!("cannot be heard any more: {e}"))),
            }
        }
    }

    /// Makes of what has come what can be made of it.
    fn assemble(&mut self, memory: &Memory) -> Result<Option<Message>> {
        loop {
            let here = &self.buffer[self.unread.clone()];
            match &mut self.coming {
                Coming::Sizes => {
                    let Some((sizes, _)) = here.split_first_chunk::<SIZES>() else {
                        return Ok(None);
                    };
                    let [bytes, body] = sizes.as_chunks::<8>().0 else { return Ok(None) };
                    let [bytes, body] =
                        [bytes, body].map(|size| u64::from_le_bytes(*size) as usize);
                    if bytes > MOST_HEAD_BYTES {
                        let detail = format!("sends what it should not: a head of {bytes} bytes");
                        return Err(unavailable(detail));
                    }
                    self.unread.start += SIZES;
                    self.coming = Coming::Head { head: Vec::new(), bytes, body };
                }
                Coming::Head { head, bytes, body } => {
                    let taken = here.len().min(*bytes - head.len());
                    head.extend_from_slice(&here[..taken]);
                    self.unread.start += taken;
                    if head.len() < *bytes {
                        return Ok(None);
                    }
                    let (head, body) = (std::mem::take(head), *body);
                    if body == 0 {
                        self.coming = Coming::Sizes;
                        return Ok(Some(Message { head, body: None }));
                    }
                    self.coming = Coming::Body { head, block: memory.allocate(body)?, filled: 0 };
                }
                Coming::Body { head, block, filled } => {
                    let taken = here.len().min(block.len() - *filled);
                    block.as_mut_slice()[*filled..][..taken].copy_from_slice(&here[..taken]);
                    self.unread.start += taken;
                    *filled += taken;
                    if *filled < block.len() {
                        return Ok(None);
                    }
                    let head = std::mem::take(head);
                    let Coming::Body { block, .. } =
                        std::mem::replace(&mut self.coming, Coming::Sizes)
                    else {
                        return Ok(None);
                    };
                    return Ok(Some(Message { head, body: Some(Arc::new(block)) }));
                }
            }
        }
    }
}

impl Outgoing {
    fn new(message: &Message) -> Self {
        let sizes = [message.head.len(), message.body.as_ref().map_or(0, |body| body.len())];
        let mut front = Vec::with_capacity(SIZES + message.head.len());
        sizes.iter().for_each(|&size| front.extend((size as u64).to_le_bytes()));
        front.extend(&message.head);
        Outgoing { front, body: message.body.clone(), sent: 0 }
    }

    /// Sends what the system takes; whether that was all.
    fn write(&mut self, mut stream: &TcpStream) -> std::io::Result<bool> {
        let body = self.body.as_ref().map_or(&[][..], |body| body.as_slice());
        // (Not both at once by `write_vectored`: where the other end is gone, that sends this process a
        // signal that ends it unless it is ignored; `write` does not.)
        let sent = match self.sent.checked_sub(self.front.len()) {
            None => stream.write(&self.front[self.sent..])?,
            Some(sent) => stream.write(&body[sent..])?,
        };
        if sent == 0 {
            return Err(ErrorKind::WriteZero.into());
        }
        self.sent += sent;
        Ok(self.sent == self.front.len() + body.len())
    }
}

impl TcpWire {
    /// The connection to a process, without what this wire does: for tests of what others may send.
    #[doc(hidden)]
    pub fn into_stream(mut self, to: usize) -> Option<TcpStream> {
        self.peers.get_mut(to)?.take().map(|peer| peer.stream)
    }
}

impl Wire for TcpWire {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.peers.len()
    }

    fn post(&mut self, to: usize, message: &Message) -> Result<()> {
        let peer = self.peers.get_mut(to).and_then(Option::as_mut).ok_or_else(|| no_process(to))?;
        if let Some(end) = &peer.end {
            return Err(unavailable(end.as_str()));
        }
        let is_idle = peer.sending.is_empty();
        peer.sending.push_back(Outgoing::new(message));
        if is_idle {
            peer.flush();
        }
        // That it is gone is told by `poll`, after what it has sent before.
        Ok(())
    }

    fn poll(&mut self, memory: &Memory) -> Result<Option<(usize, Arrival)>> {
        let count = self.peers.len();
        for step in 0..count {
            let from = (self.turn + step) % count;
            let Some(peer) = &mut self.peers[from] else { continue };
            if peer.is_end_told {
                continue;
            }
            peer.flush();
            let arrival = match peer.receive(memory) {
                Ok(None) => continue,
                Ok(Some(message)) => Ok(message),
                Err(error) if error.code() == Code::ResourceExhausted => return Err(error),
                Err(error) => {
                    (peer.is_end_told, peer.end) = (true, Some(error.detail().to_owned()));
                    peer.sending.clear();
                    Err(error)
                }
            };
            self.turn = from;
            return Ok(Some((from, arrival)));
        }
        Ok(None)
    }

    fn has_sent(&self) -> bool {
        self.peers.iter().flatten().all(|peer| peer.sending.is_empty())
    }

    fn ends_together(&self) -> bool {
        false
    }

    fn close(self: Box<Self>, _: bool) {
        for peer in self.peers.iter().flatten() {
            // What has been sent arrives; who is gone already does not miss it.
            let _ = peer.stream.shutdown(Shutdown::Write);
        }
    }
}
