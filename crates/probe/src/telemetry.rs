// SPDX-License-Identifier: BSD-3-Clause
//! The probe's telemetry commands. DPDK answers each client on a separate thread.

use std::ffi::{CStr, c_char, c_int};

use measure::clock;

use crate::answer::{Dict, FullError, List};
use crate::attach;
use crate::dpdk::{Dpdk, TelData, TelHandler};
use crate::figures;
use crate::poller::registry;
use crate::say;
use crate::spans::{self, Spans};

/// DPDK's largest answer, without the braces, the command's name and a reserve.
const ROOM: usize = 16 * 1024 - 256;
/// The most entries in a DPDK list.
const MOST_ENTRIES: usize = 512;
/// The only span that callbacks can measure.
const SPAN: &str = "rx-return_tx-call";

/// DPDK refused a command.
#[derive(Debug, thiserror::Error)]
#[error("DPDK refuses the telemetry command {0:?} ({1})")]
pub struct RegisterError(&'static CStr, c_int);

/// Why a command is answered by null.
enum Refusal {
    Parameters,
    Full,
}

impl From<FullError> for Refusal {
    fn from(_: FullError) -> Self {
        Self::Full
    }
}

type Answer = Result<(), Refusal>;

/// Registers the commands. If a program registers one of the plain names too, DPDK uses the later
/// one, which is the program's: this runs while EAL starts.
pub fn register(dpdk: &Dpdk) -> Result<(), RegisterError> {
    const POLLING: &CStr =
        c"Polls by lcore and queue. Parameters: PORT,QUEUE; null if the answer is too long: ask by PORT";
    const LATENCY: &CStr =
        c"Time of packets inside. Parameters: PORT,QUEUE; null if the answer is too long: ask by PORT";
    const COMMANDS: [(&CStr, TelHandler, &CStr); 7] = [
        (
            c"/linerate/probe",
            probe,
            c"State and settings of the probe. Parameters: none, one_in=N, polling=on|off",
        ),
        (c"/linerate/probe/polling", polling, POLLING),
        (c"/linerate/probe/latency", latency, LATENCY),
        (c"/linerate/probe/clock", clock_, c"Rate of the TSC and cost of reading it"),
        (c"/linerate/polling", polling, POLLING),
        (c"/linerate/latency", latency, LATENCY),
        (c"/linerate/clock", clock_, c"Rate of the TSC and cost of reading it"),
    ];
    for (name, handler, help) in COMMANDS {
        // SAFETY: C strings that DPDK copies, and functions that live for ever.
        let code = unsafe { (dpdk.register_command)(name.as_ptr(), handler, help.as_ptr()) };
        if code != 0 {
            return Err(RegisterError(name, code));
        }
    }
    Ok(())
}

/// The requested port, and queue.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Filter {
    port: Option<u16>,
    queue: Option<u16>,
}

impl Filter {
    fn new(parameters: &str) -> Option<Self> {
        let mut numbers = parameters.split(',').map(|word| word.trim().parse().ok());
        match (parameters.is_empty(), numbers.next(), numbers.next(), numbers.next()) {
            (true, ..) => Some(Self { port: None, queue: None }),
            (_, Some(Some(port)), None, None) => Some(Self { port: Some(port), queue: None }),
            (_, Some(Some(port)), Some(Some(queue)), None) => {
                Some(Self { port: Some(port), queue: Some(queue) })
            }
            _ => None,
        }
    }

    fn lets(self, port: u16, queue: u16) -> bool {
        self.port.is_none_or(|only| only == port) && self.queue.is_none_or(|only| only == queue)
    }
}

/// Runs the safe part of a handler.
///
/// # Safety
/// `parameters` is a C string or null.
unsafe fn answer(parameters: *const c_char, make: impl FnOnce(&Dpdk, &str) -> Answer) -> c_int {
    const EINVAL: c_int = -22;
    const ENOSPC: c_int = -28;
    let text = match parameters.is_null() {
        true => "".into(),
        // SAFETY: the contract is the caller's.
        false => unsafe { CStr::from_ptr(parameters) }.to_string_lossy(),
    };
    let Ok(dpdk) = Dpdk::find() else { return EINVAL };
    match make(dpdk, &text) {
        Ok(()) => 0,
        Err(Refusal::Parameters) => EINVAL,
        Err(Refusal::Full) => ENOSPC,
    }
}

unsafe extern "C" fn probe(
    _: *const c_char,
    parameters: *const c_char,
    data: *mut TelData,
) -> c_int {
    // SAFETY: DPDK passes parameters or null, and data of this thread's own.
    unsafe {
        answer(parameters, |dpdk, text| {
            if !text.is_empty() {
                attach::change(dpdk, text).map_err(|error| {
                    say(error);
                    Refusal::Parameters
                })?;
            }
            let state = attach::state();
            let mut dict = Dict::start(dpdk, data)?;
            dict.string(c"version", env!("CARGO_PKG_VERSION"))?;
            dict.string(c"polling", if state.settings.polling { "on" } else { "off" })?;
            dict.number(c"one_in", u64::from(state.settings.one_in))?;
            dict.number(c"rx_queues", state.rx_queues as u64)?;
            dict.number(c"tx_queues", state.tx_queues as u64)?;
            let stamped = registry().figures.iter().map(|each| each.stamped.get()).sum();
            dict.number(c"stamped", stamped)?;
            Ok(())
        })
    }
}

