"""A slice as a place for cells: which of them it can carry, and what is left out."""

import pytest
from places import GUEST

from fabbbr.backends.channel import ChannelError
from fabbbr.backends.standing import StandingMachines
from fabbbr.backends.survey import survey
from fabbbr.errors import PlanError, UsageError
from fabbbr.laboratory import Request, _to_be_had, run_folder_path
from fabbbr.plan import definitions
from fabbbr.plan.opening import open_plan
from fabbbr.reserve.records import LiveSlice
from fabbbr.reserve.reservation import Options, reserve
from fabbbr.slice import state
from fabbbr.slice.opening import backend_of
from fabbbr.slice.place import require_same_network, standing_place
from fabbbr.spec.experiment import SliceChoice

HERE = Options(elsewhere="here")


def reserved(definition, **parameters):
    choice = SliceChoice(name=definition, parameters=parameters)
    return reserve("mine", choice, definitions.load(choice), HERE)


@pytest.mark.parametrize("definition", ["two_site", "rtt_pair"])
def test_cells_of_the_slices_own_definition_are_carried(definition, tmp_path):
    file = tmp_path / "made.yaml"
    file.write_text(
        f"id: made\ntitle: t\nslice: {definition}\npath: {{rate: 10 Mbit/s, rtt: 20 ms}}\n"
        "flows: [{cca: cubic, duration: 1 s}]\nrepeat: 1\n"
    )
    require_same_network(reserved(definition), open_plan(str(file), seed=1).cells)


def test_cells_of_another_definition_are_refused_with_what_is_missing():
    cells = open_plan("kfoury_5_2", seed=1).cells
    with pytest.raises(PlanError, match=r"slice mine was made of rtt_pair and has no .*kfoury_5_2 needs"):
        require_same_network(reserved("rtt_pair"), cells)


def standing(place):
    return StandingMachines(place, {}, "fabbbr slice show mine")


def test_of_the_cells_those_stay_whose_round_trips_there_are(tmp_path):
    file = tmp_path / "made.yaml"
    file.write_text(
        "id: made\ntitle: t\nslice: two_site\npath: {rate: 100 Mbit/s, rtt: $rtt}\n"
        "flows: [{cca: cubic, duration: 1 s}]\nvary: {rtt: [1 ms, 26 ms, 27 ms, 60 ms]}\nrepeat: 1\n"
    )
    cells = open_plan(str(file), seed=1).cells
    place = GUEST.model_copy(
        update={
            "network_rtt_s": {"trunk": 0.026},
            "emulates_rtt": False,
            "tolerances": GUEST.tolerances.model_copy(update={"rtt_s": 0.002}),
        }
    )
    assert {cell.axes["rtt"] for cell in _to_be_had(cells, standing(place))} == {"26 ms", "27 ms"}
    longer = place.model_copy(update={"emulates_rtt": True})
    assert {cell.axes["rtt"] for cell in _to_be_had(cells, standing(longer))} == {"26 ms", "27 ms", "60 ms"}
    with pytest.raises(PlanError, match=r"none of 1 cells fits: link trunk: .* 1 ms"):
        _to_be_had([cell for cell in cells if cell.axes["rtt"] == "1 ms"], standing(place))


def test_a_run_on_a_slice_has_a_folder_of_its_own():
    assert str(run_folder_path(Request(experiment="x", backend="fabric", slice="mine"), "x")) == "runs/x-mine"


def test_a_slice_that_nobody_remembers_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with pytest.raises(UsageError, match="no slice mine is remembered"):
        backend_of("mine")


def test_a_machine_that_does_not_answer_is_named_with_what_to_ask():
    class Lost:
        folder = "/nowhere"

        def run(self, *_, **__):
            message = "h2.2ac1a403: ssh cannot connect: no route"
            raise ChannelError(message)

    live = LiveSlice(name="mine", id="1", state="ok")
    with pytest.raises(
        ChannelError, match=r"machine h2: .*no route; see whether it runs: fabbbr slice show mine"
    ):
        survey("fabric", reserved("two_site"), live, {"h2": Lost()}, emulates_rtt=False, tell=print)


def test_two_runs_do_not_share_the_machines_of_a_slice(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    choice = SliceChoice(name="two_site")
    state.save(
        state.SliceState(
            wish=state.Wish(backend="mininet", definition=choice), reservation=reserved("two_site")
        )
    )
    with (
        state.only_worker("mine"),
        pytest.raises(UsageError, match="another fabbbr is at work on slice mine"),
        standing_place("mine", [], emulates_rtt=False, tell=print),
    ):
        pass
