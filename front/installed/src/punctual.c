/* The command: all of it is in the library, where programs in C find the scheduler, too. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>

int punctual_command(void);

/* As programs in Rust begin: no file that is opened later is taken for one of the first three, and
   what is written to nobody is an error with words. */
int main(void)
{
    for (int at = 0; at < 3; at++)
        if (fcntl(at, F_GETFD) == -1 && open("/dev/null", O_RDWR) == -1)
            abort();
    signal(SIGPIPE, SIG_IGN);
    return punctual_command();
}
