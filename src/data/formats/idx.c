/* idx, the format of MNIST: two zero bytes, the type of the elements, the number of dimensions; then the
 * dimensions, 32 bits each and big-endian; then the elements. pawl reads unsigned bytes: images (three
 * dimensions) and labels (one). */
#include <inttypes.h>

#include "base/checked.h"
#include "data/formats/image_file.h"

#define TYPE_BYTE 0x08
#define IMAGES 3 /* dimensions: number, height, width */
#define LABELS 1

static uint32_t big_endian(const unsigned char *bytes) {
  return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* The types of elements are 0x08, 0x09 and 0x0b to 0x0e. */
static bool is_type(unsigned char type) { return type >= 0x08 && type <= 0x0e && type != 0x0a; }

bool pwi_idx_is(const unsigned char *bytes, size_t size) {
  return size >= 4 && bytes[0] == 0 && bytes[1] == 0 && is_type(bytes[2]) && bytes[3] > 0;
}

static pawl_status check_magic(const char *path, const unsigned char *bytes, size_t size, struct pwi_fault *fault) {
  if (size < 4) return pwi_fault(fault, PAWL_TRUNCATED, "%s: the file ends in its magic number", path);
  if (!pwi_idx_is(bytes, size))
    return pwi_fault(fault, PAWL_CORRUPT,
                     "%s: not an idx file: its magic number is 0x%08" PRIx32
                     "; expected 0x00000803 (images) or 0x00000801 (labels)",
                     path, big_endian(bytes));
  if (bytes[2] != TYPE_BYTE || (bytes[3] != IMAGES && bytes[3] != LABELS))
    return pwi_fault(fault, PAWL_UNSUPPORTED,
                     "%s: an idx file of type 0x%02x with %d dimensions; pawl reads unsigned bytes (0x08) with 3 "
                     "dimensions (images) or 1 (labels)",
                     path, bytes[2], bytes[3]);
  return PAWL_OK;
}

/* Compares the length of the elements with the header. */
static pawl_status check_size(const char *path, uint64_t wanted, uint64_t found, struct pwi_fault *fault) {
  if (found < wanted)
    return pwi_fault(fault, PAWL_TRUNCATED,
                     "%s: the header promises %" PRIu64 " bytes, but only %" PRIu64
                     " follow; the file is truncated, get it again",
                     path, wanted, found);
  if (found > wanted)
    return pwi_fault(fault, PAWL_CORRUPT,
                     "%s: %" PRIu64 " bytes follow the last element; the header or the file is damaged", path,
                     found - wanted);
  return PAWL_OK;
}

pawl_status pwi_idx_parse(const char *path, const unsigned char *bytes, size_t size, struct pwi_image_file *file_out,
                          struct pwi_fault *fault) {
  pawl_status status = check_magic(path, bytes, size, fault);
  if (status) return status;
  bool has_images = bytes[3] == IMAGES;
  size_t header = 4 + 4 * (size_t)bytes[3];
  if (size < header) return pwi_fault(fault, PAWL_TRUNCATED, "%s: the file ends in its header", path);
  uint32_t count = big_endian(bytes + 4), height = has_images ? big_endian(bytes + 8) : 1;
  uint32_t width = has_images ? big_endian(bytes + 12) : 1;
  if (count == 0)
    return pwi_fault(fault, PAWL_TRUNCATED, "%s: the file has no %s", path, has_images ? "images" : "labels");
  if (height == 0 || width == 0)
    return pwi_fault(fault, PAWL_CORRUPT, "%s: images of %" PRIu32 " x %" PRIu32 " pixels; the header is damaged", path,
                     height, width);
  uint64_t each = (uint64_t)height * width, wanted;
  if (!pwi_mul_u64(each, count, &wanted))
    return pwi_fault(fault, PAWL_CORRUPT,
                     "%s: %" PRIu32 " images of %" PRIu32 " x %" PRIu32 " pixels are too many; the header is damaged",
                     path, count, height, width);
  status = check_size(path, wanted, size - header, fault);
  if (status) return status;
  struct pwi_image_file file = {.count = count};
  if (has_images) {
    file.channels = 1;
    file.height = height;
    file.width = width;
    file.image_size = file.pixels_step = (size_t)each;
    file.pixels = bytes + header;
  } else {
    file.labels = bytes + header;
    file.labels_step = 1;
  }
  *file_out = file;
  return PAWL_OK;
}
