/* A session that pushes and scans three vectors: dense, sparse, and sparse with mixed placement.
 *
 * Every push adds {1, -1} to some keys, so a row says how many pushes it contains. Until a scan is answered, further
 * pushes may be called. So a key that the scan covers must contain at least the pushes that were called before the
 * scan, and at most those that were called before its answer. A key that has none of the former may be absent.
 *
 * A scan must return rising keys, none twice, none beyond its room, and must say truthfully where it ended: the next
 * scan begins there, and no key lies in between. Memory behind the room must stay unchanged. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ring/place.h"
#include "sim/campaign/workloads/workload.h"

#define SCANNED 3 /* vectors */
#define SCANNED_KEYS 40
#define ROOM_MAX 30
#define GUARD 4 /* keys and rows behind the room */
#define UNTOUCHED INT64_C(0x5a5a5a5a5a5a5a5a)
#define PUSHES 4 /* under way */
#define CALLS 90
#define WIDTH 2

static const char *const names[SCANNED] = {"scan/dense", "scan/sparse", "scan/mixed"};
enum { SCAN_DENSE, SCAN_SPARSE, SCAN_MIXED };

struct scanner;

struct scanned_push {
  struct pwi_task task;
  struct scanner *scanner;
  bool is_busy;
  size_t vector, count;
  uint32_t which[SCANNED_KEYS];
  uint64_t keys[SCANNED_KEYS];
  int64_t rows[SCANNED_KEYS * WIDTH];
};

/* Keys by the order in which scans return them, and the number of pushes to each. */
struct scanned {
  struct pwi_flow *flow;
  uint64_t size; /* of the span of stored keys */
  uint64_t keys[SCANNED_KEYS], stored[SCANNED_KEYS];
  /* `sure`: pushes that the present session must see; `called`: pushes that may have taken effect */
  int64_t sure[SCANNED_KEYS], called[SCANNED_KEYS];
  /* A prepared list: servers that have not kept it, or have forgotten it, want a push once more. NULL: none */
  struct pwi_keylist *list;
  uint32_t list_which[SCANNED_KEYS];
  size_t list_count;
};

struct scanner {
  struct pwi_workload workload;
  struct pwi_cluster_client client;
  struct scanned vectors[SCANNED];
  struct scanned_push pushes[PUSHES];
  uint32_t calls_left;

  struct pwi_task task; /* the scan that is under way */
  bool is_scanning;
  size_t vector, room;
  struct pawl_range range;
  int64_t least[SCANNED_KEYS];
  uint64_t keys[ROOM_MAX + GUARD];
  int64_t rows[(ROOM_MAX + GUARD) * WIDTH];
};

static void broken(const struct scanner *scanner, const char *what, uint64_t key, int64_t found, int64_t wanted) {
  CAMPAIGN_FAIL(scanner->workload.campaign, "%s of %s, key %016llx: %lld, not %lld", what, names[scanner->vector],
                (unsigned long long)key, (long long)found, (long long)wanted);
}

/* --- checking a scan ------------------------------------------------------------------------------------ */

static void check_guard(const struct scanner *scanner) {
  for (size_t i = scanner->room; i < ROOM_MAX + GUARD; i++) {
    bool is_whole = (int64_t)scanner->keys[i] == UNTOUCHED;
    for (size_t c = 0; c < WIDTH; c++) is_whole &= scanner->rows[i * WIDTH + c] == UNTOUCHED;
    if (!is_whole) broken(scanner, "a scan wrote beyond its room", 0, (int64_t)i, (int64_t)scanner->room);
  }
}

static void check_row(const struct scanner *scanner, uint32_t key, const int64_t *row) {
  const struct scanned *vector = &scanner->vectors[scanner->vector];
  if (row[0] < scanner->least[key])
    broken(scanner, "a scan lacks pushes of its own session", vector->keys[key], row[0], scanner->least[key]);
  if (row[0] > vector->called[key])
    broken(scanner, "a scan shows more than was pushed", vector->keys[key], row[0], vector->called[key]);
  if (row[1] != -row[0]) broken(scanner, "a scan shows half a push", vector->keys[key], row[1], -row[0]);
}

