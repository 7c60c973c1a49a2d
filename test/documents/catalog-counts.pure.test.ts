import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { CATALOG } from "../../src/models/catalog/models.ts";

const PAGE = path.join(import.meta.dirname, "../../docs/providers.md");

const of = (kind: string): number => CATALOG.filter((model) => model.kind === kind).length;

it("docs/providers.md states the correct numbers of built-in models, authors, routes and providers", () => {
  const authors = new Set(CATALOG.map(({ id }) => id.split("/")[0]));
  const routes = CATALOG.flatMap((model) => model.routes);
  const providers = new Set(routes.map(({ provider }) => provider));
  const kinds = `${of("chat")} chat models, ${of("embeddings")} embedding, ${of("rerank")} rerank, ${of("moderation")} moderation, ${of("image")} image, ${of("transcription")} transcription, ${of("speech")} speech and ${of("ocr")} OCR models`;
  const from = `${authors.size} authors, with ${routes.length} routes to ${providers.size} providers`;
  expect(readFileSync(PAGE, "utf8")).toContain(`Built in are ${kinds} of ${from}.`);
  const counted = "chat embeddings rerank moderation image transcription speech ocr".split(" ");
  expect(counted).toEqual(expect.arrayContaining(CATALOG.map(({ kind }) => kind)));
});
