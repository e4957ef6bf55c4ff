/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LR_SAY_H
#define LR_SAY_H

#include <rte_log.h>

#define DRIVER "net_nearfree"

#define SAY(level, ...) rte_log(RTE_LOG_##level, RTE_LOGTYPE_USER1, DRIVER ": " __VA_ARGS__)

#endif
