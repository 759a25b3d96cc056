"""Every sentence that askgate itself says in Slack, in Spanish: the twins of those in `english`.

As Slack does in Spanish, they say `tú`. What is settled is an `it`, so its participles are masculine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from core.gates import Action, Decision, Outcome

# buttons: people and tests find things by these words
APPROVE: Final = "Aprobar"
APPROVE_ALL_TITLE: Final = "Aprobar todo"
REJECT: Final = "Rechazar"
REJECT_WITH_REASON: Final = "Rechazar con motivo…"
VIEW_IN_FULL: Final = "Ver completo…"
OTHER: Final = "Otra…"
SUBMIT: Final = "Enviar"
FORM: Final = "Responder en un formulario…"
GENERAL_RESPONSE: Final = "Respuesta general…"
DECLINE: Final = "Declinar…"
DECLINE_IT: Final = "Declinar"
ANSWER: Final = "Responder…"
DONE: Final = "Hecho"
ACCEPT: Final = "Aceptar"
EDIT: Final = "Editar argumentos…"
ALWAYS: Final = "Aprobar siempre"
NEXT: Final = "Siguiente"
PREVIOUS: Final = "Anterior"
LAST: Final = "Última página"
CANCEL: Final = "Cancelar"
CLOSE: Final = "Cerrar"
OPEN_LINK: Final = "Abrir la página"


def open_link(host: str) -> str:
    return f"Abrir {host}"


def about(label: str, what: str) -> str:
    """A button's name for who hears it and sees nothing around it."""
    return f"{label}: {what}"


def approve_all(count: int) -> str:
    return f"Aprobar las {count}"


# the file with arguments that are too long for everything else


def file_title(short: str) -> str:
    return f"Argumentos {short}"


def file_comment(short: str) -> str:
    """What stands above the file, as markup."""
    return f"Todos los argumentos de la llamada que espera aprobación (`{short}`)"


def file_refused(code: str) -> str:
    """``code`` is Slack's word for why."""
    return (
        f"Slack no aceptó el archivo con todos los argumentos (`{code}`), así que no se puede aprobar aquí. "
        "Se puede rechazar aquí, o decidir por la API."
    )


# what Cancel asks back
DISMISS_TITLE: Final = "¿Cancelar esta solicitud?"
DISMISS_TEXT: Final = "El agente sabrá que se descartó. No recibe ninguna respuesta y nadie más puede darla."
DISMISS: Final = "Cancelarla"
KEEP: Final = "Dejarla abierta"

# cards
DEFAULT_TITLE: Final = "Un agente te necesita"
CHOOSE_ONE: Final = "Elige una opción"
CHOOSE_SOME: Final = "Elige una o varias"
APPROVAL: Final = "Se necesita aprobación: "
CUSTOM: Final = "Se necesita respuesta: "
FILL: Final = "Formulario por rellenar: "
LINK: Final = "Por hacer en otro sitio: "
LEADS_TO: Final = "Lleva a:"
LEADS_TO_ORIGIN: Final = "Se hace en:"
REQUIRED: Final = " (obligatorio)"
YES: Final = "Sí"
NO: Final = "No"
ARGUMENTS_IN_FILE: Final = (
    "Los argumentos son demasiado largos para una tarjeta: están todos en un archivo en su hilo. "
    "Léelo y luego aprueba en *Ver completo*."
)
ARGUMENTS_CUT: Final = "Los argumentos siguen: léelos completos y apruébalos allí."
TEXT_CUT: Final = "Aquí falta una parte. Léelo todo con *Ver completo*."
TOO_LONG_TO_EDIT: Final = "Los argumentos son demasiado largos para editarlos en Slack."
HIDDEN_TO_EDIT: Final = "Los argumentos no se pueden editar en Slack: algunos de sus valores están ocultos."
TOO_LONG_TO_SAVE: Final = (
    "Lo que *Aprobar siempre* guardaría es demasiado largo para mostrarlo en Slack, así que no se ofrece."
)
LINK_CUT: Final = "La dirección sigue: léela completa y ábrela allí."
CUSTOM_CUT: Final = "Esto sigue: léelo con *Ver completo*."
PREVIEWS: Final = "Aquí hay opciones con vista previa: mírala con *Ver completo*."
READ_ON_CARD: Final = "Esto sigue: *Ver completo*, en la tarjeta, lo enseña todo."
PICKED_SO_FAR: Final = "Elegido hasta ahora: "
ARROW: Final = "→ "
NOT_TAKEN: Final = "Sin elegir: "
OPTIONS: Final = "Opciones: "
REASON: Final = "Motivo"
EDITED_BY: Final = "Editado por "
EDITED_BACK: Final = ": queda como al principio"
CHANGES: Final = "Cambios sobre lo que pidió el agente:"
DEFAULT: Final = "Por defecto: {default}"
SAVED: Final = "Guardado: "
NOTHING: Final = "nada"
ALWAYS_SETTLED: Final = "Aprobado para siempre"
DISMISSED: Final = " (descartado)"
REASON_WANTED: Final = {
    "always": "Hay que dar un motivo",
    "on_reject": "Para rechazar hay que dar un motivo",
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
    Outcome.ANSWERED: "Respondido",
    Outcome.APPROVED: "Aprobado",
    Outcome.DENIED: "Rechazado",
    Outcome.DECLINED: "Declinado",
    Outcome.EXPIRED: "Caducado",
    Outcome.CANCELLED: "Cancelado",
    Outcome.UNDELIVERABLE: "Sin entregar",
    Outcome.SUPERSEDED: "Sustituido",
}
RISKS: Final = {
    "low": "Riesgo: bajo",
    "medium": "Riesgo: medio",
    "high": "⚠️ Riesgo: *alto*",
    "extra_high": "🛑 Riesgo: *muy alto*",
}
PLAIN_RISKS: Final = {
    "low": "riesgo bajo",
    "medium": "riesgo medio",
    "high": "⚠️ riesgo alto",
    "extra_high": "🛑 riesgo muy alto",
}
NOBODY: Final = {
    Outcome.EXPIRED: "nadie decidió a tiempo",
    Outcome.CANCELLED: "nadie decidió",
    Outcome.UNDELIVERABLE: "no se pudo preguntar a nadie",
    Outcome.SUPERSEDED: "se resolvió en otro sitio",
}


