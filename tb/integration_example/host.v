// An AXI4-Lite host, one access at a time. Inputs of the unit change at the falling edge; what is ready then transfers
// at the next rising one.

module host (
    input             clk,
    output reg [15:0] awaddr,
    output reg        awvalid,
    input             awready,
    output reg [63:0] wdata,
    output reg        wvalid,
    input             wready,
    input      [1:0]  bresp,
    input             bvalid,
    output reg [15:0] araddr,
    output reg        arvalid,
    input             arready,
    input      [63:0] rdata,
    input      [1:0]  rresp,
    input             rvalid
);
    reg [63:0] value;  // what was read last
    reg        aw, w;
    integer    errors;
    initial begin
        awvalid = 0;
        wvalid = 0;
        arvalid = 0;
        errors = 0;
    end

    task write(input [15:0] address, input [63:0] written);
        begin
            awaddr = address;
            wdata = written;
            awvalid = 1;
            wvalid = 1;
            #1;
            while (awvalid || wvalid) begin
                aw = awready;
                w = wready;
                @(negedge clk);
                if (aw) awvalid = 0;
                if (w) wvalid = 0;
                #1;
            end
            while (!bvalid) @(negedge clk);
            if (bresp != 0) begin
                $display("the write of %h was refused", address);
                errors = errors + 1;
            end
            @(negedge clk);
        end
    endtask

    task read(input [15:0] address);
        begin
            araddr = address;
            arvalid = 1;
            #1;
            while (!arready) @(negedge clk) #1;
            @(negedge clk) arvalid = 0;
            while (!rvalid) @(negedge clk);
            if (rresp != 0) begin
                $display("the read of %h was refused", address);
                errors = errors + 1;
            end
            value = rdata;
            @(negedge clk);
        end
    endtask
endmodule
