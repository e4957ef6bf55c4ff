// SPDX-License-Identifier: BSD-3-Clause
//! Prints warnings about files that were read.

use forwarders_common::complain;
use forwarders_common::rules::Warning;

/// The most warnings printed about one file.
const MOST: usize = 50;

/// Prints a line for each warning. If there are very many, prints the first ones and the number of
/// others.
pub fn tell(warnings: &[Warning]) {
    for warning in warnings.iter().take(MOST) {
        complain!("l3fwd-graph: warning: {warning}");
    }
    if let Some(more @ 1..) = warnings.len().checked_sub(MOST) {
        let file = warnings[0].file.display();
        complain!(
            "l3fwd-graph: warning: {file}: {more} more warnings; --strict refuses such files"
        );
    }
}
