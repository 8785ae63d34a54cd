/*
 * conformance.c - every registered backend, with its options varied one at a time, and every layer
 * over it, has the properties of experiments/conformance.
 *
 * A specification is a test of its own, so that one that crashes takes no other with it. Options
 * are varied by the backends' own tables: each word of a choice, each flag; the rest is in `more`.
 */
#include "conformance/conformance.h"
#include "conformance/host_memory.h"

#include <vramlab/registry.h>

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { SEED = 1, SPECS_MAX = 512 };

/* Acts of random steps by all backends together, at least a hundred thousand by each; and by each
 * stack with a layer, which also does a part of the other properties. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { BACKEND_ACTS = 1000000, STACK_ACTS = 5000, DIVIDE = 4, STACK_DIVIDE = 8 };
#else
enum { BACKEND_ACTS = 10000000, STACK_ACTS = 20000, DIVIDE = 1, STACK_DIVIDE = 2 };
#endif
enum { SOAK_FACTOR = 100 }; /* with VRAMLAB_SOAK: a thousand million */

typedef struct specification {
    char text[112];
} specification;

static specification specs[SPECS_MAX];
static size_t spec_count;
static size_t backend_count; /* of them that are no stacks */

/* Sizes and counts that matter, and combinations. */
static const char *const more[] = {
    "fixed:block=4KiB",
    "fixed:block=100,unit=4,search=scan",
    "naive:unit=1",
    "segregated:large=1MiB",
    "segregated:classes=pow2,general=tlsf",
    "segregated:classes=3000/9000/700000,shares=10%/20%/30%,unit=8",
    "segregated:shares=20%/20%/20%/20%/20%,general=buddy",
    "naive:bins=hash,round=pow2",
    "slab:pages=buddy",
    "slab:pages=tlsf,slab=2MiB,empty=4",
    "buddy:min=64,max=64KiB",
    "buddy:min=1,trim=on",
    "list:policy=first,unit=1",
    "list:policy=next,unit=256",
    "list:policy=worst,unit=4096",
    "tlsf:look=1",
    "tlsf:unit=1,look=65536",
    "slab:empty=0",
    "slab:large=64KiB,unit=64",
    "caching:max_split_size=20MiB,driver=counting",
    "caching:garbage_collection_threshold=0.5",
    "caching:driver=counting,expandable_segments=on",
};

/*
 * What is known not to hold, and why that is right: for this specification and those that begin
 * like it. When it does hold for this one the test fails, so that no row outlives its reason.
 */
static const struct {
    const char *spec;
    const char *property;
    const char *why;
} known[] = {
    {"caching", "repetition",
     "PyTorch keeps segments, so that what a first replay left behind decides over a second"},
    {"caching:driver=counting,expandable_segments=on", "explain",
     "expandable ranges grow by whole pages behind a free block, which explain does not follow"},
};

static void add_spec(const char *text)
{
    for (size_t i = 0; i < spec_count; i++)
        if (strcmp(specs[i].text, text) == 0)
            return;
    if (spec_count == SPECS_MAX || strlen(text) >= sizeof specs[0].text)
        abort(); /* make the table larger */
    strcpy(specs[spec_count++].text, text);
    backend_count += strchr(text, '+') == NULL;
}

static void add_variant(const vram_ops *ops, const vram_option *option, const char *value,
                        size_t length)
{
    char text[256];
    snprintf(text, sizeof text, "%s:%s=%.*s", ops->name, option->name, (int)length, value);
    vram_backend *backend = NULL; /* some options want another beside them: they are in `more` */
    if (vram_create_from_text(text, &(vram_config){.arena_bytes = 64 << 20}, &backend, NULL))
        add_spec(text);
    vram_destroy(backend);
}

static void add_variants(const vram_ops *ops)
{
    add_spec(ops->name);
    for (const vram_option *option = ops->options; option != NULL && option->name != NULL; option++)
        if (option->type == VRAM_OPTION_FLAG)
            add_variant(ops, option, strcmp(option->fallback, "on") == 0 ? "off" : "on",
                        strlen("off"));
        else if (option->type == VRAM_OPTION_CHOICE)
            for (const char *word = option->choices; *word != '\0';) {
                const size_t length = strcspn(word, "|");
                add_variant(ops, option, word, length);
                word += length + (word[length] == '|');
            }
}

