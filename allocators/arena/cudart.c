/* cudart.c - see cudart.h. */
#include "arena/cudart.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const char vram_kernels_ptx[];

/* What is loaded, or why not. */
static struct {
    pthread_once_t once;
    vram_cudart runtime;
    vram_cudart uncounted; /* as found */
    struct {
        int (*module_load)(void **module, const void *image);
        int (*module_unload)(void *module);
        int (*get_function)(void **function, void *module, const char *name);
        int (*launch)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                      unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                      void *stream, void **parameters, void **extra);
        int (*ctx_get_device)(int *device);
        int (*device_name)(char *name, int size, int device);
    } driver;
    bool usable;
    vram_error why;
} loaded = {.once = PTHREAD_ONCE_INIT};

/* ------------------------------------------------------------------------------------------------
 * loading */

typedef struct symbol {
    const char *name;
    void **call;
} symbol;

/* POSIX guarantees that a function's address fits a void pointer; ISO C has no cast for it. */
static bool find_all(void *library, const char *what, const symbol *symbols, size_t count,
                     vram_error *error)
{
    for (size_t i = 0; i < count; i++) {
        *symbols[i].call = dlsym(library, symbols[i].name);
        if (*symbols[i].call == NULL)
            return vram_fail(error, "%s has no %s: it is too old, or something else", what,
                             symbols[i].name);
    }
    return true;
}

#define CALL(field, name)                                                                          \
    {                                                                                              \
        name, (void **)(void *)&loaded.runtime.field                                               \
    }
#define DRIVER_CALL(field, name)                                                                   \
    {                                                                                              \
        name, (void **)(void *)&loaded.driver.field                                                \
    }

static bool find_runtime(void *library, const char *what, vram_error *error)
{
    const symbol symbols[] = {
        CALL(get_device_count, "cudaGetDeviceCount"),
        CALL(get_device, "cudaGetDevice"),
        CALL(set_device, "cudaSetDevice"),
        CALL(device_synchronize, "cudaDeviceSynchronize"),
        CALL(runtime_version, "cudaRuntimeGetVersion"),
        CALL(driver_version, "cudaDriverGetVersion"),
        CALL(mem_get_info, "cudaMemGetInfo"),
        CALL(malloc, "cudaMalloc"),
        CALL(free, "cudaFree"),
        CALL(memcpy, "cudaMemcpy"),
        CALL(memcpy_async, "cudaMemcpyAsync"),
        CALL(stream_create, "cudaStreamCreateWithFlags"),
        CALL(stream_destroy, "cudaStreamDestroy"),
        CALL(stream_synchronize, "cudaStreamSynchronize"),
        CALL(stream_query, "cudaStreamQuery"),
        CALL(stream_wait_event, "cudaStreamWaitEvent"),
        CALL(event_create, "cudaEventCreateWithFlags"),
        CALL(event_record, "cudaEventRecord"),
        CALL(event_query, "cudaEventQuery"),
        CALL(event_synchronize, "cudaEventSynchronize"),
        CALL(event_destroy, "cudaEventDestroy"),
        CALL(malloc_async, "cudaMallocAsync"),
        CALL(free_async, "cudaFreeAsync"),
        CALL(default_pool, "cudaDeviceGetDefaultMemPool"),
        CALL(pool_set, "cudaMemPoolSetAttribute"),
        CALL(pool_get, "cudaMemPoolGetAttribute"),
        CALL(pool_trim, "cudaMemPoolTrimTo"),
        CALL(error_text, "cudaGetErrorString"),
        CALL(last_error, "cudaGetLastError"),
    };
    return find_all(library, what, symbols, sizeof symbols / sizeof symbols[0], error);
}

static bool find_driver(void *library, const char *what, vram_error *error)
{
    const symbol symbols[] = {
        DRIVER_CALL(module_load, "cuModuleLoadData"),
        DRIVER_CALL(module_unload, "cuModuleUnload"),
        DRIVER_CALL(get_function, "cuModuleGetFunction"),
        DRIVER_CALL(launch, "cuLaunchKernel"),
        DRIVER_CALL(ctx_get_device, "cuCtxGetDevice"),
        DRIVER_CALL(device_name, "cuDeviceGetName"),
    };
    return find_all(library, what, symbols, sizeof symbols / sizeof symbols[0], error);
}

