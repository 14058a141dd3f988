"""The gate's table has a row per quantity and a column per profile, and leaves out what was not run."""

from dataclasses import replace

from fabbbr_analysis.claims import judge
from fabbbr_analysis.claims.records import Band, PartVerdict
from fabbbr_analysis.report.fidelity import gate

NOT_RUN = {verdict.id: verdict for verdict in judge([])}


def finding(quantity, value, verdict):
    return PartVerdict(
        quantity=quantity,
        verdict=verdict,
        value=value,
        low=value,
        high=value,
        n=5,
        band=Band(low=0.8),
        reason="",
    )


def judged(claim_id, *parts):
    worst = parts[0]
    return replace(
        NOT_RUN[claim_id], verdict=worst.verdict, quantity=worst.quantity, value=worst.value, low=worst.value,
        high=worst.value, band=str(worst.band), details=parts if len(parts) > 1 else (),
    )  # fmt: skip


def test_nothing_run_is_no_table():
    assert not gate(list(NOT_RUN.values()))


def test_each_quantity_is_a_row_and_each_profile_a_column():
    two = [finding("at 0.1 %", 0.9, "reproduced"), finding("at 1 %", 0.4, "not reproduced")]
    verdicts = NOT_RUN | {"GD.v2alpha": judged("GD.v2alpha", *two), "GD.v3": judged("GD.v3", *two)}
    table = gate(list(verdicts.values()))
    assert table.profiles == ("v2alpha", "draft01", "v3", "v1")
    assert [(row.check, row.quantity) for row in table.rows[:2]] == [("D", "at 0.1 %"), ("D", "at 1 %")]
    assert [cell.verdict if cell else None for cell in table.rows[1].cells] == [
        "not reproduced", "not run", "not reproduced", None,
    ]  # fmt: skip


def test_a_check_of_one_quantity_stands_for_itself():
    verdicts = NOT_RUN | {"GK.v1": judged("GK.v1", finding("goodput / the kernel's own", 1.0, "reproduced"))}
    (row,) = gate(list(verdicts.values())).rows
    assert (row.check, row.quantity, row.cells[-1].verdict) == (
        "K",
        "goodput / the kernel's own",
        "reproduced",
    )
    assert row.cells[:-1] == (None, None, None)
