// SPDX-License-Identifier: BSD-3-Clause
use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::*;

/// Ports 0 and 2.
const PORTS: u32 = 0b101;
const DENY: &str = "@10.0.0.0/8 0.0.0.0/0 0 : 65535 0 : 65535 0/0";
const PASS: &str = "R0.0.0.0/0 0.0.0.0/0 0 : 65535 0 : 65535 0/0 2";

fn file(content: impl AsRef<[u8]>) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rules");
    fs::write(&path, content).unwrap();
    (folder, path)
}

/// The result of a strict reading, which has no warnings.
fn alone<T>(contents: Contents<T>) -> Vec<T> {
    assert_eq!(contents.warnings, []);
    contents.entries
}

fn rules4(content: impl AsRef<[u8]>) -> Result<Vec<AclRule<Ipv4Addr>>, RuleFileError> {
    read_acl(&file(content).1, PORTS, Strictness::Strict).map(alone)
}

fn rules6(content: impl AsRef<[u8]>) -> Result<Vec<AclRule<Ipv6Addr>>, RuleFileError> {
    read_acl(&file(content).1, PORTS, Strictness::Strict).map(alone)
}

fn routes4(content: impl AsRef<[u8]>) -> Result<Vec<Route<Ipv4Addr>>, RuleFileError> {
    read_routes(&file(content).1, PORTS, Strictness::Strict).map(alone)
}

fn routes6(content: impl AsRef<[u8]>) -> Result<Vec<Route<Ipv6Addr>>, RuleFileError> {
    read_routes(&file(content).1, PORTS, Strictness::Strict).map(alone)
}

/// Read as l3fwd does: the entries, and the warnings without the name of the file.
fn lenient<T>(
    content: impl AsRef<[u8]>,
    read: impl Fn(&Path, u32, Strictness) -> Result<Contents<T>, RuleFileError>,
) -> Result<(Vec<T>, Vec<String>), RuleFileError> {
    let (_folder, path) = file(content);
    let Contents { entries, warnings } = read(&path, PORTS, Strictness::AsL3fwd)?;
    let named = format!("{}: ", path.display());
    let told = |warning: Warning| warning.to_string().strip_prefix(&named).unwrap().to_owned();
    Ok((entries, warnings.into_iter().map(told).collect()))
}

/// The error for a file, without its name.
fn complaint<T: std::fmt::Debug>(result: Result<T, RuleFileError>) -> String {
    let said = result.unwrap_err().to_string();
    let (name, rest) = said.split_once(": ").unwrap();
    assert!(name.ends_with("/rules"), "{said}");
    rest.to_owned()
}

#[test]
fn rules_are_read_in_their_order() {
    let rules = rules4(
        "# comment\n\n \t\n@192.168.0.34/32 192.168.0.36/0x10 0 : 65535 20 : 0x1f 6/0xfe\r\n\
         R 1.2.3.4/24 0.0.0.0/0 010 : 10 0 : 65535 0x00/0x00 2",
    );
    let first = FiveTuple {
        source: Prefix { network: [192, 168, 0, 34].into(), len: 32 },
        destination: Prefix { network: [192, 168, 0, 0].into(), len: 16 },
        source_ports: 0..=65535,
        destination_ports: 20..=31,
        protocol: 6,
        protocol_mask: 0xfe,
        flags: TcpFlags::default(),
    };
    let second = FiveTuple {
        source: Prefix { network: [1, 2, 3, 0].into(), len: 24 },
        destination: Prefix { network: [0; 4].into(), len: 0 },
        source_ports: 8..=10,
        destination_ports: 0..=65535,
        protocol: 0,
        protocol_mask: 0,
        flags: TcpFlags::default(),
    };
    assert_eq!(
        rules.unwrap(),
        [
            AclRule { matches: first, action: Action::Deny, line: 4 },
            AclRule { matches: second, action: Action::Forward(2), line: 5 },
        ]
    );
}

