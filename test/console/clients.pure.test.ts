import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import {
  ORIGIN_PLACEHOLDER,
  replaceAliasesForClient,
  KEY_PLACEHOLDER,
} from "../../src/console/browser/lib/clients.ts";
import { codeExamplesOf } from "../../src/console/browser/lib/copies.ts";
import { MEDIA, NEWEST, OLDER } from "../clients/python/packages.ts";
import { clientsIn } from "../../scripts/site/clients.ts";

const readText = (file: string): string =>
  readFileSync(path.join(import.meta.dirname, file), "utf8");
const PAGE = readText("../../docs/clients.md");

/** The models of a region. */
const LIVE = ["anthropic/claude-opus-4.5", "openai/gpt-5", "sandbox/echo"];

function modelsOf(client: string, allowed?: readonly string[]): string {
  return replaceAliasesForClient(client, "smart fast", LIVE, allowed);
}

describe("the models in a client's example", () => {
  it("include aliases, or models of the client's vendor, for a key without limits", () => {
    expect(modelsOf("curl")).toBe("smart fast");
    expect(modelsOf("Claude Code")).toBe("claude-opus-4-5 fast");
  });

  it("include only models that the key may call", () => {
    expect(modelsOf("curl", ["sandbox/echo", "openai/gpt-5"])).toBe("sandbox/echo sandbox/echo");
    expect(modelsOf("curl", ["openai/*"])).toBe("openai/gpt-5 openai/gpt-5");
    expect(modelsOf("curl", ["openai/gpt-5", "smart"])).toBe("smart openai/gpt-5");
    expect(modelsOf("Claude Code", ["sandbox/echo"])).toBe("sandbox/echo sandbox/echo");
    expect(modelsOf("Claude Code", ["sandbox/echo", "anthropic/*"])).toBe(
      "claude-opus-4-5 sandbox/echo",
    );
  });
});

/** The patterns with address and key for each client's instructions. */
const AT = ORIGIN_PLACEHOLDER.replaceAll(".", "\\.");
const SET: readonly (readonly [client: string, ...says: readonly RegExp[]])[] = [
  ["curl", new RegExp(`^curl -s ${AT}/v1/chat/completions -H "Authorization: Bearer \\$KEY"`, "m")],
  ["OpenAI SDK for JavaScript", inShell("OPENAI_BASE_URL", "/v1", "OPENAI_API_KEY")],
  ["Responses", inShell("OPENAI_BASE_URL", "/v1", "OPENAI_API_KEY")],
  [
    "Codex",
    new RegExp(
      `^export KEY=${KEY_PLACEHOLDER}\n[^]*base_url = "${AT}/v1"[^]*env_key = "KEY"[^]*\nCODEX_HOME=\\S+ codex`,
    ),
  ],
  ["OpenAI SDK for Python", inShell("OPENAI_BASE_URL", "/v1", "OPENAI_API_KEY")],
  [
    "OpenAI Agents SDK",
    new RegExp(`new OpenAI\\(\\{ baseURL: "${AT}/v1", apiKey: "${KEY_PLACEHOLDER}" \\}\\)`),
    new RegExp(`AsyncOpenAI\\(base_url="${AT}/v1", api_key="${KEY_PLACEHOLDER}"\\)`),
  ],
  ["AI SDK", new RegExp(`baseURL: "${AT}/v1",\n  apiKey: "${KEY_PLACEHOLDER}"`)],
  [
    "LangChain",
    new RegExp(`apiKey: "${KEY_PLACEHOLDER}",\n  configuration: \\{ baseURL: "${AT}/v1" \\}`),
    new RegExp(`"base_url": "${AT}/v1", "api_key": "${KEY_PLACEHOLDER}"`),
  ],
  ["Claude Code", inShell("ANTHROPIC_BASE_URL", "", "ANTHROPIC_AUTH_TOKEN")],
  [
    "Anthropic's Messages",
    new RegExp(`curl -s ${AT}/v1/messages -H "x-api-key: \\$KEY"`),
    new RegExp(`Anthropic\\(base_url="${AT}", api_key="${KEY_PLACEHOLDER}"\\)`),
  ],
  ["aider", inShell("OPENAI_API_BASE", "/v1", "OPENAI_API_KEY")],
  ["opencode", new RegExp(`"baseURL": "${AT}/v1", "apiKey": "\\{env:KEY\\}"`), /export KEY=/],
  ["Open WebUI", inShell("OPENAI_API_BASE_URL", "/v1", "OPENAI_API_KEY")],
  ["llm", new RegExp(`api_base: ${AT}/v1\n`), /llm keys set turnpike --value \$KEY\n/],
  ["Copilot CLI", inShell("COPILOT_PROVIDER_BASE_URL", "/v1", "COPILOT_PROVIDER_API_KEY")],
  ["pi", new RegExp(`"baseUrl": "${AT}/v1",[^]*"apiKey": "KEY"`), /export KEY=/],
  [
    "Cline",
    new RegExp(
      `^export KEY=${KEY_PLACEHOLDER}\n[^]*\ncline auth .* -k \\$KEY -b ${AT}/v1 -m smart\n`,
    ),
    new RegExp(
      `"apiKey": "${KEY_PLACEHOLDER}",\n +"baseUrl": "${AT}/v1",[^]*\nEND\ncline .* -P openrouter `,
    ),
  ],
  ["Qwen Code", inShell("OPENAI_BASE_URL", "/v1", "OPENAI_API_KEY")],
  ["Continue", new RegExp(`apiBase: ${AT}/v1\n    apiKey: ${KEY_PLACEHOLDER}\n`)],
  [
    "Frameworks for Python",
    new RegExp(`OpenAIProvider\\(base_url="${AT}/v1", api_key="${KEY_PLACEHOLDER}"\\)`),
    new RegExp(`OpenAIChatClient\\("smart", base_url="${AT}/v1", api_key="${KEY_PLACEHOLDER}"\\)`),
    new RegExp(`from strands [^]*\\{"base_url": "${AT}/v1", "api_key": "${KEY_PLACEHOLDER}"\\}`),
    new RegExp(`from_token\\("${KEY_PLACEHOLDER}"\\)\n.*api_base_url="${AT}/v1"`),
    new RegExp(`LLM\\(model="openai/smart", base_url="${AT}/v1", api_key="${KEY_PLACEHOLDER}"\\)`),
    new RegExp(`dspy\\.LM\\(.*api_base="${AT}/v1", api_key="${KEY_PLACEHOLDER}"\\)`),
    new RegExp(`from llama_index[^]*\\{"api_base": "${AT}/v1", "api_key": "${KEY_PLACEHOLDER}"\\}`),
    new RegExp(
      `from_provider\\("openai/smart", base_url="${AT}/v1", api_key="${KEY_PLACEHOLDER}"\\)`,
    ),
    new RegExp(`import litellm\n[^]*\\{"api_base": "${AT}/v1", "api_key": "${KEY_PLACEHOLDER}"\\}`),
    new RegExp(`OpenAILike\\(id="smart", base_url="${AT}/v1", api_key="${KEY_PLACEHOLDER}"\\)`),
    new RegExp(`AsyncOpenAI\\(base_url="${AT}/v1", api_key="${KEY_PLACEHOLDER}"\\)`),
    new RegExp(
      `OpenAIChatCompletionClient\\([^)]*base_url="${AT}/v1", api_key="${KEY_PLACEHOLDER}"`,
    ),
  ],
];

