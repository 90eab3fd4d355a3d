// Makes pages quicker to use. Every page works without it.
import { attach } from "./live.js";
import { follow, readOn } from "./navigation.js";
import { openPalette } from "./palette.js";
import { offer } from "./pictures.js";
import { drag } from "./scrubber.js";

const typing = (node) => node instanceof Element && node.closest("input, textarea, select, dialog");

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
  if (event.key === "/") {
    const form = document.querySelector("form[data-find]");
    if (form) {
      event.preventDefault();
      openPalette(form);
    }
    return;
  }
  const step = [...document.querySelectorAll("a[data-key]")].find(
    (link) => link.dataset.key === event.key,
  );
  if (step) {
    event.preventDefault();
    follow(step.href);
  }
});

// On a narrow screen the pages are a row that scrolls: it begins where the reader is.
function showPlace() {
  const here = document.querySelector(".bar nav a[aria-current]");
  const row = here?.parentElement;
  if (row) row.scrollLeft = here.offsetLeft - row.offsetLeft - (row.clientWidth - here.offsetWidth) / 2;
}

document.addEventListener("redra:page", showPlace);
addEventListener("resize", showPlace);
showPlace();
attach();
drag();
offer();
readOn();