#[test]
fn ipv6_addresses_are_whole_or_abbreviated() {
    let rules = rules6(
        "@2001:0db8:0:0:0:0:0:1/128 ::/0 0 : 65535 0 : 65535 17/0xff\n\
         R2001:db8:ffff::/33 fe80::1/10 0 : 65535 0 : 65535 0/0 0\n",
    )
    .unwrap();
    assert_eq!(rules[0].matches.source.network, "2001:db8::1".parse::<Ipv6Addr>().unwrap());
    assert_eq!(rules[1].matches.source.network, "2001:db8:8000::".parse::<Ipv6Addr>().unwrap());
    assert_eq!(rules[1].matches.destination.network, "fe80::".parse::<Ipv6Addr>().unwrap());
    assert_eq!(rules[1].matches.destination.len, 10);
    let rules = rules6("R::ffff:1.2.3.4/0x80 2001:DB8::/040 0 : 1 0 : 1 0/0 0\n").unwrap();
    let (source, destination) = (rules[0].matches.source, rules[0].matches.destination);
    assert_eq!((source.network, source.len), ("::ffff:102:304".parse().unwrap(), 128));
    assert_eq!((destination.network, destination.len), ("2001:db8::".parse().unwrap(), 32));
}

#[test]
fn routes_are_read() {
    let routes = routes4("R198.18.0.0/24 0\n#R1.1.1.1/32 0\nR10.1.2.3/8   2\n").unwrap();
    let destination = Prefix { network: Ipv4Addr::new(10, 0, 0, 0), len: 8 };
    assert_eq!(routes[1], Route { destination, port: 2, line: 3 });
    let whole = routes6("R2001:200::/48 0\n").unwrap();
    assert_eq!(whole[0].destination.len, 48);
}

