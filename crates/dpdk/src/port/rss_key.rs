// SPDX-License-Identifier: BSD-3-Clause
//! Memory for RSS keys that DPDK and drivers read and write by pointer.

use std::collections::BTreeMap;
use std::sync::Mutex;

use super::id::PortId;
use crate::mutex::locked;

/// Room for a key of any length that a driver may have: the length is one byte.
const KEY_ROOM: usize = 256;

/// DPDK keeps the pointer to a key in the port's configuration, which drivers read when the port
/// starts. A port's key lives here until the port is configured again.
static KEYS: Mutex<BTreeMap<u16, Vec<Vec<u8>>>> = Mutex::new(BTreeMap::new());

/// Runs `configure` with a pointer to a copy of the key, or null without one. Earlier copies are
/// freed when it has succeeded; until then DPDK may still use them.
pub(super) fn with_key<E>(
    id: PortId,
    key: Option<&[u8]>,
    configure: impl FnOnce(*mut u8) -> Result<(), E>,
) -> Result<(), E> {
    let mut keys = locked(&KEYS);
    let kept = keys.entry(id.0).or_default();
    let before = kept.len();
    if let Some(key) = key {
        kept.push(padded(key));
    }
    let pointer = kept.get_mut(before).map_or(std::ptr::null_mut(), |key| key.as_mut_ptr());
    configure(pointer)?;
    kept.drain(..before);
    Ok(())
}

/// A copy of a key, followed by zeros up to [`KEY_ROOM`].
pub(super) fn padded(key: &[u8]) -> Vec<u8> {
    let mut padded = key.to_vec();
    padded.resize(KEY_ROOM, 0);
    padded
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // A test may.

    use super::*;

    #[test]
    fn the_key_of_before_lives_until_another_is_taken() {
        let id = PortId(u16::MAX);
        let kept = || KEYS.lock().unwrap().get(&id.0).map_or(0, Vec::len);
        let refuse = |_| Err::<(), ()>(());
        assert_eq!(with_key(id, Some(&[1, 2]), |_| Ok::<(), ()>(())), Ok(()));
        assert_eq!((with_key(id, Some(&[3]), refuse), kept()), (Err(()), 2));
        assert_eq!((with_key(id, None, refuse), kept()), (Err(()), 2));
        assert_eq!((with_key(id, Some(&[4]), |_| Ok::<(), ()>(())), kept()), (Ok(()), 1));
        let none = with_key(id, None, |key| if key.is_null() { Ok(()) } else { Err(()) });
        assert_eq!((none, kept()), (Ok(()), 0));
        assert_eq!((padded(&[7]).len(), &padded(&[7])[..3]), (256, &[7, 0, 0][..]));
    }
}
