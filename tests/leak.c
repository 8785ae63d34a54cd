/* leak.c - loses memory on purpose: a suite that leaks must not pass under the address sanitizer.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

Test(leak, fails_the_run)
{
    void *volatile lost = malloc(100);
    cr_assert_neq(lost, NULL);
    lost = NULL;
}
