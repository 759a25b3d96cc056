"""The languages that askgate speaks: each says everything, says it within Slack's limits, and nothing else is said."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from types import FunctionType, ModuleType
from typing import get_args

import pytest
from hypothesis import given

import bot
import core
from bot import words
from bot.cards import modals
from bot.cards.card import pack
from bot.cards.limits import BUTTON_TEXT, VIEW_TITLE, check_view
from bot.listeners.problems import problem
from bot.words import LANGUAGES, english, spanish
from core.answers import Answer, check_answer
from core.errors import InvalidDecision, Refused
from core.forms import FormError, FormField, check_form
from core.gates import Action, Outcome
from core.runs import Run
from core.settings import Settings
from core.strictjson import JsonError, strict_json
from tests.runs import approval, body, question_call
from tests.unit.cards import few, runs, settled, states, stored, texts, with_gates
from tests.unit.test_cards_legal import check_card, views

BOT, CORE = (Path(str(package.__file__)).parent for package in (bot, core))
OTHERS = {code: language for code, language in LANGUAGES.items() if language is not english}
SAME = {"NO", "ARROW", "SIGNS"}
"""What is the same word in Spanish, or no word."""
SENTENCE = re.compile(r" [a-zà-ü]{2,}|[a-zà-ü]{2,}[,:]? |^[A-Z][a-z]{2,}(?![a-z-])")


def defined(language: ModuleType) -> dict[str, object]:
    own = {"Final", "Mapping", "Action", "Decision", "Outcome", "annotations"}
    return {
        name: value for name, value in vars(language).items() if not name.startswith("__") and name not in own
    }


@pytest.fixture(params=OTHERS)
def spoken(request: pytest.FixtureRequest) -> Iterator[str]:
    words.speak(request.param)
    yield request.param
    words.speak("en")


# the same in every language


@pytest.mark.parametrize("code", OTHERS)
def test_a_language_has_every_name_and_no_other(code: str) -> None:
    assert defined(OTHERS[code]).keys() == defined(english).keys()


@pytest.mark.parametrize("code", OTHERS)
def test_a_language_has_the_same_kinds_of_things_with_the_same_placeholders(code: str) -> None:
    for name, ours in defined(english).items():
        theirs = getattr(OTHERS[code], name)
        if isinstance(ours, FunctionType):
            assert inspect.signature(theirs) == inspect.signature(ours), name
        elif name != "PROBLEMS":
            assert type(theirs) is type(ours), name
            for (key, text), (other, said) in zip(_texts(ours), _texts(theirs), strict=True):
                assert key == other, name
                assert placeholders(said) == placeholders(text), name


@pytest.mark.parametrize("code", OTHERS)
def test_nothing_is_left_in_english(code: str) -> None:
    for name in defined(english).keys() - SAME - {"PROBLEMS"}:
        ours, theirs = getattr(english, name), getattr(OTHERS[code], name)
        if not isinstance(ours, FunctionType):
            same = {text for _, text in _texts(ours)} & {text for _, text in _texts(theirs)}
            assert same == set(), name


def _texts(value: object) -> list[tuple[object, str]]:
    if isinstance(value, Mapping):
        return [(key, str(text)) for key, text in value.items()]
    return [(None, str(value))]


def placeholders(text: str) -> set[str]:
    return set(re.findall(r"\{(\w+)\}", text))


def test_the_setting_offers_the_languages_that_there_are() -> None:
    annotation = Settings.model_fields["language"].annotation
    assert set(get_args(annotation)) == set(LANGUAGES)


def test_nobody_speaks_a_language_that_is_not_there() -> None:
    with pytest.raises(KeyError):
        words.speak("xx")
    assert words.APPROVE == english.APPROVE


# where sentences may stand


def modules() -> list[Path]:
    """What makes something that a person sees in Slack."""
    found = [*(BOT / "cards").glob("*.py"), *(BOT / "listeners").glob("*.py"), *(BOT / "slack").glob("*.py")]
    assert len(found) > 30
    return [path for path in found if path.stem not in ("limits", "rules")]


def sentences(path: Path) -> Iterator[tuple[int, str]]:
    """The texts in a module that read like words to a person: not docstrings, errors, log events or patterns."""
    tree = ast.parse(path.read_text())
    quiet = {id(node) for stop in _quiet(tree) for node in ast.walk(stop)}
    for node in ast.walk(tree):
        text = isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in quiet
        if text and SENTENCE.search(node.value):  # type: ignore[attr-defined]
            yield node.lineno, node.value  # type: ignore[attr-defined]


def _quiet(tree: ast.AST) -> Iterator[ast.AST]:
    logs = ("compile", "warning", "info", "error", "debug", "exception")
    for node in ast.walk(tree):
        raised = isinstance(node, ast.Raise | ast.Assert)
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if raised or docstring or (call and node.func.attr in logs):  # type: ignore[attr-defined]
            yield node


def test_no_module_that_shows_something_has_a_sentence_of_its_own() -> None:
    found = [f"{path.name}:{line}: {text!r}" for path in modules() for line, text in sentences(path)]
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        'x = "Approve"',
        'x = f"Open {host}"',
        'x = f"{n} of many"',
        "def f(a='Close'): pass",
        'x = f"{a} at {b}"',
    ],
)
def test_a_sentence_of_a_modules_own_would_be_found(source: str, tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(source)
    assert list(sentences(path))


def test_no_module_reads_a_word_while_it_is_imported() -> None:
    for path in BOT.rglob("*.py"):
        tree = ast.parse(path.read_text())
        later = {
            id(inner)
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            for statement in node.body
            for inner in ast.walk(statement)
        }
        early = [
            node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "words"
            and node.attr.isupper()
            and id(node) not in later
        ]
        assert early == [], path


# within Slack's limits


@few
@given(runs(), texts(2000))
@pytest.mark.parametrize("code", OTHERS)
def test_cards_and_modals_are_legal_in_every_language(code: str, run: Run, text: str) -> None:
    words.speak(code)
    try:
        parts = pack(run)
        for state in islice(states(run, text), 4):
            check_card(state, parts)
            for view in views(state.gates[0]):
                assert check_view(view) == []
    finally:
        words.speak("en")


def test_the_largest_run_is_legal_in_every_language(spoken: str) -> None:
    ask = question_call("q")["args"]
    calls = [{"tool_call_id": f"q{n}", "tool_name": "ask_user_question", "args": ask} for n in range(64)]
    policy = {"approvers": ["anyone"], "quorum": 32, "reject_quorum": 32, "reason": "always", "edits": True}
    run = stored(body(calls, [approval(f"a{n}", reason="<" * 4096) for n in range(64)], policy=policy))
    parts = pack(run)
    for state in islice(states(run, "&" * 4096), 5):
        check_card(state, parts)


def test_what_is_settled_reads_in_the_spoken_language(spoken: str) -> None:
    run = stored(body())
    done = with_gates(run, [settled(run.gates[0], Outcome.EXPIRED, "")])
    assert "*Caducado*: nadie decidió a tiempo" in str(modals.settled(done.gates[0]))


@pytest.mark.parametrize("code", LANGUAGES)
def test_titles_and_buttons_fit_their_places(code: str) -> None:
    language = defined(LANGUAGES[code])
    titles = [
        name for name in language if name.endswith("_TITLE") and name not in ("DEFAULT_TITLE", "HOME_TITLE")
    ]
    assert len(titles) > 8
    for name in titles:
        assert len(str(language[name])) <= (VIEW_TITLE if name != "DISMISS_TITLE" else 100), name
    for name in ("APPROVE", "REJECT", "REJECT_WITH_REASON", "FORM", "GENERAL_RESPONSE", "VIEW_IN_FULL"):
        assert len(str(language[name])) <= BUTTON_TEXT // 2, name


# what core says of an answer


ELSEWHERE = {"line {}, column {}: the byte 0x{} is not UTF-8", "wanted {}"}
"""What bytes alone can be, which Slack does not send; and the formats, each of which has a sentence of its own."""


def said_by_core() -> set[str]:
    """Every sentence of core's checks of an answer, with `{0}` for what stands in it."""
    found: set[str] = set()
    for name in ("forms", "answers", "questions", "schemas", "strictjson"):
        tree = ast.parse((CORE / f"{name}.py").read_text())
        for function in [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]:
            if name == "forms" and not function.returns:
                continue
            for node in ast.walk(function):
                found |= {template(text) for text in _told(name, function, node)}
    return {text for text in found if SENTENCE.search(text)}


