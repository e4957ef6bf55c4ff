/* SPDX-License-Identifier: BSD-3-Clause */
/* A port: what it has, and what ethdev may have it do. For the thread that controls ports. */
#ifndef LR_PORT_H
#define LR_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_ether.h>

#include "check.h"
#include "driver_abi.h"
#include "queue.h"
#include "traffic.h"

#define QUEUES 16

struct nearfree {
	struct queue queues[QUEUES];
	struct rte_ether_addr mac;
	/* Null unless fresh packets come from there. */
	struct rte_mempool *dense;
	struct traffic *traffic;
	struct check *check;
	/* What the user asked for when the port was configured: what packets have, and a hash by this key or the usual one, with ports. */
	uint64_t known;
	bool keyed;
	bool ports;
	uint8_t key[TRAFFIC_KEY];
	uint32_t ring;
	uint16_t size;
};

extern const abi_slot port_operations[OP_COUNT];

/* Stops a port and gives back what it has, but for the memory of `struct nearfree`, which ethdev frees. */
int port_close(struct abi_port *port);

/* Gives back what a port has that was never started, but for its memory. */
void port_give_back(struct nearfree *own);

#endif
