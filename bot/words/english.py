"""Every sentence that askgate itself says in Slack, in English.

Sentences that go into markup get escaped arguments only; the others are plain text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from core.gates import Action, Decision, Outcome

# buttons: people and tests find things by these words
APPROVE: Final = "Approve"
APPROVE_ALL_TITLE: Final = "Approve all"
REJECT: Final = "Reject"
REJECT_WITH_REASON: Final = "Reject with reason…"
VIEW_IN_FULL: Final = "View in full…"
OTHER: Final = "Other…"
SUBMIT: Final = "Submit"
FORM: Final = "Answer in a form…"
GENERAL_RESPONSE: Final = "General response…"
DECLINE: Final = "Decline…"
DECLINE_IT: Final = "Decline"
ANSWER: Final = "Answer…"
DONE: Final = "Done"
ACCEPT: Final = "Accept"
EDIT: Final = "Edit arguments…"
ALWAYS: Final = "Approve always"
NEXT: Final = "Next"
PREVIOUS: Final = "Previous"
LAST: Final = "Last page"
CANCEL: Final = "Cancel"
CLOSE: Final = "Close"
OPEN_LINK: Final = "Open the page"


def open_link(host: str) -> str:
    return f"Open {host}"


def about(label: str, what: str) -> str:
    """A button's name for who hears it and sees nothing around it."""
    return f"{label}: {what}"


def approve_all(count: int) -> str:
    return f"Approve all {count}"


# the file with arguments that are too long for everything else


def file_title(short: str) -> str:
    return f"Arguments {short}"


def file_comment(short: str) -> str:
    """What stands above the file, as markup."""
    return f"All of the arguments of the call that waits for approval (`{short}`)"


def file_refused(code: str) -> str:
    """``code`` is Slack's word for why."""
    return (
        f"Slack did not take the file with all of the arguments (`{code}`), so this cannot be approved here. "
        "It can be rejected here, or decided over the API."
    )


# what Cancel asks back
DISMISS_TITLE: Final = "Cancel this request?"
DISMISS_TEXT: Final = (
    "The agent is told that it was dismissed. It gets no answer, and nobody else can give one."
)
DISMISS: Final = "Cancel it"
KEEP: Final = "Keep it open"

# cards
DEFAULT_TITLE: Final = "An agent needs you"
CHOOSE_ONE: Final = "Choose one"
CHOOSE_SOME: Final = "Choose one or more"
APPROVAL: Final = "Approval needed: "
CUSTOM: Final = "Answer needed: "
FILL: Final = "Form to fill in: "
LINK: Final = "To be done elsewhere: "
LEADS_TO: Final = "It leads to:"
LEADS_TO_ORIGIN: Final = "It is done at:"
REQUIRED: Final = " (required)"
YES: Final = "Yes"
NO: Final = "No"
ARGUMENTS_IN_FILE: Final = (
    "The arguments are too long for a card: all of them are in a file in its thread. "
    "Read it, then approve in *View in full*."
)
ARGUMENTS_CUT: Final = "The arguments go on: read them in full, then approve there."
TEXT_CUT: Final = "Some of this is cut here. Read all of it with *View in full*."
TOO_LONG_TO_EDIT: Final = "The arguments are too long to edit in Slack."
HIDDEN_TO_EDIT: Final = "The arguments cannot be edited in Slack: some of their values are hidden."
TOO_LONG_TO_SAVE: Final = (
    "What *Approve always* would save is too long to show in Slack, so it is not offered."
)
LINK_CUT: Final = "The address goes on: read all of it, then open it there."
CUSTOM_CUT: Final = "This goes on: read it with *View in full*."
PREVIEWS: Final = "Options have previews here: see them with *View in full*."
READ_ON_CARD: Final = "This goes on: the card's *View in full* shows all of it."
PICKED_SO_FAR: Final = "Picked so far: "
ARROW: Final = "→ "
NOT_TAKEN: Final = "Not taken: "
OPTIONS: Final = "Options: "
REASON: Final = "Reason"
EDITED_BY: Final = "Edited by "
EDITED_BACK: Final = ": as it was at first"
CHANGES: Final = "Changed from what the agent asked for:"
DEFAULT: Final = "Default: {default}"
SAVED: Final = "Saved: "
NOTHING: Final = "nothing"
ALWAYS_SETTLED: Final = "Approved always"
DISMISSED: Final = " (dismissed)"
REASON_WANTED: Final = {
    "always": "A reason is required",
    "on_reject": "Rejecting needs a reason",
}

