"""SVG as escaped text: elements with their attributes, nothing else.

Styles are classes; a page may hold no style of its own. Numbers are rounded to a tenth of a unit,
which no screen shows.
"""

from collections.abc import Iterable

from markupsafe import Markup, escape


def element(tag: str, *content: str, **attributes: object) -> Markup:
    """An element; texts in `content` and values of attributes are escaped.

    The underscore in a name stands for a hyphen, and `class_` for `class`; attributes that are None
    are left out.
    """
    given = "".join(
        f' {_name(name)}="{escape(_text(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    inner = "".join(escape(part) for part in content)
    text = f"<{tag}{given}>{inner}</{tag}>" if inner else f"<{tag}{given}/>"
    return Markup(text)  # noqa: S704 - each part of it has been escaped


def joined(parts: Iterable[Markup]) -> Markup:
    """Several elements one after the other."""
    return Markup("").join(parts)


def picture(width: float, height: float, label: str, *content: Markup, role: str = "img") -> Markup:
    """A whole picture with its name for those who do not see it.

    One that holds links has the role `group`, so that these can be reached.
    """
    return element(
        "svg",
        *content,
        viewBox=f"0 0 {_text(width)} {_text(height)}",
        role=role,
        aria_label=label,
    )


def title(text: str) -> Markup:
    """What is shown when the pointer rests on the element around it."""
    return element("title", text)


def _name(name: str) -> str:
    return name.rstrip("_") if name in ("class_",) else name.replace("_", "-")


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.1f}".removesuffix(".0")
    return str(value)
