/* Workers that count topics, see counts.h. */
#include "counts.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "apps/lda/marks.h"

#define VECTOR "lda/counts"
#define TOTALS COUNTS_WORDS /* key of the row of totals */
#define LOOK COUNTS_HOLDS   /* cookie: look for pieces */

/* --- the corpus ----------------------------------------------------------------------------------------- */

static void draw_piece(struct pwi_random *random, uint64_t number, struct counts_piece *piece) {
  piece->number = number;
  piece->token_count = 1 + (size_t)pwi_random_below(random, COUNTS_TOKENS);
  for (size_t t = 0; t < piece->token_count; t++) piece->words[t] = (uint8_t)pwi_random_below(random, COUNTS_WORDS);
  for (uint64_t word = 0; word < COUNTS_WORDS; word++)
    if (memchr(piece->words, (int)word, piece->token_count)) piece->each[piece->word_count++] = word;
  memset(piece->files[0].topics, COUNTS_NONE, sizeof piece->files[0].topics);
}

/* Marks of both columns, and of the sign. */
static void draw_corpus(struct counts *counts) {
  static const uint64_t numbers[COUNTS_PIECES] = {0, 1, 30, 31, 32, 63};
  for (size_t p = 0; p < COUNTS_PIECES; p++) draw_piece(&counts->random, numbers[p], &counts->pieces[p]);
}

/* --- steps ---------------------------------------------------------------------------------------------- */

static void later(struct counts_hold *hold) {
  struct counts_worker *worker = hold->worker;
  int64_t delay = 1 + (int64_t)pwi_random_below(worker->client.random, 50 * MS);
  pwi_cluster_timer(&worker->client, delay, (uint64_t)(hold - worker->holds));
}

static void go_to(struct counts_hold *hold, enum counts_phase phase) {
  hold->phase = phase;
  hold->slice_count = 0;
  later(hold);
}

/* Handles a failed call of a worker. Only a worker that was declared dead may have one. */
static void failed(struct counts_worker *worker, pawl_status status) {
  struct counts *counts = worker->counts;
  bool is_expected = status == PAWL_NODE_GONE || counts->bug != COUNTS_RIGHT;
  if (!is_expected) pwi_sim_fail(counts->cluster.sim, PAWL_CORRUPT, "a call: %s", pawl_status_name(status));
  counts->figures.deaths += !worker->is_dead;
  worker->is_dead = true;
}

static void all_answered(struct counts_hold *hold);
static void write_topics(struct counts_hold *hold, uint64_t word);

static void finished(struct pwi_task *task) {
  struct counts_slice *slice = (struct counts_slice *)((char *)task - offsetof(struct counts_slice, task));
  struct counts_hold *hold = slice->hold;
  hold->under_way--;
  if (task->status) {
    failed(hold->worker, task->status);
    return;
  }
  bool is_late = hold->worker->counts->bug == COUNTS_LATE_TOPICS && hold->phase == COUNTS_PUSHING;
  for (size_t i = 0; i < slice->count && is_late; i++) write_topics(hold, slice->keys[i]);
  if (hold->under_way == 0 && hold->next == hold->word_count && !hold->worker->is_dead) all_answered(hold);
}

static struct counts_slice *open_slice(struct counts_hold *hold) {
  struct counts_slice *slice = &hold->slices[hold->slice_count++];
  *slice = (struct counts_slice){.hold = hold, .task.finished = finished};
  return slice;
}

static void start(struct counts_slice *slice, enum pwi_request_kind kind) {
  struct counts_worker *worker = slice->hold->worker;
  struct pwi_where where = {.keys = slice->keys, .count = slice->count};
  slice->hold->under_way++;
  pawl_status status = pwi_client_start(worker->client.client, &slice->task, worker->flow, kind, &where, slice->in,
                                        kind == PWI_REQUEST_PUSHPULL ? slice->out : NULL);
  if (!status) return;
  slice->hold->under_way--;
  failed(worker, status);
}

/* --- sweeps --------------------------------------------------------------------------------------------- */

