/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A worker, included once for each way to pass objects on and each kind of work, so that it has no
 * branches for these while it runs. NAME: its name; WAY: SWAP, COPY, ASSIGN or SPECULATE; SOME: pointers at a time;
 * WORK: NOTHING, LINE or HASH5.
 */
#ifndef WORKER
#define WORKER_(name, kind) name##kind
#define WORKER(name, kind) WORKER_(name, kind)
#endif

static __rte_always_inline void WORKER(NAME, _work)(struct packet *p, uint64_t seed)
{
#if WORK == LINE
	p->touched++;
#elif WORK == HASH5
	p->hash += hash5(p, seed);
#endif
	RTE_SET_USED(p);
	RTE_SET_USED(seed);
}

static __rte_always_inline void WORKER(NAME, _all)(void **objs, uint16_t n, uint64_t seed)
{
	uint16_t i;

	for (i = 0; WORK != NOTHING && i < n; i++)
		WORKER(NAME, _work)(objs[i], seed);
}

/* Sends all objects to one edge. */
static __rte_always_inline void WORKER(NAME, _to)(struct rte_graph *graph, struct rte_node *node, rte_edge_t next,
						  void **objs, uint16_t n, uint64_t seed)
{
	uint16_t i = 0;

#if WAY == COPY
	WORKER(NAME, _all)(objs, n, seed);
	for (; n - i >= SOME; i += SOME) {
		void **to = rte_node_next_stream_get(graph, node, next, SOME);

		rte_memcpy(to, &objs[i], SOME * sizeof(void *));
		rte_node_next_stream_put(graph, node, next, SOME);
	}
	if (i < n) {
		void **to = rte_node_next_stream_get(graph, node, next, n - i);

		rte_memcpy(to, &objs[i], (n - i) * sizeof(void *));
		rte_node_next_stream_put(graph, node, next, n - i);
	}
#elif WAY == ASSIGN
#if SOME == 4
	for (; n - i >= 4; i += 4) {
		WORKER(NAME, _work)(objs[i], seed);
		WORKER(NAME, _work)(objs[i + 1], seed);
		WORKER(NAME, _work)(objs[i + 2], seed);
		WORKER(NAME, _work)(objs[i + 3], seed);
		rte_node_enqueue_x4(graph, node, next, objs[i], objs[i + 1], objs[i + 2], objs[i + 3]);
	}
#elif SOME == 2
	for (; n - i >= 2; i += 2) {
		WORKER(NAME, _work)(objs[i], seed);
		WORKER(NAME, _work)(objs[i + 1], seed);
		rte_node_enqueue_x2(graph, node, next, objs[i], objs[i + 1]);
	}
#endif
	for (; i < n; i++) {
		WORKER(NAME, _work)(objs[i], seed);
		rte_node_enqueue_x1(graph, node, next, objs[i]);
	}
#else
	WORKER(NAME, _all)(objs, n, seed);
	rte_node_enqueue(graph, node, next, objs, n);
	RTE_SET_USED(i);
#endif
}

#if WAY == SPECULATE
/* Speculates that all objects go to the edge of the one before, until one differs. */
static uint16_t WORKER(NAME, _one)(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct knows *knows = (struct knows *)node->ctx;
	const uint64_t seed = knows->seed;
	const uint8_t shift = knows->shift, mask = knows->mask;
	rte_edge_t next = knows->next;
	uint16_t held = 0, last = 0, i;
	void **to = rte_node_next_stream_get(graph, node, next, n);

	for (i = 0; i < n; i++) {
		struct packet *p = objs[i];
		const rte_edge_t edge = (p->lane >> shift) & mask;

		WORKER(NAME, _work)(p, seed);
		if (unlikely(edge != next)) {
			rte_memcpy(to, &objs[last], (i - last) * sizeof(void *));
			held += i - last;
			rte_node_next_stream_put(graph, node, next, held);
			held = 0;
			last = i;
			next = edge;
			to = rte_node_next_stream_get(graph, node, next, n - i);
		}
	}
	if (last == 0) {
		rte_node_next_stream_move(graph, node, next);
	} else {
		rte_memcpy(to, &objs[last], (n - last) * sizeof(void *));
		rte_node_next_stream_put(graph, node, next, n - last);
	}
	knows->next = next;
	return n;
}
#else
static uint16_t WORKER(NAME, _one)(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	const uint64_t seed = ((const struct knows *)node->ctx)->seed;
#if WAY == SWAP
	WORKER(NAME, _all)(objs, n, seed);
	rte_node_next_stream_move(graph, node, 0);
#else
	WORKER(NAME, _to)(graph, node, 0, objs, n, seed);
#endif
	return n;
}

/* Each edge gets an equal run of neighbouring objects. */
static uint16_t WORKER(NAME, _split)(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	const uint64_t seed = ((const struct knows *)node->ctx)->seed;
	const uint16_t edges = node->nb_edges;
	uint16_t edge, from = 0;

	for (edge = 0; edge < edges; edge++) {
		const uint16_t to = (uint32_t)n * (edge + 1) / edges;

		if (to > from)
			WORKER(NAME, _to)(graph, node, edge, &objs[from], to - from, seed);
		from = to;
	}
	return n;
}
#endif

#undef NAME
#undef WAY
#undef SOME
#undef WORK
