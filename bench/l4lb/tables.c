/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_hash_crc.h>

#include "l4lb.h"

/* The key of a VIP's, or a backend's, end. */
struct end {
	uint8_t address[16];
	uint16_t port;
	uint8_t protocol;
	uint8_t v6;
};

/* Names of VIPs, and backends, whose numbers are their places: the same in every configuration. */
static char (*vip_names)[64];
static uint32_t vip_names_count;
static struct known {
	struct address vip, address;
	uint16_t vip_port, port;
	uint8_t protocol;
	bool back;
} *known;
static uint32_t known_count;
static uint64_t made;

static int vip_number(const char *name)
{
	for (uint32_t number = 0; number < vip_names_count; number++)
		if (!strcmp(vip_names[number], name))
			return number;
	if (vip_names_count == MOST_VIPS)
		return -1;
	vip_names = realloc(vip_names, (vip_names_count + 1) * sizeof(*vip_names));
	snprintf(vip_names[vip_names_count], sizeof(*vip_names), "%s", name);
	return vip_names_count++;
}

static int backend_number(const struct vip_config *vip, const struct address *address, uint16_t port, bool back)
{
	struct known wanted;
	memset(&wanted, 0, sizeof(wanted));
	wanted.vip = vip->address;
	wanted.vip_port = vip->port;
	wanted.protocol = vip->protocol;
	wanted.address = *address;
	wanted.port = port;
	wanted.back = back;
	for (uint32_t number = 0; number < known_count; number++)
		if (!memcmp(&known[number], &wanted, sizeof(wanted)))
			return number;
	if (known_count == MOST_BACKENDS)
		return -1;
	known = realloc(known, (known_count + 1) * sizeof(*known));
	known[known_count] = wanted;
	return known_count++;
}

uint64_t maglev_hash(const void *bytes, uint32_t len)
{
	uint64_t hash = 0xcbf29ce484222325;
	for (uint32_t at = 0; at < len; at++)
		hash = (hash ^ ((const uint8_t *)bytes)[at]) * 0x100000001b3;
	hash = (hash ^ hash >> 33) * 0xff51afd7ed558ccd;
	hash = (hash ^ hash >> 33) * 0xc4ceb9fe1a85ec53;
	return hash ^ hash >> 33;
}

static uint32_t prime_from(uint32_t least)
{
	for (;; least++) {
		uint32_t divisor = 2;
		while (divisor * divisor <= least && least % divisor)
			divisor++;
		if (divisor * divisor > least)
			return least;
	}
}

static void maglev_new(struct vip *vip, const struct vip_config *config)
{
	if (!config->count)
		return;
	uint32_t least = config->count > PLACES / 100 ? config->count * 100 : PLACES;
	uint32_t len = prime_from(least), next[config->count], skip[config->count], order[config->count];
	char names[config->count][INET6_ADDRSTRLEN + 8];
	for (uint32_t number = 0; number < config->count; number++) {
		const struct to *to = &config->to[number];
		char address[INET6_ADDRSTRLEN];
		inet_ntop(to->address.v6 ? AF_INET6 : AF_INET, to->address.bytes, address, sizeof(address));
		int bytes = snprintf(names[number], sizeof(names[number]), "%s %u", address, to->port);
		uint64_t hash = maglev_hash(names[number], bytes);
		next[number] = (hash >> 32) % len;
		skip[number] = (uint32_t)hash % (len - 1) + 1;
		/* By name, so that the order of the file does not matter. */
		uint32_t place = number;
		for (; place > 0 && strcmp(names[order[place - 1]], names[number]) > 0; place--)
			order[place] = order[place - 1];
		order[place] = number;
	}
	vip->len = len;
	vip->places = malloc(len * sizeof(*vip->places));
	memset(vip->places, 0xff, len * sizeof(*vip->places));
	for (uint32_t place = 0; place < len; place++) {
		uint32_t number = order[place % config->count];
		while (vip->places[next[number]] != UINT16_MAX)
			next[number] = (next[number] + skip[number]) % len;
		vip->places[next[number]] = number;
	}
}

