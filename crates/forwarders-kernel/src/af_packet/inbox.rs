// SPDX-License-Identifier: BSD-3-Clause
//! The receiving socket of a lane and the errors of its calls.

use std::sync::Arc;

use super::socket::{PacketSocket, errno};
use crate::interface::Port;
use crate::lane::LaneError;

/// The receiving end of a lane.
pub(crate) struct Inbox {
    /// Shared with the thread that reads the kernel's counts.
    pub(crate) socket: Arc<PacketSocket>,
    pub(crate) port: Port,
}

impl Inbox {
    /// Reads the last error of a receive call. It is no error if no frame is there, or if the
    /// interface is down, because it may come up again.
    ///
    /// # Errors
    /// The interface is gone, or the error is permanent.
    pub(crate) fn nothing(&self, call: &'static str) -> Result<(), LaneError> {
        let source = std::io::Error::last_os_error();
        match errno() {
            libc::EAGAIN | libc::EINTR => Ok(()),
            libc::ENETDOWN if !self.port.is_gone() => Ok(()),
            _ => Err(LaneError::of(&self.port, call, source)),
        }
    }
}
