"""`python -m queue_depth`."""

import sys

from queue_depth.cli import main

if __name__ == "__main__":
    sys.exit(main())
