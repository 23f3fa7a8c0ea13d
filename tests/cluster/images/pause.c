/* Holds a pod's namespaces: sleeps until told to end, and reaps what is left to it. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void end(int signal_number) { (void)signal_number; _exit(0); }
static void reap(int signal_number) { (void)signal_number; while (waitpid(-1, 0, WNOHANG) > 0) { } }

int main(void) {
    signal(SIGINT, end);
    signal(SIGTERM, end);
    signal(SIGCHLD, reap);
    for (;;) pause();
}
