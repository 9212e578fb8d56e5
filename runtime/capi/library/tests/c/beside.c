/* A run that cannot be beside another library does not begin, and says why in one line. */
#include "is.h"

static void *never(void *argument)
{
    exit(2);
    return argument;
}

int main(void)
{
    char why[1000];
    punctual_cpu cpu = punctual_cpu_with(0, PUNCTUAL_FIXED_PRIORITY, never, NULL);
    IS(punctual_run(&cpu, NULL, NULL), PUNCTUAL_CANNOT_RUN);
    IS(punctual_why(PUNCTUAL_TEXT, why, sizeof why, NULL), PUNCTUAL_OK);
    puts(why);
    return 0;
}
