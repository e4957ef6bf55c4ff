// SPDX-License-Identifier: BSD-3-Clause
//! Configurations of the traffic generator.

use generator::location::Policy;
use generator::otg::config::{Limits, validate};
use generator::otg::json;
use generator::plan::Source;
use packet::writer::FrameWriter;

/// Reads the bytes as a request's body and as a configuration. One that is accepted can be sent: its first frames
/// are written.
pub fn otg(bytes: &[u8]) {
    let limits = Limits { locations: Policy::COMMAND_LINE, max_frame: 1518, capture_fcs: true };
    let found = match json::parse(bytes).and_then(|value| validate(&value, &limits)) {
        Ok((plan, _)) => plan,
        Err(error) => {
            assert!((400..600).contains(&error.status) && !error.errors.is_empty());
            return;
        }
    };
    for flow in &found.flows {
        let Source::Frames(spec) = &flow.source else { continue };
        // Lists and mixes can be long; they are the writer's tests.
        if spec.kept_values() > 10_000 {
            continue;
        }
        let Ok(mut writer) = FrameWriter::new(spec, 0) else {
            panic!("a flow was accepted that cannot be written");
        };
        let mut frames = [Vec::new(), Vec::new()];
        writer.write(&mut frames, 0, false);
        assert!(frames.iter().all(|frame| (60..1515).contains(&frame.len())));
    }
}
