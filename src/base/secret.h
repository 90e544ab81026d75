/* Memory for secrets: it is left out of core dumps, kept from swap where the limits allow, and wiped before it is freed.
 *
 * A block takes whole pages. Like any other memory it can be lacking, and pwi_memory_fail_after reaches it.
 */
#ifndef PWI_BASE_SECRET_H
#define PWI_BASE_SECRET_H

#include <stddef.h>

/* Zeroed; NULL without memory. */
void *pwi_secret_alloc(size_t size);

/* `size` is what it was allocated with. NULL is fine. */
void pwi_secret_free(void *secret, size_t size);

#endif
