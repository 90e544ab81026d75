#include "host/etcd/etcd.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "host/clock.h"
#include "host/etcd/curl.h"

#define CONNECT_MS 500
#define SHORT_MS                                                                                                       \
  500 /* timeout of one attempt if the caller has a short deadline, so that another member can be tried */
#define LONG_MS 5000 /* timeout otherwise, for reading a long log */
#define PAUSE_MIN (PWI_HOST_SECOND / 20)
#define PAUSE_MAX (PWI_HOST_SECOND / 2)
#define IDLE_MS 1000
#define TROUBLE_MAX 600

/* One call. It belongs to the caller until it is queued, then to the thread until its answer is queued. */
struct etcd_request {
  struct etcd_request *next;
  struct pwi_meta_call *call; /* for the caller's thread only */
  atomic_bool is_cancelled;   /* the caller no longer waits for it */
  enum pwi_etcd_ask ask;
  struct pwi_text body, got;
  int64_t deadline;
  bool is_patient;

  /* For the thread only. */
  CURL *easy; /* while an attempt is under way */
  size_t endpoint, attempts;
  int64_t try_at;
  char error[CURL_ERROR_SIZE];
  struct pwi_etcd_reply reply;
};

struct etcd {
  struct pwi_meta meta; /* must be first */
  struct pwi_etcd_place place;
  char *authority, *certificate, *private_key;
  CURLM *multi;
  struct curl_slist *headers;
  pthread_t thread;
  bool has_thread;
  atomic_bool is_stopping;

  pthread_mutex_t mutex; /* guards the next four fields */
  struct etcd_request *queued, **queue_end;
  struct etcd_request *answered, **answer_end;
  char trouble[TROUBLE_MAX];

  /* For the thread only. */
  struct etcd_request *active;
  size_t endpoint; /* index of the endpoint to try next */
};

static struct etcd *of(struct pwi_meta *meta) { return (struct etcd *)meta; }

static void request_free(struct etcd_request *request) {
  if (request->easy) pwi_curl.easy_cleanup(request->easy);
  pwi_text_fini(&request->body);
  pwi_text_fini(&request->got);
  pwi_etcd_reply_fini(&request->reply);
  pwi_free(request);
}

/* --- the thread: one attempt ---------------------------------------------------------------------------- */

static size_t take_bytes(char *bytes, size_t one, size_t count, void *context) {
  struct etcd_request *request = context;
  pwi_text_add_bytes(&request->got, bytes, one * count);
  return pwi_text_status(&request->got) ? 0 : one * count;
}

static long attempt_ms(const struct etcd *etcd, const struct etcd_request *request) {
  int64_t left = (request->deadline - pwi_host_now()) / 1000000;
  int64_t most = request->is_patient || etcd->place.count == 1 ? LONG_MS : SHORT_MS;
  return (long)(left < 1 ? 1 : left < most ? left : most);
}

static void set_options(struct etcd *etcd, struct etcd_request *request) {
  CURL *easy = request->easy;
  char url[512];
  snprintf(url, sizeof url, "%s%s", etcd->place.endpoints[request->endpoint], pwi_etcd_path(request->ask));
  pwi_curl.easy_setopt(easy, CURLOPT_URL, url);
  pwi_curl.easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  pwi_curl.easy_setopt(easy, CURLOPT_PROXY, "");
  pwi_curl.easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
  pwi_curl.easy_setopt(easy, CURLOPT_HTTPHEADER, etcd->headers);
  pwi_curl.easy_setopt(easy, CURLOPT_POSTFIELDS, pwi_text_view(&request->body));
  pwi_curl.easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body.length);
  pwi_curl.easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
  pwi_curl.easy_setopt(easy, CURLOPT_TIMEOUT_MS, attempt_ms(etcd, request));
  pwi_curl.easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_bytes);
  pwi_curl.easy_setopt(easy, CURLOPT_WRITEDATA, request);
  pwi_curl.easy_setopt(easy, CURLOPT_ERRORBUFFER, request->error);
  pwi_curl.easy_setopt(easy, CURLOPT_PRIVATE, request);
  if (etcd->authority) pwi_curl.easy_setopt(easy, CURLOPT_CAINFO, etcd->authority);
  if (etcd->certificate) pwi_curl.easy_setopt(easy, CURLOPT_SSLCERT, etcd->certificate);
  if (etcd->private_key) pwi_curl.easy_setopt(easy, CURLOPT_SSLKEY, etcd->private_key);
}

static void fail(struct etcd_request *request, pawl_status status, bool is_passing) {
  request->reply = (struct pwi_etcd_reply){.status = status, .is_passing = is_passing};
}

