// SPDX-License-Identifier: BSD-3-Clause
//! Who may call: programs of this machine, or whoever knows the password.
//!
//! OTG's clients send one kind of credential: HTTP Basic (RFC 7617), made of the user and password
//! in the URL that they are given. snappi does not check certificates, so that to it TLS hides the
//! password from who listens, but not from who pretends to be the generator.

use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use axum::http::{HeaderMap, HeaderValue, header};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use subtle::ConstantTimeEq;

use super::ApiError;
use super::places::Peer;

/// Fewest and most bytes of a password.
const PASSWORD: std::ops::RangeInclusive<usize> = 8..=256;
/// Most bytes of a user's name.
const MAX_USER: usize = 64;

/// Why credentials cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// The name is empty or has characters that HTTP Basic does not take.
    #[error("--otg-user {0:?}: give 1 to {MAX_USER} printable ASCII characters without a colon")]
    User(String),
    /// The file of the password cannot be read.
    #[error("--otg-password-file {0}: {1}")]
    File(PathBuf, std::io::Error),
    /// The password is too short, too long or has characters that clients write in several ways.
    #[error(
        "--otg-password-file {0}: give one line of {from} to {to} printable ASCII characters",
        from = PASSWORD.start(),
        to = PASSWORD.end()
    )]
    Password(PathBuf),
    /// Others can reach the address, and could do as they like.
    #[error(
        "--otg-listen {0}: an address that other machines reach needs --tls-cert, --tls-key, \
         --otg-user and --otg-password-file; without them give a loopback address such as \
         127.0.0.1"
    )]
    Open(IpAddr),
    /// The kernel gives no random numbers.
    #[error("no random numbers for a token; give --otg-user and --otg-password-file")]
    Random,
}

/// A user and a password.
#[derive(Clone)]
pub struct Credentials {
    /// Both as they stand in a request.
    encoded: String,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Credentials(..)")
    }
}

impl Credentials {
    /// Of a user, with the password that is a file's only line.
    ///
    /// # Errors
    /// [`AuthError`] names the option that is wrong.
    pub fn read(user: &str, file: &Path) -> Result<Self, AuthError> {
        let mut text = String::new();
        let most = *PASSWORD.end() as u64 + 3;
        let unread = |error| AuthError::File(file.to_owned(), error);
        let opened = host::files::open_to_read(file).map_err(unread)?;
        if let Some(exposure) = host::files::exposure(&opened, file) {
            tracing::warn!("--otg-password-file {}: {exposure}", file.display());
        }
        opened.take(most).read_to_string(&mut text).map_err(unread)?;
        let line = text.strip_suffix('\n').unwrap_or(&text);
        let password = line.strip_suffix('\r').unwrap_or(line);
        if user.is_empty() || user.len() > MAX_USER || user.contains(':') || !is_printable(user) {
            return Err(AuthError::User(user.chars().take(MAX_USER).collect()));
        }
        if !PASSWORD.contains(&password.len()) || !is_printable(password) {
            return Err(AuthError::Password(file.to_owned()));
        }
        Ok(Credentials { encoded: STANDARD.encode(format!("{user}:{password}")) })
    }

    /// Whether a request has them. How long that takes tells nothing but a length.
    fn are_in(&self, headers: &HeaderMap) -> bool {
        let mut fields = headers.get_all(header::AUTHORIZATION).iter();
        let (Some(field), None) = (fields.next(), fields.next()) else { return false };
        let Some((scheme, given)) = field.to_str().ok().and_then(|text| text.split_once(' '))
        else {
            return false;
        };
        let same = given.trim_start_matches(' ').as_bytes().ct_eq(self.encoded.as_bytes());
        scheme.eq_ignore_ascii_case("Basic") && bool::from(same)
    }
}

/// The user of a [`Token`].
pub const TOKEN_USER: &str = "otg";

/// A password that nobody has chosen.
pub struct Token(String);

