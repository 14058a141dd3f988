"""How evenly flows of one congestion control share: said where it differs, and of no others."""

import re

import pytest
from plain_answers import Told, group, said

SPREAD = (-0.01, 0.0, 0.01)
RATES = [9e6, 9.5e6, 8.5e6]


def told(conditions, **more):
    """Of each condition: its axes, and the mean of Jain's index; ``more`` is of its one group of flows."""
    made = Told()
    for axes, jain in conditions:
        cca = axes.get("cca", "cubic")
        condition = ",".join(f"{key}={text}" for key, text in axes.items())
        flows = group("flows", RATES, **{"cca": cca, "n_flows": 4} | more)
        made.condition(condition, flows, ccas=cca, axes=axes)
        for run, by in zip(made.runs[-len(SPREAD) :], SPREAD, strict=True):
            run["jain_flows"] = jain + by
    return made


def of_evenness(made):
    """The sentences on it, without their intervals."""
    sentences = map(said, made.answer().headline)
    return [re.sub(r" \[[^]]*\]", "", text) for text in sentences if "Jain" in text]


def test_congestion_controls_are_compared_where_they_are_farthest_apart():
    made = told([
        ({"cca": "a", "buffer": "1 BDP"}, 0.95), ({"cca": "b", "buffer": "1 BDP"}, 0.90),
        ({"cca": "a", "buffer": "4 BDP"}, 0.60), ({"cca": "b", "buffer": "4 BDP"}, 0.85),
    ])  # fmt: skip
    (text,) = of_evenness(made)
    assert text == (
        "At a buffer of 4 BDP, Jain's index over flows, of the whole run, differs most: "
        "it is 0.850 with b and 0.600 with a."
    )


def test_at_one_place_it_is_said_of_each():
    made = told([({"cca": "a"}, 0.95), ({"cca": "b"}, 0.55), ({"cca": "c"}, 0.75)])
    (text,) = of_evenness(made)
    assert text == (
        "Jain's index over flows, of the whole run, is 0.950 with a, 0.750 with c and 0.550 with b."
    )


def test_of_one_congestion_control_it_is_said_where_it_is_highest_and_lowest():
    made = told([({"buffer": "1 BDP"}, 0.95), ({"buffer": "2 BDP"}, 0.8), ({"buffer": "4 BDP"}, 0.6)])
    (text,) = of_evenness(made)
    assert text == (
        "Jain's index over flows, of the whole run, is highest at a buffer of 1 BDP, 0.950, "
        "and lowest at a buffer of 4 BDP, 0.600."
    )


@pytest.mark.parametrize(
    ("jain_of_b", "more"),
    [
        (0.91, {}),  # by less than is worth saying
        (0.60, {"n_flows": 1}),
        (0.60, {"sized": True, "completion_median_s": 1.0, "completion_p95_s": 1.0}),
        (0.60, {"self_limited": True}),
    ],
    ids=["as even", "one flow", "transfers", "paced"],
)
def test_it_is_not_told_where_it_does_not_differ_or_says_nothing(jain_of_b, more):
    assert of_evenness(told([({"cca": "a"}, 0.95), ({"cca": "b"}, jain_of_b)], **more)) == []


def test_a_call_beside_them_changes_nothing():
    made = told([({"cca": "a"}, 0.95), ({"cca": "b"}, 0.6)])
    for cell in list(made.groups):
        made.groups.append(cell | {"group": "call", "cca": None, "position": 1, "self_limited": True})
    (text,) = of_evenness(made)
    assert text.endswith("is 0.950 with a and 0.600 with b.")


def test_beside_flows_of_another_kind_it_is_said_what_each_gets():
    made = told([({"cca": "a"}, 0.95), ({"cca": "b"}, 0.6)])
    for cell in list(made.groups):
        made.groups.append(cell | {"group": "cross", "cca": "cubic", "position": 1})
    assert of_evenness(made) == []
