// An MCP server on stdin and stdout with one paid tool. Each call holds its highest price before the work,
// and captures its actual price after it. A failed call charges nothing.
import { createInterface } from "node:readline";

const { URL: base, KEY } = process.env; // a key or session with may_hold
const PRICE_PER_RESULT = 0.001;
const RESULTS_MAX = 10;

async function gateway(path, body) {
  const headers = { authorization: `Bearer ${KEY}`, "content-type": "application/json" };
  const response = await fetch(`${base}${path}`, {
    method: "POST",
    headers,
    body: JSON.stringify(body),
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error.message); // for example, the budget is used up
  return answer;
}

/** Replace this with the real work. */
async function search(query) {
  return [`First result for ${query}`, `Second result for ${query}`];
}

async function paidSearch({ query }) {
  const { id } = await gateway("/holds", {
    pays: "quota", // counts in the same budgets as the agent's tokens
    amount_dollars: RESULTS_MAX * PRICE_PER_RESULT,
    description: `Search: ${query}`.slice(0, 200),
    expires_in: 60,
  });
  try {
    const results = (await search(query)).slice(0, RESULTS_MAX);
    await gateway(`/holds/${id}/capture`, { amount_dollars: results.length * PRICE_PER_RESULT });
    return results.join("\n");
  } catch (error) {
    await gateway(`/holds/${id}/release`, {}).catch(() => {}); // it also expires without a charge
    throw error;
  }
}

const TOOL = {
  name: "search",
  description: "Searches the web. Costs $0.001 per result.",
  inputSchema: { type: "object", properties: { query: { type: "string" } }, required: ["query"] },
};

const methods = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: "paid-search", version: "1.0.0" },
  }),
  ping: () => ({}),
  "tools/list": () => ({ tools: [TOOL] }),
  "tools/call": async ({ name, arguments: given }) => {
    try {
      if (name !== TOOL.name) throw new Error(`Unknown tool: ${name}`);
      return { content: [{ type: "text", text: await paidSearch(given) }] };
    } catch (error) {
      return { content: [{ type: "text", text: error.message }], isError: true };
    }
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params = {} } = JSON.parse(line);
  if (id === undefined) continue; // a notification
  const run = methods[method];
  const missing = { code: -32601, message: `Unknown method: ${method}` };
  const answer = run === undefined ? { error: missing } : { result: await run(params) };
  console.log(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
}
