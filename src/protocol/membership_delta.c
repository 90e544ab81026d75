/* Steps of a membership: encoding, decoding and applying. */
#include "protocol/membership_delta.h"

#include <string.h>

#include "base/cursor.h"

#define VERSION 2
#define VERSION_PLAIN 1 /* senders without host and rack */
#define STEP_LEAST 9    /* bytes of the shortest step */

/* --- one step ------------------------------------------------------------------------------------------- */

static pawl_status take(struct pwi_membership *membership, const struct pwi_membership_step *step) {
  struct pwi_sender sender = step->sender.sender;
  switch (step->kind) {
  case PWI_MEMBERSHIP_STEP_ADD:
    return pwi_membership_add(membership, &step->sender);
  case PWI_MEMBERSHIP_STEP_RETIRE:
    return pwi_membership_retire(membership, sender);
  case PWI_MEMBERSHIP_STEP_FORGET:
    return pwi_membership_forget(membership, &sender, 1);
  case PWI_MEMBERSHIP_STEP_ADDRESS:
    return pwi_membership_set_address(membership, sender, step->sender.address);
  case PWI_MEMBERSHIP_STEP_JOIN:
    return pwi_membership_join(membership, step->group, step->size, sender);
  case PWI_MEMBERSHIP_STEP_LEAVE:
    return pwi_membership_leave(membership, step->group, sender);
  }
  return PAWL_CORRUPT;
}

pawl_status pwi_membership_step(struct pwi_membership *membership, const struct pwi_membership_step *step) {
  bool is_about_retired = step->kind == PWI_MEMBERSHIP_STEP_FORGET || step->kind == PWI_MEMBERSHIP_STEP_ADDRESS;
  if (is_about_retired && pwi_membership_has_forgotten(membership, step->sender.sender)) {
    membership->number++;
    return PAWL_OK;
  }
  pawl_status status = take(membership, step);
  return status && status != PAWL_NO_MEMORY ? PAWL_CORRUPT : status;
}

/* --- as bytes ------------------------------------------------------------------------------------------- */

void pwi_membership_step_encode(const struct pwi_membership_step *step, struct pwi_writer *writer) {
  pwi_write_u8(writer, (uint8_t)step->kind);
  if (step->kind == PWI_MEMBERSHIP_STEP_ADD) {
    pwi_membership_write_sender(writer, &step->sender);
    return;
  }
  pwi_write_u64(writer, step->sender.sender.id);
  if (step->kind == PWI_MEMBERSHIP_STEP_ADDRESS) pwi_write_text(writer, step->sender.address);
  if (step->kind == PWI_MEMBERSHIP_STEP_JOIN || step->kind == PWI_MEMBERSHIP_STEP_LEAVE)
    pwi_write_u64(writer, step->group.id);
  if (step->kind == PWI_MEMBERSHIP_STEP_JOIN) pwi_write_u32(writer, step->size);
}

static void read_step(struct pwi_reader *reader, uint8_t version, struct pwi_membership_step *step) {
  memset(step, 0, sizeof *step);
  uint8_t kind = pwi_read_u8(reader);
  if (kind < PWI_MEMBERSHIP_STEP_ADD || kind > PWI_MEMBERSHIP_STEP_LEAVE) pwi_reader_fail(reader, PAWL_CORRUPT);
  step->kind = (enum pwi_membership_step_kind)kind;
  if (kind == PWI_MEMBERSHIP_STEP_ADD) {
    pwi_membership_read_sender(reader, version == VERSION_PLAIN, &step->sender);
    return;
  }
  step->sender.sender.id = pwi_read_u64(reader);
  if (kind == PWI_MEMBERSHIP_STEP_ADDRESS) pwi_read_text(reader, step->sender.address, sizeof step->sender.address);
  if (kind == PWI_MEMBERSHIP_STEP_JOIN || kind == PWI_MEMBERSHIP_STEP_LEAVE) step->group.id = pwi_read_u64(reader);
  if (kind == PWI_MEMBERSHIP_STEP_JOIN) step->size = pwi_read_u32(reader);
}