static pawl_status status_of(const struct etcd_request *request, CURLcode code) {
  switch (code) {
  case CURLE_COULDNT_CONNECT:
    return PAWL_LINK_REFUSED;
  case CURLE_COULDNT_RESOLVE_HOST:
    return PAWL_LINK_RESOLVE;
  case CURLE_OPERATION_TIMEDOUT:
    return PAWL_TIMED_OUT;
  case CURLE_PEER_FAILED_VERIFICATION:
  case CURLE_SSL_CONNECT_ERROR:
  case CURLE_SSL_CERTPROBLEM:
  case CURLE_SSL_CACERT_BADFILE:
    return PAWL_LINK_KEY;
  case CURLE_WRITE_ERROR:
    return pwi_text_status(&request->got);
  case CURLE_OUT_OF_MEMORY:
    return PAWL_NO_MEMORY;
  default:
    return PAWL_LINK_RESET;
  }
}

static bool start_attempt(struct etcd *etcd, struct etcd_request *request) {
  request->easy = pwi_curl.easy_init();
  request->endpoint = etcd->endpoint;
  request->attempts++;
  request->error[0] = '\0';
  pwi_text_clear(&request->got);
  if (request->easy) set_options(etcd, request);
  if (request->easy && pwi_curl.multi_add_handle(etcd->multi, request->easy) == CURLM_OK) return true;
  if (request->easy) pwi_curl.easy_cleanup(request->easy);
  request->easy = NULL;
  return false;
}

static void read_outcome(struct etcd_request *request, CURLcode code) {
  long http = 0;
  if (code) {
    pawl_status status = status_of(request, code);
    fail(request, status, status != PAWL_TOO_LARGE && status != PAWL_NO_MEMORY);
    snprintf(request->reply.message, sizeof request->reply.message, "%s",
             request->error[0] ? request->error : pwi_curl.easy_strerror(code));
    return;
  }
  pwi_curl.easy_getinfo(request->easy, CURLINFO_RESPONSE_CODE, &http);
  pwi_etcd_read(request->ask, http, pwi_text_view(&request->got), request->got.length, &request->reply);
}

/* --- the thread: retries and answers -------------------------------------------------------------------- */

static void note_trouble(struct etcd *etcd, const struct etcd_request *request) {
  const struct pwi_etcd_reply *reply = &request->reply;
  pthread_mutex_lock(&etcd->mutex);
  etcd->trouble[0] = '\0';
  if (reply->status && reply->status != PAWL_NOT_FOUND)
    snprintf(etcd->trouble, sizeof etcd->trouble, "%s: %s", etcd->place.endpoints[request->endpoint],
             reply->message[0] ? reply->message : pawl_status_text(reply->status));
  pthread_mutex_unlock(&etcd->mutex);
}

static void hand_over(struct etcd *etcd, struct etcd_request *request) {
  pthread_mutex_lock(&etcd->mutex);
  request->next = NULL;
  *etcd->answer_end = request;
  etcd->answer_end = &request->next;
  pthread_mutex_unlock(&etcd->mutex);
  etcd->meta.wake(etcd->meta.context);
}

/* Pauses only after every member has been asked. */
static int64_t pause_after(const struct etcd *etcd, const struct etcd_request *request) {
  if (request->attempts % etcd->place.count != 0) return 0;
  size_t rounds = request->attempts / etcd->place.count;
  return rounds > 4 ? PAUSE_MAX : PAUSE_MIN << (rounds - 1);
}

/* True if the request is finished. */
static bool settle(struct etcd *etcd, struct etcd_request *request) {
  note_trouble(etcd, request);
  if (request->reply.is_passing && etcd->endpoint == request->endpoint)
    etcd->endpoint = (etcd->endpoint + 1) % etcd->place.count;
  request->try_at = pwi_host_now() + pause_after(etcd, request);
  return !request->reply.is_passing || request->try_at >= request->deadline;
}

static void remove_active(struct etcd *etcd, const struct etcd_request *request) {
  struct etcd_request **at = &etcd->active;
  while (*at != request) at = &(*at)->next;
  *at = request->next;
}

static void attempt_over(struct etcd *etcd, struct etcd_request *request) {
  if (!settle(etcd, request)) {
    pwi_etcd_reply_fini(&request->reply);
    return;
  }
  remove_active(etcd, request);
  hand_over(etcd, request);
}

static void collect(struct etcd *etcd) {
  int left;
  for (CURLMsg *message; (message = pwi_curl.multi_info_read(etcd->multi, &left));) {
    struct etcd_request *request;
    if (message->msg != CURLMSG_DONE) continue;
    CURLcode code = message->data.result;
    pwi_curl.easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&request);
    read_outcome(request, code);
    pwi_curl.multi_remove_handle(etcd->multi, request->easy);
    pwi_curl.easy_cleanup(request->easy);
    request->easy = NULL;
    attempt_over(etcd, request);
  }
}

