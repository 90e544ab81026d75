/* What the caller decides when the members have answered: which commits of lost members count, and where those that join
 * begin. */
#include <stdlib.h>

#include "base/memory.h"
#include "peer/factor/inside.h"

/* What a member has answered, or this one would. */
struct factor_answer {
  uint64_t id, life, clock, hash;
  struct factor_epoch in;
  enum factor_need need;
  const struct factor_line *lines;
  uint32_t count;
  uint32_t part;
};

struct factor_decision {
  struct factor_answer *answers;
  uint32_t answer_count;
  const struct factor_answer *best; /* in the newest epoch */
  struct factor_line *copies, *lines;
  uint32_t line_count;
};

static const struct factor_answer *answer_of(const struct factor_decision *decision, uint64_t life) {
  for (uint32_t i = 0; i < decision->answer_count; i++)
    if (decision->answers[i].life == life) return &decision->answers[i];
  return NULL;
}

static const struct factor_line *line_of(const struct factor_answer *answer, uint64_t life) {
  for (uint32_t i = 0; i < answer->count; i++)
    if (answer->lines[i].life == life) return &answer->lines[i];
  return NULL;
}

/* --- collecting ----------------------------------------------------------------------------------------- */

static bool is_present(const struct pwi_factor *engine, const struct factor_peer *peer) {
  return peer->is_linked && !peer->is_bad && peer->gone_life != peer->life &&
         pwi_factor_is_member(engine, peer->sender.id);
}

static uint32_t lines_in(const struct factor_peer *peer) {
  return (uint32_t)((peer->state_size - FACTOR_MESSAGE_SIZE) / FACTOR_LINE_SIZE);
}

static void add_peer_answer(struct factor_decision *decision, const struct factor_peer *peer,
                            struct factor_line *lines) {
  struct factor_message message;
  if (pwi_factor_message_decode(FACTOR_STATE, peer->state, peer->state_size, &message)) return;
  for (uint32_t i = 0; i < message.lines; i++) lines[i] = pwi_factor_line(&message, i);
  decision->answers[decision->answer_count++] = (struct factor_answer){.id = peer->sender.id,
                                                                       .life = message.life,
                                                                       .clock = message.number,
                                                                       .hash = message.hash,
                                                                       .in = message.own,
                                                                       .need = (enum factor_need)message.flags,
                                                                       .lines = lines,
                                                                       .count = message.lines,
                                                                       .part = peer->part};
}

static void add_own_answer(const struct pwi_factor *engine, struct factor_decision *decision) {
  for (uint32_t i = 0; i < engine->count; i++) decision->copies[i] = pwi_factor_own_line(&engine->origins[i]);
  decision->answers[decision->answer_count++] = (struct factor_answer){.id = pwi_channel_self(engine->channel).id,
                                                                       .life = engine->config.life,
                                                                       .clock = engine->clock,
                                                                       .hash = engine->initial_hash,
                                                                       .in = engine->epoch,
                                                                       .need = pwi_factor_need(engine),
                                                                       .lines = decision->copies,
                                                                       .count = engine->count,
                                                                       .part = engine->config.part};
}

static pawl_status collect(const struct pwi_factor *engine, struct factor_decision *decision) {
  size_t answers = 1, lines = engine->count, at = engine->count;
  for (const struct factor_peer *peer = engine->peers; peer; peer = peer->next) {
    if (!peer->has_state || !is_present(engine, peer)) continue;
    answers++;
    lines += lines_in(peer);
  }
  decision->answers = pwi_alloc_zero(answers, sizeof *decision->answers);
  decision->copies = pwi_alloc_zero(lines + 1, sizeof *decision->copies);
  decision->lines = pwi_alloc_zero(lines + answers, sizeof *decision->lines);
  if (!decision->answers || !decision->copies || !decision->lines) return PAWL_NO_MEMORY;
  add_own_answer(engine, decision);
  for (const struct factor_peer *peer = engine->peers; peer; peer = peer->next) {
    if (!peer->has_state || !is_present(engine, peer)) continue;
    add_peer_answer(decision, peer, decision->copies + at);
    at += lines_in(peer);
  }
  decision->best = &decision->answers[0];
  for (uint32_t i = 1; i < decision->answer_count; i++)
    if (pwi_factor_compare(decision->answers[i].in, decision->best->in) > 0) decision->best = &decision->answers[i];
  return PAWL_OK;
}

/* All members of the newest epoch that are not lost, and those that join; before the first epoch all members. */
static bool is_complete(const struct pwi_factor *engine, const struct factor_decision *decision) {
  const struct factor_answer *best = decision->best;
  if (best->in.number == 0) {
    for (const struct factor_peer *peer = engine->peers; peer; peer = peer->next)
      if (is_present(engine, peer) && !peer->has_state) return false;
    return pwi_factor_may_begin(engine);
  }
  for (uint32_t i = 0; i < best->count; i++) {
    const struct factor_line *line = &best->lines[i];
    if (line->final != FACTOR_NONE || pwi_factor_is_lost(engine, line->id, line->life)) continue;
    if (!answer_of(decision, line->life)) return false;
  }
  for (const struct factor_peer *peer = engine->peers; peer; peer = peer->next) {
    bool joins = is_present(engine, peer) && peer->has_status && peer->in_epoch.number == 0;
    if (joins && !line_of(best, peer->life) && !peer->has_state) return false;
  }
  return true;
}

/* --- deciding ------------------------------------------------------------------------------------------- */

