/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* What every program of ours is told and tells: one lane, and the counters of ports. Shared with the
 * loader (src/xdp/layout.rs). */
#ifndef LINERATE_LANE_H
#define LINERATE_LANE_H

#include <linux/types.h>

/* Ports of a program, as many as DPDK has. */
#define MAX_PORTS 32

/* Set before the program is loaded, so that the verifier sees constants. */
struct lane {
	__u32 rx_port;		/* where frames come in */
	__u32 tx_port;		/* where they leave */
	__u32 rewrite;		/* whether MAC addresses are rewritten */
	__u32 addresses[3];	/* destination and source to write, their bytes as they stand in a frame */
	__u32 virtual;		/* whether senders may leave checksums to the interface: it is no device's */
};

/* Of one port; what may change while the program runs. */
struct facts {
	__u8 mac[6];		/* the address of the interface */
	__u8 routes_ipv6;	/* net.ipv6.conf.all.forwarding, which no helper asks for */
	__u8 unused;
};

/* Of one port and one CPU; numbers only (src/xdp/layout.rs reads them in this order). */
struct counters {
	__u64 rx_packets;
	__u64 rx_bytes;
	__u64 rx_runt;		/* dropped: no Ethernet header */
	__u64 rx_passed;	/* left to the kernel: all that is not certain to be forwarded */
	__u64 rx_unroutable;	/* dropped: blackholed */
	__u64 tx_given;		/* given to the driver of this port */
	__u64 tx_given_bytes;
	__u64 tx_no_port;	/* dropped: the port to send by is gone */
	__u64 rx_checksum_left;	/* whose sender left TCP's or UDP's checksum to the interface */
	__u64 rx_checksum_completed;
};

#endif
