/* The faults of a nemesis: how each is drawn, begun and ended. */
#include "nemesis.h"

#include "tests/storm/harness/resets.h"

#define RESETS_MAX 6
#define NAMES_SIZE 256

static uint64_t below(struct nemesis *nemesis, uint64_t limit) { return pwi_random_below(&nemesis->random, limit); }
static bool chance(struct nemesis *nemesis, double p) { return pwi_random_chance(&nemesis->random, p); }

static nemesis_set one(size_t member) { return (nemesis_set)1 << member; }
static unsigned size_of(nemesis_set set) { return (unsigned)__builtin_popcountll(set); }

/* The members of a set, lowest first: removes and returns one. */
static size_t take(nemesis_set *set) {
  size_t member = (size_t)__builtin_ctzll(*set);
  *set &= *set - 1;
  return member;
}

static nemesis_set draw_some(struct nemesis *nemesis, nemesis_set from, unsigned count) {
  nemesis_set chosen = 0;
  while (size_of(chosen) < count && from) {
    nemesis_set left = from;
    for (uint64_t skip = below(nemesis, size_of(from)); skip > 0; skip--) take(&left);
    size_t member = take(&left);
    chosen |= one(member);
    from &= ~one(member);
  }
  return chosen;
}

static nemesis_set alive(const struct nemesis *nemesis, nemesis_set among, enum pwi_storm_role role) {
  nemesis_set found = 0;
  for (nemesis_set left = among; left;) {
    size_t member = take(&left);
    if (pwi_storm_is_alive(nemesis->storm, member, role)) found |= one(member);
  }
  return found;
}

static bool is_active(const struct nemesis *nemesis, enum nemesis_kind kind) {
  for (size_t i = 0; i < nemesis->active_count; i++)
    if (nemesis->active[i].kind == kind) return true;
  return false;
}

static const char *names_of(struct nemesis *nemesis, nemesis_set set, char text[NAMES_SIZE]) {
  size_t used = 0;
  text[0] = '\0';
  while (set && used < NAMES_SIZE) {
    const char *name = pwi_storm_name(nemesis->storm, take(&set));
    used += (size_t)snprintf(text + used, NAMES_SIZE - used, "%s%s", used ? " " : "", name);
  }
  return text;
}

/* --- the account ---------------------------------------------------------------------------------------- */

bool nemesis_may(nemesis_set hit, nemesis_set servers, bool is_deadly, unsigned replicas) {
  if (!servers || size_of(hit | servers) <= replicas) return true;
  return !hit && !is_deadly;
}

/* --- drawing -------------------------------------------------------------------------------------------- */

/* Half of them are near the limits of silence (some 0.3 s), where decisions are hardest. */
static unsigned draw_length(struct nemesis *nemesis) {
  unsigned longest = chance(nemesis, 0.5) ? 700 : nemesis->plan.longest_ms;
  return 100 + (unsigned)below(nemesis, longest - 100);
}

static size_t draw_manager(struct nemesis *nemesis) {
  nemesis_set others = nemesis->managers & ~one(nemesis->leader);
  bool is_other = chance(nemesis, 0.25) && others;
  return is_other ? take(&others) : nemesis->leader;
}

/* A device that goes down forgets which packets it has to lose, so these two kinds do not overlap. */
static bool draw_manager_link(struct nemesis *nemesis, bool is_alone, struct nemesis_fault *fault) {
  fault->members = one(is_alone ? nemesis->leader : draw_manager(nemesis));
  fault->way = chance(nemesis, 0.5) ? PWI_STORM_NEAR_END : PWI_STORM_FAR_END;
  return !is_active(nemesis, NEMESIS_STORE);
}

static bool draw_store(struct nemesis *nemesis, bool is_alone, struct nemesis_fault *fault) {
  bool is_all = chance(nemesis, 0.25);
  fault->members = is_all && !is_alone ? nemesis->managers : one(is_alone ? nemesis->leader : draw_manager(nemesis));
  return !is_active(nemesis, NEMESIS_MANAGER_LINK);
}

/* The servers that a deciding manager may find silent. If managers and etcd are not together, any of them may
 * lead at the end. */
static nemesis_set silenced(const struct nemesis *nemesis, nemesis_set group, bool has_etcd) {
  nemesis_set there = group & nemesis->managers;
  bool is_split = there && there != nemesis->managers;
  if (is_split || (nemesis->plan.has_etcd && has_etcd != (there != 0))) return nemesis->servers;
  return there ? nemesis->servers & ~group : nemesis->servers & group;
}

