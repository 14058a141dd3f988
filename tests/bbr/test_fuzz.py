"""A short run of the fuzzer with fixed seeds; ``make fuzz`` runs it long, led by coverage."""

import subprocess

import pytest
from bbr.core import COMPILER_LIMIT_S, HERE, SOURCES

SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
STEPS = 1_000_000
RUN_LIMIT_S = 120


@pytest.fixture(scope="module")
def fuzzer(tmp_path_factory):
    program = tmp_path_factory.mktemp("fuzz") / "fuzz_core"
    subprocess.run(
        ("gcc", "-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-DFAB_STANDALONE", *SANITIZERS,
         f"-I{SOURCES}", "-o", program, HERE / "fuzz_core.c"),
        check=True,
        timeout=COMPILER_LIMIT_S,
    )  # fmt: skip
    return program


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_sequence_of_acks_and_events_breaks_a_law(fuzzer, seed):
    ran = subprocess.run(
        (fuzzer, str(seed), str(STEPS)), capture_output=True, text=True, timeout=RUN_LIMIT_S, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert int(ran.stdout) >= STEPS
