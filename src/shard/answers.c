/* Requests that only read: PULL, SCAN, COLLECT; and clocks in answers. */
#include "shard/inside.h"

#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"

/* --- sizes of answers ----------------------------------------------------------------------------------- */

/* The maximum number of rows of a scan: limited by the keys of its range and by the rows of the table. */
static uint64_t scan_most(const struct pwi_vector *vector, const struct pwi_terms *terms) {
  uint64_t most = terms->rows, size = pawl_range_size(terms->range), count = pwi_table_count(vector->table);
  if (most > size) most = size;
  return most < count ? most : count;
}

pawl_status pwi_shard_answer_bytes(const struct pwi_shard *shard, const struct pwi_request *request, size_t max,
                                   size_t *bytes_out) {
  const struct pwi_terms *terms = &request->terms;
  const struct pwi_vector *vector = pwi_shard_vector(shard, terms->vector);
  uint64_t rows = 0, bytes = 0;
  if (vector && vector->table) {
    if (terms->kind == PWI_REQUEST_PULL || terms->kind == PWI_REQUEST_PUSHPULL) rows = terms->rows;
    if (terms->kind == PWI_REQUEST_SCAN) rows = scan_most(vector, terms);
    if (!pwi_mul_u64(rows, vector->table->row_bytes, &bytes) || bytes > max) return PAWL_TOO_LARGE;
  }
  *bytes_out = (size_t)bytes;
  return PAWL_OK;
}

/* --- pull ----------------------------------------------------------------------------------------------- */

/* The rows if they lie together in the table, as those of a range of a dense table do; otherwise NULL. */
static const void *view_rows(const struct pwi_vector *vector, const struct pwi_request *request,
                             const struct pwi_named *named) {
  struct pawl_range range = pawl_range_of(request->terms.range.begin, request->terms.range.begin + named->count);
  struct pwi_rows rows;
  if (!request->may_view || vector->is_hollow || named->keys || named->count == 0) return NULL;
  if (!pwi_table_scan(vector->table, range, &rows)) return NULL;
  return !rows.keys && rows.first == range.begin && rows.count == named->count ? rows.values : NULL;
}

static pawl_status read_rows(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_request *request,
                             const struct pwi_named *named, void *values) {
  struct pwi_table *table = vector->table;
  if (vector->is_hollow) return PAWL_NODE_FULL;
  if (!named->keys && named->count > 0)
    return pwi_table_range_read(table, request->terms.range.begin, 0, named->count * table->is.width, values);
  if (!pwi_slots_hold(named->slots, table)) {
    pawl_status status = pwi_shard_resolve(shard, vector, named->keys, named->count, false, named->slots, named->list);
    if (status != PAWL_OK) return status;
  }
  pwi_table_gather(table, named->slots, 0, named->count, values);
  return PAWL_OK;
}

void pwi_serve_values(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_request *request,
                      const struct pwi_named *named, void *values, struct pwi_served *served) {
  size_t bytes;
  bool fits = pwi_mul_size(named->count, vector->table->row_bytes, &bytes);
  if (fits) served->view = view_rows(vector, request, named);
  pawl_status status = !fits          ? PAWL_TOO_LARGE
                       : served->view ? PAWL_OK
                                      : read_rows(shard, vector, request, named, values);
  if (status != PAWL_OK) {
    pwi_served_fail(served, status);
    return;
  }
  vector->pulls++;
  shard->totals.pulls++;
  shard->totals.keys_pulled += named->count;
  shard->totals.bytes_out += bytes;
  served->value_bytes = bytes;
}

/* The clocks of a forgotten sender are gone, so they say nothing about its pushes. */
void pwi_served_gap(struct pwi_shard *shard, const struct pwi_request *request, uint64_t found,
                    struct pwi_served *served) {
  if (shard->membership && pwi_membership_has_forgotten(shard->membership, request->sender)) {
    pwi_served_say(served, PWI_CODE_RETIRED, 0);
    return;
  }
  shard->totals.gaps++;
  pwi_served_say(served, PWI_CODE_GAP, found);
}

/* Returns true and sets the outcome if a task that the reader must see is not here yet. */
static bool has_gap(struct pwi_shard *shard, const struct pwi_vector *vector, const struct pwi_request *request,
                    struct pwi_served *served) {
  const struct pwi_terms *terms = &request->terms;
  uint64_t found;
  if (terms->prior == 0) return false;
  pawl_status status = pwi_clock_min(&vector->clocks[PWI_TASKS], request->sender, terms->claim, &found);
  if (status != PAWL_OK || found >= terms->prior) return false;
  pwi_served_gap(shard, request, found, served);
  return true;
}