static uint8_t *topics_of(struct counts_file *file, uint64_t version) { return file->topics[version & 1]; }

static void write_topics(struct counts_hold *hold, uint64_t word) {
  const struct counts_piece *piece = hold->piece;
  uint8_t *topics = topics_of(hold->file, hold->version + 1);
  for (size_t t = 0; t < piece->token_count; t++)
    if (piece->words[t] == word) topics[t] = hold->drawn[t];
}

static void count_token(int32_t *change, uint8_t before, uint8_t after) {
  if (before != COUNTS_NONE) change[before]--;
  if (after != COUNTS_NONE) change[after]++;
}

/* The change of a word, or of all words for the totals. */
static void fill_change(struct counts_hold *hold, uint64_t key, int32_t *change) {
  const struct counts_piece *piece = hold->piece;
  const uint8_t *before = topics_of(hold->file, hold->version);
  const uint8_t *after = key == TOTALS ? topics_of(hold->file, hold->version + 1) : hold->drawn;
  for (size_t t = 0; t < piece->token_count; t++)
    if (key == TOTALS || piece->words[t] == key) count_token(change, before[t], after[t]);
  lda_mark_flip(change, COUNTS_TOPICS, piece->number, hold->version);
}

static void push_slice(struct counts_hold *hold) {
  struct counts_slice *slice = open_slice(hold);
  size_t left = hold->word_count - hold->next;
  size_t most = 1 + (size_t)pwi_random_below(hold->worker->client.random, COUNTS_SLICE);
  for (slice->count = 0; slice->count < most && slice->count < left; slice->count++) {
    uint64_t word = hold->words[hold->next + slice->count];
    slice->keys[slice->count] = word;
    if (hold->worker->counts->bug != COUNTS_LATE_TOPICS) write_topics(hold, word);
    fill_change(hold, word, slice->in[slice->count]);
  }
  hold->next += slice->count;
  start(slice, PWI_REQUEST_PUSH);
}

static void push_some(struct counts_hold *hold) {
  for (uint64_t more = pwi_random_below(hold->worker->client.random, 3); hold->next < hold->word_count; more--) {
    push_slice(hold);
    if (more == 0) break;
  }
  if (hold->next < hold->word_count) later(hold);
}

static void push_totals(struct counts_hold *hold) {
  struct counts_slice *slice = open_slice(hold);
  slice->keys[0] = TOTALS;
  slice->count = 1;
  fill_change(hold, TOTALS, slice->in[0]);
  start(slice, PWI_REQUEST_PUSH);
}

static void begin_sweep(struct counts_hold *hold) {
  const struct counts_piece *piece = hold->piece;
  hold->version = hold->file->version;
  if (hold->version >= COUNTS_SWEEPS) {
    hold->phase = COUNTS_FREE;
    hold->piece = NULL;
    return;
  }
  memcpy(hold->words, piece->each, sizeof hold->words);
  hold->word_count = piece->word_count;
  hold->next = 0;
  hold->owes_totals = true;
  for (size_t t = 0; t < piece->token_count; t++)
    hold->drawn[t] = (uint8_t)pwi_random_below(hold->worker->client.random, COUNTS_TOPICS);
  go_to(hold, COUNTS_PUSHING);
}

static void write_head(struct counts_hold *hold) {
  hold->file->version = hold->version + 1;
  hold->worker->counts->figures.sweeps++;
  begin_sweep(hold);
}

/* --- taking over ---------------------------------------------------------------------------------------- */

static void begin_reading(struct counts_hold *hold) {
  hold->read = hold->piece->newest;
  hold->version = hold->piece->files[hold->read].version;
  hold->word_count = hold->next = 0;
  go_to(hold, COUNTS_READING);
}

/* Reads by pushes of zeros, so that the values cannot be undone. */
static void read_rows(struct counts_hold *hold) {
  const struct counts_piece *piece = hold->piece;
  for (size_t i = 0; i <= piece->word_count && !hold->worker->is_dead;) {
    struct counts_slice *slice = open_slice(hold);
    for (; slice->count < COUNTS_SLICE && i <= piece->word_count; i++)
      slice->keys[slice->count++] = i < piece->word_count ? piece->each[i] : TOTALS;
    start(slice, PWI_REQUEST_PUSHPULL);
  }
}