/* --- deltas --------------------------------------------------------------------------------------------- */

void pwi_delta_begin(uint64_t since, uint32_t count, struct pwi_writer *writer) {
  pwi_write_u8(writer, VERSION);
  pwi_write_u64(writer, since);
  pwi_write_u32(writer, count);
}

struct delta {
  struct pwi_reader reader; /* at the first step */
  uint8_t version;
  uint64_t since;
  size_t count;
};

static pawl_status open_delta(const void *bytes, size_t size, struct delta *delta) {
  struct pwi_reader *reader = &delta->reader;
  pwi_reader_init(reader, bytes, size);
  delta->version = pwi_read_u8(reader);
  if (delta->version < VERSION_PLAIN || delta->version > VERSION) pwi_reader_fail(reader, PAWL_UNSUPPORTED);
  delta->since = pwi_read_u64(reader);
  delta->count = pwi_read_count(reader, STEP_LEAST);
  return reader->status;
}

/* Checks that the bytes are exactly this many steps. */
static pawl_status check_steps(struct delta delta) {
  struct pwi_membership_step step;
  for (size_t i = 0; i < delta.count && !delta.reader.status; i++) read_step(&delta.reader, delta.version, &step);
  return pwi_reader_end(&delta.reader);
}

/* Consecutive FORGET steps are applied in one call, because each call is a pass over the whole membership. */
struct batch {
  struct pwi_membership *membership;
  void (*forgot)(void *context, struct pwi_sender sender);
  void *context;
  struct pwi_sender gone[256];
  size_t count;
};

static pawl_status end_batch(struct batch *batch) {
  pawl_status status = pwi_membership_forget(batch->membership, batch->gone, batch->count);
  for (size_t i = 0; i < batch->count && !status && batch->forgot; i++) batch->forgot(batch->context, batch->gone[i]);
  batch->count = 0;
  return status ? PAWL_CORRUPT : PAWL_OK;
}

static bool fits(const struct batch *batch, const struct pwi_membership_step *step) {
  if (step->kind != PWI_MEMBERSHIP_STEP_FORGET || batch->count == sizeof batch->gone / sizeof *batch->gone)
    return false;
  if (!pwi_membership_is_retired(batch->membership, step->sender.sender)) return false;
  return batch->count == 0 || step->sender.sender.id > batch->gone[batch->count - 1].id;
}

static pawl_status take_step(struct batch *batch, const struct pwi_membership_step *step) {
  pawl_status status = fits(batch, step) ? PAWL_OK : end_batch(batch);
  if (status) return status;
  if (fits(batch, step)) {
    batch->gone[batch->count++] = step->sender.sender;
    return PAWL_OK;
  }
  status = pwi_membership_step(batch->membership, step);
  if (!status && step->kind == PWI_MEMBERSHIP_STEP_FORGET && batch->forgot)
    batch->forgot(batch->context, step->sender.sender);
  return status;
}

pawl_status pwi_membership_apply_delta(struct pwi_membership *membership, const void *bytes, size_t size,
                                       void (*forgot)(void *context, struct pwi_sender sender), void *context) {
  struct delta delta;
  struct pwi_membership_step step;
  struct batch batch = {.membership = membership, .forgot = forgot, .context = context};
  pawl_status status = open_delta(bytes, size, &delta);
  if (!status) status = check_steps(delta);
  if (!status && delta.since > membership->number) status = PAWL_CORRUPT;
  if (status) return status;
  uint64_t had = membership->number - delta.since;
  for (size_t i = 0; i < delta.count && !status; i++) {
    read_step(&delta.reader, delta.version, &step);
    if (i >= had) status = take_step(&batch, &step); /* earlier steps are in the membership already */
  }
  pawl_status ended = end_batch(&batch);
  return status ? status : ended;
}
