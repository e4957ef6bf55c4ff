// SPDX-License-Identifier: BSD-3-Clause

use super::*;
use serde_json::json;

fn faults(value: &Value, walk: impl FnOnce(Node<'_>)) -> Vec<String> {
    let faults = Faults::default();
    walk(Node::root(value, &faults));
    faults.finish(Some(())).err().map(|error| error.errors).unwrap_or_default()
}

#[test]
fn integers_may_be_strings_of_digits() {
    for (value, good) in [
        (json!(5), true),
        (json!("5"), true),
        (json!("18446744073709551615"), true),
        (json!("18446744073709551616"), false),
        (json!(-1), false),
        (json!("+5"), false),
        (json!(""), false),
        (json!(5.5), false),
        (json!(true), false),
        (json!([5]), false),
    ] {
        assert_eq!(
            faults(&value, |node| {
                let _ = node.integer(0, u64::MAX);
            })
            .is_empty(),
            good,
            "{value}"
        );
    }
}

#[test]
fn every_fault_has_its_path() {
    let value = json!({"a": [{"b": 1}, {"c": null, "d": 1}], "e": 7});
    let found = faults(&value, |node| {
        let object = node.object(&["a"]).unwrap();
        for item in object.items("a") {
            item.object(&["b"]).unwrap().required("b").map(|b| b.text());
        }
    });
    assert_eq!(
        found,
        [
            "e: not supported",
            "a[0].b: must be a string",
            "a[1].d: not supported",
            "a[1].b: is missing"
        ]
    );
}

#[test]
fn choices_are_explicit_inferred_or_default() {
    let choose = |value: Value| {
        let faults = Faults::default();
        let chosen = Node::root(&value, &faults)
            .object(&["choice", "a", "b"])
            .unwrap()
            .choice(&["a", "b"], Some("a"));
        faults.finish(chosen).map_err(|error| error.errors.join("; "))
    };
    assert_eq!(choose(json!({})), Ok("a"));
    assert_eq!(choose(json!({"b": 1})), Ok("b"));
    assert_eq!(choose(json!({"choice": "b"})), Ok("b"));
    assert_eq!(
        choose(json!({"choice": "b", "a": 1})),
        Err("a: given, but the choice is b".to_owned())
    );
    assert!(choose(json!({"a": 1, "b": 1})).is_err());
    assert!(choose(json!({"choice": "c"})).unwrap_err().contains("choice: \"c\" is not supported"));
}

#[test]
fn no_more_faults_than_a_reader_wants() {
    let value = json!((0..200).collect::<Vec<_>>());
    assert_eq!(
        faults(&value, |node| node.list().unwrap().iter().for_each(|n| {
            let _ = n.text();
        }))
        .len(),
        MAX_FAULTS
    );
}