def _told(module: str, function: ast.FunctionDef, node: ast.AST) -> list[ast.expr]:
    """The texts that a statement tells somebody who answers."""
    if module == "forms":
        problem = isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple)
        return [node.value.elts[1]] if problem and ast.unparse(function.returns) == "Problem" else []  # type: ignore[union-attr,arg-type]
    if isinstance(node, ast.Call):
        name = ast.unparse(node.func)
        at = {
            "invalid": 1,
            "AnswerError": 0,
            "_mismatch": 0,
            "_Flaw": 0,
            "SchemaViolation": 0,
            "JsonError": 0,
        }
        if name in at and len(node.args) > at[name]:
            return [node.args[at[name]]]
    return []


def template(text: ast.expr) -> str:
    if isinstance(text, ast.Constant):
        return str(text.value)
    if not isinstance(text, ast.JoinedStr):
        return ""
    number = iter(range(9))
    return "".join(
        str(part.value) if isinstance(part, ast.Constant) else f"{{{next(number)}}}" for part in text.values
    ).replace("!r", "")


def test_every_sentence_of_cores_checks_has_its_twin() -> None:
    known = {re.sub(r"\{\d\}", "{}", text) for text in spanish.PROBLEMS}
    said = {re.sub(r"\{\d\}", "{}", text) for text in said_by_core()}
    assert len(said) > 35
    assert said - known - ELSEWHERE == set()


