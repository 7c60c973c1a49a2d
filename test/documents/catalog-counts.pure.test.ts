import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { CATALOG } from "../../src/models/catalog/models.ts";
import { CALL_KIND_NAMES } from "../../src/shared/kinds.ts";
import type { CallKind } from "../../src/shared/kinds.ts";

const PAGE = path.join(import.meta.dirname, "../../docs/providers.md");

/** Names in the text that differ from the name of the kind. */
const NAME_IN_TEXT: Partial<Record<CallKind, string>> = {
  chat: "chat models",
  embeddings: "embedding",
  ocr: "OCR",
};
const of = (kind: string): number => CATALOG.filter((model) => model.kind === kind).length;

it("docs/providers.md states the correct numbers of built-in models, authors, routes and providers", () => {
  const authors = new Set(CATALOG.map(({ id }) => id.split("/")[0]));
  const routes = CATALOG.flatMap((model) => model.routes);
  const providers = new Set(routes.map(({ provider }) => provider));
  const names = CALL_KIND_NAMES.map((kind) => `${of(kind)} ${NAME_IN_TEXT[kind] ?? kind}`);
  const kinds = `${names.slice(0, -1).join(", ")} and ${names.at(-1)} models`;
  const from = `${authors.size} authors, with ${routes.length} routes to ${providers.size} providers`;
  expect(readFileSync(PAGE, "utf8")).toContain(
    `The built-in catalog contains ${kinds} of ${from}.`,
  );
});
