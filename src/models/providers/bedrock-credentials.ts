import { elapsedMs, timestamp } from "../../shared/clock.ts";
import { importHmacKey, hmacSha256 } from "../../shared/hmac.ts";
import type { HmacKey } from "../../shared/hmac.ts";
import type { ProviderConfig } from "../core/built-in.ts";
import type { OutgoingBody } from "../core/outgoing-body.ts";
import { hexOf, sha256Hex } from "../../shared/hash.ts";

export type Credentials =
  | { readonly kind: "bearer"; readonly token: string }
  | {
      readonly kind: "signature";
      readonly accessKeyId: string;
      readonly secretAccessKey: string;
      readonly sessionToken?: string;
    };

export const BEARER_TOKEN = "AWS_BEARER_TOKEN_BEDROCK";
export const ACCESS_KEY_ID = "AWS_ACCESS_KEY_ID";
export const SECRET_ACCESS_KEY = "AWS_SECRET_ACCESS_KEY";
const SESSION_TOKEN = "AWS_SESSION_TOKEN";

/** Prefers an API key to an access key, as AWS's own tools do. */
export function credentialsOf(config: ProviderConfig): Credentials | null {
  const token = config.secret(BEARER_TOKEN);
  if (token !== undefined) return { kind: "bearer", token };
  const accessKeyId = config.secret(ACCESS_KEY_ID);
  const secretAccessKey = config.secret(SECRET_ACCESS_KEY);
  if (accessKeyId === undefined || secretAccessKey === undefined) return null;
  const sessionToken = config.secret(SESSION_TOKEN);
  const base = { kind: "signature" as const, accessKeyId, secretAccessKey };
  return sessionToken === undefined ? base : { ...base, sessionToken };
}

export function secretsOf(credentials: Credentials): readonly string[] {
  if (credentials.kind === "bearer") return [credentials.token];
  const { accessKeyId, secretAccessKey, sessionToken } = credentials;
  return [accessKeyId, secretAccessKey, ...(sessionToken === undefined ? [] : [sessionToken])];
}

type Authorize = (url: string, body: OutgoingBody) => Promise<Readonly<Record<string, string>>>;

const ALGORITHM = "AWS4-HMAC-SHA256";
const SERVICE = "bedrock";
const TERMINATOR = "aws4_request";

/**
 * Returns a function that authorizes POST requests without a query. Access keys sign by SigV4
 * (docs.aws.amazon.com, "Create a signed AWS API request").
 */
export function requestSigner(credentials: Credentials, region: string): Authorize {
  if (credentials.kind === "bearer") {
    const headers = { authorization: `Bearer ${credentials.token}` };
    return () => Promise.resolve(headers);
  }
  const { accessKeyId, secretAccessKey, sessionToken } = credentials;
  let cachedKey: { readonly day: string; readonly key: Promise<HmacKey> } | null = null;
  const signingKeyOf = (day: string): Promise<HmacKey> => {
    if (cachedKey?.day !== day) cachedKey = { day, key: signingKey(secretAccessKey, day, region) };
    return cachedKey.key;
  };
  return async (url, body) => {
    const { host, pathname } = new URL(url);
    const date = timestamp(elapsedMs()).replaceAll(/[-:]|\.\d+/g, "");
    const day = date.slice(0, 8);
    const amzHeaders = {
      "x-amz-date": date,
      ...(sessionToken !== undefined && { "x-amz-security-token": sessionToken }),
    };
    const headers = Object.entries({ host, ...amzHeaders });
    const headerNames = headers.map(([name]) => name).join(";");
    const canonical = [
      "POST",
      encodePath(pathname),
      "", // no query
      ...headers.map(([name, value]) => `${name}:${value}`),
      "",
      headerNames,
      typeof body === "string" ? await sha256Hex(body) : await body.sha256(),
    ].join("\n");
    const scope = [day, region, SERVICE, TERMINATOR].join("/");
    const text = [ALGORITHM, date, scope, await sha256Hex(canonical)].join("\n");
    const signature = hexOf(await hmacSha256(await signingKeyOf(day), text));
    const credential = `Credential=${accessKeyId}/${scope}`;
    return {
      ...amzHeaders,
      authorization: `${ALGORITHM} ${credential}, SignedHeaders=${headerNames}, Signature=${signature}`,
    };
  };
}

/** Encodes a URL's path a second time. SigV4 requires this for every service except S3. */
function encodePath(pathname: string): string {
  return pathname.split("/").map(encodeSegment).join("/");
}

function encodeSegment(text: string): string {
  return encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

async function signingKey(secret: string, day: string, region: string): Promise<HmacKey> {
  const dayKey = await signText(`AWS4${secret}`, day);
  const serviceKey = await signText(await signText(dayKey, region), SERVICE);
  return importHmacKey(await signText(serviceKey, TERMINATOR));
}

async function signText(secret: string | Uint8Array, text: string): Promise<Uint8Array> {
  return hmacSha256(await importHmacKey(secret), text);
}