/* Finds the words whose mark is not ahead, and whether the totals are ahead. */
static void look_at_marks(struct counts_hold *hold, bool *totals_ahead) {
  *totals_ahead = false;
  hold->word_count = 0;
  for (size_t s = 0; s < hold->slice_count; s++)
    for (size_t i = 0; i < hold->slices[s].count; i++) {
      const struct counts_slice *slice = &hold->slices[s];
      bool is_ahead = lda_mark_is_ahead(slice->out[i], COUNTS_TOPICS, hold->piece->number, hold->version);
      if (hold->worker->counts->bug == COUNTS_NO_MARKS) is_ahead = false;
      if (slice->keys[i] == TOTALS)
        *totals_ahead = is_ahead;
      else if (!is_ahead)
        hold->words[hold->word_count++] = slice->keys[i];
    }
}

static void note_found(struct counts_hold *hold, bool totals_ahead) {
  struct counts_figures *figures = &hold->worker->counts->figures;
  if (hold->word_count == hold->piece->word_count)
    figures->clean++;
  else if (hold->word_count > 0)
    figures->partial++;
  else if (!totals_ahead)
    figures->totals++;
  else
    figures->whole++;
}

/* Atomic, as link() is: only one of two workers makes the next file. */
static bool make_file(struct counts_hold *hold, const struct counts_file *file) {
  struct counts_piece *piece = hold->piece;
  bool is_shared = hold->worker->counts->bug == COUNTS_ONE_FILE;
  if (piece->newest != hold->read || piece->newest + 1 == COUNTS_FILES) return false;
  if (!is_shared) piece->newest++;
  piece->files[piece->newest] = *file;
  hold->file = &piece->files[piece->newest];
  return true;
}

static void mend(struct counts_hold *hold) {
  const struct counts_piece *piece = hold->piece;
  struct counts_file file = piece->files[hold->read];
  bool totals_ahead;
  look_at_marks(hold, &totals_ahead);
  bool is_clean = hold->word_count == piece->word_count;
  for (size_t t = 0; t < piece->token_count && !is_clean; t++)
    for (size_t i = 0; i < hold->word_count; i++)
      if (piece->words[t] == hold->words[i])
        topics_of(&file, hold->version + 1)[t] = topics_of(&file, hold->version)[t];
  if (!make_file(hold, &file)) {
    hold->worker->counts->figures.late_files++;
    begin_reading(hold);
    return;
  }
  note_found(hold, totals_ahead);
  if (is_clean) {
    begin_sweep(hold);
    return;
  }
  memcpy(hold->drawn, topics_of(hold->file, hold->version + 1), sizeof hold->drawn);
  hold->owes_totals = !totals_ahead;
  if (hold->word_count > 0)
    go_to(hold, COUNTS_PUSHING);
  else
    go_to(hold, hold->owes_totals ? COUNTS_TOTALLING : COUNTS_WRITING);
}

/* --- what comes next ------------------------------------------------------------------------------------ */

static void all_answered(struct counts_hold *hold) {
  if (hold->phase == COUNTS_READING)
    mend(hold);
  else
    go_to(hold, hold->phase == COUNTS_PUSHING && hold->owes_totals ? COUNTS_TOTALLING : COUNTS_WRITING);
}

static void advance(struct counts_hold *hold) {
  if (!hold->piece || hold->worker->is_dead) return;
  switch (hold->phase) {
  case COUNTS_READING:
    read_rows(hold);
    return;
  case COUNTS_PUSHING:
    push_some(hold);
    return;
  case COUNTS_TOTALLING:
    push_totals(hold);
    return;
  case COUNTS_WRITING:
    write_head(hold);
    return;
  case COUNTS_FREE:
    return;
  }
}

/* --- owners --------------------------------------------------------------------------------------------- */

