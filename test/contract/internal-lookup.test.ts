import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import { bindingsWith, errorOf, send } from "./client.ts";
import { deliverMessage, lookupOf, openKnown, peerVerdict, signAsPeer } from "./peer-client.ts";
import type { KnownAccount } from "./peer-client.ts";

const MIB = 1024 * 1024;

let account: KnownAccount;
let body: string;
beforeAll(async () => {
  account = await openKnown();
  body = lookupOf(account.hash);
});

/** Returns the data of a key that a peer gets. */
async function keyDataOf(hash: string): Promise<unknown> {
  const response = await deliverMessage(await signAsPeer({ body: lookupOf(hash) }));
  expect(response.status).toBe(200);
  return response.json();
}

const INVALID = { ok: false, failure: { kind: "invalid_api_key" } };

/** Returns a lookup with this number of bytes. */
function padded(bytes: number): string {
  const pad = "x".repeat(bytes - lookupOf(account.hash, { pad: "" }).length);
  return lookupOf(account.hash, { pad });
}

describe("POST /internal/v1/lookup", () => {
  it("returns an active global key without counting a request", async () => {
    const messages = await Promise.all([1, 2, 3].map(() => signAsPeer({ body })));
    const answers = await Promise.all(messages.map((message) => deliverMessage(message)));
    for (const answer of answers) {
      expect(await peerVerdict(answer, account)).toBe("found");
    }
    const { headers } = await send("/v1/models", { key: account.key });
    expect(headers.get("x-ratelimit-remaining-requests")).toBe("999");
  });

  it("returns invalid_api_key for unknown, regional and revoked keys", async () => {
    const revoked = await openKnown();
    expect(await keyDataOf(revoked.hash)).toMatchObject({ ok: true, key_id: revoked.keyId });
    await env.KEY_REGISTER.getByName(revoked.hash).revoke(1);
    expect(await keyDataOf(revoked.hash)).toMatchObject(INVALID);
    expect(await keyDataOf((await openKnown({ keyScope: "regional" })).hash)).toEqual(INVALID);
    expect(await keyDataOf("0".repeat(64))).toEqual(INVALID);
  });

  it("ignores unknown fields that a later version may send", async () => {
    const message = await signAsPeer({ body: lookupOf(account.hash, { later: { than: "this" } }) });
    expect(await peerVerdict(await deliverMessage(message), account)).toBe("found");
  });

  it("accepts a body of 1 MiB, but rejects one more byte", async () => {
    const [whole, over] = [
      await signAsPeer({ body: padded(MIB) }),
      await signAsPeer({ body: padded(MIB + 1) }),
    ];
    expect(await peerVerdict(await deliverMessage(whole), account)).toBe("found");
    expect(await peerVerdict(await deliverMessage(over), account)).toBe("unknown");
  });
});

describe("a rejected POST /internal/v1/lookup", () => {
  it.each([[{}], [{ key_hash: "x" }], [{ key_hash: 1 }], [{ key_hash: "A".repeat(64) }]])(
    "returns 400 with the param for the key_hash %j",
    async (fields) => {
      const message = await signAsPeer({ body: JSON.stringify({ v: 1, ...fields }) });
      const error = await errorOf(await deliverMessage(message), 400);
      expect(error).toMatchObject({ type: "invalid_request_error", param: "key_hash" });
    },
  );
});

describe("a failed POST /internal/v1/lookup", () => {
  it("returns 503 instead of invalid_api_key if the key's object does not respond", async () => {
    const broken = { getByName: () => ({ identify: () => Promise.reject(new Error("lost")) }) };
    const response = await deliverMessage(
      await signAsPeer({ body }),
      bindingsWith({ KEY_REGISTER: broken }),
    );
    expect(await errorOf(response, 503)).toMatchObject({ code: "storage_unavailable" });
  });
});
