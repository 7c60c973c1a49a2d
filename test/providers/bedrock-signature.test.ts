import { expect, it } from "vitest";
import { BEDROCK_CHAT } from "../fixtures/bedrock-replies.ts";
import { answerTo } from "./adapter-kit.ts";
import type { SentRequest } from "./adapter-kit.ts";
import { ACCESS_KEY, HAIKU, signing } from "./bedrock-kit.ts";

const encoded = (text: string) => new TextEncoder().encode(text);
const hex = (bytes: ArrayBuffer) =>
  [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
const sha256 = async (text: string) => hex(await crypto.subtle.digest("SHA-256", encoded(text)));

async function hmac(secret: BufferSource, text: string): Promise<ArrayBuffer> {
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", secret, algorithm, false, ["sign"]);
  return crypto.subtle.sign("HMAC", key, encoded(text));
}

type Canonical = {
  readonly method: string;
  readonly path: string;
  /** Header names and values, in order. */
  readonly headers: readonly (readonly [string, string])[];
  readonly body: string;
  readonly date: string;
  readonly scope: readonly [region: string, service: string];
  readonly secret: string;
};

/** SigV4 by AWS's documentation, "Create a signed AWS API request", independently of the code. */
async function signature(request: Canonical): Promise<string> {
  const day = request.date.slice(0, 8);
  const canonical = [
    request.method,
    request.path,
    "",
    ...request.headers.map(([name, value]) => `${name}:${value}`),
    "",
    request.headers.map(([name]) => name).join(";"),
    await sha256(request.body),
  ].join("\n");
  const scope = [day, ...request.scope, "aws4_request"];
  const hash = await sha256(canonical);
  const text = ["AWS4-HMAC-SHA256", request.date, scope.join("/"), hash].join("\n");
  let key = await hmac(encoded(`AWS4${request.secret}`), day);
  for (const part of scope.slice(1)) {
    key = await hmac(key, part);
  }
  return hex(await hmac(key, text));
}

it("the Bedrock signer matches the get-vanilla example of AWS's test suite", async () => {
  const request = {
    method: "GET",
    path: "/",
    headers: [
      ["host", "example.amazonaws.com"],
      ["x-amz-date", "20150830T123600Z"],
    ],
    body: "",
    date: "20150830T123600Z",
    scope: ["us-east-1", "service"],
    secret: ACCESS_KEY.secretAccessKey,
  } as const;
  expect(await signature(request)).toBe(
    "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
  );
});

/** Returns the Authorization header that a request must have. */
async function authorization(
  { url, headers, text }: SentRequest,
  session?: string,
): Promise<string> {
  const { pathname, host } = new URL(url);
  const date = headers.get("x-amz-date") ?? "";
  const signed = [
    ["host", host],
    ["x-amz-date", date],
    ...(session === undefined ? [] : ([["x-amz-security-token", session]] as const)),
  ] as const;
  const expected = await signature({
    method: "POST",
    // All services except S3 encode the path twice, so %3A in the request is %253A here.
    path: pathname.split("/").map(encodeURIComponent).join("/"),
    headers: signed,
    body: text,
    date,
    scope: ["eu-central-1", "bedrock"],
    secret: ACCESS_KEY.secretAccessKey,
  });
  const scope = `${date.slice(0, 8)}/eu-central-1/bedrock/aws4_request`;
  const names = signed.map(([name]) => name).join(";");
  return `AWS4-HMAC-SHA256 Credential=${ACCESS_KEY.accessKeyId}/${scope}, SignedHeaders=${names}, Signature=${expected}`;
}

it.each([undefined, "IQoJb3JpZ2luX2VjE//session=="])(
  "the Bedrock signer signs body, encoded path and session token: %s",
  async (session) => {
    const body = { messages: [{ role: "user", content: "Grüße, 世界" }] };
    const call = { upstreamId: HAIKU, body };
    const { requests } = await answerTo(signing(session), call, BEDROCK_CHAT.text.json);
    const [request] = requests;
    if (request === undefined) throw new Error("nothing was sent");
    expect(new URL(request.url).pathname).toContain("-v1%3A0/");
    expect(request.text).toContain("世界");
    expect(request.headers.get("x-amz-security-token")).toBe(session ?? null);
    expect(request.headers.get("authorization")).toBe(await authorization(request, session));
  },
);

it("the Bedrock signer signs each request, and caches the day's signing key", async () => {
  const provider = signing();
  for (const content of ["One", "Two"]) {
    const call = { upstreamId: HAIKU, body: { messages: [{ role: "user", content }] } };
    const { requests } = await answerTo(provider, call, BEDROCK_CHAT.text.json);
    const [request] = requests;
    if (request === undefined) throw new Error("nothing was sent");
    expect(request.headers.get("authorization")).toBe(await authorization(request));
  }
});
