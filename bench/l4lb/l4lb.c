/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * l4lb-c [EAL options] -- [--config FILE] [--connections N]
 *
 * Each lcore polls a queue of its own of each port. SIGHUP reads the configuration again.
 */
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_hash_crc.h>
#include <rte_ip.h>
#include <rte_lcore.h>
#include <rte_prefetch.h>
#include <rte_rcu_qsbr.h>
#include <rte_tcp.h>
#include <rte_udp.h>

#include "l4lb.h"

enum { BURST = 32, AHEAD = 4, LOOKS = 8, RING = 1024, CACHE = 256, MOST_PORTS = 8 };

static volatile bool stop, hangup;
static struct tables *current;
static struct rte_rcu_qsbr *qsbr;
static uint32_t connections = 1 << 16;
static const char *config_file = "l4lb.conf";
static struct rte_ether_addr own;

struct connection {
	uint32_t backend, seen;
	uint16_t entropy;
	bool here;
};

/* The connections of one IP version. A key's position in the hash table is its connection's number. */
struct table {
	struct rte_hash *keys;
	struct connection *connections;
	uint32_t len, cursor;
};

struct worker {
	struct table of4, of6;
	uint64_t counters[COUNTERS];
	struct {
		uint64_t packets, bytes, new;
	} vips[MOST_VIPS];
	struct {
		uint16_t port, queue;
	} lanes[MOST_PORTS];
	uint32_t lane_count, reader, aged;
} __rte_cache_aligned;
static struct worker *workers[RTE_MAX_LCORE];

static void table_new(struct table *table, const char *name, uint32_t key_len, unsigned lcore)
{
	char unique[32];
	snprintf(unique, sizeof(unique), "%s_%u", name, lcore);
	struct rte_hash_parameters parameters = {
		.name = unique, .entries = connections, .key_len = key_len, .hash_func = rte_hash_crc,
		.socket_id = SOCKET_ID_ANY,
	};
	table->keys = rte_hash_create(&parameters);
	if (!table->keys)
		rte_exit(1, "no table for %u connections\n", connections);
	table->len = rte_hash_max_key_id(table->keys) + 1;
	table->connections = rte_zmalloc("connections", table->len * sizeof(*table->connections), RTE_CACHE_LINE_SIZE);
	if (!table->connections)
		rte_exit(1, "no memory for %u connections\n", connections);
}

/* Looks at a part of the table: at each connection LOOKS times in the time after which it is idle. */
static __rte_noinline void age(struct worker *worker, struct table *table, uint32_t now, uint32_t idle)
{
	uint64_t part = (uint64_t)table->len * LOOKS / RTE_MAX(idle, 1u) + 1;
	for (uint64_t looked_at = 0; looked_at < RTE_MIN(part, table->len); looked_at++) {
		uint32_t at = table->cursor;
		struct connection *connection = &table->connections[at];
		table->cursor = at + 1 < table->len ? at + 1 : 0;
		if (likely(!connection->here || now - connection->seen < idle))
			continue;
		void *key;
		if (rte_hash_get_key_with_position(table->keys, at, &key) == 0)
			rte_hash_del_key(table->keys, key);
		connection->here = false;
		worker->counters[FORGOTTEN]++;
	}
}

static inline uint16_t u16_at(const uint8_t *bytes)
{
	return bytes[0] << 8 | bytes[1];
}

static inline void put16(uint8_t *bytes, uint16_t value)
{
	*(unaligned_uint16_t *)bytes = rte_cpu_to_be_16(value);
}

static inline uint16_t folded(uint32_t sum)
{
	sum = (sum >> 16) + (sum & 0xffff);
	return (sum >> 16) + sum;
}

static inline bool is_complete(const struct rte_mbuf *m, uint32_t len, uint32_t header, uint8_t protocol)
{
	uint32_t least = protocol == IPPROTO_TCP ? header + 20 : protocol == IPPROTO_UDP ? header + 8 : UINT32_MAX;
	return len >= least && L3 + len <= m->pkt_len;
}

enum version { V4, V6, NEITHER };

