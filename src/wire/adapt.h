/* Adaptive choice of a lossless codec for each message, from measurements of earlier messages.
 *
 * A codec pays off if encoding, sending and decoding take less time than sending the raw bytes. Per raw byte
 * this time is
 *
 *     encode + decode + ratio * link        (nanoseconds; RAW: link)
 *
 * where ratio is coded bytes divided by raw bytes, and link is nanoseconds per byte sent. All vectors share
 * the figure of the link (struct pwi_adapt_link). encode, decode and ratio depend on the values and are kept
 * per vector and link (struct pwi_adapt). The ratio of BITMAP is not measured: it follows from the fraction
 * of zeros, which the caller samples for each message.
 *
 * From time to time a codec that is not in use is tried on a small sample of a message. The message itself is
 * sent as usual, so that a trial costs only the time for the sample. After an unsuccessful trial the number
 * of messages until the next one doubles, from PWI_ADAPT_GAP_MIN up to PWI_ADAPT_GAP_MAX. After a successful
 * trial the codec is used.
 *
 * For each message:
 *     choice = pwi_adapt_choose(adapt, link, bytes, zeros)
 *     if choice.trial is not RAW: encode and decode the sample with it, and report the times
 *     encode the message with choice.codec, and report the time (not needed for RAW)
 *     once the message was sent, report to the link
 *
 * The module reads no clock and draws no random numbers: the same reports give the same choices. It allocates
 * nothing and cannot fail. A struct belongs to one thread at a time.
 */
#ifndef PWI_WIRE_ADAPT_H
#define PWI_WIRE_ADAPT_H

#include <stddef.h>
#include <stdint.h>

#include "wire/values.h"

#define PWI_ADAPT_SAMPLE ((size_t)64 << 10) /* maximum bytes of a trial */
#define PWI_ADAPT_SMALL ((size_t)16 << 10)  /* smaller messages are sent RAW, without a trial */
#define PWI_ADAPT_GAP_MIN 8                 /* initial number of messages between trials of one codec */
#define PWI_ADAPT_GAP_MAX 1024              /* maximum number of messages between trials */
#define PWI_ADAPT_PROVEN 64                 /* messages in use after which the gap of a codec is reset */

/* The measured speed of a link. Each report is weighted by its bytes, and older reports count less and
 * less. */
struct pwi_adapt_link {
  double bytes;
  double ns;
};

/* Before the first measurement a link is assumed to carry 1 GB/s. */
void pwi_adapt_link_init(struct pwi_adapt_link *link);

/* Reports that the link carried `bytes`, after encoding, in `ns`. A report with 0 bytes or no time is
 * ignored. */
void pwi_adapt_link_report(struct pwi_adapt_link *link, size_t bytes, int64_t ns);

/* Nanoseconds per byte. */
double pwi_adapt_link_cost(const struct pwi_adapt_link *link);

/* The measurements of one codec. Costs are nanoseconds per raw byte. */
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
  uint64_t messages; /* messages so far, without small ones */
  uint64_t since;    /* value of `messages` when the current codec came into use */
};

void pwi_adapt_init(struct pwi_adapt *adapt, enum pwi_value_type type);

struct pwi_adapt_choice {
  enum pwi_value_codec codec; /* codec for the message */
  enum pwi_value_codec trial; /* codec to try on the sample; RAW: no trial */
  size_t sample_offset;       /* in bytes; a multiple of 64, hence never inside a value */
  size_t sample_size;         /* in bytes; 0 if there is no trial */
};

/* `raw_bytes` is a multiple of the value size; `zero_fraction` is the result of pwi_values_zero_fraction. */
struct pwi_adapt_choice pwi_adapt_choose(struct pwi_adapt *adapt, const struct pwi_adapt_link *link, size_t raw_bytes,
                                         double zero_fraction);

/* Reports a measurement of `codec` on `raw_bytes` of values of this vector, from a message or a sample. A
 * negative `decode_ns` means that decoding was not measured. Reports for RAW and lossy codecs, and reports
 * without bytes, are ignored. */
void pwi_adapt_report_codec(struct pwi_adapt *adapt, enum pwi_value_codec codec, size_t raw_bytes, size_t coded_bytes,
                            int64_t encode_ns, int64_t decode_ns);

#endif
