// SPDX-License-Identifier: BSD-3-Clause
use super::*;
use crate::location::Policy;

const LIMITS: config::Limits =
    config::Limits { locations: Policy::COMMAND_LINE, max_frame: 1518, capture_fcs: true };

fn read(ports: &[&str], flows: &[&str], captures: &[&str]) -> Result<Job, String> {
    let duration = Some(Span::Nanoseconds(2_000_000_000));
    with(ports, flows, captures, duration)
}

fn with(
    ports: &[&str],
    flows: &[&str],
    captures: &[&str],
    duration: Option<Span>,
) -> Result<Job, String> {
    with_rate(ports, flows, captures, duration, None)
}

fn with_rate(
    ports: &[&str],
    flows: &[&str],
    captures: &[&str],
    duration: Option<Span>,
    rate: Option<Rate>,
) -> Result<Job, String> {
    let ports: Vec<PortSpec> = ports.iter().map(|text| text.parse().unwrap()).collect();
    let flows: Vec<FlowSpec> = flows.iter().map(|text| text.parse().unwrap()).collect();
    let captures: Vec<CaptureSpec> = captures.iter().map(|text| text.parse().unwrap()).collect();
    let defaults = Defaults { rate, duration, size: json!({ "fixed": 64 }) };
    job(&ports, &flows, &captures, 4096, &defaults, &LIMITS).map_err(|error| error.to_string())
}

/// A capture file with frames of 60 and 70 bytes.
fn file(directory: &tempfile::TempDir) -> String {
    let mut data = Vec::new();
    for word in [0xa1b2_c3d4u32, 4 << 16 | 2, 0, 0, 65_535, 1] {
        data.extend(word.to_le_bytes());
    }
    for (time, len) in [(1u32, 60u32), (2, 70)] {
        for word in [time, 0, len, len] {
            data.extend(word.to_le_bytes());
        }
        data.extend(vec![7; len as usize]);
    }
    let path = directory.path().join("in.pcap");
    std::fs::write(&path, data).unwrap();
    path.display().to_string()
}

#[test]
fn one_flow_from_the_first_port_is_the_default() {
    let job = with(&["ring:a", "west=ring:b"], &[], &[], None).unwrap();
    let names: Vec<&str> = job.plan.ports.iter().map(|port| port.name.as_str()).collect();
    assert_eq!(names, ["p0", "west"]);
    let [flow] = job.plan.flows.as_slice() else { panic!("one flow") };
    assert_eq!((flow.name.as_str(), flow.tx, flow.rx.as_slice()), ("f0", 0, &[][..]));
    assert_eq!(flow.duration, plan::Duration::Nanoseconds(10_000_000_000));
    assert_eq!(flow.rate, plan::Rate::Frames(FrameRate::new(10_000, 1).unwrap()));
    assert!(flow.metrics.enable && flow.is_stamped());
    assert!(!job.captures && !job.plan.integrity);
    assert_eq!(job.stops, [None]);
}

#[test]
fn a_rate_for_all_is_also_the_files_unless_their_times_are_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let pcap = file(&directory);
    let flows = [
        "size=100",
        &format!("pcap={pcap}"),
        &format!("pcap={pcap},speed=own"),
        &format!("pcap={pcap},speed=2x"),
        &format!("pcap={pcap},rate=7pps"),
    ];
    let rates = |rate| -> Vec<plan::Rate> {
        let job = with_rate(&["ring:a"], &flows, &[], None, rate).unwrap();
        job.plan.flows.iter().map(|flow| flow.rate).collect()
    };
    let (own, even) =
        (plan::Rate::Own, |rate| plan::Rate::Frames(FrameRate::new(rate, 1).unwrap()));
    assert_eq!(rates(Some(Rate::Frames(50))), [even(50), even(50), own, own, even(7)]);
    assert_eq!(rates(None), [even(10_000), own, own, own, even(7)]);
}

