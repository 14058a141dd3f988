"""The notebooks run from top to bottom, each in an empty folder; the second beside the double of FABRIC."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from fabbbr.backends.guest.image.found import found_image
from fabbbr.laboratory import open_runs

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
EXECUTE = Path(__file__).with_name("execute.py")
PLOT = "application/vnd.plotly.v1+json"
LONGEST_S = 1800


@pytest.fixture
def image():
    if found_image() is None:
        pytest.skip("there is no guest image: fabbbr guest build")


def execute(name, folder, *before):
    """The outputs of a notebook that came to its end, cell by cell."""
    for file in (NOTEBOOKS / f"{name}.ipynb", EXECUTE):
        shutil.copy(file, folder)
    done = subprocess.run(
        (*before, sys.executable, EXECUTE.name, f"{name}.ipynb"),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        check=False,
        env=os.environ
        | {
            "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        },
    )
    assert done.returncode == 0, done.stderr[-3000:]
    cells = json.loads((folder / f"{name}.executed.ipynb").read_text())["cells"]
    return [cell["outputs"] for cell in cells if cell["cell_type"] == "code"]


def printed(outputs):
    return "".join("".join(each.get("text", "")) for each in outputs)


def drawn(outputs):
    return "".join("".join(each.get("data", {}).get("text/html", "")) for each in outputs)


def plots(cells):
    return sum(PLOT in output.get("data", {}) for outputs in cells for output in outputs)


@pytest.mark.parametrize("notebook", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_no_output_is_stored(notebook):
    cells = json.loads(notebook.read_text())["cells"]
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)


def test_an_error_is_the_line_that_led_to_it_and_a_sentence():
    lines = ("import fabbbr as fb", "", 'plan = fb.plan("cardwel_f10")')
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("\n".join(lines))])
    NotebookClient(notebook, kernel_name="python3", allow_errors=True, timeout=120).execute()
    (error,) = notebook.cells[0].outputs
    where, said = error["traceback"]
    assert where == 'plan = fb.plan("cardwel_f10")  (line 3)'
    assert said.startswith("UsageError: no experiment 'cardwel_f10'; did you mean 'cardwell_f10'?")


@pytest.mark.guest
def test_the_quick_start_makes_a_report_and_the_analysis_opens_its_run(tmp_path, image):
    cells = execute("1_quick_start", tmp_path)
    assert plots(cells) == 2
    html = "".join(map(drawn, cells))
    assert '<progress max="12" value="12"></progress> BBRv1 and BBRv2' in html
    assert "12 of 12 cells certified" in html
    assert (tmp_path / printed(cells[-1]).strip()).stat().st_size > 100_000
    (run,) = open_runs([tmp_path / "runs/two_versions"])
    assert list(run.runs["status"]) == ["certified"] * 12
    made = {path: path.stat().st_mtime_ns for path in (run.path / "cells").iterdir()}

    cells = execute("3_analysis", tmp_path)
    assert plots(cells) == 5
    assert {path: path.stat().st_mtime_ns for path in (run.path / "cells").iterdir()} == made


@pytest.mark.guest
def test_the_analysis_alone_makes_its_run(tmp_path, image):
    assert plots(execute("3_analysis", tmp_path)) == 5


@pytest.mark.fabric
def test_the_study_goes_from_create_to_teardown_beside_the_double(tmp_path, image):
    if importlib.util.find_spec("fim") is None:
        pytest.skip("fablib is not installed: make test-fabric")
    log = tmp_path / "log"
    sandbox = (sys.executable, "-m", "fabbbr.cli", "sandbox", "--log", str(log), "--")
    cells = execute("2_fabric_study", tmp_path, *sandbox)
    assert printed(cells[-1]).endswith("slice bbr_study is gone\n")
    (run,) = open_runs([tmp_path / "runs/study"])
    assert dict(zip(run.runs["ccas"], run.runs["status"], strict=True)) == {
        "bbr1": "certified",
        "bbr2": "certified",
    }
    assert plots(cells) == 1
    asked = [json.loads(line) for line in (log / "requests.jsonl").read_text().splitlines()]
    assert sum(each["path"].startswith("/slices/creates") for each in asked) == 1
    assert sum(each["path"].startswith("/slices/renew") for each in asked) == 1
    assert sum(each["path"].startswith("/slices/delete") for each in asked) >= 1
