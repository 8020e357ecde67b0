"""The receiver's half of remote effects (contract §9), to be embedded in a service; standard library only.

What a service does with it::

    from fencepost.effects.receiver import Receiver, ReceiverMiddleware, create_table

    def charge(connection, delivery):                  # joins the transaction that keeps the key: never commits
        connection.execute("INSERT INTO charges (order_text) VALUES (?)", (delivery.body.decode(),))
        return {"charged": True}

    app = ReceiverMiddleware(app, Receiver(connect, charge, base="/charges"))

``receive`` is the same for one request over one DB-API connection, for services that bring their own HTTP;
``decide`` is the bare rule. docs/how-to/build-a-receiver.md walks through all three.
"""

from __future__ import annotations

from .asgi import ReceiverMiddleware
from .protocol import (
    CONTRACT_VERSION,
    MAX_ANSWER_BYTES,
    WELL_KNOWN,
    Answer,
    Delivery,
    Malformed,
    Refused,
    problem,
    read_delivery,
)
from .rules import Decision, Known, decide
from .service import Receiver
from .storage import (
    create_table,
    forget,
    look_up,
    receive,
)

__all__ = [
    "CONTRACT_VERSION",
    "MAX_ANSWER_BYTES",
    "WELL_KNOWN",
    "Answer",
    "Decision",
    "Delivery",
    "Known",
    "Malformed",
    "Receiver",
    "ReceiverMiddleware",
    "Refused",
    "create_table",
    "decide",
    "forget",
    "look_up",
    "problem",
    "read_delivery",
    "receive",
]
