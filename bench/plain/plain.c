/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plain [EAL options] -- -p PORTMASK [-q NQ] [-T 0] [--no-mac-updating] [--burst-forwarding]
 *
 * A layer 2 forwarder in plain C that does what l2fwd does, written so that the compiler can keep in
 * registers what does not change from packet to packet: no data is global, and each lane's
 * state is copied to locals before its packets are processed. Compared with the distribution's l2fwd it
 * shows how much of a difference to Rust is due to C's aliasing (a store through a packet's pointer may change
 * any global, so every packet reads them anew) and how much to other causes.
 *
 * One lcore polls all ports. Packets leave through a buffer of 32 that is drained every 100 us, or
 * with --burst-forwarding as they came. There are no statistics screens.
 *
 * Compiled with -DSLOWED it is another program, slowed, with the option --slower PERCENT: after every
 * 20 us of work it spins until spinning takes this share of its total time. So its rate is lower by
 * that share, whatever else slows it down; with 0 it does the same without spinning.
 * This is true only while no other program uses the core, because the TSC goes on meanwhile.
 *
 * Compiled with -DCHAINED it is a third program, chained, with the option --chain N: after every burst it
 * does N additions, each of which needs the result of the one before. It reads no clock for them.
 * -DDEFAULT_CHAIN=N is what it does without the option.
 */
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_atomic.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

enum {
	BURST = 32,
	DESCRIPTORS = 1024,
	CACHE = 256,
	MIN_MBUFS = 8192,
	DRAIN_US = 100,
	STRETCH_US = 20,
};

#ifndef DEFAULT_CHAIN
#define DEFAULT_CHAIN 0
#endif

struct options {
	uint32_t ports;
	bool mac_updating;
	bool burst_forwarding;
	/* Spinning per time of work; 0 does not spin. */
	double spin;
	unsigned long chain;
};

struct counters {
	uint64_t received;
	uint64_t sent;
	uint64_t dropped;
};

/* From one port to another. */
struct lane {
	uint16_t in;
	uint16_t out;
	uint16_t pending;
	bool mac_updating;
	/* Destination and source address in a frame's byte order: 8 bytes, then 4. */
	uint64_t addresses_front;
	uint32_t addresses_back;
	struct rte_mbuf *buffer[BURST];
	struct counters counters;
} __rte_cache_aligned;

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
	RTE_SET_USED(number);
	stopped = 1;
}

static inline void write_addresses(struct rte_mbuf *mbuf, uint64_t front, uint32_t back)
{
	char *data = rte_pktmbuf_mtod(mbuf, char *);

	memcpy(data, &front, sizeof(front));
	memcpy(data + sizeof(front), &back, sizeof(back));
}

/* Offers packets once and frees those that the driver does not accept. */
static inline void offer(struct lane *lane, struct rte_mbuf **packets, uint16_t n)
{
	const uint16_t sent = rte_eth_tx_burst(lane->out, 0, packets, n);

	lane->counters.sent += sent;
	if (unlikely(sent < n)) {
		lane->counters.dropped += n - sent;
		rte_pktmbuf_free_bulk(packets + sent, n - sent);
	}
}

static inline void flush(struct lane *lane)
{
	const uint16_t n = lane->pending;

	lane->pending = 0;
	if (n > 0)
		offer(lane, lane->buffer, n);
}

static inline void forward_burst(struct lane *lane, struct rte_mbuf **packets, uint16_t n)
{
	const uint64_t front = lane->addresses_front;
	const uint32_t back = lane->addresses_back;

	if (lane->mac_updating)
		for (uint16_t i = 0; i < n; i++)
			write_addresses(packets[i], front, back);
	offer(lane, packets, n);
}

static inline void forward_buffered(struct lane *lane, struct rte_mbuf **packets, uint16_t n)
{
	const uint64_t front = lane->addresses_front;
	const uint32_t back = lane->addresses_back;
	const bool mac_updating = lane->mac_updating;
	uint16_t pending = lane->pending;

	for (uint16_t i = 0; i < n; i++) {
		if (mac_updating)
			write_addresses(packets[i], front, back);
		lane->buffer[pending++] = packets[i];
		if (pending == BURST) {
			offer(lane, lane->buffer, BURST);
			pending = 0;
		}
	}
	lane->pending = pending;
}

#ifdef SLOWED
/*
 * Spins in proportion to the work since the last call, and returns when it ended. The next
 * spin makes up for a spin that was too long or too short, the reading of the clock included.
 */
