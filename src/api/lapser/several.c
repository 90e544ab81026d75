/* Contexts of <pawl/multilapser.h>: those of <pawl/lapser.h>, with numbers instead of names. */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include <pawl/multilapser.h>

#include "api/error.h"
#include "api/lapser/lapser.h"
#include "base/memory.h"

struct pawl_multilapser {
  _Atomic(struct pawl_lapser *) lapser; /* NULL: not open */
  uint32_t number;
  bool is_opening;
  bool is_passing; /* closing frees it */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static lapser_ctx *contexts[PAWL_MULTILAPSER_MAX]; /* by number; behind the mutex, as are the flags */

/* Behind the mutex. A pointer that was freed is not read. */
static bool is_context(const lapser_ctx *context) {
  for (uint32_t i = 0; context && i < PAWL_MULTILAPSER_MAX; i++)
    if (contexts[i] == context) return true;
  return false;
}

static pawl_status explain_unknown(void) {
  return pwi_error(PAWL_INVALID, "lapser: there is no such context: it was not made, or is freed already");
}

/* Behind the mutex. */
static void forget(lapser_ctx *context) {
  contexts[context->number] = NULL;
  pwi_free(context);
}

pawl_status pawl_multilapser_create(lapser_ctx **context_out) {
  uint32_t number = 0;
  if (!context_out) return pwi_error(PAWL_INVALID, "lapser: context_out is NULL");
  lapser_ctx *context = pwi_alloc_zero(1, sizeof *context);
  if (!context) return pwi_error_status(PAWL_NO_MEMORY, "lapser: a context");
  pthread_mutex_lock(&mutex);
  while (number < PAWL_MULTILAPSER_MAX && contexts[number]) number++;
  if (number < PAWL_MULTILAPSER_MAX) contexts[number] = context;
  context->number = number;
  pthread_mutex_unlock(&mutex);
  if (number < PAWL_MULTILAPSER_MAX) {
    *context_out = context;
    return PAWL_OK;
  }
  pwi_free(context);
  return pwi_error(PAWL_NODE_LIMIT,
                   "lapser: this process has %d contexts; free those that are finished by "
                   "lapser_free_ctx",
                   PAWL_MULTILAPSER_MAX);
}

static pawl_status claim(lapser_ctx *context) {
  pawl_status status = PAWL_OK;
  pthread_mutex_lock(&mutex);
  if (!is_context(context))
    status = explain_unknown();
  else if (context->is_opening || atomic_load(&context->lapser))
    status = pwi_error(PAWL_EXISTS, "lapser: context %" PRIu32 " is open; call lapser_finish before lapser_init",
                       context->number);
  else
    context->is_opening = true;
  pthread_mutex_unlock(&mutex);
  return status;
}

pawl_status pawl_multilapser_open(lapser_ctx *context, uint64_t items, size_t size, const uint64_t *produces,
                                  size_t produces_count, const uint64_t *consumes, size_t consumes_count,
                                  int64_t slack) {
  struct pawl_lapser_options options;
  struct pawl_lapser *lapser = NULL;
  char name[PAWL_LAPSER_NAME_MAX + 1];
  pawl_status status = claim(context);
  if (status) return status;
  snprintf(name, sizeof name, "context.%" PRIu32, context->number);
  status = pwi_lapser_environment(&options);
  options.name = name;
  if (!status)
    status =
        pawl_lapser_open(&options, items, size, produces, produces_count, consumes, consumes_count, slack, &lapser);
  pthread_mutex_lock(&mutex);
  context->is_opening = false;
  atomic_store_explicit(&context->lapser, lapser, memory_order_release);
  pthread_mutex_unlock(&mutex);
  return status;
}

struct pawl_lapser *pawl_multilapser_main(const lapser_ctx *context) {
  return context ? atomic_load_explicit(&context->lapser, memory_order_acquire) : NULL;
}

void pawl_multilapser_passing(lapser_ctx *context) {
  pthread_mutex_lock(&mutex);
  if (is_context(context)) context->is_passing = true;
  pthread_mutex_unlock(&mutex);
}

/* The number stays taken until all processes have closed the context. */
pawl_status pawl_multilapser_close(lapser_ctx *context) {
  pthread_mutex_lock(&mutex);
  bool is_known = is_context(context);
  struct pawl_lapser *lapser = is_known ? atomic_exchange(&context->lapser, NULL) : NULL;
  pthread_mutex_unlock(&mutex);
  if (!is_known) return explain_unknown();
  if (!lapser) return pwi_error(PAWL_INVALID, "lapser: lapser_finish without lapser_init");
  pawl_status status = pawl_lapser_close(lapser);
  pthread_mutex_lock(&mutex);
  if (context->is_passing) forget(context);
  pthread_mutex_unlock(&mutex);
  return status;
}

pawl_status pawl_multilapser_destroy(lapser_ctx *context) {
  pawl_status status = PAWL_OK;
  pthread_mutex_lock(&mutex);
  if (!is_context(context))
    status = explain_unknown();
  else if (context->is_opening || atomic_load(&context->lapser))
    status = pwi_error(PAWL_INVALID, "lapser: context %" PRIu32 " is open; call lapser_finish before lapser_free_ctx",
                       context->number);
  else
    forget(context);
  pthread_mutex_unlock(&mutex);
  return status;
}
