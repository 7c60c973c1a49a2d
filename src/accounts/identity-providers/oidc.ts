import * as oauth from "oauth4webapi";
import type { IssuerEntry } from "../../shared/config/config.ts";
import { elapsedMs } from "../../shared/clock.ts";
import { evictOldest } from "../../shared/evict-oldest.ts";
import {
  IssuerUnavailableError,
  LoginRejectedError,
  displayNameOf,
  parseSubject,
} from "./claims.ts";
import type { IdentityClaims } from "./claims.ts";
import type { LoginTicket } from "./ticket.ts";
import { readBoundedText } from "../../shared/http/bounded-body.ts";

const CACHED_ISSUERS_MAX = 200;
const METADATA_TTL_MS = 3_600_000;
/** Minimum ms between two reloads of an issuer's keys. */
const KEY_RELOAD_INTERVAL_MS = 10_000;
const CLOCK_SKEW_S = 60;
const RECENT_LOGIN_S = 600;

export type CachedIssuer = {
  readonly as: oauth.AuthorizationServer;
  readonly readAt: number;
  keys: oauth.JWKSCacheInput;
  keysReloadedAt: number;
};

/** The identity provider, credentials and redirect URL of a login. */
export type LoginContext = {
  readonly entry: IssuerEntry;
  readonly secret: string;
  readonly redirectUri: string;
  readonly nowMs: number;
  /** Whether the issuer may use plain HTTP, as the sandbox does. */
  readonly isInsecure: boolean;
  readonly problemOf?: (address: string) => string | null;
};

const GOOGLE = "https://accounts.google.com";
/** Requests the time of the last login (`auth_time`), because Google can't force a new login. */
const GOOGLE_CLAIMS = JSON.stringify({ id_token: { auth_time: { essential: true } } });

/** A cache that keeps each issuer's metadata for an hour. */
export class MetadataCache {
  readonly #issuers = new Map<string, CachedIssuer>();

  async read(
    name: string,
    nowMs: number,
    load: () => Promise<oauth.AuthorizationServer>,
  ): Promise<CachedIssuer> {
    const before = this.#issuers.get(name);
    if (before !== undefined && nowMs - before.readAt < METADATA_TTL_MS) return before;
    const as = await load();
    const known = { as, readAt: nowMs, keys: before?.keys ?? {}, keysReloadedAt: 0 };
    evictOldest(this.#issuers, CACHED_ISSUERS_MAX);
    this.#issuers.set(name, known);
    return known;
  }
}

export class OidcLogin {
  readonly #metadata = new MetadataCache();

  async location(at: LoginContext, ticket: LoginTicket): Promise<string> {
    const { as } = await this.known(at);
    return buildAuthorizationUrl(as, at, ticket);
  }

  async claims(at: LoginContext, ticket: LoginTicket, url: URL): Promise<IdentityClaims> {
    const token = await exchangeCode({ known: await this.known(at), at, ticket, url });
    return readClaims(token, at.entry.kind === "google");
  }

  async known(at: LoginContext): Promise<CachedIssuer> {
    const known = await this.#readCached(at);
    const { authorization_endpoint: page, token_endpoint: token, jwks_uri: keys } = known.as;
    const { problemOf = () => null } = at;
    const areEndpointsAllowed = [page, token, keys].every((one) => problemOf(one ?? "") === null);
    if (!areEndpointsAllowed) throw new IssuerUnavailableError();
    return known;
  }

  #readCached(at: LoginContext): Promise<CachedIssuer> {
    const issuer = at.entry.kind === "google" ? GOOGLE : (at.entry.issuer ?? "");
    return this.#metadata.read(issuer, at.nowMs, async () => {
      const expected = new URL(issuer);
      const options = { algorithm: "oidc", ...issuerHttpOptions(at) } as const;
      const response = await oauth.discoveryRequest(expected, options);
      const as = await oauth.processDiscoveryResponse(expected, response);
      if (as.issuer !== issuer) throw new IssuerUnavailableError();
      return as;
    });
  }
}

type OauthRequest = {
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body?: URLSearchParams | undefined;
};

