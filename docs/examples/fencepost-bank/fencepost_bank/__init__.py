"""The effect ``transfer``: moves money at a bank, exactly once, though the bank may not answer.

The job's text is JSON: ``{"from": "ada", "to": "bob", "cents": 1250}``. Its delivery is ``probed``: the idempotency key
is the bank's reference, and before any second attempt the bank is asked what became of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fencepost.plugins import (
    Applied,
    EffectInfo,
    EffectRequest,
    NotApplied,
    Reconciled,
    Reject,
    Retry,
    Setting,
    hookimpl,
)

from .bank import AlreadyBooked, Bank, NotPossible, Transfer


class Transfers:
    bank: Bank

    @hookimpl
    def effect_info(self) -> EffectInfo:
        return EffectInfo(
            name="transfer",
            summary="Transfers money at the bank.",
            delivery="probed",
            settings={"bank": Setting("The bank's SQLite file.", required=True)},
        )

    @hookimpl
    def effect_configure(self, settings: Mapping[str, Any]) -> None:
        self.bank = Bank(settings["bank"])

    @hookimpl
    def effect_validate(self, text: str) -> None:
        order(text)

    @hookimpl
    def effect_apply(self, request: EffectRequest) -> dict[str, Any]:
        payer, payee, cents = order(request.text)
        try:
            booked = self.bank.transfer(request.idempotency_key, payer, payee, cents)
        except AlreadyBooked as error:
            # Another attempt was faster than our question. The next one asks, and finds it.
            raise Retry("the bank knows the reference: ask what became of it", after_s=1) from error
        except NotPossible as error:
            raise Reject(str(error)) from error
        request.mark("booked")
        return receipt(booked)

    @hookimpl
    def effect_reconcile(self, request: EffectRequest) -> Reconciled:
        # A plain no is certain enough: should an earlier request still be on its way, the bank books only one.
        booked = self.bank.find(request.idempotency_key)
        return NotApplied() if booked is None else Applied(receipt(booked))


def order(text: str) -> tuple[str, str, int]:
    """What the text asks for; ValueError if it is not an order."""
    asked = json.loads(text)
    if not isinstance(asked, dict) or set(asked) != {"from", "to", "cents"}:
        raise ValueError('an order is {"from": account, "to": account, "cents": amount}')
    payer, payee, cents = asked["from"], asked["to"], asked["cents"]
    if not isinstance(payer, str) or not isinstance(payee, str) or payer == payee:
        raise ValueError("an order names two accounts")
    if type(cents) is not int or cents < 1:
        raise ValueError("cents must be a whole number, 1 or more")
    return payer, payee, cents


def receipt(booked: Transfer) -> dict[str, Any]:
    """What the bank stored: the same whether it has just been booked or was found later."""
    return {"transfer": booked.number, "cents": booked.cents}


plugin = Transfers()