static inline enum version parse(const struct rte_mbuf *m, struct flow4 *flow4, struct flow6 *flow6)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *), *ip = frame + L3;
	if (unlikely(m->data_len < L3 + 24))
		return NEITHER;
	uint16_t type = u16_at(frame + 12);
	if (type == RTE_ETHER_TYPE_IPV4 && ip[0] == 0x45 && !(u16_at(ip + 6) & 0x3fff)) {
		if (!is_complete(m, u16_at(ip + 2), 20, ip[9]))
			return NEITHER;
		memcpy(flow4, ip + 12, 12);
		memset(&flow4->protocol, 0, 4);
		flow4->protocol = ip[9];
		return V4;
	}
	if (type == RTE_ETHER_TYPE_IPV6 && m->data_len >= L3 + 44 && ip[0] >> 4 == 6) {
		if (!is_complete(m, 40 + u16_at(ip + 4), 40, ip[6]))
			return NEITHER;
		memcpy(flow6, ip + 8, 36);
		memset(&flow6->protocol, 0, 4);
		flow6->protocol = ip[6];
		return V6;
	}
	return NEITHER;
}

static inline int tunnel(const struct way *way, struct rte_mbuf *m, uint16_t mtu, uint16_t entropy)
{
	uint8_t *ip = rte_pktmbuf_mtod(m, uint8_t *) + L3;
	uint32_t inner = m->pkt_len, replaced = 0;
	if (!way->udp) {
		inner = ip[0] >> 4 == 4 ? u16_at(ip + 2) : 40 + u16_at(ip + 4);
		replaced = L3;
	}
	if (unlikely(inner + way->len - L3 > mtu))
		return TOO_BIG;
	if (!way->udp && m->pkt_len > L3 + inner && rte_pktmbuf_trim(m, m->pkt_len - L3 - inner))
		return FAILED;
	uint8_t *headers = (uint8_t *)rte_pktmbuf_prepend(m, way->len - replaced);
	if (unlikely(!headers))
		return FAILED;
	/* Constant lengths: stores instead of a call. */
	switch (way->len) {
	case 34:
		memcpy(headers, way->headers, 34);
		break;
	case 38:
		memcpy(headers, way->headers, 38);
		break;
	case 50:
		memcpy(headers, way->headers, 50);
		break;
	case 54:
		memcpy(headers, way->headers, 54);
		break;
	case 58:
		memcpy(headers, way->headers, 58);
		break;
	default:
		memcpy(headers, way->headers, 70);
	}
	uint32_t len = inner + way->len - L3;
	uint8_t *udp;
	if (way->kind == TUNNEL4) {
		put16(headers + 16, len);
		put16(headers + 24, ~folded(way->sum + len));
		udp = headers + 34;
		len -= 20;
	} else {
		len -= 40;
		put16(headers + 18, len);
		udp = headers + 54;
	}
	if (way->udp) {
		put16(udp, 0xc000 | entropy);
		put16(udp + 4, len);
	}
	return -1;
}

/* RFC 1624, equation 3: adds what changed from old to new. */
static inline uint32_t changed(uint32_t sum, const uint8_t *old, const uint8_t *new, uint32_t len)
{
	for (uint32_t at = 0; at < len; at += 2)
		sum += (uint16_t)~u16_at(old + at) + u16_at(new + at);
	return sum;
}

static inline uint16_t updated(const uint8_t *checksum, uint32_t sum)
{
	return ~folded((uint16_t)~u16_at(checksum) + sum);
}

static inline int translate(const struct way *way, struct rte_mbuf *m)
{
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *), *ip = frame + L3;
	bool v6 = way->kind == NAT6;
	uint32_t len = v6 ? 16 : 4, header = v6 ? 40 : 20;
	uint8_t *ttl = ip + (v6 ? 7 : 8), protocol = ip[v6 ? 6 : 9];
	uint8_t *end = ip + (v6 ? 8 : 12) + (way->answers ? 0 : len);
	uint8_t *transport = ip + header, *port = transport + (way->answers ? 0 : 2), new_port[2];
	uint32_t payload = v6 ? u16_at(ip + 4) : u16_at(ip + 2) - 20u;
	payload = RTE_MIN(payload, m->data_len - L3 - header);
	if (unlikely(*ttl <= 1))
		return FAILED;
	if (protocol == IPPROTO_TCP) {
		uint32_t words = payload < 20 ? 0 : transport[12] >> 4;
		if (unlikely(words < 5 || words * 4 > payload))
			return FAILED;
	} else if (unlikely(payload < 8)) {
		return FAILED;
	}
	put16(new_port, way->port);
	uint32_t change = changed(0, end, way->address, len);
	if (!v6) {
		/* A time to live less is a word of 0x100 less. */
		uint8_t new_ttl[2] = {*ttl - 1, protocol};
		put16(ip + 10, updated(ip + 10, changed(change, ttl, new_ttl, 2)));
	}
	*ttl -= 1;
	memcpy(end, way->address, len);
	change = changed(change, port, new_port, 2);
	memcpy(port, new_port, 2);
	uint8_t *checksum = transport + (protocol == IPPROTO_TCP ? 16 : 6);
	if (protocol == IPPROTO_TCP) {
		put16(checksum, updated(checksum, change));
	} else if (u16_at(checksum)) {
		uint16_t sum = updated(checksum, change);
		put16(checksum, sum ? sum : 0xffff);
	}
	memcpy(frame, &way->destination, 6);
	memcpy(frame + 6, &way->own, 6);
	return -1;
}

