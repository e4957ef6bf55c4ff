// SPDX-License-Identifier: BSD-3-Clause
//! The certificate with which the API is served over HTTPS.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum_server::tls_rustls::RustlsConfig;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem};

/// Most bytes that are read of each file; chains and keys have a few thousand. A device may be
/// endless.
const MOST: u64 = 1 << 20;

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The file of `--tls-cert`.
    #[error("--tls-cert {0}: {1}; give a PEM file with the certificate and its chain")]
    Certificate(PathBuf, pem::Error),
    /// The file of `--tls-cert` holds none.
    #[error(
        "--tls-cert {0}: holds no certificate; give a PEM file with the certificate and its chain"
    )]
    Empty(PathBuf),
    /// The file of `--tls-key`.
    #[error("--tls-key {0}: {1}; give a PEM file with the certificate's private key")]
    Key(PathBuf, pem::Error),
    /// Certificate and key do not belong together, or are of an unsupported kind.
    #[error("--tls-cert and --tls-key: {0}")]
    Pair(#[from] rustls::Error),
}

/// Reads a certificate chain and its key, both PEM.
///
/// # Errors
/// See [`TlsError`]; each names the option.
pub fn config(certificate: &Path, key: &Path) -> Result<RustlsConfig, TlsError> {
    let bad_chain = |error| TlsError::Certificate(certificate.to_owned(), error);
    let chain = CertificateDer::pem_slice_iter(&read(certificate).map_err(bad_chain)?)
        .collect::<Result<Vec<_>, _>>()
        .map_err(bad_chain)?;
    if chain.is_empty() {
        return Err(TlsError::Empty(certificate.to_owned()));
    }
    let private = read(key).map_err(|error| TlsError::Key(key.to_owned(), error))?;
    let opened = host::files::open_to_read(key).ok();
    if let Some(exposure) = opened.and_then(|opened| host::files::exposure(&opened, key)) {
        tracing::warn!("--tls-key {}: {exposure}", key.display());
    }
    let key = PrivateKeyDer::from_pem_slice(&private)
        .map_err(|error| TlsError::Key(key.to_owned(), error))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(RustlsConfig::from_config(Arc::new(config)))
}

fn read(path: &Path) -> Result<Vec<u8>, pem::Error> {
    host::files::read(path, MOST).map_err(pem::Error::Io)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn a_file_without_an_end_is_refused() {
        let zero = Path::new("/dev/zero");
        let error = config(zero, zero).unwrap_err().to_string();
        assert!(error.starts_with("--tls-cert /dev/zero: "), "{error}");
        assert!(error.contains("a device, not a regular file"), "{error}");
        let directory = tempfile::tempdir().unwrap();
        let large = directory.path().join("large.pem");
        std::fs::File::create(&large).unwrap().set_len(MOST + 1).unwrap();
        let error = config(&large, &large).unwrap_err().to_string();
        assert!(error.contains("larger than 1 MiB"), "{error}");
        assert!(matches!(read(&large), Err(pem::Error::Io(_))));
    }
}
