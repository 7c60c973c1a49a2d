import { execFile } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { removeDirectory } from "../../scripts/tmpfs.ts";
import { blocksOf, readPage } from "../documents/pages.ts";
import { hasShape } from "../documents/shape.ts";
import { EXPECTED_CONVERSATION, TURNS, Weather } from "./conversation.ts";
import { CLAUDE, GPT, authorGateway } from "./author-gateway.ts";
import { makeEnvironment, pipInstall } from "./python/environment.ts";
import { NEWEST, OLDER } from "./python/packages.ts";

const NEEDS_IT = /^sh no-run: it needs pip install openai\b/;
/** Maximum time for programs that usually take half a minute. */
const LONG_MS = 300_000;

const at = await authorGateway({ smart: "sandbox/echo", "embeddings/cheapest": "sandbox/embed" });
const directory = mkdtempSync(path.join(tmpdir(), "turnpike-python-"));
const older = path.join(directory, "older");
const run = promisify(execFile);
const examples = ["docs/start.md", "docs/quickstart.md", "docs/clients.md"].flatMap((page) =>
  blocksOf(readPage(page)).flatMap((block, i, all) =>
    NEEDS_IT.test(block.info)
      ? [{ at: `${page}:${block.line}`, text: block.text, answer: all[i + 1]?.text ?? "" }]
      : [],
  ),
);

/** The reason why no test can run here, or "". */
let missing = "";
beforeAll(async () => {
  missing =
    (await makeEnvironment(directory, NEWEST)) ||
    (await pipInstall(directory, ["--no-deps", "--target", older, ...OLDER]));
  if (missing !== "") console.warn(`Clients in Python are skipped: ${missing}`);
}, LONG_MS);
afterAll(() => removeDirectory(directory));

it("the documentation contains examples in Python", () => {
  expect(examples.length).toBeGreaterThanOrEqual(3);
});

it.for(examples)(
  "the Python example at $at prints the documented output",
  async (example, { skip }) => {
    skip(missing !== "", missing);
    // Without --norc, bash reads ~/.bashrc if stdin is a socket, which can select another python3.
    const { stdout } = await run("bash", ["--norc", "-c", example.text], { env: environment() });
    expect(hasShape(stdout, example.answer), stdout).toBe(true);
  },
);

/** Conversations that continue by the previous response's ID, with and without stored responses. */
const CHAINED = ["chained", "chained without storage"];
/** The programs in test/clients/python, with the endpoints of each. */
const PROGRAMS = [
  { program: "openai_sdk", major: "newest", endpoints: ["chat", "responses", ...CHAINED] },
  { program: "openai_sdk", major: "older", endpoints: ["chat", "responses", ...CHAINED] },
  { program: "anthropic_sdk", major: "newest", endpoints: ["manual loop", "runner"] },
  { program: "anthropic_sdk", major: "older", endpoints: ["manual loop", "runner"] },
  {
    program: "langchain_sdk",
    major: "newest",
    endpoints: ["chat", "responses", ...CHAINED, "messages"],
  },
  {
    program: "pydantic_ai_sdk",
    major: "newest",
    endpoints: ["chat", "responses", ...CHAINED, "messages"],
  },
  { program: "agent_framework_sdk", major: "newest", endpoints: ["chat", "responses", ...CHAINED] },
  { program: "openrouter_sdk", major: "newest", endpoints: ["chat"] },
];
const MODELS = ["sandbox/agent", GPT, CLAUDE];
const REFUSED = { error: expect.stringContaining("keep_responses_hours") as string };

it.for(PROGRAMS)(
  "a Python client completes a conversation of three messages with a tool: $program, $major",
  { timeout: LONG_MS },
  async (one, { skip }) => {
    skip(missing !== "", missing);
    const { name, description, parameters } = new Weather();
    const { stdout } = await run(
      path.join(directory, "bin/python"),
      [path.join(import.meta.dirname, "python", `${one.program}.py`)],
      {
        env: {
          ...environment(),
          ...(one.major === "older" && { PYTHONPATH: older }),
          STORING_KEY: await at.storingKey(),
          TURNS: JSON.stringify(TURNS),
          MODELS: JSON.stringify(MODELS),
          TOOL: JSON.stringify({ name, description, parameters }),
        },
      },
    );
    const cases = one.endpoints.flatMap((endpoint) =>
      MODELS.flatMap((model) =>
        ["whole", "streamed"].map((way) => [
          `${endpoint}, ${model}, ${way}`,
          endpoint === "chained without storage" ? REFUSED : EXPECTED_CONVERSATION,
        ]),
      ),
    );
    expect(JSON.parse(stdout)).toEqual(Object.fromEntries(cases));
  },
);

function environment(): NodeJS.ProcessEnv {
  return {
    ...process.env,
    PATH: `${path.join(directory, "bin")}:${process.env["PATH"] ?? ""}`,
    PYTHONPYCACHEPREFIX: path.join(directory, "cache"),
    URL: at.baseUrl,
    KEY: at.key,
    OPENAI_BASE_URL: at.baseUrl,
    OPENAI_API_KEY: at.key,
  };
}
