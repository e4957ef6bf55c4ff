/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The native fast path repeats the inline functions of a release build. Headers configured with checks,
 * counters or traces inside those functions would silently lose them: stop instead.
 *
 * layout.c is compiled before anything else is, so that this is all that a build has to say.
 */
#ifndef LR_OPTIONS_H
#define LR_OPTIONS_H

#include <rte_ethdev.h> /* also turns the old RTE_LIBRTE_ETHDEV_DEBUG into the two new ones */

#ifdef RTE_ETHDEV_DEBUG_RX
#error "this DPDK has RTE_ETHDEV_DEBUG_RX, which linerate's native rx_burst leaves out: build against one without"
#endif
#ifdef RTE_ETHDEV_DEBUG_TX
#error "this DPDK has RTE_ETHDEV_DEBUG_TX, which linerate's native tx_burst leaves out: build against one without"
#endif
#ifdef RTE_LIBRTE_MBUF_DEBUG
#error "this DPDK has RTE_LIBRTE_MBUF_DEBUG, which linerate's native mbuf functions leave out: build against one without"
#endif
#ifdef RTE_MBUF_HISTORY_DEBUG /* from 25.11 on */
#error "this DPDK has RTE_MBUF_HISTORY_DEBUG, which linerate's native mbuf functions leave out: build against one without"
#endif
#ifdef RTE_LIBRTE_MEMPOOL_DEBUG
#error "this DPDK has RTE_LIBRTE_MEMPOOL_DEBUG, which linerate's native mempool functions leave out: build against one without"
#endif
#ifdef RTE_LIBRTE_MEMPOOL_STATS
#error "this DPDK has RTE_LIBRTE_MEMPOOL_STATS, which linerate's native mempool functions leave out: build against one without"
#endif
#ifdef RTE_LIBRTE_LPM_DEBUG
#error "this DPDK has RTE_LIBRTE_LPM_DEBUG, which linerate's native lookups leave out: build against one without"
#endif
#ifdef RTE_LIBRTE_RCU_DEBUG
#error "this DPDK has RTE_LIBRTE_RCU_DEBUG, which linerate's native RCU functions leave out: build against one without"
#endif
#ifdef RTE_ENABLE_ASSERT
#error "this DPDK has RTE_ENABLE_ASSERT, which linerate's native functions leave out: build against one without"
#endif
#ifdef RTE_ENABLE_TRACE_FP
#error "this DPDK has RTE_ENABLE_TRACE_FP, which linerate's native functions leave out: build against one without"
#endif
#ifndef RTE_ETHDEV_RXTX_CALLBACKS
#error "this DPDK lacks RTE_ETHDEV_RXTX_CALLBACKS (a default), which linerate's native bursts rely on: build against one with it"
#endif
#ifndef RTE_MBUF_REFCNT_ATOMIC
#error "this DPDK lacks RTE_MBUF_REFCNT_ATOMIC (a default), which linerate's packets rely on: build against one with it"
#endif

#endif
