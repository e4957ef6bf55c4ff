// SPDX-License-Identifier: BSD-3-Clause
//! The captures of a configuration's ports.

use std::time::SystemTime;

use measure::clock;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::keeper::Keeper;
use super::{Control, no_warnings};
use crate::capture::{self, CapturePlan, Clock, Limits, Snapshot};
use crate::engine::Order;
use crate::otg::ApiError;
use crate::otg::capture::{self as otg_capture, Request};
use crate::otg::sending::Room;
use crate::otg::server::Answer;
use crate::plan::Plan;

/// What is or was captured, by port.
#[derive(Default)]
pub(super) struct Captures(Vec<Slot>);

#[derive(Default)]
struct Slot {
    name: String,
    plan: Option<CapturePlan>,
    keeper: Option<Keeper>,
}

impl Captures {
    pub fn new(plan: &Plan) -> Self {
        let of = |name: &String| plan.captures.iter().find(|capture| capture.ports.contains(name));
        let slot =
            |name: &String| Slot { name: name.clone(), plan: of(name).cloned(), keeper: None };
        Captures(plan.ports.iter().map(|port| slot(&port.name)).collect())
    }

    pub fn are_running(&self) -> bool {
        self.0.iter().any(Slot::is_running)
    }

    pub fn is_running(&self, port: usize) -> bool {
        self.0.get(port).is_some_and(Slot::is_running)
    }

    /// The limits of each port: the configuration's captures share the memory.
    fn limits(&self) -> Limits {
        let kept = |slot: &&Slot| slot.plan.as_ref().is_some_and(|plan| plan.file.is_none());
        Limits::of_one_of(self.0.iter().filter(kept).count())
    }

    /// Takes over what the lcores have captured.
    pub fn collect(&mut self) {
        for keeper in self.0.iter_mut().filter_map(|slot| slot.keeper.as_mut()) {
            keeper.collect();
        }
    }

    /// Counts of stored and dropped frames of a port that is or was captured.
    pub fn figures(&self, port: usize) -> Option<capture::Figures> {
        Some(self.0.get(port)?.keeper.as_ref()?.figures())
    }

    /// Why a port's file is incomplete.
    pub fn error(&self, port: usize) -> Option<String> {
        self.0.get(port)?.keeper.as_ref()?.error()
    }

    /// What a port has captured, as far as it is.
    pub fn snapshot(&self, request: &Request) -> Result<Snapshot, ApiError> {
        let slot = self.0.get(request.port);
        match slot.and_then(|slot| slot.keeper.as_ref()) {
            Some(Keeper::Memory(recorder)) => Ok(recorder.snapshot()),
            Some(Keeper::File(_)) => {
                Err(ApiError::request(400, "port_name: is captured into a file"))
            }
            None => Err(ApiError::request(
                400,
                format!(
                    "port_name: port {:?} has captured nothing; start its capture first",
                    slot.map_or("", |slot| slot.name.as_str())
                ),
            )),
        }
    }
}

impl Slot {
    fn is_running(&self) -> bool {
        self.keeper.as_ref().is_some_and(Keeper::is_running)
    }
}

/// The file of a capture that is being made, on a thread of its own: that may take a second, and others are answered
/// meanwhile.
pub(super) struct Making {
    file: JoinHandle<Vec<u8>>,
    room: Room,
    answer: oneshot::Sender<Result<Answer, ApiError>>,
}

impl Making {
    /// Waits for the file. The wait may be cancelled and repeated.
    pub async fn made(making: &mut Option<Making>) -> Result<Vec<u8>, ApiError> {
        match making {
            Some(making) => (&mut making.file)
                .await
                .map_err(|error| ApiError::internal(format!("the file was not made: {error}"))),
            None => std::future::pending().await,
        }
    }

    /// Sends the file, or the error, to the client.
    pub fn send(self, made: Result<Vec<u8>, ApiError>) {
        let file = made.map(|bytes| Answer::File(self.room.file(bytes)));
        // The client may have gone.
        let _ = self.answer.send(file);
    }
}

impl Control<'_, '_> {
    /// Queues a request for a capture file. The request has been checked, so it is not large.
    pub(super) fn queue_file(
        &mut self,
        request: Value,
        answer: oneshot::Sender<Result<Answer, ApiError>>,
    ) {
        self.files.retain(|(_, answer)| !answer.is_closed());
        self.files.push_back((request, answer));
        self.make_files();
    }