void pwi_serve_pull(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_request *request, void *values,
                    struct pwi_served *served) {
  const struct pwi_terms *terms = &request->terms;
  struct pwi_named named;
  if (has_gap(shard, vector, request, served)) return;
  if (!pwi_serve_names(shard, vector, request, &named, served)) return;
  pwi_serve_values(shard, vector, request, &named, values, served);
  pwi_serve_clocks(shard, vector, request, served);
  pwi_samples_draw(&shard->samples, vector, named.keys, terms->range.begin, named.count);
}

/* --- clocks --------------------------------------------------------------------------------------------- */

/* Writes one record; with a NULL writer only its size is returned. */
static size_t write_clock(struct pwi_writer *writer, struct pawl_range range, struct pwi_sender sender, uint64_t time) {
  if (!writer) return 1;
  pwi_write_u64(writer, range.begin);
  pwi_write_u64(writer, range.end);
  pwi_write_u64(writer, sender.id);
  pwi_write_u64(writer, time);
  return 1;
}

static size_t write_pieces(struct pwi_writer *writer, const struct pwi_clock *clock, struct pwi_sender sender,
                           struct pawl_range claim) {
  struct pwi_clock_pieces pieces;
  struct pwi_clock_piece piece;
  size_t count = 0;
  if (!pwi_clock_has(clock, sender) || pwi_clock_walk(clock, sender, claim, &pieces)) return 0;
  while (pwi_clock_next(&pieces, &piece))
    if (piece.time > 0) count += write_clock(writer, piece.range, sender, piece.time);
  return count;
}

static size_t write_ticks(struct pwi_writer *writer, const struct pwi_membership *membership,
                          const struct pwi_vector *group) {
  size_t count;
  const struct pwi_membership_member *members = pwi_membership_members(membership, group->entry.id, &count);
  struct pawl_range place = pawl_range_of(group->group_key, group->group_key + 1);
  for (size_t i = 0; i < count; i++) {
    uint64_t tick = 0;
    if (pwi_clock_min(&group->clocks[PWI_TICKS], members[i].sender, place, &tick)) tick = 0;
    write_clock(writer, place, members[i].sender, tick);
  }
  return count;
}

static size_t write_clocks(struct pwi_writer *writer, const struct pwi_membership *membership,
                           const struct pwi_vector *vector, struct pawl_range claim) {
  size_t count = 0;
  if (vector->is_group) return write_ticks(writer, membership, vector);
  for (size_t i = 0; i < membership->sender_count; i++)
    if (!membership->senders[i].retired)
      count += write_pieces(writer, &vector->clocks[PWI_TASKS], membership->senders[i].sender, claim);
  return count;
}

size_t pwi_shard_clock_bytes(const struct pwi_shard *shard, const struct pwi_request *request) {
  const struct pwi_vector *vector = request->terms.clocks ? pwi_shard_vector(shard, request->terms.vector) : NULL;
  if (!vector || !shard->membership) return 0;
  return write_clocks(NULL, shard->membership, vector, request->terms.claim) * PWI_CLOCK_RECORD;
}

void pwi_serve_clocks(struct pwi_shard *shard, const struct pwi_vector *vector, const struct pwi_request *request,
                      struct pwi_served *served) {
  if (!request->terms.clocks || !shard->membership || served->outcome.code != PWI_CODE_OK) return;
  pwi_writer_reset(&shard->payload);
  write_clocks(&shard->payload, shard->membership, vector, request->terms.claim);
  if (shard->payload.status != PAWL_OK) {
    pwi_served_fail(served, shard->payload.status);
    served->value_bytes = 0;
    return;
  }
  served->payload = shard->payload.data;
  served->payload_size = shard->payload.size;
}

/* --- scan ----------------------------------------------------------------------------------------------- */

static void write_keys(struct pwi_writer *writer, const struct pwi_rows *rows, size_t count) {
  unsigned char *place = pwi_write_room(writer, count * sizeof(uint64_t));
  for (size_t i = 0; place && i < count; i++)
    pwi_put_u64(place + i * sizeof(uint64_t), rows->keys ? rows->keys[i] : rows->first + i);
}