/* Each layer over each backend, and over each other layer. */
static void add_stacks(const vram_ops *layer)
{
    char text[256];
    for (size_t i = 0; vram_registry_at(i) != NULL; i++) {
        const vram_ops *other = vram_registry_at(i);
        if (other->special)
            continue;
        snprintf(text, sizeof text, other->layer ? "list+%s+%s" : "%s+%s", other->name,
                 layer->name);
        add_spec(text);
    }
}

static void collect_specs(void)
{
    spec_count = 0;
    backend_count = 0;
    for (size_t i = 0; vram_registry_at(i) != NULL; i++) {
        const vram_ops *ops = vram_registry_at(i);
        if (!ops->special)
            (ops->layer ? add_stacks : add_variants)(ops);
    }
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++)
        add_spec(more[i]);
}

/* The row of `known` for this specification, or SIZE_MAX. */
static size_t find_known(const char *spec, const vram_property *property)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strncmp(spec, known[i].spec, strlen(known[i].spec)) == 0 &&
            strcmp(property->name, known[i].property) == 0)
            return i;
    return SIZE_MAX;
}

static void expect(const vram_property *property, const vram_stage *stage, vram_verdict verdict)
{
    const vram_finding *found = &stage->finding;
    const size_t row = find_known(stage->spec, property);
    if (row != SIZE_MAX) {
        cr_expect(verdict == BROKEN || strcmp(stage->spec, known[row].spec) != 0,
                  "%s: %s holds, although %s", stage->spec, property->name, known[row].why);
        return;
    }
    cr_expect(verdict != BROKEN,
              "%s, %s, seed %d, arena %" PRIu64 ", unit %" PRIu64
              ": expected: %s; happened: %s (act %" PRIu32 " of %" PRIu32
              "); `vramlab check` finds a minimal trace",
              stage->spec, property->name, SEED, stage->script.arena_bytes,
              stage->script.unit_bytes, found->expected, found->happened, found->act,
              stage->script.count);
    const bool unwatched =
        strcmp(property->name, "no_host_memory") == 0 && !host_memory_is_watched();
    cr_expect(verdict != NOT_POSSIBLE || unwatched, "%s: %s could not be tried anywhere",
              stage->spec, property->name);
}

ParameterizedTestParameters(conformance, every_backend_and_layer_has_every_property)
{
    collect_specs();
    return cr_make_param_array(specification, specs, spec_count);
}

ParameterizedTest(specification *spec, conformance, every_backend_and_layer_has_every_property)
{
    collect_specs();
    const bool is_stack = strchr(spec->text, '+') != NULL;
    const uint64_t acts_wanted = is_stack ? STACK_ACTS : BACKEND_ACTS / backend_count + 1;
    const vram_effort effort = {
        .random_acts = acts_wanted * (getenv("VRAMLAB_SOAK") != NULL ? SOAK_FACTOR : 1),
        .divide = is_stack ? STACK_DIVIDE : DIVIDE,
    };
    vram_stage *stage = stage_new(spec->text);
    cr_assert(stage != NULL);
    for (size_t i = 0; property_at(i) != NULL; i++) {
        const uint64_t acts = stage->steps;
        const uint64_t served = stage->served;
        const vram_verdict verdict = property_run(property_at(i), stage, &effort, SEED);
        expect(property_at(i), stage, verdict);
        if (verdict == HOLDS && property_at(i)->rounds == 0) {
            cr_expect(stage->steps - acts >= effort.random_acts);
            cr_expect(stage->served - served > effort.random_acts / 50,
                      "%s: only %" PRIu64 " of %" PRIu64 " random acts were served requests",
                      spec->text, stage->served - served, effort.random_acts);
        }
    }
    stage_free(stage);
}

Test(conformance, every_word_of_every_choice_is_tried)
{
    collect_specs();
    cr_expect(spec_count > 20);
    bool found = false;
    for (size_t i = 0; i < spec_count; i++)
        found = found || strcmp(specs[i].text, "list:policy=worst") == 0;
    cr_expect(found);
}
