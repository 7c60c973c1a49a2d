import { discardBody } from "../../shared/http/bounded-body.ts";
import { JsonAudioReader, WavReader } from "../core/audio-reader.ts";
import { embedInBatches } from "../core/embedding-batches.ts";
import { httpProvider, postRequest, removeTrailingSlashes } from "../core/http-provider.ts";
import type { ProviderProtocol } from "../core/http-provider.ts";
import type { OutgoingBody } from "../core/outgoing-body.ts";
import { isFailure } from "../core/provider.ts";
import type { Provider, ProviderCall, ProviderFailure } from "../core/provider.ts";
import { ImageReader } from "../core/picture-reader.ts";
import { sseReader } from "../core/sse-reader.ts";
import { readGeminiChat } from "../protocols/gemini/answer.ts";
import { GeminiChunkReader } from "../protocols/gemini/chunks.ts";
import type { GeminiEmbeddingMethod } from "../protocols/gemini/embeddings.ts";
import { geminiFailureInside, googleFailure } from "../protocols/gemini/failure.ts";
import { readGeminiImageFields, geminiImageRequest } from "../protocols/gemini/images.ts";
import { geminiChatRequest, geminiIgnoresNoEffort } from "../protocols/gemini/request.ts";
import { readGeminiSpeechFields, geminiSpeechRequest } from "../protocols/gemini/speech.ts";
import type { ConfigProblem } from "../../shared/config/config.ts";
import { elapsedMs } from "../../shared/clock.ts";
import type { Region } from "../../shared/regions.ts";
import { baseUrlProblems } from "../core/built-in.ts";
import type { BuiltInProvider, ProviderConfig } from "../core/built-in.ts";
import {
  GoogleAccessTokens,
  GOOGLE_TOKEN_URL,
  parseServiceAccount,
} from "./google-access-token.ts";
import { GEMINI_EMBEDDINGS, VERTEX_EMBEDDINGS } from "../protocols/gemini/embeddings.ts";

type Credential = Readonly<Record<string, string>>;

type Service = {
  readonly id: string;
  readonly modelsUrl: string;
  readonly embeddings: GeminiEmbeddingMethod;
  credential(): Promise<Credential | ProviderFailure>;
  renew?(refused: Credential): boolean;
  secrets(): readonly string[];
};

export function google(service: Service): Provider {
  return {
    ...httpProvider(createProtocol(service)),
    acceptsFiles: true,
    summarizesThoughts: true,
    ignoresNone: geminiIgnoresNoEffort,
  };
}

function createProtocol(service: Service): ProviderProtocol {
  const { embeddings } = service;
  return {
    id: service.id,
    streamType: "text/event-stream",
    chat: {
      async send(call) {
        const body = await geminiChatRequest(call);
        const method = call.stream ? "streamGenerateContent?alt=sse" : "generateContent";
        return isFailure(body) ? body : callService(service, call, { method, body });
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
        callService(service, call, { method: "generateContent", body: geminiImageRequest(call) }),
      convertResponse: () => null,
      pieces: () =>
        new ImageReader((raw, count) => readGeminiImageFields(raw, count, service.secrets())),
    },
    speech: {
      send: (call) => {
        const body = JSON.stringify(geminiSpeechRequest(call));
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
    failureInBody: (raw) => geminiFailureInside(raw, service.secrets()),
    failure: (status, headers, bodyText) =>
      googleFailure(status, headers, bodyText, service.secrets()),
    reader: ({ body }) => sseReader(new GeminiChunkReader(() => service.secrets(), body.n)),
  };
}

async function callService(
  service: Service,
  call: ProviderCall,
  { method, body }: { readonly method: string; readonly body: OutgoingBody },
): Promise<Response | ProviderFailure> {
  const url = `${service.modelsUrl}/${encodeURIComponent(call.upstreamId)}:${method}`;
  const firstCredential = await service.credential();
  if (isFailure(firstCredential)) return firstCredential;
  const response = await postRequest(call, { url, headers: firstCredential, body });
  if (isFailure(response)) return response;
  if (response.status !== 401 || service.renew?.(firstCredential) !== true) return response;
  discardBody(response);
  const secondCredential = await service.credential();
  return isFailure(secondCredential)
    ? secondCredential
    : postRequest(call, { url, headers: secondCredential, body });
}

const GEMINI_URL = "https://generativelanguage.googleapis.com/v1beta";
const API_KEY_VARIABLE = "GEMINI_API_KEY";
const CREDENTIALS_VARIABLE = "GOOGLE_VERTEX_CREDENTIALS";

const GEMINI: BuiltInProvider = {
  id: "google",
  variables: [API_KEY_VARIABLE],
  isSet: (config) => config.secret(API_KEY_VARIABLE) !== undefined,
  tags: () => ["global"],
  problems: (config) => baseUrlProblems(config, "GEMINI_BASE_URL"),
  build(config) {
    const key = config.secret(API_KEY_VARIABLE) ?? "";
    return google({
      id: "google",
      modelsUrl: `${removeTrailingSlashes(config.secret("GEMINI_BASE_URL") ?? GEMINI_URL)}/models`,
      embeddings: GEMINI_EMBEDDINGS,
      credential: () => Promise.resolve({ "x-goog-api-key": key }), // a key in the URL would be logged
      secrets: () => [key],
    });
  },
};

/** Vertex hosts, which process prompts only in their region. Other regions have none. */
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
    ...baseUrlProblems(config, "VERTEX_BASE_URL", VERTEX_HOSTS[config.region]),
    ...baseUrlProblems(config, "VERTEX_TOKEN_URL"),
    ...credentialProblems(config),
  ],
  build: (config) => vertex(config, elapsedMs),
};

export const GOOGLE: readonly BuiltInProvider[] = [GEMINI, VERTEX];

export function vertex(config: ProviderConfig, nowMs: () => number): Provider {
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
  return google({
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
