"""
The command line: one command, ``xce``, with one file for each family of commands.

Whatever needs more than click and the standard library is imported inside the command that needs
it, so that ``xce --help`` and the commands that only talk to the scheduler start quickly.
"""
