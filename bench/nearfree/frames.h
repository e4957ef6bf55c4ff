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
 * Routers change the time to live and the checksum, and a packet comes back many times. The word that holds
 * both is kept behind those bytes, in the cache line that routers read and write anyway.
 */
#define FRAME_WORD 22
#define FRAME_KEPT FRAME_BYTES
#define FRAME_ROOM (FRAME_KEPT + sizeof(uint32_t))

struct frames {
	uint32_t count;
	uint8_t bytes[][FRAME_BYTES];
};

/* The frames of a file, one behind the other. Null, and a message, if there are none. */
struct frames *frames_read(const char *path);

/* Put frame `number`, counted round, into a fresh packet. */
static inline void frames_put(const struct frames *frames, uint32_t number, struct rte_mbuf *packet)
{
	uint8_t *data = rte_pktmbuf_mtod(packet, uint8_t *);

	memcpy(data, frames->bytes[number % frames->count], FRAME_BYTES);
	memcpy(data + FRAME_KEPT, data + FRAME_WORD, sizeof(uint32_t));
}

/* Undo a hop. */
static inline void frames_renew(struct rte_mbuf **packets, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint8_t *data = rte_pktmbuf_mtod(packets[i], uint8_t *);

		memcpy(data + FRAME_WORD, data + FRAME_KEPT, sizeof(uint32_t));
	}
}

#endif