def test_every_refusal_of_core_has_its_twin() -> None:
    told_by_words = {"NotAllowed", "SelfApproval", "CannotVerify", "ArgumentsChanged", "InvalidDecision"}
    for error in Refused.__subclasses__():
        if error.__name__ not in told_by_words:
            assert str(error.__doc__) in spanish.PROBLEMS, error


def test_problems_keep_their_values(spoken: str) -> None:
    for known, said in words.PROBLEMS.items():
        assert placeholders(said) <= placeholders(known), known


FIELD = FormField(name="f", kind="text", max_length=5, min_length=2, required=True)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("too long", "como máximo 5 caracteres"),
        ("x", "como mínimo 2 caracteres"),
        (None, "es obligatorio"),
        (7, "se esperaba un texto"),
    ],
)
def test_what_is_wrong_with_a_field_is_said_in_the_spoken_language(
    spoken: str, value: object, told: str
) -> None:
    with pytest.raises(FormError) as refused:
        check_form((FIELD,), {"f": value})
    assert problem(refused.value.errors[0]["msg"]) == told


def test_what_is_wrong_with_json_is_said_in_the_spoken_language(spoken: str) -> None:
    for text, told in (
        ('{"a": }', "línea 1, columna 7: se esperaba un valor"),
        ('{"a": 1, "a": 2}', 'en el nivel superior: la clave "a" aparece dos veces'),
    ):
        with pytest.raises(JsonError) as refused:
            strict_json(text)
        assert problem(str(refused.value)) == told


def test_what_breaks_a_schema_is_said_in_the_spoken_language(spoken: str) -> None:
    schema = {"type": "object", "required": ["path"], "properties": {"n": {"maximum": 3}}}
    run = stored(
        body([], [approval("a", args_schema=schema)], policy={"approvers": ["anyone"], "edits": True})
    )
    for args, told in (
        ({"n": 1}, "falta 'path', que es obligatorio"),
        ({"path": "x", "n": 4}, "4 es mayor que el máximo, 3"),
    ):
        with pytest.raises(InvalidDecision) as refused:
            check_answer(run.gates[0], Answer(0, Action.APPROVE, {"override_args": args}))
        assert problem(refused.value.errors[0]["msg"]) == told


def test_a_value_that_looks_like_a_place_for_one_stays_as_it_is(spoken: str) -> None:
    assert problem("'{1}' is not of type '{0}'") == "'{1}' no es del tipo '{0}'"


def test_a_sentence_that_no_language_knows_is_said_as_it_is(spoken: str) -> None:
    assert problem("colourless green ideas") == "colourless green ideas"
    assert problem("x" * 100_000) == "x" * 100_000
