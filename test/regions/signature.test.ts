import { describe, expect, it } from "vitest";
import type { PeerSecret } from "../../src/shared/config/config.ts";
import {
  contentDigestOf,
  signatureBase,
  createSignatureHeaders,
  verifySignature,
} from "../../src/regions/signature.ts";
import { COVERED, signMessage } from "../fixtures/peer-message.ts";
import type { PeerMessage, SignedMessage } from "../fixtures/peer-message.ts";

const NOW_MS = Date.UTC(2026, 10, 21, 12);

const URL_TEXT = "https://us.test/internal/v1/lookup?a=1&b=%2f";

const CURRENT: PeerSecret = { sender: "eu", secret: "c".repeat(32) };

const NEXT: PeerSecret = { sender: "eu", secret: "n".repeat(32) };

const BODY = new TextEncoder().encode('{"v":1}');

const REQUEST_ID = "req_0abcdefghijklmnopqrstuvw";

/** Returns the result of verifying a message at `atMs`, with the reason of a rejection. */
async function verdictOn(
  message: SignedMessage,
  { accepted = [CURRENT], atMs = NOW_MS }: { accepted?: PeerSecret[]; atMs?: number } = {},
): Promise<string> {
  const { url, method, headers } = message;
  const verdict = await verifySignature(
    { url, method, headers: new Headers(headers) },
    accepted,
    atMs,
  );
  return verdict.ok ? `from ${verdict.sender}` : verdict.reason;
}

async function signedByUs(secret = CURRENT, url = URL_TEXT): Promise<SignedMessage> {
  const contentDigest = await contentDigestOf(BODY);
  const parts = { method: "POST", url, contentDigest, requestId: REQUEST_ID };
  return {
    url,
    method: "POST",
    headers: await createSignatureHeaders(parts, secret, NOW_MS),
    body: "",
  };
}

function signedByThem(change: Partial<PeerMessage> = {}): Promise<SignedMessage> {
  return signMessage({
    url: URL_TEXT,
    ...CURRENT,
    signedAt: NOW_MS,
    body: '{"v":1}',
    requestId: REQUEST_ID,
    ...change,
  });
}

describe("the signature of a message between regions", () => {
  it("matches example B.2.5 of RFC 9421", async () => {
    const secret =
      "uzvJfB4u3N0Jy4T7NZ75MDVcr8zSTInedJtkgcu46YW4XByzNJjxBdtjUkdJPBtbmHhIDi6pcl8jsasjlTMtDQ==";
    const base = signatureBase(
      [
        ["date", "Tue, 20 Apr 2021 02:07:55 GMT"],
        ["@authority", "example.com"],
        ["content-type", "application/json"],
      ],
      '("date" "@authority" "content-type");created=1618884473;keyid="test-shared-secret"',
    );
    const algorithm = { name: "HMAC", hash: "SHA-256" };
    const raw = Uint8Array.fromBase64(secret);
    const key = await crypto.subtle.importKey("raw", raw, algorithm, false, ["sign"]);
    const signature = new Uint8Array(await crypto.subtle.sign("HMAC", key, base));
    expect(signature.toBase64()).toBe("pxcQw6G3AjtMBQjwo8XzkZf/bws5LelbaMk5rGIGtE8=");
  });

  it("covers one line per signed component and one line of parameters", async () => {
    const { headers } = await signedByUs();
    expect(headers["signature-input"]).toMatch(
      /^turnpike=\("@method" "@authority" "@path" "@query" "content-digest" "x-request-id"\);created=1795262400;expires=1795262430;keyid="eu:[\w-]{12}";alg="hmac-sha256"$/,
    );
    expect({ ...headers, "content-type": "application/json" }).toEqual(
      (await signedByThem()).headers,
    );
  });

  it("covers the RFC 9530 digest of the body's bytes", async () => {
    expect(await contentDigestOf(new TextEncoder().encode('{"hello": "world"}\n'))).toBe(
      "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:",
    );
  });

  it("contains a key ID that differs for each secret and reveals nothing about the secret", async () => {
    const [one, other] = [await signedByUs(CURRENT), await signedByUs(NEXT)];
    expect(one.headers["signature-input"]).not.toBe(other.headers["signature-input"]);
    const sums = [CURRENT, NEXT].map(({ secret }) =>
      contentDigestOf(new TextEncoder().encode(secret)),
    );
    const texts = [
      CURRENT.secret,
      NEXT.secret,
      ...(await Promise.all(sums)).map((sum) => sum.slice(9, 17)),
    ];
    for (const text of texts) expect(JSON.stringify([one, other])).not.toContain(text);
  });

  it.each([
    ["the scheme's default port", "https://us.test:443/internal/v1/lookup"],
    ["an uppercase host", "https://US.TEST/internal/v1/lookup"],
    ["an empty query", "https://us.test/internal/v1/lookup?"],
  ])("covers the URL unchanged if it contains %s", async (_name, url) => {
    const { headers } = await signedByUs(CURRENT, url);
    expect(headers).toEqual(
      (await signedByUs(CURRENT, "https://us.test/internal/v1/lookup")).headers,
    );
  });
});

