import type { Provider } from "../../src/models/core/provider.ts";
import { createVertexProvider } from "../../src/models/providers/google.ts";
import type { RawReply } from "../fixtures/reply-scenarios.ts";
import { configOf } from "./google-kit.ts";

/** A service account with secret names and its own key. */
export const ACCOUNT = {
  type: "service_account",
  project_id: "canary-project",
  private_key_id: "0123456789abcdef",
  client_email: "canary@canary-project.iam.gserviceaccount.com",
};
const ALGORITHM = {
  name: "RSASSA-PKCS1-v1_5",
  hash: "SHA-256",
  modulusLength: 2048,
  publicExponent: new Uint8Array([1, 0, 1]),
};

const keyPair = crypto.subtle
  .generateKey(ALGORITHM, true, ["sign", "verify"])
  .then(async (pair) => {
    if (!("privateKey" in pair)) throw new Error("no pair");
    const der = await crypto.subtle.exportKey("pkcs8", pair.privateKey);
    if (!(der instanceof ArrayBuffer)) throw new Error("no DER");
    const lines = new Uint8Array(der).toBase64().match(/.{1,64}/g) ?? [];
    const pem = ["-----BEGIN PRIVATE KEY-----", ...lines, "-----END PRIVATE KEY-----", ""].join(
      "\n",
    );
    return { pem, publicKey: pair.publicKey };
  });

/** Returns the account's JSON key in the format of Google's console. */
export async function credentials(): Promise<string> {
  return JSON.stringify({ ...ACCOUNT, private_key: (await keyPair).pem }, null, 2);
}

function plain(part: string): object {
  const bytes = Uint8Array.fromBase64(part, { alphabet: "base64url" });
  return JSON.parse(new TextDecoder().decode(bytes)) as object;
}

/** Returns the claims of a signed assertion, or null if the signature is not the account's. */
export async function verified(assertion: string): Promise<unknown> {
  const [head = "", claims = "", signature = ""] = assertion.split(".");
  const bytes = Uint8Array.fromBase64(signature, { alphabet: "base64url" });
  const text = new TextEncoder().encode(`${head}.${claims}`);
  const isValid = await crypto.subtle.verify(ALGORITHM, (await keyPair).publicKey, bytes, text);
  return isValid ? { ...plain(head), ...plain(claims) } : null;
}

/** Returns Vertex AI in the EU. By default, the clock is fixed. */
export async function vertexProvider(
  nowMs: () => number = () => 1_760_000_000_000,
  vars: Record<string, string> = {},
): Promise<Provider> {
  return createVertexProvider(
    configOf({ GOOGLE_VERTEX_CREDENTIALS: await credentials(), ...vars }),
    nowMs,
  );
}

/** Returns Google's response to a valid assertion. */
export function token(text: string, expires = 3599): RawReply {
  const body = { access_token: text, expires_in: expires, token_type: "Bearer" };
  const headers = { "content-type": "application/json; charset=utf-8" };
  return { headers, body: JSON.stringify(body, null, 2) };
}

export const TOKEN = token("ya29.canary-token");
