"""
Run the worker agent: ``python -m tools.agent --dir DIR --name NAME``.
"""

from tools.agent.agent import main

if __name__ == "__main__":
    raise SystemExit(main())
