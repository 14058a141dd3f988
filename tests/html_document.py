"""A page as a test looks at it."""

from html.parser import HTMLParser

VOID = frozenset({"meta", "link", "br", "path", "rect", "circle", "img", "hr", "input"})


class Document(HTMLParser):
    """Elements of a page with their attributes, and its text outside of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data):
        if not {"script", "style"} & set(self.open):
            self.words.append(data)

    def of(self, *tags):
        return [attributes for tag, attributes in self.elements if tag in tags]

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())
