/* Memory for secrets: excluded from core dumps, locked against swapping where the limits permit, and wiped
 * before it is freed.
 *
 * A block takes whole pages. pwi_memory_fail_after can make the allocation fail.
 */
#ifndef PWI_BASE_SECRET_H
#define PWI_BASE_SECRET_H

#include <stddef.h>

/* Returns zeroed memory; NULL if there is none. */
void *pwi_secret_alloc(size_t size);

/* `size` is the size given to pwi_secret_alloc. NULL is fine. */
void pwi_secret_free(void *secret, size_t size);

#endif
