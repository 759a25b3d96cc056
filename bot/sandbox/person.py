"""Act as a person by the words on the screen, as a user's test suite would."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bot.sandbox import blocks, payloads
from bot.sandbox.acts import Acts, Done, Impossible, Spot
from bot.sandbox.messages import Message
from bot.sandbox.words import Words, bare
from bot.sandbox.world import App, View, World

Json = dict[str, Any]
Choice = str | Sequence[str]


@dataclass(frozen=True, slots=True)
class Result:
    """What came of an act: `error` is Slack's "did not work", `errors` a form's, by the field's label.

    `modal` is the view in front of the person afterwards; `message` the one that `say` wrote.
    """

    ok: bool
    error: str | None = None
    errors: Mapping[str, str] = field(default_factory=dict)
    modal: Json | None = None
    message: Json | None = None


@dataclass(frozen=True, slots=True)
class Control:
    """An element in front of the person, and where."""

    spot: Spot
    block: Json
    element: Json


class Person:
    """One person at their screen. An act that the screen does not offer raises `Impossible`."""

    def __init__(self, world: World, acts: Acts, words: Words, user: str) -> None:
        self._world = world
        self._acts = acts
        self._words = words
        self.id = user
        self.name = world.users[user].name

    # what is there to see

    @property
    def modal(self) -> Json | None:
        """The modal's view in front, or None."""
        view = self._world.top_view(self.id)
        return copy.deepcopy(payloads.view_json(self._world, view)) if view else None

    @property
    def home(self) -> Json | None:
        """The first app's Home tab, or None before it was published."""
        view = self._world.home(self.id, self._first_app().id)
        return copy.deepcopy(payloads.view_json(self._world, view)) if view else None

    @property
    def dm(self) -> str:
        """The id of the direct conversation with the first app's bot."""
        return self._world.dm(self.id, self._first_app().bot_user).id

    def sees(self, channel: str, thread_ts: str | None = None) -> list[Json]:
        """The messages of a conversation or of one thread, oldest first, private ones (`ephemeral`) too."""
        found = self._world.channel_named(channel)
        if found is None or self.id not in found.members:
            raise Impossible(f"{self.name} is not in {channel}")
        rows = self._world.messages.of(found.id, self.id)
        return [self._message(m) for m in rows if thread_ts is None or thread_ts in (m.ts, m.thread_ts)]

    def text(self, thing: Json) -> str:
        """All visible text of a message or view."""
        return self._words.of(thing)

    # acting

    async def click(
        self, words: str, *, message: Json | None = None, near: str | None = None, confirm: bool = False
    ) -> Result:
        """Click the newest visible button that says `words` (a leading emoji and an ellipsis aside).

        `message` looks into one message or view only, which may be an old copy; `near` wants the
        button at or below a block with that text. With a modal open, only its buttons are in reach.
        A button that asks back needs `confirm=True`, and only such a button takes it.
        """
        control = self._control(
            lambda e: e["type"] == "button" and bare(e["text"]["text"]) == words,
            message,
            near,
            f"button {words!r}",
        )
        if confirm != ("confirm" in control.element):
            asks = "asks to confirm: pass" if not confirm else "does not ask to confirm: leave out"
            raise Impossible(f"the button {words!r} {asks} confirm=True")
        return self._result(await self._use(control))

    async def select(self, words: Choice, *, message: Json | None = None, near: str | None = None) -> Result:
        """Choose what says `words` in a menu, radio buttons or checkboxes; a list sets several at once.

        `@name` chooses that person in a menu of people.
        """
        wanted = [words] if isinstance(words, str) else list(words)
        control = self._control(lambda e: self._offers(e, wanted), message, near, f"choice {words!r}")
        return self._result(await self._use(control, self._raw(control.element, words)))

    async def fill(self, entries: Mapping[str, Choice], *, message: Json | None = None) -> Result:
        """Fill fields by their label, in the open modal (or in `message`): a text, or the words to choose."""
        for label, entry in entries.items():
            control = next(
                (c for c in self._controls(message) if c.block.get("label", {}).get("text") == label), None
            )
            if control is None:
                raise Impossible(f"{self.name} sees no field {label!r}")
            raw = self._raw(control.element, entry)
            block_id, action_id = control.block["block_id"], control.element["action_id"]
            self._acts.enter(self.id, control.spot, block_id, action_id, raw)
        return self._result(Done())

    async def submit(self) -> Result:
        """Press the modal's submit button."""
        view = self._open()
        labels = {b["block_id"]: b["label"]["text"] for b in view.body["blocks"] if b["type"] == "input"}
        done = await self._acts.submit(self.id, view.id, {})
        errors = {labels[block]: text for block, text in done.errors.items()}
        return self._result(Done(done.ok, done.error, errors))

    async def close_modal(self) -> Result:
        """Dismiss the view in front."""
        return self._result(await self._acts.close(self.id, self._open().id))

    async def command(self, command: str, text: str = "", *, channel: str) -> Result:
        """Run a slash command in a conversation."""
        return self._result(await self._acts.command(self.id, channel, command, text))

    async def say(
        self, channel: str, text: str, thread_ts: str | None = None, *, broadcast: bool = False
    ) -> Result:
        """Write a message, or a reply in a thread (`broadcast`: that is sent to the channel as well)."""
        return self._wrote(await self._acts.say(self.id, channel, text, thread_ts, broadcast=broadcast))

    async def edit(self, message: Json, text: str) -> Result:
        """Change a message of one's own, as `say` returned it."""
        return self._wrote(self._acts.edit(self.id, message["channel"], message["ts"], text))

    async def delete(self, message: Json) -> Result:
        """Delete a message of one's own."""
        self._acts.delete(self.id, message["channel"], message["ts"])
        return self._result(Done())

    def _wrote(self, message: Message) -> Result:
        shown = payloads.message_json(self._world, message) | {"channel": message.channel}
        return self._result(Done(), shown)

    async def open_home(self) -> Result:
        """Open the first app's Home tab. What it publishes then shows in `home`."""
        return self._result(self._acts.open_home(self.id, self._first_app()))

    async def shortcut(self, words: str, *, message: Json | None = None) -> Result:
        """Run the global shortcut that says `words` (or has them as its callback id); on `message` one for messages."""
        kind, app = ("message" if message else "global"), self._first_app()
        named = (s.callback_id for s in app.shortcuts if s.type == kind and s.name == words)
        found = self._world.find(message["channel"], message["ts"], self.id) if message else None
        return self._result(await self._acts.shortcut(self.id, app, next(named, words), found))

    # finding things on the screen

    def _first_app(self) -> App:
        return self._world.apps_of(self.id)[0]

    def _open(self) -> View:
        view = self._world.top_view(self.id)
        if view is None:
            raise Impossible(f"{self.name} has no modal open")
        return view

    def _message(self, message: Message) -> Json:
        picks = message.picks.get(self.id, {})
        return copy.deepcopy(
            {
                **payloads.message_json(self._world, message, metadata=True),
                "channel": message.channel,
                "ephemeral": message.viewer is not None,
                "state": {"values": blocks.values(message.blocks, picks)},
            }
        )

    def _surfaces(self, message: Json | None) -> Iterator[tuple[Spot, list[Json]]]:
        """The surfaces within reach, nearest first: the one given, else the modal, else messages and Home."""
        if message is not None:
            if message.get("type") in ("modal", "home"):
                yield Spot(view_id=message["id"], shown=message["blocks"]), message["blocks"]
            else:
                shown = message.get("blocks", [])
                channel = message.get("channel") or self._channel_of(message["ts"])
                yield Spot(channel, message["ts"], shown=shown), shown
            return
        if (view := self._world.top_view(self.id)) is not None:
            yield Spot(view_id=view.id), view.body["blocks"]
            return
        channels = self._world.channels_of(self.id)
        rows = [m for channel in channels for m in self._world.messages.of(channel.id, self.id)]
        for row in sorted(rows, key=lambda m: m.ts, reverse=True):
            if row.app is not None:
                yield Spot(row.channel, row.ts), row.blocks
        if (home := self._world.home(self.id, self._first_app().id)) is not None:
            yield Spot(view_id=home.id), home.body["blocks"]

    def _channel_of(self, ts: str) -> str:
        for channel in self._world.channels_of(self.id):
            if self._world.find(channel.id, ts, self.id) is not None:
                return channel.id
        raise Impossible(f"{self.name} sees no message {ts}")

    def _controls(self, message: Json | None, near: str | None = None) -> Iterator[Control]:
        for spot, shown in self._surfaces(message):
            start = 0
            if near is not None:
                texts = ("\n".join(self._words.block(block, {})) for block in shown)
                start = next((index for index, text in enumerate(texts) if near in text), len(shown))
            for block, element in blocks.elements(shown[start:]):
                yield Control(spot, block, element)

    def _control(
        self, fits: Callable[[Json], bool], message: Json | None, near: str | None, what: str
    ) -> Control:
        for control in self._controls(message, near):
            if fits(control.element):
                return control
        below = f" below {near!r}" if near else ""
        raise Impossible(f"{self.name} sees no {what}{below}")

    # choosing

    def _labels(self, element: Json) -> dict[str, str]:
        """What an element offers: words -> option value."""
        return {bare(self._words.text(o["text"])): o["value"] for o in blocks.options_of(element)}

    def _offers(self, element: Json, wanted: Sequence[str]) -> bool:
        if element["type"] in ("users_select", "multi_users_select"):
            return all(words.startswith("@") for words in wanted)
        labels = self._labels(element)
        return bool(labels) and all(bare(words) in labels for words in wanted)

    def _raw(self, element: Json, words: Choice) -> Any:
        """The raw value for the words a person chose or typed."""
        kind = element["type"]
        many = kind in ("multi_static_select", "checkboxes", "multi_users_select")
        wanted = [words] if isinstance(words, str) else list(words)
        if kind in ("users_select", "multi_users_select"):
            raws = [self._person(word) for word in wanted]
        elif blocks.options_of(element):
            labels = self._labels(element)
            if missing := [word for word in wanted if bare(word) not in labels]:
                raise Impossible(f"no such choice: {missing}; there are {list(labels)}")
            raws = [labels[bare(word)] for word in wanted]
        else:
            return words
        return raws if many else raws[0]

    def _person(self, word: str) -> str:
        user = self._world.user_named(word.removeprefix("@"))
        if user is None:
            raise Impossible(f"no such person: {word}")
        return user.id

    async def _use(self, control: Control, raw: Any = None) -> Done:
        block_id, action_id = control.block["block_id"], control.element["action_id"]
        return await self._acts.use(self.id, control.spot, block_id, action_id, raw)

    def _result(self, done: Done, message: Json | None = None) -> Result:
        return Result(done.ok, done.error, done.errors, self.modal, message)
