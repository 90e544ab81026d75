#include "sim/fabric/training.h"

#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/random.h"

#define PROGRESS_EVERY 20000 /* arrivals */

enum event { EVENT_COMPUTED, EVENT_PUSHED, EVENT_PULLED };

/* One shard of a job: its tree, and how far the round has come. */
struct shard {
  uint32_t host;
  uint32_t roots;         /* members that send to the server */
  uint32_t waiting;       /* of them, those whose pushes are not in */
  uint32_t *parents;      /* of each worker */
  uint32_t *child_counts; /* of each worker */
  uint32_t *pending;      /* of each worker: children that it waits for */
  uint32_t *children;     /* workers in the order of their parents: child_begin[w] is the first of w */
  uint32_t *child_begin;  /* workers + 2 values; the last run are the roots */
  uint32_t height;
};

struct training_job {
  const struct pwi_training_job *is;
  uint32_t number;
  struct pwi_tree_member *members;
  struct shard *shards;
  uint32_t *memory; /* of all shards */
  uint64_t left;    /* pulls that this round waits for */
  uint32_t round;
};

struct training {
  const struct pwi_training_config *config;
  struct pwi_flows *flows;
  struct training_job jobs[PWI_TRAINING_JOBS_MAX];
  uint32_t running;
  uint64_t rounds;
  uint32_t *weights;         /* by link; zero between uses */
  struct pwi_flow_hop *hops; /* room for all links */
  struct pwi_training_result result;
};

static bool streams(const struct training_job *job) { return job->is->streams && job->is->tree != PWI_TREE_NONE; }

/* --- the events of a job are the cookies of its flows --------------------------------------------------- */

static uint64_t cookie_of(const struct training_job *job, enum event event, uint32_t shard, uint32_t worker) {
  return (uint64_t)job->number << 56 | (uint64_t)event << 48 | (uint64_t)shard << 32 | worker;
}

static uint64_t hash_of(const struct training_job *job, enum event event, uint32_t shard, uint32_t worker) {
  return pwi_mix64(cookie_of(job, event, shard, worker) + 1);
}

/* --- flows ---------------------------------------------------------------------------------------------- */

/* Adds the links between two hosts to the list of hops; a link that occurs again only gets heavier. */
static size_t add_route(struct training *training, uint32_t from, uint32_t to, uint64_t hash, size_t count) {
  uint32_t links[PWI_FABRIC_ROUTE_MAX];
  size_t length = pwi_fabric_route(&training->config->shape, from, to, hash, links);
  for (size_t i = 0; i < length; i++)
    if (training->weights[links[i]]++ == 0) training->hops[count++].link = links[i];
  return count;
}

static void finish_hops(struct training *training, size_t count) {
  for (size_t i = 0; i < count; i++) {
    uint32_t *weight = &training->weights[training->hops[i].link];
    training->hops[i].weight = *weight;
    *weight = 0;
  }
}

static pawl_status begin(struct training *training, const struct training_job *job, size_t hop_count, double bytes,
                         int64_t latency, uint64_t cookie) {
  struct pwi_flow_id id;
  struct pwi_flow_spec spec = {.hops = training->hops,
                               .hop_count = hop_count,
                               .bytes = bytes,
                               .class = job->is->class,
                               .latency_ns = latency,
                               .cookie = cookie};
  return pwi_flow_begin(training->flows, &spec, &id);
}

static uint32_t parent_host(const struct training_job *job, const struct shard *shard, uint32_t worker) {
  uint32_t parent = shard->parents[worker];
  return parent == PWI_TREE_ROOT ? shard->host : job->members[parent].host;
}