/* Walks through the keys of the model and those of the answer side by side. */
static void check_answer(const struct scanner *scanner, uint64_t next, size_t count) {
  const struct scanned *vector = &scanner->vectors[scanner->vector];
  size_t at = 0;
  for (uint32_t key = 0; key < SCANNED_KEYS; key++) {
    if (vector->stored[key] < scanner->range.begin || vector->stored[key] >= next) continue;
    if (at < count && scanner->keys[at] == vector->keys[key])
      check_row(scanner, key, &scanner->rows[at++ * WIDTH]);
    else if (scanner->least[key] > 0)
      broken(scanner, "a scan lost a key", vector->keys[key], 0, scanner->least[key]);
  }
  if (at < count)
    broken(scanner, "a scan has a key twice, out of order, or that nobody pushed", scanner->keys[at], 0, 0);
}

/* --- scans ---------------------------------------------------------------------------------------------- */

static void scan_next(struct scanner *scanner, uint64_t begin);

static void scanned(struct pwi_task *task) {
  struct scanner *scanner = (struct scanner *)((char *)task - offsetof(struct scanner, task));
  const struct scanned *vector = &scanner->vectors[scanner->vector];
  scanner->is_scanning = false;
  if (task->status || task->rows > scanner->room || task->found <= scanner->range.begin ||
      task->found > scanner->range.end) {
    broken(scanner, "a scan failed", task->found, (int64_t)task->status, 0);
    return;
  }
  check_guard(scanner);
  check_answer(scanner, task->found, (size_t)task->rows);
  scanner->workload.campaign->figures.scans++;
  bool ends = task->found >= vector->size || pwi_random_chance(scanner->client.random, 0.1);
  if (ends || scanner->calls_left == 0)
    pwi_cluster_timer(&scanner->client, (int64_t)pwi_random_below(scanner->client.random, 60 * MS), 0);
  else
    scan_next(scanner, task->found);
}

static void scan_next(struct scanner *scanner, uint64_t begin) {
  struct pwi_random *random = scanner->client.random;
  const struct scanned *vector = &scanner->vectors[scanner->vector];
  uint64_t end = vector->size;
  if (pwi_random_chance(random, 0.2) && scanner->vector != SCAN_MIXED && end - begin > 1)
    end = begin + 1 + pwi_random_below(random, end - begin);
  if (scanner->calls_left > 0) scanner->calls_left--;
  scanner->range = pawl_range_of(begin, end);
  scanner->room = 1 + (size_t)pwi_random_below(random, pwi_random_chance(random, 0.5) ? 4 : ROOM_MAX);
  scanner->is_scanning = true;
  scanner->task = (struct pwi_task){.finished = scanned};
  for (uint32_t key = 0; key < SCANNED_KEYS; key++) scanner->least[key] = vector->sure[key];
  for (size_t i = 0; i < ROOM_MAX + GUARD; i++) {
    scanner->keys[i] = (uint64_t)UNTOUCHED;
    for (size_t c = 0; c < WIDTH; c++) scanner->rows[i * WIDTH + c] = UNTOUCHED;
  }
  pawl_status status = pwi_client_scan(scanner->client.client, &scanner->task, vector->flow, scanner->range,
                                       scanner->room, scanner->keys, scanner->rows);
  if (status) broken(scanner, "a scan was refused", begin, (int64_t)status, 0);
}

/* --- pushes --------------------------------------------------------------------------------------------- */

static void pushed(struct pwi_task *task) {
  struct scanned_push *push = (struct scanned_push *)((char *)task - offsetof(struct scanned_push, task));
  struct scanner *scanner = push->scanner;
  push->is_busy = false;
  if (task->status)
    CAMPAIGN_FAIL(scanner->workload.campaign, "a push to %s failed: %s", names[push->vector],
                  pawl_status_name(task->status));
  scanner->workload.campaign->figures.pushes++;
}

/* Calls name keys in their own order, which for mixed placement is not that of the stored keys. */
static void sort_keys(uint64_t *keys, size_t count) {
  for (size_t i = 1; i < count; i++)
    for (size_t k = i; k > 0 && keys[k] < keys[k - 1]; k--) {
      uint64_t other = keys[k];
      keys[k] = keys[k - 1];
      keys[k - 1] = other;
    }
}

static size_t draw_keys(struct scanner *scanner, uint32_t *which) {
  struct pwi_random *random = scanner->client.random;
  double share = pwi_random_unit(random);
  size_t count = 0;
  for (uint32_t key = 0; key < SCANNED_KEYS; key++)
    if (pwi_random_chance(random, share * share)) which[count++] = key;
  return count;
}