#[test]
fn each_mistake_in_a_rule_is_told_with_its_line() {
    let any = "0.0.0.0/0";
    for (line, expected) in [
        ("S1.2.3.4/32".to_owned(), "begins with 'S', not with @ (deny), R (forward) or #"),
        (format!(" {PASS}"), "begins with ' ', not with"),
        ("@".to_owned(), "no source"),
        (format!("@{any}"), "no destination"),
        (format!("@{any} {any}"), "no source ports"),
        (format!("@{any} {any} 0 : 1 0 :"), "no destination ports"),
        (format!("@{any} {any} 0 : 1 0 : 1"), "no protocol"),
        (format!("R{any} {any} 0 : 1 0 : 1 0/0"), "no port"),
        (
            "R10.0.0.0/8 0".to_owned(),
            "this is a route (R, a network and a port): put it into a file of routes",
        ),
        (
            "R 10.0.0.0/8 0".to_owned(),
            "this is a route (R, a network and a port): put it into a file of routes",
        ),
        ("@10.0.0.0/8 0".to_owned(), "destination: \"0\" is not an IPv4 prefix"),
        ("R10.0.0.0/8 0 0".to_owned(), "destination: \"0\" is not an IPv4 prefix"),
        (format!("@{any} {any} 0 : 1 0 : 1 0/0 1"), "\"1\" behind the last field"),
        (format!("{PASS} # why"), "\"#\" behind the last field"),
        (
            format!("@1.2.3.4/33 {any} 0 : 1 0 : 1 0/0"),
            "source: \"1.2.3.4/33\" is not an IPv4 prefix",
        ),
        (format!("@1.2.3.4 {any} 0 : 1 0 : 1 0/0"), "source: \"1.2.3.4\" is not"),
        (format!("@1.2.3/32 {any} 0 : 1 0 : 1 0/0"), "source: \"1.2.3/32\" is not"),
        (format!("@1.2.3.4.5/32 {any} 0 : 1 0 : 1 0/0"), "source: \"1.2.3.4.5/32\" is not"),
        (format!("@1.2.3.256/32 {any} 0 : 1 0 : 1 0/0"), "source: \"1.2.3.256/32\" is not"),
        (format!("@1.2.3.-1/32 {any} 0 : 1 0 : 1 0/0"), "source: \"1.2.3.-1/32\" is not"),
        (format!("@1..3.4/32 {any} 0 : 1 0 : 1 0/0"), "source: \"1..3.4/32\" is not"),
        (format!("@1.2.3.0x/32 {any} 0 : 1 0 : 1 0/0"), "source: \"1.2.3.0x/32\" is not"),
        (format!("@1.2.3.08/32 {any} 0 : 1 0 : 1 0/0"), "source: \"1.2.3.08/32\" is not"),
        (format!("@/32 {any} 0 : 1 0 : 1 0/0"), "source: \"/32\" is not"),
        (format!("@1.2.3.4/-1 {any} 0 : 1 0 : 1 0/0"), "source: \"1.2.3.4/-1\" is not"),
        (format!("@1.2.3.4/288 {any} 0 : 1 0 : 1 0/0"), "source: \"1.2.3.4/288\" is not"),
        (format!("@1.2.3.4/8/8 {any} 0 : 1 0 : 1 0/0"), "source: \"1.2.3.4/8/8\" is not"),
        (format!("@1.2.3.4 /8 {any} 0 : 1 0 : 1 0/0"), "source: \"1.2.3.4\" is not"),
        (format!("@{any} 1.2.3.4/ 0 : 1 0 : 1 0/0"), "destination: \"1.2.3.4/\" is not"),
        (
            format!("@{any} 1.2.3.4/33 0 : 1 0 : 1 0/0"),
            "destination: \"1.2.3.4/33\" is not an IPv4 prefix",
        ),
        (format!("@{any} ::/0 0 : 1 0 : 1 0/0"), "destination: \"::/0\" is not an IPv4 prefix"),
        (
            format!("@{any} {any} 0:65535 0 : 1 0/0"),
            "source ports: \"0:65535\" has no blanks around its colon: write 0 : 65535",
        ),
        (
            format!("@{any} {any} 0 : 1 0x10: 0x1f 0/0"),
            "destination ports: \"0x10:\" has no blanks around its colon: write 0x10 : 0x1f",
        ),
        (
            format!("@{any} {any} 0 : 1 0 :1 0/0"),
            "destination ports: \":1\" has no blanks around its colon: write 0 : 1",
        ),
        (format!("@{any} {any} 0:65536 0 : 1 0/0"), "source ports: \"0:65536\" is not a port"),
        (format!("@{any} {any} :1 0 : 1 0/0"), "source ports: \":1\" is not a port, 0 to 65535"),
        (format!("@{any} {any} 0: : 1 0/0"), "source ports: \"0:\" is not a port, 0 to 65535"),
        (format!("@{any} {any} 0 1 0 : 1 0/0"), "source ports: \"1\" is not a colon with blanks"),
        (format!("@{any} {any} 0 - 1 0 : 1 0/0"), "source ports: \"-\" is not a colon with blanks"),
        (format!("@{any} {any} -1 : 1 0 : 1 0/0"), "source ports: \"-1\" is not a port"),
        (format!("@{any} {any} 0x : 1 0 : 1 0/0"), "source ports: \"0x\" is not a port"),
        (
            // More than 64 bits.
            format!("@{any} {any} 0 : 0x10000000000000000 0 : 1 0/0"),
            "source ports: \"0x10000000000000000\" is not a port",
        ),
        (
            format!("@{any} {any} 1 : 0 0 : 1 0/0"),
            "source ports: the range ends at 0, before it begins at 1",
        ),
        (format!("@{any} {any} 0 : 65536 0 : 1 0/0"), "source ports: \"65536\" is not a port"),
        (format!("@{any} {any} 0 : 1 +1 : 1 0/0"), "destination ports: \"+1\" is not a port"),
        (format!("@{any} {any} 0 : 1 09 : 1 0/0"), "destination ports: \"09\" is not a port"),
        (
            format!("@{any} {any} 0 : 1 9 : 1 0/0"),
            "destination ports: the range ends at 1, before it begins at 9",
        ),
        (
            format!("@{any} {any} 0 : 1 0 : 1 256/0"),
            "protocol: \"256/0\" is not a protocol and its mask",
        ),
        (
            format!("@{any} {any} 0 : 1 0 : 1 0/256"),
            "protocol: \"0/256\" is not a protocol and its mask such as 6/0xff, both 0 to 255",
        ),
        (format!("@{any} {any} 0 : 1 0 : 1 6/0x100"), "protocol: \"6/0x100\" is not"),
        (format!("@{any} {any} 0 : 1 0 : 1 6/-1"), "protocol: \"6/-1\" is not"),
        (format!("@{any} {any} 0 : 1 0 : 1 6/"), "protocol: \"6/\" is not"),
        (format!("@{any} {any} 0 : 1 0 : 1 /0xff"), "protocol: \"/0xff\" is not"),
        (format!("@{any} {any} 0 : 1 0 : 1 6/0xff/0"), "protocol: \"6/0xff/0\" is not"),
        (format!("@{any} {any} 0 : 1 0 : 1 6 / 0xff"), "protocol: \"6\" is not"),
        (format!("@{any} {any} 0 : 1 0 : 1 6"), "protocol: \"6\" is not"),
        (format!("@{any} {any} 0 : 1 0 : 1 tcp/0xff"), "protocol: \"tcp/0xff\" is not"),
        (format!("R{any} {any} 0 : 1 0 : 1 0/0 1"), "port 1 is not enabled: see -p"),
        (format!("R{any} {any} 0 : 1 0 : 1 0/0 32"), "port: \"32\" is not a port of the program's"),
        (
            format!("R{any} {any} 0 : 1 0 : 1 0/0 two"),
            "port: \"two\" is not a port of the program's",
        ),
        (
            format!("@{any}\u{a0}{any} 0 : 1 0 : 1 0/0"),
            "source: \"0.0.0.0/0\\u{a0}0.0.0.0/0\" is not",
        ),
        (format!("@{any} {any} 0 : 1 0 : 1 ６/0"), "protocol: \"６/0\" is not"),
        (DENY.to_owned(), "matches the same packets as line 2, which hides it"),
        // Bits that do not count make no difference.
        (
            "R10.1.1.1/8 1.1.1.1/0 0 : 65535 0 : 0xffff 6/0 0".to_owned(),
            "matches the same packets as line 2, which hides it",
        ),
        (format!("@{}", "1".repeat(5000)), "longer than 4096 bytes"),
    ] {
        let content = format!("# rules\n{DENY}\n{line}\n{PASS}\n");
        let said = complaint(rules4(&content));
        let told = said.strip_prefix("line 3: ").unwrap_or_else(|| panic!("{line}: {said}"));
        assert!(told.starts_with(expected), "{line}: {said}");
        let as_l3fwd = lenient(&content, read_acl::<Ipv4Addr>);
        if expected.contains("behind the last field") || expected.contains("hides it") {
            let (_, warnings) = as_l3fwd.unwrap();
            assert!(warnings[0].starts_with("line 3: "), "{line}: {warnings:?}");
        } else {
            assert_eq!(complaint(as_l3fwd), said, "what l3fwd refuses is refused");
        }
    }
}

