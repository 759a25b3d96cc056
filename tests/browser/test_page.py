"""The local Slack's page: hostile text stays text, controls work by keyboard, forms say what is wrong."""

from __future__ import annotations

import asyncio
import re
from typing import Any
from urllib.parse import urlsplit

from playwright.async_api import Page, Route, expect

from bot.sandbox.slack import LocalSlack
from tests.browser.conftest import Desk

HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "<script>document.title='owned'</script>",
    "&lt;b&gt;bold&lt;/b&gt;",
    "<javascript:alert(1)|click me>",
    "<data:text/html,hello|click me>",
    '"><svg onload=alert(1)>',
    "*_~`<!channel",
]


def plain(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text}


def mrkdwn(text: str) -> dict[str, Any]:
    return {"type": "mrkdwn", "text": text}


def option(value: str, text: str) -> dict[str, Any]:
    return {"text": plain(text), "value": value}


def button(text: str, action: str, **more: Any) -> dict[str, Any]:
    return {"type": "button", "action_id": action, "text": plain(text), **more}


def actions(*elements: dict[str, Any], block: str = "row") -> dict[str, Any]:
    return {"type": "actions", "block_id": block, "elements": list(elements)}


def field(block: str, label: str, element: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "input", "block_id": block, "label": plain(label), "element": element, **more}


FRUIT = [option("a", "Apple"), option("b", "Banana"), option("c", "Cherry")]


async def opened(page: Page, desk: Desk, user: str | None = None) -> Page:
    await page.goto(f"{desk.slack.url}/#as={user or desk.ana}&in={desk.channel}")
    await expect(page.get_by_role("heading", name="agents")).to_be_visible()
    return page


def everywhere(text: str) -> list[dict[str, Any]]:
    """Blocks that show a text in every way that blocks have."""
    leaf = {"type": "text", "text": text}
    link = {"type": "link", "url": "javascript:alert(1)", "text": text}
    return [
        {"type": "section", "text": plain(text), "fields": [mrkdwn(text)]},
        {"type": "section", "text": mrkdwn(text)},
        {"type": "context", "elements": [mrkdwn(text)]},
        {
            "type": "rich_text",
            "elements": [
                {"type": "rich_text_section", "elements": [leaf, link]},
                {"type": "rich_text_preformatted", "elements": [leaf]},
            ],
        },
        actions(
            button(text, "b"), {"type": "static_select", "action_id": "s", "options": [option("v", text)]}
        ),
    ]


async def test_hostile_text_never_becomes_markup_or_a_link_that_runs(page: Page, desk: Desk) -> None:
    for text in HOSTILE:
        await desk.post(*everywhere(text), text=text)
        await desk.client.chat_postMessage(channel=desk.channel, text=text)
    await opened(page, desk)
    messages = page.locator(".message-body")
    await expect(messages).to_have_count(2 * len(HOSTILE))
    assert await messages.locator("a, b, img, script, iframe, svg:not(.icon)").count() == 0
    for index, text in enumerate(HOSTILE):
        card = messages.nth(2 * index)
        assert await card.locator(".section-text").first.text_content() == text
        assert await card.locator("pre").text_content() == text
        await expect(card.get_by_role("button", name=text, exact=True)).to_be_visible()
    assert "owned" not in await page.title()


async def test_mrkdwn_reads_as_in_slack(page: Page, desk: Desk) -> None:
    text = (
        "*bold* _slanted_ ~gone~ `a*b*` 2*3*4 snake_case_name <https://example.test/x|a *link*> "
        f"<@{desk.ben}> <#{desk.channel}> <!here> &lt;b&gt; :x: :no_such_code: "
        "<!date^0^{nonsense}|some day>\n&gt; quoted\n```a <b>\nc```"
    )
    await desk.post({"type": "section", "text": mrkdwn(text)})
    body = (await opened(page, desk)).locator(".section-text")
    await expect(body.locator("strong")).to_have_text(["bold"])
    await expect(body.locator("em")).to_have_text(["slanted"])
    await expect(body.locator("del")).to_have_text(["gone"])
    await expect(body.locator("code")).to_have_text(["a*b*"])
    await expect(body.locator("pre")).to_have_text(["a <b>\nc"])
    await expect(body.locator("blockquote")).to_have_text(["quoted"])
    await expect(body.locator(".mention")).to_have_text(["@Ben", "#agents", "@here"])
    await expect(body.locator("a")).to_have_attribute("href", "https://example.test/x")
    await expect(body.locator("a")).to_have_attribute("rel", "noopener noreferrer")
    for words in ("2*3*4 snake_case_name", "<b> ❌ :no_such_code: some day", "a *link*"):
        await expect(body).to_contain_text(words)


