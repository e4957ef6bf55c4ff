/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "self_test.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

bool self_testing;
uint64_t self_test_called;

const char *self_test_symbols(void)
{
	const ElfW(Sym) *symbol = NULL;
	Dl_info info;

	/* The pre-release and stable numbers may differ, year and month may not. */
	if (strncmp(rte_version(), "DPDK " ABI_RELEASE ".", strlen("DPDK " ABI_RELEASE ".")) != 0)
		return "the DPDK that is loaded is not release " ABI_RELEASE;
	if (dladdr1(rte_eth_devices, &info, (void **)&symbol, RTLD_DL_SYMENT) == 0 || symbol == NULL)
		return "the table of ports is not to be found";
	if (symbol->st_size != RTE_MAX_ETHPORTS * sizeof(struct abi_port))
		return "the size of a port is another one";
	return NULL;
}

const char *self_test_slot(const struct abi_port *port, const char *name)
{
	if (strncmp(port->data->name, name, RTE_ETH_NAME_MAX_LEN) != 0)
		return "the name of the port is somewhere else";
	if (port->data->port_id != (uint16_t)(port - rte_eth_devices))
		return "the number of the port is somewhere else";
	return NULL;
}

/* Whether `ask`, a call of the public API, led to this operation and to no other. */
#define LEADS_TO(op, ask) \
	(self_test_called = 0, (void)!(ask), self_test_called == UINT64_C(1) << (op))

/*
 * rte_eth_dev_info_get cannot be asked: it names the driver, which the bus enters after probing.
 * Configuring a port asks it, and refuses when its slot is empty.
 */
static const char *operations(const struct abi_port *port)
{
	const uint16_t id = port->data->port_id;
	struct rte_eth_stats stats;
	struct rte_eth_link link = {0};
	struct rte_ether_addr mac = {0};

	if (!LEADS_TO(OP_STATS_GET, rte_eth_stats_get(id, &stats)) ||
	    !LEADS_TO(OP_STATS_RESET, rte_eth_stats_reset(id)))
		return "statistics are in another slot";
	if (!LEADS_TO(OP_LINK_UPDATE, rte_eth_link_get_nowait(id, &link)) ||
	    link.link_speed != port->data->link.link_speed)
		return "the state of the link is somewhere else";
	if (!LEADS_TO(OP_PROMISCUOUS_ON, rte_eth_promiscuous_enable(id)) ||
	    !LEADS_TO(OP_PROMISCUOUS_OFF, rte_eth_promiscuous_disable(id)))
		return "the promiscuous mode is in another slot";
	if (!LEADS_TO(OP_TYPES, rte_eth_dev_get_supported_ptypes(id, UINT32_MAX, NULL, 0)))
		return "the types of packets are in another slot";
	if (rte_eth_macaddr_get(id, &mac) != 0 || !rte_is_same_ether_addr(&mac, port->data->macs))
		return "the MAC address is somewhere else";
	return NULL;
}

const char *self_test_port(struct abi_port *port)
{
	const char *wrong;

	self_testing = true;
	wrong = operations(port);
	self_testing = false;
	return wrong;
}
