/*
 * stage.c - memory shared between the process that plays and the one that watches.
 */
#include "conformance/stage.h"

#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>

vram_stage *stage_new(const char *spec)
{
    if (strlen(spec) >= sizeof((vram_stage *)0)->spec)
        return NULL;
    vram_stage *self =
        mmap(NULL, sizeof *self, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (self == MAP_FAILED)
        return NULL;
    strcpy(self->spec, spec);
    self->check_every = 1;
    self->call = "nothing";
    return self;
}

void stage_free(vram_stage *self)
{
    if (self != NULL)
        munmap(self, sizeof *self);
}

bool stage_find(vram_stage *self, const char *broken, const char *expected, const char *happened,
                ...)
{
    vram_finding *found = &self->finding;
    if (found->found)
        return false;
    strncpy(found->broken, broken, sizeof found->broken - 1);
    strncpy(found->expected, expected, sizeof found->expected - 1);
    va_list arguments;
    va_start(arguments, happened);
    vsnprintf(found->happened, sizeof found->happened, happened, arguments);
    va_end(arguments);
    found->act = self->act;
    found->found = true; /* last: the process may die at any moment */
    return false;
}
