/* SPDX-License-Identifier: BSD-3-Clause */
#include "arguments.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_kvargs.h>
#include <rte_mbuf.h>

#include "say.h"

/* Few enough that the packets of two ports fit the first-level cache. */
#define DEFAULT_RING 32
/* The smallest Ethernet frame, without its FCS. */
#define DEFAULT_SIZE 60

/* A number from 1 to the largest allowed, in place of the largest. */
static int number(const char *key, const char *text, void *raw)
{
	uint32_t *value = raw;
	char *end;
	unsigned long found;

	errno = 0;
	found = text ? strtoul(text, &end, 10) : 0;
	if (text == NULL || errno != 0 || end == text || *end != '\0' || found < 1 || found > *value) {
		SAY(ERR, "%s=%s: a number from 1 to %" PRIu32 " is wanted\n", key, text ? text : "",
		    *value);
		return -EINVAL;
	}
	*value = found;
	return 0;
}

/* Reads a number into `value`, which is the default, unless it is not there. */
static int read_number(struct rte_kvargs *list, const char *key, uint32_t largest, uint32_t *value)
{
	if (rte_kvargs_count(list, key) == 0)
		return 0;
	*value = largest;
	return rte_kvargs_process(list, key, number, value);
}

static int read_frames(const char *key, const char *path, void *raw)
{
	struct arguments *arguments = raw;

	RTE_SET_USED(key);
	if (arguments->frames != NULL || path == NULL || *path == '\0') {
		SAY(ERR, "frames=FILE is wanted once\n");
		return -EINVAL;
	}
	arguments->frames = strdup(path);
	return arguments->frames ? 0 : -ENOMEM;
}

int arguments_read(const char *text, struct arguments *arguments)
{
	static const char *const keys[] = {"size", "ring", "dense", "frames", "check", NULL};
	struct rte_kvargs *list = rte_kvargs_parse(text ? text : "", keys);
	int ret = -EINVAL;

	if (list == NULL) {
		SAY(ERR, "arguments are size=BYTES, ring=PACKETS, dense=1, frames=FILE and check=1, not %s\n",
		    text);
		return ret;
	}
	*arguments = (struct arguments){.size = DEFAULT_SIZE, .ring = DEFAULT_RING};
	if (read_number(list, "size", RTE_MBUF_DEFAULT_DATAROOM, &arguments->size) == 0 &&
	    read_number(list, "ring", MAX_RING, &arguments->ring) == 0 &&
	    read_number(list, "dense", 1, &arguments->dense) == 0 &&
	    read_number(list, "check", 1, &arguments->check) == 0 &&
	    rte_kvargs_process(list, "frames", read_frames, arguments) == 0)
		ret = 0;
	if (ret == 0 && arguments->check && arguments->frames == NULL) {
		SAY(ERR, "check=1 is for ports with frames=FILE\n");
		ret = -EINVAL;
	}
	rte_kvargs_free(list);
	return ret;
}
