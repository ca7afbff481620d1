"""python -m scrapestat ARGS is the program itself."""

import os
import subprocess
import sys

from ._find import binary


def main() -> int:
    program = binary()
    if os.name == "posix":
        os.execv(program, [program, *sys.argv[1:]])
    return subprocess.call([program, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
