import { env } from "cloudflare:workers";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { send } from "../contract/client.ts";
import {
  deliverMessage,
  lookupOf,
  openKnown,
  peerVerdict,
  comparableResponse,
  signAsPeer,
} from "../contract/peer-client.ts";
import type { KnownAccount } from "../contract/peer-client.ts";
import { COVERED } from "../fixtures/peer-message.ts";
import type { PeerMessage, SignedMessage } from "../fixtures/peer-message.ts";
import { sendRequest, silenceLog } from "./send-request.ts";
import { findFaults, mustEqual, runsOf, TIMEOUT_MS } from "./find-faults.ts";
import type { CheckResult } from "./find-faults.ts";
import { PIECES } from "./hostile.ts";
import { at, mutatedText, mutations, describeValue } from "./mutate.ts";
import type { Mutation } from "./mutate.ts";
import * as seeds from "./seeds.ts";

let account: KnownAccount;
beforeAll(async () => {
  account = await openKnown();
  silenceLog();
});
afterAll(() => {
  vi.restoreAllMocks();
});

const ASCII = PIECES.filter((piece) => /^[!-~ ]*$/.test(piece) && piece.length < 600);
/** Changes after signing, of each text of the message at a position. */
const WAYS: readonly ((text: string, place: number, pick: number) => string)[] = [
  (text, place, pick) =>
    text.slice(0, place) + String.fromCharCode(33 + (pick % 94)) + text.slice(place + 1),
  (text, place) => text.slice(0, place) + text.slice(place + 1),
  (text, place, pick) => text.slice(0, place) + at(ASCII, pick) + text.slice(place),
  (text) => text.toUpperCase(),
  (text) => `${text}, ${text}`,
  (text) => `${text};`,
  (text, place) => text.slice(0, place),
  () => "",
  (text) => text.replaceAll(/\d+/g, (digits) => String(Number(digits) + 1)),
  (text) => text.replace("turnpike", "sig1"),
  (text) => text.replace(/:([^:]+)=:$/, ":$1:"),
];
const HEADERS = ["content-digest", "x-request-id", "signature-input", "signature"] as const;
const change = fc.record({
  where: fc.constantFrom("body", "path", "method", "other message's", ...HEADERS),
  way: fc.nat(WAYS.length - 1),
  place: fc.nat(260),
  pick: fc.nat(1000),
});
/** Faults of a message before it is signed. Most have none. */
const SIGNED: readonly Partial<PeerMessage>[] = [
  {},
  {},
  {},
  { secret: "x".repeat(32) },
  { sender: "eu" },
  { signedAt: Date.UTC(2020, 0) },
  { signedAt: Date.UTC(2100, 0) },
  { lifetimeS: 31 },
  { lifetimeS: -1 },
  { lifetimeS: 1e9 },
  { covered: COVERED.slice(1) },
  { covered: [] },
  { covered: [...COVERED].toReversed() },
  { algorithm: "hmac-sha512" },
  { algorithm: "none" },
  { keyId: "us:AAAAAAAAAAAA" },
  { keyId: "" },
  { requestId: "" },
  { requestId: "a b" },
];

function changed(message: SignedMessage, other: SignedMessage, one: Change): SignedMessage {
  const { where, way, place, pick } = one;
  const edited = (text: string): string => at(WAYS, way)(text, place % (text.length + 1), pick);
  if (where === "body") return { ...message, body: edited(message.body) };
  if (where === "method") return { ...message, method: at(METHODS, pick) };
  if (where === "path") return { ...message, url: message.url + at(ENDS, pick) };
  const name = where === "other message's" ? at(HEADERS, pick) : where;
  const text = message.headers[name] ?? "";
  const value = where === name ? edited(text) : (other.headers[name] ?? "");
  return { ...message, headers: { ...message.headers, [name]: value } };
}
const METHODS = ["PUT", "PATCH", "DELETE", "OPTIONS", "post"];
const ENDS = ["?", "?a=1", "/", "/x", "%20"];
const changedMessages = fc.record({
  sign: fc.nat(SIGNED.length - 1),
  changes: fc.array(change, { maxLength: 3 }),
});
type Changed = typeof changedMessages extends fc.Arbitrary<infer T> ? T : never;
type Change = typeof change extends fc.Arbitrary<infer T> ? T : never;

