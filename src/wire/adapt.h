/* Which lossless codec pays: chosen per message from what earlier messages have shown.
 *
 * A codec pays if the time to encode, carry and decode is less than the time to carry the raw bytes. Per raw byte that
 * time is
 *
 *     encode + decode + ratio * link        (nanoseconds; RAW: link)
 *
 * where ratio is coded bytes over raw bytes, and link is nanoseconds per byte carried. The link's figure is shared by
 * all vectors that travel over it (struct pwi_adapt_link); encode, decode and ratio depend on the values and are kept
 * per vector and link (struct pwi_adapt). BITMAP's ratio is not learnt: it follows from the part of zeros, which the
 * caller samples anew for each message.
 *
 * A codec that is not in use is tried now and then, on a small sample of a message that itself goes as it would have
 * gone: so a trial costs the time of the sample and nothing else. A trial that loses doubles the number of messages
 * until the next, from PWI_ADAPT_GAP_MIN up to PWI_ADAPT_GAP_MAX; one that wins is followed by use.
 *
 * For each message:
 *     choice = pwi_adapt_choose(adapt, link, bytes, zeros)
 *     if choice.trial is not RAW: encode and decode the sample with it, and report what it took
 *     encode the message with choice.codec, and report what it took (no need for RAW)
 *     once the message is away, report to the link
 *
 * The machine reads no clock and draws no random number: the same reports give the same choices. It allocates nothing
 * and cannot fail. A struct belongs to one thread at a time.
 */
#ifndef PWI_WIRE_ADAPT_H
#define PWI_WIRE_ADAPT_H

#include <stddef.h>
#include <stdint.h>

#include "wire/values.h"

#define PWI_ADAPT_SAMPLE ((size_t)64 << 10) /* bytes of a trial, at most */
#define PWI_ADAPT_SMALL ((size_t)16 << 10)  /* messages below it go RAW and carry no trial */
#define PWI_ADAPT_GAP_MIN 8                 /* messages between trials of one codec, at first */
#define PWI_ADAPT_GAP_MAX 1024              /* and in the end */
#define PWI_ADAPT_PROVEN 64                 /* messages in use after which a codec's gap starts afresh */

/* What is known of a link. Older reports count ever less, and each counts by its bytes. */
struct pwi_adapt_link {
  double bytes;
  double ns;
};

/* Until it is measured, a link is taken to carry 1 GB/s. */
void pwi_adapt_link_init(struct pwi_adapt_link *link);

/* It took `ns` to carry `bytes`, after encoding. A report without bytes or without time is ignored. */
void pwi_adapt_link_report(struct pwi_adapt_link *link, size_t bytes, int64_t ns);

/* Nanoseconds per byte. */
double pwi_adapt_link_cost(const struct pwi_adapt_link *link);

/* What is known of one codec. Costs are nanoseconds per raw byte. */
struct pwi_adapt_codec {
  double ratio;
  double encode;
  double decode;
  uint64_t reports; /* 0: never measured, and so not eligible */
  uint32_t gap;     /* messages to wait after the next trial */
  uint32_t wait;    /* messages until the next trial */
};

#define PWI_ADAPT_CODECS 3 /* BITMAP, LZ4, ZSTD */

struct pwi_adapt {
  enum pwi_value_type type;
  enum pwi_value_codec current;
  struct pwi_adapt_codec codecs[PWI_ADAPT_CODECS];
  uint64_t messages; /* so far, small ones left out */
  uint64_t since;    /* what `messages` was when the current codec came into use */
};

void pwi_adapt_init(struct pwi_adapt *adapt, enum pwi_value_type type);

struct pwi_adapt_choice {
  enum pwi_value_codec codec; /* of the message */
  enum pwi_value_codec trial; /* to try on the sample; RAW if there is none */
  size_t sample_offset;       /* in bytes; a multiple of 64, so never inside a value */
  size_t sample_size;         /* in bytes; 0 if there is no trial */
};

/* `raw_bytes` is a multiple of the value size; `zero_fraction` as pwi_values_zero_fraction gives it. */
struct pwi_adapt_choice pwi_adapt_choose(struct pwi_adapt *adapt, const struct pwi_adapt_link *link, size_t raw_bytes,
                                         double zero_fraction);

/* What `codec` did with `raw_bytes` of this vector's values, be it a message or a sample. A negative `decode_ns` means
 * that decoding was not measured. RAW and lossy codecs are ignored, and so is a report without bytes. */
void pwi_adapt_report_codec(struct pwi_adapt *adapt, enum pwi_value_codec codec, size_t raw_bytes, size_t coded_bytes,
                            int64_t encode_ns, int64_t decode_ns);

#endif
