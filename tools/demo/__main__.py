"""
Run the demonstration as ``python -m tools.demo``.
"""

import sys

from tools.demo.demonstration import main

sys.exit(main())
