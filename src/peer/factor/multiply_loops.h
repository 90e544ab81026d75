/* The loops of multiply.c, for one type and one instruction set: define VALUE, WIDTH, NAME(word) and TARGET, and include
 * this file.
 *
 * A tile of the matrix, 4 rows of 2 vectors, stays in registers while all pairs change it. The block of columns is chosen
 * so that their part of all v stays in the cache while the rows go by. */

#define HIGH 4
#define WIDE (2 * WIDTH)
#define COLUMNS 256

typedef VALUE NAME(vector) __attribute__((vector_size(WIDTH * sizeof(VALUE)), aligned(sizeof(VALUE)), may_alias));

#define ADD(sum, row)                                                                                                  \
  do {                                                                                                                 \
    sum[0] += from[row] * left;                                                                                        \
    sum[1] += from[row] * right;                                                                                       \
  } while (0)

static TARGET void NAME(tile)(VALUE *matrix, size_t stride, size_t pairs, const VALUE *u, size_t rows, const VALUE *v,
                              size_t columns) {
  NAME(vector) * to[HIGH], one[2], two[2], three[2], four[2];
  for (size_t i = 0; i < HIGH; i++) to[i] = (NAME(vector) *)(void *)(matrix + i * stride);
  for (size_t j = 0; j < 2; j++) {
    one[j] = to[0][j];
    two[j] = to[1][j];
    three[j] = to[2][j];
    four[j] = to[3][j];
  }
  for (size_t pair = 0; pair < pairs; pair++) {
    const VALUE *from = u + pair * rows;
    const NAME(vector) *values = (const NAME(vector) *)(const void *)(v + pair * columns);
    NAME(vector) left = values[0], right = values[1];
    ADD(one, 0);
    ADD(two, 1);
    ADD(three, 2);
    ADD(four, 3);
  }
  for (size_t j = 0; j < 2; j++) {
    to[0][j] = one[j];
    to[1][j] = two[j];
    to[2][j] = three[j];
    to[3][j] = four[j];
  }
}

/* The rows and columns that are left over. */
static TARGET void NAME(rest)(VALUE *matrix, size_t stride, size_t high, size_t wide, size_t pairs, const VALUE *u,
                              size_t rows, const VALUE *v, size_t columns) {
  for (size_t i = 0; i < high; i++)
    for (size_t pair = 0; pair < pairs; pair++)
      for (size_t j = 0; j < wide; j++) matrix[i * stride + j] += u[pair * rows + i] * v[pair * columns + j];
}

static TARGET void NAME(multiply)(size_t rows, size_t columns, size_t pairs, const VALUE *u, const VALUE *v,
                                  VALUE *matrix) {
  for (size_t begin = 0; begin < columns; begin += COLUMNS) {
    size_t end = columns - begin < COLUMNS ? columns : begin + COLUMNS;
    for (size_t i = 0; i < rows; i += HIGH) {
      size_t high = rows - i < HIGH ? rows - i : HIGH, j = begin;
      for (; high == HIGH && end - j >= WIDE; j += WIDE)
        NAME(tile)(matrix + i * columns + j, columns, pairs, u + i, rows, v + j, columns);
      if (j < end) NAME(rest)(matrix + i * columns + j, columns, high, end - j, pairs, u + i, rows, v + j, columns);
    }
  }
}

#undef ADD
#undef HIGH
#undef WIDE
#undef COLUMNS
#undef VALUE
#undef WIDTH
#undef NAME
