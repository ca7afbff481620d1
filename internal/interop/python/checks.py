"""Runs checks one after the other. Each line of the input names a script of this
folder and its arguments, with tabs between them; an empty one is left out.

The output of a check begins with a line "== check" and, if nothing differed, ends
with a line "== passed".
"""

import importlib
import sys
import traceback

for line in sys.stdin:
    script, *arguments = line.rstrip("\n").split("\t")
    print("== check")
    try:
        if importlib.import_module(script).main(*filter(None, arguments)):
            print("== passed")
    except Exception:
        traceback.print_exc(file=sys.stdout)