/* The last commit that any survivor has received. */
static uint64_t final_of(const struct factor_decision *decision, const struct factor_line *line) {
  uint64_t final = line->base;
  for (uint32_t i = 0; i < decision->answer_count; i++) {
    const struct factor_line *seen = line_of(&decision->answers[i], line->life);
    if (seen && seen->received != FACTOR_NONE && seen->received > final) final = seen->received;
  }
  return final;
}

/* Everybody has applied all commits of an origin that is gone: it can be forgotten. */
static bool is_applied_by_all(const struct factor_decision *decision, const struct factor_line *line) {
  for (uint32_t i = 0; i < decision->answer_count; i++) {
    const struct factor_answer *answer = &decision->answers[i];
    const struct factor_line *seen = line_of(answer, line->life);
    if (!line_of(decision->best, answer->life)) continue; /* it joins */
    if (!seen || pwi_factor_compare(answer->in, decision->best->in) != 0 || seen->final != line->final) return false;
    if (seen->received != FACTOR_NONE && seen->applied < line->final) return false;
  }
  return true;
}

static void add_line(struct factor_decision *decision, struct factor_line line) {
  line.received = line.applied = 0;
  decision->lines[decision->line_count++] = line;
}

static void keep_origins(const struct pwi_factor *engine, struct factor_decision *decision) {
  for (uint32_t i = 0; i < decision->best->count; i++) {
    struct factor_line line = decision->best->lines[i];
    const struct factor_answer *answer = answer_of(decision, line.life);
    if (line.final != FACTOR_NONE) { /* the members that had its last commits may be lost, too */
      if (is_applied_by_all(decision, &line)) continue;
      uint64_t last = final_of(decision, &line);
      if (last < line.final) line.final = line.clock = last;
      add_line(decision, line);
      continue;
    }
    if (answer && !pwi_factor_is_lost(engine, line.id, line.life)) {
      if (answer->in.number != 0 && answer->clock > line.clock) line.clock = answer->clock;
    } else {
      line.final = line.clock = final_of(decision, &line);
    }
    add_line(decision, line);
  }
}

static void add_joining(struct factor_decision *decision) {
  uint64_t base = 0;
  for (uint32_t i = 0; i < decision->line_count; i++)
    if (decision->lines[i].clock > base) base = decision->lines[i].clock;
  for (uint32_t i = 0; i < decision->answer_count; i++) {
    const struct factor_answer *answer = &decision->answers[i];
    if (answer->in.number != 0 || line_of(decision->best, answer->life)) continue;
    add_line(decision, (struct factor_line){.id = answer->id,
                                            .life = answer->life,
                                            .base = base,
                                            .clock = base,
                                            .final = FACTOR_NONE,
                                            .part = answer->part});
  }
}

static int compare_lines(const void *left, const void *right) {
  const struct factor_line *a = left, *b = right;
  if (a->id != b->id) return a->id < b->id ? -1 : 1;
  return a->life < b->life ? -1 : a->life > b->life;
}

/* A member with the whole matrix, or all rows of this part; at the begin the first one. */
static const struct factor_answer *find_donor(const struct factor_decision *decision, uint32_t part) {
  bool is_begin = decision->best->in.number == 0;
  for (uint32_t i = 0; i < decision->line_count; i++) {
    const struct factor_line *line = &decision->lines[i];
    const struct factor_answer *answer = line->final == FACTOR_NONE ? answer_of(decision, line->life) : NULL;
    if (answer && answer->part == part && (is_begin || answer->need == FACTOR_COMPLETE)) return answer;
  }
  return NULL;
}

/* Its own life: its matrix is that of the donor. */
static uint64_t donor_for(const struct factor_decision *decision, uint64_t life) {
  const struct factor_answer *answer = answer_of(decision, life);
  bool is_begin = decision->best->in.number == 0;
  if (!answer || answer->need == FACTOR_COMPLETE) return 0;
  const struct factor_answer *donor = find_donor(decision, answer->part);
  if (!donor) return FACTOR_NONE;
  return is_begin && answer->hash == donor->hash ? life : donor->life;
}

static void begin(struct pwi_factor *engine, struct factor_decision *decision) {
  for (struct factor_peer *peer = engine->peers; peer; peer = peer->next) peer->donor = donor_for(decision, peer->life);
  pwi_factor_enter(engine, engine->promised, decision->lines, decision->line_count,
                   donor_for(decision, engine->config.life));
  for (struct factor_peer *peer = engine->peers; peer && !engine->failed; peer = peer->next)
    if (peer->is_linked && pwi_factor_origin(engine, peer->life)) pwi_factor_say_go(engine, peer);
}

void pwi_factor_decide(struct pwi_factor *engine) {
  struct factor_decision decision = {0};
  pawl_status status = collect(engine, &decision);
  if (status) {
    pwi_factor_fail(engine, status, "no memory to agree with the other members");
  } else if (is_complete(engine, &decision)) {
    keep_origins(engine, &decision);
    add_joining(&decision);
    qsort(decision.lines, decision.line_count, sizeof *decision.lines, compare_lines);
    const struct factor_line *self = NULL;
    for (uint32_t i = 0; i < decision.line_count; i++)
      if (decision.lines[i].life == engine->config.life) self = &decision.lines[i];
    if (self && self->final == FACTOR_NONE)
      begin(engine, &decision);
    else
      pwi_factor_fail(engine, PAWL_NODE_GONE, "the other members have gone on without this one");
  }
  pwi_free(decision.answers);
  pwi_free(decision.copies);
  pwi_free(decision.lines);
}
