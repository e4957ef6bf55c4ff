// SPDX-License-Identifier: BSD-3-Clause
//! The list of DPDK's telemetry commands that are answered, with their valid parameters.
//!
//! DPDK's handlers use any number as an index into an array (`/eal/heap_info`), truncate it to 16
//! bits in one place and not in the next (`/ethdev/info`), use the null pointer of a failed lookup
//! (`/eal/memzone_info`), or read every port's private memory as that of their own driver
//! (`/cnxk/ethdev/info`, which has no parameter at all). So only the commands listed here are
//! passed on, with parameters that the handlers of DPDK 22.11, 24.11 and 25.11 handle safely.

/// Longest name of a command, as in DPDK.
const LONGEST_COMMAND: usize = 55;

/// Commands whose handlers check their parameters themselves: those of the project's programs, its
/// probe and its driver.
const TRUSTED: [&str; 2] = ["/linerate/", "/net_nearfree/"];

/// A parameter that a handler handles safely.
#[derive(Clone, Copy, Debug)]
enum Parameter {
    /// A decimal number up to this one.
    Number(u64),
    /// A port whose driver is asked for its statistics: not all drivers check that the queues
    /// exist.
    Counted,
    /// The same, or nothing.
    Optional(u64),
    /// A number that another command lists.
    Listed(&'static str),
    /// A name that DPDK compares with others: printable, without blanks, and nothing when it is left out.
    Name,
    /// `hide_zero=true` or `hide_zero=false`, or nothing.
    HideZero,
}

use Parameter::{Counted, HideZero, Listed, Name, Number, Optional};

/// Handlers truncate a port's or queue's number to 16 bits, and take the largest as "none".
const LAST: u64 = u16::MAX as u64 - 1;
/// A port.
const PORT: Parameter = Number(LAST);
/// A queue of a port that may have only one.
const QUEUE: Parameter = Optional(LAST);
/// A number that handlers read into 32 bits, where the largest means "none".
const INDEX: Parameter = Number(u32::MAX as u64 - 1);

/// The valid parameters of DPDK's commands.
const COMMANDS: &[(&str, &[Parameter])] = &[
    ("/", &[]),
    ("/eal/app_params", &[]),
    ("/eal/heap_info", &[Listed("/eal/heap_list")]),
    ("/eal/heap_list", &[]),
    ("/eal/lcore/info", &[Listed("/eal/lcore/list")]),
    ("/eal/lcore/list", &[]),
    ("/eal/lcore/usage", &[]),
    (
        "/eal/mem_element_info",
        &[Listed("/eal/heap_list"), Listed("/eal/memseg_lists"), INDEX, INDEX, INDEX],
    ),
    ("/eal/mem_element_list", &[Listed("/eal/heap_list"), Listed("/eal/memseg_lists"), INDEX]),
    ("/eal/memseg_info", &[Listed("/eal/memseg_lists"), INDEX]),
    ("/eal/memseg_list_info", &[Listed("/eal/memseg_lists")]),
    ("/eal/memseg_lists", &[]),
    ("/eal/memzone_info", &[Listed("/eal/memzone_list")]),
    ("/eal/memzone_list", &[]),
    ("/eal/params", &[]),
    ("/ethdev/dcb", &[PORT]),
    ("/ethdev/dump_priv", &[PORT]),
    ("/ethdev/fec", &[PORT]),
    ("/ethdev/flow_ctrl", &[PORT]),
    ("/ethdev/info", &[PORT]),
    ("/ethdev/link_status", &[PORT]),
    ("/ethdev/list", &[]),
    ("/ethdev/macs", &[PORT]),
    ("/ethdev/module_eeprom", &[PORT]),
    ("/ethdev/rss_info", &[PORT]),
    ("/ethdev/rx_queue", &[PORT, QUEUE]),
    ("/ethdev/stats", &[Counted]),
    ("/ethdev/tm_capability", &[PORT]),
    ("/ethdev/tm_level_capability", &[PORT, INDEX]),
    ("/ethdev/tm_node_capability", &[PORT, INDEX]),
    ("/ethdev/tx_queue", &[PORT, QUEUE]),
    ("/ethdev/vlan", &[PORT]),
    ("/ethdev/xstats", &[Counted, HideZero]),
    ("/help", &[Name]),
    ("/info", &[]),
    ("/mempool/info", &[Name]),
    ("/mempool/list", &[]),
    ("/ring/info", &[Name]),
    ("/ring/list", &[]),
];

/// What to do with a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict<'r> {
    /// The command checks its parameters itself.
    Trusted,
    /// The request may be passed to DPDK under these conditions.
    Harmless(Conditions<'r>),
    /// The request is not passed on.
    Refused,
}

/// Conditions that a request itself does not show.
#[derive(Default, Debug, PartialEq, Eq)]
pub(crate) struct Conditions<'r> {
    /// Each of these commands must list the number next to it.
    pub listed: Vec<(&'static str, &'r str)>,
    /// This port's statistics must be safe to read.
    pub counted: Option<u16>,
}

/// Returns true if DPDK would accept this as a command, known or not.
pub(crate) fn is_command(name: &str) -> bool {
    let usual = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'/');
    name.starts_with('/') && name.len() <= LONGEST_COMMAND && name.bytes().all(usual)
}

/// Checks a command and the text after its comma.
pub(crate) fn examine<'r>(command: &str, parameters: &'r str) -> Verdict<'r> {
    if TRUSTED.iter().any(|prefix| command.starts_with(prefix)) {
        return Verdict::Trusted;
    }
    let found = COMMANDS.iter().find(|(name, _)| *name == command);
    let conditions = found.and_then(|(_, expected)| borne(expected, parameters));
    conditions.map_or(Verdict::Refused, Verdict::Harmless)
}