/* Any two groups; or at most k servers, and perhaps workers, apart from all others. */
static bool draw_partition(struct nemesis *nemesis, bool is_alone, struct nemesis_fault *fault) {
  nemesis_set all = nemesis->managers | nemesis->servers | nemesis->workers;
  bool is_small = !is_alone && chance(nemesis, 0.5);
  if (is_small) {
    fault->members = draw_some(nemesis, nemesis->servers, 1 + (unsigned)below(nemesis, nemesis->plan.replicas));
    fault->members |= draw_some(nemesis, nemesis->workers, (unsigned)below(nemesis, NEMESIS_WORKERS + 1));
  } else {
    fault->has_etcd = nemesis->plan.has_etcd && chance(nemesis, 0.5);
    do fault->members = pwi_random_u64(&nemesis->random) & all;
    while (!fault->members || fault->members == all);
  }
  fault->servers = silenced(nemesis, fault->members, fault->has_etcd);
  return true;
}

static bool draw_pause(struct nemesis *nemesis, bool is_alone, struct nemesis_fault *fault) {
  unsigned most = nemesis->plan.replicas + 1;
  unsigned count = is_alone || chance(nemesis, 0.5) ? most : 1 + (unsigned)below(nemesis, most);
  fault->members = draw_some(nemesis, alive(nemesis, nemesis->servers, PWI_STORM_SERVER), count);
  fault->servers = fault->members;
  return fault->members != 0;
}

static bool draw_kill(struct nemesis *nemesis, bool is_alone, struct nemesis_fault *fault) {
  (void)is_alone;
  unsigned count = 1 + (unsigned)below(nemesis, nemesis->plan.replicas);
  fault->members = draw_some(nemesis, alive(nemesis, nemesis->servers, PWI_STORM_SERVER), count);
  fault->servers = fault->members;
  fault->is_deadly = true;
  return fault->members != 0;
}

static bool draw_kill_manager(struct nemesis *nemesis, bool is_alone, struct nemesis_fault *fault) {
  fault->members = one(is_alone ? nemesis->leader : draw_manager(nemesis));
  return true;
}

static bool draw_reset(struct nemesis *nemesis, bool is_alone, struct nemesis_fault *fault) {
  (void)nemesis, (void)is_alone, (void)fault;
  return true;
}

/* --- doing ---------------------------------------------------------------------------------------------- */

static struct pwi_storm_cells *cells(struct nemesis *nemesis) { return pwi_storm_cells(nemesis->storm); }

static void must(struct nemesis *nemesis, bool good, const char *what) {
  if (good) return;
  pwi_storm_keep(nemesis->storm);
  fail_msg("cannot %s; see %s", what, pwi_storm_folder(nemesis->storm));
}

static void set_link(struct nemesis *nemesis, const struct nemesis_fault *fault, bool is_down) {
  for (nemesis_set left = fault->members; left;)
    must(nemesis,
         pwi_storm_cell_down(cells(nemesis), pwi_storm_cell(nemesis->storm, take(&left)),
                             (enum pwi_storm_end)fault->way, is_down),
         "change a manager's link");
}

static void set_store(struct nemesis *nemesis, const struct nemesis_fault *fault, bool is_lost) {
  for (nemesis_set left = fault->members; left;) {
    uint32_t cell = pwi_storm_cell(nemesis->storm, take(&left)), etcd = nemesis->etcd.cell;
    must(nemesis,
         pwi_storm_cell_lose(cells(nemesis), cell, etcd, is_lost) &&
             pwi_storm_cell_lose(cells(nemesis), etcd, cell, is_lost),
         "change a manager's way to etcd");
  }
}

static void set_groups(struct nemesis *nemesis, const struct nemesis_fault *fault, bool is_apart) {
  uint32_t group = is_apart ? 1 : 0;
  for (nemesis_set left = fault->members; left;)
    must(nemesis, pwi_storm_cell_group(cells(nemesis), pwi_storm_cell(nemesis->storm, take(&left)), group),
         "move a process to another group");
  if (fault->has_etcd)
    must(nemesis, pwi_storm_cell_group(cells(nemesis), nemesis->etcd.cell, group), "move etcd to another group");
}

static void set_pause(struct nemesis *nemesis, const struct nemesis_fault *fault, bool is_paused) {
  for (nemesis_set left = fault->members; left;) pwi_storm_pause(nemesis->storm, take(&left), is_paused);
}

static void set_killed(struct nemesis *nemesis, const struct nemesis_fault *fault, bool is_killed) {
  for (nemesis_set left = fault->members; left;) {
    size_t member = take(&left);
    if (is_killed) pwi_storm_kill(nemesis->storm, member);
    if (!is_killed) kit_must(nemesis->storm, pwi_storm_revive(nemesis->storm, member));
  }
}

/* --- resets --------------------------------------------------------------------------------------------- */