SIGNS: Final = {
    Outcome.ANSWERED: "✅",
    Outcome.APPROVED: "✅",
    Outcome.DENIED: "⛔",
    Outcome.DECLINED: "🚫",
    Outcome.EXPIRED: "⌛",
    Outcome.CANCELLED: "🗑️",
    Outcome.UNDELIVERABLE: "📭",
    Outcome.SUPERSEDED: "↩️",
}
SETTLED: Final = {
    Outcome.ANSWERED: "Answered",
    Outcome.APPROVED: "Approved",
    Outcome.DENIED: "Rejected",
    Outcome.DECLINED: "Declined",
    Outcome.EXPIRED: "Expired",
    Outcome.CANCELLED: "Cancelled",
    Outcome.UNDELIVERABLE: "Undeliverable",
    Outcome.SUPERSEDED: "Superseded",
}
RISKS: Final = {
    "low": "Risk: low",
    "medium": "Risk: medium",
    "high": "⚠️ Risk: *high*",
    "extra_high": "🛑 Risk: *extra high*",
}
PLAIN_RISKS: Final = {
    "low": "risk low",
    "medium": "risk medium",
    "high": "⚠️ risk high",
    "extra_high": "🛑 risk extra high",
}
NOBODY: Final = {
    Outcome.EXPIRED: "nobody decided in time",
    Outcome.CANCELLED: "nobody decided",
    Outcome.UNDELIVERABLE: "nobody could be asked",
    Outcome.SUPERSEDED: "it was settled elsewhere",
}


def asked_by(owner: str, host: str) -> str:
    return f"Asked by agent `{owner}`" + (f" ({host})" if host not in ("api", owner) else "")


def asked_for(who: str) -> str:
    return f"for {who}"


def until(when: str) -> str:
    return f"Open until {when}"


def escalated(where: str) -> str:
    """``where`` is a mention of the place, or empty if only more people may decide."""
    return f"*Escalated* to {where}" if where else "*Escalated*"


def copy_of(where: str, url: str) -> str:
    """Said on a copy. ``where`` is a mention of the channel that the card stands in, ``url`` the card's address."""
    return f"From {where}: <{url}|go to the thread>"


def instead_of(where: str, code: str) -> str:
    """``where`` is a mention of the place that does not take the card, ``code`` Slack's word for why."""
    return f"⚠️ It stands here because it cannot be shown in {where} (`{code}`)"


def host_refused(error: str) -> str:
    """``error`` is what the host said, or empty."""
    return "⚠️ The agent's host refused this" + (f": {error}" if error else ".")


def host_moved_on(error: str) -> str:
    return "⚠️ The agent had moved on before this reached it" + (f": {error}" if error else ".")


def asked_again(error: str) -> str:
    """``error`` is why what was decided before came to nothing."""
    return f"⚠️ Asked again, because what was decided before came to nothing: {error}"


def settled_line(decision: Decision, who: str, when: str) -> str:
    """`✅ Approved by @ana, Today at 10:00` as markup."""
    outcome = decision.outcome
    what = ALWAYS_SETTLED if decision.action is Action.APPROVE_ALWAYS else SETTLED[outcome]
    how = DISMISSED if decision.action is Action.CANCEL else ""
    by = f" by {who}" if who else f": {NOBODY.get(outcome, 'nobody is named')}"
    return f"{SIGNS[outcome]} *{what}*{how}{by} · {when}{via(decision.via)}"


def via(word: str) -> str:
    return {"api": " · over the API", "clock": "", "slack": " · in Slack", "host": ""}.get(word, f" · {word}")


def picked(count: int) -> str:
    """In front of the options of a multi select that somebody has picked."""
    return f"{count} picked: "


def progress(done: int, count: int, who: str) -> str:
    return f"{who}: {done} of {count}"


