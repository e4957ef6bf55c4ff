// SPDX-License-Identifier: BSD-3-Clause
//! A failed start of DPDK reports the reason. It is the process's only start, because DPDK does not
//! clean up after it.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

use std::process::{Command, Output};

use dpdk::{Eal, EalError};

const OPTION: &str = "LINERATE_TEST_OPTION";

#[test]
fn a_failed_start_is_an_error_and_the_last() {
    let nul = Eal::init(["test", "--no-huge\0"]).unwrap_err();
    assert!(matches!(nul, EalError::Nul(_)), "{nul}: refused before DPDK saw it");
    // Every release returns an error for these.
    let arguments = ["test", "--no-huge", "--no-pci", "--lcores", "0", "--main-lcore", "1"];
    let error = Eal::init(arguments).unwrap_err();
    assert!(matches!(error, EalError::Init(..)), "{error}");
    assert!(error.to_string().contains("--main-lcore 1"), "{error}");
    let again = Eal::init(["test", "--no-huge", "--no-pci", "-m", "64"]);
    assert!(matches!(again, Err(EalError::AlreadyInitialised)));
}

/// Runs a program that starts DPDK with this option, and returns its output.
fn started_with(option: &str) -> Output {
    let test = "an_unknown_option_is_named_and_the_others_told";
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(OPTION, option)
        .output()
        .unwrap()
}

/// With an error, or in release 25.11, which ends the process itself, on exit.
#[test]
fn an_unknown_option_is_named_and_the_others_told() {
    if let Some(option) = std::env::var_os(OPTION) {
        let arguments = ["/usr/bin/router", "--no-huge", "--no-pci"].map(Into::into);
        let error = Eal::init(arguments.into_iter().chain([option])).unwrap_err();
        eprintln!("router: {error}");
        std::process::exit(1);
    }
    let unknown = started_with("--no-such-option");
    let told = String::from_utf8(unknown.stderr).unwrap();
    assert!(!unknown.status.success());
    let (by_dpdk, ours) = told.split_once("router: EAL did not start").unwrap();
    assert!(by_dpdk.contains("no-such-option"), "{told}");
    assert!(ours.contains("(options: --no-huge --no-pci --no-such-option)"), "{told}");
    let help = started_with("--help");
    assert!(help.status.success());
    let told = String::from_utf8(help.stderr).unwrap();
    assert!(!told.contains("did not start"), "{told}");
}