/* One branch of a tree: from a worker to its parent, or back. */
static pawl_status begin_branch(struct training *training, const struct training_job *job, enum event event,
                                uint32_t shard, uint32_t worker) {
  uint32_t own = job->members[worker].host, other = parent_host(job, &job->shards[shard], worker);
  bool up = event == EVENT_PUSHED;
  size_t count = add_route(training, up ? own : other, up ? other : own, hash_of(job, event, shard, worker), 0);
  finish_hops(training, count);
  return begin(training, job, count, job->is->bytes / job->is->servers, (int64_t)count * training->config->latency_ns,
               cookie_of(job, event, shard, worker));
}

/* The whole tree as one flow. */
static pawl_status begin_stream(struct training *training, const struct training_job *job, enum event event,
                                uint32_t number) {
  const struct shard *shard = &job->shards[number];
  size_t count = 0;
  for (uint32_t worker = 0; worker < job->is->workers; worker++) {
    uint32_t own = job->members[worker].host, other = parent_host(job, shard, worker);
    bool up = event == EVENT_PUSHED;
    count = add_route(training, up ? own : other, up ? other : own, hash_of(job, event, number, worker), count);
  }
  finish_hops(training, count);
  int64_t latency = (int64_t)shard->height * PWI_FABRIC_ROUTE_MAX * training->config->latency_ns;
  return begin(training, job, count, job->is->bytes / job->is->servers, latency, cookie_of(job, event, number, 0));
}

/* --- rounds --------------------------------------------------------------------------------------------- */

static pawl_status compute(struct training *training, const struct training_job *job) {
  return begin(training, job, 0, 0, job->is->compute_ns, cookie_of(job, EVENT_COMPUTED, 0, 0));
}

static pawl_status push_shard(struct training *training, struct training_job *job, uint32_t number) {
  struct shard *shard = &job->shards[number];
  shard->waiting = shard->roots;
  if (streams(job)) return begin_stream(training, job, EVENT_PUSHED, number);
  memcpy(shard->pending, shard->child_counts, job->is->workers * sizeof *shard->pending);
  for (uint32_t worker = 0; worker < job->is->workers; worker++) {
    if (shard->pending[worker]) continue;
    pawl_status status = begin_branch(training, job, EVENT_PUSHED, number, worker);
    if (status) return status;
  }
  return PAWL_OK;
}

static pawl_status computed(struct training *training, struct training_job *job) {
  job->left = (uint64_t)job->is->servers * (streams(job) ? 1 : job->is->workers);
  for (uint32_t i = 0; i < job->is->servers; i++) {
    pawl_status status = push_shard(training, job, i);
    if (status) return status;
  }
  return PAWL_OK;
}

/* Sends the values on to the children of a worker, or of the server: the last run of children. */
static pawl_status pull_children(struct training *training, struct training_job *job, uint32_t number, uint32_t run) {
  const struct shard *shard = &job->shards[number];
  for (uint32_t i = shard->child_begin[run]; i < shard->child_begin[run + 1]; i++) {
    pawl_status status = begin_branch(training, job, EVENT_PULLED, number, shard->children[i]);
    if (status) return status;
  }
  return PAWL_OK;
}

static pawl_status pushed(struct training *training, struct training_job *job, uint32_t number, uint32_t worker) {
  struct shard *shard = &job->shards[number];
  if (streams(job)) return begin_stream(training, job, EVENT_PULLED, number);
  uint32_t parent = shard->parents[worker];
  if (parent != PWI_TREE_ROOT)
    return --shard->pending[parent] ? PAWL_OK : begin_branch(training, job, EVENT_PUSHED, number, parent);
  return --shard->waiting ? PAWL_OK : pull_children(training, job, number, job->is->workers);
}

static pawl_status pulled(struct training *training, struct training_job *job, uint32_t number, uint32_t worker) {
  if (!streams(job)) {
    pawl_status status = pull_children(training, job, number, worker);
    if (status) return status;
  }
  if (--job->left) return PAWL_OK;
  training->rounds++;
  if (++job->round < job->is->rounds) return compute(training, job);
  training->running--;
  training->result.ends[job->number] = pwi_flows_now(training->flows);
  return PAWL_OK;
}

