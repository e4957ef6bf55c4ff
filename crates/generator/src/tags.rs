// SPDX-License-Identifier: BSD-3-Clause
//! Metric tags: what tells the rows of a flow's tagged metrics apart.

use crate::books::rows::Key;

/// Most rows of one flow. Frames that would need more count in one further row.
pub const MAX_ROWS: usize = 4096;

/// The model's name for the port where frames arrived.
pub const RX_NAME: &str = "rx_name";

/// The tags of a flow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tags {
    /// True if the port where a frame arrived is one of them.
    pub rx_name: bool,
    /// Rows that there is memory for.
    pub rows: usize,
}

impl Tags {
    /// The names of the tags, in the order of a row.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.rx_name.then_some(RX_NAME).into_iter()
    }

    /// True if nothing but ports tells rows apart.
    pub fn only_ports(&self) -> bool {
        self.rx_name
    }

    /// The row of frames that arrived at a port.
    #[inline]
    pub fn at_port(&self, port: usize) -> Key {
        Key::default().at_port(port)
    }
}
