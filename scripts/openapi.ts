// Generates the OpenAPI document from scripts/openapi. `--lint` checks it, and `--out FILE` writes
// it.
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import { createConfig, lintFromString } from "@redocly/openapi-core";

const FOLDER = path.join(import.meta.dirname, "openapi");

/**
 * Returns the document as JSON. Imports it by a computed path, because Node's types don't fit the
 * Worker's schemas.
 */
export async function openApiText(): Promise<string> {
  const { openApiDocument } = (await import(path.join(FOLDER, "document.ts"))) as {
    openApiDocument: (examples: unknown) => object;
  };
  const examples: unknown = JSON.parse(readFileSync(path.join(FOLDER, "examples.json"), "utf8"));
  return `${JSON.stringify(openApiDocument(examples), null, 1)}\n`;
}

/** Returns the findings of Redocly's recommended rules, one per line. */
async function lintFindings(text: string): Promise<string[]> {
  const config = await createConfig({ extends: ["recommended"] });
  const findings = await lintFromString({ source: text, config });
  return findings.map(({ severity, ruleId, message, location }) => {
    return `${severity} ${ruleId} ${location[0]?.pointer ?? ""}: ${message}`;
  });
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { lint: { type: "boolean" }, out: { type: "string" } } });
  const text = await openApiText();
  if (values.out !== undefined) writeFileSync(values.out, text);
  if (values.lint === true) {
    const findings = await lintFindings(text);
    for (const finding of findings) console.error(finding);
    if (findings.length > 0) process.exit(1);
    console.log("the OpenAPI document is sound");
  }
}