static void drop(struct etcd *etcd, struct etcd_request *request) {
  if (request->easy) pwi_curl.multi_remove_handle(etcd->multi, request->easy);
  remove_active(etcd, request);
  request_free(request);
}

/* Starts requests that are due. Returns the milliseconds until the next one is due. */
static int look_at_active(struct etcd *etcd) {
  int64_t now = pwi_host_now(), next = now + IDLE_MS * INT64_C(1000000);
  for (struct etcd_request *request = etcd->active, *after; request; request = after) {
    after = request->next;
    if (atomic_load(&request->is_cancelled)) {
      drop(etcd, request);
    } else if (!request->easy && request->try_at <= now) {
      if (start_attempt(etcd, request)) continue;
      fail(request, PAWL_NO_MEMORY, false);
      attempt_over(etcd, request);
    } else if (!request->easy && request->try_at < next) {
      next = request->try_at;
    }
  }
  return (int)((next - now + 999999) / 1000000);
}

static void take_queue(struct etcd *etcd) {
  pthread_mutex_lock(&etcd->mutex);
  struct etcd_request *queued = etcd->queued;
  etcd->queued = NULL;
  etcd->queue_end = &etcd->queued;
  pthread_mutex_unlock(&etcd->mutex);
  while (queued) {
    struct etcd_request *request = queued;
    queued = request->next;
    request->next = etcd->active;
    etcd->active = request;
  }
}

static void *run(void *context) {
  struct etcd *etcd = context;
  int running;
  while (!atomic_load(&etcd->is_stopping)) {
    take_queue(etcd);
    look_at_active(etcd);
    pwi_curl.multi_perform(etcd->multi, &running);
    collect(etcd);
    pwi_curl.multi_poll(etcd->multi, NULL, 0, look_at_active(etcd), NULL); /* a failed attempt may be due again */
  }
  return NULL;
}

/* --- the caller's thread -------------------------------------------------------------------------------- */

static struct etcd_request *request_make(struct pwi_meta_call *call, enum pwi_etcd_ask ask) {
  struct etcd_request *request = pwi_alloc_zero(1, sizeof *request);
  if (!request) return NULL;
  request->call = call;
  request->ask = ask;
  request->deadline = pwi_host_after(call->patience_ns);
  request->is_patient = call->patience_ns > 4 * PWI_HOST_SECOND;
  atomic_init(&request->is_cancelled, false);
  return request;
}

static pawl_status submit(struct pwi_meta *meta, struct etcd_request *request) {
  struct etcd *etcd = of(meta);
  pawl_status status = pwi_text_status(&request->body);
  if (status) {
    request_free(request);
    return status;
  }
  request->call->inside = request;
  pthread_mutex_lock(&etcd->mutex);
  *etcd->queue_end = request;
  etcd->queue_end = &request->next;
  pthread_mutex_unlock(&etcd->mutex);
  pwi_curl.multi_wakeup(etcd->multi);
  return PAWL_OK;
}

static bool key_fits(const char *key) { return !key || strlen(key) < PWI_META_KEY_MAX; }

static bool keys_fit(const struct pwi_meta_transaction *transaction) {
  for (size_t i = 0; i < transaction->test_count; i++)
    if (!key_fits(transaction->tests[i].key)) return false;
  for (size_t i = 0; i < transaction->step_count; i++)
    if (!key_fits(transaction->steps[i].key) || !key_fits(transaction->steps[i].end)) return false;
  return true;
}

static pawl_status transact(struct pwi_meta *meta, struct pwi_meta_call *call,
                            const struct pwi_meta_transaction *transaction) {
  if (!keys_fit(transaction)) return PAWL_INVALID;
  struct etcd_request *request = request_make(call, PWI_ETCD_TXN);
  if (!request) return PAWL_NO_MEMORY;
  pwi_etcd_write_txn(&request->body, transaction);
  return submit(meta, request);
}

static pawl_status grant(struct pwi_meta *meta, struct pwi_meta_call *call, int64_t ttl_ns) {
  struct etcd_request *request = request_make(call, PWI_ETCD_GRANT);
  if (!request) return PAWL_NO_MEMORY;
  pwi_etcd_write_grant(&request->body, ttl_ns);
  return submit(meta, request);
}

static pawl_status about_lease(struct pwi_meta *meta, struct pwi_meta_call *call, enum pwi_etcd_ask ask,
                               uint64_t lease) {
  struct etcd_request *request = request_make(call, ask);
  if (!request) return PAWL_NO_MEMORY;
  pwi_etcd_write_lease(&request->body, lease);
  return submit(meta, request);
}

static pawl_status renew(struct pwi_meta *meta, struct pwi_meta_call *call, uint64_t lease) {
  return about_lease(meta, call, PWI_ETCD_RENEW, lease);
}