async def test_every_element_of_a_message_works_by_keyboard_alone(page: Page, desk: Desk) -> None:
    menu = {"placeholder": plain("Choose"), "options": FRUIT}
    await desk.post(
        actions(
            button("Approve", "ok", style="primary"), button("Reject", "no", confirm=CONFIRM), block="one"
        ),
        {
            "type": "section",
            "block_id": "two",
            "text": mrkdwn("*Which fruit?*"),
            "accessory": {"type": "static_select", "action_id": "single", **menu},
        },
        actions({"type": "multi_static_select", "action_id": "many", **menu}, block="three"),
        actions({"type": "radio_buttons", "action_id": "radio", "options": FRUIT}, block="four"),
        actions({"type": "checkboxes", "action_id": "checks", "options": FRUIT}, block="five"),
        actions({"type": "users_select", "action_id": "who", "placeholder": plain("Who")}, block="six"),
        actions({"type": "overflow", "action_id": "more", "options": FRUIT[:2]}, block="seven"),
    )
    await opened(page, desk)
    keys = page.keyboard

    await page.get_by_role("button", name="Approve", exact=True).focus()
    await keys.press("Enter")
    assert (await desk.next_act())["action_id"] == "ok"

    await keys.press("Tab")
    await keys.press(" ")
    await expect(page.get_by_role("dialog", name="Sure?")).to_be_visible()
    await keys.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await keys.press(" ")
    await page.get_by_role("dialog", name="Sure?").get_by_role("button", name="Yes").press("Enter")
    assert (await desk.next_act())["action_id"] == "no"

    single = page.get_by_role("combobox", name="Which fruit?")
    await single.focus()
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        await keys.press(key)
    assert (await desk.next_act())["selected_option"]["value"] == "b"
    await expect(single).to_have_value("Banana")
    await keys.press("ArrowDown")
    await keys.type("che")
    await expect(page.get_by_role("listbox").get_by_role("option")).to_have_text(["Cherry"])
    await keys.press("Escape")
    await expect(single).to_have_value("Banana")

    await keys.press("Tab")
    for key in (" ", " ", "End", "Enter"):
        await keys.press(key)
    assert [o["value"] for o in (await desk.next_act())["selected_options"]] == ["a"]
    assert [o["value"] for o in (await desk.next_act())["selected_options"]] == ["a", "c"]
    await keys.press("Escape")
    await keys.press("Backspace")
    assert [o["value"] for o in (await desk.next_act())["selected_options"]] == ["a"]

    await page.get_by_role("radio", name="Apple").focus()
    await keys.press("ArrowDown")
    assert (await desk.next_act())["selected_option"]["value"] == "b"

    await page.get_by_role("checkbox", name="Cherry").focus()
    await keys.press(" ")
    assert [o["value"] for o in (await desk.next_act())["selected_options"]] == ["c"]

    await keys.press("Tab")
    await keys.type("be")
    await keys.press("Enter")
    assert (await desk.next_act())["selected_user"] == desk.ben

    await keys.press("Tab")
    for key in ("Enter", "ArrowDown", "Enter"):
        await keys.press(key)
    assert (await desk.next_act())["selected_option"]["value"] == "b"
    assert desk.acts.empty()


CONFIRM = {
    "title": plain("Sure?"),
    "text": plain("It is final."),
    "confirm": plain("Yes"),
    "deny": plain("No"),
}

FORM = {
    "type": "modal",
    "callback_id": "form",
    "title": plain("A form"),
    "submit": plain("Submit"),
    "close": plain("Cancel"),
    "blocks": [
        field("why", "Why", {"type": "plain_text_input", "action_id": "v", "max_length": 10}),
        field("fruit", "Fruit", {"type": "static_select", "action_id": "v", "options": FRUIT}),
        field(
            "note", "Note", {"type": "plain_text_input", "action_id": "v", "multiline": True}, optional=True
        ),
        field(
            "size",
            "Size",
            {"type": "number_input", "action_id": "v", "is_decimal_allowed": False},
            optional=True,
        ),
        field("day", "Day", {"type": "datepicker", "action_id": "v", "initial_date": "2026-02-01"}),
        field(
            "ends", "Ends", {"type": "datetimepicker", "action_id": "v", "initial_date_time": 1_770_000_015}
        ),
    ],
}


