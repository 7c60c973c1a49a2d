import { AwsV4Signer } from "aws4fetch";
import type { OutgoingBody } from "../outgoing-body.ts";
import type { ProviderConfig } from "../built-in.ts";

/** How requests show whose they are: a Bedrock API key, or a signature with an access key. */
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

/** The credentials that are set, or null; an API key before an access key, as AWS's own tools choose. */
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

/** What an upstream could quote of them. */
export function secretsOf(credentials: Credentials): readonly string[] {
  if (credentials.kind === "bearer") return [credentials.token];
  const { accessKeyId, secretAccessKey, sessionToken } = credentials;
  return [accessKeyId, secretAccessKey, ...(sessionToken === undefined ? [] : [sessionToken])];
}

/** Gives the headers that authorise one POST of this body to this URL. */
export type Authorise = (
  url: string,
  body: OutgoingBody,
) => Promise<Readonly<Record<string, string>>>;

/**
 * SigV4 (docs.aws.amazon.com, "Create a signed AWS API request") by aws4fetch, which reads the clock for
 * itself. Host and x-amz-* headers are signed, so that nothing on the way changes what was signed; the
 * path is encoded a second time in the signature, as every service but S3 wants it.
 */
export function authoriser(credentials: Credentials, region: string): Authorise {
  if (credentials.kind === "bearer") {
    const headers = { authorization: `Bearer ${credentials.token}` };
    return () => Promise.resolve(headers);
  }
  const cache = new Map<string, ArrayBuffer>(); // the day's signing key
  return async (url, body) => {
    const { kind: _, ...keys } = credentials;
    const signer = new AwsV4Signer({
      ...keys,
      method: "POST",
      url,
      ...(typeof body === "string"
        ? { body }
        : { headers: { "x-amz-content-sha256": await body.sha256() } }),
      service: "bedrock",
      region,
      cache,
    });
    return Object.fromEntries((await signer.sign()).headers);
  };
}
