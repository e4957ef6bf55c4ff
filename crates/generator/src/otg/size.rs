// SPDX-License-Identifier: BSD-3-Clause
//! OTG's sizes of a flow's frames.

use packet::size::{DEFAULT_SEED, MAX_LEN_WITH_FCS, MIN_LEN_WITH_FCS, Sizes};

use super::walk::{Node, Object};

/// Most sizes of a mix.
const MAX_PAIRS: usize = 64;

/// Reads sizes of frames that are at most `max_frame` bytes, FCS included.
pub fn read(node: &Node<'_>, max_frame: usize) -> Option<Sizes> {
    let kinds = ["fixed", "increment", "random", "weight_pairs"];
    let object = node.object(&[&["choice"][..], &kinds].concat())?;
    let chosen = object.choice(&kinds, Some("fixed"))?;
    let sizes = match chosen {
        "fixed" => Sizes::Fixed(size(&object, "fixed", MIN_LEN_WITH_FCS)?),
        "increment" => {
            let steps = object.inner(chosen, &["start", "end", "step"])?;
            let (start, end) = (size(&steps, "start", 64), size(&steps, "end", 1518));
            let step = steps.get("step").map_or(Some(1), |node| node.integer(0, 65_535));
            Sizes::Increment { start: start?, end: end?, step: step? as usize }
        }
        "random" => {
            let range = object.inner(chosen, &["min", "max"])?;
            let (min, max) = (size(&range, "min", 64), size(&range, "max", 1518));
            Sizes::Random { min: min?, max: max?, seed: DEFAULT_SEED }
        }
        _ => mix(&object.inner(chosen, &["choice", "predefined", "custom"])?)?,
    };
    if let Err(error) = sizes.check() {
        return object.child_fault(chosen, error.to_string());
    }
    let longest = sizes.max_with_fcs();
    if longest > max_frame {
        return object.child_fault(chosen, too_long(longest, max_frame));
    }
    Some(sizes)
}

/// What to do about frames that are longer than the ports take.
pub fn too_long(len: usize, max_frame: usize) -> String {
    format!(
        "frames of {len} bytes are longer than {max_frame}; start the generator with --max-frame \
         {len}"
    )
}

fn size(object: &Object<'_>, key: &str, default: usize) -> Option<usize> {
    let range = MIN_LEN_WITH_FCS as u64..=MAX_LEN_WITH_FCS as u64;
    let read =
        |node: Node<'_>| node.integer(*range.start(), *range.end()).map(|size| size as usize);
    object.get(key).map_or(Some(default), read)
}

fn mix(object: &Object<'_>) -> Option<Sizes> {
    const PRESETS: [&str; 5] = ["imix", "ipsec_imix", "ipv6_imix", "standard_imix", "tcp_imix"];
    if object.choice(&["predefined", "custom"], Some("predefined"))? == "predefined" {
        let name = object.get("predefined").map_or(Some("imix"), |node| node.word(&PRESETS))?;
        return Sizes::preset(name);
    }
    let list = object.required("custom")?.list_of(MAX_PAIRS)?;
    let pair = |node: &Node<'_>| {
        let pair = node.object(&["size", "weight"])?;
        let weight = pair.get("weight").map_or(Some(1.0), |node| node.number(0.0, 1e9));
        Some((size(&pair, "size", 64)?, weight?))
    };
    let pairs: Vec<Option<(usize, f64)>> = list.iter().map(pair).collect();
    pairs.into_iter().collect::<Option<_>>().map(Sizes::Weighted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::otg::walk::Faults;
    use serde_json::{Value, json};

    fn sizes(json: Value) -> Result<Sizes, String> {
        let faults = Faults::default();
        let sizes = read(&Node::root(&json, &faults), 1518);
        faults.finish(sizes).map_err(|error| error.errors.join("; "))
    }

    #[test]
    fn every_kind_is_read() {
        assert_eq!(sizes(json!({})), Ok(Sizes::Fixed(64)));
        assert_eq!(sizes(json!({"choice": "fixed", "fixed": 1518})), Ok(Sizes::Fixed(1518)));
        assert_eq!(
            sizes(
                json!({"choice": "increment", "increment": {"start": 100, "end": 200, "step": 50}})
            ),
            Ok(Sizes::Increment { start: 100, end: 200, step: 50 })
        );
        assert_eq!(
            sizes(json!({"choice": "random"})),
            Ok(Sizes::Random { min: 64, max: 1518, seed: DEFAULT_SEED })
        );
        let preset = |name| Ok(Sizes::preset(name).unwrap());
        assert_eq!(sizes(json!({"choice": "weight_pairs"})), preset("imix"));
        let tcp = json!({"weight_pairs": {"choice": "predefined", "predefined": "tcp_imix"}});
        assert_eq!(sizes(tcp), preset("tcp_imix"));
        let custom =
            json!({"weight_pairs": {"custom": [{"size": 64, "weight": 2.5}, {"size": 128}]}});
        assert_eq!(sizes(custom), Ok(Sizes::Weighted(vec![(64, 2.5), (128, 1.0)])));
    }

    #[test]
    fn what_cannot_be_sent_is_named() {
        for (json, wanted) in [
            (json!({"fixed": 63}), "fixed: must be a whole number from 64 to 9216"),
            (
                json!({"fixed": 1519}),
                "fixed: frames of 1519 bytes are longer than 1518; start the generator with --max-frame 1519",
            ),
            (json!({"increment": {"end": 9000}}), "increment: frames of 9000 bytes are longer"),
            (
                json!({"increment": {"start": 128, "end": 64}}),
                "increment: frame sizes from 128 to 64",
            ),
            (json!({"random": {"min": 65, "max": 64}}), "random: frame sizes from 65 to 64"),
            (json!({"weight_pairs": {"custom": []}}), "weight_pairs: the weights"),
            (json!({"weight_pairs": {"custom": [{"weight": 0}]}}), "weight_pairs: the weights"),
            (
                json!({"weight_pairs": {"custom": [{"weight": -1}]}}),
                "weight_pairs.custom[0].weight: must be",
            ),
            (
                json!({"weight_pairs": {"custom": vec![json!({}); 65]}}),
                "weight_pairs.custom: 65 entries",
            ),
            (json!({"weight_pairs": {"predefined": "x"}}), "weight_pairs.predefined: \"x\" is not"),
            (json!({"fixed": "wide"}), "fixed: must be a whole number"),
        ] {
            let error = sizes(json).unwrap_err();
            assert!(error.starts_with(wanted), "{wanted}: {error}");
        }
    }
}