impl Token {
    /// A new one, of 256 random bits.
    ///
    /// # Errors
    /// [`AuthError::Random`].
    pub fn new() -> Result<Self, AuthError> {
        let mut bytes = [0; 32];
        let random = rustls::crypto::ring::default_provider().secure_random;
        random.fill(&mut bytes).map_err(|_| AuthError::Random)?;
        Ok(Token(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// The characters that a client gives, safe in a URL.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }

    /// What a request has to have.
    #[must_use]
    pub fn credentials(&self) -> Credentials {
        Credentials { encoded: STANDARD.encode(format!("{TOKEN_USER}:{}", self.0)) }
    }
}

/// As clients do not agree on how to write anything else.
fn is_printable(text: &str) -> bool {
    text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

/// Who may call.
#[derive(Clone, Debug)]
pub enum Access {
    /// Programs of this machine, without a password.
    Loopback,
    /// Who knows it.
    Password(Credentials),
}

/// A request that is not served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The answer.
    pub error: ApiError,
    /// What the answer's `WWW-Authenticate` says, if credentials would do.
    pub challenge: Option<&'static str>,
}

impl Access {
    /// The rule for an address: without TLS and a password, only this machine may reach it.
    ///
    /// # Errors
    /// [`AuthError::Open`].
    pub fn new(
        address: IpAddr,
        tls: bool,
        credentials: Option<Credentials>,
    ) -> Result<Self, AuthError> {
        match credentials {
            Some(credentials) if tls || address.is_loopback() => Ok(Access::Password(credentials)),
            None if address.is_loopback() => Ok(Access::Loopback),
            _ => Err(AuthError::Open(address)),
        }
    }

    /// What whoever starts the program is to know about who can call: if it is root, or has capabilities
    /// that other users have not.
    pub fn warning(
        &self,
        address: SocketAddr,
        root: bool,
        capabilities: &[&str],
        any_vdev: bool,
    ) -> Option<String> {
        let (who, rights) = match (root, capabilities) {
            (true, _) => ("root".to_owned(), "as root"),
            (false, []) => return None,
            (false, held) => {
                (format!("a user with {}", held.join(", ")), "with these capabilities")
            }
        };
        let files = match any_vdev {
            true => ", and overwrite and remove files and load programs (--allow-any-vdev)",
            false => "",
        };
        let insecure = if root { ", or leave out --insecure" } else { "" };
        match self {
            Access::Loopback => Some(format!(
                "{who} serves the OTG API on {address} without a password: every user and every program of this \
                 machine can open its network devices through it, send and capture frames{files}, {rights}; \
                 to ask for a password, use --otg-user and --otg-password-file{insecure}"
            )),
            Access::Password(_) => None,
        }
    }

    /// Whether a request has credentials, right or wrong, where they are asked for.
    pub fn is_guess(&self, headers: &HeaderMap) -> bool {
        matches!(self, Access::Password(_)) && headers.contains_key(header::AUTHORIZATION)
    }

    /// Whether a request may be served: `true` if its client is known to be who may, `false` if everybody there
    /// may. What a web page makes a browser send never is: a browser on this machine reaches the API, and may
    /// know its password.
    ///
    /// # Errors
    /// A 401 or 403.
    pub fn check(&self, headers: &HeaderMap, peer: Peer) -> Result<bool, Refusal> {
        let forbidden =
            |what| Err(Refusal { error: ApiError::request(403, what), challenge: None });
        if headers.contains_key(header::ORIGIN) {
            return forbidden("Origin: requests of web pages are refused");
        }
        match self {
            _ if peer == Peer::Local => Ok(true),
            Access::Loopback => {
                let mut hosts = headers.get_all(header::HOST).iter();
                match (hosts.next(), hosts.next()) {
                    (Some(host), None) if is_loopback(host) => Ok(false),
                    _ => forbidden(
                        "Host: must be a loopback address or localhost, such as 127.0.0.1:8080",
                    ),
                }
            }
            Access::Password(credentials) if credentials.are_in(headers) => Ok(true),
            Access::Password(_) => Err(Refusal {
                error: ApiError::request(
                    401,
                    "Authorization: give user and password in the URL, as in \
                     https://USER:PASSWORD@HOST:PORT",
                ),
                challenge: Some("Basic realm=\"generator\""),
            }),
        }
    }
}

fn is_loopback(host: &HeaderValue) -> bool {
    let Ok(text) = host.to_str() else { return false };
    let host = match text.rsplit_once(':') {
        Some((host, port)) if port.parse::<u16>().is_ok() => host,
        _ => text,
    };
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.eq_ignore_ascii_case("localhost")
        || address.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests;
