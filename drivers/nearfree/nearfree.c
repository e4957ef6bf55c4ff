/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_nearfree: virtual ports that cost next to nothing, for comparing what forwarders themselves
 * cost. Loaded by EAL's -d; then
 * --vdev=net_nearfree0[,size=BYTES][,ring=PACKETS][,dense=1][,frames=FILE[,check=1]].
 *
 * Each queue has a ring of packets. Receiving takes a burst out of it and sending on the same
 * queue number of the port puts a burst into it: two copies of pointers per burst and no work per
 * packet. What was sent on a port thus comes back from it, as it was sent: a wire that is bent
 * back, like net_ring with one ring in both directions.
 *
 * Ownership: a packet in the ring is the driver's, any other is not; so a forwarder may keep, free
 * or clone what it receives. A ring that runs low is topped up with fresh packets of the queue's
 * pool and never hands out less than was asked for, unless that pool is empty. What is sent into
 * a full ring, or into one that nobody receives from, is freed and counts as sent. Starting fills
 * each ring; stopping frees what is in it. With dense=1 fresh packets come from a pool of the
 * driver's own (dense.h) instead of the queue's.
 *
 * With frames=FILE packets hold the frames of a capture file, in turn (traffic.h). Each is written anew when it is
 * received, whatever was made of the packet before: the work per packet is to copy the frame. A packet that is sent and that
 * another one still owns, or that has several segments or another pool, is freed, and another one taken. Packets have the types, and
 * with the offloads that a port's user asks for the hashes and the state of the checksums that a NIC would tell. Queues of one port
 * share the frames by their hashes.
 *
 * With check=1 as well, each packet that is sent is looked at (check.h), which takes longer than all else.
 *
 * Threads: one may receive from a queue while another sends on it.
 *
 * Bytes are not counted, because that would be work per packet: they stay 0. A packet's `port` is that
 * of the port that took it from its pool.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_malloc.h>

#include "arguments.h"
#include "check.h"
#include "dense.h"
#include "driver_abi.h"
#include "port.h"
#include "say.h"
#include "self_test.h"
#include "traffic.h"

#define SPEED RTE_ETH_SPEED_NUM_100G

static void drop_own(struct nearfree *own)
{
	if (own == NULL)
		return;
	port_give_back(own);
	rte_free(own);
}

static void complete(struct abi_port *port, struct rte_device *device, struct nearfree *own)
{
	/* Locally administered, the port's number last. */
	own->mac = (struct rte_ether_addr){{0x02, 0x6c, 0x72, 0, 0, port->data->port_id}};
	port->device = device;
	port->data->driver_private = own;
	port->data->macs = &own->mac;
	port->data->link = (struct rte_eth_link){.link_speed = SPEED,
						 .link_duplex = RTE_ETH_LINK_FULL_DUPLEX,
						 .link_autoneg = RTE_ETH_LINK_FIXED,
						 .link_status = RTE_ETH_LINK_DOWN};
	port->ops = port_operations;
	port->rx_burst = own->traffic ? queue_receive_frames : queue_receive;
	port->tx_burst = own->traffic ? queue_transmit_frames : queue_transmit;
	rte_eth_dev_probing_finish(port);
}

#define FOREIGN "not the driver interface that this was written for: "

/* Memory, frames and checks of a port; null, and a message, where something cannot be had. */
static struct nearfree *make_own(const char *name, const struct arguments *arguments)
{
	struct nearfree *own = rte_zmalloc(DRIVER, sizeof(*own), RTE_CACHE_LINE_SIZE);

	if (own == NULL)
		return NULL;
	own->size = arguments->size;
	own->ring = arguments->ring;
	own->dense = arguments->dense ? dense_acquire() : NULL;
	own->traffic = arguments->frames ? traffic_acquire(arguments->frames) : NULL;
	own->check = own->traffic && arguments->check ? check_begin(name, own->traffic) : NULL;
	if ((arguments->dense && own->dense == NULL) || (arguments->frames && own->traffic == NULL) ||
	    (arguments->check && own->check == NULL)) {
		drop_own(own);
		return NULL;
	}
	/* In whole blocks. */
	if (own->traffic != NULL)
		own->size = RTE_ALIGN_CEIL(own->traffic->longest, TRAFFIC_BLOCK);
	return own;
}

static int make_port(struct rte_device *device, const char *name, const struct arguments *arguments)
{
	struct nearfree *own = make_own(name, arguments);
	struct abi_port *port = own ? rte_eth_dev_allocate(name) : NULL;
	const char *wrong = port ? self_test_slot(port, name) : NULL;

	if (port == NULL || wrong != NULL) {
		/* A slot that is not as expected may not be touched, not even to give it back. */
		if (wrong != NULL)
			SAY(ERR, FOREIGN "%s\n", wrong);
		drop_own(own);
		return port ? -ENOTSUP : -ENOMEM;
	}
	complete(port, device, own);
	wrong = self_test_port(port);
	if (wrong != NULL) {
		SAY(ERR, FOREIGN "%s\n", wrong);
		port_close(port);
		rte_eth_dev_release_port(port);
		return -ENOTSUP;
	}
	return 0;
}

static int probe(struct abi_vdev *vdev)
{
	struct rte_device *device = abi_device(vdev);
	const char *name = rte_dev_name(device);
	const char *wrong = self_test_symbols();
	struct arguments arguments = {0};
	int ret;

	if (wrong == NULL && (name == NULL || strncmp(name, DRIVER, strlen(DRIVER)) != 0))
		wrong = "the device of the bus is somewhere else";
	if (wrong != NULL) {
		SAY(ERR, FOREIGN "%s\n", wrong);
		return -ENOTSUP;
	}
	if (rte_eal_process_type() != RTE_PROC_PRIMARY)
		return -ENOTSUP;
	ret = arguments_read(rte_dev_devargs(device)->args, &arguments);
	if (ret == 0)
		ret = make_port(device, name, &arguments);
	free(arguments.frames);
	return ret;
}

static int remove_port(struct abi_vdev *vdev)
{
	struct abi_port *port = rte_eth_dev_allocated(rte_dev_name(abi_device(vdev)));

	if (port == NULL)
		return 0; /* closed before */
	port_close(port);
	return rte_eth_dev_release_port(port);
}

static struct abi_vdev_driver driver = {
	.driver = {.name = DRIVER},
	.probe = probe,
	.remove = remove_port,
};

RTE_INIT(register_driver)
{
	rte_vdev_register(&driver);
}
