// SPDX-License-Identifier: BSD-3-Clause
//! Captures on demand: taps are handed to the lcores while they run.

use std::error::Error;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Release};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use dpdk::Mbuf;
use dpdk::pcapng::{Direction, Interface, Pcapng, PcapngConfig, PcapngError, Tap, TapConfig};

/// The control plane leaves a tap for an lcore here: one for each direction of a queue.
#[derive(Default)]
struct Place {
    changed: AtomicBool,
    tap: Mutex<Option<Tap>>,
}

impl Place {
    fn put(&self, tap: Option<Tap>) {
        let mut place = self.tap.lock().unwrap_or_else(PoisonError::into_inner);
        *place = tap;
        // Before the lock is given back: the lcore that takes the tap clears it.
        self.changed.store(true, Release);
    }
}

/// An lcore's end.
pub struct Capture {
    place: Arc<Place>,
    tap: Option<Tap>,
}

impl Capture {
    /// Captures packets, if somebody wants them. Costs a load of a line that nobody writes while nothing changes.
    #[inline(always)]
    pub fn see(&mut self, packets: &[Mbuf<'_>]) {
        if self.place.changed.load(Acquire) {
            self.exchange();
        }
        if let Some(tap) = &mut self.tap {
            tap.capture(packets);
        }
    }

    #[cold]
    fn exchange(&mut self) {
        let mut tap = self.place.tap.lock().unwrap_or_else(PoisonError::into_inner);
        // The one before is dropped here, after its last packet.
        self.tap = tap.take();
        self.place.changed.store(false, Release);
    }
}

const DIRECTIONS: [Direction; 2] = [Direction::Received, Direction::Sent];

/// The control plane's end.
pub struct Captures {
    /// Each port, and the places of its queues by direction.
    ports: Vec<(Interface, Vec<[Arc<Place>; 2]>)>,
    running: Option<Pcapng>,
}

impl Captures {
    pub fn new() -> Self {
        Self { ports: Vec::new(), running: None }
    }

    /// Adds a port. Returns for each of its queues what the lcore keeps: for received packets, and for sent ones.
    pub fn port(&mut self, interface: Interface, queues: usize) -> Vec<[Capture; 2]> {
        let places: Vec<[Arc<Place>; 2]> = (0..queues).map(|_| Default::default()).collect();
        let end = |place: &Arc<Place>| Capture { place: Arc::clone(place), tap: None };
        let ends = places.iter().map(|places| places.each_ref().map(end)).collect();
        self.ports.push((interface, places));
        ends
    }

    /// Begins a capture into a new file, or in place of a regular one: a pipe without a reader would stop the control plane. A capture
    /// that runs ends.
    pub fn begin(&mut self, file: &Path) -> Result<(), Box<dyn Error>> {
        self.end()?;
        if file.exists() && !file.is_file() {
            return Err(format!("capture file {}: not a regular file", file.display()).into());
        }
        let mut capture = Pcapng::create(file, &PcapngConfig::named("l4lb"))?;
        // All taps are made before any lcore gets one: there is no half a capture.
        let mut taps = Vec::new();
        for (interface, queues) in &self.ports {
            let id = capture.add_interface(interface)?;
            for (queue, places) in queues.iter().enumerate() {
                for (direction, place) in DIRECTIONS.into_iter().zip(places) {
                    let tap = capture.tap(id, queue as u16, direction, &TapConfig::default())?;
                    taps.push((place, tap));
                }
            }
        }
        taps.into_iter().for_each(|(place, tap)| place.put(Some(tap)));
        self.running = Some(capture);
        Ok(())
    }

    /// Writes what the lcores captured since the last call. After an error, as of a disk that is full, the capture has ended.
    pub fn collect(&mut self) -> Result<(), PcapngError> {
        let Some(capture) = &mut self.running else { return Ok(()) };
        let result = capture.collect().map(drop);
        if result.is_err() {
            self.running = None;
            self.places().for_each(|place| place.put(None));
        }
        result
    }

    /// Ends the capture, if one runs. Waits until the lcores have given their taps back, a second at most: one that receives or sends
    /// nothing takes no notice.
    pub fn end(&mut self) -> Result<(), PcapngError> {
        let Some(capture) = self.running.take() else { return Ok(()) };
        self.places().for_each(|place| place.put(None));
        let until = Instant::now() + Duration::from_secs(1);
        while self.places().any(|place| place.changed.load(Acquire)) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        capture.finish().map(drop)
    }

    fn places(&self) -> impl Iterator<Item = &Arc<Place>> {
        self.ports.iter().flat_map(|(_, queues)| queues.iter().flatten())
    }
}
