import { env } from "cloudflare:workers";
import { beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import type { PeerMessage, SignedMessage } from "../fixtures/peer-message.ts";
import { ADMIN_TOKEN, send } from "./client.ts";
import { countedBindings } from "./counted-bindings.ts";
import {
  deliverMessage,
  LOOKUP,
  lookupOf,
  openKnown,
  peerVerdict,
  sendAsPeer,
  comparableResponse,
  signAsPeer,
} from "./peer-client.ts";
import type { KnownAccount } from "./peer-client.ts";
import { newId, valueOf } from "../wallet/wallet-fixture.ts";

const OPERATIONS = ["authorize", "lookup", "outcomes", "revocations", "forward"];

let account: KnownAccount;
let log: string[] = [];
beforeAll(async () => {
  account = await openKnown();
});
beforeEach(() => {
  log = [];
  for (const method of ["log", "warn", "error"] as const) {
    vi.spyOn(console, method).mockImplementation((line: string) => void log.push(line));
  }
});

/** Returns a lookup of the account's key, signed by the US together with the changes. */
function lookup(change: Partial<PeerMessage> & { readonly path?: string } = {}) {
  return signAsPeer({ body: lookupOf(account.hash), ...change });
}

async function verdictOf(message: SignedMessage, bindings?: Env): Promise<unknown> {
  return peerVerdict(await deliverMessage(message, bindings), account);
}

describe("/internal/v1", () => {
  it.each([...OPERATIONS, "", "nothing"])(
    "returns the 404 of an unknown path for the unsigned operation '%s'",
    async (name) => {
      const path = `/internal/v1/${name}`;
      const body = { v: 1, key_hash: account.hash };
      const shown = path.replace(/\/$/, "");
      for (const key of [undefined, account.key, ADMIN_TOKEN]) {
        expect(await peerVerdict(await send(path, { key, body }), account, shown)).toBe("unknown");
      }
    },
  );

  it("rejects an unsigned request before reading the body or calling an object or the database", async () => {
    const counted = countedBindings();
    let pulled = 0;
    const body = new ReadableStream({ pull: () => void (pulled += 1) }, { highWaterMark: 0 });
    const response = await send(LOOKUP, { body, bindings: counted.bindings });
    expect(await peerVerdict(response, account)).toBe("unknown");
    expect({ ...counted, pulled }).toMatchObject({ objects: 0, statements: 0, pulled: 0 });
  });

  it.each(["nothing", "lookup/x", "constructor", "__proto__"])(
    "returns 404 to another region for the unknown operation %s",
    async (name) => {
      const path = `/internal/v1/${name}`;
      const response = await deliverMessage(await lookup({ path }));
      expect(await peerVerdict(response, account, path)).toBe("unknown");
    },
  );

  it.each(["GET", "PUT", "DELETE"])(
    "returns 404 to another region for the method %s",
    async (method) => {
      const body = method === "GET" ? "" : lookupOf(account.hash);
      const answers = [LOOKUP, "/internal/v1/nowhere"].map(async (path) =>
        comparableResponse(await deliverMessage(await lookup({ path, method, body })), path),
      );
      const [one, other] = await Promise.all(answers);
      expect(one).toMatchObject({ status: 404 });
      expect(one).toEqual(other);
    },
  );

  it.each([
    "",
    "{",
    "[]",
    "null",
    '{"v":2}',
    '{"v":"1"}',
    "{}",
    '{"v":1,"v":1}',
    '\ufeff{"v":1}',
    `{"v":1,"deep":${"[".repeat(100)}${"]".repeat(100)}}`,
  ])("rejects a signed body that is not a valid message: %s", async (body) => {
    expect(await verdictOf(await lookup({ body }))).toBe("unknown");
  });

  it("logs why a request was rejected, without secret, signature or body", async () => {
    const message = await lookup({ signedAt: Date.now() - 60_000 });
    expect(await verdictOf(message)).toBe("unknown");
    expect(log.filter((line) => line.includes('"peer_refused"'))).toEqual([
      expect.stringContaining('"reason":"signed too long ago"'),
    ]);
    const signature = (message.headers["signature"] ?? "").slice(10, 40);
    for (const canary of [env.PEER_IN_US, env.PEER_OUT_US, signature, account.hash]) {
      expect(log.join("\n")).not.toContain(canary);
    }
  });
});

describe("a key hash in a message from another region", () => {
  const CALL = { method: "GET", path: "/v1/balance", query: "", headers: {}, body: null };

  it.each(["", "ab", "A".repeat(64), "0".repeat(63), "0".repeat(65), "x".repeat(200), 7])(
    "causes an error, but no object call, if the hash is invalid: %j",
    async (hash) => {
      const counted = countedBindings();
      const answers = await Promise.all([
        sendAsPeer("authorize", { key_hash: hash, hold: null }, counted.bindings),
        sendAsPeer("forward", { ...CALL, caller_key_hash: hash }, counted.bindings),
      ]);
      const refused = { status: 200, body: { ok: false, failure: { kind: "internal" } } };
      expect(answers).toEqual([refused, refused]);
      expect(counted).toMatchObject({ objects: 0, statements: 0 });
    },
  );

  it("identifies the key if the hash is valid", async () => {
    const { hash } = account;
    expect(await sendAsPeer("authorize", { key_hash: hash, hold: null })).toMatchObject({
      body: { ok: true },
    });
    expect(await sendAsPeer("forward", { ...CALL, caller_key_hash: hash })).toMatchObject({
      body: { ok: true, status: 200 },
    });
  });

  it("creates no hold if the key was revoked after the lookup", async () => {
    const known = await openKnown();
    const wallet = env.WALLET.getByName(known.orgId);
    valueOf(await wallet.revokeKey(known.hash, 1));
    expect(await sendAsPeer("authorize", { key_hash: known.hash, hold: holdRequest() })).toEqual({
      status: 200,
      body: { ok: false, failure: { kind: "invalid_api_key", isForGood: true } },
    });
    expect(valueOf(await wallet.balance())).toMatchObject({ openHolds: 0 });
  });

  it("needs only a wallet call for a recently used key, and a single lookup once the key is revoked", async () => {
    const known = await openKnown();
    const wallet = env.WALLET.getByName(known.orgId);
    const counted = countedBindings();
    const authorize = async (): Promise<readonly [unknown, number]> => {
      const { objects } = counted;
      const request = { key_hash: known.hash, hold: holdRequest() };
      const { body } = await sendAsPeer("authorize", request, counted.bindings);
      return [body, counted.objects - objects];
    };
    const granted = { ok: true, granted: 20 };
    expect(await authorize()).toEqual([granted, 2]);
    expect(await authorize()).toEqual([granted, 1]);
    valueOf(await wallet.revokeKey(known.hash, 1));
    expect(await authorize()).toMatchObject([{ failure: { kind: "invalid_api_key" } }, 1]);
    // Later requests of the key use the cache.
    expect(await authorize()).toMatchObject([{ ok: false }, 0]);
  });
});

function holdRequest(): object {
  return {
    id: newId(),
    least: 10,
    sure: 10,
    most: 20,
    has_cap: true,
    tokens: { prompt: 1, least: 2, most: 2 },
    model: null,
    user: null,
    idempotency: null,
  };
}
