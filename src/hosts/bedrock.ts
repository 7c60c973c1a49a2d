import type { HostTag } from "../core/built-in.ts";
import { inBatches, textsOf } from "../core/embedding-batches.ts";
import { post, sendOver, trimmedUrl } from "../core/http-provider.ts";
import type { Wire } from "../core/http-provider.ts";
import { textOf } from "../core/json-value.ts";
import type { OutgoingBody } from "../core/outgoing-body.ts";
import type { Provider, ProviderCall, ProviderFailure } from "../core/provider.ts";
import { answerTool } from "../wires/converse/answer-format.ts";
import { bedrockFailure, exceptionFailure } from "../wires/converse/bedrock-failure.ts";
import { converseAnswer } from "../wires/converse/converse-answer.ts";
import { converseRequest } from "../wires/converse/converse-request.ts";
import { ConverseReader } from "../wires/converse/converse-stream.ts";
import { authoriser, secretsOf } from "./bedrock-credentials.ts";
import type { Credentials } from "./bedrock-credentials.ts";
import { embeddingMaker, embeddingsAnswer } from "../wires/converse/embeddings.ts";
import { staysIn } from "../wires/converse/models.ts";

const ID = "bedrock";
const STREAM_TYPE = "application/vnd.amazon.eventstream";

/** Bedrock's runtime in one region of AWS. */
export type BedrockHost = {
  /** Where it promises to run; models that may leave it are not served. */
  readonly tag: HostTag;
  readonly awsRegion: string;
  readonly baseUrl: string;
  readonly credentials: Credentials;
};

/** Converse and ConverseStream for chat, InvokeModel for embeddings. */
export function bedrock(host: BedrockHost): Provider {
  const wire = wireOf(host);
  return {
    id: ID,
    send(call) {
      if (call.kind === "chat") return sendOver(wire, call);
      return inBatches(call, embeddingMaker(call.upstreamId).textsMax, (one, texts) =>
        sendOver(wire, { ...one, body: { ...one.body, input: texts } }),
      );
    },
  };
}

function wireOf({ tag, awsRegion, baseUrl, credentials }: BedrockHost): Wire {
  const base = trimmedUrl(baseUrl);
  const secrets = secretsOf(credentials);
  const authorise = authoriser(credentials, awsRegion);
  return {
    id: ID,
    streamType: STREAM_TYPE,
    async ask(call) {
      if (!staysIn(tag, call.upstreamId)) return { kind: "disabled", reason: "residency" };
      const body = await bodyOf(call);
      if (isFailure(body)) return body;
      const url = `${base}/model/${encodeURIComponent(call.upstreamId)}/${operationOf(call)}`;
      const accept = call.stream ? STREAM_TYPE : "application/json";
      return post(call, { url, headers: { accept, ...(await authorise(url, body)) }, body });
    },
    answer: (raw, call, headers) =>
      call.kind === "chat"
        ? converseAnswer(raw, answerTool(call))
        : embeddingsAnswer(raw, call, headers),
    failureInside(raw) {
      const name = textOf(raw["__type"]);
      return name === "" ? null : exceptionFailure({ name, raw }, secrets);
    },
    failure: (status, headers, bodyText) => bedrockFailure(status, headers, bodyText, secrets),
    reader: (call) => new ConverseReader(answerTool(call), secrets),
  };
}

async function bodyOf(call: ProviderCall): Promise<OutgoingBody | ProviderFailure> {
  if (call.kind === "chat") return converseRequest(call);
  const texts = textsOf(call);
  if ("kind" in texts) return texts;
  return JSON.stringify(embeddingMaker(call.upstreamId).body(texts, call.body, call.upstreamId));
}

function isFailure(body: OutgoingBody | ProviderFailure): body is ProviderFailure {
  return typeof body === "object" && "reason" in body;
}

function operationOf(call: ProviderCall): string {
  if (call.kind === "embeddings") return "invoke";
  return call.stream ? "converse-stream" : "converse";
}
