// SPDX-License-Identifier: BSD-3-Clause
//! How the plugin is linked.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Callbacks, a thread and telemetry commands lead into the plugin for as long as the process lives:
    // it must stay where it is even if the program closes it.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