def progress_line(people: str) -> str:
    return f"{people} answered, not submitted yet"


def and_more(shown: str, more: int) -> str:
    """A list of which ``more`` are left out."""
    return f"{shown} and {more} more" if more else shown


def continued(number: int, count: int) -> str:
    return f"continued, {number} of {count}"


DECIDERS: Final = {
    "channel": "members of the channel it was asked in",
    "anyone": "anyone in this workspace",
    "admins": "askgate's admins",
}


def api_key(name: str) -> str:
    return f"API key `{name}`"


def api_key_plain(name: str) -> str:
    """As `api_key`, where nothing is markup."""
    return f"API key {name}"


def moment(day: str, time: str) -> str:
    """A day and a time of it. Slack puts both in, in each reader's own words (Slack: date formatting)."""
    return f"{day} at {time}"


def approvers(who: str) -> str:
    return f"Approvers: {who}"


def votes(approve: int, need: int, names: str) -> str:
    return f"{approve} of {need} approvals" + (f": {names}" if names else "")


def votes_against(reject: int, need: int, names: str) -> str:
    return f"{reject} of {need} rejections" + (f": {names}" if names else "")


def digest(short: str) -> str:
    return f"Arguments `{short}`"


def plain_digest(short: str) -> str:
    return f"arguments {short}"


def hidden(count: int) -> str:
    """Said of a gate that shows masks: whoever decides it does so without having read those values."""
    values = "1 value is" if count == 1 else f"{count} values are"
    return f"🔒 {values} hidden here (•••). What you decide holds for the real ones."


def fallback(title: str, pending: int, count: int, asked: str) -> str:
    """The text of notifications, and for who hears it: plain. ``asked`` is what is asked first."""
    if not pending:
        return f"{title}: settled"
    open_ = f"{title}: {pending} of {count} open" if count > 1 else f"{title}: waiting for you"
    return f"{open_}. {asked}"


def undrawn(gate: str) -> str:
    """Markup in place of a card that Slack does not take. ``gate``: the id of one that is open, or empty."""
    what = "⚠️ *Slack does not take this card*, so it stands here as text."
    if not gate:
        return f"{what} Nothing is open any more."
    return f"{what} Decide in askgate's App Home, or with `/gates decide {gate}`; `/gates show {gate}` shows all of it."


def undrawn_gate(gate: str, settled: str) -> str:
    return f"• `{gate}`: {settled or 'open'}"


# to admins

HINTS: Final = {
    "place": "invite askgate there, or have the agent name another place",
    "app": "`askgate doctor` says what is wrong with the app's token or installation",
    "message": "askgate's log says what of it Slack did not take",
}


def unshown(count: int) -> str:
    cards = "a card" if count == 1 else f"{count} cards"
    return f"⚠️ Slack did not take {cards} of askgate's."


def unshown_line(count: int, code: str, where: str, hint: str) -> str:
    return f"• {count} × `{code}` in {where}" + (f": {hint}" if hint else "")


def unshown_runs(which: str) -> str:
    return f"The audit says what became of them: {which}"


def unopened(count: int) -> str:
    what = "something" if count == 1 else f"{count} things"
    return f"⚠️ A host waits for {what} that askgate cannot put to people."


def unopened_line(host: str, what: str, why: str) -> str:
    return f"• {what} of {host}: {why}"


def unopened_more(count: int) -> str:
    return f"• and {count} more, which the log names"


def unopened_mend() -> str:
    return "Answer it where the host shows it, or end what waits there: nothing else ends it."


# reminders


def reminder(people: str, pending: int, count: int, until: str, url: str) -> str:
    """A reminder as markup. ``people`` are mentions; ``url`` is where Slack says that the card is."""
    what = f"{pending} of {count} are" if count > 1 else "This is"
    return f"⏰ {people + ': ' if people else ''}{what} still open until {until}. <{url}|Go to the card>"


def reminder_fallback(title: str) -> str:
    return f"{title}: still waiting"


def waiting(count: int) -> str:
    """Over a message about all that waits for somebody, and its notification."""
    return f"{count} gates wait for you" if count > 1 else "1 gate waits for you"


