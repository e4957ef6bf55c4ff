// SPDX-License-Identifier: BSD-3-Clause
//! Sets configurations one after the other on a separate thread: that may take seconds, and the
//! control plane answers other requests meanwhile.
//!
//! A configuration is read, its ports are opened and its frames prepared here. Then the control
//! plane puts it in force, and returns what it replaced to this thread, which closes it. All DPDK
//! calls that change ports are made on this thread.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Instant;

use axum::body::Bytes;
use serde_json::{Value, json};
use tokio::sync::{mpsc::Sender, oneshot};

use super::ports::{Entry, Ports};
use super::{Active, Captures, Devices, Rules, Sampler, ending, no_warnings, setups, tagged};
use crate::books::{Books, Earlier, Told};
use crate::engine::{Change, GivenUp, Settings, Source, Station, layout};
use crate::neighbors;
use crate::otg::edit::{self, Edit, Edited};
use crate::otg::server::{Answer, Ready};
use crate::otg::update::Update;
use crate::otg::{ApiError, MAX_BODY, config, update};
use crate::pacing::LineRate;
use crate::plan::{self, FlowPlan, MAX_WITH_HISTOGRAMS, Plan, PortPlan};
use packet::MacAddr;

/// A request that is handled on this thread.
pub(super) struct Job<'eal> {
    pub task: Task<'eal>,
    /// True if the job frees much memory, because it replaces or sets a large configuration.
    pub large: bool,
}

/// What a job does.
pub(super) enum Task<'eal> {
    /// Set another configuration, in place of one with these ports.
    Set(Wanted, Vec<Entry<'eal>>),
    /// Change rates or sizes of flows of the configuration in force.
    Update(Value, Current<'eal>),
    /// Set the configuration in force with more flows, or fewer.
    Edit(Edit, Value, Current<'eal>),
}

/// A configuration to be set.
pub(super) enum Wanted {
    /// As it was posted.
    Posted(Value),
    /// Already read.
    Ready(Box<Ready>),
}

/// The parts of the configuration in force that an update needs.
pub(super) struct Current<'eal> {
    pub config: Bytes,
    pub plan: Arc<Plan>,
    pub ports: Vec<Entry<'eal>>,
    /// For each flow, the lcore that sends it.
    pub homes: Vec<usize>,
    /// For each flow, the destination addresses of its frames that were found out.
    pub destinations: Vec<Vec<MacAddr>>,
}

impl Current<'_> {
    fn json(&self) -> Result<Value, ApiError> {
        serde_json::from_slice(&self.config)
            .map_err(|error| ApiError::internal(format!("the configuration in force: {error}")))
    }
}

/// What a job reports to the control plane.
pub(super) enum Report<'eal> {
    /// A configuration that is ready to be put in force.
    Next(Box<Next<'eal>>),
    /// Changes to flows of the configuration in force.
    Changed(Box<Changed>),
    /// The job has ended.
    Ended(Result<Answer, ApiError>),
}

/// A configuration that is ready.
pub(super) struct Next<'eal> {
    pub active: Active<'eal>,
    /// The engine's settings from now on.
    pub settings: Settings,
    pub sources: Vec<Source<'eal>>,
    pub stations: Vec<Station>,
    /// Receives what it replaced.
    pub replaced: oneshot::Sender<Replaced<'eal>>,
}

/// What was in force before.
pub(super) struct Replaced<'eal> {
    pub active: Active<'eal>,
    pub given_up: GivenUp<'eal>,
}

/// A configuration whose flows change.
pub(super) struct Changed {
    pub config: Bytes,
    pub plan: Arc<Plan>,
    /// By lcore.
    pub changes: Vec<Vec<Change>>,
    /// Receives the result.
    pub done: oneshot::Sender<Result<(), ApiError>>,
}

/// The current step of a job. Shared with the control plane, which reports it to clients that have
/// to wait.
#[derive(Clone)]
pub(super) struct Progress(Arc<Mutex<(Instant, String)>>);

impl Progress {
    fn new() -> Self {
        Progress(Arc::new(Mutex::new((Instant::now(), String::new()))))
    }

    fn lock(&self) -> MutexGuard<'_, (Instant, String)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a job.
    pub fn begin(&self) {
        *self.lock() = (Instant::now(), "reading the request".to_owned());
    }

    /// Sets the current step.
    pub fn step(&self, step: impl Into<String>) {
        self.lock().1 = step.into();
    }

    /// Describes the step and the time since the request.
    pub fn describe(&self) -> String {
        let (begin, step) = &*self.lock();
        format!("{step}, {:.1} s after its request", begin.elapsed().as_secs_f64())
    }
}

/// Sets configurations. It is made together with the control plane ([`super::Control::new`]) and
/// runs on its own thread ([`Self::start`]).
pub struct Configurator<'eal> {
    rules: Rules,
    ports: Ports<'eal>,
    jobs: mpsc::Receiver<Job<'eal>>,
    reports: Sender<Report<'eal>>,
    progress: Progress,
}

