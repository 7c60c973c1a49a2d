import { afterAll, beforeAll, expect, it } from "vitest";
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

it("a key is rotated with an overlap and changed; a repeat is the same secret; the events say who", async () => {
  const { orgId, key } = account;
  const rotate = `keys rotate ${orgId} ${keyId} --overlap-seconds 3600 --idempotency-key leak-1`;
  const fresh = await operator.answers<{ key: string }>(rotate);
  expect(await operator.answers(rotate)).toEqual(fresh);
  expect(await Promise.all([key, fresh.key].map(statusWith))).toEqual([200, 200]);
  const changed = await operator.prints(
    `keys change ${orgId} ${keyId} --budget-dollars 0 --budget-period day --allowed-models smart,sandbox/echo`,
  );
  expect(changed).toMatch(/allowed_models +smart,sandbox\/echo\n/);
  expect(await statusWith(fresh.key)).toBe(402);
  await operator.prints(
    `keys change ${orgId} ${keyId} --budget-dollars none --budget-period none --allowed-models none`,
  );
  expect(await statusWith(fresh.key)).toBe(200);
  expect(await operator.prints(`events ${orgId} --type key.rotated`)).toMatch(
    new RegExp(`key\\.rotated +operator:admin +${keyId} `),
  );
  const page = await operator.runs(`events ${orgId} --limit 1`);
  expect(page.err).toMatch(/^Go on with --after evt_\w{24}\n$/);
});

it("a session is listed and ended", async () => {
  const { orgId, key } = await Account.open(operator.region);
  const made = (await (await post("/sessions", {}, key)).json()) as { id: string; token: string };
  expect(await statusWith(made.token)).toBe(200);
  expect(await operator.prints(`sessions list ${orgId}`)).toContain(made.id);
  expect(await operator.prints(`sessions end ${orgId} ${made.id}`)).toMatch(/ended +true\n/);
  expect(await statusWith(made.token)).toBe(401);
});

it("a webhook is listed, tested and replayed, and its deliveries say what failed", async () => {
  const { orgId, key } = await Account.open(operator.region);
  const made = await post("/webhooks", { url: "http://127.0.0.1:9/hook" }, key);
  const { id } = (await made.json()) as { id: string };
  expect(await operator.prints(`webhooks list ${orgId}`)).toContain(id);
  expect(await operator.prints(`webhooks test ${orgId} ${id}`)).toMatch(/delivered +false\n/);
  const replayed = await operator.prints(`webhooks replay ${orgId} ${id} --since 2020-01-01`);
  expect(replayed).toMatch(/queued +[1-9]\d*\n/);
  expect(await operator.prints(`webhooks deliveries ${orgId} ${id}`)).toMatch(/ pending /);
});

it.each([
  ["keys change ORG key_1", 2, /Say what to change/],
  ["keys change ORG key_1 --budget-dollars much", 2, /must be a number/],
  ["keys change ORG key_1 --budget-period year", 2, /Allowed choices are day, week, month/],
  ["keys rotate ORG key_1 --overlap-seconds 0", 2, /--idempotency-key/],
  ["keys change ORG key_1 --rpm-limit 0", 1, /param rpm_limit/],
  ["webhooks test ORG whk_none", 1, /status 404/],
])("%s ends with %i", async (command, code, words) => {
  const ran = await operator.runs(command.replace("ORG", account.orgId));
  expect(ran, ran.err).toMatchObject({ code, out: "" });
  expect(ran.err).toMatch(words);
});
