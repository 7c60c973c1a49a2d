// An OpenID Connect provider for this machine. `npm start` runs it next to the regions, and tests
// change its responses.

export type Account = {
  readonly id: string;
  readonly name: string;
  readonly email: string;
  readonly isVerified: boolean;
};

export const ACCOUNTS: readonly Account[] = [
  { id: "ann", name: "Ann", email: "ann@example.test", isVerified: true },
  { id: "ben", name: "Ben", email: "ben@example.test", isVerified: true },
  { id: "cleo", name: "Cleo", email: "cleo@example.test", isVerified: true },
];

type Client = { readonly id: string; readonly secret: string };

type Json = Readonly<Record<string, unknown>>;
/** A test's changes to responses and tokens, before or after they are signed. */
export type TokenChanges = {
  readonly claims?: (claims: Json) => Json;
  readonly header?: (header: Json) => Json;
  readonly token?: (token: string) => string;
  readonly answer?: (path: string, answer: Response) => Response | Promise<Response>;
};

type LoginRequest = {
  readonly account: Account;
  readonly nonce: string | null;
  readonly challenge: string;
  readonly redirectUri: string;
  readonly clientId: string;
};

type KeyPair = Record<
  "privateKey" | "publicKey",
  Awaited<ReturnType<typeof crypto.subtle.importKey>>
>;
const RSA = {
  name: "RSASSA-PKCS1-v1_5",
  modulusLength: 2048,
  publicExponent: new Uint8Array([1, 0, 1]),
  hash: "SHA-256",
};
const encoder = new TextEncoder();

/** An identity provider that keeps codes and keys in memory. */
export class LocalIssuer {
  readonly issuer: string;
  readonly #clients: readonly Client[];
  readonly #accounts: readonly Account[];
  readonly #codes = new Map<string, LoginRequest>();
  readonly #now: () => number;
  #keys: Promise<{ kid: string; pair: KeyPair }>;
  #kids = 0;
  /** The number of requests by path. */
  readonly asked = new Map<string, number>();
  bend: TokenChanges = {};

  constructor(
    issuer: string,
    clients: readonly Client[],
    options: { readonly accounts?: readonly Account[]; readonly now?: () => number } = {},
  ) {
    this.issuer = issuer;
    this.#clients = clients;
    this.#accounts = options.accounts ?? ACCOUNTS;
    this.#now = options.now ?? Date.now;
    this.#keys = this.#newKey();
  }

  /** Signs with a new key from now on, and stops publishing the previous one. */
  async rotate(): Promise<void> {
    this.#keys = this.#newKey();
    await this.#keys;
  }

  async handle(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    this.asked.set(pathname, (this.asked.get(pathname) ?? 0) + 1);
    const answer = await this.#answer(request, pathname);
    return this.bend.answer?.(pathname, answer) ?? answer;
  }

