// SPDX-License-Identifier: BSD-3-Clause
//! The certificate with which the API is served over HTTPS.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum_server::tls_rustls::RustlsConfig;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem};

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
    /// Certificate and key do not fit each other, or are of a kind that is not supported.
    #[error("--tls-cert and --tls-key: {0}")]
    Pair(#[from] rustls::Error),
}

/// Reads a certificate chain and its key, both PEM.
///
/// # Errors
/// See [`TlsError`]; each names the option.
pub fn config(certificate: &Path, key: &Path) -> Result<RustlsConfig, TlsError> {
    let bad_chain = |error| TlsError::Certificate(certificate.to_owned(), error);
    let chain = CertificateDer::pem_file_iter(certificate)
        .map_err(bad_chain)?
        .collect::<Result<Vec<_>, _>>()
        .map_err(bad_chain)?;
    if chain.is_empty() {
        return Err(TlsError::Empty(certificate.to_owned()));
    }
    let opened = std::fs::File::open(key).ok();
    if let Some(exposure) = opened.and_then(|opened| host::files::exposure(&opened, key)) {
        tracing::warn!("--tls-key {}: {exposure}", key.display());
    }
    let key =
        PrivateKeyDer::from_pem_file(key).map_err(|error| TlsError::Key(key.to_owned(), error))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(RustlsConfig::from_config(Arc::new(config)))
}
