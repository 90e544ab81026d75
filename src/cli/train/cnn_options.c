#include "cli/train/cnn_options.h"

#include "cli/train/matrix/share.h"

const struct pwi_cli_option pwi_train_cnn_list[] = {
    PWI_CLI_HEADING("model"),
    {PWI_TRAIN_NET, "model", "NAME", "net: lenet (for MNIST) or vgg (for CIFAR-10)"},
    {PWI_TRAIN_OUTPUT, "output", "MODEL", "write the model to MODEL (default: the data's name with .model)"},
    PWI_CLI_HEADING("images"),
    {PWI_TRAIN_TEST, "test", "FILE",
     "measure the error on the images in FILE after each epoch; may be given several times: images and labels of MNIST "
     "are two files"},
    {PWI_TRAIN_FORMAT, "format", "F",
     "format of all files: idx or cifar (default: idx for files that begin like idx, else cifar)"},
    PWI_CLI_HEADING("method"),
    {PWI_TRAIN_EPOCHS, "epochs", "N", "number of passes over all images (default: lenet 5, vgg 20)"},
    {PWI_TRAIN_BATCH, "batch", "N", "number of images in a step (default: lenet 64, vgg 32)"},
    {PWI_TRAIN_RATE, "rate", "X", "learning rate of the first step (default: 0.01)"},
    {PWI_TRAIN_SCHEDULE, "schedule", "NAME",
     "how the learning rate falls: cosine (default), along half a cosine wave to 0, or constant"},
    {PWI_TRAIN_MOMENTUM, "momentum", "X", "share of the last step that is repeated, below 1 (default: 0.9)"},
    {PWI_TRAIN_DECAY, "decay", "X", "weight decay (default: 0.0005)"},
    {PWI_TRAIN_SEED, "seed", "N", "seed of first weights, order and dropout (default: 1)"},
    {PWI_TRAIN_THREADS, "threads", "N",
     "number of threads of OpenBLAS in each worker, if it was built with threads (default: 1)"},
    PWI_CLI_HEADING("workers"),
    {PWI_TRAIN_WORKERS, "workers", "N|MIN:MAX",
     "number of worker processes, which divide each batch among them (default: 1, this process); with --cluster, 0 "
     "starts none, and 'pawl worker' starts them elsewhere"},
    {PWI_TRAIN_SHARE, "share", "HOW",
     "how workers share the parameters: servers (default); reduce: they average with their neighbours in a graph; "
     "factors: they send gradients to one another, of full layers as pairs of vectors; or auto: servers or factors, "
     "whichever sends fewer bytes"},
    PWI_TRAIN_SHARE_GRAPH,
    {PWI_TRAIN_MODE, "mode", "NAME",
     PWI_TRAIN_REDUCE_MODES
     "; servers: bsp (default) waits for all workers, notify-ack computes while the last changes "
     "travel, async waits for no other worker"},
    {PWI_TRAIN_AVERAGE, "average", "WHAT",
     "reduce: average models, or gradients (default: gradients on the complete graph with notify-ack, else models)"},
    {PWI_TRAIN_ON_LOSS, "on-worker-loss", "HOW",
     "what to do if a worker dies: replace it (default), continue without it, or stop"},
    {PWI_TRAIN_DROP_SLOWEST, "drop-slowest", "X", "drop a worker that takes X times the median, three times in a row"},
    {PWI_TRAIN_CHECKPOINT, "checkpoint", "DIR",
     "reduce: directory to which workers save the state (default with --checkpoint-every or --resume: "
     "MODEL.checkpoints)"},
    {PWI_TRAIN_CHECKPOINT_EVERY, "checkpoint-every", "S", "reduce: save a checkpoint every S seconds (default: 60)"},
    {PWI_TRAIN_RESUME, "resume", NULL, "reduce: continue from the checkpoint"},
    {PWI_TRAIN_SERVERS, "servers", "N", "number of server processes (default: 1, and 1 for each replica)"},
    {PWI_TRAIN_REPLICAS, "replicas", "N", "number of further copies of the model: N servers may die (default: 0)"},
    {PWI_SESSION_CLUSTER, "cluster", "ADDRESS[,…]",
     "address of the manager of the cluster to use (default: PAWL_ADDRESS, or a temporary cluster is started)"},
    {PWI_TRAIN_JOB, "job", "NAME", "name by which workers find this run in the cluster (default: train)"},
    {PWI_TRAIN_LISTEN, "listen", "ADDRESS", "address that workers connect to (default: from the route to the manager)"},
    PWI_SESSION_PROOFS,
    PWI_CLI_HEADING("output"),
    {PWI_TRAIN_LOG, "log", "FILE", "write a JSON object for each epoch to FILE"},
    {PWI_CLI_LETTER_JSON, "json", NULL, "print the result as one JSON object"},
    {PWI_TRAIN_QUIET, "quiet", NULL, "print nothing but errors"},
    {0},
};

