// Pictures are taken away as files of their own: what the style sheet says is written into them.
// A PNG is drawn by the browser from that SVG, so that no library has to know fonts and patterns.
const PIXELS_A_UNIT = 2;
const PIXELS_MAX = 16_000;
const NAME_MAX = 80;

const SAID = [
  "fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "opacity", "paint-order",
  "font-family", "font-size", "font-weight", "text-anchor", "clip-path",
];

// Above a picture that is alone stands what the page around it says: what it shows, and of which moment.
const CAPTION = 24;
const CHARACTER = 7.5;

function historyName() {
  return document.querySelector(".history-name")?.textContent.trim() || "";
}

function shortened(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

// Of a long caption what the picture shows is cut: the moment stands nowhere else in the file.
function captionOf(picture, most) {
  const when = document.querySelector(".moment .shown")?.textContent.trim().replace(/\s+/g, " ") || "";
  const place = [historyName(), when].filter(Boolean).join(" · ");
  const what = shortened(picture.getAttribute("aria-label") || "", Math.max(20, most - place.length - 3));
  return shortened([what, place].filter(Boolean).join(" · "), most);
}

function sizeOf(picture) {
  const { width, height } = picture.viewBox.baseVal;
  return { width, height: height + CAPTION };
}

function caption(picture, width) {
  const text = document.createElementNS(picture.namespaceURI, "text");
  text.textContent = captionOf(picture, Math.floor((width - 8) / CHARACTER));
  const style = getComputedStyle(document.body);
  const looks = { x: 4, y: 16 - CAPTION, fill: style.color, "font-family": style.fontFamily, "font-size": 13 };
  for (const [name, value] of Object.entries(looks)) text.setAttribute(name, value);
  return text;
}

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
  paper.setAttribute("y", -CAPTION);
  paper.setAttribute("width", "100%");
  paper.setAttribute("height", "100%");
  paper.setAttribute("fill", getComputedStyle(document.body).backgroundColor);
  const { width, height } = sizeOf(picture);
  copy.prepend(paper, caption(picture, width));
  copy.setAttribute("viewBox", `0 ${-CAPTION} ${width} ${height}`);
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  copy.setAttribute("xmlns", picture.namespaceURI);
  return new XMLSerializer().serializeToString(copy);
}

function asSvg(picture) {
  return new Blob([alone(picture)], { type: "image/svg+xml" });
}

async function asPng(picture) {
  const url = URL.createObjectURL(asSvg(picture));
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    const { width, height } = sizeOf(picture);
    const scale = Math.min(PIXELS_A_UNIT, PIXELS_MAX / Math.max(width, height));
    const canvas = document.createElement("canvas");
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((done) => canvas.toBlob(done, "image/png"));
  } finally {
    URL.revokeObjectURL(url);
  }
}

function save(picture, blob, kind) {
  const url = URL.createObjectURL(blob);
  const link = document.createElement("a");
  const title = `${historyName()} ${picture.getAttribute("aria-label") || "picture"}`.toLowerCase();
  const words = title.match(/[a-z0-9.]+/g) || [];
  while (words.join("-").length > NAME_MAX && words.length > 1) words.pop();
  link.download = `${words.join("-").slice(0, NAME_MAX)}.${kind}`;
  link.href = url;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

export function offer() {
  for (const place of document.querySelectorAll(".picture, .strip-picture")) {
    const picture = place.querySelector("svg");
    if (!picture || place.nextElementSibling?.matches("button.save")) continue;
    const buttons = [["svg", asSvg], ["png", asPng]].map(([kind, made]) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "save";
      button.textContent = `Save as ${kind.toUpperCase()}`;
      button.addEventListener("click", async () => save(picture, await made(picture), kind));
      return button;
    });
    place.after(...buttons);
  }
}

document.addEventListener("redra:page", offer);