static void make_list(struct scanner *scanner, struct scanned *vector) {
  uint64_t keys[SCANNED_KEYS];
  pwi_keylist_release(vector->list);
  vector->list = NULL;
  vector->list_count = draw_keys(scanner, vector->list_which);
  for (size_t i = 0; i < vector->list_count; i++) keys[i] = vector->keys[vector->list_which[i]];
  sort_keys(keys, vector->list_count);
  if (pwi_keylist_create(scanner->client.client, pwi_flow_entry(vector->flow), keys, vector->list_count, &vector->list))
    pwi_sim_fail(scanner->workload.campaign->cluster.sim, PAWL_NO_MEMORY, "not enough memory for a key list");
}

static void push_some(struct scanner *scanner, struct scanned_push *push) {
  struct pwi_random *random = scanner->client.random;
  *push = (struct scanned_push){.scanner = scanner, .is_busy = true, .task.finished = pushed};
  push->vector = (size_t)pwi_random_below(random, SCANNED);
  struct scanned *vector = &scanner->vectors[push->vector];
  struct pwi_where where = {.keys = push->keys};
  if (pwi_random_chance(random, 0.5)) {
    if (!vector->list || pwi_random_chance(random, 0.2)) make_list(scanner, vector);
    push->count = vector->list_count;
    memcpy(push->which, vector->list_which, sizeof push->which);
    where = (struct pwi_where){.list = vector->list};
  } else {
    push->count = where.count = draw_keys(scanner, push->which);
    for (size_t i = 0; i < push->count; i++) push->keys[i] = vector->keys[push->which[i]];
    sort_keys(push->keys, push->count);
  }
  for (size_t i = 0; i < push->count; i++) {
    push->rows[i * WIDTH] = 1;
    push->rows[i * WIDTH + 1] = -1;
    vector->sure[push->which[i]]++;
    vector->called[push->which[i]]++;
  }
  if (scanner->calls_left > 0) scanner->calls_left--;
  pawl_status status =
      pwi_client_start(scanner->client.client, &push->task, vector->flow, PWI_REQUEST_PUSH, &where, push->rows, NULL);
  if (status)
    CAMPAIGN_FAIL(scanner->workload.campaign, "a push to %s was refused: %s", names[push->vector],
                  pawl_status_name(status));
}

/* --- the scanner's life --------------------------------------------------------------------------------- */

/* Some pushes, then a scan behind them, before they are answered. */
static void go_on(struct scanner *scanner) {
  struct pwi_random *random = scanner->client.random;
  if (scanner->calls_left == 0) return;
  for (size_t i = 0; i < PUSHES; i++)
    if (!scanner->pushes[i].is_busy && pwi_random_chance(random, 0.6)) push_some(scanner, &scanner->pushes[i]);
  scanner->vector = (size_t)pwi_random_below(random, SCANNED);
  const struct scanned *vector = &scanner->vectors[scanner->vector];
  uint64_t begin = pwi_random_chance(random, 0.7) ? 0 : vector->stored[pwi_random_below(random, SCANNED_KEYS)];
  scan_next(scanner, begin);
}

static void scanner_timer(void *context, uint64_t cookie) {
  struct scanner *scanner = context;
  (void)cookie;
  for (size_t v = 0; v < SCANNED; v++)
    if (pwi_cluster_open_vector(&scanner->client, names[v], 0, &scanner->vectors[v].flow)) {
      pwi_cluster_timer(&scanner->client, 20 * MS, 0);
      return;
    }
  go_on(scanner);
}

static void scanner_started(void *context) {
  struct scanner *scanner = context;
  pwi_cluster_timer(&scanner->client, (int64_t)pwi_random_below(scanner->client.random, 50 * MS), 0);
}

/* Its unanswered pushes have taken effect or not. */
static void scanner_stopped(void *context) {
  struct scanner *scanner = context;
  scanner->is_scanning = false;
  for (size_t v = 0; v < SCANNED; v++) {
    pwi_keylist_release(scanner->vectors[v].list);
    scanner->vectors[v].list = NULL;
  }
  for (size_t i = 0; i < PUSHES; i++) {
    struct scanned_push *push = &scanner->pushes[i];
    for (size_t k = 0; push->is_busy && k < push->count; k++) scanner->vectors[push->vector].sure[push->which[k]]--;
    push->is_busy = false;
  }
}