def asked_by(owner: str, host: str) -> str:
    return f"Lo pide el agente `{owner}`" + (f" ({host})" if host not in ("api", owner) else "")


def asked_for(who: str) -> str:
    return f"para {who}"


def until(when: str) -> str:
    return f"Abierto hasta: {when}"


def escalated(where: str) -> str:
    """``where`` is a mention of the place, or empty if only more people may decide."""
    return f"*Escalado* a {where}" if where else "*Escalado*"


def copy_of(where: str, url: str) -> str:
    """Said on a copy. ``where`` is a mention of the channel that the card stands in, ``url`` the card's address."""
    return f"De {where}: <{url}|ir al hilo>"


def instead_of(where: str, code: str) -> str:
    return f"⚠️ Está aquí porque no se puede mostrar en {where} (`{code}`)"


def host_refused(error: str) -> str:
    return "⚠️ El sistema del agente lo rechazó" + (f": {error}" if error else ".")


def host_moved_on(error: str) -> str:
    return "⚠️ El agente ya había seguido adelante antes de que esto le llegara" + (
        f": {error}" if error else "."
    )


def asked_again(error: str) -> str:
    return f"⚠️ Se pregunta de nuevo, porque lo decidido antes no llegó a nada: {error}"


def settled_line(decision: Decision, who: str, when: str) -> str:
    """`✅ Aprobado por @ana · hoy a las 10:00` as markup."""
    outcome = decision.outcome
    what = ALWAYS_SETTLED if decision.action is Action.APPROVE_ALWAYS else SETTLED[outcome]
    how = DISMISSED if decision.action is Action.CANCEL else ""
    by = f" por {who}" if who else f": {NOBODY.get(outcome, 'no se nombra a nadie')}"
    return f"{SIGNS[outcome]} *{what}*{how}{by} · {when}{via(decision.via)}"


def via(word: str) -> str:
    return {"api": " · por la API", "clock": "", "slack": " · en Slack", "host": ""}.get(word, f" · {word}")


def picked(count: int) -> str:
    """In front of the options of a multi select that somebody has picked."""
    return f"{count} elegidas: "


def progress(done: int, count: int, who: str) -> str:
    return f"{who}: {done} de {count}"


def progress_line(people: str) -> str:
    return f"{people} respondidas, sin enviar todavía"


def and_more(shown: str, more: int) -> str:
    """A list of which ``more`` are left out."""
    return f"{shown} y {more} más" if more else shown


def continued(number: int, count: int) -> str:
    return f"continuación, {number} de {count}"


DECIDERS: Final = {
    "channel": "miembros del canal en que se preguntó",
    "anyone": "cualquiera de este espacio de trabajo",
    "admins": "los administradores de askgate",
}


def api_key(name: str) -> str:
    return f"la clave de API `{name}`"


def api_key_plain(name: str) -> str:
    """As `api_key`, where nothing is markup."""
    return f"la clave de API {name}"


def moment(day: str, time: str) -> str:
    """A day and a time of it. Slack puts both in, in each reader's own words (Slack: date formatting)."""
    return f"{day} a las {time}"


def approvers(who: str) -> str:
    return f"Aprueban: {who}"


def votes(approve: int, need: int, names: str) -> str:
    return f"{approve} de {need} aprobaciones" + (f": {names}" if names else "")


def votes_against(reject: int, need: int, names: str) -> str:
    return f"{reject} de {need} rechazos" + (f": {names}" if names else "")


def digest(short: str) -> str:
    return f"Argumentos `{short}`"


def plain_digest(short: str) -> str:
    return f"argumentos {short}"


def hidden(count: int) -> str:
    """Said of a gate that shows masks: whoever decides it does so without having read those values."""
    values = "1 valor oculto" if count == 1 else f"{count} valores ocultos"
    return f"🔒 Aquí hay {values} (•••). Lo que decidas vale para lo que es de verdad."


def fallback(title: str, pending: int, count: int, asked: str) -> str:
    """The text of notifications, and for who hears it: plain. ``asked`` is what is asked first."""
    if not pending:
        return f"{title}: resuelto"
    open_ = f"{title}: {pending} de {count} por resolver" if count > 1 else f"{title}: te está esperando"
    return f"{open_}. {asked}"


def undrawn(gate: str) -> str:
    what = "⚠️ *Slack no acepta esta tarjeta*, así que va aquí como texto."
    if not gate:
        return f"{what} Ya no queda nada abierto."
    return f"{what} Decide en el App Home o con `/gates decide {gate}`; `/gates show {gate}` lo muestra todo."


def undrawn_gate(gate: str, settled: str) -> str:
    return f"• `{gate}`: {settled or 'sin decidir'}"


# to admins

