import type { HostTag } from "../core/built-in.ts";
import { inBatches } from "../core/embedding-batches.ts";
import { httpProvider, post, trimmedUrl } from "../core/http-provider.ts";
import type { Wire } from "../core/http-provider.ts";
import { textOf } from "../core/json-value.ts";
import type { OutgoingBody } from "../core/outgoing-body.ts";
import { isFailure } from "../core/provider.ts";
import type { Provider, ProviderCall, ProviderFailure } from "../core/provider.ts";
import { answerTool } from "../wires/converse/answer-format.ts";
import { bedrockFailure, exceptionFailure } from "../wires/converse/bedrock-failure.ts";
import { converseAnswer } from "../wires/converse/converse-answer.ts";
import { converseRequest } from "../wires/converse/converse-request.ts";
import { ConverseReader } from "../wires/converse/converse-stream.ts";
import { authoriser, secretsOf } from "./bedrock-credentials.ts";
import type { Credentials } from "./bedrock-credentials.ts";
import {
  embeddingMaker,
  embeddingsAnswer,
  embeddingsRequest,
} from "../wires/converse/embeddings.ts";
import { staysIn } from "../wires/converse/models.ts";

const ID = "bedrock";
const OUTSIDE: ProviderFailure = { kind: "disabled", reason: "residency" };
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
  return httpProvider(wireOf(host));
}

function wireOf({ tag, awsRegion, baseUrl, credentials }: BedrockHost): Wire {
  const base = trimmedUrl(baseUrl);
  const secrets = secretsOf(credentials);
  const authorise = authoriser(credentials, awsRegion);
  const send = async (
    call: ProviderCall,
    operation: string,
    { accept, body }: { readonly accept: string; readonly body: OutgoingBody },
  ) => {
    const url = `${base}/model/${encodeURIComponent(call.upstreamId)}/${operation}`;
    return post(call, { url, headers: { accept, ...(await authorise(url, body)) }, body });
  };
  /** A body for a model that stays where it is promised to. */
  const at = async (
    { upstreamId }: ProviderCall,
    body: () => Promise<OutgoingBody | ProviderFailure>,
  ) => (staysIn(tag, upstreamId) ? body() : OUTSIDE);
  return {
    id: ID,
    streamType: STREAM_TYPE,
    chat: {
      async ask(call) {
        const body = await at(call, () => converseRequest(call));
        if (isFailure(body)) return body;
        const accept = call.stream ? STREAM_TYPE : "application/json";
        return send(call, call.stream ? "converse-stream" : "converse", { accept, body });
      },
      answer: (raw, call) => converseAnswer(raw, answerTool(call)),
    },
    embeddings: {
      inParts: (call, sendPart) =>
        inBatches(call, embeddingMaker(call.upstreamId).textsMax, sendPart),
      async ask(call) {
        const body = await at(call, () => Promise.resolve(embeddingsRequest(call)));
        if (isFailure(body)) return body;
        return send(call, "invoke", { accept: "application/json", body });
      },
      answer: embeddingsAnswer,
    },
    failureInside(raw) {
      const name = textOf(raw["__type"]);
      return name === "" ? null : exceptionFailure({ name, raw }, secrets);
    },
    failure: (status, headers, bodyText) => bedrockFailure(status, headers, bodyText, secrets),
    reader: (call) => new ConverseReader(answerTool(call), secrets),
  };
}
