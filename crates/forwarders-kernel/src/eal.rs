// SPDX-License-Identifier: BSD-3-Clause
//! The first half of the command line, which a program on DPDK passes to EAL: CPUs, file prefix and
//! devices. Options about memory or buses have no effect here and are accepted, so that one command
//! line runs a program on DPDK's af_packet driver and this one.

use std::collections::BTreeMap;
use std::ffi::OsString;

use forwarders_common::getopt::{Getopt, GetoptError, Opt, flag, valued};

const OPTIONS: &[Opt] = &[
    valued("l"),
    valued("lcores"),
    valued("main-lcore"),
    valued("file-prefix"),
    valued("vdev"),
    // Ignored here.
    valued("n"),
    valued("m"),
    valued("socket-mem"),
    valued("iova-mode"),
    valued("log-level"),
    valued("base-virtaddr"),
    valued("huge-dir"),
    flag("v"),
    flag("no-huge"),
    flag("no-pci"),
    flag("no-shconf"),
    flag("no-hpet"),
    flag("in-memory"),
    flag("huge-unlink"),
    flag("legacy-mem"),
    flag("single-file-segments"),
    flag("telemetry"),
    flag("no-telemetry"),
];

/// Most ports, as in the distribution's DPDK.
pub const MAX_PORTS: usize = 32;
/// The default of `--file-prefix`.
const PREFIX: &str = "rte";

/// An error in the first half of a command line.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum EalError {
    /// No such option.
    #[error("EAL: {0}")]
    Getopt(#[from] GetoptError),
    /// An invalid list of CPUs.
    #[error("EAL: -l takes CPUs such as 1, 1-3 or 1,3, not {0:?}")]
    Cpus(String),
    /// A CPU that the process may not use.
    #[error("EAL: -l {0}: this process may not run on that CPU (allowed: {1})")]
    Cpu(u32, String),
    /// `--main-lcore` is not in `-l`.
    #[error("EAL: --main-lcore {0:?} is not one of the CPUs of -l")]
    Main(String),
    /// An invalid device.
    #[error("EAL: --vdev {0:?}: {1}")]
    Device(String, String),
    /// No device.
    #[error("EAL: no devices; name each interface by --vdev {0}0,iface=NAME")]
    NoDevices(&'static str),
    /// Too many devices.
    #[error("EAL: more than {MAX_PORTS} devices")]
    TooMany,
}

/// A virtual device of the command line: a port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Device {
    /// Its name, such as `net_af_packet0`.
    pub name: String,
    /// The network interface.
    pub iface: String,
    /// Its other arguments.
    settings: BTreeMap<String, String>,
}

/// The first half of the command line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arguments {
    /// CPUs, ascending.
    pub lcores: Vec<u32>,
    /// The one that the program's own thread runs on.
    pub main: u32,
    /// The prefix in the telemetry socket's path.
    pub prefix: String,
    /// True if there is to be a telemetry socket.
    pub telemetry: bool,
    /// Ports, in their order.
    pub devices: Vec<Device>,
}

impl Arguments {
    /// Reads the words before `--`, and returns those after it. `driver` is the prefix of device
    /// names, `allowed` the CPUs that the process may use.
    ///
    /// # Errors
    /// See [`EalError`].
    pub fn read<I>(
        words: I,
        driver: &'static str,
        allowed: &[u32],
    ) -> Result<(Self, Vec<OsString>), EalError>
    where
        I: IntoIterator,
        I::Item: Into<OsString>,
    {
        let mut lcores = allowed.to_vec();
        let mut main = None;
        let mut prefix = PREFIX.to_owned();
        let mut telemetry = true;
        let mut devices: Vec<Device> = Vec::new();
        let mut getopt = Getopt::new(OPTIONS, words);
        while let Some((option, value)) = getopt.next()? {
            let text = value.to_string_lossy().into_owned();
            match option {
                "l" => lcores = cpus(&text, allowed)?,
                // 0@5 means lcore 0 on CPU 5. Here lcores have the numbers of their CPUs.
                "lcores" => {
                    let parts = text.split(',').map(|part| part.rsplit('@').next().unwrap_or(part));
                    lcores = cpus(&parts.collect::<Vec<_>>().join(","), allowed)?;
                }
                "main-lcore" => main = Some(text),
                "file-prefix" => prefix = text,
                "telemetry" => telemetry = true,
                "no-telemetry" => telemetry = false,
                "vdev" => {
                    let device = Device::read(&text, driver)?;
                    if devices.iter().any(|known| known.name == device.name) {
                        return Err(EalError::Device(text, "named twice".to_owned()));
                    }
                    devices.push(device);
                }
                _ => {}
            }
        }
        if devices.is_empty() {
            return Err(EalError::NoDevices(driver));
        }
        if devices.len() > MAX_PORTS {
            return Err(EalError::TooMany);
        }
        let main = match main {
            None => lcores.first().copied(),
            Some(text) => match text.parse().ok().filter(|cpu| lcores.contains(cpu)) {
                Some(cpu) => Some(cpu),
                None => return Err(EalError::Main(text)),
            },
        };
        let main = main.ok_or_else(|| EalError::Cpus(String::new()))?;
        Ok((Self { lcores, main, prefix, telemetry, devices }, getopt.rest()))
    }
}