unsafe extern "C" fn clock_(
    _: *const c_char,
    parameters: *const c_char,
    data: *mut TelData,
) -> c_int {
    // SAFETY: DPDK passes parameters or null, and data of this thread's own; EAL has started.
    unsafe {
        answer(parameters, |dpdk, _| {
            let mut dict = Dict::start(dpdk, data)?;
            dict.number(c"tsc_hz", (dpdk.tsc_hz)())?;
            dict.number(c"clock_cost_cycles", clock::cost())?;
            Ok(())
        })
    }
}

/// Answers with a list of all requested readings, with their histograms if all fit.
///
/// # Safety
/// As for [`answer`]; `data` is telemetry data of this thread's own.
unsafe fn list<R>(
    parameters: *const c_char,
    data: *mut TelData,
    read: fn(Filter) -> Vec<R>,
    size: fn(&R, bool) -> usize,
    fill: impl Fn(&mut Dict<'_>, &R, bool) -> Result<(), FullError>,
) -> c_int {
    // SAFETY: the contract is the caller's.
    unsafe {
        answer(parameters, |dpdk, text| {
            let readings = read(Filter::new(text).ok_or(Refusal::Parameters)?);
            let whole = fits(&readings, size)?;
            let mut list = List::start(dpdk, data)?;
            for reading in &readings {
                fill(&mut list.dict()?, reading, whole)?;
            }
            Ok(())
        })
    }
}

unsafe extern "C" fn polling(
    _: *const c_char,
    parameters: *const c_char,
    data: *mut TelData,
) -> c_int {
    let fill = |dict: &mut Dict<'_>, reading: &figures::Reading, whole| {
        dict.number(c"lcore", u64::from(reading.lcore))?;
        dict.number(c"port", u64::from(reading.port))?;
        dict.number(c"queue", u64::from(reading.queue))?;
        dict.number(c"polls", reading.polls())?;
        dict.number(c"empty_polls", reading.empty_polls())?;
        dict.number(c"packets", reading.packets)?;
        dict.number(c"burst_limit", u64::from(reading.burst_limit))?;
        if whole {
            dict.numbers(c"burst_histogram", &reading.bursts)?;
        }
        dict.number(c"busy_tsc", reading.busy_tsc)?;
        dict.number(c"total_tsc", reading.total_tsc)
    };
    // SAFETY: DPDK passes parameters or null, and data of this thread's own.
    unsafe { list(parameters, data, read_polling, polling_size, fill) }
}

/// The statistics of each (lcore, port, queue), in that order.
fn read_polling(filter: Filter) -> Vec<figures::Reading> {
    let known: Vec<&'static figures::Figures> = {
        let registry = registry();
        let asked = |figures: &&figures::Figures| filter.lets(figures.port, figures.queue);
        registry.figures.iter().copied().filter(asked).collect()
    };
    let read = |figures: &'static figures::Figures| {
        // Locked separately for each, because an lcore may be waiting for it.
        let _registry = registry();
        figures.read(clock::now())
    };
    let mut readings: Vec<figures::Reading> = known.into_iter().map(read).collect();
    readings.sort_by_key(|reading| (reading.lcore, reading.port, reading.queue));
    let mut joined: Vec<figures::Reading> = Vec::new();
    for reading in readings {
        match joined.last_mut() {
            Some(last)
                if (last.lcore, last.port, last.queue)
                    == (reading.lcore, reading.port, reading.queue) =>
            {
                last.join(reading);
            }
            _ => joined.push(reading),
        }
    }
    joined
}

fn digits(number: u64) -> usize {
    number.checked_ilog10().unwrap_or(0) as usize + 1
}

/// Returns true if all entries fit with their histograms. An error if they do not fit even without:
/// DPDK would silently omit some.
fn fits<R>(readings: &[R], size: impl Fn(&R, bool) -> usize) -> Result<bool, FullError> {
    let all = |whole: bool| readings.iter().map(|reading| size(reading, whole)).sum::<usize>();
    match readings.len() <= MOST_ENTRIES && all(false) <= ROOM {
        true => Ok(all(true) <= ROOM),
        false => Err(FullError),
    }
}

/// An upper bound of an entry's size as JSON, in bytes.
fn polling_size(reading: &figures::Reading, whole: bool) -> usize {
    const NAMES: &str = r#"{"lcore":,"port":,"queue":,"polls":,"empty_polls":,"packets":,"burst_limit":,"busy_tsc":,"total_tsc":},"#;
    const HISTOGRAM: &str = r#","burst_histogram":[]"#;
    let numbers = [
        reading.lcore.into(),
        reading.port.into(),
        reading.queue.into(),
        reading.polls(),
        reading.empty_polls(),
        reading.packets,
        reading.burst_limit.into(),
        reading.busy_tsc,
        reading.total_tsc,
    ];
    let short = NAMES.len() + numbers.into_iter().map(digits).sum::<usize>();
    let bursts = reading.bursts.iter().map(|count| digits(*count) + 1).sum::<usize>();
    short + if whole { HISTOGRAM.len() + bursts } else { 0 }
}

