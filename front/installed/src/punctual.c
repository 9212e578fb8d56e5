/* The command: all of it is in the library, where programs in C find the scheduler, too. */
#include <signal.h>

int punctual_command(void);

int main(void)
{
    /* As programs in Rust begin: what is written to nobody is an error with words. */
    signal(SIGPIPE, SIG_IGN);
    return punctual_command();
}
