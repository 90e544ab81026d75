/* A head and its followers. After every change they have the same rows, times and refusals, for all kinds of
 * requests and all divisions of the arc. This holds also while a follower is filled chunk by chunk, as
 * server/fill.c does it. */
#include <stdlib.h>

#include "shard/testing.h"

#define SENDERS 3
#define CELLS 8 /* of the ring: how arcs are cut */
#define KEYS_MAX 60
#define BYTES_MAX 16384
#define GROUP 20

static const struct {
  uint64_t id;
  enum pawl_type type;
  uint32_t width;
  uint64_t size;
  bool sparse;
  const char *rule;
} shapes[] = {{1, PAWL_I64, 2, 300, false, "add"},
              {2, PAWL_I32, 1, 600, true, "add"},
              {3, PAWL_U64, 3, 157, true, "assign"},
              {4, PAWL_F64, 1, 100000, true, "add"},
              {5, PAWL_F64, 2, 300, false, "adagrad rate=0.5"},
              {6, PAWL_F64, 1, 5000, true, "adam"},
              {7, PAWL_F64, 1, 400, false, "block_proximal l1=3"},
              {8, PAWL_I64, 1, 200, true, "max"}};
#define VECTORS (sizeof shapes / sizeof *shapes)

struct world {
  struct pwi_random random;
  struct pwi_membership membership;
  struct pwi_shard *head, *follower;
  uint64_t tasks[SENDERS + 1], ticks[SENDERS + 1];
  uint64_t sent[SENDERS + 1][VECTORS + 1]; /* the last task sent to all of a vector; the group comes last */
  size_t rows, refusals, turns, wanted, chunks, loads, late;
  bool are_loaded;                            /* vectors are loaded from a checkpoint while the follower is filled */
  uint32_t loaded[VECTORS], follows[VECTORS]; /* incarnations of the head and of the follower */

  /* The last change, as it goes down the chain. */
  struct pwi_change change;
  uint64_t keys[KEYS_MAX];
  struct iovec values;
  unsigned char pushed[BYTES_MAX], result[BYTES_MAX], state[BYTES_MAX];
  bool has_change;
};

static uint64_t below(struct world *world, uint64_t n) { return pwi_random_below(&world->random, n); }

static struct pawl_range cells(uint64_t first, uint64_t end) {
  uint64_t width = PWI_RING_END / CELLS;
  return pawl_range_of(first * width, end == CELLS ? PWI_RING_END : end * width);
}

static struct pwi_entry entry_at(size_t i) {
  struct pwi_entry entry = entry_of(shapes[i].id, shapes[i].type, shapes[i].width, shapes[i].size, shapes[i].sparse);
  snprintf(entry.is.rule, sizeof entry.is.rule, "%s", shapes[i].rule);
  assert_int_equal(pwi_options_settle(&entry.is, NULL, &entry.is), PAWL_OK);
  return entry;
}

static void open_all(struct pwi_shard *shard) {
  for (size_t i = 0; i < VECTORS; i++) open_vector(shard, entry_at(i));
  open_vector(shard, group_of(GROUP));
}

/* The follower may have a lower memory cap than the head. It holds everything unless it is to be filled. */
static void start(struct world *world, uint64_t seed, uint64_t head_cap, bool is_full) {
  *world = (struct world){0};
  pwi_random_init(&world->random, seed, 0);
  world->membership = membership_of(SENDERS);
  for (uint64_t id = 1; id <= SENDERS; id++)
    assert_int_equal(
        pwi_membership_join(&world->membership, (struct pwi_vector_id){GROUP}, SENDERS, (struct pwi_sender){id}),
        PAWL_OK);
  world->head = shard_of(&(struct pwi_shard_config){.memory_max = head_cap, .cache_max = 4000});
  world->follower = shard_of(&(struct pwi_shard_config){.memory_max = is_full ? 100 : UINT64_MAX, .cache_max = 2000});
  assert_int_equal(pwi_shard_hold(world->head, WHOLE_RING), PAWL_OK);
  if (is_full) assert_int_equal(pwi_shard_hold(world->follower, WHOLE_RING), PAWL_OK);
  for (int i = 0; i < 2; i++) {
    struct pwi_shard *shard = i == 0 ? world->head : world->follower;
    open_all(shard);
    pwi_shard_set_membership(shard, &world->membership);
  }
}

