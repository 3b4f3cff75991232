// Plays one tiled output through memory_controller.v as software, GPU, neighbour and DMA engine, knowing the hardware
// from docs/guides/integration.md and docs/reference/registers.md alone. Prints PASS, or FAIL with the reason.
//
// Output: 7 rows of 80 FP16 numbers (5 lines), pitch 8 lines, tiles of 4 rows x 2 lines, two wavefronts of 2 rows each:
// 2 x 3 tiles, short at the bottom and at the right. Tile column 0 is reduced elsewhere (REMOTE), 1 gets its second
// addend here and is then sent on, a tile at a time (DMA), 2 is reduced here (LOCAL). Numbers are multiples of 1/4. The
// GPU stores a row of a tile as one burst, in every third row of the output line by line, the neighbour likewise in every
// other row; the DMA engine reads bursts.
//
// +seed=N: another order and other gaps. Faults, in what store number N (0 to 16) brings to the channels:
// +lose=N not made, +repeat=N made twice, +corrupt=N wrong data.

module bench;
    localparam ID = 16'h0000, CONTROL = 16'h2000, STATUS = 16'h0010, IRQ_STATUS = 16'h0058,
               IRQ_ENABLE = 16'h0060, ERRORS = 16'h0068, VIOLATIONS = 16'h0078, UPDATES = 16'h00a8, TILES = 16'h00b0,
               TRIGGERS = 16'h00b8, RANGE = 16'h0100, CONTEXT = 16'h0280, PROFILE = 16'h0400, DESCRIPTOR = 16'h1000;
    localparam STORE = 3'd1, ADD = 3'd2, FP16 = 2'd0, REMOTE = 2'd1, DMA = 2'd2, LOCAL = 2'd3;
    localparam [38:0] BASE = 64, PITCH = 8, PEER_BASE = 4096;
    localparam [7:0] EPOCH = 1;
    localparam [7:0] PEER = 3;

    reg          clk = 0, rst = 1;
    wire [15:0]  awaddr, araddr;
    wire [63:0]  wdata, rdata;
    wire [1:0]   bresp, rresp;
    wire         awvalid, awready, wvalid, wready, bvalid, arvalid, arready, rvalid, interrupt;
    reg          store_valid = 0, update_valid = 0, read_valid = 0, command_ready = 0, command_done_valid = 0;
    reg  [98:0]  store_item = 0, update_item = 0;
    reg  [2047:0] store_data = 0, update_data = 0;
    reg  [2:0]   read_length = 0;
    reg  [38:0]  read_line = 0;
    wire         store_ready, update_ready, read_ready, packet_valid, command_valid, answer_valid;
    wire [7:0]   packet_peer;
    wire [98:0]  packet_item;
    wire [2047:0] packet_data;
    wire [255:0] answer;
    wire [230:0] command;
    wire [3:0]   refused;

    memory_controller controller (
        .clk(clk), .rst(rst), .interrupt(interrupt),
        .axi_awaddr(awaddr), .axi_awprot(3'b001), .axi_awvalid(awvalid), .axi_awready(awready),
        .axi_wdata(wdata), .axi_wstrb(8'hff), .axi_wvalid(wvalid), .axi_wready(wready),
        .axi_bresp(bresp), .axi_bvalid(bvalid), .axi_bready(1'b1),
        .axi_araddr(araddr), .axi_arprot(3'b001), .axi_arvalid(arvalid), .axi_arready(arready),
        .axi_rdata(rdata), .axi_rresp(rresp), .axi_rvalid(rvalid), .axi_rready(1'b1),
        .store_valid(store_valid), .store_ready(store_ready), .store_item(store_item), .store_data(store_data),
        .update_valid(update_valid), .update_ready(update_ready), .update_item(update_item), .update_data(update_data),
        .packet_valid(packet_valid), .packet_ready(1'b1), .packet_peer(packet_peer), .packet_item(packet_item),
        .packet_data(packet_data),
        .command_valid(command_valid), .command_ready(command_ready), .command(command),
        .command_done_valid(command_done_valid), .command_done(command[9:6]),
        .read_valid(read_valid), .read_ready(read_ready), .read_line(read_line),
        .read_length(read_length),
        .answer_valid(answer_valid), .answer(answer), .refused(refused)
    );

    host host (
        .clk(clk), .awaddr(awaddr), .awvalid(awvalid), .awready(awready), .wdata(wdata), .wvalid(wvalid),
        .wready(wready), .bresp(bresp), .bvalid(bvalid), .araddr(araddr), .arvalid(arvalid), .arready(arready),
        .rdata(rdata), .rresp(rresp), .rvalid(rvalid)
    );

    always #5 clk = !clk;

    integer seed, lose, repeated, corrupt, errors = 0, refusals = 0, stores = 0;
    integer commands [0:1];

    task check(input good, input [8 * 40 - 1:0] what);
        if (good !== 1'b1) begin  // neither 0 nor x
            $display("%0t: %0s", $time, what);
            errors = errors + 1;
        end
    endtask

    task finish;
        begin
            errors = errors + host.errors;
            if (errors == 0) $display("PASS");
            else $display("FAIL: %0d checks", errors);
            $finish;
        end
    endtask

    initial begin
        #40000;
        check(0, "not complete in 4000 cycles");
        finish;
    end

    `include "matrix.vh"

    task gap;
        while ($random(seed) & 1) @(negedge clk);
    endtask

    task store(input [98:0] what, input [2047:0] bytes);
        begin
            store_item = what;
            store_data = bytes;
            store_valid = 1;
            #1;
            while (!store_ready) @(negedge clk) #1;
            @(negedge clk) store_valid = 0;
        end
    endtask

    task update(input integer row, input integer part, input integer lines);
        begin
            update_item = item(row, part, lines, ADD, 1'b1, 4'd0, 8'd1);
            update_data = burst_data(row, part, lines, 2);
            update_valid = 1;
            #1;
            while (!update_ready) @(negedge clk) #1;
            @(negedge clk) update_valid = 0;
        end
    endtask

    task fetch(input integer row, input integer part, input integer lines, input [8 * 40 - 1:0] what);
        integer seen;
        begin
            read_line = line_of(row, part);
            read_length = lines - 1;
            read_valid = 1;
            #1;
            while (!read_ready) @(negedge clk) #1;
            @(negedge clk) read_valid = 0;
            for (seen = 0; seen < lines; seen = seen + 1) begin
                while (!answer_valid) @(negedge clk);
                check(answer == line_data(row, part + seen, 3), what);
                @(negedge clk);
            end
        end
    endtask

    // Software.
    task describe(input integer index, input [11:0] col, input [1:0] kind, input [7:0] addends, input [31:0] expected,
                  input [3:0] row_shift, input [3:0] row_blocks_log, input [5:0] last_block_row, input [15:0] tiles);
        reg [15:0] at;
        begin
            at = DESCRIPTOR + 16'h40 * index;
            host.write(at, {PEER, ADD, kind, col + 12'd1, col, 12'd2, 12'd0});
            host.write(at + 16'h08, {FP16, EPOCH, 4'd0, addends, expected});
            host.write(at + 16'h10, {PITCH[15:0], BASE});
            host.write(at + 16'h18, {row_blocks_log, 4'd0, row_shift, PEER_BASE});
            host.write(at + 16'h20, {4{tiles}});
            host.write(at + 16'h28, last_block_row);
        end
    endtask

    task configure;
        begin
            host.write(RANGE, BASE);
            host.write(RANGE + 16'h08, BASE + 6 * PITCH + 5);
            host.write(RANGE + 16'h10, {FP16, ADD, EPOCH, 4'd0, 1'b1});
            host.write(PROFILE + 8 * 0, 4);  // lines of a wavefront's tile: inside
            host.write(PROFILE + 8 * 1, 4);
            host.write(PROFILE + 8 * 16, 2);  // right
            host.write(PROFILE + 8 * 17, 2);
            host.write(PROFILE + 8 * 32, 4);  // bottom
            host.write(PROFILE + 8 * 33, 2);
            host.write(PROFILE + 8 * 48, 2);  // both
            host.write(PROFILE + 8 * 49, 1);
            describe(0, 0, REMOTE, 0, 0, 1, 0, 0, 0);
            describe(1, 1, DMA, 2, 7 * 2 * 2, 0, 1, 1, 2);
            describe(2, 2, LOCAL, 2, 7 * 1 * 2, 1, 0, 0, 4);
            host.write(IRQ_ENABLE, 1);
            host.write(CONTROL, 3 << 2 | 1);
            host.read(CONTEXT);
            while (host.value[8:2] != host.value[15:9]) host.read(CONTEXT);  // until every descriptor is live
        end
    endtask

    // The GPU: all rows of tiles in some order, and two stores that must change nothing: one of another context's
    // program, and one that goes on behind the end of the output.
    task play_gpu;
        integer i, step, row, tile_col, lines, part;
        reg [98:0] made;
        reg [2047:0] wrong;
        begin
            step = (seed & 1) ? 1 : 2 + (seed & 2);  // 1, 2 or 4: none divides 21
            for (i = 0; i < 21; i = i + 1) begin
                row = i * step % 21 / 3;
                tile_col = i * step % 21 % 3;
                lines = row % 3 == 0 ? 1 : lines_of(tile_col);
                for (part = 2 * tile_col; part < 2 * tile_col + lines_of(tile_col); part = part + lines) begin
                    gap;
                    made = item(row, part, lines, STORE, 1'b1, 4'd0, 8'd0);
                    if (tile_col == 0) store(made, burst_data(row, part, lines, 1));
                    else begin
                        wrong = stores == corrupt ? 2048'h0400 : 2048'h0;
                        if (stores != lose) store(made, burst_data(row, part, lines, 1) ^ wrong);
                        if (stores == repeated) store(made, burst_data(row, part, lines, 1));
                        stores = stores + 1;
                    end
                end
                if (i == 10) store(item(6, 4, 1, STORE, 1'b1, 4'd1, 8'd0), 2048'd0);
                if (i == 11) store(item(6, 4, 2, STORE, 1'b1, 4'd0, 8'd0), 2048'd0);
            end
        end
    endtask

    task play_neighbour;
        integer i, row, tile_col, lines, part;
        for (i = 0; i < 14; i = i + 1) begin
            row = i * 5 % 14 / 2;
            tile_col = 1 + i * 5 % 14 % 2;
            lines = row % 2 == 0 ? 1 : lines_of(tile_col);
            for (part = 2 * tile_col; part < 2 * tile_col + lines_of(tile_col); part = part + lines) begin
                gap;
                update(row, part, lines);
            end
        end
    endtask

    initial begin: program_
        integer row;
        if (!$value$plusargs("seed=%d", seed)) seed = 1;
        if (!$value$plusargs("lose=%d", lose)) lose = -1;
        if (!$value$plusargs("repeat=%d", repeated)) repeated = -1;
        if (!$value$plusargs("corrupt=%d", corrupt)) corrupt = -1;
        repeat (3) @(negedge clk);
        rst = 0;
        @(negedge clk);
        host.read(STATUS);
        while (!host.value[0]) host.read(STATUS);
        host.read(ID);
        check(host.value == 64'h54330005, "ID");
        for (row = 0; row < 7; row = row + 1)  // +0 before it is armed, in whole blocks
            store(item(row, 0, 8, STORE, 1'b0, 4'd0, 8'd0), 2048'd0);
        configure;
        fork
            play_gpu;
            play_neighbour;
        join
        while (!interrupt) @(negedge clk);
        host.read(CONTEXT);
        check(host.value[1:0] == 3, "complete");
        while (host.value[51:36] != 0) host.read(CONTEXT);
        host.write(IRQ_STATUS, 64'hff);
        check(!interrupt, "the interrupt is cleared");
        repeat (200) @(negedge clk);  // would show a second command
        for (row = 0; row < 7; row = row + 1) fetch(row, 2, 3, "a sum in memory");
        check(commands[0] == 1 && commands[1] == 1, "one command for each block");
        check(&left, "every line of the remote chunk left");
        check(refusals == 2, "two refused writes");
        host.read(VIOLATIONS);
        check(host.value == 2, "VIOLATIONS");
        host.read(ERRORS);
        check(host.value == 16, "ERRORS");
        host.read(UPDATES);
        check(host.value == 42, "UPDATES");
        host.read(TILES);
        check(host.value == 8, "TILES");
        host.read(TRIGGERS);
        check(host.value == 2, "TRIGGERS");
        finish;
    end

    // What leaves for the other GPU: own numbers of tile column 0, each line once, at its place there.
    reg [13:0] left = 0;
    always @(posedge clk) if (!rst && packet_valid) begin: packet
        integer row, part, line;
        row = (packet_item[38:0] - PEER_BASE) / PITCH;
        check(packet_peer == PEER && packet_item[41:39] == ADD, "a packet's peer or operation");
        for (line = 0; line <= packet_item[98:96]; line = line + 1) begin
            part = (packet_item[38:0] - PEER_BASE) % PITCH + line;
            check(row < 7 && part < 2 && !left[2 * row + part], "a packet's line");
            check(packet_data[256 * line +: 256] == line_data(row, part, 1), "a packet's data");
            left[2 * row + part] = 1;
        end
    end

    always @(posedge clk) if (!rst) refusals = refusals + refused[0] + refused[1] + refused[2] + refused[3];

    // DMA engine: one command at a time, tile by tile; reads what it would send, and gives the credit back.
    initial begin: dma
        integer row, height, tile;
        commands[0] = 0;
        commands[1] = 0;
        forever begin
            @(negedge clk);
            while (!command_valid) @(negedge clk);
            tile = command[43:32];
            check(command[55:44] == 1 && tile < 2 && command[75:64] == 1 && command[87:76] == 1, "a command's block");
            check(command[166:128] == BASE && command[103:88] == PITCH, "a command's place");
            check(command[230:192] == PEER_BASE && command[25:18] == PEER, "a command's target");
            check(command[28:26] == ADD && command[30:29] == FP16, "a command's operation");
            commands[tile] = commands[tile] + 1;
            height = tile == 0 ? 4 : 3;
            for (row = 4 * tile; row < 4 * tile + height; row = row + 1) fetch(row, 2, 2, "a sum in a command's block");
            command_ready = 1;
            command_done_valid = 1;
            @(negedge clk);
            command_ready = 0;
            command_done_valid = 0;
        end
    end
endmodule