  async #answer(request: Request, pathname: string): Promise<Response> {
    if (pathname === "/.well-known/openid-configuration") return Response.json(this.#metadata());
    if (pathname === "/jwks") return Response.json({ keys: [await this.#publicKey()] });
    if (pathname === "/authorize") return this.#page(new URL(request.url));
    if (pathname === "/continue") return this.#continue(new URL(request.url));
    if (pathname === "/token" && request.method === "POST") return this.#token(request);
    return new Response("No such page.", { status: 404 });
  }

  #metadata(): Json {
    const { issuer } = this;
    return {
      issuer,
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}/token`,
      jwks_uri: `${issuer}/jwks`,
      response_types_supported: ["code"],
      subject_types_supported: ["public"],
      id_token_signing_alg_values_supported: ["RS256", "none"],
      token_endpoint_auth_methods_supported: ["client_secret_basic", "client_secret_post"],
      code_challenge_methods_supported: ["S256"],
      scopes_supported: ["openid", "email", "profile"],
      authorization_response_iss_parameter_supported: true,
    };
  }

  /** Returns a page with a button for each account. */
  #page(url: URL): Response {
    if (url.searchParams.get("code_challenge_method") !== "S256") {
      return new Response("PKCE is demanded.", { status: 400 });
    }
    const buttons = this.#accounts.map(({ id, name, email }) => {
      const href = `/continue?${escaped(`${url.searchParams.toString()}&account=${id}`)}`;
      return `<p><a href="${href}">Continue as ${escaped(name)}</a> <small>${escaped(email)}</small></p>`;
    });
    const page = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Local log-in</title>
<style>body{font:1rem system-ui;margin:4rem auto;max-width:24rem}a{display:inline-block;padding:.5rem 1rem;border:1px solid}</style>
<h1>Who are you?</h1>${buttons.join("")}`;
    return new Response(page, { headers: { "content-type": "text/html; charset=utf-8" } });
  }

  /** Redirects back to the client with a code. */
  #continue({ searchParams: query }: URL): Response {
    const account = this.#accounts.find(({ id }) => id === query.get("account"));
    const back = new URL(query.get("redirect_uri") ?? "http://localhost");
    if (account === undefined) back.searchParams.set("error", "access_denied");
    else {
      const code = crypto.randomUUID();
      this.#codes.set(code, {
        account,
        nonce: query.get("nonce"),
        challenge: query.get("code_challenge") ?? "",
        redirectUri: query.get("redirect_uri") ?? "",
        clientId: query.get("client_id") ?? "",
      });
      back.searchParams.set("code", code);
    }
    back.searchParams.set("state", query.get("state") ?? "");
    back.searchParams.set("iss", this.issuer);
    return new Response(null, { status: 303, headers: { location: back.href } });
  }

  async #token(request: Request): Promise<Response> {
    const fields = new URLSearchParams(await request.text());
    const [basicId, basicSecret] = basicOf(request.headers.get("authorization"));
    const id = fields.get("client_id") ?? basicId;
    const secret = fields.get("client_secret") ?? basicSecret;
    const grant = this.#codes.get(fields.get("code") ?? "");
    this.#codes.delete(fields.get("code") ?? "");
    const isClient = this.#clients.some((one) => one.id === id && one.secret === secret);
    if (!isClient) return Response.json({ error: "invalid_client" }, { status: 401 });
    const challenge = await challengeOf(fields.get("code_verifier") ?? "");
    const isGood =
      grant !== undefined &&
      grant.challenge === challenge &&
      grant.redirectUri === fields.get("redirect_uri") &&
      grant.clientId === id;
    if (!isGood) return Response.json({ error: "invalid_grant" }, { status: 400 });
    const id_token = await this.#idToken(grant);
    return Response.json({
      access_token: "unused",
      token_type: "Bearer",
      expires_in: 60,
      id_token,
    });
  }

  async #idToken({ account, nonce, clientId }: LoginRequest): Promise<string> {
    const { kid, pair } = await this.#keys;
    const nowS = Math.floor(this.#now() / 1000);
    const plain = {
      iss: this.issuer,
      sub: account.id,
      aud: clientId,
      iat: nowS,
      exp: nowS + 300,
      auth_time: nowS,
      ...(nonce !== null && { nonce }),
      name: account.name,
      email: account.email,
      email_verified: account.isVerified,
    };
    const header = { alg: "RS256", typ: "JWT", kid };
    const parts = [this.bend.header?.(header) ?? header, this.bend.claims?.(plain) ?? plain].map(
      (part) => base64url(encoder.encode(JSON.stringify(part))),
    );
    const signed = encoder.encode(parts.join("."));
    const signature = new Uint8Array(await crypto.subtle.sign(RSA.name, pair.privateKey, signed));
    const token = [...parts, base64url(signature)].join(".");
    return this.bend.token?.(token) ?? token;
  }

  async #newKey(): Promise<{ kid: string; pair: KeyPair }> {
    // A key pair. Its type has different names in workerd and Node.
    const pair: unknown = await crypto.subtle.generateKey(RSA, true, ["sign", "verify"]);
    return { kid: `key-${++this.#kids}`, pair: pair as KeyPair };
  }

  async #publicKey(): Promise<Json> {
    const { kid, pair } = await this.#keys;
    const jwk = await crypto.subtle.exportKey("jwk", pair.publicKey);
    return { ...(jwk as unknown as Json), kid, use: "sig", alg: "RS256" };
  }
}

function basicOf(header: string | null): readonly string[] {
  const [, text = ""] = /^Basic (.+)$/.exec(header ?? "") ?? [];
  return text === "" ? [] : atob(text).split(":").map(decodeURIComponent);
}

async function challengeOf(verifier: string): Promise<string> {
  return base64url(new Uint8Array(await crypto.subtle.digest("SHA-256", encoder.encode(verifier))));
}

function base64url(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}