static inline uint64_t spin_after(uint64_t since, double share, double *owed)
{
	uint64_t now = rte_rdtsc();

	const uint64_t began = now;
	*owed += (double)(began - since) * share;
	while ((double)(now - began) < *owed)
		now = rte_rdtsc();
	*owed -= (double)(now - began);
	return now;
}
#endif

#ifdef CHAINED
/*
 * The barriers (LFENCE on x86) keep the processor from doing other work meanwhile. Without them, a few additions would
 * overlap with a burst's work and cost nothing, while each of many would cost its full time.
 */
static inline void work(unsigned long additions)
{
	uint64_t value = 1;

	rte_rmb();
	for (unsigned long i = 0; i < additions; i++) {
		value += i;
		__asm__ volatile("" : "+r"(value));
	}
	rte_rmb();
}
#endif

/* `burst_forwarding` is a constant at each call. */
static inline __attribute__((always_inline)) void
forward(struct lane *lanes, unsigned int count, bool burst_forwarding, const struct options *options)
{
	const uint64_t interval = (rte_get_tsc_hz() + US_PER_S - 1) / US_PER_S * DRAIN_US;
	struct rte_mbuf *packets[BURST];
	uint64_t drained = 0;
#ifdef SLOWED
	/* Long enough that a spin's overhead is negligible. */
	const uint64_t stretch = rte_get_tsc_hz() / US_PER_S * STRETCH_US;
	uint64_t worked = rte_rdtsc();
	double owed = 0;
#endif
#ifdef CHAINED
	const unsigned long chain = options->chain;
#endif
	RTE_SET_USED(options);

	while (!stopped) {
		const uint64_t now = rte_rdtsc();

		if (unlikely(now - drained > interval)) {
			for (unsigned int i = 0; i < count; i++)
				flush(&lanes[i]);
			drained = now;
		}
		for (unsigned int i = 0; i < count; i++) {
			struct lane *lane = &lanes[i];
			const uint16_t n = rte_eth_rx_burst(lane->in, 0, packets, BURST);

			if (n == 0)
				continue;
			lane->counters.received += n;
			if (burst_forwarding)
				forward_burst(lane, packets, n);
			else
				forward_buffered(lane, packets, n);
#ifdef CHAINED
			work(chain);
#endif
		}
#ifdef SLOWED
		if (now - worked > stretch)
			worked = spin_after(worked, options->spin, &owed);
#endif
	}
	for (unsigned int i = 0; i < count; i++)
		flush(&lanes[i]);
}

#ifdef SLOWED
/* The spinning time per time of work that costs this percentage of the rate. */
static double spin_for(const char *percent)
{
	char *end;
	const double share = strtod(percent, &end) / 100;

	if (end == percent || *end != '\0' || !(share >= 0 && share < 1))
		rte_exit(EXIT_FAILURE, "plain: --slower wants per cent, from 0 to below 100\n");
	return share / (1 - share);
}
#endif

#ifdef CHAINED
static unsigned long count_of(const char *text)
{
	char *end;
	const unsigned long found = strtoul(text, &end, 10);

	if (end == text || *end != '\0' || found > 1000000)
		rte_exit(EXIT_FAILURE, "plain: --chain wants a number, up to a million\n");
	return found;
}
#endif

/* Reads the options that follow EAL's. -q and -T are l2fwd's and change nothing here. */
static struct options read_options(int argc, char **argv)
{
	enum { NO_MAC_UPDATING = 256, BURST_FORWARDING, SLOWER, CHAIN };
	static const struct option longs[] = {
		{"no-mac-updating", no_argument, NULL, NO_MAC_UPDATING},
		{"burst-forwarding", no_argument, NULL, BURST_FORWARDING},
#ifdef SLOWED
		{"slower", required_argument, NULL, SLOWER},
#endif
#ifdef CHAINED
		{"chain", required_argument, NULL, CHAIN},
#endif
		{NULL, 0, NULL, 0},
	};
	struct options options = {.mac_updating = true, .chain = DEFAULT_CHAIN};
	int found;

	while ((found = getopt_long(argc, argv, "p:q:T:", longs, NULL)) != -1) {
		switch (found) {
		case 'p':
			options.ports = strtoul(optarg, NULL, 16);
			break;
		case 'q':
		case 'T':
			break;
		case NO_MAC_UPDATING:
			options.mac_updating = false;
			break;
		case BURST_FORWARDING:
			options.burst_forwarding = true;
			break;
#ifdef SLOWED
		case SLOWER:
			options.spin = spin_for(optarg);
			break;
#endif
#ifdef CHAINED
		case CHAIN:
			options.chain = count_of(optarg);
			break;
#endif
		default:
			exit(EXIT_FAILURE);
		}
	}
	if (options.ports == 0)
		rte_exit(EXIT_FAILURE, "plain: -p wants a hexadecimal mask of ports\n");
	return options;
}

