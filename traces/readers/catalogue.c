/* catalogue.c - what can be opened, one list over formats, workloads and named cases. */
#include "../generate/generate.h"

static size_t formats_count(void)
{
    size_t count = 0;
    while (vram_formats[count] != NULL)
        count++;
    return count;
}

/* The workload at `index` of the generated ones and then the cases; NULL beyond the last. */
static const vram_workload *workload_at(size_t index, const char **group)
{
    size_t count = 0;
    *group = "generate";
    while (vram_workloads[count] != NULL)
        count++;
    if (index < count)
        return vram_workloads[index];
    *group = "case";
    for (size_t i = 0; vram_cases[i] != NULL; i++)
        if (i == index - count)
            return vram_cases[i];
    return NULL;
}

bool vram_trace_source_at(size_t index, vram_trace_source *source)
{
    const size_t formats = formats_count();
    const char *group = "format";
    const vram_format *format = index < formats ? vram_formats[index] : NULL;
    if (format == NULL) {
        const vram_workload *workload = workload_at(index - formats, &group);
        if (workload == NULL)
            return false;
        format = &workload->format;
    }
    *source = (vram_trace_source){group, format->name, format->summary};
    return true;
}

bool vram_trace_source_option_at(size_t index, size_t option, vram_trace_source_option *out)
{
    const size_t formats = formats_count();
    const char *group = NULL;
    const vram_workload *workload = index < formats ? NULL : workload_at(index - formats, &group);
    if (workload == NULL || workload->options == NULL)
        return false;
    for (size_t i = 0; workload->options[i].name != NULL; i++)
        if (i == option) {
            const vram_workload_option *row = &workload->options[i];
            *out = (vram_trace_source_option){row->name, row->fallback, row->help};
            return true;
        }
    return false;
}