static void stop(struct world *world) {
  pwi_shard_destroy(world->head);
  pwi_shard_destroy(world->follower);
  pwi_membership_fini(&world->membership);
}

static void assert_equal(const struct world *world) {
  assert_true(pwi_shard_digest(world->head, WHOLE_RING, &world->membership) ==
              pwi_shard_digest(world->follower, WHOLE_RING, &world->membership));
}

/* The sender has settled no task: what it may ask for again. */
static uint64_t kept_by(const struct pwi_shard *shard, uint64_t sender) {
  return pwi_shard_digest_kept(shard, WHOLE_RING, (struct pwi_sender){sender}, 0);
}

static void assert_keep_the_same(const struct world *world) {
  for (uint64_t s = 1; s <= SENDERS; s++) assert_true(kept_by(world->head, s) == kept_by(world->follower, s));
}

/* --- the head ------------------------------------------------------------------------------------------- */

static void choose_keys(struct world *world, struct pwi_request *request, size_t v) {
  struct pwi_terms *terms = &request->terms;
  uint64_t size = shapes[v].size, step = size / 30 + 1;
  terms->rows = 0;
  if (below(world, 3) == 0) {
    uint64_t begin = below(world, size), most = size - begin < KEYS_MAX ? size - begin : KEYS_MAX;
    terms->rows = 1 + below(world, most);
    terms->range = pawl_range_of(begin, begin + terms->rows);
    return;
  }
  /* Few different lists, so that signatures are used. */
  uint64_t key = below(world, 3);
  for (; key < size && terms->rows < KEYS_MAX; key += step) world->keys[terms->rows++] = key;
  request->keys = world->keys;
  request->signature = pwi_keys_signature(world->keys, (size_t)terms->rows);
  request->encoded = world->keys;
  request->encoded_as = (struct pwi_section){.length = (size_t)terms->rows * 8};
  terms->keys = below(world, 2) ? PWI_KEYS_SIGNED : PWI_KEYS_LIST;
  terms->keep = terms->keys == PWI_KEYS_LIST && below(world, 2);
  if (terms->keys == PWI_KEYS_SIGNED) request->keys = NULL;
}

static void fill_values(struct world *world, struct pwi_request *request, size_t v) {
  struct pwi_entry entry = entry_at(v);
  size_t size = pawl_type_size(shapes[v].type), count = (size_t)request->terms.rows * pwi_options_pushed(&entry.is);
  bool is_proximal = entry.is.pushed_width == 2 * entry.is.width; /* which wants every second value to be
                                                                     positive */
  for (size_t i = 0; i < count; i++) {
    int64_t value = (int64_t)below(world, 2001) - 1000;
    double real = (double)(is_proximal && i % 2 && below(world, 300) ? llabs(value) + 1 : value);
    memcpy(world->pushed + i * size, shapes[v].type == PAWL_F64 ? (void *)&real : (void *)&value, size);
  }
  size_t bytes = count * size;
  if (below(world, 15) == 0 && bytes > 0) bytes--; /* it will be refused */
  world->values = (struct iovec){world->pushed, bytes};
  request->values = &world->values;
  request->value_parts = 1;
  request->value_type = (uint8_t)shapes[v].type;
}

