/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether the declarations of driver_abi.h are those of the DPDK that is loaded. Each check sets or
 * expects something on our side of the interface and asks for it by a public function.
 */
#ifndef LR_SELF_TEST_H
#define LR_SELF_TEST_H

#include <stdbool.h>

#include "driver_abi.h"

/* Null when the symbols are as expected; else what is wrong. Needs no port. */
const char *self_test_symbols(void);

/* As above, for a port that rte_eth_dev_allocate has just given out under this name. */
const char *self_test_slot(const struct abi_port *port, const char *name);

/* As above, for a port that is complete. Calls operations by the public API; while
 * `self_testing` is true they only note in `self_test_called` that they were called. */
const char *self_test_port(struct abi_port *port);

extern bool self_testing;
extern uint64_t self_test_called;

/* To be the first thing in each operation that the test calls: true when it is to do no more. */
static inline bool self_test_note(enum abi_op op)
{
	if (self_testing)
		self_test_called |= UINT64_C(1) << op;
	return self_testing;
}

#endif
