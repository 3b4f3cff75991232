// Rules of a stream: once valid, it stays valid, with the same payload, until it is taken.
// A stream into the hardware is assumed to keep them, a stream out of it must.
module t3_stream_rules #(
    parameter int unsigned BITS = 1,
    parameter bit INPUT = 0
) (
    input wire clk,
    input wire rst,
    input wire drop,  // a disarm, which drops what waits inside
    input wire valid,
    input wire ready,
    input wire [BITS-1:0] payload
);
  default clocking @(posedge clk);
  endclocking
  default disable iff (rst);

  if (INPUT) begin : g_environment
    stream_input_held :
    assume property (valid && !ready |=> valid && $stable(payload));
  end else begin : g_hardware
    stream_output_held :
    assert property (valid && !ready && !drop |=> valid && $stable(payload));
  end
  stream_known :
  assert property (!$isunknown({valid, ready}) && !(valid && $isunknown(payload)));
endmodule

// While `idle`, without input and before `wake_at`, nothing changes that can be seen (invariant 5).
module t3_idle_rules #(
    parameter int unsigned INPUT_BITS = 1,
    parameter int unsigned OUTPUT_BITS = 1
) (
    input wire clk,
    input wire rst,
    input wire idle,
    input wire wake,  // `now` has reached `wake_at`
    input wire moving,  // a stream transfers, or a pulse comes in
    input wire [INPUT_BITS-1:0] inputs,  // all but the time
    input wire [OUTPUT_BITS-1:0] outputs
);
  default clocking @(posedge clk);
  endclocking
  default disable iff (rst);

  idle_changes_nothing :
  assert property (idle && !wake && !moving && $stable(inputs) |=> $stable(outputs));
endmodule

// An AXI4-Lite subordinate that answers every access once, in order, and soon (invariant 8).
module t3_axi_lite_rules #(
    parameter int unsigned ANSWER_CYCLES = 16  // with the response channels free
) (
    input wire clk,
    input wire rst,
    input wire [15:0] awaddr,
    input wire [2:0] awprot,
    input wire awvalid,
    input wire awready,
    input wire [63:0] wdata,
    input wire [7:0] wstrb,
    input wire wvalid,
    input wire wready,
    input wire [1:0] bresp,
    input wire bvalid,
    input wire bready,
    input wire [15:0] araddr,
    input wire [2:0] arprot,
    input wire arvalid,
    input wire arready,
    input wire [63:0] rdata,
    input wire [1:0] rresp,
    input wire rvalid,
    input wire rready
);
  localparam logic [1:0] OKAY = 0, SLVERR = 2;

  t3_stream_rules #(.BITS(19), .INPUT(1)) aw (
      .clk, .rst, .drop(1'b0), .valid(awvalid), .ready(awready), .payload({awaddr, awprot}));
  t3_stream_rules #(.BITS(72), .INPUT(1)) w (
      .clk, .rst, .drop(1'b0), .valid(wvalid), .ready(wready), .payload({wdata, wstrb}));
  t3_stream_rules #(.BITS(19), .INPUT(1)) ar (
      .clk, .rst, .drop(1'b0), .valid(arvalid), .ready(arready), .payload({araddr, arprot}));
  t3_stream_rules #(.BITS(2)) b (
      .clk, .rst, .drop(1'b0), .valid(bvalid), .ready(bready), .payload(bresp));
  t3_stream_rules #(.BITS(66)) r (
      .clk, .rst, .drop(1'b0), .valid(rvalid), .ready(rready), .payload({rresp, rdata}));

  // Accesses taken and not yet answered. The strobes wait in order.
  logic [2:0] addresses, data, reads;
  logic [7:0] strobes[$];
  logic [7:0] waited;
  wire access = (addresses > 0 && data > 0) || reads > 0;
  always_ff @(posedge clk) begin
    if (rst) begin
      {addresses, data, reads} <= '0;
      waited <= 0;
      strobes.delete();
    end else begin
      addresses <= addresses + 3'(awvalid && awready) - 3'(bvalid && bready);
      data <= data + 3'(wvalid && wready) - 3'(bvalid && bready);
      reads <= reads + 3'(arvalid && arready) - 3'(rvalid && rready);
      waited <= access && !bvalid && !rvalid ? waited + 8'd1 : 8'd0;
      if (bvalid && bready) begin
        axi_partial_write_refused :
        assert (bresp == SLVERR || strobes[0] == '1);
        void'(strobes.pop_front());
      end
      if (wvalid && wready) strobes.push_back(wstrb);
    end
  end

  default clocking @(posedge clk);
  endclocking
  default disable iff (rst);

  axi_write_answered_once :
  assert property (bvalid |-> addresses > 0 && data > 0);
  axi_read_answered_once :
  assert property (rvalid |-> reads > 0);
  axi_write_response :
  assert property (bvalid |-> bresp == OKAY || bresp == SLVERR);
  axi_read_response :
  assert property (rvalid |-> rresp == OKAY || (rresp == SLVERR && rdata == 0));
  axi_answers :
  assert property (waited < ANSWER_CYCLES);
endmodule
