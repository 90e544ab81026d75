#include "server/quota.h"

#include <string.h>

#include "base/memory.h"

#define SECOND INT64_C(1000000000)

struct pwi_quota_account {
  struct pwi_quota_account *next;
  uint64_t links, rate; /* rate 0: no limit */
  double left;          /* bytes; below zero: overdrawn */
  int64_t at;           /* time of `left` */
  char identity[];
};

static struct pwi_quota_account *find(const struct pwi_quota_accounts *accounts, const char *identity) {
  struct pwi_quota_account *account = accounts->first;
  while (account && strcmp(account->identity, identity) != 0) account = account->next;
  return account;
}

static struct pwi_quota_account *make(struct pwi_quota_accounts *accounts, const char *identity, int64_t now) {
  size_t size = strlen(identity) + 1;
  struct pwi_quota_account *account = pwi_alloc_zero(1, sizeof *account + size);
  if (!account) return NULL;
  memcpy(account->identity, identity, size);
  account->at = now;
  account->next = accounts->first;
  accounts->first = account;
  return account;
}

pawl_status pwi_quota_account_limit(struct pwi_quota_accounts *accounts, const char *identity,
                                    const struct pwi_rights *rights, int64_t now, struct pwi_quota_account **account) {
  if (!*account && rights->connections == 0 && rights->rate == 0) return PAWL_OK;
  struct pwi_quota_account *own = *account ? *account : find(accounts, identity);
  if (!own) own = make(accounts, identity, now);
  if (!own) return PAWL_NO_MEMORY;
  own->links += !*account;
  if (own->rate == 0) own->left = (double)rights->rate;
  own->rate = rights->rate;
  *account = own;
  return PAWL_OK;
}

pawl_status pwi_quota_account_enter(struct pwi_quota_accounts *accounts, const char *identity,
                                    const struct pwi_rights *rights, int64_t now,
                                    struct pwi_quota_account **account_out) {
  const struct pwi_quota_account *account = find(accounts, identity);
  *account_out = NULL;
  if (account && rights->connections > 0 && account->links >= rights->connections) return PAWL_QUOTA_LINKS;
  return pwi_quota_account_limit(accounts, identity, rights, now, account_out);
}

/* An overdrawn account outlives its links, so that reconnecting does not refill it. */
void pwi_quota_account_leave(struct pwi_quota_accounts *accounts, struct pwi_quota_account *account) {
  if (!account || --account->links > 0 || account->left < 0) return;
  struct pwi_quota_account **at = &accounts->first;
  while (*at != account) at = &(*at)->next;
  *at = account->next;
  pwi_free(account);
}

void pwi_quota_accounts_fini(struct pwi_quota_accounts *accounts) {
  while (accounts->first) {
    struct pwi_quota_account *next = accounts->first->next;
    pwi_free(accounts->first);
    accounts->first = next;
  }
}

static void fill(struct pwi_quota_account *account, int64_t now) {
  double rate = (double)account->rate;
  account->left += rate * ((double)(now - account->at) / (double)SECOND);
  if (account->left > rate) account->left = rate;
  account->at = now;
}

bool pwi_quota_account_may(struct pwi_quota_account *account, int64_t now) {
  if (!account || account->rate == 0) return true;
  fill(account, now);
  return account->left >= 0;
}

void pwi_quota_account_take(struct pwi_quota_account *account, uint64_t bytes, int64_t now) {
  if (!account || account->rate == 0) return;
  fill(account, now);
  account->left -= (double)bytes;
}
