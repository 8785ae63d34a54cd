/*
 * segregated_plan.c - classes and shares, from text or from the profile of a workload.
 *
 *   requests by powers of two      ..  |####|##  |    |#   |###########|####| ..   peak blocks
 *   classes from the profile           600     1K        9K         30K   64K      largest of each
 *   merged until few enough                    1K                   30K   64K      cheapest first
 *
 * Merging a class into the next one up wastes the difference of their sizes on each of its blocks;
 * the pair that wastes least goes first.
 */
#include "backends/segregated_plan.h"

#include <stdlib.h>
#include <string.h>

enum { AUTO_CLASSES = 6 }; /* the course: at most 8, best 4 to 6 */

static bool add_class(segregated_plan *plan, uint64_t size_bytes, uint64_t unit_bytes)
{
    if (plan->class_count == SEGREGATED_CLASSES)
        return false;
    plan->block_bytes[plan->class_count++] = vram_round_up(size_bytes, unit_bytes);
    return true;
}

static void remove_class(segregated_plan *plan, uint32_t index)
{
    plan->class_count--;
    for (uint32_t k = index; k < plan->class_count; k++) {
        plan->block_bytes[k] = plan->block_bytes[k + 1];
        plan->counts[k] = plan->counts[k + 1];
    }
}

/* The course's pools, as far as they are apart in this unit and not large. */
static void plan_course(uint64_t unit_bytes, segregated_plan *plan)
{
    for (uint64_t size_bytes = 2048; size_bytes <= 512 * 1024; size_bytes *= 4) {
        const uint64_t rounded_bytes = vram_round_up(size_bytes, unit_bytes);
        if (rounded_bytes <= plan->large_bytes &&
            (plan->class_count == 0 || plan->block_bytes[plan->class_count - 1] < rounded_bytes))
            add_class(plan, size_bytes, unit_bytes);
    }
}

/* Powers of two up to large; where there are more than 16, the largest. */
static void plan_powers(const vram_profile *profile, uint64_t unit_bytes, segregated_plan *plan)
{
    uint64_t size_bytes = unit_bytes;
    while (profile != NULL && size_bytes < profile->smallest_bytes)
        size_bytes *= 2;
    for (; size_bytes <= plan->large_bytes; size_bytes *= 2) {
        if (plan->class_count == SEGREGATED_CLASSES)
            remove_class(plan, 0);
        add_class(plan, size_bytes, unit_bytes);
    }
}

/* A class for each power of two that the workload asks for, of the largest size asked for in it,
 * merged down to `most`. */
static void plan_measured(const vram_profile *profile, uint64_t unit_bytes, uint64_t most,
                          segregated_plan *plan)
{
    uint64_t sizes_bytes[VRAM_PROFILE_CLASSES];
    uint64_t blocks[VRAM_PROFILE_CLASSES];
    uint32_t count = 0;
    for (uint32_t k = 0; k < VRAM_PROFILE_CLASSES; k++) {
        const uint64_t size_bytes = vram_round_up(profile->class_largest_bytes[k], unit_bytes);
        if (profile->class_requests[k] == 0 || size_bytes > plan->large_bytes)
            continue;
        const bool same = count > 0 && sizes_bytes[count - 1] == size_bytes;
        count += !same;
        sizes_bytes[count - 1] = size_bytes;
        blocks[count - 1] = (same ? blocks[count - 1] : 0) + profile->class_peak_blocks[k];
    }
    while (count > most) {
        uint32_t cheapest = 0;
        double least_waste = 0;
        for (uint32_t k = 0; k + 1 < count; k++) {
            const double waste = (double)blocks[k] * (double)(sizes_bytes[k + 1] - sizes_bytes[k]);
            if (k == 0 || waste < least_waste) {
                least_waste = waste;
                cheapest = k;
            }
        }
        blocks[cheapest + 1] += blocks[cheapest];
        count--;
        memmove(&sizes_bytes[cheapest], &sizes_bytes[cheapest + 1],
                (count - cheapest) * sizeof sizes_bytes[0]);
        memmove(&blocks[cheapest], &blocks[cheapest + 1], (count - cheapest) * sizeof blocks[0]);
    }
    for (uint32_t k = 0; k < count; k++)
        add_class(plan, sizes_bytes[k], unit_bytes);
}

