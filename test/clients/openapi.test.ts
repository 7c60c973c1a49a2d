import { execFile } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { openApiText } from "../../scripts/openapi.ts";
import { apiTypes } from "../../scripts/site/api-types.ts";
import { removeDirectory } from "../../scripts/tmpfs.ts";
import examples from "../../scripts/openapi/examples.json" with { type: "json" };
import { AGREEMENT } from "./openapi-types.ts";

const run = promisify(execFile);
const installed = (file: string): string => path.join(import.meta.dirname, "node_modules", file);
const directory = mkdtempSync(path.join(tmpdir(), "turnpike-openapi-"));
afterAll(() => removeDirectory(directory));

type Document = {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { requestBody?: unknown }>>>>;
};
type Example = { readonly request?: unknown; readonly answer: unknown };

/** Every operation, asked and answered as the examples of the contract tests were. */
function callsText(): string {
  const { paths } = JSON.parse(text) as Document;
  const calls = Object.entries(examples as Record<string, Example>).map(
    ([name, { request, answer }]) => {
      const [method = "", at = ""] = name.split(" ");
      const hasBody = paths[at]?.[method.toLowerCase()]?.requestBody !== undefined;
      const body = hasBody ? JSON.stringify(request) : "undefined";
      const all = `<${JSON.stringify(name)}>`;
      return `asked${all}(${body}, ${JSON.stringify(answer)});`;
    },
  );
  const head = `import type { Answer, Body } from "./agreement";
declare function asked<N extends string>(body: Body<N>, answer: Answer<N>): void;`;
  return `${head}\n${calls.join("\n")}\n`;
}

/** What the compiler that openapi-typescript wants says of a folder's files; empty when nothing. */
async function compiled(): Promise<string> {
  try {
    await run(process.execPath, [installed("typescript/bin/tsc"), "-p", directory]);
    return "";
  } catch (error) {
    return (error as { stdout: string }).stdout;
  }
}

let text = "";
beforeAll(async () => {
  text = await openApiText();
  const document = path.join(directory, "openapi.json");
  writeFileSync(document, text);
  const client = path.join(directory, "openapi.d.ts");
  await run(process.execPath, [
    installed("openapi-typescript/bin/cli.js"),
    document,
    "--default-non-nullable=false",
    "-o",
    client,
  ]);
  writeFileSync(path.join(directory, "types.ts"), apiTypes(text));
  writeFileSync(path.join(directory, "agreement.ts"), AGREEMENT);
  writeFileSync(path.join(directory, "calls.ts"), callsText());
  const compilerOptions = {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    noErrorTruncation: true,
    module: "esnext",
    moduleResolution: "bundler",
    target: "es2022",
    types: [],
  };
  writeFileSync(path.join(directory, "tsconfig.json"), JSON.stringify({ compilerOptions }));
});

it("openapi-typescript's types and the console's agree on every call, and take what was really asked and answered", async () => {
  expect(await compiled()).toBe("");
});

it("a field that the document names otherwise is found", async () => {
  const renamed = text.replaceAll('"available_micro"', '"left_micro"');
  expect(renamed).not.toBe(text);
  writeFileSync(path.join(directory, "types.ts"), apiTypes(renamed));
  expect(await compiled()).toContain("GET /v1/balance answer");
});
