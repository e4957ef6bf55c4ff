// SPDX-License-Identifier: BSD-3-Clause
//! Who has the places for connections, and the memory for bodies.
//!
//! Clients that have shown the password, and those of the Unix socket, are *trusted* and have places of their
//! own. When all places of a kind are taken, a new connection gets that of the weakest one: one that keeps us
//! waiting, of the address with the most connections, and of these the one that began its request, or came,
//! longest ago. So peers that say nothing, or little, take no place from those that ask and are answered. The
//! memory for bodies is shared in the same way. On this machine users take the part of addresses: a user who
//! crowds in, or guesses passwords, is in nobody else's way.
//!
//! All of it is short work under one lock, on the HTTP thread.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Mutex as Turns, oneshot};

/// Places for trusted clients, and as many for others.
pub const MAX_CONNECTIONS: usize = 64;
/// Places for one address of another machine, or for one network of IPv6 (/64), before it is trusted.
pub const MAX_PER_ADDRESS: usize = 16;
/// Bytes of all bodies that are being read or worked on.
pub const MAX_BODIES: usize = 64 << 20;

/// Wrong passwords of an address before its next ones are slowed.
const FREE_GUESSES: u32 = 5;
/// How long each password of such an address takes, one after the other.
const GUESS: Duration = Duration::from_millis(100);
/// After so long without a wrong password all is forgotten.
const FORGET: Duration = Duration::from_secs(60);
/// Addresses whose wrong passwords are known at a time.
const MAX_GUESSERS: usize = 1024;

/// Where a connection comes from, as far as connections are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Peer {
    /// The Unix socket, on which only the user who started the program gets in.
    Local,
    /// A program of this machine: of this user, if the kernel says so.
    Loopback(Option<u32>),
    /// An address of another machine, of IPv6 its network.
    Remote(IpAddr),
}

impl Peer {
    /// The peer at an address; `user` is asked who that is if it is a program of this machine.
    #[must_use]
    pub fn at(address: IpAddr, user: impl FnOnce() -> Option<u32>) -> Self {
        match address.to_canonical() {
            address if address.is_loopback() => Peer::Loopback(user()),
            IpAddr::V6(six) => {
                let network = u128::from(six) & !u128::from(u64::MAX);
                Peer::Remote(IpAddr::V6(network.into()))
            }
            four => Peer::Remote(four),
        }
    }
}

/// All places.
#[derive(Clone, Debug, Default)]
pub struct Places(Arc<Mutex<Taken>>);

#[derive(Debug, Default)]
struct Taken {
    next: u64,
    connections: BTreeMap<u64, Connection>,
    guessers: BTreeMap<Peer, Guesser>,
}

#[derive(Debug)]
struct Connection {
    peer: Peer,
    trusted: bool,
    /// Whether the client waits for us, not we for it.
    served: bool,
    /// When it came, began its latest request, or was answered.
    since: Instant,
    /// Bytes of the body that it has sent.
    held: usize,
    /// Dropped when the place is given to another.
    _lease: oneshot::Sender<()>,
}

#[derive(Debug)]
struct Guesser {
    wrong: u32,
    latest: Instant,
    turns: Arc<Turns<()>>,
}

impl Taken {
    /// The connection to end first of those that `may`.
    fn weakest(&self, may: impl Fn(&Connection) -> bool) -> Option<u64> {
        let mut crowds: BTreeMap<Peer, usize> = BTreeMap::new();
        for connection in self.connections.values() {
            *crowds.entry(connection.peer).or_default() += 1;
        }
        let waits = |(_, connection): &(&u64, &Connection)| !connection.served && may(connection);
        let rank = |(_, connection): &(&u64, &Connection)| {
            let crowd = crowds.get(&connection.peer).copied().unwrap_or_default();
            (connection.trusted, Reverse(crowd), connection.since)
        };
        self.connections.iter().filter(waits).min_by_key(rank).map(|(id, _)| *id)
    }

