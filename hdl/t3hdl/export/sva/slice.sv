// One memory channel: nothing is lost, doubled or altered, a disarm or not; only updates of a live epoch of their own
// context are tracked, others are refused, and so is a write that is no burst of one range and aligned block
// (invariant 4); communication passes the threshold by the starvation limit alone, or in the absence of compute, and no
// compute access passes communication that has waited for it (invariant 6). Judged by what crosses the ports, and by the configuration.
module t3_slice_rules
  import t3_words::*;
(
    input wire clk,
    input wire rst,
    input arbiter_t arbiter,
    input wire arbiter_written,
    input range_t ranges[RANGES],
    input wire [OCCUPANCY_BITS-1:0] occupancy,
    input wire [OCCUPANCY_BITS-1:0] threshold,
    input wire behind,
    input wire [TIME_BITS-1:0] now,
    input wire compute_read_valid,
    input wire compute_read_ready,
    input memory_request_t compute_read,
    input wire compute_write_valid,
    input wire compute_write_ready,
    input memory_request_t compute_write,
    input wire comm_read_valid,
    input wire comm_read_ready,
    input memory_request_t comm_read,
    input wire comm_write_valid,
    input wire comm_write_ready,
    input memory_request_t comm_write,
    input wire dram_valid,
    input wire dram_ready,
    input memory_request_t dram,
    input wire compute_refused_valid,
    input memory_request_t compute_refused,
    input wire comm_refused_valid,
    input memory_request_t comm_refused,
    input wire compute_stale_valid,
    input memory_request_t compute_stale,
    input wire comm_stale_valid,
    input memory_request_t comm_stale,
    input wire update_done_valid,
    input memory_request_t update_done,
    output logic [CONTEXTS-1:0] pending  // tracked accesses of the context have entered, and are not counted
);
  // What a write meets at entry: the lowest valid range around its lines.
  typedef enum logic [1:0] {
    UNTRACKED,
    TRACKED,
    VIOLATION,
    STALE
  } entry_t;

  // All lines of a burst are in one aligned block.
  function automatic logic in_block(memory_request_t item);
    return 32'(item.line[LENGTH_BITS-1:0]) + 32'(item.length) < BURST_LINES;
  endfunction

  // A burst begins and ends in the same ranges, and each of them holds all lines between.
  function automatic logic in_ranges(memory_request_t item);
    logic [LINE_BITS:0] last = {1'b0, item.line} + (LINE_BITS + 1)'(item.length);
    for (int i = 0; i < RANGES; i++) begin
      if (ranges[i].valid && item.line < ranges[i].base && {1'b0, ranges[i].base} <= last) return 0;
      if (ranges[i].valid && item.line < ranges[i].limit && {1'b0, ranges[i].limit} <= last) return 0;
    end
    return 1;
  endfunction

  function automatic entry_t entry_of(memory_request_t item);
    logic update = item.tagged_ && item.op inside {OP_STORE, OP_ADD, OP_MIN, OP_MAX};
    if (!in_block(item) || !in_ranges(item)) return item.op == OP_READ ? UNTRACKED : VIOLATION;
    for (int i = 0; i < RANGES; i++) begin
      if (ranges[i].valid && ranges[i].base <= item.line && item.line < ranges[i].limit) begin
        if (ranges[i].context_ != item.context_) return item.op == OP_READ ? UNTRACKED : VIOLATION;
        if (!update) return UNTRACKED;
        return ranges[i].epoch == item.epoch && 32'(item.context_) < CONTEXTS ? TRACKED : STALE;
      end
    end
    return update ? STALE : UNTRACKED;
  endfunction

  // What a slice must not change, folded into a number that adds up.
  function automatic logic [63:0] fold(memory_request_t item);
    return {25'b0, item.line} * 64'd3 + {52'b0, item.context_, item.source} * 64'd5
        + {26'b0, item.wf, item.right, item.bottom, item.row, item.col, item.epoch} * 64'd7
        + {32'b0, item.tag, item.length} * 64'd11;
  endfunction

  // A cycle is judged in the next one, when its grant shows at `dram` and its refusals at their ports.
  logic [1:0] entered[2];  // by stream: items taken a cycle ago
  logic [1:0] tracked[2];
  logic [63:0] folded[2];
  entry_t compute_entry, comm_entry;  // of the writes taken a cycle ago
  memory_request_t compute_taken, comm_taken;
  logic compute_wrote, comm_wrote, comm_reads, out_free, started;
  arbiter_t arbiter_then;
  logic mca;  // a cycle ago: compute goes first
  logic rewritten;  // a cycle ago: then the wait of communication begins anew
  logic [OCCUPANCY_BITS:0] level;
  logic [OCCUPANCY_BITS-1:0] limit;
  logic [TIME_BITS-1:0] then;
  always_ff @(posedge clk) begin
    started <= !rst;
    arbiter_then <= arbiter;
    mca <= arbiter.mca && !behind;
    rewritten <= arbiter_written;
    level <= {1'b0, occupancy} + (dram_valid ? (OCCUPANCY_BITS + 1)'(dram.length) + 1 : 0);
    limit <= arbiter.fixed ? arbiter.threshold : threshold;
    then <= now;
    out_free <= !dram_valid || dram_ready;
    compute_wrote <= compute_write_valid && compute_write_ready;
    comm_wrote <= comm_write_valid && comm_write_ready;
    comm_reads <= comm_read_valid && comm_read_ready;
    compute_entry <= entry_of(compute_write);
    comm_entry <= entry_of(comm_write);
    compute_taken <= compute_write;
    comm_taken <= comm_write;
    entered[0] <= 2'(compute_read_valid && compute_read_ready) + 2'(compute_write_valid && compute_write_ready);
    entered[1] <= 2'(comm_read_valid && comm_read_ready) + 2'(comm_write_valid && comm_write_ready);
    folded[0] <= (compute_read_valid && compute_read_ready ? fold(compute_read) : 0)
        + (compute_write_valid && compute_write_ready ? fold(compute_write) : 0);
    folded[1] <= (comm_read_valid && comm_read_ready ? fold(comm_read) : 0)
        + (comm_write_valid && comm_write_ready ? fold(comm_write) : 0);
  end
  assign tracked[0] = 2'(compute_wrote && compute_entry == TRACKED);
  assign tracked[1] = 2'(comm_wrote && comm_entry == TRACKED);

  // A grant of a cycle ago shows as a new item at `dram`.
  wire granted = started && dram_valid && out_free;
  wire refused[2] = '{compute_refused_valid || compute_stale_valid, comm_refused_valid || comm_stale_valid};
  memory_request_t compute_back, comm_back;
  assign compute_back = compute_stale_valid ? compute_stale : compute_refused;
  assign comm_back = comm_stale_valid ? comm_stale : comm_refused;

  // By stream, a cycle ago: items in the queues, tracked ones among them, and what all of them fold to.
  logic [3:0] queued[2];
  logic [3:0] queued_tracked[2];
  logic [63:0] queued_fold[2];
  for (genvar s = 0; s < 2; s++) begin : g_stream
    wire out = granted && dram.stream == s;
    wire [63:0] refused_fold = fold(s == 0 ? compute_back : comm_back);
    always_ff @(posedge clk) begin
      if (rst || !started) begin
        queued[s] <= 0;
        queued_tracked[s] <= 0;
        queued_fold[s] <= 0;
      end else begin
        queued[s] <= queued[s] + 4'(entered[s]) - 4'(refused[s]) - 4'(out);
        queued_tracked[s] <= queued_tracked[s] + 4'(tracked[s]) - 4'(out && dram.tagged_);
        queued_fold[s] <= queued_fold[s] + folded[s] - (refused[s] ? refused_fold : 0) - (out ? fold(dram) : 0);
      end
    end
    slice_makes_nothing_up :
    assert property (@(posedge clk) disable iff (rst) out |-> queued[s] > 0);
    slice_tracks_own_range_only :
    assert property (@(posedge clk) disable iff (rst) out && dram.tagged_ |-> queued_tracked[s] > 0);
    slice_tracks_all_of_it :
    assert property (@(posedge clk) disable iff (rst) queued[s] == 0 |-> queued_tracked[s] == 0);
    slice_alters_nothing :
    assert property (@(posedge clk) disable iff (rst) queued[s] == 0 |-> queued_fold[s] == 0);
  end

  default clocking @(posedge clk);
  endclocking
  default disable iff (rst);

  // The arbiter compares times a cycle before they count. The counter must not reach its end.
  time_counts_every_cycle :
  assume property (started |-> now == $past(now) + 1 && now != 0);

  // Nothing refuses a read: whoever makes it keeps it in an aligned block, all of which is in this channel.
  reads_in_a_block :
  assume property ((compute_read_valid |-> in_block(compute_read)) and (comm_read_valid |-> in_block(comm_read)));
  slice_bursts_in_a_block :
  assert property (dram_valid && dram.op != OP_READ |-> in_block(dram));

  // The memory reports each tracked update once, with its transfer or after it.
  logic [15:0] unperformed;
  wire sent = dram_valid && dram_ready && dram.tagged_;
  wire performed = PERFORMED && update_done_valid && update_done.tagged_;
  always_ff @(posedge clk) begin
    if (rst) unperformed <= 0;
    else unperformed <= unperformed + 16'(sent) - 16'(performed && (unperformed > 0 || sent));
  end
  memory_reports_its_updates :
  assume property (performed |-> unperformed > 0 || sent);

  // Tracked accesses of each context between entry and count.
  wire compute_enters = compute_write_valid && compute_write_ready && entry_of(compute_write) == TRACKED;
  wire comm_enters = comm_write_valid && comm_write_ready && entry_of(comm_write) == TRACKED;
  wire counted = PERFORMED ? performed && (unperformed > 0 || sent) : sent;
  wire [3:0] counted_context = PERFORMED ? update_done.context_ : dram.context_;
  for (genvar c = 0; c < CONTEXTS; c++) begin : g_pending
    logic [15:0] number;
    assign pending[c] = number != 0;
    always_ff @(posedge clk) begin
      if (rst) number <= 0;
      else
        number <= number + 16'(compute_enters && compute_write.context_ == c)
            + 16'(comm_enters && comm_write.context_ == c) - 16'(counted && counted_context == c && number > 0);
    end
  end

  slice_refuses_compute_violations :
  assert property (started |-> compute_refused_valid == (compute_wrote && compute_entry == VIOLATION));
  slice_refuses_comm_violations :
  assert property (started |-> comm_refused_valid == (comm_wrote && comm_entry == VIOLATION));
  slice_refuses_stale_compute_updates :
  assert property (started |-> compute_stale_valid == (compute_wrote && compute_entry == STALE));
  slice_refuses_stale_comm_updates :
  assert property (started |-> comm_stale_valid == (comm_wrote && comm_entry == STALE));
  slice_returns_refused_compute_write :
  assert property (started && refused[0] |-> fold(compute_back) == fold(compute_taken));
  slice_returns_refused_comm_write :
  assert property (started && refused[1] |-> fold(comm_back) == fold(comm_taken));

  // The wait of communication, between two bounds: `sure` counts reads alone, which are always eligible, `maybe`
  // everything in the queues.
  logic reading, sure, maybe;  // a cycle ago: a read was in the queue; a wait had begun
  logic [TIME_BITS-1:0] sure_since, maybe_since;
  logic [7:0] left;  // lines that communication may still send, at most
  logic [7:0] alone;  // lines that it has sent since compute's last one

  function automatic logic [7:0] less(logic [7:0] number);
    return number > 8'(dram.length) + 1 ? number - 8'(dram.length) - 1 : 0;
  endfunction

  wire comm_granted = granted && dram.stream;
  wire compute_absent = arbiter_then.quiet != 0 && alone >= arbiter_then.quiet;
  wire [8:0] alone_now = {1'b0, alone} + 9'(dram.length) + 1;
  wire starving = maybe && then - maybe_since >= TIME_BITS'(arbiter_then.starvation);
  always_ff @(posedge clk) begin
    if (rst || !started) begin
      {reading, sure, maybe} <= '0;
      left <= 0;
      alone <= 0;
    end else begin
      reading <= !comm_read_ready || comm_reads || (reading && !comm_granted);
      sure <= (reading || sure) && !comm_granted && mca && !rewritten;
      if (!sure) sure_since <= then;
      maybe <= (queued[1] > 0 || maybe) && !comm_granted && mca && !rewritten;
      if (!maybe) maybe_since <= then;
      if (!mca || (granted && !dram.stream)) alone <= 0;
      else if (comm_granted) alone <= alone_now[8] ? '1 : alone_now[7:0];
      if (!mca) left <= 0;
      else if (comm_granted && starving && left <= arbiter_then.quantum) left <= less(arbiter_then.quantum);
      else if (comm_granted) left <= less(left);
    end
  end
  slice_starvation_limit :
  assert property (
      granted && !dram.stream && mca && reading && sure
      |-> then - sure_since < TIME_BITS'(arbiter_then.starvation));
  slice_threshold :
  assert property (
      comm_granted && mca
      |-> level < {1'b0, limit} || limit == NO_LIMIT || left > 0 || starving || compute_absent);
endmodule
