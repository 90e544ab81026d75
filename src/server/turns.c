#include "server/turns.h"

#define MILLISECOND INT64_C(1000000)

void pwi_turns_init(struct pwi_turns *turns) {
  *turns =
      (struct pwi_turns){.linger_ns = 20 * MILLISECOND, .wait_ns = 2000 * MILLISECOND, .turn_ns = 100 * MILLISECOND};
}

void pwi_turns_enter(struct pwi_turns *turns, unsigned priority) {
  if (turns->levels[priority].links++ > 0) return;
  turns->levels[priority] = (struct pwi_turns_level){.links = 1, .last = -turns->linger_ns};
  turns->in_use++;
}

void pwi_turns_leave(struct pwi_turns *turns, unsigned priority) {
  struct pwi_turns_level *level = &turns->levels[priority];
  if (--level->links > 0) return;
  *level = (struct pwi_turns_level){0};
  turns->in_use--;
}

void pwi_turns_touch(struct pwi_turns *turns, unsigned priority, int64_t now) { turns->levels[priority].last = now; }

void pwi_turns_begin(struct pwi_turns *turns, unsigned priority, int64_t now) {
  turns->levels[priority].open++;
  turns->levels[priority].last = now;
}

void pwi_turns_end(struct pwi_turns *turns, unsigned priority, int64_t now) {
  if (turns->levels[priority].open > 0) turns->levels[priority].open--;
  turns->levels[priority].last = now;
}

static bool is_under_way(const struct pwi_turns *turns, const struct pwi_turns_level *level, int64_t now) {
  return level->open > 0 || now - level->last < turns->linger_ns;
}

/* Whether a level below one that is under way is held. */
static bool must_wait(const struct pwi_turns *turns, struct pwi_turns_level *level, int64_t now) {
  if (level->is_held && now - level->held_at >= turns->wait_ns) level->turn_end = now + turns->turn_ns;
  return now >= level->turn_end;
}

unsigned pwi_turns_update(struct pwi_turns *turns, int64_t now) {
  unsigned changed = 0;
  bool is_urgent = false; /* a level above is under way */
  for (unsigned priority = PWI_PRIORITY_HIGHEST; priority >= PWI_PRIORITY_LOWEST; priority--) {
    struct pwi_turns_level *level = &turns->levels[priority];
    if (level->links == 0) continue;
    bool is_held = is_urgent && must_wait(turns, level, now);
    if (is_held != level->is_held) changed |= 1u << priority;
    if (is_held && !level->is_held) level->held_at = now;
    level->is_held = is_held;
    is_urgent = is_urgent || is_under_way(turns, level, now);
  }
  return changed;
}

int64_t pwi_turns_next(const struct pwi_turns *turns, int64_t now) {
  int64_t next = INT64_MAX;
  bool is_urgent = false;
  for (unsigned priority = PWI_PRIORITY_HIGHEST; priority >= PWI_PRIORITY_LOWEST; priority--) {
    const struct pwi_turns_level *level = &turns->levels[priority];
    if (level->links == 0) continue;
    int64_t at = level->is_held ? level->held_at + turns->wait_ns : is_urgent ? level->turn_end : INT64_MAX;
    if (is_under_way(turns, level, now)) {
      int64_t over = level->open > 0 ? INT64_MAX : level->last + turns->linger_ns;
      is_urgent = true;
      if (over < at) at = over;
    }
    if (at < next) next = at;
  }
  return next > now ? next : now;
}
