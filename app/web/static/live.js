// A page of the present follows its history: it asks for itself again when the history has grown.
// It waits while somebody types, reads in a dialog or looks elsewhere; a page of the past stays.
import { follow, isBusy } from "./navigation.js";

const PAUSED = "redra-live-paused";

let source = null;
let place = "";
let head = 0;

const mark = () => document.querySelector("[data-live]");
const shown = () => Number(mark()?.dataset.revision || 0);
const isPaused = () => sessionStorage.getItem(PAUSED) === "yes";

function refresh() {
  if (!mark() || isPaused() || head <= shown() || isBusy()) return;
  follow(location.href, { push: false, quiet: true });
}

function button() {
  const there = mark();
  if (!there || there.querySelector("button")) return;
  const made = document.createElement("button");
  made.type = "button";
  made.setAttribute("aria-pressed", String(!isPaused()));
  made.textContent = isPaused() ? "Follow" : "Following";
  made.title = "Follow the history as it grows, or hold this page";
  made.addEventListener("click", () => {
    sessionStorage.setItem(PAUSED, isPaused() ? "no" : "yes");
    made.remove();
    made.blur();
    attach();
  });
  there.append(made);
}

export function attach() {
  button();
  const url = isPaused() ? "" : mark()?.dataset.live || "";
  if (url === place) return;
  source?.close();
  source = null;
  place = url;
  head = 0;
  if (!url) return;
  source = new EventSource(url);
  source.addEventListener("error", () => {
    // Refused, because too many pages follow: the next page tries again.
    if (source?.readyState === EventSource.CLOSED) place = "";
  });
  source.addEventListener("head", (event) => {
    head = Number(event.data);
    refresh();
  });
}

document.addEventListener("redra:page", () => {
  attach();
  setTimeout(refresh);
});
document.addEventListener("visibilitychange", refresh);
document.addEventListener("focusout", () => setTimeout(refresh));
addEventListener("pagehide", () => source?.close());