#[test]
fn what_the_model_cannot_say_is_in_the_plan() {
    let directory = tempfile::tempdir().unwrap();
    let pcap = file(&directory);
    let flows = [
        "rate=2Gbps/l2,latency=off,size=100",
        &format!("name=again,pcap={pcap},to=p0"),
        "rate=2Gbps,integrity,size=100",
        &format!("pcap={pcap},speed=2x,loops=3"),
        &format!("pcap={pcap},rate=50%,frames=7"),
    ];
    let job = with(&["ring:a"], &flows, &["p0=a.pcapng"], None).unwrap();
    let flows = &job.plan.flows;
    let names: Vec<&str> = flows.iter().map(|flow| flow.name.as_str()).collect();
    assert_eq!(names, ["f0", "again", "f2", "f3", "f4"]);
    let bits = |overhead| plan::Rate::Bits { bits: 2_000_000_000, overhead };
    assert_eq!((flows[0].rate, flows[2].rate), (bits(0), bits(packet::L1_OVERHEAD)));
    assert!(!flows[0].is_stamped() && flows[2].is_stamped() && job.plan.integrity);
    assert!(matches!(flows[1].source, Source::Replay(_, Timing::Own)));
    assert_eq!((flows[1].rate, flows[1].rx.as_slice()), (plan::Rate::Own, &[0][..]));
    assert_eq!(flows[1].duration, plan::Duration::Packets(2), "once");
    assert!(matches!(flows[3].source, Source::Replay(_, Timing::Scaled(2.0))));
    assert_eq!(flows[3].duration, plan::Duration::Packets(6));
    assert_eq!(flows[4].rate, plan::Rate::Percent(50.0));
    assert_eq!(flows[4].duration, plan::Duration::Packets(7));
    assert_eq!(job.config["flows"].as_array().unwrap().len(), 2);
    let wanted = FileTarget { path: "a.pcapng".into(), max_bytes: 4096 };
    assert_eq!(job.plan.captures[0].file, Some(wanted));
    let given = read(&["ring:a"], &[&format!("pcap={pcap}")], &[]).unwrap();
    assert_eq!(given.plan.flows[0].duration, plan::Duration::Nanoseconds(2_000_000_000));
}

#[test]
fn bursts_end_by_number_or_by_the_clock() {
    let one = |flow: &str| {
        let job = read(&["ring:a"], &[flow], &[])?;
        let plan::Duration::Bursts { bursts, packets, .. } = job.plan.flows[0].duration else {
            return Err("no bursts".to_owned());
        };
        Ok((bursts, packets, job.stops[0]))
    };
    assert_eq!(one("burst=10,gap=1ms,bursts=5"), Ok((5, 10, None)));
    assert_eq!(one("burst=10,gap=1ms,frames=40"), Ok((4, 10, None)));
    assert_eq!(one("burst=10,duration=continuous"), Ok((0, 10, None)));
    assert_eq!(one("burst=10"), Ok((0, 10, Some(2_000_000_000))));
    let error = one("burst=10,frames=45").unwrap_err();
    assert!(
        error.starts_with("--flow \"f0\": frames: \"45\" is not a number of whole bursts"),
        "{error}"
    );
}

#[test]
fn faults_name_the_flow() {
    let directory = tempfile::tempdir().unwrap();
    let pcap = file(&directory);
    let replay = format!("pcap={pcap}");
    for (flows, captures, wanted) in [
        (&["from=x"][..], &[][..], "--flow \"f0\": from: there is no port \"x\"; the ports are p0"),
        (&["to=x"], &[], "--flow \"f0\": to: there is no port \"x\""),
        (&["name=a", "name=a,size=100"], &[], "--flow \"a\": another flow has this name"),
        // The model's reader counts the flows that it reads: the second of them.
        (&["size=100", &replay, "name=z,size=63"], &[], "--flow \"z\": size.fixed: must be"),
        (&["size=2000"], &[], "--flow \"f0\": size.fixed: frames of 2000 bytes are longer"),
        (&["tcp,size=64"], &[], "--flow \"f0\": size: a frame of 64 bytes has no room"),
        (&["pcap=/none/x.pcap"], &[], "--flow \"f0\": pcap: /none/x.pcap: "),
        (&[], &["x=a.pcap"], "--capture \"x\": there is no port of this name; the ports are p0"),
        (&[], &["p0=a.pcap", "p0=b.pcap"], "captures[1].port_names: port \"p0\" is in captures[0]"),
    ] {
        let error = read(&["ring:a"], flows, captures).unwrap_err();
        assert!(error.starts_with(wanted), "{wanted}: {error}");
    }
    let error = read(&["ring:a", "ring:a"], &[], &[]).unwrap_err();
    assert!(error.contains("ports[0] is there already"), "{error}");
    assert_eq!(
        read(&["ring:a"], &vec!["size=64"; 16_385], &[]).unwrap_err(),
        "--flow: 16385 flows; at most 16384 are supported"
    );
}