function inShell(address: string, ending: string, key: string): RegExp {
  return new RegExp(
    `^export KEY=${KEY_PLACEHOLDER}\n(?:npm|pip) install .*\n${address}=${AT}${ending} ${key}=\\$KEY `,
    "m",
  );
}

describe("the Connect page", () => {
  const clients = clientsIn(PAGE);
  const codeOf = (name: string): string =>
    clients
      .filter((client) => client.name === name)
      .flatMap(({ parts }) => parts.filter(({ kind }) => kind === "code"))
      .map(({ text }) => text)
      .join("\n\n");

  it("includes every supported client", () => {
    expect(clients.map(({ name }) => name)).toEqual(SET.map(([name]) => name));
  });

  it.each(SET.map(([name, ...says]) => ({ name, says })))(
    "contains the region's address and the reader's key for $name",
    ({ name, says }) => {
      for (const pattern of says) expect(codeOf(name)).toMatch(pattern);
    },
  );

  it("shows instructions that use only defined shell variables and the region's address", () => {
    for (const { name } of clients) {
      const code = codeOf(name);
      expect(code, name).not.toMatch(
        /process\.env|os\.environ|\$URL|\$JSON|\$AUTH|\$\{|127\.0\.0\.1/,
      );
      const set = [...code.matchAll(/^export (\w+)=|^(\w+)=/gm)].map(([, one, two]) => one ?? two);
      for (const [, variable] of code.matchAll(/\$([A-Z_]+)/g)) {
        expect(set, name).toContain(variable);
      }
      const elsewhere = [...code.matchAll(/https?:\/\/[^\s"'/]+/g)].map(([url]) => url);
      const own = elsewhere.filter((url) => url !== "https://opencode.ai");
      expect(new Set([...own, ORIGIN_PLACEHOLDER]), name).toEqual(new Set([ORIGIN_PLACEHOLDER]));
    }
  });

  it("shows how to install each program before its first use, and lists all written files as undo steps", () => {
    for (const { name, parts } of clients) {
      const blocks = parts.filter(({ kind }) => kind === "code").map(({ text }) => text);
      for (const block of blocks) expect(block, name).toMatch(/^(?:npm|pip) install \S|^curl /m);
      const written = blocks.flatMap((block) =>
        [...block.matchAll(/^cat > (\S+) <<'END'$/gm)].map(([, file]) => file),
      );
      const undone = parts.find(({ text }) => text.startsWith("To undo it: "))?.text ?? "";
      expect(new Set(undone.split(" ").slice(4)), name).toEqual(new Set(written));
    }
  });

  it("suggests a model of the client's own vendor if available, and otherwise the alias", () => {
    const sold = ["openai/gpt-6-sol", "anthropic/claude-opus-5.5", "anthropic/claude-haiku-5.5"];
    const claude = replaceAliasesForClient("Claude Code", codeOf("Claude Code"), sold);
    expect(claude).toContain("ANTHROPIC_MODEL=claude-opus-5-5 ");
    expect(claude).toContain("ANTHROPIC_DEFAULT_HAIKU_MODEL=claude-haiku-5-5 ");
    expect(replaceAliasesForClient("Codex", codeOf("Codex"), sold)).toContain(
      'model = "gpt-6-sol"',
    );
    for (const { name } of clients) {
      const isOfMaker = name === "Claude Code" || name === "Codex";
      const live = isOfMaker ? ["sandbox/echo"] : sold;
      expect(replaceAliasesForClient(name, codeOf(name), live)).toBe(codeOf(name));
    }
  });

  it("contains instructions without Markdown syntax or command output", () => {
    for (const { name, parts } of clients) {
      const words = parts.filter(({ kind }) => kind === "text").map((part) => part.text);
      for (const word of words) expect(word, name).not.toMatch(/`|\]\(|<!--/);
      expect(codeOf(name), name).not.toContain("msg_");
    }
  });
});

it("a copied request is quoted correctly for the shell and for Python", () => {
  const body = { model: "smart", messages: [{ role: "user", content: `it's "1"\\n` }] };
  const [curl, python] = codeExamplesOf(body, ORIGIN_PLACEHOLDER);
  const inQuotes = /-d '([\s\S]*)'$/.exec(curl?.text ?? "")?.[1] ?? "";
  expect(JSON.parse(inQuotes.replaceAll(`'\\''`, "'"))).toEqual(body);
  const inPython = /json\.loads\((.*)\)/.exec(python?.text ?? "")?.[1] ?? "";
  expect(JSON.parse(JSON.parse(inPython) as string)).toEqual(body);
});

const versionsOf = (row: string): string[] => row.match(/\b\d+\.\d+\b/g) ?? [];
const minor = (version: string): string => version.split(".", 2).join(".");

describe("the documentation's table of tested clients", () => {
  const [table = ""] = PAGE.split("npm run test:clients");
  const rowOf = (name: string): string =>
    table.split("\n").find((line) => line.startsWith(`| [${name}]`)) ?? "";
  const installed = Object.entries(
    (JSON.parse(readText("../clients/package.json")) as { dependencies: Record<string, string> })
      .dependencies,
  ).map(([name, version]): [string, string] => [name, version.split("@").at(-1) ?? ""]);
  const inPython = [...new Set([...NEWEST, ...OLDER, ...MEDIA])].map((pin): [string, string] => {
    const [name = "", version = ""] = pin.split("==");
    return [name.replace(/\[.*/, ""), version];
  });
  /** Rows of the table, with the packages whose versions they state. */
  const ROWS: readonly (readonly [row: string, js: RegExp | null, python: string | null])[] = [
    ["OpenAI SDKs", /^openai\d?$/, "openai"],
    ["OpenAI Agents SDK", /^@openai\/agents$/, null],
    ["AI SDK", /^ai\d?$/, null],
    ["LangChain", /^@langchain\/openai$/, "langchain-openai"],
    ["pydantic-ai", null, "pydantic-ai-slim"],
    ["Microsoft agent-framework", null, "agent-framework-core"],
    ["Anthropic SDKs", /^@anthropic-ai\/sdk\d?$/, "anthropic"],
    ["Claude Code", /^@anthropic-ai\/claude-code$/, null],
    ["Codex", /^@openai\/codex$/, null],
    ["Cohere's SDKs", /^cohere-ai$/, "cohere"],
    ["Mistral's SDKs", /^@mistralai\/mistralai$/, "mistralai"],
    ["OpenRouter's SDKs", /^@openrouter\//, "openrouter"],
  ];

  it.each(ROWS)("contains the installed client versions of %s", (row, js, python) => {
    const used = [
      ...installed.filter(([name]) => js?.test(name) === true),
      ...inPython.filter(([name]) => name === python),
    ];
    expect(versionsOf(rowOf(row)).toSorted()).toEqual(
      used.map(([, version]) => minor(version)).toSorted(),
    );
  });

  it("contains no row for an untested client", () => {
    const rows = [...table.matchAll(/^\| \[([^\]]+)\]/gm)].map(([, name]) => name);
    expect(rows).toEqual(ROWS.map(([row]) => row));
  });
});
