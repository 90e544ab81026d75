/* Quotas: the number of links of one identity to one shard, and the bytes that they move.
 *
 * Bytes are counted by a token bucket, which holds the tokens of one second. Requests and answers take their
 * tokens when their size is known, so one request can overdraw the bucket. Then requests are refused until
 * the bucket has filled.
 */
#ifndef PWI_SERVER_QUOTA_H
#define PWI_SERVER_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

#include <pawl/status.h>

#include "protocol/rights.h"

struct pwi_quota_account;

struct pwi_quota_accounts {
  struct pwi_quota_account *first;
};

/* Adds a link, and sets the limits of its rights. `*account_out` is NULL if the rights have no quotas.
 * PAWL_QUOTA_LINKS, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_quota_account_enter(struct pwi_quota_accounts *accounts, const char *identity,
                                                  const struct pwi_rights *rights, int64_t now,
                                                  struct pwi_quota_account **account_out);
void pwi_quota_account_leave(struct pwi_quota_accounts *accounts,
                             struct pwi_quota_account *account); /* NULL is allowed */
void pwi_quota_accounts_fini(struct pwi_quota_accounts *accounts);

/* Sets other limits for a link that is up, and that stays up. `*account` may be NULL. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_quota_account_limit(struct pwi_quota_accounts *accounts, const char *identity,
                                                  const struct pwi_rights *rights, int64_t now,
                                                  struct pwi_quota_account **account);

/* False: the bucket is overdrawn. True for NULL. */
bool pwi_quota_account_may(struct pwi_quota_account *account, int64_t now);
void pwi_quota_account_take(struct pwi_quota_account *account, uint64_t bytes, int64_t now);

#endif