/* Rules over a flow: protocol, source, and both ports, which are one word. */
RTE_ACL_RULE_DEF(rule6, 7);
#define FIELD(number, kind, bytes, input, at) \
	{ .type = RTE_ACL_FIELD_TYPE_##kind, .size = bytes, .field_index = number, .input_index = input, .offset = at }
static const struct rte_acl_field_def fields4[] = {
	FIELD(0, BITMASK, 1, 0, 12), FIELD(1, MASK, 4, 1, 0), FIELD(2, RANGE, 2, 2, 8), FIELD(3, RANGE, 2, 2, 10),
};
static const struct rte_acl_field_def fields6[] = {
	FIELD(0, BITMASK, 1, 0, 36), FIELD(1, MASK, 4, 1, 0),  FIELD(2, MASK, 4, 2, 4),
	FIELD(3, MASK, 4, 3, 8),     FIELD(4, MASK, 4, 4, 12), FIELD(5, RANGE, 2, 5, 32),
	FIELD(6, RANGE, 2, 5, 34),
};

static uint32_t word(const uint8_t *bytes)
{
	return (uint32_t)bytes[0] << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3];
}

static bool rules_new(struct rte_acl_ctx **list, const struct config *config, bool v6)
{
	uint32_t words = v6 ? 4 : 1, count = 0;
	char name[32];
	snprintf(name, sizeof(name), "deny%d_%lu", v6 ? 6 : 4, made);
	uint32_t size = v6 ? RTE_ACL_RULE_SZ(7) : RTE_ACL_RULE_SZ(4);
	struct rte_acl_param param = {name, SOCKET_ID_ANY, size, RTE_MAX(config->rule_count, 1u)};
	struct rte_acl_ctx *context = rte_acl_create(&param);
	if (!context)
		return false;
	for (uint32_t number = 0; number < config->rule_count; number++) {
		const struct rule *given = &config->rules[number];
		if (given->source.v6 != v6)
			continue;
		struct rule6 rule = {.data = {.category_mask = 1, .priority = RTE_ACL_MAX_PRIORITY, .userdata = 1}};
		if (given->protocol >= 0) {
			rule.field[0].value.u8 = given->protocol;
			rule.field[0].mask_range.u8 = 0xff;
		}
		for (uint32_t at = 0; at < words; at++) {
			int bits = given->prefix_len - 32 * (int)at;
			rule.field[1 + at].value.u32 = word(given->source.bytes + 4 * at);
			rule.field[1 + at].mask_range.u32 = RTE_MIN(RTE_MAX(bits, 0), 32);
		}
		rule.field[1 + words].mask_range.u16 = UINT16_MAX;
		rule.field[2 + words].value.u16 = given->low;
		rule.field[2 + words].mask_range.u16 = given->high;
		if (rte_acl_add_rules(context, (struct rte_acl_rule *)&rule, 1))
			return false;
		count++;
	}
	if (!count) {
		rte_acl_free(context);
		return true;
	}
	struct rte_acl_config build = {.num_categories = 1, .num_fields = v6 ? RTE_DIM(fields6) : RTE_DIM(fields4)};
	memcpy(build.defs, v6 ? fields6 : fields4, v6 ? sizeof(fields6) : sizeof(fields4));
	*list = context;
	return rte_acl_build(context, &build) == 0;
}

static struct end end_of(const struct address *address, uint16_t port, uint8_t protocol)
{
	struct end end = {.port = port, .protocol = protocol, .v6 = address->v6};
	memcpy(end.address, address->bytes, address->v6 ? 16 : 4);
	return end;
}

static struct rte_hash *ends_new(const char *what)
{
	char name[32];
	snprintf(name, sizeof(name), "%s_%lu", what, made);
	struct rte_hash_parameters parameters = {
		.name = name, .entries = MOST_BACKENDS, .key_len = sizeof(struct end), .hash_func = rte_hash_crc,
		.socket_id = SOCKET_ID_ANY,
	};
	return rte_hash_create(&parameters);
}

