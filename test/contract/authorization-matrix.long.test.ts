import { beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { OPERATOR_ROUTES } from "../../src/operator/endpoints.ts";
import { OPERATOR_ROLES } from "../../src/shared/config/config-people.ts";
import { KEY_ROUTES } from "../../src/routes.ts";
import { MEMBER_ROLES } from "../../src/shared/caller.ts";
import {
  ALL_ROWS,
  allowHolds,
  sendCall,
  namesTarget,
  ownId,
  unknownId,
  verdict,
  withKey,
} from "./authorization-table.ts";
import type { Row } from "./authorization-table.ts";
import {
  addKey,
  addMember,
  admin,
  ADMIN_TOKEN,
  bindingsWith,
  openAccount,
  send,
} from "./client.ts";
import type { Account, Role } from "./client.ts";
import { createSession } from "./session-client.ts";
import type { FakeStripe } from "../fakes/stripe/fake.ts";
import { installStripe, useStripe } from "../payments/fake-stripe.ts";

const byName = (rows: readonly Row[]): readonly (readonly [string, Row])[] =>
  rows.map((row) => [`${row[0]} ${row[1]}`, row]);

/** An organization with a member of each role. */
type Team = Readonly<Record<Role, Account>>;
let teams: { readonly own: Team; readonly other: Team };
/** The credentials that no path below /v1 accepts. */
let invalid: Readonly<Record<string, string | undefined>>;
let stripe: FakeStripe;

async function team(keyScope: "regional" | "global"): Promise<Team> {
  const owner = await openAccount({ keyScope });
  const join = (role: Role): Promise<Account> => addMember(owner.orgId, role);
  const accounts = {
    owner,
    admin: await join("admin"),
    billing: await join("billing"),
    member: await join("member"),
  };
  for (const account of Object.values(accounts)) await allowHolds(account);
  return accounts;
}

beforeAll(async () => {
  teams = { own: await team("regional"), other: await team("global") };
  stripe = useStripe();
  const headers = { "idempotency-key": "first" };
  for (const { owner } of Object.values(teams)) {
    const body = { amount_dollars: 10, method: "checkout" };
    await send("/v1/credits/purchases", { key: owner.key, body, headers });
    await send("/v1/users", { key: owner.key, body: { external_id: "there already" } });
  }
  const { owner } = teams.own;
  const revoked = await addKey(owner.orgId, owner.memberId);
  const ended = await createSession(owner.key);
  await admin("DELETE", `/orgs/${owner.orgId}/keys/${revoked.keyId}`);
  await send(`/v1/sessions/${ended.id}`, { key: owner.key, method: "DELETE" });
  const forged = `${owner.key.slice(0, -1)}${owner.key.endsWith("a") ? "b" : "a"}`;
  invalid = {
    "a revoked key": revoked.key,
    "an ended session": ended.token,
    "a forged key": forged,
    "an operator's token": ADMIN_TOKEN,
    nothing: undefined,
  };
  vi.restoreAllMocks();
});
beforeEach(() => installStripe(stripe));

const isManaged = ([method, route]: Row): boolean =>
  KEY_ROUTES.some(
    ({ method: verb, path, reach }) => verb === method && path === route && reach === "managed",
  );

describe("each /v1 route", () => {
  it.each(byName(ALL_ROWS))(
    "accepts only keys and sessions of allowed roles: %s",
    async (_, row) => {
      const [, , may, status] = row;
      for (const name of ["own", "other"] as const) {
        for (const role of MEMBER_ROLES) {
          const account = teams[name][role];
          const expected = may.includes(role) ? [status, null] : [403, "role_required"];
          const rowWithKey = await withKey(row, account);
          const byKey = await verdict(
            await sendCall(rowWithKey, account.key, await ownId(row, account)),
          );
          expect([name, role, "key", ...byKey]).toEqual([name, role, "key", ...expected]);
          const { token } = await createSession(account.key, { may_hold: true });
          const bySession = await verdict(
            await sendCall(rowWithKey, token, await ownId(row, account)),
          );
          const isLimited = bySession[0] === 403 && bySession[1] === "key_is_limited";
          expect([role, isLimited || !isManaged(row), bySession[0]]).toEqual([
            role,
            true,
            expect.not.toBeOneOf([401]),
          ]);
        }
      }
    },
  );

  it.each(byName(ALL_ROWS.filter(namesTarget)))(
    "treats another organization's resource like a missing resource: %s",
    async (_, row) => {
      for (const role of MEMBER_ROLES) {
        const [caller, owner] = [teams.other[role], teams.own.owner];
        const { token } = await createSession(caller.key, { may_hold: true });
        for (const key of [caller.key, token]) {
          const theirs = await verdict(await sendCall(row, key, await ownId(row, owner)));
          expect([role, ...theirs]).toEqual([
            role,
            ...(await verdict(await sendCall(row, key, unknownId(row)))),
          ]);
          expect([403, 404]).toContain(theirs[0]);
        }
      }
    },
  );

  it.each(byName(ALL_ROWS))("rejects every invalid credential with 401: %s", async (_, row) => {
    const id = await ownId(row, teams.own.owner);
    for (const [name, key] of Object.entries(invalid)) {
      expect([name, (await sendCall(row, key, id)).status]).toEqual([name, 401]);
    }
  });
});

const tokenOf = (role: string): string => role.padEnd(32, "x");

describe("each operator route", () => {
  const bindings = bindingsWith({
    ADMIN_TOKENS: OPERATOR_ROLES.map((role) => `${role}/${role}:${tokenOf(role)}`).join(","),
  });

  it.each(OPERATOR_ROUTES.map((one) => [`${one.method} ${one.path}`, one] as const))(
    "accepts only operators with a listed role, and no customer's credential: %s",
    async (_, { method, path, roles }) => {
      // The IDs are unknown, so the calls change nothing.
      const named = path.replaceAll(/:\w+/g, () => crypto.randomUUID());
      const body = method === "POST" || method === "PATCH" ? { body: {} } : {};
      for (const role of OPERATOR_ROLES) {
        const answer = await send(named, { method, key: tokenOf(role), bindings, ...body });
        const isRefused = (await verdict(answer))[1] === "role_required";
        expect([role, isRefused]).toEqual([role, !roles.includes(role)]);
      }
      const { token } = await createSession(teams.own.owner.key);
      const customers = MEMBER_ROLES.map((role) => teams.own[role].key);
      for (const key of [...customers, token, invalid["a revoked key"], undefined]) {
        expect((await send(named, { method, key, bindings, ...body })).status).toBe(401);
      }
    },
  );
});
