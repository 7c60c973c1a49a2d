import { beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { OWN_KEY_PATHS, PLAYGROUND_PATHS } from "../../src/console/allowed-calls.ts";
import { PEOPLE_ROUTES } from "../../src/accounts/people/endpoints.ts";
import { OPERATOR_ROUTES } from "../../src/operator/endpoints.ts";
import { PROVIDER_PATHS } from "../../src/routes.ts";
import { MEMBER_ROLES } from "../../src/shared/caller.ts";
import { OPERATOR_ROLES } from "../../src/shared/config/config-people.ts";
import type { FakeStripe } from "../fakes/stripe/fake.ts";
import type { Browser } from "../people/people-client.ts";
import { installStripe, useStripe } from "../payments/fake-stripe.ts";
import { codeOf, inviteAndJoin, signUp, startIssuer } from "../people/people-client.ts";
import {
  ALL_ROWS,
  allowHolds,
  sendCall,
  callOf,
  namesTarget,
  ownId,
  unknownId,
} from "./authorization-table.ts";
import { verdict, withKey } from "./authorization-table.ts";
import type { Row } from "./authorization-table.ts";
import {
  ADMIN_TOKEN,
  addCredits,
  addKey,
  addMember,
  admin,
  bindingsWith,
  openAccount,
  send,
} from "./client.ts";
import type { Account, Role } from "./client.ts";
import { cookieOf, login, callFromPage, tryLogin } from "./console-client.ts";

const byName = (rows: readonly Row[]): readonly (readonly [string, Row])[] =>
  rows.map((row) => [`${row[0]} ${row[1]}`, row]);

/** A member with the cookie of a login by key or as a person. */
type Visitor = {
  readonly account: Account;
  readonly call: (row: Row, id: string) => Promise<Response>;
};
type Team = Readonly<Record<Role, Visitor>>;

let byKey: { readonly own: Team; readonly other: Team };
let byPerson: Team;
/** Calls that would end the person's own session, account or organization. */
const ENDS_SESSIONS =
  /^(?:DELETE .*people\/me|POST .*\/me\/(?:log-out|act|unlink)|DELETE .*\/organization)$/;
let ownersCookie: string;
let operatorsCookie: string;
let viewersCookie: string;
let browsers: Readonly<Record<Role, Browser>>;
let stripe: FakeStripe;
/** Cookies that no call accepts. */
let invalid: Readonly<Record<string, string | undefined>>;

const callAs = (cookie: string | undefined, row: Row, id: string): Promise<Response> => {
  const { path, sending } = callOf(row, id);
  return callFromPage(path, cookie, sending);
};

async function makeMerchant(): Promise<{ readonly name: string; readonly secret: string }> {
  const name = `m-${crypto.randomUUID().slice(0, 13)}`;
  return (await admin("POST", "/merchants", { name })).json();
}

async function teamOf(open: (role: Role) => Promise<Visitor>): Promise<Team> {
  const [owner, manager, billing, member] = [
    await open("owner"),
    await open("admin"),
    await open("billing"),
    await open("member"),
  ];
  return { owner, admin: manager, billing, member };
}

async function keyTeam(): Promise<Team> {
  const first = await openAccount();
  return teamOf(async (role) => {
    const account = role === "owner" ? first : await addMember(first.orgId, role);
    await allowHolds(account);
    const cookie = await login(account.key);
    return { account, call: (row, id) => callAs(cookie, row, id) };
  });
}

async function personTeam(): Promise<Team> {
  const issuer = startIssuer();
  const ann = await signUp(issuer);
  const orgId = ann.view.organization.id;
  await addCredits(orgId, 50_000_000);
  const people: Record<string, Browser> = {};
  const team = await teamOf(async (role) => {
    const { browser, view } =
      role === "owner" ? ann : await inviteAndJoin(issuer, ann.browser, role);
    people[role] = browser;
    const memberId = view.member.id;
    const account = { orgId, memberId, ...(await addKey(orgId, memberId)) };
    const call: Visitor["call"] = (row, id) => {
      const { path, sending } = callOf(row, id);
      return browser.ask(
        sending.method ?? "GET",
        `/console/api${path}`,
        sending.body,
        sending.headers,
      );
    };
    return { account, call };
  });
  browsers = people as Record<Role, Browser>;
  return team;
}

beforeAll(async () => {
  byPerson = await personTeam();
  vi.restoreAllMocks();
  byKey = { own: await keyTeam(), other: await keyTeam() };
  stripe = useStripe();
  const headers = { "idempotency-key": "first" };
  for (const { account } of [byKey.own.owner, byKey.other.owner, byPerson.owner]) {
    const body = { amount_dollars: 10, method: "checkout" };
    await send("/v1/credits/purchases", { key: account.key, body, headers });
    await send("/v1/users", { key: account.key, body: { external_id: "there already" } });
  }
  ownersCookie = await login(byKey.own.owner.account.key);
  operatorsCookie = await login(ADMIN_TOKEN);
  viewersCookie = await login(ADMIN_TOKEN);
  const viewed = { org: byKey.own.owner.account.orgId };
  await callFromPage("/as", viewersCookie, { method: "POST", body: viewed });
  const ended = await login(byKey.own.owner.account.key);
  await callFromPage("/logout", ended, { method: "POST", body: {} });
  invalid = {
    "an ended session": ended,
    "a forged cookie": `__Host-turnpike-eu=${"0".repeat(172)}`,
    "no cookie": undefined,
  };
  vi.restoreAllMocks();
});
beforeEach(() => installStripe(stripe));

const isHidden = ([method, route]: Row): boolean =>
  method === "POST" && PROVIDER_PATHS.has(route) && !PLAYGROUND_PATHS.has(route);

function expectedOf(row: Row, role: Role): readonly [number, string | null] {
  const [, , may, status] = row;
  if (isHidden(row)) return [404, "invalid_request_error"];
  return may.includes(role) ? [status, null] : [403, "role_required"];
}

/** Reports whether a call requires a key with `may_hold`, which a person's login lacks. */
const isHolding = ([method, route]: Row): boolean =>
  method === "POST" && /^\/v1\/(?:holds|charges)/.test(route);

describe("each /v1 route that the console calls", () => {
  it.each(byName(ALL_ROWS))("accepts only cookies of allowed roles: %s", async (_, row) => {
    for (const [kind, team] of [...Object.entries(byKey), ["person", byPerson] as const]) {
      for (const role of MEMBER_ROLES) {
        const { account, call } = team[role];
        const sent = await withKey(row, account);
        const found = await verdict(await call(sent, await ownId(row, account)));
        const isRefused = kind === "person" && isHolding(row);
        const refused = isRefused ? await verdict(await call(sent, unknownId(row))) : [];
        const expected = isRefused ? refused : expectedOf(row, role);
        expect([kind, role, ...found]).toEqual([kind, role, ...expected]);
        expect(isRefused && found[0] < 400).toBe(false);
      }
    }
  });
});

describe("a /v1 route called by the console with another organization's resource", () => {
  it.each(byName(ALL_ROWS.filter(namesTarget)))(
    "treats another organization's resource like a missing resource: %s",
    async (_, row) => {
      for (const caller of [...Object.values(byKey.other), ...Object.values(byPerson)]) {
        const id = await ownId(row, byKey.own.owner.account);
        const theirs = await verdict(await caller.call(row, id));
        expect(theirs).toEqual(await verdict(await caller.call(row, unknownId(row))));
        expect([403, 404]).toContain(theirs[0]);
      }
    },
  );
});

describe("each route of the console", () => {
  const others = [...OPERATOR_ROUTES, ...PEOPLE_ROUTES].map(({ method, path }): Row => [
    method,
    path.replace("/console/api", "").replaceAll(/:\w+/g, "unknown"),
    [],
    200,
  ]);
  it.each(byName([...ALL_ROWS, ...others]))(
    "rejects invalid cookies and requests from other sites: %s",
    async (_, row) => {
      const id = unknownId(row);
      const rejected = isHidden(row) ? 404 : 401;
      for (const [name, cookie] of Object.entries(invalid)) {
        expect([name, (await callAs(cookie, row, id)).status]).toEqual([name, rejected]);
      }
      const { path, sending } = callOf(row, id);
      const headers = {
        ...sending.headers,
        origin: "https://other.test",
        "sec-fetch-site": "cross-site",
      };
      expect((await callFromPage(path, ownersCookie, { ...sending, headers })).status).toBe(403);
    },
  );
});

const tokenOf = (role: string): string => role.padEnd(32, "x");

describe("each operator route that the console calls", () => {
  const bindings = bindingsWith({
    ADMIN_TOKENS: OPERATOR_ROLES.map((role) => `${role}/${role}:${tokenOf(role)}`).join(","),
  });
  const cookies = new Map<string, string>();
  beforeAll(async () => {
    for (const role of OPERATOR_ROLES) {
      const entered = await tryLogin(tokenOf(role), {}, bindings);
      cookies.set(role, cookieOf(entered));
    }
  });

  it.each(OPERATOR_ROUTES.map((one) => [`${one.method} ${one.path}`, one] as const))(
    "accepts only operators with a listed role, and no customer's cookie: %s",
    async (_, { method, path, roles }) => {
      const named = path.replaceAll(/:\w+/g, () => crypto.randomUUID());
      const body = method === "POST" || method === "PATCH" ? {} : undefined;
      for (const role of OPERATOR_ROLES) {
        const answer = await callFromPage(named, cookies.get(role), { method, bindings, body });
        const isRefused = (await verdict(answer))[1] === "role_required";
        expect([role, isRefused]).toEqual([role, !roles.includes(role)]);
      }
      for (const role of MEMBER_ROLES) {
        const row: Row =
          body === undefined ? [method, named, [], 200] : [method, named, [], 200, body];
        for (const team of [byKey.own, byPerson]) {
          expect(await verdict(await team[role].call(row, ""))).toEqual([403, "role_required"]);
        }
      }
    },
  );

  it.each(byName(ALL_ROWS))(
    "lets an operator in a customer's view read data but not change data: %s",
    async (_, row) => {
      const [method, route] = row;
      const { account } = byKey.own.owner;
      const id = await ownId(row, account);
      const outside = await verdict(await callAs(operatorsCookie, row, id));
      const inside = await verdict(await callAs(viewersCookie, row, id));
      // An operator who views an organization has no stored responses.
      const isKeys = OWN_KEY_PATHS.has(route);
      const isBarred = method !== "GET" || route.startsWith("/v1/responses/");
      const allowed = isBarred ? 403 : 200;
      const expected = isHidden(row) ? [404, 404] : [403, isKeys ? 401 : allowed];
      expect([outside[0], inside[0]]).toEqual(expected);
    },
  );
});

describe("each route for people who log in without a key", () => {
  it.each(PEOPLE_ROUTES.map((one) => [`${one.method} ${one.path}`, one] as const))(
    "accepts only people with a listed role: %s",
    async (_, { method, path, roles }) => {
      const named = path.replaceAll(/:\w+/g, () => crypto.randomUUID()).replace("/console/api", "");
      const row: Row = method === "GET" ? [method, named, [], 200] : [method, named, [], 200, {}];
      for (const role of MEMBER_ROLES) {
        const others = [byKey.own[role].call(row, ""), callAs(operatorsCookie, row, "")];
        for (const one of await Promise.all(others)) {
          expect(await verdict(one)).toEqual([403, "role_required"]);
        }
        const isAllowed = roles === null || roles.includes(role);
        if (isAllowed && ENDS_SESSIONS.test(`${method} ${path}`)) continue;
        const [status, code] = await codeOf(
          await browsers[role].ask(method, path.replaceAll(/:\w+/g, "unknown"), row[4]),
        );
        expect([role, status === 403 && code === "role_required"]).toEqual([role, !isAllowed]);
        expect(status).not.toBe(401);
      }
    },
  );
});

describe("a merchant's secret", () => {
  it.each(byName(ALL_ROWS))("gives access only to the merchant's own holds: %s", async (_, row) => {
    const { account } = byKey.own.owner;
    const [own, other] = [await makeMerchant(), await makeMerchant()];
    const body = { amount_dollars: 0.01, description: "a search", merchant: own.name };
    const placed = await send("/v1/holds", { key: account.key, body });
    const { id } = await placed.json<{ id: string }>();
    const isHolds = /\/holds\/:id(?:\/(?:capture|release))?$/.test(row[1]);
    const target = isHolds ? id : await ownId(row, account);
    expect((await sendCall(row, other.secret, target)).status).toBe(isHolds ? 404 : 401);
    expect((await sendCall(row, `${own.secret}x`, target)).status).toBe(401);
    expect((await sendCall(row, own.secret, target)).status).toBe(isHolds ? 200 : 401);
  });

  it.each(OPERATOR_ROUTES.map(({ method, path }) => [method, path] as const))(
    "gives no access to the operator API: %s %s",
    async (method, path) => {
      const named = path.replaceAll(/:\w+/g, () => crypto.randomUUID());
      expect((await send(named, { method, key: (await makeMerchant()).secret })).status).toBe(401);
    },
  );
});