def waiting_more(count: int) -> str:
    return f"And {count} more: they are all on the app's Home tab."


# private words to the person who clicked

DID_NOT_WORK: Final = (
    "That didn't work: askgate cannot reach its store. Try again in a moment; nothing counts twice."
)
NO_SUCH_CONTROL: Final = "There is no such choice here any more. Nothing was changed; read the card again."
GONE: Final = "This no longer exists; it was settled long ago and has been cleared away."
NOT_ALLOWED: Final = "You are not among those who may decide this. Nothing was changed."
NOT_ALLOWED_BUT: Final = "You are not among those who may decide this: {who}. Nothing was changed."
SELF_APPROVAL: Final = "You asked for this, so somebody else has to approve it. Nothing was changed."
SELF_APPROVAL_BUT: Final = (
    "You asked for this, so somebody else has to approve it: {who}. Nothing was changed."
)
CANNOT_VERIFY: Final = "askgate cannot verify now whether you may decide this. Try again in a minute."
EXPIRED: Final = "Too late: the deadline was {when}. Nobody decided in time, and your click was not counted."
ALREADY: Final = "Already {what} by {who}, {when}. Your click was not counted."
ALREADY_NOBODY: Final = "Already {what} ({when}). Your click was not counted."
ALREADY_YOU: Final = "You have already {what} this, {when}."
VOTED_ALREADY: Final = "You have {what} this already. It takes somebody else as well."
PICK_KEPT: Final = "Your pick is kept. It is not submitted yet."
ARGUMENTS_CHANGED: Final = "The arguments changed since you read them. Read the card again, then decide."
CHANGED_MEANWHILE: Final = (
    "Some of this was decided or changed meanwhile, so nothing was approved. Read the card again."
)
CHOOSE_FIRST: Final = "Choose at least one first, then Submit."
NOTHING_PICKED: Final = "Pick an answer to every question first: {done} of {count} so far."
MODAL_FAILED: Final = "Slack could not open that. Nothing was changed; click again."
UNEXPECTED: Final = "That didn't work, and it is our fault; the error is in askgate's log."
INVALID: Final = "That was not accepted: {what}"

PICK_OR_WRITE: Final = "Choose an option or write something else"
NOT_BOTH: Final = "Either choose options or write something else, not both"
WRITE_SOMETHING: Final = "Write something first"
NO_NUMBER: Final = "Write a number, of at most 15 digits"
NO_JSON: Final = "This is not JSON: {where}"
NO_OBJECT: Final = "The arguments are a JSON object: { … }"
EDITED_MEANWHILE: Final = (
    "Somebody changed the arguments since you opened this. Copy your text, close this and edit again."
)

# replies in a card's thread

USE_REPLY: Final = "Use this as the answer"
LEAVE_REPLY: Final = "Leave it"
OFFER_PRIVATE: Final = "Your reply is no answer unless you say so."
OFFER_FALLBACK: Final = "Use this as the answer?"
OFFER_MORE: Final = "More is open here: answer the rest on the card."
REPLY_TAKEN: Final = "✅ Your reply is taken as the answer."
REPLY_KEPT: Final = "Your reply is kept as your answer to that question. Submit all of them on the card."
REPLY_GONE: Final = "Your reply is not there any more. Nothing was changed."
REPLY_EDITED: Final = "You have edited your reply since. This is what it says at this moment:"
REPLY_TOO_LONG: Final = "Your reply is too long to use as an answer: {most} characters are allowed."
REPLY_UNREAD: Final = "Slack could not be asked for your reply. Nothing was changed; click again."


# modals

