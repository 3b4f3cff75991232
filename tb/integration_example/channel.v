// Example of one memory channel around the T3 hardware: buffers for write data before the slice, a
// DRAM queue and a small memory behind it, and one NMC unit at the memory. Accesses are served in the order in which
// the slice gives them, and the lines of a burst in their order, so accesses to one line are never reordered. One line
// every two cycles, as its data take.

module channel (
    input          clk,
    input          rst,
    // GPU stores and incoming updates: length and bits 95:0 of a MemoryRequest, and the data of up to eight lines
    input          store_valid,
    output         store_ready,
    input  [98:0]  store_item,
    input  [2047:0] store_data,
    input          update_valid,
    output         update_ready,
    input  [98:0]  update_item,
    input  [2047:0] update_data,
    // to the slice: the access with a tag, which names the place of the data
    output         compute_write_valid,
    input          compute_write_ready,
    output [127:0] compute_write,
    output         comm_write_valid,
    input          comm_write_ready,
    output [127:0] comm_write,
    // from the slice
    input          dram_valid,
    output         dram_ready,
    input  [127:0] dram,
    output [6:0]   occupancy,
    output         update_done_valid,
    output [127:0] update_done,
    input          compute_refused_valid,
    input  [127:0] compute_refused,
    input          comm_refused_valid,
    input  [127:0] comm_refused,
    input          compute_stale_valid,
    input  [127:0] compute_stale,
    input          comm_stale_valid,
    input  [127:0] comm_stale,
    // answers to reads, a line at a time, in the order in which the slice let them through
    output         answer_valid,
    output [255:0] answer,
    // exceptions of the NMC unit in this cycle
    output [4:0]   flags,
    output         nmc_uncorrectable
);
    localparam READ = 3'd0;

    // Payloads are 0 while `valid` is 0: registers with a parity (`protect`) must take no unknown bits.

    // Write data, eight places for each of the two write ports: tag = {port, place}. A place is taken in turn, and free
    // again when all lines of its write are done, or when it is refused.
    reg [2047:0] data [0:15];
    reg [15:0]  busy;
    reg [2:0]   store_place, update_place;

    wire [3:0] store_tag = {1'b0, store_place};
    wire [3:0] update_tag = {1'b1, update_place};
    assign compute_write_valid = store_valid && !busy[store_tag];
    assign compute_write = {128{store_valid}} & {store_item[98:96], 25'b0, store_tag, store_item[95:0]};
    assign store_ready = compute_write_ready && !busy[store_tag];
    assign comm_write_valid = update_valid && !busy[update_tag];
    assign comm_write = {128{update_valid}} & {update_item[98:96], 25'b0, update_tag, update_item[95:0]};
    assign update_ready = comm_write_ready && !busy[update_tag];

    // The DRAM queue: sixteen lines. It is ready when it has room for the longest burst, and serves the first one line
    // by line: `part` of them are done.
    reg [127:0] queue [0:15];
    reg [3:0]   first, last;
    reg [4:0]   bursts, lines;
    reg [2:0]   part;
    reg         pace;
    wire [127:0] head = queue[first];
    wire        request_valid = bursts != 0 && pace;
    wire        request_ready;
    wire        serve = request_valid && request_ready;
    wire        last_part = part == head[127:125];
    wire        pop = serve && last_part;
    wire        push = dram_valid && dram_ready;
    assign dram_ready = lines <= 8;
    assign occupancy = {2'b0, lines};

    // NmcRequest: line, op, dtype, reserved, mask, tag, data. Bit 31 of the tag: the requester wants an answer; bit 30:
    // the last line of a burst.
    wire         read = head[41:39] == READ;
    wire [31:0]  tag = {read, last_part, 26'b0, head[99:96]};
    wire [38:0]  line_now = {head[38:3], head[2:0] + part};
    wire [255:0] data_now = read ? 256'b0 : data[head[99:96]][256 * part +: 256];
    wire [383:0] request = {384{request_valid}} &
        {data_now, tag, 32'hffffffff, 20'b0, head[43:42], head[41:39], line_now};

    wire         memory_read, memory_write, done_valid;
    wire [38:0]  read_line, write_line;
    wire [255:0] write_data, done_data;
    wire [31:0]  write_mask, done_tag;
    wire [4:0]   done_flags;
    reg  [255:0] read_data;

    t3_nmc nmc (
        .clk(clk), .rst(rst),
        .request__valid(request_valid), .request__ready(request_ready), .request__payload(request),
        .read_valid(memory_read), .read_line(read_line), .read_data(read_data),
        .write_valid(memory_write), .write_line(write_line), .write_data(write_data), .write_mask(write_mask),
        .done_valid(done_valid), .done_tag(done_tag), .done_data(done_data), .done_flags(done_flags),
        .uncorrectable(nmc_uncorrectable),
        .idle(), .wake_at()
    );

    assign answer_valid = done_valid && done_tag[31];
    assign answer = done_data;
    assign flags = done_valid ? done_flags : 5'b0;

    // What the slice gave, until it is done: for count_on = performed one report of each write, after its last line.
    reg [127:0]  given [0:15];
    wire         written = done_valid && !done_tag[31] && done_tag[30];
    assign update_done_valid = written;
    assign update_done = {128{written}} & given[done_tag[3:0]];

    // 64 lines: lines of 256 bytes stay together, four channels take turns.
    reg [255:0] memory [0:63];
    wire [5:0]  read_place = {read_line[7:5], read_line[2:0]};
    wire [5:0]  write_place = {write_line[7:5], write_line[2:0]};
    integer     line, lane;
    initial for (line = 0; line < 64; line = line + 1) memory[line] = {8{32'hdead0000 + line}};

    always @(posedge clk) begin
        if (rst) read_data <= 256'b0;
        else if (memory_read) read_data <= memory[read_place];
        if (memory_write)
            for (lane = 0; lane < 32; lane = lane + 1)
                if (write_mask[lane]) memory[write_place][8 * lane +: 8] <= write_data[8 * lane +: 8];
    end

    always @(posedge clk) begin
        if (store_valid && store_ready) begin
            data[store_tag] <= store_data;
            busy[store_tag] <= 1'b1;
            store_place <= store_place + 3'd1;
        end
        if (update_valid && update_ready) begin
            data[update_tag] <= update_data;
            busy[update_tag] <= 1'b1;
            update_place <= update_place + 3'd1;
        end
        if (written) busy[done_tag[3:0]] <= 1'b0;
        if (compute_refused_valid) busy[compute_refused[99:96]] <= 1'b0;
        if (comm_refused_valid) busy[comm_refused[99:96]] <= 1'b0;
        if (compute_stale_valid) busy[compute_stale[99:96]] <= 1'b0;
        if (comm_stale_valid) busy[comm_stale[99:96]] <= 1'b0;

        if (push) begin
            queue[last] <= dram;
            last <= last + 4'd1;
            if (dram[41:39] != READ) given[dram[99:96]] <= dram;
        end
        if (pop) first <= first + 4'd1;
        if (serve) part <= last_part ? 3'd0 : part + 3'd1;
        bursts <= bursts + {4'b0, push} - {4'b0, pop};
        lines <= lines + (push ? {2'b0, dram[127:125]} + 5'd1 : 5'd0) - {4'b0, serve};
        pace <= !serve;

        if (rst) begin
            busy <= 16'b0;
            store_place <= 3'd0;
            update_place <= 3'd0;
            first <= 4'd0;
            last <= 4'd0;
            bursts <= 5'd0;
            lines <= 5'd0;
            part <= 3'd0;
            pace <= 1'b0;
        end
    end
endmodule
