/* See t3.h. Register names and fields: t3_registers.h, made from the register description. */
#include "t3.h"

#include <stddef.h>

#define LINE 32u
#define BLOCK 256u /* a burst never leaves an aligned block, here and at the peer */
#define FIELD(word, name) (((word) & name##_MASK) >> name##_SHIFT)
#define PUT(value, name) (((uint64_t)(value) << name##_SHIFT) & name##_MASK)
#define FITS(value, name) (((uint64_t)(value) << name##_SHIFT >> name##_SHIFT) == (uint64_t)(value) && \
                           (((uint64_t)(value) << name##_SHIFT) & ~name##_MASK) == 0)
#define TRY(call)               \
    do {                        \
        int error_ = (call);    \
        if (error_ != T3_OK)    \
            return error_;      \
    } while (0)

static int get(const struct t3_device *device, uint32_t address, uint64_t *value)
{
    return device->bus.read(device->bus.user, address, value) ? T3_EBUS : T3_OK;
}

static int put(const struct t3_device *device, uint32_t address, uint64_t value)
{
    return device->bus.write(device->bus.user, address, value) ? T3_EBUS : T3_OK;
}

/* Polls a register until (value & mask) == wanted. */
static int poll_until(const struct t3_device *device, uint32_t address, uint64_t mask, uint64_t wanted,
                      unsigned long polls)
{
    uint64_t value;
    while (polls-- > 0) {
        TRY(get(device, address, &value));
        if ((value & mask) == wanted)
            return T3_OK;
    }
    return T3_ETIMEDOUT;
}

/* The tracker takes an arm or an abort when the one before is through its tables. */
static int poll_until_settled(const struct t3_device *device, unsigned long polls)
{
    return poll_until(device, T3_STATUS, T3_STATUS_ABORT_BUSY_MASK | T3_STATUS_MAINTENANCE_MASK, 0, polls);
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint32_t divide_up(uint32_t a, uint32_t b)
{
    return a / b + (a % b != 0);
}

static uint32_t tile_rows(const struct t3_output *output)
{
    return divide_up(output->rows, output->tile_rows);
}

static uint32_t tile_columns(const struct t3_output *output)
{
    return divide_up(output->columns_bytes, output->tile_bytes);
}

/* Matrix rows of a wavefront's tile; `bottom`: in the last tile row. */
static uint64_t wavefront_rows(const struct t3_output *output, unsigned bottom, unsigned wf)
{
    uint64_t rows = bottom ? output->rows - (tile_rows(output) - 1) * output->tile_rows : output->tile_rows;
    uint64_t above = (uint64_t)wf * output->wavefront_rows;
    return above < rows ? least(output->wavefront_rows, rows - above) : 0;
}

/* Lines of one matrix row of a tile; `right`: in the last tile column. */
static uint32_t tile_lines(const struct t3_output *output, unsigned right)
{
    uint32_t before = (tile_columns(output) - 1) * output->tile_bytes;
    return divide_up(right ? output->columns_bytes - before : output->tile_bytes, LINE);
}

static unsigned wavefronts(const struct t3_output *output, unsigned bottom)
{
    unsigned count = 0;
    while (count < T3_WAVEFRONTS && wavefront_rows(output, bottom, count) > 0)
        count++;
    return count;
}

int t3_open(struct t3_device *device, const struct t3_bus *bus, unsigned long polls)
{
    uint64_t id, version;
    unsigned entry;
    device->bus = *bus;
    TRY(get(device, T3_ID, &id));
    TRY(get(device, T3_VERSION, &version));
    if (id != T3_ID_VALUE_RESET || FIELD(version, T3_VERSION_MAJOR) != T3_VERSION_MAJOR_RESET)
        return T3_ENODEV;
    for (entry = 0; entry < T3_PROFILE_COUNT; entry++)
        device->profile[entry] = 0;
    device->profile_known = 0;
    device->early_room = 0;
    for (entry = 0; entry < T3_CONTEXT_COUNT; entry++)
        device->pending_epoch[entry] = 0;
    TRY(get(device, T3_CAPABILITY, &device->capability));
    TRY(get(device, T3_CAPABILITY_TRACKER, &device->capability_tracker));
    return poll_until(device, T3_STATUS, T3_STATUS_INIT_DONE_MASK, T3_STATUS_INIT_DONE_MASK, polls);
}

void t3_set_early_room(struct t3_device *device, uint64_t lines)
{
    device->early_room = lines;
}

/* The line after the output. */
static uint64_t end_of(const struct t3_output *output)
{
    return output->base / LINE + (uint64_t)output->rows * (output->pitch_bytes / LINE);
}

static int check_output(const struct t3_device *device, const struct t3_output *output)
{
    uint64_t lines = (uint64_t)(output->tile_bytes / LINE) * output->wavefront_rows;
    if (output->base % BLOCK || output->pitch_bytes % LINE || output->tile_bytes % LINE || output->tile_bytes == 0)
        return T3_EINVAL;
    if (output->rows == 0 || output->columns_bytes == 0 || output->columns_bytes > output->pitch_bytes)
        return T3_EINVAL;
    if (output->tile_rows == 0 || output->wavefront_rows == 0 || output->dtype > T3_DTYPE_INT32)
        return T3_EINVAL;
    if (!FITS(output->epoch, T3_RANGE_ATTRIBUTES_EPOCH))
        return T3_EINVAL;
    if (output->op < T3_OP_STORE || output->op > T3_OP_MAX)
        return T3_EINVAL;
    if (!FITS(output->base / LINE, T3_RANGE_BASE_LINE) || !FITS(end_of(output), T3_RANGE_LIMIT_LINE))
        return T3_EINVAL;
    if (output->range >= FIELD(device->capability, T3_CAPABILITY_RANGES) ||
        output->context >= FIELD(device->capability, T3_CAPABILITY_CONTEXTS) ||
        divide_up(output->tile_rows, output->wavefront_rows) > FIELD(device->capability, T3_CAPABILITY_WAVEFRONTS) ||
        lines >> FIELD(device->capability_tracker, T3_CAPABILITY_TRACKER_TILE_COUNT_BITS) ||
        !FITS(output->pitch_bytes / LINE, T3_DESCRIPTOR_BUFFER_PITCH) ||
        !FITS(output->tile_rows, T3_DESCRIPTOR_LAST_TILE_ROWS) ||
        !FITS(output->tile_bytes / LINE, T3_DESCRIPTOR_LAST_TILE_LINES) ||
        !FITS(tile_rows(output), T3_DESCRIPTOR_PLACE_ROW1) || !FITS(tile_columns(output), T3_DESCRIPTOR_PLACE_COL1))
        return T3_ERANGE;
    return T3_OK;
}

/* Entry of the profile: lines of a wavefront's tile, by edge and wavefront. */
static uint16_t profile_lines(const struct t3_output *output, unsigned entry)
{
    unsigned wf = entry % T3_WAVEFRONTS, right = entry / T3_WAVEFRONTS % 2, bottom = entry / T3_WAVEFRONTS / 2;
    return (uint16_t)(wavefront_rows(output, bottom, wf) * tile_lines(output, right));
}

int t3_map_output(struct t3_job *job, struct t3_device *device, const struct t3_output *output, unsigned first)
{
    unsigned entry, count = (unsigned)FIELD(device->capability, T3_CAPABILITY_WAVEFRONTS);
    TRY(check_output(device, output));
    if (first >= FIELD(device->capability, T3_CAPABILITY_DESCRIPTORS))
        return T3_ERANGE;
    if (device->pending_epoch[output->context] == output->epoch + 1)
        return T3_EEPOCH;
    TRY(put(device, T3_RANGE_ATTRIBUTES(output->range), 0)); /* no match while bounds change */
    TRY(put(device, T3_RANGE_BASE(output->range), output->base / LINE));
    TRY(put(device, T3_RANGE_LIMIT(output->range), end_of(output)));
    TRY(put(device, T3_RANGE_ATTRIBUTES(output->range),
            PUT(1, T3_RANGE_ATTRIBUTES_VALID) | PUT(output->context, T3_RANGE_ATTRIBUTES_CONTEXT) |
                PUT(output->epoch, T3_RANGE_ATTRIBUTES_EPOCH) | PUT(output->op, T3_RANGE_ATTRIBUTES_OP) |
                PUT(output->dtype, T3_RANGE_ATTRIBUTES_DTYPE)));
    for (entry = 0; entry < T3_PROFILE_COUNT; entry++) {
        uint16_t lines = profile_lines(output, entry);
        if (entry % T3_WAVEFRONTS >= count || (device->profile_known && device->profile[entry] == lines))
            continue;
        TRY(put(device, T3_PROFILE(entry), PUT(lines, T3_PROFILE_LINES)));
        device->profile[entry] = lines;
    }
    device->profile_known = 1;
    job->device = device;
    job->output = *output;
    job->first = first;
    job->count = 0;
    job->marks_log = 0;
    job->tracked = 0;
    return T3_OK;
}

/* Where a chunk goes, and how it is cut into blocks. */
struct plan {
    unsigned kind, peer, addends, row_shift, col_shift;
    uint64_t peer_base;
};

static int check_chunk(const struct t3_job *job, const struct t3_chunk *chunk, const struct plan *plan)
{
    const struct t3_output *output = &job->output;
    uint64_t lines = wavefront_rows(output, 0, 0) * tile_lines(output, 0); /* of the largest wavefront tile */
    if (chunk->row0 >= chunk->row1 || chunk->col0 >= chunk->col1 || chunk->row1 > tile_rows(output) ||
        chunk->col1 > tile_columns(output) || plan->peer_base % BLOCK)
        return T3_EINVAL;
    if (plan->kind != T3_KIND_REMOTE && plan->addends == 0)
        return T3_EINVAL;
    if (!FITS(plan->peer, T3_DESCRIPTOR_PLACE_PEER) || !FITS(plan->addends, T3_DESCRIPTOR_AMOUNT_ADDENDS) ||
        !FITS(plan->row_shift, T3_DESCRIPTOR_TARGET_ROW_SHIFT) ||
        !FITS(plan->col_shift, T3_DESCRIPTOR_TARGET_COL_SHIFT))
        return T3_EINVAL;
    if (!FITS(plan->peer_base / LINE, T3_DESCRIPTOR_TARGET_PEER_BASE))
        return T3_EINVAL;
    if (job->first + job->count >= FIELD(job->device->capability, T3_CAPABILITY_DESCRIPTORS) ||
        lines * plan->addends >> FIELD(job->device->capability_tracker, T3_CAPABILITY_TRACKER_TILE_COUNT_BITS))
        return T3_ERANGE;
    return T3_OK;
}

/* Lines of the chunk. */
static uint64_t chunk_lines(const struct t3_output *output, const struct t3_chunk *chunk)
{
    uint64_t rows = least(output->rows, (uint64_t)chunk->row1 * output->tile_rows) - chunk->row0 * output->tile_rows;
    uint64_t end = least(output->columns_bytes, (uint64_t)chunk->col1 * output->tile_bytes);
    return rows * divide_up((uint32_t)(end - chunk->col0 * output->tile_bytes), LINE);
}

/* Wavefront tiles in `height` x `width` workgroup tiles, of which the last row is the output's last if `bottom`. */
static uint64_t tiles_in(const struct t3_output *output, uint32_t height, uint32_t width, unsigned bottom)
{
    uint64_t whole = bottom ? height - 1 : height;
    return (whole * wavefronts(output, 0) + (bottom ? wavefronts(output, 1) : 0)) * width;
}

static uint32_t ceil_log2(uint32_t value)
{
    uint32_t log = 0;
    while ((UINT64_C(1) << log) < value)
        log++;
    return log;
}

/* log2 of the places that the tile marks of `rows` x `cols` tiles take: a power of two for each column. */
static unsigned marks_log(uint32_t rows, uint32_t cols)
{
    uint64_t last = ((uint64_t)(cols - 1) << ceil_log2(rows)) | (rows - 1);
    unsigned log = 0;
    while (last >> log)
        log++;
    return log;
}

/* What the DMA engine has to know of the chunk's tiles: their size, and that of the last ones. */
static uint64_t tiles_of_chunk(const struct t3_output *output, const struct t3_chunk *chunk)
{
    int bottom = chunk->row1 == tile_rows(output), right = chunk->col1 == tile_columns(output);
    uint32_t last_rows = bottom ? output->rows - (chunk->row1 - 1) * output->tile_rows : output->tile_rows;
    uint32_t last_bytes = right ? output->columns_bytes - (chunk->col1 - 1) * output->tile_bytes : output->tile_bytes;
    return PUT(output->tile_rows, T3_DESCRIPTOR_LAST_TILE_ROWS) |
           PUT(output->wavefront_rows, T3_DESCRIPTOR_LAST_WAVEFRONT_ROWS) |
           PUT(output->tile_bytes / LINE, T3_DESCRIPTOR_LAST_TILE_LINES) |
           PUT(last_rows, T3_DESCRIPTOR_LAST_LAST_ROWS) |
           PUT(divide_up(last_bytes, LINE), T3_DESCRIPTOR_LAST_LAST_LINES) |
           PUT(bottom, T3_DESCRIPTOR_LAST_BOTTOM) | PUT(right, T3_DESCRIPTOR_LAST_RIGHT);
}

static int describe(struct t3_job *job, const struct t3_chunk *chunk, const struct plan *plan)
{
    const struct t3_output *output = &job->output;
    const struct t3_device *device = job->device;
    uint32_t rows = chunk->row1 - chunk->row0, cols = chunk->col1 - chunk->col0;
    uint32_t high, wide, block_rows, block_cols, last_high, last_wide;
    uint64_t expected;
    unsigned i = job->first + job->count;
    unsigned bottom = chunk->row1 == tile_rows(output);
    TRY(check_chunk(job, chunk, plan));
    high = UINT32_C(1) << plan->row_shift, wide = UINT32_C(1) << plan->col_shift;
    block_rows = divide_up(rows, high), block_cols = divide_up(cols, wide);
    last_high = rows - (block_rows - 1) * high, last_wide = cols - (block_cols - 1) * wide;
    expected = chunk_lines(output, chunk) * plan->addends;
    if (((uint64_t)block_cols << ceil_log2(block_rows)) > FIELD(device->capability, T3_CAPABILITY_BLOCKS) ||
        expected >> FIELD(device->capability_tracker, T3_CAPABILITY_TRACKER_CHUNK_COUNT_BITS))
        return T3_ERANGE;
    if (plan->kind != T3_KIND_REMOTE &&
        marks_log(rows, cols) > FIELD(device->capability_tracker, T3_CAPABILITY_TRACKER_TILE_MARKS_LOG))
        return T3_ERANGE;
    /* Inside the chunk a block is whole, and has the output's last row only if the chunk is one block high. */
    if (!FITS(tiles_in(output, high < rows ? high : rows, wide < cols ? wide : cols, 0),
              T3_DESCRIPTOR_TILES_TILES_INNER))
        return T3_ERANGE;
    TRY(put(device, T3_DESCRIPTOR_PLACE(i),
            PUT(chunk->row0, T3_DESCRIPTOR_PLACE_ROW0) | PUT(chunk->row1, T3_DESCRIPTOR_PLACE_ROW1) |
                PUT(chunk->col0, T3_DESCRIPTOR_PLACE_COL0) | PUT(chunk->col1, T3_DESCRIPTOR_PLACE_COL1) |
                PUT(plan->kind, T3_DESCRIPTOR_PLACE_KIND) | PUT(output->op, T3_DESCRIPTOR_PLACE_OP) |
                PUT(plan->peer, T3_DESCRIPTOR_PLACE_PEER)));
    TRY(put(device, T3_DESCRIPTOR_AMOUNT(i),
            PUT(expected, T3_DESCRIPTOR_AMOUNT_EXPECTED) | PUT(plan->addends, T3_DESCRIPTOR_AMOUNT_ADDENDS) |
                PUT(output->context, T3_DESCRIPTOR_AMOUNT_CONTEXT) | PUT(output->epoch, T3_DESCRIPTOR_AMOUNT_EPOCH) |
                PUT(output->dtype, T3_DESCRIPTOR_AMOUNT_DTYPE)));
    TRY(put(device, T3_DESCRIPTOR_BUFFER(i), PUT(output->base / LINE, T3_DESCRIPTOR_BUFFER_BASE) |
                                                 PUT(output->pitch_bytes / LINE, T3_DESCRIPTOR_BUFFER_PITCH)));
    TRY(put(device, T3_DESCRIPTOR_TARGET(i),
            PUT(plan->peer_base / LINE, T3_DESCRIPTOR_TARGET_PEER_BASE) |
                PUT(plan->row_shift, T3_DESCRIPTOR_TARGET_ROW_SHIFT) |
                PUT(plan->col_shift, T3_DESCRIPTOR_TARGET_COL_SHIFT) |
                PUT(ceil_log2(block_rows), T3_DESCRIPTOR_TARGET_ROW_BLOCKS_LOG)));
    TRY(put(device, T3_DESCRIPTOR_TILES(i),
            PUT(tiles_in(output, high, wide, 0), T3_DESCRIPTOR_TILES_TILES_INNER) |
                PUT(tiles_in(output, last_high, wide, bottom), T3_DESCRIPTOR_TILES_TILES_BOTTOM) |
                PUT(tiles_in(output, high, last_wide, 0), T3_DESCRIPTOR_TILES_TILES_RIGHT) |
                PUT(tiles_in(output, last_high, last_wide, bottom), T3_DESCRIPTOR_TILES_TILES_CORNER)));
    TRY(put(device, T3_DESCRIPTOR_LAST(i), PUT(block_rows - 1, T3_DESCRIPTOR_LAST_LAST_BLOCK_ROW) |
                                               PUT(block_cols - 1, T3_DESCRIPTOR_LAST_LAST_BLOCK_COL) |
                                               tiles_of_chunk(output, chunk)));
    job->count++;
    if (plan->kind != T3_KIND_REMOTE) {
        job->updates[job->tracked++] = expected;
        if (marks_log(rows, cols) > job->marks_log)
            job->marks_log = marks_log(rows, cols);
    }
    return T3_OK;
}

int t3_remote_map(struct t3_job *job, const struct t3_chunk *chunk, unsigned peer, uint64_t peer_base)
{
    struct plan plan = {T3_KIND_REMOTE, peer, 0, 0, 0, peer_base};
    plan.row_shift = ceil_log2(chunk->row1 - chunk->row0); /* one block: it is never cut */
    plan.col_shift = ceil_log2(chunk->col1 - chunk->col0);
    return describe(job, chunk, &plan);
}

int t3_dma_map(struct t3_job *job, const struct t3_chunk *chunk, unsigned peer, uint64_t peer_base, unsigned addends,
               unsigned row_shift, unsigned col_shift)
{
    struct plan plan = {T3_KIND_DMA, peer, addends, row_shift, col_shift, peer_base};
    return describe(job, chunk, &plan);
}

int t3_local_map(struct t3_job *job, const struct t3_chunk *chunk, unsigned addends)
{
    struct plan plan = {T3_KIND_LOCAL, 0, addends, 0, 0, 0};
    plan.row_shift = ceil_log2(chunk->row1 - chunk->row0);
    plan.col_shift = ceil_log2(chunk->col1 - chunk->col0);
    return describe(job, chunk, &plan);
}

/* 1 while a job runs, or an error. */
static int job_runs(const struct t3_device *device)
{
    unsigned i;
    uint64_t context;
    for (i = 0; i < FIELD(device->capability, T3_CAPABILITY_CONTEXTS); i++) {
        TRY(get(device, T3_CONTEXT(i), &context));
        if (FIELD(context, T3_CONTEXT_ARMED) && !FIELD(context, T3_CONTEXT_COMPLETE))
            return 1;
    }
    return 0;
}

/* Divides the tile marks for the job's largest chunk, and says among how many slots. */
static int divide_marks(const struct t3_job *job, uint64_t *slots)
{
    const struct t3_device *device = job->device;
    unsigned window_log = ceil_log2((uint32_t)FIELD(device->capability, T3_CAPABILITY_CHUNK_WINDOW));
    unsigned share_log =
        (unsigned)FIELD(device->capability_tracker, T3_CAPABILITY_TRACKER_TILE_MARKS_LOG) - window_log;
    uint64_t needed = job->marks_log > share_log ? job->marks_log - share_log : 0, halvings;
    int runs;
    TRY(get(device, T3_TILE_MARKS, &halvings));
    if (halvings != needed) {
        runs = job_runs(device);
        if (runs < 0)
            return runs;
        if (runs && halvings < needed)
            return T3_ERANGE;
        if (!runs) {
            TRY(put(device, T3_TILE_MARKS, PUT(needed, T3_TILE_MARKS_HALVINGS)));
            halvings = needed;
        }
    }
    *slots = halvings < window_log ? UINT64_C(1) << (window_log - halvings) : 1;
    return T3_OK;
}

/* Lines of updates that may come for chunks that are not among the first `slots` that become live. */
static uint64_t early_lines(const struct t3_job *job, uint64_t slots)
{
    uint64_t lines = 0, chunk;
    for (chunk = slots; chunk < job->tracked; chunk++)
        lines += job->updates[chunk];
    return lines;
}

int t3_arm(const struct t3_job *job, unsigned long polls)
{
    uint64_t context, quota, slots, shares;
    unsigned entry;
    for (entry = 0; entry < T3_PROFILE_COUNT; entry++)
        if (job->device->profile[entry] != profile_lines(&job->output, entry))
            return T3_ERANGE; /* another output was mapped since, with other tiles */
    TRY(poll_until_settled(job->device, polls));
    TRY(get(job->device, T3_QUOTA(job->output.context), &quota));
    slots = least(FIELD(quota, T3_QUOTA_SLOTS), FIELD(job->device->capability, T3_CAPABILITY_CHUNK_WINDOW));
    TRY(divide_marks(job, &shares));
    slots = least(slots, shares);
    if (early_lines(job, slots) > job->device->early_room)
        return T3_EWINDOW;
    slots = least(slots, job->tracked);
    TRY(put(job->device, T3_CONTROL,
            PUT(1, T3_CONTROL_ARM) | PUT(job->count, T3_CONTROL_DESCRIPTORS) | PUT(job->first, T3_CONTROL_FIRST) |
                PUT(job->output.context, T3_CONTROL_CONTEXT)));
    job->device->pending_epoch[job->output.context] = (uint16_t)(job->output.epoch + 1);
    while (polls-- > 0) {
        TRY(get(job->device, T3_CONTEXT(job->output.context), &context));
        if (FIELD(context, T3_CONTEXT_FOLLOWING) == FIELD(context, T3_CONTEXT_END) ||
            FIELD(context, T3_CONTEXT_SLOTS) >= slots)
            return T3_OK;
    }
    return T3_ETIMEDOUT;
}

int t3_wait(const struct t3_job *job, unsigned long polls)
{
    uint64_t context, errors, poisoned;
    uint64_t mine = (job->count < 64 ? (UINT64_C(1) << job->count) - 1 : ~UINT64_C(0)) << job->first;
    uint64_t fatal = T3_ERRORS_OVER_COUNT_MASK | T3_ERRORS_OVER_TOTAL_MASK | T3_ERRORS_UNCORRECTABLE_MASK |
                     T3_ERRORS_TILE_TWICE_MASK;
    while (polls-- > 0) {
        TRY(get(job->device, T3_CONTEXT(job->output.context), &context));
        TRY(get(job->device, T3_ERRORS, &errors)); /* after CONTEXT: it says what went wrong up to completion */
        TRY(get(job->device, T3_POISONED, &poisoned));
        if ((errors & fatal) || (poisoned & mine))
            return T3_EFAULT;
        if (FIELD(context, T3_CONTEXT_COMPLETE) && FIELD(context, T3_CONTEXT_OUTSTANDING) == 0) {
            job->device->pending_epoch[job->output.context] = 0;
            return T3_OK;
        }
    }
    return T3_ETIMEDOUT;
}

int t3_abort(const struct t3_job *job, unsigned long polls)
{
    uint32_t context = T3_CONTEXT(job->output.context);
    TRY(poll_until_settled(job->device, polls));
    TRY(put(job->device, T3_CONTROL, PUT(1, T3_CONTROL_ABORT) | PUT(job->output.context, T3_CONTROL_CONTEXT)));
    return poll_until(job->device, context, T3_CONTEXT_ABORTING_MASK, 0, polls);
}

int t3_quiesce(const struct t3_device *device, unsigned long polls)
{
    TRY(put(device, T3_CONTROL, PUT(1, T3_CONTROL_QUIESCE)));
    return poll_until(device, T3_STATUS, T3_STATUS_QUIET_MASK, T3_STATUS_QUIET_MASK, polls);
}

int t3_resume(const struct t3_device *device)
{
    return put(device, T3_CONTROL, PUT(1, T3_CONTROL_RESUME));
}

int t3_disarm(const struct t3_device *device, unsigned long polls)
{
    TRY(put(device, T3_CONTROL, PUT(1, T3_CONTROL_DISARM)));
    return poll_until(device, T3_STATUS, T3_STATUS_INIT_DONE_MASK, T3_STATUS_INIT_DONE_MASK, polls);
}

int t3_force_disarm(const struct t3_device *device, unsigned long polls)
{
    TRY(put(device, T3_CONTROL, PUT(1, T3_CONTROL_DISARM) | PUT(1, T3_CONTROL_FORCED)));
    return poll_until(device, T3_STATUS, T3_STATUS_INIT_DONE_MASK, T3_STATUS_INIT_DONE_MASK, polls);
}

int t3_set_quota(const struct t3_device *device, unsigned context, unsigned ways, unsigned slots, unsigned credits)
{
    if (!FITS(ways, T3_QUOTA_WAYS) || !FITS(slots, T3_QUOTA_SLOTS) || !FITS(credits, T3_QUOTA_CREDITS))
        return T3_EINVAL;
    if (context >= FIELD(device->capability, T3_CAPABILITY_CONTEXTS))
        return T3_ERANGE;
    return put(device, T3_QUOTA(context),
               PUT(ways, T3_QUOTA_WAYS) | PUT(slots, T3_QUOTA_SLOTS) | PUT(credits, T3_QUOTA_CREDITS));
}

int t3_set_arbiter(const struct t3_device *device, const struct t3_arbiter *arbiter)
{
    const unsigned *limits = arbiter->thresholds;
    unsigned i;
    for (i = 0; i < 4; i++)
        if (limits[i] > T3_NO_LIMIT && limits[i] != T3_IN_TURNS)
            return T3_EINVAL;
    if (arbiter->fixed > T3_NO_LIMIT || !FITS(arbiter->starvation, T3_ARBITER_STARVATION) ||
        !FITS(arbiter->quantum, T3_ARBITER_QUANTUM) || !FITS(arbiter->quiet, T3_ARBITER_QUIET) ||
        !FITS(arbiter->backlog, T3_THRESHOLDS_BACKLOG) || !FITS(arbiter->patience, T3_THRESHOLDS_PATIENCE))
        return T3_EINVAL;
    TRY(put(device, T3_THRESHOLDS,
            PUT(limits[0], T3_THRESHOLDS_UNDER_25) | PUT(limits[1], T3_THRESHOLDS_UNDER_50) |
                PUT(limits[2], T3_THRESHOLDS_UNDER_75) | PUT(limits[3], T3_THRESHOLDS_ABOVE) |
                PUT(arbiter->backlog, T3_THRESHOLDS_BACKLOG) | PUT(arbiter->patience, T3_THRESHOLDS_PATIENCE)));
    return put(device, T3_ARBITER,
               PUT(arbiter->compute_first != 0, T3_ARBITER_MCA) | PUT(arbiter->fixed != 0, T3_ARBITER_FIXED) |
                   PUT(arbiter->fixed, T3_ARBITER_THRESHOLD) | PUT(arbiter->starvation, T3_ARBITER_STARVATION) |
                   PUT(arbiter->quantum, T3_ARBITER_QUANTUM) | PUT(arbiter->quiet, T3_ARBITER_QUIET));
}

int t3_enable_interrupts(const struct t3_device *device, uint64_t which)
{
    return put(device, T3_IRQ_ENABLE, which);
}

int t3_take_interrupts(const struct t3_device *device, uint64_t *which)
{
    TRY(get(device, T3_IRQ_STATUS, which));
    return put(device, T3_IRQ_STATUS, *which);
}

int t3_lock(const struct t3_device *device, uint64_t which)
{
    return put(device, T3_LOCK, which);
}

int t3_set_watchdog(const struct t3_device *device, uint32_t cycles)
{
    return put(device, T3_WATCHDOG, PUT(cycles, T3_WATCHDOG_CYCLES));
}

int t3_stuck(const struct t3_device *device, struct t3_stuck_block *block)
{
    uint64_t stuck;
    TRY(get(device, T3_STUCK, &stuck));
    block->descriptor = (unsigned)FIELD(stuck, T3_STUCK_DESCRIPTOR);
    block->block = (unsigned)FIELD(stuck, T3_STUCK_BLOCK);
    block->context = (unsigned)FIELD(stuck, T3_STUCK_CONTEXT);
    block->expected = (unsigned)FIELD(stuck, T3_STUCK_EXPECTED);
    block->seen = (unsigned)FIELD(stuck, T3_STUCK_SEEN);
    return (int)FIELD(stuck, T3_STUCK_VALID);
}

int t3_left_tile(const struct t3_job *job, struct t3_counted_tile *tile, unsigned long polls)
{
    const struct t3_device *device = job->device;
    unsigned ways = (unsigned)FIELD(device->capability_tracker, T3_CAPABILITY_TRACKER_WAYS);
    unsigned banks = (unsigned)FIELD(device->capability_tracker, T3_CAPABILITY_TRACKER_BANKS);
    unsigned sets = (unsigned)FIELD(device->capability_tracker, T3_CAPABILITY_TRACKER_SETS);
    unsigned place;
    TRY(poll_until(device, T3_CONTEXT(job->output.context), T3_CONTEXT_COMPLETE_MASK, T3_CONTEXT_COMPLETE_MASK, polls));
    for (place = 0; place < sets * ways; place++) {
        uint64_t entry;
        TRY(poll_until_settled(device, polls)); /* else it is refused: a job of another context may begin or end */
        TRY(put(device, T3_DEBUG_SELECT,
                PUT(place % ways, T3_DEBUG_SELECT_WAY) | PUT(place / ways % banks, T3_DEBUG_SELECT_BANK) |
                    PUT(place / ways / banks, T3_DEBUG_SELECT_ROW)));
        TRY(poll_until(device, T3_DEBUG_DATA, T3_DEBUG_DATA_READY_MASK, T3_DEBUG_DATA_READY_MASK, polls));
        TRY(get(device, T3_DEBUG_DATA, &entry));
        if (FIELD(entry, T3_DEBUG_DATA_VALID) && FIELD(entry, T3_DEBUG_DATA_CONTEXT) == job->output.context &&
            FIELD(entry, T3_DEBUG_DATA_EPOCH) == job->output.epoch) {
            tile->row = (unsigned)FIELD(entry, T3_DEBUG_DATA_ROW);
            tile->col = (unsigned)FIELD(entry, T3_DEBUG_DATA_COL);
            tile->wf = (unsigned)FIELD(entry, T3_DEBUG_DATA_WF);
            tile->updates = (unsigned)FIELD(entry, T3_DEBUG_DATA_COUNT);
            return 1;
        }
    }
    return 0;
}

const char *t3_strerror(int error)
{
    switch (error) {
    case T3_OK: return "no error";
    case T3_EBUS: return "the unit refused a register access";
    case T3_ENODEV: return "no T3 unit with this register map and major version";
    case T3_EINVAL: return "an argument is out of range or not aligned: buffers to 256 bytes, pitch and tile width to 32";
    case T3_ERANGE: return "this configuration of the unit has no room for it";
    case T3_ETIMEDOUT: return "it did not happen in time";
    case T3_EFAULT: return "the unit reports wrong counts or a lost bit";
    case T3_EWINDOW: return "more chunks are counted than can be live at a time, and updates of the others cannot wait";
    case T3_EEPOCH: return "late updates of the job before would count for one of the same epoch";
    default: return "unknown error";
    }
}
