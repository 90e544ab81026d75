/* --class-weight: assigns the weights to the two labels of the data, and counts the rows of each label. */
#include <stdio.h>

#include "cli/train/files.h"

struct tally {
  double labels[2]; /* in the order of their appearance */
  uint64_t rows[2];
  size_t count;
  bool has_more; /* than two labels */
};

static void count_label(struct tally *tally, double label) {
  size_t i = 0;
  while (i < tally->count && tally->labels[i] != label) i++;
  if (i == 2) {
    tally->has_more = true;
    return;
  }
  if (i == tally->count) tally->labels[tally->count++] = label;
  tally->rows[i]++;
}

static pawl_status take(void *context, size_t piece, struct pawl_batch *batch) {
  (void)piece;
  for (size_t i = 0; i < batch->rows; i++) count_label(context, batch->labels[i]);
  pawl_batch_destroy(batch);
  return PAWL_OK;
}

/* Reads until both labels were seen, or to the end if all are to be counted. */
static pawl_status look(const struct pwi_train_options *options, struct pawl_data *data, struct tally *tally) {
  struct pawl_data_info info;
  struct pawl_batch *batch;
  pawl_status status = PAWL_OK;
  pawl_data_info(data, &info);
  if (options->is_balanced) return pawl_data_read_all(data, 0, info.pieces, options->base.threads, take, tally);
  for (size_t i = 0; i < info.pieces && tally->count < 2 && !status; i++) {
    status = pawl_data_read(data, i, &batch);
    if (!status) status = take(tally, i, batch);
  }
  return status;
}

static void put_in_order(struct tally *tally) {
  if (tally->labels[0] < tally->labels[1]) return;
  struct tally was = *tally;
  for (size_t i = 0; i < 2; i++) {
    tally->labels[i] = was.labels[1 - i];
    tally->rows[i] = was.rows[1 - i];
  }
}

static int refuse_label(const struct pwi_train_options *options, double label, const struct tally *tally) {
  char wrong[32], low[32], high[32];
  return pwi_cli_failure(options->base.command, "--class-weight: no row has the label %s; there are %s and %s",
                         pwi_train_number(label, wrong), pwi_train_number(tally->labels[0], low),
                         pwi_train_number(tally->labels[1], high));
}

/* A class of n rows has the weight rows / (2 n). */
static void balance(struct pwi_train_options *options, const struct tally *tally) {
  double rows = (double)(tally->rows[0] + tally->rows[1]);
  for (size_t i = 0; i < 2; i++) options->linear.class_weights[i] = rows / (2 * (double)tally->rows[i]);
}

static int assign(struct pwi_train_options *options, const struct tally *tally) {
  for (size_t i = 0; i < options->class_count; i++) {
    const struct pwi_train_class *class = &options->classes[i];
    double label = (float)class->label; /* labels of data are floats */
    if (label != tally->labels[0] && label != tally->labels[1]) return refuse_label(options, class->label, tally);
    options->linear.class_weights[label == tally->labels[1]] = class->weight;
  }
  return PWI_EXIT_OK;
}

bool pwi_train_classes_weigh(struct pwi_train_options *options, struct pawl_data *data, int *exit_out) {
  struct tally tally = {.count = 0};
  if (!options->is_balanced && options->class_count == 0) return true;
  pawl_status status = look(options, data, &tally);
  *exit_out = PWI_EXIT_OK;
  if (status)
    *exit_out =
        pwi_cli_failure(options->base.command, "%s", *pawl_error_text() ? pawl_error_text() : pawl_status_text(status));
  else if (tally.count < 2 || tally.has_more)
    *exit_out = pwi_cli_failure(options->base.command, "--class-weight needs data with two labels; here there %s",
                                tally.has_more ? "are more"
                                : tally.count  ? "is only one"
                                               : "are none");
  if (*exit_out != PWI_EXIT_OK) return false;
  put_in_order(&tally);
  if (options->is_balanced)
    balance(options, &tally);
  else
    *exit_out = assign(options, &tally);
  return *exit_out == PWI_EXIT_OK;
}
