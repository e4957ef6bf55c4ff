/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A queue: a ring of packets, and the bursts that are taken out of it and put into it (nearfree.c says what for).
 *
 * Threads: one may receive from a queue while another sends on it. All else is for the thread that controls ports.
 */
#ifndef LR_QUEUE_H
#define LR_QUEUE_H

#include <stdint.h>

#include <rte_mbuf.h>

#include "check.h"
#include "traffic.h"

/* One ring. head and tail count packets and wrap; only the receiver writes what is beside head, only
 * the sender what is beside tail. */
struct queue {
	struct rte_mbuf **slots;
	/* Slots - 1 (a power of two less one), and how many packets the ring may hold: none when
	 * nobody receives from it. */
	uint32_t mask;
	uint32_t limit;
	struct rte_mempool *pool;
	uint16_t port;
	uint16_t size;
	/* Null unless packets have contents; which flags of packets the port's user wants to know. */
	const struct traffic *traffic;
	uint64_t known;
	/* Which of its frames come to this queue, and how many they are; null: all of them. */
	uint32_t *order;
	uint32_t frames;
	/* Null unless what is sent is checked. */
	struct check *check;

	uint32_t head __rte_cache_aligned;
	/* Place of the next frame among those of the queue. */
	uint32_t next;
	uint64_t received;
	uint64_t no_mbuf;

	uint32_t tail __rte_cache_aligned;
	uint64_t sent;
} __rte_cache_aligned;

/* Of ports whose packets have no contents. */
uint16_t queue_receive(void *queue, struct rte_mbuf **pkts, uint16_t n);
uint16_t queue_transmit(void *queue, struct rte_mbuf **pkts, uint16_t n);

/* Of ports whose packets hold frames. */
uint16_t queue_receive_frames(void *queue, struct rte_mbuf **pkts, uint16_t n);
uint16_t queue_transmit_frames(void *queue, struct rte_mbuf **pkts, uint16_t n);

/* Makes a ring with so many packets of the queue's pool; 0 or -ENOMEM. */
int queue_fill(struct queue *queue, uint32_t packets);

/* Frees what is in the ring, and the ring. */
void queue_empty(struct queue *queue);

#endif