/* Calls `each` with the parts of "a/b/c", at most 16 of them. */
static bool split_list(const char *option, const char *text, vram_error *error,
                       bool (*each)(const char *part, void *context, vram_error *why),
                       void *context)
{
    char *copy = strdup(text);
    if (copy == NULL)
        return vram_fail(error, "segregated: out of host memory");
    bool good = true;
    char *rest = copy;
    for (uint32_t count = 1; good && rest != NULL; count++) {
        vram_error why = {""};
        const char *part = strsep(&rest, "/");
        good = count <= SEGREGATED_CLASSES
                   ? each(part, context, &why)
                   : vram_fail(&why, "more than %d parts", SEGREGATED_CLASSES);
        if (!good)
            vram_fail(error, "segregated: %s=%s: %s", option, text, why.text);
    }
    free(copy);
    return good;
}

typedef struct class_list {
    segregated_plan *plan;
    uint64_t arena_bytes;
    uint64_t unit_bytes;
} class_list;

static bool add_listed_class(const char *part, void *context, vram_error *why)
{
    const class_list *list = context;
    segregated_plan *plan = list->plan;
    uint64_t size_bytes = 0;
    if (!vram_parse_size(part, list->arena_bytes, &size_bytes, why))
        return false;
    if (size_bytes == 0 || size_bytes > VRAM_ARENA_MAX)
        return vram_fail(why, "%s is no size of a block", part);
    size_bytes = vram_round_up(size_bytes, list->unit_bytes);
    if (plan->class_count > 0 && plan->block_bytes[plan->class_count - 1] >= size_bytes)
        return vram_fail(why, "%s is not above the class before it (in units of %llu bytes)", part,
                         (unsigned long long)list->unit_bytes);
    return add_class(plan, size_bytes, list->unit_bytes);
}

static bool plan_listed(const vram_config *config, const char *text, uint64_t unit_bytes,
                        segregated_plan *plan, vram_error *error)
{
    class_list list = {plan, config->arena_bytes, unit_bytes};
    if (!split_list("classes", text, error, add_listed_class, &list))
        return false;
    const uint64_t largest_bytes = plan->block_bytes[plan->class_count - 1];
    if (plan->class_count < 2)
        return vram_fail(error, "segregated: classes=%s: 2 to %d sizes, such as 2KiB/8KiB/32KiB",
                         text, SEGREGATED_CLASSES);
    if (plan->large_is_given && largest_bytes > plan->large_bytes)
        return vram_fail(error, "segregated: classes=%s: the largest class is above large=%llu",
                         text, (unsigned long long)plan->large_bytes);
    if (plan->large_bytes < largest_bytes)
        plan->large_bytes = largest_bytes;
    return true;
}

/* "6": how many classes to derive; false when the text is something else. */
static bool is_class_number(const char *text, uint64_t *number)
{
    return vram_parse_count(text, number, NULL) && *number >= 2 && *number <= SEGREGATED_CLASSES;
}

static bool plan_classes(const vram_config *config, const char *text, uint64_t unit_bytes,
                         segregated_plan *plan, vram_error *error)
{
    uint64_t most = AUTO_CLASSES;
    if (strcmp(text, "pow2") == 0)
        plan_powers(config->profile, unit_bytes, plan);
    else if (strcmp(text, "auto") != 0 && !is_class_number(text, &most))
        return plan_listed(config, text, unit_bytes, plan, error);
    else if (config->profile != NULL)
        plan_measured(config->profile, unit_bytes, most, plan);
    else if (strcmp(text, "auto") == 0)
        plan_course(unit_bytes, plan);
    else
        return vram_fail(error, "segregated: classes=%s needs a trace to derive them from", text);
    return true;
}

