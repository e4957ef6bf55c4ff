/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A line is blank, a comment (# first), or a rule, of which the first that matches a packet counts:
 *
 *     @SOURCE/BITS DESTINATION/BITS LOW : HIGH LOW : HIGH PROTOCOL/MASK         denies
 *     RSOURCE/BITS DESTINATION/BITS LOW : HIGH LOW : HIGH PROTOCOL/MASK PORT    forwards
 *
 * The first range is the source's ports. Numbers are decimal, 0x... or octal. The port is read but not used: routes
 * decide where a packet leaves. As in l3fwd, ports are read 20 bytes after the beginning of the IPv4 header, even if
 * options are there.
 */
#include "acl_rules.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_common.h>

/* As many as l3fwd takes. */
#define MOST_RULES 100000
#define MOST_WORDS 11

enum field {
	PROTOCOL,
	SOURCE,
	DESTINATION,
	SOURCE_PORT,
	DESTINATION_PORT,
	FIELDS,
};

RTE_ACL_RULE_DEF(acl_rule, FIELDS);

/* Fields of the IPv4 header and the ports after it. librte_acl requires one byte first, and then words of four. */
static const struct rte_acl_field_def fields[FIELDS] = {
	[PROTOCOL] = {RTE_ACL_FIELD_TYPE_BITMASK, 1, PROTOCOL, 0, 9},
	[SOURCE] = {RTE_ACL_FIELD_TYPE_MASK, 4, SOURCE, 1, 12},
	[DESTINATION] = {RTE_ACL_FIELD_TYPE_MASK, 4, DESTINATION, 2, 16},
	[SOURCE_PORT] = {RTE_ACL_FIELD_TYPE_RANGE, 2, SOURCE_PORT, 3, 20},
	[DESTINATION_PORT] = {RTE_ACL_FIELD_TYPE_RANGE, 2, DESTINATION_PORT, 3, 22},
};

static bool
number(const char *word, unsigned long most, unsigned long *found)
{
	char *end;

	if (word == NULL || !isdigit((unsigned char)word[0]))
		return false;
	errno = 0;
	*found = strtoul(word, &end, 0);
	return errno == 0 && *end == '\0' && *found <= most;
}

/* Cut a word at its slash, and return the part after it. */
static char *
behind_slash(char *word)
{
	char *slash = strchr(word, '/');

	if (slash == NULL)
		return NULL;
	*slash = '\0';
	return slash + 1;
}

static bool
network(char *word, struct rte_acl_field *field)
{
	unsigned long bits;
	struct in_addr address;

	if (!number(behind_slash(word), 32, &bits) || inet_pton(AF_INET, word, &address) != 1)
		return false;
	field->value.u32 = rte_be_to_cpu_32(address.s_addr);
	field->mask_range.u32 = bits;
	return true;
}

/* Three words: LOW : HIGH. */
static bool
range(char *const words[], struct rte_acl_field *field)
{
	unsigned long low, high;

	if (!number(words[0], UINT16_MAX, &low) || strcmp(words[1], ":") != 0 ||
	    !number(words[2], UINT16_MAX, &high) || high < low)
		return false;
	field->value.u16 = low;
	field->mask_range.u16 = high;
	return true;
}

static bool
protocol(char *word, struct rte_acl_field *field)
{
	unsigned long value, mask;
	const char *text = behind_slash(word);

	if (!number(text, UINT8_MAX, &mask) || !number(word, UINT8_MAX, &value))
		return false;
	field->value.u8 = value;
	field->mask_range.u8 = mask;
	return true;
}

/* Return the error in a line, or NULL if it is a rule. */
static const char *
parse(char *line, struct acl_rule *rule)
{
	const bool forwards = line[0] == 'R';
	char *words[MOST_WORDS], *rest = line + 1, *word;
	unsigned int count = 0;
	unsigned long port;

	if (!forwards && line[0] != '@')
		return "begins neither with @ (deny) nor with R (forward) nor with #";
	while (count < MOST_WORDS && (word = strtok_r(rest, " \t\r\n", &rest)) != NULL)
		words[count++] = word;
	if (count != (forwards ? 10 : 9))
		return forwards ? "a rule that forwards has ten words" : "a rule that denies has nine words";
	if (!network(words[0], &rule->field[SOURCE]))
		return "the source is no network such as 10.0.0.0/8";
	if (!network(words[1], &rule->field[DESTINATION]))
		return "the destination is no network such as 10.0.0.0/8";
	if (!range(words + 2, &rule->field[SOURCE_PORT]))
		return "the source's ports are no range such as 0 : 65535";
	if (!range(words + 5, &rule->field[DESTINATION_PORT]))
		return "the destination's ports are no range such as 0 : 65535";
	if (!protocol(words[8], &rule->field[PROTOCOL]))
		return "the protocol and its mask are not such as 6/0xff";
	if (forwards && !number(words[9], UINT16_MAX, &port))
		return "the port is no number";
	rule->data.userdata = forwards ? ACL_FORWARD : ACL_DENY;
	return NULL;
}

/* Add each rule of the file. Return how many, or -1 after printing the error. */
static int
add_rules(FILE *file, const char *path, struct rte_acl_ctx *list)
{
	struct acl_rule rule = {.data = {.category_mask = 1}};
	unsigned int at = 0;
	const char *wrong;
	char line[512];
	int count = 0;

	while (fgets(line, sizeof(line), file) != NULL) {
		at++;
		if (line[0] == '#' || line[strspn(line, " \t\r\n")] == '\0')
			continue;
		wrong = parse(line, &rule);
		if (wrong == NULL && count == MOST_RULES)
			wrong = "more than 100000 rules";
		/* An earlier rule takes precedence. */
		rule.data.priority = RTE_ACL_MAX_PRIORITY - count;
		if (wrong == NULL && rte_acl_add_rules(list, (struct rte_acl_rule *)&rule, 1) != 0)
			wrong = "librte_acl does not take the rule";
		if (wrong != NULL) {
			fprintf(stderr, "linerate: %s: line %u: %s\n", path, at, wrong);
			return -1;
		}
		count++;
	}
	if (count == 0)
		fprintf(stderr, "linerate: %s: there is no rule\n", path);
	return count == 0 ? -1 : count;
}

struct rte_acl_ctx *
acl_rules_read(const char *path, int socket)
{
	struct rte_acl_config config = {.num_categories = 1, .num_fields = FIELDS};
	struct rte_acl_param param = {
		.socket_id = socket,
		.rule_size = RTE_ACL_RULE_SZ(FIELDS),
		.max_rule_num = MOST_RULES,
	};
	struct rte_acl_ctx *list;
	char name[RTE_ACL_NAMESIZE];
	FILE *file = fopen(path, "r");
	int ret;

	if (file == NULL) {
		fprintf(stderr, "linerate: %s: %s\n", path, strerror(errno));
		return NULL;
	}
	snprintf(name, sizeof(name), "pkt_acl-%d", socket);
	param.name = name;
	list = rte_acl_create(&param);
	if (list == NULL) {
		fprintf(stderr, "linerate: %s: no memory for the rules\n", path);
		fclose(file);
		return NULL;
	}
	ret = add_rules(file, path, list);
	fclose(file);
	if (ret > 0) {
		memcpy(config.defs, fields, sizeof(fields));
		ret = rte_acl_build(list, &config);
		if (ret == 0)
			return list;
		fprintf(stderr, "linerate: %s: the rules cannot be built: %s\n", path, strerror(-ret));
	}
	rte_acl_free(list);
	return NULL;
}
