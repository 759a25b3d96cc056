"""What people wrote, out of Slack's markup."""

from __future__ import annotations

import pytest

from bot.listeners.said import said


@pytest.mark.parametrize(
    ("raw", "written"),
    [
        ("  a &lt;b&gt; &amp;amp; c ", "a <b> &amp; c"),
        ("see <https://example.com/a?b=1&amp;c=2>", "see https://example.com/a?b=1&c=2"),
        (
            "<http://example.com|example.com> and <https://example.com|here>",
            "http://example.com and here (https://example.com)",
        ),
        ("<mailto:a@b.example|a@b.example> <tel:+49123|+49 123>", "a@b.example +49 123 (+49123)"),
        ("<@U1> <@U2|ben> <#C1|ops> <#C2>", "@U1 @ben #ops #C2"),
        ("<!here> <!subteam^S1|@team> <!subteam^S2>", "@here @team @S2"),
        ("*bold* _it_ `<tag>`", "*bold* _it_ `tag`"),
        ("1 &lt; 2 > 0 <", "1 < 2 > 0 <"),
    ],
)
def test_it_reads_as_it_was_typed(raw: str, written: str) -> None:
    assert said(raw) == written