/* The first of the names that is loaded already (by PyTorch, say), else that can be. */
static void *open_first(const char *const *names)
{
    void *library = NULL;
    for (size_t i = 0; library == NULL && names[i] != NULL; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_NOLOAD);
    for (size_t i = 0; library == NULL && names[i] != NULL; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

static bool load(vram_error *error)
{
    static const char *const runtimes[] = {"libcudart.so.13",
                                           "libcudart.so.12",
                                           "libcudart.so.11.0",
                                           "libcudart.so",
                                           "/usr/local/cuda/lib64/libcudart.so",
                                           NULL};
    static const char *const drivers[] = {"libcuda.so.1", NULL};
    const char *instead[] = {getenv("VRAMLAB_CUDART"), NULL};
    const bool replaced = instead[0] != NULL && instead[0][0] != '\0';
    void *runtime = open_first(replaced ? instead : runtimes);
    if (runtime == NULL)
        return vram_fail(error, "the CUDA runtime (%s) cannot be loaded: %s",
                         replaced ? instead[0] : "libcudart.so", dlerror());
    void *driver = replaced ? runtime : open_first(drivers);
    if (driver == NULL)
        return vram_fail(error, "there is no NVIDIA driver (libcuda.so.1) on this machine");
    if (!find_runtime(runtime, replaced ? instead[0] : "the CUDA runtime", error) ||
        !find_driver(driver, replaced ? instead[0] : "the NVIDIA driver", error))
        return false;
    int count = 0;
    const int result = loaded.runtime.get_device_count(&count);
    if (result != 0)
        return vram_fail(error, "the CUDA runtime finds no device: %s",
                         loaded.runtime.error_text(result));
    return count > 0 || vram_fail(error, "the CUDA runtime finds no device");
}

/* ------------------------------------------------------------------------------------------------
 * calls that take or give memory, counted */

static _Atomic uint64_t calls;

static int counted_malloc(void **pointer, size_t size_bytes)
{
    calls++;
    return loaded.uncounted.malloc(pointer, size_bytes);
}

static int counted_free(void *pointer)
{
    calls++;
    return loaded.uncounted.free(pointer);
}

static int counted_malloc_async(void **pointer, size_t size_bytes, vram_cuda_stream stream)
{
    calls++;
    return loaded.uncounted.malloc_async(pointer, size_bytes, stream);
}

static int counted_free_async(void *pointer, vram_cuda_stream stream)
{
    calls++;
    return loaded.uncounted.free_async(pointer, stream);
}

uint64_t vram_cudart_calls(void)
{
    return calls;
}

static void load_once(void)
{
    loaded.usable = load(&loaded.why);
    loaded.uncounted = loaded.runtime;
    loaded.runtime.malloc = counted_malloc;
    loaded.runtime.free = counted_free;
    loaded.runtime.malloc_async = counted_malloc_async;
    loaded.runtime.free_async = counted_free_async;
}

const vram_cudart *vram_cudart_load(vram_error *error)
{
    pthread_once(&loaded.once, load_once);
    if (loaded.usable)
        return &loaded.runtime;
    vram_fail(error, "%s", loaded.why.text);
    return NULL;
}

bool vram_cudart_fail(vram_error *error, const char *call, int result)
{
    loaded.runtime.last_error(); /* or the next, unrelated call would report it */
    return vram_fail(error, "%s: %s (%d)", call, loaded.runtime.error_text(result), result);
}

void vram_device_name(char *name, size_t size)
{
    int device = 0;
    name[0] = '\0';
    if (vram_cudart_load(NULL) == NULL || loaded.runtime.free(NULL) != 0 || /* makes a context */
        loaded.driver.ctx_get_device(&device) != 0 ||
        loaded.driver.device_name(name, (int)size, device) != 0)
        name[0] = '\0';
}

/* ------------------------------------------------------------------------------------------------
 * kernels */

struct vram_kernels {
    void *module;
    void *fill, *compare, *spin;
};

vram_kernels *vram_kernels_load(vram_error *error)
{
    if (vram_cudart_load(error) == NULL)
        return NULL;
    vram_kernels *self = calloc(1, sizeof *self);
    if (self == NULL) {
        vram_fail(error, "out of host memory");
        return NULL;
    }
    loaded.runtime.free(NULL); /* makes the runtime's context the current one */
    const int result = loaded.driver.module_load(&self->module, vram_kernels_ptx);
    if (result == 0 && loaded.driver.get_function(&self->fill, self->module, "vram_fill") == 0 &&
        loaded.driver.get_function(&self->compare, self->module, "vram_compare") == 0 &&
        loaded.driver.get_function(&self->spin, self->module, "vram_spin") == 0)
        return self;
    vram_fail(error, "the driver does not accept the kernels of --verify (cuModuleLoadData: %d)",
              result);
    vram_kernels_unload(self);
    return NULL;
}

void vram_kernels_unload(vram_kernels *self)
{
    if (self == NULL)
        return;
    if (self->module != NULL)
        loaded.driver.module_unload(self->module);
    free(self);
}

enum { THREADS = 256, MOST_GROUPS = 2048 };

static unsigned groups_for(uint64_t size_bytes)
{
    const uint64_t groups = (size_bytes / 8 + THREADS) / THREADS;
    return (unsigned)(groups < MOST_GROUPS ? groups : MOST_GROUPS);
}

int vram_kernels_fill(vram_kernels *self, uint64_t address, uint64_t size_bytes, uint64_t first,
                      vram_cuda_stream stream)
{
    void *parameters[] = {&address, &size_bytes, &first};
    return loaded.driver.launch(self->fill, groups_for(size_bytes), 1, 1, THREADS, 1, 1, 0, stream,
                                parameters, NULL);
}

int vram_kernels_compare(vram_kernels *self, uint64_t address, uint64_t size_bytes, uint64_t first,
                         uint64_t found, vram_cuda_stream stream)
{
    void *parameters[] = {&address, &size_bytes, &first, &found};
    return loaded.driver.launch(self->compare, groups_for(size_bytes), 1, 1, THREADS, 1, 1, 0,
                                stream, parameters, NULL);
}

int vram_kernels_spin(vram_kernels *self, uint64_t ns, vram_cuda_stream stream)
{
    void *parameters[] = {&ns};
    return loaded.driver.launch(self->spin, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
}
