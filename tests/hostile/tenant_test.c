/* A tenant with a limited key sends false requests to real servers over TLS: they name rows that were not
 * sent or cannot exist, name themselves as predecessor, or have random terms. The servers survive, and
 * another tenant, which works all the time, gets every answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "../api/scene.h"

#include "api/session.h"
#include "base/random.h"
#include "liar.h"

#define SEED 1513
#define LIES 600
#define MOMENT (PAWL_SECOND / 4)
#define SPAN (UINT64_C(1) << 40)

static char folder[] = "/tmp/pawl-tenant-XXXXXX";
static char cluster_key[64], hostile_key[64], honest_key[64];
static struct pawl_session *cluster;
static struct pwi_random dice;
static struct liar liar;

static void run(const char *format, ...) PAWL_PRINTF(1, 2);

static void run(const char *format, ...) {
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  if (system(line) != 0) fail_msg("it failed: %s", line);
}

static void make_key(char path[64], const char *name, const char *limits) {
  snprintf(path, 64, "%s/%s", folder, name);
  run("\"$PAWL_COMMAND\" key new %s %s >/dev/null", limits, path);
  if (*limits) run("\"$PAWL_COMMAND\" key add %s %s >/dev/null", cluster_key, path);
}

static int begin(void **state) {
  struct pawl_session_options options;
  (void)state;
  assert_non_null(mkdtemp(folder));
  make_key(cluster_key, "cluster.key", "");
  make_key(hostile_key, "hostile.key", "--space bad");
  make_key(honest_key, "honest.key", "--space good");
  pawl_session_options_init(&options);
  options.key_file = cluster_key;
  options.servers = 2;
  options.replicas = 1;
  must(pawl_session_open(&options, &cluster));
  pwi_random_init(&dice, SEED, 1);
  return 0;
}

static int end(void **state) {
  (void)state;
  pid_t servers[4];
  assert_int_equal(find_children(getpid(), "--join", servers, 4), 2); /* the same ones: nobody starts
                                                                         others */
  must(pawl_session_check(cluster));
  must(pawl_session_close(cluster, PATIENCE));
  run("rm -r %s", folder);
  return 0;
}

static struct pawl_session *open_tenant(const char *key_file) {
  struct pawl_session_options options;
  struct pawl_session *session = NULL;
  pawl_session_options_init(&options);
  options.address = pawl_session_address(cluster);
  options.key_file = key_file;
  options.tcp_only = true;
  options.require_encryption = true;
  must(pawl_session_open(&options, &session));
  return session;
}

/* --- who is at work ------------------------------------------------------------------------------------- */

static struct {
  struct pawl_session *session;
  struct pawl_vector *vector;
  double sum;
} honest;

static void begin_work(void) {
  honest.session = open_tenant(honest_key);
  honest.vector = create(honest.session, "good/w", PAWL_F64, 64);
  honest.sum = 0;
}

static void work(void) {
  double ones[64], found[64];
  for (size_t i = 0; i < 64; i++) ones[i] = 1;
  push(honest.vector, pawl_at_range(0, 64), ones);
  honest.sum++;
  pull(honest.vector, pawl_at_range(0, 64), found);
  for (size_t i = 0; i < 64; i++) assert_true(found[i] == honest.sum);
}

static void end_work(void) {
  work();
  must(pawl_vector_delete(honest.session, "good/w", PATIENCE));
  pawl_vector_close(honest.vector);
  must(pawl_session_close(honest.session, PATIENCE));
}

/* --- lies ----------------------------------------------------------------------------------------------- */

static bool boast_of_room(struct liar *self, struct lie *lie) {
  (void)self;
  lie->terms.rows = UINT64_MAX;
  return true;
}

static bool follow_itself(struct liar *self, struct lie *lie) {
  (void)self;
  lie->terms.prior = lie->head.task;
  return true;
}

/* A number at or near a boundary. */
static uint64_t any_number(void) {
  static const uint64_t edges[] = {0, 1, 2, 63, 64, 65, 4096, UINT32_MAX, BOAST, SPAN, SPAN - 1, INT64_MAX, UINT64_MAX};
  uint64_t drawn = pwi_random_u64(&dice);
  return drawn % 4 ? edges[drawn / 4 % (sizeof edges / sizeof *edges)] : drawn >> (drawn / 4 % 64);
}