HINTS: Final = {
    "place": "invita a askgate allí, o haz que el agente indique otro lugar",
    "app": "`askgate doctor` dice qué falla en el token o la instalación de la aplicación",
    "message": "el registro de askgate dice qué parte no aceptó Slack",
}


def unshown(count: int) -> str:
    cards = "una tarjeta" if count == 1 else f"{count} tarjetas"
    return f"⚠️ Slack no aceptó {cards} de askgate."


def unshown_line(count: int, code: str, where: str, hint: str) -> str:
    return f"• {count} × `{code}` en {where}" + (f": {hint}" if hint else "")


def unshown_runs(which: str) -> str:
    return f"La auditoría dice qué fue de ellas: {which}"


def unopened(count: int) -> str:
    what = "algo" if count == 1 else f"{count} cosas"
    return f"⚠️ El sistema de un agente espera {what} que askgate no puede preguntar a nadie."


def unopened_line(host: str, what: str, why: str) -> str:
    return f"• {what} de {host}: {why}"


def unopened_more(count: int) -> str:
    return f"• y {count} más, que están en el registro"


def unopened_mend() -> str:
    return "Responde donde ese sistema lo muestra, o termina allí lo que espera: nada más lo hará."


# reminders


def reminder(people: str, pending: int, count: int, until: str, url: str) -> str:
    """A reminder as markup. ``people`` are mentions; ``url`` is where Slack says that the card is."""
    left = "queda 1" if pending == 1 else f"quedan {pending}"
    what = f"{left} de {count} por resolver" if count > 1 else "esto sigue abierto"
    said = f"{people}: {what}" if people else what[0].upper() + what[1:]
    return f"⏰ {said}. Plazo: {until}. <{url}|Ir a la tarjeta>"


def reminder_fallback(title: str) -> str:
    return f"{title}: sigue esperando"


def waiting(count: int) -> str:
    """Over a message about all that waits for somebody, and its notification."""
    return f"Hay {count} decisiones que te esperan" if count > 1 else "Hay 1 decisión que te espera"


def waiting_more(count: int) -> str:
    return f"Y {count} más: están todas en la pestaña Inicio de la aplicación."


# private words to the person who clicked

DID_NOT_WORK: Final = (
    "No ha funcionado: askgate no puede acceder a sus datos."
    " Inténtalo de nuevo en un momento; nada cuenta dos veces."
)
NO_SUCH_CONTROL: Final = "Esa opción ya no existe aquí. No ha cambiado nada; vuelve a leer la tarjeta."
GONE: Final = "Esto ya no existe: se resolvió hace mucho y se ha eliminado."
NOT_ALLOWED: Final = "No estás entre quienes pueden decidir esto. No ha cambiado nada."
NOT_ALLOWED_BUT: Final = "No estás entre quienes pueden decidir esto: {who}. No ha cambiado nada."
SELF_APPROVAL: Final = "Lo has pedido tú, así que tiene que aprobarlo otra persona. No ha cambiado nada."
SELF_APPROVAL_BUT: Final = (
    "Lo has pedido tú, así que tiene que aprobarlo otra persona: {who}. No ha cambiado nada."
)
CANNOT_VERIFY: Final = (
    "askgate no puede comprobar ahora si puedes decidir esto. Inténtalo de nuevo en un minuto."
)
EXPIRED: Final = "Demasiado tarde: el plazo acabó ({when}). Nadie decidió a tiempo y tu clic no ha contado."
ALREADY: Final = "Ya está {what} por {who} ({when}). Tu clic no ha contado."
ALREADY_NOBODY: Final = "Ya está {what} ({when}). Tu clic no ha contado."
ALREADY_YOU: Final = "Ya lo has {what} ({when})."
VOTED_ALREADY: Final = "Ya lo has {what}. Hace falta alguien más."
PICK_KEPT: Final = "Tu elección se ha guardado. Todavía no se ha enviado."
ARGUMENTS_CHANGED: Final = "Los argumentos han cambiado desde que los leíste. Vuelve a leerlos y decide."
CHANGED_MEANWHILE: Final = (
    "Mientras tanto se decidió o cambió algo de esto, así que no se aprobó nada. Lee la tarjeta de nuevo."
)
CHOOSE_FIRST: Final = "Elige primero al menos una y luego Enviar."
NOTHING_PICKED: Final = "Responde primero a todas las preguntas: llevas {done} de {count}."
MODAL_FAILED: Final = "Slack no ha podido abrirlo. No ha cambiado nada; vuelve a hacer clic."
UNEXPECTED: Final = "No ha funcionado y es culpa nuestra; el error está en el registro de askgate."
INVALID: Final = "No se ha aceptado: {what}"

PICK_OR_WRITE: Final = "Elige una opción o escribe otra cosa"
NOT_BOTH: Final = "Elige opciones o escribe otra cosa, pero no ambas"
WRITE_SOMETHING: Final = "Escribe algo primero"
NO_NUMBER: Final = "Escribe un número de 15 cifras como máximo"
NO_JSON: Final = "Esto no es JSON: {where}"
NO_OBJECT: Final = "Los argumentos son un objeto JSON: { … }"
EDITED_MEANWHILE: Final = (
    "Alguien ha cambiado los argumentos desde que abriste esto. Copia tu texto, cierra y vuelve a editar."
)

# replies in a card's thread

