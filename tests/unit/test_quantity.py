"""Quantities as fields: text in, the same text out, and every mistake named."""

import pytest
from pydantic import BaseModel, ValidationError

from fabbbr.quantity import BitRate, Buffer, ByteSize, Share, Span
from fabbbr.units import Duration, QueueSize, Rate, Ratio, Size


class Fields(BaseModel):
    rate: BitRate
    span: Span
    size: ByteSize
    share: Share
    buffer: Buffer


WRITTEN = {"rate": "1 Gbit/s", "span": "20 ms", "size": "5 kB", "share": "0.1 %", "buffer": "2 BDP"}


def test_fields_read_text_and_write_the_same_text_as_json():
    fields = Fields.model_validate(WRITTEN)
    assert fields == Fields(
        rate=Rate(10**9),
        span=Duration(20_000_000),
        size=Size(5000),
        share=Ratio(10**9),
        buffer=QueueSize.parse("2 BDP"),
    )
    assert fields.model_dump(mode="json") == WRITTEN
    assert Fields.model_validate_json(fields.model_dump_json()) == fields


@pytest.mark.parametrize("key", WRITTEN)
@pytest.mark.parametrize("wrong", [True, None, [], {}, "quick", "1 furlong"])
def test_what_is_no_quantity_is_an_error_of_that_field_alone(key, wrong):
    with pytest.raises(ValidationError) as caught:
        Fields.model_validate(WRITTEN | {key: wrong})
    assert [error["loc"] for error in caught.value.errors()] == [(key,)]


def test_a_bare_number_is_no_rate_but_may_be_a_share():
    assert Fields.model_validate(WRITTEN | {"share": 0.25}).share.value == 0.25
    with pytest.raises(ValidationError, match="no unit"):
        Fields.model_validate(WRITTEN | {"rate": 100})


def test_the_json_schema_accepts_what_is_written():
    import re

    for key, schema in Fields.model_json_schema()["properties"].items():
        assert re.search(schema["pattern"], WRITTEN[key]), key
