/*
 * axis.c - ticks at round numbers, with as many decimals as their distance needs.
 */
#include "axis.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct unit {
    const char *name;
    double positions;
} unit;

/* The largest unit of which the window shows at least two; units ascend. */
static unit unit_for(const unit *units, size_t count, double length)
{
    size_t chosen = 0;
    for (size_t i = 1; i < count; i++)
        if (length >= 2 * units[i].positions)
            chosen = i;
    return units[chosen];
}

static vram_scale scale_of(unit of, double length, int pixels, int label_pixels, double least_step)
{
    const double labels = fmax(1, (double)pixels / label_pixels);
    const double rough = length / of.positions / labels;
    const double power = pow(10, floor(log10(rough)));
    static const struct {
        double factor;
        int minor;
    } steps[] = {{1, 5}, {2, 4}, {5, 5}, {10, 5}};
    size_t i = 0;
    while (i < 3 && steps[i].factor * power < rough * 0.999)
        i++;
    double step = steps[i].factor * power;
    int minor = steps[i].minor;
    if (step < least_step) {
        step = least_step;
        minor = 1;
    }
    const int decimals = (int)fmax(0, -floor(log10(step) + 1e-9));
    return (vram_scale){.unit = of.name,
                        .per_unit = of.positions,
                        .step = step,
                        .minor = minor,
                        .decimals = decimals};
}

vram_scale vram_scale_of_bytes(vram_window window, int pixels, int label_pixels)
{
    static const unit units[] = {
        {"B", 1}, {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824}, {"TiB", 1099511627776}};
    const double length = (double)(window.to - window.from);
    const unit of = unit_for(units, sizeof units / sizeof units[0], length);
    return scale_of(of, length, pixels, label_pixels, of.positions > 1 ? 0 : 1);
}

vram_scale vram_scale_of_axis(vram_window window, vram_axis axis, bool has_clock, int pixels,
                              int label_pixels)
{
    static const unit times[] = {{"ns", 1}, {"µs", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    const double length = (double)(window.to - window.from);
    if (axis == VRAM_AXIS_EVENT || !has_clock)
        return scale_of((unit){"events", 1}, length, pixels, label_pixels, 1);
    return scale_of(unit_for(times, sizeof times / sizeof times[0], length), length, pixels,
                    label_pixels, 0);
}

const char *vram_tick_label(const vram_scale *scale, double value, char text[40])
{
    char plain[40];
    const int length = snprintf(plain, sizeof plain, "%.*f", scale->decimals, fabs(value));
    const char *point = strchr(plain, '.');
    const int whole = point != NULL ? (int)(point - plain) : length;
    char *out = text;
    for (int i = 0; i < length && out < text + 36; i++) {
        if (i > 0 && i < whole && (whole - i) % 3 == 0)
            *out++ = ',';
        *out++ = plain[i];
    }
    *out = '\0';
    return text;
}