impl Device {
    fn read(text: &str, driver: &str) -> Result<Self, EalError> {
        let wrong = |why: String| EalError::Device(text.to_owned(), why);
        let mut fields = text.split(',');
        let name = fields.next().unwrap_or_default().to_owned();
        let number = name.strip_prefix(driver);
        if !number.is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit())) {
            return Err(wrong(format!("this program has devices {driver}0, {driver}1, ... only")));
        }
        let mut settings = BTreeMap::new();
        for field in fields {
            let (key, value) =
                field.split_once('=').ok_or_else(|| wrong(format!("{field:?} has no value")))?;
            if settings.insert(key.to_owned(), value.to_owned()).is_some() {
                return Err(wrong(format!("{key} is given twice")));
            }
        }
        let iface = settings
            .remove("iface")
            .filter(|iface| !iface.is_empty())
            .ok_or_else(|| wrong("iface=INTERFACE is missing".to_owned()))?;
        Ok(Self { name, iface, settings })
    }

    /// The error that names a setting of this device.
    pub(crate) fn wrong(&self, key: &str, why: &str) -> EalError {
        let value = self.settings.get(key).map_or("", String::as_str);
        EalError::Device(self.name.clone(), format!("{key}={value}: {why}"))
    }

    /// A setting's number, or the default; refused outside of `range`.
    ///
    /// # Errors
    /// [`EalError::Device`].
    pub fn number(
        &self,
        key: &str,
        without: u32,
        range: std::ops::RangeInclusive<u32>,
    ) -> Result<u32, EalError> {
        let Some(text) = self.settings.get(key) else { return Ok(without) };
        // Not only parse(), which accepts a sign.
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|number| digits && range.contains(number));
        number.ok_or_else(|| {
            self.wrong(key, &format!("not a number from {} to {}", range.start(), range.end()))
        })
    }

    /// Refuses settings other than these.
    ///
    /// # Errors
    /// [`EalError::Device`].
    pub fn only(&self, known: &[&str]) -> Result<(), EalError> {
        match self.settings.keys().find(|key| !known.contains(&key.as_str())) {
            None => Ok(()),
            Some(key) => {
                Err(self
                    .wrong(key, &format!("no such setting; there are iface, {}", known.join(", "))))
            }
        }
    }
}

/// A setting that must be the same for all devices.
///
/// # Errors
/// [`EalError::Device`].
pub(crate) fn agreed<T: PartialEq>(
    devices: &[Device],
    driver: &'static str,
    settings: impl Fn(&Device) -> Result<T, EalError>,
) -> Result<T, EalError> {
    let mut agreed: Option<T> = None;
    for device in devices {
        let settings = settings(device)?;
        if agreed.as_ref().is_some_and(|agreed| *agreed != settings) {
            let why = "has other settings than the device before it; give all the same";
            return Err(EalError::Device(device.name.clone(), why.to_owned()));
        }
        agreed = Some(settings);
    }
    agreed.ok_or(EalError::NoDevices(driver))
}

