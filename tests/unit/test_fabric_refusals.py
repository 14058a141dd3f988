"""FABRIC's words for a refusal become one line with a remedy; a gateway's page is no refusal."""

import json

import pytest

from fabbbr.backends.fabric.refusals import brief, details, explained, remedy


def body(*words):
    return json.dumps({"errors": [{"details": each, "message": "Error"} for each in words], "status": 500})


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ("Slice cap already exists", "choose another name"),
        ("Insufficient resources : [core]", "choose another site or a smaller size"),
        ("Insufficient resources : Component of type: Tesla T4 not available", "choose another site"),
        (
            "Insufficient resources: No candidates nodes found to serve res: #3d42 slice: [cap(84b0) Owner:]",
            "the site is unknown or in maintenance",
        ),
        ("Site MOON does not exist", "choose one of FABRIC's sites"),
        (
            "Policy Violation: Your project is lacking Slice.Multisite tag to create a multisite slice",
            "put all machines at one site, or let the project's owner request Slice.Multisite",
        ),
        (
            "Policy Violation: Your project is lacking VM.NoLimitCPU or VM.NoLimit tag",
            "take a smaller size, of at most 2 cores, 10 GB of memory and 10 GB of disk, or let the",
        ),
        (
            "Policy Violation: Your project is lacking Component.SmartNIC_ConnectX_6 tag",
            "take NIC_Basic, or let the project's owner request Component.SmartNIC_ConnectX_6 in",
        ),
        (
            "Policy Violation: Your project is lacking Component.GPU_RTX6000 or Component.GPU tag",
            "let the project's owner request Component.GPU_RTX6000 or Component.GPU",
        ),
        ("Policy Violation: Your project is lacking Slice.NoLimitLifetime", "ask for a shorter lease"),
        ("Policy Violation", "let the project's owner request the permission"),
        (
            "Unable to delete Slices ['ab'] that are not yet stable, try again later",
            "it is still changing: wait",
        ),
        ("Attempted new term end time is shorter than current slice end time", "ask for a later end"),
        ("User# has no Slices", "it is gone"),
        ("Slice# 12 already closed", "it is gone"),
        ("Site UTAH is in maintenance", "choose another site, or wait"),
        ("something that nobody foresaw", "run it again"),
    ],
)
def test_each_refusal_has_its_remedy(said, advice):
    assert details(body(said)) == said
    assert advice in remedy(said)
    assert explained(said).startswith(said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (body("one", "two"), "one; two"),
        ('{"errors": [{"message": "Internal Server Error"}]}', "Internal Server Error"),
        (body("x" * 3000)[:2000], "x" * (2000 - len('{"errors": [{"details": "'))),
        (body('a "quoted" word')[:-20], 'a \\"quoted\\" word'),
        ("<html>502 Bad Gateway</html>", None),
        ("", None),
        ("[]", None),
        ('{"errors": "no list"}', None),
        ('{"errors": []}', None),
    ],
)
def test_details_are_found_also_in_an_answer_that_was_cut(text, said):
    assert details(text) == said


def test_words_from_outside_stay_on_their_line_and_within_reason():
    words = brief("a\nb\x1b[31m" + "c" * 5000)
    assert words.startswith("a b\\x1b[31mccc")
    assert len(words) < 700
    assert "\n" not in words
