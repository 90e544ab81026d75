#include "host/run/process.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

#include "host/children.h"
#include "host/parent.h"

#define AT_ONCE 2

static struct {
  struct pwi_run_process_config config;
  struct pwi_parent_watch *watch;
  struct sigaction term, interrupt, hangup; /* previous actions */
  bool is_open;
} process;

static atomic_int told; /* separate, because the handler must not touch anything else that changes */

static void count_up(int times) {
  int now = atomic_fetch_add(&told, times) + times;
  process.config.stop(process.config.context, now);
}

static void on_signal(int number) {
  (void)number;
  count_up(1);
}

static void on_hangup(int number) {
  (void)number;
  process.config.reload(process.config.context);
}

static void on_parent_gone(void *context) {
  (void)context;
  count_up(AT_ONCE);
}

static void catch_signals(void) {
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
  sigemptyset(&action.sa_mask);
  sigaction(SIGTERM, &action, &process.term);
  sigaction(SIGINT, &action, &process.interrupt);
  action.sa_handler = on_hangup;
  if (process.config.reload) sigaction(SIGHUP, &action, &process.hangup);
}

static void let_signals_be(void) {
  sigaction(SIGTERM, &process.term, NULL);
  sigaction(SIGINT, &process.interrupt, NULL);
  if (process.config.reload) sigaction(SIGHUP, &process.hangup, NULL);
}

pawl_status pwi_run_process_open(const struct pwi_run_process_config *config) {
  if (process.is_open) return PAWL_EXISTS;
  process.config = *config;
  process.watch = NULL;
  atomic_store(&told, 0);
  catch_signals();
  if (config->parent > 0) {
    pawl_status status = pwi_parent_watch(config->parent, config->ready_fd, on_parent_gone, NULL, &process.watch);
    if (status) {
      let_signals_be();
      return status;
    }
  }
  process.is_open = true;
  return PAWL_OK;
}

void pwi_run_process_close(void) {
  if (!process.is_open) return;
  pwi_parent_watch_close(process.watch);
  let_signals_be();
  process.is_open = false;
}

pawl_status pwi_run_process_ready(const char *address) {
  char line[PWI_READY_LINE_MAX + 1];
  if (process.config.ready_fd < 0) return PAWL_OK;
  int length = snprintf(line, sizeof line, "ready address=%s", address);
  if (length < 0 || (size_t)length >= sizeof line) return PAWL_INVALID;
  return pwi_parent_say_ready(process.config.ready_fd, line);
}