describe("a signed message between regions", () => {
  it("can come from any signer that follows RFC 9421", async () => {
    expect(await verdictOn(await signedByUs())).toBe("from eu");
    expect(await verdictOn(await signedByThem())).toBe("from eu");
  });

  it("must contain each signature header exactly once", async () => {
    const message = await signedByThem();
    for (const name of ["signature", "signature-input", "content-digest", "x-request-id"]) {
      const { [name]: value = "", ...rest } = message.headers;
      expect(await verdictOn({ ...message, headers: rest })).not.toBe("from eu");
      const twice = { ...rest, [name]: `${value}, ${value}` };
      expect(await verdictOn({ ...message, headers: twice })).not.toBe("from eu");
    }
  });

  it("must have an HMAC-SHA-256 signature of exactly the listed parts, in order", async () => {
    const others: Partial<PeerMessage>[] = [
      ...COVERED.map((name) => ({ covered: COVERED.filter((one) => one !== name) })),
      { covered: [] },
      { covered: [...COVERED].toReversed() },
      { covered: [...COVERED, "x-request-id"] },
      { covered: [...COVERED, "content-type"] },
      { algorithm: "hmac-sha512" },
      { algorithm: "none" },
      { algorithm: "" },
    ];
    for (const change of others) {
      expect(await verdictOn(await signedByThem(change))).toBe("no signature of this shape");
    }
  });

  it.each([
    ["turnpike=::", "turnpike=::"],
    ["a shorter value", `turnpike=:${btoa("x".repeat(31))}:`],
    ["a longer value", `turnpike=:${btoa("x".repeat(33))}:`],
    ["64 bytes", `turnpike=:${btoa("x".repeat(64))}:`],
    ["not base64", `turnpike=:${"!".repeat(43)}=:`],
    ["base64url", `turnpike=:${"-_".repeat(21)}A=:`],
    ["missing padding", `turnpike=:${"A".repeat(43)}:`],
    ["a million characters", `turnpike=:${"A".repeat(1_000_000)}:`],
    ["a quoted string", `turnpike="${"A".repeat(43)}="`],
    ["doubled", `turnpike=:${"A".repeat(43)}=:, other=:${"A".repeat(43)}=:`],
    ["empty", ""],
  ])("fails verification without an exception if it is %s", async (_name, signature) => {
    const message = await signedByThem();
    const headers = { ...message.headers, signature };
    expect(await verdictOn({ ...message, headers })).toMatch(/shape|wrong signature/);
  });

  it.each([
    [-31_000, "signed in the future"],
    [-29_000, "from eu"],
    [0, "from eu"],
    [29_000, "from eu"],
    [31_000, "signed too long ago"],
  ])(
    "leads %i ms after the signature to the verification result '%s'",
    async (afterMs, verdict) => {
      expect(await verdictOn(await signedByThem(), { atMs: NOW_MS + afterMs })).toBe(verdict);
    },
  );

  it.each([
    [31, "wrong lifetime"],
    [3600, "wrong lifetime"],
    [-1, "wrong lifetime"],
    [10, "from eu"],
  ])(
    "leads with a lifetime of %i s to the verification result '%s'",
    async (lifetimeS, verdict) => {
      expect(await verdictOn(await signedByThem({ lifetimeS }))).toBe(verdict);
    },
  );

  it("expires 10 s after it was signed if the message declares 10 s", async () => {
    const message = await signedByThem({ lifetimeS: 10 });
    expect(await verdictOn(message, { atMs: NOW_MS + 9000 })).toBe("from eu");
    expect(await verdictOn(message, { atMs: NOW_MS + 11_000 })).toBe("signed too long ago");
  });
});