static void must(int code, const char *what, uint16_t port)
{
	if (code < 0)
		rte_exit(EXIT_FAILURE, "plain: port %u: %s: %s\n", port, what,
			 rte_strerror(-code));
}

static void start(uint16_t port, struct rte_mempool *pool)
{
	const int socket = rte_eth_dev_socket_id(port);
	struct rte_eth_conf conf = {0};
	uint16_t rx = DESCRIPTORS, tx = DESCRIPTORS;

	must(rte_eth_dev_configure(port, 1, 1, &conf), "configure", port);
	must(rte_eth_dev_adjust_nb_rx_tx_desc(port, &rx, &tx), "descriptors", port);
	must(rte_eth_rx_queue_setup(port, 0, rx, socket, NULL, pool), "RX queue", port);
	must(rte_eth_tx_queue_setup(port, 0, tx, socket, NULL), "TX queue", port);
	must(rte_eth_dev_start(port), "start", port);
}

/* 02:00:00:00:00:PORT, and the address of the port that sends. */
static void set_addresses(struct lane *lane)
{
	uint8_t both[12] = {2, 0, 0, 0, 0, lane->out};
	struct rte_ether_addr source;

	must(rte_eth_macaddr_get(lane->out, &source), "MAC address", lane->out);
	memcpy(both + RTE_ETHER_ADDR_LEN, &source, RTE_ETHER_ADDR_LEN);
	memcpy(&lane->addresses_front, both, sizeof(lane->addresses_front));
	memcpy(&lane->addresses_back, both + sizeof(lane->addresses_front),
	       sizeof(lane->addresses_back));
}

/* Neighbours are paired, the last of an odd number with itself. */
static unsigned int wire(struct lane *lanes, const struct options *options)
{
	unsigned int count = 0;
	uint16_t port;

	RTE_ETH_FOREACH_DEV(port)
		if (port < 32 && (options->ports >> port & 1) != 0)
			lanes[count++].in = port;
	for (unsigned int i = 0; i < count; i++) {
		lanes[i].out = lanes[(i ^ 1) < count ? i ^ 1 : i].in;
		lanes[i].mac_updating = options->mac_updating;
	}
	return count;
}

static struct lane lanes[RTE_MAX_ETHPORTS];

int main(int argc, char **argv)
{
	const int used = rte_eal_init(argc, argv);
	struct options options;
	struct rte_mempool *pool;
	unsigned int count, mbufs;

	if (used < 0)
		rte_exit(EXIT_FAILURE, "plain: EAL did not start\n");
	options = read_options(argc - used, argv + used);
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	count = wire(lanes, &options);
	if (count == 0)
		rte_exit(EXIT_FAILURE, "plain: none of the ports of -p is there\n");
	mbufs = RTE_MAX(count * (2 * DESCRIPTORS + BURST + CACHE), (unsigned int)MIN_MBUFS);
	pool = rte_pktmbuf_pool_create("mbuf_pool", mbufs, CACHE, 0, RTE_MBUF_DEFAULT_BUF_SIZE,
				       rte_socket_id());
	if (pool == NULL)
		rte_exit(EXIT_FAILURE, "plain: no pool: %s\n", rte_strerror(rte_errno));
	for (unsigned int i = 0; i < count; i++)
		start(lanes[i].in, pool);
	for (unsigned int i = 0; i < count; i++)
		set_addresses(&lanes[i]);
	if (options.burst_forwarding)
		forward(lanes, count, true, &options);
	else
		forward(lanes, count, false, &options);
	for (unsigned int i = 0; i < count; i++) {
		const struct counters *counters = &lanes[i].counters;

		must(rte_eth_dev_stop(lanes[i].in), "stop", lanes[i].in);
		printf("port %u to %u: received %" PRIu64 " sent %" PRIu64 " dropped %" PRIu64 "\n",
		       lanes[i].in, lanes[i].out, counters->received, counters->sent,
		       counters->dropped);
	}
	/* Every packet is back, the ports' own included. */
	printf("pool: %u of %u\n", rte_mempool_avail_count(pool), mbufs);
	for (unsigned int i = 0; i < count; i++)
		must(rte_eth_dev_close(lanes[i].in), "close", lanes[i].in);
	return EXIT_SUCCESS;
}
