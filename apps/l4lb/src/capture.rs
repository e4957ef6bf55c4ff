// SPDX-License-Identifier: BSD-3-Clause
//! Captures on demand: taps are handed to the lcores while they run.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Release};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use dpdk::pcapng::{Direction, Interface, Pcapng, PcapngConfig, PcapngError, Tap, TapConfig};

/// Where the control plane leaves a tap for an lcore.
#[derive(Default)]
struct Place {
    changed: AtomicBool,
    tap: Mutex<Option<Tap>>,
}

/// An lcore's end: the tap that it captures with.
pub struct Taps {
    place: Arc<Place>,
    current: Option<Tap>,
}

impl Taps {
    /// The current tap. Costs a load of a line that nobody writes while nothing changes.
    #[inline(always)]
    pub fn current(&mut self) -> &mut Option<Tap> {
        if self.place.changed.load(Acquire) {
            self.exchange();
        }
        &mut self.current
    }

    #[cold]
    fn exchange(&mut self) {
        let mut tap = self.place.tap.lock().unwrap_or_else(PoisonError::into_inner);
        // The one before is dropped here, after its last packet.
        self.current = tap.take();
        self.place.changed.store(false, Release);
    }
}

/// The control plane's end.
pub struct Captures {
    interfaces: Vec<(Interface, Vec<Arc<Place>>)>,
    running: Option<Pcapng>,
}

impl Captures {
    pub fn new() -> Self {
        Self { interfaces: Vec::new(), running: None }
    }

    /// Adds a port with so many queues; returns their ends.
    pub fn port(&mut self, interface: Interface, queues: usize) -> Vec<Taps> {
        let places: Vec<_> = (0..queues).map(|_| Arc::new(Place::default())).collect();
        let taps =
            places.iter().map(|place| Taps { place: Arc::clone(place), current: None }).collect();
        self.interfaces.push((interface, places));
        taps
    }

    /// Begins a capture. One that runs ends.
    pub fn begin(&mut self, file: &Path) -> Result<(), PcapngError> {
        self.end()?;
        let mut capture = Pcapng::create(file, &PcapngConfig::named("l4lb"))?;
        for (interface, places) in &self.interfaces {
            let id = capture.add_interface(interface)?;
            for (queue, place) in places.iter().enumerate() {
                // A packet is captured as it came and as it leaves.
                let tap =
                    capture.tap(id, queue as u16, Direction::Received, &TapConfig::default())?;
                put(place, Some(tap));
            }
        }
        self.running = Some(capture);
        Ok(())
    }

    /// Writes what the lcores captured since the last call.
    pub fn collect(&mut self) -> Result<(), PcapngError> {
        match &mut self.running {
            Some(capture) => capture.collect().map(drop),
            None => Ok(()),
        }
    }

    /// Ends the capture, if one runs. Waits until the lcores have given their taps back, a second at most: an lcore takes no notice
    /// while nothing is received.
    pub fn end(&mut self) -> Result<(), PcapngError> {
        let Some(capture) = self.running.take() else { return Ok(()) };
        let places = || self.interfaces.iter().flat_map(|(_, places)| places);
        places().for_each(|place| put(place, None));
        let until = Instant::now() + Duration::from_secs(1);
        while places().any(|place| place.changed.load(Acquire)) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        capture.finish().map(drop)
    }
}

fn put(place: &Place, tap: Option<Tap>) {
    *place.tap.lock().unwrap_or_else(PoisonError::into_inner) = tap;
    place.changed.store(true, Release);
}
