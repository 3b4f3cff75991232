/* Driver of the T3 unit: maps an output buffer, arms it, waits for it.
 *
 * The order of calls is that of one producer GEMM with a ring reduce-scatter:
 *   t3_open, t3_map_output, then per chunk t3_remote_map, t3_dma_map or t3_local_map, t3_arm, (run the GEMM), t3_wait.
 * The tracked buffer must hold +0 before t3_arm, and no peer may send an update before it has returned.
 *
 * Needs C99 and nothing else; no global state. Every function that returns int returns 0, or an error below 0;
 * t3_stuck and t3_left_tile return 1 if they have found something.
 */
#ifndef T3_H
#define T3_H

#include <stdint.h>

#include "t3_registers.h"

#ifdef __cplusplus
extern "C" {
#endif

#define T3_WAVEFRONTS 16 /* of a workgroup, at most */
#define T3_NO_LIMIT 127  /* as a threshold of the arbiter */
#define T3_IN_TURNS 255  /* in place of a threshold: round-robin at this use of the data bus */

enum t3_error {
    T3_OK = 0,
    T3_EBUS = -1,      /* the bus gave an error response: the unit refused the access */
    T3_ENODEV = -2,    /* no T3 unit, or one of another major version, at this address */
    T3_EINVAL = -3,    /* an argument that no hardware could hold */
    T3_ERANGE = -4,    /* more than this configuration has: ranges, contexts, descriptors, blocks, counter widths; or
                        * tiles of another shape than those of the output that was mapped last */
    T3_ETIMEDOUT = -5, /* it did not happen within the polls allowed; t3_stuck may say why */
    T3_EFAULT = -6,    /* counts do not fit, a tile was complete twice, or a wrong bit could not be corrected, in some
                        * job since the last t3_disarm */
    T3_EWINDOW = -7,   /* more chunks than can be live at a time, and updates of the others would have no place to wait:
                        * see t3_set_early_room */
    T3_EEPOCH = -8     /* the epoch of a job that was not seen to complete: its late updates would count */
};

/* How to reach the registers: 64-bit accesses at byte addresses of the unit. Both return 0, or not 0 after an error
 * response. A memory-mapped unit reads and writes `volatile uint64_t`. */
struct t3_bus {
    int (*read)(void *user, uint32_t address, uint64_t *value);
    int (*write)(void *user, uint32_t address, uint64_t value);
    void *user;
};

/* One unit. Fields are the driver's own, but may be read. */
struct t3_device {
    struct t3_bus bus;
    uint64_t capability;
    uint64_t capability_tracker;
    uint16_t profile[T3_PROFILE_COUNT]; /* as written; it outlives a disarm */
    int profile_known;
    uint64_t early_room; /* lines, as t3_set_early_room was told */
    uint16_t pending_epoch[T3_CONTEXT_COUNT]; /* of the last job armed, plus 1; 0: t3_wait has seen it complete */
};

/* An output matrix of `rows` x `columns_bytes`, row after row at `pitch_bytes`, made of workgroup tiles of `tile_rows`
 * x `tile_bytes`, each stored by wavefronts of `wavefront_rows` rows. Every address is a multiple of 256 bytes, the
 * pitch and the tile width are multiples of 32. The unit has one geometry: outputs of jobs that run at the same time
 * must have tiles and edges of the same shape, and t3_arm refuses a job whose shape is no longer the unit's. */
struct t3_output {
    uint64_t base;
    uint32_t rows, columns_bytes, pitch_bytes;
    uint32_t tile_rows, tile_bytes, wavefront_rows;
    unsigned range;   /* register set that describes it */
    unsigned context; /* owner */
    unsigned epoch;   /* of the job, the same on all GPUs: that of the context's job before plus 1, 0 after 255 */
    unsigned op;      /* T3_OP_*: what a store into it becomes */
    unsigned dtype;   /* T3_DTYPE_* */
};

/* Workgroup tiles [row0, row1) x [col0, col1) of the output. */
struct t3_chunk {
    uint32_t row0, row1, col0, col1;
};

/* One job: an output and the descriptors that are mapped for it, from `first` on. */
struct t3_job {
    struct t3_device *device;
    struct t3_output output;
    unsigned first, count;
    unsigned marks_log; /* log2 of the tile marks of its largest chunk */
    unsigned tracked;   /* chunks that are counted here */
    uint64_t updates[T3_DESCRIPTOR_PLACE_COUNT]; /* lines that are expected for each of them, in order */
};

/* Arbitration of the two streams of a memory channel. Thresholds: DRAM queue entries from which communication waits. */
struct t3_arbiter {
    int compute_first;      /* T3-MCA; 0: round-robin, and nothing below matters */
    unsigned fixed;         /* one threshold, which no arm changes, if T3_IN_TURNS is not among those below; 0: the unit
                               chooses one of them, once per arm */
    unsigned thresholds[4]; /* for a data-bus use of the first stage under 25 %, 50 %, 75 %, and above; T3_IN_TURNS: none,
                               round-robin */
    unsigned backlog;       /* number of DMA blocks, ready or under way, from which communication is behind: round-robin;
                               0: never */
    unsigned patience;      /* time, in 64 cycles, for which their number may stay above 0; then communication is behind
                               until it is 0; 0: no limit */
    unsigned starvation;    /* cycles that communication waits at most */
    unsigned quantum;       /* lines that it then may send */
    unsigned quiet;         /* lines of it with none of compute between, from which on no threshold holds; 0: never */
};

/* The block that the watchdog found waiting, in tiles of wavefronts. */
struct t3_stuck_block {
    unsigned descriptor, block, context, expected, seen;
};

/* A wavefront's tile, and how many updates the tracker counts for it. */
struct t3_counted_tile {
    unsigned row, col, wf, updates;
};

/* Finds the unit, and waits until its tables are initialised, at most `polls` reads of STATUS. */
int t3_open(struct t3_device *device, const struct t3_bus *bus, unsigned long polls);

/* Says that `lines` lines of updates per context have a place to wait, before the slices, for chunks that are not live
 * yet, where they hold back nothing else: neither reads, nor updates of other chunks, nor the link. 0 after t3_open: then
 * t3_arm refuses a job that has more tracked chunks than can be live at a time. */
void t3_set_early_room(struct t3_device *device, uint64_t lines);

/* Describes the output to the unit and begins a job with descriptors from `first` on. T3_EEPOCH, and nothing is changed,
 * if the context's last job had the same epoch and t3_wait did not see it complete: late updates of it may come. T3_EBUS
 * if the range, or the profile of other tiles, is in use, or the epoch is barred (docs/hardware/registers.md: by jobs of
 * the context that were dropped, with none complete since): the range is then not valid. */
int t3_map_output(struct t3_job *job, struct t3_device *device, const struct t3_output *output, unsigned first);

/* Stores to the chunk leave for GPU `peer`, whose output buffer starts at `peer_base`, as updates. */
int t3_remote_map(struct t3_job *job, const struct t3_chunk *chunk, unsigned peer, uint64_t peer_base);

/* Stores to the chunk stay. A block of 2**row_shift x 2**col_shift tiles is sent to `peer` as updates as soon as each
 * of its lines got `addends` updates. */
int t3_dma_map(struct t3_job *job, const struct t3_chunk *chunk, unsigned peer, uint64_t peer_base, unsigned addends,
               unsigned row_shift, unsigned col_shift);

/* The chunk ends here: it is done when each of its lines got `addends` updates. */
int t3_local_map(struct t3_job *job, const struct t3_chunk *chunk, unsigned addends);

/* Starts to count and to fire. Returns when every tracked chunk that fits the unit's window (and the quota) is live: from
 * then on stores to them are counted, and the peer may be notified that this GPU is armed. T3_EWINDOW, and nothing is
 * armed, if not all of them fit, unless there is room for the updates of the others (t3_set_early_room). T3_ETIMEDOUT,
 * after at most `polls` looks: the job is armed, but waits for chunks that jobs of other contexts hold; the peer must not
 * be notified. The unit's tile marks are divided so that the largest chunk has enough, if no other job runs; T3_ERANGE if
 * one does and they are not. */
int t3_arm(const struct t3_job *job, unsigned long polls);

/* Waits until every tracked chunk is counted and every command done, at most `polls` times. T3_EFAULT: what to do then is
 * in docs/guides/integration.md, "Bring-up with the C driver". */
int t3_wait(const struct t3_job *job, unsigned long polls);

/* Drops the job: nothing of it is counted or sent any more. Waits until its tables are free, its commands done, and the
 * accesses that were taken performed. What comes later is refused, as the context's next job has another epoch
 * (t3_map_output). */
int t3_abort(const struct t3_job *job, unsigned long polls);

/* No new chunk and no new command of any job, until t3_resume; waits until commands are done. Nothing is lost. */
int t3_quiesce(const struct t3_device *device, unsigned long polls);
int t3_resume(const struct t3_device *device);

/* Clears all tables of the unit, and waits until they are written. What was mapped stays. T3_EBUS while a job, one of
 * its accesses or commands is not done. */
int t3_disarm(const struct t3_device *device, unsigned long polls);

/* As t3_disarm, but drops all jobs as t3_abort does, without waiting: accesses that were taken are performed and not
 * counted, commands that were given and not taken are lost, and every range must be mapped again. */
int t3_force_disarm(const struct t3_device *device, unsigned long polls);

/* Quotas of one context, for as long as no job of it runs: ways of a set, live chunks, commands (255: no limit). */
int t3_set_quota(const struct t3_device *device, unsigned context, unsigned ways, unsigned slots, unsigned credits);

/* The arbiters of all channels. */
int t3_set_arbiter(const struct t3_device *device, const struct t3_arbiter *arbiter);

/* Interrupts, as T3_IRQ_STATUS_*_MASK: which may raise the unit's; which there were, and clears those. */
int t3_enable_interrupts(const struct t3_device *device, uint64_t which);
int t3_take_interrupts(const struct t3_device *device, uint64_t *which);

/* T3_LOCK_*_MASK: until the next reset. */
int t3_lock(const struct t3_device *device, uint64_t which);

/* Looks for a stuck block after `cycles` without progress (0: never), and what it found: 1 with *block, else 0. */
int t3_set_watchdog(const struct t3_device *device, uint32_t cycles);
int t3_stuck(const struct t3_device *device, struct t3_stuck_block *block);

/* A tile of the job for which the tracker still counts although all chunks are complete: 1 with *tile, else 0. It got an
 * update too many, or one came twice and this is the tile's own last one, or (in a chunk that has overflowed) updates of
 * another tile were counted instead: the unit cannot tell. Waits until the job is complete, then looks through the
 * tracker's tables, at most `polls` reads for each place. The next t3_arm or t3_abort of the context, or a disarm, frees
 * what it looks for. */
int t3_left_tile(const struct t3_job *job, struct t3_counted_tile *tile, unsigned long polls);

/* A sentence about an error. */
const char *t3_strerror(int error);

#ifdef __cplusplus
}
#endif
#endif
