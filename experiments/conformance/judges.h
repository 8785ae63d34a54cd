/*
 * judges.h - plays the stage's script and says whether a property holds.
 */
#ifndef CONFORMANCE_JUDGES_H
#define CONFORMANCE_JUDGES_H

#include "conformance/conformance.h"

vram_verdict judge_steps(vram_stage *stage);      /* every answer of every act */
vram_verdict judge_recovery(vram_stage *stage);   /* afterwards the arena is as good as new */
vram_verdict judge_same_again(vram_stage *stage); /* a second instance answers the same */
vram_verdict
judge_repetition(vram_stage *stage);         /* nor does it matter how often it was played before */
vram_verdict judge_apart(vram_stage *stage); /* nor what another instance is doing */
vram_verdict judge_largest(vram_stage *stage); /* explain's largest is served, a byte more is not */
vram_verdict judge_leaks(vram_stage *stage);   /* create, play, destroy: no host memory is lost */
vram_verdict
judge_starvation(vram_stage *stage); /* no host memory: an answer, and nothing has changed */

/* Finds the largest request that a fresh backend serves in the script's arena (0: none) and its
 * table. The script, which must be empty, then holds what was tried. */
vram_verdict judge_largest_served(vram_stage *stage, const vram_ops **ops);

#endif