#[test]
fn what_is_no_ipv6_prefix_is_told() {
    for wrong in [
        "2001:db8::/129",
        "2001:db8::/-1",
        "2001:db8::/384",
        "2001:db8::/",
        "2001:db8::/x",
        "2001:db8::/32/32",
        "2001:db8::",
        "/32",
        ":/0",
        ":::/0",
        // One group too few, one too many, and a double colon that stands for no group.
        "2001:db8:3:4:5:6:7/128",
        "2001:db8:3:4:5:6:7:8:9/128",
        "2001:db8:3:4::5:6:7:8/128",
        "2001::db8::/32",
        ":2001:db8:3:4:5:6:7/128",
        "2001:db8:3:4:5:6:7:/128",
        "2001:db8::10000/128",
        "2001:db8::00001/128",
        "2001:db8::g/128",
        "2001:db8::0x1/128",
        "2001:db8::-1/128",
        "[2001:db8::1]/128",
        "fe80::1%eth0/128",
        "::ffff:1.2.3/128",
        "::ffff:1.2.3.256/128",
        "1.2.3.4/32",
    ] {
        let expected = format!("{wrong:?} is not an IPv6 prefix such as 2001:db8::/32");
        for (rule, field) in
            [(format!("{wrong} ::/0"), "source"), (format!("::/0 {wrong}"), "destination")]
        {
            let said = complaint(rules6(format!("@{rule} 0 : 1 0 : 1 0/0\n")));
            assert!(said.starts_with(&format!("line 1: {field}: {expected}")), "{said}");
        }
        let said = complaint(routes6(format!("R{wrong} 0\n")));
        assert!(said.starts_with(&format!("line 1: destination: {expected}")), "{said}");
    }
}