#define PLACE(member) offsetof(struct pwi_train_cnn_options, member)

static const struct pwi_train_word schedules[] = {{"cosine", PAWL_CNN_COSINE}, {"constant", PAWL_CNN_CONSTANT}, {0}};
static const struct pwi_train_word averages[] = {
    {"models", PAWL_CNN_AVERAGE_MODELS}, {"gradients", PAWL_CNN_AVERAGE_GRADIENTS}, {0}};

static const struct pwi_train_rule rules[] = {
    {PWI_TRAIN_NET, PWI_TRAIN_TEXT, PLACE(cnn.net), 0, 0, NULL},
    {PWI_TRAIN_EPOCHS, PWI_TRAIN_COUNT64, PLACE(cnn.epochs), 1, 1e6, "a number of epochs, up to 1000000"},
    {PWI_TRAIN_BATCH, PWI_TRAIN_COUNT64, PLACE(cnn.batch), 1, 65536, "a number of images, up to 65536"},
    {PWI_TRAIN_RATE, PWI_TRAIN_REAL, PLACE(cnn.rate), 1e-300, 1e300, "a number above 0"},
    {PWI_TRAIN_MOMENTUM, PWI_TRAIN_REAL, PLACE(cnn.momentum), 0, 0.999999, "a number from 0 to below 1"},
    {PWI_TRAIN_DECAY, PWI_TRAIN_REAL, PLACE(cnn.decay), 0, 1e300, "a number, at least 0"},
    {PWI_TRAIN_SEED, PWI_TRAIN_COUNT64, PLACE(cnn.seed), 0, 2e19, "a whole number"},
    {PWI_TRAIN_THREADS, PWI_TRAIN_COUNT32, PLACE(cnn.threads), 1, 1024, "a number of threads, up to 1024"},
    {PWI_TRAIN_TEST, PWI_TRAIN_FILES, PLACE(test), 0, 0, NULL},
    {PWI_TRAIN_CHECKPOINT, PWI_TRAIN_TEXT, PLACE(checkpoints), 0, 0, NULL},
    {PWI_TRAIN_CHECKPOINT_EVERY, PWI_TRAIN_REAL, PLACE(checkpoint_every_s), 1e-3, 1e9,
     "a number of seconds, at least 0.001"},
    {0},
};

static const struct pwi_train_choice choices[] = {
    {PWI_TRAIN_SCHEDULE, PLACE(cnn.schedule), schedules, "cosine or constant"},
    {PWI_TRAIN_AVERAGE, PLACE(average), averages, "models or gradients"},
    {0},
};

static const char *read_other(void *context, int letter, const char *value) {
  struct pwi_train_cnn_options *options = context;
  if (letter != PWI_TRAIN_FORMAT) return pwi_train_choices_follow(choices, options, letter, value);
  return pawl_images_format_parse(value, &options->reading.format) ? "idx or cifar" : NULL;
}

/* --- what was left open ------------------------------------------------------------------------------------------- */

/* Without --share: one worker is this process, and several use servers, unless an option belongs to reduce. */
static void settle_share(struct pwi_train_cnn_options *options) {
  struct pwi_train_base *base = &options->base;
  bool has_many = base->has_workers && base->workers_most != 1;
  bool has_others = has_many || base->names_cluster || (base->is_launched && base->ranks.size > 1);
  if (base->share != PWI_TRAIN_SHARE_AUTO) return;
  if (base->graph || base->has_mode || options->average)
    base->share = PWI_TRAIN_SHARE_REDUCE;
  else
    base->share = has_others ? PWI_TRAIN_SHARE_SERVERS : PWI_TRAIN_SHARE_NONE;
}

bool pwi_train_cnn_has_checkpoints(const struct pwi_train_cnn_options *options) {
  return options->checkpoints || options->checkpoint_every_s > 0 || options->base.resume;
}

