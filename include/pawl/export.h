/* Marks the functions that the shared library exports.
 *
 * Every function an application may call carries PAWL_API. Everything else is compiled hidden: it cannot be
 * linked against, so it can change without notice.
 *
 * PAWL_MUST_USE marks a function whose status must not be ignored: the compiler warns about a call that drops
 * it. Only functions that end something, and whose failure leaves the caller nothing to do, do without it.
 */
#ifndef PAWL_EXPORT_H
#define PAWL_EXPORT_H

#if defined(__GNUC__)
#define PAWL_API __attribute__((visibility("default")))
#define PAWL_PRINTF(form, first) __attribute__((format(printf, form, first)))
#define PAWL_MUST_USE __attribute__((warn_unused_result))
#else
#define PAWL_API
#define PAWL_PRINTF(form, first)
#define PAWL_MUST_USE
#endif

#endif