/* The head serves the request; its effect is in world->change. */
static struct pwi_served ask(struct world *world, struct pwi_request *request) {
  struct pwi_served served = serve(world->head, request, world->result);
  world->has_change = served.effect != PWI_EFFECT_NONE;
  if (!world->has_change) return served;
  world->change = (struct pwi_change){.effect = served.effect, .request = *request};
  world->change.status = served.effect == PWI_EFFECT_REFUSAL ? served.outcome.status : PAWL_OK;
  if (served.effect == PWI_EFFECT_TICK) world->change.request.tick = served.tick;
  if (served.effect != PWI_EFFECT_ROWS) return served;
  size_t v = request->terms.vector.id - 1;
  struct pwi_entry entry = entry_at(v);
  pwi_shard_result(world->head, request, world->result, world->state);
  world->values = (struct iovec){world->result, (size_t)request->terms.rows * pwi_entry_row_bytes(&entry)};
  world->change.request.values = &world->values;
  world->change.state_bytes = (size_t)request->terms.rows * entry.is.state_width * pawl_type_size(shapes[v].type);
  world->change.state = world->change.state_bytes > 0 ? world->state : NULL;
  return served;
}

static void push_some(struct world *world) {
  size_t v = (size_t)below(world, VECTORS);
  uint64_t s = 1 + below(world, SENDERS);
  struct pwi_request request = request_of(PWI_REQUEST_PUSH, shapes[v].id, shapes[v].size);
  request.sender.id = s;
  request.task = ++world->tasks[s];
  request.terms.prior = world->sent[s][v];
  request.terms.incarnation = world->loaded[v];
  request.terms.settled = below(world, 4) ? 0 : request.task - 1;
  choose_keys(world, &request, v);
  fill_values(world, &request, v);
  struct pwi_served served = ask(world, &request);
  if (served.outcome.code == PWI_CODE_WANTED) {
    request.terms.keys = PWI_KEYS_LIST;
    request.terms.keep = true;
    request.keys = world->keys;
    served = ask(world, &request);
  }
  assert_true(served.outcome.code == PWI_CODE_OK || served.outcome.code == PWI_CODE_REFUSED);
  world->sent[s][v] = request.task;
  world->rows += served.effect == PWI_EFFECT_ROWS;
  world->refusals += served.effect == PWI_EFFECT_REFUSAL;
}

static void tick_some(struct world *world) {
  uint64_t s = 1 + below(world, SENDERS);
  bool enters = below(world, 3) == 0;
  struct pwi_request request = request_of(enters ? PWI_REQUEST_ENTER : PWI_REQUEST_TICK, GROUP, PAWL_KEY_END);
  request.sender.id = s;
  request.task = ++world->tasks[s];
  request.tick = world->ticks[s] += below(world, 3);
  request.terms.prior = world->sent[s][VECTORS];
  struct pwi_served served = ask(world, &request);
  assert_int_equal(served.outcome.code, PWI_CODE_OK);
  world->sent[s][VECTORS] = request.task;
  world->turns++;
}

static void do_something(struct world *world) {
  if (below(world, 6) == 0)
    tick_some(world);
  else
    push_some(world);
}

/* --- the follower --------------------------------------------------------------------------------------- */

static void renew(struct world *world, size_t v, bool is_head) {
  struct pwi_entry entry = entry_at(v);
  entry.incarnation = is_head ? ++world->loaded[v] : ++world->follows[v];
  assert_int_equal(pwi_shard_renew(is_head ? world->head : world->follower, &entry), PAWL_OK);
  for (uint64_t s = 1; s <= SENDERS && is_head; s++) world->sent[s][v] = 0;
  world->loads += is_head;
}

/* The news of a load reach the head and the follower at any time, one after the other. */
static void load_some(struct world *world) {
  size_t v = (size_t)below(world, VECTORS);
  bool is_next = world->loaded[v] == world->follows[v];
  renew(world, v, is_next ? below(world, 2) == 0 : world->loaded[v] < world->follows[v]);
}

/* The follower gets the news that the head has. */
static void catch_up(struct world *world) {
  for (size_t v = 0; v < VECTORS; v++)
    if (world->follows[v] < world->loaded[v]) renew(world, v, false);
  world->late++;
}