impl<'eal> Configurator<'eal> {
    pub(super) fn new(
        eal: &'eal dpdk::Eal,
        rules: Rules,
        jobs: mpsc::Receiver<Job<'eal>>,
        reports: Sender<Report<'eal>>,
    ) -> Self {
        let ports = Ports::new(eal, rules.ports);
        Configurator { rules, ports, jobs, reports, progress: Progress::new() }
    }

    pub(super) fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// Starts its thread, which runs until the control plane has ended.
    ///
    /// # Errors
    /// The system cannot create a thread.
    pub fn start<'scope>(
        self,
        scope: &'scope Scope<'scope, '_>,
    ) -> io::Result<ScopedJoinHandle<'scope, ()>>
    where
        'eal: 'scope,
    {
        thread::Builder::new().name("config".to_owned()).spawn_scoped(scope, move || self.run())
    }

    fn run(mut self) {
        while let Ok(Job { task, large }) = self.jobs.recv() {
            let result = match task {
                Task::Set(wanted, now) => self.set(wanted, &now),
                Task::Update(request, current) => self.update(request, current),
                Task::Edit(edit, request, current) => self.edit(edit, &request, &current),
            };
            // All that the task used is freed now.
            if large {
                dpdk::trim_heap();
            }
            if self.reports.blocking_send(Report::Ended(result)).is_err() {
                return;
            }
        }
    }

    /// Reads a configuration and puts it in force.
    fn set(&mut self, wanted: Wanted, now: &[Entry<'eal>]) -> Result<Answer, ApiError> {
        let (plan, config, mode, mut warnings) = match wanted {
            Wanted::Posted(value) => {
                let (plan, warnings) = self.read(&value)?;
                (plan, kept(&value)?, self.rules.settings.mode, warnings)
            }
            Wanted::Ready(ready) => (ready.plan, kept(&ready.config)?, ready.mode, Vec::new()),
        };
        let settings = Settings { mode, ..self.rules.settings };
        let (replaced, kept, marks) = self.put_in_force(plan, config, settings, now)?;
        warnings.extend(marks);
        self.rules.settings = settings;
        self.progress.step("closing the previous ports");
        let Replaced { active, given_up } = replaced;
        let gone = active.ports.iter().enumerate().filter(|(index, _)| !kept.contains(index));
        let gone: Vec<&Entry<'eal>> = gone.map(|(_, entry)| entry).collect();
        warnings.extend(self.ports.close(given_up.ports, &gone));
        Ok(Answer::Json(json!({ "warnings": warnings })))
    }

    fn read(&self, value: &Value) -> Result<(Plan, Vec<String>), ApiError> {
        let (mut plan, mut warnings) = config::validate(value, &self.rules.limits())?;
        warnings.extend(self.rules.replays.put_into(&mut plan)?);
        Ok((plan, warnings))
    }

    /// Opens the ports of a plan, prepares its frames and has the control plane put it in force. Returns what it replaced,
    /// the indices of the ports that were kept, and what is to be said.
    fn put_in_force(
        &mut self,
        plan: Plan,
        config: Bytes,
        settings: Settings,
        now: &[Entry<'eal>],
    ) -> Result<(Replaced<'eal>, Vec<usize>, Vec<String>), ApiError> {
        let opened = self.ports.open(&plan.ports, now, &self.progress)?;
        self.progress.step("preparing the frames of its flows");
        let most: Vec<_> = opened.entries.iter().map(Entry::most_queues).collect();
        let shares = layout::shares(self.rules.ports.lcores, &most, self.rules.ports.rx_queues);
        let lines = line_rates(&plan, &opened.entries, self.rules.line_rate);
        let setup = match setups::setup(&plan, shares.clone(), &lines, &settings) {
            Ok(setup) => setup,
            Err(error) => {
                self.ports.undo(opened);
                return Err(error);
            }
        };
        let lean = plan.flows.len() > MAX_WITH_HISTOGRAMS;
        let told = |flow: &FlowPlan| Told {
            lean,
            order: flow.metrics.enable && flow.mark().is_numbered(),
            delays: flow.is_stamped(),
            tags: flow.tags.clone(),
        };
        let told: Vec<Told> = plan.flows.iter().map(told).collect();
        let books = Arc::new(Books::new(&told, plan.ports.len(), setup.receivers));
        for (entry, port) in opened.entries.iter().zip(&plan.ports) {
            entry.set_promiscuous(port.promiscuous);
        }
        let kept = opened.kept();
        let active = Active {
            config,
            captures: Captures::new(&plan),
            devices: Devices::new(&plan),
            earlier: vec![Earlier::default(); plan.ports.len()],
            since_rest: vec![false; plan.flows.len()],
            ports: opened.entries,
            shares,
            homes: setup.homes,
            books: books.clone(),
            sampler: Sampler::default(),
            row_places: tagged::places(&books).into(),
            plan: Arc::new(plan),
        };
        let stations = Station::all(settings, setup.work, &setup.expected, &books);
        let (replaced, reply) = oneshot::channel();
        let next = Next { active, settings, sources: opened.sources, stations, replaced };
        self.report(Report::Next(Box::new(next)))?;
        Ok((reply.blocking_recv().map_err(|_| ending())?, kept, setup.warnings))
    }

    /// Sets the configuration in force with more flows, or fewer. All figures start again.
    fn edit(
        &mut self,
        edit: Edit,
        request: &Value,
        current: &Current<'eal>,
    ) -> Result<Answer, ApiError> {
        let Edited { config, places } = edit::edited(edit, request, current.json()?)?;
        self.set(Wanted::Posted(config), &current.ports).map_err(|error| places.renamed(error))
    }

    /// Changes rates and sizes of flows, whether they run or not.
    fn update(&mut self, request: Value, current: Current<'eal>) -> Result<Answer, ApiError> {
        let config = current.json()?;
        let limits = self.rules.limits();
        let mut update = update::validate(&request, &config, &current.plan, &limits)?;
        drop((request, config));
        // Warnings were given when the configuration was set.
        self.rules.replays.put_into(&mut update.plan)?;
        for (flow, macs) in update.plan.flows.iter_mut().zip(&current.destinations) {
            if let (plan::Source::Frames(spec), false) = (&mut flow.source, macs.is_empty()) {
                neighbors::set_destinations(spec, macs);
            }
        }
        let lines = line_rates(&update.plan, &current.ports, self.rules.line_rate);
        let changes = changes(&update, &lines, &current.homes)?;
        let (done, reply) = oneshot::channel();
        let config = kept(&update.config)?;
        let changed = Changed { config, plan: Arc::new(update.plan), changes, done };
        self.report(Report::Changed(Box::new(changed)))?;
        reply.blocking_recv().map_err(|_| ending())?.map(|()| no_warnings())
    }

    fn report(&self, report: Report<'eal>) -> Result<(), ApiError> {
        self.reports.blocking_send(report).map_err(|_| ending())
    }
}

/// The text of a configuration, as it is kept. Changes cannot make it larger than what can be posted.
fn kept(config: &Value) -> Result<Bytes, ApiError> {
    let text = config.to_string();
    if text.len() > MAX_BODY {
        let what = format!("the configuration would be larger than {MAX_BODY} bytes");
        return Err(ApiError::request(413, what));
    }
    Ok(text.into())
}

/// Bits per second of each planned port on layer 1, where known.
fn line_rates(
    plan: &Plan,
    entries: &[Entry<'_>],
    usual: Option<LineRate>,
) -> Vec<Option<LineRate>> {
    let own = |speed: u32| LineRate::Bits(u64::from(speed) * 1_000_000);
    let rate = |(port, entry): (&PortPlan, &Entry<'_>)| {
        port.speed_mbps.map(own).or(usual).or_else(|| {
            entry.look_at_link();
            entry.speed_mbps().map(own)
        })
    };
    plan.ports.iter().zip(entries).map(rate).collect()
}

/// What each lcore has to change of its flows, which are at their `homes`.
fn changes(
    update: &Update,
    lines: &[Option<LineRate>],
    homes: &[usize],
) -> Result<Vec<Vec<Change>>, ApiError> {
    let mut changes: Vec<Vec<Change>> = Vec::new();
    let mut errors = Vec::new();
    for (place, &(index, resized)) in update.flows.iter().enumerate() {
        let Some(flow) = update.plan.flows.get(index) else { continue };
        let line = lines.get(flow.tx).copied().flatten();
        let rate = setups::frame_rate(flow.rate, flow.source.mean_with_fcs(), line);
        if rate.is_none() {
            let port = update.plan.ports.get(flow.tx).map_or("", |port| port.name.as_str());
            let fault = setups::no_rate(flow.rate, line, port);
            errors.push(format!("flows.flows[{place}].{fault}"));
        }
        let writer = match &flow.source {
            plan::Source::Frames(spec) if resized => Some(setups::writer(spec, index)),
            _ => None,
        };
        let writer = writer.transpose().unwrap_or_else(|fault| {
            errors.push(format!("flows.flows[{place}].{fault}"));
            None
        });
        let home = homes.get(index).copied().unwrap_or_default();
        changes.resize_with(changes.len().max(home + 1), Vec::new);
        if let Some(own) = changes.get_mut(home) {
            own.push(Change { flow: index, rate, writer });
        }
    }
    match errors.is_empty() {
        true => Ok(changes),
        false => Err(ApiError::invalid(errors)),
    }
}
