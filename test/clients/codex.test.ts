import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { codex, textsOf } from "./codex.ts";
import { gateway } from "./gateway.ts";

const at = gateway();

it("codex exec gets a response, which is charged", async () => {
  const before = await at.balance();
  const turn = await codex(at, { prompt: "Say hello to the gateway" });
  expect([textsOf(turn), turn.log]).toEqual([["Say hello to the gateway"], expect.anything()]);
  expect(await at.balance()).toBeLessThan(before);
});

it("codex exec completes a task with a shell call", async () => {
  const order = JSON.stringify({ cmd: "echo turnpike-$((40+2))" });
  const turn = await codex(at, { prompt: `call exec_command ${order}` });
  const ran = turn.lines.flatMap(({ type, item }) =>
    type === "item.completed" && item?.["type"] === "command_execution" ? [item] : [],
  );
  expect([ran, turn.log]).toMatchObject([
    [{ status: "completed", exit_code: 0, aggregated_output: "turnpike-42\n" }],
    expect.anything(),
  ]);
  expect(textsOf(turn)).toEqual([expect.stringMatching(/^exec_command returned: .*turnpike-42/s)]);
  expect(turn.lines.at(-1)?.type).toBe("turn.completed");
});

it("codex exec stops immediately and prints the reason if no credits are left", async () => {
  const turn = await codex(at, { prompt: "Say hello", key: await at.keyOf({ credits: 0 }) });
  const errorMessages = turn.lines
    .filter(({ type }) => type === "error")
    .map(({ message }) => message);
  expect([errorMessages, turn.log]).toEqual([[expect.stringMatching(/quota/i)], expect.anything()]);
  expect(turn.lines.at(-1)?.type).toBe("turn.failed");
});

/** An MCP server with one tool over stdin and stdout, one JSON-RPC message per line. */
const MCP_SERVER = `
const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "box", version: "1" },
  }),
  "tools/list": () => ({
    tools: [{ name: "open", description: "Opens a box.", inputSchema: { type: "object", properties: { box: { type: "integer" } } } }],
  }),
  "tools/call": ({ arguments: { box } }) => ({ content: [{ type: "text", text: "in box " + box + ": turnpike" }] }),
};
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const result = answers[method]?.(params ?? {}) ?? {};
  console.log(JSON.stringify({ jsonrpc: "2.0", id, result }));
});
`;

it("codex exec calls a namespaced tool of an MCP server", async () => {
  const turn = await codex(at, {
    prompt: 'call mcp__box__open {"box":7}',
    settings: (home) => {
      const file = join(home, "box.cjs");
      writeFileSync(file, MCP_SERVER);
      return `[mcp_servers.box]\ncommand = "${process.execPath}"\nargs = ["${file}"]`;
    },
  });
  const called = turn.lines.flatMap(({ type, item }) =>
    type === "item.completed" && item?.["type"] === "mcp_tool_call" ? [item] : [],
  );
  expect([called, textsOf(turn), turn.log]).toMatchObject([
    [{ server: "box", tool: "open", status: "completed", arguments: { box: 7 } }],
    [expect.stringContaining("in box 7: turnpike")],
    expect.anything(),
  ]);
});