export function issuerHttpOptions({ isInsecure }: LoginContext): {
  [oauth.customFetch]: (url: string, request: OauthRequest) => Promise<Response>;
  [oauth.allowInsecureRequests]: boolean;
} {
  return {
    [oauth.customFetch]: (url, { method, headers, body }) =>
      fetchFromIssuer(url, { method, headers, body: body ?? null }, body === undefined),
    [oauth.allowInsecureRequests]: isInsecure,
  };
}

export function createOauthClient({ entry, nowMs }: LoginContext): oauth.Client {
  return {
    client_id: entry.client_id,
    id_token_signed_response_alg: "RS256",
    [oauth.clockSkew]: Math.round((nowMs - elapsedMs()) / 1000),
  };
}

export async function buildAuthorizationUrl(
  as: oauth.AuthorizationServer,
  { entry, redirectUri }: LoginContext,
  { state, nonce, verifier, purpose }: LoginTicket,
): Promise<string> {
  if (as.authorization_endpoint === undefined) throw new IssuerUnavailableError();
  const known = as.scopes_supported;
  const scopes = ["openid", "email", "profile"].filter((one) => known?.includes(one) ?? true);
  const requiresRecentLogin = purpose === "step_up" && entry.reauth;
  const parameters: Record<string, string> = {
    response_type: "code",
    response_mode: "query",
    client_id: entry.client_id,
    redirect_uri: redirectUri,
    scope: scopes.join(" "),
    state,
    nonce,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: "S256",
    ...(entry.kind !== "oidc" && { prompt: "select_account" }),
    ...(requiresRecentLogin && { max_age: String(RECENT_LOGIN_S) }),
    ...(requiresRecentLogin && entry.kind === "entra" && { prompt: "login" }),
    ...(entry.kind === "google" && { claims: GOOGLE_CLAIMS }),
  };
  return addQuery(as.authorization_endpoint, parameters);
}

export function addQuery(address: string, parameters: Readonly<Record<string, string>>): string {
  const url = new URL(address);
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return url.href;
}

type CodeExchange = {
  readonly known: CachedIssuer;
  readonly at: LoginContext;
  readonly ticket: LoginTicket;
  readonly url: URL;
  readonly issuerOf?: (response: Response) => Promise<oauth.AuthorizationServer>;
};

/**
 * Exchanges the authorization code for the ID token's claims. Verifies state, `iss`, code, token
 * and signature.
 */
export async function exchangeCode({
  known,
  at,
  ticket,
  url,
  issuerOf,
}: CodeExchange): Promise<oauth.IDToken> {
  const { as } = known;
  const client = createOauthClient(at);
  // Entra's `iss` contains the tenant, so it is checked once the tenant is known.
  const params = oauth.validateAuthResponse(
    issuerOf === undefined ? as : { ...as, authorization_response_iss_parameter_supported: false },
    client,
    issuerOf === undefined ? url : withoutIssuer(url),
    ticket.state,
  );
  const response = await fetchLoginTokens(as, at, params, ticket.verifier);
  const tokenIssuer = issuerOf === undefined ? as : await issuerOf(response);
  const requiresRecentLogin = ticket.purpose === "step_up" && at.entry.reauth;
  const result = await oauth.processAuthorizationCodeResponse(tokenIssuer, client, response, {
    expectedNonce: ticket.nonce,
    requireIdToken: true,
    ...(requiresRecentLogin && { maxAge: RECENT_LOGIN_S }),
  });
  await verifySignature(known, tokenIssuer, response, at);
  const claims = oauth.getValidatedIdTokenClaims(result);
  if (claims === undefined) throw new LoginRejectedError("refused");
  validateTokenClaims(claims, at, ticket);
  return claims;
}

export function fetchLoginTokens(
  as: oauth.AuthorizationServer,
  at: LoginContext,
  params: URLSearchParams,
  verifier: string,
): Promise<Response> {
  const methods = as.token_endpoint_auth_methods_supported ?? ["client_secret_basic"];
  const sendsSecretInBody = methods.includes("client_secret_post") || at.entry.kind !== "oidc";
  const authentication = sendsSecretInBody ? oauth.ClientSecretPost : oauth.ClientSecretBasic;
  return oauth.authorizationCodeGrantRequest(
    as,
    createOauthClient(at),
    authentication(at.secret),
    params,
    at.redirectUri,
    verifier,
    issuerHttpOptions(at),
  );
}

