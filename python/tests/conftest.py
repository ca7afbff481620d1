import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

if not os.environ.get("SCRAPESTAT_BIN"):
    pytest.skip("SCRAPESTAT_BIN names no program", allow_module_level=True)

FIXTURES = Path(__file__).resolve().parents[2] / "testdata" / "fixtures" / "integrations"


def program(*args, **more):
    return subprocess.run([os.environ["SCRAPESTAT_BIN"], *args], capture_output=True, check=True, **more).stdout


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """run1 and run2: two minutes of two servers each; long: the five minutes of the fixtures."""
    folder = tmp_path_factory.mktemp("runs")
    for name, seed, length in (("run1", 1, "2m"), ("run2", 2, "2m"), ("long", 1, "5m")):
        program("simulate", "a=vllm,rate=8", "b=vllm,rate=4", "--duration", length, "--seed", str(seed), "--record",
                name, cwd=folder)
    return folder


@pytest.fixture(scope="session")
def exported(runs):
    """The JSON of export with the same estimator."""
    return json.loads(program("export", "run1", "--formats", "json", "-o", "-", "--estimator", "refined", cwd=runs))
