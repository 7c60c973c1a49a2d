import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { Command } from "commander";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import * as z from "zod";
import { addDerivedCommands } from "../../scripts/admin/derived-commands.ts";
import { Account } from "./support/account.ts";
import { startOperator } from "./support/admin-cli.ts";
import type { Operator } from "./support/admin-cli.ts";

const QUESTION = { model: "sandbox/echo", messages: [{ role: "user", content: "Hello" }] };

let operator: Operator;
let account: Account;
let keyId: string;
beforeAll(async () => {
  operator = await startOperator();
  account = await Account.open(operator.region);
  const { keys } = await operator.answers<{ keys: { id: string }[] }>(`keys list ${account.orgId}`);
  keyId = keys[0]?.id ?? "";
});
afterAll(() => operator.stop());

function post(path: string, body: object, key: string): Promise<Response> {
  return fetch(`${operator.region().baseUrl}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}
const statusWith = async (key: string): Promise<number> =>
  (await post("/chat/completions", QUESTION, key)).status;

it("the admin CLI rotates a key with an overlap, prints the same secret on a repeat, and lists the events", async () => {
  const { orgId, key } = account;
  const rotate = `keys rotate ${orgId} ${keyId} --overlap-seconds 3600 --idempotency-key leak-1`;
  const fresh = await operator.answers<{ key: string }>(rotate);
  expect(await operator.answers(rotate)).toEqual(fresh);
  expect(await Promise.all([key, fresh.key].map(statusWith))).toEqual([200, 200]);
  const changed = await operator.prints(
    `keys change ${orgId} ${keyId} --budget-dollars 0 --budget-period day --allowed-models smart,sandbox/echo`,
  );
  expect(changed).toMatch(/allowed models +smart,sandbox\/echo\n/);
  expect(await statusWith(fresh.key)).toBe(402);
  await operator.prints(
    `keys change ${orgId} ${keyId} --budget-dollars none --budget-period none --allowed-models none`,
  );
  expect(await statusWith(fresh.key)).toBe(200);
  expect(await operator.prints(`events ${orgId} --type key.rotated`)).toMatch(
    new RegExp(`key\\.rotated +operator:admin +${keyId} `),
  );
  const page = await operator.runs(`events ${orgId} --limit 1`);
  expect(page.err).toMatch(/^Continue with --after evt_\w{24}\n$/);
});

it("the admin CLI lists and ends a session", async () => {
  const { orgId, key } = await Account.open(operator.region);
  const session = (await (await post("/sessions", {}, key)).json()) as {
    id: string;
    token: string;
  };
  expect(await statusWith(session.token)).toBe(200);
  expect(await operator.prints(`sessions list ${orgId}`)).toContain(session.id);
  expect(await operator.prints(`sessions end ${orgId} ${session.id}`)).toMatch(/ended +true\n/);
  expect(await statusWith(session.token)).toBe(401);
});

it("the admin CLI lists, tests and replays a webhook, and prints why deliveries failed", async () => {
  const { orgId, key } = await Account.open(operator.region);
  const response = await post("/webhooks", { url: "http://127.0.0.1:9/hook" }, key);
  const { id } = (await response.json()) as { id: string };
  const list = async (): Promise<string> => operator.prints(`webhooks list ${orgId}`);
  expect(await operator.prints(`webhooks test ${orgId} ${id}`)).toMatch(/delivered +false\n/);
  const replayed = await operator.prints(`webhooks replay ${orgId} ${id} --since 2020-01-01`);
  expect(replayed).toMatch(/queued +[1-9]\d*\n/);
  expect(await operator.prints(`webhooks deliveries ${orgId} ${id}`)).toMatch(/ pending /);
  await expect.poll(list).toMatch(new RegExp(`${id} .* failing +\\S+Z .* all$`, "m"));
});

it.each([
  ["keys change ORG key_1", 2, /Give at least one option/],
  ["keys change ORG key_1 --budget-dollars much", 2, /must be a number/],
  ["keys change ORG key_1 --budget-period year", 2, /Allowed choices are day, week, month/],
  ["keys rotate ORG key_1 --overlap-seconds 0", 2, /--idempotency-key/],
  ["keys change ORG key_1 --rpm-limit 0", 2, /whole number from 1 to 1000/],
  ["keys change ORG key_1 --rpm-limit none", 2, /whole number from 1 to 1000/],
  ["keys change ORG KEY --allowed-models no-such-model", 1, /param allowed_models/],
  ["keys create ORG --member owner@example.com --name A --scope none", 2, /Allowed choices are/],
  ["keys create ORG --member owner@example.com --name A --policy {", 2, /must be JSON/],
  ["webhooks test ORG whk_none", 1, /status 404/],
])("the admin CLI exits, for the command '%s', with the code %i", async (command, code, words) => {
  const ran = await operator.runs(command.replace("ORG", account.orgId).replace("KEY", keyId));
  expect(ran, ran.err).toMatchObject({ code, out: "" });
  expect(ran.err).toMatch(words);
});

it.each([
  ["keys change", /--rpm-limit <number> +requests per minute, 1 to 1000\n/],
  [
    "keys change",
    /--budget-period <period> [^-]+, or none\s+\(choices: "day",\s+"week",\s+"month"\)/,
  ],
  ["keys create", /--member <member> +the member's ID or email address\n/],
  ["ledger", /--after <seq> +only rows after this one \(default: 0\)\n/],
  ["credits add", /\nRetries are safe: reusing a --reference adds no credits\.\n/],
])("%s --help explains the options", async (command, words) => {
  expect(await operator.prints(`${command} --help`)).toMatch(words);
});

const ORG = "0b5f2f5c-0000-4000-8000-000000000000";
const TAGS = "/admin/v1/orgs/{id}/tags";
const fresh = z.object({
  color: z.enum(["red", "blue"]),
  weight: z.int().min(1).max(9).nullish(),
  is_loud: z.boolean().optional(),
  rule: z.object({ max: z.int() }).optional(),
  parts: z.array(z.object({ id: z.string() })).optional(),
});
const LIMIT = { name: "limit", schema: { type: "integer", minimum: 1, maximum: 9, default: 5 } };
const MADE_UP = {
  [`GET ${TAGS}`]: { summary: "Its tags", query: [LIMIT] },
  [`POST ${TAGS}`]: { summary: "Add a tag", body: fresh },
  [`GET ${TAGS}/{tag_id}`]: { summary: "One tag" },
  [`PATCH ${TAGS}/{tag_id}`]: { summary: "Change a tag", body: fresh.partial() },
  [`DELETE ${TAGS}/{tag_id}`]: { summary: "Remove a tag" },
  [`POST ${TAGS}/{tag_id}/paint`]: { summary: "Paint a tag" },
};

it.each([
  [`create ${ORG} --color red --loud`, "POST", "", { color: "red", is_loud: true }],
  [
    `create ${ORG} --color red --rule {"max":2} --parts [{"id":"a"}]`,
    "POST",
    "",
    { color: "red", rule: { max: 2 }, parts: [{ id: "a" }] },
  ],
  [`list ${ORG}`, "GET", "?limit=5", null],
  [`show ${ORG} tag_1`, "GET", "/tag_1", null],
  [`change ${ORG} tag_1 --weight none`, "PATCH", "/tag_1", { weight: null }],
  [`remove ${ORG} tag_1`, "DELETE", "/tag_1", null],
  [`paint ${ORG} tag_1`, "POST", "/tag_1/paint", null],
])(
  "the admin CLI derives a command from each documented operation: tags %s",
  async (words, method, at, body) => {
    const tag = { id: "tag_1", tpm_limit: null, created_at: "2026-11-21T09:00:00.123Z" };
    const requests: unknown[] = [];
    const server = createServer((request, response) => {
      void text(request).then((sent) => {
        requests.push([request.method, request.url, sent === "" ? null : JSON.parse(sent)]);
        return response.end(JSON.stringify(words.startsWith("list") ? { tags: [tag] } : tag));
      });
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    vi.stubEnv("TURNPIKE_ADMIN_TOKEN", "t".repeat(40));
    const out = vi.spyOn(process.stdout, "write").mockReturnValue(true);
    const err = vi.spyOn(process.stderr, "write").mockReturnValue(true);
    const program = new Command().exitOverride().option("--url <url>");
    addDerivedCommands(program, MADE_UP);
    try {
      await program.parseAsync(["tags", ...words.split(" "), "--url", url], { from: "user" });
      expect(requests).toEqual([[method, `/admin/v1/orgs/${ORG}/tags${at}`, body]]);
      const printed = words.startsWith("list")
        ? /^id +tokens per minute +created\n-+\ntag_1 +2026-11-21T09:00:00Z\n$/
        : /^id +tag_1\ntokens per minute +none\ncreated +2026-11-21T09:00:00Z\n$/;
      expect(out.mock.calls.join("")).toMatch(printed);
      expect(err.mock.calls.join("")).toBe("");
    } finally {
      out.mockRestore();
      err.mockRestore();
      vi.unstubAllEnvs();
      server.close();
    }
  },
);
