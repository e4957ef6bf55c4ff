/* SPDX-License-Identifier: BSD-3-Clause */
/* Contents of packets, for forwarders that look at them. */
#ifndef LR_FRAMES_H
#define LR_FRAMES_H

#include <stdint.h>
#include <string.h>

#include <rte_mbuf.h>

/* The smallest Ethernet frame, without its FCS: what the file has of each. */
#define FRAME_BYTES 60
/*
 * What tells one IPv4 flow from another lies side by side, behind 14 bytes of Ethernet: time to live, protocol,
 * checksum, both addresses and, without options, both ports.
 */
#define FRAME_FLOW 22
#define FLOW_BYTES 16

struct frames {
	uint32_t count;
	uint8_t (*whole)[FRAME_BYTES];
	uint8_t (*flows)[FLOW_BYTES];
};

/* The frames of a file, one behind the other. Null, and a message, if there are none. */
struct frames *frames_read(const char *path);

void frames_free(struct frames *frames);

/* Put frame `number`, counted round, into a fresh packet. */
static inline void frames_put(const struct frames *frames, uint32_t number, struct rte_mbuf *packet)
{
	uint8_t *data = rte_pktmbuf_mtod(packet, uint8_t *);

	memcpy(data, frames->whole[number % frames->count], FRAME_BYTES);
}

/*
 * Make of packets that came back the next frames of the file; `next` is less than their count. However few
 * packets go round, a router meets all flows. Written is the cache line that routers write anyway.
 */
static inline uint32_t frames_renew(const struct frames *frames, uint32_t next, struct rte_mbuf **packets,
				    uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		memcpy(rte_pktmbuf_mtod(packets[i], uint8_t *) + FRAME_FLOW, frames->flows[next],
		       FLOW_BYTES);
		next = next + 1 == frames->count ? 0 : next + 1;
	}
	return next;
}

#endif
