// SPDX-License-Identifier: BSD-3-Clause
//! Stores captured frames: in memory, from which OTG clients fetch them, or in a file.

use measure::clock;

use crate::capture::{Figures, FileTarget, Recorder, Settings, Sink, SinkError, Tap};

/// Stores the frames that a port's taps capture.
pub(super) enum Keeper {
    /// In memory.
    Memory(Recorder),
    /// In a file.
    File(Written),
}

/// A capture into a file, which may have ended.
pub(super) struct Written {
    sink: Option<Sink>,
    figures: Figures,
    error: Option<SinkError>,
}

impl Keeper {
    /// Starts a capture, with its taps.
    ///
    /// # Errors
    /// [`SinkError`] if the file cannot be created.
    pub fn start(
        settings: Settings,
        file: Option<&FileTarget>,
        taps: usize,
    ) -> Result<(Keeper, Vec<Tap>), SinkError> {
        let now = clock::now();
        let Some(file) = file else {
            let (recorder, taps) = Recorder::start(settings, taps, now);
            return Ok((Keeper::Memory(recorder), taps));
        };
        let (sink, taps) = Sink::create(&file.path, settings, taps, file.max_bytes, now)?;
        let written = Written { sink: Some(sink), figures: Figures::default(), error: None };
        Ok((Keeper::File(written), taps))
    }

    /// Takes over what the lcores have captured.
    pub fn collect(&mut self) {
        match self {
            Keeper::Memory(recorder) => recorder.collect(),
            Keeper::File(written) => {
                let result = written.sink.as_mut().map(|sink| sink.collect(clock::now()));
                written.note(result.unwrap_or(Ok(())));
            }
        }
    }

    /// Ends the capture, after the lcores have returned the taps.
    pub fn stop(&mut self) {
        match self {
            Keeper::Memory(recorder) => recorder.stop(clock::now()),
            Keeper::File(written) => {
                let Some(sink) = written.sink.take() else { return };
                let (figures, result) = sink.finish(clock::now());
                written.figures = figures;
                written.note(result);
            }
        }
    }

    pub fn is_running(&self) -> bool {
        match self {
            Keeper::Memory(recorder) => !recorder.is_stopped(),
            Keeper::File(written) => written.sink.is_some(),
        }
    }

    pub fn figures(&self) -> Figures {
        match self {
            Keeper::Memory(recorder) => recorder.figures(),
            Keeper::File(written) => written.sink.as_ref().map_or(written.figures, Sink::figures),
        }
    }

    /// Why the file is incomplete.
    pub fn error(&self) -> Option<String> {
        match self {
            Keeper::Memory(_) => None,
            Keeper::File(written) => written.error.as_ref().map(ToString::to_string),
        }
    }
}

impl Written {
    fn note(&mut self, result: Result<(), SinkError>) {
        if let Err(error) = result {
            tracing::error!("{error}");
            // Only the first error is kept.
            self.error.get_or_insert(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::{Clock, Format};
    use std::fs::File;
    use std::process::Command;
    use std::time::SystemTime;

    #[test]
    fn a_file_that_fails_at_the_end_tells_what_became_of_the_frames_and_why() {
        // A pipe without a reader takes nothing, like a full disk.
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let opened = path.clone();
        let reader = std::thread::spawn(move || File::open(opened).unwrap());
        let clock = Clock::new(clock::now(), SystemTime::now(), 1_000_000_000);
        let settings = Settings { format: Format::PcapNg, ..Settings::new("p", clock) };
        let target = FileTarget { path: path.clone(), max_bytes: u64::MAX };
        let (mut keeper, mut taps) = Keeper::start(settings, Some(&target), 1).unwrap();
        drop(reader.join().unwrap());
        // More than is written at once.
        (0..600).for_each(|tsc| taps[0].look(&[7; 1000], tsc));
        keeper.stop();
        let figures = keeper.figures();
        assert_eq!((figures.matched, figures.stored, figures.refused), (600, 0, 600));
        let error = keeper.error().unwrap();
        assert!(error.contains("holds 0 frames") && error.contains("pipe"), "{error}");
        assert!(!keeper.is_running());
    }
}