USE_REPLY: Final = "Usar como respuesta"
LEAVE_REPLY: Final = "Dejarlo"
OFFER_PRIVATE: Final = "Tu mensaje no es una respuesta mientras no lo digas."
OFFER_FALLBACK: Final = "¿Usar tu mensaje como respuesta?"
OFFER_MORE: Final = "Hay más pendiente aquí: responde al resto en la tarjeta."
REPLY_TAKEN: Final = "✅ Tu mensaje se ha tomado como respuesta."
REPLY_KEPT: Final = "Tu mensaje queda guardado como respuesta a esa pregunta. Envíalas todas en la tarjeta."
REPLY_GONE: Final = "Tu mensaje ya no está ahí. No se ha cambiado nada."
REPLY_EDITED: Final = "Has editado tu mensaje desde entonces. Esto es lo que dice ahora:"
REPLY_TOO_LONG: Final = (
    "Tu mensaje es demasiado largo para usarlo como respuesta: se permiten {most} caracteres."
)
REPLY_UNREAD: Final = "No se ha podido pedir tu mensaje a Slack. No se ha cambiado nada; vuelve a hacer clic."


# modals

OTHER_TITLE: Final = "Otra respuesta"
OTHER_LABEL: Final = "Tu respuesta"
RESPONSE_TITLE: Final = "Respuesta general"
RESPONSE_LABEL: Final = "Tu respuesta a toda la solicitud"
RESPONSE_HINT: Final = "Le llega al agente en lugar de las opciones, o junto a las que hayas elegido."
DECLINE_TITLE: Final = "Declinar la respuesta"
DECLINE_LABEL: Final = "Por qué"
DECLINE_TEXT: Final = "El agente sabrá que has declinado. No recibe ninguna respuesta."
REASON_TITLE: Final = "Rechazar con motivo"
REASON_LABEL: Final = "Motivo"
REASON_HINT: Final = "El agente lo lee."
APPROVE_REASON_TITLE: Final = "Aprobar con motivo"
FORM_TITLE: Final = "Responder formulario"
FORM_OTHER: Final = "Otra cosa"
FORM_WRITTEN: Final = "Otra cosa…"
FORM_WRITTEN_HINT: Final = "Escríbela en el campo de abajo"
FULL_TITLE: Final = "Texto completo"
ANSWER_TITLE: Final = "Responder"
ANSWER_LABEL: Final = "Tu respuesta: texto o JSON"
ANSWER_HINT: Final = "Lo que empieza por { o [ se lee como JSON."
JSON_LABEL: Final = "Tu respuesta en JSON"
JSON_HINT: Final = "Se comprueba con el esquema de arriba. Un texto necesita sus comillas."
JSON_SCHEMA: Final = "La respuesta es JSON que cumple este esquema:"
FILL_TITLE: Final = "Rellenar formulario"
FILL_CUT: Final = "Aquí falta una parte: *Ver completo*, en la tarjeta, lo muestra todo."
DEFAULT_UNFILLED: Final = "El valor por defecto no cabe aquí, así que empieza vacío: {default}"
AT_MOST: Final = "Slack admite aquí hasta {most} caracteres, de los {allowed} permitidos"
FORMATS: Final = {
    "email": "Una dirección de correo",
    "uri": "Una dirección como https://example.com",
    "date-time": "En tu zona horaria",
}
EDIT_TITLE: Final = "Editar argumentos"
EDIT_LABEL: Final = "Argumentos en JSON"
EDIT_HINT: Final = "Apruebas lo que dice aquí."
EDIT_VOIDS: Final = (
    "Apruebas lo que dice aquí. Quien votó sobre los argumentos anteriores tiene que votar de nuevo."
)
ALWAYS_TITLE: Final = "Aprobar siempre"
ALWAYS_TEXT: Final = (
    "Esta llamada queda aprobada y el sistema del agente guarda esto para no tener que volver a preguntar:"
)
ALWAYS_NOTHING: Final = "Esta llamada queda aprobada para siempre. El sistema del agente no dice qué guarda."
APPROVE_ALL_TEXT: Final = (
    "Esto aprueba todas estas llamadas, cada una con los argumentos que muestra la tarjeta:"
)
APPROVE_ALL_VOTES: Final = "Donde hace falta más gente que tú, este es tu voto."
APPROVE_ALL_NOT: Final = "No puedes aprobarlas todas, así que no se aprobó nada. No te toca aprobar:"
GOES_ON_IN_FILE: Final = (
    "Esto es solo el principio. Todos los argumentos están en el archivo `{name}` en el hilo de la tarjeta."
)
NO_FILE_YET: Final = (
    "Esto es solo el principio, y el archivo con todos los argumentos aún no está en el hilo de la tarjeta, "
    "así que por ahora no se puede aprobar."
)
SETTLED_TITLE: Final = "Resuelto"
REFUSED_TITLE: Final = "No se hizo"


def form_other(header: str) -> str:
    """The label of the field for a text of one's own, at the question with this header."""
    return f"{FORM_OTHER}: {header}"


def page(number: int, count: int) -> str:
    return f"Página {number} de {count}"


# /gates, shortcuts, mentions