/* The process that has this address, if processes have cells. */
static const char *owner_of(struct nemesis *nemesis, const char *peer) {
  char own[PWI_STORM_CELL_ADDRESS];
  size_t length = strcspn(peer, ":");
  for (size_t i = 0; i < pwi_storm_count(nemesis->storm); i++) {
    if (!cells(nemesis)) return peer;
    pwi_storm_cell_address(pwi_storm_cell(nemesis->storm, i), own);
    if (strlen(own) == length && memcmp(own, peer, length) == 0) return pwi_storm_name(nemesis->storm, i);
  }
  pwi_storm_cell_address(nemesis->etcd.cell, own);
  bool is_etcd = nemesis->plan.has_etcd && strlen(own) == length && memcmp(own, peer, length) == 0;
  return is_etcd ? "etcd" : "this test";
}

/* The draws are the same whether or not a connection is found. */
static bool reset_one(struct nemesis *nemesis) {
  size_t member = (size_t)below(nemesis, pwi_storm_count(nemesis->storm));
  uint64_t draw = pwi_random_u64(&nemesis->random);
  char peer[64];
  bool is_alive = false;
  for (int role = PWI_STORM_MANAGER; role <= PWI_STORM_WORKER; role++)
    is_alive |= pwi_storm_is_alive(nemesis->storm, member, (enum pwi_storm_role)role);
  if (!is_alive || !pwi_storm_reset(pwi_storm_pid(nemesis->storm, member), draw, peer, sizeof peer)) return false;
  nemesis_say(nemesis, "  reset: %s and %s", pwi_storm_name(nemesis->storm, member), owner_of(nemesis, peer));
  return true;
}

static void do_resets(struct nemesis *nemesis) {
  uint64_t count = 1 + below(nemesis, RESETS_MAX);
  for (uint64_t i = 0; i < count; i++) {
    nemesis->counts[NEMESIS_RESET] += reset_one(nemesis);
    kit_sleep_ms((unsigned)below(nemesis, 50));
  }
}

/* --- kinds ---------------------------------------------------------------------------------------------- */

static const struct {
  const char *name;
  bool (*draw)(struct nemesis *nemesis, bool is_alone, struct nemesis_fault *fault);
  void (*set)(struct nemesis *nemesis, const struct nemesis_fault *fault, bool is_begun); /* NULL: resets */
} kinds[NEMESIS_KINDS] = {
    [NEMESIS_MANAGER_LINK] = {"manager link down", draw_manager_link, set_link},
    [NEMESIS_RESET] = {"reset", draw_reset, NULL},
    [NEMESIS_PARTITION] = {"partition", draw_partition, set_groups},
    [NEMESIS_STORE] = {"cut from etcd", draw_store, set_store},
    [NEMESIS_PAUSE] = {"pause", draw_pause, set_pause},
    [NEMESIS_KILL] = {"kill", draw_kill, set_killed},
    [NEMESIS_KILL_MANAGER] = {"kill manager", draw_kill_manager, set_killed},
};

const char *nemesis_kind_name(enum nemesis_kind kind) { return kinds[kind].name; }

bool nemesis_draw(struct nemesis *nemesis, enum nemesis_kind kind, bool is_alone, struct nemesis_fault *fault_out) {
  struct nemesis_fault fault = {.kind = kind, .length_ms = draw_length(nemesis)};
  if (!kinds[kind].draw(nemesis, is_alone, &fault) || is_active(nemesis, kind)) return false;
  if (!nemesis_may(nemesis->hit, fault.servers, fault.is_deadly, nemesis->plan.replicas)) return false;
  *fault_out = fault;
  return true;
}

void nemesis_begin_fault(struct nemesis *nemesis, struct nemesis_fault *fault) {
  char names[NAMES_SIZE];
  if (!kinds[fault->kind].set) {
    do_resets(nemesis);
    return;
  }
  nemesis_say(nemesis, "  begin %s%s: %s%s, %u ms; costs %u", kinds[fault->kind].name,
              fault->kind != NEMESIS_MANAGER_LINK ? ""
              : fault->way == PWI_STORM_NEAR_END  ? " (near)"
                                                  : " (far)",
              names_of(nemesis, fault->members, names), fault->has_etcd ? " etcd" : "", fault->length_ms,
              size_of(fault->servers));
  nemesis->hits += size_of(fault->servers & ~nemesis->hit);
  nemesis->hit |= fault->servers;
  kinds[fault->kind].set(nemesis, fault, true);
  nemesis->counts[fault->kind]++;
  fault->ends_ns = pwi_host_after((int64_t)fault->length_ms * 1000000);
  assert_true(nemesis->active_count < NEMESIS_ACTIVE_MAX);
  nemesis->active[nemesis->active_count++] = *fault;
}

void nemesis_end_fault(struct nemesis *nemesis, const struct nemesis_fault *fault) {
  struct nemesis_fault ended = *fault;
  size_t index = (size_t)(fault - nemesis->active);
  nemesis->active[index] = nemesis->active[--nemesis->active_count];
  kinds[ended.kind].set(nemesis, &ended, false);
  nemesis_say(nemesis, "  end %s", kinds[ended.kind].name);
}
