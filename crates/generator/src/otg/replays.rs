// SPDX-License-Identifier: BSD-3-Clause
//! Capture files instead of a flow's own frames: `--replay FLOW=FILE`. OTG has no field for it.
//!
//! Whoever starts the generator names flows and files. A configuration has flows of these names like any
//! other: ports, rate, duration and start are the configuration's; `packet`, `size` and `payload` play no part.
//! Files are read once, before anybody is served. Clients of the API cannot name files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::ApiError;
use super::size::too_long;
use crate::plan::{Plan, Source};
use crate::replay::{Frames, Limits, ReplayError, Timing};

/// A flow and the file that it sends: `FLOW=FILE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayOption {
    /// Name of the flow.
    pub flow: String,
    /// The file.
    pub path: PathBuf,
}

impl FromStr for ReplayOption {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('=') {
            Some((flow, path)) if !flow.is_empty() && !path.is_empty() => {
                Ok(ReplayOption { flow: flow.to_owned(), path: path.into() })
            }
            _ => Err("give a flow's name and a capture file, such as f0=office.pcapng"),
        }
    }
}

/// Why a file cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum ReplayOptionError {
    /// The file is at fault.
    #[error("--replay {flow}: {source}")]
    File {
        /// The flow.
        flow: String,
        /// Why.
        source: ReplayError,
    },
    /// It has frames that are too long.
    #[error("--replay {flow}={path}: {what}")]
    TooLong {
        /// The flow.
        flow: String,
        /// The file.
        path: PathBuf,
        /// How long, and what to do.
        what: String,
    },
    /// Two files for one flow.
    #[error("--replay {0}: given twice")]
    Twice(String),
}

/// The frames of a flow's file.
fn read(flow: &str, path: &Path, max_frame: usize) -> Result<Frames, ReplayOptionError> {
    let flow = flow.to_owned();
    let frames = match Frames::open(path, Limits::default()) {
        Ok(frames) => frames,
        Err(source) => return Err(ReplayOptionError::File { flow, source }),
    };
    let longest = frames.longest() + packet::FCS_LEN;
    if longest > max_frame {
        let (path, what) = (path.to_owned(), too_long(longest, max_frame));
        return Err(ReplayOptionError::TooLong { flow, path, what });
    }
    Ok(frames)
}

/// The frames that flows send, by the name of the flow.
#[derive(Clone, Debug, Default)]
pub struct Replays(BTreeMap<String, Frames>);

impl Replays {
    /// Reads the files.
    ///
    /// # Errors
    /// [`ReplayOptionError`], which names the flow and the file.
    pub fn open(options: &[ReplayOption], max_frame: usize) -> Result<Self, ReplayOptionError> {
        let mut replays = BTreeMap::new();
        // Flows of the same file share its frames.
        let mut files: BTreeMap<&Path, Frames> = BTreeMap::new();
        for ReplayOption { flow, path } in options {
            let frames = match files.get(path.as_path()) {
                Some(frames) => frames.clone(),
                None => read(flow, path, max_frame)?,
            };
            files.insert(path, frames.clone());
            if replays.insert(flow.clone(), frames).is_some() {
                return Err(ReplayOptionError::Twice(flow.clone()));
            }
        }
        Ok(Replays(replays))
    }

    /// Has the flows of a configuration send their files. Returns what is to be said about it.
    ///
    /// # Errors
    /// A 400 that names each of these flows whose metrics are on: its frames have no mark to count them by.
    pub fn put_into(&self, plan: &mut Plan) -> Result<Vec<String>, ApiError> {
        let mut errors = Vec::new();
        for (index, flow) in plan.flows.iter_mut().enumerate() {
            let Some(frames) = self.0.get(&flow.name) else { continue };
            if flow.metrics.enable {
                errors.push(format!(
                    "flows[{index}].metrics.enable: frames of --replay {} have no signature by which they \
                     could be counted where they arrive; switch it off, and read the ports' metrics",
                    flow.name
                ));
            }
            flow.source = Source::Replay(frames.clone(), Timing::Own);
        }
        if !errors.is_empty() {
            return Err(ApiError::invalid(errors));
        }
        let missing = |name: &&String| plan.flows.iter().all(|flow| flow.name != **name);
        let warning =
            |name| format!("flows: none is named {name:?}, for which --replay has frames");
        // Without flows the generator is to rest.
        Ok(match plan.flows.is_empty() {
            true => Vec::new(),
            false => self.0.keys().filter(missing).map(warning).collect(),
        })
    }
}

#[cfg(test)]
mod tests;
