/* The processes of a program that was written for Lapser: their group, from the environment or by
 * pawl_lapser_join, and the one context of lapser_init. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pawl/peer.h>

#include "api/error.h"
#include "api/lapser/lapser.h"
#include "base/memory.h"
#include "host/clock.h"

#define GROUP "lapser/default"
#define CLOSE_NS (5 * PWI_HOST_SECOND)

/* Behind the mutex. */
static struct {
  pid_t process; /* that has joined; after a fork the child has not */
  struct pawl_session *session;
  bool is_own; /* the session was opened here */
  struct pawl_peers *peers;
  uint32_t members;
  uint32_t rank;
  bool has_rank;
  uint32_t uses;   /* open contexts, and calls that wait */
  bool is_opening; /* the context of lapser_init */
} program;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct pawl_lapser *_Atomic main_context; /* written behind the mutex */

static pawl_lapser_handler *failure_handler;
static void *failure_context;
static _Atomic uint32_t lines_printed;

int64_t pwi_lapser_left(int64_t deadline) {
  if (deadline == INT64_MAX) return PAWL_FOREVER;
  int64_t left = deadline - pwi_host_now();
  return left > 0 ? left : 0;
}

/* --- the environment ------------------------------------------------------------------------------------- */

/* NULL if it is not set or empty. */
static const char *variable(const char *name) {
  const char *text = getenv(name);
  return text && *text ? text : NULL;
}

static pawl_status parse_members(const char *text, uint32_t *members_out) {
  char *end = NULL;
  errno = 0;
  unsigned long long members = strtoull(text, &end, 10);
  if (*end || errno || text[0] < '0' || text[0] > '9' || members == 0 || members > UINT32_MAX)
    return pwi_error(PAWL_INVALID, "lapser: PAWL_LAPSER_MEMBERS is '%s', and not a number of processes", text);
  *members_out = (uint32_t)members;
  return PAWL_OK;
}

/* 0 as `members`: the environment says it. Without a cluster nobody else can join. */
static pawl_status read_members(bool has_session, uint32_t *members) {
  const char *text = variable("PAWL_LAPSER_MEMBERS");
  bool is_alone = !has_session && !variable("PAWL_ADDRESS");
  uint32_t wanted = *members ? *members : 1;
  pawl_status status = *members == 0 && text ? parse_members(text, &wanted) : PAWL_OK;
  if (status) return status;
  if (*members == 0 && !text && !is_alone)
    return pwi_error(PAWL_INVALID,
                     "lapser: there is a cluster, but PAWL_LAPSER_MEMBERS is not set: set it to the number of "
                     "processes of the program");
  if (wanted > 1 && is_alone)
    return pwi_error(PAWL_INVALID,
                     "lapser: the program has %" PRIu32
                     " processes, but PAWL_ADDRESS is not set: start 'pawl manager', "
                     "and set PAWL_ADDRESS to its address",
                     wanted);
  *members = wanted;
  return PAWL_OK;
}

static pawl_status read_wait(int64_t *wait_out) {
  const char *text = variable("PAWL_LAPSER_WAIT");
  char *end = NULL;
  if (!text) {
    *wait_out = PWI_LAPSER_WAIT_NS;
    return PAWL_OK;
  }
  double seconds = strtod(text, &end);
  if (*end || !(seconds > 0 && seconds <= 1e9))
    return pwi_error(PAWL_INVALID, "lapser: PAWL_LAPSER_WAIT is '%s', and not a number of seconds", text);
  *wait_out = (int64_t)(seconds * (double)PWI_HOST_SECOND);
  return PAWL_OK;
}

static pawl_status read_variant(struct pawl_lapser_options *options) {
  const char *text = variable("PAWL_LAPSER_VARIANT");
  options->variant = text && strcmp(text, "pull") == 0 ? PAWL_ITEMS_PULL : PAWL_ITEMS_PUSH;
  options->conservative = text && strcmp(text, "conservative") == 0;
  if (!text || options->variant == PAWL_ITEMS_PULL || options->conservative || strcmp(text, "push") == 0)
    return PAWL_OK;
  return pwi_error(PAWL_INVALID, "lapser: PAWL_LAPSER_VARIANT is '%s'; it may be push, pull or conservative", text);
}

