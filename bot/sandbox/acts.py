"""What a person does: click, pick, type, submit, close, say, run a command. One way for page and tests."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bot.sandbox import blocks, payloads, responses
from bot.sandbox.delivery import Courier, Reply
from bot.sandbox.messages import Message
from bot.sandbox.methods import Refused
from bot.sandbox.methods import views as view_methods
from bot.sandbox.world import App, Channel, User, View, World

Json = dict[str, Any]


class Impossible(Exception):
    """The person cannot do this: there is no such thing in front of them."""


@dataclass(frozen=True, slots=True)
class Done:
    """What came of an act. `errors` are a form's, by block id; `error` is Slack's warning triangle."""

    ok: bool = True
    error: str | None = None
    errors: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Spot:
    """Where an element stands: in a message or in a view, as the person sees it.

    `shown` are the blocks of an older copy that is still on the person's screen.
    """

    channel: str = ""
    ts: str = ""
    view_id: str = ""
    shown: Sequence[Json] | None = None


class Acts:
    """Everything a person can do. Returns when the app has answered; raises `Impossible` for a slip."""

    def __init__(self, world: World, courier: Courier) -> None:
        self.world = world
        self.courier = courier

    # elements

    async def use(self, user_id: str, spot: Spot, block_id: str, action_id: str, raw: Any = None) -> Done:
        """Use an element: click a button, or choose `raw` in another one, and tell the app."""
        user = self._user(user_id)
        place = self._place(user, spot)
        block, element = self._element(place, spot, block_id, action_id)
        value = self._pick(user, place, block_id, element, raw)
        if block["type"] == "input" and not block.get("dispatch_action"):
            return Done()
        action = {**_shown(element), **value, "block_id": block_id, "action_ts": self.world.new_ts()}
        app = self.world.apps[place.app or ""]
        if isinstance(place, View):
            payload = payloads.view_action_json(self.world, app, user, place, action)
        else:
            picks = place.picks.get(user.id, {})
            payload = payloads.message_action_json(self.world, app, user, place, action, picks)
        return _done(await self.courier.interact(app, payload))

    def enter(self, user_id: str, spot: Spot, block_id: str, action_id: str, raw: Any) -> Done:
        """Fill an element without telling the app."""
        user = self._user(user_id)
        place = self._place(user, spot)
        _, element = self._element(place, spot, block_id, action_id)
        self._pick(user, place, block_id, element, raw)
        return Done()

    def _pick(self, user: User, place: Message | View, block_id: str, element: Json, raw: Any) -> Json:
        kind = element["type"]
        if kind == "button":
            return {name: element[name] for name in ("value", "text", "style") if name in element}
        try:
            value = blocks.value_of(element, raw)
        except ValueError as error:
            raise Impossible(str(error)) from None
        if kind in blocks.HOLDS:
            picks = place.picks if isinstance(place, View) else place.picks.setdefault(user.id, {})
            picks.setdefault(block_id, {})[element["action_id"]] = value
            self.world.changed()
        return value

    # modals

    async def submit(self, user_id: str, view_id: str, entries: Mapping[str, Mapping[str, Any]]) -> Done:
        """Press a modal's submit button, after filling `entries` (block id -> action id -> raw value)."""
        user = self._user(user_id)
        view = self._open_view(user, view_id)
        if not view.body.get("submit"):
            raise Impossible("this modal has nothing to submit")
        for block_id, actions in entries.items():
            for action_id, raw in actions.items():
                self.enter(user_id, Spot(view_id=view_id), block_id, action_id, raw)
        shown = view.body["blocks"]
        if errors := blocks.entry_errors(shown, blocks.values(shown, view.picks)):
            return Done(False, errors=errors)
        app = self.world.apps[view.app]
        reply = await self.courier.interact(app, payloads.view_submission_json(self.world, app, user, view))
        if reply.error is not None:
            return _done(reply)
        if self.world.views.get(view_id) is not view:
            return Done()
        return self._answered(user, view, reply.body)

    def _answered(self, user: User, view: View, body: Any) -> Done:
        """Do what the app's answer to a submission says (Slack: view submission responses)."""
        action = body.get("response_action") if isinstance(body, dict) else None
        app = self.world.apps[view.app]
        try:
            if action == "errors":
                known = {b["block_id"] for b in view.body["blocks"] if b["type"] == "input"}
                errors = body.get("errors") or {}
                if not errors or not set(errors) <= known:
                    return Done(False, error="invalid_response: errors must name input blocks of the view")
                return Done(False, errors=errors)
            if action == "update":
                view_methods.put(view, view_methods.checked_view(body.get("view"), "modal"))
                self.world.changed()
            elif action == "push":
                fresh = view_methods.checked_view(body.get("view"), "modal")
                view_methods.push(self.world, app, user.id, fresh)
            elif action == "clear":
                view_methods.clear(self.world, user.id)
            elif action is None:
                self._pop(user)
            else:
                return Done(False, error=f"invalid_response: unknown response_action {action}")
        except Refused as refusal:
            details = "; ".join(refusal.more.get("errors", ()))
            return Done(False, error=f"invalid_response: {refusal.error} {details}".rstrip())
        return Done()

    async def close(self, user_id: str, view_id: str) -> Done:
        """Dismiss the visible view. The app hears of it only if it asked for (`notify_on_close`)."""
        user = self._user(user_id)
        view = self._open_view(user, view_id)
        app = self.world.apps[view.app]
        payload = payloads.view_closed_json(self.world, app, user, view, cleared=False)
        if view.body.get("clear_on_close"):
            view_methods.clear(self.world, user.id)
        else:
            self._pop(user)
        if not view.body.get("notify_on_close"):
            return Done()
        return _done(await self.courier.interact(app, payload))

    def _pop(self, user: User) -> None:
        stack = self.world.stacks[user.id]
        del self.world.views[stack.pop()]
        if not stack:
            del self.world.stacks[user.id]
        self.world.changed()

    # words

    async def say(
        self,
        user_id: str,
        channel_id: str,
        text: str,
        thread_ts: str | None = None,
        *,
        broadcast: bool = False,
    ) -> Message:
        """Write a message. `@name` mentions that person; apps hear of it as events.

        `broadcast`: a reply that is sent to the channel as well.
        """
        user = self._user(user_id)
        channel = self._channel(user, channel_id)
        if not text.strip():
            raise Impossible("a message needs text")
        if thread_ts is not None and self.world.find(channel.id, thread_ts) is None:
            raise Impossible(f"no message to reply to at {thread_ts}")
        if broadcast and thread_ts is None:
            raise Impossible("only a reply can be sent to the channel as well")
        message = Message(
            channel.id,
            self.world.new_ts(),
            user.id,
            self._escaped(_sound(text)),
            thread_ts=thread_ts,
            broadcast=broadcast,
        )
        return self.world.add(message)

    def edit(self, user_id: str, channel_id: str, ts: str, text: str) -> Message:
        """Change a message of one's own. Apps hear `message_changed`, with the message before and after."""
        message = self._own_message(user_id, channel_id, ts)
        if not text.strip():
            raise Impossible("a message needs text")
        before = payloads.message_json(self.world, message)
        message.text = self._escaped(_sound(text))
        message.edited = {"user": user_id, "ts": self.world.new_ts()}
        self.world.changed()
        after = payloads.message_json(self.world, message)
        self._tell_of(message, "message_changed", {"message": after, "previous_message": before})
        return message

    def delete(self, user_id: str, channel_id: str, ts: str) -> None:
        """Delete a message of one's own. Apps hear `message_deleted`."""
        message = self._own_message(user_id, channel_id, ts)
        before = payloads.message_json(self.world, message)
        if self.world.messages.replies(message.channel, message.ts):
            message.text, message.subtype = "This message was deleted.", "tombstone"
            self.world.changed()
        else:
            self.world.remove(message)
        self._tell_of(message, "message_deleted", {"deleted_ts": message.ts, "previous_message": before})

    def _own_message(self, user_id: str, channel_id: str, ts: str) -> Message:
        user = self._user(user_id)
        message = self.world.find(self._channel(user, channel_id).id, ts)
        if message is None or message.user != user.id or message.subtype == "tombstone":
            raise Impossible(f"{user.name} has no message at {ts}")
        return message

    def _tell_of(self, message: Message, subtype: str, more: Json) -> None:
        """Tell every app in the conversation what became of a message (Slack: the message event's subtypes)."""
        kind = payloads.message_event(self.world, message)["channel_type"]
        ts = self.world.new_ts()
        event = {"type": "message", "subtype": subtype, "hidden": True, "channel": message.channel}
        event |= {"channel_type": kind, "ts": ts, "event_ts": ts, **more}
        members = self.world.channels[message.channel].members
        for app in self.world.apps.values():
            if app.bot_user in members:
                self.courier.event(app, event)

    def _escaped(self, text: str, *, named: bool = False) -> str:
        """Text as Slack sends it on: entities, and mentions of whom `@` or `#` names; ``named``: with the name."""
        for mark, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
            text = text.replace(mark, entity)

        def mention(found: re.Match[str]) -> str:
            mark, name = found.groups()
            label = f"|{name}" if named else ""
            if mark == "#":
                channel = self.world.channel_named(name)
                return f"<#{channel.id}{label}>" if channel else found[0]
            if user := self.world.user_named(name):
                return f"<@{user.id}{label}>"
            group = next((group for group in self.world.groups.values() if group.handle == name), None)
            return f"<!subteam^{group.id}|@{name}>" if group else found[0]

        return re.sub(r"(?<!\w)([@#])([\w.-]+)", mention, text)

    def announce(self, message: Message) -> None:
        """Tell every app in the conversation about a message, and an app that is mentioned once more."""
        event = payloads.message_event(self.world, message)
        members = self.world.channels[message.channel].members
        for app in self.world.apps.values():
            if app.bot_user in members:
                self.courier.event(app, event)
                is_mention = f"<@{app.bot_user}>" in message.text and message.user != app.bot_user
                if is_mention and event["channel_type"] != "im":
                    self.courier.event(app, {**event, "type": "app_mention"})

    async def command(self, user_id: str, channel_id: str, command: str, text: str = "") -> Done:
        """Run a slash command in a conversation."""
        user = self._user(user_id)
        channel = self._channel(user, channel_id)
        apps = self.world.apps_of(user.id)
        found = next(((a, c) for a in apps for c in a.commands if c.command == command), None)
        if found is None:
            return Done(False, error=f"{command} is not a valid command")
        app, known = found
        text = self._escaped(_sound(text), named=True) if known.should_escape else _sound(text)
        form = payloads.command_form(self.world, app, user, channel, command, text)
        reply = await self.courier.command(app, form)
        if reply.error is None and isinstance(reply.body, dict) and reply.body:
            try:
                responses.say(self.world, app, user.id, channel.id, reply.body)
            except Refused as refusal:
                return Done(False, error=f"invalid_response: {refusal.error}")
        return _done(reply)

    async def shortcut(
        self, user_id: str, app: App, callback_id: str, message: Message | None = None
    ) -> Done:
        """Run a global shortcut, or a message shortcut on `message`."""
        payload = payloads.shortcut_json(self.world, app, self._user(user_id), callback_id, message)
        return _done(await self.courier.interact(app, payload))

    async def shortcut_named(self, user_id: str, callback_id: str, on: tuple[str, str] | None) -> Done:
        """Run a shortcut that an app offers, on the message `(channel, ts)` if it is one for messages."""
        user = self._user(user_id)
        kind = "message" if on else "global"
        app = next(
            (
                app
                for app in self.world.apps_of(user.id)
                if any(s.callback_id == callback_id and s.type == kind for s in app.shortcuts)
            ),
            None,
        )
        if app is None:
            raise Impossible(f"no app offers the {kind} shortcut {callback_id}")
        message = self.world.find(self._channel(user, on[0]).id, on[1], user.id) if on else None
        if on and message is None:
            raise Impossible(f"{user.name} sees no such message: {on[1]}")
        return await self.shortcut(user_id, app, callback_id, message)

    def open_home(self, user_id: str, app: App) -> Done:
        """Open the app's Home tab; the app hears `app_home_opened`."""
        user = self._user(user_id)
        home = self.world.home(user.id, app.id)
        event: Json = {
            "type": "app_home_opened",
            "user": user.id,
            "channel": self.world.dm(user.id, app.bot_user).id,
            "tab": "home",
            "event_ts": self.world.new_ts(),
        }
        if home is not None:
            event["view"] = payloads.view_json(self.world, home)
        self.courier.event(app, event)
        return Done()

    # conversations

    def open_dm(self, user_id: str, other_id: str) -> Channel:
        """The direct conversation of two people, opened if need be."""
        return self.world.dm(self._user(user_id).id, self._user(other_id).id)

    def read(self, user_id: str, channel_id: str) -> None:
        """Mark a conversation as read up to its newest message."""
        user = self._user(user_id)
        channel = self._channel(user, channel_id)
        seen = [m.ts for m in self.world.messages.of(channel.id, user.id)]
        if seen and channel.read.get(user.id) != seen[-1]:
            channel.read[user.id] = seen[-1]
            self.world.changed()

    # finding

    def _user(self, user_id: str) -> User:
        user = self.world.users.get(user_id)
        if user is None:
            raise Impossible(f"no such person: {user_id}")
        return user

    def _channel(self, user: User, channel_id: str) -> Channel:
        channel = self.world.channel_named(channel_id)
        if channel is None or user.id not in channel.members:
            raise Impossible(f"{user.name} is not in {channel_id}")
        return channel

    def _open_view(self, user: User, view_id: str) -> View:
        view = self.world.top_view(user.id)
        if view is None or view.id != view_id:
            raise Impossible(f"{user.name} has no such modal in front: {view_id}")
        return view

    def _place(self, user: User, spot: Spot) -> Message | View:
        if spot.view_id:
            view = self.world.views.get(spot.view_id)
            if view is None or view.user != user.id:
                raise Impossible(f"{user.name} sees no such view: {spot.view_id}")
            return view
        channel = self._channel(user, spot.channel)
        message = self.world.find(channel.id, spot.ts, user.id)
        if message is None or message.app is None:
            raise Impossible(f"{user.name} sees no such message of an app: {spot.ts}")
        return message

    def _element(self, place: Message | View, spot: Spot, block_id: str, action_id: str) -> tuple[Json, Json]:
        own = place.body["blocks"] if isinstance(place, View) else place.blocks
        shown = list(spot.shown) if spot.shown is not None else own
        found = blocks.element_at(shown, block_id, action_id)
        if found is None:
            raise Impossible(f"no element {action_id} in block {block_id}")
        return found


def _shown(element: Json) -> Json:
    """The part of an element that an action repeats beside its value."""
    names = ("type", "action_id", "placeholder", "initial_option", "initial_options", "initial_user")
    return {name: element[name] for name in names if name in element}


def _sound(text: str) -> str:
    """Text as it can be sent: half a surrogate pair becomes a question mark."""
    return text.encode("utf-8", "replace").decode()


def _done(reply: Reply) -> Done:
    return Done(reply.error is None, reply.error)
