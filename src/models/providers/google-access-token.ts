import { readBoundedText } from "../../shared/http/bounded-body.ts";
import { afterTimeout, withTimeout } from "../../shared/timers.ts";
import { fromBase64, toBase64Url } from "../core/base64.ts";
import { numberOf, parseObject, textOf } from "../core/json-value.ts";
import { objectReader } from "../core/shape.ts";
import type { ProviderFailure } from "../core/provider.ts";

type ServiceAccount = {
  readonly email: string;
  readonly privateKey: string;
  readonly project: string;
};

/** Google's token endpoint (RFC 7523; Google's OAuth 2.0 for servers). */
export const GOOGLE_TOKEN_URL = "https://oauth2.googleapis.com/token";
const GRANT_TYPE = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const SCOPE = "https://www.googleapis.com/auth/cloud-platform";
const ASSERTION_LIFETIME_S = 3600;
const EXPIRY_MARGIN_MS = 300_000;
const FETCH_TIMEOUT_MS = 10_000;
/** Maximum ms to wait for another request's token fetch, which stops if that request ends. */
const SHARED_FETCH_WAIT_MS = 3000;
const TOKEN_BYTES_MAX = 64 * 1024;

const readTokenResponse = objectReader({ access_token: textOf, expires_in: numberOf });
const readKeyFields = objectReader({
  client_email: textOf,
  private_key: textOf,
  project_id: textOf,
});

/** Parses a service account's JSON key. Returns the names of missing or invalid fields, if any. */
export function parseServiceAccount(json: string): ServiceAccount | readonly string[] {
  const raw = parseObject(json);
  if (raw === null) return ["a JSON object"];
  const { client_email: email, private_key: privateKey, project_id: project } = readKeyFields(raw);
  const missing = [
    ...(email === "" ? ["client_email"] : []),
    ...(privateKey === "" ? ["private_key"] : []),
    ...(/^[\w.:-]+$/.test(project) ? [] : ["project_id"]),
  ];
  return missing.length > 0 ? missing : { email, privateKey, project };
}

/** A private key in PEM format, with spaces instead of line breaks. */
const PEM = /^-----BEGIN PRIVATE KEY-----(.+)-----END PRIVATE KEY-----$/;
const LINE_ENDS = /\s|\\n/g;

type Token = { readonly text: string; readonly usableUntilMs: number };

/**
 * Access tokens of a service account, each used until 5 minutes before it expires. Token requests
 * contain no customer data, so every region can use Google's global address.
 */
export class GoogleAccessTokens {
  readonly #account: ServiceAccount;
  readonly #url: string;
  readonly #nowMs: () => number;
  #token: Token | null = null;
  #pendingFetch: Promise<Token | ProviderFailure> | null = null;

  constructor(account: ServiceAccount, url: string, nowMs: () => number) {
    this.#account = account;
    this.#url = url;
    this.#nowMs = nowMs;
  }

  /** The last token, even if expired. Error texts must not contain it. */
  get last(): string {
    return this.#token?.text ?? "";
  }

  async get(): Promise<string | ProviderFailure> {
    const cached = this.#token;
    if (cached !== null && this.#nowMs() < cached.usableUntilMs) return cached.text;
    const fetching = this.#pendingFetch;
    const result = await (fetching === null
      ? this.#startFetch()
      : this.#awaitSharedFetch(fetching));
    return "text" in result ? result.text : result;
  }

  invalidate(text: string): void {
    if (this.#token?.text === text) this.#token = { text, usableUntilMs: 0 };
  }

  async #awaitSharedFetch(
    pendingFetch: Promise<Token | ProviderFailure>,
  ): Promise<Token | ProviderFailure> {
    try {
      return await withTimeout(pendingFetch, SHARED_FETCH_WAIT_MS);
    } catch {
      if (this.#pendingFetch === pendingFetch) this.#pendingFetch = null;
      return this.#pendingFetch ?? this.#startFetch();
    }
  }

  #startFetch(): Promise<Token | ProviderFailure> {
    const pendingFetch = this.#fetchToken().then((result) => {
      if ("text" in result) this.#token = result;
      if (this.#pendingFetch === pendingFetch) this.#pendingFetch = null;
      return result;
    });
    this.#pendingFetch = pendingFetch;
    return pendingFetch;
  }

  async #fetchToken(): Promise<Token | ProviderFailure> {
    const askedMs = this.#nowMs();
    let assertion: string;
    try {
      assertion = await signAssertion(this.#account, Math.floor(askedMs / 1000));
    } catch {
      return { kind: "disabled", reason: "private_key" };
    }
    const timeout = new AbortController();
    const cancel = afterTimeout(FETCH_TIMEOUT_MS, () => {
      timeout.abort();
    });
    try {
      return await this.#postAssertion(assertion, askedMs, timeout.signal);
    } catch {
      return { kind: "retry", reason: "token", again: true };
    } finally {
      cancel();
    }
  }

  async #postAssertion(
    assertion: string,
    askedMs: number,
    signal: AbortSignal,
  ): Promise<Token | ProviderFailure> {
    const response = await fetch(this.#url, {
      method: "POST",
      redirect: "manual",
      headers: { "content-type": "application/x-www-form-urlencoded", "user-agent": "turnpike" },
      body: `grant_type=${encodeURIComponent(GRANT_TYPE)}&assertion=${assertion}`,
      signal,
    });
    const { status, ok } = response;
    const reported = parseObject(await readBoundedText(response, TOKEN_BYTES_MAX));
    if (!ok) {
      const isPermanent = status >= 400 && status < 500 && status !== 408 && status !== 429;
      return { kind: isPermanent ? "disabled" : "retry", reason: `token_${status}` };
    }
    const { access_token: text, expires_in: lifeS = 0 } = readTokenResponse(reported);
    if (!/^[\x21-\x7e]+$/.test(text)) return { kind: "retry", reason: "token_missing" };
    return { text, usableUntilMs: askedMs + lifeS * 1000 - EXPIRY_MARGIN_MS };
  }
}

async function signAssertion(account: ServiceAccount, nowS: number): Promise<string> {
  const algorithm = { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" };
  const line = account.privateKey.replaceAll(LINE_ENDS, " ").trim();
  const der = fromBase64((PEM.exec(line)?.[1] ?? "").replaceAll(" ", ""));
  const key = await crypto.subtle.importKey("pkcs8", der, algorithm, false, ["sign"]);
  const claims = { iss: account.email, scope: SCOPE, aud: GOOGLE_TOKEN_URL };
  const parts = [
    { alg: "RS256", typ: "JWT" },
    { ...claims, iat: nowS, exp: nowS + ASSERTION_LIFETIME_S },
  ];
  const text = parts
    .map((part) => toBase64Url(new TextEncoder().encode(JSON.stringify(part))))
    .join(".");
  const signature = await crypto.subtle.sign(algorithm, key, new TextEncoder().encode(text));
  return `${text}.${toBase64Url(new Uint8Array(signature))}`;
}
