// What the unit asks of the DMA engine: not before every tile of the block has its threshold counted, or the chunk all
// its lines (invariant 1); once per block and use, no count lost or doubled (invariant 3); and what a command says.
// For simulation: it remembers every tile in associative arrays.
module t3_command_rules
  import t3_words::*;
(
    input wire clk,
    input wire rst,
    input wire disarm,
    input wire arm,
    input wire abort,
    input control_t control,
    input logic [63:0] descriptors[DESCRIPTORS][DESCRIPTOR_WORDS],
    input logic [15:0] profile[64],
    input quota_t quotas[CONTEXTS],
    input wire [SLICES-1:0] counted_valid,  // by slice: this access is counted
    input memory_request_t counted[SLICES],
    input wire command_valid,
    input wire command_ready,
    input dma_command_t command,
    input wire command_done_valid,
    input wire [3:0] command_done,
    input wire idle,
    input wire unmatched,
    input wire [47:0] updates  // that the unit has counted, in lines
);
  // A context is used anew with each arm and abort: what was counted long before does not count any more.
  typedef struct packed {
    logic [3:0]  context_;
    logic [7:0]  epoch;
    logic [11:0] row;
    logic [11:0] col;
    logic [3:0]  wf;
  } tile_t;
  typedef struct {
    int unsigned lines;
    longint unsigned last;  // cycle
    logic bottom;
    logic right;
  } tally_t;
  tally_t tally[tile_t];
  longint unsigned began[16];  // cycle of the last arm or abort of the context
  bit given[bit [29:0]];  // by descriptor, row, column: its block has its command
  longint unsigned cycle;
  logic [47:0] accepted;
  logic [15:0] outstanding[16];
  logic aborted;

  function automatic int unsigned lines_of(tile_t tile);
    if (!tally.exists(tile)) return 0;
    return tally[tile].last + 2 * DRAIN_CYCLES < began[tile.context_] ? 0 : tally[tile].lines;
  endfunction

  // A tile that has reached its threshold twice is still one tile.
  function automatic logic is_complete(tile_t tile, logic [7:0] addends);
    int unsigned needed;
    if (!tally.exists(tile) || 32'(tile.wf) >= WAVEFRONTS) return 0;
    needed = (32'(profile[{tally[tile].bottom, tally[tile].right, tile.wf}]) * 32'(addends)) % (1 << TILE_COUNT_BITS);
    return needed != 0 && lines_of(tile) >= needed;
  endfunction

  chunk_bounds_t bounds;
  chunk_count_t count;
  chunk_target_t target;
  chunk_source_t source;
  chunk_tiles_t tiles;
  chunk_blocks_t blocks;
  always_comb begin
    bounds = chunk_bounds_t'(descriptors[command.descriptor][0][$bits(chunk_bounds_t)-1:0]);
    count = chunk_count_t'(descriptors[command.descriptor][1][$bits(chunk_count_t)-1:0]);
    source = chunk_source_t'(descriptors[command.descriptor][2][$bits(chunk_source_t)-1:0]);
    target = chunk_target_t'(descriptors[command.descriptor][3][$bits(chunk_target_t)-1:0]);
    tiles = chunk_tiles_t'(descriptors[command.descriptor][4][$bits(chunk_tiles_t)-1:0]);
    blocks = chunk_blocks_t'(descriptors[command.descriptor][5][$bits(chunk_blocks_t)-1:0]);
  end
  wire [11:0] down = command.row - bounds.row0;
  wire [11:0] along = command.col - bounds.col0;

  wire last_row = (down >> target.row_shift) == 12'(blocks.last_block_row);
  wire last_col = (along >> target.col_shift) == 12'(blocks.last_block_col);

  // Wavefront tiles that a complete block has, as its descriptor says.
  function automatic int unsigned tiles_of_block();
    if (last_row && last_col) return 32'(tiles.tiles_corner);
    if (last_row) return 32'(tiles.tiles_bottom);
    return last_col ? 32'(tiles.tiles_right) : 32'(tiles.tiles_inner);
  endfunction

  function automatic int unsigned complete_tiles();
    int unsigned sum = 0;
    for (int row = 32'(command.row); row < 32'(command.row) + 32'(command.rows); row++)
      for (int col = 32'(command.col); col < 32'(command.col) + 32'(command.cols); col++)
        for (int wf = 0; wf < WAVEFRONTS; wf++)
          if (is_complete('{command.context_, command.epoch, row[11:0], col[11:0], wf[3:0]}, count.addends)) sum += 1;
    return sum;
  endfunction

  function automatic longint unsigned lines_of_chunk();
    longint unsigned sum = 0;
    foreach (tally[tile])
      if (tile.context_ == command.context_ && tile.epoch == command.epoch
          && tile.row >= bounds.row0 && tile.row < bounds.row1 && tile.col >= bounds.col0 && tile.col < bounds.col1)
        sum += 64'(lines_of(tile));
    return sum;
  endfunction

  function automatic logic [11:0] smaller(logic [16:0] size, logic [11:0] rest);
    return size < 17'(rest) ? size[11:0] : rest;
  endfunction

  task automatic judge();
    logic [29:0] block = {command.descriptor, command.row, command.col};
    command_of_a_chunk :
    assert (32'(command.descriptor) < DESCRIPTORS && bounds.kind == KIND_DMA
        && command.row >= bounds.row0 && command.row < bounds.row1
        && command.col >= bounds.col0 && command.col < bounds.col1);
    command_of_a_block :
    assert (12'(down >> target.row_shift << target.row_shift) == down
        && 12'(along >> target.col_shift << target.col_shift) == along
        && command.rows == smaller(17'd1 << target.row_shift, bounds.row1 - command.row)
        && command.cols == smaller(17'd1 << target.col_shift, bounds.col1 - command.col));
    command_as_mapped :
    assert (command.context_ == count.context_ && command.epoch == count.epoch && command.dtype == count.dtype
        && command.op == bounds.op && command.peer == bounds.peer && command.base == source.base
        && command.pitch == source.pitch && command.peer_base == target.peer_base
        && {command.reserved, command.reserved2, command.reserved3} == 0);
    command_tells_its_tiles :
    assert (command.tile_rows == blocks.tile_rows && command.wavefront_rows == blocks.wavefront_rows
        && command.tile_lines == blocks.tile_lines
        && command.last_rows == (last_row ? blocks.last_rows : blocks.tile_rows)
        && command.last_lines == (last_col ? blocks.last_lines : blocks.tile_lines)
        && command.bottom == (last_row && blocks.bottom) && command.right == (last_col && blocks.right));
    command_once :
    assert (!given.exists(block));
    command_after_chunk :
    assert (!command.by_chunk || lines_of_chunk() >= 64'(count.expected));
    command_after_tiles :
    assert (command.by_chunk || complete_tiles() >= tiles_of_block());
    command_within_credits :
    assert (quotas[command.context_].credits == NO_CREDIT_LIMIT
        || outstanding[command.context_] < 16'(quotas[command.context_].credits));
    given[block] = 1;
    outstanding[command.context_] += 1;
  endtask

  // Blocks of the context's descriptors may be given again.
  task automatic forget(logic [3:0] whose);
    began[whose] = cycle;
    foreach (given[block]) if (descriptor_context(block[29:24]) == whose) given.delete(block);
  endtask

  function automatic logic [3:0] descriptor_context(logic [5:0] number);
    chunk_count_t word = chunk_count_t'(descriptors[number][1][$bits(chunk_count_t)-1:0]);
    return word.context_;
  endfunction

  logic waiting;  // the command at the port has been judged
  always @(posedge clk) begin
    cycle = cycle + 1;
    if (rst || disarm) begin
      tally.delete();
      given.delete();
      accepted = 0;
      waiting = 0;
      aborted = disarm && control.forced;
      for (int c = 0; c < 16; c++) outstanding[c] = 0;
    end else begin
      if (command_valid && !waiting) judge();
      waiting = command_valid && !command_ready;
      if (command_done_valid) begin
        dma_reports_its_commands :
        assume (outstanding[command_done] > 0);
        if (outstanding[command_done] > 0) outstanding[command_done] -= 1;
      end
      for (int s = 0; s < SLICES; s++) if (counted_valid[s]) count_access(counted[s]);
      if (arm || abort) forget(control.context_);
      if (abort) aborted = 1;
    end
  end

  task automatic count_access(memory_request_t access);
    tile_t tile = '{access.context_, access.epoch, access.row, access.col, access.wf};
    int unsigned lines = 32'(access.length) + 1;
    tally[tile] = '{lines_of(tile) + lines, cycle, access.bottom, access.right};
    accepted += 48'(lines);
  endtask

  default clocking @(posedge clk);
  endclocking
  default disable iff (rst);

  updates_not_doubled :
  assert property (updates <= accepted);
  updates_not_lost :
  assert property (idle && !unmatched && !aborted |-> updates == accepted);
endmodule
