/* A journal that is written aside: what it passes on, and heartbeats while the disk is slow.
 * timeout: 120
 */
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/testing.h"
#include "host/run/journal_aside.h"
#include "net/net_ops.h"

/* A journal whose appends last until the net has been asked for three heartbeats. */
struct slow {
  struct pwi_journal base;
  char last[32];
  size_t records, replaced;
  pawl_status result;
};

static atomic_int beats;

static void count_beat(struct pwi_net *net) {
  (void)net;
  atomic_fetch_add(&beats, 1);
}

static const struct pwi_net_ops net_ops = {.beat = count_beat};
static struct pwi_net net = {.ops = &net_ops};

static void write_slowly(struct slow *slow, const void *record, size_t size) {
  int before = atomic_load(&beats);
  while (atomic_load(&beats) < before + 3) usleep(1000);
  memcpy(slow->last, record, size);
  slow->base.safe(slow->base.context, slow->result);
}

static void append(struct pwi_journal *base, const void *record, size_t size) {
  ((struct slow *)base)->records++;
  write_slowly((struct slow *)base, record, size);
}

static void replace(struct pwi_journal *base, const void *record, size_t size) {
  ((struct slow *)base)->replaced++;
  write_slowly((struct slow *)base, record, size);
}

static uint64_t size_of(const struct pwi_journal *base) { return 100 + ((const struct slow *)base)->records; }

static pawl_status replay(struct pwi_journal *base,
                          pawl_status (*visit)(void *context, const void *record, size_t size), void *context) {
  struct slow *slow = (struct slow *)base;
  return visit(context, slow->last, strlen(slow->last) + 1);
}

static const struct pwi_journal_ops ops = {.append = append, .replace = replace, .size = size_of, .replay = replay};

struct owner {
  unsigned calls;
  pawl_status status;
};

static void is_safe(void *context, pawl_status status) {
  struct owner *owner = context;
  owner->calls++;
  owner->status = status;
}

static void test_heartbeats_go_on_while_a_record_is_written(void **state) {
  (void)state;
  struct slow slow = {.base.ops = &ops};
  struct owner owner = {0};
  struct pwi_journal *journal;
  assert_int_equal(pwi_journal_aside_create(&slow.base, &net, &journal), PAWL_OK);
  journal->safe = is_safe;
  journal->context = &owner;
  journal->ops->append(journal, "one", 4); /* would not return without heartbeats */
  assert_int_equal(owner.calls, 1);
  assert_int_equal(owner.status, PAWL_OK);
  assert_string_equal(slow.last, "one");
  journal->ops->replace(journal, "two", 4);
  assert_int_equal(owner.calls, 2);
  assert_int_equal(slow.replaced, 1);
  assert_int_equal(journal->ops->size(journal), 101);
  journal->ops->destroy(journal);
}

static pawl_status is_two(void *context, const void *record, size_t size) {
  (void)context;
  return size == 4 && strcmp(record, "two") == 0 ? PAWL_OK : PAWL_CORRUPT;
}

static void test_failures_and_records_are_passed_on(void **state) {
  (void)state;
  struct slow slow = {.base.ops = &ops, .result = PAWL_NO_SPACE};
  struct owner owner = {0};
  struct pwi_journal *journal;
  assert_int_equal(pwi_journal_aside_create(&slow.base, &net, &journal), PAWL_OK);
  journal->safe = is_safe;
  journal->context = &owner;
  journal->ops->append(journal, "two", 4);
  assert_int_equal(owner.status, PAWL_NO_SPACE);
  assert_int_equal(journal->ops->replay(journal, is_two, NULL), PAWL_OK);
  journal->ops->destroy(journal);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_heartbeats_go_on_while_a_record_is_written),
      cmocka_unit_test(test_failures_and_records_are_passed_on),
  };
  return cmocka_run_group_tests_name("host.run.journal_aside", tests, NULL, NULL);
}
