/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a virtual port needs of DPDK's driver interface.
 *
 * Distributions install the symbols of that interface but not its headers (a DPDK built with
 * enable_driver_sdk has them). These are our own declarations of the few structs and slots that
 * port.c and nearfree.c touch, of the releases that Debian has. They are not believed: self_test.h compares them, before the
 * port is given to anybody, with what the libraries that are loaded really do.
 */
#ifndef LR_DRIVER_ABI_H
#define LR_DRIVER_ABI_H

#include <stdint.h>

#include <rte_dev.h>
#include <rte_ethdev.h>
#include <rte_version.h>

/* As rte_version() begins. */
#if RTE_VERSION >= RTE_VERSION_NUM(22, 11, 0, 0) && RTE_VERSION < RTE_VERSION_NUM(23, 3, 0, 0)
#define ABI_RELEASE "22.11"
#elif RTE_VERSION >= RTE_VERSION_NUM(24, 11, 0, 0) && RTE_VERSION < RTE_VERSION_NUM(25, 3, 0, 0)
#define ABI_RELEASE "24.11"
#define ABI_24
#elif RTE_VERSION >= RTE_VERSION_NUM(25, 11, 0, 0) && RTE_VERSION < RTE_VERSION_NUM(26, 3, 0, 0)
#define ABI_RELEASE "25.11"
#define ABI_24
#else
#error "the layout of DPDK's driver interface is known here for releases 22.11, 24.11 and 25.11"
#endif

/* A list's hooks: two pointers, whatever the list. */
struct abi_link {
	void *next;
	void **previous;
};

/* A driver as the vdev bus sees it. */
struct abi_vdev;
struct abi_vdev_driver {
	struct abi_link link;
	struct {
		struct abi_link link;
		const char *name;
		const char *alias;
	} driver;
	int (*probe)(struct abi_vdev *vdev);
	int (*remove)(struct abi_vdev *vdev);
	void *dma_map;
	void *dma_unmap;
	uint32_t flags;
};

/* The bus's device begins with its hook; the general device, which public functions read, follows. */
static inline struct rte_device *abi_device(struct abi_vdev *vdev)
{
	return (struct rte_device *)((char *)vdev + sizeof(struct abi_link));
}

/* Slots of the table of a port's operations that this driver fills; the others stay null. */
enum abi_op {
	OP_CONFIGURE = 0,
	OP_START = 1,
	OP_STOP = 2,
	OP_CLOSE = 5,
	OP_LINK_UPDATE = 7,
#ifdef ABI_24
	/* Speeds of lanes are before these. */
	OP_PROMISCUOUS_ON = 12,
	OP_PROMISCUOUS_OFF = 13,
	OP_MAC_SET = 18,
	OP_STATS_GET = 21,
	OP_STATS_RESET = 22,
	OP_INFO = 27,
	/* And buffers of others before these. */
	OP_TYPES = 34,
	OP_RX_SETUP = 45,
	OP_TX_SETUP = 49,
#else
	OP_PROMISCUOUS_ON = 9,
	OP_PROMISCUOUS_OFF = 10,
	OP_MAC_SET = 15,
	OP_STATS_GET = 18,
	OP_STATS_RESET = 19,
	OP_INFO = 24,
	OP_TYPES = 30,
	OP_RX_SETUP = 41,
	OP_TX_SETUP = 45,
#endif
	/* More than any release has: what lies behind the slots above is null. */
	OP_COUNT = 256,
};
typedef void (*abi_slot)(void);

/* The part of a port that processes may share, as far as it is used here. */
struct abi_port_data {
	char name[RTE_ETH_NAME_MAX_LEN];
	void **rx_queues;
	void **tx_queues;
	uint16_t rx_queue_count;
	uint16_t tx_queue_count;
	uint16_t sriov[3];
	void *driver_private;
	struct rte_eth_link link;
	struct rte_eth_conf conf;
	uint16_t mtu;
	uint32_t min_rx_buffer;
	uint64_t rx_alloc_failed;
	struct rte_ether_addr *macs;
	uint64_t mac_pools[RTE_ETH_NUM_RECEIVE_MAC_ADDR];
	struct rte_ether_addr *hash_macs;
	uint16_t port_id;
};

/* A port. */
struct abi_port {
	uint16_t (*rx_burst)(void *queue, struct rte_mbuf **pkts, uint16_t n);
	uint16_t (*tx_burst)(void *queue, struct rte_mbuf **pkts, uint16_t n);
	void *tx_prepare;
	void *rx_queue_count;
	void *rx_descriptor_status;
#ifdef ABI_24
	void *tx_queue_count;
#endif
	void *tx_descriptor_status;
#ifdef ABI_24
	void *recycle_tx_mbufs;
	void *recycle_rx_descriptors;
#endif
	struct abi_port_data *data;
	void *process_private;
	const abi_slot *ops;
#ifdef ABI_24
	void *flow_ops;
#endif
	struct rte_device *device;
	void *interrupt;
	struct abi_link callbacks;
	void *rx_callbacks[RTE_MAX_QUEUES_PER_PORT];
	void *tx_callbacks[RTE_MAX_QUEUES_PER_PORT];
	int state;
	void *security;
} __rte_cache_aligned;

/* Symbols of librte_ethdev and librte_bus_vdev that are meant for drivers. */
extern struct abi_port rte_eth_devices[];
struct abi_port *rte_eth_dev_allocate(const char *name);
struct abi_port *rte_eth_dev_allocated(const char *name);
void rte_eth_dev_probing_finish(struct abi_port *port);
int rte_eth_dev_release_port(struct abi_port *port);
void rte_vdev_register(struct abi_vdev_driver *driver);

#endif
