// SPDX-License-Identifier: BSD-3-Clause

use super::*;
use axum::http::HeaderName;

/// A file with `text` in it.
fn file(text: &str) -> tempfile::NamedTempFile {
    use std::io::Write;
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

fn credentials() -> Credentials {
    Credentials::read("Aladdin", file("open sesame\n").path()).unwrap()
}

fn check(access: &Access, fields: &[(HeaderName, &'static str)]) -> Result<(), u16> {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        headers.append(name, HeaderValue::from_static(value));
    }
    access.check(&headers, Peer::Loopback(None)).map(drop).map_err(|refusal| refusal.error.status)
}

#[test]
fn root_is_warned_when_it_serves_without_a_password() {
    let address: SocketAddr = "127.0.0.1:8080".parse().unwrap();
    let warning = Access::Loopback.warning(address, true, &[], false).unwrap();
    assert!(warning.contains("root") && warning.contains("127.0.0.1:8080"), "{warning}");
    assert!(warning.contains("every user") && warning.contains("--otg-user"), "{warning}");
    assert!(warning.ends_with("or leave out --insecure"), "{warning}");
    assert_eq!(warning.lines().count(), 1);
    assert!(!warning.contains("files"), "{warning}");
    let any_device = Access::Loopback.warning(address, true, &[], true).unwrap();
    assert!(any_device.contains("remove files") && any_device.contains("--allow-any-vdev"));
    assert_eq!(Access::Loopback.warning(address, false, &[], true), None);
    let held = ["CAP_NET_ADMIN", "CAP_NET_RAW"];
    let capable = Access::Loopback.warning(address, false, &held, false).unwrap();
    assert!(capable.starts_with("a user with CAP_NET_ADMIN, CAP_NET_RAW serves "), "{capable}");
    assert!(capable.contains("with these capabilities") && !capable.contains("root"), "{capable}");
    assert_eq!(Access::Password(credentials()).warning(address, true, &[], true), None);
}

#[test]
fn without_a_password_only_programs_of_this_machine_are_served() {
    let check = |fields: &[(HeaderName, &'static str)]| check(&Access::Loopback, fields);
    for host in [
        "127.0.0.1:80",
        "127.0.0.1",
        "127.9.9.9:1",
        "localhost",
        "LocalHost:80",
        "[::1]:80",
        "[::1]",
    ] {
        assert_eq!(check(&[(header::HOST, host)]), Ok(()), "{host}");
        assert_eq!(check(&[(header::HOST, host), (header::ORIGIN, "http://127.0.0.1")]), Err(403));
        assert_eq!(check(&[(header::HOST, host), (header::ORIGIN, "null")]), Err(403));
        assert_eq!(check(&[(header::HOST, host), (header::HOST, host)]), Err(403));
    }
    for host in [
        "",
        "evil.example",
        "evil.example:80",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "evil.example@127.0.0.1",
        "10.0.0.1:80",
        "0.0.0.0:80",
        "[::2]:80",
        "127.0.0.1:80,evil.example",
        "127.0.0.1:80:80",
        "127.0.0.1:x",
        "[::1",
    ] {
        assert_eq!(check(&[(header::HOST, host)]), Err(403), "{host}");
    }
    assert_eq!(check(&[]), Err(403));
}

#[test]
fn with_a_password_who_knows_it_is_served() {
    let access = Access::Password(credentials());
    let check = |fields: &[(HeaderName, &'static str)]| check(&access, fields);
    // The example of RFC 7617, section 2.
    let right = (header::AUTHORIZATION, "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
    assert_eq!(check(&[right.clone(), (header::HOST, "generator.example")]), Ok(()));
    assert_eq!(check(&[(header::AUTHORIZATION, "basic  QWxhZGRpbjpvcGVuIHNlc2FtZQ==")]), Ok(()));
    assert_eq!(check(&[right.clone(), (header::ORIGIN, "null")]), Err(403));
    for wrong in [
        "",
        "Basic",
        "Basic ",
        "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ",
        "Basic QWxhZGRpbjpvcGVuIHNlc2FtZA==",
        "Basic qWxhZGRpbjpvcGVuIHNlc2FtZQ==",
        "Bearer QWxhZGRpbjpvcGVuIHNlc2FtZQ==",
        "QWxhZGRpbjpvcGVuIHNlc2FtZQ==",
        "Basic Aladdin:open sesame",
    ] {
        assert_eq!(check(&[(header::AUTHORIZATION, wrong)]), Err(401), "{wrong}");
    }
    assert_eq!(check(&[right.clone(), right]), Err(401), "twice");
    let refusal = access.check(&HeaderMap::new(), Peer::Loopback(None)).unwrap_err();
    assert_eq!((refusal.error.status, refusal.challenge), (401, Some("Basic realm=\"generator\"")));
    assert!(!format!("{access:?} {refusal:?}").contains("QWxh"));
}

#[test]
fn the_unix_socket_needs_neither_password_nor_host() {
    for access in [Access::Loopback, Access::Password(credentials())] {
        assert_eq!(access.check(&HeaderMap::new(), Peer::Local), Ok(true));
        let mut page = HeaderMap::new();
        page.insert(header::ORIGIN, HeaderValue::from_static("null"));
        assert!(access.check(&page, Peer::Local).is_err());
    }
}

#[test]
fn a_token_is_another_each_time() {
    let (one, two) = (Token::new().unwrap(), Token::new().unwrap());
    assert!(one.text().len() == 64 && one.text() != two.text());
    let mut headers = HeaderMap::new();
    let field = format!("Basic {}", STANDARD.encode(format!("otg:{}", one.text())));
    headers.insert(header::AUTHORIZATION, field.parse().unwrap());
    let check = |token: &Token| {
        Access::Password(token.credentials()).check(&headers, Peer::Loopback(None)).is_ok()
    };
    assert!(check(&one) && !check(&two));
}

#[test]
fn only_credentials_that_are_asked_for_are_guesses() {
    let mut headers = HeaderMap::new();
    let access = Access::Password(credentials());
    assert!(!access.is_guess(&headers));
    headers.insert(header::AUTHORIZATION, HeaderValue::from_static("Basic QWxh"));
    assert!(access.is_guess(&headers) && !Access::Loopback.is_guess(&headers));
}

#[test]
fn others_need_tls_and_a_password() {
    let access = |address: &str, tls, password: bool| {
        Access::new(address.parse().unwrap(), tls, password.then(credentials))
    };
    assert!(matches!(access("127.0.0.1", false, false), Ok(Access::Loopback)));
    assert!(matches!(access("::1", true, false), Ok(Access::Loopback)));
    assert!(matches!(access("127.0.0.1", false, true), Ok(Access::Password(_))));
    assert!(matches!(access("0.0.0.0", true, true), Ok(Access::Password(_))));
    for (address, tls, password) in [
        ("0.0.0.0", true, false),
        ("0.0.0.0", false, true),
        ("10.0.0.1", false, false),
        ("::", true, false),
        ("::ffff:127.0.0.1", false, false),
    ] {
        let error = access(address, tls, password).unwrap_err().to_string();
        assert!(error.contains("--otg-user") && error.contains("--tls-cert"), "{error}");
    }
}

#[test]
fn bad_credentials_name_their_option() {
    let read = |user: &str, text: &str| Credentials::read(user, file(text).path());
    assert!(read("u", "12345678").is_ok() && read("u", "12345678\r\n").is_ok());
    for (user, text, option) in [
        ("", "12345678", "--otg-user"),
        ("a:b", "12345678", "--otg-user"),
        ("ü", "12345678", "--otg-user"),
        ("u", "1234567", "--otg-password-file"),
        ("u", "1234567\n\n", "--otg-password-file"),
        ("u", "12345678\nx", "--otg-password-file"),
        ("u", "pässword", "--otg-password-file"),
        ("u", "", "--otg-password-file"),
    ] {
        let error = read(user, text).unwrap_err().to_string();
        assert!(error.starts_with(option), "{error}");
    }
    assert!(read("u", &"x".repeat(256)).is_ok() && read("u", &"x".repeat(257)).is_err());
    let missing = Credentials::read("u", Path::new("/nonexistent")).unwrap_err();
    assert!(missing.to_string().starts_with("--otg-password-file /nonexistent: "));
}

#[test]
fn a_password_is_in_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // Nobody writes to it: it was waited for.
    let error = Credentials::read("Aladdin", &pipe).unwrap_err().to_string();
    assert_eq!(
        error,
        format!("--otg-password-file {}: a pipe, not a regular file", pipe.display())
    );
}