#[test]
fn each_mistake_in_a_route_is_told_with_its_line() {
    for (line, expected) in [
        ("@10.0.0.0/8 0", "begins with '@', not with R or #"),
        ("R", "no destination"),
        ("R10.0.0.0/8", "no port"),
        ("R10.0.0.0/8 0 0", "\"0\" behind the last field"),
        (
            "R0.0.0.0/0 0",
            "destination: DPDK's tables have no default route (a length of 0): give 0.0.0.0/1 and \
             128.0.0.0/1",
        ),
        ("R10.0.0.0/0x0 0", "destination: DPDK's tables have no default route"),
        ("R10.0.0.0/33 0", "destination: \"10.0.0.0/33\" is not an IPv4 prefix"),
        ("R010.0.0.0/8 0", "destination: \"010.0.0.0/8\" is not"),
        ("R10.0.0.0/8 1", "port 1 is not enabled"),
        ("R10.0.0.0/8 32", "port: \"32\" is not a port of the program's, 0 to 31"),
        ("R198.18.0.255/24 0", "the same network as in line 1"),
    ] {
        let said = complaint(routes4(format!("R198.18.0.0/24 2\n{line}\n")));
        let told = said.strip_prefix("line 2: ").unwrap_or_else(|| panic!("{line}: {said}"));
        assert!(told.starts_with(expected), "{line}: {said}");
    }
    let said = complaint(routes6("R::/0 0\n"));
    let expected =
        "destination: DPDK's tables have no default route (a length of 0): give ::/1 and 8000::/1";
    assert_eq!(said, format!("line 1: {expected}"));
    // What it says to give.
    assert_eq!(routes4("R0.0.0.0/1 0\nR128.0.0.0/1 0\n").unwrap().len(), 2);
    assert_eq!(routes6("R::/1 0\nR8000::/1 0\n").unwrap().len(), 2);
}