pawl_status pwi_lapser_environment(struct pawl_lapser_options *options_out) {
  struct pawl_lapser_options options;
  pawl_lapser_options_init(&options);
  pawl_status status = read_variant(&options);
  if (!status) status = read_wait(&options.open_ns);
  if (!status) *options_out = options;
  return status;
}

/* --- joining --------------------------------------------------------------------------------------------- */

/* Behind the mutex. */
static bool has_joined(void) { return program.peers && program.process == getpid(); }

/* Behind the mutex. */
static void leave(void) {
  pawl_peers_leave(program.peers);
  if (program.is_own) (void)pawl_session_close(program.session, CLOSE_NS);
  program.session = NULL;
  program.peers = NULL;
  program.has_rank = false;
}

/* So that a run which follows closely does not find the members of this one. With a context open other
 * threads may be in calls, and the session is only stopped (api/parking.h), which happens after this. */
static void leave_at_exit(void) {
  if (pthread_mutex_trylock(&mutex)) return;
  if (has_joined() && program.is_own && program.uses == 0) leave();
  pthread_mutex_unlock(&mutex);
}

static pawl_status open_session(int64_t wait, struct pawl_session **session_out) {
  struct pawl_session_options options;
  pawl_session_options_init(&options);
  options.job = "lapser";
  options.peers_only = true;
  options.timeout_ns = wait;
  return pawl_session_open(&options, session_out);
}

/* Behind the mutex. The handler is registered after the session's own, and so runs before it. */
static pawl_status join(struct pawl_session *session, const char *group, uint32_t members) {
  static pid_t registered;
  struct pawl_session *own = NULL;
  int64_t wait = 0;
  pawl_status status = read_wait(&wait);
  if (!status) status = read_members(session, &members);
  if (!status && !session) status = open_session(wait, &own);
  if (status) return status;
  if (!group) group = variable("PAWL_LAPSER_GROUP");
  if (!group) group = GROUP;
  struct pawl_peers *peers = NULL;
  status = pawl_peers_join(own ? own : session, group, members, wait, &peers);
  if (status) {
    if (own) (void)pawl_session_close(own, CLOSE_NS);
    return status;
  }
  if (own && registered != getpid() && atexit(leave_at_exit) == 0) registered = getpid();
  program.process = getpid();
  program.session = own ? own : session;
  program.is_own = own;
  program.peers = peers;
  program.members = members;
  program.has_rank = false;
  program.uses = 0;
  return PAWL_OK;
}

pawl_status pawl_lapser_join(struct pawl_session *session, const char *group, uint32_t members) {
  pthread_mutex_lock(&mutex);
  pawl_status status = has_joined() ? pwi_error(PAWL_EXISTS, "lapser: this process has joined already; call "
                                                             "pawl_lapser_join before lapser_init, once")
                                    : join(session, group, members);
  pthread_mutex_unlock(&mutex);
  return status;
}

pawl_status pawl_lapser_leave(void) {
  pawl_status status = PAWL_OK;
  pthread_mutex_lock(&mutex);
  if (has_joined() && program.uses > 0)
    status = pwi_error(PAWL_INVALID, "lapser: leave: a context is open; call lapser_finish or pawl_lapser_close first");
  else if (has_joined())
    leave();
  pthread_mutex_unlock(&mutex);
  return status;
}

/* A group that was complete may lack members again: those of a run before, or a process that was
 * restarted. */
static pawl_status await_members(struct pawl_peers *peers, uint32_t members, int64_t deadline) {
  struct pawl_peers_state state;
  pawl_status status = pawl_peers_await(peers, 0, pwi_lapser_left(deadline));
  for (;;) {
    pawl_peers_state(peers, &state);
    if (status || (state.size >= members && state.rank != PAWL_PEERS_NONE)) return status;
    status = pawl_peers_await(peers, state.number, pwi_lapser_left(deadline));
    if (status == PAWL_TIMED_OUT)
      return pwi_error(status, "lapser: %" PRIu32 " of %" PRIu32 " processes are there", state.size, members);
  }
}