/// A list of CPUs in EAL's form: `1`, `1-3`, `1,3`. In ascending order, each once.
fn cpus(text: &str, allowed: &[u32]) -> Result<Vec<u32>, EalError> {
    let wrong = || EalError::Cpus(text.to_owned());
    let mut found = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first: u32 = first.trim().parse().map_err(|_| wrong())?;
        let last: u32 = last.trim().parse().map_err(|_| wrong())?;
        if first > last {
            return Err(wrong());
        }
        for cpu in first..=last {
            if !allowed.contains(&cpu) {
                let all: Vec<String> = allowed.iter().map(u32::to_string).collect();
                return Err(EalError::Cpu(cpu, all.join(",")));
            }
            found.push(cpu);
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRIVER: &str = "net_af_packet";

    fn read(line: &str) -> Result<(Arguments, Vec<OsString>), EalError> {
        Arguments::read(line.split_whitespace(), DRIVER, &[0, 1, 2, 5])
    }

    #[test]
    fn a_command_line_of_dpdk_s_is_read() {
        let (read, rest) = read(
            "-l 5,1-2 -n 4 --no-pci --no-huge -m 512 --file-prefix=x --main-lcore 2 \
             --vdev=net_af_packet0,iface=v0 --vdev net_af_packet1,iface=v1,qpairs=2 -- -p 3 -T 0",
        )
        .unwrap();
        assert_eq!((read.lcores, read.main, read.prefix.as_str()), (vec![1, 2, 5], 2, "x"));
        assert!(read.telemetry);
        let names: Vec<_> = read.devices.iter().map(|each| (&*each.name, &*each.iface)).collect();
        assert_eq!(names, [("net_af_packet0", "v0"), ("net_af_packet1", "v1")]);
        assert_eq!(read.devices[1].number("qpairs", 1, 1..=16), Ok(2));
        assert_eq!(read.devices[0].number("qpairs", 1, 1..=16), Ok(1));
        assert_eq!(read.devices[1].only(&["qpairs"]), Ok(()));
        assert_eq!(rest, ["-p", "3", "-T", "0"]);
    }

    #[test]
    fn without_options_all_cpus_are_used() {
        let (read, rest) = read("--vdev net_af_packet0,iface=v0").unwrap();
        assert_eq!((read.lcores, read.main, read.prefix.as_str()), (vec![0, 1, 2, 5], 0, "rte"));
        assert!(rest.is_empty());
    }

    #[test]
    fn lcores_have_the_numbers_of_their_cpus() {
        let (read, _) = read("--lcores 0@5,1@1 --vdev net_af_packet0,iface=v0").unwrap();
        assert_eq!((read.lcores, read.main), (vec![1, 5], 1));
    }

    #[test]
    fn mistakes_name_what_is_wrong() {
        for (line, told) in [
            ("", "--vdev net_af_packet0,iface=NAME"),
            ("--vdev net_ring0", "net_ring0"),
            ("--vdev net_af_packetX,iface=v", "net_af_packetX"),
            ("--vdev net_af_packet0", "iface"),
            ("--vdev net_af_packet0,iface=", "iface"),
            ("--vdev net_af_packet0,iface=v,qpairs", "qpairs"),
            ("--vdev net_af_packet0,iface=v,a=1,a=2", "a is given twice"),
            ("--vdev net_af_packet0,iface=v --vdev net_af_packet0,iface=w", "twice"),
            ("-l x --vdev net_af_packet0,iface=v", "\"x\""),
            ("-l 3-1 --vdev net_af_packet0,iface=v", "\"3-1\""),
            ("-l 3 --vdev net_af_packet0,iface=v", "-l 3"),
            ("-l 1 --main-lcore 2 --vdev net_af_packet0,iface=v", "--main-lcore \"2\""),
            ("--nonsense", "--nonsense"),
        ] {
            let error = read(line).unwrap_err().to_string();
            assert!(error.contains(told), "{line}: {error}");
        }
        let (read, _) = read("--vdev net_af_packet0,iface=v,qpairs=0,other=+1").unwrap();
        let [device] = &read.devices[..] else { panic!() };
        for (key, told) in [("qpairs", "qpairs=0: not a"), ("other", "other=+1: not a")] {
            let error = device.number(key, 1, 1..=16).unwrap_err().to_string();
            assert!(error.contains(&format!("{told} number from 1 to 16")), "{error}");
        }
        assert!(device.only(&["qpairs"]).unwrap_err().to_string().contains("other=+1"));
    }
}