/** Reports whether two messages are equal for routing, headers and hashes. */
function isSame(one: SignedMessage, other: SignedMessage): boolean {
  return plain(one) === plain(other);
}

function plain({ url, method, headers, body }: SignedMessage): string {
  const { pathname, search } = new URL(url);
  const sent = HEADERS.map((name) => (headers[name] ?? "").trim());
  return JSON.stringify([pathname, search, method.toUpperCase(), sent, body]);
}

/**
 * Returns null if the response is, byte for byte, the 404 of the same path without a signature,
 * else the response.
 */
async function unlike(response: Response, { url, method }: SignedMessage): Promise<unknown> {
  const { pathname, search } = new URL(url);
  const answer = await comparableResponse(response, "");
  const unsigned = await comparableResponse(
    await send(pathname + search, { method, bindings: env }),
    "",
  );
  const isSameAnswer = JSON.stringify(answer) === JSON.stringify(unsigned);
  return isSameAnswer && answer["status"] === 404 ? null : answer;
}

/** Returns null for messages that `fetch` can't send. */
async function delivered(message: SignedMessage): Promise<Response | null> {
  try {
    return await deliverMessage(message, env);
  } catch (error) {
    if (error instanceof TypeError) return null;
    throw error;
  }
}

async function isTaken({ sign, changes }: Changed): Promise<CheckResult> {
  const wrong = at(SIGNED, sign);
  const good = await signAsPeer({ body: lookupOf(account.hash), ...wrong });
  const requestId = `req_${"1".repeat(24)}`;
  const other = await signAsPeer({ body: lookupOf("0".repeat(64)), requestId });
  const sent = changes.reduce((message, one) => changed(message, other, one), good);
  const response = await delivered(sent);
  if (response === null) return "refused";
  if (Object.keys(wrong).length === 0 && isSame(sent, good)) {
    mustEqual(await peerVerdict(response, account), "found", "it is not taken");
    return "accepted";
  }
  mustEqual(await unlike(response, sent), null, "it is taken, or answered in another way");
  return "refused";
}

describe("a changed or wrongly signed message between regions", () => {
  it(
    `gets the same 404 as an unknown path, for ${runsOf("signatures")} generated inputs`,
    { timeout: TIMEOUT_MS },
    async () => {
      const checking = { inputs: changedMessages, show: JSON.stringify, check: isTaken };
      expect(await findFaults("signatures", checking)).toBe("");
    },
  );
});

const MESSAGES = [
  { path: "authorize", good: seeds.AUTHORIZE },
  { path: "lookup", good: [{ v: 1, key_hash: "HASH" }] },
  { path: "outcomes", good: [{ v: 1, items: seeds.OUTCOMES }] },
  { path: "revocations", good: [{ v: 1, items: [{ key_hash: "f".repeat(64), revoked_at: 1 }] }] },
  { path: "forward", good: seeds.FORWARDS },
].flatMap(({ path, good }) => good.map((seed) => ({ path: `/internal/v1/${path}`, seed })));
const SEEDS = MESSAGES.map(({ seed }) => seed);

async function isAnswered([mutation, isKnown]: [Mutation, boolean]): Promise<CheckResult> {
  const { path } = at(MESSAGES, mutation.seed);
  const hash = isKnown ? account.hash : "0".repeat(64);
  const text = mutatedText(SEEDS, mutation).replaceAll(/HASH|(?:0123456789abcdef){4}/g, hash);
  const body = text.toWellFormed();
  const requestId = `req_${crypto.randomUUID().replaceAll("-", "").slice(0, 24)}`;
  const { method, headers } = await signAsPeer({ path, body, requestId });
  const answer = await sendRequest({ method, path, headers: Object.entries(headers), body });
  return answer?.status === 200 ? "accepted" : "refused";
}

describe("a correctly signed message between regions with any body", () => {
  it(
    `gets a 200 or a documented error, for ${runsOf("messages of a peer")} generated inputs`,
    { timeout: TIMEOUT_MS },
    async () => {
      const inputs = fc.tuple(mutations(SEEDS.length), fc.boolean());
      const show = ([one]: [Mutation, boolean]) => describeValue(SEEDS, one);
      const checking = { inputs, show, check: isAnswered };
      expect(await findFaults("messages of a peer", checking)).toBe("");
    },
  );
});
