// SPDX-License-Identifier: BSD-3-Clause
//! The loop of an lcore, and the threads that run it.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use forwarders_common::complain;
use forwarders_common::l2fwd::Screen;
use forwarders_common::polling::{Meter, QueueFigures};
use forwarders_common::stop::Stop;
use measure::clock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::interface::Port;
use crate::lane::{Lane, LaneError};
use crate::lcores;

/// The longest sleep of an lcore, so that it notices soon that it is to end.
const WAIT: Duration = Duration::from_millis(100);
/// The same while there are frames that the kernel had no room for.
const WAIT_TO_SEND: Duration = Duration::from_millis(1);
/// How long to wait at the end for frames that are not sent yet.
const DRAIN: Duration = Duration::from_secs(1);
/// Time between two clock readings if nothing is polled.
const WATCH: Duration = Duration::from_millis(10);
/// Time between two checks that the interfaces exist.
const CHECK: Duration = Duration::from_secs(1);

/// Why forwarding ended early.
#[derive(Debug, thiserror::Error)]
pub enum ForwardError {
    /// A lane cannot continue.
    #[error(transparent)]
    Lane(#[from] LaneError),
    /// The CPU cannot be used.
    #[error("lcore {lcore}: {source}")]
    Lcore {
        /// The CPU.
        lcore: u32,
        /// The reason.
        source: io::Error,
    },
}

/// The work of one lcore.
pub(crate) struct Work {
    pub(crate) lcore: u32,
    pub(crate) lanes: Vec<(Box<dyn Lane>, Arc<QueueFigures>)>,
    /// True if it polls all the time.
    pub(crate) spin: bool,
}

/// Runs every lcore until `stop`, the `main` one on the calling thread, which also prints the
/// screen.
pub(crate) fn forward(
    work: Vec<Work>,
    main: u32,
    screen: Screen<'_>,
    stop: &Stop,
) -> Result<(), ForwardError> {
    let (mut own, others): (Vec<Work>, Vec<Work>) =
        work.into_iter().partition(|each| each.lcore == main);
    let mut screen = screen;
    thread::scope(|threads| {
        // The scope waits for every lcore before a panic of this thread continues.
        let _ending = EndsAll(stop);
        let mut outcome = Ok(());
        let mut running = Vec::with_capacity(others.len());
        for mut each in others {
            let lcore = each.lcore;
            let started = thread::Builder::new()
                .name(format!("lcore-{lcore}"))
                .spawn_scoped(threads, move || each.run_pinned(stop, |_| {}));
            match started {
                Ok(thread) => running.push(thread),
                Err(source) => {
                    outcome = Err(ForwardError::Lcore { lcore, source });
                    stop.raise();
                    break;
                }
            }
        }
        screen.begin();
        let main = match own.first_mut() {
            Some(own) => own.run_pinned(stop, |cycles| screen.tick(cycles)),
            None => {
                screen.wait(stop);
                Ok(())
            }
        };
        for thread in running {
            // A panic in a lane is a panic of the program.
            let ended = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            outcome = outcome.and(ended);
        }
        outcome.and(main)
    })
}

/// Prints the screen, and checks the interfaces, while the kernel forwards. `has_left` returns true
/// if the kernel gave one up, `note` returns messages for the user; both are called about once a
/// second.
pub(crate) fn watch(
    ports: &[Port],
    has_left: impl Fn(&Port) -> bool,
    mut note: impl FnMut() -> Option<String>,
    mut screen: Screen<'_>,
    stop: &Stop,
) -> Result<(), LaneError> {
    let check = clock::hz() * CHECK.as_secs();
    let (mut ticked, mut checked) = (clock::now(), clock::now());
    screen.begin();
    while !stop.is_raised() {
        thread::sleep(WATCH);
        let now = clock::now();
        screen.tick(now.wrapping_sub(ticked));
        ticked = now;
        if now.wrapping_sub(checked) > check {
            LaneError::gone(ports)?;
            if let Some(port) = ports.iter().find(|port| has_left(port)) {
                return Err(LaneError::left(port));
            }
            if let Some(note) = note() {
                complain!("{note}");
            }
            checked = now;
        }
    }
    Ok(())
}

/// Makes all lcores end if the thread that holds it panics.
struct EndsAll<'s>(&'s Stop);

impl Drop for EndsAll<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.raise();
        }
    }
}

impl Work {
    /// Forwards on the lcore's CPU. If it cannot continue, all lcores end.
    fn run_pinned(&mut self, stop: &Stop, tick: impl FnMut(u64)) -> Result<(), ForwardError> {
        let _ending = EndsAll(stop);
        let pinned = lcores::pin(self.lcore)
            .map_err(|source| ForwardError::Lcore { lcore: self.lcore, source });
        let outcome = pinned.and_then(|()| self.run(stop, tick).map_err(ForwardError::from));
        if outcome.is_err() {
            stop.raise();
        }
        outcome
    }

    fn run(&mut self, stop: &Stop, tick: impl FnMut(u64)) -> Result<(), LaneError> {
        let outcome = self.rounds(stop, tick);
        // Also after an error: frames received before it are sent, or counted.
        outcome.and(self.drain())
    }

