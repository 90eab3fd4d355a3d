// Dragging over the strip of events goes to the moment below the pointer when it is let go.
import { follow } from "./navigation.js";

export function drag() {
  let strip = null;
  let target = "";

  const below = (event) => {
    const node = document.elementFromPoint(event.clientX, strip.getBoundingClientRect().top + 10);
    const link = node && node.closest("a[href]");
    return link && strip.contains(link) ? link.getAttribute("href") : "";
  };
  document.addEventListener("pointerdown", (event) => {
    strip = event.button === 0 && event.target instanceof Element ? event.target.closest(".strip") : null;
    target = "";
  });
  document.addEventListener("pointermove", (event) => {
    if (!strip || !event.buttons) return;
    target = below(event) || target;
    const cursor = strip.querySelector("[data-cursor]");
    const svg = strip.querySelector("svg");
    if (cursor && svg) {
      const box = svg.getBoundingClientRect();
      const width = svg.viewBox.baseVal.width;
      const x = ((event.clientX - box.left) / box.width) * width;
      for (const end of ["x1", "x2"]) cursor.setAttribute(end, String(Math.max(0, Math.min(width, x))));
    }
  });
  document.addEventListener("pointerup", () => {
    if (strip && target) follow(new URL(target, location.href).href);
    strip = null;
  });
  document.addEventListener("dragstart", (event) => {
    if (event.target instanceof Element && event.target.closest(".strip")) event.preventDefault();
  });
}