static pawl_status happen(struct training *training, uint64_t cookie) {
  struct training_job *job = &training->jobs[cookie >> 56];
  uint32_t shard = (uint32_t)(cookie >> 32) & 0xffff, worker = (uint32_t)cookie;
  switch ((enum event)((cookie >> 48) & 0xff)) {
  case EVENT_COMPUTED:
    return computed(training, job);
  case EVENT_PUSHED:
    return pushed(training, job, shard, worker);
  default:
    return pulled(training, job, shard, worker);
  }
}

static pawl_status run(struct training *training) {
  const struct pwi_training_config *config = training->config;
  pawl_status status = PAWL_OK;
  uint64_t cookie, arrivals = 0;
  for (size_t i = 0; i < config->job_count && !status; i++) status = compute(training, &training->jobs[i]);
  while (!status && training->running) {
    if (!pwi_flows_take(training->flows, PWI_FLOW_NEVER, &cookie)) return PAWL_TIMED_OUT;
    status = happen(training, cookie);
    if (config->progress && ++arrivals % PROGRESS_EVERY == 0)
      config->progress(config->context, pwi_flows_now(training->flows), training->rounds);
  }
  return status;
}

/* --- setting up ----------------------------------------------------------------------------------------- */

static pawl_status place(const struct pwi_training_config *config, struct training_job *job) {
  uint32_t hosts = pwi_fabric_hosts(&config->shape), workers = job->is->workers;
  uint32_t *order = pwi_alloc_zero(hosts, sizeof *order);
  struct pwi_random random;
  if (!order) return PAWL_NO_MEMORY;
  pwi_random_init(&random, config->seed, job->number);
  for (uint32_t i = 0; i < hosts; i++) order[i] = i;
  pwi_random_shuffle(&random, order, hosts, sizeof *order);
  for (uint32_t i = 0; i < workers; i++)
    job->members[i] = (struct pwi_tree_member){i, order[i], pwi_fabric_rack_of(&config->shape, order[i])};
  for (uint32_t i = 0; i < job->is->servers; i++) job->shards[i].host = order[(workers + i) % hosts];
  pwi_free(order);
  return PAWL_OK;
}

static void list_children(const struct training_job *job, struct shard *shard) {
  uint32_t workers = job->is->workers, *begins = shard->child_begin;
  for (uint32_t i = 0; i < workers; i++) {
    uint32_t parent = shard->parents[i];
    if (parent == PWI_TREE_ROOT)
      shard->roots++;
    else
      shard->child_counts[parent]++;
  }
  for (uint32_t i = 0; i < workers; i++) begins[i + 1] = begins[i] + shard->child_counts[i];
  begins[workers + 1] = begins[workers] + shard->roots;
  for (uint32_t i = 0; i < workers; i++) shard->pending[i] = begins[i];
  uint32_t root = begins[workers];
  for (uint32_t i = 0; i < workers; i++) {
    uint32_t parent = shard->parents[i];
    shard->children[parent == PWI_TREE_ROOT ? root++ : shard->pending[parent]++] = i;
  }
}

static pawl_status plant(struct training_job *job, uint32_t number) {
  struct shard *shard = &job->shards[number];
  size_t workers = job->is->workers;
  uint32_t *memory = job->memory + (5 * workers + 2) * number;
  struct pwi_tree_figures figures;
  struct pwi_tree_spec spec = {.tree = job->is->tree,
                               .degree = job->is->degree,
                               .rotates = job->is->rotates,
                               .shard = number,
                               .shards = job->is->servers,
                               .members = job->members,
                               .count = workers};
  shard->parents = memory;
  shard->child_counts = memory + workers;
  shard->pending = memory + 2 * workers;
  shard->children = memory + 3 * workers;
  shard->child_begin = memory + 4 * workers;
  pawl_status status = pwi_tree_make(&spec, NULL, shard->parents);
  if (!status) status = pwi_tree_figures(job->members, shard->parents, workers, &figures);
  if (status) return status;
  shard->height = figures.height;
  list_children(job, shard);
  return PAWL_OK;
}