/// Returns the conditions under which the parameters are valid; `None` if they are not.
fn borne<'r>(expected: &[Parameter], parameters: &'r str) -> Option<Conditions<'r>> {
    let mut words = parameters.split(',').filter(|_| !parameters.is_empty());
    let mut conditions = Conditions::default();
    for parameter in expected {
        let word = words.next();
        let good = match (parameter, word) {
            (Number(most), Some(word)) => is_number(word, *most),
            (Counted, Some(word)) => {
                conditions.counted = word.parse().ok();
                is_number(word, LAST)
            }
            (Listed(list), Some(word)) => {
                conditions.listed.push((*list, word));
                is_number(word, u32::MAX.into())
            }
            (Optional(most), word) => word.is_none_or(|word| is_number(word, *most)),
            (HideZero, word) => {
                matches!(word, None | Some("hide_zero=true" | "hide_zero=false"))
            }
            (Name, word) => word.is_none_or(is_name),
            (Number(_) | Counted | Listed(_), None) => false,
        };
        if !good {
            return None;
        }
    }
    words.next().is_none().then_some(conditions)
}

fn is_name(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Digits only, as DPDK prints them: no sign, and no leading zero, which would make it octal.
fn is_number(word: &str, most: u64) -> bool {
    word.parse::<u64>().is_ok_and(|number| number <= most && number.to_string() == word)
}

/// Returns true if an answer, such as `{"/eal/heap_list":[0,1]}`, lists a number.
pub(crate) fn lists(answer: &[u8], number: &str) -> bool {
    let text = String::from_utf8_lossy(answer);
    let list = text.split_once(":[").and_then(|(_, rest)| rest.strip_suffix("]}"));
    list.is_some_and(|list| list.split(',').any(|listed| listed.trim() == number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn harmless(command: &str, parameters: &str) -> bool {
        matches!(examine(command, parameters), Verdict::Harmless(_))
    }

    #[test]
    fn ports_fit_into_sixteen_bits() {
        for port in ["0", "31", "65534"] {
            assert!(harmless("/ethdev/info", port), "{port}");
        }
        for port in [
            "",
            "65535",
            "65536",
            "4294967296",
            "99999999999999999999",
            "-1",
            "+1",
            " 0",
            "0 ",
            "00",
            "010",
            "0x0",
            "0,",
            ",0",
            "0,1",
            "a",
            "\u{663}",
        ] {
            assert!(!harmless("/ethdev/info", port), "{port:?}");
        }
    }

    #[test]
    fn optional_parameters_may_be_left_out_and_no_more_follow() {
        for (command, good, bad) in [
            ("/ethdev/rx_queue", vec!["0", "0,3"], vec!["", "0,", "0,-1", "0,65535", "0,0,0"]),
            ("/ethdev/tm_level_capability", vec!["0,4294967294"], vec!["0", "0,4294967295"]),
            ("/ethdev/xstats", vec!["0", "0,hide_zero=true"], vec!["0,hide_zero=", "0,x=1"]),
            ("/mempool/info", vec!["", "pool_0"], vec!["a b", "a,b", "\u{7f}", "ä"]),
            ("/ethdev/list", vec![""], vec!["0", ","]),
            ("/eal/params", vec![""], vec!["x"]),
        ] {
            for parameters in good {
                assert!(harmless(command, parameters), "{command},{parameters}");
            }
            for parameters in bad {
                assert!(!harmless(command, parameters), "{command},{parameters}");
            }
        }
    }

    #[test]
    fn indexes_are_those_that_dpdk_lists() {
        let listed = Conditions { listed: vec![("/eal/memzone_list", "7")], counted: None };
        assert_eq!(examine("/eal/memzone_info", "7"), Verdict::Harmless(listed));
        let counted = Conditions { listed: vec![], counted: Some(7) };
        assert_eq!(examine("/ethdev/xstats", "7"), Verdict::Harmless(counted));
        assert_eq!(examine("/eal/memzone_info", "-1"), Verdict::Refused);
        assert_eq!(examine("/eal/heap_info", "4294967296"), Verdict::Refused);
        let answer = br#"{"/eal/heap_list":[0,12]}"#;
        assert!(lists(answer, "0") && lists(answer, "12"));
        assert!(!lists(answer, "1") && !lists(answer, "2") && !lists(answer, ""));
        for none in [&br#"{"/eal/heap_list":[]}"#[..], br#"{"/eal/heap_list":null}"#, b"", b"[0]"] {
            assert!(!lists(none, "0"), "{}", String::from_utf8_lossy(none));
        }
    }

    #[test]
    fn unknown_commands_are_refused_and_own_ones_are_not() {
        for command in
            ["/cnxk/ethdev/info", "/dmadev/info", "/ethdev", "/ethdev/infos", "/linerate"]
        {
            assert_eq!(examine(command, ""), Verdict::Refused, "{command}");
        }
        assert_eq!(examine("/linerate/generator/flow", "a b,c"), Verdict::Trusted);
        assert_eq!(examine("/net_nearfree/check", "net_nearfree0"), Verdict::Trusted);
        for name in
            ["", "info", ",/info", "/in fo", "/info\0", "/ä", &format!("/{}", "x".repeat(55))]
        {
            assert!(!is_command(name), "{name:?}");
        }
        assert!(is_command(&format!("/{}", "x".repeat(54))));
        let names: Vec<_> = COMMANDS.iter().map(|(name, _)| name).collect();
        assert!(names.is_sorted() && names.iter().all(|name| is_command(name)));
    }
}
