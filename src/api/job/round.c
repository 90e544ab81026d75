#include "api/job/round.h"

#include <pawl/call.h>

#include "api/error.h"
#include "job/messages.h"
#include "base/memory.h"

struct pawl_round {
  struct pwi_scheduler_report *reports;
  size_t count;
  struct pawl_task *tasks[]; /* NULL: no answer */
};

pawl_status pwi_round_create(struct pwi_scheduler_report *reports, size_t count, struct pawl_round **round_out) {
  struct pawl_round *round = pwi_alloc_zero(1, sizeof *round + count * sizeof *round->tasks);
  if (!round) {
    pwi_free(reports);
    return PAWL_NO_MEMORY;
  }
  round->reports = reports;
  round->count = count;
  *round_out = round;
  return PAWL_OK;
}

bool pwi_round_give(struct pawl_round *round, uint64_t number, struct pawl_task *task) {
  for (size_t i = 0; i < round->count; i++) {
    if (round->reports[i].name.number != number || round->tasks[i]) continue;
    round->tasks[i] = task;
    return true;
  }
  return false;
}

size_t pawl_round_count(const struct pawl_round *round) { return round ? round->count : 0; }

static void find_bytes(const struct pawl_task *task, struct pawl_report *report) {
  struct pawl_answer answer;
  struct pwi_job_answer said;
  if (!task || pawl_answer_get(task, 0, &answer) != PAWL_OK) return;
  if (pwi_job_answer_read(answer.bytes, answer.size, &said) != PAWL_OK) return;
  report->bytes = answer.bytes;
  report->size = said.size;
}

pawl_status pawl_round_get(const struct pawl_round *round, size_t index, struct pawl_report *report_out) {
  if (index >= pawl_round_count(round) || !report_out)
    return pwi_error(PAWL_NOT_FOUND, "report %zu does not exist", index);
  const struct pwi_scheduler_report *report = &round->reports[index];
  *report_out = (struct pawl_report){.node = {report->name.node},
                                     .host = report->name.host,
                                     .pid = report->name.pid,
                                     .status = report->status,
                                     .text = report->text,
                                     .pieces = report->pieces,
                                     .took_ns = report->took_ns};
  if (report->status != PAWL_NODE_GONE) find_bytes(round->tasks[index], report_out);
  return PAWL_OK;
}

bool pawl_round_is_whole(const struct pawl_round *round) {
  for (size_t i = 0; i < pawl_round_count(round); i++)
    if (round->reports[i].status) return false;
  return pawl_round_count(round) > 0;
}

void pawl_round_destroy(struct pawl_round *round) {
  if (!round) return;
  for (size_t i = 0; i < round->count; i++) pawl_task_release(round->tasks[i]);
  pwi_free(round->reports);
  pwi_free(round);
}