    fn rounds(&mut self, stop: &Stop, mut tick: impl FnMut(u64)) -> Result<(), LaneError> {
        let figures: Vec<Arc<QueueFigures>> =
            self.lanes.iter().map(|(_, figures)| Arc::clone(figures)).collect();
        let check = clock::hz() * CHECK.as_secs();
        let mut meter = Meter::start(figures.iter().map(|figures| &**figures));
        let (mut ticked, mut checked) = (clock::now(), clock::now());
        while !stop.is_raised() {
            let (mut received, mut flushed) = (0, true);
            for ((lane, _), figures) in self.lanes.iter_mut().zip(&figures) {
                let count = lane.receive()?;
                meter.polled(figures, count, clock::now());
                if count > 0 {
                    lane.forward()?;
                } else {
                    flushed &= lane.flush()?;
                }
                received += count;
            }
            if received == 0 && !self.spin {
                self.wait(if flushed { WAIT } else { WAIT_TO_SEND });
            }
            let now = clock::now();
            if now.wrapping_sub(checked) > check {
                self.lanes.iter().try_for_each(|(lane, _)| lane.check())?;
                checked = now;
            }
            tick(now.wrapping_sub(ticked));
            ticked = now;
        }
        Ok(())
    }

    /// Sleeps until there is something to receive.
    fn wait(&mut self, longest: Duration) {
        let mut fds: Vec<PollFd<'_>> = self
            .lanes
            .iter()
            .map(|(lane, _)| PollFd::from_borrowed_fd(lane.fd(), PollFlags::IN))
            .collect();
        let timeout = Timespec { tv_sec: 0, tv_nsec: longest.subsec_nanos().into() };
        // A signal ends the sleep, as intended.
        let _ = poll(&mut fds, Some(&timeout));
        let failed: Vec<bool> =
            fds.iter().map(|fd| fd.revents().contains(PollFlags::ERR)).collect();
        for ((lane, _), failed) in self.lanes.iter_mut().zip(failed) {
            if failed {
                lane.take_error();
            }
        }
    }

    /// Waits for frames that are not sent yet; those that cannot be sent are dropped.
    fn drain(&mut self) -> Result<(), LaneError> {
        let end = Instant::now() + DRAIN;
        let mut outcome = Ok(());
        for (lane, _) in &mut self.lanes {
            loop {
                match lane.flush() {
                    Ok(false) if Instant::now() < end => thread::sleep(WAIT_TO_SEND),
                    Ok(_) => break,
                    Err(error) => {
                        outcome = outcome.and(Err(error));
                        break;
                    }
                }
            }
            lane.abandon();
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::{AsFd as _, BorrowedFd};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::mpsc;

    use forwarders_common::l2fwd::{Counted, Counts};

    use super::*;

    /// A lane that receives as many frames as it is told each time, or breaks.
    struct Told {
        file: File,
        receives: Option<usize>,
        /// Raised where it is flushed.
        flushed: Option<Stop>,
    }

    impl Lane for Told {
        fn receive(&mut self) -> Result<usize, LaneError> {
            Ok(self.receives.expect("a broken lane"))
        }

        fn forward(&mut self) -> Result<(), LaneError> {
            Ok(())
        }

        fn flush(&mut self) -> Result<bool, LaneError> {
            self.flushed.iter().for_each(Stop::raise);
            Ok(true)
        }

        fn check(&self) -> Result<(), LaneError> {
            Ok(())
        }

        fn fd(&self) -> BorrowedFd<'_> {
            self.file.as_fd()
        }
    }

    fn lane(receives: Option<usize>, flushed: Option<Stop>) -> Box<dyn Lane> {
        Box::new(Told { file: File::open("/dev/null").unwrap(), receives, flushed })
    }

    fn work(lcore: u32, lanes: Vec<Box<dyn Lane>>) -> Work {
        let figures = || Arc::new(QueueFigures::new(lcore, 0, 0));
        let lanes = lanes.into_iter().map(|lane| (lane, figures())).collect();
        Work { lcore, lanes, spin: false }
    }

    struct Nothing;

    impl Counted for Nothing {
        fn read(&self) -> Vec<(u16, Counts)> {
            Vec::new()
        }
    }

    /// Forwards to the end; whether that was a panic.
    fn panics(work: Vec<Work>, main: u32, stop: &Stop) -> bool {
        let (ended, end) = mpsc::channel();
        let stop = stop.clone();
        let running = thread::spawn(move || {
            let screen = Screen::new(0, clock::hz(), &Nothing);
            let forward = || forward(work, main, screen, &stop).unwrap();
            ended.send(catch_unwind(AssertUnwindSafe(forward)).is_err()).unwrap();
        });
        let panicked = end.recv_timeout(Duration::from_secs(20)).expect("it goes on");
        running.join().unwrap();
        panicked
    }

    #[test]
    fn a_panic_on_any_lcore_ends_all() {
        let allowed = lcores::allowed();
        let (main, other) = (allowed[0], allowed[allowed.len() - 1]);
        let sound = |lcore| work(lcore, vec![lane(Some(0), None)]);
        let broken = |lcore| work(lcore, vec![lane(None, None)]);
        let new = || Stop::on_signals().unwrap();
        assert!(panics(vec![broken(other), sound(main)], main, &new()));
        assert!(panics(vec![sound(other), broken(main)], main, &new()));
        // A main lcore without lanes waits.
        assert!(panics(vec![broken(other)], u32::MAX, &new()));
    }

    #[test]
    fn a_lane_is_flushed_while_another_is_busy() {
        let (lcore, stop) = (lcores::allowed()[0], Stop::on_signals().unwrap());
        let lanes = vec![lane(Some(1), None), lane(Some(0), Some(stop.clone()))];
        assert!(!panics(vec![work(lcore, lanes)], lcore, &stop));
    }
}
