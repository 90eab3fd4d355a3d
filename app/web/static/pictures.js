// Pictures are taken away as SVG files of their own: what the style sheet says is written into them.
const SAID = [
  "fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "opacity", "paint-order",
  "font-family", "font-size", "font-weight", "text-anchor", "clip-path",
];

function alone(picture) {
  const copy = picture.cloneNode(true);
  const nodes = [picture, ...picture.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((node, place) => {
    const style = getComputedStyle(nodes[place]);
    for (const name of SAID) {
      const value = style.getPropertyValue(name);
      if (value && value !== "none" || name === "fill") node.setAttribute(name, value);
    }
    node.removeAttribute("class");
    node.removeAttribute("tabindex");
    const link = node.getAttribute("href");
    if (link?.startsWith("/")) node.setAttribute("href", new URL(link, location.href).href);
  });
  const paper = document.createElementNS(picture.namespaceURI, "rect");
  paper.setAttribute("width", "100%");
  paper.setAttribute("height", "100%");
  paper.setAttribute("fill", getComputedStyle(document.body).backgroundColor);
  copy.prepend(paper);
  const { width, height } = picture.viewBox.baseVal;
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  copy.setAttribute("xmlns", picture.namespaceURI);
  return new XMLSerializer().serializeToString(copy);
}

function save(picture) {
  const url = URL.createObjectURL(new Blob([alone(picture)], { type: "image/svg+xml" }));
  const link = document.createElement("a");
  const title = (picture.getAttribute("aria-label") || "picture").toLowerCase();
  link.download = `${title.replace(/[^a-z0-9.]+/g, "-").slice(0, 60)}.svg`;
  link.href = url;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

export function offer() {
  for (const place of document.querySelectorAll(".picture, .strip-picture")) {
    const picture = place.querySelector("svg");
    if (!picture || place.nextElementSibling?.matches("button.save")) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "save";
    button.textContent = "Save as SVG";
    button.addEventListener("click", () => save(picture));
    place.after(button);
  }
}

document.addEventListener("redra:page", offer);
