"""SVG as escaped text: elements with their attributes, nothing else.

Styles are classes, because pages have no inline style. Numbers are rounded to a tenth of a unit, a
difference that is not visible.
"""

from markupsafe import Markup, escape


def element(tag: str, *content: str, **attributes: object) -> Markup:
    """An element; texts in `content` and values of attributes are escaped.

    An underscore in a name becomes a hyphen, and `class_` becomes `class`; attributes that are None
    are left out.
    """
    written = "".join(
        f' {_name(name)}="{escape(_text(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    inner = "".join(escape(part) for part in content)
    text = f"<{tag}{written}>{inner}</{tag}>" if inner else f"<{tag}{written}/>"
    return Markup(text)  # noqa: S704 - each part of it has been escaped


def picture(width: float, height: float, label: str, *content: Markup, role: str = "img") -> Markup:
    """A picture with a label for screen readers.

    A picture with links has the role `group`, so that the links can be reached.
    """
    return element(
        "svg",
        *content,
        viewBox=f"0 0 {_text(width)} {_text(height)}",
        role=role,
        aria_label=label,
    )


def title(text: str) -> Markup:
    """The tooltip of the parent element."""
    return element("title", text)


def _name(name: str) -> str:
    return name.rstrip("_") if name in ("class_",) else name.replace("_", "-")


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.1f}".removesuffix(".0")
    return str(value)