    /// Has fewer than `most` connections that `count`, by ending the weakest of them.
    fn make_room(&mut self, most: usize, count: impl Fn(&Connection) -> bool + Copy) -> bool {
        while self.connections.values().filter(|connection| count(connection)).count() >= most {
            let Some(weakest) = self.weakest(count) else { return false };
            self.connections.remove(&weakest);
        }
        true
    }
}

impl Places {
    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a new connection, and what resolves when the place is taken away; none if all places are
    /// those of clients that are being served.
    #[must_use]
    pub fn enter(&self, peer: Peer) -> Option<(Seat, oneshot::Receiver<()>)> {
        let trusted = peer == Peer::Local;
        let mut taken = self.lock();
        let alone = !matches!(peer, Peer::Remote(_))
            || taken.make_room(MAX_PER_ADDRESS, |other| !other.trusted && other.peer == peer);
        if !alone || !taken.make_room(MAX_CONNECTIONS, |other| other.trusted == trusted) {
            return None;
        }
        let id = taken.next;
        taken.next += 1;
        let (lease, ended) = oneshot::channel();
        let since = Instant::now();
        let connection = Connection { peer, trusted, served: false, since, held: 0, _lease: lease };
        taken.connections.insert(id, connection);
        drop(taken);
        Some((Seat(Arc::new(Inner { id, peer, places: self.clone() })), ended))
    }
}

/// A connection's place. It is free when the last copy is dropped.
#[derive(Clone, Debug)]
pub struct Seat(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    id: u64,
    peer: Peer,
    places: Places,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.places.lock().connections.remove(&self.id);
    }
}

impl Seat {
    /// Where the connection comes from.
    #[must_use]
    pub fn peer(&self) -> Peer {
        self.0.peer
    }

    fn change(&self, change: impl FnOnce(&mut Connection)) {
        if let Some(connection) = self.0.places.lock().connections.get_mut(&self.0.id) {
            change(connection);
        }
    }

    /// The headers of a request are there.
    pub fn begins(&self) {
        self.change(|connection| connection.since = Instant::now());
    }

    /// Whether it has one of the places of those who may.
    #[must_use]
    pub fn is_trusted(&self) -> bool {
        self.0.places.lock().connections.get(&self.0.id).is_some_and(|own| own.trusted)
    }

    /// The client has shown that it may: it moves to the places of those, and its connection stays when
    /// others crowd in.
    pub fn trust(&self) {
        let mut taken = self.0.places.lock();
        if taken.connections.get(&self.0.id).is_none_or(|own| own.trusted) {
            return;
        }
        if taken.make_room(MAX_CONNECTIONS, |other| other.trusted)
            && let Some(own) = taken.connections.get_mut(&self.0.id)
        {
            own.trusted = true;
        }
    }

    /// Counts bytes of a body that have come. If all bodies have too many, a weaker connection has to go;
    /// `false` if there is none, and then these are not counted.
    #[must_use]
    pub fn holds(&self, bytes: usize) -> bool {
        let mut taken = self.0.places.lock();
        loop {
            let all: usize = taken.connections.values().map(|connection| connection.held).sum();
            if all + bytes <= MAX_BODIES {
                break;
            }
            let weakest = taken.weakest(|connection| connection.held > 0);
            match weakest.filter(|weakest| *weakest != self.0.id) {
                Some(weakest) => taken.connections.remove(&weakest),
                None => return false,
            };
        }
        match taken.connections.get_mut(&self.0.id) {
            Some(own) => {
                own.held += bytes;
                true
            }
            None => false,
        }
    }

    /// The request is whole: it has its place until it is answered.
    #[must_use]
    pub fn serve(&self) -> Served {
        self.change(|connection| connection.served = true);
        Served(self.clone())
    }

