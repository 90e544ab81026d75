/* The vectors of workers, their keys, and the history of all calls.
 *
 * The history checks the calls and their answers (sim/history/history.h). With lossy filters a push consists
 * of the rows that the filters left when it was called. Exactly these rows are sent, however often. */
#include <string.h>

#include "sim/campaign/inside.h"

/* None of these changes integers, but they change the order of sending. About half of the rows pass. */
#define FILTERS "significant(threshold=1500000000) | skip(rate=0.2) | keys | zeros | compress(with=lz4)"

static void draw_universe(struct campaign *campaign) {
  struct book *book = &campaign->book;
  struct pwi_random *random = &campaign->cluster.random;
  for (uint32_t key = 0; key < KEYS; key++) {
    uint64_t stride = UINT64_MAX / KEYS;
    book->universe[DENSE][key] = key;
    /* increasing, all over the ring */
    book->universe[SPARSE][key] = stride * key + pwi_random_below(random, stride);
    book->universe[MIXED][key] = key * 3;
    book->universe[LATEST][key] = stride * key + pwi_random_below(random, stride);
  }
  /* The net copies messages with narrow rows; wide rows are sent in place. */
  if (campaign->config.filters)
    memcpy(book->universe[FILTERED], book->universe[SPARSE], sizeof book->universe[FILTERED]);
  for (size_t v = 0; v < pwi_campaign_vector_count(campaign); v++)
    book->widths[v] = pwi_random_chance(random, 0.4) ? WIDTH_MAX : 1 + (uint32_t)pwi_random_below(random, 3);
}

static bool may_refuse(const struct campaign *campaign, size_t vector) {
  return campaign->config.memory_max || (campaign->config.refusals && vector < LATEST);
}

pawl_status pwi_book_init(struct campaign *campaign) {
  campaign->history = pwi_history_create();
  if (!campaign->history) return PAWL_NO_MEMORY;
  campaign->checker_session = pwi_history_session(campaign->history, "checker");
  draw_universe(campaign);
  for (size_t v = 0; v < pwi_campaign_vector_count(campaign); v++) {
    struct pawl_vector_options options = pwi_book_options(campaign, v);
    struct pwi_history_vector vector = {.name = pwi_campaign_vectors[v],
                                        .kind = v == LATEST ? PWI_HISTORY_REGISTER : PWI_HISTORY_COUNTED,
                                        .width = options.width,
                                        .place = {options.size, options.placement == PAWL_PLACE_MIXED},
                                        .may_refuse = may_refuse(campaign, v)};
    campaign->book.recorded[v] = pwi_history_vector(campaign->history, &vector);
  }
  return PAWL_OK;
}

void pwi_book_fini(struct campaign *campaign) { pwi_history_destroy(campaign->history); }

struct pawl_vector_options pwi_book_options(const struct campaign *campaign, size_t vector) {
  struct pawl_vector_options options = {.type = PAWL_I64, .width = campaign->book.widths[vector], .size = PAWL_KEY_END};
  options.placement = vector == MIXED ? PAWL_PLACE_MIXED : PAWL_PLACE_ORDERED;
  options.layout = vector == DENSE ? PAWL_LAYOUT_DENSE : PAWL_LAYOUT_SPARSE;
  options.function = vector == LATEST ? PAWL_ASSIGN : PAWL_ADD;
  if (vector == DENSE) options.size = KEYS;
  if (vector == FILTERED) strcpy(options.filters, FILTERS);
  if (campaign->config.functions && vector < LATEST)
    strcpy(options.rule, campaign->config.refusals ? "sim_kept refuses=1" : "sim_kept");
  return options;
}

void pwi_book_note_dead(struct campaign *campaign, const struct pwi_cluster_client *client, uint32_t session) {
  struct pwi_client_state state;
  struct pwi_client_figures figures;
  if (!client->client) return;
  pwi_client_state(client->client, &state);
  pwi_client_figures(client->client, &figures);
  if (figures.retirements > 0 ||
      !pwi_membership_is_live(&pwi_campaign_ledger(campaign)->membership, (struct pwi_sender){state.sender}))
    pwi_history_gone(campaign->history, session);
}

static bool is_refusal(pawl_status status) {
  return status == PAWL_REFUSED || status == PAWL_NODE_FULL || status == PAWL_QUOTA_MEMORY || status == PAWL_TOO_LARGE;
}

void pwi_campaign_ended(struct campaign *campaign, uint32_t call, const struct pwi_task *task, const int64_t *rows) {
  struct pawl_range refused[PWI_TASK_FAILURES];
  struct pwi_history_answer answer = {.status = task->status, .rows = rows, .refused = refused};
  answer.is_vague = task->failure_count > PWI_TASK_FAILURES;
  for (uint32_t i = 0; i < task->failure_count && i < PWI_TASK_FAILURES; i++) {
    refused[answer.refused_count++] = task->failures[i].range;
    answer.is_vague |= !is_refusal(task->failures[i].status);
  }
  pwi_history_end(campaign->history, pwi_campaign_now(campaign), call, &answer);
}
