// SPDX-License-Identifier: BSD-3-Clause
//! Checks that faults are found: sends frames of which one is missing, one is sent twice, two are
//! swapped and two are altered. They are generated here and sent through the port like those of a
//! file.

use packet::frame::SignatureSpec;
use packet::payload::Payload;
use packet::size::Sizes;
use packet::writer::FrameWriter;

use super::{Bed, FLOW, PORT, Results};
use crate::command::client::Client;
use crate::command::settle;
use crate::engine::Mode;
use crate::otg::ApiError;
use crate::pacing::FrameRate;
use crate::plan::{Duration, Metrics, Plan, Rate, Source};
use crate::replay::{Frames, Timing};
use crate::telemetry::Subject;

/// Frames without any fault.
const FRAMES: usize = 1000;
/// Nanoseconds between frames.
const INTERVAL: u64 = 20_000;

/// Checks that each fault is found, and no other.
pub fn check(client: &Client, bed: &Bed<'_>, results: &mut Results) -> Result<(), ApiError> {
    let plan = made_up(&bed.plan, bed.rules.first_run)
        .ok_or_else(|| ApiError::internal("no frames could be made up"))?;
    client.load(plan.clone(), serde_json::json!({}), Mode::Paced)?;
    client.transmit("start", &[])?;
    while client.transmitting(&plan) {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    client.transmit("stop", &[])?;
    settle::wait(client, &plan);
    let flow = client.ask(Subject::Flow(FLOW.to_owned()));
    let port = client.ask(Subject::Port(PORT.to_owned()));
    let of = |name: &str| flow.number(name).unwrap_or(u64::MAX);
    let sent = of("accepted");
    let received = of("received");
    // One was left out and one cannot be recognised.
    let once = received.saturating_sub(of("duplicates"));
    let lost = (FRAMES as u64).saturating_sub(once);
    let altered = port.number("corrupt").unwrap_or(u64::MAX);
    for (what, found, wanted) in [
        ("frames that are missing are found", lost, 2),
        ("a frame that comes twice is found", of("duplicates"), 1),
        ("a frame that comes behind a later one is found", of("reordered"), 1),
        ("an altered payload is found", of("corrupt"), 1),
        ("altered frames are found, whatever is altered", altered, 2),
    ] {
        let detail = format!("{found} of {wanted}, in {sent} frames");
        results.check(found == wanted, what, &detail);
    }
    if received == 0 {
        results.tell(
            "no frame was received: the port must be connected to something that returns frames",
        );
    }
    Ok(())
}

/// The plan with a flow of generated frames for that run.
fn made_up(plan: &Plan, run: u8) -> Option<Plan> {
    let mut plan = plan.clone();
    plan.integrity = true;
    let flow = plan.flows.first_mut()?;
    let Source::Frames(spec) = &flow.source else { return None };
    let mut spec = spec.clone();
    spec.sizes = Sizes::Fixed(128);
    spec.payload = Payload::IncrementByte;
    spec.signature = Some(SignatureSpec::Full { stamped: false, integrity: true });
    let frames = frames(FrameWriter::new(&spec, 0).ok()?, run)?;
    flow.duration = Duration::Packets(frames.len() as u64);
    flow.source = Source::Replay(Frames::of(&frames, INTERVAL)?, Timing::Own);
    flow.rate = FrameRate::new(1_000_000_000, INTERVAL).map(Rate::Frames)?;
    flow.metrics = Metrics { latency: false, ..flow.metrics };
    Some(plan)
}

/// The frames with their faults.
fn frames(mut writer: FrameWriter, run: u8) -> Option<Vec<Vec<u8>>> {
    writer.restart(run);
    let mut frames = vec![Vec::new(); FRAMES];
    for chunk in frames.chunks_mut(32) {
        writer.write(chunk, 0, false);
    }
    let at = |frame: &[u8], back: usize| frame.len().checked_sub(back);
    // In the payload, far before the signature; and in the signature.
    let payload = frames.get_mut(800)?;
    let place = at(payload, 40)?;
    *payload.get_mut(place)? ^= 0x10;
    let signature = frames.get_mut(600)?;
    let place = at(signature, 6)?;
    *signature.get_mut(place)? ^= 0x10;
    frames.swap(400, 401);
    let again = frames.get(200)?.clone();
    frames.insert(205, again);
    frames.remove(100);
    Some(frames)
}

#[cfg(test)]
mod tests {
    use super::*;
    use packet::frame::{FrameSpec, Header};
    use packet::headers;
    use packet::signature::{self, Signature};

    #[test]
    fn made_up_frames_have_the_faults_that_are_looked_for() {
        let spec = FrameSpec {
            headers: vec![Header::new(&headers::ETHERNET)],
            sizes: Sizes::Fixed(128),
            payload: Payload::IncrementByte,
            signature: Some(SignatureSpec::Full { stamped: false, integrity: true }),
        };
        let frames = frames(FrameWriter::new(&spec, 0).unwrap(), 77).unwrap();
        let read =
            |frame: &Vec<u8>| Signature::read(frame).map(|found| (found.run, found.sequence));
        let numbers: Vec<u32> = frames.iter().filter_map(read).map(|(_, number)| number).collect();
        assert!(frames.iter().filter_map(read).all(|(run, _)| run == 77));
        assert_eq!(numbers.len(), FRAMES - 1, "one is not known again");
        assert!(!numbers.contains(&100) && !numbers.contains(&600));
        assert_eq!(numbers.iter().filter(|number| **number == 200).count(), 2);
        assert!(numbers.windows(2).any(|pair| pair == [401, 400]));
        let damaged = |frame: &&Vec<u8>| signature::payload_is_intact(frame) == Some(false);
        assert_eq!(frames.iter().filter(damaged).count(), 1);
    }
}