static bool put(struct tables *tables, int number, struct backend *backend)
{
	if (number < 0)
		return false;
	if ((uint32_t)number >= tables->backend_count) {
		tables->backends = realloc(tables->backends, (number + 1) * sizeof(*backend));
		memset(tables->backends + tables->backend_count, 0, (number + 1 - tables->backend_count) * sizeof(*backend));
		tables->backend_count = number + 1;
	}
	backend->here = true;
	tables->backends[number] = *backend;
	return true;
}

static bool vip_new(struct tables *tables, const struct config *config, uint32_t at, const struct rte_ether_addr *own)
{
	const struct vip_config *given = &config->vips[at];
	int number = vip_number(given->name);
	struct vip *vip = &tables->vip[at];
	if (number < 0)
		return false;
	vip->backends = calloc(given->count, sizeof(*vip->backends));
	for (uint32_t to = 0; to < given->count; to++) {
		struct backend backend = {.vip = number};
		uint16_t port = given->mode == NAT && !given->to[to].port ? given->port : given->to[to].port;
		int id = backend_number(given, &given->to[to].address, port, false);
		way_to(&backend.way, given, &given->to[to], config, own);
		if (!put(tables, id, &backend))
			return false;
		vip->backends[to] = id;
		if (given->mode != NAT)
			continue;
		id = backend_number(given, &given->to[to].address, port, true);
		way_back(&backend.way, given, config, own);
		struct end end = end_of(&given->to[to].address, port, given->protocol);
		if (!put(tables, id, &backend) ||
		    rte_hash_add_key_data(tables->answers, &end, (void *)(uintptr_t)id))
			return false;
	}
	maglev_new(vip, given);
	struct end end = end_of(&given->address, given->port, given->protocol);
	return rte_hash_add_key_data(tables->vips, &end, (void *)(uintptr_t)at) == 0;
}

struct tables *tables_new(const struct config *config, const struct rte_ether_addr *own)
{
	struct tables *tables = calloc(1, sizeof(*tables));
	made++;
	tables->mtu = config->mtu;
	tables->idle = (config->idle_s * rte_get_tsc_hz()) >> 20;
	tables->vip = calloc(config->vip_count, sizeof(*tables->vip));
	tables->vip_count = config->vip_count;
	tables->vips = ends_new("vips");
	tables->answers = ends_new("answers");
	bool good = tables->vips && tables->answers && rules_new(&tables->deny4, config, false) &&
		    rules_new(&tables->deny6, config, true);
	for (uint32_t vip = 0; good && vip < config->vip_count; vip++)
		good = vip_new(tables, config, vip, own);
	if (good)
		return tables;
	tables_free(tables);
	return NULL;
}

void tables_free(struct tables *tables)
{
	for (uint32_t vip = 0; vip < tables->vip_count; vip++) {
		free(tables->vip[vip].places);
		free(tables->vip[vip].backends);
	}
	rte_acl_free(tables->deny4);
	rte_acl_free(tables->deny6);
	rte_hash_free(tables->vips);
	rte_hash_free(tables->answers);
	free(tables->vip);
	free(tables->backends);
	free(tables);
}

int32_t tables_destination(const struct tables *tables, bool v6, const void *flow, uint64_t hash)
{
	struct address destination = {.v6 = v6}, source = {.v6 = v6};
	const uint8_t *bytes = flow;
	uint32_t len = v6 ? 16 : 4;
	memcpy(source.bytes, bytes, len);
	memcpy(destination.bytes, bytes + len, len);
	const uint8_t *ports = bytes + 2 * len;
	struct end end = end_of(&destination, ports[2] << 8 | ports[3], ports[4]);
	void *data;
	if (rte_hash_lookup_data(tables->vips, &end, &data) >= 0) {
		const struct vip *vip = &tables->vip[(uintptr_t)data];
		return vip->len ? (int32_t)vip->backends[vip->places[(hash >> 32) * vip->len >> 32]] : EMPTY;
	}
	end = end_of(&source, ports[0] << 8 | ports[1], ports[4]);
	return rte_hash_lookup_data(tables->answers, &end, &data) >= 0 ? (int32_t)(uintptr_t)data : NOBODY;
}
