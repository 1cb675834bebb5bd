"""
One try, in one session, to place one job.

``runner`` is the one runner of all allocators; ``plugins`` says what an allocator supplies;
``columns`` holds the fast twins of the built-in ones.
"""