static __rte_noinline const struct backend *new_connection(struct worker *worker, const struct tables *tables,
							   struct table *table, const void *flow, bool v6, uint32_t now,
							   uint16_t *entropy, int *drop)
{
	uint64_t hash = maglev_hash(flow, v6 ? sizeof(struct flow6) : sizeof(struct flow4));
	int32_t id = tables_destination(tables, v6, flow, hash);
	if (id < 0) {
		*drop = id == EMPTY ? NO_BACKEND : NO_VIP;
		return NULL;
	}
	const struct backend *backend = &tables->backends[id];
	*entropy = hash;
	int32_t at = rte_hash_add_key(table->keys, flow);
	if (at < 0) {
		worker->counters[FULL]++;
		return backend;
	}
	/* Not if an earlier packet of the burst has brought it. */
	if (!table->connections[at].here)
		worker->vips[backend->vip].new++;
	table->connections[at] = (struct connection){.backend = id, .seen = now, .entropy = hash, .here = true};
	return backend;
}

/* The packets of one version in a burst. */
struct lane {
	const uint8_t *keys[BURST];
	uint32_t denied[BURST];
	int32_t at[BURST];
	uint32_t count;
};

static inline void look_up(const struct rte_acl_ctx *deny, const struct table *table, struct lane *lane)
{
	if (!lane->count)
		return;
	if (deny)
		rte_acl_classify(deny, lane->keys, lane->denied, lane->count, 1);
	rte_hash_lookup_bulk(table->keys, (const void **)lane->keys, lane->count, lane->at);
}

static inline uint16_t balance(struct worker *worker, const struct tables *tables, struct rte_mbuf **packets,
			       uint16_t count, uint32_t now)
{
	struct flow4 flows4[BURST];
	struct flow6 flows6[BURST];
	struct lane of4, of6;
	uint8_t versions[BURST];
	uint16_t kept = 0;
	of4.count = of6.count = 0;
	for (uint16_t at = 0; at < count; at++) {
		if (at + AHEAD < count)
			rte_prefetch0(rte_pktmbuf_mtod(packets[at + AHEAD], void *));
		versions[at] = parse(packets[at], &flows4[of4.count], &flows6[of6.count]);
		if (versions[at] == V4) {
			of4.keys[of4.count] = (uint8_t *)&flows4[of4.count];
			of4.count++;
		} else if (versions[at] == V6) {
			of6.keys[of6.count] = (uint8_t *)&flows6[of6.count];
			of6.count++;
		}
	}
	if (!tables->deny4)
		memset(of4.denied, 0, of4.count * sizeof(*of4.denied));
	if (!tables->deny6)
		memset(of6.denied, 0, of6.count * sizeof(*of6.denied));
	look_up(tables->deny4, &worker->of4, &of4);
	look_up(tables->deny6, &worker->of6, &of6);
	uint32_t next4 = 0, next6 = 0;
	for (uint16_t at = 0; at < count; at++) {
		struct rte_mbuf *m = packets[at];
		int drop = OTHER;
		if (versions[at] != NEITHER) {
			bool v6 = versions[at] == V6;
			struct lane *lane = v6 ? &of6 : &of4;
			struct table *table = v6 ? &worker->of6 : &worker->of4;
			uint32_t mine = v6 ? next6++ : next4++;
			const struct backend *backend = NULL;
			uint16_t entropy = 0;
			drop = DENIED;
			if (!lane->denied[mine]) {
				if (likely(lane->at[mine] >= 0)) {
					struct connection *known = &table->connections[lane->at[mine]];
					known->seen = now;
					entropy = known->entropy;
					if (likely(known->backend < tables->backend_count &&
						   tables->backends[known->backend].here))
						backend = &tables->backends[known->backend];
				}
				if (unlikely(!backend))
					backend = new_connection(worker, tables, table, lane->keys[mine], v6, now,
								 &entropy, &drop);
			}
			if (likely(backend != NULL)) {
				uint32_t len = m->pkt_len;
				drop = backend->way.kind <= TUNNEL6 ? tunnel(&backend->way, m, tables->mtu, entropy) :
								      translate(&backend->way, m);
				if (likely(drop < 0)) {
					worker->vips[backend->vip].packets++;
					worker->vips[backend->vip].bytes += len;
					packets[kept++] = m;
					continue;
				}
			}
		}
		worker->counters[drop]++;
		rte_pktmbuf_free(m);
	}
	return kept;
}

