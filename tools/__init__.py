"""
The programs: command line, scheduler process, worker agent, benchmarks. Nothing else imports them.
"""
