/* Values of a vector as text: one row per line, `key value value …`. */
#ifndef PWI_CLI_CLUSTER_VALUES_H
#define PWI_CLI_CLUSTER_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <pawl/vector.h>

/* The names of types, placements and layouts in options and tables. Returns false for an unknown name. */
const char *pwi_value_type_name(enum pawl_type type);
bool pwi_value_type_read(const char *word, enum pawl_type *type_out);
const char *pwi_value_placement_name(enum pawl_placement placement);
bool pwi_value_placement_read(const char *word, enum pawl_placement *placement_out);
const char *pwi_value_layout_name(enum pawl_layout layout);
bool pwi_value_layout_read(const char *word, enum pawl_layout *layout_out);

/* The server function of a vector as text with its parameters, and the reverse. The parameters are not
 * checked. Returns false if the text is too long. */
const char *pwi_value_function_text(const struct pawl_vector_options *options);
bool pwi_value_function_read(const char *text, struct pawl_vector_options *options);

/* Parses one number that ends at a blank, a comma or the end of the text, and stores it with the vector's
 * type. Returns the text after it, or NULL if it is not a number or does not fit. */
const char *pwi_value_read(const char *text, enum pawl_type type, void *value_out);

/* Writes one number with as many digits as are needed to read it back unchanged. In JSON, numbers that are
 * not finite are null. */
void pwi_value_print(FILE *file, enum pawl_type type, const void *value, bool json);

/* Rows that are collected before they are pushed. Initialise with zeros, except for type and width. */
struct pwi_rows_read {
  enum pawl_type type;
  uint32_t width;
  uint64_t *keys;
  unsigned char *values; /* count rows */
  size_t count, room;
};

enum pwi_row_fault {
  PWI_ROW_OK,
  PWI_ROW_NO_KEY,    /* the row does not begin with a key */
  PWI_ROW_BAD_VALUE, /* a value is not a number of the vector's type */
  PWI_ROW_TOO_FEW,   /* fewer values than the vector is wide */
  PWI_ROW_TOO_MANY,
  PWI_ROW_NO_MEMORY,
};

/* Appends a row `key value …`. `joint` follows the key ('=' or ' '); blanks or commas separate the values. */
enum pwi_row_fault pwi_rows_add(struct pwi_rows_read *rows, const char *text, char joint);

/* Sorts the rows by key. Returns PAWL_OK, PAWL_NO_MEMORY, or PAWL_EXISTS and a key that occurs twice. */
pawl_status pwi_rows_sort(struct pwi_rows_read *rows, uint64_t *twice_out);

void pwi_rows_fini(struct pwi_rows_read *rows);

#endif
