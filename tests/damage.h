/* damage.h - what every test of damage ends with. */
#ifndef VRAMLAB_TESTS_DAMAGE_H
#define VRAMLAB_TESTS_DAMAGE_H

#include <vramlab/backend.h>

#include <criterion/criterion.h>
#include <string.h>

/* The check of a backend that was just damaged must say which invariant is broken. Destroys it. */
static inline void expect_noticed(vram_backend *backend, const char *where, const char *damage,
                                  const char *invariant)
{
    vram_fault fault = {.invariant = "nothing"};
    const bool sound = vram_check(backend, &fault);
    cr_expect(!sound && strcmp(fault.invariant, invariant) == 0,
              "%s: %s: check found %s, not \"%s\"", where, damage, fault.invariant, invariant);
    vram_destroy(backend);
}

#endif
