// SPDX-License-Identifier: BSD-3-Clause
//! Memory for frames, asked about before it is taken: where there is not enough the kernel does not refuse
//! rings, but ends programs until there is.

/// There is less than what was asked for.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{wanted} MiB of memory for the frames of all queues, and {available} MiB are available; less of {settings} takes less"
)]
pub struct TooLittle {
    wanted: u64,
    available: u64,
    settings: &'static str,
}

/// Sees whether there are so many bytes; `settings` are what makes them fewer.
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
            "5120 MiB of memory for the frames of all queues, and 4096 MiB are available; less of queues takes less"
        );
        assert_eq!(enough(4 << 30, Some(4 << 30), "queues"), Ok(()));
        assert_eq!(enough(5 << 30, None, "queues"), Ok(()));
    }
}