static int check_alone(const struct pwi_train_cnn_options *options) {
  const struct pwi_train_base *base = &options->base;
  if (base->has_workers && base->workers_most != 1)
    return pwi_cli_usage(base->command, "several workers have to share the parameters; give --share servers, reduce, "
                                        "factors or auto");
  if (pwi_train_cnn_has_checkpoints(options))
    return pwi_cli_usage(
        base->command, "only workers that share by reduce have checkpoints; give --share reduce, or omit --checkpoint, "
                       "--checkpoint-every and --resume");
  if (base->has_servers || base->names_cluster)
    return pwi_cli_usage(base->command, "one process needs no servers and no cluster; give --share servers");
  return PWI_EXIT_OK;
}

static int check(struct pwi_train_cnn_options *options) {
  struct pwi_train_base *base = &options->base;
  struct pawl_cnn_sharing sharing;
  char error[PAWL_CNN_TEXT];
  if (!options->cnn.net) return pwi_cli_usage(base->command, "no net was named; give --model lenet or --model vgg");
  if (!pawl_cnn_check(&options->cnn, error)) return pwi_cli_usage(base->command, "%s", error);
  settle_share(options);
  if (base->share == PWI_TRAIN_SHARE_NONE) return check_alone(options);
  int exit_code = pwi_train_base_settle(base);
  if (exit_code == PWI_EXIT_OK && base->share == PWI_TRAIN_SHARE_CHOOSE) exit_code = pwi_train_check_auto(base);
  if (exit_code != PWI_EXIT_OK) return exit_code;
  pwi_train_cnn_sharing(options, options->base.data, &sharing);
  return pawl_cnn_sharing_check(&sharing, error) ? PWI_EXIT_OK : pwi_cli_usage(base->command, "%s", error);
}

/* The mode of pushes to servers. Without --mode they are synchronous. */
static enum pawl_cnn_push push_of(const struct pwi_train_base *base) {
  static const enum pawl_cnn_push pushes[] = {[PAWL_REDUCE_NOTIFY_ACK] = PAWL_CNN_PUSH_NOTIFY_ACK,
                                              [PAWL_REDUCE_BSP] = PAWL_CNN_PUSH_BSP,
                                              [PAWL_REDUCE_ASYNC] = PAWL_CNN_PUSH_ASYNC};
  return base->has_mode ? pushes[base->mode] : PAWL_CNN_PUSH_BSP;
}

void pwi_train_cnn_sharing(const struct pwi_train_cnn_options *options, const char *const *paths,
                           struct pawl_cnn_sharing *sharing_out) {
  const struct pwi_train_base *base = &options->base;
  pawl_cnn_sharing_init(sharing_out);
  sharing_out->share = pwi_train_base_reduces(base)             ? PAWL_CNN_REDUCE
                       : base->share == PWI_TRAIN_SHARE_FACTORS ? PAWL_CNN_FACTORS
                                                                : PAWL_CNN_SERVERS;
  sharing_out->job = base->job;
  sharing_out->paths = paths;
  sharing_out->path_count = options->base.data_count;
  sharing_out->format = options->reading.format;
  sharing_out->workers = base->least;
  sharing_out->workers_most = base->most;
  sharing_out->on_loss = base->on_loss;
  sharing_out->drop_slowest = base->drop_slowest;
  sharing_out->graph = base->graph;
  if (sharing_out->share == PAWL_CNN_SERVERS)
    sharing_out->push = push_of(base);
  else
    sharing_out->mode = base->mode;
  sharing_out->average = options->average;
  if (pwi_train_cnn_has_checkpoints(options)) sharing_out->checkpoints = "beside the model"; /* settled later */
  sharing_out->checkpoint_every_s = options->checkpoint_every_s;
  sharing_out->resume = base->resume;
}

bool pwi_train_cnn_options_read(struct pwi_train_cnn_options *options, const struct pwi_command *command, int argc,
                                char **argv, int *exit_out) {
  *options = (struct pwi_train_cnn_options){.average = PAWL_CNN_AVERAGE_AUTO};
  pwi_train_base_init(&options->base, command);
  options->base.servers_have_modes = true;
  options->base.has_factors = true;
  pawl_cnn_options_init(&options->cnn);
  pawl_images_options_init(&options->reading);
  if (!pwi_train_base_read(&options->base, rules, read_other, argc, argv, exit_out)) return false;
  *exit_out = check(options);
  return *exit_out == PWI_EXIT_OK;
}
