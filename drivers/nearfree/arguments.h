/* SPDX-License-Identifier: BSD-3-Clause */
/* What follows the name of a device on EAL's command line. */
#ifndef LR_ARGUMENTS_H
#define LR_ARGUMENTS_H

#include <stdint.h>

#define MAX_RING 4096

struct arguments {
	uint32_t size;
	uint32_t ring;
	uint32_t dense;
	uint32_t check;
	/* A path, the reader's to free; null unless a file was named. */
	char *frames;
};

/* 0, or less than 0 when it has said what is wrong; `frames` may be there then, too. */
int arguments_read(const char *text, struct arguments *arguments);

#endif
