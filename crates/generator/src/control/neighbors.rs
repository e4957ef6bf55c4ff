// SPDX-License-Identifier: BSD-3-Clause
//! The devices of the configuration in force: has lcores hand over frames of ARP and neighbor discovery, and has them send
//! what the [`Resolver`] answers and asks.

use std::time::{Duration, Instant};

use packet::MacAddr;
use serde_json::Value;

use super::{Active, Control, otg_neighbors, setups};
use crate::engine::layout::Queue;
use crate::engine::{NewWriter, Order};
use crate::neighbors::{self, Hop, Listener, Resolver};
use crate::otg::ApiError;
use crate::otg::server::Answer;
use crate::plan::{Plan, Source};

/// How often the control plane looks for questions and answers.
pub(super) const LOOK_AT_NEIGHBORS: Duration = Duration::from_millis(10);

/// Most frames of a port that are read in one look. A link can bring more than can be read; the others are lost, as any frames
/// are for which there is no room.
const MOST_FRAMES: usize = 250;

/// Most faults of one start that are reported.
const MAX_FAULTS: usize = 50;

/// The devices of a configuration.
#[derive(Default)]
pub(super) struct Devices {
    resolver: Resolver,
    /// The rings from the lcores, each with its port.
    listeners: Vec<(usize, Listener)>,
    /// The destination addresses in each flow's writer; empty if the configuration says them.
    destinations: Vec<Vec<MacAddr>>,
    /// Frames that each port was given to send.
    sent: Vec<u64>,
}

impl Devices {
    /// The devices of a plan, which neither answer nor ask yet.
    pub fn new(plan: &Plan) -> Self {
        Devices {
            resolver: Resolver::new(&plan.interfaces, plan.ports.len(), Instant::now()),
            listeners: Vec::new(),
            destinations: vec![Vec::new(); plan.flows.len()],
            sent: vec![0; plan.ports.len()],
        }
    }

    /// Returns true if devices answer and ask.
    pub fn are_on(&self) -> bool {
        self.resolver.is_on()
    }

    /// The destination addresses in each flow's writer; empty if the configuration says them.
    pub fn destinations(&self) -> &[Vec<MacAddr>] {
        &self.destinations
    }

    /// Frames that a port has sent for devices.
    pub fn sent(&self, port: usize) -> u64 {
        self.sent.get(port).copied().unwrap_or_default()
    }

    /// Reads what the lcores have handed over. Returns what is to be sent, by port.
    fn frames(&mut self, now: Instant) -> Vec<(usize, Vec<Vec<u8>>)> {
        let mut frames = self.resolver.questions(now);
        for (port, listener) in &mut self.listeners {
            for _ in 0..MOST_FRAMES {
                let Some(frame) = listener.take() else { break };
                let answer = self.resolver.hear(*port, &frame, now);
                frames.extend(answer.map(|answer| (*port, answer)));
            }
        }
        let mut by_port: Vec<(usize, Vec<Vec<u8>>)> = Vec::new();
        for (port, frame) in frames {
            match by_port.iter_mut().find(|(other, _)| *other == port) {
                Some((_, own)) => own.push(frame),
                None => by_port.push((port, vec![frame])),
            }
        }
        by_port
    }
}

impl Active<'_> {
    /// Which of these flows cannot start, because the Ethernet address of a gateway is not known.
    pub(super) fn unresolved(&self, flows: &[usize]) -> Vec<String> {
        let resolver = &self.devices.resolver;
        let mut faults = Vec::new();
        for flow in flows.iter().filter_map(|index| self.plan.flows.get(*index)) {
            let Source::Frames(_) = &flow.source else { continue };
            let missing = flow.hops.iter().find(|hop| resolver.find(hop).is_none());
            let Some(Hop::Gateway { interface, address }) = missing else { continue };
            let Some(interface) = resolver.interfaces().get(*interface) else { continue };
            let why = match resolver.is_on() {
                true => "nobody has answered; check the gateway, the VLANs and the link",
                false => {
                    "protocols are stopped; start them first (protocol.all), or set gateway_mac"
                }
            };
            faults.push(format!(
                "flow {:?}: the gateway {address} of device {:?} (ethernet {:?}) has no known MAC address: {why}; nothing was started",
                flow.name, interface.device, interface.name,
            ));
            if faults.len() == MAX_FAULTS {
                break;
            }
        }
        faults
    }
}

