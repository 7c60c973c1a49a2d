import { readBoundedText, discardBody } from "../../shared/http/bounded-body.ts";
import { afterTimeout, withTimeout } from "../../shared/timers.ts";
import { fromBase64, toBase64Url } from "../core/data-url.ts";
import { numberOf, parseObject, textOf, createObjectReader } from "../core/json-value.ts";
import type { ProviderFailure, Provider, ProviderCall } from "../core/provider.ts";
import { JsonAudioReader, WavReader, ImageReader } from "../core/media-reader.ts";
import { embedInBatches } from "../core/embedding-batches.ts";
import {
  createHttpProvider,
  sendPostRequest,
  removeTrailingSlashes,
} from "../core/http-provider.ts";
import type { ProviderHandlers } from "../core/http-provider.ts";
import type { OutgoingBody } from "../core/outgoing-body.ts";
import { isProviderFailure } from "../core/provider.ts";
import { createSseReader } from "../core/frame-reader.ts";
import { readGeminiChat, GeminiChunkReader } from "../protocols/gemini/answer.ts";
import type { GeminiEmbeddingMethod } from "../protocols/gemini/embeddings.ts";
import { findGeminiFailure, parseGoogleFailure } from "../protocols/gemini/failure.ts";
import {
  readGeminiImageFields,
  toGeminiImageRequest,
  readGeminiSpeechFields,
  toGeminiSpeechRequest,
} from "../protocols/gemini/media.ts";
import { toGeminiChatRequest, geminiIgnoresEffortNone } from "../protocols/gemini/request.ts";
import type { ConfigProblem } from "../../shared/config/config.ts";
import { elapsedMs } from "../../shared/clock.ts";
import type { Region } from "../../shared/regions.ts";
import { findBaseUrlProblems } from "../core/built-in.ts";
import type { BuiltInProvider, ProviderConfig } from "../core/built-in.ts";
import { GEMINI_EMBEDDINGS, VERTEX_EMBEDDINGS } from "../protocols/gemini/embeddings.ts";

type ServiceAccount = {
  readonly email: string;
  readonly privateKey: string;
  readonly project: string;
};

/** Google's OAuth 2.0 token endpoint (RFC 7523). */
const GOOGLE_TOKEN_URL = "https://oauth2.googleapis.com/token";
const GRANT_TYPE = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const SCOPE = "https://www.googleapis.com/auth/cloud-platform";
const ASSERTION_LIFETIME_S = 3600;
const EXPIRY_MARGIN_MS = 300_000;
const FETCH_TIMEOUT_MS = 10_000;
/**
 * Maximum ms to wait for another request's token fetch. The fetch stops if the other request ends.
 */
const SHARED_FETCH_WAIT_MS = 3000;
const TOKEN_BYTES_MAX = 64 * 1024;

const readTokenResponse = createObjectReader({ access_token: textOf, expires_in: numberOf });
const readKeyFields = createObjectReader({
  client_email: textOf,
  private_key: textOf,
  project_id: textOf,
});

