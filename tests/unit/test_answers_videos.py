"""Whether videos stood still, in a sentence."""

import pandas as pd
from plain_answers import Told, group, said

VIDEO = group("video", 4e6, self_limited=True)


class Watched(Told):
    """With a video in each run."""

    def video(self, name, *stalled_s, **more):
        self.condition(name, VIDEO, repeat=len(stalled_s), **{"ccas": "cubic", **more})
        for row, stalled in zip(self.runs[-len(stalled_s) :], stalled_s, strict=True):
            row |= {"video_stalled_s": stalled}
        return self

    def chunks(self, name, *took_s, **more):
        self.video(name, *[0.0] * len(took_s), **more)
        for row, median_s in zip(self.runs[-len(took_s) :], took_s, strict=True):
            row |= {"chunk_median_s": median_s}
        return self

    def told(self):
        flows = [
            {"cell_id": row["cell_id"], "video_chunks": chunks}
            for row in self.runs
            for chunks in (0 if row["video_stalled_s"] is None else 30, None)
        ]
        return [
            said(each)
            for each in self.answer(flows=pd.DataFrame(flows)).headline
            if "ideo" in each or "hunks" in each
        ]


def test_where_none_stood_still_that_is_said():
    assert Watched().video("x", 0.0, 0.0, 0.0).told() == ["No video stood still."]


def test_of_one_condition_how_long():
    (text,) = Watched().video("x", 1.0, 2.0, 3.0).told()
    assert text.startswith("Videos stood still for 2.0 [")
    assert text.endswith(" s a run.")


def test_where_some_did_how_many_and_where_longest():
    made = Watched()
    for aqm, stalled in (("cake", (0.0, 0.0)), ("pie", (1.0, 1.5)), ("taildrop", (4.0, 5.0))):
        made.video(aqm, *stalled, axes={"aqm": aqm})
    (text,) = made.told()
    assert text.startswith("Videos stood still in 2 of 3 conditions, longest at an AQM of taildrop, 4.5 [")


def test_where_one_did_that_one():
    made = Watched().video("a", 0.0, 0.0, axes={"aqm": "cake"}).video("b", 3.0, 3.0, axes={"aqm": "pie"})
    assert made.told() == ["Videos stood still only at an AQM of pie, for 3.00 s a run."]


def test_where_all_did_the_least_and_the_longest():
    made = Watched().video("a", 1.0, 1.0, axes={"aqm": "cake"}).video("b", 3.0, 3.0, axes={"aqm": "pie"})
    assert made.told() == [
        "Videos stood still least at an AQM of cake, 1.00 s, and longest at an AQM of pie, 3.00 s a run."
    ]


def test_a_video_that_never_began_is_not_one_that_never_stood_still():
    made = Watched().video("a", 0.0, 0.0, axes={"aqm": "cake"}).video("b", None, 0.0, axes={"aqm": "pie"})
    assert made.told() == ["No video stood still.", "1 of 4 videos never began: no chunk was ever whole."]


def test_of_one_condition_how_soon_half_of_the_chunks_come():
    text = Watched().chunks("x", 1.0, 1.1, 1.2).told()[-1]
    assert text.startswith("Half of the chunks come within 1.10 [")
    assert text.endswith(" s.")


def test_where_chunks_come_soonest_and_where_latest():
    made = Watched().chunks("a", 0.5, 0.5, axes={"aqm": "cake"}).chunks("b", 0.7, 0.7, axes={"aqm": "pie"})
    assert made.told()[-1] == (
        "Chunks of videos come soonest at an AQM of cake, half of them within 500 ms, "
        "and latest at an AQM of pie, 700 ms."
    )


def test_chunks_that_come_equally_soon_everywhere_have_no_best_place():
    made = Watched().chunks("a", 2.0, 2.0, axes={"aqm": "cake"}).chunks("b", 2.05, 2.05, axes={"aqm": "pie"})
    assert made.told()[-1] == "Half of the chunks come within 2.00 s to 2.05 s everywhere."


def test_without_videos_nothing_is_told():
    told = Told().condition("x", group("a", [1e6, 1.1e6, 1.2e6]))
    assert not any("ideo" in each for each in told.answer().headline)


def test_of_a_few_conditions_each_is_told_with_how_soon_chunks_come():
    made = Watched()
    for aqm, took_s in (("cake", 1.5), ("pie", 1.7)):
        for cca, less in (("bbr3", 0.5), ("cubic", 0.0)):
            made.chunks(f"{aqm}{cca}", *[took_s - less] * 2, axes={"cca": cca, "aqm": aqm}, ccas=cca)
    assert made.told()[-1] == (
        "Half of the chunks come within 1.00 s with bbr3 at an AQM of cake, "
        "1.20 s with bbr3 at an AQM of pie, "
        "1.50 s with cubic at an AQM of cake and 1.70 s with cubic at an AQM of pie."
    )