impl Control<'_, '_> {
    /// Has the lcores that receive on ports with devices hand over what concerns them, and starts the devices.
    pub(super) async fn listen_to_neighbors(&mut self) {
        let plan = self.active.plan.clone();
        let mut ports: Vec<usize> = plan.interfaces.iter().map(|own| own.port).collect();
        ports.sort_unstable();
        ports.dedup();
        for port in ports {
            for (lcore, lane) in self.lanes_of(port) {
                let (ear, listener) = neighbors::pair();
                self.active.devices.listeners.push((port, listener));
                let order = Order::Ear(lane, Some(Box::new(ear)));
                if self.order_one(lcore, order).await.is_err() {
                    return;
                }
            }
        }
        if !plan.interfaces.is_empty() && !plan.manual_start {
            self.active.devices.resolver.start(Instant::now());
            self.look_at_neighbors().await;
        }
    }

    /// Answers, asks, and takes note of answers.
    pub(super) async fn look_at_neighbors(&mut self) {
        for (port, frames) in self.active.devices.frames(Instant::now()) {
            let Some((lcore, lane)) = self.sending_lane(port) else { continue };
            if let Some(sent) = self.active.devices.sent.get_mut(port) {
                *sent += frames.len() as u64;
            }
            // An error means that the engine has ended.
            let _ = self.order_one(lcore, Order::Emit(lane, frames)).await;
        }
    }

    /// The lcore and the lane of a port's first transmit queue.
    fn sending_lane(&self, port: usize) -> Option<(usize, usize)> {
        let first = Queue { port, queue: 0 };
        self.active.shares.iter().enumerate().find_map(|(lcore, share)| {
            Some((lcore, share.sends.iter().position(|queue| *queue == first)?))
        })
    }

    pub(super) fn set_protocols(&mut self, start: bool) {
        match start {
            true => self.active.devices.resolver.start(Instant::now()),
            false => self.active.devices.resolver.stop(),
        }
    }

    pub(super) fn states(&self, value: &Value) -> Result<Answer, ApiError> {
        let resolver = &self.active.devices.resolver;
        let names: Vec<&str> =
            resolver.interfaces().iter().map(|interface| interface.name.as_str()).collect();
        let request = otg_neighbors::validate(value, &names)?;
        Ok(Answer::Json(otg_neighbors::answer(&request, resolver)))
    }

    /// Gives flows that were forgotten the destination addresses that are known now, if they have others.
    pub(super) async fn set_destinations(&mut self, flows: &[usize]) -> Result<(), ApiError> {
        let plan = self.active.plan.clone();
        let mut writers: Vec<Vec<NewWriter>> = Vec::new();
        for &index in flows {
            let Some(flow) = plan.flows.get(index).filter(|flow| !flow.hops.is_empty()) else {
                continue;
            };
            let Source::Frames(spec) = &flow.source else { continue };
            let resolver = &self.active.devices.resolver;
            let macs: Vec<MacAddr> =
                flow.hops.iter().filter_map(|hop| resolver.find(hop)).collect();
            let home = self.active.homes.get(index).copied().unwrap_or_default();
            let Some(own) = self.active.devices.destinations.get_mut(index) else { continue };
            if *own == macs {
                continue;
            }
            let mut spec = spec.clone();
            neighbors::set_destinations(&mut spec, &macs);
            let writer = setups::writer(&spec, index)
                .map_err(|fault| ApiError::internal(format!("flow {:?}: {fault}", flow.name)))?;
            *own = macs;
            writers.resize_with(writers.len().max(home + 1), Vec::new);
            if let Some(writers) = writers.get_mut(home) {
                writers.push(NewWriter { flow: index, writer });
            }
        }
        if writers.is_empty() {
            return Ok(());
        }
        let mut writers = writers.into_iter();
        self.order(|| Order::Rewrite(writers.next().unwrap_or_default())).await
    }
}