static int compare_keys(const void *a, const void *b) {
  uint64_t left = pwi_place_mix(*(const uint64_t *)a), right = pwi_place_mix(*(const uint64_t *)b);
  return (left > right) - (left < right);
}

static void make_keys(struct scanner *scanner, size_t v) {
  struct scanned *vector = &scanner->vectors[v];
  uint64_t stride = UINT64_MAX / SCANNED_KEYS;
  vector->size = v == SCAN_DENSE ? SCANNED_KEYS : PAWL_KEY_END;
  for (uint32_t key = 0; key < SCANNED_KEYS; key++)
    vector->keys[key] = v == SCAN_DENSE    ? key
                        : v == SCAN_SPARSE ? stride * key + pwi_random_below(&scanner->workload.random, stride)
                                           : key * 3 + 1;
  if (v == SCAN_MIXED) qsort(vector->keys, SCANNED_KEYS, sizeof *vector->keys, compare_keys);
  for (uint32_t key = 0; key < SCANNED_KEYS; key++)
    vector->stored[key] = v == SCAN_MIXED ? pwi_place_mix(vector->keys[key]) : vector->keys[key];
}

static pawl_status begin(struct pwi_workload *workload) {
  struct scanner *scanner = (struct scanner *)workload;
  pawl_status status = PAWL_OK;
  scanner->calls_left = CALLS;
  for (size_t v = 0; v < SCANNED && !status; v++) {
    struct pawl_vector_options options = {.type = PAWL_I64, .width = WIDTH};
    make_keys(scanner, v);
    options.size = scanner->vectors[v].size;
    options.placement = v == SCAN_MIXED ? PAWL_PLACE_MIXED : PAWL_PLACE_ORDERED;
    options.layout = v == SCAN_DENSE ? PAWL_LAYOUT_DENSE : PAWL_LAYOUT_SPARSE;
    status = pwi_workload_vector(workload, names[v], &options);
  }
  scanner->client = (struct pwi_cluster_client){.name = "scanner",
                                                .job = "scan",
                                                .started = scanner_started,
                                                .stopped = scanner_stopped,
                                                .timer = scanner_timer,
                                                .context = scanner};
  return status ? status : pwi_campaign_client_add(workload->campaign, &scanner->client, true);
}

static bool is_busy(const struct pwi_workload *workload) {
  const struct scanner *scanner = (const struct scanner *)workload;
  bool is_pushing = false;
  for (size_t i = 0; i < PUSHES; i++) is_pushing |= scanner->pushes[i].is_busy;
  return is_pushing || scanner->is_scanning || scanner->calls_left > 0 || !scanner->client.client;
}

static void describe(const struct pwi_workload *workload, char *text, size_t size) {
  const struct scanner *scanner = (const struct scanner *)workload;
  snprintf(text, size, "the scanner, with %u calls left, %s", scanner->calls_left,
           scanner->is_scanning ? "scanning" : "pushing");
}

/* Reads all keys of a vector in one call, which names keys in rising order. */
static pawl_status check_vector(struct scanner *scanner, size_t v) {
  const struct scanned *vector = &scanner->vectors[v];
  uint64_t keys[SCANNED_KEYS];
  int64_t rows[SCANNED_KEYS * WIDTH];
  struct pwi_where where = {.keys = keys, .count = SCANNED_KEYS};
  memcpy(keys, vector->keys, sizeof keys);
  sort_keys(keys, SCANNED_KEYS);
  pawl_status status = pwi_workload_pull(&scanner->workload, names[v], &where, rows);
  if (status) return status;
  scanner->vector = v;
  for (uint32_t key = 0; key < SCANNED_KEYS; key++) {
    size_t at = 0;
    while (keys[at] != vector->keys[key]) at++;
    scanner->least[key] = vector->sure[key];
    check_row(scanner, key, &rows[at * WIDTH]);
  }
  return PAWL_OK;
}

/* In the end the rows contain every acknowledged push once. */
static pawl_status check(struct pwi_workload *workload) {
  pawl_status status = PAWL_OK;
  for (size_t v = 0; v < SCANNED && !status; v++) status = check_vector((struct scanner *)workload, v);
  return status;
}

const struct pwi_workload_ops pwi_workload_scanner = {
    .size = sizeof(struct scanner), .begin = begin, .is_busy = is_busy, .describe = describe, .check = check};
