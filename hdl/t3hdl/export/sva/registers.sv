// The register bus, and what its writes leave in the hardware: a copy for the other rules to judge by.
// One answer to each request; a locked configuration does not change. No arm of a context of which something is under
// way, no disarm that would drop something, unless by force (invariant 8). No range with the epoch of a dropped job.
module t3_register_rules
  import t3_words::*;
(
    input wire clk,
    input wire rst,
    input wire bus_valid,
    input wire bus_ready,
    input wire bus_write,
    input wire bus_privileged,
    input wire [15:0] bus_address,
    input wire [63:0] bus_data,
    input wire response_valid,
    input wire response_error,
    input wire [63:0] response_data,
    input wire config_valid,
    input config_write_t config_write,
    input context_status_t contexts[CONTEXTS],
    input wire maintenance,
    input wire abort_busy,
    input wire [MAX_CONTEXTS-1:0] pending,
    input wire [CONTEXTS-1:0] slices_pending,  // as counted at the ports of the slices
    output wire disarm,
    output wire arm,
    output wire abort,
    output control_t control,  // with arm or abort: whose; with disarm: by force or not
    output arbiter_t arbiter,
    output wire arbiter_written,
    output range_t ranges[RANGES],
    output logic [63:0] descriptors[DESCRIPTORS][DESCRIPTOR_WORDS],
    output logic [15:0] profile[64],  // by bottom, right, wavefront
    output quota_t quotas[CONTEXTS]
);
  wire [15:0] address = config_write.address;
  wire [63:0] value = config_write.data;
  assign control = control_t'(value[$bits(control_t)-1:0]);
  wire action = config_valid && address == CONTROL;
  assign disarm = action && control.disarm;
  assign arm = action && control.arm;
  assign abort = action && control.abort_;
  assign arbiter_written = config_valid && address == ARBITER;

  // Which register a configuration write is for.
  wire to_range = address >= RANGE && address < RANGE + 16'(RANGES) * RANGE_STRIDE;
  wire [15:0] range_number = (address - RANGE) / RANGE_STRIDE;
  wire to_quota = address >= QUOTA && address < QUOTA + 16'(CONTEXTS) * 8;
  wire [15:0] quota_number = (address - QUOTA) / 8;
  wire to_profile = address >= PROFILE && address < PROFILE + 64 * 8;
  wire [15:0] profile_number = (address - PROFILE) / 8;
  wire to_descriptor = address >= DESCRIPTOR && address < DESCRIPTOR + 16'(DESCRIPTORS) * DESCRIPTOR_STRIDE;
  wire [15:0] descriptor_number = (address - DESCRIPTOR) / DESCRIPTOR_STRIDE;
  wire [15:0] word_number = ((address - DESCRIPTOR) % DESCRIPTOR_STRIDE) / 8;

  control_t windows[CONTEXTS];  // the last arm of each context
  always_ff @(posedge clk) begin
    if (rst) begin
      arbiter <= ARBITER_RESET;
      for (int i = 0; i < RANGES; i++) ranges[i] <= '0;
      for (int c = 0; c < CONTEXTS; c++) quotas[c] <= QUOTA_RESET;
      for (int c = 0; c < CONTEXTS; c++) windows[c] <= '0;
    end else if (config_valid) begin
      if (arbiter_written) arbiter <= arbiter_t'(value[$bits(arbiter_t)-1:0]);
      if (to_range) begin
        case (address % RANGE_STRIDE)
          0: ranges[range_number].base <= value[LINE_BITS-1:0];
          8: ranges[range_number].limit <= value[LINE_BITS-1:0];
          default: begin
            ranges[range_number].valid <= range_attributes(value).valid;
            ranges[range_number].context_ <= range_attributes(value).context_;
            ranges[range_number].epoch <= range_attributes(value).epoch;
          end
        endcase
      end
      if (to_quota) quotas[quota_number] <= quota_t'(value[$bits(quota_t)-1:0]);
      if (to_profile) profile[profile_number] <= value[15:0];
      if (to_descriptor) descriptors[descriptor_number][word_number] <= value;
      if (abort) begin
        for (int i = 0; i < RANGES; i++) if (ranges[i].context_ == control.context_) ranges[i].valid <= 0;
      end
      if (disarm && control.forced) for (int i = 0; i < RANGES; i++) ranges[i].valid <= 0;
      if (arm) windows[control.context_] <= control;
      if (disarm) for (int c = 0; c < CONTEXTS; c++) windows[c] <= '0;
    end
  end

  function automatic range_attributes_t range_attributes(logic [63:0] word);
    return range_attributes_t'(word[$bits(range_attributes_t)-1:0]);
  endfunction

  // The request a cycle ago, and the contexts that were active then.
  logic requested, wrote, privileged;
  logic [15:0] requested_address;
  logic [63:0] requested_data;
  logic [CONTEXTS-1:0] active, unfinished;
  logic tables_busy;
  lock_t lock;
  always_ff @(posedge clk) begin
    requested <= !rst && bus_valid && bus_ready;
    wrote <= bus_write;
    privileged <= bus_privileged;
    requested_address <= bus_address;
    requested_data <= bus_data;
    for (int c = 0; c < CONTEXTS; c++) begin
      active[c] <= contexts[c].armed && !contexts[c].complete;
      unfinished[c] <= pending[c] || contexts[c].outstanding != 0;
    end
    tables_busy <= maintenance || abort_busy;
    if (rst) lock <= '0;
    else if (response_valid && !response_error && wrote && requested_address == LOCK)
      lock <= lock | lock_t'(requested_data[$bits(lock_t)-1:0]);
  end

  // Of each context, the attributes that its ranges got last, those of its last job, and a bit for each epoch of a job
  // that was dropped, until another one is complete.
  range_attributes_t attributes, last[CONTEXTS], job[CONTEXTS];
  logic [(1 << $bits(attributes.epoch))-1:0] dropped[CONTEXTS];
  assign attributes = range_attributes(value);
  wire to_attributes = config_valid && to_range && address % RANGE_STRIDE == 16 && attributes.valid;
  always_ff @(posedge clk) begin
    for (int c = 0; c < CONTEXTS; c++) begin
      automatic bit named = 32'(control.context_) == c;
      if (to_attributes && 32'(attributes.context_) == c) last[c] <= attributes;
      if (arm && named) job[c] <= last[c];
      if (active[c] && (abort && named || disarm && control.forced)) dropped[c][job[c].epoch] <= 1;
      if (contexts[c].armed && contexts[c].complete) dropped[c] <= '0;
      if (rst) begin
        last[c] <= '0;
        job[c] <= '0;
        dropped[c] <= '0;
      end
    end
  end

  default clocking @(posedge clk);
  endclocking
  default disable iff (rst);

  bus_answers_once :
  assert property (response_valid == requested);
  bus_error_tells_nothing :
  assert property (response_valid && (response_error || wrote) |-> response_data == 0);
  bus_refuses_odd_addresses :
  assert property (response_valid && requested_address % 8 != 0 |-> response_error);
  configuration_from_bus_only :
  assert property (
      config_valid |-> response_valid && wrote && !response_error
      && address == requested_address && value == requested_data);
  configuration_one_action :
  assert property (
      action |-> $onehot0({control.arm, control.disarm, control.abort_, control.quiesce, control.resume}));
  configuration_locked :
  assert property (
      config_valid && lock.configuration
      |-> !to_range && !to_quota && !to_profile && !to_descriptor && !(address inside {ARBITER, THRESHOLDS, WATCHDOG}));
  configuration_privileged :
  assert property (config_valid && lock.privileged |-> privileged);
  configuration_profile_in_use :
  assert property (config_valid && to_profile |-> active == 0);
  for (genvar c = 0; c < CONTEXTS; c++) begin : g_context
    configuration_quota_in_use :
    assert property (config_valid && to_quota && quota_number == c |-> !active[c]);
    configuration_descriptor_in_use :
    assert property (
        config_valid && to_descriptor && descriptor_number >= 16'(windows[c].first)
        && descriptor_number < 16'(windows[c].first) + 16'(windows[c].descriptors)
        |-> !active[c]);
    configuration_arm_of_active :
    assert property (arm && control.context_ == c |-> !active[c] && !$past(pending[c]));
    configuration_range_of_dropped_job :
    assert property (to_attributes && 32'(attributes.context_) == c |-> !dropped[c][attributes.epoch]);
    slices_are_pending :
    assert property (pending[c] == slices_pending[c]);
  end
  configuration_disarm_while_busy :
  assert property (disarm && !control.forced |-> !tables_busy && active == 0 && unfinished == 0);
  configuration_range_of_updates :
  assert property (
      to_attributes
      |-> attributes.op inside {OP_STORE, OP_ADD, OP_MIN, OP_MAX} && 32'(attributes.context_) < CONTEXTS);
  for (genvar i = 0; i < RANGES; i++) begin : g_range
    configuration_range_in_use :
    assert property (
        config_valid && to_range && range_number == i && ranges[i].valid && 32'(ranges[i].context_) < CONTEXTS
        |-> !active[ranges[i].context_[CONTEXT_BITS-1:0]]);
  end
endmodule
