import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Account } from "./support/account.ts";
import { runAdmin, startOperator } from "./support/admin-cli.ts";
import type { Operator } from "./support/admin-cli.ts";

const QUESTION = { model: "sandbox/echo", messages: [{ role: "user", content: "Hello" }] };
const CREATE = "orgs create --owner-email owner@example.com";

let operator: Operator;
/** An organization with 1 dollar that no test changes. */
let account: Account;
beforeAll(async () => {
  operator = await startOperator();
  account = await Account.open(operator.region);
});
afterAll(() => operator.stop());

function statusWith(key: string): Promise<number> {
  return fetch(`${operator.region().baseUrl}/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key.trim()}`, "content-type": "application/json" },
    body: JSON.stringify(QUESTION),
  }).then((response) => response.status);
}

describe("the operator's CLI", () => {
  it("creates an organization whose printed key works once credits are added", async () => {
    const created = await operator.runs(`${CREATE} --name First --slug first`);
    expect(created).toMatchObject({ code: 0, err: "The key is shown only once. Store it now.\n" });
    const [key = ""] = /svc_sk_eu_live_\w{40}/.exec(created.out) ?? [];
    expect(created.out.split(key)).toHaveLength(2);
    expect(await statusWith(key)).toBe(402);
    expect(await operator.prints("credits add first --dollars 8.2 --reference invoice-1")).toBe(
      "New balance: 8.200000 dollars (8200000 micros)\n",
    );
    expect(await statusWith(key)).toBe(200);
  });

  it("adds a member, prints the member's key, and revokes that key", async () => {
    const { prints, runs } = operator;
    await prints(`${CREATE} --name Second --slug second`);
    await prints("credits add second --micros 1000000 --reference invoice-1");
    expect(await prints("members add second dev@example.com --role member")).toMatch(
      /role +member\n/,
    );
    const created = await runs(
      "keys create second --member Dev@Example.com --name Laptop --scope global --rpm-limit 7",
    );
    expect(created.out).toMatch(/^svc_sk_gbl_eu_live_\w{40}\n$/);
    expect(created.err).toContain("shown only once");
    const [id = ""] = /key_\w{24}/.exec(created.err) ?? [];
    expect(await statusWith(created.out)).toBe(200);
    expect(await prints(`keys show second ${id}`)).toMatch(/requests per minute +7\n/);
    const unconfirmed = await runs(`keys revoke second ${id}`);
    expect(unconfirmed).toMatchObject({ code: 2, out: "" });
    expect(unconfirmed.err).toMatch(/permanently revokes the key Laptop .* Add --yes/);
    expect(await statusWith(created.out)).toBe(200);
    const revoked = await runs(`keys revoke second ${id} --yes`);
    expect(revoked).toMatchObject({ code: 0, err: `${id} is revoked.\n` });
    expect(revoked.out).toMatch(/state +revoked\n/);
    expect(await statusWith(created.out)).toBe(401);
    expect(await prints("keys list second")).toMatch(
      new RegExp(`${id} +Laptop +svc_sk_gbl_eu_live_\\w{4} +global +7 +revoked`),
    );
  });

  it("changes a member's role, and removes a member along with the member's keys", async () => {
    const { prints, runs } = operator;
    await prints(`${CREATE} --name Third --slug third`);
    await prints("credits add third --dollars 1 --reference invoice-1");
    await prints("members add third dev@example.com --role member");
    const key = await prints("keys create third --member dev@example.com --name Laptop");
    expect(await statusWith(key)).toBe(200);
    const changed = await runs("members role third dev@example.com billing");
    expect(changed).toMatchObject({ code: 0, err: "dev@example.com is now billing.\n" });
    expect(changed.out).toMatch(
      /^email +role +since +id\n-+\ndev@example\.com +billing +\S+Z +\S+\n$/,
    );
    expect(await prints("members list third")).toMatch(/dev@example\.com +billing/);
    expect(await prints("members remove third dev@example.com")).toMatch(
      /^Removed member .{36}; its keys are revoked\.\n$/,
    );
    expect(await prints("members list third")).not.toContain("dev@example.com");
    expect(await statusWith(key)).toBe(401);
  });

  it("renames, limits, suspends and resumes an organization, and prints the result", async () => {
    const { prints, runs } = operator;
    const { key } = await operator.answers<{ key: { key: string } }>(
      `${CREATE} --name Fourth --slug fourth`,
    );
    await prints("credits add fourth --dollars 1 --reference invoice-1");
    const renamed = await runs("orgs rename fourth --name 4th --slug fourth-4");
    expect(renamed.err).toBe("fourth-4: name is now 4th, slug is now fourth-4.\n");
    expect(renamed.out).toMatch(/name +4th\n/);
    expect(await prints("orgs limit fourth-4 3")).toMatch(/requests per minute +3\n/);
    expect(await prints("orgs limit fourth-4 none")).toMatch(/no limit\n/);
    const suspended = await runs("orgs suspend fourth-4");
    expect(suspended).toMatchObject({ code: 0, err: "fourth-4: status is now suspended.\n" });
    expect(await statusWith(key.key)).toBe(403);
    expect(await prints("orgs resume fourth-4")).toMatch(/status +active\n/);
    expect(await statusWith(key.key)).toBe(200);
  });

  it("changes a key's limit and name", async () => {
    const { organization, key } = await operator.answers<{
      organization: { id: string };
      key: { id: string };
    }>(`${CREATE} --name Fifth --slug fifth`);
    const limited = await operator.runs(`keys limit ${organization.id} ${key.id} 9`);
    expect(limited.err).toBe(`${key.id} now has a limit of 9 requests per minute.\n`);
    expect(limited.out).toMatch(/requests per minute +9\nstate +live\n/);
    const renamed = await operator.runs(`keys rename fifth ${key.id} Old`);
    expect(renamed.err).toBe(`${key.id} is renamed.\n`);
    expect(renamed.out).toMatch(/name +Old\n/);
  });
});

