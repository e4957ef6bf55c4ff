// SPDX-License-Identifier: BSD-3-Clause
//! The configuration: a text file with one item a line. `l4lb.conf` has one of each.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::str::FromStr;

use packet::MacAddr;
use packet::ipv4::{PROTOCOL_TCP, PROTOCOL_UDP};
use packet::vxlan::MAX_VNI;

/// The gateway, if none is given.
const NO_MAC: MacAddr = MacAddr([0; 6]);
/// Seconds: a day is far below what ticks can count.
const MOST_IDLE: u32 = 86_400;
/// Every IPv4 link carries packets of this length (RFC 791).
const LEAST_MTU: u16 = 68;

/// The content of the file.
#[derive(Debug, PartialEq, Eq)]
pub struct Config {
    /// Sources of outer headers.
    pub local4: Ipv4Addr,
    pub local6: Ipv6Addr,
    /// The next hop of answers from backends.
    pub gateway: MacAddr,
    /// Seconds without a packet after which a connection is forgotten.
    pub idle_s: u32,
    /// Bytes of the longest packet, from the outermost IP header on.
    pub mtu: u16,
    pub deny: Vec<Deny>,
    pub vips: Vec<Vip>,
}

/// Packets that are dropped.
#[derive(Debug, PartialEq, Eq)]
pub struct Deny {
    pub source: IpAddr,
    pub prefix_len: u8,
    pub protocol: Option<u8>,
    /// The lowest and the highest destination port.
    pub ports: Option<[u16; 2]>,
}

/// An address and port that clients see.
#[derive(Debug, PartialEq, Eq)]
pub struct Vip {
    pub name: String,
    pub protocol: u8,
    pub address: IpAddr,
    pub port: u16,
    pub mode: Mode,
    pub backends: Vec<Backend>,
}

/// How packets get to a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Ipip,
    Gre,
    Vxlan { vni: u32 },
    Nat,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backend {
    pub address: IpAddr,
    pub mac: MacAddr,
    /// Its port with NAT, if it is another than the VIP's.
    pub port: Option<u16>,
}

/// Why a configuration is not one.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("{0}: {1}")]
    Read(String, std::io::Error),
    #[error("{file}:{line}: {reason}")]
    Line { file: String, line: usize, reason: String },
}

