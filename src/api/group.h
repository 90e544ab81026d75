/* Groups, for others in this room. */
#ifndef PWI_API_GROUP_H
#define PWI_API_GROUP_H

#include <pawl/group.h>

#include "role/client.h"

struct pwi_flow *pwi_group_flow(const struct pawl_group *group);
const char *pwi_group_name(const struct pawl_group *group); /* as the user writes it; lives as long as the pool */

#endif