OTHER_TITLE: Final = "Another answer"
OTHER_LABEL: Final = "Your answer"
RESPONSE_TITLE: Final = "General response"
RESPONSE_LABEL: Final = "Your response to the whole request"
RESPONSE_HINT: Final = "It goes to the agent instead of picks, or beside those you have made."
DECLINE_TITLE: Final = "Decline to answer"
DECLINE_LABEL: Final = "Why"
DECLINE_TEXT: Final = "The agent is told that you declined. It gets no answer."
REASON_TITLE: Final = "Reject with reason"
REASON_LABEL: Final = "Reason"
REASON_HINT: Final = "The agent reads it."
APPROVE_REASON_TITLE: Final = "Approve with reason"
FORM_TITLE: Final = "Answer in a form"
FORM_OTHER: Final = "Something else"
FORM_WRITTEN: Final = "Something else…"
FORM_WRITTEN_HINT: Final = "Write it in the field below"
FULL_TITLE: Final = "In full"
ANSWER_TITLE: Final = "Answer"
ANSWER_LABEL: Final = "Your answer: text, or JSON"
ANSWER_HINT: Final = "What starts with { or [ is read as JSON."
JSON_LABEL: Final = "Your answer as JSON"
JSON_HINT: Final = "It is checked against the schema above. A text needs its quotes."
JSON_SCHEMA: Final = "The answer is JSON that fits this schema:"
FILL_TITLE: Final = "Answer in a form"
FILL_CUT: Final = "Some of this is cut here: the card's *View in full* shows all of it."
DEFAULT_UNFILLED: Final = "The default does not fit here, so this starts empty: {default}"
AT_MOST: Final = "Slack takes up to {most} characters here, of {allowed} that are allowed"
FORMATS: Final = {
    "email": "An e-mail address",
    "uri": "An address such as https://example.com",
    "date-time": "In your time zone",
}
EDIT_TITLE: Final = "Edit arguments"
EDIT_LABEL: Final = "Arguments as JSON"
EDIT_HINT: Final = "You approve what stands here."
EDIT_VOIDS: Final = "You approve what stands here. Whoever voted on the old arguments has to vote again."
ALWAYS_TITLE: Final = "Approve always"
ALWAYS_TEXT: Final = "This call is approved, and the agent's host saves this, so that it need not ask again:"
ALWAYS_NOTHING: Final = "This call is approved for always. The agent's host does not say what it saves."
APPROVE_ALL_TEXT: Final = "This approves all of these calls, each with the arguments that stand on the card:"
APPROVE_ALL_VOTES: Final = "Where it takes more people than you, this is your vote."
APPROVE_ALL_NOT: Final = "You may not approve all of these, so nothing was approved. Not yours to approve:"
GOES_ON_IN_FILE: Final = (
    "This is only the beginning. All of the arguments are in the file `{name}` in the card's thread."
)
NO_FILE_YET: Final = (
    "This is only the beginning, and the file with all of the arguments is not in the card's thread yet, "
    "so this cannot be approved now."
)
SETTLED_TITLE: Final = "Settled"
REFUSED_TITLE: Final = "Not done"


def form_other(header: str) -> str:
    """The label of the field for a text of one's own, at the question with this header."""
    return f"{FORM_OTHER}: {header}"


def page(number: int, count: int) -> str:
    return f"Page {number} of {count}"


# /gates, shortcuts, mentions

