import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { clientsIn } from "../../console/lib/clients.ts";
import { copiesOf } from "../../console/lib/copies.ts";

const PAGE = readFileSync(path.join(import.meta.dirname, "../../docs/clients.md"), "utf8");
const ORIGIN = "https://eu.example.test";

describe("the blocks of the page about clients", () => {
  const clients = clientsIn(PAGE, ORIGIN);

  it("are there for every client that has one", () => {
    const names = clients.map(({ name }) => name);
    for (const name of ["OpenAI SDK for JavaScript", "Codex", "Claude Code", "LangChain", "llm"]) {
      expect(names).toContain(name);
    }
  });

  it("have this region's address and no other, and words without markdown", () => {
    for (const { name, parts } of clients) {
      const text = parts.map((part) => part.text).join("\n");
      expect(text, name).not.toContain("$URL");
      expect(text, name).not.toContain("127.0.0.1");
      const words = parts.filter(({ kind }) => kind === "text").map((part) => part.text);
      for (const word of words) expect(word, name).not.toMatch(/`|\]\(/);
    }
    expect(
      clients.some(({ parts }) => parts.some(({ text }) => text.includes(`${ORIGIN}/v1`))),
    ).toBe(true);
  });
});

it("a request is copied for the shell with its quotes, and for Python as JSON in a string", () => {
  const body = { model: "smart", messages: [{ role: "user", content: `it's "1"\\n` }] };
  const [curl, python] = copiesOf(body, ORIGIN);
  const inShell = /-d '([\s\S]*)'$/.exec(curl?.text ?? "")?.[1] ?? "";
  expect(JSON.parse(inShell.replaceAll(`'\\''`, "'"))).toEqual(body);
  const inPython = /json\.loads\((.*)\)/.exec(python?.text ?? "")?.[1] ?? "";
  expect(JSON.parse(JSON.parse(inPython) as string)).toEqual(body);
});
