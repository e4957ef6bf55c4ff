/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "l4lb.h"

enum { MOST_WORDS = 8 };

static bool address_of(const char *word, struct address *address)
{
	memset(address, 0, sizeof(*address));
	address->v6 = strchr(word, ':') != NULL;
	return inet_pton(address->v6 ? AF_INET6 : AF_INET, word, address->bytes) == 1;
}

static bool number_of(const char *word, unsigned long most, unsigned long *number)
{
	char *end;
	*number = strtoul(word, &end, 10);
	return *word >= '0' && *word <= '9' && *end == 0 && *number <= most;
}

static int protocol_of(const char *word)
{
	return !strcmp(word, "tcp") ? IPPROTO_TCP : !strcmp(word, "udp") ? IPPROTO_UDP : -1;
}

static bool rule_of(struct config *config, char **words, int count)
{
	unsigned long number, high;
	if (config->rule_count == MOST_RULES)
		return false;
	struct rule *rule = &config->rules[config->rule_count];
	char *slash = strchr(words[1], '/');
	if (!slash)
		return false;
	*slash = 0;
	if (!address_of(words[1], &rule->source) || !number_of(slash + 1, rule->source.v6 ? 128 : 32, &number))
		return false;
	rule->prefix_len = number;
	rule->protocol = -1;
	rule->low = 0;
	rule->high = UINT16_MAX;
	if (count > 2 && (rule->protocol = protocol_of(words[2])) < 0)
		return false;
	if (count > 3) {
		char *dash = strchr(words[3], '-');
		if (!dash)
			return false;
		*dash = 0;
		if (!number_of(words[3], UINT16_MAX, &number) || !number_of(dash + 1, UINT16_MAX, &high) || number > high)
			return false;
		rule->low = number;
		rule->high = high;
	}
	config->rule_count++;
	return count <= 4;
}

static bool vip_of(struct config *config, char **words, int count)
{
	static const char *const modes[] = {"ipip", "gre", "vxlan", "nat"};
	unsigned long port, vni = 0;
	config->vips = realloc(config->vips, (config->vip_count + 1) * sizeof(*config->vips));
	struct vip_config *vip = &config->vips[config->vip_count];
	memset(vip, 0, sizeof(*vip));
	snprintf(vip->name, sizeof(vip->name), "%s", words[1]);
	int protocol = protocol_of(words[2]);
	if (protocol < 0 || !address_of(words[3], &vip->address) || !number_of(words[4], UINT16_MAX, &port))
		return false;
	vip->protocol = protocol;
	vip->port = port;
	unsigned mode = 0;
	while (mode < RTE_DIM(modes) && strcmp(words[5], modes[mode]))
		mode++;
	if (mode == RTE_DIM(modes) || count != (mode == VXLAN ? 7 : 6))
		return false;
	if (mode == VXLAN && !number_of(words[6], 0xffffff, &vni))
		return false;
	vip->mode = mode;
	vip->vni = vni;
	config->vip_count++;
	return true;
}

static bool to_of(struct config *config, char **words, int count)
{
	unsigned long port = 0;
	if (!config->vip_count)
		return false;
	struct vip_config *vip = &config->vips[config->vip_count - 1];
	vip->to = realloc(vip->to, (vip->count + 1) * sizeof(*vip->to));
	struct to *to = &vip->to[vip->count];
	if (!address_of(words[1], &to->address) || rte_ether_unformat_addr(words[2], &to->mac) ||
	    (count > 3 && (vip->mode != NAT || !number_of(words[3], UINT16_MAX, &port))) || count > 4)
		return false;
	if (vip->mode == NAT && to->address.v6 != vip->address.v6)
		return false;
	to->port = port;
	vip->count++;
	return true;
}

static bool item(struct config *config, char **words, int count)
{
	struct address address;
	unsigned long number;
	if (!count)
		return true;
	if (!strcmp(words[0], "local") && count == 2 && address_of(words[1], &address)) {
		*(address.v6 ? &config->local6 : &config->local4) = address;
		return true;
	}
	if (!strcmp(words[0], "gateway") && count == 2)
		return rte_ether_unformat_addr(words[1], &config->gateway) == 0;
	if (!strcmp(words[0], "idle") && count == 2 && number_of(words[1], UINT32_MAX, &number)) {
		config->idle_s = number;
		return true;
	}
	if (!strcmp(words[0], "mtu") && count == 2 && number_of(words[1], UINT16_MAX, &number)) {
		config->mtu = number;
		return true;
	}
	if (!strcmp(words[0], "deny") && count >= 2)
		return rule_of(config, words, count);
	if (!strcmp(words[0], "vip") && count >= 6)
		return vip_of(config, words, count);
	if (!strcmp(words[0], "to") && count >= 3)
		return to_of(config, words, count);
	return false;
}

struct config *config_read(const char *file)
{
	FILE *in = fopen(file, "r");
	if (!in) {
		perror(file);
		return NULL;
	}
	struct config *config = calloc(1, sizeof(*config));
	config->idle_s = 60;
	config->mtu = 1500;
	char line[512];
	for (int number = 1; fgets(line, sizeof(line), in); number++) {
		char *words[MOST_WORDS + 1], *rest;
		int count = 0;
		line[strcspn(line, "#")] = 0;
		for (char *word = strtok_r(line, " \t\n", &rest); word && count <= MOST_WORDS;
		     word = strtok_r(NULL, " \t\n", &rest))
			words[count++] = word;
		if (!item(config, words, count)) {
			fprintf(stderr, "%s:%d: no item\n", file, number);
			config_free(config);
			config = NULL;
			break;
		}
	}
	fclose(in);
	return config;
}

void config_free(struct config *config)
{
	for (uint32_t vip = 0; vip < config->vip_count; vip++)
		free(config->vips[vip].to);
	free(config->vips);
	free(config);
}
