/*
 * app.c - a program with four threads on the stand-in runtime, for the recorder to watch.
 *
 * Each thread makes 100 allocations of 1000 + thread bytes and frees all but its last; the main one
 * makes two in stream order, frees one, is refused one, and frees NULL.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

int cudaMalloc(void **pointer, size_t size);
int cudaFree(void *pointer);
int cudaMallocAsync(void **pointer, size_t size, void *stream);
int cudaFreeAsync(void *pointer, void *stream);

enum { THREADS = 4, ROUNDS = 100 };

static void *work(void *number)
{
    void *held = NULL;
    for (int i = 0; i < ROUNDS; i++) {
        void *next = NULL;
        if (cudaMalloc(&next, 1000 + (uintptr_t)number) != 0)
            return number;
        if (held != NULL)
            cudaFree(held);
        held = next;
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    void *failed = NULL;
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        failed = result != NULL ? result : failed;
    }
    void *a = NULL, *b = NULL, *c = NULL;
    void *stream = (void *)(uintptr_t)0xabc0;
    const int made = cudaMallocAsync(&a, 5000, stream) == 0 && cudaMallocAsync(&b, 6000, NULL) == 0;
    cudaFreeAsync(a, stream);
    const int refused = cudaMalloc(&c, (size_t)1 << 60) != 0;
    cudaFree(NULL);
    return failed == NULL && made && refused ? 0 : 1;
}