static pawl_status open_job(struct training *training, size_t index) {
  struct training_job *job = &training->jobs[index];
  const struct pwi_training_job *is = &training->config->jobs[index];
  *job = (struct training_job){.is = is, .number = (uint32_t)index};
  if (!is->workers || is->workers > pwi_fabric_hosts(&training->config->shape) || !is->servers || !is->rounds)
    return PAWL_INVALID;
  if (is->servers > PWI_TRAINING_SERVERS_MAX) return PAWL_TOO_LARGE;
  job->members = pwi_alloc_zero(is->workers, sizeof *job->members);
  job->shards = pwi_alloc_zero(is->servers, sizeof *job->shards);
  job->memory = pwi_alloc_zero(is->servers, (5 * (size_t)is->workers + 2) * sizeof *job->memory);
  if (!job->members || !job->shards || !job->memory) return PAWL_NO_MEMORY;
  pawl_status status = place(training->config, job);
  for (uint32_t i = 0; i < is->servers && !status; i++) status = plant(job, i);
  return status;
}

static pawl_status open_flows(struct training *training) {
  const struct pwi_training_config *config = training->config;
  uint32_t count = pwi_fabric_links(&config->shape);
  struct pwi_flow_link *links = pwi_alloc_zero(count, sizeof *links);
  training->weights = pwi_alloc_zero(count, sizeof *training->weights);
  training->hops = pwi_alloc_zero(count, sizeof *training->hops);
  training->result.link_bytes = pwi_alloc_zero(count, sizeof *training->result.link_bytes);
  bool has_memory = links && training->weights && training->hops && training->result.link_bytes;
  for (uint32_t i = 0; i < count && has_memory; i++) {
    struct pwi_fabric_link link = pwi_fabric_link(&config->shape, i);
    links[i] = (struct pwi_flow_link){link.capacity, link.tier == PWI_FABRIC_HOSTS && link.is_down};
  }
  struct pwi_flows_config flows = {.links = links,
                                   .link_count = count,
                                   .grain_ns = config->grain_ns,
                                   .incast_flows = config->incast_flows,
                                   .incast_loss = config->incast_loss};
  pawl_status status = has_memory ? pwi_flows_create(&flows, &training->flows) : PAWL_NO_MEMORY;
  pwi_free(links);
  return status;
}

static void close_all(struct training *training) {
  for (size_t i = 0; i < training->config->job_count; i++) {
    pwi_free(training->jobs[i].members);
    pwi_free(training->jobs[i].shards);
    pwi_free(training->jobs[i].memory);
  }
  pwi_flows_destroy(training->flows);
  pwi_free(training->weights);
  pwi_free(training->hops);
}

pawl_status pwi_training_run(const struct pwi_training_config *config, struct pwi_training_result *result_out) {
  if (!config->job_count || config->job_count > PWI_TRAINING_JOBS_MAX) return PAWL_INVALID;
  pawl_status status = pwi_fabric_shape_check(&config->shape);
  if (status) return status;
  struct training *training = pwi_alloc_zero(1, sizeof *training);
  if (!training) return PAWL_NO_MEMORY;
  training->config = config;
  training->running = (uint32_t)config->job_count;
  status = open_flows(training);
  for (size_t i = 0; i < config->job_count && !status; i++) status = open_job(training, i);
  if (!status) status = run(training);
  if (!status) {
    training->result.figures = pwi_flows_figures(training->flows);
    for (uint32_t i = 0; i < pwi_fabric_links(&config->shape); i++)
      training->result.link_bytes[i] = pwi_flow_link_bytes(training->flows, i);
    *result_out = training->result;
  } else {
    pwi_free(training->result.link_bytes);
  }
  close_all(training);
  pwi_free(training);
  return status;
}
