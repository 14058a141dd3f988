"""Examples in docstrings: those of what `import fabbbr as fb` offers find a file and a run to speak of."""

import pytest

ONE_FLOW = """id: one_flow
title: One flow
slice: two_site
path: {rate: 20 Mbit/s, rtt: 10 ms}
flows: [{cca: $cca, duration: 2 s}]
vary: {cca: [cubic, bbr3]}
repeat: 1
"""
HAVE_A_RUN = ("fabbbr.interactive.", "fabbbr_analysis.run")
NEEDS_A_GUEST = "fabbbr.interactive.running.run"


def pytest_collection_modifyitems(items):
    for item in items:
        if item.name == NEEDS_A_GUEST:
            item.add_marker(pytest.mark.guest)


@pytest.fixture(scope="session")
def folder_with_a_run(tmp_path_factory):
    """A folder with an experiment file, and the run `runs/rivals` of two conditions and two repetitions."""
    from recorded_run import cell, recorded

    folder = tmp_path_factory.mktemp("examples")
    (folder / "one_flow.yaml").write_text(ONE_FLOW)
    (folder / "runs").mkdir()
    recorded(
        folder / "runs" / "rivals",
        *(
            cell(repetition, id=f"{condition},r{repetition}", condition=condition, axes={"buffer": text})
            for condition, text in (("buffer=1BDP", "1 BDP"), ("buffer=4BDP", "4 BDP"))
            for repetition in (1, 2)
        ),
    )
    return folder


@pytest.fixture(autouse=True)
def among_examples(request):
    """Where an example speaks of `runs/rivals`, that is where it stands."""
    if not (isinstance(request.node, pytest.DoctestItem) and request.node.name.startswith(HAVE_A_RUN)):
        yield
        return
    if request.node.name == NEEDS_A_GUEST:
        from fabbbr.backends.guest.image.found import found_image

        if found_image() is None:
            pytest.skip("there is no guest image: fabbbr guest build")
    folder, patch = request.getfixturevalue("folder_with_a_run"), request.getfixturevalue("monkeypatch")
    patch.chdir(folder)
    patch.setenv("XDG_STATE_HOME", str(folder / "state"))
    yield
