// The memory controller of a small GPU around the T3 hardware, preset `small`: egress matcher, four channels, and a
// port each for GPU stores, for updates that come over the link, and for the reads of the DMA engine. GPU reads are
// left out. A line's channel is bits 4:3 of its address, so all lines of a burst are in one channel. `now` counts cycles.

module memory_controller (
    input          clk,
    input          rst,
    // registers
    input  [15:0]  axi_awaddr,
    input  [2:0]   axi_awprot,
    input          axi_awvalid,
    output         axi_awready,
    input  [63:0]  axi_wdata,
    input  [7:0]   axi_wstrb,
    input          axi_wvalid,
    output         axi_wready,
    output [1:0]   axi_bresp,
    output         axi_bvalid,
    input          axi_bready,
    input  [15:0]  axi_araddr,
    input  [2:0]   axi_arprot,
    input          axi_arvalid,
    output         axi_arready,
    output [63:0]  axi_rdata,
    output [1:0]   axi_rresp,
    output         axi_rvalid,
    input          axi_rready,
    output         interrupt,
    // stores of the GPU and updates from the link: length and bits 95:0 of a MemoryRequest, and the data of up to eight
    // lines, the first one lowest
    input          store_valid,
    output         store_ready,
    input  [98:0]  store_item,
    input  [2047:0] store_data,
    input          update_valid,
    output         update_ready,
    input  [98:0]  update_item,
    input  [2047:0] update_data,
    // stores that leave for another GPU
    output         packet_valid,
    input          packet_ready,
    output [7:0]   packet_peer,
    output [98:0]  packet_item,
    output [2047:0] packet_data,
    // DMA engine: commands, reads (one burst at a time; an answer for each of its lines), and what is done
    output         command_valid,
    input          command_ready,
    output [230:0] command,
    input          command_done_valid,
    input  [3:0]   command_done,
    input          read_valid,
    output         read_ready,
    input  [38:0]  read_line,
    input  [2:0]   read_length,
    output         answer_valid,
    output [255:0] answer,
    // a refused write of each channel: an error for whoever made it
    output [3:0]   refused
);
    reg [47:0] now;
    always @(posedge clk) now <= rst ? 48'd0 : now + 48'd1;

    // Egress: four bursts wait with their data for the matcher's answer, which comes in their order.
    reg  [98:0]  items [0:3];
    reg  [2047:0] datas [0:3];
    reg  [1:0]   first, last;
    reg  [2:0]   waiting;
    wire         match_ready, route_valid, route_ready;
    wire [57:0]  route;
    wire         remote = route[40];
    wire [98:0]  item = items[first];
    wire [1:0]   here = route[4:3];
    wire         match_valid = store_valid && waiting != 4;
    wire         enter = match_valid && match_ready;
    wire         leave = route_valid && route_ready;
    wire [3:0]   local_valid, local_ready;
    assign store_ready = match_ready && waiting != 4;
    assign route_ready = remote ? packet_ready : local_ready[here];
    assign packet_valid = route_valid && remote;
    assign packet_peer = route[57:50];
    assign packet_item = {item[98:42], route[49:47], route[38:0]};
    assign packet_data = datas[first];
    assign local_valid = route_valid && !remote ? 4'b0001 << here : 4'b0000;

    always @(posedge clk) begin
        if (enter) begin
            items[last] <= store_item;
            datas[last] <= store_data;
            last <= last + 2'd1;
        end
        if (leave) first <= first + 2'd1;
        waiting <= waiting + {2'b0, enter} - {2'b0, leave};
        if (rst) begin
            first <= 2'd0;
            last <= 2'd0;
            waiting <= 3'd0;
        end
    end

    // Channels.
    wire [3:0]   compute_write_valid, compute_write_ready, comm_write_valid, comm_write_ready;
    wire [3:0]   comm_read_valid, comm_read_ready, dram_valid, dram_ready, update_readies, answers;
    wire [3:0]   compute_refused_valid, comm_refused_valid, compute_stale_valid, comm_stale_valid;
    wire [127:0] compute_write [0:3];
    wire [127:0] comm_write [0:3];
    wire [127:0] comm_read [0:3];
    wire [127:0] dram [0:3];
    wire [127:0] compute_refused [0:3];
    wire [127:0] comm_refused [0:3];
    wire [127:0] compute_stale [0:3];
    wire [127:0] comm_stale [0:3];
    wire [6:0]   occupancy [0:3];
    wire [3:0]   update_done_valid;
    wire [127:0] update_done [0:3];
    wire [255:0] answered [0:3];
    wire [4:0]   flags [0:3];
    wire [3:0]   nmc_uncorrectable;

    genvar n;
    generate
        for (n = 0; n < 4; n = n + 1) begin : channels
            assign comm_read_valid[n] = read_valid && read_line[4:3] == n;
            assign comm_read[n] = {128{comm_read_valid[n]}} & {read_length, 86'b0, read_line};
            channel channel (
                .clk(clk), .rst(rst),
                .store_valid(local_valid[n]), .store_ready(local_ready[n]), .store_item(item),
                .store_data(datas[first]),
                .update_valid(update_valid && update_item[4:3] == n), .update_ready(update_readies[n]),
                .update_item(update_item), .update_data(update_data),
                .compute_write_valid(compute_write_valid[n]), .compute_write_ready(compute_write_ready[n]),
                .compute_write(compute_write[n]),
                .comm_write_valid(comm_write_valid[n]), .comm_write_ready(comm_write_ready[n]),
                .comm_write(comm_write[n]),
                .dram_valid(dram_valid[n]), .dram_ready(dram_ready[n]), .dram(dram[n]), .occupancy(occupancy[n]),
                .update_done_valid(update_done_valid[n]), .update_done(update_done[n]),
                .compute_refused_valid(compute_refused_valid[n]), .compute_refused(compute_refused[n]),
                .comm_refused_valid(comm_refused_valid[n]), .comm_refused(comm_refused[n]),
                .compute_stale_valid(compute_stale_valid[n]), .compute_stale(compute_stale[n]),
                .comm_stale_valid(comm_stale_valid[n]), .comm_stale(comm_stale[n]),
                .answer_valid(answers[n]), .answer(answered[n]), .flags(flags[n]),
                .nmc_uncorrectable(nmc_uncorrectable[n])
            );
        end
    endgenerate
    assign update_ready = update_readies[update_item[4:3]];
    assign read_ready = comm_read_ready[read_line[4:3]];
    assign answer_valid = |answers;
    assign answer = answers[0] ? answered[0] : answers[1] ? answered[1] : answers[2] ? answered[2] : answered[3];
    assign refused = compute_refused_valid | comm_refused_valid | compute_stale_valid | comm_stale_valid;

    t3_unit unit (
        .clk(clk), .rst(rst), .now(now),
        .axi_awaddr(axi_awaddr), .axi_awprot(axi_awprot), .axi_awvalid(axi_awvalid), .axi_awready(axi_awready),
        .axi_wdata(axi_wdata), .axi_wstrb(axi_wstrb), .axi_wvalid(axi_wvalid), .axi_wready(axi_wready),
        .axi_bresp(axi_bresp), .axi_bvalid(axi_bvalid), .axi_bready(axi_bready),
        .axi_araddr(axi_araddr), .axi_arprot(axi_arprot), .axi_arvalid(axi_arvalid), .axi_arready(axi_arready),
        .axi_rdata(axi_rdata), .axi_rresp(axi_rresp), .axi_rvalid(axi_rvalid), .axi_rready(axi_rready),
        .store__0__valid(match_valid), .store__0__ready(match_ready), .store__0__payload({128{match_valid}} & {store_item[98:96], 29'b0, store_item[95:0]}),
        .route__0__valid(route_valid), .route__0__ready(route_ready), .route__0__payload(route),
        .command__valid(command_valid), .command__ready(command_ready), .command__payload(command),
        .command_done_valid(command_done_valid), .command_done({4{command_done_valid}} & command_done),
        .nmc_flags(flags[0] | flags[1] | flags[2] | flags[3]), .nmc_uncorrectable(|nmc_uncorrectable),
        .compute_write__0__valid(compute_write_valid[0]), .compute_write__0__ready(compute_write_ready[0]),
        .compute_write__0__payload(compute_write[0]),
        .comm_write__0__valid(comm_write_valid[0]), .comm_write__0__ready(comm_write_ready[0]),
        .comm_write__0__payload(comm_write[0]),
        .comm_read__0__valid(comm_read_valid[0]), .comm_read__0__ready(comm_read_ready[0]),
        .comm_read__0__payload(comm_read[0]),
        .compute_read__0__valid(1'b0), .compute_read__0__ready(), .compute_read__0__payload(128'b0),
        .dram__0__valid(dram_valid[0]), .dram__0__ready(dram_ready[0]), .dram__0__payload(dram[0]),
        .compute_refused_valid__0(compute_refused_valid[0]), .compute_refused__0(compute_refused[0]),
        .comm_refused_valid__0(comm_refused_valid[0]), .comm_refused__0(comm_refused[0]),
        .compute_stale_valid__0(compute_stale_valid[0]), .compute_stale__0(compute_stale[0]),
        .comm_stale_valid__0(comm_stale_valid[0]), .comm_stale__0(comm_stale[0]),
        .occupancy__0(occupancy[0]), .update_done_valid__0(update_done_valid[0]), .update_done__0(update_done[0]),
        .compute_write__1__valid(compute_write_valid[1]), .compute_write__1__ready(compute_write_ready[1]),
        .compute_write__1__payload(compute_write[1]),
        .comm_write__1__valid(comm_write_valid[1]), .comm_write__1__ready(comm_write_ready[1]),
        .comm_write__1__payload(comm_write[1]),
        .comm_read__1__valid(comm_read_valid[1]), .comm_read__1__ready(comm_read_ready[1]),
        .comm_read__1__payload(comm_read[1]),
        .compute_read__1__valid(1'b0), .compute_read__1__ready(), .compute_read__1__payload(128'b0),
        .dram__1__valid(dram_valid[1]), .dram__1__ready(dram_ready[1]), .dram__1__payload(dram[1]),
        .compute_refused_valid__1(compute_refused_valid[1]), .compute_refused__1(compute_refused[1]),
        .comm_refused_valid__1(comm_refused_valid[1]), .comm_refused__1(comm_refused[1]),
        .compute_stale_valid__1(compute_stale_valid[1]), .compute_stale__1(compute_stale[1]),
        .comm_stale_valid__1(comm_stale_valid[1]), .comm_stale__1(comm_stale[1]),
        .occupancy__1(occupancy[1]), .update_done_valid__1(update_done_valid[1]), .update_done__1(update_done[1]),
        .compute_write__2__valid(compute_write_valid[2]), .compute_write__2__ready(compute_write_ready[2]),
        .compute_write__2__payload(compute_write[2]),
        .comm_write__2__valid(comm_write_valid[2]), .comm_write__2__ready(comm_write_ready[2]),
        .comm_write__2__payload(comm_write[2]),
        .comm_read__2__valid(comm_read_valid[2]), .comm_read__2__ready(comm_read_ready[2]),
        .comm_read__2__payload(comm_read[2]),
        .compute_read__2__valid(1'b0), .compute_read__2__ready(), .compute_read__2__payload(128'b0),
        .dram__2__valid(dram_valid[2]), .dram__2__ready(dram_ready[2]), .dram__2__payload(dram[2]),
        .compute_refused_valid__2(compute_refused_valid[2]), .compute_refused__2(compute_refused[2]),
        .comm_refused_valid__2(comm_refused_valid[2]), .comm_refused__2(comm_refused[2]),
        .compute_stale_valid__2(compute_stale_valid[2]), .compute_stale__2(compute_stale[2]),
        .comm_stale_valid__2(comm_stale_valid[2]), .comm_stale__2(comm_stale[2]),
        .occupancy__2(occupancy[2]), .update_done_valid__2(update_done_valid[2]), .update_done__2(update_done[2]),
        .compute_write__3__valid(compute_write_valid[3]), .compute_write__3__ready(compute_write_ready[3]),
        .compute_write__3__payload(compute_write[3]),
        .comm_write__3__valid(comm_write_valid[3]), .comm_write__3__ready(comm_write_ready[3]),
        .comm_write__3__payload(comm_write[3]),
        .comm_read__3__valid(comm_read_valid[3]), .comm_read__3__ready(comm_read_ready[3]),
        .comm_read__3__payload(comm_read[3]),
        .compute_read__3__valid(1'b0), .compute_read__3__ready(), .compute_read__3__payload(128'b0),
        .dram__3__valid(dram_valid[3]), .dram__3__ready(dram_ready[3]), .dram__3__payload(dram[3]),
        .compute_refused_valid__3(compute_refused_valid[3]), .compute_refused__3(compute_refused[3]),
        .comm_refused_valid__3(comm_refused_valid[3]), .comm_refused__3(comm_refused[3]),
        .compute_stale_valid__3(compute_stale_valid[3]), .compute_stale__3(compute_stale[3]),
        .comm_stale_valid__3(comm_stale_valid[3]), .comm_stale__3(comm_stale[3]),
        .occupancy__3(occupancy[3]), .update_done_valid__3(update_done_valid[3]), .update_done__3(update_done[3]),
        // What this controller has no use for: software reads the registers, and the clock is never stopped.
        .init_done(), .armed(), .live(), .chunks_done(), .done_mask(), .quiet(), .entries(), .threshold(), .chosen(),
        .context__0(), .context__1(), .idle(), .wake_at(), .interrupt(interrupt)
    );
endmodule
