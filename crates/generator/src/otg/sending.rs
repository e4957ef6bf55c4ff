// SPDX-License-Identifier: BSD-3-Clause
//! A bound on the capture files that are being sent: each is a copy, and a client may take long to fetch it.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::ApiError;

/// Most bytes of capture files that are on their way to clients at a time.
pub const MAX_SENDING: usize = 256 << 20;

/// What one permit is for.
const UNIT: usize = 1 << 10;

/// Counts the files that are being sent.
#[derive(Debug)]
pub struct Sending(Arc<Semaphore>);

impl Default for Sending {
    /// [`MAX_SENDING`] bytes together.
    fn default() -> Self {
        Sending::new(MAX_SENDING)
    }
}

/// A file that is sent. It counts until it has gone, or until its client has.
#[derive(Debug)]
pub struct File {
    bytes: Vec<u8>,
    _permit: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for File {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Sending {
    /// At most so many bytes together.
    pub fn new(bytes: usize) -> Self {
        Sending(Arc::new(Semaphore::new(bytes / UNIT)))
    }

    /// Room for a file of at most `len` bytes, if there is any.
    ///
    /// # Errors
    /// A 503 that names the limit.
    pub fn room(&self, len: usize) -> Result<Room, ApiError> {
        let units = u32::try_from(len.div_ceil(UNIT)).unwrap_or(u32::MAX);
        let permit = self.0.clone().try_acquire_many_owned(units).map_err(|_| {
            let most = MAX_SENDING >> 20;
            ApiError::request(
                503,
                format!(
                    "the captures that are being sent have at most {most} MiB together, and this one has {} MiB; ask again when others have theirs, or for fewer packets",
                    len.div_ceil(1 << 20)
                ),
            )
        })?;
        Ok(Room(permit))
    }
}

/// Room for a file that is to be made.
#[derive(Debug)]
pub struct Room(OwnedSemaphorePermit);

impl Room {
    /// The file that is made of it.
    #[must_use]
    pub fn file(self, bytes: Vec<u8>) -> File {
        File { bytes, _permit: self.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_count_as_long_as_they_are_there() {
        let sending = Sending::new(10 * UNIT);
        let file = |len: usize| sending.room(len).map(|room| room.file(vec![7; len]));
        let (six, four) = (file(6 * UNIT).unwrap(), file(3 * UNIT + 1).unwrap());
        assert_eq!(six.as_ref().len(), 6 * UNIT);
        let error = sending.room(1).unwrap_err();
        assert!(error.status == 503 && error.errors[0].contains("at most 256 MiB together"));
        drop(four);
        assert!(file(5 * UNIT).is_err() && file(4 * UNIT).is_ok());
        drop(six);
        assert!(file(10 * UNIT).is_ok());
        assert!(file(usize::MAX).is_err());
    }
}
