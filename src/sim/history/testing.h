/* For tests of histories: calls and answers by hand, of two sessions and two vectors. */
#ifndef PWI_SIM_HISTORY_TESTING_H
#define PWI_SIM_HISTORY_TESTING_H

#include "base/testing.h"
#include "sim/history/history.h"

#define WIDTH 2

static struct pwi_history *history;
static int64_t now;
static uint32_t added, assigned, ann, bob;

static inline int begin_test(void **state) {
  (void)state;
  history = pwi_history_create();
  now = 0;
  added = pwi_history_vector(
      history, &(struct pwi_history_vector){.name = "added", .width = WIDTH, .place = {.size = PAWL_KEY_END}});
  assigned = pwi_history_vector(
      history, &(struct pwi_history_vector){
                   .name = "assigned", .kind = PWI_HISTORY_REGISTER, .width = WIDTH, .place = {.size = PAWL_KEY_END}});
  ann = pwi_history_session(history, "ann");
  bob = pwi_history_session(history, "bob");
  return 0;
}

static inline int end_test(void **state) {
  (void)state;
  pwi_history_destroy(history);
  return 0;
}

/* --- writing histories ---------------------------------------------------------------------------------- */

/* A push or pull of keys 1 and 2, or of key 1 alone. */
struct deed {
  uint32_t call;
  int64_t rows[2][WIDTH];
};

static const uint64_t both_keys[] = {1, 2};

static inline struct deed begin_keys(uint32_t session, enum pwi_history_verb verb, uint32_t vector, size_t count) {
  struct deed deed = {0};
  for (size_t i = 0; i < count && verb != PWI_HISTORY_PULL; i++)
    pwi_history_row(history, vector, both_keys[i], deed.rows[i]);
  deed.call = pwi_history_begin(
      history, now++,
      &(struct pwi_history_call){
          .session = session, .verb = verb, .vector = vector, .keys = both_keys, .count = count, .rows = deed.rows[0]});
  return deed;
}

static inline struct deed begin_push(uint32_t session, uint32_t vector) {
  return begin_keys(session, PWI_HISTORY_PUSH, vector, 1);
}

static inline void end_push(struct deed deed) {
  pwi_history_end(history, now++, deed.call, &(struct pwi_history_answer){0});
}

static inline struct deed push(uint32_t session, uint32_t vector) {
  struct deed deed = begin_push(session, vector);
  end_push(deed);
  return deed;
}

static inline void refuse(struct deed deed) {
  struct pawl_range all = PAWL_ALL;
  pwi_history_end(history, now++, deed.call,
                  &(struct pwi_history_answer){.status = PAWL_REFUSED, .refused = &all, .refused_count = 1});
}

static inline uint32_t begin_pull(uint32_t session, uint32_t vector) {
  return begin_keys(session, PWI_HISTORY_PULL, vector, 1).call;
}

static inline void end_read(uint32_t call, const int64_t *rows) {
  pwi_history_end(history, now++, call, &(struct pwi_history_answer){.rows = rows});
}

/* As the servers add: modulo 2^64. */
static inline int64_t sum(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }

/* The read returns the sum of these pushes, up to the first NULL. */
static inline void end_pull(uint32_t call, const struct deed *a, const struct deed *b) {
  int64_t row[WIDTH] = {0};
  for (size_t c = 0; c < WIDTH; c++) row[c] = sum(a ? a->rows[0][c] : 0, b ? b->rows[0][c] : 0);
  end_read(call, row);
}

static inline void pull(uint32_t session, uint32_t vector, const struct deed *a, const struct deed *b) {
  end_pull(begin_pull(session, vector), a, b);
}

static inline bool always(void *context, uint64_t position) {
  (void)context, (void)position;
  return true;
}

/* The reads of the session that have no task are excused for these keys. */
static inline void excuse_keys(uint32_t session, struct pawl_range keys) {
  struct pwi_history_heard heard = {.session = session, .keys = keys};
  pwi_history_excuse(history, &heard, always, NULL);
}

static inline void excuse(uint32_t session) { excuse_keys(session, (struct pawl_range)PAWL_ALL); }

static inline void expect_good(void) {
  char text[256];
  bool is_good = pwi_history_check(history, text, sizeof text);
  if (!is_good) print_error("%s\n", text);
  assert_true(is_good);
}

static inline void expect(const char *rule) {
  char text[256], wanted[64];
  snprintf(wanted, sizeof wanted, "rule %s:", rule);
  assert_false(pwi_history_check(history, text, sizeof text));
  if (!strstr(text, wanted)) print_error("%s\n", text);
  assert_non_null(strstr(text, wanted));
}

static inline uint32_t begin_ask(uint32_t session, enum pwi_history_verb verb, uint64_t options) {
  return pwi_history_begin(
      history, now++, &(struct pwi_history_call){.session = session, .verb = verb, .name = "a/b", .options = options});
}

static inline void end_ask(uint32_t call, pawl_status status) {
  pwi_history_end(history, now++, call, &(struct pwi_history_answer){.status = status});
}

static inline void ask(uint32_t session, enum pwi_history_verb verb, uint64_t options, pawl_status status) {
  end_ask(begin_ask(session, verb, options), status);
}

static inline void scan(uint32_t session, const uint64_t *keys, size_t count, const int64_t *rows) {
  uint32_t call = pwi_history_begin(
      history, now++,
      &(struct pwi_history_call){
          .session = session, .verb = PWI_HISTORY_SCAN, .vector = added, .range = pawl_range_of(1, 10)});
  pwi_history_end(history, now++, call,
                  &(struct pwi_history_answer){.keys = keys, .count = count, .rows = rows, .next = 8});
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_test, end_test)

#endif