static uint64_t sender_of(const struct counts_worker *worker) {
  struct pwi_client_state state;
  pwi_client_state(worker->client.client, &state);
  return state.sender;
}

/* A client receives a membership when all servers have it. */
static bool may_take(const struct counts_worker *worker, const struct counts_piece *piece) {
  const struct pwi_membership *membership = pwi_client_membership(worker->client.client);
  if (piece->owner == 0) return true;
  if (piece->owner == sender_of(worker)) return false;
  if (worker->counts->bug == COUNTS_NO_FENCE)
    return !piece->owner_worker->client.client || piece->owner_worker->client.incarnation != piece->owner_life;
  return membership->number >= piece->owner_membership &&
         !pwi_membership_is_live(membership, (struct pwi_sender){piece->owner});
}

static void take(struct counts_hold *hold, struct counts_piece *piece) {
  struct counts_worker *worker = hold->worker;
  bool is_new = piece->owner == 0;
  piece->owner = sender_of(worker);
  piece->owner_membership = pwi_client_membership(worker->client.client)->number;
  piece->owner_worker = worker;
  piece->owner_life = worker->client.incarnation;
  hold->piece = piece;
  hold->file = &piece->files[piece->newest];
  hold->under_way = 0;
  if (is_new)
    begin_sweep(hold);
  else
    begin_reading(hold);
}

static void find_piece(struct counts_hold *hold) {
  struct counts *counts = hold->worker->counts;
  size_t first = (size_t)pwi_random_below(hold->worker->client.random, COUNTS_PIECES);
  for (size_t i = 0; i < COUNTS_PIECES; i++) {
    struct counts_piece *piece = &counts->pieces[(first + i) % COUNTS_PIECES];
    if (piece->files[piece->newest].version >= COUNTS_SWEEPS || !may_take(hold->worker, piece)) continue;
    take(hold, piece);
    return;
  }
}

static void look(struct counts_worker *worker) {
  const struct pwi_entry *entry = pwi_catalogue_named(pwi_client_catalogue(worker->client.client), VECTOR);
  if (!worker->flow && entry && sender_of(worker) != 0 &&
      pwi_client_flow(worker->client.client, entry->id, 0, &worker->flow) != PAWL_OK)
    worker->flow = NULL;
  for (size_t i = 0; worker->flow && !worker->is_dead && sender_of(worker) != 0 && i < COUNTS_HOLDS; i++)
    if (!worker->holds[i].piece) find_piece(&worker->holds[i]);
  pwi_cluster_timer(&worker->client, 1 + (int64_t)pwi_random_below(worker->client.random, 20 * MS), LOOK);
}

static void timer(void *context, uint64_t cookie) {
  struct counts_worker *worker = context;
  if (cookie == LOOK)
    look(worker);
  else
    advance(&worker->holds[cookie]);
}

static void started(void *context) {
  struct counts_worker *worker = context;
  worker->flow = NULL;
  worker->is_dead = false;
  for (size_t i = 0; i < COUNTS_HOLDS; i++) worker->holds[i] = (struct counts_hold){.worker = worker};
  pwi_cluster_timer(&worker->client, 1, LOOK);
}

/* --- all of it ------------------------------------------------------------------------------------------ */

void counts_open(struct counts *counts, uint64_t seed, enum counts_bug bug) {
  struct pwi_cluster_config config = {.seed = seed,
                                      .processes = 3,
                                      .shards = 1,
                                      .replicas = 1,
                                      .points = 4,
                                      .client_grace_ns = 150 * MS,
                                      .shared_hosts = seed % 2 == 0};
  struct pawl_vector_options options = {.type = PAWL_I32, .width = COUNTS_WIDTH, .size = COUNTS_WORDS + 1};
  options.layout = seed % 3 ? PAWL_LAYOUT_DENSE : PAWL_LAYOUT_SPARSE;
  memset(counts, 0, sizeof *counts);
  counts->bug = bug;
  pwi_random_init(&counts->random, seed, 31);
  draw_corpus(counts);
  cluster_open(&counts->cluster, &config);
  counts->checker = (struct pwi_cluster_client){.name = "c", .job = "lda"};
  cluster_client_add(&counts->cluster, &counts->checker);
  cluster_wait_joined(&counts->checker);
  counts->flow = cluster_vector(&counts->checker, VECTOR, &options);
  for (unsigned w = 0; w < COUNTS_WORKERS; w++) {
    struct counts_worker *worker = &counts->workers[w];
    worker->counts = counts;
    worker->client = (struct pwi_cluster_client){
        .job = "lda", .stays_dead = bug != COUNTS_REJOINS, .started = started, .timer = timer, .context = worker};
    snprintf(worker->client.name, sizeof worker->client.name, "w%u", w);
    cluster_client_add(&counts->cluster, &worker->client);
  }
}

