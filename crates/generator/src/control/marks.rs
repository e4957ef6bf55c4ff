// SPDX-License-Identifier: BSD-3-Clause
//! By what flows are told apart whose frames have no room for a signature: header fields.
//!
//! Such a flow is known by the values, or ranges of values, of fields that devices on the way leave
//! alone. If two flows have the same values there, fields count too that some devices rewrite (addresses of
//! the link, priorities, labels), and a warning says so. Flows that can be the same in these as well are refused, unless they arrive at
//! different ports. Frames without signature of other flows, and of capture files, must not fit either.
//!
//! The last bytes of a frame without signature may look like a short one: in one frame of 65,536 if they contain a
//! TCP checksum. So fields of such flows come first, unless a frame with a short signature may have the same.

use packet::classifier::{Classifier, Rule};
use packet::frame::{FrameSpec, SignatureSpec};

use crate::otg::ApiError;
use crate::plan::{FlowPlan, Mark, Plan, Source};

/// Most warnings that are spelled out; the others are counted.
const MAX_WARNINGS: usize = 50;
/// Most flows that are known by header fields: each is compared with every other, and a received frame with some of them.
const MAX_BY_FIELDS: usize = 1024;
/// Most faults of one configuration that are reported.
const MAX_FAULTS: usize = 50;

/// A flow whose frames have no signature, and the header fields by which they are known.
struct Unsigned<'a> {
    index: usize,
    plan: &'a FlowPlan,
    spec: &'a FrameSpec,
    rule: Rule,
    /// Whether it is to be counted by its header fields.
    counted: bool,
    /// Whether fields count that some devices rewrite.
    rewritten: bool,
}

impl Unsigned<'_> {
    /// Whether frames of one may be taken for the other's.
    fn is_mistaken_for(&self, other: &Unsigned<'_>) -> bool {
        (self.counted || other.counted)
            && meet(self.plan, other.plan)
            && self.rule.overlaps(&other.rule)
    }
}

/// Whether two flows may arrive at the same port.
fn meet(one: &FlowPlan, other: &FlowPlan) -> bool {
    one.rx_mask() & other.rx_mask() != 0
}

/// How receivers recognise frames that have no full signature.
pub struct Marks {
    /// Finds the flows that are known by header fields.
    pub classifier: Classifier,
    /// Finds flows without signatures whose header fields no frame with a short signature has.
    pub distinct: Classifier,
    /// Which flows have no full signatures, and what therefore is not measured.
    pub warnings: Vec<String>,
}

/// How receivers distinguish the flows of a plan.
///
/// # Errors
/// A 400 that names the flows which cannot be told apart.
pub fn marks(plan: &Plan) -> Result<Marks, ApiError> {
    let mut flows: Vec<Unsigned<'_>> = Vec::new();
    for (index, flow) in plan.flows.iter().enumerate() {
        if let (mark @ (Mark::Fields | Mark::None), Source::Frames(spec)) =
            (flow.mark(), &flow.source)
        {
            let counted = mark == Mark::Fields;
            // Every field tells the frames of other flows apart.
            let rule = spec.rule(!counted);
            flows.push(Unsigned { index, plan: flow, spec, rule, counted, rewritten: false });
        }
    }
    let counted = flows.iter().filter(|flow| flow.counted).count();
    if counted > MAX_BY_FIELDS {
        return Err(ApiError::invalid(vec![format!(
            "flows: {counted} flows have frames without room for a mark; at most {MAX_BY_FIELDS} can be known by their header \
             fields: choose larger frames"
        )]));
    }
    if counted > 0 {
        tell_apart(&mut flows)?;
    }
    let rules = |flows: &mut dyn Iterator<Item = &Unsigned<'_>>| {
        let numbered =
            |flow: &Unsigned<'_>| Some((u16::try_from(flow.index).ok()?, flow.rule.clone()));
        Classifier::new(flows.filter_map(numbered))
    };
    let classifier = rules(&mut flows.iter().filter(|flow| flow.counted));
    if counted > 0 {
        files(plan, &classifier)?;
    }
    let short = short(plan);
    let is_distinct = |flow: &&Unsigned<'_>| !short.iter().any(|rule| rule.overlaps(&flow.rule));
    let distinct = match short.is_empty() {
        true => Classifier::default(),
        false => rules(&mut flows.iter().filter(is_distinct)),
    };
    Ok(Marks { classifier, distinct, warnings: warnings(plan, &flows) })
}

/// The header fields of flows with short signatures, as far as devices leave them alone.
fn short(plan: &Plan) -> Vec<Rule> {
    let flows = plan.flows.iter().filter(|flow| flow.mark() == Mark::Short);
    let rule = |flow: &FlowPlan| match &flow.source {
        Source::Frames(spec) => Some(spec.rule(false)),
        Source::Replay(..) => None,
    };
    flows.filter_map(rule).collect()
}

