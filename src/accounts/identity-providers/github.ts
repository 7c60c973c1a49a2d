import * as oauth from "oauth4webapi";
import * as z from "zod/mini";
import { IssuerUnavailableError, LoginRejectedError, displayNameOf } from "./claims.ts";
import type { IdentityClaims } from "./claims.ts";
import { fetchFromIssuer, createOauthClient, addQuery, fetchLoginTokens } from "./oidc.ts";
import type { LoginContext } from "./oidc.ts";
import type { LoginTicket } from "./ticket.ts";

/** GitHub's authorization server: OAuth 2 without discovery, ID tokens or `iss` (RFC 9207). */
const GITHUB_SERVER: oauth.AuthorizationServer = {
  issuer: "https://github.com/login/oauth",
  authorization_endpoint: "https://github.com/login/oauth/authorize",
  token_endpoint: "https://github.com/login/oauth/access_token",
};
const API_URL = "https://api.github.com";

const userSchema = z.object({
  id: z.int(),
  login: z.string(),
  name: z.nullish(z.string()),
  created_at: z.nullish(z.string()),
});
const emailsSchema = z.array(
  z.object({ email: z.string(), primary: z.boolean(), verified: z.boolean() }),
);

export async function buildGithubLoginUrl(at: LoginContext, ticket: LoginTicket): Promise<string> {
  const parameters = {
    response_type: "code",
    client_id: at.entry.client_id,
    redirect_uri: at.redirectUri,
    scope: "read:user user:email",
    state: ticket.state,
    prompt: "select_account",
    code_challenge: await oauth.calculatePKCECodeChallenge(ticket.verifier),
    code_challenge_method: "S256",
  };
  return addQuery(GITHUB_SERVER.authorization_endpoint ?? "", parameters);
}

/**
 * Returns a GitHub account's claims. The subject is the account number, because GitHub can reassign
 * names.
 */
export async function readGithubClaims(
  at: LoginContext,
  ticket: LoginTicket,
  url: URL,
): Promise<IdentityClaims> {
  const client = createOauthClient(at);
  const params = oauth.validateAuthResponse(GITHUB_SERVER, client, url, ticket.state);
  const response = await fetchLoginTokens(GITHUB_SERVER, at, params, ticket.verifier);
  const { access_token: token } = await oauth
    .processAuthorizationCodeResponse(GITHUB_SERVER, client, response)
    .catch((error: unknown) => {
      // For an expired code, GitHub returns an error with status 200.
      const isError = error instanceof oauth.OperationProcessingError;
      throw isError && error.code === oauth.INVALID_RESPONSE
        ? new LoginRejectedError("expired")
        : error;
    });
  const [profile, addresses] = await Promise.all([
    fetchFromApi("/user", token, userSchema),
    fetchFromApi("/user/emails?per_page=100", token, emailsSchema),
  ]);
  const verified = addresses.filter((one) => one.verified);
  const primary = verified.find((one) => one.primary);
  return {
    issuer: GITHUB_SERVER.issuer,
    subject: String(profile.id),
    account: String(profile.id),
    accountCreatedAt:
      typeof profile.created_at === "string" ? Date.parse(profile.created_at) : null,
    company: { domain: null, tenant: null },
    name: displayNameOf(profile.name) ?? displayNameOf(profile.login),
    email: primary?.email ?? null,
    proven: verified.toSorted((one) => (one.primary ? -1 : 1)).map(({ email }) => email),
    authenticatedAt: null,
  };
}

async function fetchFromApi<T>(path: string, token: string, schema: z.ZodMiniType<T>): Promise<T> {
  const response = await fetchFromIssuer(API_URL + path, {
    headers: {
      authorization: `Bearer ${token}`,
      accept: "application/vnd.github+json",
      "x-github-api-version": "2022-11-28",
    },
  });
  if (response.status !== 200) throw new LoginRejectedError("refused");
  const parsed = z.safeParse(schema, await response.json().catch(() => null));
  if (!parsed.success) throw new IssuerUnavailableError();
  return parsed.data;
}
