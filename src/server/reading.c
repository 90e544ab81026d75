#include "server/reading.h"

#include <string.h>

#include <pawl/vector.h>

#include "base/checked.h"
#include "wire/keys.h"
#include "wire/values.h"

#define PLAIN_KEEP ((size_t)32 << 20) /* larger memory for decoded values is given back */

/* A few bytes can encode many keys or values. No client sends more at once: see PAWL_SLICE_BYTES. */
#define LIST_MAX ((uint32_t)1 << 24)
#define PLAIN_MAX ((size_t)PAWL_SLICE_BYTES) /* except for a single row */

void pwi_reading_fini(struct pwi_reading *reading) {
  pwi_pages_fini(&reading->keys);
  pwi_pages_fini(&reading->loose);
  pwi_pages_fini(&reading->coded);
  pwi_pages_fini(&reading->plain);
  pwi_pages_fini(&reading->operand);
  pwi_coder_fini(&reading->coder);
}

pawl_status pwi_reading_terms(const struct pwi_inbox *inbox, const struct pwi_sections *sections,
                              struct pwi_terms *terms_out) {
  uint8_t scratch[PWI_TERMS_SIZE];
  const struct pwi_section *section = pwi_sections_find(sections, PWI_SECTION_TERMS);
  if (!section || section->length != sizeof scratch) return PAWL_CORRUPT;
  return pwi_terms_decode(pwi_inbox_at(inbox, section->offset, sizeof scratch, scratch), sizeof scratch, terms_out);
}

pawl_status pwi_reading_operation(const struct pwi_inbox *inbox, const struct pwi_sections *sections,
                                  struct pwi_operation *operation_out) {
  uint8_t scratch[PWI_OPERATION_SIZE];
  const struct pwi_section *section = pwi_sections_find(sections, PWI_SECTION_OPERATION);
  *operation_out = (struct pwi_operation){0};
  if (!section) return PAWL_OK;
  if (section->length != sizeof scratch) return PAWL_CORRUPT;
  return pwi_operation_decode(pwi_inbox_at(inbox, section->offset, sizeof scratch, scratch), sizeof scratch,
                              operation_out);
}

pawl_status pwi_reading_first(const struct pwi_inbox *inbox, const struct pwi_sections *sections,
                              struct pwi_read_first *first_out) {
  uint8_t scratch[PWI_READ_FIRST_SIZE];
  const struct pwi_section *section = pwi_sections_find(sections, PWI_SECTION_READ_FIRST);
  *first_out = (struct pwi_read_first){0};
  if (!section) return PAWL_OK;
  if (section->length != sizeof scratch) return PAWL_CORRUPT;
  return pwi_read_first_decode(pwi_inbox_at(inbox, section->offset, sizeof scratch, scratch), sizeof scratch,
                               first_out);
}

pawl_status pwi_reading_function(const struct pwi_inbox *inbox, const struct pwi_sections *sections, char *room,
                                 const char **function_out) {
  const struct pwi_section *section = pwi_sections_find(sections, PWI_SECTION_FUNCTION);
  *function_out = NULL;
  if (!section) return PAWL_OK;
  if (section->length == 0 || section->length > PAWL_RULE_MAX) return PAWL_CORRUPT;
  char scratch[PAWL_RULE_MAX];
  memcpy(room, pwi_inbox_at(inbox, section->offset, section->length, scratch), section->length);
  room[section->length] = '\0';
  *function_out = room;
  return strlen(room) == section->length ? PAWL_OK : PAWL_CORRUPT;
}

static pawl_status read_raw_keys(const void *data, size_t count, uint64_t *keys) {
  memcpy(keys, data, count * sizeof *keys);
  return pwi_keys_rise(keys, count) ? PAWL_OK : PAWL_UNSORTED;
}

static pawl_status read_list(struct pwi_reading *reading, const struct pwi_inbox *inbox,
                             const struct pwi_section *section, struct pwi_request *request) {
  if (!section || section->count != request->terms.rows) return PAWL_CORRUPT;
  if (section->count > LIST_MAX) return PAWL_TOO_LARGE;
  pawl_status status = pwi_pages_grow(&reading->keys, ((size_t)section->count + 1) * sizeof(uint64_t));
  if (!status) status = pwi_pages_grow(&reading->loose, section->length + 1);
  if (status) return status;
  uint64_t *keys = reading->keys.memory;
  const void *data = pwi_inbox_at(inbox, section->offset, section->length, reading->loose.memory);
  size_t count = section->count;
  if (section->codec == PWI_SECTION_CODEC_KEYS)
    status = pwi_keys_decode(data, section->length, keys, count, &count);
  else if (section->codec == PWI_CODEC_RAW && section->value_type == PWI_TYPE_U64)
    status = read_raw_keys(data, count, keys);
  else
    status = PAWL_UNSUPPORTED;
  if (!status && count != section->count) status = PAWL_CORRUPT;
  request->keys = keys;
  request->encoded = data;
  request->encoded_as = *section;
  if (!status && request->terms.keep) request->signature = pwi_keys_signature(keys, count);
  return status;
}

