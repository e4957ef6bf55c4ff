/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a program made of the frames that it was given.
 *
 * A packet that is received is marked with its frame. If it is sent, with whatever headers then, it is compared
 * with that frame, and counted at the port that it came from. Asked for by DPDK's telemetry:
 *
 * /net_nearfree/check,NAME         all figures of the port NAME
 * /net_nearfree/flows,NAME,FIRST   packets sent, by flow, of up to 256 flows
 * /net_nearfree/ports,NAME,FIRST   by flow the ports that sent its packets: bit N is the Nth with check=1, from 0 on
 * /net_nearfree/flow,NAME,NUMBER   a flow's first frame, in hexadecimal digits
 */
#ifndef LR_CHECK_H
#define LR_CHECK_H

#include <rte_mbuf.h>

#include "traffic.h"

struct check;

/* Checks what is sent of a port's frames; null, and a message, if that cannot be done. */
struct check *check_begin(const char *port, const struct traffic *traffic);

void check_end(struct check *check);

/* A packet that is received, with this frame in it. */
void check_mark(struct check *check, struct rte_mbuf *packet, const struct traffic_frame *frame);

/* A packet that is sent, by a port that has this check. */
void check_packet(struct check *check, struct rte_mbuf *packet);

#endif
