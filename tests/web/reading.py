"""Pages as a reader takes them: a tree of elements, their texts, links and tables."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

import anyio

from tests.patience import PATIENCE_SECONDS

EMPTY = {"meta", "link", "input", "br", "img", "hr", "wbr"}


@dataclass
class Node:
    """An element with what is in it."""

    tag: str
    attributes: dict
    children: list = field(default_factory=list)

    def __iter__(self):
        yield self
        for child in self.children:
            if isinstance(child, Node):
                yield from child

    def all(self, tag="", class_="", **attributes):
        """The elements within with that tag, class and attributes, in order."""
        return [
            node
            for node in self
            if (not tag or node.tag == tag)
            and (not class_ or class_ in node.attributes.get("class", "").split())
            and all(node.attributes.get(name.replace("_", "-")) == value
                    for name, value in attributes.items())
        ]  # fmt: skip

    def one(self, tag="", class_="", **attributes):
        """The only such element."""
        (found,) = self.all(tag, class_, **attributes)
        return found

    @property
    def text(self):
        """All text within, blanks joined."""
        parts = [child.text if isinstance(child, Node) else child for child in self.children]
        return " ".join("".join(parts).replace("\u202f", "").split())

    @property
    def links(self):
        """Where the links within lead."""
        return [node.attributes["href"] for node in self.all("a") if "href" in node.attributes]


class _Reader(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.root = Node("", {})
        self.open = [self.root]

    def handle_starttag(self, tag, attrs):
        node = Node(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(node)
        if tag not in EMPTY:
            self.open.append(node)

    def handle_startendtag(self, tag, attrs):
        self.open[-1].children.append(Node(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag):
        assert self.open[-1].tag == tag, f"</{tag}> ends <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data):
        self.open[-1].children.append(data)


def read(html):
    """The page as a tree; every element that was opened is closed where it has to be."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    assert len(reader.open) == 1, f"<{reader.open[-1].tag}> is not closed"
    return reader.root


async def ready(ask):
    """The answer of `ask()` when it is worked out: on a busy machine it is 202 until then.

    The server lets each request wait for a while.
    """
    with anyio.fail_after(PATIENCE_SECONDS):
        answer = await ask()
        while answer.status_code == 202:
            answer = await ask()
    return answer