static pawl_status read_signature(const struct pwi_inbox *inbox, const struct pwi_section *section,
                                  struct pwi_request *request) {
  uint64_t scratch;
  if (!section || section->length != sizeof scratch) return PAWL_CORRUPT;
  memcpy(&request->signature, pwi_inbox_at(inbox, section->offset, sizeof scratch, &scratch), sizeof scratch);
  return PAWL_OK;
}

static pawl_status read_keys(struct pwi_reading *reading, const struct pwi_inbox *inbox,
                             const struct pwi_sections *sections, struct pwi_request *request) {
  switch (request->terms.keys) {
  case PWI_KEYS_LIST:
    return read_list(reading, inbox, pwi_sections_find(sections, PWI_SECTION_KEYS), request);
  case PWI_KEYS_SIGNED:
    return read_signature(inbox, pwi_sections_find(sections, PWI_SECTION_SIGNATURE), request);
  case PWI_KEYS_RANGE:
    break;
  }
  return PAWL_OK;
}

/* Decodes values in a codec. The table of the message limits their size. */
static pawl_status unpack_values(struct pwi_reading *reading, const struct pwi_inbox *inbox,
                                 const struct pwi_section *section, struct pwi_request *request) {
  size_t bytes, value_size = pwi_value_size((enum pwi_value_type)section->value_type);
  if (value_size == 0 || !pwi_mul_size(section->count, value_size, &bytes)) return PAWL_CORRUPT;
  if (bytes > PLAIN_MAX && request->terms.rows != 1) return PAWL_TOO_LARGE;
  if (reading->plain.size > PLAIN_KEEP && bytes <= PLAIN_KEEP) pwi_pages_fini(&reading->plain);
  pawl_status status = pwi_pages_grow(&reading->plain, bytes + 1);
  if (!status) status = pwi_pages_grow(&reading->coded, section->length + 1);
  if (status) return status;
  const void *data = pwi_inbox_at(inbox, section->offset, section->length, reading->coded.memory);
  status = pwi_coder_decode(&reading->coder, section->codec, (enum pwi_value_type)section->value_type, data,
                            section->length, reading->plain.memory, section->count);
  reading->parts[0] = (struct iovec){reading->plain.memory, bytes};
  request->value_parts = 1;
  return status;
}

static pawl_status find_values(struct pwi_reading *reading, const struct pwi_inbox *inbox,
                               const struct pwi_sections *sections, struct pwi_request *request) {
  const struct pwi_section *section = pwi_sections_find(sections, PWI_SECTION_VALUES);
  if (!section) return PAWL_OK;
  request->values = reading->parts;
  request->value_type = section->value_type;
  if (section->codec != PWI_CODEC_RAW) return unpack_values(reading, inbox, section, request);
  request->value_parts = pwi_inbox_parts(inbox, section->offset, section->length, reading->parts);
  return PAWL_OK;
}

/* Reads the filters for the answer. */
static pawl_status find_filters(struct pwi_reading *reading, const struct pwi_inbox *inbox,
                                const struct pwi_sections *sections, struct pwi_request *request) {
  const struct pwi_section *section = pwi_sections_find(sections, PWI_SECTION_FILTERS);
  if (!section) return PAWL_OK;
  if (section->length > sizeof reading->filters) return PAWL_UNSUPPORTED;
  request->filters = pwi_inbox_at(inbox, section->offset, section->length, reading->filters);
  request->filters_size = section->length;
  return PAWL_OK;
}

pawl_status pwi_reading_body(struct pwi_reading *reading, const struct pwi_inbox *inbox,
                             const struct pwi_sections *sections, struct pwi_request *request) {
  pawl_status status = read_keys(reading, inbox, sections, request);
  if (!status) status = find_values(reading, inbox, sections, request);
  return status ? status : find_filters(reading, inbox, sections, request);
}

/* An operand is copied: its values have to be aligned, and lie together. */
pawl_status pwi_reading_operand(struct pwi_reading *reading, const struct pwi_inbox *inbox,
                                const struct pwi_sections *sections, struct pwi_request *request) {
  const struct pwi_section *section = pwi_sections_find(sections, PWI_SECTION_OPERAND);
  size_t bytes, value_size = section ? pwi_value_size((enum pwi_value_type)section->value_type) : 0;
  if (!section) return PAWL_OK;
  if (value_size == 0 || !pwi_mul_size(section->count, value_size, &bytes)) return PAWL_CORRUPT;
  if (bytes > PLAIN_MAX) return PAWL_TOO_LARGE;
  if (reading->operand.size > PLAIN_KEEP && bytes <= PLAIN_KEEP) pwi_pages_fini(&reading->operand);
  pawl_status status = pwi_pages_grow(&reading->operand, bytes + 1);
  if (!status) status = pwi_pages_grow(&reading->coded, section->length + 1);
  if (status) return status;
  const void *data = pwi_inbox_at(inbox, section->offset, section->length, reading->coded.memory);
  if (section->codec == PWI_CODEC_RAW && bytes > 0) memcpy(reading->operand.memory, data, bytes);
  if (section->codec != PWI_CODEC_RAW)
    status = pwi_coder_decode(&reading->coder, section->codec, (enum pwi_value_type)section->value_type, data,
                              section->length, reading->operand.memory, section->count);
  request->operand = reading->operand.memory;
  request->operand_count = section->count;
  request->operand_type = section->value_type;
  return status;
}