static pawl_status end_lease(struct pwi_meta *meta, struct pwi_meta_call *call, uint64_t lease) {
  return about_lease(meta, call, PWI_ETCD_REVOKE, lease);
}

/* The current owner frees it. */
static void cancel(struct pwi_meta *meta, struct pwi_meta_call *call) {
  struct etcd_request *request = call->inside;
  if (!request) return;
  call->inside = NULL;
  atomic_store(&request->is_cancelled, true);
  pwi_curl.multi_wakeup(of(meta)->multi);
}

static struct etcd_request *next_answer(struct etcd *etcd) {
  pthread_mutex_lock(&etcd->mutex);
  struct etcd_request *request = etcd->answered;
  if (request) etcd->answered = request->next;
  if (!etcd->answered) etcd->answer_end = &etcd->answered;
  pthread_mutex_unlock(&etcd->mutex);
  return request;
}

static void turn(struct pwi_meta *meta) {
  for (struct etcd_request *request; (request = next_answer(of(meta)));) {
    struct pwi_meta_call *call = request->call;
    if (!atomic_load(&request->is_cancelled)) {
      call->inside = NULL;
      call->done(call, request->reply.status, request->reply.status ? NULL : &request->reply.answer);
    }
    request_free(request);
  }
}

void pwi_etcd_trouble(struct pwi_meta *meta, char *text_out, size_t size) {
  struct etcd *etcd = of(meta);
  pthread_mutex_lock(&etcd->mutex);
  snprintf(text_out, size, "%s", etcd->trouble);
  pthread_mutex_unlock(&etcd->mutex);
}

/* --- life ----------------------------------------------------------------------------------------------- */

void pwi_etcd_stop(struct pwi_meta *meta) {
  struct etcd *etcd = of(meta);
  if (!etcd->has_thread) return;
  atomic_store(&etcd->is_stopping, true);
  pwi_curl.multi_wakeup(etcd->multi);
  pthread_join(etcd->thread, NULL);
  etcd->has_thread = false;
}

static void free_list(struct etcd *etcd, struct etcd_request *list) {
  while (list) {
    struct etcd_request *request = list;
    list = request->next;
    if (request->easy) pwi_curl.multi_remove_handle(etcd->multi, request->easy);
    request_free(request);
  }
}

static void destroy(struct pwi_meta *meta) {
  struct etcd *etcd = of(meta);
  pwi_etcd_stop(meta);
  free_list(etcd, etcd->queued);
  free_list(etcd, etcd->active);
  free_list(etcd, etcd->answered);
  if (etcd->multi) pwi_curl.multi_cleanup(etcd->multi);
  pwi_curl.slist_free_all(etcd->headers);
  pthread_mutex_destroy(&etcd->mutex);
  pwi_free(etcd->authority);
  pwi_free(etcd->certificate);
  pwi_free(etcd->private_key);
  pwi_free(etcd);
}

static const struct pwi_meta_ops etcd_ops = {
    .transact = transact,
    .grant = grant,
    .renew = renew,
    .revoke = end_lease,
    .cancel = cancel,
    .turn = turn,
    .destroy = destroy,
};

static bool copy(const char *text, char **copy_out) {
  if (!text) return true;
  *copy_out = pwi_copy_string(text);
  return *copy_out != NULL;
}

/* Blocks signals, which are for the main thread. */
static bool start_thread(struct etcd *etcd) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  etcd->has_thread = pthread_create(&etcd->thread, NULL, run, etcd) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return etcd->has_thread;
}

pawl_status pwi_etcd_open(const struct pwi_etcd_config *config, struct pwi_meta **meta_out) {
  pawl_status status = pwi_curl_load();
  if (status) return status;
  struct etcd *etcd = pwi_alloc_zero(1, sizeof *etcd);
  if (!etcd) return PAWL_NO_MEMORY;
  etcd->meta = (struct pwi_meta){.ops = &etcd_ops, .wake = config->wake, .context = config->context};
  etcd->place = config->place;
  etcd->queue_end = &etcd->queued;
  etcd->answer_end = &etcd->answered;
  pthread_mutex_init(&etcd->mutex, NULL);
  etcd->multi = pwi_curl.multi_init();
  etcd->headers = pwi_curl.slist_append(NULL, "Content-Type: application/json");
  bool copied = copy(config->authority, &etcd->authority) && copy(config->certificate, &etcd->certificate) &&
                copy(config->private_key, &etcd->private_key);
  if (!etcd->multi || !etcd->headers || !copied) status = PAWL_NO_MEMORY;
  if (!status && !start_thread(etcd)) status = PAWL_NODE_LIMIT;
  if (status) {
    destroy(&etcd->meta);
    return status;
  }
  *meta_out = &etcd->meta;
  return PAWL_OK;
}
