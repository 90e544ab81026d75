/* The binary version of CIFAR-10: records without a header, each a label and an image. */
#include <inttypes.h>

#include "data/formats/image_file.h"

pawl_status pwi_cifar_parse(const char *path, const unsigned char *bytes, size_t size, struct pwi_image_file *file_out,
                            struct pwi_fault *fault) {
  if (size == 0) return pwi_fault(fault, PAWL_TRUNCATED, "%s: the file has no images", path);
  /* Labels first: they tell a file of another kind from a truncated one. */
  for (size_t at = 0; at < size; at += PWI_CIFAR_RECORD)
    if (bytes[at] >= PWI_CIFAR_CLASSES)
      return pwi_fault(fault, PAWL_CORRUPT,
                       "%s: record %zu has the label %d; expected idx, or CIFAR-10 with records of %d bytes and labels "
                       "from 0 to 9",
                       path, at / PWI_CIFAR_RECORD + 1, bytes[at], PWI_CIFAR_RECORD);
  if (size % PWI_CIFAR_RECORD)
    return pwi_fault(fault, PAWL_TRUNCATED,
                     "%s: the last record has %zu bytes instead of %d; the file is truncated, or not CIFAR-10's binary "
                     "version",
                     path, size % PWI_CIFAR_RECORD, PWI_CIFAR_RECORD);
  *file_out = (struct pwi_image_file){.count = size / PWI_CIFAR_RECORD,
                                      .channels = 3,
                                      .height = 32,
                                      .width = 32,
                                      .image_size = PWI_CIFAR_RECORD - 1,
                                      .pixels = bytes + 1,
                                      .labels = bytes,
                                      .pixels_step = PWI_CIFAR_RECORD,
                                      .labels_step = PWI_CIFAR_RECORD};
  return PAWL_OK;
}
