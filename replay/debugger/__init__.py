"""
The interactive debugger of logs: step, break, look, in both directions of time.

`shell` reads lines and prints what `commands` answer; `cursor` is where we stand; `breakpoints`
says when to stop; `show` writes states and events. Nothing here reads a clock or a terminal, so
that the same script gives the same bytes.
"""
