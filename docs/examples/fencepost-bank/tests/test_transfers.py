"""The effect by itself, and in the crash kit of Fencepost (the fixture ``effect_case``)."""

import json

import pytest
from fencepost.plugins import (
    Applied,
    NotApplied,
    Reject,
    Retry,
)
from fencepost.plugins.testing import make_request
from fencepost_bank import Transfers, order
from fencepost_bank.bank import Bank

ORDER = json.dumps({"from": "ada", "to": "bob", "cents": 1})


@pytest.fixture
def bank(tmp_path):
    bank = Bank(str(tmp_path / "bank.db"))
    bank.open_account("ada", 1_000)
    bank.open_account("bob", 0)
    return bank


@pytest.fixture
def transfers(bank, tmp_path):
    transfers = Transfers()
    transfers.effect_configure({"bank": str(tmp_path / "bank.db"), "namespace": "test"})
    return transfers


def test_it_keeps_its_promise_wherever_a_worker_dies(effect_case, bank, tmp_path):
    case = effect_case(
        "transfer", settings={"bank": str(tmp_path / "bank.db")}, observed=bank.count, text=ORDER
    )
    case.check()
    assert bank.balances() == {"ada": 1_000 - bank.count(), "bob": bank.count()}


def test_a_reference_is_booked_once_and_found(transfers, bank):
    request = make_request(ORDER)
    assert transfers.effect_reconcile(request) == NotApplied()
    outcome = transfers.effect_apply(request)
    assert transfers.effect_reconcile(request) == Applied(outcome)
    with pytest.raises(Retry):
        transfers.effect_apply(request)
    assert bank.balances() == {"ada": 999, "bob": 1}


@pytest.mark.parametrize(
    "asked", [{"from": "ada", "to": "bob", "cents": 5_000}, {"from": "ada", "to": "eve", "cents": 1}]
)
def test_what_the_bank_will_never_book_is_rejected_and_changes_nothing(transfers, bank, asked):
    with pytest.raises(Reject):
        transfers.effect_apply(make_request(json.dumps(asked)))
    assert bank.balances() == {"ada": 1_000, "bob": 0}
    assert bank.count() == 0


@pytest.mark.parametrize(
    "text", ["", "[]", '{"from": "ada"}', ORDER.replace("1", "0"), ORDER.replace("bob", "ada")]
)
def test_what_is_no_order_is_refused_at_enqueue(text):
    with pytest.raises(ValueError, match=r"order|account|cents|Expecting"):
        order(text)
