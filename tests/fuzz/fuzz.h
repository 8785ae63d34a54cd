/* fuzz.h - the entry that libFuzzer and mutate.c call. */
#ifndef VRAMLAB_TESTS_FUZZ_H
#define VRAMLAB_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