LIST_TITLES: Final[Mapping[str, str]] = {
    "all": "Open gates",
    "mine": "Waiting for you",
    "channel": "Open in this channel",
    "thread": "Open in this thread",
    "host": "Open for one host",
    "run": "Open in one run",
    "expiring": "Expiring soonest",
    "asked": "Asked in your name",
    "decided": "What you decided",
    "undeliverable": "Undeliverable",
    "dead": "Not taken up",
    "overview": "Overview",
}
FILTERS: Final[Mapping[str, str]] = {
    "all": "Everything open",
    "mine": "For me",
    "channel": "This channel",
    "expiring": "Expiring soonest",
    "asked": "Asked in my name",
    "decided": "Decided by me",
    "undeliverable": "Undeliverable",
    "dead": "Dead letters",
}
EMPTY: Final[Mapping[str, str]] = {
    "all": "Nothing is waiting for you.",
    "mine": "Nothing is waiting for you.",
    "channel": "Nothing is open in this channel.",
    "thread": "Nothing is open in this thread.",
    "host": "Nothing is open for that host, as far as you may decide it.",
    "run": "Nothing is open there any more, or it is not for you.",
    "expiring": "Nothing is waiting for you, so nothing expires.",
    "asked": "Nothing that is asked in your name is open.",
    "decided": "You have decided nothing lately.",
    "undeliverable": "Everything could be delivered.",
    "overview": "Nothing is waiting.",
    "dead": "There are no dead letters: every run was taken up by its host, or still waits for it.",
}
LIST_EMPTY_ADMIN: Final = "Nothing is waiting for anybody."
LIST_UNSURE: Final = "askgate could not check all of it: there may be more for you. Try again in a minute."
LIST_EMPTY_UNSURE: Final = (
    "Nothing was found that waits for you, but askgate could not check all of it. Try again in a minute."
)
HELP: Final = """*What waits*
• `/gates` or `/gates list`: what is waiting for you (for admins: all that waits)
• `/gates list mine`, `channel`, `expiring`, `asked`, `decided` or `host:NAME`: other lists
• `/gates show ID`: all about one gate; the beginning of the ID will do
• `/gates decide ID`: answer, approve or reject it right here
• `/gates delegate ID @somebody`: let them decide in your stead, if you are named for it
*Agents that can be talked with here*
• `/gates new TEXT`: begin a conversation; mention me in a thread, or write to me, to go on
• `/gates stop`: end yours; so does `stop` in its thread, with a mention of me
*For admins*
• `/gates extend ID 2h`: put its deadline off
• `/gates reassign ID @somebody`: let others decide it: people, user groups, `channel`
• `/gates cancel ID [reason]`: end it; with a run's ID, all that is open there
• `/gates resend ID`: send its card again, at the end of its conversation
• `/gates stats`: how much there is
• `/gates list undeliverable` or `dead`: what went wrong
`/gates help` shows this."""
OPEN_CARD: Final = "Go to the card"
DECIDE: Final = "Decide…"
DETAILS: Final = "Details…"
BACK: Final = "Show the list"
REFRESH: Final = "Refresh"
LOADING: Final = "Looking…"
GATE_TITLE: Final = "One gate"
EXTERNAL_ID: Final = "External id: "
WHY: Final = "Why: "
MANAGE: Final[Mapping[str, str]] = {
    "extend": "Extend…",
    "reassign": "Reassign…",
    "cancel": "Cancel…",
    "resend": "Resend",
}
REQUEUE: Final = "Hand out again"
REQUEUED: Final = "It is handed out to its host again, with the same decisions."
MOVED: Final = "This was sent again: the card stands further down."
RESENT: Final = "The card is sent again, and the old one taken away."
STATS_TITLE: Final = "Overview"
ADMINS_ONLY: Final = "Only askgate's admins may do this. Nothing was changed."
CANNOT_VERIFY_ADMIN: Final = "askgate cannot verify now whether you are an admin. Try again in a minute."
NO_SUCH_GATE: Final = "There is no such gate for you. `/gates list` shows what there is."
NOTHING_PENDING: Final = "Nothing is pending there any more. Nothing was changed."
ONLY_NAMED: Final = "Only who is named to decide this by name can hand it on. Nothing was changed."
WANTED_ONE_PERSON: Final = "Name one person: `/gates delegate ID @somebody`."
WANTED_TIME: Final = "How much longer? Write a time such as `2h`, `90m`, `1d12h` or `2 hours`."
EXTEND: Final = "Extend"
EXTEND_TITLE: Final = "Extend the deadline"
TIME_LABEL: Final = "How much longer"
TIME_HINT: Final = "Such as 2h, 90m, 1d12h or 2 hours; at most 30 days after it was opened."
REASSIGN: Final = "Reassign"
REASSIGN_TITLE: Final = "Let others decide"
REASSIGN_VOIDS: Final = "They decide instead of those who could so far. Votes of who may no longer are void."
PEOPLE_LABEL: Final = "People"
PEOPLE_PLACEHOLDER: Final = "Choose people"
OTHERS_LABEL: Final = "User groups or others"
OTHERS_HINT: Final = "Ids such as S1 or T2:U9, or the words channel, anyone, key:name."
CANCEL_GATE: Final = "Cancel the gate"
CANCEL_TITLE: Final = "Cancel this gate?"
CANCEL_TEXT: Final = (
    "The agent is told that it was cancelled. It gets no answer, and nobody else can give one."
)
CANCEL_LABEL: Final = "Why"
BACK_OUT: Final = "Back"
DONE_TITLE: Final = "Done"