unsafe extern "C" fn latency(
    _: *const c_char,
    parameters: *const c_char,
    data: *mut TelData,
) -> c_int {
    let one_in = attach::state().settings.one_in;
    let fill = |dict: &mut Dict<'_>, reading: &spans::Reading, whole| {
        dict.number(c"port", u64::from(reading.port))?;
        dict.number(c"queue", u64::from(reading.queue))?;
        dict.string(c"span", SPAN)?;
        dict.number(c"sampled", reading.sampled)?;
        dict.number(c"one_in", u64::from(one_in))?;
        dict.number(c"count", reading.count)?;
        if let Some((least, mean, greatest)) = reading.tsc {
            dict.number(c"min_tsc", least)?;
            dict.number(c"mean_tsc", mean)?;
            dict.number(c"max_tsc", greatest)?;
        }
        match &reading.hdr {
            Some(hdr) if whole && reading.count > 0 => dict.text(c"hdr", hdr),
            _ => Ok(()),
        }
    };
    // SAFETY: DPDK passes parameters or null, and data of this thread's own.
    unsafe { list(parameters, data, read_latency, latency_size, fill) }
}

/// The spans of each (port, queue), in that order.
fn read_latency(filter: Filter) -> Vec<spans::Reading> {
    let mut known: Vec<&'static Spans> = registry()
        .spans
        .iter()
        .copied()
        .filter(|spans| filter.lets(spans.port, spans.queue))
        .collect();
    known.sort_by_key(|spans| (spans.port, spans.queue));
    known.chunk_by(|a, b| (a.port, a.queue) == (b.port, b.queue)).filter_map(Spans::read).collect()
}

/// An upper bound of an entry's size as JSON, in bytes.
fn latency_size(reading: &spans::Reading, whole: bool) -> usize {
    const NAMES_AND_NUMBERS: usize = 260;
    // Quotes and a comma for each string of 127.
    let hdr = reading.hdr.as_ref().map_or(0, |hdr| hdr.len() + hdr.len() / 40 + 12);
    NAMES_AND_NUMBERS + if whole { hdr } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_nothing_a_port_or_a_port_and_a_queue() {
        let filter = |port, queue| Some(Filter { port, queue });
        assert_eq!(Filter::new(""), filter(None, None));
        assert_eq!(Filter::new("3"), filter(Some(3), None));
        assert_eq!(Filter::new("3,7"), filter(Some(3), Some(7)));
        for bad in ["x", "1,", ",1", "1,2,3", "65536", "-1"] {
            assert_eq!(Filter::new(bad), None, "{bad}");
        }
        let one = Filter { port: Some(1), queue: Some(2) };
        assert!(one.lets(1, 2) && !one.lets(1, 0) && !one.lets(0, 2));
    }

    #[test]
    fn an_entry_takes_no_more_than_its_size() {
        let bursts: Vec<u64> = (0..40).map(|shift| 1 << shift).collect();
        let reading = figures::Reading {
            lcore: u32::MAX,
            port: 31,
            queue: 1023,
            packets: u64::MAX,
            burst_limit: 39,
            bursts: bursts.clone(),
            busy_tsc: 0,
            total_tsc: 1 << 60,
        };
        let numbers = [
            ("lcore", u64::from(u32::MAX)),
            ("port", 31),
            ("queue", 1023),
            ("polls", reading.polls()),
            ("empty_polls", 1),
            ("packets", u64::MAX),
            ("burst_limit", 39),
            ("busy_tsc", 0),
            ("total_tsc", 1 << 60),
        ];
        let entry = |more: String| {
            let numbers = numbers.map(|(name, number)| format!("\"{name}\":{number}"));
            format!("{{{}{more}}},", numbers.join(","))
        };
        assert_eq!(entry(String::new()).len(), polling_size(&reading, false));
        let bursts: Vec<String> = bursts.iter().map(u64::to_string).collect();
        let histogram = format!(",\"burst_histogram\":[{}]", bursts.join(","));
        assert!(entry(histogram).len() <= polling_size(&reading, true));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let size = |each: &usize, whole| if whole { 10 * each } else { *each };
        assert_eq!(fits(&[100; 10], size).ok(), Some(true));
        assert_eq!(fits(&[1000; 10], size).ok(), Some(false));
        assert!(fits(&[1000; 100], size).is_err());
        assert!(fits(&[1; MOST_ENTRIES + 1], size).is_err());
    }

    #[test]
    fn numbers_are_as_long_as_they_are_printed() {
        for number in [0, 9, 10, 99, 100, u64::MAX] {
            assert_eq!(digits(number), number.to_string().len());
        }
    }
}