/**
 * Verifies the ID token's signature. If the key is unknown, reloads the issuer's keys once. A copy
 * of `as` bypasses the library's own key cache.
 */
async function verifySignature(
  known: CachedIssuer,
  as: oauth.AuthorizationServer,
  response: Response,
  at: LoginContext,
): Promise<void> {
  const verify = (): Promise<void> =>
    oauth.validateApplicationLevelSignature({ ...as }, response, {
      ...issuerHttpOptions(at),
      [oauth.jwksCache]: known.keys,
    });
  const { keys } = known;
  try {
    await verify();
  } catch (error) {
    if (!(error instanceof oauth.OperationProcessingError)) throw error;
    if (known.keys === keys) {
      if (at.nowMs - known.keysReloadedAt < KEY_RELOAD_INTERVAL_MS) throw error;
      known.keysReloadedAt = at.nowMs;
      known.keys = {};
    }
    await verify();
  }
}

/**
 * Checks claims that the library doesn't check (OpenID Connect Core 3.1.3.7): `iat`, and `azp` if
 * `aud` is a single value.
 */
function validateTokenClaims(
  claims: oauth.IDToken,
  { entry, nowMs }: LoginContext,
  ticket: LoginTicket,
): void {
  const isForOtherClient = claims.azp !== undefined && claims.azp !== entry.client_id;
  const isOld = claims.iat < ticket.at / 1000 - CLOCK_SKEW_S;
  const isFromFuture = claims.iat > nowMs / 1000 + CLOCK_SKEW_S;
  if (isForOtherClient || isOld || isFromFuture) throw new LoginRejectedError("refused");
}

const EMAIL_CHARACTERS_MAX = 254;

/** Returns the valid optional claims. Some issuers send booleans as text. */
function optionalClaims({ email, email_verified: verified, hd, auth_time: at }: oauth.IDToken) {
  return {
    email: typeof email === "string" && email.length <= EMAIL_CHARACTERS_MAX ? email : undefined,
    isVerified: verified === true || verified === "true",
    hd: typeof hd === "string" ? hd : undefined,
    at,
  };
}

/**
 * Returns a person's claims. Trusts Google's `email_verified` only for Gmail addresses and domains
 * that Google hosts (`hd`).
 */
function readClaims(token: oauth.IDToken, isGoogle: boolean): IdentityClaims {
  const { email, isVerified, hd, at } = optionalClaims(token);
  const isAuthoritative = !isGoogle || hd !== undefined || /@gmail\.com$/i.test(email ?? "");
  const subject = parseSubject(token.sub);
  return {
    issuer: token.iss,
    subject,
    account: subject,
    accountCreatedAt: null,
    company: { domain: isGoogle ? (hd ?? null) : null, tenant: null },
    name: displayNameOf(token["name"]),
    email: email ?? null,
    proven: email !== undefined && isVerified && isAuthoritative ? [email] : [],
    authenticatedAt: at === undefined ? null : at * 1000,
  };
}

function withoutIssuer(url: URL): URL {
  const copy = new URL(url);
  copy.searchParams.delete("iss");
  return copy;
}

const TIMEOUT_MS = 5000;
const KEY_SET_BYTES_MAX = 256 * 1024;
const RESPONSE_BYTES_MAX = 64 * 1024;

type RequestOptions = Pick<RequestInit, "method" | "headers" | "body">;

export async function fetchFromIssuer(
  url: string,
  request: RequestOptions,
  isKeySet = false,
): Promise<Response> {
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const { method = "GET", headers = {}, body = null } = request;
    const requestHeaders = new Headers(headers);
    requestHeaders.set("user-agent", "turnpike"); // GitHub returns 403 without a user agent
    const response = await fetch(url, {
      method,
      headers: requestHeaders,
      body,
      redirect: "manual",
      signal,
    });
    const text = await readBoundedText(response, isKeySet ? KEY_SET_BYTES_MAX : RESPONSE_BYTES_MAX);
    if (text === null || !isUsableStatus(response.status)) throw new IssuerUnavailableError();
    const type = response.headers.get("content-type") ?? "";
    return new Response(text, { status: response.status, headers: { "content-type": type } });
  } catch {
    throw new IssuerUnavailableError();
  }
}

function isUsableStatus(status: number): boolean {
  return status === 200 || status === 201 || (status >= 400 && status < 500);
}
