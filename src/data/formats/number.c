#include "data/formats/number.h"

#include <locale.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

const double pwi_power_of_ten[23] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                     1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

const uint64_t pwi_whole_power_of_ten[9] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

/* The decimal separator is a point, whatever the program's locale. */
static locale_t plain;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_plain(void) { plain = newlocale(LC_ALL_MASK, "C", (locale_t)0); }

static bool slowly(const char *text, const char **end_out, double *value_out) {
  char *end;
  pthread_once(&once, make_plain);
  double value = plain ? strtod_l(text, &end, plain) : strtod(text, &end);
  if (end == text) return false;
  *end_out = end;
  *value_out = value;
  return true;
}

#define DIGITS_MOST 19 /* so many digits always fit 64 bits */

/* Appends digits to a whole number while they fit. Returns how many digits there were. `count` grows by
 * the significant digits, or by more. */
static unsigned gather(const char **at, uint64_t *whole, unsigned *count) {
  unsigned all = 0, digits;
  do {
    uint64_t eight = pwi_get_u64(*at);
    digits = pwi_digits_ahead(eight);
    if (digits == 0) break;
    *at += digits;
    all += digits;
    if (*count + digits > DIGITS_MOST) {
      *count = DIGITS_MOST + 1;
      continue;
    }
    *whole = *whole * pwi_whole_power_of_ten[digits] + pwi_digits_value(eight, digits);
    if (*whole) *count += digits;
  } while (digits == 8);
  return all;
}

static int exponent(const char **at) {
  const char *from = *at + 1;
  bool is_minus = *from == '-';
  int value = 0;
  from += is_minus || *from == '+';
  if (!pwi_is_digit(*from)) return 0; /* the number ends before the exponent's letter */
  for (; pwi_is_digit(*from); from++)
    if (value < 100000) value = value * 10 + (*from - '0');
  *at = from;
  return is_minus ? -value : value;
}

/* Whether a double that may be off by two units in its last place still rounds to the right float: it is
 * not close to the midpoint of two floats, and the float is a normal number. */
static bool rounds_alike(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  uint64_t rest = bits & ((UINT64_C(1) << 29) - 1), middle = UINT64_C(1) << 28;
  return (rest < middle - 4 || rest > middle + 4) && value > 1e-37 && value < 1e38;
}

bool pwi_number_any(const char *text, const char **end_out, double *value_out) {
  const char *at = text;
  uint64_t whole = 0;
  unsigned count = 0, digits, places = 0;
  bool is_minus = *at == '-';
  if (*at == ' ' || (*at >= '\t' && *at <= '\r')) return false; /* strtod would continue in the next line */
  at += is_minus || *at == '+';
  digits = gather(&at, &whole, &count);
  if (*at == '.') {
    at++;
    places = gather(&at, &whole, &count);
  }
  if (digits + places == 0 || count > DIGITS_MOST || (*at | 32) == 'x') return slowly(text, end_out, value_out);
  int power = (*at | 32) == 'e' ? exponent(&at) : 0;
  if (places > 1000 || (power -= (int)places) < -22 || power > 22) return slowly(text, end_out, value_out);
  /* the power is exact, and so is `whole` if it has at most 53 bits: one rounding */
  double value = (double)whole;
  value = power < 0 ? value / pwi_power_of_ten[-power] : value * pwi_power_of_ten[power];
  if (whole > UINT64_C(1) << 53 && !rounds_alike(value)) return slowly(text, end_out, value_out);
  *end_out = at;
  *value_out = is_minus ? -value : value;
  return true;
}
