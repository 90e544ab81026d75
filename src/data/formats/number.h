/* Fast parsing of numbers in text.
 *
 * Eight bytes are examined as one word. Counting the digits in it and computing their value costs a few
 * multiplications and no branch, so numbers of unpredictable length cost no more than numbers of equal
 * length.
 *
 * A real number is parsed as the nearest double, independent of the locale. With more than 15 digits the
 * result may be a neighbour of that double, but only if both round to the same float. All functions may
 * read up to PWI_NUMBER_SLACK bytes past the given position, so the caller's buffer must extend that far.
 * The text must end with a byte that cannot be part of a number, such as a line break. Pure.
 */
#ifndef PWI_DATA_FORMATS_NUMBER_H
#define PWI_DATA_FORMATS_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

#define PWI_NUMBER_SLACK 16

static inline bool pwi_is_digit(char c) { return c >= '0' && c <= '9'; }

/* How many of the eight characters are digits, counted up to the first that is not. */
static inline unsigned pwi_digits_ahead(uint64_t eight) {
  uint64_t off = eight ^ UINT64_C(0x3030303030303030); /* digits become 0 … 9 */
  /* Sets the high bit of each byte that is 10 or more. A carry only reaches bytes above one that is
   * already marked. */
  uint64_t others = ((off + UINT64_C(0x7676767676767676)) | off) & UINT64_C(0x8080808080808080);
  return others ? (unsigned)__builtin_ctzll(others) / 8 : 8;
}

/* The value of the first `count` characters, 1 to 8 digits. Combines pairs, then groups of four, then all. */
static inline uint64_t pwi_digits_value(uint64_t eight, unsigned count) {
  uint64_t x = (eight ^ UINT64_C(0x3030303030303030)) << (64 - 8 * count);
  x = (x * 10 + (x >> 8)) & UINT64_C(0x00ff00ff00ff00ff);
  x = (x * 100 + (x >> 16)) & UINT64_C(0x0000ffff0000ffff);
  return (uint32_t)(x * 10000 + (x >> 32));
}

extern const double pwi_power_of_ten[23]; /* the powers that a double holds exactly */
extern const uint64_t pwi_whole_power_of_ten[9];

/* Parses a number in any notation: sign, exponent, many digits, hexadecimal. `*end_out` is where it ends.
 * False if there is no number. Infinity and NaN are returned as such; a number too large for a double is
 * infinite. */
bool pwi_number_any(const char *text, const char **end_out, double *value_out);

/* As pwi_number_any. The notations that most files use are parsed inline. */
static inline bool pwi_number(const char *text, const char **end_out, double *value_out) {
  const char *at = text;
  bool is_minus = *at == '-';
  uint64_t whole, part, eight;
  unsigned digits, places = 0;
  at += is_minus || *at == '+';
  if (pwi_is_digit(at[0]) && !pwi_is_digit(at[1])) { /* the common case: 0.… or 1 */
    whole = (uint64_t)(at[0] - '0');
    at++;
  } else {
    eight = pwi_get_u64(at);
    digits = pwi_digits_ahead(eight);
    if (digits == 0 || digits == 8) return pwi_number_any(text, end_out, value_out);
    whole = pwi_digits_value(eight, digits);
    at += digits;
  }
  if (*at == '.') {
    eight = pwi_get_u64(++at);
    places = pwi_digits_ahead(eight);
    if (places == 8) return pwi_number_any(text, end_out, value_out);
    part = places ? pwi_digits_value(eight, places) : 0;
    whole = whole * pwi_whole_power_of_ten[places] + part;
    at += places;
  }
  if ((*at | 32) == 'e' || (*at | 32) == 'x') return pwi_number_any(text, end_out, value_out);
  /* both operands are exact, so the quotient is correctly rounded */
  double value = (double)whole / pwi_power_of_ten[places];
  *value_out = is_minus ? -value : value;
  *end_out = at;
  return true;
}

/* Parses a whole number. `*end_out` is where its digits end. False if there are no digits (`*end_out` is
 * `text`), or if the number exceeds 2^63 - 1 (`*end_out` is the end of the digits). */
static inline bool pwi_whole_number(const char *text, const char **end_out, uint64_t *value_out) {
  uint64_t eight = pwi_get_u64(text);
  unsigned digits = pwi_digits_ahead(eight);
  *end_out = text + digits;
  if (digits == 0) return false;
  uint64_t value = pwi_digits_value(eight, digits);
  if (digits == 8) {
    bool fits = true;
    const char *at = text + 8;
    for (; pwi_is_digit(*at); at++)
      if (__builtin_mul_overflow(value, 10u, &value) || __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value))
        fits = false;
    *end_out = at;
    if (!fits || value > (uint64_t)INT64_MAX) return false;
  }
  *value_out = value;
  return true;
}

#endif
