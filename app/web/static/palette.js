// The palette: finds objects while one types, and goes to the chosen one.
import { follow } from "./navigation.js";

const WAIT_MILLIS = 120;

export function openPalette(form) {
  const dialog = document.createElement("dialog");
  dialog.setAttribute("aria-label", "Find an object");
  const input = document.createElement("input");
  input.type = "text";
  input.maxLength = 253;
  input.placeholder = "Name, or kind/name such as pod/web";
  input.setAttribute("aria-label", "Name of an object");
  const list = document.createElement("ol");
  list.setAttribute("aria-live", "polite");
  dialog.append(input, list);
  document.body.append(dialog);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.showModal();
  input.focus();

  let timer = 0;
  let turn = 0;
  const show = async () => {
    const mine = ++turn;
    const url = new URL(form.action, location.href);
    url.searchParams.set("q", input.value.trim());
    if (!input.value.trim()) return list.replaceChildren();
    const answer = await fetch(url);
    if (mine !== turn || !answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const links = [...page.querySelectorAll("[data-hits] a.object")];
    list.replaceChildren(
      ...links.map((link) => {
        const item = document.createElement("li");
        const end = link.closest("li").querySelector(".fate time");
        item.append(document.adoptNode(link));
        if (end) {
          const fate = document.createElement("span");
          fate.className = "fate";
          fate.textContent = ` deleted at ${end.textContent}`;
          item.append(fate);
        }
        return item;
      }),
    );
    if (!links.length) {
      const item = document.createElement("li");
      item.textContent = "Nothing has such a name.";
      list.append(item);
    }
  };
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(show, WAIT_MILLIS);
  });
  dialog.addEventListener("keydown", (event) => {
    const links = [...list.querySelectorAll("a")];
    const at = links.indexOf(document.activeElement);
    if (event.key === "Enter" && document.activeElement === input && links.length) {
      event.preventDefault();
      links[0].click();
    } else if (event.key === "ArrowDown" && links.length) {
      event.preventDefault();
      links[Math.min(at + 1, links.length - 1)].focus();
    } else if (event.key === "ArrowUp" && links.length) {
      event.preventDefault();
      (at <= 0 ? input : links[at - 1]).focus();
    }
  });
  list.addEventListener("click", (event) => {
    const link = event.target instanceof Element && event.target.closest("a");
    if (!link) return;
    event.preventDefault();
    const { href } = link;
    dialog.close();
    follow(href);
  });
}
