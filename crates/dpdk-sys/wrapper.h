/* SPDX-License-Identifier: BSD-3-Clause */
/* The headers that bindgen reads. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* without it rte_lcore.h has no CPU sets */
#endif

#include <rte_acl.h>
#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_fib.h>
#include <rte_fib6.h>
#include <rte_graph_worker.h>
#include <rte_hash.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_lpm.h>
#include <rte_lpm6.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_mempool.h>
#include <rte_node_eth_api.h>
#include <rte_node_ip4_api.h>
#include <rte_pdump.h>
#include <rte_rcu_qsbr.h>
#include <rte_rib.h>
#include <rte_rib6.h>
#include <rte_ring.h>
#include <rte_telemetry.h>
#include <rte_version.h>

#include "shim.h"