/* The follower applies the change on these positions. If the list is unknown, it gets the keys. */
static void follow(struct world *world, struct pawl_range positions) {
  struct pwi_outcome outcome;
  struct pwi_change change = world->change;
  if (!world->has_change) return;
  pwi_shard_follow(world->follower, &change, positions, &outcome);
  if (world->are_loaded && outcome.status == PAWL_NOT_FOUND) { /* the change waits for the catalogue */
    catch_up(world);
    pwi_shard_follow(world->follower, &change, positions, &outcome);
  }
  if (outcome.code == PWI_CODE_WANTED) {
    assert_int_equal(change.request.terms.keys, PWI_KEYS_SIGNED);
    change.request.terms.keys = PWI_KEYS_LIST;
    change.request.terms.keep = true;
    change.request.keys = world->keys;
    pwi_shard_follow(world->follower, &change, positions, &outcome);
    world->wanted++;
  }
  assert_string_equal(pawl_status_name(outcome.status), "OK");
  assert_int_equal(outcome.code, PWI_CODE_OK);
}

/* In pieces, as an arc that was split and merged again. */
static void follow_in_pieces(struct world *world) {
  uint64_t at = 0;
  while (at < CELLS) {
    uint64_t end = at + 1 + below(world, CELLS - at);
    follow(world, cells(at, end));
    if (below(world, 10) == 0) follow(world, cells(at, end)); /* a result may come twice */
    at = end;
  }
}

/* A follower that takes over refuses every refused push again. */
static void assert_remembers(struct world *world, const struct pwi_change *refused) {
  struct pwi_served served = serve(world->follower, &refused->request, world->result);
  assert_int_equal(served.outcome.code, PWI_CODE_REFUSED);
  assert_int_equal(served.outcome.status, refused->status);
}

static void test_a_follower_equals_the_head_after_every_change(void **state) {
  (void)state;
  struct world *world = test_malloc(sizeof *world);
  size_t rows = 0, refusals = 0, turns = 0, wanted = 0;
  for (uint64_t seed = 1; seed <= 40; seed++) {
    print_message("seed %llu\n", (unsigned long long)seed);
    start(world, seed, seed % 2 ? UINT64_MAX : 30000, true);
    for (int i = 0; i < 300; i++) {
      do_something(world);
      follow_in_pieces(world);
      assert_equal(world);
      assert_keep_the_same(world);
      if (world->has_change && world->change.effect == PWI_EFFECT_REFUSAL) assert_remembers(world, &world->change);
    }
    rows += world->rows, refusals += world->refusals, turns += world->turns, wanted += world->wanted;
    stop(world);
  }
  print_message("rows %zu refusals %zu ticks %zu wanted %zu\n", rows, refusals, turns, wanted);
  assert_true(rows > 5000 && refusals > 300 && turns > 1000 && wanted > 100);
  test_free(world);
}

static void test_a_follower_that_keeps_another_refusal_has_another_digest(void **state) {
  (void)state;
  struct world *world = test_malloc(sizeof *world);
  start(world, 2, UINT64_MAX, true);
  for (push_some(world); !world->has_change || world->change.effect != PWI_EFFECT_REFUSAL; push_some(world))
    follow(world, WHOLE_RING);
  struct pwi_change change = world->change;
  uint64_t sender = change.request.sender.id;
  struct pwi_sender settled = {sender};
  world->change.status = change.status == PAWL_REFUSED ? PAWL_NODE_FULL : PAWL_REFUSED;
  follow(world, WHOLE_RING);
  assert_equal(world);
  assert_true(kept_by(world->head, sender) != 0);
  assert_true(kept_by(world->head, sender) != kept_by(world->follower, sender));
  assert_true(pwi_shard_digest_kept(world->head, WHOLE_RING, settled, change.request.task) == 0);
  stop(world);
  test_free(world);
}

/* --- filling -------------------------------------------------------------------------------------------- */