async def test_a_modal_shows_errors_under_its_fields_until_they_are_mended(page: Page, desk: Desk) -> None:
    desk.modal = FORM
    desk.errors = {"why": "That is no reason."}
    await desk.post(actions(button("Edit", "open")))
    await opened(page, desk)
    await page.get_by_role("button", name="Edit", exact=True).click()
    form = page.get_by_role("dialog", name="A form")
    why = form.get_by_label("Why")
    await expect(why).to_be_focused()

    await why.press("Enter")
    await expect(form.get_by_text("Please complete this required field.")).to_have_count(2)
    await expect(why).to_be_focused()
    await why.fill("01234567890")
    await expect(form.locator(".counter")).to_have_text("-1")
    await form.get_by_role("combobox", name="Fruit").click()
    await form.get_by_role("option", name="Cherry").click()
    await expect(form.get_by_text("Please complete this required field.")).to_have_count(0)
    await form.get_by_label("Size").fill("many")
    await form.get_by_role("button", name="Submit").click()
    await expect(form.get_by_role("alert").filter(has_text="at most 10")).to_be_visible()
    await expect(form.get_by_role("alert").filter(has_text="whole number")).to_be_visible()
    assert desk.submitted == []

    await form.get_by_label("Size").fill("3")
    day, ends = form.get_by_label("Day"), form.get_by_label("Ends")
    await expect(day).to_have_value("2026-02-01")
    await day.fill("2026-02-28")
    seconds = "new Date(document.activeElement.value).getTime() / 1000"
    await ends.focus()
    assert await page.evaluate(seconds) == 1_770_000_000  # a picker shows minutes
    await ends.fill("2026-02-28T12:00")
    noon = await page.evaluate(seconds)
    await why.fill("because")
    await why.press("Enter")
    await expect(form.get_by_text("That is no reason.")).to_be_visible()
    await expect(why).to_have_attribute("aria-invalid", "true")
    await expect(why).to_have_value("because")

    desk.errors = {}
    await form.get_by_label("Note").fill("two\nlines")
    await form.get_by_label("Note").press("Control+Enter")
    await expect(form).to_have_count(0)
    values = desk.submitted[-1]
    assert values["why"]["v"]["value"] == "because"
    assert values["fruit"]["v"]["selected_option"]["value"] == "c"
    assert values["note"]["v"]["value"] == "two\nlines"
    assert values["size"]["v"]["value"] == "3"
    assert values["day"]["v"] == {"type": "datepicker", "selected_date": "2026-02-28"}
    assert values["ends"]["v"] == {"type": "datetimepicker", "selected_date_time": noon}
    await expect(page.get_by_role("button", name="Edit", exact=True)).to_be_focused()


