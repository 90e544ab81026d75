/* What the links of one identity use together on one shard: how many they are, and how many bytes they move.
 *
 * Bytes are a bucket that fills with the rate, and holds a second's worth. Requests and answers are taken from it when they
 * are known, so it may be overdrawn once; then everything is refused until it has filled again.
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

/* One link more, with the limits that its rights have now. Rights without quotas need no account: `*account_out` is NULL.
 * PAWL_QUOTA_LINKS, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_quota_account_enter(struct pwi_quota_accounts *accounts, const char *identity,
                                                  const struct pwi_rights *rights, int64_t now,
                                                  struct pwi_quota_account **account_out);
void pwi_quota_account_leave(struct pwi_quota_accounts *accounts, struct pwi_quota_account *account); /* NULL is fine */
void pwi_quota_accounts_fini(struct pwi_quota_accounts *accounts);

/* The limits have changed. */
void pwi_quota_account_limit(struct pwi_quota_account *account, const struct pwi_rights *rights);

/* False: the bucket is overdrawn. NULL may. */
bool pwi_quota_account_may(struct pwi_quota_account *account, int64_t now);
void pwi_quota_account_take(struct pwi_quota_account *account, uint64_t bytes, int64_t now);

#endif
