// SPDX-License-Identifier: BSD-3-Clause
//! An Eal for a test: no root, no hugepages, no devices but those named.

use dpdk::Eal;

/// Starts DPDK on the first CPU that the test may use, with these devices.
pub fn eal(vdevs: &[&str]) -> Eal {
    let mut arguments = vec![
        "test".to_owned(),
        "--no-pci".into(),
        "--no-huge".into(),
        "--no-shconf".into(),
        "-m".into(),
        "256".into(),
        "--file-prefix".into(),
        format!("linerate-test-{}", std::process::id()),
    ];
    for vdev in vdevs {
        arguments.extend(["--vdev".to_owned(), (*vdev).to_owned()]);
    }
    Eal::init(arguments).unwrap().0
}