async def test_a_modal_keeps_the_keyboard_and_closes_with_escape(page: Page, desk: Desk) -> None:
    desk.modal = FORM
    await desk.post(actions(button("Edit", "open")))
    await opened(page, desk)
    await page.get_by_role("button", name="Edit", exact=True).click()
    form = page.get_by_role("dialog", name="A form")
    await expect(form).to_be_visible()
    for key in ["Tab"] * 9 + ["Shift+Tab"] * 9:
        await page.keyboard.press(key)
        assert await page.evaluate("document.activeElement.closest('dialog') !== null")
    await form.get_by_role("combobox", name="Fruit").focus()
    await page.keyboard.press("ArrowDown")
    await expect(form.get_by_role("option", name="Apple")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(form.get_by_role("option")).to_have_count(0)
    await expect(form).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(form).to_have_count(0)
    assert desk.slack.as_user(desk.ana).modal is None


async def test_a_click_that_fails_says_so_beside_the_button(page: Page, desk: Desk) -> None:
    await desk.post(actions(button("Approve", "broken")))
    await opened(page, desk)
    await page.get_by_role("button", name="Approve", exact=True).click()
    await expect(page.get_by_role("alert")).to_have_text("That didn't work. Try again.")
    await expect(page.locator("[aria-busy]")).to_have_count(0)


async def test_an_update_leaves_open_menus_typed_text_and_scrolling_alone(page: Page, desk: Desk) -> None:
    lines = [{"type": "section", "text": mrkdwn(f"line {n}\n" * 8)} for n in range(6)]
    picker = {"type": "static_select", "action_id": "pick", "placeholder": plain("Choose"), "options": FRUIT}
    ts = await desk.post(
        {"type": "section", "text": mrkdwn("before")}, actions(picker, block="first"), *lines
    )
    await opened(page, desk)
    composer = page.get_by_role("textbox", name="Message #agents")
    await composer.fill("half a thought")
    pick = page.get_by_role("combobox", name="Choose")
    await pick.click()
    await page.keyboard.type("an")
    feed = page.get_by_role("log")
    scrolled = await feed.evaluate("node => node.scrollTop")

    await desk.update(
        ts, {"type": "section", "text": mrkdwn("after")}, actions(picker, block="second"), *lines
    )
    await expect(page.get_by_text("after", exact=True)).to_be_attached()
    await expect(pick).to_be_focused()
    await expect(pick).to_have_value("an")
    await expect(page.get_by_role("listbox").get_by_role("option")).to_have_text(["Banana"])
    await expect(composer).to_have_value("half a thought")
    assert await feed.evaluate("node => node.scrollTop") == scrolled

    await page.keyboard.press("Enter")
    act = await desk.next_act()
    assert (act["block_id"], act["selected_option"]["value"]) == ("second", "b")


async def test_threads_people_and_reload_keep_their_place(page: Page, desk: Desk) -> None:
    root = await desk.post({"type": "section", "text": mrkdwn("A question")})
    await desk.post({"type": "section", "text": mrkdwn("first reply")}, thread_ts=root)
    await desk.client.chat_postEphemeral(channel=desk.channel, user=desk.ana, text="For Ana alone")
    await opened(page, desk)
    note = page.get_by_role("article").filter(has_text="For Ana alone")
    await expect(note.get_by_text("Only visible to you")).to_be_visible()
    await page.get_by_role("button", name="1 reply").click()
    thread = page.get_by_role("complementary", name="Thread")
    await expect(thread.get_by_text("first reply")).to_be_visible()
    await thread.get_by_role("textbox", name="Reply").fill("hello @ben <b>")
    await page.keyboard.press("Enter")
    await expect(thread.get_by_text("hello @Ben <b>")).to_be_visible()

    await page.get_by_label("You are").select_option("Ben")
    await expect(note).to_have_count(0)
    await expect(page.get_by_role("button", name="2 replies")).to_be_visible()
    await page.reload()
    await expect(page.get_by_label("You are")).to_have_value(desk.ben)
    await expect(thread.get_by_text("first reply")).to_be_visible()
    await thread.get_by_role("button", name="Close thread").click()
    await expect(thread).to_be_hidden()


async def test_unknown_blocks_are_named_and_foreign_pictures_are_not_fetched(page: Page, desk: Desk) -> None:
    await desk.post({"type": "image", "image_url": "https://example.test/a.png", "alt_text": "A chart"})
    await opened(page, desk)
    await expect(page.get_by_text("A chart")).to_be_visible()
    await expect(page.locator(".message-body img")).to_have_count(0)
    message = desk.slack.world.find(desk.channel, desk.slack.messages(desk.channel)[0]["ts"])
    assert message is not None
    message.blocks = [{"type": "hologram", "block_id": "h"}]
    desk.slack.world.changed()
    await expect(page.get_by_text("Block of type hologram is not drawn here.")).to_be_visible()


async def test_a_slash_offers_the_commands_and_the_answer_is_private(page: Page, desk: Desk) -> None:
    await opened(page, desk)
    composer = page.get_by_role("textbox", name="Message #agents")
    await composer.press_sequentially("/g")
    offer = page.get_by_role("listbox", name="Suggestions").get_by_role("option")
    await expect(offer).to_have_count(1)
    await expect(offer).to_contain_text("/gates")
    await composer.press("Enter")
    await expect(composer).to_have_value("/gates ")
    await composer.press_sequentially("list mine")
    await composer.press("Enter")
    answer = page.get_by_role("article").filter(has_text="You said: list mine")
    await expect(answer.get_by_text("Only visible to you")).to_be_visible()
    await answer.get_by_role("button", name="Dismiss").click()
    await expect(answer).to_have_count(0)

    await composer.fill("/nonsense")
    await composer.press("Enter")
    await expect(
        page.get_by_role("alert").filter(has_text="/nonsense is not a valid command")
    ).to_be_visible()
    await expect(composer).to_have_value("/nonsense")


async def test_home_and_direct_messages_open_from_the_sidebar(page: Page, desk: Desk) -> None:
    await opened(page, desk)
    side = page.get_by_role("navigation", name="Channels and direct messages")
    await side.get_by_role("link", name="askgate").click()
    await expect(page.get_by_role("main").get_by_text("The home of @Ana")).to_be_visible()
    await page.get_by_role("button", name="Messages").click()
    await expect(page.get_by_role("textbox", name="Message askgate")).to_be_visible()

    await side.get_by_text("Ben").click()
    await page.get_by_role("textbox", name="Message Ben").fill("lunch?")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("log").get_by_text("lunch?")).to_be_visible()
    await page.get_by_label("You are").select_option("Ben")
    await expect(page.get_by_role("heading", name="Ana")).to_be_visible()
    await expect(page.get_by_role("log").get_by_text("lunch?")).to_be_visible()