LIST_TITLES: Final[Mapping[str, str]] = {
    "all": "Pendientes",
    "mine": "Te están esperando",
    "channel": "Pendiente en este canal",
    "thread": "Pendiente en este hilo",
    "host": "Pendiente de un host",
    "run": "Pendiente en un run",
    "expiring": "Vencen antes",
    "asked": "Pedido en tu nombre",
    "decided": "Lo que has decidido",
    "undeliverable": "No entregado",
    "dead": "No recogido",
    "overview": "Resumen",
}
FILTERS: Final[Mapping[str, str]] = {
    "all": "Todo lo pendiente",
    "mine": "Para mí",
    "channel": "Este canal",
    "expiring": "Lo que vence antes",
    "asked": "En mi nombre",
    "decided": "Decidido por mí",
    "undeliverable": "Sin entregar",
    "dead": "Sin recoger",
}
EMPTY: Final[Mapping[str, str]] = {
    "all": "Nada te está esperando.",
    "mine": "Nada te está esperando.",
    "channel": "No hay nada pendiente en este canal.",
    "thread": "No hay nada pendiente en este hilo.",
    "host": "No hay nada pendiente de ese host que puedas decidir.",
    "run": "Ya no hay nada pendiente ahí, o no es para ti.",
    "expiring": "Nada te está esperando, así que nada vence.",
    "asked": "No hay nada pendiente pedido en tu nombre.",
    "decided": "No has decidido nada últimamente.",
    "undeliverable": "Se ha podido entregar todo.",
    "overview": "Nada está esperando.",
    "dead": "No hay nada sin recoger: cada run lo ha recogido su host, o aún lo espera.",
}
LIST_EMPTY_ADMIN: Final = "Nada está esperando a nadie."
LIST_UNSURE: Final = (
    "askgate no ha podido comprobarlo todo: puede haber más para ti. Inténtalo de nuevo en un minuto."
)
LIST_EMPTY_UNSURE: Final = (
    "No se ha encontrado nada que te espere, pero askgate no ha podido comprobarlo todo."
    " Inténtalo de nuevo en un minuto."
)
HELP: Final = """*Lo que espera*
• `/gates` o `/gates list`: lo que te está esperando (a los administradores, todo)
• `/gates list mine`, `channel`, `expiring`, `asked`, `decided` o `host:NOMBRE`: otras listas
• `/gates show ID`: todo sobre un gate; basta el comienzo del ID
• `/gates decide ID`: responderlo, aprobarlo o rechazarlo aquí mismo
• `/gates delegate ID @alguien`: que decida esa persona en tu lugar, si te nombran a ti
*Agentes con los que se puede hablar aquí*
• `/gates new TEXTO`: empezar una conversación; mencióname en un hilo, o escríbeme, para seguir
• `/gates stop`: terminar la tuya; también `stop` en su hilo, mencionándome
*Para administradores*
• `/gates extend ID 2h`: aplazar el plazo
• `/gates reassign ID @alguien`: que decidan otros: personas, grupos de usuarios, `channel`
• `/gates cancel ID [motivo]`: cancelarlo; con el ID de un run, todo lo pendiente en él
• `/gates resend ID`: volver a enviar su tarjeta, al final de la conversación
• `/gates stats`: cuánto hay
• `/gates list undeliverable` o `dead`: lo que ha fallado
`/gates help` muestra esto."""
OPEN_CARD: Final = "Ir a la tarjeta"
DECIDE: Final = "Decidir…"
DETAILS: Final = "Detalles…"
BACK: Final = "Ver la lista"
REFRESH: Final = "Actualizar"
LOADING: Final = "Buscando…"
GATE_TITLE: Final = "Un gate"
EXTERNAL_ID: Final = "Id externo: "
WHY: Final = "Por qué: "
MANAGE: Final[Mapping[str, str]] = {
    "extend": "Aplazar…",
    "reassign": "Reasignar…",
    "cancel": "Cancelar…",
    "resend": "Volver a enviar",
}
REQUEUE: Final = "Volver a entregar"
REQUEUED: Final = "Se vuelve a entregar a su host, con las mismas decisiones."
MOVED: Final = "Se ha vuelto a enviar: la tarjeta está más abajo."
RESENT: Final = "La tarjeta se vuelve a enviar, y la anterior se retira."
STATS_TITLE: Final = "Resumen"
ADMINS_ONLY: Final = "Esto solo pueden hacerlo los administradores de askgate. No se ha cambiado nada."
CANNOT_VERIFY_ADMIN: Final = (
    "askgate no puede comprobar ahora si eres administrador. Inténtalo de nuevo en un minuto."
)
NO_SUCH_GATE: Final = "Ese gate no existe para ti. `/gates list` muestra lo que hay."
NOTHING_PENDING: Final = "Ahí ya no hay nada pendiente. No se ha cambiado nada."
ONLY_NAMED: Final = (
    "Solo quien figura por su nombre para decidir esto puede pasarlo a otra persona. No se ha cambiado nada."
)
WANTED_ONE_PERSON: Final = "Nombra a una persona: `/gates delegate ID @alguien`."
WANTED_TIME: Final = "¿Cuánto más? Escribe un tiempo como `2h`, `90m`, `1d12h` o `2 horas`."
EXTEND: Final = "Aplazar"
EXTEND_TITLE: Final = "Aplazar el plazo"
TIME_LABEL: Final = "Cuánto más"
TIME_HINT: Final = "Como 2h, 90m, 1d12h o 2 horas; hasta 30 días desde que se abrió."
REASSIGN: Final = "Reasignar"
REASSIGN_TITLE: Final = "Que decidan otros"
REASSIGN_VOIDS: Final = (
    "Deciden en lugar de quienes podían hasta ahora. Los votos de quienes ya no pueden dejan de contar."
)
PEOPLE_LABEL: Final = "Personas"
PEOPLE_PLACEHOLDER: Final = "Elige personas"
OTHERS_LABEL: Final = "Grupos de usuarios u otros"
OTHERS_HINT: Final = "Ids como S1 o T2:U9, o las palabras channel, anyone, key:nombre."
CANCEL_GATE: Final = "Cancelar el gate"
CANCEL_TITLE: Final = "¿Cancelar este gate?"
CANCEL_TEXT: Final = (
    "Se avisa al agente de que se ha cancelado. No recibe respuesta, y nadie más puede darla."
)
CANCEL_LABEL: Final = "Por qué"
BACK_OUT: Final = "Volver"
DONE_TITLE: Final = "Hecho"