static bool copy_chunk(struct world *world, struct pwi_copying *copying, struct pwi_writer *writer) {
  bool more;
  pwi_writer_reset(writer);
  assert_int_equal(pwi_shard_copy(world->head, copying, (size_t)(50 + below(world, 3000)), writer, &more), PAWL_OK);
  if (!more) return false;
  pawl_status status = pwi_shard_take(world->follower, writer->data, writer->size);
  if (world->are_loaded && status == PAWL_CANCELLED) {
    catch_up(world);
    status = pwi_shard_take(world->follower, writer->data, writer->size);
  }
  assert_int_equal(status, PAWL_OK);
  world->chunks++;
  return true;
}

/* Changes arrive before, between and after the chunks. Arc after arc is filled, and filled arcs are held at
 * once. */
static void fill(struct world *world, struct pawl_range positions) {
  struct pwi_copying copying;
  struct pwi_writer writer = {0};
  bool more = true;
  pwi_copying_init(&copying, positions);
  while (more) {
    for (uint64_t i = below(world, 3); i > 0; i--) {
      do_something(world);
      follow(world, positions);
    }
    if (world->are_loaded && below(world, 4) == 0) load_some(world);
    more = copy_chunk(world, &copying, &writer);
  }
  assert_int_equal(pwi_shard_stage_rest(world->follower, positions), PAWL_OK);
  for (uint64_t i = below(world, 10); i > 0; i--) {
    do_something(world);
    follow(world, positions);
  }
  assert_int_equal(pwi_shard_adopt(world->follower, positions), PAWL_OK);
  pwi_writer_fini(&writer);
}

static void test_a_follower_that_is_filled_meanwhile_equals_the_head(void **state) {
  (void)state;
  struct world *world = test_malloc(sizeof *world);
  size_t chunks = 0, refusals = 0;
  for (uint64_t seed = 1; seed <= 60; seed++) {
    print_message("seed %llu\n", (unsigned long long)seed);
    start(world, seed, UINT64_MAX, false);
    for (int i = 0; i < 60; i++) do_something(world);
    fill(world, WHOLE_RING);
    assert_equal(world);
    for (int i = 0; i < 50; i++) {
      do_something(world);
      follow_in_pieces(world);
      assert_equal(world);
    }
    chunks += world->chunks, refusals += world->refusals;
    stop(world);
  }
  print_message("chunks %zu refusals %zu\n", chunks, refusals);
  assert_true(chunks > 500 && refusals > 100);
  test_free(world);
}

/* Chunks and changes name their incarnation, so a fill goes on when vectors are loaded. */
static void test_a_follower_that_is_filled_while_vectors_are_loaded_equals_the_head(void **state) {
  (void)state;
  struct world *world = test_malloc(sizeof *world);
  size_t loads = 0, late = 0;
  for (uint64_t seed = 1; seed <= 60; seed++) {
    print_message("seed %llu\n", (unsigned long long)seed);
    start(world, seed, UINT64_MAX, false);
    world->are_loaded = true;
    for (int i = 0; i < 60; i++) do_something(world);
    fill(world, WHOLE_RING);
    for (size_t v = 0; v < VECTORS; v++)
      if (world->follows[v] != world->loaded[v]) renew(world, v, world->loaded[v] < world->follows[v]);
    assert_equal(world);
    for (int i = 0; i < 50; i++) {
      do_something(world);
      follow_in_pieces(world);
      assert_equal(world);
    }
    loads += world->loads, late += world->late;
    stop(world);
  }
  print_message("loads %zu late %zu\n", loads, late);
  assert_true(loads > 100 && late > 20);
  test_free(world);
}

static void test_a_filling_that_is_broken_off_begins_anew(void **state) {
  (void)state;
  struct world *world = test_malloc(sizeof *world);
  for (uint64_t seed = 1; seed <= 30; seed++) {
    struct pwi_copying copying;
    struct pwi_writer writer = {0};
    print_message("seed %llu\n", (unsigned long long)seed);
    start(world, seed, UINT64_MAX, false);
    for (int i = 0; i < 60; i++) do_something(world);
    pwi_copying_init(&copying, WHOLE_RING);
    for (uint64_t i = below(world, 12); i > 0 && copy_chunk(world, &copying, &writer); i--) {
      do_something(world);
      follow(world, WHOLE_RING);
    }
    pwi_writer_fini(&writer);
    for (int i = 0; i < 10; i++) do_something(world); /* the follower does not receive these */
    assert_int_equal(pwi_shard_drop(world->follower, WHOLE_RING), PAWL_OK);
    fill(world, WHOLE_RING);
    assert_equal(world);
    stop(world);
  }
  test_free(world);
}

