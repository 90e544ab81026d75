/* A context of items, inside. */
#ifndef PWI_API_ITEM_ITEM_H
#define PWI_API_ITEM_ITEM_H

#include <pawl/item.h>

#include "api/group.h"
#include "peer/item/item.h"

struct pawl_items {
  struct pwi_owned owned; /* must be first */
  struct pawl_group *group;
  struct pwi_items *engine;
  char *name;
  size_t size;
  uint64_t count;
  struct pwi_event event; /* opening and closing */
  bool is_closed;
};

#endif
