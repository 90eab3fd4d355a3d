// Follows links between pages without a reload: the new page's content takes the place of the old.

let asked = 0;
const READ_ON_MILLIS = 400;
const NOT_READY = 202;

// Whether somebody types, reads in a dialog or looks elsewhere: the page then stays as it is.
export function isBusy() {
  const node = document.activeElement;
  const types = node instanceof Element && node.matches("input, textarea, select");
  const isFilled = [...document.querySelectorAll("textarea")].some((one) => one.value !== one.defaultValue);
  return document.hidden || types || isFilled || document.querySelector("dialog[open]") || document.body.hasAttribute("aria-busy");
}

// A page that is not complete yet asks for itself again until it is.
export function readOn() {
  const again = document.querySelector("a[data-again]");
  const turn = asked;
  const look = () => {
    if (turn !== asked || !again.isConnected) return;
    if (isBusy()) setTimeout(look, READ_ON_MILLIS);
    else follow(again.href, { push: false, quiet: true });
  };
  if (again) setTimeout(look, READ_ON_MILLIS);
}

// What the reader has opened and where the focus is, to have it again in the same page.
function reading() {
  const open = [...document.querySelectorAll("main details")].map((one) => one.open);
  const node = document.activeElement;
  const href = node instanceof Element && node.getAttribute("href");
  return () => {
    const now = document.querySelectorAll("main details");
    if (now.length === open.length) now.forEach((one, place) => (one.open = open[place]));
    const same = href && document.querySelector(`a[href="${CSS.escape(href)}"]`);
    if (same) same.focus({ preventScroll: true });
  };
}

export async function follow(url, { push = true, quiet = false } = {}) {
  const turn = ++asked;
  const restore = quiet && reading();
  if (!quiet) document.body.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(url, { headers: { accept: "text/html" } });
    if (quiet && answer.status === NOT_READY) {
      // The page stays as it is until the new one is there.
      setTimeout(() => turn === asked && follow(url, { push, quiet }), READ_ON_MILLIS);
      return;
    }
    const kind = answer.headers.get("content-type") || "";
    if (!kind.startsWith("text/html")) return void location.assign(url);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (turn !== asked) return;
    if (push) history.pushState({}, "", answer.url);
    document.title = page.title;
    document.body.replaceWith(document.adoptNode(page.body));
    const { hash } = new URL(url, location.href);
    const target = hash && document.getElementById(hash.slice(1));
    if (target) target.scrollIntoView();
    else if (push) scrollTo(0, 0);
    if (restore) restore();
    else document.getElementById("main")?.focus({ preventScroll: true });
    readOn();
    document.dispatchEvent(new Event("redra:page"));
  } catch {
    if (turn === asked) location.assign(url);
  } finally {
    if (turn === asked) document.body.removeAttribute("aria-busy");
  }
}

const ours = (url) =>
  url.origin === location.origin && /^\/ui(\/|$)/.test(url.pathname) && !url.pathname.startsWith("/ui/static/");

document.addEventListener("click", (event) => {
  if (event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  const link = event.target instanceof Element && event.target.closest("a[href]");
  if (!link) return;
  // Links inside pictures have an address of another type.
  const href = typeof link.href === "string" ? link.href : link.href.baseVal;
  const url = new URL(href, location.href);
  if (!ours(url) || link.hasAttribute("download") || link.target) return;
  if (url.hash && url.pathname === location.pathname && url.search === location.search) return;
  event.preventDefault();
  follow(url.href);
});

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (event.defaultPrevented || form.method !== "get") return;
  const url = new URL(form.action, location.href);
  if (!ours(url)) return;
  event.preventDefault();
  url.search = new URLSearchParams([...new FormData(form)].filter(([, value]) => value)).toString();
  follow(url.href);
});

addEventListener("popstate", () => follow(location.href, { push: false }));