/* Equal parts for the classes and the general region. */
static void share_equally(uint64_t arena_bytes, segregated_plan *plan)
{
    for (uint32_t k = 0; k < plan->class_count; k++)
        plan->counts[k] = arena_bytes / (plan->class_count + 1) / plan->block_bytes[k];
}

/*
 * As many blocks of each class as were alive at once in its range of sizes; when all that and the
 * large requests are more than the arena, in proportion. What is left is the general region's.
 */
static void share_as_measured(const vram_profile *profile, uint64_t arena_bytes,
                              segregated_plan *plan)
{
    double large_bytes = 0;
    double class_bytes = 0;
    for (uint32_t k = 0; k < VRAM_PROFILE_CLASSES; k++) {
        uint32_t class = 0;
        while (class < plan->class_count &&
               plan->block_bytes[class] < profile->class_largest_bytes[k])
            class ++;
        if (class == plan->class_count) {
            large_bytes += (double)profile->class_peak_bytes[k];
            continue;
        }
        plan->counts[class] += profile->class_peak_blocks[k];
        class_bytes += (double)profile->class_peak_blocks[k] * (double)plan->block_bytes[class];
    }
    if (large_bytes > (double)profile->peak_live_bytes)
        large_bytes = (double)profile->peak_live_bytes;
    if (class_bytes + large_bytes <= (double)arena_bytes)
        return;
    /* a hair less, so that no rounding makes the sum more than the arena */
    const double scale = (double)arena_bytes / (class_bytes + large_bytes) * (1 - 1e-12);
    for (uint32_t k = 0; k < plan->class_count; k++)
        plan->counts[k] = (uint64_t)((double)plan->counts[k] * scale);
}

typedef struct share_list {
    segregated_plan *plan;
    uint64_t arena_bytes;
    uint64_t left_bytes;
    uint32_t next;
} share_list;

static bool add_listed_share(const char *part, void *context, vram_error *why)
{
    share_list *list = context;
    double ratio = 0;
    if (!vram_parse_ratio(part, &ratio, why))
        return false;
    if (list->next == list->plan->class_count)
        return vram_fail(why, "more shares than the %u classes", list->plan->class_count);
    if (ratio > 1)
        return vram_fail(why, "%s is more than the arena: write 10%% or 0.1 for a tenth", part);
    const uint64_t share_bytes = (uint64_t)((double)list->arena_bytes * ratio);
    if (share_bytes > list->left_bytes)
        return vram_fail(why, "the shares are more than the arena, 100%%");
    list->left_bytes -= share_bytes;
    list->plan->counts[list->next] = share_bytes / list->plan->block_bytes[list->next];
    list->next++;
    return true;
}

static bool share_as_listed(uint64_t arena_bytes, const char *text, segregated_plan *plan,
                            vram_error *error)
{
    share_list list = {plan, arena_bytes, arena_bytes, 0};
    if (!split_list("shares", text, error, add_listed_share, &list))
        return false;
    return list.next == plan->class_count ||
           vram_fail(error, "segregated: shares=%s: a share for each of the %u classes", text,
                     plan->class_count);
}

bool segregated_make_plan(const vram_config *config, const char *classes, const char *shares,
                          uint64_t unit_bytes, segregated_plan *plan, vram_error *error)
{
    if (!plan_classes(config, classes, unit_bytes, plan, error))
        return false;
    const bool is_auto = strcmp(shares, "auto") == 0;
    const bool is_trace = strcmp(shares, "trace") == 0;
    if (is_trace && config->profile == NULL)
        return vram_fail(error, "segregated: shares=trace needs a trace to measure");
    if (is_trace || (is_auto && config->profile != NULL))
        share_as_measured(config->profile, config->arena_bytes, plan);
    else if (is_auto || strcmp(shares, "equal") == 0)
        share_equally(config->arena_bytes, plan);
    else
        return share_as_listed(config->arena_bytes, shares, plan, error);
    return true;
}
