// SPDX-License-Identifier: BSD-3-Clause
//! Starts, stops, pauses, resumes and changes flows.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use measure::clock;
use serde_json::json;
use tokio::sync::oneshot;

use super::rates::Sampler;
use super::{Control, LINK_TIMEOUT, link_deadline, no_warnings};
use crate::books::{Earlier, State};
use crate::engine::Order;
use crate::otg::ApiError;
use crate::otg::server::Answer;
use crate::otg::state::Transmit;

/// A start that waits for links.
pub(super) struct Pending {
    flows: Vec<usize>,
    deadline: Instant,
    answer: oneshot::Sender<Result<Answer, ApiError>>,
}

impl Control<'_, '_> {
    /// Starts flows as soon as their links are up, and answers then.
    pub(super) async fn start(
        &mut self,
        flows: Vec<usize>,
        answer: oneshot::Sender<Result<Answer, ApiError>>,
    ) {
        self.forget_pending();
        self.pending = Some(Pending { flows, deadline: link_deadline(), answer });
        self.look_at_links().await;
    }

    pub(super) fn forget_pending(&mut self) {
        if let Some(pending) = self.pending.take() {
            let _ = pending.answer.send(Err(ApiError::request(
                409,
                "the start was waiting for a link when another request replaced it",
            )));
        }
    }

    /// Starts the waiting flows if nothing prevents it, and gives up at the deadline.
    pub(super) async fn look_at_links(&mut self) {
        let Some(pending) = self.pending.take() else { return };
        let (mut certain, possible) = self.hindrances(&pending.flows);
        if certain.is_empty() {
            self.look_at_neighbors().await;
            certain = self.active.unresolved(&pending.flows);
        }
        // A change that is being prepared knows the present addresses of gateways, and would bring them back.
        let waits = self.setting.is_some() && certain.is_empty();
        let result = if certain.is_empty() && !waits {
            let started = self.start_now(pending.flows).await;
            started.map(|()| Answer::Json(json!({ "warnings": possible })))
        } else if waits || Instant::now() < pending.deadline {
            self.pending = Some(pending);
            return;
        } else {
            Err(ApiError::invalid(certain))
        };
        let _ = pending.answer.send(result);
    }

    /// Clears the flows' books while no lcore uses them. Then all receivers expect the new run, and
    /// after that all senders begin at the same time.
    async fn start_now(&mut self, flows: Vec<usize>) -> Result<(), ApiError> {
        let flows: Arc<[usize]> = flows.into();
        self.order(|| Order::Forget(flows.clone())).await?;
        self.set_destinations(&flows).await?;
        let from_rest = self.active.books.tx.iter().all(|flow| flow.state() == State::Stopped);
        self.keep_earlier(&flows, from_rest);
        self.active.books.clear(&flows, from_rest);
        let run = self.run;
        self.run = run.wrapping_add(1);
        self.order(|| Order::Expect { flows: flows.clone(), run, from_rest }).await?;
        let senders = self.active.shares.iter().filter(|share| !share.sends.is_empty()).count();
        // Lcores do not read their orders at the same moment: a millisecond is enough for all.
        let at = (senders > 1).then(|| clock::now() + self.rules.settings.hz / 1000);
        self.order(|| Order::Start { flows: flows.clone(), run, at }).await?;
        self.active.sampler = Sampler::new(self.active.counters());
        Ok(())
    }

    /// Adds the flows' own books, which are about to be cleared, to those of the ports; from rest,
    /// all start at zero.
    fn keep_earlier(&mut self, flows: &[usize], from_rest: bool) {
        let active = &mut self.active;
        if from_rest {
            active.earlier.fill(Earlier::default());
            active.since_rest.fill(false);
        }
        for &flow in flows {
            // The ports' books no longer include what was sent before the rest.
            let known =
                active.since_rest.get_mut(flow).is_some_and(|known| std::mem::replace(known, true));
            if !known {
                continue;
            }
            let (Some(plan), Some(run)) = (active.plan.flows.get(flow), active.books.tx.get(flow))
            else {
                continue;
            };
            if let Some(earlier) = active.earlier.get_mut(plan.tx) {
                earlier.add(run);
            }
        }
    }

    pub(super) async fn set_transmit(
        &mut self,
        state: Transmit,
        flows: Vec<usize>,
    ) -> Result<Answer, ApiError> {
        self.forget_pending();
        if matches!(state, Transmit::Stop | Transmit::Pause) {
            self.forget_waiting_starts();
        }
        let flows: Arc<[usize]> = flows.into();
        match state {
            Transmit::Start => return Err(ApiError::internal("a start has its own way")),
            Transmit::Stop => self.order(|| Order::Stop(flows.clone())).await?,
            Transmit::Pause => self.order(|| Order::Pause(flows.clone())).await?,
            Transmit::Resume => self.order(|| Order::Resume(flows.clone())).await?,
        }
        Ok(no_warnings())
    }

    /// What certainly prevents these flows from passing, and what may prevent it.
    fn hindrances(&self, flows: &[usize]) -> (Vec<String>, Vec<String>) {
        let plan = &self.active.plan;
        // Each port that they use, with the longest frame to be sent on it.
        let mut needed: BTreeMap<usize, Option<usize>> = BTreeMap::new();
        for flow in flows.iter().filter_map(|index| plan.flows.get(*index)) {
            let longest = needed.entry(flow.tx).or_default();
            *longest = (*longest).max(Some(flow.source.max_with_fcs()));
            for port in &flow.rx {
                needed.entry(*port).or_default();
            }
        }
        let (mut certain, mut possible) = (Vec::new(), Vec::new());
        for (index, longest) in needed {
            let (Some(port), Some(entry)) = (plan.ports.get(index), self.active.ports.get(index))
            else {
                continue;
            };
            // Without the cache: an earlier obstacle may be gone.
            let found = entry.obstacle_now(longest);
            let up = entry.link_is_up(found.as_ref());
            match found {
                Some(found) if found.is_certain() => {
                    certain.push(format!("port {:?}: {found}; nothing was started", port.name));
                }
                _ if !up => certain.push(format!(
                    "the link of port {:?} ({}) is still down after {} s; nothing was started: start its peer first, or set the link up if a request has set it down",
                    port.name,
                    port.location,
                    LINK_TIMEOUT.as_secs()
                )),
                Some(found) => possible.push(format!("port {:?}: {found}", port.name)),
                None => {}
            }
        }
        (certain, possible)
    }
}
