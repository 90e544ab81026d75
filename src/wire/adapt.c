#include "wire/adapt.h"

#include <math.h>

#include "base/hash.h"

/* Weight of earlier reports after each new one; a change takes effect within a few reports. */
#define KEEP 0.75

/* How much better a codec must be to replace the one in use, so that noise does not cause frequent
 * changes. */
#define CLEARLY 0.95

static const enum pwi_value_codec candidates[PWI_ADAPT_CODECS] = {PWI_CODEC_BITMAP, PWI_CODEC_LZ4, PWI_CODEC_ZSTD};

void pwi_adapt_link_init(struct pwi_adapt_link *link) {
  link->bytes = 0;
  link->ns = 0;
}

void pwi_adapt_link_report(struct pwi_adapt_link *link, size_t bytes, int64_t ns) {
  if (bytes == 0 || ns <= 0) return;
  link->bytes = link->bytes * KEEP + (double)bytes;
  link->ns = link->ns * KEEP + (double)ns;
}

double pwi_adapt_link_cost(const struct pwi_adapt_link *link) { return link->bytes > 0 ? link->ns / link->bytes : 1.0; }

/* The first messages carry one trial each, beginning with the cheapest codec. */
void pwi_adapt_init(struct pwi_adapt *adapt, enum pwi_value_type type) {
  *adapt = (struct pwi_adapt){.type = type, .current = PWI_CODEC_RAW};
  for (uint32_t i = 0; i < PWI_ADAPT_CODECS; i++) {
    adapt->codecs[i].gap = PWI_ADAPT_GAP_MIN;
    adapt->codecs[i].wait = i;
  }
}

static struct pwi_adapt_codec *find(struct pwi_adapt *adapt, enum pwi_value_codec codec) {
  for (size_t i = 0; i < PWI_ADAPT_CODECS; i++) {
    if (candidates[i] == codec) return &adapt->codecs[i];
  }
  return NULL;
}

/* The ratio of BITMAP is the fraction of non-zero values, plus one bit per value for the masks. */
static double bitmap_ratio(enum pwi_value_type type, double zero_fraction) {
  size_t value_bits = 8 * pwi_value_size(type);
  return 1.0 - zero_fraction + (value_bits ? 1.0 / (double)value_bits : 0);
}

/* Nanoseconds per raw byte; infinite for a codec that was never measured. */
static double cost(struct pwi_adapt *adapt, enum pwi_value_codec codec, double link_cost, double zero_fraction) {
  const struct pwi_adapt_codec *known = find(adapt, codec);
  if (!known) return link_cost;
  if (known->reports == 0) return INFINITY;
  double ratio = codec == PWI_CODEC_BITMAP ? bitmap_ratio(adapt->type, zero_fraction) : known->ratio;
  return known->encode + known->decode + ratio * link_cost;
}

static enum pwi_value_codec cheapest(struct pwi_adapt *adapt, double link_cost, double zero_fraction) {
  enum pwi_value_codec best = PWI_CODEC_RAW;
  double least = link_cost;
  for (size_t i = 0; i < PWI_ADAPT_CODECS; i++) {
    double here = cost(adapt, candidates[i], link_cost, zero_fraction);
    if (here >= least) continue;
    best = candidates[i];
    least = here;
  }
  return best;
}

/* Switches to the cheapest codec if it is clearly better than the one in use. A replaced codec that was in
 * use for long is tried again soon, because it may have lost by a transient delay. A codec that won a trial
 * but was slow on whole messages keeps its growing gap; otherwise it would win and lose forever. */
static void settle(struct pwi_adapt *adapt, double link_cost, double zero_fraction) {
  enum pwi_value_codec best = cheapest(adapt, link_cost, zero_fraction);
  double current_cost = cost(adapt, adapt->current, link_cost, zero_fraction);
  if (best == adapt->current || cost(adapt, best, link_cost, zero_fraction) > CLEARLY * current_cost) return;
  struct pwi_adapt_codec *replaced = find(adapt, adapt->current);
  if (replaced) {
    if (adapt->messages - adapt->since >= PWI_ADAPT_PROVEN) replaced->gap = PWI_ADAPT_GAP_MIN;
    replaced->wait = replaced->gap;
  }
  adapt->current = best;
  adapt->since = adapt->messages;
}

/* At most one trial per message. The gap doubles when the trial is chosen, not when it loses, so that trials
 * without a report become rare too. */
static enum pwi_value_codec next_trial(struct pwi_adapt *adapt) {
  enum pwi_value_codec trial = PWI_CODEC_RAW;
  for (size_t i = 0; i < PWI_ADAPT_CODECS; i++) {
    struct pwi_adapt_codec *codec = &adapt->codecs[i];
    if (candidates[i] == adapt->current) continue;
    if (codec->wait > 0) {
      codec->wait--;
    } else if (trial == PWI_CODEC_RAW) {
      trial = candidates[i];
      codec->wait = codec->gap;
      codec->gap = codec->gap < PWI_ADAPT_GAP_MAX / 2 ? codec->gap * 2 : PWI_ADAPT_GAP_MAX;
    }
  }
  return trial;
}

/* The sample comes from varying places of the message, because the beginning may differ from the rest. */
static void place_sample(struct pwi_adapt_choice *choice, size_t raw_bytes, uint64_t message) {
  choice->sample_size = raw_bytes < PWI_ADAPT_SAMPLE ? raw_bytes : PWI_ADAPT_SAMPLE;
  size_t places = (raw_bytes - choice->sample_size) / 64 + 1;
  choice->sample_offset = (size_t)(pwi_mix64(message) % places) * 64;
}

struct pwi_adapt_choice pwi_adapt_choose(struct pwi_adapt *adapt, const struct pwi_adapt_link *link, size_t raw_bytes,
                                         double zero_fraction) {
  struct pwi_adapt_choice choice = {.codec = PWI_CODEC_RAW, .trial = PWI_CODEC_RAW};
  if (raw_bytes < PWI_ADAPT_SMALL) return choice;
  adapt->messages++;
  settle(adapt, pwi_adapt_link_cost(link), zero_fraction);
  choice.codec = adapt->current;
  choice.trial = next_trial(adapt);
  if (choice.trial != PWI_CODEC_RAW) place_sample(&choice, raw_bytes, adapt->messages);
  return choice;
}

static double blend(double known, double seen, double keep) { return known * keep + seen * (1 - keep); }

void pwi_adapt_report_codec(struct pwi_adapt *adapt, enum pwi_value_codec codec, size_t raw_bytes, size_t coded_bytes,
                            int64_t encode_ns, int64_t decode_ns) {
  struct pwi_adapt_codec *known = find(adapt, codec);
  if (!known || raw_bytes == 0) return;
  /* Reports on the codec in use come with every message and are smoothed. A trial replaces the earlier
   * figures, which may be a thousand messages old. */
  double keep = codec == adapt->current && known->reports > 0 ? KEEP : 0;
  double raw = (double)raw_bytes;
  known->ratio = blend(known->ratio, (double)coded_bytes / raw, keep);
  known->encode = blend(known->encode, (double)encode_ns / raw, keep);
  /* If decoding was not measured yet, it is assumed to cost as much as encoding. Compressors decode faster,
   * so this is safe. */
  if (decode_ns >= 0) {
    known->decode = blend(known->decode, (double)decode_ns / raw, keep);
  } else if (known->reports == 0) {
    known->decode = known->encode;
  }
  known->reports++;
}
