// SPDX-License-Identifier: BSD-3-Clause
//! The control plane: reloads, captures and what telemetry answers. It runs on a thread that is no lcore.

use std::error::Error;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dpdk::qsbr::Replaceable;
use dpdk::telemetry::{RegisterError, Value};
use dpdk::{Eal, Stop};
use packet::MacAddr;

use crate::capture::Captures;
use crate::config::Config;
use crate::counters::Totals;
use crate::tables::{Numbers, Tables};

/// What somebody wants of the control plane.
enum Request {
    Reload,
    Capture(PathBuf),
    EndCapture,
}

/// Requests that wait at most; a telemetry client gets `null` for more.
const WAITING: usize = 8;
/// How often captured packets are written, and signals looked at.
const TURN: Duration = Duration::from_millis(10);

/// The numbers of VIPs, by name, which telemetry reads.
pub type Names = Arc<Mutex<Vec<(String, u16)>>>;

/// The control plane.
pub struct Control<'e, 'q, 't> {
    pub eal: &'e Eal,
    pub config: PathBuf,
    pub own: MacAddr,
    pub tables: &'t Replaceable<'q, Tables<'e>>,
    pub numbers: Numbers,
    pub captures: Captures,
    /// Set by SIGHUP.
    pub hangup: Arc<AtomicBool>,
    pub names: Names,
}

impl<'e> Control<'e, '_, '_> {
    /// Works until `stop` is set.
    pub fn run(mut self, requests: &Requests, stop: &Stop) {
        while !stop.is_set() {
            let result = match requests.0.recv_timeout(TURN) {
                Ok(request) => self.serve(request),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Ok(()),
            };
            tell(result);
            if self.hangup.swap(false, Relaxed) {
                tell(self.reload());
            }
            tell(self.captures.collect().map_err(Into::into));
        }
        tell(self.captures.end().map_err(Into::into));
    }

    fn serve(&mut self, request: Request) -> Result<(), Box<dyn Error>> {
        match request {
            Request::Reload => self.reload(),
            Request::Capture(file) => self.captures.begin(&file),
            Request::EndCapture => Ok(self.captures.end()?),
        }
    }

    /// Reads the configuration again. If something is wrong with it, the tables stay.
    fn reload(&mut self) -> Result<(), Box<dyn Error>> {
        let config = Config::read(&self.config)?;
        // A configuration that is refused uses no numbers up.
        let mut numbers = self.numbers.clone();
        let tables = Tables::new(self.eal, &config, self.own, &mut numbers)?;
        self.numbers = numbers;
        *self.names.lock().unwrap_or_else(PoisonError::into_inner) = self.numbers.names();
        // Waits until no lcore looks into the old tables, and frees them.
        drop(self.tables.replace(tables));
        println!("reloaded {}", self.config.display());
        Ok(())
    }
}

fn tell(result: Result<(), Box<dyn Error>>) {
    if let Err(error) = result {
        eprintln!("error: {error}");
    }
}

/// Requests of telemetry clients.
pub struct Requests(Receiver<Request>);

/// Registers the telemetry commands.
pub fn publish(eal: &Eal, totals: &Arc<Totals>, names: &Names) -> Result<Requests, RegisterError> {
    let telemetry = eal.telemetry();
    let (totals, all) = (Arc::clone(totals), Arc::clone(totals));
    telemetry.register("/l4lb/counters", "Packets received and dropped", move |_| {
        let all = all.all().into_iter();
        Some(Value::Dict(all.map(|(name, number)| (name.to_owned(), number.into())).collect()))
    })?;
    let names = Arc::clone(names);
    telemetry.register(
        "/l4lb/vip",
        "NAME: packets, answers and new connections of a VIP",
        move |name| {
            let names = names.lock().unwrap_or_else(PoisonError::into_inner);
            let (_, number) = names.iter().find(|(known, _)| known == name)?;
            let counters = totals.vip(*number).into_iter();
            let entry = |(name, number): (&str, u64)| (name.to_owned(), number.into());
            Some(Value::Dict(counters.map(entry).collect()))
        },
    )?;
    let (ask, asked) = mpsc::sync_channel(WAITING);
    // Whether it succeeded is on standard output and standard error.
    let put = |ask: &SyncSender<Request>, request| {
        ask.try_send(request).ok().map(|()| Value::from("queued"))
    };
    let sender = ask.clone();
    telemetry.register("/l4lb/reload", "Reads the configuration again", move |_| {
        put(&sender, Request::Reload)
    })?;
    telemetry.register(
        "/l4lb/capture",
        "FILE: begins a capture; nothing: ends it",
        move |file| {
            let request =
                if file.is_empty() { Request::EndCapture } else { Request::Capture(file.into()) };
            put(&ask, request)
        },
    )?;
    Ok(Requests(asked))
}