#[test]
fn the_flags_of_classbench_are_a_field() {
    // As its filter sets have it: tabs, and one at the end.
    let rule = |lead: char, protocol: &str, rest: &str| {
        format!("{lead}192.0.2.0/24\t198.51.100.7/32\t0 : 65535\t80 : 80\t{protocol}{rest}\t\n")
    };
    let flags = |value, mask| TcpFlags { value, mask };
    let none = TcpFlags::default();
    let checked = "TCP flags are checked; l3fwd ignores this column, and so does --acl-as-c";
    for (line, expected, warning) in [
        (rule('@', "0x06/0xFF", "\t0x0000/0x0200"), flags(0, 2), Some(checked)),
        (rule('@', "0x06/0xFF", "\t0x0200/0x1200"), flags(2, 0x12), Some(checked)),
        // Bits that do not count are 0.
        (rule('@', "0x06/0xFF", "\t0xff00/0x1000"), flags(0x10, 0x10), Some(checked)),
        (rule('@', "0x00/0x00", "\t4096/4096"), flags(0x10, 0x10), Some(checked)),
        (rule('R', "0x06/0xFF", "\t2\t0x1000/0x1000"), flags(0x10, 0x10), Some(checked)),
        (rule('@', "0x06/0xFF", "\t0x0000/0x0000"), none, None),
        (rule('@', "0x11/0xFF", "\t0x0000/0x0000"), none, None),
        (
            rule('@', "0x11/0xFF", "\t0x0000/0x0200"),
            none,
            Some("TCP flags are ignored: the rule is about protocol 17, not TCP"),
        ),
        // Numbers of another form are no flags.
        (
            rule('@', "6/0xff", "\t0x02/0x12"),
            none,
            Some("\"0x02/0x12\" after the last field is ignored"),
        ),
        (
            rule('@', "6/0xff", "\t0x10000/0x1000"),
            none,
            Some("\"0x10000/0x1000\" after the last field is ignored"),
        ),
        (rule('@', "6/0xff", " # why"), none, Some("\"#\" after the last field is ignored")),
    ] {
        let (rules, warnings) = lenient(format!("{line}{PASS}\n"), read_acl::<Ipv4Addr>).unwrap();
        assert_eq!(rules[0].matches.flags, expected, "{line}");
        let warning = warning.map(|warning| format!("line 1: {warning}"));
        assert_eq!(warnings, warning.into_iter().collect::<Vec<_>>(), "{line}");
        let extra = line.trim_end().rsplit_once(['\t', ' ']).unwrap().1.replace("why", "#");
        let said = complaint(rules4(format!("{line}{PASS}\n")));
        assert_eq!(said, format!("line 1: {extra:?} behind the last field"));
    }
    // Words after the flags.
    let line = rule('@', "6/0xff", "\t0x0200/0x0200 \u{e4}");
    let (_, warnings) = lenient(format!("{line}{PASS}\n"), read_acl::<Ipv4Addr>).unwrap();
    assert_eq!(warnings.len(), 2);
    assert_eq!(warnings[1], "line 1: \"\u{e4}\" after the last field is ignored");
    // Rules that differ in flags alone are not the same.
    let pair = ["0x0200/0x0200", "0x1000/0x1000"];
    let pair = pair.map(|flags| rule('@', "6/0xff", &format!("\t{flags}"))).concat();
    let (rules, warnings) = lenient(format!("{pair}{PASS}\n"), read_acl::<Ipv4Addr>).unwrap();
    assert_eq!(
        (rules.len(), warnings),
        (3, vec![format!("line 1: {checked}"), format!("line 2: {checked}")])
    );
}

#[test]
fn a_rule_twice_is_read_and_told() {
    let content = format!("{DENY}\n# again\n{DENY}\n{PASS}\n{DENY}\n");
    let (rules, warnings) = lenient(&content, read_acl::<Ipv4Addr>).unwrap();
    assert_eq!(rules.iter().map(|rule| rule.line).collect::<Vec<_>>(), [1, 3, 4, 5]);
    let told = |line| {
        format!(
            "line {line}: matches the same packets as line 1, which comes first: this rule never counts"
        )
    };
    assert_eq!(warnings, [told(3), told(5)]);
    assert_eq!(
        complaint(rules4(content)),
        "line 3: matches the same packets as line 1, which hides it"
    );
    // What C refuses.
    let said = complaint(lenient(format!("{DENY}\n{DENY}\n"), read_acl::<Ipv4Addr>));
    assert_eq!(said, "no line begins with R: every packet would be dropped");
}

