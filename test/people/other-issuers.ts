import { LocalIssuer } from "../fakes/local-issuer.ts";
import type { Account } from "../fakes/local-issuer.ts";
import { CLIENT } from "./people-client.ts";
import type { startIssuer } from "./people-client.ts";

type Network = ReturnType<typeof startIssuer>;
type Json = Readonly<Record<string, unknown>>;

/** Returns the variables of a deployment with only these identity providers. */
export function loginsOf(...entries: readonly object[]): Readonly<Record<string, string>> {
  const common = { client_id: CLIENT.id, secret: "LOCAL_SECRET" };
  return { LOGIN_ISSUERS: JSON.stringify(entries.map((one) => Object.assign({}, common, one))) };
}

/** Starts Google, which follows OpenID Connect. */
export function startGoogle(network: Network): LocalIssuer {
  const google = new LocalIssuer("https://accounts.google.com", [CLIENT], network);
  network.hosts.set("https://accounts.google.com", (request) => google.handle(request));
  return google;
}

const ENTRA = "https://login.microsoftonline.com";

/**
 * Microsoft Entra: an issuer per tenant, named by a template, and a key of private accounts, who
 * have their own tenant.
 */
export class Entra {
  readonly #local: LocalIssuer;
  /** Additional claims of the tokens. */
  claims: Json = {};
  /** The issuer that its key states. */
  keyIssuer = `${ENTRA}/{tenantid}/v2.0`;

  constructor(network: Network) {
    this.#local = new LocalIssuer(ENTRA, [CLIENT], network);
    network.hosts.set(ENTRA, (request) => this.#handle(request));
    this.#local.bend = {
      claims: (claims) => {
        const { email_verified: _, ...plain } = claims;
        return { ...plain, iss: `${ENTRA}/${String(this.claims["tid"])}/v2.0`, ...this.claims };
      },
      answer: async (path, answer) => {
        if (path.endsWith("/jwks")) {
          const { keys } = await answer.json<{ keys: readonly Json[] }>();
          return Response.json({
            keys: keys.map((key) => Object.assign(key, { issuer: this.keyIssuer })),
          });
        }
        if (!path.endsWith("openid-configuration")) return answer;
        const { authorization_response_iss_parameter_supported: _, ...metadata } =
          await answer.json<Json>();
        return Response.json({ ...metadata, issuer: `${ENTRA}/{tenantid}/v2.0` });
      },
    };
  }

  #handle(request: Request): Promise<Response> {
    const url = new URL(request.url);
    const known = url.pathname.replace(/^\/(?:organizations|common)\/v2\.0/, "");
    return this.#local.handle(new Request(new URL(known + url.search, ENTRA), request));
  }
}

/** GitHub, which only supports OAuth 2 and returns errors with the status 200. */
export class GitHub {
  readonly #codes = new Map<string, string>();
  account = { id: 583231, login: "octocat", name: "Octo", created_at: "2011-01-25T18:44:36Z" };
  emails: readonly Json[] = [{ email: "octo@example.test", primary: true, verified: true }];
  iss: string | null = "https://github.com/login/oauth";
  isAway = false;

  constructor(network: Network) {
    for (const host of ["https://github.com", "https://api.github.com"]) {
      network.hosts.set(host, (request) => this.#handle(request));
    }
  }

  async #handle(request: Request): Promise<Response> {
    const url = new URL(request.url);
    if (this.isAway) return new Response("<html>", { status: 503 });
    if (url.pathname === "/continue") return this.#continue(url.searchParams);
    if (url.pathname === "/login/oauth/access_token") {
      const fields = new URLSearchParams(await request.text());
      const challenge = this.#codes.get(fields.get("code") ?? "");
      this.#codes.delete(fields.get("code") ?? "");
      const isGood = challenge !== undefined && challenge === (await s256(fields));
      if (!isGood) return Response.json({ error: "bad_verification_code" });
      return Response.json({ access_token: "gho_x", token_type: "bearer", scope: "user:email" });
    }
    const isNamed = request.headers.get("user-agent") !== null;
    if (!isNamed || request.headers.get("authorization") !== "Bearer gho_x") {
      return new Response("", { status: 403 });
    }
    return Response.json(url.pathname === "/user" ? this.account : this.emails);
  }

  #continue(query: URLSearchParams): Response {
    const back = new URL(query.get("redirect_uri") ?? "");
    const code = crypto.randomUUID();
    this.#codes.set(code, query.get("code_challenge") ?? "");
    back.searchParams.set("code", code);
    back.searchParams.set("state", query.get("state") ?? "");
    if (this.iss !== null) back.searchParams.set("iss", this.iss);
    return new Response(null, { status: 303, headers: { location: back.href } });
  }
}

async function s256(fields: URLSearchParams): Promise<string> {
  const verifier = new TextEncoder().encode(fields.get("code_verifier") ?? "");
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", verifier));
  return digest.toBase64({ alphabet: "base64url", omitPadding: true });
}

/** The only account of the fake GitHub. */
export const ANYBODY: Account = { id: "anybody", name: "", email: "", isVerified: true };
