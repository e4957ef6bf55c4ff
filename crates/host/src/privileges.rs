// SPDX-License-Identifier: BSD-3-Clause
//! Capabilities that root gives up before it serves others.

use std::io;

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs,
};

/// What ports on kernel interfaces need: packet sockets, creating and changing interfaces, XDP
/// programs, and locked memory.
const FOR_PORTS: CapabilitySet = CapabilitySet::NET_RAW
    .union(CapabilitySet::NET_ADMIN)
    .union(CapabilitySet::BPF)
    .union(CapabilitySet::IPC_LOCK);

/// What libxdp needs as well: the verifier lets its dispatcher compare pointers only with
/// CAP_PERFMON, and the kernel opens a program by its ID (BPF_PROG_GET_FD_BY_ID) only with
/// CAP_SYS_ADMIN.
const FOR_LIBXDP: CapabilitySet = CapabilitySet::PERFMON.union(CapabilitySet::SYS_ADMIN);

/// Reduces the calling thread's capabilities to CAP_NET_RAW, CAP_NET_ADMIN, CAP_BPF and
/// CAP_IPC_LOCK, with `libxdp` also CAP_PERFMON and CAP_SYS_ADMIN, as far as it has them, and sets
/// `no_new_privs`, so that no program that it starts gets more. This also holds for threads that it
/// creates later; existing threads keep what they have.
///
/// # Errors
/// The kernel's; the state is then unknown, and the program should end.
pub fn keep_capabilities_for_ports(libxdp: bool) -> io::Result<()> {
    let wanted = if libxdp { FOR_PORTS | FOR_LIBXDP } else { FOR_PORTS };
    set_no_new_privs(true)?;
    let now = capabilities(None)?;
    let kept = CapabilitySets {
        effective: now.effective & wanted,
        permitted: now.permitted & wanted,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, kept)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On separate threads, because they cannot get the capabilities back.
    #[test]
    fn nothing_but_what_ports_need_stays() {
        let thread = std::thread::spawn(|| {
            let before = capabilities(None).unwrap();
            keep_capabilities_for_ports(true).unwrap();
            let more = capabilities(None).unwrap();
            assert_eq!(more.effective, before.effective & (FOR_PORTS | FOR_LIBXDP));
            keep_capabilities_for_ports(false).unwrap();
            let after = std::thread::spawn(|| capabilities(None).unwrap()).join().unwrap();
            assert_eq!(after.effective, before.effective & FOR_PORTS);
            assert_eq!(after.permitted, before.permitted & FOR_PORTS);
            assert!(
                !after.permitted.intersects(CapabilitySet::DAC_OVERRIDE | CapabilitySet::SYS_ADMIN)
            );
            assert!(rustix::thread::no_new_privs().unwrap());
            // Nothing comes back.
            assert!(before.effective == after.effective || set_capabilities(None, before).is_err());
        });
        thread.join().unwrap();
    }
}
