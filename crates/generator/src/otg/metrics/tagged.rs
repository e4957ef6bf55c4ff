// SPDX-License-Identifier: BSD-3-Clause
//! OTG's tagged metrics: what is asked about them, and the answer.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::answer::{RX, TX, Traffic, columns_of, stamps};
use super::{FLOW_COLUMNS, columns};
use crate::otg::walk::Node;

/// Most filters of a request: as many as a flow has tags, and one for its ports.
const MAX_FILTERS: usize = 17;
/// Most values of a filter.
const MAX_VALUES: usize = 16_384;

/// Which tagged metrics are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tagged {
    /// False if none are.
    pub include: bool,
    /// True if rows are included in which nothing was sent or received.
    pub empty: bool,
    /// Columns wanted; empty means all.
    pub columns: Vec<String>,
    /// Rows have to pass all of them.
    pub filters: Vec<Filter>,
}

impl Default for Tagged {
    /// What the model says where nothing is given.
    fn default() -> Self {
        Tagged { include: true, empty: false, columns: Vec::new(), filters: Vec::new() }
    }
}

/// Rows that have a tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Name of the tag.
    pub name: String,
    /// Values that it may have; `None` means any.
    pub values: Option<HashSet<TagValue>>,
}

/// The value of a tag.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TagValue {
    /// Bits of a field.
    Bits(u128),
    /// A name, or a word where there are no bits.
    Text(String),
}

impl TagValue {
    fn json(&self) -> Value {
        match self {
            TagValue::Bits(bits) => json!({ "choice": "hex", "hex": format!("{bits:x}") }),
            TagValue::Text(text) => json!({ "choice": "str", "str": text }),
        }
    }

    /// What the text of a filter may mean.
    fn all(text: &str) -> impl Iterator<Item = TagValue> {
        let digits = text.strip_prefix("0x").or(text.strip_prefix("0X")).unwrap_or(text);
        // The standard library reads a sign, too.
        let hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let bits = u128::from_str_radix(digits, 16).ok().filter(|_| hex);
        [Some(TagValue::Text(text.to_owned())), bits.map(TagValue::Bits)].into_iter().flatten()
    }
}

/// Reads what is asked; `known` has the names of the tags of the flows that are asked about.
pub fn read(node: &Node<'_>, known: &[&str]) -> Option<Tagged> {
    let object = node.object(&["include", "include_empty_metrics", "metric_names", "filters"])?;
    let columns = columns(object.get("metric_names"), &tagged_columns());
    let filters = match object.get("filters") {
        Some(node) => {
            let list = node.list_of(MAX_FILTERS)?;
            let filters: Vec<_> = list.iter().map(|node| filter(node, known)).collect();
            filters.into_iter().collect::<Option<Vec<_>>>()
        }
        None => Some(Vec::new()),
    };
    let include = object.flag("include", true);
    let empty = object.flag("include_empty_metrics", false);
    Some(Tagged { include: include?, empty: empty?, columns: columns?, filters: filters? })
}

/// All columns of a flow but its state.
fn tagged_columns() -> Vec<&'static str> {
    FLOW_COLUMNS.into_iter().filter(|column| *column != "transmit").collect()
}

fn filter(node: &Node<'_>, known: &[&str]) -> Option<Filter> {
    let object = node.object(&["name", "values"])?;
    let name = object.required("name").and_then(|node| {
        let name = node.text()?;
        if known.contains(&name) {
            return Some(name.to_owned());
        }
        let shown: String = name.chars().take(60).collect();
        node.fault(format!("no flow that is asked about has a metric tag named {shown:?}"))
    });
    let values = match object.get("values") {
        Some(node) => {
            let list = node.list_of(MAX_VALUES)?;
            let texts = list.iter().map(|node| node.text()).collect::<Vec<_>>();
            texts.into_iter().collect::<Option<Vec<&str>>>()
        }
        None => Some(Vec::new()),
    };
    let values: HashSet<TagValue> = values?.into_iter().flat_map(TagValue::all).collect();
    let values = Some(values).filter(|values| !values.is_empty());
    Some(Filter { name: name?, values })
}

/// The figures of one row.
#[derive(Clone, Debug, PartialEq)]
pub struct TaggedFigures {
    /// Its tags: names and values.
    pub tags: Vec<(String, TagValue)>,
    /// Sent, where the tags are known when frames are sent.
    pub tx: Option<Traffic>,
    /// Received.
    pub rx: Traffic,
    /// The share of frames that are missing, in per cent, where that is wanted and known.
    pub loss_percent: Option<f64>,
    /// When the first and the last frame were received, in nanoseconds, where that is wanted.
    pub timestamps_ns: Option<(f64, f64)>,
}

impl Tagged {
    /// Returns true if a row is asked for.
    fn wants(&self, row: &TaggedFigures) -> bool {
        let passes = |filter: &Filter| {
            let own = row.tags.iter().find(|(name, _)| *name == filter.name);
            let is_in = |values: &HashSet<TagValue>, value| values.contains(value);
            own.is_some_and(|(_, value)| filter.values.as_ref().is_none_or(|all| is_in(all, value)))
        };
        let any = row.rx.frames > 0 || row.tx.is_some_and(|tx| tx.frames > 0);
        self.include && (self.empty || any) && self.filters.iter().all(passes)
    }

    /// The answer about the rows of one flow.
    pub fn rows(&self, rows: &[TaggedFigures]) -> Value {
        rows.iter().filter(|row| self.wants(row)).map(|row| self.row(row)).collect()
    }

    fn row(&self, row: &TaggedFigures) -> Value {
        let tag =
            |(name, value): &(String, TagValue)| json!({ "name": name, "value": value.json() });
        let mut metric = Map::new();
        metric.insert("tags".to_owned(), row.tags.iter().map(tag).collect());
        let sent = row.tx.map(|tx| columns_of(&tx, TX));
        let all = sent.into_iter().flatten().chain(columns_of(&row.rx, RX));
        let wanted =
            |column: &str| self.columns.is_empty() || self.columns.iter().any(|own| own == column);
        for (column, value) in all.filter(|(column, _)| wanted(column)) {
            metric.insert(column.to_owned(), value);
        }
        if let Some(percent) = row.loss_percent {
            metric.insert("loss".to_owned(), json!(percent));
        }
        if let Some(times) = row.timestamps_ns {
            metric.insert("timestamps".to_owned(), stamps(times));
        }
        Value::Object(metric)
    }
}

#[cfg(test)]
mod tests;
