"""
The log as plain SQL tables, for people: a read model that is rebuilt at will and never asked by
the scheduler.

Reading order: ``schema`` (what a table is), ``rows`` (every table, column by column), ``views``,
``fold`` (events to rows), ``recorder`` (rows and position in one transaction), ``projection`` (the
two joined); then what is asked of the
tables: ``history``, ``who``, ``pending``, ``report``.
"""