describe("an organization's balance in the operator's CLI", () => {
  it("changes by a signed correction, but only once per reference", async () => {
    const { prints } = operator;
    await prints(`${CREATE} --name Sixth --slug sixth`);
    const add = "credits add sixth --dollars 12.5 --reference invoice-1";
    const [first, again] = [await prints(add), await prints(add)];
    expect(again).toBe(first);
    expect(await prints("credits correct sixth --dollars -0.000001 --reference typo")).toBe(
      "New balance: 12.499999 dollars (12499999 micros)\n",
    );
    for (const amount of ["add sixth --dollars 10000.01", "correct sixth --dollars -10000.01"]) {
      const large = await operator.runs(`credits ${amount} --reference large`);
      expect(large, large.err).toMatchObject({ code: 2, out: "" });
      expect(large.err).toMatch(/10000\.010000 dollars, more than 10000\.000000\. .* Add --yes/);
    }
    const table = await prints("ledger sixth");
    expect(table.trimEnd().split("\n").slice(2)).toEqual([
      expect.stringMatching(/^ +1 .+Z +credit +12\.500000 +12\.500000 +invoice-1$/),
      expect.stringMatching(/^ +2 .+Z +credit +-0\.000001 +12\.499999 +typo$/),
    ]);
  });

  it("decreases by exactly the total cost that the command 'usage' prints by model", async () => {
    const spender = await Account.open(operator.region);
    expect((await spender.chat(QUESTION)).status).toBe(200);
    const cost = 1_000_000 - (await spender.balance());
    const table = await operator.prints(`usage ${spender.orgId} --group-by model`);
    const figures = `1 +\\d+ +\\d+ +0\\.${String(cost).padStart(6, "0")} +${cost}\n`;
    expect(table).toMatch(new RegExp(`sandbox/echo +${figures}total +${figures}`));
    expect(await operator.prints(`usage ${spender.orgId} --group-by day,model`)).toMatch(
      new RegExp(`day +model .+\\n-+\\n20\\S+ +sandbox/echo +${figures}total +${figures}`),
    );
    const january = `usage ${spender.orgId} --from 2020-01-01 --to 2020-01-31`;
    expect(await operator.prints(january)).toMatch(/^2020-01-01 to 2020-01-31\n/);
  });

  it("causes an alert when it falls below the threshold", async () => {
    const low = await Account.open(operator.region);
    await low.settings({ lowBalanceThresholdMicro: 2_000_000 });
    expect(await operator.prints(`alerts ${low.orgId}`)).toMatch(
      /Z +low_balance +2\.000000 +1\.000000\n/,
    );
    expect(await operator.prints(`alerts ${low.orgId} --json`)).toBe(
      `${await operator.read(`/orgs/${low.orgId}/alerts`)}\n`,
    );
  });
});