/// Has fields count that some devices rewrite, where others do not tell flows apart.
fn tell_apart(flows: &mut [Unsigned<'_>]) -> Result<(), ApiError> {
    let mistaken: Vec<bool> = (0..flows.len())
        .map(|one| {
            let others = flows.iter().enumerate().filter(|(other, _)| *other != one);
            let mut others = others.map(|(_, other)| other);
            flows.get(one).is_some_and(|one| others.any(|other| one.is_mistaken_for(other)))
        })
        .collect();
    for (flow, _) in
        flows.iter_mut().zip(mistaken).filter(|(flow, mistaken)| *mistaken && flow.counted)
    {
        (flow.rule, flow.rewritten) = (flow.spec.rule(true), true);
    }
    let pairs = flows
        .iter()
        .enumerate()
        .flat_map(|(at, one)| flows.iter().skip(at + 1).map(move |other| (one, other)));
    let mistaken = pairs.filter(|(one, other)| one.is_mistaken_for(other));
    let faults: Vec<String> =
        mistaken.take(MAX_FAULTS).map(|(one, other)| fault(one, other)).collect();
    if faults.is_empty() { Ok(()) } else { Err(ApiError::invalid(faults)) }
}

/// That two flows cannot be told apart, and what would make them distinct.
fn fault(one: &Unsigned<'_>, other: &Unsigned<'_>) -> String {
    let counted = if other.counted { other } else { one };
    let bare = match [one, other].iter().find(|flow| !flow.counted) {
        Some(flow) => format!(" (flow {:?} has no metrics, and so no mark)", flow.plan.name),
        None => String::new(),
    };
    let least = packet::frame::min_len_with_fcs(&counted.spec.headers, Some(SignatureSpec::Short));
    format!(
        "flows[{}].packet: frames of flow {:?} cannot be told from those of flow {:?}{bare}: frames of {} bytes have no room for a mark, \
         and every header field can have the same value in both. Give a field (an address, a port number, a VLAN ID) \
         different values or ranges in the two flows, or give them different rx_names, or {:?} frames of {least} bytes or more",
        other.index,
        other.plan.name,
        one.plan.name,
        counted.spec.sizes.min_with_fcs(),
        counted.plan.name,
    )
}

/// Looks at the frames of capture files: none may fit the header fields of a flow.
fn files(plan: &Plan, classifier: &Classifier) -> Result<(), ApiError> {
    let mut faults = Vec::new();
    for (index, flow) in plan.flows.iter().enumerate() {
        let Source::Replay(frames, _) = &flow.source else { continue };
        let taken = |number: u16| {
            let other = plan.flows.get(usize::from(number));
            other.is_some_and(|other| meet(flow, other))
        };
        let found = (0..frames.len()).find_map(|at| {
            let frame = frames.get(at)?;
            Some((at, classifier.find(frame, taken)?))
        });
        let Some((at, number)) = found else { continue };
        let name = plan.flows.get(usize::from(number)).map_or("", |flow| flow.name.as_str());
        faults.push(format!(
            "flows[{index}]: frame {} of the file of flow {:?} cannot be told from the frames of flow {name:?}, which are known by \
             their header fields because they have no room for a mark: change the fields or the size of {name:?}, or the rx_names",
            at + 1,
            flow.name
        ));
    }
    if faults.is_empty() { Ok(()) } else { Err(ApiError::invalid(faults)) }
}

/// What flows with another mark than the full one are known by, and what then is not measured.
fn warnings(plan: &Plan, unsigned: &[Unsigned<'_>]) -> Vec<String> {
    let warning = |(index, flow): (usize, &FlowPlan)| {
        let Source::Frames(spec) = &flow.source else { return None };
        let size = spec.sizes.min_with_fcs();
        let what = match flow.mark() {
            Mark::None | Mark::Full => return None,
            Mark::Short => {
                "the 8-byte mark tells loss, order and duplicates, but no latency".to_owned()
            }
            Mark::Fields => {
                let own = unsigned.binary_search_by_key(&index, |other| other.index);
                let own = own.ok().and_then(|at| unsigned.get(at));
                let rewritten = match own.is_some_and(|own| own.rewritten) {
                    true => {
                        ", MAC addresses, priorities, MPLS labels and destinations before segments among them"
                    }
                    false => "",
                };
                format!("header fields{rewritten} tell loss, but no order, duplicates or latency")
            }
        };
        Some(format!(
            "flow {:?}: {size} bytes have no room for the {}-byte mark; {what}",
            flow.name,
            SignatureSpec::default().len()
        ))
    };
    let mut warnings: Vec<String> = plan.flows.iter().enumerate().filter_map(warning).collect();
    let more = warnings.len().saturating_sub(MAX_WARNINGS);
    warnings.truncate(MAX_WARNINGS);
    warnings.extend((more > 0).then(|| format!("and {more} more flows without the full mark")));
    warnings
}

#[cfg(test)]
mod tests;
