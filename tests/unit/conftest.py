"""Small runs of two papers, made up once for each file of tests that draws or tells of them."""

import pytest
import synthetic


@pytest.fixture(scope="module")
def f10(tmp_path_factory):
    return synthetic.run_set(synthetic.SMALL_F10, tmp_path_factory.mktemp("runs") / "f10", period_s=1.0)


@pytest.fixture(scope="module")
def e1(tmp_path_factory):
    return synthetic.run_set(synthetic.SMALL_E1, tmp_path_factory.mktemp("runs") / "e1", period_s=1.0)