def not_taken_up() -> str:
    return "*not taken up by its host*"


def opened(when: str) -> str:
    return f"Opened {when}"


def may_decide(who: str) -> str:
    return f"May decide: {who}"


def may_answer(who: str) -> str:
    return f"May answer: {who}"


def extended(gate: str, until: str) -> str:
    return f"`{gate}` is open until {until}."


def reassigned(gate: str, who: str) -> str:
    return f"`{gate}` may be decided by: {who}."


def delegated(gate: str, who: str) -> str:
    return f"`{gate}` is handed on. It may be decided by: {who}."


def cancelled(what: str) -> str:
    return f"`{what}` is cancelled."


def too_long(most: int) -> str:
    return f"That is too long: at most {most} characters."


def wanted_people(unknown: str) -> str:
    """``unknown``: words that name nobody, as markup; empty if there were none at all."""
    if not unknown:
        return "Who shall decide it? Mention people or user groups."
    return (
        f"{unknown} says nobody for sure. Type @ and pick people or user groups from Slack's list, or write ids"
        " such as `U1` and `S1`. Nothing was changed."
    )


def which_gate(verb: str) -> str:
    return f"Which gate? Write `/gates {verb} ID`; `/gates list` shows the ids."


def ambiguous(typed: str, ids: str) -> str:
    return f"`{typed}` is the beginning of several. Which one?\n{ids}"


def unknown_word(word: str, nearest: str) -> str:
    hint = f" Did you mean `/gates {nearest}`?" if nearest else ""
    return f"There is no `/gates {word}`.{hint}"


def unknown_list(word: str, nearest: str) -> str:
    if nearest:
        return f"There is no list `{word}`. Did you mean `/gates list {nearest}`?"
    return (
        f"There is no list `{word}`. There are `mine`, `channel`, `expiring`, `asked`, `decided` and `host:NAME`;"
        " for admins also `undeliverable` and `dead`."
    )


def oldest(when: str) -> str:
    return f"oldest: {when}"


def count_open(count: int, oldest: str) -> str:
    """``oldest``: when the oldest of them was opened, in words; empty if there is none."""
    runs = "1 run waits" if count == 1 else f"{count} runs wait"
    return f"*{runs}* for people" + (f" · {oldest}" if oldest else "")


def count_soon(count: int) -> str:
    return f"*{count}* of them expire{'s' if count == 1 else ''} within an hour"


def count_undeliverable(count: int) -> str:
    return f"*{count}* could be shown to nobody"


def count_dead(count: int) -> str:
    if count == 1:
        return "*1* dead letter: not taken up by its host"
    return f"*{count}* dead letters: not taken up by their hosts"


# App Home

HOME_TITLE: Final = "What is waiting for you"
HOME_EMPTY: Final = (
    "Nothing is waiting for you. When an agent needs your answer or your approval, it shows up here."
)

TABS: Final[Mapping[str, str]] = {
    "mine": "Waiting for me",
    "asked": "Asked in my name",
    "decided": "Decided lately",
    "overview": "For admins",
}
KINDS: Final[Mapping[str, str]] = {
    "": "All of it",
    "approvals": "Approvals",
    "answers": "Questions and forms",
}
OLDEST_TITLE: Final = "Waiting longest"


def chosen(text: str) -> str:
    """The name aloud of a tab or filter that is shown."""
    return f"{text} (shown)"


# conversations with an agent

TALK_SIGNS: Final[Mapping[str, str]] = {
    "working": "⏳ The agent is working on it.",
    "taken": "⏳ The agent's server has the message. It has much to do, so this may have to wait for its turn.",
    "behind": "⏳ The agent is busy with what it was told elsewhere. Your message is sent when it has ended that.",
    "waiting": "❓ The agent waits for an answer to what it asks here.",
    "stuck": "⛔ The agent waits for what nobody here can give it. This thread says what that is, and what to do.",
    "away": "⚠️ The agent's server cannot be reached. I keep trying for 15 minutes.",
}


