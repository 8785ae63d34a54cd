/*
 * machine.h - what a measurement depends on beside the program's input: kept in every row.
 */
#ifndef VRAMLAB_STUDY_MACHINE_H
#define VRAMLAB_STUDY_MACHINE_H

typedef struct machine {
    const char *commit;   /* of the program's source; ends in "-changed" when it had been edited */
    const char *compiler; /* "GCC 12.2.0, Release" */
    char cpu[128];        /* as the kernel names it */
    char gpu[128];        /* "none" without an NVIDIA card */
    char driver[64];      /* of the card; "none" */
} machine;

machine machine_here(void);

#endif
