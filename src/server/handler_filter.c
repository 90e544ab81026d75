/* Filters and codecs of answers.
 *
 * A pull names the lossy filters for its answer, as a list of wire/filters.h. A chain is made for each vector
 * and list. It is kept, because it draws random numbers, and used for all requests with the same list. An
 * unknown filter fails the request before it is served, so nothing is ever sent unfiltered.
 *
 * Filters see rows by their place in the answer, not by key. They must not drop any, because the client
 * expects one row for each key.
 */
#include <assert.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "server/handler_inside.h"

static void close_chain(struct pwi_pull_chain *chain) {
  pawl_filters_destroy(chain->filters);
  *chain = (struct pwi_pull_chain){0};
}

void pwi_handler_filters_fini(struct pwi_handler_filters *filters) {
  for (size_t i = 0; i < PWI_PULL_CHAINS; i++) close_chain(&filters->chains[i]);
  pawl_rows_fini(&filters->rows);
  pwi_pages_fini(&filters->places);
  pwi_pages_fini(&filters->coded);
  pwi_coder_fini(&filters->coder);
}

/* --- chains --------------------------------------------------------------------------------------------- */

/* True for lossy filters on pulls; others in the list are ignored. */
static bool is_for_pulls(const struct pwi_filter_list *list) {
  for (size_t i = 0; i < list->count; i++)
    if (!(list->items[i].on & PAWL_ON_PULL)) return false;
  return list->count > 0;
}

static pawl_status open_chain(const struct pwi_request *request, const struct pwi_entry *entry,
                              struct pwi_pull_chain *chain) {
  struct pwi_filter_list list;
  pawl_status status = pwi_filter_list_read(request->filters, request->filters_size, NULL, 0, &list);
  if (!status && !is_for_pulls(&list)) status = PAWL_UNSUPPORTED;
  if (status) return status;
  struct pawl_filters_options options;
  pawl_filters_options_init(&options);
  options.type = entry->is.type;
  options.width = pwi_options_stored(&entry->is);
  options.direction = PAWL_ON_PULL;
  options.seed = pwi_mix64(entry->id.id);
  status = pwi_filters_open(&list, &options, &chain->filters);
  if (status) return status == PAWL_INVALID ? PAWL_UNSUPPORTED : status;
  chain->vector = entry->id.id;
  chain->size = request->filters_size;
  memcpy(chain->bytes, request->filters, request->filters_size);
  return PAWL_OK;
}

static bool is_chain(const struct pwi_pull_chain *chain, const struct pwi_request *request) {
  return chain->filters && chain->vector == request->terms.vector.id && chain->size == request->filters_size &&
         memcmp(chain->bytes, request->filters, chain->size) == 0;
}

pawl_status pwi_handler_find_filters(struct pwi_handler *handler, const struct pwi_request *request,
                                     const struct pwi_entry *entry, struct pawl_filters **filters_out) {
  struct pwi_handler_filters *filters = &handler->filters;
  struct pwi_pull_chain *oldest = &filters->chains[0];
  *filters_out = NULL;
  if (request->filters_size == 0 || request->filters_size > PWI_FILTERS_ASKED_MAX)
    return request->filters_size == 0 ? PAWL_OK : PAWL_UNSUPPORTED;
  for (size_t i = 0; i < PWI_PULL_CHAINS; i++) {
    struct pwi_pull_chain *chain = &filters->chains[i];
    if (is_chain(chain, request)) {
      chain->used = ++filters->clock;
      *filters_out = chain->filters;
      return PAWL_OK;
    }
    if (chain->used < oldest->used) oldest = chain;
  }
  struct pwi_pull_chain fresh = {.used = ++filters->clock};
  pawl_status status = open_chain(request, entry, &fresh);
  if (status) return status;
  close_chain(oldest);
  *oldest = fresh;
  *filters_out = fresh.filters;
  return PAWL_OK;
}

/* --- running -------------------------------------------------------------------------------------------- */

