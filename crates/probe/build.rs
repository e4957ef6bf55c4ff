// SPDX-License-Identifier: BSD-3-Clause
//! How the plugin is linked.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Callbacks, a thread and telemetry commands point into the plugin as long as the process
    // lives: it must stay mapped even if the program closes it.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