static int work(void *argument)
{
	struct worker *worker = argument;
	rte_rcu_qsbr_thread_register(qsbr, worker->reader);
	rte_rcu_qsbr_thread_online(qsbr, worker->reader);
	while (!stop) {
		uint32_t now = rte_rdtsc() >> 20;
		const struct tables *tables = __atomic_load_n(&current, __ATOMIC_ACQUIRE);
		for (uint32_t lane = 0; lane < worker->lane_count; lane++) {
			struct rte_mbuf *packets[BURST];
			uint16_t port = worker->lanes[lane].port, queue = worker->lanes[lane].queue;
			uint16_t received = rte_eth_rx_burst(port, queue, packets, BURST);
			if (!received)
				continue;
			worker->counters[RECEIVED] += received;
			uint16_t kept = balance(worker, tables, packets, received, now);
			uint16_t sent = kept ? rte_eth_tx_burst(port, queue, packets, kept) : 0;
			if (unlikely(sent < kept)) {
				worker->counters[UNSENT] += kept - sent;
				rte_pktmbuf_free_bulk(packets + sent, kept - sent);
			}
		}
		if (now != worker->aged) {
			worker->aged = now;
			age(worker, &worker->of4, now, tables->idle);
			age(worker, &worker->of6, now, tables->idle);
		}
		rte_rcu_qsbr_quiescent(qsbr, worker->reader);
	}
	rte_rcu_qsbr_thread_offline(qsbr, worker->reader);
	return 0;
}

static bool reload(void)
{
	struct config *config = config_read(config_file);
	if (!config)
		return false;
	struct tables *new = tables_new(config, &own);
	config_free(config);
	if (!new)
		return false;
	struct tables *old = __atomic_exchange_n(&current, new, __ATOMIC_ACQ_REL);
	if (old) {
		rte_rcu_qsbr_synchronize(qsbr, RTE_QSBR_THRID_INVALID);
		tables_free(old);
	}
	return true;
}

static void *control(void *argument)
{
	(void)argument;
	while (!stop) {
		if (hangup) {
			hangup = false;
			printf(reload() ? "reloaded %s\n" : "%s is not loaded\n", config_file);
			fflush(stdout);
		}
		usleep(10000);
	}
	return NULL;
}

static void on_signal(int number)
{
	if (number == SIGHUP)
		hangup = true;
	else
		stop = true;
}

static uint16_t port_start(uint16_t port, struct rte_mempool *pool, uint16_t queues)
{
	struct rte_eth_dev_info info;
	struct rte_eth_conf conf = {0};
	if (rte_eth_dev_info_get(port, &info))
		rte_exit(1, "port %u\n", port);
	queues = RTE_MIN(queues, RTE_MIN(info.max_rx_queues, info.max_tx_queues));
	if (queues > 1) {
		conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		conf.rx_adv_conf.rss_conf.rss_hf =
			(RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP) & info.flow_type_rss_offloads;
	}
	uint16_t rx = RING, tx = RING;
	if (rte_eth_dev_configure(port, queues, queues, &conf) || rte_eth_dev_adjust_nb_rx_tx_desc(port, &rx, &tx))
		rte_exit(1, "port %u\n", port);
	for (uint16_t queue = 0; queue < queues; queue++)
		if (rte_eth_rx_queue_setup(port, queue, rx, SOCKET_ID_ANY, NULL, pool) ||
		    rte_eth_tx_queue_setup(port, queue, tx, SOCKET_ID_ANY, NULL))
			rte_exit(1, "port %u\n", port);
	if (rte_eth_dev_start(port))
		rte_exit(1, "port %u does not start\n", port);
	rte_eth_promiscuous_enable(port);
	return queues;
}

