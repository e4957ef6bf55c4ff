// SPDX-License-Identifier: BSD-3-Clause
//! Where captured frames go: memory, from which OTG's clients fetch them, or a file.

use measure::clock;

use crate::capture::{Figures, FileTarget, Recorder, Settings, Sink, SinkError, Tap};

/// Keeps what the taps of a port capture.
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
    /// [`SinkError`] when the file cannot be made.
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

    /// Takes over what the lcores have seen.
    pub fn collect(&mut self) {
        match self {
            Keeper::Memory(recorder) => recorder.collect(),
            Keeper::File(written) => {
                let result = written.sink.as_mut().map(|sink| sink.collect(clock::now()));
                written.note(result.unwrap_or(Ok(())));
            }
        }
    }

    /// Ends the capture, when the lcores have given their taps back.
    pub fn stop(&mut self) {
        match self {
            Keeper::Memory(recorder) => recorder.stop(clock::now()),
            Keeper::File(written) => {
                let Some(sink) = written.sink.take() else { return };
                written.figures = sink.figures();
                match sink.finish(clock::now()) {
                    Ok(figures) => written.figures = figures,
                    Err(error) => written.note(Err(error)),
                }
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

    /// Why the file has not all that it should.
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
            // The first one matters.
            self.error.get_or_insert(error);
        }
    }
}
