// Script of the pages: search, key in blocks, menu, color scheme and copying. It sets all text as
// text, never as HTML.
import { search } from "./search.ts";

const root = document.documentElement;
const ORIGIN = "https://YOUR-REGION";
const KEY = "YOUR_KEY";
const SHOWN = 18;
const remembered = localStorage.getItem("scheme");
if (remembered) root.dataset.scheme = remembered;

/** The reader's key, only in this tab's memory. */
let key = "";
/** The original text of each text node and block. */
const templates = new WeakMap();

const filled = (text, own) =>
  text.replaceAll(ORIGIN, location.origin).replaceAll(KEY, own === "" ? KEY : own);

/** Fills in the text nodes of each block, which keeps the token colors. */
function fillBlocks() {
  const shown = key === "" ? "" : `${key.slice(0, SHOWN)}…`;
  for (const code of document.querySelectorAll("main pre code")) {
    if (!templates.has(code)) templates.set(code, code.textContent);
    const texts = document.createTreeWalker(code, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const text = texts.currentNode;
      if (!templates.has(text)) templates.set(text, text.data);
      text.data = filled(templates.get(text), shown);
    }
  }
}

function addCopying() {
  for (const block of document.querySelectorAll("pre")) {
    const button = document.createElement("button");
    button.textContent = "Copy";
    button.addEventListener("click", () => {
      const code = block.querySelector("code");
      const copying = navigator.clipboard.writeText(filled(templates.get(code) ?? "", key));
      copying.then(
        () => (button.textContent = "Copied"),
        () => (button.textContent = "Not copied"),
      );
    });
    block.append(button);
  }
}

// Selects a language in all examples.
function speak(language) {
  for (const radio of document.querySelectorAll(".tabs > input")) {
    if (radio.value === language) radio.checked = true;
  }
}
document.addEventListener("change", ({ target }) => {
  if (!target.matches(".tabs > input")) return;
  localStorage.setItem("language", target.value);
  const before = target.getBoundingClientRect().top;
  speak(target.value);
  scrollBy(0, target.getBoundingClientRect().top - before); // content above can have grown
});

/** Returns the page's audience, or else the last one chosen. */
const audience = () => root.dataset.audience || localStorage.getItem("audience") || "use";

/** Sets up a page after it was loaded or swapped. */
function begin() {
  if (root.dataset.audience) localStorage.setItem("audience", root.dataset.audience);
  for (const tree of document.querySelectorAll("[data-tree]")) {
    tree.hidden = tree.dataset.tree !== audience();
  }
  for (const link of document.querySelectorAll(".audiences a")) {
    if (link.dataset.audience === audience()) link.setAttribute("aria-current", "true");
  }
  const keyed = document.getElementById("keyed");
  if (keyed) {
    const input = document.getElementById("key");
    input.value = key;
    input.addEventListener("input", () => {
      key = input.value.trim();
      fillBlocks();
    });
    keyed.addEventListener("submit", (event) => event.preventDefault());
  }
  document.getElementById("scheme").addEventListener("click", () => {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const shown = root.dataset.scheme ?? (dark ? "dark" : "light");
    root.dataset.scheme = shown === "dark" ? "light" : "dark";
    localStorage.setItem("scheme", root.dataset.scheme);
  });
  fillBlocks();
  addCopying();
  speak(localStorage.getItem("language"));
}

const menu = document.getElementById("menu");
root.dataset.script = "";
menu.hidden = false;
function open(isOpen) {
  root.toggleAttribute("data-menu", isOpen);
  menu.setAttribute("aria-expanded", String(isOpen));
}
menu.addEventListener("click", () => open(!root.hasAttribute("data-menu")));

