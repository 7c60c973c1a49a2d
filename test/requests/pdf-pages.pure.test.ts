import { describe, expect, it } from "vitest";
import { computeMaxPdfPages } from "../../src/models/core/pdf-pages.ts";
import { measureNativePrompt } from "../../src/models/core/prompt-size.ts";
import { pdfOf } from "../fixtures/pdf.ts";
import { MODEL } from "./run-fixture.ts";

const pages = (file: string) => computeMaxPdfPages(btoa(file));
const PLAIN = pdfOf(7);

/** Returns the size of a request with this document, for a model with this context window. */
function size(data: string, context: number) {
  const source = { type: "base64", media_type: "application/pdf", data };
  const messages = [{ role: "user", content: [{ type: "document", source }] }];
  const weights = new Map([[source, { pdf: "data" }]]);
  return measureNativePrompt({ messages }, weights, { ...MODEL, context });
}

describe("the page count of a PDF", () => {
  it("equals the number of pages in the PDF's page tree if every object is readable", () => {
    expect(pages(PLAIN)).toBe(7);
    expect(pages(pdfOf(600))).toBe(600);
    expect(pages(`${PLAIN.slice(0, -6)}${"\n".repeat(100)}%%EOF\n`)).toBe(7);
  });

  it.each([
    ["no PDF header", "words"],
    ["a page that is listed twice", PLAIN.replace("4 0 R", "3 0 R")],
    ["a page that is missing in the table", PLAIN.replace("4 0 R", "99 0 R")],
    ["two numbers for one object", PLAIN.replace("\n4 0 obj", "\n3 0 obj")],
    ["objects in streams", PLAIN.replace("/Catalog", "/Catalog/Type/ObjStm")],
    ["a table in a stream", PLAIN.replace("/Size", "/XRefStm 9/Size")],
    ["names with escapes", PLAIN.replace("/Kids", "/K#69ds")],
    ["its page list in another place", PLAIN.replace(/\/Kids\[[^\]]*\]/, "/Kids 3 0 R")],
    ["a comment in its page list", PLAIN.replace("/Kids[3 0 R", "/Kids[3 %\n 0 R")],
    ["an earlier version of itself inside", PLAIN.replace("/Root", "/Prev 9/Root")],
    ["an update at its end", PLAIN + PLAIN.slice(PLAIN.indexOf("xref"))],
    ["a missing table", PLAIN.replace(/startxref\n\d+/, "startxref\n1")],
    ["more bytes than the limit", PLAIN + " ".repeat(6_000_000)],
  ])("remains unknown for a file with %s", (_, file) => {
    expect(pages(file)).toBeNull();
  });

  it("remains unknown for invalid base64", () => {
    expect(computeMaxPdfPages("%PDF-1.4")).toBeNull();
  });

  it("determines the held tokens: text plus one image per page, or the context window for an unknown count", () => {
    const page = 3000 + MODEL.imageTokens;
    const small = 300;
    const near = (bound: number, tokens: number) => {
      expect(bound).toBeGreaterThanOrEqual(tokens);
      expect(bound).toBeLessThan(tokens + small);
    };
    near(size(btoa(PLAIN), 1_000_000).bound, 7 * page);
    near(size(btoa(PLAIN), 1_000_000).estimate, 7 * page);
    near(size(btoa("%PDF-1.7"), 200_000).bound, 200_000);
    near(size(btoa("%PDF-1.7"), 200_000).estimate, 200_000);
    near(size(btoa("%PDF-1.7"), 4_000_000).bound, 600 * page);
    expect(size(btoa("%PDF-1.7"), 200_000).likely).toBeLessThan(6000);
  });
});