def talk_queued(turns: int, workers: int) -> str:
    """How a turn stands at a server that has more turns than it can do at a time."""
    return (
        f"⏳ The agent's server has the message, and {turns} turns for {workers} workers: "
        "this one may have to wait for its turn."
    )


TALK_ENDS: Final[Mapping[str, str]] = {
    "silent": "The agent has ended its turn without a word.",
    "error": "⛔ The agent failed. It has forgotten the last message: the conversation goes on from before that.",
    "gone": "⛔ The agent's server no longer knows this conversation: it was deleted there, or the server was "
    "restarted. Whether the agent got the last message nobody knows. The next one begins anew: the agent will "
    "know nothing of what was said before.",
    "cancelled": "The agent was stopped. It has forgotten the last message: the conversation goes on from before that.",
    "refused": "⛔ The agent's server does not take this message.",
    "not_sent": "⛔ The agent's server could not be reached for 15 minutes. The message was not sent: say it again.",
    "unknown": "⛔ The agent's server could not be reached for 15 minutes. It has the message; what became of it "
    "nobody knows.",
}
TALK_ANEW: Final = (
    "⚠️ The agent's server had forgotten this conversation, so the agent began anew: it knows nothing of what "
    "was said before."
)
TALK_REPLIED: Final = "The agent has replied."
TALK_OPENING: Final = "says to the agent:"
TALK_BUSY: Final[Mapping[str, str]] = {
    "": "Not sent: the agent is still busy with what was said before. Say it again when it has replied, or write "
    "`stop` in the same way to end the conversation.",
    "waiting": "Not sent: the agent waits for an answer to what it asks here. Answer on the card, then say this "
    "again.",
    "stuck": "Not sent: the agent waits for what nobody here can give it. The thread says what to do; or write "
    "`stop` in the same way to end the conversation.",
}
TALK_NOTHING: Final = "There is no conversation with an agent here that you could stop."
TALK_ENDED: Final = "The conversation is ended."
TALK_WHICH: Final = "Which conversation do you want to end?"
TALK_STOP: Final = "End it"
TALK_OUTSIDER: Final = "Only people of the workspace that the agent belongs to can talk with it."
TALK_NO_AGENT: Final = "No agent can be talked with here."
TALK_NEW_WHAT: Final = "Say what it is about: `/gates new Please look at the failing build`"
TALK_NOT_HERE: Final = "I cannot write in this conversation. Invite me to it, or begin in another one."
TALK_BEGUN: Final = "The conversation has begun: the agent replies below your message."


def talk_nobody(tool: str, besides: str, need: int, block: str) -> str:
    """Nobody may approve a call. ``besides``: who asked for it and so may not, or empty; both as markup."""
    if besides:
        why = (
            f"no approver is named besides {besides}, who asked for this"
            if need == 1
            else f"it takes {need} approvers besides {besides}, who asked for this, and fewer are named"
        )
        mend = f"name more `approvers` in the block `{block}`, or set `self_approval = true` there"
    else:
        why = "no approver is named" if need == 1 else f"it takes {need} approvers, and fewer are named"
        mend = f"name more `approvers` in the block `{block}`"
    return (
        f"⛔ The agent waits for approval of {tool}, and nobody may give it: {why}. "
        f"Whoever runs askgate can {mend}. `/gates stop` ends the turn."
    )


def talk_unopened(why: str) -> str:
    """What the agent waits for cannot be put to anybody; ``why`` as markup."""
    return (
        f"⛔ The agent waits for something that nobody can be asked here: {why}. `/gates stop` ends the turn."
    )


def talk_not_yours(who: str) -> str:
    """``who`` began it, as markup."""
    return f"Only {who}, who began this conversation, or an admin can end it."


def talk_stopped(who: str) -> str:
    """``who`` ended it, as markup."""
    return f"{who} ended this conversation. The next message to the agent begins another one."


def talk_cut(count: int) -> str:
    """How many characters of a reply are not shown."""
    return f"The reply goes on: {count:,} characters more are not shown here."


PROBLEMS: Final[Mapping[str, str]] = {}
"""What core and the libraries below it say of an answer, by their own words: those are English."""
