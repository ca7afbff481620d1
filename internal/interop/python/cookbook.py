"""Runs the blocks of the pages of the cookbook, each as a script of its own in the
folder of its page. stdin is a JSON list of {"folder", "blocks": [[language, code]]},
stdout one of {"outputs", "error"}: what each block printed. A block that fails ends
its page.
"""

import contextlib
import io
import json
import os
import subprocess
import sys
import traceback


def shell(code):
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", code], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise RuntimeError(f"exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def sql(code):
    import duckdb

    with duckdb.connect() as connection:
        return str(connection.sql(code))


def python(code):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "block", "exec"), {"__name__": "__main__"})
    return out.getvalue()


def page(folder, blocks):
    os.chdir(folder)
    outputs = []
    for language, code in blocks:
        try:
            outputs.append({"sh": shell, "sql": sql, "python": python}[language](code))
        except Exception:
            return {"outputs": outputs, "error": f"{language} block\n{code}\n{traceback.format_exc(limit=-1)}"}
    return {"outputs": outputs, "error": ""}


json.dump([page(**p) for p in json.load(sys.stdin)], sys.stdout)