#[test]
fn routes_are_read_that_lead_nowhere_or_twice_to_a_network() {
    let content = "R198.18.0.0/24 0\nR198.18.1.0/24 1 0\nR198.18.2.0/24 2 x\nR198.18.0.255/24 2\n\
                   R198.18.0.0/24 1\nR198.18.3.0/24 255\n";
    let (routes, warnings) = lenient(content, read_routes::<Ipv4Addr>).unwrap();
    let found = routes.iter().map(|r| (r.destination.network.octets()[2], r.port, r.line));
    assert_eq!(found.collect::<Vec<_>>(), [(2, 2, 3), (0, 2, 4)]);
    assert_eq!(
        warnings,
        [
            "line 2: \"0\" after the last field is ignored",
            "line 2: port 1 is not enabled (-p): this route is left out",
            "line 3: \"x\" after the last field is ignored",
            "line 4: the same network as in line 1: this route replaces that one",
            // One that is left out replaces none.
            "line 5: port 1 is not enabled (-p): this route is left out",
            "line 6: port 255 is not enabled (-p): this route is left out",
        ]
    );
    let (routes, warnings) = lenient("R10.0.0.0/8 1\n", read_routes::<Ipv4Addr>).unwrap();
    assert_eq!(routes, []);
    let nowhere = "no route leads to an enabled port (-p): every packet of this family is dropped";
    assert_eq!(warnings[1], nowhere);
    let said = complaint(lenient("R10.0.0.0/8 256\n", read_routes::<Ipv4Addr>));
    assert_eq!(said, "line 1: port: \"256\" is not a port, 0 to 255");
    for refused in ["", "R0.0.0.0/0 0\n", "R10.0.0.0/33 0\n", "@10.0.0.0/8 0\n", "R10.0.0.0/8\n"] {
        complaint(lenient(refused, read_routes::<Ipv4Addr>));
    }
    let mut many: String =
        (0..MAX_RULES).map(|n| format!("R{}/32 7\n", Ipv4Addr::from_bits(n as u32))).collect();
    let (_, warnings) = lenient(&many, read_routes::<Ipv4Addr>).unwrap();
    assert_eq!(warnings.len(), MAX_RULES + 1);
    many.push_str("R10.0.0.0/8 7\n");
    let said = complaint(lenient(&many, read_routes::<Ipv4Addr>));
    assert_eq!(said, "line 100001: more than 100000 routes");
}

#[test]
fn ignored_words_may_be_in_any_encoding() {
    let (rules, warnings) =
        lenient([PASS.as_bytes(), b" f\xfcr alle\n"].concat(), read_acl::<Ipv4Addr>).unwrap();
    assert_eq!(rules.len(), 1);
    assert_eq!(warnings, ["line 1: \"f\u{fffd}r\" after the last field is ignored"]);
}

#[test]
fn text_that_is_none_is_told() {
    assert_eq!(
        complaint(rules4(format!("\u{feff}{PASS}\n"))),
        "line 1: begins with a UTF-8 byte order mark: save the file without it"
    );
    let mut bytes = b"@10.0.0.0/8\xff\n".to_vec();
    assert_eq!(complaint(rules4(&bytes)), "line 1: not UTF-8");
    // In a comment it does not matter.
    bytes[0] = b'#';
    bytes.extend(PASS.bytes());
    assert_eq!(rules4(&bytes).unwrap().len(), 1);
    let long = "é".repeat(100);
    let said = complaint(rules4(format!("@{long} 0.0.0.0/0\n")));
    assert!(said.contains("ééé…\" is not") && !said.contains(&long), "{said}");
}