def not_taken_up() -> str:
    return "*no lo ha recogido su host*"


def opened(when: str) -> str:
    return f"Abierto {when}"


def may_decide(who: str) -> str:
    return f"Pueden decidir: {who}"


def may_answer(who: str) -> str:
    return f"Pueden responder: {who}"


def extended(gate: str, until: str) -> str:
    return f"`{gate}` está abierto hasta {until}."


def reassigned(gate: str, who: str) -> str:
    return f"`{gate}` lo pueden decidir: {who}."


def delegated(gate: str, who: str) -> str:
    return f"`{gate}` queda en otras manos. Lo pueden decidir: {who}."


def cancelled(what: str) -> str:
    return f"`{what}` se ha cancelado."


def too_long(most: int) -> str:
    return f"Es demasiado largo: como máximo {most} caracteres."


def wanted_people(unknown: str) -> str:
    """``unknown``: words that name nobody, as markup; empty if there were none at all."""
    if not unknown:
        return "¿Quién va a decidirlo? Menciona a personas o grupos de usuarios."
    return (
        f"{unknown} no dice con seguridad quién es. Escribe @ y elige personas o grupos en la lista de Slack, o"
        " escribe ids como `U1` y `S1`. No se ha cambiado nada."
    )


def which_gate(verb: str) -> str:
    return f"¿Qué gate? Escribe `/gates {verb} ID`; `/gates list` muestra los ids."


def ambiguous(typed: str, ids: str) -> str:
    return f"Varios empiezan por `{typed}`. ¿Cuál?\n{ids}"


def unknown_word(word: str, nearest: str) -> str:
    hint = f" ¿Querías decir `/gates {nearest}`?" if nearest else ""
    return f"No existe `/gates {word}`.{hint}"


def unknown_list(word: str, nearest: str) -> str:
    if nearest:
        return f"No hay ninguna lista `{word}`. ¿Querías decir `/gates list {nearest}`?"
    return (
        f"No hay ninguna lista `{word}`. Hay `mine`, `channel`, `expiring`, `asked`, `decided` y `host:NOMBRE`;"
        " para administradores también `undeliverable` y `dead`."
    )


def oldest(when: str) -> str:
    return f"el más antiguo: {when}"


def count_open(count: int, oldest: str) -> str:
    """``oldest``: when the oldest of them was opened, in words; empty if there is none."""
    runs = "1 run espera" if count == 1 else f"{count} runs esperan"
    return f"*{runs}* a personas" + (f" · {oldest}" if oldest else "")


def count_soon(count: int) -> str:
    return f"*{count}* de ellos vence{'' if count == 1 else 'n'} en menos de una hora"


def count_undeliverable(count: int) -> str:
    return f"*{count}* no se {'ha' if count == 1 else 'han'} podido mostrar a nadie"


def count_dead(count: int) -> str:
    return f"*{count}* que su host no ha recogido"


# App Home

HOME_TITLE: Final = "Lo que te está esperando"
HOME_EMPTY: Final = (
    "Nada te está esperando. Cuando un agente necesite tu respuesta o tu aprobación, aparecerá aquí."
)

TABS: Final[Mapping[str, str]] = {
    "mine": "Me esperan",
    "asked": "En mi nombre",
    "decided": "Decidido hace poco",
    "overview": "Administración",
}
KINDS: Final[Mapping[str, str]] = {
    "": "Todo",
    "approvals": "Aprobaciones",
    "answers": "Preguntas y formularios",
}
OLDEST_TITLE: Final = "Lo que más espera"


def chosen(text: str) -> str:
    """The name aloud of a tab or filter that is shown."""
    return f"{text} (a la vista)"


# conversaciones con un agente

TALK_SIGNS: Final[Mapping[str, str]] = {
    "working": "⏳ El agente está trabajando en ello.",
    "taken": "⏳ El servidor del agente tiene el mensaje. Tiene mucho que hacer: puede que este tenga que esperar.",
    "behind": "⏳ El agente está ocupado con lo que se le dijo en otro lugar. Tu mensaje se envía cuando termine eso.",
    "waiting": "❓ El agente espera una respuesta a lo que pregunta aquí.",
    "stuck": "⛔ El agente espera algo que aquí nadie le puede dar. Este hilo dice qué es y qué hacer.",
    "away": "⚠️ No se puede contactar con el servidor del agente. Sigo intentándolo durante 15 minutos.",
}


def talk_queued(turns: int, workers: int) -> str:
    """Cómo está un turno en un servidor que tiene más de los que puede atender a la vez."""
    return (
        f"⏳ El servidor del agente tiene el mensaje, y {turns} turnos para {workers} procesos: "
        "puede que este tenga que esperar."
    )