static bool lie_at_random(struct liar *self, struct lie *lie) {
  uint64_t *fields[] = {&lie->terms.vector.id,   &lie->terms.prior,       &lie->terms.settled,   &lie->terms.other,
                        &lie->terms.rows,        &lie->terms.claim.begin, &lie->terms.claim.end, &lie->terms.range.end,
                        &lie->terms.range.begin, &lie->head.task,         &lie->head.sender,     &lie->head.tick};
  (void)self;
  for (uint32_t n = 1 + pwi_random_u32(&dice) % 3; n > 0; n--)
    *fields[pwi_random_u32(&dice) % (sizeof fields / sizeof *fields)] = any_number();
  uint32_t drawn = pwi_random_u32(&dice);
  if (drawn % 5 == 0) lie->terms.kind = (enum pwi_request_kind)(drawn / 5 % 16);
  if (drawn % 7 == 0) lie->terms.keys = (enum pwi_request_keys)(drawn / 7 % 4);
  lie->drops_keys = drawn % 11 == 0;
  lie->drops_values = drawn % 3 == 0;
  return true;
}

/* --- tests ---------------------------------------------------------------------------------------------- */

static struct pawl_session *open_liar(void) {
  struct pawl_session *session = open_tenant(hostile_key);
  memset(&liar, 0, sizeof liar);
  pwi_driver_enter(&session->driver);
  liar_take_net(&liar, session->net);
  pwi_driver_leave(&session->driver);
  return session;
}

/* The result does not matter: the call has ended or is abandoned. The memory stays. */
static void call(struct pawl_session *session, struct pawl_vector *vector, uint32_t what) {
  static uint64_t keys[4] = {3, 1000, 1 << 20, SPAN - 7}, found[64];
  static double values[64], out[64];
  size_t count;
  uint64_t next;
  struct pawl_task *task = NULL;
  struct pawl_where where = what % 2 ? pawl_at_keys(keys, 4) : pawl_at_range(10, 20);
  pawl_status status = PAWL_OK;
  if (what % 4 == 0) status = pawl_vector_push(vector, where, values, &task);
  if (what % 4 == 1) status = pawl_vector_pull(vector, where, out, &task);
  if (what % 4 == 2) status = pawl_vector_pushpull(vector, where, values, out, &task);
  if (what % 4 == 3) status = pawl_vector_scan(vector, pawl_range_of(0, SPAN), 64, found, out, MOMENT, &count, &next);
  if (!status && task) status = pawl_task_finish(task, MOMENT);
  (void)session, (void)status;
}

static struct pawl_vector *make_vector(struct pawl_session *session) {
  struct pawl_vector_options options;
  struct pawl_vector *vector;
  pawl_vector_options_init(&options);
  options.type = PAWL_F64;
  options.size = SPAN;
  options.layout = PAWL_LAYOUT_SPARSE;
  must(pawl_vector_ensure(session, "bad/w", &options, PATIENCE, &vector));
  return vector;
}

static void test_known_lies_disturb_no_other_tenant(void **state) {
  static bool (*const lies[])(struct liar *, struct lie *) = {liar_boast_of_range, liar_boast_of_signature,
                                                              boast_of_room, follow_itself};
  (void)state;
  begin_work();
  for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
    struct pawl_session *session = open_liar();
    struct pawl_vector *vector = make_vector(session);
    liar.lie = lies[i];
    for (uint32_t what = 0; what < 8; what++) {
      call(session, vector, what);
      work();
    }
    assert_true(liar.told > 0);
    liar.lie = NULL;
    pawl_vector_close(vector);
    pawl_session_close(session, MOMENT);
  }
  end_work();
}

static void test_terms_drawn_at_random_disturb_no_other_tenant(void **state) {
  uint64_t told = 0;
  (void)state;
  begin_work();
  while (told < LIES) {
    struct pawl_session *session = open_liar();
    struct pawl_vector *vector = make_vector(session);
    liar.lie = lie_at_random;
    for (uint32_t i = 0; i < 12; i++) call(session, vector, pwi_random_u32(&dice) % 3 + (i == 11 ? 1 : 0));
    work();
    liar.lie = NULL;
    told += liar.told;
    pawl_vector_close(vector);
    pawl_session_close(session, 0);
  }
  printf("seed %d: %llu lies\n", SEED, (unsigned long long)told);
  end_work();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_known_lies_disturb_no_other_tenant),
      cmocka_unit_test(test_terms_drawn_at_random_disturb_no_other_tenant),
  };
  return cmocka_run_group_tests(tests, begin, end);
}