static pawl_status make_places(struct pwi_handler_filters *filters, size_t rows) {
  pawl_status status = pwi_pages_grow(&filters->places, rows * sizeof(uint64_t));
  uint64_t *places = filters->places.memory;
  for (; !status && filters->place_count < rows; filters->place_count++)
    places[filters->place_count] = filters->place_count;
  return status;
}

static pawl_status run(struct pwi_handler_filters *filters, struct pawl_filters *chain, const struct pwi_entry *entry,
                       char *values, size_t bytes) {
  size_t rows = bytes / pwi_entry_row_bytes(entry);
  pawl_status status = make_places(filters, rows);
  if (!status) status = pawl_filters_run(chain, filters->places.memory, values, NULL, rows, false, &filters->rows);
  if (status) return status;
  if (filters->rows.count != rows) return PAWL_UNSUPPORTED;
  memcpy(values, filters->rows.values, bytes);
  return PAWL_OK;
}

/* --- encoding ------------------------------------------------------------------------------------------- */

/* Measurements of a link and its vectors, for requests that leave the choice of a compressor to the
 * server. */
static struct pwi_adapt *find_adapt(struct pwi_handler_link *link, const struct pwi_entry *entry) {
  if (!link->adapting) link->adapting = pwi_alloc_zero(1, sizeof *link->adapting);
  if (!link->adapting) return NULL;
  struct pwi_adapting_vector *vector = &link->adapting->vectors[entry->id.id % PWI_ADAPTING_VECTORS];
  if (vector->vector != entry->id.id) {
    vector->vector = entry->id.id;
    pwi_adapt_init(&vector->adapt, (enum pwi_value_type)entry->is.type);
  }
  return &vector->adapt;
}

static unsigned codecs_for(const struct pwi_handler_link *link, const struct pwi_request *request,
                           const struct pawl_filters *chain) {
  unsigned codecs = request->terms.codecs & link->peering.codecs;
  if (link->peering.in_place) return 0; /* read in place: a codec would save nothing */
  unsigned ready = chain ? pwi_filters_codecs(chain) : 0;
  return codecs & (~pwi_codecs_lossy() | ready);
}

bool pwi_handler_leaves_values(const struct pwi_handler_link *link, const struct pwi_request *request,
                               const struct pawl_filters *chain) {
  return !chain && codecs_for(link, request, NULL) == 0;
}

static void encode(struct pwi_handler_link *link, const struct pwi_entry *entry, unsigned codecs, char *values,
                   struct pwi_served *served, struct pwi_answer_form *form) {
  struct pwi_handler *handler = link->handler;
  struct pwi_coding coding = {.codecs = codecs,
                              .type = (enum pwi_value_type)entry->is.type,
                              .values = values,
                              .count = served->value_bytes / pawl_type_size(entry->is.type),
                              .net = handler->config.net};
  if (pwi_codecs_are_free(codecs)) coding.adapt = find_adapt(link, entry);
  coding.link = link->adapting ? &link->adapting->carrying : NULL;
  struct pwi_coded coded = pwi_coder_encode(&handler->filters.coder, &coding, &handler->filters.coded);
  if (coded.codec == PWI_CODEC_RAW) return;
  assert(coded.size < served->value_bytes);
  memcpy(values, coded.data, coded.size);
  *form = (struct pwi_answer_form){(uint8_t)coded.codec, (uint32_t)coding.count};
  served->value_bytes = coded.size;
}

pawl_status pwi_handler_filter(struct pwi_handler_link *link, const struct pwi_request *request,
                               const struct pwi_entry *entry, struct pawl_filters *chain, char *values,
                               struct pwi_served *served, struct pwi_answer_form *form_out) {
  *form_out = (struct pwi_answer_form){0};
  if (served->outcome.code != PWI_CODE_OK || served->value_bytes == 0 || request->terms.kind == PWI_REQUEST_SCAN)
    return PAWL_OK;
  pawl_status status = chain ? run(&link->handler->filters, chain, entry, values, served->value_bytes) : PAWL_OK;
  unsigned codecs = codecs_for(link, request, chain);
  if (!status && codecs) encode(link, entry, codecs, values, served, form_out);
  return status;
}