pawl_status pwi_lapser_retain(int64_t deadline, struct pawl_peers **peers_out) {
  uint32_t members = 0;
  pthread_mutex_lock(&mutex);
  pawl_status status = has_joined() ? PAWL_OK : join(NULL, NULL, 0);
  if (!status) {
    program.uses++;
    members = program.members;
    *peers_out = program.peers;
  }
  pthread_mutex_unlock(&mutex);
  if (status) return status;
  status = await_members(*peers_out, members, deadline);
  if (status) pwi_lapser_release();
  return status;
}

void pwi_lapser_release(void) {
  pthread_mutex_lock(&mutex);
  program.uses--;
  pthread_mutex_unlock(&mutex);
}

pawl_status pawl_lapser_rank(uint32_t *rank_out, uint32_t *members_out) {
  struct pawl_peers *peers;
  int64_t wait = 0;
  pawl_status status = read_wait(&wait);
  if (!status) status = pwi_lapser_retain(pwi_host_after(wait), &peers);
  if (status) return status;
  uint32_t rank = pawl_peers_rank(peers);
  pthread_mutex_lock(&mutex);
  if (!program.has_rank) program.rank = rank;
  program.has_rank = true;
  if (rank_out) *rank_out = program.rank;
  if (members_out) *members_out = program.members;
  pthread_mutex_unlock(&mutex);
  pwi_lapser_release();
  return PAWL_OK;
}

/* --- the context of lapser_init -------------------------------------------------------------------------- */

struct pawl_lapser *pawl_lapser_main(void) {
  return atomic_load_explicit(&main_context, memory_order_acquire);
}

/* Behind the mutex. */
static void become_main(struct pawl_lapser *lapser) {
  atomic_store_explicit(&main_context, lapser, memory_order_release);
}

static bool claim_main(void) {
  pthread_mutex_lock(&mutex);
  bool is_free = !program.is_opening && !pawl_lapser_main();
  if (is_free) program.is_opening = true;
  pthread_mutex_unlock(&mutex);
  return is_free;
}

pawl_status pawl_lapser_init(uint64_t items, size_t size, const uint64_t *produces, size_t produces_count,
                             const uint64_t *consumes, size_t consumes_count, int64_t slack) {
  struct pawl_lapser_options options;
  struct pawl_lapser *lapser = NULL;
  if (!claim_main())
    return pwi_error(PAWL_EXISTS, "lapser: lapser_init was called before, and lapser_finish was not; pawl_lapser_open "
                                  "opens further contexts");
  pawl_status status = pwi_lapser_environment(&options);
  if (!status)
    status =
        pawl_lapser_open(&options, items, size, produces, produces_count, consumes, consumes_count, slack, &lapser);
  pthread_mutex_lock(&mutex);
  program.is_opening = false;
  become_main(lapser);
  pthread_mutex_unlock(&mutex);
  return status;
}

pawl_status pawl_lapser_finish(void) {
  pthread_mutex_lock(&mutex);
  struct pawl_lapser *lapser = pawl_lapser_main();
  become_main(NULL);
  pthread_mutex_unlock(&mutex);
  if (!lapser) return pwi_error(PAWL_INVALID, "lapser: lapser_finish without lapser_init");
  return pawl_lapser_close(lapser);
}

/* --- failures -------------------------------------------------------------------------------------------- */

void pawl_lapser_on_failure(pawl_lapser_handler *handler, void *context) {
  failure_handler = handler;
  failure_context = context;
}

int pawl_lapser_failed(const char *call, pawl_status status, pawl_lapser_handler *print) {
  if (failure_handler)
    failure_handler(failure_context, call, status, pawl_error_text());
  else if (atomic_fetch_add(&lines_printed, 1) < PAWL_LAPSER_LINES)
    print(NULL, call, status, pawl_error_text());
  return (int)status;
}
