import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { ADMIN_TOKEN } from "../contract/client.ts";
import { Accounts, sendRequest, silenceLog } from "./send-request.ts";
import { findFaults, mustHold, runsOf, TIMEOUT_MS } from "./find-faults.ts";
import type { CheckResult } from "./find-faults.ts";
import { PIECES } from "./hostile.ts";
import { at, mutatedBytes, mutations } from "./mutate.ts";
import { paths, placed, queries, routes } from "./requests.ts";
import * as seeds from "./seeds.ts";

beforeAll(silenceLog);
afterAll(() => {
  vi.restoreAllMocks();
});

const BODIES = [
  ...seeds.CHATS,
  ...seeds.EMBEDDINGS,
  ...seeds.END_USERS,
  ...seeds.SETTINGS,
  ...seeds.KEYS,
];
const METHODS = ["PUT", "HEAD", "OPTIONS", "get", "post", "PROPFIND", "M-SEARCH", "TRACE", ""];
const method = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom("GET", "POST", "PATCH", "DELETE") },
  { weight: 1, arbitrary: fc.constantFrom(...METHODS) },
);
const VALUES: Readonly<Record<string, readonly string[]>> = {
  "content-type": [
    "application/json",
    "application/json; charset=utf-8",
    "text/plain",
    "application/json; charset=latin1",
    "APPLICATION/JSON",
    "application/json,",
    "multipart/form-data; boundary=x",
    "",
  ],
  "content-length": [
    "0",
    "1",
    "20971521",
    "1048577",
    "-1",
    "+3",
    "1e9",
    "99999999999999999999",
    "abc",
    "0x10",
    "1, 2",
  ],
  "content-encoding": ["identity", "gzip", "br", "IDENTITY", "", "gzip, identity"],
  "accept-encoding": ["gzip", "*;q=0", "br;q=2", ""],
  accept: ["text/html", "text/event-stream", "*/*"],
  "idempotency-key": ["one", "", " ", "x".repeat(255), "x".repeat(256), "a, b"],
  origin: ["https://app.test", "null", ""],
  "x-request-id": ["req_theirs", "req_000000000000000000000000"],
  "x-forwarded-host": ["evil.test"],
  "x-http-method-override": ["DELETE"],
  host: ["evil.test"],
  range: ["bytes=0-1"],
  expect: ["100-continue"],
  "access-control-request-headers": ["authorization", "x\u0001", "a\tb", ""],
  "access-control-request-method": ["POST"],
  signature: ["turnpike=:AAAA:", ""],
  "signature-input": ["turnpike=()", ""],
  "if-none-match": ["*"],
  cookie: ["a=b"],
};
/** The runtime complains of every other header value, and sends it in a way that no client does. */
// oxlint-disable-next-line no-control-regex -- control characters are ASCII
const isAscii = (text: string): boolean => /^[\0-\x7f]*$/.test(text);
const header = fc
  .constantFrom(...Object.keys(VALUES))
  .chain((name) =>
    fc.tuple(
      fc.constant(name),
      fc.oneof(
        { weight: 4, arbitrary: fc.constantFrom(...(VALUES[name] ?? [])) },
        { weight: 1, arbitrary: fc.constantFrom(...PIECES.filter(isAscii)) },
      ),
    ),
  );
/** Ways of sending a key or the operator's token. The first is correct. */
const AUTHORIZATIONS: readonly ((token: string) => string | null)[] = [
  (token) => `Bearer ${token}`,
  (token) => `Bearer ${token}`,
  (token) => `Bearer ${token}`,
  (token) => `bearer ${token}`,
  (token) => `BEARER ${token}`,
  () => null,
  () => "",
  () => "Bearer",
  (token) => `Bearer  ${token}`,
  (token) => `Bearer\t${token}`,
  (token) => `Bearer ${token},`,
  (token) => `Bearer ${token}, Bearer ${token}`,
  (token) => `Basic ${btoa(token)}`,
  (token) => token,
  (token) => `Bearer "${token}"`,
  (token) => `Bearer ${token}x`,
  (token) => `Bearer ${"x".repeat(1000)}${token}`,
  () => "Bearer rk-eu-0000",
];
/** Number of valid forms: the scheme in any case, followed by one space. */
const RIGHT = 5;

const request = fc.record({
  method,
  path: fc.oneof(routes, paths),
  query: fc.oneof({ weight: 2, arbitrary: fc.constant("") }, { weight: 1, arbitrary: queries }),
  headers: fc.array(header, { maxLength: 3 }),
  authorization: fc.oneof(fc.constant(0), fc.nat(AUTHORIZATIONS.length - 1)),
  body: fc.option(mutations(BODIES.length), { freq: 1 }),
});

type Input = typeof request extends fc.Arbitrary<infer T> ? T : never;

const accounts = new Accounts();

async function isAnswered(input: Input): Promise<CheckResult> {
  const { method: named, path, query, headers, authorization, body } = input;
  const account = await accounts.next();
  const token = path.startsWith("/admin") ? ADMIN_TOKEN : account.key;
  const credentials = at(AUTHORIZATIONS, authorization)(token);
  const places = {
    ORG: account.orgId,
    KEY: `key_${"0".repeat(24)}`,
    MEMBER: account.memberId,
    GENERATION: `req_${"0".repeat(24)}`,
  };
  const hasBody = body !== null && !/^(?:get|head)$/i.test(named);
  const answer = await sendRequest({
    method: named,
    path: placed(path, places) + (query === "" ? "" : `?${query}`),
    headers: [
      ...(hasBody ? [["content-type", "application/json"] as const] : []),
      ...headers,
      ...(credentials === null ? [] : [["authorization", credentials] as const]),
    ],
    body: hasBody ? mutatedBytes(BODIES, body) : undefined,
  });
  if (answer === null) return "refused";
  const known = answer.headers.get("openai-organization");
  mustHold(known === null || known === account.orgId, "another organization", known);
  mustHold(known === null || authorization < RIGHT, "taken for a key", credentials);
  mustHold(!answer.text.includes(account.key), "the response contains the key", answer.text);
  return answer.status < 300 ? "accepted" : "refused";
}

function shownInput(input: Input): string {
  const credentials = at(AUTHORIZATIONS, input.authorization)("KEY");
  return JSON.stringify({ ...input, authorization: credentials });
}

describe("a request with any method, path, query, headers and body", () => {
  it(
    `gets a documented response, never a 500, for ${runsOf("requests to the application")} generated inputs`,
    { timeout: TIMEOUT_MS },
    async () => {
      const checking = { inputs: request, show: shownInput, check: isAnswered };
      expect(await findFaults("requests to the application", checking)).toBe("");
    },
  );
});