/* The head serves senders that are newer than the follower's membership. The follower gets another membership
 * that does not list them either. It must keep their times, or it would apply their pushes twice if it became
 * the head. */
static void test_a_follower_keeps_the_times_of_senders_that_are_newer_than_its_membership(void **state) {
  (void)state;
  struct world *world = test_malloc(sizeof *world);
  struct pwi_membership older = membership_of(1);
  for (uint64_t seed = 1; seed <= 10; seed++) {
    start(world, seed, UINT64_MAX, true);
    for (int i = 0; i < 60; i++) {
      do_something(world);
      follow(world, WHOLE_RING);
      if (i % 20 == 19) pwi_shard_set_membership(world->follower, &older);
    }
    assert_equal(world);
    pwi_shard_set_membership(world->follower, &world->membership);
    assert_equal(world);
    stop(world);
  }
  pwi_membership_fini(&older);
  test_free(world);
}

/* Its times never arrive in a chunk. */
static void test_a_vector_that_is_opened_after_the_last_chunk_has_its_times_all_the_same(void **state) {
  (void)state;
  struct world *world = test_malloc(sizeof *world);
  for (int is_late = 0; is_late < 2; is_late++) {
    struct pwi_copying copying;
    struct pwi_writer writer = {0};
    start(world, 1, UINT64_MAX, false);
    pwi_shard_close(world->head, (struct pwi_vector_id){1});
    if (is_late) pwi_shard_close(world->follower, (struct pwi_vector_id){1});
    pwi_copying_init(&copying, WHOLE_RING);
    while (copy_chunk(world, &copying, &writer)) continue;
    assert_int_equal(pwi_shard_stage_rest(world->follower, WHOLE_RING), PAWL_OK);
    open_vector(world->head, entry_at(0));
    if (is_late) {
      open_vector(world->follower, entry_at(0));
      assert_int_equal(pwi_shard_stage_rest(world->follower, WHOLE_RING), PAWL_OK);
    }
    for (int i = 0; i < 50; i++) {
      do_something(world);
      follow(world, WHOLE_RING);
    }
    assert_int_equal(pwi_shard_adopt(world->follower, WHOLE_RING), PAWL_OK);
    assert_equal(world);
    pwi_writer_fini(&writer);
    stop(world);
  }
  test_free(world);
}

/* --- what does not go together -------------------------------------------------------------------------- */

static void assert_follows(struct world *world, const struct pwi_change *change, enum pwi_code code,
                           pawl_status status) {
  struct pwi_outcome outcome;
  uint64_t before = pwi_shard_digest(world->follower, WHOLE_RING, &world->membership);
  pwi_shard_follow(world->follower, change, WHOLE_RING, &outcome);
  assert_string_equal(pwi_code_text(outcome.code), pwi_code_text(code));
  assert_string_equal(pawl_status_name(outcome.status), pawl_status_name(status));
  assert_true(before == pwi_shard_digest(world->follower, WHOLE_RING, &world->membership));
}

