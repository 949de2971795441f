/* The calls of MPI that helio makes: handles and constants of MPI are what its header says, which differs
   from one MPI to the next, so they stay on this side. Functions return MPI's own codes of errors. */

#include <mpi.h>
#include <signal.h>
#include <stdlib.h>

static MPI_Comm comm;
static volatile sig_atomic_t terminated;

/* Initialises MPI for several threads that do not call it at the same time, with a communicator of our
   own, whose errors are returned. `state` is 0 if that is so, 1 if MPI was initialised before, 2 if it
   cannot be used from several threads. */
int helio_processes_begin(int *rank, int *size, int *state) {
    int before = 0, provided = 0;
    int code = MPI_Initialized(&before);
    *state = before ? 1 : 0;
    if (code != MPI_SUCCESS || before) return code;
    code = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided);
    if (code != MPI_SUCCESS) return code;
    if (provided < MPI_THREAD_SERIALIZED) *state = 2;
    code = MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (code != MPI_SUCCESS) return code;
    code = MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    if (code != MPI_SUCCESS) return code;
    code = MPI_Comm_rank(comm, rank);
    return code != MPI_SUCCESS ? code : MPI_Comm_size(comm, size);
}

int helio_processes_end(void) {
    int code = MPI_Comm_free(&comm);
    return code != MPI_SUCCESS ? code : MPI_Finalize();
}

/* Begin requests; the handle of each is freed by `helio_processes_test` when it is complete. */
static int begun(int code, MPI_Request *own, void **request) {
    if (code != MPI_SUCCESS) {
        free(own);
        own = NULL;
    }
    *request = own;
    return code;
}

int helio_processes_send(const void *bytes, int count, int to, int tag, void **request) {
    MPI_Request *own = malloc(sizeof *own);
    *request = NULL;
    if (!own) return MPI_ERR_NO_MEM;
    return begun(MPI_Isend(bytes, count, MPI_BYTE, to, tag, comm, own), own, request);
}

/* From anybody if `from` is negative. */
int helio_processes_receive(void *bytes, int count, int from, int tag, void **request) {
    MPI_Request *own = malloc(sizeof *own);
    int source = from < 0 ? MPI_ANY_SOURCE : from;
    *request = NULL;
    if (!own) return MPI_ERR_NO_MEM;
    return begun(MPI_Irecv(bytes, count, MPI_BYTE, source, tag, comm, own), own, request);
}

/* In place, over all processes. `element`: 0 float, 1 double, 2 and 3 integers of 32 and 64 bits, which
   wrap. */
int helio_processes_reduce(void *bytes, int count, int element, int is_product, void **request) {
    MPI_Request *own = malloc(sizeof *own);
    MPI_Datatype type = element == 0   ? MPI_FLOAT
                        : element == 1 ? MPI_DOUBLE
                        : element == 2 ? MPI_UINT32_T
                                       : MPI_UINT64_T;
    *request = NULL;
    if (!own) return MPI_ERR_NO_MEM;
    return begun(MPI_Iallreduce(MPI_IN_PLACE, bytes, count, type, is_product ? MPI_PROD : MPI_SUM, comm,
                                own),
                 own, request);
}

int helio_processes_test(void *request, int *is_complete, int *source) {
    MPI_Status status;
    int code = MPI_Test(request, is_complete, &status);
    if (code == MPI_SUCCESS && *is_complete) {
        *source = status.MPI_SOURCE;
        free(request);
    }
    return code;
}

int helio_processes_cancel(void *request) {
    return MPI_Cancel(request);
}

/* Writes the text of a code, of at most MPI_MAX_ERROR_STRING bytes if there is room for them, and 0. */
void helio_processes_error(int code, char *text, int room) {
    char whole[MPI_MAX_ERROR_STRING];
    int length = 0, i;
    if (MPI_Error_string(code, whole, &length) != MPI_SUCCESS) length = 0;
    for (i = 0; i < length && i + 1 < room; i++) text[i] = whole[i];
    text[i] = 0;
}

static void terminate(int signal) {
    (void)signal;
    terminated = 1;
}

/* From now on SIGTERM is noted, not obeyed; whether that is so. */
int helio_processes_note_termination(void) {
    return signal(SIGTERM, terminate) != SIG_ERR;
}

int helio_processes_is_terminated(void) {
    return terminated;
}

/* What benchmarks compare with: MPI's own calls, which wait. */
int helio_processes_bare_sum(const float *from, float *to, int count) {
    return MPI_Allreduce(from, to, count, MPI_FLOAT, MPI_SUM, comm);
}

int helio_processes_bare_exchange(const void *from, void *to, int count, int other) {
    return MPI_Sendrecv(from, count, MPI_BYTE, other, 9, to, count, MPI_BYTE, other, 9, comm,
                        MPI_STATUS_IGNORE);
}