describe("a secret of the connection between regions", () => {
  it("works as the current or the next secret, but not after a removal", async () => {
    const [old, fresh] = [await signedByUs(CURRENT), await signedByUs(NEXT)];
    const verdicts = async (accepted: PeerSecret[]) =>
      Promise.all([old, fresh].map((message) => verdictOn(message, { accepted })));
    expect(await verdicts([CURRENT])).toEqual(["from eu", "unknown keyid"]);
    expect(await verdicts([CURRENT, NEXT])).toEqual(["from eu", "from eu"]);
    expect(await verdicts([NEXT])).toEqual(["unknown keyid", "from eu"]);
    expect(await verdicts([])).toEqual(["unknown keyid", "unknown keyid"]);
  });

  it("must match the key ID of the message, because the receiver tries no other secret", async () => {
    const byNext = await signedByThem({ secret: NEXT.secret });
    const nextId = /keyid="([^"]+)"/.exec(byNext.headers["signature-input"] ?? "")?.[1] ?? "";
    const accepted = [CURRENT, NEXT];
    expect(await verdictOn(await signedByThem({ keyId: nextId }), { accepted })).toBe(
      "wrong signature",
    );
    expect(await verdictOn(await signedByThem({ keyId: "eu:aaaaaaaaaaaa" }), { accepted })).toBe(
      "unknown keyid",
    );
    expect(await verdictOn(await signedByThem({ keyId: "" }), { accepted })).toBe(
      "no signature of this shape",
    );
  });

  it("works in one direction only, because the signature covers the sender", async () => {
    const reflected = { ...CURRENT, sender: "us" } as const;
    expect(await verdictOn(await signedByThem(), { accepted: [reflected] })).toBe("unknown keyid");
  });
});

const SECRET: PeerSecret = { sender: "eu", secret: "c".repeat(32) };

async function isTaken({ url, method, headers }: SignedMessage): Promise<boolean> {
  const request = { url, method, headers: new Headers(headers) };
  return (await verifySignature(request, [SECRET], NOW_MS)).ok;
}

it("a signed message is rejected with any changed, missing or doubled signed character", async () => {
  const message = await signMessage({
    url: "https://us.test/internal/v1/lookup?a=1&b=%2f",
    ...SECRET,
    signedAt: NOW_MS,
    body: '{"v":1}',
  });
  expect(await isTaken(message)).toBe(true);
  const { "content-type": type = "", ...covered } = message.headers;
  const changed: SignedMessage[] = [];
  for (const method of variants(message.method)) changed.push({ ...message, method });
  for (const url of urlVariants(message.url)) changed.push({ ...message, url });
  for (const [name, text] of Object.entries(covered)) {
    for (const other of variants(text)) {
      changed.push({ ...message, headers: { ...message.headers, [name]: other } });
    }
  }
  expect(changed.length).toBeGreaterThan(900);
  const taken = await Promise.all(changed.map(isTaken));
  expect(changed.filter((_one, i) => taken[i])).toEqual([]);
  // Unsigned parts may change, otherwise this test couldn't fail.
  expect(await isTaken({ ...message, headers: { ...covered, "content-type": `${type};x` } })).toBe(
    true,
  );
});

/** Returns every text that differs in one character: changed, removed or doubled. */
function variants(text: string): string[] {
  const others = text.split("").flatMap((character, at) => {
    const [before, after] = [text.slice(0, at), text.slice(at + 1)];
    return [flipped(character), "", character + character].map((other) => before + other + after);
  });
  return [...new Set(others)].filter((other) => other.trim() !== text);
}

/**
 * Returns the same changes of a URL after its scheme, which isn't signed. Fragments are never sent.
 */
function urlVariants(url: string): string[] {
  const start = "https://".length;
  const whole = new URL(url).href;
  return variants(url.slice(start))
    .map((rest) => url.slice(0, start) + rest)
    .filter((other) => URL.canParse(other) && new URL(other).href !== whole);
}

/**
 * Returns another character of the same class, so that its format alone doesn't reject it. A letter
 * gets the other case.
 */
function flipped(character: string): string {
  if (/[a-z]/.test(character)) return character.toUpperCase();
  if (/[A-Z]/.test(character)) return character.toLowerCase();
  if (/\d/.test(character)) return String((Number(character) + 1) % 10);
  return character === "+" ? "/" : "+";
}
