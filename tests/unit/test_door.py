"""The door reads a form as the standard library does, only sooner."""

from __future__ import annotations

import json
from urllib.parse import parse_qs, quote_plus, urlencode

from hypothesis import given
from hypothesis import strategies as st

from bot.door import read_form

signs = st.sampled_from([*'%&=+;?#"{}[]:, ', "%22", "%2522", "%25", "%2", "%7b", "%7B", "22", "é", "\0"])


@given(st.lists(signs | st.text(max_size=3)).map("".join))
def test_any_text_is_read_as_the_standard_library_reads_it(text: str) -> None:
    assert read_form(text) == {k: v[0] for k, v in parse_qs(text, keep_blank_values=True).items()}


@given(st.dictionaries(st.text(), st.text() | st.lists(st.text()), max_size=5))
def test_what_was_put_into_a_form_comes_out_of_it(payload: dict[str, object]) -> None:
    text = json.dumps(payload, ensure_ascii=False)
    assert (
        read_form(urlencode({"payload": text}, quote_via=quote_plus, errors="replace"))["payload"]
        == text.encode(errors="replace").decode()
    )