void pwi_serve_scan(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_request *request, void *values,
                    struct pwi_served *served) {
  struct pawl_range range = request->terms.range;
  size_t most = (size_t)scan_most(vector, &request->terms), found = 0, bytes = vector->table->row_bytes;
  struct pwi_rows rows;
  if (has_gap(shard, vector, request, served)) return;
  pwi_writer_reset(&shard->payload);
  while (found < most && pwi_table_scan(vector->table, range, &rows)) {
    size_t count = rows.count < most - found ? rows.count : most - found;
    write_keys(&shard->payload, &rows, count);
    memcpy((char *)values + found * bytes, rows.values, count * bytes);
    found += count;
    range.begin = (rows.keys ? rows.keys[count - 1] : rows.first + (count - 1)) + 1;
  }
  if (shard->payload.status != PAWL_OK) {
    pwi_served_fail(served, shard->payload.status);
    return;
  }
  bool more = found == most && pwi_table_scan(vector->table, range, &rows);
  served->outcome.next = more ? range.begin : range.end;
  served->rows = found;
  served->value_bytes = found * bytes;
  served->payload = shard->payload.data;
  served->payload_size = shard->payload.size;
  shard->totals.bytes_out += served->value_bytes;
}

/* --- collect -------------------------------------------------------------------------------------------- */

static void write_u32_at(struct pwi_writer *writer, size_t at, uint32_t value) {
  if (writer->status == PAWL_OK) pwi_put_u32(writer->data + at, value);
}

static void write_times(struct pwi_writer *writer, struct pwi_clock_pieces pieces) {
  struct pwi_clock_piece piece;
  size_t at = writer->size;
  uint32_t count = 0;
  pwi_write_u32(writer, 0);
  for (; pwi_clock_next(&pieces, &piece); count++) {
    pwi_write_u64(writer, piece.range.begin);
    pwi_write_u64(writer, piece.range.end);
    pwi_write_u64(writer, piece.time);
  }
  write_u32_at(writer, at, count);
}

static void write_refusals(struct pwi_writer *writer, const struct pwi_refusals *refusals, struct pwi_sender sender,
                           struct pawl_range claim) {
  size_t at = writer->size;
  uint32_t count = 0;
  pwi_write_u32(writer, 0);
  for (size_t i = 0; i < refusals->count; i++) {
    const struct pwi_refusal *item = &refusals->items[i];
    struct pawl_range range = pawl_range_common(item->range, claim);
    if (item->sender.id != sender.id || pawl_range_is_empty(range)) continue;
    pwi_write_u64(writer, range.begin);
    pwi_write_u64(writer, range.end);
    pwi_write_u64(writer, item->task);
    pwi_write_u32(writer, (uint32_t)item->status);
    count++;
  }
  write_u32_at(writer, at, count);
}

/* The clocks of a live sender can still change, so COLLECT is only for retired senders. */
void pwi_serve_collect(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_request *request,
                       struct pwi_served *served) {
  struct pwi_sender other = {request->terms.other};
  struct pwi_clock_pieces pieces;
  if (!shard->membership || !pwi_membership_find(shard->membership, other)) {
    pwi_served_say(served, PWI_CODE_GONE, 0);
    return;
  }
  /* Such a part will still be applied. */
  if (pwi_aggregate_has_part(shard, vector->entry.id, other, request->terms.claim)) {
    pwi_served_say(served, PWI_CODE_NOT_HERE, 0);
    return;
  }
  pawl_status status = pwi_membership_is_retired(shard->membership, other) ? PAWL_OK : PAWL_INVALID;
  if (status == PAWL_OK) status = pwi_clock_walk(&vector->clocks[PWI_TASKS], other, request->terms.claim, &pieces);
  if (status == PAWL_OK) {
    pwi_writer_reset(&shard->payload);
    write_times(&shard->payload, pieces);
    write_refusals(&shard->payload, &vector->refusals, other, request->terms.claim);
    if (vector->results.count > 0) /* clients of earlier versions know no such list, and have no results */
      pwi_results_write(&shard->payload, &vector->results, other, 0, request->terms.claim);
    status = shard->payload.status;
  }
  if (status != PAWL_OK) {
    pwi_served_fail(served, status);
    return;
  }
  served->payload = shard->payload.data;
  served->payload_size = shard->payload.size;
}
