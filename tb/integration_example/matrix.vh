// The output matrix of bench.v: where its lines are, what they hold, and what an access to one looks like.

    function [38:0] line_of(input integer row, input integer part);
        line_of = BASE + row * PITCH + part;
    endfunction

    function [15:0] fp16(input integer quarters);  // below 2048
        integer top;
        begin
            top = 0;
            while (quarters >> (top + 1) != 0) top = top + 1;
            fp16 = quarters == 0 ? 0 : (13 + top) << 10 | (quarters << (10 - top)) & 1023;
        end
    endfunction

    function integer number(input integer row, input integer part, input integer lane, input integer gpu);
        number = (row * 131 + part * 37 + lane * 11 + gpu * 301 + 5) % 1000;
    endfunction

    function integer lines_of(input integer tile_col);  // in a row of a tile
        lines_of = tile_col == 2 ? 1 : 2;
    endfunction

    function [255:0] line_data(input integer row, input integer part, input integer gpus);  // 1: own, 2: theirs, 3: sum
        integer lane;
        for (lane = 0; lane < 16; lane = lane + 1)
            line_data[16 * lane +: 16] = fp16((gpus & 1 ? number(row, part, lane, 0) : 0)
                                              + (gpus & 2 ? number(row, part, lane, 1) : 0));
    endfunction

    function [2047:0] burst_data(input integer row, input integer part, input integer lines, input integer gpus);
        integer line;
        begin
            burst_data = 0;
            for (line = 0; line < lines; line = line + 1)
                burst_data[256 * line +: 256] = line_data(row, part + line, gpus);
        end
    endfunction

    function [98:0] item(input integer row, input integer part, input integer lines, input [2:0] op, input tracked,
                         input [3:0] context_id, input [7:0] source);
        reg [11:0] tile_row, tile_col;
        reg [3:0]  wf;
        reg [2:0]  length;
        begin
            length = lines - 1;
            tile_row = row / 4;
            tile_col = part / 2;
            wf = row % 4 / 2;
            item = {length, EPOCH, tile_col, tile_row, tile_row == 1, tile_col == 2, wf, tracked, source, context_id,
                    1'b0, FP16, op, line_of(row, part)};
        end
    endfunction
