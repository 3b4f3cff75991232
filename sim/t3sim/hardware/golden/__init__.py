"""The golden model: every part of the hardware, cycle by cycle, written from docs/hardware alone.

Each module has ``init_state(config)`` (an int64 array: parameters, then state) and two C functions of signature
``void(intp state, intp in_words, intp out_words)``. ``reset`` sets the state and the outputs of the first cycle after
reset; ``step`` takes the inputs of one cycle and writes the outputs of the next. Ports lie as in
:func:`t3hdl.interface.words.word_map`. Parameters are data, so one compiled function serves every configuration.
"""
