import type * as oauth from "oauth4webapi";
import * as z from "zod/mini";
import {
  IssuerUnavailableError,
  LoginRejectedError,
  displayNameOf,
  parseSubject,
} from "./claims.ts";
import type { IdentityClaims } from "./claims.ts";
import { fetchFromIssuer, buildAuthorizationUrl, exchangeCode, MetadataCache } from "./oidc.ts";
import type { LoginContext, CachedIssuer } from "./oidc.ts";
import type { LoginTicket } from "./ticket.ts";

const GUID_PATTERN = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/;
const HOST = "https://login.microsoftonline.com";

const metadataSchema = z.looseObject({
  issuer: z.string(),
  authorization_endpoint: z.string(),
  token_endpoint: z.string(),
  jwks_uri: z.string(),
});
const claimsSchema = z.looseObject({
  tid: z.string().check(z.regex(GUID_PATTERN)),
  oid: z.string().check(z.regex(GUID_PATTERN)),
  name: z.optional(z.string()),
  email: z.optional(z.string().check(z.maxLength(254))),
  xms_edov: z.optional(z.union([z.boolean(), z.number(), z.string()])),
});
/** The values by which Entra confirms a domain. */
const TRUE_CLAIMS: ReadonlySet<unknown> = new Set([true, 1, "1", "true"]);

/**
 * Handles logins with Microsoft Entra. Each tenant has its own issuer, so standard discovery fails.
 * An email address is verified only if Entra verified its domain (`xms_edov`).
 */
export class EntraLogin {
  readonly #cachedIssuers = new MetadataCache();

  async location(at: LoginContext, ticket: LoginTicket): Promise<string> {
    return buildAuthorizationUrl((await this.#metadata(at)).as, at, ticket);
  }

  async claims(at: LoginContext, ticket: LoginTicket, url: URL): Promise<IdentityClaims> {
    const known = await this.#metadata(at);
    const unverifiedTokens: UnverifiedToken[] = [];
    const issuerOf = async (response: Response): Promise<oauth.AuthorizationServer> => {
      const unverifiedToken = readUnverifiedToken(await response.clone().text());
      unverifiedTokens.push(unverifiedToken);
      return { ...known.as, issuer: known.as.issuer.replace("{tenantid}", unverifiedToken.tid) };
    };
    const token = await exchangeCode({ known, at, ticket, url, issuerOf });
    requireKeyOfIssuer(known, unverifiedTokens[0]?.kid, token.iss);
    if (!isTenantAllowed(at.entry.issuer, unverifiedTokens[0]?.tid)) {
      throw new LoginRejectedError("refused");
    }
    const parsed = z.safeParse(claimsSchema, token);
    if (!parsed.success) throw new LoginRejectedError("refused");
    const { tid, oid, name, email, xms_edov: emailVerifiedClaim } = parsed.data;
    return {
      issuer: token.iss,
      subject: parseSubject(oid),
      account: `${tid}/${oid}`,
      accountCreatedAt: null,
      company: { domain: null, tenant: tid === PERSONAL_ACCOUNTS_TENANT ? null : tid },
      name: displayNameOf(name),
      email: email ?? null,
      proven: email !== undefined && TRUE_CLAIMS.has(emailVerifiedClaim) ? [email] : [],
      authenticatedAt: typeof token.auth_time === "number" ? token.auth_time * 1000 : null,
    };
  }

  #metadata(at: LoginContext): Promise<CachedIssuer> {
    const tenant = at.entry.issuer ?? "organizations";
    return this.#cachedIssuers.read(tenant, at.nowMs, async () => {
      const url = `${HOST}/${tenant}/v2.0/.well-known/openid-configuration`;
      const parsed = z.safeParse(metadataSchema, await (await fetchFromIssuer(url, {})).json());
      const isMicrosoftIssuer = parsed.success && parsed.data.issuer.startsWith(`${HOST}/`);
      if (!isMicrosoftIssuer) throw new IssuerUnavailableError();
      return parsed.data as oauth.AuthorizationServer;
    });
  }
}

const PERSONAL_ACCOUNTS_TENANT = "9188040d-6c67-4c5b-b112-36a304b66dad";

function isTenantAllowed(tenant = "organizations", tid = ""): boolean {
  return (
    tid !== PERSONAL_ACCOUNTS_TENANT ||
    tenant === "common" ||
    tenant === "consumers" ||
    tenant === PERSONAL_ACCOUNTS_TENANT
  );
}

type UnverifiedToken = { readonly tid: string; readonly kid: string | undefined };
const tokenResponseSchema = z.object({ id_token: z.string() });
const tokenPayloadSchema = z.object({ tid: z.string().check(z.regex(GUID_PATTERN)) });
const tokenHeaderSchema = z.object({ kid: z.optional(z.string()) });

function readUnverifiedToken(answer: string): UnverifiedToken {
  try {
    const [head = "", body = ""] = tokenResponseSchema
      .parse(JSON.parse(answer))
      .id_token.split(".");
    const { tid } = tokenPayloadSchema.parse(decodeTokenPart(body));
    return { tid, kid: tokenHeaderSchema.parse(decodeTokenPart(head)).kid };
  } catch {
    throw new LoginRejectedError("refused");
  }
}

function decodeTokenPart(text: string): unknown {
  const bytes = Uint8Array.fromBase64(text, { alphabet: "base64url" });
  return JSON.parse(new TextDecoder().decode(bytes));
}

function requireKeyOfIssuer({ keys }: CachedIssuer, kid: string | undefined, issuer: string): void {
  if (kid === undefined) throw new LoginRejectedError("refused");
  const { jwks } = keys as {
    readonly jwks?: {
      readonly keys: readonly { readonly kid?: string; readonly issuer?: unknown }[];
    };
  };
  const key = jwks?.keys.find((one) => one.kid === kid);
  const keyIssuer = key?.issuer;
  const isTemplate = typeof keyIssuer === "string" && keyIssuer.includes("{tenantid}");
  if (typeof keyIssuer === "string" && !isTemplate && keyIssuer !== issuer) {
    throw new LoginRejectedError("refused");
  }
}
