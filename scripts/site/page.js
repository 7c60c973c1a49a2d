// Search, the scheme and copying: what the pages can do beyond being read. Every text is set as text.
const root = document.documentElement;
const remembered = localStorage.getItem("scheme");
if (remembered) root.dataset.scheme = remembered;
document.getElementById("scheme").addEventListener("click", () => {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const shown = root.dataset.scheme ?? (dark ? "dark" : "light");
  root.dataset.scheme = shown === "dark" ? "light" : "dark";
  localStorage.setItem("scheme", root.dataset.scheme);
});

for (const block of document.querySelectorAll("pre")) {
  const button = document.createElement("button");
  button.textContent = "copy";
  button.addEventListener("click", () => {
    const copying = navigator.clipboard.writeText(block.querySelector("code").textContent);
    copying.then(
      () => (button.textContent = "copied"),
      () => (button.textContent = "not copied"),
    );
  });
  block.append(button);
}

// The language that was chosen once is shown wherever there is a choice.
function speak(language) {
  for (const radio of document.querySelectorAll(".tabs > input")) {
    if (radio.value === language) radio.checked = true;
  }
}
speak(localStorage.getItem("language"));
document.addEventListener("change", ({ target }) => {
  if (!target.matches(".tabs > input")) return;
  localStorage.setItem("language", target.value);
  const before = target.getBoundingClientRect().top;
  speak(target.value);
  scrollBy(0, target.getBoundingClientRect().top - before); // what is above may have grown
});

const input = document.getElementById("search");
const found = document.getElementById("found");
let index;
let loading;
input.addEventListener("focus", () => {
  loading ??= fetch(input.dataset.index)
    .then((response) => response.json())
    .then((entries) => {
      index = entries;
      return search(); // for what was typed meanwhile
    });
});
input.addEventListener("input", search);
function search() {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  const score = ({ title, heading, text }) =>
    words.reduce((sum, word) => {
      if (heading.toLowerCase() === word) return sum + 5;
      if (heading.toLowerCase().includes(word)) return sum + 3;
      if (title.toLowerCase().includes(word)) return sum + 2;
      return text.toLowerCase().includes(word) ? sum + 1 : -Infinity;
    }, 0);
  const best = words.length === 0 || !index ? [] : index.map((entry) => [score(entry), entry]);
  const shown = best.filter(([points]) => points > 0).toSorted((a, b) => b[0] - a[0]);
  found.replaceChildren(
    ...shown.slice(0, 12).map(([, { url, title, heading, text }]) => {
      const item = document.createElement("li");
      const link = document.createElement("a");
      link.href = url;
      link.textContent = heading === title ? title : `${title}: ${heading}`;
      const more = document.createElement("small");
      more.textContent = text.slice(0, 120);
      link.append(more);
      item.append(link);
      return item;
    }),
  );
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
  if (event.key === "Escape") found.replaceChildren();
});