/** Parses a service account's JSON key. Returns the names of missing or invalid fields, if any. */
function parseServiceAccount(json: string): ServiceAccount | readonly string[] {
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

/** Matches a private key in PEM format with spaces instead of line breaks. */
const PEM = /^-----BEGIN PRIVATE KEY-----(.+)-----END PRIVATE KEY-----$/;
const LINE_ENDS = /\s|\\n/g;

type Token = { readonly text: string; readonly usableUntilMs: number };

/**
 * Access tokens of a service account, each used until 5 minutes before it expires. Every region can
 * use Google's global address, because token requests contain no customer data.
 */
class GoogleAccessTokens {
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

  /** The last token, even if expired. Used to remove the token from error texts. */
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

type Credential = Readonly<Record<string, string>>;

type Service = {
  readonly id: string;
  readonly modelsUrl: string;
  readonly embeddings: GeminiEmbeddingMethod;
  credential(): Promise<Credential | ProviderFailure>;
  renew?(refused: Credential): boolean;
  secrets(): readonly string[];
};

export function createGoogleProvider(service: Service): Provider {
  return {
    ...createHttpProvider(createProtocol(service)),
    acceptsFiles: true,
    summarizesThoughts: true,
    ignoresNone: geminiIgnoresEffortNone,
  };
}

function createProtocol(service: Service): ProviderHandlers {
  const { embeddings } = service;
  return {
    id: service.id,
    streamType: "text/event-stream",
    chat: {
      async send(call) {
        const body = await toGeminiChatRequest(call);
        const method = call.stream ? "streamGenerateContent?alt=sse" : "generateContent";
        return isProviderFailure(body) ? body : callService(service, call, { method, body });
      },
      convertResponse: readGeminiChat,
    },
    embeddings: {
      sendInParts: (call, send) => embedInBatches(call, embeddings.textsMax(call.upstreamId), send),
      send: (call) =>
        callService(service, call, {
          method: embeddings.method,
          body: JSON.stringify(embeddings.request(call)),
        }),
      convertResponse: embeddings.answer,
    },
    image: {
      send: (call) =>
        callService(service, call, { method: "generateContent", body: toGeminiImageRequest(call) }),
      convertResponse: () => null,
      pieces: () =>
        new ImageReader((raw, count) => readGeminiImageFields(raw, count, service.secrets())),
    },
    speech: {
      send: (call) => {
        const body = JSON.stringify(toGeminiSpeechRequest(call));
        return callService(service, call, { method: "generateContent", body });
      },
      convertResponse: () => null,
      pieces: ({ body }) => {
        const pcm = new JsonAudioReader((raw, files) =>
          readGeminiSpeechFields(raw, files, service.secrets()),
        );
        return body.response_format === "wav" ? new WavReader(pcm) : pcm;
      },
    },
    failureInBody: (raw) => findGeminiFailure(raw, service.secrets()),
    failure: (status, headers, bodyText) =>
      parseGoogleFailure(status, headers, bodyText, service.secrets()),
    reader: ({ body }) => createSseReader(new GeminiChunkReader(() => service.secrets(), body.n)),
  };
}

async function callService(
  service: Service,
  call: ProviderCall,
  { method, body }: { readonly method: string; readonly body: OutgoingBody },
): Promise<Response | ProviderFailure> {
  const url = `${service.modelsUrl}/${encodeURIComponent(call.upstreamId)}:${method}`;
  const firstCredential = await service.credential();
  if (isProviderFailure(firstCredential)) return firstCredential;
  const response = await sendPostRequest(call, { url, headers: firstCredential, body });
  if (isProviderFailure(response)) return response;
  if (response.status !== 401 || service.renew?.(firstCredential) !== true) return response;
  discardBody(response);
  const secondCredential = await service.credential();
  return isProviderFailure(secondCredential)
    ? secondCredential
    : sendPostRequest(call, { url, headers: secondCredential, body });
}

const GEMINI_URL = "https://generativelanguage.googleapis.com/v1beta";
const API_KEY_VARIABLE = "GEMINI_API_KEY";
const CREDENTIALS_VARIABLE = "GOOGLE_VERTEX_CREDENTIALS";

const GEMINI: BuiltInProvider = {
  id: "google",
  variables: [API_KEY_VARIABLE],
  isSet: (config) => config.secret(API_KEY_VARIABLE) !== undefined,
  tags: () => ["global"],
  problems: (config) => findBaseUrlProblems(config, "GEMINI_BASE_URL"),
  build(config) {
    const key = config.secret(API_KEY_VARIABLE) ?? "";
    return createGoogleProvider({
      id: "google",
      modelsUrl: `${removeTrailingSlashes(config.secret("GEMINI_BASE_URL") ?? GEMINI_URL)}/models`,
      embeddings: GEMINI_EMBEDDINGS,
      // A key in the URL would be logged.
      credential: () => Promise.resolve({ "x-goog-api-key": key }),
      secrets: () => [key],
    });
  },
};

/** Vertex hosts, which process prompts only in their region. The other regions have no host. */
const VERTEX_HOSTS: Partial<Record<Region, string>> = {
  eu: "https://aiplatform.eu.rep.googleapis.com/v1",
  us: "https://aiplatform.us.rep.googleapis.com/v1",
};

const VERTEX: BuiltInProvider = {
  id: "vertex",
  variables: [CREDENTIALS_VARIABLE],
  isSet: (config) => config.secret(CREDENTIALS_VARIABLE) !== undefined,
  tags: ({ region }) => (VERTEX_HOSTS[region] === undefined ? [] : [region]),
  problems: (config) => [
    ...findBaseUrlProblems(config, "VERTEX_BASE_URL", VERTEX_HOSTS[config.region]),
    ...findBaseUrlProblems(config, "VERTEX_TOKEN_URL"),
    ...credentialProblems(config),
  ],
  build: (config) => createVertexProvider(config, elapsedMs),
};

export const GOOGLE_PROVIDERS: readonly BuiltInProvider[] = [GEMINI, VERTEX];

export function createVertexProvider(config: ProviderConfig, nowMs: () => number): Provider {
  const account = parseServiceAccount(config.secret(CREDENTIALS_VARIABLE) ?? "");
  if (!("project" in account)) throw new Error("credentials with problems");
  const { region } = config;
  const tokens = new GoogleAccessTokens(
    account,
    config.secret("VERTEX_TOKEN_URL") ?? GOOGLE_TOKEN_URL,
    nowMs,
  );
  const host = config.secret("VERTEX_BASE_URL") ?? VERTEX_HOSTS[region] ?? "";
  const projectPath = `projects/${account.project}/locations/${region}`;
  return createGoogleProvider({
    id: "vertex",
    modelsUrl: `${removeTrailingSlashes(host)}/${projectPath}/publishers/google/models`,
    embeddings: VERTEX_EMBEDDINGS,
    async credential() {
      const token = await tokens.get();
      return typeof token === "string" ? { authorization: `Bearer ${token}` } : token;
    },
    renew({ authorization = "" }) {
      tokens.invalidate(authorization.slice("Bearer ".length));
      return true;
    },
    secrets: () => [tokens.last, account.email, account.project],
  });
}

function credentialProblems(config: ProviderConfig): ConfigProblem[] {
  const json = config.secret(CREDENTIALS_VARIABLE);
  const account = json === undefined ? [] : parseServiceAccount(json);
  if ("project" in account || account.length === 0) return [];
  const problem = `must be a service account's JSON key; missing: ${account.join(", ")}`;
  return [{ variable: CREDENTIALS_VARIABLE, problem }];
}