#[test]
fn files_are_told_that_hold_no_rules() {
    let nothing = "no line begins with R: every packet would be dropped";
    for content in ["", "# R\n\n", &format!("{DENY}\n")] {
        assert_eq!(complaint(rules4(content)), nothing);
    }
    assert_eq!(complaint(routes4("\n")), nothing);
    let folder = tempfile::tempdir().unwrap();
    let none = folder.path().join("none");
    let missing = read_acl::<Ipv4Addr>(&none, PORTS, Strictness::Strict).unwrap_err().to_string();
    assert!(missing.ends_with("/none: No such file or directory (os error 2)"), "{missing}");
    let irregular = read_routes::<Ipv4Addr>(folder.path(), PORTS, Strictness::AsL3fwd);
    let irregular = irregular.unwrap_err().to_string();
    assert!(irregular.ends_with(": is a directory"), "{irregular}");
}

#[test]
fn there_may_be_so_many_and_no_more() {
    let mut content = String::new();
    for n in 0..MAX_RULES {
        writeln!(content, "R{}/32 0", Ipv4Addr::from_bits(n as u32)).unwrap();
    }
    assert_eq!(routes4(&content).unwrap().len(), MAX_RULES);
    content.push_str("# a comment is none\n\nR10.0.0.0/8 0\n");
    assert_eq!(complaint(routes4(&content)), "line 100003: more than 100000 routes");
    let mut content = String::new();
    for n in 0..=MAX_RULES {
        let network = Ipv4Addr::from_bits(n as u32);
        writeln!(content, "R{network}/32 0.0.0.0/0 0 : 1 0 : 1 0/0 0").unwrap();
    }
    assert_eq!(complaint(rules4(&content)), "line 100001: more than 100000 rules");
}

/// A generator of numbers, the same at each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn written(&mut self, number: u64) -> String {
        match self.below(3) {
            0 => number.to_string(),
            1 => format!("{number:#x}"),
            _ => format!("0{number:o}"),
        }
    }
}

#[test]
fn rules_are_read_as_they_were_written() {
    let mut numbers = Numbers(1);
    let (mut content, mut written, mut seen) = (String::new(), Vec::new(), HashSet::new());
    for line in 1..=5000 {
        let mut prefix = || {
            let len = numbers.below(33) as u8;
            let address = Ipv4Addr::from_bits(numbers.below(1 << 31) as u32 * 2 + 1);
            let octets: Vec<_> = address.octets().map(|o| numbers.written(o.into())).into();
            (Prefix { network: address.network(len), len }, octets.join("."))
        };
        let ((source, from), (destination, to)) = (prefix(), prefix());
        let mut ports = || {
            let low = numbers.below(65_536) as u16;
            low..=low + numbers.below(65_536 - u64::from(low)) as u16
        };
        let (source_ports, destination_ports) = (ports(), ports());
        let (value, protocol_mask) = (numbers.below(256) as u8, numbers.below(256) as u8);
        let protocol = value & protocol_mask;
        let action = if numbers.below(2) == 0 { Action::Deny } else { Action::Forward(2) };
        let (lead, port) = if action == Action::Deny { ('@', "") } else { ('R', " 2") };
        let mut n = |number: u64| numbers.written(number);
        let numbers = [
            source_ports.start(),
            source_ports.end(),
            destination_ports.start(),
            destination_ports.end(),
        ]
        .map(|port| n((*port).into()));
        let [a, b, c, d] = &numbers;
        let lens = [
            n(source.len.into()),
            n(destination.len.into()),
            n(value.into()),
            n(protocol_mask.into()),
        ];
        let [e, f, g, h] = &lens;
        let matches = FiveTuple {
            source,
            destination,
            source_ports,
            destination_ports,
            protocol,
            protocol_mask,
            flags: TcpFlags::default(),
        };
        if seen.insert(matches.clone()) {
            writeln!(content, "{lead}{from}/{e} {to}/{f}\t{a} : {b} {c} : {d} {g}/{h}{port}")
                .unwrap();
            written.push(AclRule { matches, action, line });
        } else {
            content.push('\n');
        }
    }
    assert_eq!(rules4(content).unwrap(), written);
}
