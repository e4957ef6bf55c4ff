// SPDX-License-Identifier: BSD-3-Clause
//! Sends the traffic of a command line, shows it while it runs, and reports the result.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dpdk::Eal;
use host::files;

use super::ceiling::{CeilingError, ceiling};
use super::client::Client;
use super::figures::{Observer, Snapshot};
use super::job::{Defaults, Job, JobError, job};
use super::options::CommandOptions;
use super::report::{Ended, Report};
use super::session::{SessionError, session};
use super::settle;
use super::table::{MOST_FLOWS, Screen, print};
use crate::control::Rules;
use crate::engine::Mode;
use crate::location::Location;
use crate::otg::{ApiError, config};
use crate::pacing::FrameRate;
use crate::plan::{Plan, Rate};

/// Time between two checks whether it has ended.
const LOOK: Duration = Duration::from_millis(20);
/// Time between two tables.
const SHOW: Duration = Duration::from_secs(1);

/// Why the traffic could not be sent, or its statistics not be written.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// An error in the command line.
    #[error(transparent)]
    Job(#[from] JobError),
    /// It is unknown what 100 percent is.
    #[error(transparent)]
    Ceiling(#[from] CeilingError),
    /// The session failed.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The control plane's error.
    #[error("{}", .0.errors.join("\n"))]
    Refused(#[from] ApiError),
    /// The JSON document cannot be written.
    #[error("--json {0}: {1}")]
    Json(PathBuf, std::io::Error),
    /// A capture file is not complete.
    #[error("--capture: {0}")]
    Capture(String),
}

/// Checks the command line, as far as possible without opening a port.
///
/// # Errors
/// [`JobError`].
pub fn prepare(options: &CommandOptions, limits: &config::Limits) -> Result<Job, JobError> {
    let defaults =
        Defaults { rate: options.rate, duration: options.duration, size: options.size.0.clone() };
    let (ports, flows) = (&options.port, &options.flow);
    job(ports, flows, &options.capture, options.capture_limit, &defaults, limits)
}

/// Sends a job's flows until all frames are sent or `signal` is not 0.
///
/// # Errors
/// [`RunError`].
pub fn run(
    eal: &Eal,
    rules: Rules,
    options: &CommandOptions,
    mut job: Job,
    signal: &AtomicUsize,
) -> Result<Ended, RunError> {
    let json = |path: &PathBuf, error| RunError::Json(path.clone(), error);
    if let Some(path) = &options.json {
        // Checked now, not when the traffic has ended.
        files::check(path).map_err(|error| json(path, error))?;
    }
    let sent = session(eal, rules.clone(), |client| {
        let Some(ceilings) = resolve_percents(client, &rules, &mut job.plan, signal)? else {
            return Ok(None);
        };
        send(client, &rules, &job, ceilings, signal).map(Some).map_err(RunError::Refused)
    })??;
    let Some(sent) = sent else { return Ok(ended_by(signal)) };
    let report = Report {
        snapshot: &sent.snapshot,
        settings: &rules.settings,
        ended: sent.ended,
        ceilings: &sent.ceilings,
        warnings: &sent.warnings,
    };
    print(&report.text());
    if let Some(path) = &options.json {
        files::write(path, format!("{:#}\n", report.json())).map_err(|error| json(path, error))?;
    }
    let captures = sent.snapshot.ports.iter().filter_map(|port| port.capture.as_ref());
    match captures.filter_map(|capture| capture.error.clone()).next() {
        Some(error) => Err(RunError::Capture(error)),
        None => Ok(sent.ended),
    }
}

/// Replaces percentages by frames per second, if the port has no line rate. Returns the measured
/// rate of 100 percent, by flow; `None` after a signal.
fn resolve_percents(
    client: &Client,
    rules: &Rules,
    plan: &mut Plan,
    signal: &AtomicUsize,
) -> Result<Option<Vec<Option<f64>>>, CeilingError> {
    let mut ceilings = vec![None; plan.flows.len()];
    // Rates measured so far: port, mean size and frames per second.
    let mut known: Vec<(usize, f64, f64)> = Vec::new();
    for index in 0..plan.flows.len() {
        let Some(flow) = plan.flows.get(index) else { continue };
        let Rate::Percent(percent) = flow.rate else { continue };
        let (tx, mean) = (flow.tx, flow.source.mean_with_fcs());
        let Some(port) = plan.ports.get(tx) else { continue };
        if rules.settings.mode == Mode::Flood {
            // Rates are not used in a flood.
            set_rate(plan, index, 1.0);
            continue;
        }
        if rules.line_rate.is_some() || matches!(port.location, Location::Pci(_)) {
            continue;
        }
        let same = |(port, size, _): &&(usize, f64, f64)| *port == tx && *size == mean;
        let frames = match known.iter().find(same) {
            Some((.., frames)) => *frames,
            None => {
                // Each measurement takes a second.
                if signal.load(Ordering::Relaxed) != 0 {
                    return Ok(None);
                }
                let frames = ceiling(client, rules.settings.hz, plan, index)?;
                print(&format!(
                    "100 % of port {} is {:.3} Mpps with frames of {mean:.0} bytes: the best of three floods of 0.3 s (--line-rate sets another)\n",
                    plan.ports.get(tx).map_or("", |port| &port.name),
                    frames / 1e6
                ));
                known.push((tx, mean, frames));
                frames
            }
        };
        if let Some(ceiling) = ceilings.get_mut(index) {
            *ceiling = Some(frames);
        }
        set_rate(plan, index, frames * percent / 100.0);
    }
    Ok(Some(ceilings))
}

fn ended_by(signal: &AtomicUsize) -> Ended {
    Ended::Signal(i32::try_from(signal.load(Ordering::Relaxed)).unwrap_or_default())
}

/// Sets a flow's rate in frames per second, to a thousandth.
fn set_rate(plan: &mut Plan, index: usize, frames: f64) {
    let rate = FrameRate::new((frames * 1000.0).round().max(1.0) as u64, 1000);
    if let (Some(flow), Some(rate)) = (plan.flows.get_mut(index), rate) {
        flow.rate = Rate::Frames(rate);
    }
}

/// The result.
struct Sent {
    ceilings: Vec<Option<f64>>,
    snapshot: Snapshot,
    ended: Ended,
    warnings: Vec<String>,
}

fn send(
    client: &Client,
    rules: &Rules,
    job: &Job,
    ceilings: Vec<Option<f64>>,
    signal: &AtomicUsize,
) -> Result<Sent, ApiError> {
    let hz = rules.settings.hz;
    let mut warnings = client.load(job.plan.clone(), job.config.clone(), rules.settings.mode)?;
    if job.captures {
        client.capture("start")?;
    }
    warnings.extend(client.transmit("start", &[])?);
    for warning in &warnings {
        eprintln!("generator: warning: {warning}");
    }
    let mut observer = Observer::new(client, &job.plan, hz);
    let ended = watch(client, job, &mut observer, hz, signal)?;
    client.transmit("stop", &[])?;
    settle::wait(client, &job.plan);
    if job.captures {
        client.capture("stop")?;
    }
    let snapshot = observer.look(usize::MAX, true)?;
    Ok(Sent { ceilings, snapshot, ended, warnings })
}

/// Shows statistics until all frames are sent or a signal has arrived.
fn watch(
    client: &Client,
    job: &Job,
    observer: &mut Observer<'_>,
    hz: u64,
    signal: &AtomicUsize,
) -> Result<Ended, ApiError> {
    let mut screen = Screen::new();
    let started = Instant::now();
    let mut stops = job.stops.clone();
    let more = job.plan.flows.len().saturating_sub(MOST_FLOWS);
    let mut next = started + SHOW;
    let ended = loop {
        thread::sleep(LOOK);
        if signal.load(Ordering::Relaxed) != 0 {
            break ended_by(signal);
        }
        for (flow, stop) in job.plan.flows.iter().zip(&mut stops) {
            let over = stop.is_some_and(|stop| started.elapsed() >= Duration::from_nanos(stop));
            if over {
                client.transmit("stop", &[&flow.name])?;
                *stop = None;
            }
        }
        if !client.transmitting(&job.plan) {
            break Ended::Finished;
        }
        if Instant::now() >= next {
            let snapshot = observer.look(MOST_FLOWS, false)?;
            screen.draw(&snapshot, started.elapsed().as_secs_f64(), hz, more);
            next += SHOW;
        }
    };
    screen.clear();
    Ok(ended)
}