TALK_ENDS: Final[Mapping[str, str]] = {
    "silent": "El agente ha terminado su turno sin decir nada.",
    "error": "⛔ El agente ha fallado. Ha olvidado el último mensaje: la conversación sigue desde antes de él.",
    "gone": "⛔ El servidor del agente ya no conoce esta conversación: se borró allí, o el servidor se reinició. "
    "Nadie sabe si el agente recibió el último mensaje. El siguiente empieza de nuevo: el agente no sabrá nada de lo "
    "que se dijo antes.",
    "cancelled": "El agente se ha detenido. Ha olvidado el último mensaje: la conversación sigue desde antes de él.",
    "refused": "⛔ El servidor del agente no acepta este mensaje.",
    "not_sent": "⛔ No se pudo contactar con el servidor del agente durante 15 minutos. El mensaje no se envió: "
    "escríbelo otra vez.",
    "unknown": "⛔ No se pudo contactar con el servidor del agente durante 15 minutos. Tiene el mensaje; nadie sabe "
    "qué ha sido de él.",
}
TALK_ANEW: Final = (
    "⚠️ El servidor del agente había olvidado esta conversación, así que el agente empezó de nuevo: no sabe "
    "nada de lo que se dijo antes."
)
TALK_REPLIED: Final = "El agente ha respondido."
TALK_OPENING: Final = "dice al agente:"
TALK_BUSY: Final[Mapping[str, str]] = {
    "": "No enviado: el agente sigue ocupado con lo que se dijo antes. Escríbelo otra vez cuando haya respondido, o "
    "escribe `stop` del mismo modo para terminar la conversación.",
    "waiting": "No enviado: el agente espera una respuesta a lo que pregunta aquí. Responde en la tarjeta y "
    "escríbelo otra vez.",
    "stuck": "No enviado: el agente espera algo que aquí nadie le puede dar. El hilo dice qué hacer; o escribe "
    "`stop` del mismo modo para terminar la conversación.",
}
TALK_NOTHING: Final = "Aquí no hay ninguna conversación con un agente que puedas terminar."
TALK_ENDED: Final = "La conversación ha terminado."
TALK_WHICH: Final = "¿Qué conversación quieres terminar?"
TALK_STOP: Final = "Terminarla"
TALK_OUTSIDER: Final = "Solo las personas del espacio de trabajo del agente pueden hablar con él."
TALK_NO_AGENT: Final = "Aquí no se puede hablar con ningún agente."
TALK_NEW_WHAT: Final = "Di de qué se trata: `/gates new Mira por favor el build que falla`"
TALK_NOT_HERE: Final = "No puedo escribir en esta conversación. Invítame, o empieza en otra."
TALK_BEGUN: Final = "La conversación ha empezado: el agente responde debajo de tu mensaje."


def talk_nobody(tool: str, besides: str, need: int, block: str) -> str:
    """Nobody may approve a call. ``besides``: who asked for it and so may not, or empty; both as markup."""
    if besides:
        why = (
            f"no hay nadie nombrado aparte de {besides}, que lo pidió"
            if need == 1
            else f"hacen falta {need} personas aparte de {besides}, que lo pidió, y hay menos"
        )
        mend = f"añadir `approvers` en el bloque `{block}`, o poner `self_approval = true`"
    else:
        why = "no hay nadie nombrado" if need == 1 else f"hacen falta {need} personas, y hay menos"
        mend = f"añadir `approvers` en el bloque `{block}`"
    return (
        f"⛔ El agente espera que se apruebe {tool}, y nadie puede hacerlo: {why}. "
        f"Quien administra askgate puede {mend}. `/gates stop` termina el turno."
    )


def talk_unopened(why: str) -> str:
    """What the agent waits for cannot be put to anybody; ``why`` as markup."""
    return f"⛔ El agente espera algo que aquí no se puede preguntar a nadie: {why}. `/gates stop` termina el turno."


def talk_not_yours(who: str) -> str:
    """``who`` la empezó, como marcado."""
    return f"Solo {who}, que empezó esta conversación, o un administrador puede terminarla."


def talk_stopped(who: str) -> str:
    """``who`` la terminó, como marcado."""
    return f"{who} terminó esta conversación. El próximo mensaje al agente empieza otra."


def talk_cut(count: int) -> str:
    """Cuántos caracteres de una respuesta no se muestran."""
    return f"La respuesta sigue: aquí no se muestran {count:,} caracteres más."