    /// Makes the next requested file, unless one is being made: each may need a copy of all captured
    /// frames.
    pub(super) fn make_files(&mut self) {
        while self.making.is_none()
            && let Some((value, answer)) = self.files.pop_front()
        {
            // The client has disconnected.
            if answer.is_closed() {
                continue;
            }
            match self.make_file(&value) {
                Ok((file, room)) => self.making = Some(Making { file, room, answer }),
                Err(error) => drop(answer.send(Err(error))),
            }
        }
    }

    fn make_file(&mut self, value: &Value) -> Result<(JoinHandle<Vec<u8>>, Room), ApiError> {
        // The configuration may have changed since the request.
        let request = otg_capture::request(value, &self.port_names())?;
        self.active.captures.collect();
        let snapshot = self.active.captures.snapshot(&request)?;
        let room = self.sending.room(snapshot.file_len(request.slice))?;
        let slice = request.slice;
        Ok((tokio::task::spawn_blocking(move || snapshot.file(slice)), room))
    }

    pub(super) async fn set_captures(
        &mut self,
        start: bool,
        ports: &[usize],
    ) -> Result<Answer, ApiError> {
        // An empty list of ports means all ports that have a capture.
        let all = ports.len() == self.active.captures.0.len();
        let planned = |port: &&usize| {
            self.active.captures.0.get(**port).is_some_and(|slot| slot.plan.is_some())
        };
        let ports: Vec<usize> = match all {
            true => ports.iter().filter(planned).copied().collect(),
            false => match ports.iter().find(|port| !planned(port)) {
                Some(port) => {
                    let name = self.active.plan.ports.get(*port).map_or("", |port| &port.name);
                    return Err(ApiError::request(
                        400,
                        format!(
                            "port.capture.port_names: port {name:?} is in no capture of the configuration"
                        ),
                    ));
                }
                None => ports.to_vec(),
            },
        };
        if ports.is_empty() {
            return Err(ApiError::request(400, "port.capture: the configuration has no captures"));
        }
        for port in ports {
            match start {
                true => self.start_capture(port).await?,
                false => self.stop_capture(port).await?,
            }
        }
        Ok(no_warnings())
    }

    /// The lcores and lanes on which a port is received.
    pub(super) fn lanes_of(&self, port: usize) -> Vec<(usize, usize)> {
        let shares = self.active.shares.iter().enumerate();
        let lanes = |(lcore, share): (usize, &crate::engine::layout::Share)| {
            let receives = share.receives.iter().enumerate();
            let own = receives.filter(|(_, queue)| queue.port == port);
            own.map(|(lane, _)| (lcore, lane)).collect::<Vec<_>>()
        };
        shares.flat_map(lanes).collect()
    }

    async fn start_capture(&mut self, port: usize) -> Result<(), ApiError> {
        let lanes = self.lanes_of(port);
        let hz = self.rules.settings.hz;
        let limits = self.active.captures.limits();
        let Some(slot) = self.active.captures.0.get_mut(port) else { return Ok(()) };
        let Some(plan) = &slot.plan else { return Ok(()) };
        let clock = Clock::new(clock::now(), SystemTime::now(), hz);
        let settings =
            capture::Settings { limits, ..capture::Settings::of(plan, &slot.name, clock) };
        let (keeper, taps) = Keeper::start(settings, plan.file.as_ref(), lanes.len())
            .map_err(|error| ApiError::request(400, format!("port.capture: {error}")))?;
        slot.keeper = Some(keeper);
        for ((lcore, lane), tap) in lanes.into_iter().zip(taps) {
            self.order_one(lcore, Order::Tap(lane, Some(Box::new(tap)))).await?;
        }
        Ok(())
    }

    async fn stop_capture(&mut self, port: usize) -> Result<(), ApiError> {
        for (lcore, lane) in self.lanes_of(port) {
            self.order_one(lcore, Order::Tap(lane, None)).await?;
        }
        let slot = self.active.captures.0.get_mut(port);
        if let Some(keeper) = slot.and_then(|slot| slot.keeper.as_mut()) {
            keeper.stop();
        }
        Ok(())
    }
}
