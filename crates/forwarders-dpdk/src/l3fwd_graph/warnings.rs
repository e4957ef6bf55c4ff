// SPDX-License-Identifier: BSD-3-Clause
//! What the user is told of files that were read.

use forwarders_common::complain;
use forwarders_common::rules::Warning;

/// Lines of warnings about one file.
const MOST: usize = 50;

/// Prints a line for each warning. Of very many the first are shown, and how many others there are.
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
