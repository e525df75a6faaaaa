import pytest
from pydantic import ValidationError

from memd import errors
from memd.serve import border, framing
from memd.serve.arguments import Search


def test_an_error_of_ours_is_told_in_its_own_words():
    told = border.told(errors.UnknownId("there is no memory #9"))
    assert (told.code, told.message, told.data) == (
        framing.INVALID_PARAMS, "there is no memory #9", {"error": "UnknownId"},
    )  # fmt: skip
    assert border.told(errors.VaultFull()).code == framing.BROKEN


@pytest.mark.parametrize(
    "fault",
    [
        ValueError("secret"),
        KeyError("secret"),
        RecursionError("secret"),
        TimeoutError("secret"),
    ],
)
def test_a_fault_of_ours_is_told_without_its_words(fault):
    assert isinstance(fault, border.UNEXPECTED)
    told = border.told(fault)
    assert told.message == "memd could not do this; see the log"


def test_what_pydantic_found_is_told_by_name_and_without_the_value():
    with pytest.raises(ValidationError) as wrong:
        Search.model_validate({"k": "secret"})
    assert border.unfit(wrong.value).message.startswith("k: input should be a valid integer")
    with pytest.raises(ValidationError) as wrong:
        Search.model_validate({"que": "secret"})
    assert border.unfit(wrong.value).message == "que: there is no such parameter"


def test_the_branches_that_pydantic_tried_are_not_told():
    with pytest.raises(ValidationError) as wrong:
        Search.model_validate({"since": ["yesterday"]}, strict=True)
    assert border.unfit(wrong.value).message.startswith("since: input should be a valid string")