PROBLEMS: Final[Mapping[str, str]] = {
    # forms
    "wanted an object of values by field name": "se esperaba un objeto con los valores por campo",
    "there is no such field": "ese campo no existe",
    "this is required": "es obligatorio",
    "wanted text": "se esperaba un texto",
    "wanted at most {0} bytes": "como máximo {0} bytes",
    "wanted at most {0} characters": "como máximo {0} caracteres",
    "wanted at least {0} characters": "como mínimo {0} caracteres",
    "wanted an e-mail address": "se esperaba una dirección de correo",
    "wanted an address such as https://example.com": "se esperaba una dirección como https://example.com",
    "wanted a date such as 2026-01-31": "se esperaba una fecha como 2026-01-31",
    "wanted a moment such as 2026-01-31T10:00:00Z": "se esperaba un momento como 2026-01-31T10:00:00Z",
    "wanted a number": "se esperaba un número",
    "wanted a number within ±(2^53-1)": "se esperaba un número entre ±(2^53-1)",
    "wanted a whole number": "se esperaba un número entero",
    "wanted yes or no": "se esperaba sí o no",
    "wanted one of the options": "se esperaba una de las opciones",
    "this is not one of the options": "no es una de las opciones",
    "wanted a list of options": "se esperaba una lista de opciones",
    "wanted each option once": "cada opción, solo una vez",
    "one of these is not among the options": "una de estas no está entre las opciones",
    "wanted at least {0}": "como mínimo {0}",
    "wanted at most {0}": "como máximo {0}",
    # answers and reasons
    "{0} is not offered by this {1}; wanted one of: {2}": "{1} no ofrece {0}, sino: {2}",
    "wanted at most {0} characters, got {1}": "como máximo {0} caracteres, y hay {1}",
    "the text has half a surrogate pair": "el texto tiene un carácter a medias",
    "the policy wants a reason": "hay que dar un motivo",
    "{0} takes no values": "{0} no lleva valores",
    "an answer wants a value: text or JSON": "una respuesta lleva un valor: texto o JSON",
    "the policy of this approval does not allow edited arguments": "aquí no se pueden editar los argumentos",
    'wanted {"override_args": {…}}': 'se esperaba {"override_args": {…}}',
    "wanted an object": "se esperaba un objeto",
    "answer contains an unknown question": "la respuesta es a una pregunta desconocida",
    "answer must cover every question or include a general response": (
        "responde a todas las preguntas o da una respuesta general"
    ),
    "answer cannot mix option labels and free text": "elige opciones o escribe un texto, pero no ambas cosas",
    "single-select question requires exactly one option": "esta pregunta lleva una sola opción",
    "wanted text, or a list of texts": "se esperaba un texto o una lista de textos",
    'wanted an object with "answers", "response" or both': (
        'se esperaba un objeto con "answers", "response" o ambos'
    ),
    "too many question answers": "demasiadas respuestas",
    "answer question key is invalid": "la pregunta de una respuesta no es válida",
    "question answer is invalid": "la respuesta está vacía o es demasiado larga",
    "String should have at most {0} characters": "como máximo {0} caracteres",
    "String should have at least {0} character": "se esperaba un texto no vacío",
    # refusals
    "The run is no longer waiting.": "Ya no hay nada que decidir.",
    "This was settled already.": "Ya está resuelto.",
    "The deadline has passed.": "El plazo ha acabado.",
    "The decision was refused. Each refusal is written to the audit with its slug as the reason.": (
        "La decisión no se ha aceptado."
    ),
    "wanted a later deadline, at most 30 days after it was opened ({0})": (
        "el plazo tiene que ser posterior y de 30 días como máximo desde que se abrió ({0})"
    ),
    # arguments and answers as JSON
    "line {0}, column {1}: {2}": "línea {0}, columna {1}: {2}",
    "at {0}: {1}": "en {0}: {1}",
    "the key {0} appears twice": "la clave {0} aparece dos veces",
    "{0} is no JSON number": "{0} no es un número de JSON",
    "the number {0} is too large": "el número {0} es demasiado grande",
    "a whole number of more than {0} digits": "un número entero de más de {0} cifras",
    "the key has half a surrogate pair": "la clave tiene un carácter a medias",
    "nested more than {0} deep": "más de {0} niveles",
    "more than {0} values in one text": "más de {0} valores en un texto",
    "line 1, column 1: a byte order mark; leave it out": "empieza por una marca de orden de bytes; quítala",
    "the top level": "el nivel superior",
    "Expecting value": "se esperaba un valor",
    "Expecting property name enclosed in double quotes": "se esperaba un nombre entre comillas dobles",
    "Expecting ':' delimiter": "falta un ':'",
    "Expecting ',' delimiter": "falta una ','",
    "Illegal trailing comma before end of object": "sobra la coma al final del objeto",
    "Illegal trailing comma before end of array": "sobra la coma al final de la lista",
    "Extra data": "sobra texto",
    "Unterminated string starting at": "falta cerrar el texto que empieza ahí",
    "Invalid control character at": "hay un carácter de control",
    "Invalid \\escape": "el escape \\ no es válido",
    "Invalid \\uXXXX escape": "el escape \\uXXXX no es válido",
    # schemas
    "{0} is not of type {1}": "{0} no es del tipo {1}",
    "{0} is a required property": "falta {0}, que es obligatorio",
    "Additional properties are not allowed ({0} was unexpected)": "no se admiten otras propiedades (sobra {0})",
    "Additional properties are not allowed ({0} were unexpected)": (
        "no se admiten otras propiedades (sobran {0})"
    ),
    "{0} is not one of {1}": "{0} no es ninguno de {1}",
    "{0} was expected": "se esperaba {0}",
    "{0} is less than the minimum of {1}": "{0} es menor que el mínimo, {1}",
    "{0} is greater than the maximum of {1}": "{0} es mayor que el máximo, {1}",
    "{0} is less than or equal to the minimum of {1}": "{0} tiene que ser mayor que {1}",
    "{0} is greater than or equal to the maximum of {1}": "{0} tiene que ser menor que {1}",
    "{0} is not a multiple of {1}": "{0} no es múltiplo de {1}",
    "{0} does not match {1}": "{0} no cumple el patrón {1}",
    "{0} is too long": "{0} es demasiado largo",
    "{0} is too short": "{0} es demasiado corto",
    "{0} should be non-empty": "{0} no puede estar vacío",
    "{0} is expected to be empty": "{0} tiene que estar vacío",
    "{0} does not have enough properties": "{0} tiene muy pocas propiedades",
    "{0} has too many properties": "{0} tiene demasiadas propiedades",
    "{0} is not valid under any of the given schemas": "{0} no cumple ninguno de los esquemas dados",
    "{0} is valid under each of {1}": "{0} cumple a la vez {1}",
    "an item is there twice": "hay un elemento repetido",
    "the schema refers to what it does not hold: {0}": "el esquema remite a algo que no contiene: {0}",
    "the schema takes too long to check": "comprobar el esquema lleva demasiado tiempo",
    "the schema, or what it refers to, goes on too deep": "el esquema tiene demasiados niveles",
    "the schema cannot be checked: {0}": "el esquema no se puede comprobar: {0}",
}
"""What core and the libraries below it say of an answer, by their own words. In `{0}` stand values, or words again."""
