/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of IPv4 rules in l3fwd's form, as access lists of librte_acl. */
#ifndef LINERATE_ACL_RULES_H
#define LINERATE_ACL_RULES_H

#include <rte_acl.h>

/* The list's result for a packet; 0: no rule matches it. */
enum acl_verdict {
	ACL_DENY = 1,
	ACL_FORWARD = 2,
};

/* Bytes of a packet that a lookup reads, from its IPv4 header on. */
#define ACL_INPUT_BYTES 24

/* A list of the file's rules in the memory of a NUMA node; NULL after printing the error and its line. */
struct rte_acl_ctx *acl_rules_read(const char *path, int socket);

#endif
