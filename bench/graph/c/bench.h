/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Declarations that the C files share, and the functions that src/c_arm.rs calls. Shapes, ways to pass and kinds of
 * work have the numbers that src/cell.rs gives them.
 */
#ifndef LINERATE_GRAPH_BENCH_H
#define LINERATE_GRAPH_BENCH_H

#include <stdint.h>

#include <rte_graph.h>

/* As in src/packet.rs. */
struct packet {
	uint64_t addresses, ports;
	uint32_t hash, touched;
	/* Index in its source's batch. */
	uint32_t lane;
} __rte_aligned(64);

/* The state of a worker: the 16 bytes of rte_node's ctx. */
struct knows {
	uint64_t seed;
	/* An object with this lane takes edge (lane >> shift) & mask. */
	uint8_t shift, mask;
	uint16_t next;
};

enum { WAYS_TO_PASS = 13, KINDS_OF_WORK = 3 };

/* Workers, by way, kind of work, and whether there are several edges. */
extern const rte_node_process_t bench_workers[WAYS_TO_PASS][KINDS_OF_WORK][2];

void bench_walk_0(struct rte_graph *graph, uint64_t walks);
void bench_walk_1(struct rte_graph *graph, uint64_t walks);

#endif
