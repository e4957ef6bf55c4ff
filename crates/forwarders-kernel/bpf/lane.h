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
};

/* Of one port and one CPU; numbers only (src/xdp/layout.rs reads them in this order). */
struct counters {
	__u64 rx_packets;
	__u64 rx_bytes;
	__u64 rx_runt;		/* dropped: no Ethernet header */
	__u64 rx_passed;	/* left to the kernel: not IP, its own address, no neighbour, another port */
	__u64 rx_unroutable;	/* dropped: blackholed, unreachable or prohibited routes */
	__u64 tx_given;		/* given to the driver of this port */
	__u64 tx_given_bytes;
	__u64 tx_no_port;	/* dropped: the port to send by is gone */
};

#endif
