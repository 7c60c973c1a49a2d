import { afterEach, expect, it } from "vitest";
import { setClock } from "../wallet/wallet-fixture.ts";
import { addKey, addMember, chat, openAccount, send } from "./client.ts";

/** A time in the future, so that nothing is rolled up. */
const LATE = Date.UTC(2036, 10, 20, 23, 59);

afterEach(() => setClock(null));

type Usage = {
  readonly data: readonly (Record<string, unknown> & { readonly cost_micro: number })[];
  readonly total: { readonly requests: number; readonly cost_micro: number };
};

async function usage(key: string, query: string): Promise<Usage> {
  const response = await send(`/v1/usage?${query}`, { key });
  expect(response.status).toBe(200);
  return response.json<Usage>();
}

it("GET /v1/usage with groups, hours and filters returns the sums of receipts, even across midnight", async () => {
  const account = await openAccount();
  const second = await addKey(account.orgId, account.memberId);
  const costs: [string, string, number][] = [];
  for (const [at, key, user] of [
    [LATE, account.key, "ann"],
    [LATE, account.key, "bob"],
    [LATE + 120_000, second.key, "ann"],
  ] as const) {
    setClock(at);
    const response = await chat(key, { user });
    costs.push([key, user, Number(response.headers.get("x-cost-micro"))]);
  }
  const sum = (test: (key: string, user: string) => boolean): number =>
    costs.reduce((all, [key, user, cost]) => all + (test(key, user) ? cost : 0), 0);
  const days = "from=2036-11-20&to=2036-11-21";

  const hours = await usage(account.key, `${days}&group_by=hour`);
  expect(hours.data.map(({ hour, requests }) => [hour, requests])).toEqual([
    ["2036-11-20T23", 2],
    ["2036-11-21T00", 1],
  ]);
  expect(hours.total.cost_micro).toBe(sum(() => true));
  const both = await usage(account.key, `${days}&group_by=key,user`);
  expect(both.data).toHaveLength(3);
  expect(both.data).toContainEqual(
    expect.objectContaining({
      group: second.keyId,
      group2: "ann",
      cost_micro: sum((key) => key === second.key),
    }),
  );
  const anns = await usage(account.key, `${days}&group_by=day&external_id=ann`);
  expect(anns.total).toMatchObject({ requests: 2, cost_micro: sum((_, user) => user === "ann") });
  const one = await usage(account.key, "from=2036-11-21T00&to=2036-11-21T00&group_by=provider");
  expect(one.data).toMatchObject([{ group: "sandbox", requests: 1 }]);
  expect((await usage(account.key, `${days}&group_by=model&model=none`)).data).toEqual([]);
  const times = await usage(account.key, `${days}&group_by=model&with=latency`);
  expect(times.data).toMatchObject([{ first_byte_ms: { n: 3 } }]);
  expect((await usage(account.key, days)).total).toEqual(hours.total);
});

it("GET /v1/usage filtered by a member includes all keys of the member, but no other keys", async () => {
  const owner = await openAccount();
  const ben = await addMember(owner.orgId, "member");
  const second = await addKey(owner.orgId, ben.memberId);
  for (const key of [owner.key, ben.key, second.key, second.key]) await chat(key, { user: "ann" });
  const rows = await usage(owner.key, "group_by=member&with=latency");
  expect(rows.data).toHaveLength(2);
  expect(rows.data).toContainEqual(
    expect.objectContaining({ group: ben.memberId, requests: 3, first_byte_ms: expect.anything() }),
  );
  const both = await usage(owner.key, `group_by=model,member&member_id=${ben.memberId}`);
  expect(both.data).toMatchObject([{ group: "sandbox/echo", group2: ben.memberId, requests: 3 }]);
  const one = `group_by=key&member_id=${ben.memberId}&key_id=${second.keyId},${owner.keyId}`;
  expect((await usage(owner.key, one)).data).toMatchObject([{ group: second.keyId, requests: 2 }]);
  const none = await usage(owner.key, "group_by=day&member_id=nobody");
  expect(none.total.requests).toBe(0);
});