void counts_close(struct counts *counts) { pwi_cluster_close(&counts->cluster); }

bool counts_is_working(const struct counts *counts) {
  for (size_t p = 0; p < COUNTS_PIECES; p++)
    if (counts->pieces[p].files[counts->pieces[p].newest].version < COUNTS_SWEEPS) return true;
  return false;
}

/* Computes the table from the files. */
static void add_up(const struct counts *counts, int32_t table[COUNTS_WORDS + 1][COUNTS_WIDTH]) {
  for (size_t p = 0; p < COUNTS_PIECES; p++) {
    const struct counts_piece *piece = &counts->pieces[p];
    const struct counts_file *file = &piece->files[piece->newest];
    for (size_t t = 0; t < piece->token_count; t++) {
      uint8_t topic = file->topics[file->version & 1][t];
      table[piece->words[t]][topic]++;
      table[TOTALS][topic]++;
    }
    for (size_t i = 0; i <= piece->word_count && file->version % 2 == 1; i++)
      lda_mark_flip(table[i < piece->word_count ? piece->each[i] : TOTALS], COUNTS_TOPICS, piece->number, 0);
  }
}

static int32_t tokens_of(const struct counts *counts, uint64_t word) {
  int32_t count = 0;
  for (size_t p = 0; p < COUNTS_PIECES; p++)
    for (size_t t = 0; t < counts->pieces[p].token_count; t++) count += counts->pieces[p].words[t] == word;
  return count;
}

static int32_t sum_of(const int32_t *row) {
  int32_t sum = 0;
  for (size_t k = 0; k < COUNTS_TOPICS; k++) sum += row[k];
  return sum;
}

bool counts_check(struct counts *counts, char text[160]) {
  static int32_t table[COUNTS_WORDS + 1][COUNTS_WIDTH], wanted[COUNTS_WORDS + 1][COUNTS_WIDTH];
  uint64_t keys[COUNTS_WORDS + 1];
  struct pwi_where all = {.keys = keys, .count = COUNTS_WORDS + 1};
  struct pwi_task task = {0};
  memset(wanted, 0, sizeof wanted);
  add_up(counts, wanted);
  for (uint64_t key = 0; key <= TOTALS; key++) keys[key] = key;
  pawl_status status = pwi_cluster_call(&counts->checker, counts->flow, PWI_REQUEST_PULL, &all, NULL, table, &task);
  if (status || task.status) {
    snprintf(text, 160, "the table cannot be read: %s", pawl_status_name(status ? status : task.status));
    return false;
  }
  for (uint64_t key = 0; key <= TOTALS; key++) {
    int32_t sum = sum_of(table[key]), tokens = 0;
    for (uint64_t word = 0; word < TOTALS; word++) tokens += key == word || key == TOTALS ? tokens_of(counts, word) : 0;
    bool is_right = sum == tokens && memcmp(table[key], wanted[key], sizeof table[key]) == 0;
    if (is_right) continue;
    snprintf(text, 160, "row %llu counts %d tokens, the corpus has %d, the files make it %d%s", (unsigned long long)key,
             (int)sum, (int)tokens, (int)sum_of(wanted[key]), sum == tokens ? ", of other topics or marks" : "");
    return false;
  }
  return true;
}
