import { beforeAll, describe, expect, it, vi } from "vitest";
import {
  ADMIN_TOKEN,
  bindingsWith,
  chat,
  embed,
  newOrganization,
  openAccount,
  send,
} from "../contract/client.ts";
import { deliverMessage, lookupOf, openKnown, signAsPeer } from "../contract/peer-client.ts";
import { mockUpstream, upstreamBindings } from "../contract/upstream.ts";

let key: string;
beforeAll(async () => {
  ({ key } = await openAccount());
});

const POLICY = "default-src 'none'; frame-ancestors 'none'";
const HEADERS = {
  "content-security-policy": POLICY,
  "strict-transport-security": "max-age=31536000",
};
const browsersOf = ({ headers }: Response): Record<string, string | null> =>
  Object.fromEntries(Object.keys(HEADERS).map((name) => [name, headers.get(name)]));
const NONE = Object.fromEntries(Object.keys(HEADERS).map((name) => [name, null]));

type SendRequest = () => Promise<Response>;
const ORIGIN = { origin: "https://page.test", "access-control-request-method": "POST" };

/** Responses to pages, links and frames, which send no key. */
const KEYLESS: Readonly<Record<string, readonly [status: number, request: SendRequest]>> = {
  "healthz: 200": [200, () => send("/healthz")],
  "an unknown path: 404": [404, () => send("/")],
  "another method: 405": [405, () => send("/healthz", { method: "POST" })],
  "a malformed path: 400": [400, () => send("/v1/models/%zz")],
  "no key: 401": [401, () => send("/v1/models")],
  "a forged key, with a body: 401": [401, () => chat("svc_sk_eu_live_forged")],
  "a preflight: 204": [204, () => send("/v1/keys", { method: "OPTIONS", headers: ORIGIN })],
  "an operators' endpoint: 401": [401, () => send("/admin/v1/orgs")],
  "an operator's answer: 200": [200, () => send("/admin/v1/health", { key: ADMIN_TOKEN })],
  "an operator's new organization: 201": [
    201,
    () => send("/admin/v1/orgs", { key: ADMIN_TOKEN, body: newOrganization() }),
  ],
  "an internal endpoint: 404": [404, () => send("/internal/v1/lookup", { body: { v: 1 } })],
  "a misconfigured region: 503": [
    503,
    () => send("/v1/models", { key, bindings: bindingsWith({ ADMIN_TOKEN: "" }) }),
  ],
  "a bug before authentication: 500": [
    500,
    () => {
      vi.spyOn(console, "log").mockReturnValue();
      vi.spyOn(crypto.subtle, "sign").mockImplementationOnce(() => {
        throw new TypeError("a bug");
      });
      const never = key.slice(0, -1) + (key.endsWith("a") ? "b" : "a"); // verified keys are cached
      return send("/v1/models", { key: never });
    },
  ],
};

describe("a response to a request without a key", () => {
  it.each(Object.entries(KEYLESS))(
    "forbids scripts and frames, and requires HTTPS: %s",
    async (_, [status, request]) => {
      const response = await request();
      expect(response.status).toBe(status);
      expect(browsersOf(response)).toEqual(HEADERS);
      expect(response.headers.get("x-content-type-options")).toBe("nosniff");
      expect(response.headers.get("cache-control")).toBe("no-store");
      await response.text();
    },
  );
});

/** Responses that a browser can't show by itself, because they require a key. */
const KEYED: Readonly<Record<string, readonly [status: number, request: SendRequest]>> = {
  "a list: 200": [200, () => send("/v1/models", { key })],
  "a completion: 200": [200, () => chat(key)],
  "a stream: 200": [200, () => chat(key, { stream: true })],
  "embeddings: 200": [200, () => embed(key)],
  "an invalid field: 400": [400, () => chat(key, { temperature: 9 })],
  "an unknown path: 404": [404, () => send("/v1/none", { key })],
  "a failed provider: 502": [502, () => chat(key, { model: "sandbox/status-500" })],
  "a provider's own headers: 502": [
    502,
    () => {
      const headers = { "content-security-policy": "theirs" };
      mockUpstream(() => new Response("{}", { headers }));
      return chat(key, { model: "mock/chat" }, { bindings: upstreamBindings() });
    },
  ],
};

describe("a response to a request with a key or from another region", () => {
  it.each(Object.entries(KEYED))(
    "contains no security headers for browsers: %s",
    async (_, [status, request]) => {
      const response = await request();
      expect(response.status).toBe(status);
      expect(browsersOf(response)).toEqual(NONE);
      expect(response.headers.get("x-content-type-options")).toBe("nosniff");
      await response.text();
    },
  );

  it("contains no security headers for browsers after a lookup between regions", async () => {
    const { hash } = await openKnown();
    const response = await deliverMessage(await signAsPeer({ body: lookupOf(hash) }));
    expect(response.status).toBe(200);
    expect(browsersOf(response)).toEqual(NONE);
    await response.text();
  });
});