static void options_of(int argc, char **argv)
{
	static const struct option longs[] = {{"config", 1, 0, 'c'}, {"connections", 1, 0, 'n'}, {0}};
	for (int option; (option = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
		if (option == 'c')
			config_file = optarg;
		else if (option == 'n')
			connections = strtoul(optarg, NULL, 10);
		else
			rte_exit(1, "l4lb-c [EAL options] -- [--config FILE] [--connections N]\n");
	}
}

int main(int argc, char **argv)
{
	int taken = rte_eal_init(argc, argv);
	if (taken < 0)
		rte_exit(1, "EAL did not start\n");
	options_of(argc - taken, argv + taken);
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	signal(SIGHUP, on_signal);
	uint32_t lcores = rte_lcore_count(), ports = rte_eth_dev_count_avail();
	if (!ports || ports > MOST_PORTS)
		rte_exit(1, "1 to %d ports, not %u\n", MOST_PORTS, ports);
	uint32_t count = ports * lcores * 2 * RING + lcores * (CACHE + 64) + RING;
	struct rte_mempool *pool =
		rte_pktmbuf_pool_create("packets", RTE_MAX(count, 8191u), CACHE, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	qsbr = rte_zmalloc("qsbr", rte_rcu_qsbr_get_memsize(RTE_MAX_LCORE), RTE_CACHE_LINE_SIZE);
	if (!pool || !qsbr || rte_rcu_qsbr_init(qsbr, RTE_MAX_LCORE))
		rte_exit(1, "no memory\n");
	unsigned lcore, next = 0, order[RTE_MAX_LCORE], number = 0;
	RTE_LCORE_FOREACH(lcore) {
		struct worker *worker = rte_zmalloc("worker", sizeof(*worker), RTE_CACHE_LINE_SIZE);
		if (!worker)
			rte_exit(1, "no memory\n");
		table_new(&worker->of4, "flows4", sizeof(struct flow4), lcore);
		table_new(&worker->of6, "flows6", sizeof(struct flow6), lcore);
		worker->reader = lcore;
		workers[lcore] = worker;
		order[number++] = lcore;
	}
	uint16_t port;
	RTE_ETH_FOREACH_DEV(port) {
		uint16_t queues = port_start(port, pool, lcores);
		for (uint16_t queue = 0; queue < queues; queue++) {
			struct worker *worker = workers[order[next++ % number]];
			worker->lanes[worker->lane_count].port = port;
			worker->lanes[worker->lane_count++].queue = queue;
		}
	}
	rte_eth_macaddr_get(rte_eth_find_next(0), &own);
	if (!reload())
		rte_exit(1, "%s is not loaded\n", config_file);
	pthread_t thread;
	if (pthread_create(&thread, NULL, control, NULL))
		rte_exit(1, "no thread\n");
	RTE_LCORE_FOREACH_WORKER(lcore)
		rte_eal_remote_launch(work, workers[lcore], lcore);
	printf("%u ports on %u lcores\n", ports, lcores);
	fflush(stdout);
	work(workers[rte_get_main_lcore()]);
	rte_eal_mp_wait_lcore();
	pthread_join(thread, NULL);
	static const char *const names[] = {"other", "denied", "no_vip", "no_backend", "too_big",
					    "failed", "unsent", "received", "table_full", "connections_forgotten"};
	for (int counter = 0; counter < COUNTERS; counter++) {
		uint64_t sum = 0;
		RTE_LCORE_FOREACH(lcore)
			sum += workers[lcore]->counters[counter];
		printf("%s %lu\n", names[counter], sum);
	}
	RTE_ETH_FOREACH_DEV(port)
		rte_eth_dev_stop(port);
	rte_eal_cleanup();
	return 0;
}
