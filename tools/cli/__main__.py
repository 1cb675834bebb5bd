"""
Run the command line as ``python -m tools.cli``, for where the command itself isn't installed.
"""

from tools.cli.main import main

main()
