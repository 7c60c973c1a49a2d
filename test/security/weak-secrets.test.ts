import { beforeEach, describe, expect, it, vi } from "vitest";
import { bindingsWith, errorOf, send } from "../contract/client.ts";

/** Returns a secret in the format of `openssl rand -hex 32`. */
const random = (): string =>
  Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("hex");

/** Returns the secrets of a deployment with a real provider, all random. */
const strong = (): Record<string, string> => ({
  SANDBOX: "off",
  KEY_SECRETS: `a:${random()},b:${random()}`,
  ADMIN_TOKEN: random(),
  PEER_OUT_US: random(),
  PEER_IN_US: random(),
  STRIPE_SECRET_KEY: "", // a test key is invalid for a deployment with a real provider
  STRIPE_WEBHOOK_SECRETS: "",
});

const health = (bindings: Readonly<Record<string, string>>): Promise<Response> =>
  send("/healthz", { bindings: bindingsWith(bindings) });

let log: string[] = [];
beforeEach(() => {
  log = [];
  vi.spyOn(console, "log").mockImplementation((line: string) => void log.push(line));
});

/** Long secrets that examples, tests and careless people use. */
const GUESSED = [
  "a".repeat(32),
  "0".repeat(64),
  "changeme".repeat(4),
  "secret".repeat(8),
  "test-token-".repeat(4),
  "admin".repeat(10),
  "12341234".repeat(5),
];

describe("a deployment with a real provider", () => {
  it.each(GUESSED)(
    "returns 503 if any secret is %s, without revealing the secret",
    async (secret) => {
      const places = [
        "ADMIN_TOKEN",
        "PEER_OUT_US",
        "PEER_IN_US",
        "PEER_OUT_US_NEXT",
        "KEY_SECRETS",
      ];
      for (const place of places) {
        log = [];
        const value = place === "KEY_SECRETS" ? `a:${random()},b:${secret}` : secret;
        await errorOf(await health({ ...strong(), [place]: value }), 503);
        expect(log.join("\n")).toContain(`"variable":"${place}"`);
        expect(log.join("\n")).not.toContain(secret);
      }
    },
  );

  it("accepts random secrets in any alphabet", async () => {
    expect((await health(strong())).status).toBe(200);
    for (let i = 0; i < 200; i++) expect((await health(strong())).status).toBe(200);
    const bytes = crypto.getRandomValues(new Uint8Array(32));
    const written = [
      bytes.toBase64(),
      bytes.toBase64({ alphabet: "base64url" }),
      crypto.randomUUID(),
    ];
    for (const secret of written) {
      expect((await health({ ...strong(), ADMIN_TOKEN: secret })).status).toBe(200);
    }
  });
});

describe("a deployment with only the sandbox", () => {
  it("accepts any secret of the required length", async () => {
    const weak = { ...strong(), SANDBOX: "on", ADMIN_TOKEN: "a".repeat(32) };
    expect((await health(weak)).status).toBe(200);
    await errorOf(await health({ ...weak, ADMIN_TOKEN: "a".repeat(31) }), 503);
  });
});
