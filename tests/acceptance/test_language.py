"""A workspace that works in Spanish: what people find and read there, from the card to the agent's answer."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from bot import words
from tests.acceptance.world import Json, World, front
from tests.runs import approval, ask, body, form_call, question_call

SCOPE = "¿Qué alcance usamos?"


@pytest.fixture
async def spanish(empty_world: World) -> AsyncIterator[World]:
    """The world with one process that speaks Spanish."""
    await empty_world.start(ASKGATE_LANGUAGE="es")
    yield empty_world
    words.speak("en")


def of(world: World, calls: list[Json], approvals: list[Json] | None = None, **policy: object) -> Json:
    return body(calls, approvals or [], place={"channel": world.ops}, policy=policy)


async def test_a_question_is_asked_and_answered(spanish: World) -> None:
    run = await spanish.api.open(of(spanish, [question_call("q", ask(SCOPE, "Acotado", "Amplio"))]))
    await spanish.shows(run, "Lo pide el agente", "Abierto hasta:", SCOPE)
    assert spanish.buttons(run) == ["Acotado", "Amplio", "Otra", "Respuesta general", "Declinar"]
    card = await spanish.card(run)
    opened = await spanish.ana.click("Otra", message=card)
    assert front(opened)["title"]["text"] == "Otra respuesta"
    assert (front(opened)["submit"]["text"], front(opened)["close"]["text"]) == ("Enviar", "Cancelar")
    await spanish.ana.fill({"Tu respuesta": " "})
    assert (await spanish.ana.submit()).errors == {"Tu respuesta": "Escribe algo primero"}
    await spanish.ana.close_modal()
    assert (await spanish.ana.click("Acotado", message=card)).ok
    assert (await spanish.api.settled(run))["calls"]["q"]["value"] == {"answers": {SCOPE: "Acotado"}}
    await spanish.shows(run, "Respondido por @ana", "→ Acotado", "Sin elegir: Amplio")
    await spanish.ben.click("Amplio", message=card)
    await spanish.told("ben", "Ya está respondido por @ana", "Tu clic no ha contado")


async def test_a_tool_is_rejected_with_a_reason(spanish: World) -> None:
    item = approval("call", reason="El disco está lleno", risk="high")
    run = await spanish.api.open(of(spanish, [], [item], approvers=[spanish.ids["ana"]]))
    await spanish.shows(run, "Se necesita aprobación: delete_file", "Riesgo: alto", "Aprueban: @ana")
    card = await spanish.card(run)
    assert spanish.buttons(run) == ["Aprobar", "Rechazar", "Rechazar con motivo"]
    await spanish.ben.click("Aprobar", message=card)
    await spanish.told("ben", "No estás entre quienes pueden decidir esto: @ana")
    await spanish.ana.click("Rechazar con motivo", message=card)
    await spanish.ana.fill({"Motivo": "No es ese fichero"})
    assert (await spanish.ana.submit()).modal is None
    assert (await spanish.api.settled(run))["approvals"]["call"]["reason"] == "No es ese fichero"
    await spanish.shows(run, "Rechazado por @ana", "Motivo: No es ese fichero")


async def test_what_is_wrong_in_a_form_is_said_at_its_field(spanish: World) -> None:
    fields = [
        {"name": "mail", "label": "Correo", "kind": "text", "format": "email", "required": True},
        {"name": "plazas", "label": "Plazas", "kind": "integer", "maximum": 9},
    ]
    run = await spanish.api.open(of(spanish, [form_call("form", *fields, title="Reserva")]))
    await spanish.shows(run, "Formulario por rellenar: Reserva", "Correo (obligatorio)")
    await spanish.ana.click("Responder en un formulario", message=await spanish.card(run))
    await spanish.ana.fill({"Correo": "nadie", "Plazas": "7"})
    assert (await spanish.ana.submit()).errors == {"Correo": "Se esperaba una dirección de correo"}
    await spanish.ana.fill({"Correo": "ana@example.com"})
    assert (await spanish.ana.submit()).modal is None
    assert (await spanish.api.settled(run))["calls"]["form"]["value"] == {
        "mail": "ana@example.com",
        "plazas": 7,
    }
    await spanish.shows(run, "Respondido por @ana", "Plazas: 7")


async def test_the_lists_are_in_spanish_too(spanish: World) -> None:
    await spanish.ana.command("/gates", channel=spanish.ops)
    await spanish.told("ana", "Nada te está esperando.")
    run = await spanish.api.open(of(spanish, [question_call("q", ask(SCOPE, "Sí", "No"))]))
    await spanish.card(run)
    await spanish.ana.open_home()
    await spanish.slack.wait_for(lambda: spanish.ana.home)
    shown = spanish.ana.text(spanish.ana.home or {})
    assert "Lo que te está esperando" in shown
    assert SCOPE in shown
