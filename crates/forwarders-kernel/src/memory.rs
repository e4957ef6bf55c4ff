// SPDX-License-Identifier: BSD-3-Clause
//! Checks memory for frames before it is allocated: if there is not enough, the kernel does not
//! refuse rings, but kills programs until there is.

/// Less memory is available than is needed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the frames of all queues need {wanted} MiB of memory, but {available} MiB are available; reduce {settings}"
)]
pub struct TooLittle {
    wanted: u64,
    available: u64,
    settings: &'static str,
}

/// Checks that this many bytes are available; `settings` are those that reduce the need.
///
/// # Errors
/// [`TooLittle`].
pub(crate) fn enough_for(wanted: u64, settings: &'static str) -> Result<(), TooLittle> {
    enough(wanted, host::available_memory(), settings)
}

fn enough(wanted: u64, available: Option<u64>, settings: &'static str) -> Result<(), TooLittle> {
    match available {
        Some(available) if wanted > available => {
            Err(TooLittle { wanted: wanted >> 20, available: available >> 20, settings })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_there_is_is_refused() {
        let too_little = enough(5 << 30, Some(4 << 30), "queues").unwrap_err();
        assert_eq!(
            too_little.to_string(),
            "the frames of all queues need 5120 MiB of memory, but 4096 MiB are available; reduce queues"
        );
        assert_eq!(enough(4 << 30, Some(4 << 30), "queues"), Ok(()));
        assert_eq!(enough(5 << 30, None, "queues"), Ok(()));
    }
}