impl Config {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|e| ConfigError::Read(file.clone(), e))?;
        Self::parse(&text).map_err(|(line, reason)| ConfigError::Line { file, line, reason })
    }

    /// Reads a text; an error has the number of its line.
    fn parse(text: &str) -> Result<Self, (usize, String)> {
        let mut config = Config {
            local4: Ipv4Addr::UNSPECIFIED,
            local6: Ipv6Addr::UNSPECIFIED,
            gateway: NO_MAC,
            idle_s: 60,
            mtu: 1500,
            deny: Vec::new(),
            vips: Vec::new(),
        };
        let mut lines = 0;
        for line in text.lines() {
            lines += 1;
            let words: Vec<_> =
                line.split('#').next().unwrap_or_default().split_whitespace().collect();
            config.take(&words).map_err(|reason| (lines, reason))?;
        }
        config.is_whole().map_err(|reason| (lines, reason))?;
        Ok(config)
    }

    /// Returns an error if an item is missing that another needs.
    fn is_whole(&self) -> Result<(), String> {
        if self.vips.is_empty() {
            return Err("the file has no vip".to_owned());
        }
        for vip in &self.vips {
            let name = &vip.name;
            if vip.mode == Mode::Nat {
                if self.gateway == NO_MAC {
                    return Err(format!("vip {name} is nat, which needs: gateway MAC"));
                }
                continue;
            }
            for backend in &vip.backends {
                let (local, version) = match backend.address {
                    IpAddr::V4(_) => (IpAddr::V4(self.local4), "IPv4"),
                    IpAddr::V6(_) => (IpAddr::V6(self.local6), "IPv6"),
                };
                if local.is_unspecified() {
                    let to = backend.address;
                    return Err(format!(
                        "vip {name}: the tunnel to {to} needs: local and an {version} address"
                    ));
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, words: &[&str]) -> Result<(), String> {
        match *words {
            [] => (),
            ["local", address] => match word("an address", address)? {
                IpAddr::V4(address) => self.local4 = address,
                IpAddr::V6(address) => self.local6 = address,
            },
            ["gateway", mac] => self.gateway = word("a MAC address", mac)?,
            ["idle", seconds] => {
                self.idle_s = word("seconds", seconds)?;
                if !(1..=MOST_IDLE).contains(&self.idle_s) {
                    return Err(format!("idle {seconds} is not 1 to {MOST_IDLE} seconds"));
                }
            }
            ["mtu", bytes] => {
                self.mtu = word("a number of bytes", bytes)?;
                if self.mtu < LEAST_MTU {
                    return Err(format!("mtu {bytes} is below {LEAST_MTU} bytes"));
                }
            }
            ["deny", source, ref rest @ ..] => self.deny.push(deny(source, rest)?),
            ["vip", name, protocol_name, address, port, ref mode @ ..] => {
                let vip = Vip {
                    name: name.to_owned(),
                    protocol: protocol(protocol_name)?,
                    address: word("an address", address)?,
                    port: word("a port", port)?,
                    mode: mode_of(mode)?,
                    backends: Vec::new(),
                };
                if self.vips.iter().any(|other| other.name == vip.name) {
                    return Err(format!("there is a vip {name} already"));
                }
                let clients_see = |vip: &Vip| (vip.protocol, vip.address, vip.port);
                if let Some(other) = self.vips.iter().find(|o| clients_see(o) == clients_see(&vip))
                {
                    return Err(format!("vip {} has this address and port already", other.name));
                }
                self.vips.push(vip);
            }
            ["to", address, mac, ref port @ ..] => {
                let vip = self.vips.last().ok_or("a backend comes after its vip")?;
                let port = match *port {
                    [] => None,
                    [port] => Some(word("a port", port)?),
                    _ => return Err("a backend is: to ADDRESS MAC [PORT]".to_owned()),
                };
                let backend = Backend {
                    address: word("an address", address)?,
                    mac: word("a MAC address", mac)?,
                    port,
                };
                check(vip, &backend)?;
                if vip
                    .backends
                    .iter()
                    .any(|b| (b.address, b.port) == (backend.address, backend.port))
                {
                    return Err(format!("{address} is a backend of vip {} already", vip.name));
                }
                // An answer's source says which VIP it is of.
                let end = nat_end(vip, &backend);
                let has_end = |vip: &&Vip| vip.backends.iter().any(|b| nat_end(vip, b) == end);
                if let Some(other) = self.vips.iter().filter(|_| end.is_some()).find(has_end) {
                    let name = &other.name;
                    return Err(format!(
                        "{address} with this port is a backend of nat vip {name} already"
                    ));
                }
                if let Some(vip) = self.vips.last_mut() {
                    vip.backends.push(backend);
                }
            }
            [item, ..] => {
                return Err(format!(
                    "{item} with {} words behind it is no item; there are: local ADDRESS, gateway MAC, idle SECONDS, \
                     mtu BYTES, deny SOURCE [tcp|udp [LOW-HIGH]], vip NAME tcp|udp ADDRESS PORT \
                     ipip|gre|nat|vxlan VNI, to ADDRESS MAC [PORT]",
                    words.len() - 1
                ));
            }
        }
        Ok(())
    }
}

fn word<T: FromStr>(what: &str, word: &str) -> Result<T, String> {
    word.parse().map_err(|_| format!("{word} is not {what}"))
}

fn protocol(word: &str) -> Result<u8, String> {
    match word {
        "tcp" => Ok(PROTOCOL_TCP),
        "udp" => Ok(PROTOCOL_UDP),
        _ => Err(format!("{word} is neither tcp nor udp")),
    }
}

fn mode_of(words: &[&str]) -> Result<Mode, String> {
    match *words {
        ["ipip"] => Ok(Mode::Ipip),
        ["gre"] => Ok(Mode::Gre),
        ["nat"] => Ok(Mode::Nat),
        ["vxlan", vni] => match word("a network identifier", vni)? {
            vni @ 0..=MAX_VNI => Ok(Mode::Vxlan { vni }),
            vni => Err(format!("{vni} is above {MAX_VNI}, the largest network identifier")),
        },
        _ => {
            Err(format!("{:?} is no mode; there are ipip, gre, nat and vxlan VNI", words.join(" ")))
        }
    }
}

fn deny(source: &str, rest: &[&str]) -> Result<Deny, String> {
    let (address, len) = source.split_once('/').ok_or("a source is ADDRESS/LENGTH")?;
    let source: IpAddr = word("an address", address)?;
    let most = if source.is_ipv4() { 32 } else { 128 };
    let prefix_len = word("a prefix length", len)?;
    if prefix_len > most {
        return Err(format!(
            "a prefix of {prefix_len} bits is longer than the address, {most} bits"
        ));
    }
    let (protocol, ports) = match *rest {
        [] => (None, None),
        [name] => (Some(protocol(name)?), None),
        [name, ports] => {
            let (low, high) = ports.split_once('-').ok_or("ports are LOW-HIGH")?;
            let ports: [u16; 2] = [word("a port", low)?, word("a port", high)?];
            if ports[0] > ports[1] {
                return Err(format!("{low} is above {high}"));
            }
            (Some(protocol(name)?), Some(ports))
        }
        _ => return Err("deny SOURCE [tcp|udp [LOW-HIGH]]".to_owned()),
    };
    Ok(Deny { source, prefix_len, protocol, ports })
}

/// The source of a backend's answers, if it is one of NAT.
fn nat_end(vip: &Vip, backend: &Backend) -> Option<(u8, IpAddr, u16)> {
    let port = backend.port.unwrap_or(vip.port);
    (vip.mode == Mode::Nat).then_some((vip.protocol, backend.address, port))
}

/// Returns an error if packets of the VIP cannot get to a backend.
fn check(vip: &Vip, backend: &Backend) -> Result<(), String> {
    match vip.mode {
        Mode::Nat if backend.address.is_ipv4() != vip.address.is_ipv4() => Err(format!(
            "{} has another version than {}: nat does not change it",
            backend.address, vip.address
        )),
        Mode::Nat => Ok(()),
        _ if backend.port.is_some() => {
            Err("only backends of nat have a port of their own".to_owned())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> (usize, String) {
        Config::parse(text).unwrap_err()
    }

    #[test]
    fn the_example_is_read() {
        let config = Config::parse(include_str!("../l4lb.conf")).unwrap();
        assert_eq!((config.vips.len(), config.deny.len(), config.idle_s), (6, 3, 60));
        assert_eq!(config.deny[1].ports, Some([22, 23]));
        assert_eq!(config.vips[2].mode, Mode::Vxlan { vni: 77 });
        assert_eq!(config.vips[1].backends[1].port, Some(5353));
    }

    #[test]
    fn errors_name_line_and_word() {
        let vip = "vip a tcp 192.0.2.1 80 ipip\n";
        let nat = "vip n udp 192.0.2.1 53 nat\n";
        for (text, line, reason) in [
            ("\nlocal here", 2, "here is not an address"),
            ("locale 10.0.0.1", 1, "locale with 1 words behind it is no item"),
            ("deny 10.0.0.0", 1, "a source is ADDRESS/LENGTH"),
            ("deny 10.0.0.0/33", 1, "33 bits is longer than the address, 32 bits"),
            ("deny 10.0.0.0/8 sctp", 1, "sctp is neither tcp nor udp"),
            ("deny 10.0.0.0/8 tcp 80-79", 1, "80 is above 79"),
            ("to 10.0.0.1 02:00:00:00:00:01", 1, "a backend comes after its vip"),
            ("vip a tcp 192.0.2.1 80 vxlan", 1, "\"vxlan\" is no mode"),
            ("vip a tcp 192.0.2.1 80 vxlan 16777216", 1, "is above 16777215"),
            (&format!("{vip}{vip}"), 2, "there is a vip a already"),
            (
                &format!("{vip}{}", vip.replace("vip a", "vip b")),
                2,
                "vip a has this address and port already",
            ),
            (
                &format!("{vip}to 10.0.0.1 02:00:00:00:00:01 80"),
                2,
                "only backends of nat have a port",
            ),
            (
                "vip a tcp 192.0.2.1 80 nat\nto ::1 02:00:00:00:00:01",
                2,
                "::1 has another version than 192.0.2.1",
            ),
            ("mtu 65536", 1, "65536 is not a number of bytes"),
            ("mtu 67", 1, "mtu 67 is below 68 bytes"),
            (
                &format!("{vip}to 10.0.0.1 02:00:00:00:00:01\nto 10.0.0.1 02:00:00:00:00:02"),
                3,
                "10.0.0.1 is a backend of vip a already",
            ),
            ("idle 0", 1, "idle 0 is not 1 to 86400 seconds"),
            ("idle 86401", 1, "idle 86401 is not"),
            ("idle 9", 1, "the file has no vip"),
            ("", 0, "the file has no vip"),
            (
                &format!("{vip}to 10.0.0.1 02:00:00:00:00:01"),
                2,
                "vip a: the tunnel to 10.0.0.1 needs: local and an IPv4 address",
            ),
            (
                &format!("local 10.0.0.9\n{vip}to ::1 02:00:00:00:00:01"),
                3,
                "needs: local and an IPv6 address",
            ),
            (
                &format!("{nat}to 10.0.0.1 02:00:00:00:00:01"),
                2,
                "vip n is nat, which needs: gateway MAC",
            ),
            (
                &format!(
                    "{nat}to 10.0.0.1 02:00:00:00:00:01\n{}to 10.0.0.1 02:00:00:00:00:02 53",
                    nat.replace("n udp 192.0.2.1", "m udp 192.0.2.2")
                ),
                4,
                "10.0.0.1 with this port is a backend of nat vip n already",
            ),
        ] {
            let (found, text) = error(text);
            assert!(found == line && text.contains(reason), "{found}: {text}");
        }
    }

    #[test]
    fn errors_of_files_name_them() {
        let error = Config::read(Path::new("/nonexistent.conf")).unwrap_err().to_string();
        assert!(error.starts_with("/nonexistent.conf: "), "{error}");
    }
}
