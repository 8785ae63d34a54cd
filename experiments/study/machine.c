/*
 * machine.c - asks the build, the kernel and, where it is loaded, the card's driver.
 */
#include "machine.h"

#include "commit.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>

/* Copies what follows "KEY" and a colon in the first such line of a file. */
static void read_value(const char *path, const char *key, char *value, size_t size)
{
    FILE *file = fopen(path, "r");
    char line[512];
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, key, strlen(key)) != 0)
            continue;
        const char *text = strchr(line, ':');
        if (text == NULL)
            continue;
        text += 1 + strspn(text + 1, " \t");
        snprintf(value, size, "%.*s", (int)strcspn(text, "\n"), text);
        break;
    }
    if (file != NULL)
        fclose(file);
}

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.124.06  ...": the word that is a version. */
static void driver_version(char *driver, size_t size)
{
    char text[256] = "";
    char *rest = NULL;
    read_value("/proc/driver/nvidia/version", "NVRM version", text, sizeof text);
    for (char *word = strtok_r(text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
        if (word[0] >= '0' && word[0] <= '9' && strchr(word, '.') != NULL) {
            snprintf(driver, size, "%s", word);
            return;
        }
}

static void first_card(char *gpu, size_t size)
{
    glob_t cards;
    if (glob("/proc/driver/nvidia/gpus/*/information", 0, NULL, &cards) == 0) {
        read_value(cards.gl_pathv[0], "Model", gpu, size);
        globfree(&cards);
    }
}

machine machine_here(void)
{
    machine here = {
        .commit = VRAMLAB_COMMIT,
        .compiler = VRAMLAB_COMPILER,
        .cpu = "unknown",
        .gpu = "none",
        .driver = "none",
    };
    read_value("/proc/cpuinfo", "model name", here.cpu, sizeof here.cpu);
    first_card(here.gpu, sizeof here.gpu);
    driver_version(here.driver, sizeof here.driver);
    return here;
}