    /// Waits until this client's password may be looked at. After some wrong ones from its address that is
    /// for one of the address's requests at a time, and not at once.
    pub async fn guess_turn(&self) {
        let turns = {
            let mut taken = self.0.places.lock();
            match taken.guessers.get(&self.0.peer) {
                Some(guesser) if guesser.latest.elapsed() >= FORGET => {
                    taken.guessers.remove(&self.0.peer);
                    None
                }
                Some(guesser) if guesser.wrong >= FREE_GUESSES => Some(guesser.turns.clone()),
                _ => None,
            }
        };
        if let Some(turns) = turns {
            // Those that have gone meanwhile wait no more, so that the queue has one for each connection.
            let _turn = turns.lock().await;
            tokio::time::sleep(GUESS).await;
        }
    }

    /// The password was wrong.
    pub fn guessed_wrong(&self) {
        let (mut taken, latest) = (self.0.places.lock(), Instant::now());
        if taken.guessers.len() >= MAX_GUESSERS && !taken.guessers.contains_key(&self.0.peer) {
            let oldest = taken.guessers.iter().min_by_key(|(_, guesser)| guesser.latest);
            if let Some(oldest) = oldest.map(|(peer, _)| *peer) {
                taken.guessers.remove(&oldest);
            }
        }
        let new = || Guesser { wrong: 0, latest, turns: Arc::default() };
        let guesser = taken.guessers.entry(self.0.peer).or_insert_with(new);
        guesser.wrong = guesser.wrong.saturating_add(1);
        guesser.latest = latest;
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub struct Served(Seat);

impl Drop for Served {
    fn drop(&mut self) {
        self.0.change(|connection| {
            connection.served = false;
            connection.held = 0;
            connection.since = Instant::now();
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Entered = (Seat, oneshot::Receiver<()>);

    const OWN: Peer = Peer::Loopback(Some(7));

    fn remote(last: u8) -> Peer {
        Peer::at(IpAddr::from([192, 0, 2, last]), || None)
    }

    fn fill(places: &Places, peer: Peer, count: usize) -> Vec<Entered> {
        (0..count).map(|_| places.enter(peer).unwrap()).collect()
    }

    fn has_gone(entered: &mut Entered) -> bool {
        entered.1.try_recv() == Err(oneshot::error::TryRecvError::Closed)
    }

    #[test]
    fn who_says_nothing_longest_makes_room() {
        let places = Places::default();
        let mut idle = fill(&places, OWN, MAX_CONNECTIONS);
        idle[0].0.begins();
        let _next = places.enter(OWN).unwrap();
        assert!(!has_gone(&mut idle[0]) && has_gone(&mut idle[1]) && !has_gone(&mut idle[2]));
        // What has gone leaves no hole behind: its place is the new one's.
        drop(idle.remove(1));
        assert_eq!(places.lock().connections.len(), MAX_CONNECTIONS);
        drop(idle);
        assert_eq!(places.lock().connections.len(), 1);
    }

    #[test]
    fn who_is_served_stays() {
        let places = Places::default();
        let mut all = fill(&places, OWN, MAX_CONNECTIONS);
        let served: Vec<Served> = all.iter().map(|(seat, _)| seat.serve()).collect();
        assert!(places.enter(OWN).is_none());
        // Those who may have places of their own.
        assert!(places.enter(Peer::Local).is_some());
        drop(served);
        let _next = places.enter(OWN).unwrap();
        assert_eq!(all.iter_mut().map(has_gone).filter(|gone| *gone).count(), 1);
    }

    #[test]
    fn who_may_has_a_place_of_its_own() {
        let places = Places::default();
        let mut known = places.enter(OWN).unwrap();
        known.0.trust();
        let _crowd = fill(&places, OWN, 3 * MAX_CONNECTIONS);
        assert!(known.0.is_trusted() && !has_gone(&mut known));
        // The places of those are not endless either.
        let more = fill(&places, OWN, 1);
        more[0].0.trust();
        let _local = fill(&places, Peer::Local, MAX_CONNECTIONS - 2);
        assert!(!has_gone(&mut known));
        let _last = places.enter(Peer::Local).unwrap();
        let trusted = places.lock().connections.values().filter(|one| one.trusted).count();
        assert_eq!(trusted, MAX_CONNECTIONS);
    }

    #[test]
    fn one_address_takes_its_own_places_only() {
        let places = Places::default();
        let mut first = places.enter(remote(1)).unwrap();
        let mut crowd = fill(&places, remote(2), 4 * MAX_CONNECTIONS);
        assert!(!has_gone(&mut first));
        let left = crowd.iter_mut().map(has_gone).filter(|gone| !gone).count();
        assert_eq!(left, MAX_PER_ADDRESS);
        // Of several the most crowded one makes room.
        for last in 3..=6 {
            crowd.extend(fill(&places, remote(last), MAX_PER_ADDRESS));
        }
        assert!(!has_gone(&mut first));
    }

    #[test]
    fn one_user_of_this_machine_takes_no_place_from_another() {
        let places = Places::default();
        let mut first = places.enter(OWN).unwrap();
        for other in [Some(8), None] {
            let _crowd = fill(&places, Peer::Loopback(other), 3 * MAX_CONNECTIONS);
            assert!(!has_gone(&mut first));
        }
    }

    #[test]
    fn addresses_are_told_apart_by_network() {
        let at = |text: &str| Peer::at(text.parse().unwrap(), || Some(7));
        assert_eq!(at("2001:db8::1"), at("2001:db8::ffff:1"));
        assert_ne!(at("2001:db8::1"), at("2001:db8:0:1::1"));
        assert_ne!(at("192.0.2.1"), at("192.0.2.2"));
        assert_eq!(at("::ffff:192.0.2.1"), at("192.0.2.1"));
        for own in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
            assert_eq!(at(own), OWN);
        }
    }

    #[test]
    fn bodies_have_a_limit_together() {
        let places = Places::default();
        let mut slow = fill(&places, OWN, 8);
        for (seat, _) in &slow {
            assert!(seat.holds(MAX_BODIES / 8));
        }
        let new = places.enter(OWN).unwrap();
        new.0.begins();
        assert!(new.0.holds(1) && has_gone(&mut slow[0]) && !has_gone(&mut slow[1]));
        // Who comes too late with more has to wait.
        slow[1].0.trust();
        for (seat, _) in &mut slow[1..] {
            seat.begins();
        }
        let served = slow[1].0.serve();
        assert!(!new.0.holds(MAX_BODIES));
        assert!(!has_gone(&mut slow[1]));
        drop(served);
        assert!(slow[1].0.holds(MAX_BODIES));
    }

    #[test]
    fn wrong_passwords_are_slowed_where_they_come_from() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let places = Places::default();
            let (guesser, other) =
                (places.enter(remote(1)).unwrap(), places.enter(remote(2)).unwrap());
            let begin = Instant::now();
            for _ in 0..FREE_GUESSES {
                guesser.0.guess_turn().await;
                guesser.0.guessed_wrong();
            }
            assert!(begin.elapsed() < GUESS);
            let begin = Instant::now();
            // In parallel they are no faster.
            tokio::join!(guesser.0.guess_turn(), guesser.0.guess_turn(), guesser.0.guess_turn());
            assert!(begin.elapsed() >= 3 * GUESS);
            let begin = Instant::now();
            other.0.guess_turn().await;
            assert!(begin.elapsed() < GUESS);
            for last in 0..=MAX_GUESSERS {
                let peer = Peer::at(IpAddr::from([10, 0, (last >> 8) as u8, last as u8]), || None);
                places.enter(peer).unwrap().0.guessed_wrong();
            }
            assert_eq!(places.lock().guessers.len(), MAX_GUESSERS);
        });
    }
}
