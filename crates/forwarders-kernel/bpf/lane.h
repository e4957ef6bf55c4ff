/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* The parameters and results of all programs: one lane, and the counters of ports. Shared with the
 * loader (src/xdp/layout.rs). */
#ifndef LINERATE_LANE_H
#define LINERATE_LANE_H

#include <linux/types.h>

/* Ports of a program, as many as DPDK has. */
#define MAX_PORTS 32

/* Set before the program is loaded, so that the verifier sees constants. */
struct lane {
	__u32 rx_port;		/* on which frames are received */
	__u32 tx_port;		/* on which they are sent */
	__u32 rewrite;		/* true if MAC addresses are rewritten */
	__u32 addresses[3];	/* destination and source to write, in a frame's byte order */
	__u32 virtual;		/* true if senders may leave checksums to the interface: it is not hardware */
};

/* Settings of one port that may change while the program runs. */
struct facts {
	__u8 mac[6];		/* the address of the interface */
	__u8 routes_ipv6;	/* net.ipv6.conf.all.forwarding, which no helper checks */
	__u8 unused;
};

/* Counters of one port on one CPU; numbers only (src/xdp/layout.rs reads them in this order). */
struct counters {
	__u64 rx_packets;
	__u64 rx_bytes;
	__u64 rx_runt;		/* dropped: no Ethernet header */
	__u64 rx_passed;	/* left to the kernel: not certain to be forwarded */
	__u64 rx_unroutable;	/* dropped: blackholed */
	__u64 tx_given;		/* given to the driver of this port */
	__u64 tx_given_bytes;
	__u64 tx_no_port;	/* dropped: the output port is gone */
	__u64 rx_checksum_left;	/* whose sender left TCP's or UDP's checksum to the interface */
	__u64 rx_checksum_completed;
};

#endif
