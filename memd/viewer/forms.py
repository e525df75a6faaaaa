"""The forms of `memd view --edit`, and the fields that they send.

A page says in words what will happen before a button does it. A form is sent by POST with the key in a header; the
answer says what was done and where to go, or shows what comes next.
"""

from collections.abc import Mapping
from typing import Any

from memd.errors import BadRequest
from memd.viewer.html import Child, Markup, tag
from memd.viewer.visit import Visit, read_number

Fields = Mapping[str, Any]
"""What a form has sent."""


def write_form(
    visit: Visit,
    action: str,
    button: str,
    *content: Child,
    is_final: bool = False,
    key: str = "",
    **hidden: object,
) -> Markup:
    """A form whose button does what stands above it; without `--edit` how to be allowed to.

    `key` presses the button.
    """
    if not visit.may_edit:
        return tag(
            "p",
            "This viewer only reads. Start ",
            tag("code", "memd view --edit"),
            " to change something.",
            class_="notice",
        )
    inputs = [
        tag("input", type="hidden", name=name, value=str(value)) for name, value in hidden.items()
    ]
    return tag(
        "form",
        content,
        inputs,
        tag("p", tag("button", button, class_="final" if is_final else None, data_key=key or None)),
        data_act=f"/do/{action}",
        class_="act",
    )


def write_radios(
    name: str, legend: str, choices: tuple[tuple[str, str], ...], chosen: str
) -> Markup:
    """Some choices, each with what it means."""
    options = [
        tag(
            "label",
            tag(
                "input",
                type="radio",
                name=name,
                value=value,
                checked=value == chosen,
                required=True,
            ),
            " ",
            tag("b", value),
            " ",
            tag("span", words, class_="quiet"),
            class_="choice",
        )
        for value, words in choices
    ]
    return tag("fieldset", tag("legend", legend), options)


def write_input(name: str, title: str, value: str = "", **attributes: str | int | bool) -> Markup:
    """A line to fill in."""
    return tag(
        "label",
        tag("span", title),
        tag("input", name=name, value=value, autocomplete="off", **attributes),
    )


def write_outcome() -> Markup:
    """Write the place where the answer of a form appears."""
    return tag("div", id="outcome", aria_live="polite")


def read_text(fields: Fields, name: str) -> str:
    """A field's text, empty if it was not sent; BadRequest if it is none."""
    value = fields.get(name, "")
    if not isinstance(value, str):
        raise BadRequest(f"{name}: a text")
    return value.strip()


def read_field_number(fields: Fields, name: str) -> int:
    """A field's number; BadRequest if it is none."""
    found = read_number(str(fields.get(name, "")))
    if found is None:
        raise BadRequest(f"{name}: a number")
    return found
