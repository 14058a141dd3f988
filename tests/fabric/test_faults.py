"""Failures on purpose: each strikes a fablib program, which says itself what it should have met with."""

import pytest

FAULTS = {
    "nodes": (
        "ssh-never:node=never",
        "ssh-late:node=late,seconds=6",
        "ssh-rejects-key:node=stranger",
        "node-dies:node=mortal,seconds=4",
        "no-management-ip:node=nowhere",
    ),
    "bastion": (),
    "modify": ("insufficient-resources:node=more",),
    "lease": ("lease-ends:slice=short,seconds=15",),
    "tokens": ("token-expired:nth=1",),
}


@pytest.mark.parametrize("program", FAULTS)
def test_program_meets_with_the_failure(sandbox, program):
    options = [word for fault in FAULTS[program] for word in ("--fault", fault)]
    outcome = sandbox(f"../faulty/{program}", *options)
    assert outcome.status == 0
    assert outcome.events("internal error") == []


def test_orchestrator_refuses_what_a_fresh_project_may_not(sandbox):
    outcome = sandbox("../faulty/refused", "--tag", "none", "--fault", "insufficient-resources:site=KANS")
    assert outcome.status == 0


def test_client_repeats_what_a_gateway_broke(sandbox):
    broken = "http:method=POST,path=/slices/creates,"
    outcome = sandbox(
        "../faulty/gateway",
        *("--fault", f"{broken}status=502,when=before,nth=1"),
        *("--fault", f"{broken}status=504,when=after,nth=3"),
    )
    assert outcome.status == 0
    answered = [request["status"] for request in outcome.requests("POST", "/slices/creates")]
    assert answered == [502, 200, 504, 500, 500, 500]
