/* A library with a thread-local of its own. */
static __thread int calls;

int of_a_library(void)
{
    return ++calls;
}
