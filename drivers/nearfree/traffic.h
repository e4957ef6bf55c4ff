/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames of a capture file, handed out in turn.
 *
 * The file is read into memory; of each frame 24 bytes are kept besides. What a NIC says of a packet beside its bytes
 * is found then, not when a packet is received: its type, whether its checksums are right, and the hash of its flow.
 */
#ifndef LR_TRAFFIC_H
#define LR_TRAFFIC_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <rte_mbuf.h>

/* Bytes are copied so many at a time: buffers have room for that much behind a frame. */
#define TRAFFIC_BLOCK 64
/* Of the key of the hash, and entries of the table from hashes to queues. */
#define TRAFFIC_KEY 40
#define TRAFFIC_RETA 128

struct traffic_frame {
	const uint8_t *bytes;
	uint32_t packet_type;
	/* Toeplitz, of addresses and, where they are wanted, ports; 0 without an IP header. */
	uint32_t hash;
	uint16_t length;
	/* RTE_MBUF_F_RX_*: what is known of its checksums, and whether it has a hash. All fit in 16 bits. */
	uint16_t flags;
	/* Of its flow, from 0 on. */
	uint32_t flow;
};

struct traffic {
	struct traffic_frame *frames;
	uint32_t count;
	uint32_t flows;
	uint32_t longest;
	/* The whole file; a block of zeros is behind it. */
	uint8_t *bytes;
	size_t size;
	/* What frames are hashed with. */
	uint8_t key[TRAFFIC_KEY];
	bool ports;
	/* Ports that have it, by the file's name. */
	char *path;
	unsigned int users;
	struct traffic *next;
};

/*
 * The frames of a capture file (pcap of Ethernet frames, whole ones), as one port's. Null, and a message, for a file that
 * is none. Called by the thread that controls ports.
 */
struct traffic *traffic_acquire(const char *path);

void traffic_release(struct traffic *traffic);

/*
 * Hash frames by this key, of TRAFFIC_KEY bytes (null: the usual one), with ports or by addresses alone. Ports that have the
 * same file have the same hashes: those of the last one that was started.
 */
void traffic_hash(struct traffic *traffic, const uint8_t *key, bool ports);

/* Which queue of so many a frame comes to. */
static inline uint16_t traffic_queue(const struct traffic_frame *frame, uint16_t queues)
{
	return frame->hash % TRAFFIC_RETA % queues;
}

/* Types that frames may have, and RTE_PTYPE_UNKNOWN behind them; how many there are before it. */
const uint32_t *traffic_types(size_t *count);

/*
 * Make a packet the one that a frame arrives in. `known`: flags of those that the port's user wants. The packet is one of a
 * pool, of one segment, and nobody else's.
 */
static inline void traffic_put(const struct traffic_frame *frame, struct rte_mbuf *packet, uint16_t port,
			       uint64_t known)
{
	uint8_t *to = (uint8_t *)packet->buf_addr + RTE_PKTMBUF_HEADROOM;

	for (uint32_t at = 0; at < frame->length; at += TRAFFIC_BLOCK)
		memcpy(to + at, frame->bytes + at, TRAFFIC_BLOCK);
	packet->data_off = RTE_PKTMBUF_HEADROOM;
	packet->port = port;
	packet->ol_flags = frame->flags & known;
	packet->packet_type = frame->packet_type;
	packet->pkt_len = frame->length;
	packet->data_len = frame->length;
	packet->hash.rss = frame->hash;
}

#endif