static void test_changes_that_do_not_go_together_change_nothing(void **state) {
  (void)state;
  struct world *world = test_malloc(sizeof *world);
  start(world, 1, UINT64_MAX, true);
  do push_some(world);
  while (!world->has_change || world->change.effect != PWI_EFFECT_ROWS ||
         world->change.request.terms.keys != PWI_KEYS_LIST);
  struct pwi_change right = world->change, wrong = right;
  wrong.request.terms.vector.id = 77;
  assert_follows(world, &wrong, PWI_CODE_FAILED, PAWL_NOT_FOUND);
  wrong = right;
  wrong.request.terms.claim.end = UINT64_MAX;
  assert_follows(world, &wrong, PWI_CODE_FAILED, PAWL_CORRUPT);
  wrong = right;
  wrong.effect = PWI_EFFECT_NONE;
  assert_follows(world, &wrong, PWI_CODE_FAILED, PAWL_CORRUPT);
  wrong = right;
  wrong.effect = PWI_EFFECT_TICK; /* of what is no group */
  assert_follows(world, &wrong, PWI_CODE_FAILED, PAWL_CORRUPT);
  wrong = right;
  wrong.request.terms.vector.id = GROUP; /* rows of a group */
  assert_follows(world, &wrong, PWI_CODE_FAILED, PAWL_CORRUPT);
  wrong = right;
  wrong.request.value_type ^= 1;
  assert_follows(world, &wrong, PWI_CODE_FAILED, PAWL_CORRUPT);
  world->values.iov_len -= 1;
  assert_follows(world, &right, PWI_CODE_FAILED, PAWL_CORRUPT);
  world->values.iov_len += 1;
  wrong = right;
  wrong.request.terms.keys = PWI_KEYS_SIGNED;
  wrong.request.signature = 5;
  assert_follows(world, &wrong, PWI_CODE_WANTED, PAWL_OK);
  wrong = right;
  wrong.request.terms.range = pawl_range_of(0, 1); /* keys outside of it */
  assert_follows(world, &wrong, PWI_CODE_FAILED, PAWL_CORRUPT);
  struct pwi_entry loaded = entry_at(right.request.terms.vector.id - 1);
  loaded.incarnation = 1;
  assert_int_equal(pwi_shard_renew(world->follower, &loaded), PAWL_OK);
  assert_follows(world, &right, PWI_CODE_OK, PAWL_OK); /* of the incarnation before */
  stop(world);
  test_free(world);
}

static void test_a_change_for_which_there_is_no_memory_may_be_tried_again(void **state) {
  (void)state;
  struct world *world = test_malloc(sizeof *world);
  for (uint64_t seed = 1; seed <= 12; seed++) {
    uint64_t failures = 0;
    start(world, seed, UINT64_MAX, true);
    for (int i = 0; i < 12; i++) {
      do_something(world);
      if (!world->has_change) continue;
      for (uint64_t n = 0;; n++) {
        struct pwi_outcome outcome;
        struct pwi_change change = world->change;
        if (change.request.terms.keys == PWI_KEYS_SIGNED) {
          change.request.terms.keys = PWI_KEYS_LIST;
          change.request.keys = world->keys;
        }
        pwi_memory_fail_after(n);
        pwi_shard_follow(world->follower, &change, WHOLE_RING, &outcome);
        if (!pwi_memory_fail_cancel()) break;
        failures++;
        if (outcome.code == PWI_CODE_OK) break; /* it could do without: a list that is not kept */
        assert_int_equal(outcome.status, PAWL_NO_MEMORY);
      }
      assert_equal(world);
    }
    assert_true(failures > 0);
    stop(world);
  }
  test_free(world);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_follower_equals_the_head_after_every_change),
      cmocka_unit_test(test_a_follower_that_keeps_another_refusal_has_another_digest),
      cmocka_unit_test(test_a_follower_that_is_filled_meanwhile_equals_the_head),
      cmocka_unit_test(test_a_follower_that_is_filled_while_vectors_are_loaded_equals_the_head),
      cmocka_unit_test(test_a_filling_that_is_broken_off_begins_anew),
      cmocka_unit_test(test_a_follower_keeps_the_times_of_senders_that_are_newer_than_its_membership),
      cmocka_unit_test(test_a_vector_that_is_opened_after_the_last_chunk_has_its_times_all_the_same),
      cmocka_unit_test(test_changes_that_do_not_go_together_change_nothing),
      cmocka_unit_test(test_a_change_for_which_there_is_no_memory_may_be_tried_again),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
