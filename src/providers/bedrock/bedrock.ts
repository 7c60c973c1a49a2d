import type { HostTag } from "../built-in.ts";
import { inBatches, textsOf } from "../embedding-batches.ts";
import { post, sendOver, trimmedUrl } from "../http-provider.ts";
import type { Wire } from "../http-provider.ts";
import { textOf } from "../json-value.ts";
import type { OutgoingBody } from "../outgoing-body.ts";
import type { Provider, ProviderCall, ProviderFailure } from "../provider.ts";
import { answerTool } from "./answer-format.ts";
import { bedrockFailure, exceptionFailure } from "./bedrock-failure.ts";
import { converseAnswer } from "./converse-answer.ts";
import { converseRequest } from "./converse-request.ts";
import { ConverseReader } from "./converse-stream.ts";
import { authoriser, secretsOf } from "./credentials.ts";
import type { Credentials } from "./credentials.ts";
import { embeddingMaker, embeddingsAnswer } from "./embeddings.ts";
import { staysIn } from "./models.ts";

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