// Swaps pages in place while a key is in memory, because a load would lose it.
async function swap(url, isNew) {
  const response = await fetch(url);
  const next = new DOMParser().parseFromString(await response.text(), "text/html");
  if (!response.ok || next.querySelector("main") === null) return location.assign(url);
  for (const part of ["main", ".tree", ".here"]) {
    document.querySelector(part).replaceWith(next.querySelector(part));
  }
  document.title = next.title;
  root.dataset.audience = next.documentElement.dataset.audience ?? "";
  if (isNew) history.pushState(null, "", response.url + new URL(url, location.href).hash);
  open(false);
  found.replaceChildren();
  begin();
  const { hash } = new URL(url, location.href);
  const at = hash === "" ? null : document.getElementById(decodeURIComponent(hash.slice(1)));
  if (at) at.scrollIntoView();
  else scrollTo(0, 0);
}
document.addEventListener("click", (event) => {
  const link = event.target instanceof Element ? event.target.closest("a") : null;
  if (key === "" || link === null || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const to = new URL(link.href);
  const isHere = to.pathname === location.pathname && to.hash !== "";
  if (to.origin !== location.origin || !to.pathname.startsWith("/docs/") || isHere) return;
  if (/\.\w+$/.test(to.pathname)) return;
  event.preventDefault();
  void swap(to.href, true);
});
addEventListener("popstate", () => key !== "" && void swap(location.href, false));

const input = document.getElementById("search");
const found = document.getElementById("found");
let index;
let loading;
input.addEventListener("focus", () => {
  loading ??= fetch(input.dataset.index)
    .then((response) => response.json())
    .then((entries) => {
      index = entries;
      return show(); // shows results for text typed meanwhile
    });
});
input.addEventListener("input", show);

function show() {
  const asked = input.value.trim();
  const best = asked === "" || !index ? [] : search(index, asked, { audience: audience() });
  const items = best.map((entry) => item(entry));
  if (asked !== "" && index && best.length === 0) {
    const none = document.createElement("li");
    none.textContent = "No results. Try an error code, a path, a header or a task.";
    items.push(none);
  }
  found.replaceChildren(...items);
}

function item({ url, title, heading, text, audience: whose }) {
  const line = document.createElement("li");
  const link = document.createElement("a");
  link.href = url;
  const name = document.createElement("span");
  marked(name, heading === title ? title : `${title}: ${heading}`);
  const more = document.createElement("small");
  marked(more, text.slice(0, 120));
  const tag = document.createElement("small");
  tag.className = "whose";
  tag.textContent = whose;
  link.append(tag, name, more);
  line.append(link);
  return line;
}

/** Adds a text to an element and marks the search words. */
function marked(element, text) {
  const words = input.value.toLowerCase().split(/\s+/).filter((word) => word.length > 2);
  let rest = text;
  while (rest !== "") {
    const low = rest.toLowerCase();
    const hits = words.map((word) => [low.indexOf(word), word]).filter(([at]) => at >= 0);
    const [at, word] = hits.toSorted((a, b) => a[0] - b[0])[0] ?? [-1, ""];
    if (at < 0) break;
    const mark = document.createElement("mark");
    mark.textContent = rest.slice(at, at + word.length);
    element.append(rest.slice(0, at), mark);
    rest = rest.slice(at + word.length);
  }
  element.append(rest);
}

input.form.addEventListener("submit", (event) => {
  event.preventDefault();
  found.querySelector("a")?.click();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !/^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName)) {
    event.preventDefault();
    input.focus();
  }
  if (event.key === "Escape") {
    found.replaceChildren();
    open(false);
  }
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const links = [...found.querySelectorAll("a")];
  if (step === undefined || links.length === 0 || !document.activeElement?.closest("header")) return;
  event.preventDefault();
  const at = links.indexOf(document.activeElement) + step;
  (at < 0 ? input : (links[at] ?? links.at(-1))).focus();
});

/** Shows the region and its release in the header. */
async function showRegion() {
  const health = await fetch("/healthz").then((response) => response.json()).catch(() => null);
  const place = document.getElementById("region");
  place.textContent = health?.region?.toUpperCase() ?? "Unavailable";
  if (health?.release) place.title = `Release ${health.release}`;
  if (root.dataset.alone !== "welcome") return;
  const text = health ? `${place.textContent}, available, release ${health.release}` : "unavailable";
  document.querySelector("main p:last-of-type").textContent = `This region: ${text}.`;
}

/** Lists the pages that best match an unknown URL. */
async function suggestPages() {
  const { alone } = root.dataset;
  if (alone !== "not-found") return;
  const entries = await (await fetch(input.dataset.index)).json();
  const near = search(entries, location.pathname.replace(/[/_.-]+/g, " "), { most: 5 });
  if (near.length === 0) return;
  const list = document.createElement("ul");
  list.append(...near.map((entry) => item(entry)));
  const head = document.createElement("p");
  head.textContent = "Similar pages:";
  document.querySelector("main footer").before(head, list);
}

begin();
void showRegion();
void suggestPages();
