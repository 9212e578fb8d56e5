// Backtraces end at the first frame of an item or a member, whatever stack it stands on.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unwind.h>

static int frames, ends, others;

static _Unwind_Reason_Code count(struct _Unwind_Context *context, void *number) {
    (void)context;
    // A trace that goes around in a circle would never end.
    return ++*(int *)number < 60 ? _URC_NO_REASON : _URC_NORMAL_STOP;
}

__attribute__((noinline)) void inside(void) {
    int number = 0;
    _Unwind_Reason_Code code = _Unwind_Backtrace(count, &number);
    #pragma omp critical
    {
        frames += number > 1;
        ends += code == _URC_END_OF_STACK;
        others += omp_get_thread_num() != 0;
    }
}

int main(void) {
    #pragma omp parallel num_threads(4)
    {
        inside();
        #pragma omp barrier
        #pragma omp single nowait
        for (int i = 0; i < 40; i++) {
            #pragma omp task
            {
                inside();
                // Begun on a stack of its own, while this one waits for a lock or a child.
                #pragma omp task
                inside();
                #pragma omp taskwait
            }
        }
    }
    printf("%d traces, %d ends, %s\n", frames, ends, others > 2 ? "on other stacks" : "only one");
    return 0;
}
