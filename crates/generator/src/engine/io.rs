// SPDX-License-Identifier: BSD-3-Clause
//! The engine's interface to a port, so that its logic can be tested without DPDK.

/// Most frames per call to a port.
pub const BURST: usize = 32;

use packet::writer::Buffer;

/// A frame being built.
#[expect(clippy::len_without_is_empty, reason = "nobody asks")]
pub trait Frame: Buffer {
    /// Its length in bytes, without FCS.
    fn len(&self) -> usize;

    /// Its bytes, without FCS; `None` if others may be reading them.
    fn bytes_mut(&mut self) -> Option<&mut [u8]>;
}

/// A queue that receives frames.
pub trait Receive {
    /// Frees the frames received before, and receives up to [`BURST`] frames. Returns how many.
    fn receive(&mut self) -> usize;

    /// Frees the received frames.
    fn free(&mut self);

    /// The n-th received frame; empty after the last one.
    fn frame(&self, n: usize) -> &[u8];
}

/// A queue that sends frames, and the burst that is being built for it. Queued frames keep their
/// order.
pub trait Transmit {
    /// A frame of this queue.
    type Frame: Frame;

    /// Appends `n` new frames to the queued ones, all or none, for the caller to write. `None` if
    /// there are not enough buffers. The caller ensures that queue and new frames fit into a burst.
    fn reserve(&mut self, n: usize) -> Option<&mut [Self::Frame]>;

    /// The queued frames.
    fn queued(&mut self) -> &mut [Self::Frame];

    /// Offers the queued frames to the port once; the accepted ones leave the front of the queue.
    /// Returns how many.
    fn offer(&mut self) -> usize;

    /// Frees all queued frames.
    fn discard(&mut self);

    /// Sends one frame that belongs to no flow; the queued ones stay as they are. Returns false if there was no buffer or no room:
    /// the frame is lost then.
    fn emit(&mut self, frame: &[u8]) -> bool;

    /// Returns true if buffers keep their bytes between headers and signature from frame to frame.
    fn resident(&self) -> bool;

    /// Says that frames of other lengths follow: buffers keep no bytes any more.
    fn forget_resident(&mut self);
}