/** Removes the age of waiting messages, which grows between two responses. */
const ageless = (text: string): string => text.replaceAll(/"oldest_ms":\d+/g, '"oldest_ms":0');

it("the admin CLI prints the region's response unchanged with --json", async () => {
  const { orgId } = account;
  const at = `/orgs/${orgId}`;
  const { keys } = JSON.parse(await operator.read(`${at}/keys`)) as { keys: { id: string }[] };
  const calls = [
    [`orgs show ${orgId}`, at],
    ["orgs list --limit 1 --offset 1", "/orgs?limit=1&offset=1"],
    ["orgs list --balance", "/orgs?balance=true"],
    [`members list ${orgId}`, `${at}/members`],
    [`keys list ${orgId}`, `${at}/keys`],
    [`keys show ${orgId} ${keys[0]?.id}`, `${at}/keys/${keys[0]?.id}`],
    [`ledger ${orgId} --limit 5`, `${at}/ledger?after_seq=0&limit=5`],
    [`usage ${orgId} --group-by key`, `${at}/usage?group_by=key`],
  ] as const;
  for (const [command, path] of calls) {
    const isUnchanged = async (): Promise<boolean> => {
      const printed = await operator.prints(`${command} --json`);
      return ageless(printed) === `${ageless(await operator.read(path))}\n`;
    };
    // A wallet can publish between the two responses.
    await expect.poll(isUnchanged, { message: path }).toBe(true);
  }
  // exits with 1 because this region has no peer
  const health = await operator.runs("health --json");
  expect(ageless(health.out)).toBe(`${ageless(await operator.read("/health"))}\n`);
});

it("the admin CLI prints the command that continues a list", async () => {
  await Account.open(operator.region);
  expect((await operator.runs("orgs list --limit 1")).err).toMatch(
    /^1 of \d+. Continue with --offset 1\n$/,
  );
});

describe("an error in the admin CLI", () => {
  it.concurrent.each([
    ["orgs show 0b5f2f5c-0000-4000-8000-000000000000", /^error: .+\n\(status 404, .*request_id /],
    ["orgs show nobody-has-this", /^error: No such organization\.\n\(status 404, /],
    ["usage ORG --from 2026-02-30", /\(status 400, .*param from, request_id req_\w{24}\)\n$/],
    ["members role ORG nobody@example.com admin", /has no member with this email address/],
    ["keys revoke ORG key_000000000000000000000000", /\(status 404, /],
    ["credits correct ORG --dollars -1000 --reference too-much", /\(status 4\d\d, /],
  ])("exits with 1 for %s", async (command, words) => {
    const ran = await operator.runs(command.replace("ORG", account.orgId));
    expect(ran).toMatchObject({ code: 1, out: "" });
    expect(ran.err).toMatch(words);
  });

  it("names the token's variable if the token is wrong", async () => {
    const ran = await runAdmin(["orgs", "list"], {
      variables: {
        TURNPIKE_URL: operator.region().url,
        TURNPIKE_ADMIN_TOKEN: "w".repeat(40),
      },
    });
    expect(ran).toMatchObject({ code: 1, out: "" });
    expect(ran.err).toContain("(status 401, type invalid_api_key, ");
    expect(ran.err).toContain("TURNPIKE_ADMIN_TOKEN is not this region's");
  });
});
