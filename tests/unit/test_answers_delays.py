"""How long pings and datagrams beside flows are on their way, in a sentence each."""

from plain_answers import Told, group, said

IDLE = {"ping_idle_median_s": 0.04}


def pinged(**conditions):
    """Name of an AQM → the 95th percentile of each run, in seconds."""
    told = Told()
    for aqm, values in conditions.items():
        told.condition(aqm, group("cubic", [1e6, 1.1e6, 1.2e6]), ccas="cubic", axes={"aqm": aqm}, **IDLE)
        for row, value in zip(told.runs[-3:], values, strict=True):
            row["ping_p95_s"] = value
    return said(told.answer().headline[-1])


def test_where_they_take_least_and_most_is_told_beside_the_idle_path():
    text = pinged(cake=[0.041, 0.042, 0.043], pie=[0.08, 0.09, 0.1], taildrop=[0.2, 0.21, 0.22])
    assert text.startswith(
        "Beside the flows pings take least at an AQM of cake, 42.0 [39.5, 44.5] ms in the 95th percentile, "
        "and most at an AQM of taildrop, 210 [185, 235] ms; on the idle path they take 40.0 ms."
    )


def test_where_all_are_alike_no_place_is_named():
    text = pinged(cake=[0.041, 0.042, 0.043], pie=[0.042, 0.043, 0.044])
    assert text.startswith("Beside the flows 95 % of the pings take at most 42.0 [39.5, 44.5] ms to 43.0 ")
    assert text.endswith(" ms everywhere; on the idle path they take 40.0 ms.")


def test_the_congestion_control_is_named_where_it_varies():
    told = Told()
    for cca, value in (("bbr3", 0.05), ("cubic", 0.2)):
        axes = {"cca": cca}
        pings = {"ping_p95_s": value, "ping_idle_median_s": None}
        told.condition(cca, group(cca, [1e6, 1.1e6, 1.2e6]), ccas=cca, axes=axes, **pings)
    text = said(told.answer().headline[-1])
    assert text.startswith("Beside the flows pings take least with bbr3, 50.0 ")
    assert "and most with cubic, 200 " in text
    assert "idle" not in text, "no ping was sent before the flows"


def test_of_one_condition_the_percentile_alone_is_told():
    told = Told().condition("x", group("cubic", [1e6, 1.1e6, 1.2e6]), ccas="cubic", ping_p95_s=0.1, **IDLE)
    text = said(told.answer().headline[-1])
    assert text.startswith("Beside the flows 95 % of the pings take at most 100 ")
    assert text.endswith("; on the idle path they take 40.0 ms.")


def test_without_pings_nothing_is_told():
    told = Told().condition("x", group("a", [1e6, 1.1e6, 1.2e6]), group("b", [2e6, 2.1e6, 2.2e6]))
    assert not any("ping" in each for each in told.answer().headline)


def test_where_datagrams_wait_least_and_most_is_told_where_other_flows_run():
    call = group("call", 1e5, cca=None, self_limited=True)
    told, alone = Told(), Told()
    for aqm, wait_s in (("cake", 0.002), ("taildrop", 0.12)):
        waits = {"axes": {"aqm": aqm}, "pdv_p95_s": wait_s}
        told.condition(aqm, group("cubic", [1e6, 1.1e6, 1.2e6]), call, ccas="cubic", **waits)
        alone.condition(aqm, call, ccas="", **waits)
    text = said(told.answer().headline[-1])
    assert text.startswith("Beside the flows datagrams wait least at an AQM of cake, 2.00 [")
    assert " ms in the 95th percentile, and most at an AQM of taildrop, 120 [" in text
    assert not any("datagrams wait" in each for each in alone.answer().headline)