async def test_who_acts_can_be_changed_while_what_the_last_one_sees_is_still_on_its_way(
    page: Page, desk: Desk
) -> None:
    await opened(page, desk)
    asked, answered = asyncio.Event(), asyncio.Event()

    async def hold(route: Route) -> None:
        asked.set()
        await answered.wait()
        await route.continue_()

    await page.route(re.compile(rf"/ui/state\?.*{desk.ana}"), hold, times=1)
    await desk.post({"type": "section", "text": plain("news")})
    await asyncio.wait_for(asked.wait(), 5)
    await page.evaluate(f"location.hash = '#as={desk.ben}&in={desk.channel}'")
    answered.set()
    await expect(page.get_by_label("You are")).to_have_value(desk.ben)
    assert f"as={desk.ben}" in page.url
    await desk.post({"type": "section", "text": plain("more news")})
    await expect(page.get_by_text("more news")).to_be_visible()


async def test_a_permanent_link_leads_to_its_message(page: Page, desk: Desk) -> None:
    root = await desk.post({"type": "section", "text": mrkdwn("A question")})
    reply = await desk.post({"type": "section", "text": mrkdwn("the reply meant")}, thread_ts=root)
    link = (await desk.client.chat_getPermalink(channel=desk.channel, message_ts=reply))["permalink"]
    await page.goto(link)
    thread = page.get_by_role("complementary", name="Thread")
    await expect(thread.get_by_role("article").filter(has_text="the reply meant")).to_be_focused()


async def test_a_lost_server_is_announced_and_what_was_missed_appears(page: Page) -> None:
    async with LocalSlack() as first:
        ana = first.add_user("ana")
        channel = first.add_channel("agents", ["ana"])
        port = urlsplit(first.url).port
        await page.goto(f"{first.url}/#as={ana}&in={channel}")
        await expect(page.get_by_role("heading", name="agents")).to_be_visible()
    await expect(page.locator("#connection")).to_have_text("Reconnecting…")
    async with LocalSlack(port=port or 0) as second:
        second.add_user("ana")
        second.add_channel("agents", ["ana"])
        await second.as_user("ana").say("agents", "back again")
        await expect(page.get_by_text("back again")).to_be_visible()
        await expect(page.get_by_text("Reconnecting…")).to_be_hidden()
        await page.close()


async def test_text_without_styles_keeps_its_signs(page: Page, desk: Desk) -> None:
    group = desk.slack.add_group("oncall", ["ben"])
    text = f"Wrong *folders* and _more_ `code`\n&lt;b&gt; <@{desk.ben}> <!subteam^{group}>"
    await desk.client.chat_postMessage(channel=desk.channel, text=text, mrkdwn=False)
    body = (await opened(page, desk)).locator(".message-body")
    await expect(body).to_have_text("Wrong *folders* and _more_ `code`\n<b> @Ben @oncall")
    await expect(body.locator("strong, em, code, b")).to_have_count(0)
    await expect(body.locator(".mention")).to_have_text(["@Ben", "@oncall"])


async def test_the_page_reaches_no_other_host_even_if_a_script_wants_to(page: Page, desk: Desk) -> None:
    async with LocalSlack() as other:
        await opened(page, desk)
        blocked = await page.evaluate(TRIES, other.url)
        assert set(blocked) == {
            *("connect-src", "frame-src", "img-src", "script-src-elem", "style-src-elem", "form-action")
        }
        assert "owned" not in await page.title()


TRIES = """
async (host) => {
  const blocked = [];
  document.addEventListener("securitypolicyviolation", (event) => blocked.push(event.effectiveDirective));
  const put = (name, more) => document.body.append(Object.assign(document.createElement(name), more));
  await fetch(`${host}/ui/state`, { mode: "no-cors" }).catch(() => null);
  put("iframe", { src: host });
  put("img", { src: `${host}/a.png` });
  put("script", { src: `${host}/static/main.js` });
  put("script", { textContent: "document.title = 'owned'" });
  put("link", { rel: "stylesheet", href: `${host}/static/style.css` });
  const form = Object.assign(document.createElement("form"), { action: `${host}/`, method: "post" });
  document.body.append(form);
  form.submit();
  const until = performance.now() + 3000;
  while (new Set(blocked).size < 6 && performance.now() < until) {
    await new Promise((go) => setTimeout(go, 20));
  }
  return blocked;
}
"""
"""Tries every way out of the page, and tells which of the policy's directives stopped it."""
